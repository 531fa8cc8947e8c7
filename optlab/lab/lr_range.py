"""Learning-rate range test: one run whose rate grows from step to step."""

from __future__ import annotations

import copy
import math
import operator
from typing import Any

import numpy as np

from optlab.backend import random
from optlab.backend.display import Rendered
from optlab.lab.problems.lookup import Problem, find
from optlab.lab.problems.surface import Surface
from optlab.lab.vectorized import NotOnePassError, run_ensemble
from optlab.optimizer import Optimizer
from optlab.optimizer.wrappers import Wrapper

#: The test ends where the smoothed loss is this many times the lowest.
DIVERGED = 4.0
#: Steps of the run that each rate gets for itself, on a surface without noise.
ALONE = 50


class RateRange(Rendered):
    """The result of a learning-rate range test.

    Attributes
    ----------
    problem : Surface or Network
    optimizer : Optimizer
        The template that was tested.
    rates : array, shape (steps,)
        The rate of each step that was taken.
    loss : array, shape (steps,)
        The loss before each step: the one that the rates before it have led to.
    smoothed : array, shape (steps,)
        Its exponential mean, which judges.
    wanted : int
        Steps that the test would have taken; fewer were if it diverged.
    smoothing : float
        The decay of the mean.
    all_rates : array, shape (wanted,)
        Also those that the run did not reach.
    ends : array, shape (wanted,), or None
        On a surface without noise, the loss after 50 steps from the start at each of all rates
        alone, infinite where it diverges; `suggestion` and `highest` come from it.
    """

    drawn_as = "rate_range"

    def __init__(
        self,
        problem: Problem,
        optimizer: Optimizer,
        rates: np.ndarray,
        loss: np.ndarray,
        smoothed: np.ndarray,
        wanted: int,
        smoothing: float,
        all_rates: np.ndarray,
        ends: np.ndarray | None = None,
    ) -> None:
        self.problem = problem
        self.optimizer = optimizer
        self.rates = rates
        self.loss = loss
        self.smoothed = smoothed
        self.wanted = wanted
        self.smoothing = smoothing
        self.all_rates = all_rates
        self.ends = ends

    @property
    def suggestion(self) -> float:
        """The rate to begin with, below `highest`.

        Where losses are noisy, the one at which the smoothed loss falls most steeply over the
        logarithm of the rate: it is in the middle of the fall. On a surface without noise, the one
        up to half of `highest` with which 50 steps from the start end lowest; of gradient descent
        on a narrow quadratic it is one over the largest curvature.
        """
        if self.ends is not None:
            below = self.all_rates <= max(self.highest / 2, self.all_rates[0])
            return float(f"{self.all_rates[below][int(np.argmin(self.ends[below]))]:.2g}")
        lowest = int(np.argmin(self.smoothed))
        # Of noisy losses slopes over some steps count, and the first means, of few losses, do not.
        first, apart = (min(10, lowest // 2), 5) if self.smoothing else (0, 1)
        if lowest - first < 2 * apart:
            return float(f"{self.rates[lowest]:.2g}")
        loss, rate = self.smoothed[first : lowest + 1], np.log(self.rates[first : lowest + 1])
        slope = (loss[2 * apart :] - loss[: -2 * apart]) / (rate[2 * apart :] - rate[: -2 * apart])
        return float(f"{self.rates[first + apart + int(np.argmin(slope))]:.2g}")

    @property
    def highest(self) -> float:
        """The rate above which the loss rises.

        Where losses are noisy, the one at which the smoothed loss was lowest. On a surface without
        noise, the highest one up to which 50 steps from the start end below it.
        """
        if self.ends is not None:
            above = np.flatnonzero(~(self.ends <= self.loss[0]))
            return float(self.all_rates[max(above[0] - 1, 0) if len(above) else -1])
        return float(self.rates[int(np.argmin(self.smoothed))])

    @property
    def diverged_at(self) -> float | None:
        """The rate at which the test ended early, None if it did not."""
        return float(self.rates[-1]) if len(self.rates) < self.wanted else None

    def rows(self) -> list[dict[str, float]]:
        """Return a dict for each step: rate, loss and smoothed loss."""
        return [
            {"learning rate": rate, "loss": loss, "smoothed loss": smoothed}
            for rate, loss, smoothed in zip(
                self.rates.tolist(), self.loss.tolist(), self.smoothed.tolist(), strict=True
            )
        ]

    def __repr__(self) -> str:
        end = self.diverged_at
        ends = "" if end is None else f", diverged at {end:.3g}"
        said = "lowest loss at" if self.ends is None else f"{ALONE} steps alone end lower up to"
        return (
            f"<RateRange of {type(self.optimizer).__name__} on {self.problem.title}: "
            f"{len(self.rates)} rates from {self.rates[0]:.3g} to {self.rates[-1]:.3g}; {said} "
            f"{self.highest:.3g}{ends}; suggestion {self.suggestion:g}>"
        )


def lr_range_test(
    problem: Any,
    optimizer: Optimizer,
    low: float = 1e-5,
    high: float = 10.0,
    steps: int = 200,
    start: Any = None,
    seed: int = 0,
    smoothing: float | None = None,
) -> RateRange:
    r"""Raise the learning rate from step to step in one run: where the loss falls, where it rises.

    Parameters
    ----------
    problem : Surface, Network, str or callable
        What `optlab.compare` accepts.
    optimizer : Optimizer
        A template; its rate is replaced.
    low, high : float
        The first rate and the last: :math:`\text{low} \, (\text{high} / \text{low})^{k / (n - 1)}`.
    steps : int
        The number n of rates. The test ends earlier where the smoothed loss is four times the
        lowest one, or not finite.
    start : one or two numbers, optional
        The start on a surface; by default that of the problem.
    seed : int
        Fixes initial weights and order of batches.
    smoothing : float, optional
        The decay of the exponential mean of the losses, from 0 (none) to below 1. By default 0.9
        where losses or gradients are noisy, and 0 on a surface without noise.

    Returns
    -------
    RateRange
        With ``.suggestion``, ``.highest``, ``.diverged_at`` and ``.figure()``, which a notebook
        displays.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong.

    Notes
    -----
    On a surface without noise one run misleads. Its loss falls most steeply where the sum of the
    rates so far is about one over the curvature, some 50 times below the limit of stability; and a
    steep direction, which has shrunk to rounding by then, shows that it grows again only at some
    times the limit. There each rate also runs alone, 50 steps from the start, and `suggestion` and
    `highest` come from where those runs end: on a quadratic `highest` is the limit of
    `closed_form`, to one step of the rates.

    Source: Smith 2017, "Cyclical learning rates for training neural networks", section 3.3; rates
    that grow geometrically and a smoothed loss as in fastai. One run has seen few steps of each
    rate: `best_rate` spends a whole run on each, and is the fair choice for a comparison.

    Examples
    --------
    >>> import optlab as ol
    >>> found = ol.lab.lr_range_test("digits_mlp", ol.optimizer.SGD(0.1), steps=100)
    >>> 0.01 < found.suggestion < found.highest < 10
    True
    >>> limit = ol.lab.closed_form("valley", ol.optimizer.SGD(0.1)).stability_limit
    >>> found = ol.lab.lr_range_test("valley", ol.optimizer.SGD(0.1))
    >>> limit / 3 < found.suggestion < found.highest <= limit
    True
    """
    found = find(problem)
    if not isinstance(optimizer, Optimizer) or not optimizer.is_template:
        raise TypeError(
            "lr_range_test takes an optimizer made without parameters, such as "
            f"ol.optimizer.SGD(0.1), whose rate it replaces; got {optimizer!r}."
        )
    if isinstance(optimizer, Wrapper) or optimizer.schedule is not None:
        raise TypeError(
            "lr_range_test sets the rate of every step itself: give an optimizer with a constant "
            "rate and without a wrapper."
        )
    if getattr(optimizer, "needs_closure", False):
        raise TypeError(
            f"{type(optimizer).__name__} searches for the length of its steps, and has no rate to "
            "test."
        )
    if not (0 < low < high < math.inf):
        raise ValueError(f"low and high must be 0 < low < high; got {low!r} and {high!r}.")
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 10:
        raise ValueError(f"steps must be a whole number of at least 10; got {steps!r}.")
    if smoothing is None:
        smoothing = 0.0 if isinstance(found, Surface) and not found.noise else 0.9
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be from 0 to below 1; got {smoothing!r}.")
    rates = np.geomspace(low, high, int(steps))
    losses, smoothed = _run(found, optimizer, rates, start, operator.index(seed), smoothing)
    ends = None
    if isinstance(found, Surface) and not found.noise:
        ends = _alone(found, optimizer, rates, start)
    taken = rates[: len(losses)]
    return RateRange(found, optimizer, taken, losses, smoothed, int(steps), smoothing, rates, ends)


def _alone(surface: Surface, template: Optimizer, rates: np.ndarray, start: Any) -> np.ndarray:
    """Return the loss after some steps from the start at each rate; infinite if it diverges."""
    point = surface.start if start is None else surface.checked_start(start)
    members = [copy.copy(template) for _ in rates]
    for member, rate in zip(members, rates.tolist(), strict=True):
        member.settings = {**template.settings, "learning_rate": rate}
    try:
        starts = np.tile(np.array(point), (len(rates), 1))
        ends = run_ensemble(surface, members, starts, ALONE, 0).loss[:, -1]
    except NotOnePassError:
        ends = np.array([_end(surface, member, point) for member in members])
    return np.where(np.isfinite(ends), ends, np.inf)


def _end(surface: Surface, template: Optimizer, start: Any) -> float:
    """Return the loss after some steps at the rate of a template."""
    run = surface.run(start, 0)
    with random.scope("optimizer", seed=0):
        optimizer = copy.deepcopy(template).bind(run.parameters)
    with random.scope("race", seed=0), np.errstate(all="ignore"):
        for step in range(ALONE):
            if not math.isfinite(float(run.backward(step))):
                return math.inf
            optimizer.step()
            optimizer.clear_grad()
        return run.loss()


def _run(
    problem: Problem,
    template: Optimizer,
    rates: np.ndarray,
    start: Any,
    seed: int,
    smoothing: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss before each step and its exponential mean, until it diverges."""
    run = problem.run(start, seed)
    with random.scope("optimizer", seed=seed):
        optimizer = copy.deepcopy(template).bind(run.parameters)
    losses: list[float] = []
    smoothed: list[float] = []
    mean = 0.0
    with random.scope("race", seed=seed), np.errstate(all="ignore"):
        for step, rate in enumerate(rates.tolist()):
            loss = float(run.backward(step))
            if not math.isfinite(loss):
                if not losses:
                    raise ValueError(
                        f"the loss at the start ({run.place()}) is {loss}; choose another start."
                    )
                break
            mean = smoothing * mean + (1 - smoothing) * loss
            losses.append(loss)
            smoothed.append(mean / (1 - smoothing ** (step + 1)))
            lowest = min(smoothed)
            if smoothed[-1] > lowest + (DIVERGED - 1) * abs(lowest) and len(smoothed) > 1:
                break
            optimizer.set_lr(rate)
            optimizer.step()
            optimizer.clear_grad()
    return np.array(losses), np.array(smoothed)
