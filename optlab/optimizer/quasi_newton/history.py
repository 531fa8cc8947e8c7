"""What L-BFGS remembers: the last steps, and how the gradient changed over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import copied, exact_sum, placed_beside

#: A parameter's name, and from where to where it lies in a flat array.
NamedSpan = tuple[str, int, int]

#: A pair of step and change of gradient that says less about the curvature is not kept.
LEAST_CURVATURE = 1e-10


@dataclass
class History:
    """What L-BFGS remembers, as flat arrays over all parameters in the optimizer's order.

    Attributes
    ----------
    iterations, evaluations : int
        How many steps were taken so far, and how often the closure was called.
    direction, gradient, start : array or None
        Of the last step, and from where it was taken.
    alpha : float
        How far it went along its direction.
    steps, changes : list of array
        The last steps, and how the gradient changed over each: oldest first.
    scale : float
        The curvature that is assumed where nothing is known, as its inverse.
    starts : list of int
        Where the parameters begin that have elements.
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

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = [self.direction, self.gradient, self.start, *self.steps, *self.changes]
        return sum(int(array.nbytes) for array in arrays if array is not None)

    def total(self, x: Any) -> float:
        """Add up a flat array, in one and the same way whatever the order of the parameters."""
        if type(x) is not np.ndarray or not x.size:
            return float(x.sum())
        return exact_sum(np.add.reduceat(x, self.starts))

    def dot(self, a: Any, b: Any) -> float:
        """Give the inner product of two flat arrays."""
        return self.total(a * b)

    def learn(self, g: Any, point: Any, size: int) -> None:
        """Keep the last step and the change of the gradient over it, if they tell of curvature.

        The step ends at `point`, where the gradient is `g`. Mostly it is that of the last time;
        somebody else may have moved the parameters since.
        """
        change, step = g - self.gradient, self.direction * self.alpha
        if self.start is not None:  # states of before did not have it
            left = (self.start + step).astype(point.dtype, copy=False)
            if not bool((left == point).all()):
                step = point - self.start
        curvature = self.dot(change, step)
        if curvature > LEAST_CURVATURE:
            self.steps.append(step)
            self.changes.append(change)
            del self.steps[:-size], self.changes[:-size]
            self.scale = curvature / self.dot(change, change)

    def newton_direction(self, g: Any) -> Any:
        """Give minus the inverse of the learnt curvature times the gradient: two loops."""
        pairs = list(zip(self.steps, self.changes, strict=True))
        q, shares = -g, []
        for step, change in reversed(pairs):
            shares.append(self.dot(step, q) / self.dot(change, step))
            q = q - shares[-1] * change
        q = self.scale * q
        for (step, change), share in zip(pairs, reversed(shares), strict=True):
            q = q + (share - self.dot(change, q) / self.dot(change, step)) * step
        return q

    def to_state(self, spans: list[NamedSpan]) -> dict[str, Any]:
        """Give all as a dict, each array cut into those of the parameters."""
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
        """Make a history of what `to_state` gave, on the device of an array.

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
    """Lay the arrays of all parameters side by side."""
    columns = [[raw(part) for part in parts[name]] for name, _, _ in spans]
    for (name, a, b), column in zip(spans, columns, strict=True):
        if len(column) != len(columns[0]) or any(x.shape != (b - a,) for x in column):
            raise ValueError(f"the arrays of {name} do not fit")
    rows = [np.concatenate(row) for row in zip(*columns, strict=True)]
    return [placed_beside(beside, row, "the state") for row in rows]


def starts_of(spans: list[NamedSpan]) -> list[int]:
    """Give where the parameters begin that have elements."""
    return [a for _, a, b in spans if b > a] or [0]


def largest(x: Any) -> float:
    """Give the largest absolute value."""
    return float(np.abs(x).max())
