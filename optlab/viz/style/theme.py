"""The theme of all figures: every color, dash, marker, font and size in one place.

An optimizer has one color *and* one dash *and* one marker, the same in every figure, so that it is
recognized in print, with color blindness and on a weak projector. Hues follow Okabe and Ito (2008),
darkened until they stand out on the surface, which is a pale blue of one hue; no pair is red
against green.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

INK = "#1f2328"
"""Titles, labels and the marks of start and minimum."""
QUIET = "#57606a"
"""Axis numbers and notes: readable (contrast above 4.5 on paper), but quieter than the data."""
RULE = "#dfe3e8"
"""Grid lines."""
FAINT = "#edf0f3"
"""Vertical lines that mark steps: quieter than the grid."""
FRAME = "#b6bec8"
"""The border of the map, and the zero line."""
CONTOUR = "#8f97a8"
"""Contour lines, drawn thin."""
PAPER = "#ffffff"

DARK: Final = {
    "ink": "#e6e9ee",
    "quiet": "#a3acb8",
    "rule": "#2c333d",
    "faint": "#222831",
    "frame": "#4a5361",
    "contour": "#5d6878",
    "paper": "#161a20",
}
"""The colors of a dark page."""
LIGHT: Final = {
    "ink": INK,
    "quiet": QUIET,
    "rule": RULE,
    "faint": FAINT,
    "frame": FRAME,
    "contour": CONTOUR,
    "paper": PAPER,
}
"""The colors of a light page, by name."""

_dark = False
_chosen = False  # by `use_style`


def choose(name: str | None) -> None:
    """Fix the page, whatever page the notebook has; None lets figures follow the notebook again.

    Parameters
    ----------
    name : "light", "dark" or None
    """
    global _chosen
    _chosen = name is not None
    use_scheme(name or "light")


def is_chosen() -> bool:
    """Return whether the page was fixed."""
    return _chosen


def use_scheme(name: str) -> None:
    """Set the colors of all figures that are drawn from now on: those of a light or a dark page.

    The names above (`INK`, `PAPER`, ...) are of the page in use; `LIGHT` and `DARK` have both.

    Parameters
    ----------
    name : "light" or "dark"
    """
    global _dark
    _dark = name == "dark"
    globals().update({key.upper(): color for key, color in (DARK if _dark else LIGHT).items()})


def scheme() -> str:
    """Return the page in use, "light" or "dark"."""
    return "dark" if _dark else "light"


FONT_FAMILIES: Final = ("Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans")
FONT_TITLE, FONT_HEADING, FONT_TEXT, FONT_SMALL = 17, 13, 12, 11
"""Sizes in pixels."""

LINE_WIDTH, FAINT_WIDTH, HALO_WIDTH, CONTOUR_WIDTH = 2.0, 1.0, 4.0, 0.6
END_SIZE, STEP_SIZE, START_SIZE, MINIMUM_SIZE = 11.0, 3.2, 11.0, 15.0
"""Sizes of markers in pixels: ends of paths, single steps, the start, the minimum."""
UNDER_SIZE, OVER_SIZE = 17.0, 9.0
"""Marker sizes of two ends that may coincide: the lower one remains visible around the upper."""
FAINT_OPACITY: Final = 0.28
"""Opacity of raw mini-batch losses, behind their smoothed curve."""


@dataclass(frozen=True)
class Style:
    """Style of one optimizer in all figures.

    Attributes
    ----------
    color : str
        As ``"#rrggbb"``.
    dash : tuple of float
        Lengths in pixels of stroke and gap, alternating; empty for a solid line.
    marker : str
        A name that both backends know, such as ``"circle"``.
    """

    color: str
    dash: tuple[float, ...]
    marker: str


# Okabe and Ito's hues, darkened, in the order in which optimizers take them.
_COLORS = (
    "#005f9e",  # blue
    "#b84a00",  # vermilion
    "#00704f",  # bluish green
    "#9b3d78",  # reddish purple
    "#3a3f47",  # black, softened
    "#7d6200",  # yellow
    "#1479a8",  # sky blue
    "#8a5a16",  # orange
)
# The same hues, lightened until they stand out on the dark surface.
_DARK_COLORS = (
    "#6bb6f0", "#f2935c", "#45c79f", "#e596c6", "#c6ccd4", "#dcc052", "#86d3f7", "#dfa862",
)  # fmt: skip
DASHES: tuple[tuple[float, ...], ...] = (
    (), (7, 3), (2, 2.5), (8, 3, 2, 3), (13, 4), (8, 3, 2, 3, 2, 3), (4, 2),
)  # fmt: skip
"""Dashes of lines in pixels, in the order in which optimizers take them; the first is solid."""
_MARKERS = (
    "circle", "square", "triangle-up", "diamond", "pentagon", "triangle-down", "hexagon", "cross",
    "x",
)  # fmt: skip


@dataclass(frozen=True)
class Area:
    """Style of the bytes of one role.

    Attributes
    ----------
    color : str
        One of Okabe and Ito's hues. Neighbors also differ in lightness, to be distinct in print.
    pattern : str
        Hatching for readers who see no hues: a name that plotly and matplotlib share, or "".
    ink : str
        The color of the hatching; "" for `HATCHING`.
    """

    color: str
    pattern: str
    ink: str = ""


HATCHING: Final = (INK, 0.35)
"""Color and opacity of hatchings: dark on every page, as roles have one color on all."""
MEMORY: Final = {
    "parameter": Area("#0072b2", ""),
    "slot": Area("#56b4e9", ""),
    "data": Area("#c4cad2", ""),
    "gradient": Area("#009e73", ""),
    "saved": Area("#e69f00", "/"),
    "recomputed": Area("#f0e442", "x"),
    "temporary": Area("#cc79a7", "."),
}
"""Roles of memory, from persistent (at the bottom of a stack) to temporary."""


# The index in this tuple determines an optimizer's style: append at the end, never in between.
_CLASSES = (
    "Adam", "Momentum", "RMSProp", "AdamW", "SGD", "Adagrad", "Adadelta", "Adamax", "NAdam",
    "RAdam", "Lamb", "LarsMomentum", "LBFGS", "Rprop", "ASGD", "Lion", "Muon", "Shampoo", "SAM",
    "DecayedAdagrad", "Ftrl", "Dpsgd", "Newton", "ConjugateGradient", "SteepestDescent",
)  # fmt: skip
# Variants and wrappers, with the number of their style: beside the optimizer that it varies, each
# has another hue, dash and marker.
_VARIANTS = {
    "AdamWithoutCorrection": 29, "EMA": 26, "ModelAverage": 28, "LookAhead": 30, "Nesterov": 34,
    "AMSGrad": 35,
}  # fmt: skip
_PLACES = {name: place for place, name in enumerate(_CLASSES)} | _VARIANTS
_FREE = 36
"""The first style that belongs to no optimizer: further traces take from here."""
STYLES = 110
"""So many styles are looked at for one of a new hue and marker; pages know them."""


def dark(color: str) -> str:
    """Return the color of an optimizer on a dark page.

    Parameters
    ----------
    color : str
        On a light page; a color of a dark page stays.

    Examples
    --------
    >>> dark("#005f9e")
    '#6bb6f0'
    """
    return color if color in _DARK_COLORS else _DARK_COLORS[_COLORS.index(color)]


def light(color: str) -> str:
    """Return the color of an optimizer on a light page; the reverse of `dark`.

    Examples
    --------
    >>> light("#6bb6f0"), light("#005f9e")
    ('#005f9e', '#005f9e')
    """
    return color if color in _COLORS else _COLORS[_DARK_COLORS.index(color)]


def palettes() -> dict[str, dict[str, str]]:
    """Return all colors that a light and a dark page have, by name.

    A page in a browser replaces those of one by those of the other.

    Examples
    --------
    >>> palettes()["light"]["paper"], palettes()["dark"]["color-0"]
    ('#ffffff', '#6bb6f0')
    """
    both = (("light", LIGHT, _COLORS), ("dark", DARK, _DARK_COLORS))
    return {
        name: own | {f"color-{at}": color for at, color in enumerate(hues)}
        for name, own, hues in both
    }


def colors() -> tuple[str, ...]:
    """Return the colors of optimizers on the page in use, in the order in which they are taken."""
    return _DARK_COLORS if _dark else _COLORS


def _style(place: int) -> Style:
    """Return style number `place`; color, dash and marker cycle differently, so none repeats."""
    turn = place // len(_COLORS)
    return Style(
        color=colors()[place % len(_COLORS)],
        dash=DASHES[(place + turn) % len(DASHES)],
        marker=_MARKERS[place % len(_MARKERS)],
    )


def all_styles(count: int) -> tuple[tuple[str, ...], list[Style]]:
    """Return the classes in the order of their styles, and the first styles.

    The order ends where the styles begin that belong to nobody; "" stands for one without a class.

    Examples
    --------
    >>> classes, styles = all_styles(4)
    >>> [style.marker for style in styles]
    ['circle', 'square', 'triangle-up', 'diamond']
    """
    names = {place: name for name, place in _PLACES.items()}
    order = tuple(names.get(place, "") for place in range(_FREE))
    return order, [_style(place) for place in range(count)]


def _free_style(taken: set[Style]) -> Style:
    """Return a style that belongs to no optimizer, of a new hue and marker if there is one.

    Else it is one of a new hue.
    """
    hues, markers = {style.color for style in taken}, {style.marker for style in taken}
    last = max(STYLES, _FREE + len(taken) + 1)
    free = [style for style in map(_style, range(_FREE, last)) if style not in taken]
    other = [style for style in free if style.color not in hues]
    return next((style for style in other if style.marker not in markers), (other or free)[0])


def variant_of(kind: str, settings: Mapping[str, Any], around: str = "") -> str:
    """Return the name by which an optimizer has its style: its wrapper, its variant, or its class.

    Parameters
    ----------
    kind : str
        The class.
    settings : mapping
        Hyper-parameters.
    around : str
        The wrapper, "" without one.

    Examples
    --------
    >>> variant_of("Adam", {"amsgrad": True}), variant_of("Adam", {}, "LookAhead")
    ('AMSGrad', 'LookAhead')
    """
    if around:
        return around
    if kind == "Adam" and settings.get("amsgrad"):
        return "AMSGrad"
    return "Nesterov" if kind == "Momentum" and settings.get("use_nesterov") else kind


def assign_styles(classes: Mapping[str, str]) -> dict[str, Style]:
    """Assign a style to every trace of a figure.

    The class decides first, so that Adam looks the same in every figure. Further traces of the same
    class, and unknown classes, take styles that belong to no optimizer.

    Parameters
    ----------
    classes : mapping
        For each name in the figure, the class of its optimizer.

    Returns
    -------
    dict
        One `Style` a name, no two of them equal.

    Examples
    --------
    >>> styles = assign_styles({"fast": "Adam", "slow": "Adam", "SGD": "SGD"})
    >>> styles["fast"].marker, styles["slow"].marker, styles["SGD"].marker
    ('circle', 'square', 'pentagon')
    """
    taken: set[Style] = set()
    found: dict[str, Style] = {}
    for name, optimizer in classes.items():
        if optimizer in _PLACES:
            style = _style(_PLACES[optimizer])
            if style not in taken:
                taken.add(style)
                found[name] = style
    for name in classes:
        if name not in found:
            found[name] = _free_style(taken)
            taken.add(found[name])
    return {name: found[name] for name in classes}


# Nine samples of viridis, dark to light.
_VIRIDIS = (
    (68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129),
    (92, 200, 99), (170, 220, 50), (253, 231, 37),
)  # fmt: skip

MAP: Final[dict[str, tuple[str, str]]] = {
    "light": ("#d6e1ed", "#fbfcfd"), "dark": ("#2a3746", "#161b21"),
}  # fmt: skip
"""The surface from its lowest to its highest point: one hue, which paths stand out on."""


def surface_colors(count: int, paper: str | None = None) -> list[str]:
    """Return the colors of the bands between contour lines, lowest first: one pale hue.

    Parameters
    ----------
    count : int
        Number of bands.
    paper : str, optional
        The color of the page, light or dark; by default that of the page in use.

    Examples
    --------
    >>> surface_colors(3)
    ['#d6e1ed', '#e8eef5', '#fbfcfd']
    """
    dark = _luminance(PAPER if paper is None else paper) < 0.2
    low, high = (
        np.frombuffer(bytes.fromhex(color[1:]), np.uint8).astype(float)
        for color in MAP["dark" if dark else "light"]
    )
    shares = np.linspace(0, 1, count)[:, None]
    bands = np.rint(low + shares * (high - low)).astype(int)
    return ["#{:02x}{:02x}{:02x}".format(*band) for band in bands]


def map_colors(count: int) -> list[str]:
    """Return colors of the data of a map, lowest first: viridis itself.

    Parameters
    ----------
    count : int
        Number of colors, at least 2.

    Examples
    --------
    >>> map_colors(3)
    ['#440154', '#21908d', '#fde725']
    """
    samples: NDArray[np.float64] = np.array(_VIRIDIS, dtype=np.float64)
    at = np.linspace(0, len(samples) - 1, count)
    places = np.arange(len(samples))
    bands = np.stack([np.interp(at, places, channel) for channel in samples.T], axis=1)
    return ["#{:02x}{:02x}{:02x}".format(*band) for band in np.rint(bands).astype(int)]


def area_colors() -> list[str]:
    """Return the colors of areas beside each other, without the grey one."""
    return [color for color in colors() if light(color) != "#3a3f47"]


def paled(color: str, part: float) -> str:
    """Return a color of which this part is paper.

    Examples
    --------
    >>> paled("#000000", 0.5)
    '#808080'
    """
    mixed = [
        round(int(color[at : at + 2], 16) * (1 - part) + int(PAPER[at : at + 2], 16) * part)
        for at in (1, 3, 5)
    ]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Compute the contrast of two colors, 1 to 21, as in the WCAG 2 accessibility guidelines.

    Examples
    --------
    >>> contrast("#ffffff", "#000000")
    21.0
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def with_opacity(color: str, opacity: float) -> str:
    """Return `color` with an opacity in CSS notation.

    Examples
    --------
    >>> with_opacity("#ffffff", 0.5)
    'rgba(255, 255, 255, 0.5)'
    """
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
