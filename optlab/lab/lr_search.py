"""Learning-rate search: each rate of a ladder is tried and judged by the resulting loss."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from optlab.backend import random
from optlab.backend.extras import needed_for
from optlab.lab.evaluation_budget import evaluation_weights, run_updates
from optlab.lab.problems.lookup import Problem, find
from optlab.lab.problems.networks import Network, NetworkRun
from optlab.lab.problems.surface import Surface
from optlab.lab.sweep import LADDER
from optlab.optimizer import Optimizer
from optlab.optimizer.wrappers import layers_of


class RateSearch:
    """The results of a learning-rate search.

    Attributes
    ----------
    problem : Surface or Network
        The training problem; of a network, with the validation part split off.
    rates : tuple of float
        The rates that were tried, lowest first.
    loss : array, shape (rates, seeds)
        The criterion: infinite if a run diverged.
    steps : int
        Gradient evaluations per run.
    seeds : tuple of int
    criterion : str
        The name of `loss`.
    """

    def __init__(
        self,
        problem: Problem,
        make: Callable[[float], Optimizer],
        tried: dict[float, list[float]],
        steps: int,
        seeds: tuple[int, ...],
    ) -> None:
        self.problem = problem
        self.rates = tuple(sorted(tried))
        self.loss = np.array([tried[rate] for rate in self.rates])
        self.steps = steps
        self.seeds = seeds
        network = isinstance(problem, Network)
        self.criterion = "validation loss" if network else "final loss"
        self._make = make

    @property
    def rate(self) -> float:
        """The rate with the lowest mean loss over the seeds."""
        return self.rates[self._best]

    @property
    def best_loss(self) -> float:
        """The mean loss of that rate over the seeds."""
        return float(self.loss[self._best].mean())

    @property
    def optimizer(self) -> Optimizer:
        """A template with that rate, for `optlab.compare`."""
        return self._make(self.rate)

    @property
    def end(self) -> str | None:
        """The end of the ladder at which that rate is, "lowest" or "highest", if any."""
        if self._best == 0:
            return "lowest"
        return "highest" if self._best == len(self.rates) - 1 else None

    @property
    def _best(self) -> int:
        return int(np.argmin(self.loss.mean(axis=1)))

    def table(self) -> Any:
        """Return the losses as a pandas DataFrame, one row per rate, one column per seed."""
        with needed_for("RateSearch.table()"):
            import pandas as pd

        columns = [f"seed {seed}" for seed in self.seeds]
        return pd.DataFrame(self.loss, pd.Index(self.rates, name="learning rate"), columns)

    def __repr__(self) -> str:
        where = f" ({self.end} of them)" if self.end else ""
        seeds = f"seeds {', '.join(map(str, self.seeds))}" if len(self.seeds) > 1 else ""
        seeds = seeds or f"seed {self.seeds[0]}"
        return (
            f"<RateSearch on {self.problem.title}: best of {len(self.rates)} rates from "
            f"{self.rates[0]:g} to {self.rates[-1]:g} is {self.rate:g}{where}, {self.criterion} "
            f"{self.best_loss:.4g} after {self.steps} steps, {seeds}>"
        )


def best_rate(
    problem: Any,
    optimizer: Any,
    rates: Iterable[float] = LADDER,
    start: Any = None,
    steps: int = 200,
    seeds: Sequence[int] = (0,),
    widen: int = 0,
    validation: float | None = None,
) -> RateSearch:
    """Choose the learning rate of an optimizer: try a ladder of rates with the same budget.

    A network is trained on a part of its training data and judged by the loss on the rest; its
    held-out data are not used and stay valid for the comparison that follows. An optimizer with an
    average (``ExponentialMovingAverage.around``) is judged by its averages, as in the comparison. A
    surface is judged by the loss after the last step.

    Parameters
    ----------
    problem : Surface, Network, str or callable
        What `optlab.compare` accepts.
    optimizer : Optimizer or callable
        A template, whose rate is replaced; or a function from a rate to a template, such as
        ``ol.optimizer.Adam`` or ``lambda rate: ol.optimizer.Adam(rate, amsgrad=True)``.
    rates : sequence of float
        The ladder; by default 1e-4, 2e-4, 5e-4, ... 1.
    start : vector of numbers, optional
        The start on a surface; by default that of the problem.
    steps : int
        Gradient evaluations per run.
    seeds : sequence of int
        A rate is judged by its mean over these; better not those of the comparison. Several are for
        random runs: networks, `optlab.problems.noisy`, rules that draw.
    widen : int
        Up to this many rungs (1, 2 or 5 times a power of ten) are added while the best rate is at
        an end of the ladder.
    validation : float, optional
        The share of a network's training data for validation, by default 0.2. Surfaces have no
        data.

    Returns
    -------
    RateSearch
        With ``.rate``, ``.end`` (whether it is at an end of the ladder), ``.optimizer`` (a template
        with that rate) and ``.table()``.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or all runs diverged.

    Examples
    --------
    >>> import optlab as ol
    >>> found = ol.lab.best_rate("beale", ol.optimizer.Adam, steps=100)
    >>> found.rate
    0.5
    >>> race = ol.compare("beale", {"Adam": found.optimizer}, steps=100)
    >>> race.final_loss["Adam"] == found.best_loss
    True
    """
    found = find(problem, start)
    if isinstance(found, Network):
        found = found.with_validation(0.2 if validation is None else validation)
    elif validation is not None:
        raise TypeError(
            f"validation={validation!r} is the share of a network's training data that judges, but "
            f"{found.title} is a surface, which has no data: it is judged by the loss after the "
            "last step. Leave validation out."
        )
    make = _template_factory(optimizer)
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1; got {steps!r}.")
    if isinstance(widen, bool) or not isinstance(widen, (int, np.integer)) or widen < 0:
        raise ValueError(f"widen must be a whole number of at least 0; got {widen!r}.")
    if not isinstance(rates, Iterable) or isinstance(rates, str):
        raise TypeError(
            f"rates must be a list of rates to try, such as [0.1, 0.01]; got {rates!r}."
        )
    chosen = (seeds,) if isinstance(seeds, (int, np.integer)) else tuple(seeds)
    chosen = tuple(operator.index(seed) for seed in chosen)
    ladder = sorted({float(rate) for rate in rates})
    if not chosen or not ladder:
        raise ValueError("best_rate needs at least one rate and one seed; got none.")
    if not (ladder[0] > 0 and all(map(math.isfinite, ladder))):
        raise ValueError(f"rates must be finite and greater than 0; got {ladder!r}.")
    templates = {rate: make(rate) for rate in ladder}  # errors in settings come before any run

    if len(chosen) > 1 and isinstance(found, Surface) and not found.noise:
        drawing = [one for one in templates.values() if layers_of(one)[0].draws]
        if not drawing:
            raise ValueError(
                f"seeds={list(chosen)} would be the same run {len(chosen)} times: chance has no "
                f"part on {found.title}. Give one seed, or add noise to the gradients: "
                "ol.problems.noisy(problem, sigma=0.5)."
            )

    def tried_with(template: Optimizer) -> list[float]:
        return [_loss_after(found, template, start, int(steps), seed) for seed in chosen]

    tried = {rate: tried_with(template) for rate, template in templates.items()}
    search = RateSearch(found, make, tried, int(steps), chosen)
    for _ in range(widen):
        if search.end is None or not math.isfinite(search.best_loss):
            break
        rate = _next_rung(search.rate, up=search.end == "highest")
        tried[rate] = tried_with(make(rate))
        search = RateSearch(found, make, tried, int(steps), chosen)
    if not math.isfinite(search.best_loss):
        raise ValueError(
            f"with every rate from {search.rates[0]:g} to {search.rates[-1]:g} the loss stopped "
            "being finite; try lower rates=..., or other settings."
        )
    return search


def _template_factory(optimizer: Any) -> Callable[[float], Optimizer]:
    """Return the function from a rate to a template."""
    if isinstance(optimizer, Optimizer):
        if optimizer.schedule is not None:
            raise TypeError(
                "the rate of this optimizer comes from a schedule; give a function of the rate "
                "instead, such as lambda rate: ol.optimizer.Adam(ol.optimizer.lr.StepDecay(rate, "
                "100))."
            )
        return lambda rate: _with_rate(optimizer, rate)
    if not callable(optimizer):
        raise TypeError(
            "best_rate takes an optimizer made without parameters, or a function that makes one "
            f"for a rate, such as ol.optimizer.Adam; got {optimizer!r}."
        )

    def make(rate: float) -> Optimizer:
        return _checked(optimizer(rate))

    return make


def _with_rate(template: Optimizer, rate: float) -> Optimizer:
    other = copy.deepcopy(_checked(template))
    other.set_lr(rate)
    return other


def _checked(template: Any) -> Optimizer:
    if not isinstance(template, Optimizer) or not template.is_template:
        raise TypeError(
            f"best_rate needs optimizers made without parameters, for every rate; got {template!r}."
        )
    return template


def _loss_after(problem: Problem, template: Optimizer, start: Any, steps: int, seed: int) -> float:
    """Return the final loss of a run, infinite if it diverged."""
    run = problem.run(start, seed)
    with random.scope("optimizer", seed=seed):
        optimizer = template.bind(run.parameters)
    with random.scope("race", seed=seed), np.errstate(all="ignore"):
        try:
            for _, last in run_updates(optimizer, run, steps, []):
                if not math.isfinite(last):
                    return math.inf
        except FloatingPointError:  # the policy for gradients that are not finite
            return math.inf
        if isinstance(run, NetworkRun):
            with evaluation_weights(optimizer):
                left = run.held_out_loss()
        else:
            left = run.loss()
    return float(left) if math.isfinite(left) else math.inf


def _next_rung(rate: float, up: bool) -> float:
    """Return the next of 1, 2, 5, 10, ... above or below a rate.

    Examples
    --------
    >>> _next_rung(1.0, up=True), _next_rung(1e-4, up=False), _next_rung(3.0, up=True)
    (2.0, 5e-05, 5.0)
    """
    decade = math.floor(math.log10(rate))
    rungs = [float(f"{digit}e{decade + k}") for k in (-1, 0, 1) for digit in (1, 2, 5)]
    apart = 1e-9 * rate
    if up:
        return min(rung for rung in rungs if rung > rate + apart)
    return max(rung for rung in rungs if rung < rate - apart)
