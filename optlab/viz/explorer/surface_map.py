"""The surface under the paths: its visible part, contour lines and colors, or its curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from contourpy import contour_generator

from optlab.lab.problems.surface import Surface
from optlab.viz.explorer.curve import curve_box
from optlab.viz.style import theme
from optlab.viz.style.contours import ContourLabel, label_contours, log_levels
from optlab.viz.style.geometry import Box, Floats, LabelPlacer, simplify, view_box, with_aspect
from optlab.viz.views.map_view import contour_note

MAP_WIDTH, MAP_HEIGHT = 690, 518
"""Size of the map in pixels at which labels are placed; it is scaled as a whole."""
_GRID = 175


@dataclass(frozen=True)
class SurfaceMap:
    """A surface as it is drawn under the paths.

    Attributes
    ----------
    box : Box
        The visible part; for a curve, also along the loss.
    height : array (rows, columns) or None
        log10 of the loss above `base`, on the grid; None for a curve.
    levels : array
    base : float
    lines : list of (index of the level, array (n, 2))
        Contour lines.
    labels : tuple of ContourLabel
    curve : array (n, 2) or None
        The points of a problem of one variable.
    note : str
        The meaning of the contours.
    """

    box: Box
    height: Floats | None
    levels: Floats
    base: float
    lines: list[tuple[int, Floats]]
    labels: tuple[ContourLabel, ...]
    curve: Floats | None
    note: str


def choose_box(
    surface: Surface, start: Sequence[float], paths: Sequence[Floats], aspect: float
) -> Box:
    """Choose the visible part: near the paths, with start and minima.

    The paths of a function of one variable have points and losses.
    """
    if surface.dimension == 1:
        return curve_box(surface, start, paths)
    (x_low, x_high), (y_low, y_high) = surface.domain
    must = [(start[0], start[1]), *((m[0], m[1]) for m in surface.minima)]
    near = view_box(must, paths, Box(x_low, x_high, y_low, y_high))
    return with_aspect(near, aspect)


def make_surface_map(surface: Surface, box: Box, paths: Sequence[Floats]) -> SurfaceMap:
    """Compute the surface under the paths."""
    x = np.linspace(box.x_low, box.x_high, _GRID if surface.dimension == 2 else 500)
    if surface.dimension == 1:
        curve = np.stack([x, surface.values(x)], axis=1)
        note = "linear scales; the loss is the height"
        return SurfaceMap(box, None, np.empty(0), 0.0, [], (), curve, note)
    y = np.linspace(box.y_low, box.y_high, round(_GRID * MAP_HEIGHT / MAP_WIDTH))
    with np.errstate(all="ignore"):
        losses = np.asarray(surface.values(*np.meshgrid(x, y)), dtype=np.float64)
    known = surface.minimum_value
    height, levels, base = log_levels(losses, known)
    generator = contour_generator(x, y, height)
    pixel = box.width / MAP_WIDTH
    lines = [
        (place, np.stack(simplify(line[:, 0], line[:, 1], 1.2 * pixel), axis=1))
        for place, level in enumerate(levels)
        for line in map(np.asarray, generator.lines(float(level)))
    ]
    scale = np.array([MAP_WIDTH / box.width, MAP_HEIGHT / box.height])
    corner = np.array([box.x_low, box.y_low])
    with np.errstate(all="ignore"):
        covered = [(path[np.isfinite(path).all(axis=1)] - corner) * scale for path in paths]
    placer = LabelPlacer(Box(30, MAP_WIDTH - 2, 22, MAP_HEIGHT - 2), covered)
    marks = [np.array(m) for m in surface.minima]
    for mark in marks:
        across, up = (mark - corner) * scale
        placer.taken.append(Box(across - 12, across + 120, up - 24, up + 12))
    labels = label_contours(x, y, height, levels, MAP_WIDTH, MAP_HEIGHT, covered, placer)
    return SurfaceMap(box, height, levels, base, lines, labels, None, contour_note(base, known))


def pack_surface_map(view: SurfaceMap, surface: Surface) -> tuple[dict[str, Any], bytes]:
    """Pack into header and bytes: contour points and heights as 16-bit fractions of their range."""
    box = view.box
    header: dict[str, Any] = {
        "box": [box.x_low, box.x_high, box.y_low, box.y_high],
        "note": view.note,
        "minima": [list(minimum) for minimum in surface.minima],
        "labels": [[label.x, label.y, label.text, label.angle] for label in view.labels],
        "title": surface.title,
        "shows": surface.shows,
        "curve": view.curve is not None,
    }
    if view.curve is not None:
        header["values"] = [
            [float(x), float(y) if math.isfinite(y) else None] for x, y in view.curve
        ]
        return header, b""
    assert view.height is not None
    corner, extent = np.array([box.x_low, box.y_low]), np.array([box.width, box.height])
    points = [np.clip((line - corner) / extent, 0, 1) for _, line in view.lines]
    bands = len(view.levels) + 1
    step = view.levels[1] - view.levels[0]
    # Position of each grid point among the levels: band k is between k and k + 1.
    place = np.clip((view.height - view.levels[0]) / step + 1, 0, bands - 1e-3)
    grid = np.where(np.isnan(place), 65535, np.rint(np.nan_to_num(place) / bands * 65000))
    header |= {
        "grid": list(grid.shape),
        "bands": bands,
        "counts": [len(line) for line in points],
        "bold": [bool(abs(view.levels[k] - round(view.levels[k])) < 1e-9) for k, _ in view.lines],
        "colors": {
            "light": theme.surface_colors(bands, theme.LIGHT["paper"]),
            "dark": theme.surface_colors(bands, theme.DARK["paper"]),
        },
    }
    together = np.concatenate([np.empty((0, 2)), *points])
    return header, b"".join(
        [grid.astype("<u2").tobytes(), np.rint(together * 65535).astype("<u2").tobytes()]
    )
