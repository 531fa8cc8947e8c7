"""SGD, momentum and Nesterov's momentum, and the mistakes that are made in them.

One reference, made of small pieces; a mistake replaces a piece. Everything is written with the
operators of arrays: what a student's cell may have done to NumPy's functions has no effect here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: A mistake: its name, and the pieces that it replaces.
Mistake = tuple[str, dict[str, Callable[..., Any]]]


class Pieces:
    """A reference whose methods can be replaced one by one."""

    pieces: dict[str, Callable[..., Any]] = {}

    def piece(self, name: str, *arguments: Any) -> Any:
        """Call a piece of the update: the mistake's, if it has one of this name."""
        return self.pieces.get(name, getattr(type(self), name))(self, *arguments)


class Steps(Pieces):
    """What references of optimizers share: `step`, a slot for every parameter, `repeats`."""

    def step(self, params: list[np.ndarray], grads: list[np.ndarray]) -> list[np.ndarray]:
        """Return the parameters after a step."""
        for _ in range(self.piece("repeats")):
            self.piece("begin")
            params = [
                self.updated(self.piece("slot", i), p, self.piece("gradient", i, g, p))
                for i, (p, g) in enumerate(zip(params, grads, strict=True))
            ]
        return params

    def updated(self, slot: int, p: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return one parameter after a step."""
        raise NotImplementedError

    def repeats(self) -> int:
        """Return how many updates one step makes."""
        return 1

    def begin(self) -> None:
        """Do what is done once a step."""

    def slot(self, i: int) -> int:
        """Return the number of the slot of a parameter."""
        return i

    def gradient(self, i: int, g: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Return the gradient as the update uses it."""
        return g


class Velocity(Steps):
    """SGD (momentum 0), momentum, and Nesterov's momentum."""

    def __init__(
        self,
        learning_rate: float,
        momentum: float = 0.0,
        nesterov: bool = False,
        pieces: dict[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.learning_rate, self.momentum, self.nesterov = learning_rate, momentum, nesterov
        self.pieces = pieces or {}
        self.velocities: dict[int, Any] = {}
        self.sums: dict[int, Any] = {}

    def updated(self, slot: int, p: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return one parameter after a step."""
        before = self.velocities.get(slot, 0.0)
        after = self.velocities[slot] = self.piece("velocity", before, g)
        return self.piece("moved", p, self.piece("direction", g, after, before))

    def velocity(self, v: Any, g: np.ndarray) -> Any:
        """Return the velocity after a gradient."""
        return self.momentum * v + g

    def direction(self, g: np.ndarray, v: Any, before: Any) -> Any:
        """Return what a parameter moves against."""
        return g + self.momentum * v if self.nesterov else v

    def moved(self, p: np.ndarray, u: Any) -> Any:
        """Return a parameter moved along a direction."""
        return p - self.learning_rate * u


def accumulated(self: Any, i: int, g: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the sum of all gradients so far."""
    self.sums[i] = self.sums.get(i, 0.0) + g
    return self.sums[i]


def _forget(self: Any) -> None:
    self.velocities = {}


#: Mistakes that any update can have: with its gradient, and with arrays of other shapes.
COMMON: list[Mistake] = [
    ("wrong_sign", {"gradient": lambda self, i, g, p: -g}),
    ("gradient_accumulated", {"gradient": accumulated}),
    ("gradient_twice", {"gradient": lambda self, i, g, p: 2 * g}),
    ("gradient_twice", {"repeats": lambda self: 2}),
    ("hidden_broadcast", {"slot": lambda self, i: 0}),
    ("hidden_broadcast", {"gradient": lambda self, i, g, p: g.mean()}),
    ("hidden_broadcast", {"gradient": lambda self, i, g, p: g.sum()}),
    ("hidden_broadcast", {"gradient": lambda self, i, g, p: g.ravel()[0]}),
    ("hidden_broadcast", {"gradient": lambda self, i, g, p: g.max()}),
    ("hidden_broadcast", {"gradient": lambda self, i, g, p: abs(g).max()}),
    ("hidden_broadcast", {"gradient": lambda self, i, g, p: (g * g).sum() ** 0.5}),
    (
        "hidden_broadcast",
        {"gradient": lambda self, i, g, p: g.mean(axis=0) if g.ndim > 1 else g},
    ),
    ("hidden_broadcast", {"gradient": lambda self, i, g, p: g.sum(axis=0) if g.ndim > 1 else g}),
]

SGD: list[Mistake] = [
    *COMMON,
    ("gradient_twice", {"direction": lambda self, g, v, before: g + v}),
    ("rate_ignored", {"moved": lambda self, p, u: p - u}),
]

MOMENTUM: list[Mistake] = [
    ("state_not_kept", {"begin": _forget}),
    *COMMON,
    ("wrong_sign", {"velocity": lambda self, v, g: self.momentum * v - g}),
    ("wrong_sign", {"velocity": lambda self, v, g: g - self.momentum * v}),
    (
        "dampened_momentum",
        {"velocity": lambda self, v, g: self.momentum * v + (1 - self.momentum) * g},
    ),
    (
        "dampened_momentum",
        {"velocity": lambda self, v, g: (1 - self.momentum) * v + self.momentum * g},
    ),
    ("gradient_accumulated", {"velocity": lambda self, v, g: v + g}),
    ("gradient_twice", {"direction": lambda self, g, v, before: g + v}),
    ("rate_ignored", {"moved": lambda self, p, u: p - u}),
]  # fmt: skip

MOMENTUM_ALONE: list[Mistake] = [
    *MOMENTUM,
    ("nesterov_order", {"direction": lambda self, g, v, before: g + self.momentum * v}),
    ("nesterov_order", {"direction": lambda self, g, v, before: before}),
    (
        "nesterov_order",
        {"direction": lambda self, g, v, before: self.momentum * v},
    ),
]

NESTEROV: list[Mistake] = [
    ("nesterov_order", {"direction": lambda self, g, v, before: v}),
    ("nesterov_order", {"direction": lambda self, g, v, before: before}),
    ("nesterov_order", {"direction": lambda self, g, v, before: self.momentum * v}),
    ("nesterov_order", {"direction": lambda self, g, v, before: self.momentum * before}),
    ("nesterov_order", {"direction": lambda self, g, v, before: v + self.momentum * g}),
    ("nesterov_order", {"direction": lambda self, g, v, before: v + self.momentum * v}),
    ("nesterov_order", {"direction": lambda self, g, v, before: g + v + self.momentum * v}),
    ("nesterov_order", {"direction": lambda self, g, v, before: v + self.momentum * before}),
    (
        "nesterov_order",
        {"direction": lambda self, g, v, before: self.momentum * g + (1 - self.momentum) * v},
    ),
    (
        "dampened_momentum",
        {
            "velocity": lambda self, v, g: self.momentum * v + (1 - self.momentum) * g,
            "direction": lambda self, g, v, before: (1 - self.momentum) * g + self.momentum * v,
        },
    ),
    *(mistake for mistake in MOMENTUM if mistake[1].keys() != {"direction"}),
    ("gradient_twice", {"direction": lambda self, g, v, before: 2 * g + self.momentum * v}),
    ("gradient_twice", {"direction": lambda self, g, v, before: g + v}),
]
