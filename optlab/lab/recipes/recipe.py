"""A recipe: a model, its data, its optimizer and schedule, and the result that they reach."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from optlab.backend import random
from optlab.backend.text import one_line
from optlab.io import load, save
from optlab.lab.data.images import Data, with_validation
from optlab.lab.interrupts import stopped_between_steps
from optlab.lab.problems.networks import Network
from optlab.lab.progress import ProgressBar
from optlab.nn import Layer
from optlab.optimizer import Optimizer
from optlab.trace import Trace, record


def _split(data: Any) -> Any:
    """Return training examples with a part of them held out; of no data, nothing is held out."""
    return with_validation(data) if isinstance(data, Data) else data


@dataclass(frozen=True)
class Recipe:
    """Everything that fixes the training of a model, and its stated result.

    Attributes
    ----------
    name, title : str
        For code, and for display.
    measure : str
        What the score is.
    target : float
        The stated result.
    higher : bool
        Whether higher scores are better.
    seconds : float
        The stated time on two cores, for `steps` steps.
    steps : int
        Optimizer steps of a whole run.
    every : int
        Steps between two evaluations of the score.
    data : callable
        Returns the data set.
    model : callable
        Takes the data set and returns a fresh model; its initial values come from the seed.
    optimizer : callable
        Takes the model and the number of steps, and returns an optimizer, with its schedule.
    batch : callable
        Takes the data set, the number of the step from 0 and the seed, and returns the batch: a
        function of these alone, so that a run goes on in the middle of an epoch.
    loss : callable
        Takes the model and a batch and returns a Tensor.
    score : callable
        Takes the model and the data set.
    problem : callable or None
        Of classifiers: returns model and data as a `Network`.
    validation : callable
        Takes the data set and returns one whose held-out part is taken from the training part, for
        settings to be chosen on.
    """

    name: str
    title: str
    measure: str
    target: float
    higher: bool
    seconds: float
    steps: int
    every: int
    data: Callable[[], Any] = field(repr=False)
    model: Callable[[Any], Layer] = field(repr=False)
    optimizer: Callable[[Layer, int], Optimizer] = field(repr=False)
    batch: Callable[[Any, int, int], Any] = field(repr=False)
    loss: Callable[[Layer, Any], Any] = field(repr=False)
    score: Callable[[Layer, Any], float] = field(repr=False)
    problem: Callable[[], Network] | None = field(default=None, repr=False)
    validation: Callable[[Any], Any] = field(default=_split, repr=False)

    def run(
        self,
        steps: int | None = None,
        seed: int = 0,
        *,
        to: str | os.PathLike[str] | None = None,
        save_every: float = 30.0,
        probes: Any = None,
        callback: Callable[[Training], Any] | None = None,
        progress: bool | None = None,
    ) -> Training:
        """Train the model; Ctrl-C ends it early, and ``training.resume()`` goes on.

        Parameters
        ----------
        steps : int, optional
            Of the whole run, over which the schedule runs; those of the recipe by default.
        seed : int
            Of initial weights, order of examples, and random layers.
        to : path, optional
            A file that keeps the state of the run: written every `save_every` seconds and at the
            end. If it is there, the run goes on from it, to the bit, also in the middle of an
            epoch.
        save_every : float
            Seconds.
        probes : str or list, optional
            What to record, as for `ol.record`; the trace is ``training.trace``. By default the
            losses alone are kept.
        callback : callable, optional
            Called with the `Training` after each evaluation, for pictures while it learns.
        progress : bool, optional
            Whether to show a progress bar. By default in notebooks, if it takes long.

        Returns
        -------
        Training

        Raises
        ------
        ValueError
            If the number of steps is less than 1, or the file is of another run.

        Examples
        --------
        >>> import optlab as ol
        >>> training = ol.lab.recipe("moons").run(steps=50)
        >>> training.step, len(training.losses)
        (50, 50)
        """
        total = self.steps if steps is None else operator.index(steps)
        if total < 1:
            raise ValueError(f"steps must be at least 1; got {steps!r}.")
        path = None if to is None else Path(to)
        training = Training(self, total, operator.index(seed), path, probes)
        if path is not None and path.exists():
            training._load()
        training._train(save_every, callback, progress)
        return training


def backward(recipe: Recipe, model: Layer, data: Any, step: int, seed: int) -> float:
    """Add the gradients of a step to those of the model; return the loss on its batch."""
    batch = recipe.batch(data, step, seed)
    with random.scope(f"training step {step}", seed=seed):
        loss = recipe.loss(model, batch)
        loss.backward()
    return float(loss.item())


def score(recipe: Recipe, model: Layer, data: Any, seed: int) -> float:
    """Return the score of a model, in evaluation mode."""
    model.eval()
    try:
        with random.scope("evaluation", seed=seed):
            return float(recipe.score(model, data))
    finally:
        model.train()


class Training:
    """One run of a recipe.

    Attributes
    ----------
    recipe : Recipe
    model : Layer
    optimizer : Optimizer
    step : int
        Steps taken.
    steps, seed : int
    losses : list of float
        On the batch of each step, before it.
    scores : dict of int to float
        The evaluated scores, by the number of steps before them.
    seconds : float
        Spent on steps, evaluations not counted.
    trace : Trace or None
        Of the steps since the run was begun or taken up again, if probes were given.
    interrupted : bool
        Whether Ctrl-C ended it early.
    """

    def __init__(
        self, recipe: Recipe, steps: int, seed: int, path: Path | None, probes: Any
    ) -> None:
        self.recipe, self.steps, self.seed = recipe, steps, seed
        self._path, self._probes = path, probes
        self.data = recipe.data()
        with random.scope("weights", seed=seed):
            self.model = recipe.model(self.data)
        with random.scope("optimizer", seed=seed):
            self.optimizer = recipe.optimizer(self.model, steps)
        self.step = 0
        self.losses: list[float] = []
        self.scores: dict[int, float] = {}
        self.seconds = 0.0
        self.trace: Trace | None = None
        self.interrupted = False
        self._torn = False

    @property
    def score(self) -> float:
        """The last evaluated score; NaN if there is none yet."""
        return list(self.scores.values())[-1] if self.scores else float("nan")

    @property
    def reached(self) -> bool:
        """Whether the last score is at least as good as the recipe states."""
        better = self.score >= self.recipe.target
        return better if self.recipe.higher else self.score <= self.recipe.target

    def resume(
        self,
        callback: Callable[[Training], Any] | None = None,
        progress: bool | None = None,
        save_every: float = 30.0,
    ) -> Training:
        """Go on after Ctrl-C, to the end of the run; return this training."""
        self._train(save_every, callback, progress)
        return self

    def __repr__(self) -> str:
        score = f", {self.recipe.measure} {self.score:.4g}" if self.scores else ""
        more = ", interrupted: .resume() goes on" if self.interrupted else ""
        return (
            f"<Training {self.recipe.name!r}, {self.step} of {self.steps} steps in "
            f"{self.seconds:.1f} s{score} (stated: {self.recipe.target:g}){more}>"
        )

    def take_step(self) -> float:
        """Take one step; return the loss on its batch, before it."""
        self.optimizer.clear_grad()  # of a step that was interrupted
        found = backward(self.recipe, self.model, self.data, self.step, self.seed)
        self._torn = True  # until all of it has been counted
        self.optimizer.step()
        self.optimizer.clear_grad()
        if self.optimizer.schedule is not None:
            self.optimizer.schedule.step()
        self.losses.append(found)
        self.step += 1
        self._torn = False
        return found

    def evaluate(self) -> float:
        """Compute the score now, in evaluation mode, and keep it."""
        found = score(self.recipe, self.model, self.data, self.seed)
        self.scores[self.step] = found
        return found

    def _train(
        self, save_every: float, callback: Callable[[Training], Any] | None, progress: bool | None
    ) -> None:
        if self._torn:
            raise RuntimeError(
                f"step {self.step} of this run was interrupted in its middle, so that it cannot be "
                "repeated to the bit. Run the recipe again; with to= it goes on from its file."
            )
        bar = ProgressBar(self.steps, self.recipe.name, progress, "steps")
        self.interrupted = False
        self.model.train()
        recording = None
        if self._probes is not None and self.step < self.steps:
            recording = record(self.optimizer, probes=self._probes, model=self.model)
            self.trace = recording.__enter__()
        saved = time.monotonic()
        try:
            with stopped_between_steps() as stop:
                if self._is_due() and self.step not in self.scores:  # cut off before its score
                    self._score(callback)
                while self.step < self.steps and not stop:
                    self._one(bar, callback)
                    if self._path is not None and time.monotonic() - saved >= save_every:
                        self.save(self._path)
                        saved = time.monotonic()
                self.interrupted = bool(stop) and self.step < self.steps
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            bar.close()
            if recording is not None:
                recording.__exit__(None, None, None)
            if self._path is not None and not self._torn:
                self.save(self._path)

    def _one(self, bar: ProgressBar, callback: Callable[[Training], Any] | None) -> None:
        """Take a step, and evaluate if that is due."""
        began = time.perf_counter()
        self.take_step()
        self.seconds += time.perf_counter() - began
        bar.update(self.step)
        if self._is_due():
            self._score(callback)

    def _is_due(self) -> bool:
        """Return whether a score is evaluated after this many steps."""
        return self.step > 0 and (self.step % self.recipe.every == 0 or self.step == self.steps)

    def _score(self, callback: Callable[[Training], Any] | None) -> None:
        self.evaluate()
        if callback is not None:
            callback(self)

    # The file -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state of the run to a file, which ``recipe.run(to=path)`` goes on from."""
        save(
            {
                "recipe": self.recipe.name, "steps": self.steps, "seed": self.seed,
                "step": self.step, "seconds": self.seconds,
                "losses": np.array(self.losses), "scored": np.array(list(self.scores), int),
                "scores": np.array(list(self.scores.values()), float),
                "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
            },
            path,
        )  # fmt: skip

    def _load(self) -> None:
        assert self._path is not None
        try:
            found = load(self._path, return_numpy=True)
            of = tuple(found[name] for name in ("recipe", "steps", "seed"))
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"{self._path} holds no run of a recipe: {one_line(str(error))}."
            ) from None
        if of != (self.recipe.name, self.steps, self.seed):
            raise ValueError(
                f"{self._path} holds another run: recipe {of[0]!r}, {of[1]} steps, seed {of[2]}; "
                f"this one is {self.recipe.name!r}, {self.steps} steps, seed {self.seed}. Give "
                "another file, or remove it."
            )
        self.model.set_state_dict(found["model"])
        self.optimizer.set_state_dict(found["optimizer"])
        self.step, self.seconds = int(found["step"]), float(found["seconds"])
        self.losses = found["losses"].tolist()
        scored = zip(found["scored"].tolist(), found["scores"].tolist(), strict=True)
        self.scores = dict(scored)
