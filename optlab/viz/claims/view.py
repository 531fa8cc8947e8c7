"""What a claim figure shows, as plain data; `optlab.viz.claims.marks` says how it is drawn."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from contourpy import FillType, contour_generator

from optlab.lab.compare import Comparison
from optlab.viz.style import theme
from optlab.viz.style.contours import log_levels
from optlab.viz.style.geometry import Box, Floats, simplify, with_aspect
from optlab.viz.style.text import format_number
from optlab.viz.style.theme import Style

MAP_WIDTH, MAP_HEIGHT = 900, 610
"""Size of a map in its own units, in which all coordinates are whole numbers."""
_GRID = 110
_LEVELS = 9
_BEYOND = 0.03
_MOST_POINTS = 400
DENSE = 80
"""A path of more points is drawn thin and without dots."""
_DEEPEST = 1e-32
"""Of the largest value, the square of rounding: what is smaller is at the end of a log axis."""
_NEAR = 1.5
_DOTS_APART = 8.0


@dataclass(frozen=True)
class Map:
    """The map at one position, in its own units from the upper left corner.

    Attributes
    ----------
    title : str
    regions : list of list of array (n, 2)
        For each level, highest first, the outlines of what lies below it.
    paths : list of array (n, 2)
        The points of each optimizer.
    dots : list of array (n, 2)
        The steps far enough apart to be seen.
    start : (float, float)
    minima : list of (float, float)
    """

    title: str
    regions: list[list[Floats]]
    paths: list[Floats]
    dots: list[Floats]
    start: tuple[float, float]
    minima: list[tuple[float, float]]


@dataclass(frozen=True)
class ClaimView:
    """The data of a claim figure.

    Attributes
    ----------
    sentence : list of (str, int or None)
        Pieces of the sentence, with the number of the optimizer that they name.
    names : list of str
    styles : list of Style
        Of the optimizers.
    labels : list of str
        Of the positions.
    places : list of float
        Of the positions along the slider, from 0 to 1.
    majors : list of int
        The positions whose labels are written under it.
    values : array, shape (optimizers, positions)
    logarithmic : bool
        Whether the axis of the values is.
    low, high : float
        Its ends.
    ticks : list of (float, str)
    at : int
        The position shown first.
    maps : list of Map
    measured, unit, question, setting, note : str
    """

    sentence: list[tuple[str, int | None]]
    names: list[str]
    styles: list[Style]
    labels: list[str]
    places: list[float]
    majors: list[int]
    values: Floats
    logarithmic: bool
    low: float
    high: float
    ticks: list[tuple[float, str]]
    at: int
    maps: list[Map]
    measured: str
    unit: str
    question: str
    setting: str
    note: str

    @property
    def plain_sentence(self) -> str:
        """The sentence without marks."""
        return "".join(text for text, _ in self.sentence)

    @property
    def drawn(self) -> Floats:
        """The values, those that are below a logarithmic axis on its lower end."""
        return np.maximum(self.values, self.low) if self.logarithmic else self.values

    def value_text(self, optimizer: int, position: int) -> str:
        """Return a value with its unit."""
        value = float(self.values[optimizer, position])
        if not math.isfinite(value):
            return "diverges"
        unit = self.unit.removesuffix("s") if value == 1 else self.unit
        number = f"{value:.0f}" if value == round(value) and abs(value) < 1e6 else None
        return f"{number or format_number(value)} {unit}".rstrip()


def claim_view(
    sentence: str,
    races: list[Comparison],
    values: dict[str, np.ndarray],
    positions: list[float],
    labels: list[str],
    at: int,
    *,
    measured: str,
    unit: str,
    question: str,
    setting: str,
    title: str,
    note: str,
) -> ClaimView:
    """Return the view of a claim; see `optlab.viz.claim`."""
    names = list(values)
    kinds = {name: type(races[0].optimizers[name]).__name__ for name in names}
    styles = theme.assign_styles(kinds)
    exact = [[float(x) for x in values[name]] for name in names]
    table = np.array([[float(f"{x:.6g}") for x in row] for row in exact])
    logarithmic, low, high, ticks = _axis(table)
    places, majors = _slider(positions)
    return ClaimView(
        sentence=_pieces(sentence, names),
        names=names,
        styles=_one_solid([styles[name] for name in names]),
        labels=labels,
        places=places,
        majors=majors,
        values=table,
        logarithmic=logarithmic,
        low=low,
        high=high,
        ticks=ticks,
        at=at,
        maps=[
            _map(race, names, title.format(label))
            for race, label in zip(races, labels, strict=True)
        ],
        measured=measured,
        unit=unit,
        question=question,
        setting=setting,
        note=note,
    )


def _one_solid(styles: list[Style]) -> list[Style]:
    """Let the first line be solid where none is: not every line needs dashes to be told apart."""
    if all(style.dash for style in styles):
        return [replace(styles[0], dash=()), *styles[1:]]
    return styles


def _pieces(sentence: str, names: list[str]) -> list[tuple[str, int | None]]:
    """Split a sentence at the names between asterisks."""
    found: list[tuple[str, int | None]] = []
    for number, piece in enumerate(re.split(r"\*([^*]+)\*", sentence)):
        if number % 2 and piece not in names:
            raise ValueError(
                f"*{piece}* in the sentence is no optimizer of the races: {', '.join(names)}."
            )
        if piece:
            found.append((piece, names.index(piece) if number % 2 else None))
    return found


def _axis(values: Floats) -> tuple[bool, float, float, list[tuple[float, str]]]:
    """Return scale, ends and ticks of the vertical axis."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        raise ValueError("nothing that was measured is a finite number.")
    low, high = float(finite.min()), float(finite.max())
    if low > 0 and high / low > 20:
        low = max(low, high * _DEEPEST)
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        apart = max(1, -(-(last - first) // 5))
        decades = range(first, last + 1, apart)
        room = 0.06 * (math.log10(high) - math.log10(low))
        bottom, top = math.log10(low) - room, math.log10(high) + room
        ticks = [
            (10.0**e, format_number(10.0**e)) for e in decades if bottom - room <= e <= top + room
        ]
        return True, 10**bottom, 10**top, ticks
    room = 0.08 * (high - low) or 0.5 * abs(high) or 1.0
    bottom = 0.0 if 0 <= low < 0.5 * high else low - room
    step = 10 ** math.floor(math.log10((high - bottom) / 2))
    step *= 2 if (high - bottom) / step > 8 else 1
    places = np.arange(math.ceil(bottom / step), math.floor((high + room) / step) + 1) * step
    return False, bottom, high + room, [(float(x), format_number(float(x))) for x in places]


def _slider(positions: list[float]) -> tuple[list[float], list[int]]:
    """Return where the positions lie along the slider, and which of them are labeled.

    Examples
    --------
    >>> _slider([1.0, 2.0, 5.0, 10.0, 100.0])[1]
    [0, 3, 4]
    """
    values = np.array(positions)
    logarithmic = values.min() > 0 and values.max() / values.min() >= 20
    along = np.log10(values) if logarithmic else values
    places = ((along - along[0]) / (along[-1] - along[0])).round(4).tolist()
    decades = [i for i, x in enumerate(along.tolist()) if abs(x - round(x)) < 1e-9]
    if logarithmic and len(decades) > 2:
        majors = sorted({*decades})
    else:
        majors = np.unique(np.linspace(0, len(places) - 1, min(5, len(places))).round()).tolist()
    return places, [int(i) for i in majors]


def _map(race: Comparison, names: list[str], title: str) -> Map:
    """Return the map of one race."""
    surface: Any = race.problem
    runs = [np.asarray(race[name].parameters["point"], dtype=float) for name in names]
    assert race.start is not None
    start = (race.start[0], race.start[1])
    (x_low, x_high), (y_low, y_high) = surface.domain
    minima = [(m[0], m[1]) for m in surface.minima]
    # The same frame at every position, so that the eye follows the surface and not the frame.
    must = np.array([(x_low, y_low), (x_high, y_high), start, *minima])
    (x_low, y_low), (x_high, y_high) = must.min(axis=0), must.max(axis=0)
    box = with_aspect(Box(x_low, x_high, y_low, y_high), MAP_WIDTH / MAP_HEIGHT)
    scale = np.array([MAP_WIDTH / box.width, -MAP_HEIGHT / box.height])
    corner = np.array([box.x_low, box.y_high])

    def placed(points: Floats) -> Floats:
        with np.errstate(all="ignore"):
            found = np.clip((points - corner) * scale, -2 * MAP_WIDTH, 3 * MAP_WIDTH)
        whole: Floats = np.rint(found)
        return whole

    paths, dots = [], []
    for run in runs:
        finite = np.isfinite(run).all(axis=1)
        whole = run[: int(np.argmin(finite))] if not finite.all() else run
        points = _apart(placed(whole), _NEAR)[:_MOST_POINTS]
        inside = (points >= 0).all(axis=1) & (points <= (MAP_WIDTH, MAP_HEIGHT)).all(axis=1)
        paths.append(points)
        dots.append(_apart(points[inside], _DOTS_APART) if len(points) <= DENSE else points[:0])
    return Map(
        title,
        _regions(surface, box, placed),
        paths,
        dots,
        _pair(placed(np.array(start))),
        [_pair(placed(np.array(m))) for m in minima if box.contains(*m)],
    )


def _regions(surface: Any, box: Box, placed: Any) -> list[list[Floats]]:
    """Return the outlines of what lies below each level, over a box a little larger than shown."""
    more_x, more_y = _BEYOND * box.width, _BEYOND * box.height
    x = np.linspace(box.x_low - more_x, box.x_high + more_x, _GRID)
    y = np.linspace(box.y_low - more_y, box.y_high + more_y, round(_GRID * box.height / box.width))
    losses = surface.values(*np.meshgrid(x, y))
    height, levels, _ = log_levels(losses, surface.minimum_value)
    levels = levels[:: max(1, math.ceil(len(levels) / _LEVELS))]
    generator: Any = contour_generator(x, y, height, fill_type=FillType.OuterOffset)
    lowest = float(np.nanmin(height)) - 1 if np.isfinite(height).any() else 0.0
    found = []
    for level in levels[::-1]:
        outlines = []
        points, offsets = generator.filled(lowest, float(level))
        for one, cuts in zip(points, offsets, strict=True):
            for a, b in itertools.pairwise(cuts):
                line = placed(np.asarray(one[a:b], dtype=float))
                if len(line) > 2:
                    outlines.append(np.stack(simplify(line[:, 0], line[:, 1], 0.8), axis=1))
        found.append(outlines)
    return found


def _apart(points: Floats, distance: float) -> Floats:
    """Return the points that are at least this far from the one kept before them, and the last."""
    if len(points) < 2:
        return points
    kept = [0]
    for i, point in enumerate(points):
        if np.abs(point - points[kept[-1]]).max() >= distance:
            kept.append(i)
    return points[kept if kept[-1] == len(points) - 1 else [*kept, len(points) - 1]]


def _pair(point: Floats) -> tuple[float, float]:
    return float(point[0]), float(point[1])
