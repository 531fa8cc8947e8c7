"""The result of a comparison over seeds and budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from concurrent.futures import Executor
from typing import Any, Literal, NamedTuple

import numpy as np

from optlab.backend.display import Rendered
from optlab.backend.extras import needed_for
from optlab.lab.fair_comparisons.profiles import Profile, performance_profile
from optlab.lab.fair_comparisons.settings import Entry, Settings
from optlab.lab.fair_comparisons.tasks import Task, results
from optlab.lab.fair_comparisons.trainees import Trainee
from optlab.lab.fair_comparisons.training import FairRun
from optlab.lab.progress import ProgressBar

By = Literal["gradients", "seconds"]


class Trial(NamedTuple):
    """Settings that were tried, and their run, judged on examples split off.

    Attributes
    ----------
    settings : dict
    run : FairRun
    """

    settings: Settings
    run: FairRun


class Band(NamedTuple):
    """The scores of several seeds along a run.

    Attributes
    ----------
    gradients, middle, low, high : array
        Gradients evaluated, and the median, the lowest and the highest score there.
    """

    gradients: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


#: A run: problem, optimizer, budget, seed. A trial: problem, optimizer, its number.
RunKey = tuple[str, str, int, int]
TrialKey = tuple[str, str, int]


class FairComparison(Rendered):
    """Optimizers on problems, over seeds and budgets, each tuned by the same budget.

    Attributes
    ----------
    problems : dict of str to Trainee
        What was trained, with ``.measure``, ``.higher`` and ``.target``.
    optimizers : list of str
    seeds, budgets : tuple of int
        Of the runs that are compared; budgets in gradients, the lowest first.
    trials : int
        Settings tried for each optimizer on each problem; 0 if they were given.
    trial_steps : int
        Gradients of a trial.
    trial_seed : int
        Of the trials: none of those that are compared.
    runs : dict
        A `FairRun` for each (problem, optimizer, budget, seed).
    tried : dict
        A `Trial` for each (problem, optimizer, number).
    settings : dict
        The settings of each (problem, optimizer): the best ones tried.
    interrupted : bool
        Whether Ctrl-C ended it early; :meth:`resume` goes on.

    See Also
    --------
    compare : makes one, if it is given seeds, budgets, trials or a recipe.
    """

    drawn_as = "fair_comparison"

    def __init__(
        self, problems: Iterable[Trainee], entries: dict[str, Entry], seeds: tuple[int, ...],
        budgets: tuple[int, ...], trials: int, trial_steps: int,
    ) -> None:  # fmt: skip
        self.problems = {one.name: one for one in problems}
        self._entries = entries
        self.seeds, self.budgets = seeds, budgets
        self.trials, self.trial_steps = trials, trial_steps
        self.trial_seed = 1000 + max(seeds)
        self.runs: dict[RunKey, FairRun] = {}
        self.tried: dict[TrialKey, Trial] = {}
        self.settings: dict[tuple[str, str], Settings] = {}
        self.interrupted = False

    @property
    def optimizers(self) -> list[str]:
        """The names of the optimizers."""
        return list(self._entries)

    def resume(
        self, executor: Executor | Any = None, progress: bool | None = None
    ) -> FairComparison:
        """Run what is missing, after Ctrl-C; return this comparison."""
        self._train(executor, progress)
        return self

    # Results --------------------------------------------------------------------------------------

    def scores(self, optimizer: str, problem: str | None = None, budget: int | None = None) -> Any:
        """Return the last score of each seed; NaN where a run ended early."""
        of, most = self._place(problem, budget)
        return np.array([run.score for run in self._of(of, optimizer, most)])

    def band(self, optimizer: str, problem: str | None = None, budget: int | None = None) -> Band:
        """Return the median of the scores along the runs, and their range over the seeds."""
        of, most = self._place(problem, budget)
        runs = [run for run in self._of(of, optimizer, most) if len(run.scores)]
        at = np.unique(np.concatenate([run.gradients for run in runs] or [np.zeros(0, int)]))
        rows = np.full((len(runs), len(at)), np.nan)
        for row, run in zip(rows, runs, strict=True):
            # Between two evaluations stands the last one; after a run that ended early, nothing.
            places = np.searchsorted(run.gradients, at, side="right") - 1
            inside = (places >= 0) & ((at <= run.gradients[-1]) if run.stopped else True)
            row[inside] = run.scores[places[inside]]
        with np.errstate(all="ignore"):
            known = np.isfinite(rows).any(axis=0) if len(runs) else np.zeros(0, bool)
            rows, at = rows[:, known], at[known]
            return Band(
                at, np.nanmedian(rows, axis=0), np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
            ) if len(at) else Band(at, *[np.zeros(0)] * 3)  # fmt: skip

    def times_to_target(
        self, optimizer: str, problem: str | None = None, budget: int | None = None,
        by: By = "gradients",
    ) -> np.ndarray:  # fmt: skip
        """Return what each seed took until a score first reached the target; infinite if none did.

        Parameters
        ----------
        optimizer, problem : str
        budget : int
            By default the largest.
        by : {"gradients", "seconds"}
            Gradients evaluated, or seconds of training (evaluations not counted), which depend on
            the machine.
        """
        of, most = self._place(problem, budget)
        runs = self._of(of, optimizer, most)
        return np.array([self._time(of, run, _checked_by(by)) for run in runs])

    def _time(self, problem: str, run: FairRun, by: str) -> float:
        reached = np.flatnonzero(self.problems[problem].reaches(run.scores))
        column = run.gradients if by == "gradients" else run.clock
        # A start that is good enough already costs the least that is counted.
        return max(float(column[reached[0]]), 1e-9) if len(reached) else math.inf

    def tuning_cost(
        self, optimizer: str, problem: str | None = None, by: By = "gradients"
    ) -> float:
        """Return what the trials of an optimizer took, on one problem or on all."""
        _checked_by(by)
        runs = [
            trial.run for (of, name, _), trial in self.tried.items()
            if name == optimizer and problem in (None, of)
        ]  # fmt: skip
        if by == "gradients":
            return float(sum(run.evaluated for run in runs))
        return float(sum(run.seconds for run in runs))

    def profile(
        self, by: By = "gradients", budget: int | None = None, tuning: bool = False
    ) -> Profile:
        """Return performance profiles of the times to target, over all problems and seeds.

        Parameters
        ----------
        by : {"gradients", "seconds"}
        budget : int
            By default the largest.
        tuning : bool
            Whether the trials are paid, too: what it costs somebody who has no settings yet.

        Raises
        ------
        ValueError
            If a problem has no target.
        """
        lacking = [one.title for one in self.problems.values() if one.target is None]
        if lacking:
            raise ValueError(
                f"{lacking[0]} states no score to reach: give target=, such as target=0.95."
            )
        _, most = self._place(None, budget)
        # Of an interrupted comparison: what all have run.
        instances = [
            (of, seed) for of in self.problems for seed in self.seeds
            if all((of, name, most, seed) in self.runs for name in self.optimizers)
        ]  # fmt: skip
        if not instances:
            raise ValueError(
                "no problem and seed has been run by all optimizers: .resume() goes on."
            )
        costs = {
            name: [
                self._time(of, self.runs[of, name, most, seed], _checked_by(by))
                + (self.tuning_cost(name, of, by) if tuning else 0.0)
                for of, seed in instances
            ]
            for name in self.optimizers
        }
        return performance_profile(costs)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each problem, budget and optimizer."""
        found = []
        for of, what in self.problems.items():
            for budget in self.budgets:
                for name in self.optimizers:
                    scores = self.scores(name, of, budget)
                    times = self.times_to_target(name, of, budget)
                    clock = self.times_to_target(name, of, budget, "seconds")
                    known = scores[np.isfinite(scores)]
                    row: dict[str, Any] = {"problem": of, "budget": budget, "optimizer": name}
                    chosen = self.settings.get((of, name), {})
                    ends = self._entries[name].ends(chosen, self.trials) if chosen else {}
                    row["settings"] = ", ".join(
                        f"{one} {value:.3g}" + (f" ({ends[one]} tried)" if one in ends else "")
                        if isinstance(value, (int, float)) else f"{one} {value}"
                        for one, value in chosen.items()
                    )  # fmt: skip
                    for label, function in (
                        ("median", np.median), ("lowest", np.min), ("highest", np.max)
                    ):  # fmt: skip
                        row[label] = float(function(known)) if len(known) else math.nan
                    row["ended early"] = int(np.sum(~np.isfinite(scores)))
                    if what.target is not None:
                        row["reached"] = f"{int(np.isfinite(times).sum())} of {len(times)}"
                        row["gradients to target"] = float(np.median(times))
                        row["seconds to target"] = float(np.median(clock))
                    row["tuning gradients"] = int(self.tuning_cost(name, of))
                    row["tuning seconds"] = self.tuning_cost(name, of, "seconds")
                    found.append(row)
        return found

    def table(self) -> Any:
        """Return the results as a pandas DataFrame: a row a problem, budget and optimizer.

        With the settings that were chosen (and whether they are the lowest or highest tried), the
        median, lowest and highest last score over the seeds, how many seeds reach the target and
        the median of what they take until then (infinite, if fewer than half of them do), and what
        the trials cost.
        """
        with needed_for("FairComparison.table()"):
            import pandas as pd

        keys = ["problem", "budget", "optimizer"]
        return pd.DataFrame(self.rows()).set_index(keys)

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} seeds" if len(self.seeds) > 1 else f"seed {self.seeds[0]}"
        budgets = ", ".join(f"{budget:,}" for budget in self.budgets)
        tuned = (
            f"the best of {self.trials} settings each, tried for {self.trial_steps:,} gradients"
            if self.trials else "settings as given"
        )  # fmt: skip
        more = "; interrupted: .resume() goes on" if self.interrupted else ""
        lines = [f"<FairComparison: {seeds}, {budgets} gradients; {tuned}{more}>"]
        for of, what in self.problems.items():
            lines.append(f"  {what.title}: {what.measure}")
            for name in self.optimizers:
                known = self.scores(name, of)
                known = known[np.isfinite(known)]
                said = "ended early" if not len(known) else f"{np.median(known):.4g}"
                if len(known) > 1:
                    said += f" ({known.min():.4g} to {known.max():.4g})"
                lines.append(f"    {name}  {said}")
        return "\n".join(lines)

    def _place(self, problem: str | None, budget: int | None) -> tuple[str, int]:
        of = next(iter(self.problems)) if problem is None else problem
        most = self.budgets[-1] if budget is None else budget
        if of not in self.problems or most not in self.budgets:
            raise KeyError(
                f"there is nothing of {of!r} with {most} gradients; there are the problems "
                f"{', '.join(self.problems)} and the budgets {', '.join(map(str, self.budgets))}."
            )
        return of, most

    def _of(self, problem: str, optimizer: str, budget: int) -> list[FairRun]:
        if optimizer not in self._entries:
            raise KeyError(f"there is no {optimizer!r}; there are {', '.join(self._entries)}.")
        keys = [(problem, optimizer, budget, seed) for seed in self.seeds]
        return [self.runs[key] for key in keys if key in self.runs]

    # Training -------------------------------------------------------------------------------------

    def _train(self, executor: Any, progress: bool | None) -> None:
        counts = len(self._entries) * len(self.problems)
        total = counts * (self.trials + len(self.budgets) * len(self.seeds))
        bar = ProgressBar(total, "Comparison", progress, "runs")
        self.interrupted = False
        shares = {
            (of, budget): what.shares(budget)
            for of, what in self.problems.items()
            for budget in {*self.budgets, *([self.trial_steps] if self.trials else [])}
        }

        def task(
            of: str, name: str, settings: Settings, budget: int, seed: int, judged: bool
        ) -> Any:
            entry = self._entries[name]
            template = entry.make(settings) if self.trials else entry.make({})
            return Task(self.problems[of], template, shares[of, budget], budget, seed, judged)

        try:
            tried: dict[TrialKey, Settings] = {
                (of, name, k): settings
                for of in self.problems
                for name, entry in self._entries.items()
                for k, settings in enumerate(entry.candidates(self.trials) if self.trials else [])
                if (of, name, k) not in self.tried
            }
            waiting = {
                key: task(key[0], key[1], settings, self.trial_steps, self.trial_seed, True)
                for key, settings in tried.items()
            }
            for key, run in results(waiting, executor):
                self.tried[key] = Trial(tried[key], run)
                bar.update(len(self.tried) + len(self.runs))
            self._choose()
            missing = {
                (of, name, budget, seed): task(
                    of, name, self.settings[of, name], budget, seed, False
                )
                for of in self.problems
                for name in self._entries
                for budget in self.budgets
                for seed in self.seeds
                if (of, name, budget, seed) not in self.runs
            }
            for place, run in results(missing, executor):
                self.runs[place] = run
                bar.update(len(self.tried) + len(self.runs))
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            bar.close()

    def _choose(self) -> None:
        """Choose the best settings tried: by the score, among equals by the training loss."""
        for of, what in self.problems.items():
            for name, entry in self._entries.items():
                if not self.trials:
                    self.settings[of, name] = entry.own_settings()
                    continue
                best: Trial | None = None
                for k in range(self.trials):
                    trial = self.tried[of, name, k]
                    if best is None or what.better(trial.run.score, best.run.score) or (
                        trial.run.score == best.run.score and trial.run.loss < best.run.loss
                    ):  # fmt: skip
                        best = trial
                assert best is not None
                self.settings[of, name] = best.settings


def _checked_by(by: str) -> str:
    if by not in ("gradients", "seconds"):
        raise ValueError(f'by is "gradients" or "seconds"; got {by!r}.')
    return by
