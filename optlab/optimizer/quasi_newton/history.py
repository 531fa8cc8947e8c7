"""The history of L-BFGS: the last steps, and the changes of the gradient over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import copied, exact_sum, placed_beside

#: The name of a parameter, and its start and stop in a flat array.
NamedSpan = tuple[str, int, int]

#: A pair of a step and the change of the gradient with a smaller curvature is dropped.
LEAST_CURVATURE = 1e-10


@dataclass
class History:
    """The state of L-BFGS, in flat arrays over all parameters in the order of the optimizer.

    Attributes
    ----------
    iterations, evaluations : int
        The number of steps, and of closure calls.
    direction, gradient, start : array or None
        Direction, gradient and starting point of the last step.
    alpha : float
        The length of the last step along its direction.
    steps, changes : list of array
        The last steps, and the change of the gradient over each, oldest first.
    scale : float
        The inverse curvature in directions without a pair.
    starts : list of int
        The starts of the parameters that have elements.
    """

    holds_arrays = True  # for memory ledgers

    iterations: int = 0
    evaluations: int = 0
    direction: Any = None
    gradient: Any = None
    start: Any = None
    alpha: float = 0.0
    scale: float = 1.0
    steps: list[Any] = field(default_factory=list)
    changes: list[Any] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    #: The inner products of steps and changes, as far as they are known.
    _curvatures: list[float] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._places = np.array(self.starts, np.intp)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        arrays = [self.direction, self.gradient, self.start, *self.steps, *self.changes]
        return sum(int(array.nbytes) for array in arrays if array is not None)

    def copy(self) -> History:
        """Return a history that learns without changing this one; arrays are shared."""
        return replace(
            self,
            steps=list(self.steps),
            changes=list(self.changes),
            _curvatures=list(self._curvatures),
        )

    def total(self, x: Any) -> float:
        """Sum a flat array; the result does not depend on the order of the parameters."""
        if type(x) is not np.ndarray or not x.size:
            return float(x.sum())
        sums = np.add.reduceat(x, self._places)
        return float(sums[0]) if len(sums) == 1 else exact_sum(sums)

    def dot(self, a: Any, b: Any) -> float:
        """Return the inner product of two flat arrays."""
        return self.total(a * b)

    def learn(self, g: Any, point: Any, size: int) -> None:
        """Append the last step and the change of the gradient over it, if its curvature suffices.

        The step ends at `point`, where the gradient is `g`: elsewhere than the last one did if the
        parameters were moved since.
        """
        change, step = g - self.gradient, self.direction * self.alpha
        if self.start is not None:  # older states do not have it
            left = (self.start + step).astype(point.dtype, copy=False)
            if not bool((left == point).all()):
                step = point - self.start
        curvature = self.dot(change, step)
        if curvature > LEAST_CURVATURE:
            self.steps.append(step)
            self.changes.append(change)
            self._curvatures.append(curvature)
            del self.steps[:-size], self.changes[:-size], self._curvatures[:-size]
            self.scale = curvature / self.dot(change, change)

    def newton_direction(self, g: Any) -> Any:
        """Return -H g by the two-loop recursion."""
        pairs = list(zip(self.steps, self.changes, self.curvatures(), strict=True))
        q, shares = -g, []
        for step, change, curvature in reversed(pairs):
            shares.append(self.dot(step, q) / curvature)
            q = q - shares[-1] * change
        q = self.scale * q
        for (step, change, curvature), share in zip(pairs, reversed(shares), strict=True):
            q = q + (share - self.dot(change, q) / curvature) * step
        return q

    def curvatures(self) -> list[float]:
        """Return the inner product of each step with the change of the gradient over it."""
        if len(self._curvatures) != len(self.steps):  # of a state that was loaded
            pairs = zip(self.changes, self.steps, strict=True)
            self._curvatures = [self.dot(change, step) for change, step in pairs]
        return self._curvatures

    def to_state(self, spans: list[NamedSpan]) -> dict[str, Any]:
        """Return all as a dict, each array split by parameter."""
        last = [self.direction, self.gradient, self.start] if self.iterations else []
        last = [array for array in last if array is not None]
        state: dict[str, Any] = {
            "iterations": self.iterations,
            "evaluations": self.evaluations,
            "alpha": float(self.alpha),
            "scale": float(self.scale),
        }
        for label, arrays in (("steps", self.steps), ("changes", self.changes), ("last", last)):
            state[label] = {
                name: [Tensor(copied(array[a:b])) for array in arrays] for name, a, b in spans
            }
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any], spans: list[NamedSpan], beside: Any) -> History:
        """Make a history of the result of `to_state`, on the device of an array.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it does not fit.
        """
        known = cls(
            iterations=int(state["iterations"]),
            evaluations=int(state["evaluations"]),
            alpha=float(state["alpha"]),
            scale=float(state["scale"]),
            steps=_join_parts(state["steps"], spans, beside),
            changes=_join_parts(state["changes"], spans, beside),
            starts=starts_of(spans),
        )
        last = _join_parts(state["last"], spans, beside)
        if known.iterations:
            known.direction, known.gradient, *start = last
            known.start = start[0] if start else None
        return known


def _join_parts(parts: Mapping[str, Any], spans: list[NamedSpan], beside: Any) -> list[Any]:
    """Concatenate the arrays of all parameters."""
    columns = [[raw(part) for part in parts[name]] for name, _, _ in spans]
    for (name, a, b), column in zip(spans, columns, strict=True):
        if len(column) != len(columns[0]) or any(x.shape != (b - a,) for x in column):
            raise ValueError(f"the arrays of {name} do not fit")
        if any(bool(np.isnan(x).any()) for x in column):
            raise ValueError(f"the arrays of {name} hold NaN")
    rows = [np.concatenate(row) for row in zip(*columns, strict=True)]
    return [placed_beside(beside, row, "the state") for row in rows]


def starts_of(spans: list[NamedSpan]) -> list[int]:
    """Return the starts of the parameters that have elements."""
    return [a for _, a, b in spans if b > a] or [0]


def largest(x: Any) -> float:
    """Return the largest absolute value."""
    return float(np.abs(x).max())
