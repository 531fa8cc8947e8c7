"""A memory study as a figure: timelines, the costs of each run, memory against time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.panels import peak_marks
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import (
    Area,
    Axis,
    Bars,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Rule,
    Scene,
    Text,
    end_marker,
)
from optlab.viz.memory_study.tradeoff import CurveLabel, Point, clipped
from optlab.viz.memory_study.view import (
    BESIDE,
    PLOT,
    WHOLE,
    RecomputeView,
    Timeline,
    recompute_view,
)
from optlab.viz.memory_study.view import Bars as BarsView
from optlab.viz.memory_timeline.view import NAMES, WIDTH
from optlab.viz.style import layout, theme


@layout.documented
def recompute(study: Any, *, width: int = WIDTH, height: int | None = None) -> go.Figure:
    """Draw a memory study: the memory that recomputation saves, and the time that it costs.

    Above, the memory of every run over its events, by role, all on the same axes: a lower run needs
    less memory, a longer one runs more operations. Below, peak, time and recomputed operations of
    each; and all runs in one plot of memory against time, with the Pareto front joined, and the
    theoretical curves of segments and of Revolve. Revolve is the optimum only if all layers are
    equal; it counts layers, whatever their size. Times measured repeatedly have their range drawn.

    Parameters
    ----------
    study : MemoryStudy
        The result of `optlab.lab.memory_study`.
    width, height : int
        Size in pixels; the default height fits the content.

    Raises
    ------
    TypeError
        If it is not a study.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> blocks = [ol.nn.Sequential(ol.nn.Linear(8, 8), ol.nn.Tanh()) for _ in range(9)]
    >>> x = ol.randn([64, 8])
    >>> step = lambda run: run(blocks, x).mean().backward()
    >>> figure = recompute(ol.lab.memory_study(step, ["plain", "sqrt"], repeats=1))
    >>> figure.layout.title.text
    '<b>Memory against time: a step of 9 layers, run in 2 ways</b>'
    """
    return draw(recompute_scene(recompute_view(study, width, height)))


def recompute_scene(view: RecomputeView) -> Scene:
    """Return the scene of a memory study."""
    panels = [_names(view)]
    for at, line in enumerate(view.timelines, 1):
        first = view.page.panels[at].left == layout.LEFT
        panels.append(timeline_panel(view, line, first=first, plain=at == 1))
    panels += [_bars(view, bars, at == 0) for at, bars in enumerate(view.bars)]
    panels.append(_tradeoff(view))
    legend = {role: (NAMES[role], theme.MEMORY[role]) for role in view.roles}
    return Scene(view.page, view.title, view.headline, panels, legend)


def _names(view: RecomputeView) -> Panel:
    """Return the names of the runs beside the bars, each with its marker, on the whole page."""
    whole, bars = view.page.panels[WHOLE], view.page.panels[view.first_of_bars]
    each = bars.height / len(view.runs)
    marks: list[Mark] = []
    for i, (name, style) in enumerate(view.runs):
        y = bars.top + (i + 0.5) * each - whole.top
        marks.append(Points([9.0], [y], Marker(style.marker, theme.END_SIZE, style.color)))
        marks.append(Text(18.0, y, name, theme.INK, across="left", halo=False))
    return Panel(
        Axis(0.0, whole.width, shown=False), Axis(whole.height, 0.0, shown=False), marks,
        frame="none",
    )  # fmt: skip


def timeline_panel(
    view: RecomputeView, line: Timeline | None, *, first: bool = True, plain: bool = False
) -> Panel:
    """Return the memory of a run over its events; without one, the axes and the plain peak.

    Parameters
    ----------
    view : RecomputeView
    line : Timeline or None
    first : bool
        Whether it is the first of a row, whose axes have names and numbers.
    plain : bool
        Whether it is the plain run itself.
    """
    marks: list[Mark] = [] if line is None else _bands(line)
    if not plain:
        marks.append(Rule("y", view.plain_peak, Pen(theme.QUIET, 1, (2, 3))))
    if line is not None:
        shift, across_peak = BESIDE[line.side]
        marks += peak_marks(line.peak, line.said, shift, across_peak)  # type: ignore[arg-type]
    texts = view.tick_texts if first else [str(tick) for tick in view.ticks]
    return Panel(
        Axis(0.0, view.events, ticks=[*zip(map(float, view.ticks), texts, strict=True)]),
        Axis(0.0, view.top, name="MiB" if first else "", count=4, numbers=first, grid=True),
        marks, "" if line is None else line.name, frame="none",
    )  # fmt: skip


def _bands(line: Timeline) -> list[Mark]:
    across = np.repeat(line.edges, 2)[1:-1]
    marks: list[Mark] = [
        Area(across, np.repeat(low, 2), np.repeat(high, 2), theme.MEMORY[role], role)
        for role, low, high in line.bands
    ]
    middles = (line.edges[:-1] + line.edges[1:]) / 2
    marks.append(Points(middles, line.bands[-1][2], None, "%{text}", tips=line.tips))
    return marks


def _bars(view: RecomputeView, bars: BarsView, first: bool) -> Panel:
    count = len(view.runs)
    places = [i + 0.26 for i in range(count)]
    fills = [theme.Area(style.color, "") for _, style in view.runs]
    marks: list[Mark] = [Bars(bars.values, places, 0.28, fills)]
    for place, span in zip(places, bars.spans, strict=False):
        if span is not None:
            marks.append(Line(span, [place, place], Pen(theme.INK, 1.2), clip=False))
    remarks = view.remarks if first else [""] * count
    for i, (text, remark) in enumerate(zip(bars.texts, remarks, strict=True)):
        shift = 0.0
        for said in filter(None, (text, remark)):
            bold = said == "DIFFERS"
            marks.append(
                Text(
                    0.0, i - 0.2, said, theme.INK, across="left", shift=(shift, 0), halo=False,
                    bold=bold,
                )
            )  # fmt: skip
            shift += layout.text_width(f"{said} ", theme.FONT_TEXT)
    return Panel(
        Axis(0.0, bars.most, shown=False), Axis(count - 0.5, -0.5, shown=False), marks, bars.title,
        bars.note, frame="none",
    )  # fmt: skip


def _tradeoff(view: RecomputeView) -> Panel:
    panel = theory_panel(view)
    marks = [
        *panel.marks,
        *(curve_label(curve.label) for curve in view.curves if curve.label is not None),
        *(point_mark(point) for point in view.points),
    ]
    return replace(panel, marks=marks, heading=PLOT, note=view.plot_note)


def theory_panel(view: RecomputeView) -> Panel:
    """Return the axes of memory against time, the theoretical curves, and the front of the runs."""
    box = view.box
    marks: list[Mark] = []
    for curve in view.curves:
        marks.append(Line(*clipped(curve, box), Pen(theme.CONTOUR, 1.6, curve.dash)))
        seen = box.holds(curve.x, curve.y)
        tips = [tip for tip, there in zip(curve.tips, seen, strict=True) if there]
        dot = Marker("circle", 4, theme.CONTOUR)
        marks.append(Points(curve.x[seen], curve.y[seen], dot, "%{text}", tips=tips))
    marks.append(Line(*view.front, Pen(theme.INK, 1.2), stepped=True))
    return Panel(
        Axis(box.x_low, box.x_high, count=5, suffix="%", grid=True, zero=True),
        Axis(box.y_low, box.y_high, name="MiB", grid=True), marks, frame="none",
    )  # fmt: skip


def curve_label(at: CurveLabel) -> Mark:
    """Return the name of a theoretical curve."""
    return Text(
        at.x, at.y, at.text, theme.QUIET, theme.FONT_SMALL, shift=(0, at.above),
        across=at.anchor,  # type: ignore[arg-type]
    )  # fmt: skip


def point_mark(point: Point) -> Points:
    """Return a run in the plot of memory against time, with its name beside it."""
    return Points(
        [point.x], [point.y], end_marker(point.style), point.tip, clip=False, text=point.name,
        side=point.position, ink=point.style.color,
    )  # fmt: skip
