"""RMSProp, Adam and AdamW, and the mistakes that are made in them; as in `velocity_rules`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.course.velocity_rules import COMMON, Mistake, Steps


class Moments(Steps):
    """Adam and AdamW; with `beta1` 0, without corrections and epsilon inside the root, RMSProp."""

    def __init__(
        self,
        learning_rate: float,
        beta1: float,
        beta2: float,
        epsilon: float,
        weight_decay: float = 0.0,
        pieces: dict[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.learning_rate, self.beta1, self.beta2 = learning_rate, beta1, beta2
        self.epsilon, self.weight_decay = epsilon, weight_decay
        self.pieces = pieces or {}
        self.count = 0
        self.before: Any = None
        self.first_moments: dict[int, Any] = {}
        self.second_moments: dict[int, Any] = {}
        self.sums: dict[int, Any] = {}

    def begin(self) -> None:
        """Count the step."""
        self.count += 1

    def updated(self, slot: int, p: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return one parameter after a step."""
        self.piece("count_parameter")
        self.before = p
        m = self.first_moments[slot] = self.piece("first", self.first_moments.get(slot, 0.0), g)
        v = self.second_moments[slot] = self.piece("second", self.second_moments.get(slot, 0.0), g)
        t = self.piece("exponent")
        u = self.piece(
            "quotient", self.piece("first_corrected", m, t), self.piece("second_corrected", v, t)
        )
        new = self.piece("moved", self.piece("decayed", p), u)
        return self.piece("after", new, g)

    def count_parameter(self) -> None:
        """Do what is done once a parameter."""

    def exponent(self) -> int:
        """Return t of the bias corrections."""
        return self.count

    def first(self, m: Any, g: np.ndarray) -> Any:
        """Return the first moment after a gradient."""
        return self.beta1 * m + (1 - self.beta1) * g

    def second(self, v: Any, g: np.ndarray) -> Any:
        """Return the second moment after a gradient."""
        return self.beta2 * v + (1 - self.beta2) * g * g

    def first_corrected(self, m: Any, t: int) -> Any:
        """Return the first moment without the bias of its start."""
        return m / (1 - self.beta1**t)

    def second_corrected(self, v: Any, t: int) -> Any:
        """Return the second moment without the bias of its start."""
        return v / (1 - self.beta2**t)

    def quotient(self, m: Any, v: Any) -> Any:
        """Return the direction of the step."""
        return m / (v**0.5 + self.epsilon)

    def decayed(self, p: np.ndarray) -> Any:
        """Return a parameter after its decay."""
        return p * (1 - self.learning_rate * self.weight_decay)

    def moved(self, p: Any, u: Any) -> Any:
        """Return a parameter moved along a direction."""
        return p - self.learning_rate * u

    def after(self, p: Any, g: np.ndarray) -> Any:
        """Return a parameter after what a faulty update does at last."""
        return p


def _inside(self: Moments, m: Any, v: Any) -> Any:
    return m / (v + self.epsilon) ** 0.5


#: What RMSProp does otherwise than Adam: no correction, epsilon inside the root.
RMSPROP_PIECES: dict[str, Callable[..., Any]] = {
    "first_corrected": lambda self, m, t: m,
    "second_corrected": lambda self, v, t: v,
    "quotient": _inside,
}


def _forget(self: Moments) -> None:
    self.count += 1
    self.first_moments, self.second_moments = {}, {}


def _forget_all(self: Moments) -> None:
    _forget(self)
    self.count = 1


def _forget_first(self: Moments) -> None:
    self.count += 1
    self.first_moments = {}


def _forget_second(self: Moments) -> None:
    self.count += 1
    self.second_moments = {}


def _stand_still(self: Moments) -> None:
    self.count = 1


def _count_none(self: Moments) -> None:
    """Leave the counting to `count_parameter`."""


def _count(self: Moments) -> None:
    self.count += 1


def _first_twice(self: Moments, m: Any, g: np.ndarray) -> Any:
    return self.first(self.first(m, g), g)


def _second_twice(self: Moments, v: Any, g: np.ndarray) -> Any:
    return self.second(self.second(v, g), g)


def _at_rate(rate: float) -> dict[str, Callable[..., Any]]:
    """Return the piece that moves by a rate of its own."""
    return {"moved": lambda self, p, u: p - rate * u}


#: Mistakes of the second moment, of the update and of the state, which all three rules share.
SECOND_MOMENT: list[Mistake] = [
    ("state_not_kept", {"begin": _forget}),
    ("state_not_kept", {"begin": _forget_all}),
    ("state_not_kept", {"begin": _forget_second}),
    ("missing_square", {"second": lambda self, v, g: self.beta2 * v + (1 - self.beta2) * g}),
    ("missing_square", {"second": lambda self, v, g: self.beta2 * v + (1 - self.beta2) * abs(g)}),
    ("missing_root", {"quotient": lambda self, m, v: m / (v + self.epsilon)}),
    ("averages_wrong_weights", {"second": lambda s, v, g: (1 - s.beta2) * v + s.beta2 * g * g}),
    ("averages_wrong_weights", {"second": lambda self, v, g: self.beta2 * v + g * g}),
    (
        "averages_wrong_weights",
        {"second": lambda s, v, g: s.beta2 * v + (1 - s.beta2) ** 2 * g * g},
    ),
    ("gradient_accumulated", {"second": lambda self, v, g: v + g * g}),
    ("gradient_accumulated", {"second": lambda self, v, g: v + (1 - self.beta2) * g * g}),
    *COMMON,
    ("wrong_sign", {"moved": lambda self, p, u: p + self.learning_rate * u}),
    ("gradient_twice", {"moved": lambda self, p, u: p - 2 * self.learning_rate * u}),
    (
        "hidden_broadcast",
        {"second": lambda self, v, g: self.beta2 * v + (1 - self.beta2) * (g * g).mean()},
    ),
    (
        "hidden_broadcast",
        {"second": lambda self, v, g: self.beta2 * v + (1 - self.beta2) * (g * g).sum()},
    ),
    (
        "hidden_broadcast",
        {"second": lambda self, v, g: self.beta2 * v + (1 - self.beta2) * (g * g).max()},
    ),
    ("gradient_twice", {"second": _second_twice}),
    ("gradient_twice", {"after": lambda self, p, g: p - self.learning_rate * g}),
    *(("rate_ignored", _at_rate(rate)) for rate in (1.0, 0.1, 0.01, 0.001)),
]  # fmt: skip

RMSPROP: list[Mistake] = [
    ("epsilon_outside_root", {"quotient": lambda self, m, v: m / (v**0.5 + self.epsilon)}),
    (
        "epsilon_outside_root",
        {"quotient": lambda self, m, v: m / (v**0.5 + self.epsilon**0.5)},
    ),
    *SECOND_MOMENT,
]

ADAM: list[Mistake] = [
    (
        "no_bias_correction",
        {"first_corrected": lambda self, m, t: m, "second_corrected": lambda self, v, t: v},
    ),
    ("bias_correction_of_one_moment", {"first_corrected": lambda self, m, t: m}),
    ("bias_correction_of_one_moment", {"second_corrected": lambda self, v, t: v}),
    ("step_count_off_by_one", {"exponent": lambda self: self.count - 1}),
    ("step_count_off_by_one", {"exponent": lambda self: self.count + 1}),
    ("step_count_off_by_one", {"exponent": lambda self: max(self.count - 1, 1)}),
    (
        "step_count_off_by_one",
        {"first_corrected": lambda self, m, t: m / (1 - self.beta1 ** (t + 1))},
    ),
    (
        "step_count_off_by_one",
        {"second_corrected": lambda self, v, t: v / (1 - self.beta2 ** (t + 1))},
    ),
    ("step_count_off_by_one", {"begin": _count_none, "count_parameter": _count}),
    ("step_count_off_by_one", {"exponent": lambda self: 2 * self.count}),
    ("epsilon_inside_root", {"quotient": _inside}),
    (
        "epsilon_outside_root",
        {
            "quotient": lambda self, m, v: (
                m
                / (v**0.5 + self.epsilon / (1 - self.beta2 ** self.piece("exponent")) ** 0.5)
            )
        },
    ),
    (
        "swapped_betas",
        {
            "first": lambda self, m, g: self.beta2 * m + (1 - self.beta2) * g,
            "second": lambda self, v, g: self.beta1 * v + (1 - self.beta1) * g * g,
            "first_corrected": lambda self, m, t: m / (1 - self.beta2**t),
            "second_corrected": lambda self, v, t: v / (1 - self.beta1**t),
        },
    ),
    (
        "swapped_betas",
        {
            "first": lambda self, m, g: self.beta2 * m + (1 - self.beta2) * g,
            "second": lambda self, v, g: self.beta1 * v + (1 - self.beta1) * g * g,
        },
    ),
    (
        "swapped_betas",
        {
            "first_corrected": lambda self, m, t: m / (1 - self.beta2**t),
            "second_corrected": lambda self, v, t: v / (1 - self.beta1**t),
        },
    ),
    (
        "swapped_betas",
        {
            "first": lambda self, m, g: self.beta2 * m + (1 - self.beta2) * g,
            "first_corrected": lambda self, m, t: m / (1 - self.beta2**t),
        },
    ),
    (
        "swapped_betas",
        {
            "second": lambda self, v, g: self.beta1 * v + (1 - self.beta1) * g * g,
            "second_corrected": lambda self, v, t: v / (1 - self.beta1**t),
        },
    ),
    ("swapped_betas", {"first_corrected": lambda self, m, t: m / (1 - self.beta2**t)}),
    ("swapped_betas", {"second_corrected": lambda self, v, t: v / (1 - self.beta1**t)}),
    ("state_not_kept", {"begin": _forget_first}),
    ("state_not_kept", {"begin": _stand_still}),
    ("averages_wrong_weights", {"first": lambda self, m, g: (1 - self.beta1) * m + self.beta1 * g}),
    ("averages_wrong_weights", {"first": lambda self, m, g: self.beta1 * m + g}),
    (
        "averages_wrong_weights",
        {
            "first": lambda self, m, g: (1 - self.beta1) * m + self.beta1 * g,
            "second": lambda self, v, g: (1 - self.beta2) * v + self.beta2 * g * g,
        },
    ),
    (
        "averages_wrong_weights",
        {
            "first": lambda self, m, g: self.beta1 * m + g,
            "second": lambda self, v, g: self.beta2 * v + g * g,
        },
    ),
    ("missing_square", {"first": lambda self, m, g: self.beta1 * m + (1 - self.beta1) * g * g}),
    ("gradient_accumulated", {"first": lambda self, m, g: m + g}),
    ("gradient_accumulated", {"first": lambda self, m, g: m + (1 - self.beta1) * g}),
    (
        "gradient_accumulated",
        {
            "first": lambda self, m, g: m + g,
            "second": lambda self, v, g: v + g * g,
        },
    ),
    (
        "gradient_accumulated",
        {
            "first": lambda self, m, g: m + (1 - self.beta1) * g,
            "second": lambda self, v, g: v + (1 - self.beta2) * g * g,
        },
    ),
    ("gradient_twice", {"first": _first_twice}),
    ("gradient_twice", {"first": _first_twice, "second": _second_twice}),
    ("gradient_twice", {"first": lambda self, m, g: self.beta1 * m + 2 * (1 - self.beta1) * g}),
    *SECOND_MOMENT,
]  # fmt: skip

ADAMW: list[Mistake] = [
    (
        "coupled_decay",
        {
            "gradient": lambda self, i, g, p: g + self.weight_decay * p,
            "decayed": lambda self, p: p,
        },
    ),
    (
        "coupled_decay",
        {
            "gradient": lambda self, i, g, p: g + self.learning_rate * self.weight_decay * p,
            "decayed": lambda self, p: p,
        },
    ),
    (
        "coupled_decay",
        {
            "quotient": lambda self, m, v: (
                (m + self.weight_decay * self.before) / (v**0.5 + self.epsilon)
            ),
            "decayed": lambda self, p: p,
        },
    ),
    (
        "decay_after_step",
        {
            "decayed": lambda self, p: p,
            "after": lambda self, p, g: p * (1 - self.learning_rate * self.weight_decay),
        },
    ),
    ("decay_without_rate", {"decayed": lambda self, p: p * (1 - self.weight_decay)}),
    (
        "decay_without_rate",
        {
            "decayed": lambda self, p: p,
            "after": lambda self, p, g: p * (1 - self.weight_decay),
        },
    ),
    (
        "wrong_sign",
        {"decayed": lambda self, p: p * (1 + self.learning_rate * self.weight_decay)},
    ),
    *ADAM,
]
