"""Geometry shared by both backends: boxes, clipping, thinning of curves, placement of labels.

Clipping is not left to plotly and matplotlib: a diverging path has coordinates such as 1e200 that
they draw wrongly, and the point where a path leaves the panel must be known for its label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Box:
    """An axis-aligned rectangle.

    Examples
    --------
    >>> box = Box(-1.0, 3.0, 0.0, 1.0)
    >>> box.width, box.contains(0.5, 2.0)
    (4.0, False)
    """

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    @property
    def width(self) -> float:
        """Extent along x."""
        return self.x_high - self.x_low

    @property
    def height(self) -> float:
        """Extent along y."""
        return self.y_high - self.y_low

    def contains(self, x: float, y: float) -> bool:
        """Return whether a point is inside or on the border; NaN is not."""
        return self.x_low <= x <= self.x_high and self.y_low <= y <= self.y_high

    def holds(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Return `contains` for arrays of points."""
        across = (x >= self.x_low) & (x <= self.x_high)
        return np.asarray(across & (y >= self.y_low) & (y <= self.y_high))

    def overlaps(self, other: Box) -> bool:
        """Return whether two boxes share more than a border."""
        return (
            self.x_low < other.x_high
            and other.x_low < self.x_high
            and self.y_low < other.y_high
            and other.y_low < self.y_high
        )


def view_box(must: Sequence[tuple[float, float]], paths: Iterable[Floats], domain: Box) -> Box:
    """Choose the visible part of a surface: close to the paths, and not far beyond the domain.

    Parameters
    ----------
    must : sequence of points
        Points shown in any case: the start (which widens the domain if outside) and the minima.
    paths : iterable of arrays (n, 2)
        Shown within half the extent of the domain around it; a path that leaves this is clipped.
    domain : Box
        The part of the surface that is of interest.

    Returns
    -------
    Box
        Padded, and at least a third of the domain in each direction, so that a path that hardly
        moves is not magnified to look long.
    """
    shown = np.array(must, dtype=np.float64).reshape(-1, 2)
    beyond = np.array([domain.width, domain.height]) / 2
    low = np.array([domain.x_low, domain.y_low]) - beyond
    high = np.array([domain.x_high, domain.y_high]) + beyond
    low = np.minimum(low, shown.min(axis=0, initial=np.inf))
    high = np.maximum(high, shown.max(axis=0, initial=-np.inf))
    limit = Box(low[0], high[0], low[1], high[1])
    points = [shown, *(path[limit.holds(path[:, 0], path[:, 1])] for path in paths)]
    together = np.concatenate(points)
    near, far = together.min(axis=0), together.max(axis=0)
    extent = np.maximum(1.24 * (far - near), np.array([domain.width, domain.height]) / 3)
    middle = (near + far) / 2
    # A point on the limit, such as a start far outside, still needs space for its mark.
    low = np.minimum(np.maximum(middle - extent / 2, low), near - 0.06 * extent)
    high = np.maximum(np.minimum(middle + extent / 2, high), far + 0.06 * extent)
    return Box(float(low[0]), float(high[0]), float(low[1]), float(high[1]))


def with_aspect(box: Box, aspect: float) -> Box:
    """Extend `box` symmetrically until width / height is `aspect`.

    Examples
    --------
    >>> with_aspect(Box(0.0, 1.0, 0.0, 1.0), 2.0)
    Box(x_low=-0.5, x_high=1.5, y_low=0.0, y_high=1.0)
    """
    more_x = max(0.0, aspect * box.height - box.width) / 2
    more_y = max(0.0, box.width / aspect - box.height) / 2
    return Box(box.x_low - more_x, box.x_high + more_x, box.y_low - more_y, box.y_high + more_y)


def clip_line(x: Floats, y: Floats, box: Box) -> tuple[Floats, Floats]:
    """Clip a polyline at the border of `box` (Liang-Barsky, vectorized over the segments).

    Parameters
    ----------
    x, y : arrays (n,)
        Points; one that is not finite breaks the line.
    box : Box
        The region that is kept.

    Returns
    -------
    tuple of arrays
        The visible pieces, separated by NaN.

    Examples
    --------
    >>> clip_line(np.array([0.5, 2.5]), np.array([0.5, 0.5]), Box(0.0, 1.0, 0.0, 1.0))
    (array([0.5, 1. ]), array([0.5, 0.5]))
    """
    # Far outside the box only the direction matters; the bound keeps the products finite.
    x, y = (np.where(np.isfinite(v), np.clip(v, -1e100, 1e100), np.nan) for v in (x, y))
    dx, dy = np.diff(x), np.diff(y)
    enter, leave = np.zeros_like(dx), np.ones_like(dx)
    keep = np.isfinite(dx) & np.isfinite(dy)
    sides = (
        (-dx, x[:-1] - box.x_low),
        (dx, box.x_high - x[:-1]),
        (-dy, y[:-1] - box.y_low),
        (dy, box.y_high - y[:-1]),
    )
    for toward, room in sides:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at = room / toward
        enter = np.where(toward < 0, np.maximum(enter, at), enter)
        leave = np.where(toward > 0, np.minimum(leave, at), leave)
        keep &= ~((toward == 0) & (room < 0))
    keep &= enter <= leave
    whole = np.concatenate([[False], keep[:-1] & (leave[:-1] == 1)])
    fresh = keep & ~(whole & (enter == 0))

    def pieces(start: Floats, step: Floats, low: float, high: float) -> Floats:
        rows = np.stack([np.full_like(step, np.nan), start + enter * step, start + leave * step], 1)
        kept = rows[np.stack([fresh, fresh, keep], 1)][1:]  # no NaN before the first piece
        return np.clip(kept, low, high)  # rounding must not move a border point outside

    return pieces(x[:-1], dx, box.x_low, box.x_high), pieces(y[:-1], dy, box.y_low, box.y_high)


def simplify(x: Floats, y: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Drop points nearer than `tolerance` to the last point kept.

    Examples
    --------
    >>> simplify(np.array([0.0, 0.01, 1.0]), np.array([0.0, 0.0, 0.0]), 0.1)
    (array([0., 1.]), array([0., 0.]))
    """
    keep: list[int] = []
    last_x = last_y = np.nan
    limit = tolerance * tolerance
    for place, (here_x, here_y) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        # A NaN on either side (a break) compares false, so it and the point after it are kept.
        if not (here_x - last_x) ** 2 + (here_y - last_y) ** 2 < limit:
            keep.append(place)
            last_x, last_y = here_x, here_y
    if len(x) and keep[-1] != len(x) - 1:
        keep[-1 if len(keep) > 1 else len(keep) :] = [len(x) - 1]
    return x[keep], y[keep]


def thin(y: Floats, most: int) -> NDArray[np.intp]:
    """Return the indices of the points of a long series to draw: the ends and local extremes.

    A spike of one step among a million stays visible; regular striding would lose it.

    Examples
    --------
    >>> thin(np.array([0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 4)
    array([0, 2, 7])
    """
    if len(y) <= most:
        return np.arange(len(y))
    keep = {0, len(y) - 1}
    for stretch in np.array_split(np.arange(len(y)), max(1, (most - 2) // 2)):
        values = y[stretch]
        if np.isnan(values).any():  # a gap stays a gap
            keep.add(int(stretch[np.isnan(values)][0]))
        if np.isfinite(values).any():
            keep.add(int(stretch[np.nanargmin(values)]))
            keep.add(int(stretch[np.nanargmax(values)]))
    return np.array(sorted(keep))


# Positions of a label relative to its point, in order of preference: plotly's name, then the side
# of the point that the text is on (right, up).
_POSITIONS = (
    ("middle right", 1, 0),
    ("top right", 1, 1),
    ("bottom right", 1, -1),
    ("middle left", -1, 0),
    ("top left", -1, 1),
    ("bottom left", -1, -1),
    ("top center", 0, 1),
    ("bottom center", 0, -1),
)


def text_extent(text: str, size: float) -> tuple[float, float]:
    """Estimate width and height of `text` in pixels, to keep labels apart."""
    lines = text.split("\n")
    return 0.56 * size * max(map(len, lines)) + 4, 1.25 * size * len(lines)


class LabelPlacer:
    """Placement of labels on one panel, away from borders, marks, lines and each other.

    All coordinates are in pixels from the lower left corner of the panel.

    Parameters
    ----------
    panel : Box
        The panel.
    lines : sequence of arrays (n, 2)
        Points of curves that a label should not cover.

    Examples
    --------
    >>> placer = LabelPlacer(Box(0, 100, 0, 100), [])
    >>> placer.place((50, 50), "Adam", 12, 6)
    'middle right'
    >>> placer.place((98, 20), "SGD", 12, 6)
    'middle left'
    """

    def __init__(self, panel: Box, lines: Sequence[Floats]) -> None:
        self.panel = panel
        self.points = np.concatenate([np.empty((0, 2)), *lines])
        self.taken: list[Box] = []

    def mark(self, point: tuple[float, float], radius: float) -> None:
        """Keep labels away from a mark."""
        x, y = point
        self.taken.append(Box(x - radius, x + radius, y - radius, y + radius))

    def cost(self, box: Box) -> float:
        """Return the cost of a label in `box`: outside the panel, over labels, over a line."""
        outside = not (
            self.panel.contains(box.x_low, box.y_low)
            and self.panel.contains(box.x_high, box.y_high)
        )
        covered = sum(box.overlaps(other) for other in self.taken)
        crossed = int(box.holds(self.points[:, 0], self.points[:, 1]).sum())
        return 1e6 * outside + 1e4 * covered + crossed

    def place(
        self, point: tuple[float, float], text: str, size: float, radius: float
    ) -> str | None:
        """Choose the best side of `point` for `text` and reserve the space.

        Returns
        -------
        str or None
            As in plotly's ``textposition``. None if the label would cover another one or leave the
            panel: better no label than an unreadable one, since the legend has the name.
        """
        sides = _sides(point, text, size, radius)
        costs = {name: self.cost(box) for name, box in sides.items()}
        name = min(costs, key=costs.__getitem__)
        if costs[name] >= 1e4:
            return None
        self.taken.append(sides[name])
        return name

    def free_sides(self, point: tuple[float, float], text: str, size: float, radius: float) -> int:
        """Count the sides of `point` on which `text` covers nothing."""
        return sum(self.cost(box) == 0 for box in _sides(point, text, size, radius).values())


def _sides(point: tuple[float, float], text: str, size: float, radius: float) -> dict[str, Box]:
    """Return the boxes of a label on each side of a point, the best side first."""
    width, height = text_extent(text, size)
    found = {}
    for name, right, up in _POSITIONS:
        x, y = point[0] + right * (radius + width / 2), point[1] + up * (radius + height / 2)
        found[name] = Box(x - width / 2, x + width / 2, y - height / 2, y + height / 2)
    return found


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move the labels of a column apart, each as close to its wanted position as possible.

    Parameters
    ----------
    wanted : sequence of float
        Wanted position of each label in pixels.
    gap : float
        Least distance between two labels.
    low, high : float
        The ends of the column.

    Examples
    --------
    >>> spread([10.0, 10.0, 50.0], 12.0, 0.0, 100.0)
    [4.0, 16.0, 50.0]
    """
    # Labels that touch form a block, centered at the mean of the wanted positions of its members.
    blocks: list[tuple[float, list[int]]] = []

    def placed(members: list[int]) -> float:
        own = np.mean([wanted[m] - place * gap for place, m in enumerate(members)])
        return float(np.clip(own, low, max(low, high - gap * (len(members) - 1))))

    for place in sorted(range(len(wanted)), key=lambda p: wanted[p]):
        members = [place]
        while blocks and placed(members) < blocks[-1][0] + gap * len(blocks[-1][1]):
            members = blocks.pop()[1] + members
        blocks.append((placed(members), members))
    found = [0.0] * len(wanted)
    for bottom, members in blocks:
        for place, member in enumerate(members):
            found[member] = bottom + gap * place
    return found
