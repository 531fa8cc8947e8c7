"""The loss of a model at many points of its space of weights."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape.grad_mode import no_grad
from optlab.autograd.tensor.tensor import raw
from optlab.backend.ensemble import EnsembleArray
from optlab.backend.memory.high_water import HighWater
from optlab.backend.text import one_line
from optlab.lab.cell_store import sendable
from optlab.lab.landscapes.weights import Weights, lent
from optlab.nn import Layer

Loss = Callable[[], Any]

#: The memory of the temporaries of one ensemble. Arrays of all members that do not fit the cache
#: cost more than the calls that they save: LeNet-5 on 1,000 images is three times as slow.
_CACHE = 1 << 21
_MOST_MEMBERS = 64
#: How near a member of an ensemble has to be to the same point by itself.
_RTOL = 1e-4
#: Points that one task of an executor evaluates.
_TASK = 32


class Plane(NamedTuple):
    """An affine plane in the space of weights: origin + a directions[0] + b directions[1] + ...

    Attributes
    ----------
    origin : dict of str to array
    directions : sequence of dict of str to array
        A name that is missing does not move.
    """

    origin: Weights
    directions: Sequence[Weights]

    def point(self, at: Iterable[float]) -> Weights:
        """Return the weights at some coordinates, in the dtypes of the origin."""
        found: Weights = {}
        for name, start in self.origin.items():
            value: Any = start
            for a, direction in zip(at, self.directions, strict=True):
                if a and name in direction:
                    value = value + float(a) * direction[name]
            found[name] = np.asarray(value).astype(start.dtype)
        return found


class Evaluator:
    """Evaluates a loss at points of a plane.

    Parameters
    ----------
    model : Layer
    loss : callable
        Without arguments; it evaluates the model on fixed data.
    plane : Plane
    seed : int
        Of the random numbers that the loss draws: the same at every point.
    executor : concurrent.futures.Executor, optional

    Attributes
    ----------
    execution : str
        How the points were evaluated, and why.
    """

    def __init__(
        self, model: Layer, loss: Loss, plane: Plane, seed: int, executor: Executor | None = None
    ) -> None:
        self.model, self.loss, self.plane, self.seed = model, loss, plane, seed
        self.executor = executor
        self.execution = ""
        self._members = 0
        self._payload = b""

    def values(self, points: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield indices of points, shape [points, coordinates], and the losses there, in parts.

        Raises
        ------
        TypeError
            If the loss is not one number.
        """
        if self.executor is not None and len(points) > 1:
            yield from self._elsewhere(points)
            return
        if self._members == 0:
            self._choose(points)
        for start in range(0, len(points), self._members):
            rows = np.arange(start, min(start + self._members, len(points)))
            with lent(self.model, self.seed) as parameters:
                if self._members > 1:
                    yield rows, self._together(parameters, points[rows])
                else:
                    yield rows, self._alone(parameters, points[start])

    def _alone(self, parameters: dict[str, Any], at: np.ndarray) -> np.ndarray:
        for name, value in self.plane.point(at).items():
            parameters[name].data = value
        return np.array([as_number(_evaluated(self.loss))])

    def _together(self, parameters: dict[str, Any], points: np.ndarray) -> np.ndarray:
        sets = [self.plane.point(at) for at in points]
        for name, parameter in parameters.items():
            parameter.data = EnsembleArray(np.stack([weights[name] for weights in sets]))
        found = _evaluated(self.loss)
        if not isinstance(found, EnsembleArray):
            return np.full(len(points), as_number(found))
        if found.size != 1:
            as_number(found.members[0])
        return np.asarray(found.members, np.float64).reshape(len(points))

    def _choose(self, points: np.ndarray) -> None:
        """Find out how many points go into one ensemble: as many as a cache holds."""
        water = HighWater()
        with lent(self.model, self.seed) as parameters:
            first = self._alone(parameters, points[0])
            water.start()
            try:
                self._alone(parameters, points[0])
                _, peak = water.reading()
            finally:
                water.stop()
        count = min(_CACHE // max(peak, 1), _MOST_MEMBERS, len(points))
        self._members = 1
        if count < 2:
            self.execution = f"one point after another: one evaluation takes {peak / 2**20:.1f} MiB"
            return
        try:
            with lent(self.model, self.seed) as parameters:
                found = self._together(parameters, points[:2])
            with lent(self.model, self.seed) as parameters:
                last = self._alone(parameters, points[1])
        except Exception as error:  # noqa: BLE001 - of a function that takes no ensemble
            self.execution = f"one point after another: {one_line(str(error))}"
            return
        alone = np.concatenate([first, last])
        largest = np.abs(alone[np.isfinite(alone)]).max(initial=0.0)
        if np.allclose(found, alone, rtol=_RTOL, atol=_RTOL * largest, equal_nan=True):
            self._members = count
            self.execution = f"{count} points at once, as an ensemble of batched products"
        else:
            self.execution = (
                "one point after another: an ensemble gives other numbers (the model keeps a state)"
            )

    def _elsewhere(self, points: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        assert self.executor is not None
        if not self._payload:
            self._payload = sendable(
                (self.model, self.loss, self.plane, self.seed),
                "the model and the loss",
                "Define loss at the top of a module, ",
            )
        tasks: dict[Future[np.ndarray], np.ndarray] = {}
        try:
            for start in range(0, len(points), _TASK):
                rows = np.arange(start, min(start + _TASK, len(points)))
                tasks[self.executor.submit(evaluate_copy, self._payload, points[rows])] = rows
            for task in as_completed(tasks):
                yield tasks[task], task.result()
        finally:
            for task in tasks:
                task.cancel()
        self.execution = f"{len(tasks)} tasks of {type(self.executor).__name__}"


def _evaluated(loss: Loss) -> Any:
    with no_grad(), np.errstate(all="ignore"):
        return raw(loss())


def as_number(found: Any) -> float:
    """Return a loss as a float.

    Raises
    ------
    TypeError
        If it is not one number.
    """
    found = raw(found)
    shape = np.shape(found)
    if found is None or isinstance(found, (str, bytes, dict)) or np.size(found) != 1:
        given = "None" if found is None else f"{type(found).__name__} of the shape {shape}"
        raise TypeError(
            f"loss() returns one number, such as cross_entropy(model(x), y); got {given}. "
            "Take the mean over the examples, and return it."
        )
    return float(np.asarray(found.get() if hasattr(found, "get") else found).reshape(()))


def evaluate_copy(payload: bytes, points: np.ndarray) -> np.ndarray:
    """Evaluate points on a copy of the model; what a worker of an executor runs."""
    model, loss, plane, seed = pickle.loads(payload)
    found = np.full(len(points), np.nan)
    for rows, values in Evaluator(model, loss, plane, seed).values(points):
        found[rows] = values
    return found
