"""A landscape as a surface in three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.colors import LinearSegmentedColormap

from optlab.viz.landscapes.space import space_axes, space_image, space_layout
from optlab.viz.style import theme
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
    figure.update_layout(space_layout(title, said, ("a", "b", name), width, height))
    return figure


def surface_png(result: Any, title: str, said: str, width: int, height: int, scale: float) -> bytes:
    """Return the surface as a static image."""
    z, logarithmic = _clipped(result)
    name = "log10 of the loss" if logarithmic else "loss"
    figure, axes = space_axes(title, said, ("a", "b", name), width, height)
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
    return space_image(figure, axes, scale, bool(result.paths))
