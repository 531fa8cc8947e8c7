"""What figures in three dimensions share: axes, papers, titles; and paths in space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.image import as_png, blank_figure, font
from optlab.viz.backends.plotly.draw import FONT
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.labels import escaped


class Path(NamedTuple):
    """A path in space: points [count, 3], their steps, and a color."""

    points: Floats
    steps: Floats
    color: str


def space_layout(
    title: str, said: str, names: tuple[str, str, str], width: int, height: int,
    sides: tuple[float, float, float] = (1, 1, 0.6),
) -> dict[str, Any]:  # fmt: skip
    """Return the layout of an interactive figure in three dimensions."""
    axis = {
        "color": theme.QUIET, "gridcolor": theme.RULE, "backgroundcolor": theme.PAPER,
        "showbackground": True, "zerolinecolor": theme.RULE,
    }  # fmt: skip
    axes = {
        f"{letter}axis": axis | {"title": {"text": name}}
        for letter, name in zip("xyz", names, strict=True)
    }
    return {
        "width": width, "height": height, "paper_bgcolor": theme.PAPER,
        "font": {"family": FONT, "color": theme.INK, "size": theme.FONT_TEXT},
        "title": {
            "text": f"<b>{escaped(title)}</b><br><span style='font-size:13px;"
            f"color:{theme.QUIET}'>{escaped(said)}</span>",
            "x": layout.LEFT / width, "xanchor": "left", "y": 0.96, "font": {"size": 16},
        },
        "margin": {"l": 0, "r": 0, "b": 0, "t": 56},
        "legend": {"x": 0.01, "y": 0.9, "bgcolor": theme.with_opacity(theme.PAPER, 0.6)},
        "scene": axes | {
            "aspectratio": dict(zip("xyz", sides, strict=True)),
            "camera": {"eye": {"x": 1.35, "y": -1.35, "z": 0.95}},
        },
    }  # fmt: skip


def space_axes(
    title: str, said: str, names: tuple[str, str, str], width: int, height: int,
    sides: tuple[float, float, float] = (1, 1, 0.6),
) -> tuple[Any, Any]:  # fmt: skip
    """Return a figure of matplotlib and its axes, in three dimensions."""
    figure = blank_figure(width, height)
    axes: Any = figure.add_axes((0.02, 0.0, 0.96, 0.9), projection="3d", computed_zorder=False)
    axes.set_facecolor(theme.PAPER)
    setters = (axes.set_xlabel, axes.set_ylabel, axes.set_zlabel)
    for setter, text in zip(setters, names, strict=True):
        setter(text, color=theme.QUIET, fontproperties=font(theme.FONT_TEXT))
    for one in (axes.xaxis, axes.yaxis, axes.zaxis):
        one.set_pane_color(theme.PAPER)
        one.line.set_color(theme.FRAME)
        one._axinfo["grid"].update(color=theme.RULE, linewidth=0.6)
    axes.set_box_aspect(sides, zoom=1.05)
    axes.view_init(elev=28, azim=-50)
    figure.text(layout.LEFT / width, 0.945, title, color=theme.INK, fontproperties=font(16, "bold"))
    figure.text(
        layout.LEFT / width, 0.895, said, color=theme.QUIET, fontproperties=font(theme.FONT_TEXT)
    )
    return figure, axes


def space_image(figure: Any, axes: Any, scale: float, legend: bool) -> bytes:
    """Return a figure of matplotlib as an image, its numbers in the colors of the page."""
    for one in (axes.xaxis, axes.yaxis, axes.zaxis):
        for label in one.get_ticklabels():
            label.set_color(theme.QUIET)
            label.set_fontproperties(font(theme.FONT_SMALL))
    if legend:
        letters = font(theme.FONT_TEXT)
        axes.legend(loc="upper right", prop=letters, frameon=False, labelcolor=theme.INK)
    return as_png(figure, scale)


_NAMES = ("1st", "2nd", "3rd")


def space_figure(
    paths: Mapping[str, Path], title: str, said: str, width: int, height: int
) -> go.Figure:
    """Return paths in space as an interactive figure."""
    figure = go.Figure()
    for name, path in paths.items():
        x, y, z = path.points.T
        figure.add_scatter3d(
            x=x, y=y, z=z, mode="lines+markers", name=escaped(name), customdata=path.steps,
            line={"color": path.color, "width": 5}, marker={"color": path.color, "size": 3},
            hovertemplate=f"<b>{escaped(name)}</b> after %{{customdata:d}} steps<extra></extra>",
        )  # fmt: skip
    figure.update_layout(space_layout(title, said, _NAMES, width, height, (1, 1, 1)))
    figure.update_layout(scene_aspectmode="data")  # distances are those between weights
    return figure


def space_png(
    paths: Mapping[str, Path], title: str, said: str, width: int, height: int, scale: float
) -> bytes:
    """Return paths in space as an image."""
    figure, axes = space_axes(title, said, _NAMES, width, height)
    for name, path in paths.items():
        x, y, z = path.points.T
        axes.plot(x, y, z, color=path.color, linewidth=1.8, marker="o", markersize=2.5, label=name)
        axes.plot(x[-1:], y[-1:], z[-1:], color=path.color, marker="o", markersize=7)
    axes.set_aspect("equal")
    return space_image(figure, axes, scale, len(paths) > 1)
