"""The curve of a function of one variable: its minima, and the heights that are worth seeing.

`static/curve.js` does the same for a formula that is typed into a page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from optlab.lab.problems.surface import Surface
from optlab.viz.style.geometry import Box, Floats

POINTS = 401
_FINER, _ROUNDS = 21, 6
_MOST_MARKED = 9
_SEEN = 1e-12  # of the largest value: what is flatter is rounding


@dataclass(frozen=True)
class CurveView:
    """What a picture shows of a curve, whatever runs on it.

    Attributes
    ----------
    marked : list of (x, loss)
        The known minima; if there are none, the lowest local ones inside the domain.
    low, high : float
        The heights of the minima and of the hills between them, and those of half of the curve; of
        a curve without a minimum, all heights.
    """

    marked: list[tuple[float, float]]
    low: float
    high: float


_views: WeakKeyDictionary[Surface, CurveView] = WeakKeyDictionary()


def curve_view(surface: Surface) -> CurveView:
    """Return what is worth seeing of a function of one variable; it is evaluated once.

    Examples
    --------
    >>> view = curve_view(Surface("x**4 - 3*x**2 + x"))
    >>> [(round(x, 3), round(loss, 3)) for x, loss in view.marked]
    [(-1.301, -3.514), (1.131, -1.07)]
    >>> round(view.low, 3), round(view.high, 3)
    (-3.514, 0.084)
    """
    if surface not in _views:
        _views[surface] = _found(surface)
    return _views[surface]


def _found(surface: Surface) -> CurveView:
    [(low, high)] = surface.domain
    x = np.linspace(low, high, POINTS)
    values = np.asarray(surface.values(x), dtype=np.float64)
    finite = np.sort(values[np.isfinite(values)])
    if not len(finite):
        return CurveView([], 0.0, 1.0)
    known = np.array([point[0] for point in surface.minima])
    marked = list(zip(known.tolist(), surface.values(known).tolist(), strict=True))
    valleys = valleys_of(values)
    if not valleys:
        return CurveView(marked, float(finite[0]), float(finite[-1]))
    if not marked:
        local = [_refined(surface, x[i - 1], x[i + 1]) for i in valleys]
        lowest = sorted(local, key=lambda point: point[1])[:_MOST_MARKED]
        marked = sorted(lowest)
    between = values[valleys[0] : valleys[-1] + 1]
    top = float(np.max(between[np.isfinite(between)]))
    bottom = min([*values[valleys].tolist(), *(loss for _, loss in marked)])
    return CurveView(marked, bottom, max(top, float(finite[len(finite) // 2])))


def valleys_of(values: Floats) -> list[int]:
    """Return the places that are lower than both of their neighbors.

    A bottom may have two points; a longer one is no place.
    """
    least = _SEEN * float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))
    places = []
    for i in range(1, len(values) - 1):
        after = i + 2 if values[i + 1] == values[i] and i + 2 < len(values) else i + 1
        if values[i - 1] - values[i] > least and values[after] - values[i] > least:
            places.append(i)
    return places


def _refined(surface: Surface, low: float, high: float) -> tuple[float, float]:
    """Return the lowest point between two places."""
    best = (math.nan, math.inf)
    for _ in range(_ROUNDS):
        x = np.linspace(low, high, _FINER)
        values = surface.values(x)
        i = int(np.nanargmin(values))
        best = (float(x[i]), float(values[i]))
        low, high = float(x[max(i - 1, 0)]), float(x[min(i + 1, _FINER - 1)])
    return best


def curve_box(surface: Surface, start: Sequence[float], visited: Sequence[Floats]) -> Box:
    """Choose what a picture of a curve shows: its domain, and the heights worth seeing.

    Parameters
    ----------
    surface : Surface
    start : (x,)
    visited : sequence of arrays (steps + 1, 2)
        The points and losses of the paths; those beside the domain do not count.
    """
    view = curve_view(surface)
    [(low, high)] = surface.domain
    low, high = min(low, start[0]), max(high, start[0])
    room = 0.04 * (high - low)
    low, high = low - room, high + room
    heights = [view.low, view.high, float(surface.values(start[0]))]
    for path in visited:
        heights += path[(path[:, 0] >= low) & (path[:, 0] <= high), 1].tolist()
    finite = [height for height in heights if math.isfinite(height)]
    bottom, top = min(finite), max(finite)
    if 0 < bottom <= top - bottom:
        bottom = 0.0  # a linear axis shows zero, where that is near
    more = 0.1 * (top - bottom) or 1.0
    return Box(low, high, bottom - 2 * more, top + more)  # below the curve there is room for names
