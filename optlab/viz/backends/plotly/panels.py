"""Panels of the plotly figures: draw a view as traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.plotly.parts import (
    add_heading,
    as_float32,
    axis_name_prefix,
    axis_names,
    dash_text,
    end_marker,
    label_font,
    mark_text,
    put_axes,
    thousandths,
)
from optlab.viz.style import theme
from optlab.viz.style.layout import Page
from optlab.viz.style.text import format_point
from optlab.viz.views.curve_view import AccuracyView, CurvesView
from optlab.viz.views.map_view import MapView, Mark, PathView


def draw_map(figure: go.Figure, view: MapView, page: Page, at: int) -> None:
    """Draw a map, back to front: surface, paths, ends, minima, start."""
    x_name, y_name = axis_names(at)
    box = view.box
    frame = {"showgrid": False, "linecolor": theme.FRAME, "mirror": True, "showline": True}
    put_axes(
        figure,
        page,
        at,
        {
            **frame,
            "range": [box.x_low, box.x_high],
            "constrain": "domain",
            "nticks": 9,
            **axis_name_prefix("x"),
        },
        {
            **frame,
            "range": [box.y_low, box.y_high],
            "constrain": "domain",
            "scaleanchor": x_name,
            "scaleratio": 1,
            "nticks": 7,
            **axis_name_prefix("y"),
        },
    )
    add_heading(figure, page, at, "Paths" if view.paths else "Surface", view.note)
    axes = {"xaxis": x_name, "yaxis": y_name}
    colors = theme.surface_colors(len(view.levels) + 1)
    figure.add_contour(
        x=as_float32(view.x),
        y=as_float32(view.y),
        z=thousandths(view.height),
        autocontour=False,
        contours={
            "start": 1000 * float(view.levels[0]),
            "end": 1000 * float(view.levels[-1]),
            "size": 1000 * float(view.levels[1] - view.levels[0]),
            "coloring": "fill",
        },
        colorscale=[[place / (len(colors) - 1), c] for place, c in enumerate(colors)],
        line={"color": theme.CONTOUR, "width": theme.CONTOUR_WIDTH},
        showscale=False,
        hoverinfo="skip",
        **axes,
    )
    for label in view.contour_labels:
        figure.add_annotation(
            x=label.x,
            y=label.y,
            xref=x_name,
            yref=y_name,
            text=label.text,
            textangle=-label.angle,
            showarrow=False,
            font={**label_font(theme.QUIET), "size": theme.FONT_SMALL - 1},
        )
    for path in view.paths:  # below all lines: where paths coincide, gaps of one show the other
        _draw_halo(figure, path, axes)
    for path in view.paths:
        _draw_path(figure, path, axes)
    for path in view.paths:  # above all lines: no end is hidden by the path of another run
        _draw_end(figure, path, axes)
    for mark in view.minima:
        marker = {
            "symbol": "star",
            "size": theme.MINIMUM_SIZE,
            "color": theme.INK,
            "line": {"color": theme.PAPER, "width": 1},
        }
        _add_mark(figure, mark, marker, f"minimum<br>{format_point((mark.x, mark.y))}", axes)
    marker = {
        "symbol": "circle",
        "size": theme.START_SIZE,
        "color": theme.PAPER,
        "line": {"color": theme.INK, "width": 2},
    }
    start = view.start
    _add_mark(figure, start, marker, f"start<br>{format_point((start.x, start.y))}", axes)


def _add_mark(
    figure: go.Figure, mark: Mark, marker: dict[str, Any], hover: str, axes: dict[str, str]
) -> None:
    figure.add_scatter(
        x=[mark.x],
        y=[mark.y],
        **mark_text(mark),
        textfont=label_font(theme.INK),
        marker=marker,
        hovertemplate=f"{hover}<extra></extra>",
        showlegend=False,
        **axes,
    )


def _draw_line(
    figure: go.Figure, path: PathView, pen: dict[str, Any], group: dict[str, Any]
) -> None:
    figure.add_scatter(
        x=as_float32(path.x),
        y=as_float32(path.y),
        mode="lines",
        # The path is already simplified to less than a pixel; plotly's own is coarser.
        line={**pen, "simplify": False},
        hoverinfo="skip",
        **group,
    )


def _draw_halo(figure: go.Figure, path: PathView, axes: dict[str, str]) -> None:
    pen = {"color": theme.with_opacity(theme.PAPER, 0.75), "width": theme.HALO_WIDTH}
    _draw_line(figure, path, pen, {"legendgroup": path.name, "showlegend": False, **axes})


def _draw_path(figure: go.Figure, path: PathView, axes: dict[str, str]) -> None:
    style = path.style
    group = {"legendgroup": path.name, "showlegend": False, "name": path.name, **axes}
    pen = {"color": style.color, "width": path.width, "dash": dash_text(style)}
    _draw_line(figure, path, pen, group)
    figure.add_scatter(
        x=as_float32(path.step_x),
        y=as_float32(path.step_y),
        customdata=np.stack([as_float32(path.step), as_float32(path.step_loss)], axis=1),
        mode="markers",
        # Steps without a dot have hover text as well.
        marker={
            "color": style.color,
            "size": path.dot,
            "opacity": path.dotted.astype(np.uint8),
        },
        hovertemplate=(
            f"<b>{path.name}</b> after %{{customdata[0]:d}} steps<br>"
            "x %{x:.4g}, y %{y:.4g}<br>loss %{customdata[1]:.4g}<extra></extra>"
        ),
        **group,
    )


def _draw_end(figure: go.Figure, path: PathView, axes: dict[str, str]) -> None:
    style = path.style
    group = {"legendgroup": path.name, "showlegend": False, "name": path.name, **axes}
    for mark, hollow in ((path.end, False), (path.leaves, True)):
        if mark is not None:
            figure.add_scatter(
                x=[mark.x],
                y=[mark.y],
                **mark_text(mark),
                textfont=label_font(style.color),
                marker=end_marker(style, hollow=hollow, size=path.end_size),
                hovertemplate=f"{mark.text.replace(chr(10), '<br>')}"
                f"{'' if hollow else ' ends at %{x:.4g}, %{y:.4g}'}<extra></extra>",
                cliponaxis=False,
                **group,
            )


def draw_curves(figure: go.Figure, view: CurvesView, page: Page, at: int) -> None:
    """Draw curves over the steps, with labels at their ends and stops."""
    x_name, y_name = axis_names(at)
    box = view.box
    frame = {"showline": True, "linecolor": theme.FRAME}
    y_axis: dict[str, Any] = {"range": [box.y_low, box.y_high], "type": view.scale, "nticks": 7}
    if view.scale == "log" and box.height >= 1.5:
        # Whole decades only: 2 and 5 between them would be taken for decades.
        y_axis |= {"dtick": max(1, round(box.height / 6)), "exponentformat": "power"}
        # plotly draws powers a quarter larger than other numbers.
        y_axis |= {"tickfont": {"size": theme.FONT_SMALL / 1.25, "color": theme.QUIET}}
    elif view.scale == "linear":
        y_axis |= {"zeroline": True, "zerolinecolor": theme.FRAME}
    put_axes(
        figure,
        page,
        at,
        {
            **frame,
            "range": [box.x_low, box.x_high],
            "nticks": 6,
            **axis_name_prefix("step"),
            "showgrid": False,
        },
        y_axis,
    )
    add_heading(figure, page, at, view.title, view.note)
    axes = {"xaxis": x_name, "yaxis": y_name}
    for step in view.lines:
        figure.add_shape(
            type="line",
            x0=step,
            x1=step,
            y0=0,
            y1=1,
            xref=x_name,
            yref=f"{y_name} domain",
            layer="below",
            line={"color": theme.FAINT, "width": 1},
        )
    for series in view.series:
        style = series.style
        pen: dict[str, Any] = {"color": style.color, "width": series.width}
        pen |= {"width": theme.FAINT_WIDTH} if series.faint else {"dash": dash_text(style)}
        hover: dict[str, Any] = {
            "hovertemplate": f"<b>{series.name}</b> after %{{x:d}} steps<br>"
            f"{series.label} %{{y:.4g}}<extra></extra>"
        }
        figure.add_scatter(
            x=as_float32(series.x),
            y=as_float32(series.y),
            mode="lines",
            line=pen | {"simplify": False},
            opacity=theme.FAINT_OPACITY if series.faint else 1,
            **({"hoverinfo": "skip"} if series.faint else hover),
            legendgroup=series.name,
            showlegend=False,
            **axes,
        )
    for end in view.ends:
        shared = {
            "x": [end.x],
            "legendgroup": end.name,
            "showlegend": False,
            "hoverinfo": "skip",
            "cliponaxis": False,
            **axes,
        }
        figure.add_scatter(
            y=[end.y], mode="markers", marker=end_marker(end.style, size=end.size), **shared
        )
        figure.add_scatter(
            y=[end.text_y],
            mode="text",
            text=[f"\u00a0\u00a0\u00a0{end.text}"],  # plotly strips plain spaces
            textposition="middle right",
            textfont=label_font(end.style.color),
            **shared,
        )
    for name, style, mark in view.stops:
        figure.add_scatter(
            x=[mark.x],
            y=[mark.y],
            **mark_text(mark),
            textfont=label_font(style.color),
            marker=end_marker(style, hollow=True),
            hovertemplate=f"{mark.text}<extra></extra>",
            legendgroup=name,
            showlegend=False,
            cliponaxis=False,
            **axes,
        )


def draw_accuracies(figure: go.Figure, view: AccuracyView, page: Page, at: int) -> None:
    """Draw bars of held-out accuracies from zero, each with its value."""
    x_name, y_name = axis_names(at)
    names: Sequence[str] = [name for name, *_ in view.rows]
    put_axes(
        figure,
        page,
        at,
        {"range": [0, 1.14], "tickvals": [0, 0.25, 0.5, 0.75, 1], "tickformat": ".0%"},
        {
            "range": [len(names) - 0.4, -0.6],
            "tickvals": list(range(len(names))),
            "ticktext": list(names),
            "showgrid": False,
            "tickfont": {"size": theme.FONT_TEXT, "color": theme.INK},
            "showline": True,
            "linecolor": theme.FRAME,
        },
    )
    add_heading(figure, page, at, "Held-out accuracy", "on unseen examples")
    for row, (name, style, value, text) in enumerate(view.rows):
        shown = 0.0 if value is None else value
        figure.add_scatter(
            x=[0, shown],
            y=[row, row],
            mode="lines+markers+text",
            line={"color": style.color, "width": 4},
            marker={**end_marker(style), "opacity": [0, float(value is not None)]},
            text=["", f"  {text}"],
            textposition="middle right",
            textfont=label_font(style.color),
            hoverinfo="skip",
            legendgroup=name,
            showlegend=False,
            cliponaxis=False,
            xaxis=x_name,
            yaxis=y_name,
        )
