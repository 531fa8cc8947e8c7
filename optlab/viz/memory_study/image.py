"""The static image of a memory study, drawn by matplotlib from the same view as the figure."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from optlab.viz.backends.matplotlib.parts import (
    PIXEL,
    add_heading,
    annotate,
    area_pen,
    as_png,
    blank_figure,
    font,
    halo,
    mark_peak,
    marker_pen,
    panel_axes,
    put_mark,
    style_ticks,
    write,
    write_areas,
    write_page,
)
from optlab.viz.memory_study.tradeoff import clipped
from optlab.viz.memory_study.view import BESIDE, PLOT, RecomputeView, Timeline, recompute_view
from optlab.viz.memory_timeline.view import NAMES, WIDTH
from optlab.viz.style import layout, theme
from optlab.viz.views.map_view import Mark


@layout.documented
def recompute_png(
    study: Any, *, width: int = WIDTH, height: int | None = None, scale: float = 1.0
) -> bytes:
    r"""Draw a memory study as a PNG image.

    Parameters
    ----------
    study : MemoryStudy
        The result of `optlab.lab.memory_study`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones(1000), requires_grad=True)
    >>> step = lambda: np.sum(np.tanh(np.sin(w))).backward()
    >>> recompute_png(ol.lab.memory_study(step, [], ["1 MiB"], repeats=1))[:4]
    b'\x89PNG'
    """
    view = recompute_view(study, width, height, "recompute_png")
    page = view.page
    figure = blank_figure(page.width, page.height)
    write_page(figure, page, view.title, view.headline, {})
    write_areas(figure, page, [(role, NAMES[role]) for role in view.roles])
    for at, line in enumerate(view.timelines, 1):
        _draw_timeline(panel_axes(figure, page, at), view, line, at)
    _write_names(figure, view)
    for at, bars in enumerate(view.bars, view.first_of_bars):
        axes = panel_axes(figure, page, at)
        axes.set(xlim=(0, bars.most), ylim=(len(view.runs) - 0.5, -0.5))
        axes.set_axis_off()
        add_heading(axes, bars.title, bars.note)
        colors = [style.color for _, style in view.runs]
        places = [i + 0.26 for i in range(len(view.runs))]
        axes.barh(places, bars.values, height=0.28, color=colors)
        for y, span in zip(places, bars.spans, strict=False):
            if span is not None:
                axes.plot(span, (y, y), color=theme.INK, linewidth=1.2 * PIXEL, clip_on=False)
        remarks = view.remarks if at == view.first_of_bars else [""] * len(view.runs)
        for i, words in enumerate(zip(bars.texts, remarks, strict=True)):
            axes.text(
                0, i - 0.2, " ".join(filter(None, words)), va="center_baseline", color=theme.INK,
                fontproperties=font(theme.FONT_TEXT), parse_math=False,
            )  # fmt: skip
    _draw_plot(panel_axes(figure, page, view.plot), view)
    return as_png(figure, scale)


def _draw_timeline(axes: Axes, view: RecomputeView, line: Timeline, at: int) -> None:
    first = view.page.panels[at].left == layout.LEFT
    axes.set(xlim=(0, view.events), ylim=(0, view.top))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.grid(axis="y", color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    axes.set_xticks(view.ticks, view.tick_texts if first else [str(at) for at in view.ticks])
    style_ticks(axes, "", "MiB" if first else "")
    if not first:
        axes.tick_params(labelleft=False)
    add_heading(axes, line.name, "")
    across = np.repeat(line.edges, 2)[1:-1]
    for role, low, high in line.bands:
        axes.fill_between(
            across, np.repeat(low, 2), np.repeat(high, 2), **area_pen(theme.MEMORY[role])
        )
    if at > 1:
        axes.axhline(view.plain_peak, color=theme.QUIET, linewidth=PIXEL, dashes=(2, 3))
    mark_peak(axes, line.peak)
    shift, anchor = BESIDE[line.side]
    annotate(axes, line.said, line.peak, shift, ha=anchor, path_effects=halo(), zorder=6)


def _write_names(figure: Figure, view: RecomputeView) -> None:
    page, panel = view.page, view.page.panels[view.first_of_bars]
    each = panel.height / len(view.runs)
    for i, (name, style) in enumerate(view.runs):
        y = panel.top + (i + 0.5) * each
        figure.add_artist(
            Line2D(
                [(layout.LEFT + 9) / page.width], [1 - y / page.height], linestyle="none",
                transform=figure.transFigure,
                **marker_pen(style.marker, theme.END_SIZE, style.color, theme.PAPER, 0),
            )
        )  # fmt: skip
        write(figure, page, layout.LEFT + 18, y, name, theme.FONT_TEXT)


def _draw_plot(axes: Axes, view: RecomputeView) -> None:
    box = view.box
    axes.set(xlim=(box.x_low, box.x_high), ylim=(box.y_low, box.y_high))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.grid(color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    axes.axvline(0, color=theme.FRAME, linewidth=PIXEL)
    style_ticks(axes, "", "MiB")
    plain = axes.xaxis.get_major_formatter()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, at: f"{plain(value, at)}%"))
    add_heading(axes, PLOT, view.plot_note)
    for curve in view.curves:
        x, y = clipped(curve, box)
        dash = (0, tuple(n / 1.6 for n in curve.dash)) if curve.dash else "solid"
        axes.plot(x, y, color=theme.CONTOUR, linewidth=1.6 * PIXEL, linestyle=dash)
        seen = box.holds(curve.x, curve.y)
        axes.plot(
            curve.x[seen], curve.y[seen], "o", color=theme.CONTOUR, markersize=4 * PIXEL,
        )  # fmt: skip
        if curve.label is not None:
            label = curve.label
            annotate(
                axes, label.text, (label.x, label.y), (0, label.above), theme.FONT_SMALL,
                ha=label.anchor, color=theme.QUIET, path_effects=halo(),
            )  # fmt: skip
    x, y = view.front
    axes.step(x, y, where="pre", color=theme.INK, linewidth=1.2 * PIXEL)
    for at, point in enumerate(view.points):
        put_mark(
            axes, Mark(point.x, point.y, point.name, point.position), point.style.color, 5 + at,
            name=point.style.marker, size=theme.END_SIZE, face=point.style.color,
            edge=theme.PAPER, edge_width=1.2,
        )  # fmt: skip
