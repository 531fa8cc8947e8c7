"""A landscape as a surface in three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.colors import LinearSegmentedColormap

from optlab.viz.backends.matplotlib.image import as_png, blank_figure, font
from optlab.viz.backends.plotly.draw import FONT
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.labels import escaped

_SHADES = 24


def _clipped(result: Any) -> tuple[Floats, bool]:
    """Return log10 of the losses (or the losses), without the highest cliffs."""
    loss = np.where(np.isfinite(result.loss), result.loss, np.nan)
    known = loss[np.isfinite(loss)]
    logarithmic = bool(known.size and known.min() > 0 and known.max() > 30 * known.min())
    values = np.log10(loss) if logarithmic else loss
    top = np.nanquantile(values, 0.995) if known.size else 1.0
    return np.minimum(values, top), logarithmic


def surface_figure(result: Any, title: str, said: str, width: int, height: int) -> go.Figure:
    """Return the interactive surface, with the paths of runs over it."""
    z, logarithmic = _clipped(result)
    colors = theme.map_colors(_SHADES)
    scale = [[i / (_SHADES - 1), color] for i, color in enumerate(colors)]
    name = "log10 of the loss" if logarithmic else "loss"
    figure = go.Figure()
    figure.add_surface(
        x=result.a, y=result.b, z=z, colorscale=scale, showscale=False,
        customdata=result.loss,
        hovertemplate="a %{x:.3g}, b %{y:.3g}<br>loss %{customdata:.4g}<extra></extra>",
        contours={"z": {"show": True, "color": theme.PAPER, "width": 1}}, opacity=0.96,
    )  # fmt: skip
    styles = theme.assign_styles({run: run for run in result.paths})
    lift = 0.01 * float(np.nanmax(z) - np.nanmin(z))
    for run, path in result.paths.items():
        over = np.log10(path.plane_loss) if logarithmic else path.plane_loss
        color = styles[run].color
        figure.add_scatter3d(
            x=path.a, y=path.b, z=over + lift, mode="lines+markers", name=escaped(run),
            line={"color": color, "width": 6}, marker={"color": color, "size": 3},
            hovertemplate=f"<b>{escaped(run)}</b><br>a %{{x:.3g}}, b %{{y:.3g}}<extra></extra>",
        )  # fmt: skip
    axis = {
        "color": theme.QUIET, "gridcolor": theme.RULE, "backgroundcolor": theme.PAPER,
        "showbackground": True, "zerolinecolor": theme.RULE,
    }  # fmt: skip
    figure.update_layout(
        width=width, height=height, paper_bgcolor=theme.PAPER,
        font={"family": FONT, "color": theme.INK, "size": theme.FONT_TEXT},
        title={
            "text": f"<b>{escaped(title)}</b><br><span style='font-size:13px;"
            f"color:{theme.QUIET}'>{escaped(said)}</span>",
            "x": layout.LEFT / width, "xanchor": "left", "y": 0.96, "font": {"size": 16},
        },
        margin={"l": 0, "r": 0, "b": 0, "t": 56},
        legend={"x": 0.01, "y": 0.9, "bgcolor": theme.with_opacity(theme.PAPER, 0.6)},
        scene={
            "xaxis": axis | {"title": {"text": "a"}}, "yaxis": axis | {"title": {"text": "b"}},
            "zaxis": axis | {"title": {"text": name}}, "aspectratio": {"x": 1, "y": 1, "z": 0.6},
            "camera": {"eye": {"x": 1.35, "y": -1.35, "z": 0.95}},
        },
    )  # fmt: skip
    return figure


def surface_png(result: Any, title: str, said: str, width: int, height: int, scale: float) -> bytes:
    """Return the surface as a static image."""
    z, logarithmic = _clipped(result)
    figure = blank_figure(width, height)
    axes: Any = figure.add_axes((0.02, 0.0, 0.96, 0.9), projection="3d", computed_zorder=False)
    axes.set_facecolor(theme.PAPER)
    a, b = np.meshgrid(result.a, result.b)
    colors = LinearSegmentedColormap.from_list("surface", theme.map_colors(_SHADES))
    axes.plot_surface(
        a, b, z, cmap=colors, rstride=1, cstride=1, linewidth=0.25, edgecolor=theme.PAPER,
        antialiased=True, alpha=0.95,
    )  # fmt: skip
    styles = theme.assign_styles({run: run for run in result.paths})
    lift = 0.01 * float(np.nanmax(z) - np.nanmin(z))
    for run, path in result.paths.items():
        over = np.log10(path.plane_loss) if logarithmic else path.plane_loss
        axes.plot(
            path.a, path.b, over + lift, color=styles[run].color, linewidth=2.2, zorder=5,
            marker="o", markersize=3, label=run,
        )  # fmt: skip
    letters = font(theme.FONT_TEXT)
    for setter, text in (
        (axes.set_xlabel, "a"), (axes.set_ylabel, "b"),
        (axes.set_zlabel, "log10 of the loss" if logarithmic else "loss"),
    ):  # fmt: skip
        setter(text, color=theme.QUIET, fontproperties=letters)
    for one in (axes.xaxis, axes.yaxis, axes.zaxis):
        one.set_pane_color(theme.PAPER)
        one.line.set_color(theme.FRAME)
        one._axinfo["grid"].update(color=theme.RULE, linewidth=0.6)
        for label in one.get_ticklabels():
            label.set_color(theme.QUIET)
            label.set_fontproperties(font(theme.FONT_SMALL))
    axes.set_box_aspect((1, 1, 0.6), zoom=1.05)
    axes.view_init(elev=28, azim=-50)
    figure.text(layout.LEFT / width, 0.945, title, color=theme.INK, fontproperties=font(16, "bold"))
    figure.text(layout.LEFT / width, 0.895, said, color=theme.QUIET, fontproperties=letters)
    if result.paths:
        axes.legend(loc="upper right", prop=letters, frameon=False, labelcolor=theme.INK)
    return as_png(figure, scale)
