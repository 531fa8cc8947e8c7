"""A memory study as a widget: a slider over its runs that needs no kernel once shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from optlab.backend.memory.sizes import in_words
from optlab.lab.memory_studies.result import HEADS
from optlab.viz import browser
from optlab.viz.backends.scene import Boxes, Mark, mark_as_json, panel_as_json
from optlab.viz.browser.cell_runs import close_earlier
from optlab.viz.browser.live import LiveWidget
from optlab.viz.memory_study.figure import (
    curve_label,
    point_mark,
    theory_panel,
    timeline_panel,
)
from optlab.viz.memory_study.image import recompute_png
from optlab.viz.memory_study.view import RecomputeView, Timeline, about_of, recompute_view
from optlab.viz.memory_timeline.view import NAMES, in_layers
from optlab.viz.style import layout, theme
from optlab.viz.style.text import format_bytes
from optlab.viz.style.theme import Area as Fill

_APP = browser.App("optlab-recompute", Path(__file__).parent / "static" / "recompute.js")
_SHARES = 7
_DIGITS = 5  # of the numbers in a page


class RecomputeExplorer(LiveWidget):
    """A memory study, one run at a time; created by `optlab.viz.recompute_explorer`.

    Attributes
    ----------
    selected : int
        Index of the run shown, as in ``study.rows``; set it to show another.
    study : MemoryStudy
    """

    app = _APP
    shared_names = ("selected",)

    selected = traitlets.Int(0).tag(sync=True)

    def __init__(self, study: Any, selected: int = 0) -> None:
        view = recompute_view(study, layout.WIDTH, None, "recompute_explorer")
        self._last = len(study.rows) - 1
        self.study = study
        self.view = view_of(study, view)
        super().__init__(selected=selected)
        close_earlier(self.close)

    @traitlets.validate("selected")
    def _checked(self, proposal: Any) -> int:
        value = int(proposal["value"])
        if not 0 <= value <= self._last:
            raise traitlets.TraitError(f"the runs are 0 to {self._last}; got {value}.")
        return value

    @property
    def row(self) -> Any:
        """The run shown."""
        return self.study.rows[self.selected]

    def select(self, name: str) -> RecomputeExplorer:
        """Show a run by its name and return the widget.

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
        """Describe the run shown in words."""
        return summary_of(self.study, self.row)

    def to_html(self, path: str | Path | None = None) -> str | Path:
        """Return one self-contained HTML page with a live slider.

        Parameters
        ----------
        path : path, optional
            The file to write.

        Returns
        -------
        str or Path
            The page, or its path if it was written to a file.
        """
        page = browser.html_page(_APP, self.view["title"], self.stored(), self.text())
        return browser.save_page(page, path)

    def to_png(self, path: str | Path | None = None, width: int = layout.WIDTH) -> bytes:
        """Return the static image of all runs, as `optlab.viz.recompute_png`."""
        content = recompute_png(self.study, width=width)
        if path is not None:
            Path(path).write_bytes(content)
        return content

    def __repr__(self) -> str:
        return f"<RecomputeExplorer: {self.summary()}>"

    def stored(self) -> dict[str, Any]:
        """Return what the page holds: the study as numbers and text, and the run shown."""
        return {"view": self.view, "selected": int(self.selected)}

    def picture(self) -> bytes:
        """Return the picture of all runs."""
        return self.to_png(width=900)

    def text(self) -> str:
        """Return the study as a table."""
        return str(self.study)


def recompute_explorer(study: Any, selected: int = 0) -> RecomputeExplorer:
    """Explore a memory study: a slider over its runs, segments, snapshots and budgets.

    It shows the memory of one run over its events, by role, with the operations whose arrays make
    up its peak, and the place of the run between memory and time. Everything is precomputed: the
    slider needs no kernel and works in the page that `to_html` writes.

    Parameters
    ----------
    study : MemoryStudy
        The result of `optlab.lab.memory_study`, with timelines.
    selected : int
        Index of the run shown first, as in ``study.rows``.

    Returns
    -------
    RecomputeExplorer
        The slider, the arrow keys, Home and End, and ``selected`` step through the runs.

    Raises
    ------
    TypeError, ValueError
        If it is not a study, or has no timelines.

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
    """Return a sentence on the costs of a run."""
    if not row.ran:
        return f"{row.name}: {_why_missing(row)}."
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


def _why_missing(row: Any) -> str:
    """Return why a run has no measurements."""
    if row.smallest is not None:
        return f"cannot be met; the smallest budget that can is {in_words(row.smallest)}"
    return f"raised {row.raised.rstrip('.')}"


def view_of(study: Any, view: RecomputeView) -> dict[str, Any]:
    """Return everything that the browser draws: marks, numbers and text."""
    lines = {line.name: line for line in view.timelines}
    points = {point.name: point for point in view.points}
    best, runs = {row.name for row in study.front()}, []
    for (name, _), row, texts in zip(view.runs, study.rows, study.texts(), strict=True):
        point, line = points.get(name), lines.get(name)
        panel = timeline_panel(view, line, plain=row is study.plain)
        runs.append(
            {
                "name": name,
                "said": summary_of(study, row),
                "instead": _why_missing(row).split(":")[0] if not row.ran else "",
                "texts": list(texts),
                "point": None if point is None else mark_as_json(point_mark(point)),
                "panel": panel_as_json(panel, _DIGITS),
                "line": None if line is None else _line(row, line),
                "front": name in best,
            }
        )
    return {
        "title": view.title,
        "headline": view.headline,
        "about": about_of(study),
        "note": " ".join(view.page.note),
        "heads": [head or "run" for head in HEADS],
        "roles": [
            {"text": NAMES[role], "marks": [_as_json(_square(theme.MEMORY[role]))]}
            for role in view.roles
        ],
        "theory": panel_as_json(theory_panel(view), _DIGITS),
        "labels": [
            _as_json(curve_label(curve.label)) for curve in view.curves if curve.label is not None
        ],
        "runs": runs,
        "palette": theme.palettes(),
        "made": theme.scheme(),
    }


def _as_json(mark: Mark) -> dict[str, Any]:
    return mark_as_json(mark, _DIGITS)


def _square(fill: Fill) -> Mark:
    """Return the sample of a role in the legend."""
    return Boxes([0.0], [14.0], [13.0], [1.0], [fill])


def _line(row: Any, line: Timeline) -> dict[str, Any]:
    trace = row.timeline
    at = trace.peak_event
    new = [held for held in trace.by_operation() if held.phase]
    total = max(1, sum(held.nbytes for held in new))
    shares = [
        [text, format_bytes(held.nbytes), held.nbytes / total, theme.MEMORY[held.role].color]
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
        "tips": [tip.replace("<b>", "").replace("</b>", "").split("<br>") for tip in line.tips],
        "where": f"{where}{f' of {layer}' if layer else ''}",
        "shares": shares,
    }
