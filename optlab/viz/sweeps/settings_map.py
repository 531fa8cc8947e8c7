"""Final losses over the settings of a sweep, as a figure and as its static image."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import (
    HIDDEN,
    Axis,
    HeatMap,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Rule,
    Scene,
    decades,
    star,
)
from optlab.viz.style import layout, theme
from optlab.viz.sweeps.settings_view import Axis as Setting
from optlab.viz.sweeps.settings_view import SettingsView, settings_view

_END = "#b84a00"
"""The color of an end of what was tried."""
_COLORS = 32
_STAR = 16.0
_MOST_CROSSES, _MOST_DOTS = 2500, 60
WIDTH, HEIGHT = 760, 460


@layout.documented
def heatmap(
    sweep: Any, *, x: str | None = None, y: str | None = None, width: int = WIDTH,
    height: int = HEIGHT,
) -> go.Figure:  # fmt: skip
    """Draw the final losses of a sweep over its settings: a curve for one, a map for two or more.

    Parameters
    ----------
    sweep : Sweep or NetworkSweep
        The result of `optlab.sweep`.
    x, y : str, optional
        The settings along the axes; by default those with the most values. Further settings are at
        their best values.

    Raises
    ------
    ValueError
        If x or y is no setting with several values.

    Examples
    --------
    >>> import optlab as ol
    >>> settings = {"learning_rate": [0.01, 0.1, 0.5], "beta1": [0.0, 0.5, 0.9]}
    >>> figure = heatmap(ol.sweep("booth", ol.optimizer.Adam, settings, steps=50))
    >>> figure.layout.title.text
    '<b>Adam on Booth</b>'
    """
    return draw(_scene(settings_view(sweep, x, y, width, height)))


@layout.documented
def heatmap_png(
    sweep: Any, *, x: str | None = None, y: str | None = None, width: int = WIDTH,
    height: int = HEIGHT, scale: float = 1.0,
) -> bytes:  # fmt: skip
    r"""Draw the final losses of a sweep as a PNG image.

    Parameters
    ----------
    sweep, x, y
        As for `heatmap`.

    Examples
    --------
    >>> import optlab as ol
    >>> heatmap_png(ol.sweep("booth", ol.optimizer.SGD, {"learning_rate": [0.01, 0.1]}))[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(settings_view(sweep, x, y, width, height)), scale)


def _scene(view: SettingsView) -> Scene:
    panels = [_curve(view)] if view.y is None else [_map(view, view.y), _color_scale(view)]
    return Scene(view.page, view.title, view.headline, panels)


def _ticks(axis: Setting) -> list[tuple[float, str]]:
    return [(float(axis.place[i]), axis.labels[i]) for i in axis.ticks]


def _map(view: SettingsView, up: Setting) -> Panel:
    columns, rows = len(view.x.labels), len(up.labels)
    across, down = range(columns), range(rows)
    marks: list[Mark] = []
    if view.diverged.any():
        lost = np.where(view.diverged, 0.0, np.nan)
        marks.append(HeatMap(across, down, lost, 0.0, 1.0, [theme.RULE, theme.RULE]))
        at = np.argwhere(view.diverged)
        if len(at) <= _MOST_CROSSES:
            cross = Marker("x-thin", 7, theme.FRAME, theme.FRAME, 1)
            marks.append(Points(at[:, 1].astype(float), at[:, 0].astype(float), cross))
    marks.append(
        HeatMap(
            across, down, view.height, view.low, view.high, theme.map_colors(9), smooth=True,
            hover="%{text}", tips=_tips(view, up),
        )
    )  # fmt: skip
    for letter, side in view.ends:
        edge = -0.5 if side == "lowest" else (columns if letter == "x" else rows) - 0.5
        marks.append(Rule("x" if letter == "x" else "y", edge, Pen(_END, 5)))
    if view.best is not None:
        marks.append(Points([view.best[1]], [view.best[0]], star(_STAR), clip=False))
    note = f"{up.name} (up) against {view.x.name} (right), log colors; the star is the best"
    return Panel(
        Axis(-0.5, columns - 0.5, ticks=_ticks(view.x)), Axis(-0.5, rows - 0.5, ticks=_ticks(up)),
        marks, f"Final {view.loss_name}", note, frame="box",
    )  # fmt: skip


def _color_scale(view: SettingsView) -> Panel:
    """Return the scale of the colors, beside the map."""
    steps = np.linspace(view.low, view.high, _COLORS)
    ticks = [*zip(*decades(view.low, view.high), strict=True)]
    colors = HeatMap(
        [0.5], steps, steps[:, None], view.low, view.high, theme.map_colors(9), smooth=True
    )
    up = Axis(view.low, view.high, ticks=ticks, right=True)
    return Panel(HIDDEN, up, [colors], frame="none")


def _tips(view: SettingsView, up: Setting) -> Any:
    found = np.empty(view.height.shape, dtype=object)
    for row, column in np.ndindex(view.height.shape):
        where = f"{view.x.name} {view.x.labels[column]}, {up.name} {up.labels[row]}"
        found[row, column] = f"{where}<br>{_said(view, (row, column))}"
    return found


def _said(view: SettingsView, place: tuple[int, ...]) -> str:
    if view.diverged[place]:
        return "diverged"
    if view.missing[place]:
        return "has not run"
    return f"{view.loss_name} {10 ** view.height[place]:.3g}"


def _curve(view: SettingsView) -> Panel:
    margin = 0.08 * (view.high - view.low)
    low, high = view.low - margin, view.high + margin
    first, last = float(view.x.place.min()), float(view.x.place.max())
    room = 0.04 * (last - first) or 0.5
    marks: list[Mark] = []
    for _, side in view.ends:
        rises = view.x.place[0] <= view.x.place[-1]
        edge = float(view.x.place[0 if (side == "lowest") == rises else -1])
        marks.append(Rule("x", edge, Pen(_END, 3), below=True))
    tips = [f"{view.x.name} {t}<br>{_said(view, (i,))}" for i, t in enumerate(view.x.labels)]
    color = theme.area_colors()[0]
    marks.append(Line(view.x.place, view.height, Pen(color), "%{text}", tips=tips))
    if len(view.height) <= _MOST_DOTS:
        marks.append(Points(view.x.place, view.height, Marker("circle", 6, color)))
    lost = np.flatnonzero(view.diverged)
    if len(lost):
        cross = Marker("x-thin", 7, theme.QUIET, theme.QUIET, 1.4)
        top, said = np.full(len(lost), high), [tips[i] for i in lost]
        marks.append(Points(view.x.place[lost], top, cross, "%{text}", tips=said, clip=False))
    if view.best is not None:
        at = view.best[0]
        part = (view.x.place[at] - first + room) / (last - first + 2 * room)
        side = "left" if part > 0.85 else "right" if part < 0.15 else "center"
        marks.append(
            Points(
                [float(view.x.place[at])], [float(view.height[at])], star(_STAR), clip=False,
                text=f"best: {view.x.labels[at]}", side=f"top {side}", ink=theme.INK,
            )
        )  # fmt: skip
    note = f"against {view.x.name}; {'both axes' if view.x.log else 'losses on a'} log scale"
    return Panel(
        Axis(first - room, last + room, ticks=_ticks(view.x)),
        Axis(low, high, ticks=[*zip(*decades(low, high), strict=True)], grid=True),
        marks, f"Final {view.loss_name}", note,
    )  # fmt: skip
