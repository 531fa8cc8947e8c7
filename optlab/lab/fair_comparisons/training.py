"""One run of a comparison: an optimizer, a seed, a budget of gradients."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from optlab.backend import random
from optlab.backend.text import one_line
from optlab.lab.evaluation_budget import evaluation_weights, run_updates
from optlab.lab.fair_comparisons.trainees import Trainee
from optlab.optimizer import Optimizer

#: The loss of training is taken as the mean over this last share of the updates.
_LAST = 0.1


class FairRun(NamedTuple):
    """What one run has reached.

    Attributes
    ----------
    gradients : array of int
        Gradients evaluated before each score: optimizers that evaluate several an update pay for
        all of them.
    scores : array of float
    clock : array of float
        Seconds of training before each score; evaluations are not counted.
    loss : float
        The mean training loss over the last tenth of the updates.
    evaluated : int
        All gradients that the run has evaluated.
    seconds : float
        All seconds of its training.
    stopped : str
        Why it ended early; "" if it did not.
    """

    gradients: np.ndarray
    scores: np.ndarray
    clock: np.ndarray
    loss: float
    evaluated: int
    seconds: float
    stopped: str

    @property
    def score(self) -> float:
        """The last score; NaN if the run ended early."""
        return math.nan if self.stopped or not len(self.scores) else float(self.scores[-1])


def train(
    what: Trainee, template: Optimizer, shares: np.ndarray | None, budget: int, seed: int,
    judged: bool,
) -> FairRun:  # fmt: skip
    """Train with a budget of gradients, and evaluate the score along the way.

    Parameters
    ----------
    what : Trainee
    template : Optimizer
    shares : array or None
        The learning rate at each gradient, relative to that of the template, unless the template
        has a schedule of its own.
    budget : int
        Gradients.
    seed : int
    judged : bool
        Whether the score is that on examples split off from those to train on.
    """
    run = what.begin(seed, judged)
    with random.scope("optimizer", seed=seed):
        optimizer: Any = template.bind(run.parameters)
    base = None if shares is None or optimizer.schedule is not None else optimizer.get_lr()
    counts: list[int] = []
    losses: list[float] = []
    marks: list[tuple[int, float, float]] = []
    every = what.every(budget)
    due, spent, stopped = every, 0.0, ""

    def look(loss: float | None = None) -> None:
        """Evaluate the score; the loss of a surface before a step is known already."""
        if loss is not None and not hasattr(optimizer, "apply"):
            found = what.above(loss)
        else:
            with evaluation_weights(optimizer):
                found = what.score(run)
        marks.append((counts[-1] if counts else 0, found, spent))

    def set_rate() -> None:
        if base is not None and shares is not None:
            optimizer.set_lr(base * float(shares[min(counts[-1] if counts else 0, budget - 1)]))

    with random.scope("race", seed=seed), np.errstate(all="ignore"):
        if what.is_surface:
            look()
        set_rate()
        began = time.perf_counter()
        try:
            for _, last in run_updates(optimizer, run, budget, counts):
                spent += time.perf_counter() - began
                losses.append(float(last))
                if not math.isfinite(last):
                    stopped = f"diverged after {counts[-1] if counts else 0} gradients"
                    break
                if counts and counts[-1] >= due:
                    # Of a line search, what it returns is the loss before its step.
                    plain = what.is_surface and not getattr(optimizer, "needs_closure", False)
                    look(float(last) if plain else None)
                    due = counts[-1] + every
                set_rate()
                began = time.perf_counter()
            else:
                spent += time.perf_counter() - began
                if not marks or marks[-1][0] < counts[-1]:
                    look()
        except (FloatingPointError, ArithmeticError, ValueError, RuntimeError) as error:
            stopped = f"{type(error).__name__}: {one_line(str(error))}"
    if marks and not math.isfinite(marks[-1][1]) and not stopped:
        stopped = f"diverged after {marks[-1][0]} gradients"
    tail = losses[-max(1, int(_LAST * len(losses))) :]
    columns = np.array(marks, float).reshape(-1, 3).T
    return FairRun(
        columns[0].astype(int), columns[1], columns[2], float(np.mean(tail)) if tail else math.nan,
        max(len(losses), counts[-1] if counts else 0), spent, stopped,
    )  # fmt: skip
