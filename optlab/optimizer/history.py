"""What L-BFGS remembers: the last steps, and how the gradient changed over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: A pair of step and change of gradient that says less about the curvature is not kept.
LEAST_CURVATURE = 1e-10


@dataclass
class History:
    """What L-BFGS remembers, as flat arrays over all parameters in the optimizer's order.

    Attributes
    ----------
    iterations, evaluations : int
        How many steps were taken so far, and how often the closure was called.
    direction, gradient : array or None
        Of the last step.
    alpha : float
        How far it went along its direction.
    steps, changes : list of array
        The last steps, and how the gradient changed over each: oldest first.
    scale : float
        The curvature that is assumed where nothing is known, as its inverse.
    """

    iterations: int = 0
    evaluations: int = 0
    direction: Any = None
    gradient: Any = None
    alpha: float = 0.0
    scale: float = 1.0
    steps: list[Any] = field(default_factory=list)
    changes: list[Any] = field(default_factory=list)

    def learn(self, g: Any, size: int) -> None:
        """Keep the last step and the change of the gradient over it, if they tell of curvature."""
        change, step = g - self.gradient, self.direction * self.alpha
        curvature = dot(change, step)
        if curvature > LEAST_CURVATURE:
            self.steps.append(step)
            self.changes.append(change)
            del self.steps[:-size], self.changes[:-size]
            self.scale = curvature / dot(change, change)

    def newton_direction(self, g: Any) -> Any:
        """Give minus the inverse of the learnt curvature times the gradient: two loops."""
        pairs = list(zip(self.steps, self.changes, strict=True))
        q, shares = -g, []
        for step, change in reversed(pairs):
            shares.append(dot(step, q) / dot(change, step))
            q = q - shares[-1] * change
        q = self.scale * q
        for (step, change), share in zip(pairs, reversed(shares), strict=True):
            q = q + (share - dot(change, q) / dot(change, step)) * step
        return q


def dot(a: Any, b: Any) -> float:
    """Give the inner product of two flat arrays."""
    return float((a * b).sum())


def largest(x: Any) -> float:
    """Give the largest absolute value."""
    return float(np.abs(x).max())
