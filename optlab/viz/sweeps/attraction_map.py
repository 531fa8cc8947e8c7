"""Basins of attraction, as a figure and as their static image."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from optlab.backend.text import encodable
from optlab.viz.backends.matplotlib.parts import (
    PIXEL,
    as_png,
    blank_figure,
    font,
    marker_pen,
    panel_axes,
    style_ticks,
    write_page,
)
from optlab.viz.backends.matplotlib.parts import add_heading as add_static_heading
from optlab.viz.backends.plotly.parts import (
    add_heading,
    as_float32,
    axis_name_prefix,
    axis_names,
    empty_figure,
    put_axes,
)
from optlab.viz.style import layout, theme
from optlab.viz.sweeps.attraction_view import AttractionView, attraction_view

WIDTH, HEIGHT = 860, 500
_ROWS = 10
_STAR = 13.0


@layout.documented
def basins(found: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw which minimum each start reaches, paler where it takes longer.

    Parameters
    ----------
    found : Basins
        The result of `optlab.basins`.

    Examples
    --------
    >>> import optlab as ol
    >>> figure = basins(ol.basins("himmelblau", ol.optimizer.SGD(0.01), grid=10, steps=50))
    >>> figure.layout.title.text
    '<b>Where SGD ends on Himmelblau</b>'
    """
    view = attraction_view(found, width, height)
    figure = empty_figure(view.page, view.title, view.headline)
    figure.update_layout(showlegend=False)
    frame = {"showgrid": False, "linecolor": theme.FRAME, "mirror": True, "showline": True}
    count = len(view.colors)
    scale = [
        [edge / count, color]
        for i, color in enumerate(view.colors)
        for edge in (i, i + 1)
    ]  # fmt: skip
    if view.flat:
        put_axes(
            figure, view.page, 0,
            {
                **frame, "range": _span(view.x), "constrain": "domain", "constraintoward": "left",
                **axis_name_prefix("x"),
            },
            {
                **frame, "range": _span(view.y), "constrain": "domain", "scaleanchor": "x",
                "scaleratio": 1, **axis_name_prefix("y"),
            },
        )  # fmt: skip
        figure.add_heatmap(
            x=as_float32(view.x), y=as_float32(view.y), z=view.codes.astype(np.uint8),
            zmin=-0.5, zmax=count - 0.5, colorscale=scale, showscale=False, text=view.tips,
            hovertemplate="from x %{x:.3g}, y %{y:.3g}<br>%{text}<extra></extra>",
        )  # fmt: skip
    else:
        put_axes(
            figure, view.page, 0,
            {**frame, "range": _span(view.x), **axis_name_prefix("x")},
            {**frame, "mirror": False, **axis_name_prefix("f")},
        )  # fmt: skip
        figure.add_scatter(
            x=as_float32(view.x), y=as_float32(view.y), mode="markers", text=view.tips,
            marker={"size": 5, "color": [view.colors[code] for code in view.codes.tolist()]},
            hovertemplate="from x %{x:.3g}<br>%{text}<extra></extra>",
        )  # fmt: skip
    add_heading(figure, view.page, 0, "Starts", view.note)
    figure.add_scatter(
        x=as_float32(view.minima[:, 0]), y=as_float32(view.minima[:, 1]), mode="markers",
        hovertemplate="minimum<br>%{x:.4g}, %{y:.4g}<extra></extra>",
        marker={
            "symbol": "star", "size": _star(view), "color": theme.PAPER,
            "line": {"color": theme.INK, "width": 1.2},
        },
    )  # fmt: skip
    _draw_rows(figure, view)
    return figure


def _star(view: AttractionView) -> float:
    """Return the size of the stars: many are small."""
    return _STAR if len(view.minima) <= 20 else 7.0


def _span(values: Any) -> tuple[float, float]:
    half = (values[-1] - values[0]) / (len(values) - 1) / 2
    return float(values[0] - half), float(values[-1] + half)


def _draw_rows(figure: go.Figure, view: AttractionView) -> None:
    hidden = {"visible": False, "fixedrange": True}
    put_axes(figure, view.page, 1, {"range": [0, 1], **hidden}, {"range": [_ROWS, 0], **hidden})
    add_heading(figure, view.page, 1, "Where they end", "share, median steps")
    x_name, y_name = axis_names(1)
    most = max((row.part for row in view.rows), default=1.0)
    for i, row in enumerate(view.rows):
        figure.add_shape(
            type="rect", x0=0, x1=max(0.01, 0.55 * row.part / most), y0=i + 0.58, y1=i + 0.86,
            xref=x_name, yref=y_name, fillcolor=row.color,
            line={"width": 0.6, "color": theme.FRAME},
        )  # fmt: skip
        for text, x, y, anchor, ink in (
            (row.text, 0, i + 0.28, "left", theme.INK),
            (row.said, 1, i + 0.72, "right", theme.QUIET),
        ):  # fmt: skip
            figure.add_annotation(
                x=x, y=y, xref=x_name, yref=y_name, text=text, showarrow=False, xanchor=anchor,
                borderpad=0, font={"size": theme.FONT_TEXT, "color": ink},
            )  # fmt: skip


@layout.documented
def basins_png(
    found: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw basins of attraction as a PNG image.

    Parameters
    ----------
    found : Basins
        The result of `optlab.basins`.

    Examples
    --------
    >>> import optlab as ol
    >>> basins_png(ol.basins("booth", ol.optimizer.SGD(0.01), grid=10, steps=50))[:4]
    b'\x89PNG'
    """
    view = attraction_view(found, width, height)
    figure = blank_figure(view.page.width, view.page.height)
    write_page(figure, view.page, view.title, view.headline, {})
    axes = panel_axes(figure, view.page, 0)
    axes.grid(False)
    if view.flat:
        axes.imshow(
            view.codes, cmap=ListedColormap(view.colors), vmin=-0.5, vmax=len(view.colors) - 0.5,
            origin="lower", extent=(*_span(view.x), *_span(view.y)), interpolation="nearest",
        )  # fmt: skip
        axes.set(xlim=_span(view.x), ylim=_span(view.y), anchor="W")
    else:
        axes.scatter(view.x, view.y, s=9, c=[view.colors[code] for code in view.codes.tolist()])
        axes.set_xlim(_span(view.x))
    style_ticks(axes, "x", "y" if view.flat else "f")
    add_static_heading(axes, "Starts", view.note)
    pen = marker_pen("star", _star(view), theme.PAPER, theme.INK, 1.0)
    axes.plot(view.minima[:, 0], view.minima[:, 1], linestyle="none", clip_on=True, zorder=5, **pen)
    _rows_image(panel_axes(figure, view.page, 1), view)
    return as_png(figure, scale)


def _rows_image(axes: Axes, view: AttractionView) -> None:
    axes.set(xlim=(0, 1), ylim=(_ROWS, 0))
    axes.set_axis_off()
    add_static_heading(axes, "Where they end", "share, median steps")
    most = max((row.part for row in view.rows), default=1.0)
    write: dict[str, Any] = {
        "va": "center_baseline", "parse_math": False, "fontproperties": font(theme.FONT_TEXT)
    }  # fmt: skip
    for i, row in enumerate(view.rows):
        axes.add_patch(
            Rectangle(
                (0, i + 0.58), max(0.01, 0.55 * row.part / most), 0.28, facecolor=row.color,
                edgecolor=theme.FRAME, linewidth=0.6 * PIXEL,
            )
        )  # fmt: skip
        axes.text(0, i + 0.28, encodable(row.text), color=theme.INK, **write)
        axes.text(1, i + 0.72, row.said, ha="right", color=theme.QUIET, **write)
