"""Schedules from a user's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optlab.autograd.tensor.conversions import as_setting
from optlab.optimizer.lr import arguments
from optlab.optimizer.lr.base import LRScheduler


class LambdaDecay(LRScheduler):
    r"""Product of the base rate and a function of the epoch.

    .. math::
        \eta_e = b \, f(e)

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    lr_lambda : callable
        The function f, from the epoch to a number of at least 0.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; in a step, if f returns no number, or a negative one.

    Notes
    -----
    The function is not part of the state; pickle supports named functions but no lambda.

    Source: the documentation of Paddle.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.LambdaDecay(0.5, lambda e: 0.5**e).preview(3)
    [0.5, 0.25, 0.125]
    """

    def __init__(
        self,
        learning_rate: Any,
        lr_lambda: Callable[[int], Any],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.lr_lambda = arguments.function("lr_lambda", lr_lambda, "lambda epoch: 0.95**epoch")
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        epoch = self.last_epoch
        return self.base_lr * as_setting(self.lr_lambda(epoch), f"lr_lambda({epoch})")


class MultiplicativeDecay(LRScheduler):
    r"""Cumulative product of a function of the epoch with the base rate.

    .. math::
        \eta_e = b \prod_{i=1}^{e} f(i)

    Parameters
    ----------
    learning_rate : float
        The base rate b.
    lr_lambda : callable
        The function f, from the epoch to a number of at least 0. It is called once per epoch, in
        order, so it should depend on the epoch alone.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; in a step, if f returns no number, or a negative one.

    Notes
    -----
    Source: the documentation of Paddle.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.MultiplicativeDecay(0.5, lambda e: 1 / e).preview(4)
    [0.5, 0.5, 0.25, 0.08333333333333333]
    """

    def __init__(
        self,
        learning_rate: Any,
        lr_lambda: Callable[[int], Any],
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.lr_lambda = arguments.function("lr_lambda", lr_lambda, "lambda epoch: 0.95")
        self._reached = (0, arguments.rate("learning_rate", learning_rate))
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        known, product = self._reached  # so that n steps call f n times, not n * n / 2 times
        if known > self.last_epoch:
            known, product = 0, self.base_lr
        for epoch in range(known + 1, self.last_epoch + 1):
            product *= as_setting(self.lr_lambda(epoch), f"lr_lambda({epoch})")
        self._reached = (self.last_epoch, product)
        return product
