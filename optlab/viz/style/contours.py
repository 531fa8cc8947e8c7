"""Contour levels of a surface, and the placement of labels on its contour lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from contourpy import contour_generator

from optlab.viz.style import theme
from optlab.viz.style.geometry import Box, Floats, LabelPlacer, text_extent
from optlab.viz.style.text import format_number

_LEAST_LEVELS = 12
_PER_DECADE = (1, 2, 3, 4, 6, 8, 12, 24, 48)  # each decade is a level: round numbers for labels


@dataclass(frozen=True)
class ContourLabel:
    """Label of a contour line: its loss; the angle is in degrees, counterclockwise."""

    x: float
    y: float
    text: str
    angle: float


def log_levels(losses: Floats, minimum: float | None) -> tuple[Floats, Floats, float]:
    """Choose contour levels evenly spaced in the logarithm of the loss above the minimum.

    Losses of test surfaces span many decades: levels evenly spaced in the loss would show cliffs
    and leave the valley, where optimizers differ, empty.

    Parameters
    ----------
    losses : array
        Losses on the grid; the map stays blank where they are not finite.
    minimum : float or None
        The known minimum; if it is None or a loss is below it, the lowest loss is used.

    Returns
    -------
    height : array
        log10 of the loss above the base, clipped one step below and above the levels.
    levels : array
        The levels, in units of `height`.
    base : float
        The loss that heights are relative to.

    Examples
    --------
    >>> height, levels, base = log_levels(np.logspace(-3, 3, 500).reshape(20, 25), 0.0)
    >>> levels[::4]  # three a decade
    array([-2.66666667, -1.33333333, 0. , 1.33333333, 2.66666667])
    """
    finite = losses[np.isfinite(losses)]
    if not len(finite):  # nowhere finite; the paths are still drawn
        return np.full(losses.shape, np.nan), np.array([0.5, 1.0]), 0.0
    lowest = float(finite.min())
    base = lowest if minimum is None or lowest < minimum else float(minimum)
    above = finite[finite > base] - base
    if not len(above):  # constant: no contours, but paths may still be drawn
        return np.where(np.isfinite(losses), 0.0, np.nan), np.array([0.5, 1.0]), base
    # In its lowest percent the grid no longer resolves the floor of a narrow valley.
    low, high = np.log10(np.quantile(above, [0.01, 0.999]))
    for per_decade in _PER_DECADE:
        first, last = math.ceil(low * per_decade), math.floor(high * per_decade)
        if last - first + 1 >= _LEAST_LEVELS:
            break
    if last - first < 1:
        first, last = last - 1, last
    stride = max(1, math.ceil((last - first + 1) / 40))
    levels = np.arange(first, last + 1, stride) / per_decade
    step = levels[1] - levels[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        height = np.log10(losses - base)
    height = np.clip(height, levels[0] - step, levels[-1] + step)
    return np.where(np.isnan(losses), np.nan, height), levels, base


def label_contours(
    x: Floats,
    y: Floats,
    height: Floats,
    levels: Floats,
    panel_width: float,
    panel_height: float,
    lines: Sequence[Floats],
    placer: LabelPlacer,
) -> tuple[ContourLabel, ...]:
    """Label the contour line of each decade once with its loss above the base, if space allows.

    Parameters
    ----------
    x, y, height, levels
        As in `MapView`.
    panel_width, panel_height : float
        Pixels.
    lines : sequence of arrays (n, 2)
        Paths in pixels; labels keep away from them.
    placer : LabelPlacer
        The space already taken; the new labels are added.
    """
    scale = np.array([panel_width / (x[-1] - x[0]), panel_height / (y[-1] - y[0])])
    corner = np.array([x[0], y[0]])
    whole = [level for level in levels if abs(level - round(level)) < 1e-9]
    chosen = whole if len(whole) >= 2 else list(levels[::4])
    steepness = np.hypot(*np.gradient(height, y * scale[1], x * scale[0]))
    generator = contour_generator(x, y, height)
    obstacles = np.concatenate([np.empty((0, 2)), *lines])
    obstacles = obstacles[np.isfinite(obstacles).all(axis=1)]
    labels = []
    for level in chosen:
        text = format_number(10.0**level)
        width, tall = text_extent(text, theme.FONT_SMALL)
        best: tuple[float, Floats, float] | None = None
        for polyline in generator.lines(float(level)):
            for middle, angle in _stretches((np.asarray(polyline) - corner) * scale, width):
                reach = width / 2 + 6
                spot = _bounding_box(middle, angle, width, tall)
                if placer.cost(spot) >= 1e4 or not _within(
                    middle, reach, panel_width, panel_height
                ):
                    continue
                apart = np.hypot(*(obstacles - middle).T).min(initial=60.0)
                if apart < reach:
                    continue
                row, column = _cell(middle, height.shape, panel_width, panel_height)
                spacing = (levels[1] - levels[0]) / max(float(steepness[row, column]), 1e-9)
                score = min(apart, 60) / 60 + min(spacing, 16) / 8 - abs(angle) / 120
                if best is None or score > best[0]:
                    best = score, middle, angle
        if best is not None:
            _, middle, angle = best
            placer.taken.append(_bounding_box(middle, angle, width + 10, tall + 10))
            at = middle / scale + corner
            labels.append(ContourLabel(float(at[0]), float(at[1]), text, angle))
    return tuple(labels)


def _stretches(line: Floats, width: float) -> list[tuple[Floats, float]]:
    """Return straight stretches of a polyline in pixels: the middle, and the angle of a label."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])
    if along[-1] < 2 * width:
        return []
    found = []
    for at in np.arange(width, along[-1] - width, 9.0):
        ends = at + np.array([-width / 2, 0.0, width / 2])
        here = np.stack([np.interp(ends, along, line[:, axis]) for axis in (0, 1)], axis=1)
        chord = here[2] - here[0]
        length = float(np.hypot(*chord))
        if length < 0.97 * width:
            continue
        angle = math.degrees(math.atan2(chord[1], chord[0]))
        angle = (angle + 90) % 180 - 90  # never upside down
        found.append((here[1], angle))
    return found


def _bounding_box(middle: Floats, angle: float, width: float, tall: float) -> Box:
    """Return the axis-aligned bounding box of a rotated label."""
    turn = math.radians(angle)
    half_x = (abs(math.cos(turn)) * width + abs(math.sin(turn)) * tall) / 2
    half_y = (abs(math.sin(turn)) * width + abs(math.cos(turn)) * tall) / 2
    x, y = float(middle[0]), float(middle[1])
    return Box(x - half_x, x + half_x, y - half_y, y + half_y)


def _within(middle: Floats, reach: float, width: float, height: float) -> bool:
    return Box(reach, width - reach, reach, height - reach).contains(*middle)


def _cell(middle: Floats, shape: tuple[int, ...], width: float, height: float) -> tuple[int, int]:
    row = round(float(middle[1]) / height * (shape[0] - 1))
    return row, round(float(middle[0]) / width * (shape[1] - 1))
