"""The marks of a claim figure, its map and its chart: for the page and for the static picture.

Both are made with the colors of a page, or with the names of its colors, which the page that draws
them replaces: so one list serves light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from optlab.viz.backends.scene import (
    HIDDEN,
    Axis,
    Boxes,
    Fill,
    Line,
    Mark,
    Marker,
    Pen,
    Points,
    Region,
    Rule,
    Text,
)
from optlab.viz.claims.labels import downward, placed, with_room
from optlab.viz.claims.view import DENSE, MAP_HEIGHT, MAP_WIDTH, ClaimView
from optlab.viz.style import theme

Colors = Mapping[str, str]

_MEET = 8  # pixels between points of curves, below which one lies on the other

MAP_X, MAP_Y = Axis(0, MAP_WIDTH, shown=False), Axis(MAP_HEIGHT, 0, shown=False)
CHART_X = HIDDEN
CHART_WIDTHS = (210, 280, 350)
"""Pixels of a chart for which labels are placed: a page takes what is not wider than its own."""
_LIGHT = {"ground": "#f5f8fb", "band": "#5d86b3", "line": "#8ea3ba"}
_DARK = {"ground": "#181e26", "band": "#5b7fa8", "line": "#55657a"}


def palettes(view: ClaimView) -> dict[str, dict[str, str]]:
    """Return the colors of a light and of a dark page, by name; for optimizers see `run_color`."""
    runs = {run_color(i): style.color for i, style in enumerate(view.styles)}
    return {
        "light": theme.LIGHT | _LIGHT | {name: theme.light(one) for name, one in runs.items()},
        "dark": theme.DARK | _DARK | {name: theme.dark(one) for name, one in runs.items()},
    }


def run_color(number: int) -> str:
    """Return the name of the color of an optimizer."""
    return f"run{number}"


def map_marks(view: ClaimView, at: int, colors: Colors) -> list[Mark]:
    """Return the map at a position, on the axes `MAP_X` and `MAP_Y`."""
    one = view.maps[at]
    marks: list[Mark] = [Boxes([0], [0], [MAP_WIDTH], [MAP_HEIGHT], [Fill(colors["ground"], "")])]
    band, edge = Fill(colors["band"], ""), Pen(colors["line"], 0.7)
    gap = np.full((1, 2), np.nan)
    for outlines in one.regions:
        if outlines:
            around = np.concatenate([part for line in outlines for part in (line, gap)])
            marks.append(Region(around[:, 0], around[:, 1], band, edge, opacity=0.08))
    # A short path may lie on a longer one, which would hide it.
    lengths = [float(np.hypot(*np.diff(points, axis=0).T).sum()) for points in one.paths]
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        points, dots = one.paths[number], one.dots[number]
        color, thin = colors[run_color(number)], len(points) > DENSE
        x, y = points.T
        if not thin:
            marks.append(Line(x, y, Pen(colors["ground"], 5, opacity=0.8)))
        marks.append(Line(x, y, Pen(color, 1 if thin else 2.2, view.styles[number].dash)))
        if len(dots):
            marks.append(Points(dots[:, 0], dots[:, 1], Marker("circle", 5, color)))
    star = Marker("star", 15, colors["ink"], colors["paper"], 1)
    marks += [Points([x], [y], star) for x, y in one.minima]
    x, y = one.start
    marks.append(Points([x], [y], Marker("circle", 12, colors["paper"], colors["ink"], 2.4)))
    return [*marks, _start_text(x, y, colors["ink"])]


def _start_text(x: float, y: float, ink: str) -> Text:
    """Return the name of the start, inside the map."""
    share = x / MAP_WIDTH
    across: Literal["left", "center", "right"] = (
        "left" if share < 0.1 else "right" if share > 0.9 else "center"
    )
    if y < 0.15 * MAP_HEIGHT:
        return Text(x, y, "start", ink, 14, across, "top", (0, -10))
    return Text(x, y, "start", ink, 14, across, "bottom", (0, 10))


def chart_axis(view: ClaimView) -> Axis:
    """Return the axis of what was measured."""
    if view.logarithmic:
        low, high = float(np.log10(view.low)), float(np.log10(view.high))
        return Axis(low, high, "log", shown=False)
    return Axis(view.low, view.high, shown=False)


def chart_marks(view: ClaimView, colors: Colors) -> list[Mark]:
    """Return what the chart has at every position, on `CHART_X` and `chart_axis`."""
    marks: list[Mark] = []
    for value, text in view.ticks:
        if view.low <= value <= view.high:
            marks.append(Rule("y", value, Pen(colors["rule"], 1), below=True))
            marks.append(
                Text(0, value, text, colors["quiet"], 13, "right", shift=(-10, 0), halo=False)
            )
    for number, style in enumerate(view.styles):
        pen = Pen(colors[run_color(number)], 2.6, style.dash)
        marks.append(Line(view.places, view.drawn[number], pen))
    return marks


def here_marks(view: ClaimView, at: int, colors: Colors) -> list[Mark]:
    """Return what the chart has at one position above that: a line, and points on the curves."""
    place = view.places[at]
    marks: list[Mark] = [Rule("x", place, Pen(colors["ink"], 1.4))]
    heights = downward(view.drawn[:, at], chart_axis(view))
    for number, style in enumerate(view.styles):
        value = float(view.drawn[number, at])
        if np.isfinite(value):
            near = np.abs(heights - heights[number]) < _MEET
            under, over = near[number + 1 :].any(), near[:number].any()
            size = theme.UNDER_SIZE if under else theme.OVER_SIZE if over else 14
            marker = Marker(style.marker, size, colors[run_color(number)], colors["paper"], 1.5)
            marks.append(Points([place], [value], marker, clip=False))
    return marks


def label_marks(view: ClaimView, at: int, colors: Colors, width: float) -> list[Text]:
    """Return names and values beside those points, for a chart of this width in pixels.

    What diverges has its label at the upper end of the axis.
    """
    labels = []
    for number, name in enumerate(view.names):
        value = float(view.drawn[number, at])
        y = value if np.isfinite(value) else view.high
        text, color = f"{name}\n{view.value_text(number, at)}", colors[run_color(number)]
        labels.append(Text(view.places[at], y, text, color, 15, "left", bold=True))
    curves = [mark for mark in chart_marks(view, colors) if isinstance(mark, Line)]
    return placed(labels, curves, chart_axis(view), width)


def stops(view: ClaimView, width: float) -> list[int]:
    """Return the positions whose labels are written under a slider of this width in pixels."""
    majors = view.majors
    texts, places = [view.labels[i] for i in majors], [view.places[i] for i in majors]
    return [majors[k] for k in with_room(texts, places, 13, width)]
