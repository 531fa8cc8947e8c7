"""Schedules that decay smoothly with the epoch."""

from __future__ import annotations

import math
from typing import Any

from optlab.optimizer.lr import arguments
from optlab.optimizer.lr.base import LRScheduler


class NoamDecay(LRScheduler):
    r"""Noam schedule of the Transformer: linear warm-up, then inverse square root decay.

    .. math::
        \eta_e = b \, d^{-1/2} \min(e^{-1/2}, \; e \, w^{-3/2})

    Parameters
    ----------
    d_model : float
        The width d of the model, above 0.
    warmup_steps : int
        The step w of the highest rate.
    learning_rate : float
        The factor b.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    At e = 0 the rate is 0: an update before the first step of the schedule changes nothing.

    Source: Vaswani et al. 2017, arXiv 1706.03762, equation 3.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.NoamDecay(d_model=64, warmup_steps=4).preview(6)
    [0.0, 0.015625, 0.03125, 0.046875, 0.0625, 0.05590169943749474]
    """

    def __init__(
        self,
        d_model: float,
        warmup_steps: int,
        learning_rate: Any = 1.0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.d_model = arguments.number("d_model", d_model, above=0)
        self.warmup_steps = arguments.number("warmup_steps", warmup_steps, above=0)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        fall = 1.0 if self.last_epoch == 0 else self.last_epoch**-0.5
        rise = self.warmup_steps**-1.5 * self.last_epoch
        return float(self.base_lr * self.d_model**-0.5 * min(fall, rise))

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        return math.ceil(5 * self.warmup_steps)


class NaturalExpDecay(LRScheduler):
    r"""Exponential decay with rate gamma.

    .. math::
        \eta_e = b \, \exp(-\gamma e)

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    gamma : float
        The decay rate, above 0.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    Source: the documentation of Paddle. It is `ExponentialDecay` with exp(-gamma) for its gamma.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.NaturalExpDecay(0.5, gamma=0.1).preview(3)
    [0.5, 0.45241870901797976, 0.4093653765389909]
    """

    def __init__(
        self, learning_rate: Any, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = arguments.number("gamma", gamma, above=0)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        return self.base_lr * math.exp(-1 * self.gamma * self.last_epoch)


class InverseTimeDecay(LRScheduler):
    r"""Inverse time decay.

    .. math::
        \eta_e = \frac{b}{1 + \gamma e}

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    gamma : float
        The decay rate, at least 0.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    The rates have an infinite sum and finite squares, under which stochastic gradient descent
    converges on convex problems (Robbins and Monro 1951, Annals of Mathematical Statistics 22).

    Source: Bottou 2012, "Stochastic gradient descent tricks".

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.InverseTimeDecay(0.5, gamma=1.0).preview(4)
    [0.5, 0.25, 0.16666666666666666, 0.125]
    """

    def __init__(
        self, learning_rate: Any, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = arguments.number("gamma", gamma, least=0)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class ExponentialDecay(LRScheduler):
    r"""Exponential decay by a constant factor per epoch.

    .. math::
        \eta_e = b \, \gamma^e

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    gamma : float
        The factor, above 0 and below 1.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    Source: the documentation of Paddle; studied by Li et al. 2021, arXiv 2002.05273.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.ExponentialDecay(0.5, gamma=0.5).preview(4)
    [0.5, 0.25, 0.125, 0.0625]
    """

    def __init__(
        self, learning_rate: Any, gamma: float, last_epoch: int = -1, verbose: bool = False
    ) -> None:
        self.gamma = arguments.number("gamma", gamma, above=0, below=1)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        return self.base_lr * self.gamma**self.last_epoch


class PolynomialDecay(LRScheduler):
    r"""Polynomial decay: a power of the remaining time.

    .. math::
        \eta_e = (b - b_{\text{end}}) \left(1 - \frac{\min(e, S)}{S}\right)^{\text{power}} + b_{\text{end}}

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    decay_steps : int
        The length S.
    end_lr : float
        The rate at the end.
    power : float
        Above 0; 1 is linear.
    cycle : bool
        Instead of a constant rate after the end, extend S to its next multiple,
        :math:`S \lceil e / S \rceil`: the rate jumps up after every S epochs.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    Source: Liu et al. 2015, arXiv 1506.04579 (the "poly" policy).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.PolynomialDecay(0.5, decay_steps=4, end_lr=0.0).preview(6)
    [0.5, 0.375, 0.25, 0.125, 0.0, 0.0]
    """  # noqa: E501 - a formula on one line

    def __init__(
        self,
        learning_rate: Any,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.decay_steps = arguments.integer("decay_steps", decay_steps, 1)
        self.end_lr = arguments.rate("end_lr", end_lr)
        self.power = arguments.number("power", power, above=0)
        self.cycle = arguments.flag("cycle", cycle)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        epoch, length = self.last_epoch, self.decay_steps
        if self.cycle:
            length *= math.ceil(epoch / length) or 1
        else:
            epoch = min(epoch, length)
        left = 1 - epoch / length
        return float((self.base_lr - self.end_lr) * left**self.power + self.end_lr)

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        return 3 * self.decay_steps if self.cycle else math.ceil(1.25 * self.decay_steps) + 1
