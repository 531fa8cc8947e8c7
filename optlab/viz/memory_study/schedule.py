"""A recomputation schedule as a figure: which layer runs when, and which inputs are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from optlab.autograd.checkpoint.schedules.display import headline
from optlab.autograd.checkpoint.schedules.schedule import Schedule
from optlab.viz.backends.matplotlib.parts import (
    PIXEL,
    as_png,
    blank_figure,
    panel_axes,
    style_ticks,
    write_legend,
    write_page,
)
from optlab.viz.backends.matplotlib.parts import add_heading as add_static_heading
from optlab.viz.backends.plotly.parts import add_heading, axis_name_prefix, empty_figure, put_axes
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.layout import Page


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


@dataclass(frozen=True)
class ScheduleView:
    """The content of the figure: for each kind the ends of its bars, with gaps between."""

    page: Page
    title: str
    headline: str
    lines: tuple[tuple[Kind, Floats, Floats], ...]
    layers: int
    time: float
    turn: float
    row: float


def _view(schedule: Any, width: int, height: int) -> ScheduleView:
    if not isinstance(schedule, Schedule):
        raise TypeError(
            "viz.recompute_schedule takes a Schedule of optlab.autograd.schedules, such as "
            f"revolve(16, 4); got {type(schedule).__name__}."
        )
    spans = schedule.spans()
    lines = []
    for kind in KINDS:
        own = [span for span in spans if span.what == kind.what]
        if own:
            x = np.array([[span.start, span.stop, np.nan] for span in own]).ravel()
            y = np.array([[span.layer, span.layer, np.nan] for span in own]).ravel()
            lines.append((kind, x, y))
    page = layout.page(
        width, height, names=[kind.name for kind, _, _ in lines], headed=True, note=_NOTE,
        shares=[1], rooms=[0],
    )  # fmt: skip
    time = float(max(span.stop for span in spans))
    last = [s.stop for s in spans
            if s.layer == schedule.layers - 1 and s.what in ("advance", "record")]  # fmt: skip
    return ScheduleView(
        page, f"Schedule: {schedule.name}", headline(schedule) + ".", tuple(lines),
        schedule.layers, time, float(min(last)),
        min(_MOST_PIXELS, page.panels[0].height / schedule.layers),
    )  # fmt: skip


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
    view = _view(schedule, width, height)
    figure = empty_figure(view.page, view.title, view.headline)
    put_axes(
        figure, view.page, 0,
        {"range": [0, view.time], "showgrid": False, "nticks": 9, **axis_name_prefix("time")},
        {"range": [view.layers - 0.4, -0.6], "showgrid": False, "nticks": min(10, view.layers + 1),
         "tickprefix": "layer ", "showtickprefix": "last"},
    )  # fmt: skip
    add_heading(figure, view.page, 0, "What happens to each layer", "backward right of the line")
    for kind, x, y in view.lines:
        figure.add_scatter(
            x=x,
            y=y,
            name=kind.name,
            mode="lines",
            line={"color": kind.color, "width": max(1.2, kind.share * view.row)},
            hovertemplate=f"layer %{{y}} {kind.name}, time %{{x}}<extra></extra>",
        )
    figure.add_vline(view.turn, line={"color": theme.INK, "width": 1, "dash": "4px,3px"})
    return figure


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
    view = _view(schedule, width, height)
    page = view.page
    figure = blank_figure(page.width, page.height)
    write_page(figure, page, view.title, view.headline, {})
    kinds = [kind for kind, _, _ in view.lines]
    places = write_legend(figure, page, [kind.name for kind in kinds])
    for kind, (x, y) in zip(kinds, places, strict=True):
        figure.add_artist(
            Line2D(
                [(x + 8) / page.width, (x + 48) / page.width], [1 - y / page.height] * 2,
                color=kind.color, linewidth=max(2.0, 14 * kind.share) * PIXEL,
                solid_capstyle="butt", transform=figure.transFigure,
            )
        )  # fmt: skip
    axes = panel_axes(figure, page, 0)
    axes.set(xlim=(0, view.time), ylim=(view.layers - 0.4, -0.6))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(9, integer=True))
    style_ticks(axes, "time", "layer")
    add_static_heading(axes, "What happens to each layer", "backward right of the line")
    for kind, across, down in view.lines:
        axes.plot(
            across, down, color=kind.color, linewidth=max(1.2, kind.share * view.row) * PIXEL,
            solid_capstyle="butt",
        )  # fmt: skip
    axes.axvline(view.turn, color=theme.INK, linewidth=PIXEL, dashes=(4, 3))
    return as_png(figure, scale)
