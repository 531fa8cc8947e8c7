"""`compare`: one race of each optimizer, or a fair comparison over seeds and budgets."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, overload

import numpy as np

from optlab.lab.compare import Comparison, run_race
from optlab.lab.fair_comparisons.result import FairComparison
from optlab.lab.fair_comparisons.settings import entries
from optlab.lab.fair_comparisons.trainees import trainee
from optlab.lab.recipes.catalogue import RECIPES
from optlab.lab.recipes.recipe import Recipe
from optlab.optimizer import Optimizer

#: Templates by name, in a list, or one.
Several = Mapping[str, Optimizer] | Sequence[Optimizer] | Optimizer


@overload
def compare(
    problem: Recipe | list[Any], optimizers: Several | Mapping[str, Any], start: Any = ...,
    steps: int = ..., seed: int = ..., *, seeds: int | Sequence[int] | None = ...,
    budgets: Sequence[int] | None = ..., trials: int = ...,
    space: Mapping[str, Any] | None = ..., trial_steps: int | None = ...,
    target: float | None = ..., progress: bool | None = ...,
    executor: Executor | Callable[[], Executor] | None = ...,
) -> FairComparison: ...  # fmt: skip
@overload
def compare(
    problem: Any, optimizers: Several, start: Any = ..., steps: int = ...,
    seed: int = ..., *, executor: Executor | Callable[[], Executor] | None = ...,
) -> Comparison: ...  # fmt: skip
@overload
def compare(
    problem: Any, optimizers: Several | Mapping[str, Any], start: Any = ..., steps: int = ...,
    seed: int = ..., *, seeds: int | Sequence[int] | None = ...,
    budgets: Sequence[int] | None = ..., trials: int = ...,
    space: Mapping[str, Any] | None = ..., trial_steps: int | None = ...,
    target: float | None = ..., progress: bool | None = ...,
    executor: Executor | Callable[[], Executor] | None = ...,
) -> FairComparison: ...  # fmt: skip
def compare(
    problem: Any,
    optimizers: Several | Mapping[str, Any],
    start: Any = None,
    steps: int = 500,
    seed: int = 0,
    *,
    seeds: int | Sequence[int] | None = None,
    budgets: Sequence[int] | None = None,
    trials: int = 0,
    space: Mapping[str, Any] | None = None,
    trial_steps: int | None = None,
    target: float | None = None,
    progress: bool | None = None,
    executor: Executor | Callable[[], Executor] | None = None,
) -> Comparison | FairComparison:
    """Compare optimizers: the same problem, the same start, the same number of gradients.

    On one problem with one seed every run is recorded, which gives a `Comparison`. A run that ends
    early (the loss becomes infinite or NaN, the function raises) is kept up to there, has the
    reason in ``trace.stopped``, and does not affect the others.

    A recipe, a list of problems, or one of `seeds`, `budgets` and `trials` gives a
    `FairComparison`: scores over seeds, each optimizer with the best of as many settings, and what
    it costs to find them.

    Parameters
    ----------
    problem : Surface, Network, Recipe, str or callable; or a list of them
        An object of `optlab.problems`, its name, a formula such as ``"x**2 + 3*y**2"``, or a
        function of your own: ``f(x, y)``, ``f(p)`` of a vector (of any length, which `start`
        tells), or ``f(x)`` of one number; a recipe of `optlab.lab.recipe`, or its name.
    optimizers : dict of str to Optimizer, list of Optimizer, or Optimizer
        Templates, made without parameters: ``{"Adam": ol.optimizer.Adam(0.1)}``; those of a list
        are named by their classes, and by the settings in which several of one class differ. With
        `trials`, a dict may have classes, and functions from settings to templates.
    start : vector of numbers, optional
        The start on a surface; by default that of the problem.
    steps : int
        Gradient evaluations per run. Most rules make one update of each; `LBFGS`, whose line search
        needs several per update, makes fewer updates.
    seed : int
        Fixes initial weights, order of batches and every random draw, to the bit.
    seeds : int or sequence of int, optional
        Several seeds, or how many; by default `seed` alone.
    budgets : sequence of int, optional
        Several numbers of steps; by default `steps` alone. A recipe's schedule runs over each.
    trials : int
        How many settings are tried for each optimizer on each problem; with 0 those of the
        templates are taken. They are spread evenly over `space` and judged on examples split off
        from those to train on, with a seed that is not compared, by the score of the problem.
    space : dict, optional
        Where settings are looked for: (low, high), spread over decades, or a list; or a dict of
        these for each optimizer. By default ``{"learning_rate": (1e-4, 1.0)}``.
    trial_steps : int, optional
        Gradients of a trial; by default the lowest budget.
    target : float, optional
        The score to reach; by default that of the recipe, or the tolerance of a surface with a
        known minimum.
    progress : bool, optional
        Whether a fair comparison shows a bar. By default in notebooks, if it takes long.
    executor : concurrent.futures.Executor or callable, optional
        Runs the optimizers, one task each: a ``ProcessPoolExecutor``, ``client.get_executor()`` of
        Dask, an ``MPIPoolExecutor`` of mpi4py, or a function that makes one.

    Returns
    -------
    Comparison or FairComparison
        With ``.figure()`` and ``.table()``; a notebook displays the figure.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, before anything runs, or if the problem cannot be evaluated at its
        start.

    Warns
    -----
    RaceWarning
        For every recorded run that an error ended early.

    Notes
    -----
    In a fair comparison on a recipe every optimizer follows the recipe's schedule, scaled to its
    own rate, unless it has a schedule: what differs is the rule. Batches and initial weights of a
    seed are the same for all. A problem without data, or a surface, has nothing to split off: its
    trials are judged by the score itself.

    Examples
    --------
    >>> import optlab as ol
    >>> race = ol.compare("quadratic", {"SGD": ol.optimizer.SGD(0.01)}, steps=100)
    >>> race["SGD"].loss.shape
    (100,)

    Two rules on a recipe, over three seeds, each at the best of four rates:

    >>> rules = {"SGD": ol.optimizer.SGD, "Adam": ol.optimizer.Adam}
    >>> fair = ol.compare(ol.lab.recipe("moons"), rules, steps=100, seeds=3, trials=4)
    >>> fair.scores("Adam").shape, int(fair.tuning_cost("Adam"))
    ((3,), 400)
    """
    asked = (seeds, budgets, space, trial_steps, target)
    several = isinstance(problem, (list, tuple)) and not _is_named(problem)
    recipe = isinstance(problem, Recipe) or (
        isinstance(problem, str) and problem in RECIPES and problem != "digits_mlp"
    )
    if not several and not recipe and not trials and all(one is None for one in asked):
        return run_race(problem, optimizers, start, steps, seed, executor=executor)
    chosen = _whole("seeds", range(seed, seed + seeds) if isinstance(seeds, int) else seeds, 0)
    spent = _whole("budgets", budgets, 1)
    if isinstance(trials, bool) or not isinstance(trials, (int, np.integer)) or trials < 0:
        raise ValueError(f"trials is how many settings are tried, at least 0; got {trials!r}.")
    known = entries(optimizers, space, int(trials))
    chosen = chosen or (operator.index(seed),)
    spent = tuple(sorted(set(spent or _whole("steps", [steps], 1))))
    (length,) = _whole("trial_steps", [trial_steps], 1) if trial_steps is not None else spent[:1]
    if several and not len(problem):
        raise ValueError("compare needs at least one problem; got an empty list.")
    found = [trainee(one, start, target) for one in (problem if several else [problem])]
    if len({one.name for one in found}) < len(found):
        raise ValueError(f"problems need different names; got {', '.join(o.name for o in found)}.")
    result = FairComparison(found, known, chosen, spent, int(trials), int(length))
    result._train(executor, progress)
    return result


def _is_named(problem: Any) -> bool:
    """Return whether a tuple is one problem."""
    return hasattr(problem, "_fields")


def _whole(name: str, values: Any, least: int) -> tuple[int, ...]:
    """Return whole numbers, checked; none for None."""
    if values is None:
        return ()
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} is a list of whole numbers; got {values!r}.")
    found = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(
                f"{name} must be a whole number of at least {least}; got {value!r}."
                if name in ("steps", "trial_steps")
                else f"{name} are whole numbers of at least {least}; got {value!r}."
            )
        found.append(int(value))
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{name} need at least one, each once; got {list(values)!r}.")
    return tuple(found)
