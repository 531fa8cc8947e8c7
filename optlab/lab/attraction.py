"""Basins of attraction: which minimum an optimizer reaches from every start, and how fast."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from optlab.backend.display import Rendered
from optlab.backend.memory.sizes import bytes_from
from optlab.lab.members import Group
from optlab.lab.problems.lookup import find
from optlab.lab.problems.surface import Surface
from optlab.lab.progress import ProgressBar
from optlab.lab.sweeps.run import Sweeper
from optlab.lab.vectorized import NotOnePassError, evaluate
from optlab.optimizer import Optimizer
from optlab.optimizer.wrappers import layers_of

#: The basin of a start that has not arrived, that has diverged, that has not run.
UNDERWAY, DIVERGED, MISSING = -1, -2, -3

#: The most places from which minima are looked for.
_MOST_CANDIDATES = 400
_NEWTON_STEPS = 60


class Basins(Rendered):
    """Where an optimizer ends from the starts of a grid.

    The first axis of arrays over the grid is y, the second x; of a curve there is one axis.

    Attributes
    ----------
    problem : Surface
    optimizer : Optimizer
        The template.
    axes : tuple of array
        The coordinates of the starts: x, or x and y.
    steps, seed : int
    tolerance : float
        The distance from a minimum at which a start has arrived.
    minima : array, shape (minima, dimension)
        The minima that some start has reached, and the known ones, the lowest first.
    values : array, shape (minima,)
        The losses there.
    basin : array of int, shape ``(*grid)``
        The row of `minima` that a start has reached; -1 if it has not arrived, -2 if it diverged,
        -3 if it has not run, because Ctrl-C ended the runs.
    arrival : array, shape ``(*grid)``
        The number of steps after which it stays near that minimum; NaN without one.
    final_loss : array, shape ``(*grid)``
    final_point : array, shape ``(*grid, dimension)``
    execution : str
        How the starts ran, and why.
    """

    drawn_as = "basins"

    def __init__(
        self, surface: Surface, optimizer: Optimizer, axes: tuple[np.ndarray, ...],
        sweeper: Sweeper, tolerance: float,
    ) -> None:  # fmt: skip
        self.problem = surface
        self.optimizer = optimizer
        self.axes = axes
        self.steps, self.seed = sweeper.steps, sweeper.seed
        outcome = sweeper.outcome
        sizes = [high - low for low, high in surface.domain]
        self.tolerance = tolerance * math.hypot(*sizes)
        self.execution = outcome.execution
        self.interrupted = outcome.interrupted
        shape = tuple(len(axis) for axis in reversed(axes))
        known = outcome.known
        diverged = outcome.status != "done"
        ended = known & ~diverged & np.isfinite(outcome.point).all(axis=1)
        with np.errstate(all="ignore"):
            minima = _minima(surface, outcome.point[ended], outcome.loss[ended], self.tolerance)
        nearest = np.full(sweeper.members, UNDERWAY)
        nearest[diverged] = DIVERGED
        nearest[~known] = MISSING
        if len(minima):
            places = np.flatnonzero(ended)
            for some in np.array_split(places, max(1, len(places) * len(minima) // 2_000_000)):
                apart = np.linalg.norm(outcome.point[some, None] - minima, axis=2)
                which = np.argmin(apart, axis=1)
                near = apart[np.arange(len(some)), which] <= self.tolerance
                nearest[some] = np.where(near, which, UNDERWAY)
        reached = np.unique(nearest[nearest >= 0])
        kept = np.array([i in reached or i < len(surface.minima) for i in range(len(minima))], bool)
        values = _values(surface, minima)
        # The known minima come first among those of one loss, up to rounding.
        order = [i for i in np.argsort(values.round(9), kind="stable") if kept[i]]
        renumbered = np.full(len(minima) + 3, UNDERWAY)
        renumbered[order] = np.arange(len(order))
        renumbered[[DIVERGED, MISSING]] = DIVERGED, MISSING
        nearest = renumbered[nearest]
        self.minima, self.values = minima[order], values[order]
        arrival = np.full(sweeper.members, np.nan)
        if len(reached):
            targets = np.full(outcome.point.shape, np.nan)
            targets[nearest >= 0] = self.minima[nearest[nearest >= 0]]
            arrival = np.where(nearest >= 0, sweeper.arrivals(targets, self.tolerance), np.nan)
        self.basin = nearest.reshape(shape)
        self.arrival = arrival.reshape(shape)
        self.final_loss = np.where(diverged, np.inf, outcome.loss)
        self.final_loss[~known] = np.nan
        self.final_loss = self.final_loss.reshape(shape)
        self.final_point = outcome.point.reshape((*shape, surface.dimension))

    @property
    def shares(self) -> np.ndarray:
        """The fraction of the starts that has reached each minimum."""
        counts = np.bincount(self.basin[self.basin >= 0], minlength=len(self.minima))
        return counts / self.basin.size

    def table(self) -> Any:
        """Return the minima as a pandas DataFrame: place, loss, share of the starts, median steps.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).
        """
        from optlab.backend.extras import needed_for

        with needed_for("Basins.table()"):
            import pandas as pd

        letters = "xy"[: len(self.axes)]
        columns: dict[str, Any] = {letter: self.minima[:, i] for i, letter in enumerate(letters)}
        columns |= {"loss": self.values, "share of the starts": self.shares}
        columns["median steps"] = [
            float(np.median(self.arrival[self.basin == i])) if np.any(self.basin == i) else math.nan
            for i in range(len(self.minima))
        ]
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        share = {
            word: np.mean(self.basin == number)
            for word, number in (
                ("not arrived", UNDERWAY), ("diverged", DIVERGED), ("missing", MISSING),
            )
        }  # fmt: skip
        number = len(self.minima)
        parts = [f"{_percent(np.mean(self.basin >= 0))} of the starts reach one of {number} minima"]
        if not number:
            parts = ["no minimum is known, and none was found where runs end"]
        elif number == 1:
            parts = [f"{_percent(np.mean(self.basin >= 0))} of the starts reach the minimum"]
        parts += [f"{_percent(part)} {word}" for word, part in share.items() if part]
        grid = " x ".join(str(len(axis)) for axis in self.axes)
        return (
            f"<Basins of {type(self.optimizer).__name__} on {self.problem.title}: {grid} starts, "
            f"{self.steps} steps; {', '.join(parts)}>"
        )


def _percent(part: Any) -> str:
    """Return a share in percent: only all are 100%, and only none are 0%."""
    return "<1%" if 0 < part < 0.005 else ">99%" if 0.995 <= part < 1 else f"{part:.0%}"


def basins(
    problem: Any,
    optimizer: Optimizer,
    grid: int = 200,
    *,
    steps: int = 500,
    seed: int = 0,
    tolerance: float = 0.01,
    limit: int | str = "4 GiB",
    progress: bool | None = None,
) -> Basins:
    """Find which minimum an optimizer reaches from every start of a grid, and how fast.

    All starts run as one loop. The minima are the known ones of the problem, and those that the
    runs find: points where starts end, and where the gradient vanishes and the curvature is
    positive.

    Parameters
    ----------
    problem : Surface, str or callable
        What `optlab.compare` accepts, except networks.
    optimizer : Optimizer
        A template, such as ``ol.optimizer.Momentum(0.01)``.
    grid : int
        Starts along each axis of the problem's domain.
    steps : int
        Updates from each start.
    seed : int
        Fixes the noise of a noisy problem.
    tolerance : float
        How near a minimum a start has arrived, as a fraction of the domain's diagonal.
    limit : int or str
        How many bytes the arrays of a chunk of runs may take.
    progress : bool, optional
        Whether to show a progress bar. By default in notebooks, if it takes long.

    Returns
    -------
    Basins
        With ``.basin``, ``.arrival``, ``.minima`` and ``.figure()``, which a notebook displays.
        Starts that diverge and starts that have not arrived are told apart.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.

    Examples
    --------
    >>> import optlab as ol
    >>> found = ol.basins("himmelblau", ol.optimizer.SGD(0.01), grid=20)
    >>> found  # doctest: +NORMALIZE_WHITESPACE
    <Basins of SGD on Himmelblau: 20 x 20 starts, 500 steps;
     100% of the starts reach one of 4 minima>
    >>> found.basin.shape, found.minima[found.basin[0, 0]].round(2).tolist()
    ((20, 20), [-3.78, -3.28])
    """
    surface = find(problem)
    if not isinstance(surface, Surface):
        raise TypeError(f"basins are of surfaces; {surface.title} is a network. Use compare.")
    if surface.dimension > 2:
        raise ValueError(
            f"basins are drawn over a plane or a line; {surface.title} takes {surface.dimension} "
            "numbers."
        )
    if isinstance(optimizer, type) or not isinstance(optimizer, Optimizer):
        raise TypeError(
            "basins takes an optimizer with its settings, such as ol.optimizer.Adam(0.1); got "
            f"{optimizer!r}."
        )
    if not optimizer.is_template:
        raise ValueError("basins takes a template, an optimizer made without parameters=.")
    for name, value, least in (("grid", grid, 2), ("steps", steps, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    if not (isinstance(tolerance, (int, float)) and 0 < tolerance < 1):
        raise ValueError(f"tolerance must be between 0 and 1; got {tolerance!r}.")
    axes = tuple(np.linspace(low, high, int(grid)) for low, high in surface.domain)
    meshes = np.meshgrid(*axes)
    starts = np.stack([mesh.reshape(-1) for mesh in meshes], axis=1)
    surface.value_and_gradient(surface.start)  # a faulty problem fails at once, by its name
    schedule = layers_of(optimizer)[0].schedule
    schedules = None if schedule is None else [schedule] * len(starts)
    group = Group(optimizer, {}, schedules, np.arange(len(starts)))
    seed = operator.index(seed)
    sweeper = Sweeper(surface, [group], starts, int(steps), seed, bytes_from(limit, "limit"))
    bar = ProgressBar(len(starts), f"Basins of {surface.title}", progress)
    try:
        sweeper.run(bar.update)
    finally:
        bar.close()
    return Basins(surface, optimizer, axes, sweeper, float(tolerance))


def _values_and_gradients(surface: Surface, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and gradients at points, also of a function that takes one at a time."""
    if not len(points):
        return np.empty(0), np.empty((0, surface.dimension))
    try:
        return evaluate(surface, points)
    except NotOnePassError:
        values, gradients = np.full(len(points), np.nan), np.full(points.shape, np.nan)
        for i, point in enumerate(points):
            try:
                values[i], gradients[i] = surface.value_and_gradient(point.tolist())
            except Exception:  # noqa: BLE001 - a user's function; no minimum is found there
                continue
        return values, gradients


def _values(surface: Surface, points: np.ndarray) -> np.ndarray:
    return _values_and_gradients(surface, points)[0]


def _minima(
    surface: Surface, points: np.ndarray, losses: np.ndarray, distance: float
) -> np.ndarray:
    """Return the known minima, then those that are near points where runs have ended."""
    found = [np.array(point, dtype=float) for point in surface.minima]
    for point in _refined(surface, _candidates(points, losses, distance), distance):
        if all(np.linalg.norm(point - other) > distance for other in found):
            found.append(point)
    return np.array(found).reshape(-1, surface.dimension)


def _candidates(points: np.ndarray, losses: np.ndarray, distance: float) -> np.ndarray:
    """Return the lowest point of each cell of a grid, those of the fullest cells."""
    order = np.argsort(losses, kind="stable")
    cells = np.floor(np.clip(points[order] / distance, -1e15, 1e15)).astype(np.int64)
    _, first, counts = np.unique(cells, axis=0, return_index=True, return_counts=True)
    fullest = np.argsort(-counts, kind="stable")[:_MOST_CANDIDATES]
    return points[order[first[fullest]]]


def _refined(surface: Surface, starts: np.ndarray, distance: float) -> np.ndarray:
    """Return the minima close to these points, by Newton's method with finite differences."""
    points, n = starts.copy(), surface.dimension
    if not len(points):
        return points
    width = 1e-5 * distance
    for _ in range(_NEWTON_STEPS):
        moved = np.repeat(points, 2 * n, axis=0)
        for d in range(n):
            moved[2 * d :: 2 * n, d] += width
            moved[2 * d + 1 :: 2 * n, d] -= width
        _, around = _values_and_gradients(surface, moved)
        around = around.reshape(len(points), n, 2, n)
        hessian = (around[:, :, 0] - around[:, :, 1]) / (2 * width)
        hessian = (hessian + hessian.transpose(0, 2, 1)) / 2
        _, gradient = _values_and_gradients(surface, points)
        good = np.isfinite(hessian).all(axis=(1, 2)) & np.isfinite(gradient).all(axis=1)
        hessian[~good], gradient[~good] = np.eye(n), 0.0
        curvature, axes = np.linalg.eigh(hessian)
        # Downhill along every axis; an axis that is nearly flat takes a bounded step.
        floor = 1e-10 * np.abs(curvature).max(axis=1, keepdims=True) + 1e-300
        along = np.einsum("kij,ki->kj", axes, gradient) / np.maximum(np.abs(curvature), floor)
        step = np.einsum("kij,kj->ki", axes, along)
        length = np.linalg.norm(step, axis=1, keepdims=True)
        points = points - step * np.minimum(1.0, distance / np.maximum(length, 1e-300))
    still = length[:, 0] <= 1e-3 * distance
    bowl = curvature[:, 0] > 0
    near = np.linalg.norm(points - starts, axis=1) <= 5 * distance
    return points[good & still & bowl & near]
