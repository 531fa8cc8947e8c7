"""Piecewise constant schedules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from optlab.optimizer.lr import arguments
from optlab.optimizer.lr.base import LRScheduler


class PiecewiseDecay(LRScheduler):
    r"""Piecewise constant rates from a list, each up to a boundary.

    .. math::
        \eta_e = v_i \quad \text{for } B_{i-1} \le e < B_i

    Parameters
    ----------
    boundaries : list of int
        The epochs B at which the rate changes, increasing.
    values : list of float
        The rates v, one more than there are boundaries.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    Source: the documentation of Paddle.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.PiecewiseDecay([2, 3], [1.0, 0.5, 0.1]).preview(5)
    [1.0, 1.0, 0.5, 0.1, 0.1]
    """

    def __init__(
        self,
        boundaries: Sequence[int],
        values: Sequence[float],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.boundaries = arguments.increasing("boundaries", boundaries)
        given = arguments.as_list("values", values)
        self.values = [arguments.rate(f"values[{at}]", one) for at, one in enumerate(given)]
        if not self.boundaries:
            raise ValueError("boundaries is empty; give the epochs at which the rate changes.")
        if len(self.values) != len(self.boundaries) + 1:
            raise ValueError(
                f"values must have one rate more than there are boundaries: {len(self.boundaries)} "
                f"boundaries need {len(self.boundaries) + 1} values; got {len(self.values)}."
            )
        super().__init__(self.values[0], last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        return self.values[sum(self.last_epoch >= boundary for boundary in self.boundaries)]

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        return math.ceil(1.3 * self.boundaries[-1]) + 1


class StepDecay(LRScheduler):
    r"""Decay by a factor every `step_size` epochs.

    .. math::
        \eta_e = b \, \gamma^{\lfloor e / s \rfloor}

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    step_size : int
        Number of epochs s of constant rate.
    gamma : float
        The factor, at least 0 and below 1.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    Source: the documentation of Paddle; proved near-optimal for least squares by Ge et al. 2019,
    arXiv 1904.12838.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.StepDecay(0.5, step_size=2, gamma=0.5).preview(5)
    [0.5, 0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self,
        learning_rate: Any,
        step_size: int,
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.step_size = arguments.integer("step_size", step_size, 1)
        self.gamma = arguments.number("gamma", gamma, least=0, below=1)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        return 4 * self.step_size


class MultiStepDecay(LRScheduler):
    r"""Decay by a factor at given epochs.

    .. math::
        \eta_e = b \, \gamma^{\#\{i \,:\, M_i \le e\}}

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    milestones : list of int
        The epochs M, increasing.
    gamma : float
        The factor, at least 0 and below 1.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    Source: He et al. 2016, arXiv 1512.03385, section 4.2 (milestones 32,000 and 48,000).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.MultiStepDecay(0.5, milestones=[2, 3], gamma=0.5).preview(5)
    [0.5, 0.5, 0.25, 0.125, 0.125]
    """

    def __init__(
        self,
        learning_rate: Any,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.milestones = arguments.increasing("milestones", milestones)
        self.gamma = arguments.number("gamma", gamma, least=0, below=1)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        passed = sum(self.last_epoch >= milestone for milestone in self.milestones)
        return self.base_lr * self.gamma**passed

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        return math.ceil(1.3 * max(self.milestones, default=75)) + 1
