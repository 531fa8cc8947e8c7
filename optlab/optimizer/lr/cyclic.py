"""Cyclic schedules: one cycle, or repeated cycles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from optlab.autograd.tensor.conversions import as_setting
from optlab.optimizer.lr import arguments
from optlab.optimizer.lr.base import LRScheduler


class OneCycleLR(LRScheduler):
    r"""One-cycle policy: rise to a high rate, then decrease far below the initial one.

    .. math::
        \eta_e = r_1 + \frac{r_0 - r_1}{2} (1 + \cos \pi x), \quad
        x = \frac{e - e_0}{e_1 - e_0}

    in a phase from the rate :math:`r_0` at :math:`e_0` to :math:`r_1` at :math:`e_1`; linear if
    ``anneal_strategy="linear"``.

    Parameters
    ----------
    max_learning_rate : float
        The highest rate.
    total_steps : int
        The length T of the training in updates, with a step after each.
    divide_factor : float
        Ratio of the highest to the initial rate, above 0.
    end_learning_rate : float
        The last rate.
    phase_pct : float
        The fraction p of the rise, in [0, 1]: it ends at step p T - 1.
    anneal_strategy : {"cos", "linear"}
        The shape of rise and decrease.
    three_phase : bool
        Decrease to the initial rate first, as long as the rise (p is then below 0.5), and only then
        to the last rate.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid; in a step, if it would exceed `total_steps`.

    Notes
    -----
    The last rate is reached at e = T - 1, for the last update. The step after it extrapolates the
    formula, as in Paddle; a linear phase may then be below 0. No update should use it.

    Source: Smith and Topin 2018, arXiv 1708.07120.

    Examples
    --------
    >>> import optlab as ol
    >>> schedule = ol.optimizer.lr.OneCycleLR(1.0, total_steps=5, phase_pct=0.6, divide_factor=10)
    >>> [round(rate, 4) for rate in schedule.preview(5)]
    [0.1, 0.55, 1.0, 0.5, 0.0001]
    """

    _lowest_rate = -math.inf

    def __init__(
        self,
        max_learning_rate: Any,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.max_learning_rate = arguments.rate("max_learning_rate", max_learning_rate)
        self.total_steps = arguments.integer("total_steps", total_steps, 1)
        self.divide_factor = arguments.number("divide_factor", divide_factor, above=0)
        self.end_learning_rate = arguments.rate("end_learning_rate", end_learning_rate)
        self.phase_pct = arguments.number("phase_pct", phase_pct, least=0, most=1)
        self.anneal_strategy = arguments.choice(
            "anneal_strategy", anneal_strategy, ("cos", "linear")
        )
        self.three_phase = arguments.flag("three_phase", three_phase)
        if three_phase and self.phase_pct >= 0.5:
            raise ValueError(
                "phase_pct must be below 0.5 with three_phase=True, where rise and fall take as "
                f"long; got {self.phase_pct!r}."
            )
        super().__init__(self.max_learning_rate / self.divide_factor, last_epoch, verbose)

    def _phases(self) -> list[tuple[float, float, float, float]]:
        """Return first and last step, and first and last rate, of every phase."""
        rise = self.phase_pct * self.total_steps
        ends: list[float] = [0, rise - 1]
        rates = [self.base_lr, self.max_learning_rate]
        if self.three_phase:
            ends.append(2 * self.phase_pct * self.total_steps - 2)
            rates.append(self.base_lr)
        ends.append(self.total_steps - 1)
        rates.append(self.end_learning_rate)
        return list(zip(ends, ends[1:], rates, rates[1:], strict=False))

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        epoch = self.last_epoch
        if epoch > self.total_steps:
            raise ValueError(
                f"this OneCycleLR was made for total_steps={self.total_steps}, and step {epoch} is "
                "past the end. Count the updates of the whole training (epochs times batches), or "
                "stop stepping it."
            )
        phases = self._phases()
        begin, end, first, last = next((phase for phase in phases if epoch <= phase[1]), phases[-1])
        share = (epoch - begin) / (end - begin) if end != begin else 1.0
        if self.anneal_strategy == "cos":
            return last + (first - last) / 2.0 * (math.cos(math.pi * share) + 1)
        return (last - first) * share + first

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        return self.total_steps

    @property
    def steps_left(self) -> int:
        """Number of rates from the current one on."""
        return max(1, self.total_steps - self.last_epoch)


class CyclicLR(LRScheduler):
    r"""Cyclical learning rates: linear rises and decreases between two rates.

    .. math::
        \eta_e = b + (b_{\text{max}} - b) \, h(e) \, s(e)

    where h rises from 0 to 1 in ``step_size_up`` epochs and returns in ``step_size_down``. In cycle
    c (1, 2, ...) the scale s is 1 (``"triangular"``), :math:`2^{1-c}` (``"triangular2"``) or
    :math:`\gamma^e` (``"exp_range"``).

    Parameters
    ----------
    base_learning_rate, max_learning_rate : float
        The lowest rate b and the highest.
    step_size_up : int
        Length of the rise in epochs.
    step_size_down : int, optional
        Length of the decrease; by default that of the rise.
    mode : {"triangular", "triangular2", "exp_range"}
        The change of the amplitude. Not used with a `scale_fn`.
    exp_gamma : float
        The factor of ``"exp_range"``, at least 0.
    scale_fn : callable, optional
        A custom scale s, as a function of the cycle or of the epoch.
    scale_mode : {"cycle", "iterations"}
        The argument of `scale_fn`: the number of the cycle, or the epoch.
    last_epoch, verbose
        As in `LRScheduler`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    Source: Smith 2017, arXiv 1506.01186, section 3.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.optimizer.lr.CyclicLR(0.1, 0.5, step_size_up=2, mode="triangular2").preview(7)
    [0.1, 0.30000000000000004, 0.5, 0.30000000000000004, 0.1, 0.2, 0.30000000000000004]
    """

    def __init__(
        self,
        base_learning_rate: Any,
        max_learning_rate: Any,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], Any] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.base_learning_rate = arguments.rate("base_learning_rate", base_learning_rate)
        self.max_learning_rate = arguments.rate("max_learning_rate", max_learning_rate)
        if self.max_learning_rate < self.base_learning_rate:
            raise ValueError(
                "max_learning_rate must be at least base_learning_rate; got "
                f"{self.max_learning_rate!r} and {self.base_learning_rate!r}."
            )
        self.step_size_up = arguments.integer("step_size_up", step_size_up, 1)
        if step_size_down is not None:
            step_size_down = arguments.integer("step_size_down", step_size_down, 1)
        self.step_size_down = step_size_down
        self.mode = mode
        if scale_fn is None:
            arguments.choice("mode", mode, ("triangular", "triangular2", "exp_range"))
        else:
            arguments.function("scale_fn", scale_fn, "lambda cycle: 0.9**cycle")
        self.exp_gamma = arguments.number("exp_gamma", exp_gamma, least=0)
        self.scale_fn = scale_fn
        self.scale_mode = arguments.choice("scale_mode", scale_mode, ("cycle", "iterations"))
        super().__init__(self.base_learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """Return the rate of the current epoch."""
        epoch = self.last_epoch
        up = float(self.step_size_up)
        size = up + (up if self.step_size_down is None else self.step_size_down)
        top = up / size
        cycle = 1 + epoch // size
        place = 1.0 + epoch / size - cycle
        height = place / top if place <= top else (1 - place) / (1 - top)
        amplitude = self.max_learning_rate - self.base_lr
        return self.base_lr + amplitude * height * self._scale(cycle, epoch)

    def _scale(self, cycle: float, epoch: int) -> float:
        if self.scale_fn is not None:
            place = cycle if self.scale_mode == "cycle" else epoch
            return as_setting(self.scale_fn(place), f"scale_fn({place})")
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            return math.ldexp(1.0, 1 - int(cycle))  # 2.0**(cycle - 1) would overflow eventually
        return self.exp_gamma**epoch

    @property
    def horizon(self) -> int:
        """Number of steps that shows the course of the schedule."""
        down = self.step_size_up if self.step_size_down is None else self.step_size_down
        return 4 * (self.step_size_up + down) + 1
