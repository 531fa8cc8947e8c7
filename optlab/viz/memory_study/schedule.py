"""A recomputation schedule as a figure: which layer runs when, and which inputs are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.autograd.checkpoint.schedules.display import headline
from optlab.autograd.checkpoint.schedules.schedule import Schedule
from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Axis, Line, Mark, Panel, Pen, Rule, Scene
from optlab.viz.style import layout, theme
from optlab.viz.style.results import refuse_runs


@dataclass(frozen=True)
class Kind:
    """Style of one kind of event of a layer; `share` is relative to the height of its row."""

    what: str
    name: str
    color: str
    share: float


#: In drawing order, the last on top.
KINDS = (
    Kind("recorded", "is recorded", "#a9d5f2", 0.8),
    Kind("stored", "its input is stored", "#e69f00", 0.16),
    Kind("advance", "runs", "#7f8894", 0.8),
    Kind("record", "runs, recorded", "#0072b2", 0.8),
    Kind("back", "backpropagated", "#3a3f47", 0.44),
)
_NOTE = (
    "Time counts runs of one layer, forward or back. Backward begins where the last layer has run "
    "for the first time."
)
_MOST_PIXELS = 18.0


def _scene(schedule: Any, width: int, height: int) -> Scene:
    refuse_runs(
        schedule, "viz.recompute_schedule",
        "a run keeps no order of layers. Give a schedule such as revolve(16, 4).",
    )  # fmt: skip
    if not isinstance(schedule, Schedule):
        raise TypeError(
            "viz.recompute_schedule takes a Schedule of optlab.autograd.schedules, such as "
            f"revolve(16, 4); got {type(schedule).__name__}."
        )
    spans, layers = schedule.spans(), schedule.layers
    by_kind = {kind: [span for span in spans if span.what == kind.what] for kind in KINDS}
    shown = [kind for kind in KINDS if by_kind[kind]]
    page = layout.page(
        width, height, names=[kind.name for kind in shown], headed=True, note=_NOTE, shares=[1],
        rooms=[0],
    )  # fmt: skip
    row = min(_MOST_PIXELS, page.panels[0].height / layers)
    marks: list[Mark] = []
    for kind in shown:
        own = by_kind[kind]
        x = np.array([[span.start, span.stop, np.nan] for span in own]).ravel()
        y = np.array([[span.layer, span.layer, np.nan] for span in own]).ravel()
        pen = Pen(kind.color, max(1.2, kind.share * row))
        hover = f"layer %{{y}} {kind.name}, time %{{x}}"
        marks.append(Line(x, y, pen, hover, group=kind.name))
    time = float(max(span.stop for span in spans))
    last = [s.stop for s in spans if s.layer == layers - 1 and s.what in ("advance", "record")]
    marks.append(Rule("x", float(min(last)), Pen(theme.INK, 1, (4, 3))))
    panel = Panel(
        Axis(0.0, time, name="time", count=8, whole=True),
        Axis(layers - 0.4, -0.6, name="layer", count=min(9, layers), whole=True),
        marks, "What happens to each layer", "backward right of the line",
    )  # fmt: skip
    legend = {kind.name: (kind.name, Pen(kind.color, max(2.0, 14 * kind.share))) for kind in shown}
    return Scene(page, f"Schedule: {schedule.name}", f"{headline(schedule)}.", [panel], legend)


@layout.documented
def recompute_schedule(
    schedule: Any, *, width: int = 720, height: int = layout.HEIGHT
) -> go.Figure:
    """Draw a recomputation schedule: time to the right, layers downward from the first.

    Parameters
    ----------
    schedule : Schedule
        One of `optlab.autograd.schedules`, or your own.

    Raises
    ------
    TypeError
        If it is not a schedule.

    Examples
    --------
    >>> from optlab.autograd.schedules import revolve
    >>> recompute_schedule(revolve(16, 3)).layout.title.text
    '<b>Schedule: revolve (3 snapshots)</b>'
    """
    return draw(_scene(schedule, width, height))


def recompute_schedule_png(
    schedule: Any, *, width: int = 720, height: int = layout.HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw a recomputation schedule as a PNG image; arguments as for `recompute_schedule`.

    Examples
    --------
    >>> from optlab.autograd.schedules import in_segments
    >>> recompute_schedule_png(in_segments(9, 3))[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(schedule, width, height), scale)
