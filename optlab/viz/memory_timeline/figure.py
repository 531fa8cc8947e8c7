"""Memory of a step over its events, as a figure and as its static image."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from optlab.backend.text import encodable
from optlab.viz.backends.matplotlib.parts import (
    PIXEL,
    annotate,
    area_pen,
    as_png,
    blank_figure,
    font,
    halo,
    mark_peak,
    panel_axes,
    style_ticks,
    write_areas,
    write_page,
)
from optlab.viz.backends.matplotlib.parts import add_heading as add_static_heading
from optlab.viz.backends.plotly.parts import (
    add_areas,
    add_heading,
    add_peak,
    add_tips,
    area_pattern,
    axis_name_prefix,
    axis_names,
    empty_figure,
    label_font,
    put_axes,
)
from optlab.viz.memory_timeline.view import WIDTH, MemoryView, memory_view
from optlab.viz.style import layout, theme

_APART = {"ticklabelstandoff": 5}  # the names of both axes meet at zero


@layout.documented
def memory(trace: Any, *, width: int = WIDTH, height: int = layout.HEIGHT) -> go.Figure:
    """Draw the memory of a step: bytes by role over the events, and the composition of the peak.

    Parameters
    ----------
    trace : MemoryTrace
        The result of `optlab.memory.report` or `optlab.memory.ledger`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones((256, 1024)), requires_grad=True)
    >>> figure = memory(ol.memory.report(lambda: np.sum(np.tanh(w)).backward()))
    >>> figure.layout.title.text
    '<b>Memory of a step: at most 8 MiB</b>'
    """
    view = memory_view(trace, width, height)
    page = view.page
    figure = empty_figure(page, view.title, view.headline)
    figure.update_layout(hovermode="x", barmode="overlay")
    put_axes(
        figure,
        page,
        0,
        {
            "range": [0, view.edges[-1]],
            "nticks": 9,
            "showgrid": False,
            **_APART,
            **axis_name_prefix("event"),
        },
        {"range": [0, view.top], "nticks": 7, **axis_name_prefix(view.unit)},
    )
    add_heading(figure, page, 0, "Bytes alive", "by role, linear scale from zero")
    across = np.repeat(view.edges, 2)[1:-1]
    add_areas(figure, [(band.role, band.name) for band in view.bands])
    for band in view.bands:
        figure.add_scatter(
            x=across,
            y=np.repeat(band.high - band.low, 2),
            name=band.name,
            legendgroup=band.role,
            showlegend=False,
            mode="lines",
            stackgroup="bytes",
            line={"width": 0.8, "color": theme.PAPER},
            fillcolor=band.area.color,
            fillpattern=area_pattern(band.area),
            hoverinfo="skip",
        )
    add_tips(figure, view.edges[:-1] + 0.5, view.total, view.tips, 1)
    for first, _, _ in view.phases:
        if first > 0:
            figure.add_vline(first, line={"color": theme.INK, "width": 1, "dash": "4px,3px"})
    for x, side, phase in view.phase_labels:
        figure.add_annotation(
            x=x, y=view.top, xanchor=side, yanchor="top", text=phase, showarrow=False,
            font=label_font(theme.QUIET),
        )  # fmt: skip
    for band in view.bands:
        if band.label is not None:
            figure.add_annotation(
                x=band.label[0], y=band.label[1], text=band.name, showarrow=False, borderpad=1,
                bgcolor=theme.with_opacity(theme.PAPER, 0.85), font={"color": theme.INK},
            )  # fmt: skip
    _mark_peak(figure, view)
    _draw_peak_shares(figure, view)
    return figure


def _mark_peak(figure: go.Figure, view: MemoryView) -> None:
    x, y = view.peak
    add_peak(figure, view.peak)
    left = view.peak_side == "left"
    figure.add_annotation(
        x=x,
        y=y,
        text=f"<b>{view.peak_text}</b>",
        showarrow=False,
        xanchor="right" if left else "left",
        xshift=-9 if left else 9,
        yshift=9,
        borderpad=1,
        bgcolor=theme.PAPER,  # it may cross the line between two phases
        font=label_font(theme.INK),
    )


def _draw_peak_shares(figure: go.Figure, view: MemoryView) -> None:
    """Draw the operations whose arrays make up the peak."""
    page = view.page
    rows = view.share_rows
    hidden = {"visible": False, "fixedrange": True}
    put_axes(figure, page, 1, {"range": [0, 1], **hidden}, {"range": [rows, 0], **hidden})
    add_heading(figure, page, 1, "At the peak", "whose arrays are alive")
    x_name, y_name = axis_names(1)
    most = max((share.part for share in view.shares), default=1.0)
    for i, share in enumerate(view.shares):
        fill = area_pattern(share.area)
        figure.add_bar(
            x=[view.bar_length * share.part / most],
            y=[i + 0.74],
            width=0.32,
            orientation="h",
            xaxis=x_name,
            yaxis=y_name,
            marker={"color": fill["bgcolor"], "pattern": fill},
            showlegend=False,
            hoverinfo="skip",
        )
        for text, x, y, anchor, ink in (
            (share.text, 0, i + 0.26, "left", theme.INK),
            (share.said, 1, i + 0.74, "right", theme.QUIET),
        ):
            figure.add_annotation(
                x=x, y=y, xref=x_name, yref=y_name, text=text, showarrow=False,
                xanchor=anchor, borderpad=0, font={"size": theme.FONT_TEXT, "color": ink},
            )  # fmt: skip


@layout.documented
def memory_png(
    trace: Any, *, width: int = WIDTH, height: int = layout.HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw the memory of a step as a PNG image.

    Parameters
    ----------
    trace : MemoryTrace
        The result of `optlab.memory.report` or `optlab.memory.ledger`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones(1000), requires_grad=True)
    >>> memory_png(ol.memory.report(lambda: np.sum(np.tanh(w)).backward()))[:4]
    b'\x89PNG'
    """
    view = memory_view(trace, width, height, "memory_png")
    page = view.page
    figure = blank_figure(page.width, page.height)
    write_page(figure, page, view.title, view.headline, {})
    write_areas(figure, page, [(band.role, band.name) for band in view.bands])
    _draw_bands(panel_axes(figure, page, 0), view)
    _draw_shares(panel_axes(figure, page, 1), view)
    return as_png(figure, scale)


def _draw_bands(axes: Axes, view: MemoryView) -> None:
    axes.set(xlim=(0, view.edges[-1]), ylim=(0, view.top))
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.grid(axis="y", color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    style_ticks(axes, "event", view.unit)
    add_static_heading(axes, "Bytes alive", "by role, linear scale from zero")
    across = np.repeat(view.edges, 2)[1:-1]
    for band in view.bands:
        axes.fill_between(
            across, np.repeat(band.low, 2), np.repeat(band.high, 2), **area_pen(band.area)
        )
        axes.plot(across, np.repeat(band.high, 2), color=theme.PAPER, linewidth=0.8 * PIXEL)
    write: dict[str, Any] = {"fontproperties": font(theme.FONT_TEXT), "parse_math": False}
    for first, _, _ in view.phases:
        if first > 0:
            axes.axvline(first, color=theme.INK, linewidth=PIXEL, dashes=(4, 3))
    for x, side, phase in view.phase_labels:
        axes.text(
            x, 0.985 * view.top, phase, ha=side, va="top", color=theme.QUIET,
            path_effects=halo(), zorder=6, **write,
        )  # fmt: skip
    for band in view.bands:
        if band.label is not None:
            axes.text(
                *band.label, band.name, ha="center", va="center_baseline", color=theme.INK,
                bbox={"facecolor": (theme.PAPER, 0.85), "linewidth": 0, "pad": 1}, **write,
            )  # fmt: skip
    mark_peak(axes, view.peak)
    left = view.peak_side == "left"
    annotate(
        axes, view.peak_text, view.peak, (-9 if left else 9, 9), weight="bold",
        ha="right" if left else "left", zorder=6,
        bbox={"facecolor": theme.PAPER, "linewidth": 0, "pad": 1},
    )  # fmt: skip


def _draw_shares(axes: Axes, view: MemoryView) -> None:
    axes.set(xlim=(0, 1), ylim=(view.share_rows, 0))
    axes.set_axis_off()
    add_static_heading(axes, "At the peak", "whose arrays are alive")
    most = max((share.part for share in view.shares), default=1.0)
    write: dict[str, Any] = {"va": "center_baseline", "parse_math": False}
    for i, share in enumerate(view.shares):
        axes.barh(
            [i + 0.74], [view.bar_length * share.part / most], height=0.32, **area_pen(share.area)
        )
        axes.text(0, i + 0.26, encodable(share.text), fontproperties=font(theme.FONT_TEXT), **write)
        axes.text(
            1, i + 0.74, share.said, ha="right", color=theme.QUIET,
            fontproperties=font(theme.FONT_TEXT), **write,
        )  # fmt: skip
