"""A memory study as a widget: a slider over its runs, which needs no kernel once it is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from optlab.backend.sizes import in_words
from optlab.viz import browser, layout, theme
from optlab.viz.cell_runs import close_earlier
from optlab.viz.memory_views import MIB, NAMES, in_layers
from optlab.viz.recompute_pictures import recompute_png
from optlab.viz.recompute_plot import clipped
from optlab.viz.recompute_views import RecomputeView, Timeline, recompute_view
from optlab.viz.words import format_bytes

_PLACE = "optlab-recompute"
_STATIC = Path(__file__).parent / "recompute_static"
_SHARES = 7


def javascript() -> str:
    """Give the browser's code."""
    return browser.javascript(_STATIC)


def style_sheet() -> str:
    """Give the style sheet."""
    return browser.style_sheet(_PLACE, _STATIC)


class RecomputeExplorer(anywidget.AnyWidget):
    """A memory study, one run at a time; `optlab.viz.recompute_explorer` makes one.

    Attributes
    ----------
    selected : int
        The number of the run that is shown, as in ``study.rows``; set it to see another.
    study : MemoryStudy
    """

    _esm = browser.as_module(javascript())
    _css = style_sheet()

    view = traitlets.Dict().tag(sync=True)
    selected = traitlets.Int(0).tag(sync=True)

    def __init__(self, study: Any, selected: int = 0) -> None:
        view = recompute_view(study, layout.WIDTH, None, "recompute_explorer")
        self._last = len(study.rows) - 1
        self.study = study
        super().__init__(view=view_of(study, view), selected=selected)
        close_earlier(self._release)

    @traitlets.validate("selected")
    def _checked(self, proposal: Any) -> int:
        value = int(proposal["value"])
        if not 0 <= value <= self._last:
            raise traitlets.TraitError(f"the runs are 0 to {self._last}; got {value}.")
        return value

    @property
    def row(self) -> Any:
        """The run that is shown."""
        return self.study.rows[self.selected]

    def select(self, name: str) -> RecomputeExplorer:
        """Show a run by its name; give the widget itself.

        Examples
        --------
        >>> import numpy as np
        >>> import optlab as ol
        >>> w = ol.to_tensor(np.ones(1000), requires_grad=True)
        >>> step = lambda: np.sum(np.exp(np.sin(w))).backward()
        >>> study = ol.lab.memory_study(step, [], ["1 MiB"], repeats=1)
        >>> ol.viz.recompute_explorer(study).select("budget 1 MiB").selected
        1
        """
        self.selected = self.study.rows.index(self.study[name])
        return self

    def summary(self) -> str:
        """Say in words what is shown."""
        return summary_of(self.study, self.row)

    def to_html(self, path: str | Path | None = None) -> str | Path:
        """Give one self-contained page in which the slider stays alive.

        Parameters
        ----------
        path : path, optional
            Where to write it.

        Returns
        -------
        str or Path
            The page; its path, if it was written to a file.
        """
        page = page_of(dict(self.view), int(self.selected), str(self.study))
        return browser.save_page(page, path)

    def to_png(self, path: str | Path | None = None, width: int = layout.WIDTH) -> bytes:
        """Give a picture of all runs, drawn by matplotlib: that of `optlab.viz.recompute_png`."""
        content = recompute_png(self.study, width=width)
        if path is not None:
            Path(path).write_bytes(content)
        return content

    def _release(self) -> None:
        """Close, and free what takes memory: the cell that made this widget runs again."""
        self.view = {}
        self.layout.close()
        self.close()

    def __repr__(self) -> str:
        return f"<RecomputeExplorer: {self.summary()}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Give the widget, its picture for where no widget lives, and the table in words."""
        bundle = super()._repr_mimebundle_(**kwargs)
        return browser.with_static_image(bundle, str(self.study), self.to_png(width=900))


def recompute_explorer(study: Any, selected: int = 0) -> RecomputeExplorer:
    """Explore a memory study: a slider over its runs, segments, snapshots and budgets.

    Shown is the memory of one run over its events, by role, with the operations whose arrays make
    up its peak; and where the run lies between memory and time. Everything was computed before: the
    slider needs no kernel, and lives on in the page that `to_html` writes.

    Parameters
    ----------
    study : MemoryStudy
        What `optlab.lab.memory_study` returned, with timelines.
    selected : int
        The run that it opens on, as in ``study.rows``.

    Returns
    -------
    RecomputeExplorer
        Arrow keys, Home and End step through the runs, as the slider does, and as ``selected``.

    Raises
    ------
    TypeError, ValueError
        If it is no study, or has no timelines.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones(1000), requires_grad=True)
    >>> study = ol.lab.memory_study(
    ...     lambda: np.sum(np.exp(np.sin(w))).backward(), [], ["1 MiB"], repeats=1)
    >>> explorer = recompute_explorer(study)
    >>> explorer.selected = 1
    >>> explorer.row.name
    'budget 1 MiB'
    """
    found = recompute_view(study, layout.WIDTH, None, "recompute_explorer")
    if not found.timelines:
        raise ValueError(
            "this study has no timelines to explore; make it with memory_study(..., timelines=True)"
            ", or draw it by viz.recompute."
        )
    return RecomputeExplorer(study, selected)


def summary_of(study: Any, row: Any) -> str:
    """Say in a sentence what a run costs."""
    if not row.ran:
        return f"{row.name}: {_instead(row)}."
    said = f"{row.name}: peak {format_bytes(row.peak)} above the start"
    if row is study.plain:
        return f"{said}; nothing runs again. The others are compared with this one."
    if row.span is not None:
        apart = study.apart(row)
        said += (
            f", {study.times_plain(row)} x the plain time"
            if apart
            else ", its times overlap those of plain"
        )
    said += f", {row.recomputed_operations:,} operations run again ({row.share:.0%}); "
    return said + ("gradients equal to the bit." if row.equal else f"it DIFFERS: {row.difference}.")


def _instead(row: Any) -> str:
    """Say why a run has nothing to show."""
    if row.smallest is not None:
        return f"cannot be met; the smallest budget that can is {in_words(row.smallest)}"
    return f"raised {row.raised.rstrip('.')}"


def view_of(study: Any, view: RecomputeView) -> dict[str, Any]:
    """Give all that the browser draws, as plain numbers and words."""
    lines = {line.name: line for line in view.timelines}
    points = {point.name: point for point in view.points}
    runs = []
    for (name, style), row, texts in zip(view.runs, study.rows, study.texts(), strict=True):
        point, line = points.get(name), lines.get(name)
        runs.append(
            {
                "name": name,
                "kind": row.way.kind,
                "color": {"light": style.color, "dark": theme.dark(style.color)},
                "marker": style.marker,
                "said": summary_of(study, row),
                "instead": _instead(row).split(":")[0] if not row.ran else "",
                "texts": list(texts),
                "point": None if point is None else [point.x, point.y],
                "line": None if line is None else _line(row, line),
            }
        )
    bounds = []
    for curve in view.curves:
        x, y = clipped(curve, view.box)
        path = [[_short(a), _short(b)] for a, b in zip(x, y, strict=True)]
        label = curve.label
        bounds.append(
            {
                "name": curve.name,
                "dash": list(curve.dash),
                "points": path,
                "label": None if label is None else [label.x, label.y, label.anchor, label.above],
            }
        )
    front = [[_short(a), _short(b)] for a, b in zip(*view.front, strict=True)]
    return {
        "title": view.title,
        "headline": view.headline,
        "note": " ".join(view.page.note),
        "heads": [head or "run" for head in _heads()],
        "roles": [
            [role, NAMES[role], theme.MEMORY[role].color, theme.MEMORY[role].pattern]
            for role in view.roles
        ],
        "events": view.events,
        "top": view.top,
        "plain": view.plain_peak,
        "box": [view.box.x_low, view.box.x_high, view.box.y_low, view.box.y_high],
        "bounds": bounds,
        "front": front,
        "runs": runs,
        "palette": {"light": theme.LIGHT, "dark": theme.DARK},
    }


def _heads() -> tuple[str, ...]:
    from optlab.lab.memory_results import HEADS

    return HEADS


def _short(value: float) -> float | None:
    """Give a number as few letters; none where a curve is broken."""
    return None if value != value else float(f"{value:.5g}")


def _line(row: Any, line: Timeline) -> dict[str, Any]:
    trace = row.timeline
    at = trace.peak_event
    new = [held for held in trace.by_operation() if held.phase]
    total = max(1, sum(held.nbytes for held in new))
    shares = [
        [text, format_bytes(held.nbytes), held.nbytes / total, held.role]
        for text, held in zip(in_layers(new[:_SHARES]), new, strict=False)
    ]
    rest = sum(held.nbytes for held in new[_SHARES:])
    if rest:
        others = len(new) - _SHARES
        shares.append([f"{others} other{'s' * (others > 1)}", format_bytes(rest), rest / total, ""])
    phase, layer = trace.phase[at], trace.layer[at]
    where = trace.operation[at] + (f" ({phase})" if phase else "")
    return {
        "edges": [int(edge) for edge in line.edges],
        "bands": {role: [_short(v) for v in high - low] for role, low, high in line.bands},
        "tips": [tip.replace("<b>", "").replace("</b>", "").split("<br>") for tip in line.tips],
        "peak": [line.peak[0], _short(line.peak[1])],
        "peakText": f"arrays: {format_bytes(line.peak[1] * MIB)}, in {where}",
        "where": f"{where}{f' of {layer}' if layer else ''}",
        "shares": shares,
    }


def page_of(view: dict[str, Any], selected: int, words: str) -> str:
    """Give one HTML page with everything in it; it asks no server for anything."""
    stored = {"view": view, "selected": selected}
    return browser.html_page(_PLACE, view["title"], stored, words, style_sheet(), javascript())
