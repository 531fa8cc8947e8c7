"""LookAhead and the exponential moving average, and the mistakes that are made in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.course.velocity_rules import Mistake, Pieces, Steps

Arrays = list[np.ndarray]


class LookAhead(Steps):
    """Slow weights that follow the weights of an inner optimizer, every k steps."""

    def __init__(
        self,
        inner: Any,
        alpha: float = 0.5,
        k: int = 5,
        pieces: dict[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.inner, self.alpha, self.k, self.pieces = inner, alpha, k, pieces or {}
        self.count = 0
        self.slow: Arrays | None = None
        self.kept: Any = None
        self.sums: list[Any] = []

    def step(self, params: Arrays, grads: Arrays) -> Arrays:
        """Return the parameters after a step of the inner optimizer, or the slow weights."""
        params = self.piece("begin_from", params)
        slow = self.piece("slow_before", params)
        fast = self.piece("inner_step", params, grads)
        self.count += 1
        self.slow = slow = self.piece("started", params, fast) if slow is None else slow
        result = fast
        if self.piece("due"):
            mixed = [
                self.piece("mixed", s, f, p) for s, f, p in zip(slow, fast, params, strict=True)
            ]
            self.slow = self.piece("slow_after", slow, mixed)
            result = self.piece("returned", mixed, fast)
        self.kept = self.piece("kept_as", fast, result)
        return [value + 0.0 for value in result]

    def begin_from(self, params: Arrays) -> Arrays:
        """Return the weights that the inner optimizer starts from."""
        return params

    def slow_before(self, params: Arrays) -> Arrays | None:
        """Return the slow weights before the step."""
        return self.slow

    def inner_step(self, params: Arrays, grads: Arrays) -> Arrays:
        """Return the weights after a step of the inner optimizer."""
        moved: Arrays = self.inner.step(params, grads)
        return moved

    def started(self, params: Arrays, fast: Arrays) -> Arrays:
        """Return the slow weights at the first step."""
        return params

    def due(self) -> bool:
        """Return whether the weights are synchronized after this step."""
        return self.count % self.k == 0

    def mixed(self, slow: Any, fast: Any, before: Any) -> Any:
        """Return a slow weight after a synchronization."""
        return slow + self.alpha * (fast - slow)

    def slow_after(self, slow: Arrays, mixed: Arrays) -> Arrays:
        """Return the slow weights after a synchronization."""
        return mixed

    def returned(self, mixed: Arrays, fast: Arrays) -> Arrays:
        """Return what the step gives back after a synchronization."""
        return mixed

    def kept_as(self, fast: Arrays, result: Arrays) -> Arrays:
        """Return the weights that a faulty step goes on from."""
        return result


def _zeros(self: LookAhead, params: Arrays, fast: Arrays) -> Arrays:
    return [0 * p for p in params]


def _twice(self: LookAhead, params: Arrays, grads: Arrays) -> Arrays:
    moved: Arrays = self.inner.step(self.inner.step(params, grads), grads)
    return moved


def _twice_from_there(self: LookAhead, params: Arrays, grads: Arrays) -> Arrays:
    """Throw the first of two steps away: the inner optimizer's state keeps it."""
    self.inner.step(params, grads)
    moved: Arrays = self.inner.step(params, grads)
    return moved


def _first_at_synchronization(self: LookAhead, params: Arrays) -> Arrays | None:
    """Return slow weights that start as the fast ones are at the first synchronization."""
    return self.slow if self.count + 1 > self.k else None


def _synchronized_first(self: LookAhead, params: Arrays) -> Arrays:
    if self.count and self.count % self.k == 0 and self.slow is not None:
        self.slow = [s + self.alpha * (p - s) for s, p in zip(self.slow, params, strict=True)]
        return self.slow
    return params


def _accumulated(self: LookAhead, params: Arrays, grads: Arrays) -> Arrays:
    self.sums = [s + g for s, g in zip(self.sums or [0.0] * len(grads), grads, strict=True)]
    moved: Arrays = self.inner.step(params, self.sums)
    return moved


def _never(self: LookAhead) -> bool:
    return False


LOOKAHEAD: list[Mistake] = [
    ("late_synchronisation", {"due": lambda self: self.count > 1 == self.count % self.k}),
    ("late_synchronisation", {"due": lambda self: self.count % (self.k + 1) == 0}),
    ("late_synchronisation", {"begin_from": _synchronized_first, "due": _never}),
    ("late_synchronisation", {"due": lambda self: self.count % (2 * self.k) == 0}),
    ("early_synchronisation", {"due": lambda self: (self.count - 1) % self.k == 0}),
    ("early_synchronisation", {"due": lambda self: (self.count + 1) % self.k == 0}),
    ("early_synchronisation", {"due": lambda self: self.count % max(self.k - 1, 1) == 0}),
    ("early_synchronisation", {"due": lambda self: True}),
    ("slow_weights_not_started", {"started": _zeros}),
    ("slow_weights_not_started", {"started": lambda self, params, fast: fast}),
    (
        "slow_weights_not_started",
        {"slow_before": _first_at_synchronization, "started": lambda self, params, fast: fast},
    ),
    ("slow_weights_not_started", {"slow_before": _first_at_synchronization}),
    ("fast_not_reset", {"returned": lambda self, mixed, fast: fast}),
    (
        "fast_not_reset",
        {
            "begin_from": lambda self, params: params if self.kept is None else self.kept,
            "kept_as": lambda self, fast, result: fast,
        },
    ),
    ("averages_wrong_weights", {"mixed": lambda self, s, f, p: f + self.alpha * (s - f)}),
    ("averages_wrong_weights", {"mixed": lambda self, s, f, p: s + self.alpha * f}),
    ("averages_wrong_weights", {"mixed": lambda self, s, f, p: s + self.alpha * (p - s)}),
    ("averages_wrong_weights", {"mixed": lambda self, s, f, p: self.alpha * f}),
    ("wrong_sign", {"mixed": lambda self, s, f, p: s - self.alpha * (f - s)}),
    ("wrong_sign", {"inner_step": lambda self, p, g: self.inner.step(p, [-x for x in g])}),
    ("state_not_kept", {"slow_before": lambda self, params: params}),
    ("gradient_accumulated", {"inner_step": _accumulated}),
    ("state_not_kept", {"slow_after": lambda self, slow, mixed: slow}),
    ("gradient_twice", {"inner_step": _twice}),
    ("gradient_twice", {"inner_step": _twice_from_there}),
    ("gradient_twice", {"inner_step": lambda self, p, g: self.inner.step(p, [2 * x for x in g])}),
    (
        "hidden_broadcast",
        {"slow_before": lambda self, params: self.slow and self.slow[:1] * len(params)},
    ),
]  # fmt: skip


class MovingAverage(Pieces):
    """An exponential moving average of weights, corrected for its start at zero."""

    def __init__(
        self, decay: float = 0.999, pieces: dict[str, Callable[..., Any]] | None = None
    ) -> None:
        self.decay, self.pieces = decay, pieces or {}
        self.count = 0
        self.averages: dict[int, Any] = {}
        self.before: list[Any] | None = None

    def update(self, params: Arrays) -> None:
        """Take in the weights of a step."""
        self.piece("begin")
        for i, p in enumerate(params):
            self.piece("count_parameter")
            slot = self.piece("slot", i)
            taken = self.piece("taken", i, p)
            kept = self.averages.get(slot)
            kept = self.piece("started", taken) if kept is None else kept
            self.averages[slot] = self.piece("mixed", kept, taken)
        self.before = [p + 0.0 for p in params]

    def average(self) -> Arrays:
        """Return the average of the weights so far."""
        with np.errstate(all="ignore"):
            result = [
                self.piece("corrected", self.averages[self.piece("slot", i)])
                for i in range(len(self.before or []))
            ]
        self.piece("given", result)
        return [value + 0.0 for value in result]

    def begin(self) -> None:
        """Count the step."""
        self.count += 1

    def count_parameter(self) -> None:
        """Do what is done once a parameter."""

    def slot(self, i: int) -> int:
        """Return the number of the average of a parameter."""
        return i

    def taken(self, i: int, p: np.ndarray) -> Any:
        """Return what the average takes in."""
        return p

    def started(self, p: Any) -> Any:
        """Return the average before the first weights."""
        return 0 * p

    def mixed(self, average: Any, p: Any) -> Any:
        """Return the average after weights."""
        return self.decay * average + (1 - self.decay) * p

    def corrected(self, average: Any) -> Any:
        """Return the average without the bias of its start."""
        return average / np.float64(1 - self.decay ** self.piece("exponent"))

    def exponent(self) -> int:
        """Return t of the bias correction."""
        return self.count

    def given(self, result: Arrays) -> None:
        """Do what is done once an average has been given."""


def _forget(self: MovingAverage) -> None:
    self.count += 1
    self.averages = {}


def _forget_all(self: MovingAverage) -> None:
    self.count = 1
    self.averages = {}


def _previous(self: MovingAverage, i: int, p: np.ndarray) -> Any:
    return p if self.before is None else self.before[i]


def _none(self: MovingAverage) -> None:
    """Leave the counting to `count_parameter`."""


def _count(self: MovingAverage) -> None:
    self.count += 1


def _overwrite(self: MovingAverage, result: Arrays) -> None:
    self.averages = dict(enumerate(result))


def _uncorrected(self: MovingAverage, average: Any) -> Any:
    return average


EMA: list[Mistake] = [
    ("no_bias_correction", {"corrected": _uncorrected}),
    ("no_bias_correction", {"corrected": _uncorrected, "started": lambda self, p: p}),
    ("step_count_off_by_one", {"exponent": lambda self: self.count - 1}),
    ("step_count_off_by_one", {"exponent": lambda self: self.count + 1}),
    ("step_count_off_by_one", {"begin": _none, "count_parameter": _count}),
    ("state_not_kept", {"exponent": lambda self: 1}),
    ("state_not_kept", {"begin": _forget}),
    ("state_not_kept", {"begin": _forget_all}),
    ("averages_wrong_weights", {"mixed": lambda self, a, p: (1 - self.decay) * a + self.decay * p}),
    (
        "averages_wrong_weights",
        {
            "mixed": lambda self, a, p: (1 - self.decay) * a + self.decay * p,
            "corrected": lambda self, a: a / (1 - (1 - self.decay) ** self.count),
        },
    ),
    ("averages_wrong_weights", {"taken": _previous}),
    ("averages_wrong_weights", {"started": lambda self, p: p}),
    ("averages_wrong_weights", {"mixed": lambda self, a, p: self.decay * a + p}),
    ("averages_wrong_weights", {"mixed": lambda self, a, p: a + (1 - self.decay) * p}),
    ("wrong_sign", {"mixed": lambda self, a, p: self.decay * a - (1 - self.decay) * p}),
    ("changed_in_place", {"given": _overwrite}),
    ("hidden_broadcast", {"slot": lambda self, i: 0}),
]  # fmt: skip
