"""What is trained in a comparison: a recipe, a network or a surface, with its score and target."""

from __future__ import annotations

import copy
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape.grad_mode import enable_grad
from optlab.backend import random
from optlab.lab.problems.lookup import find
from optlab.lab.problems.networks import Network
from optlab.lab.problems.surface import Surface
from optlab.lab.recipes.catalogue import RECIPES
from optlab.lab.recipes.recipe import Recipe, backward, score
from optlab.optimizer.lr import LRScheduler

#: About so many times the score is evaluated along a run.
_EVALUATIONS = 25


class RecipeRun:
    """A model of a recipe that an optimizer can train.

    Attributes
    ----------
    parameters : list of Parameter
    """

    #: Batches differ: a step that changed nothing is no end.
    noise = True

    def __init__(self, recipe: Recipe, data: Any, seed: int) -> None:
        self.recipe, self.data, self.seed = recipe, data, seed
        with random.scope("weights", seed=seed):
            self.model = recipe.model(data)
        self.model.train()
        self.parameters = self.model.parameters()

    def backward(self, step: int) -> Any:
        """Compute the loss on the batch of a step, and set the gradients of the parameters."""
        for parameter in self.parameters:
            if parameter.trainable:
                parameter.grad = None
        with enable_grad():
            return np.float64(backward(self.recipe, self.model, self.data, step, self.seed))

    def score(self) -> float:
        """Return the score of the recipe, as of now."""
        return score(self.recipe, self.model, self.data, self.seed)


class Trainee(NamedTuple):
    """A problem with what is measured.

    Attributes
    ----------
    problem : Recipe, Network or Surface
    start : tuple of float or None
        Of surfaces.
    target : float or None
        The score to reach.
    """

    problem: Any
    start: Any
    target: float | None

    @property
    def name(self) -> str:
        """The name by which results are found."""
        return str(self.problem.name)

    @property
    def title(self) -> str:
        """The name for display."""
        return str(self.problem.title)

    @property
    def is_surface(self) -> bool:
        """Whether it is a surface, whose loss before each step is its score."""
        return isinstance(self.problem, Surface)

    @property
    def measure(self) -> str:
        """What the score is."""
        if isinstance(self.problem, Recipe):
            return self.problem.measure
        if isinstance(self.problem, Network):
            return "accuracy on held-out examples"
        return "loss above the minimum" if self.problem.minimum_value is not None else "loss"

    @property
    def higher(self) -> bool:
        """Whether higher scores are better."""
        return self.problem.higher if isinstance(self.problem, Recipe) else not self.is_surface

    def better(self, one: float, other: float) -> bool:
        """Return whether a score is better than another one; NaN is worse than any."""
        if math.isnan(one) or math.isnan(other):
            return not math.isnan(one)
        return one > other if self.higher else one < other

    def reaches(self, scores: Any) -> np.ndarray:
        """Return which scores reach the target."""
        with np.errstate(invalid="ignore"):
            if self.target is None:
                return np.zeros(np.shape(scores), bool)
            found = scores >= self.target if self.higher else scores <= self.target
        return np.asarray(found)

    def every(self, budget: int) -> int:
        """Return how many gradients lie between two evaluations of the score."""
        if self.is_surface:
            return 1
        usual = max(1, budget // _EVALUATIONS)
        return min(usual, self.problem.every) if isinstance(self.problem, Recipe) else usual

    def begin(self, seed: int, judged: bool) -> Any:
        """Return a fresh run; `judged` on examples split off from those to train on."""
        if isinstance(self.problem, Recipe):
            return RecipeRun(self.problem, recipe_data(self.problem, judged), seed)
        if isinstance(self.problem, Network):
            return _split(self.problem).run(None, seed) if judged else self.problem.run(None, seed)
        return self.problem.run(self.start, seed)

    def score(self, run: Any) -> float:
        """Return the score of a run, as of now."""
        if isinstance(run, RecipeRun):
            return run.score()
        return float(run.accuracy) if not self.is_surface else self.above(run.loss())

    def above(self, loss: float) -> float:
        """Return the loss of a surface as its score."""
        return float(loss) - (self.problem.minimum_value or 0.0)

    def shares(self, budget: int) -> np.ndarray | None:
        """Return the learning rate at each gradient relative to its base; None if it is constant.

        A recipe has a schedule, which every optimizer gets: what is compared are the rules.
        """
        if not isinstance(self.problem, Recipe):
            return None
        model = RecipeRun(self.problem, recipe_data(self.problem, False), 0).model
        schedule = self.problem.optimizer(model, budget).schedule
        return None if schedule is None else _shares(schedule, budget)


def _shares(schedule: LRScheduler, budget: int) -> np.ndarray:
    schedule = copy.deepcopy(schedule)
    found = np.empty(budget)
    for step in range(budget):
        found[step] = float(schedule()) / schedule.base_lr
        schedule.step()
    return found


@cache
def _split(network: Network) -> Network:
    return network.with_validation()


_data: dict[tuple[str, bool], Any] = {}


def recipe_data(recipe: Recipe, judged: bool) -> Any:
    """Return the data of a recipe, or its training part with a part of that held out."""
    if RECIPES.get(recipe.name) is not recipe:  # changed by its user: nothing is kept of it
        return recipe.validation(recipe.data()) if judged else recipe.data()
    key = (recipe.name, judged)
    if key not in _data:
        _data.clear()
        whole = recipe.data()
        _data[key] = recipe.validation(whole) if judged else whole
    return _data[key]


def trainee(problem: Any, start: Any, target: float | None) -> Trainee:
    """Return what a problem trains.

    Raises
    ------
    TypeError, ValueError
        If it is none of those that `optlab.compare` takes.
    """
    if isinstance(problem, str) and problem in RECIPES and problem != "digits_mlp":
        problem = RECIPES[problem]
    if isinstance(problem, Recipe):
        if start is not None:
            raise TypeError(
                f"the recipe {problem.name!r} starts from the initial weights that its seed gives; "
                "leave start out, and use seeds= for other starts."
            )
        return Trainee(problem, None, problem.target if target is None else float(target))
    found = find(problem, start)
    if isinstance(found, Surface):
        at = None if start is None else found.checked_start(start)
        known = found.tolerance if found.minimum_value is not None else None
        return Trainee(found, at, known if target is None else float(target))
    if start is not None:
        found.run(start)  # says why not
    return Trainee(found, None, None if target is None else float(target))
