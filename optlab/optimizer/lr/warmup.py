"""Schedules with a linear warm-up."""

from __future__ import annotations

import math
from typing import Any

from optlab.optimizer.lr import arguments
from optlab.optimizer.lr.base import LRScheduler
from optlab.optimizer.lr.plateau import ReduceOnPlateau


class LinearWarmup(LRScheduler):
    r"""Linear warm-up, followed by a constant rate or another schedule.

    .. math::
        \eta_e = \begin{cases}
        b_{\text{start}} + (b_{\text{end}} - b_{\text{start}}) \, e / W & e < W \\
        \eta^{\text{inner}}_{e - W} & e \ge W
        \end{cases}

    Parameters
    ----------
    learning_rate : float or LRScheduler
        The rate after the warm-up. An inner schedule is stepped by this one; its epoch 0 is W.
    warmup_steps : int
        The length W of the warm-up.
    start_lr, end_lr : float
        First and last rate of the warm-up. There is no jump if `end_lr` is the rate after it.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, such as a `ReduceOnPlateau`, which needs metrics.

    Notes
    -----
    The state contains that of the inner schedule under ``"LinearWarmup_LR"``.

    Source: Goyal et al. 2017, arXiv 1706.02677, section 2.2.

    Examples
    --------
    >>> import optlab as ol
    >>> after = ol.optimizer.lr.StepDecay(0.5, step_size=2)
    >>> ol.optimizer.lr.LinearWarmup(after, 2, start_lr=0.0, end_lr=0.5).preview(6)
    [0.0, 0.25, 0.5, 0.5, 0.05, 0.05]
    """

    def __init__(
        self,
        learning_rate: Any,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        if isinstance(learning_rate, ReduceOnPlateau):
            raise TypeError(
                "LinearWarmup counts epochs, but ReduceOnPlateau needs metrics; after the warm-up "
                "give it to the optimizer with set_lr_scheduler."
            )
        if not isinstance(learning_rate, LRScheduler):
            learning_rate = arguments.rate("learning_rate", learning_rate)
        self.learning_rate: float | LRScheduler = learning_rate
        self.warmup_steps = arguments.integer("warmup_steps", warmup_steps, 1)
        self.start_lr = arguments.rate("start_lr", start_lr)
        self.end_lr = arguments.rate("end_lr", end_lr)
        if self.end_lr <= self.start_lr:
            raise ValueError(
                f"end_lr must be above start_lr: a warm-up rises; got start_lr={self.start_lr!r} "
                f"and end_lr={self.end_lr!r}."
            )
        super().__init__(self.start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        return self.last_lr

    def _next_lr(self) -> float:
        if self.last_epoch < self.warmup_steps:
            rise = (self.end_lr - self.start_lr) * self.last_epoch / self.warmup_steps
            return rise + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return self.learning_rate

    _lr_at = _next_lr

    def _nested(self) -> dict[str, LRScheduler]:
        inner = self.learning_rate
        return {"LinearWarmup_LR": inner} if isinstance(inner, LRScheduler) else {}

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        inner = self.learning_rate
        after = inner.horizon if isinstance(inner, LRScheduler) else self.warmup_steps
        return self.warmup_steps + after

    @property
    def steps_left(self) -> int | None:
        """Number of rates from the current one on; None if there is no end."""
        inner = self.learning_rate
        left = inner.steps_left if isinstance(inner, LRScheduler) else None
        return None if left is None else max(0, self.warmup_steps - self.last_epoch) + left


class LinearLR(LRScheduler):
    r"""Linear change between two fractions of the base rate, constant afterwards.

    .. math::
        \eta_e = b \left(f_0 + (f_1 - f_0) \frac{\min(e, T)}{T}\right)

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    total_steps : int
        The length T.
    start_factor : float
        The fraction at the start, above 0 and at most 1.
    end_factor : float
        The fraction at the end, at least 0 and at most 1.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    A step multiplies the previous rate, as in Paddle, so that the last digits agree; a jump
    (``step(epoch=...)``) uses the formula.

    Source: Goyal et al. 2017, arXiv 1706.02677, section 2.2 (from a small fraction to 1).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.LinearLR(0.5, total_steps=4, start_factor=0.5).preview(6)
    [0.25, 0.3125, 0.375, 0.4375, 0.5, 0.5]
    """

    def __init__(
        self,
        learning_rate: Any,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.total_steps = arguments.integer("total_steps", total_steps, 1)
        self.start_factor = arguments.number("start_factor", start_factor, above=0, most=1)
        self.end_factor = arguments.number("end_factor", end_factor, least=0, most=1)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        return self.last_lr

    def _next_lr(self) -> float:
        epoch = self.last_epoch
        if epoch == 0:
            return self.base_lr * self.start_factor
        if epoch > self.total_steps:
            return self.last_lr
        change = self.end_factor - self.start_factor
        before = self.total_steps * self.start_factor + (epoch - 1) * change
        # A decrease to zero ends within rounding of it, on either side.
        return max(0.0, self.last_lr * (1.0 + change / before))

    def _lr_at(self) -> float:
        share = min(self.last_epoch, self.total_steps) / self.total_steps
        factor = self.start_factor + (self.end_factor - self.start_factor) * share
        return self.base_lr * factor

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        return math.ceil(1.25 * self.total_steps) + 1
