"""A memory study as a figure: timelines, the costs of each run, memory against time."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.plotly.parts import (
    add_areas,
    add_heading,
    add_peak,
    add_tips,
    area_pattern,
    axis_name_prefix,
    axis_names,
    empty_figure,
    end_marker,
    label_font,
    page_anchor,
    put_axes,
)
from optlab.viz.memory_study.tradeoff import clipped
from optlab.viz.memory_study.view import (
    BESIDE,
    PLOT,
    WHOLE,
    Bars,
    RecomputeView,
    Timeline,
    recompute_view,
)
from optlab.viz.memory_timeline.view import NAMES, WIDTH
from optlab.viz.style import layout, theme
from optlab.viz.style.layout import Page

_HIDDEN = {"visible": False, "fixedrange": True}


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
    view = recompute_view(study, width, height)
    page = view.page
    figure = empty_figure(page, view.title, view.headline)
    figure.update_layout(barmode="overlay")
    add_areas(figure, [(role, NAMES[role]) for role in view.roles])
    put_axes(figure, page, WHOLE, _HIDDEN, _HIDDEN)
    for at, timeline in enumerate(view.timelines, 1):
        _draw_timeline(figure, view, timeline, at)
    _write_names(figure, view)
    for at, bars in enumerate(view.bars, view.first_of_bars):
        _draw_bars(figure, view, bars, at)
    _draw_plot(figure, view)
    return figure


def place(page: Page, at: int) -> list[float]:
    """Return the vertical domain of a panel, as plotly's fractions of the drawing area."""
    whole, panel = page.panels[WHOLE], page.panels[at]
    low = 1 - (panel.top + panel.height - whole.top) / whole.height
    return [max(0.0, low), min(1.0, 1 - (panel.top - whole.top) / whole.height)]


def _draw_timeline(figure: go.Figure, view: RecomputeView, line: Timeline, at: int) -> None:
    page, panel = view.page, view.page.panels[at]
    first = panel.left == layout.LEFT
    put_axes(
        figure, page, at,
        {"range": [0, view.events], "tickvals": view.ticks, "showgrid": False, "tickangle": 0,
         "ticklabelstandoff": 5, **({"ticktext": view.tick_texts} if first else {})},
        {"range": [0, view.top], "nticks": 5, "domain": place(page, at), "showticklabels": first,
         **(axis_name_prefix("MiB") if first else {})},
    )  # fmt: skip
    add_heading(figure, page, at, line.name, "")
    x_name, y_name = axis_names(at)
    axes = {"xaxis": x_name, "yaxis": y_name}
    across = np.repeat(line.edges, 2)[1:-1].astype(np.float32)
    for role, low, high in line.bands:
        figure.add_scatter(
            x=across,
            y=np.repeat(high - low, 2).astype(np.float32),
            legendgroup=role,
            showlegend=False,
            mode="lines",
            stackgroup=f"run {at}",
            line={"width": 0, "color": theme.PAPER},
            hoverinfo="skip",
            fillcolor=theme.MEMORY[role].color,
            fillpattern=area_pattern(theme.MEMORY[role], 6),
            **axes,
        )
    middles = (line.edges[:-1] + line.edges[1:]) / 2
    add_tips(figure, middles, line.bands[-1][2], line.tips, 2, **axes)
    if at > 1:
        figure.add_shape(
            type="line", x0=0, x1=view.events, y0=view.plain_peak, y1=view.plain_peak,
            xref=x_name, yref=y_name,
            line={"color": theme.QUIET, "width": 1, "dash": "2px,3px"},
        )  # fmt: skip
    add_peak(figure, line.peak, **axes)
    shift, anchor = BESIDE[line.side]
    figure.add_annotation(
        x=line.peak[0], y=line.peak[1], xref=x_name, yref=y_name, text=line.said, showarrow=False,
        xanchor=anchor, xshift=shift[0], yshift=shift[1], borderpad=0,
        font=label_font(theme.INK),
    )  # fmt: skip


def _write_names(figure: go.Figure, view: RecomputeView) -> None:
    """Write the names of the runs beside the bars, each with its marker."""
    page, panel = view.page, view.page.panels[view.first_of_bars]
    each = panel.height / len(view.runs)
    for i, (name, _) in enumerate(view.runs):
        figure.add_annotation(
            text=name,
            font={"size": theme.FONT_TEXT},
            **page_anchor(page, layout.LEFT + 18, panel.top + (i + 0.5) * each),
        )
    whole = page.panels[WHOLE]
    figure.add_scatter(
        x=[9 / whole.width] * len(view.runs),
        y=[
            1 - (panel.top + (i + 0.5) * each - whole.top) / whole.height
            for i in range(len(view.runs))
        ],
        mode="markers",
        marker={
            "symbol": [style.marker for _, style in view.runs],
            "color": [style.color for _, style in view.runs],
            "size": theme.END_SIZE,
        },
        showlegend=False,
        hoverinfo="skip",
    )
    figure.update_layout(xaxis={"range": [0, 1]}, yaxis={"range": [0, 1]})


def _draw_bars(figure: go.Figure, view: RecomputeView, bars: Bars, at: int) -> None:
    page, count = view.page, len(view.runs)
    put_axes(
        figure, page, at,
        {"range": [0, bars.most], **_HIDDEN},
        {"range": [count - 0.5, -0.5], "domain": place(page, at), **_HIDDEN},
    )  # fmt: skip
    add_heading(figure, page, at, bars.title, bars.note)
    x_name, y_name = axis_names(at)
    figure.add_bar(
        x=bars.values,
        y=[i + 0.26 for i in range(count)],
        width=0.28,
        orientation="h",
        xaxis=x_name,
        yaxis=y_name,
        marker={"color": [style.color for _, style in view.runs]},
        showlegend=False,
        hoverinfo="skip",
    )
    for i, span in enumerate(bars.spans):
        if span is not None:
            figure.add_scatter(
                x=span, y=[i + 0.26] * 2, mode="lines", xaxis=x_name, yaxis=y_name,
                line={"color": theme.INK, "width": 1.2}, cliponaxis=False,
                showlegend=False, hoverinfo="skip",
            )  # fmt: skip
    remarks = view.remarks if at == view.first_of_bars else [""] * count
    for i, (text, remark) in enumerate(zip(bars.texts, remarks, strict=True)):
        bold = f"<b>{remark}</b>" if remark == "DIFFERS" else remark
        said = " ".join(one for one in (text, bold) if one)
        if said:
            figure.add_annotation(
                x=0, y=i - 0.2, xref=x_name, yref=y_name, text=said, showarrow=False,
                xanchor="left", borderpad=0, font={"size": theme.FONT_TEXT, "color": theme.INK},
            )  # fmt: skip


def _draw_plot(figure: go.Figure, view: RecomputeView) -> None:
    page, at, box = view.page, view.plot, view.box
    put_axes(
        figure, page, at,
        {"range": [box.x_low, box.x_high], "nticks": 6, "ticksuffix": "%",
         "showticksuffix": "all", "zeroline": True, "zerolinecolor": theme.FRAME, "tickangle": 0},
        {"range": [box.y_low, box.y_high], "nticks": 7, "domain": place(page, at),
         **axis_name_prefix("MiB")},
    )  # fmt: skip
    add_heading(figure, page, at, PLOT, view.plot_note)
    x_name, y_name = axis_names(at)
    axes = {"xaxis": x_name, "yaxis": y_name, "showlegend": False}
    for curve in view.curves:
        x, y = clipped(curve, box)
        figure.add_scatter(
            x=x, y=y, mode="lines", hoverinfo="skip",
            line={"color": theme.CONTOUR, "width": 1.6,
                  "dash": ",".join(f"{n:g}px" for n in curve.dash) or "solid"},
            **axes,
        )  # fmt: skip
        seen = box.holds(curve.x, curve.y)
        figure.add_scatter(
            x=curve.x[seen], y=curve.y[seen], mode="markers",
            marker={"size": 4, "color": theme.CONTOUR},
            text=[tip for tip, there in zip(curve.tips, seen, strict=True) if there],
            hovertemplate="%{text}<extra></extra>", **axes,
        )  # fmt: skip
        if curve.label is not None:
            label = curve.label
            figure.add_annotation(
                x=label.x, y=label.y, text=label.text, showarrow=False, borderpad=0,
                xref=x_name, yref=y_name, yshift=label.above, xanchor=label.anchor,
                font={**label_font(theme.QUIET), "size": theme.FONT_SMALL},
            )  # fmt: skip
    figure.add_scatter(
        x=view.front[0], y=view.front[1], mode="lines", hoverinfo="skip",
        line={"color": theme.INK, "width": 1.2, "shape": "vh"}, **axes,
    )  # fmt: skip
    for point in view.points:
        words: dict[str, Any] = {"mode": "markers"}
        if point.position is not None:
            words = {
                "mode": "markers+text", "text": [point.name], "textposition": point.position,
                "textfont": label_font(point.style.color),
            }  # fmt: skip
        figure.add_scatter(
            x=[point.x],
            y=[point.y],
            marker=end_marker(point.style),
            cliponaxis=False,
            customdata=[point.tip],
            hovertemplate="%{customdata}<extra></extra>",
            **words,
            **axes,
        )
