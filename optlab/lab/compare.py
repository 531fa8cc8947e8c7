"""A race of optimizers: the same problem, the same start, the same number of steps."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any

import numpy as np

from optlab.backend import random
from optlab.backend.display import Rendered
from optlab.backend.extras import needed_for
from optlab.backend.text import unique_lines
from optlab.backend.user_frames import lines_outside, stack_level_outside
from optlab.lab import recorded_path
from optlab.lab.cell_store import Sent, mapped
from optlab.lab.evaluation_budget import evaluation_weights, run_updates
from optlab.lab.problems.lookup import Problem, find
from optlab.lab.problems.surface import format_coordinates
from optlab.lab.shared_loop import SharedLoop, shared_loops, write_row
from optlab.lab.templates import checked_templates
from optlab.optimizer import Optimizer
from optlab.trace import Trace, record

RUNNING_MEAN = 20
GROWN = 1000.0
"""A run diverges that ends so many times as high above the minimum as it began."""
#: Tables show longer schedules by their class alone.
_LONGEST = 70


class RaceWarning(UserWarning):
    """A run of a comparison ended early; its results so far are kept."""


class Comparison(Rendered):
    """The traces of several optimizers on one problem.

    Attributes
    ----------
    problem : Surface or Network
    traces : dict of str to Trace
        In the order they were given.
    steps, seed : int
        The same for all.
    start : tuple of float or None
        The start of all runs on a surface.
    optimizers : dict of str to Optimizer
        The templates that were compared.
    final_loss : dict of str to float
        The loss after the last step; of networks, on all training data.
    accuracy : dict of str to float
        Of networks: the accuracy on held-out data after the last step.
    evaluations : dict of str to array of int
        How many gradients were evaluated before each recorded update: 1, 2, 3, ... except for
        optimizers that evaluate several for one (`LBFGS`).
    execution : dict of str to str
        How each run was executed, and why: by a program of floats, as one loop with others of its
        kind, or step by step. The numbers are the same in each case.
    """

    drawn_as = "comparison"

    def __init__(
        self, problem: Problem, steps: int, seed: int, start: tuple[float, ...] | None
    ) -> None:
        self.problem = problem
        self.steps = steps
        self.seed = seed
        self.start = start
        self.optimizers: dict[str, Optimizer] = {}
        self.traces: dict[str, Trace] = {}
        self.final_loss: dict[str, float] = {}
        self.accuracy: dict[str, float] = {}
        self.evaluations: dict[str, np.ndarray] = {}
        self.execution: dict[str, str] = {}

    def __getitem__(self, name: str) -> Trace:
        """Return one trace by the name of its optimizer."""
        if name not in self.traces:
            raise KeyError(f"there is no run named {name!r}; there are {', '.join(self.traces)}.")
        return self.traces[name]

    def __iter__(self) -> Any:
        return iter(self.traces)

    def __len__(self) -> int:
        return len(self.traces)

    def table(self, tolerance: float | None = None) -> Any:
        """Return the results as a pandas DataFrame, one row per optimizer.

        Parameters
        ----------
        tolerance : float, optional
            The loss to reach. On a surface with a known minimum it is relative to the minimum, 1e-3
            by default; on a surface without one there is no default. Of a network it is a running
            mean over 20 batches, 0.1 by default.

        Returns
        -------
        DataFrame
            With the columns learning rate (or schedule; `Trace.settings` has all of a long one),
            final loss (of a network, on all training data), best loss (of a network, the best
            mini-batch), steps to tolerance (gradient evaluations until the loss first reached it;
            NA if never), distance to the minimum (surfaces with a known one), held-out accuracy
            (networks) and stopped (if a run ended early, or ends a thousand times as high above the
            minimum as it began).
        """
        with needed_for("Comparison.table()"):
            import pandas as pd

        rows: dict[str, dict[str, Any]] = {}
        for name, trace in self.traces.items():
            row = rows[name] = {
                "learning rate": _rate_of(trace),
                "final loss": self.final_loss[name],
                "best loss": self._best(name),
                "steps to tolerance": self._arrival(name, tolerance),
            }
            distance = self._distance(name)
            if distance is not None:
                row["distance to the minimum"] = distance
            if name in self.accuracy:
                row["held-out accuracy"] = self.accuracy[name]
            if any(self._ending(other) for other in self.traces):
                row["stopped"] = self._ending(name)
        table = pd.DataFrame.from_dict(rows, orient="index")
        table.index.name = "optimizer"
        table["steps to tolerance"] = table["steps to tolerance"].astype("Int64")
        return table

    def to_dataframe(self) -> Any:
        """Return what has one number a step as a pandas DataFrame, indexed by optimizer and step.

        Its columns are those of `Trace.to_dataframe`; `table` has one row per optimizer.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).

        Examples
        --------
        >>> import optlab as ol
        >>> race = run_race("booth", {"slow": ol.optimizer.SGD(0.01)}, start=(0, 0), steps=2)
        >>> race.to_dataframe()["loss"]
        optimizer  step
        slow       1       74.0000
                   2       50.3336
        Name: loss, dtype: float64
        """
        with needed_for("Comparison.to_dataframe()"):
            import pandas as pd

        frames = {name: trace.to_dataframe() for name, trace in self.traces.items()}
        return pd.concat(frames, names=["optimizer", "step"])

    def _losses(self, name: str) -> np.ndarray:
        """Return the loss before every step and, on a surface, after the last one."""
        losses = self.traces[name].loss
        if self.problem.kind == "surface":
            return np.append(losses, self.final_loss[name])
        return losses

    def _ending(self, name: str) -> str:
        """Return why a run ended early, or that its loss grows without bound; "" otherwise."""
        stopped = self.traces[name].stopped
        losses = self._losses(name)
        if stopped or not len(losses):
            return stopped or ""
        floor = getattr(self.problem, "minimum_value", None) or 0.0
        first, last = losses[0] - floor, self.final_loss[name] - floor
        if not first > 0 or not last > GROWN * first:
            return ""
        return f"diverges: the loss is {last / first:.2g} times as high as at the start"

    def _best(self, name: str) -> float:
        losses = self._losses(name)
        finite = losses[np.isfinite(losses)]
        return float(finite.min()) if len(finite) else math.nan

    def _arrival(self, name: str, tolerance: float | None) -> int | None:
        losses = self._losses(name)
        floor = getattr(self.problem, "minimum_value", None)
        if tolerance is None and self.problem.kind == "surface" and floor is None:
            return None
        limit = (self.problem.tolerance if tolerance is None else tolerance) + (floor or 0.0)
        if self.problem.kind == "network":
            if len(losses) < RUNNING_MEAN:
                return None
            losses = np.convolve(losses, np.full(RUNNING_MEAN, 1 / RUNNING_MEAN), "valid")
            first = np.flatnonzero(losses <= limit) + RUNNING_MEAN
        else:
            first = np.flatnonzero(losses <= limit)
        if not len(first):
            return None
        # Loss number k is the one after k updates.
        return int(self.evaluations[name][first[0] - 1]) if first[0] else 0

    def _distance(self, name: str) -> float | None:
        minima = getattr(self.problem, "minima", None)
        points = self.traces[name].parameters.get("point")
        if not minima or points is None:
            return None
        with np.errstate(all="ignore"):
            return float(min(np.linalg.norm(points[-1] - np.array(m)) for m in minima))

    def __repr__(self) -> str:
        where = "" if self.start is None else f" from {format_coordinates(self.start)}"
        lines = [
            f"<Comparison on {self.problem.title}{where}, {self.steps} steps, seed {self.seed}>"
        ]
        labels = unique_lines(self.traces)
        width = max(map(len, labels.values()), default=0)
        for name in self.traces:
            line = f"  {labels[name]:<{width}}  loss {self.final_loss[name]:.4g}"
            if name in self.accuracy:
                line += f", held-out accuracy {self.accuracy[name]:.4f}"
            ending = self._ending(name)
            lines.append(line + (f"  ({ending})" if ending else ""))
        return "\n".join(lines)


def _rate_of(trace: Trace) -> Any:
    """Return the learning rate of a run, or a short description of its schedule."""
    schedule = trace.settings.get("schedule")
    if schedule is None:
        return trace.settings["learning_rate"]
    words = str(schedule).rpartition(", epoch ")[0] or str(schedule)
    return words if len(words) <= _LONGEST else f"{words.partition('(')[0]}(...)"


def run_race(
    problem: Any,
    optimizers: Any,
    start: Any = None,
    steps: int = 500,
    seed: int = 0,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
) -> Comparison:
    """Race optimizers, each recorded; `optlab.compare` documents the arguments.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, before anything runs, or if the problem cannot be evaluated at its
        start.
    """
    found = find(problem, start)
    templates = checked_templates(optimizers, "compare")
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1; got {steps!r}.")
    try:
        seed = operator.index(seed)
    except TypeError:
        raise TypeError(f"seed must be a whole number; got {seed!r}.") from None
    first = found.run(start, seed)
    _try_first_step(first, seed)
    place = tuple(first.parameters[0].numpy().tolist()) if found.kind == "surface" else None
    comparison = Comparison(found, int(steps), seed, place)
    comparison.optimizers = templates
    if executor is not None:
        # Threads share the comparison, so each run has one of its own.
        tasks = [
            Sent((Comparison(found, int(steps), seed, place), name, template, start))
            for name, template in templates.items()
        ]
        _gather(comparison, mapped(executor, _race_alone, tasks))
        return comparison
    loops = shared_loops(found, templates, start, int(steps), seed)
    for name, template in templates.items():
        if not _race(comparison, name, template, found.run(start, seed), loops.get(name)):
            break
    return comparison


def _race_alone(task: Sent) -> Sent:
    """Run one optimizer; a module-level function, so that another process can call it."""
    comparison, name, template, start = task.value
    run = comparison.problem.run(start, comparison.seed)
    _race(comparison, name, template, run, None, alone=False)
    # Who asked has the problem, which may be large.
    comparison.problem = comparison.traces[name].problem = None
    return Sent(comparison, "the run")


def _gather(comparison: Comparison, found: Iterable[Sent]) -> None:
    """Take over the runs of other processes and threads."""
    for sent in found:
        one = sent.value
        for kept in ("traces", "final_loss", "evaluations", "accuracy", "execution"):
            getattr(comparison, kept).update(getattr(one, kept))
        (trace,) = one.traces.values()
        trace.problem = comparison.problem
        if trace.error is not None:
            if not len(trace) and len(comparison.traces) == 1:
                raise trace.error
            warnings.warn(
                f"{trace.name} {trace.stopped}",
                RaceWarning,
                stacklevel=stack_level_outside("optlab"),
            )


def _try_first_step(run: Any, seed: int) -> None:
    """Evaluate once before the comparison, so that a faulty problem fails at once."""
    with random.scope("race", seed=seed), np.errstate(all="ignore"):
        value = run.backward(0)
    if not math.isfinite(value):
        raise ValueError(
            f"the loss at the start ({run.place()}) is {float(value)}; choose another start."
        )


#: The loop that an entry shares with others, and its row there.
_Shared = tuple[SharedLoop, int] | None


def _race(
    comparison: Comparison,
    name: str,
    template: Optimizer,
    run: Any,
    shared: _Shared,
    alone: bool = True,
) -> bool:
    """Run one optimizer and record its trace, whatever happens.

    Returns False if the user interrupted it. If it runs `alone`, in the thread that asked, a run
    that raises gives a warning, and the first one that did nothing raises its error.
    """
    with random.scope("optimizer", seed=comparison.seed):  # rules that draw get their key here
        optimizer = template.bind(run.parameters)
    last = math.nan
    goes_on = True
    with (
        record(optimizer) as trace,
        random.scope("race", seed=comparison.seed),
        np.errstate(all="ignore"),
    ):
        trace.name = name
        trace.problem = comparison.problem
        trace.origin = comparison.start, comparison.seed
        comparison.traces[name] = trace
        counts: list[int] = []
        try:
            for step, last in _updates(comparison, optimizer, run, trace, counts, shared):
                if not math.isfinite(last):
                    trace.stopped = _diverged(step, last)
                    break
            else:
                with evaluation_weights(optimizer):
                    last = run.loss()
                if not math.isfinite(last):
                    trace.stopped = _diverged(comparison.steps, last)
        except KeyboardInterrupt:
            trace.stopped = f"interrupted in step {len(trace) + 1}"
            last, goes_on = math.nan, False
        except Exception as error:
            if alone and not len(trace) and len(comparison.traces) == 1:
                raise  # there is nothing to keep
            trace.stopped = (
                f"stopped in step {len(trace) + 1} {run.place()}: {type(error).__name__}: {error}"
                f"{_line_of(error)}"
            )
            trace.error = error
            if alone:  # of runs elsewhere, `_gather` gives it
                warnings.warn(
                    f"{name} {trace.stopped}", RaceWarning, stacklevel=stack_level_outside("optlab")
                )
            last = math.nan
        comparison.final_loss[name] = float(last)
        comparison.evaluations[name] = np.array(counts, dtype=int)
        if comparison.problem.kind == "network":
            try:
                with evaluation_weights(optimizer):
                    comparison.accuracy[name] = run.accuracy
            except Exception:  # noqa: BLE001 - a model that raised in the race may raise again
                comparison.accuracy[name] = math.nan
    if shared is not None:
        shared[0].ran_alone(trace)
    return goes_on


def _updates(
    comparison: Comparison,
    optimizer: Optimizer,
    run: Any,
    trace: Trace,
    counts: list[int],
    shared: _Shared,
) -> Iterator[tuple[int, Any]]:
    """Run all updates; yield their number and the loss before each, or before the last alone."""
    steps, name = comparison.steps, trace.name
    found, refused = None, ""
    if shared is not None:
        loop, row = shared
        found = write_row(loop, row, optimizer, run, trace, counts)
        others = len(loop.group.numbers) - 1
        how = f"as one loop over steps and members, with {others} others of its kind"
        refused = loop.refused
    if found is None:
        why = recorded_path.why_not(optimizer, run, steps)
        if not why:
            found = recorded_path.run_path(optimizer, run, steps, trace, counts)
            how, why = "as a program of floats", "a step needs more than floats"
    if found is not None:
        comparison.execution[name] = how + (f" ({refused})" if refused else "")
        step, last = found
        if not math.isnan(last) or step < steps:
            yield step, last
        return
    comparison.execution[name] = f"step by step: {why}" + (f" ({refused})" if refused else "")
    yield from run_updates(optimizer, run, steps, counts)


def _line_of(error: BaseException) -> str:
    """Return the line outside of optlab in which an error arose, if any."""
    lines = lines_outside(error, "optlab", "numpy")
    return f" ({lines[-1][0]}, line {lines[-1][1]})" if lines else ""


def _diverged(step: int, value: Any) -> str:
    return f"diverged at step {step}: the loss is not finite ({float(value)})"
