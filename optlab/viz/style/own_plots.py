"""The style of optlab's figures for the reader's own matplotlib plots, light and dark."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from optlab.viz.style import theme

#: matplotlib counts in points, the theme in pixels; 72 points are an inch of 100 pixels.
_POINT = 0.72


class UsedStyle:
    """A style in use; as a context manager it puts back what was there.

    Attributes
    ----------
    scheme : str
        "light" or "dark".
    """

    def __init__(self, scheme: str, before: dict[str, Any], scheme_before: str | None) -> None:
        self.scheme = scheme
        self._before = before
        self._scheme_before = scheme_before

    def restore(self) -> None:
        """Put back matplotlib's settings and the colors of optlab's figures."""
        import matplotlib

        settings: Any = matplotlib.rcParams
        settings.update(self._before)
        theme.choose(self._scheme_before)

    def __enter__(self) -> UsedStyle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.restore()

    def __repr__(self) -> str:
        return f"<optlab's style on a {self.scheme} page>"


def use_style(scheme: str = "light") -> UsedStyle:
    """Give your own matplotlib plots the style of optlab's figures, on a light or a dark page.

    The figures of optlab, plotly's and the static ones, are drawn for the same page from then on.
    Without it they are dark in a notebook whose theme was set to a dark one, as far as the settings
    are on the kernel's machine, and light elsewhere: a figure cannot see the page it stands on.

    Parameters
    ----------
    scheme : "light" or "dark"

    Returns
    -------
    UsedStyle
        ``with ol.viz.use_style("dark"): ...`` puts the settings back at the end;
        ``.restore()`` does it elsewhere.

    Raises
    ------
    ValueError
        If there is no such page.

    Examples
    --------
    >>> import matplotlib
    >>> import optlab as ol
    >>> with ol.viz.use_style("dark"):
    ...     matplotlib.rcParams["figure.facecolor"]
    '#161a20'
    """
    if scheme not in ("light", "dark"):
        raise ValueError(f'scheme must be "light" or "dark"; got {scheme!r}.')
    import matplotlib

    before_scheme = theme.scheme() if theme.is_chosen() else None
    theme.choose(scheme)
    wanted = _settings()
    settings: Any = matplotlib.rcParams
    before = {name: settings[name] for name in wanted}
    settings.update(wanted)
    return UsedStyle(scheme, before, before_scheme)


def _settings() -> dict[str, Any]:
    """Return matplotlib's settings for the page in use."""
    from cycler import cycler

    # Every color has a dash of its own, so that lines differ in print, too.
    dashes = [
        (0, tuple(length * _POINT for length in dash)) if dash else "-"
        for dash in (*theme.DASHES, (1.5, 1.5))
    ]
    found: dict[str, Any] = {
        "axes.prop_cycle": cycler(color=theme.colors()) + cycler(linestyle=dashes),
        "lines.linewidth": theme.LINE_WIDTH * _POINT,
        "lines.dash_capstyle": "butt",
        "lines.scale_dashes": False,
        "font.family": ["sans-serif"],
        "font.sans-serif": list(theme.FONT_FAMILIES),
        "font.size": theme.FONT_TEXT * _POINT,
        "axes.titlesize": theme.FONT_HEADING * _POINT,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.labelsize": theme.FONT_TEXT * _POINT,
        "xtick.labelsize": theme.FONT_SMALL * _POINT,
        "ytick.labelsize": theme.FONT_SMALL * _POINT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.linewidth": _POINT,
        "axes.linewidth": _POINT,
        "xtick.major.size": 0.0,
        "ytick.major.size": 0.0,
        "legend.frameon": False,
        "image.cmap": "viridis",
        "figure.figsize": (7.0, 4.0),
        "figure.dpi": 100.0,
    }
    for color, names in {
        theme.PAPER: ("figure.facecolor", "figure.edgecolor", "savefig.facecolor",
                      "axes.facecolor"),
        theme.INK: ("text.color", "axes.titlecolor", "patch.edgecolor"),
        theme.QUIET: ("axes.labelcolor", "xtick.color", "ytick.color", "xtick.labelcolor",
                      "ytick.labelcolor"),
        theme.FRAME: ("axes.edgecolor",),
        theme.RULE: ("grid.color",),
    }.items():  # fmt: skip
        found |= dict.fromkeys(names, color)
    return found
