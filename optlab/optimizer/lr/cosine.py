"""Schedules along a cosine."""

from __future__ import annotations

import math
from typing import Any

from optlab.optimizer.lr import arguments
from optlab.optimizer.lr.base import LRScheduler, whole


class CosineAnnealingDecay(LRScheduler):
    r"""Cosine annealing: decrease along half a period of the cosine.

    .. math::
        \eta_e = \eta_{\text{min}} + \frac{b - \eta_{\text{min}}}{2}
        \left(1 + \cos \frac{\pi e}{T_{\text{max}}}\right)

    Parameters
    ----------
    learning_rate : float
        The base rate b, at e = 0.
    T_max : int
        Length of the decrease in epochs. After it the rate rises again, periodically.
    eta_min : float
        The lowest rate.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    A step computes the rate from the previous one, as in Paddle, so that the last digits agree (and
    a rate changed by hand keeps its ratio); a jump (``step(epoch=...)``) uses the formula.

    Source: Loshchilov and Hutter 2017, arXiv 1608.03983, equation 5, without restarts.

    Examples
    --------
    >>> import optlab as ol
    >>> [round(rate, 3) for rate in ol.optimizer.lr.CosineAnnealingDecay(0.5, T_max=4).preview(7)]
    [0.5, 0.427, 0.25, 0.073, 0.0, 0.073, 0.25]
    """

    def __init__(
        self,
        learning_rate: Any,
        T_max: int,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.T_max = arguments.integer("T_max", T_max, 1)
        self.eta_min = arguments.rate("eta_min", eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        return self.last_lr

    def _wave(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _next_lr(self) -> float:
        epoch = self.last_epoch
        if epoch == 0:
            return self.base_lr
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the minimum gives no ratio
            first = (self.base_lr - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
            return self.last_lr + first
        ratio = self._wave(epoch) / self._wave(epoch - 1)
        return ratio * (self.last_lr - self.eta_min) + self.eta_min

    def _lr_at(self) -> float:
        return self.eta_min + (self.base_lr - self.eta_min) * self._wave(self.last_epoch) / 2

    @property
    def horizon(self) -> int:
        """Number of steps of the decrease, without the later rise."""
        return self.T_max + 1


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Cosine annealing with warm restarts: repeated decreases, each from the base rate.

    .. math::
        \eta_e = \eta_{\text{min}} + \frac{b - \eta_{\text{min}}}{2}
        \left(1 + \cos \frac{\pi T_{\text{cur}}}{T_i}\right)

    Parameters
    ----------
    learning_rate : float
        The base rate b, right after a restart.
    T_0 : int
        Length of the first decrease in epochs.
    T_mult : int
        Ratio of the lengths of consecutive decreases, at least 1.
    eta_min : float
        The lowest rate.
    last_epoch, verbose
        As in `LRScheduler`.

    Attributes
    ----------
    T_cur : float
        Epochs since the last restart.
    T_i : int
        Length of the current decrease.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    ``step(epoch=...)`` takes fractions: ``step(epoch + batch / batches)``. A step without an
    argument then advances by 1 from there; ``last_epoch`` is rounded down.

    Source: Loshchilov and Hutter 2017, arXiv 1608.03983, equation 5.

    Examples
    --------
    >>> import optlab as ol
    >>> schedule = ol.optimizer.lr.CosineAnnealingWarmRestarts(0.5, T_0=2, T_mult=2)
    >>> [round(rate, 3) for rate in schedule.preview(7)]
    [0.5, 0.25, 0.5, 0.427, 0.25, 0.073, 0.5]
    """

    def __init__(
        self,
        learning_rate: Any,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.T_0 = arguments.integer("T_0", T_0, 1)
        self.T_mult = arguments.integer("T_mult", T_mult, 1)
        self.eta_min = arguments.rate("eta_min", eta_min)
        self.T_cur: float = -1
        self.T_i = self.T_0
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return self.eta_min + (self.base_lr - self.eta_min) * wave / 2

    @whole
    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or jump to a given one, which may be a fraction.

        Raises
        ------
        TypeError, ValueError
            If `epoch` is not a number of at least 0. Nothing is changed then.

        Examples
        --------
        >>> import optlab as ol
        >>> schedule = ol.optimizer.lr.CosineAnnealingWarmRestarts(0.5, T_0=10)
        >>> schedule.step(12.5)
        >>> schedule.T_cur, schedule.last_epoch
        (2.5, 12)
        """
        if epoch is None:
            self.last_epoch += 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            found = arguments.number("epoch", epoch, least=0)
            self.T_cur, self.T_i = self._position(found)
            self.last_epoch = math.floor(found)
        self.last_lr = self._checked(self.get_lr())
        self._print_rate()

    def _position(self, epoch: float) -> tuple[float, int]:
        """Return the epochs since the last restart and the length of the current decrease.

        In integers: a logarithm would miss restarts by rounding.
        """
        length = self.T_0
        if self.T_mult == 1:
            return epoch % length, length
        while epoch >= length:
            epoch -= length
            length *= self.T_mult
        return epoch, length

    def state_keys(self) -> list[str]:
        """Name the attributes that `state_dict` holds."""
        self.keys = ["last_epoch", "last_lr", "T_cur", "T_i"]
        return self.keys

    def _with_missing_keys(self, state: dict[str, Any]) -> dict[str, Any]:
        if "schedule" in state or "T_cur" in state or "T_i" in state or "last_epoch" not in state:
            return state
        # States of Paddle lack the restarts; they follow from the whole epochs.
        place, length = self._position(self._state_value("last_epoch", state["last_epoch"], ""))
        return {**state, "T_cur": place, "T_i": length}

    def _state_value(self, key: str, value: Any, where: str) -> Any:
        if key == "T_i":
            return arguments.integer(where + key, super()._state_value(key, value, where), 1)
        if key == "T_cur":
            return arguments.number(where + key, value, least=0)
        return super()._state_value(key, value, where)

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        return self.T_0 * (1 + self.T_mult + self.T_mult**2)
