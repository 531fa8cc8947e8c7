"""Entries of a race that differ in numbers only, as one loop over steps and members.

A race of many rates of one rule is a sweep whose every step is recorded. The first of such entries
runs by itself. The others are rows of one pass over arrays, the replay of a sweep, whose first row
has to have the bits of the run by itself: if one differs, all run by themselves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from optlab.lab.members import Group, groups_of_templates
from optlab.lab.problems.surface import Surface
from optlab.lab.recorded_path import FEWEST, why_general
from optlab.lab.vectorized import EnsembleRun, NotOnePassError, replay
from optlab.optimizer import Optimizer
from optlab.optimizer.step.member_program import rates_of
from optlab.plan import CaptureError
from optlab.trace import Trace

#: The fewest entries for which the loop pays off. 500 steps of Adam take 22 ms for a few dozen, the
#: first one by itself not counted; by a program of floats 2.1 ms for each, by the general run 12.
FEWEST_ON_FLOATS, FEWEST_GENERAL = 12, 4
#: Why there is no loop for a rule. Where NumPy raises, it does so for an entry by itself, too.
_NO_LOOP = (CaptureError, NotOnePassError, FloatingPointError, MemoryError)
#: The most bytes of the histories of one loop.
_LIMIT = 1 << 30


class SharedLoop:
    """The entries of one kind: what they are, and what they do at every step.

    Parameters
    ----------
    surface : Surface
    group : Group
    start : array, shape (dimension,)
    steps, seed : int
    """

    def __init__(
        self, surface: Surface, group: Group, start: np.ndarray, steps: int, seed: int
    ) -> None:
        self.surface, self.group, self.start = surface, group, start
        self.steps, self.seed = steps, seed
        self.refused = ""
        self.seconds = 0.0
        self._first: Trace | None = None
        self._run: EnsembleRun | None = None

    def ran_alone(self, trace: Trace) -> None:
        """Take over an entry that ran by itself: the first one is what the loop is held to."""
        if self._first is None:
            self._first = trace
            if trace.error is not None:
                self.refused = "the first of its kind was ended by an error"

    def row(self, number: int) -> tuple[EnsembleRun, int] | None:
        """Return the histories and the row of an entry; None if it has to run by itself."""
        if self._first is None or self.refused:
            return None
        if self._run is None:
            began = time.perf_counter()
            try:
                self._run = self._replayed()
            except _NO_LOOP as error:
                self.refused = f"no loop for its kind: {error}"
                return None
            self.seconds = time.perf_counter() - began
            if not _agrees(self._run, self._first):
                self.refused = "one loop gave other numbers than the first of its kind by itself"
                self._run = None
                return None
        return self._run, number

    def _replayed(self) -> EnsembleRun:
        group, plan = self.group, self.surface.plan
        if plan is None:
            raise CaptureError(f"{self.surface.title} has no plan")
        made = group.program(self.surface, plan, self.steps, self.seed)
        starts = np.tile(self.start, (len(group.numbers), 1))
        return replay(self.surface, plan, made, starts, self.steps, self.seed)

    def rates(self, template: Optimizer) -> np.ndarray:
        """Return the learning rate of each step of an entry."""
        if template.schedule is None:
            return np.full(self.steps, float(template.settings["learning_rate"]))
        return np.array(rates_of(template.schedule, self.steps))


def shared_loops(
    surface: Any, templates: Mapping[str, Optimizer], start: Any, steps: int, seed: int
) -> dict[str, tuple[SharedLoop, int]]:
    """Return the loop of each entry that has one, and its row there."""
    if len(templates) < min(FEWEST_GENERAL, FEWEST_ON_FLOATS) or steps < FEWEST:
        return {}
    if not isinstance(surface, Surface) or surface.plan is None:
        return {}
    run = surface.run(start, seed)
    fewest = FEWEST_ON_FLOATS if run.on_floats else FEWEST_GENERAL
    names = [name for name, one in templates.items() if not one.layers()]
    if len(names) < fewest:
        return {}
    point = np.array(run.point.numpy())
    found: dict[str, tuple[SharedLoop, int]] = {}
    for group in groups_of_templates([templates[name] for name in names], np.arange(len(names))):
        size = 8 * len(group.numbers) * steps * (2 + 8 * surface.dimension)
        if len(group.numbers) >= fewest and size <= _LIMIT:
            loop = SharedLoop(surface, group, point, steps, seed)
            found |= {names[i]: (loop, row) for row, i in enumerate(group.numbers.tolist())}
    return found


def write_row(
    loop: SharedLoop, number: int, optimizer: Optimizer, run: Any, trace: Trace, counts: list[int]
) -> tuple[int, float] | None:
    """Write what an entry did into its trace, as its recorder would have done.

    Returns
    -------
    int and float, or None
        The number of updates, and the loss before the next one if it is not finite, NaN otherwise.
        None if the entry has to run by itself; nothing has changed then.
    """
    if why_general(optimizer, run):
        return None
    found = loop.row(number)
    if found is None:
        return None
    history, k = found
    stopped = int(history.stopped[k])
    steps = loop.steps if stopped < 0 else min(stopped, loop.steps)
    if steps:
        columns = trace.columns
        columns["step", 0].extend(np.arange(1, steps + 1))
        columns["loss", 0].extend(history.loss[k, :steps].copy())
        columns["learning_rate", 0].extend(loop.rates(optimizer)[:steps])
        share = loop.seconds / (len(loop.group.numbers) * loop.steps)
        columns["seconds", 0].extend(share * np.arange(1.0, steps + 1))
        columns["parameter", 0].extend(history.point[k, 1 : steps + 1].copy())
        columns["gradient", 0].extend(history.gradient[k, :steps].copy())
        for word, arrays in (("slot", history.slots), ("term", history.terms)):
            for name, rows in arrays.items():
                columns[f"{word} {name}", 0].extend(rows[k, :steps].copy())
        run.point.data[...] = history.point[k, steps]
    counts += range(1, steps + 1)
    return steps, float(history.loss[k, steps]) if 0 <= stopped < loop.steps else np.nan


def _agrees(run: EnsembleRun, trace: Trace) -> bool:
    """Return whether the first row has the numbers of a trace, to the bit."""
    n = len(trace)
    ended = n if trace.stopped else -1
    if int(run.stopped[0]) != ended or not n:
        return False
    pairs = [
        (run.loss[0, :n], trace.loss), (run.point[0, : n + 1], trace.parameters["point"]),
        (run.gradient[0, :n], trace.gradients["point"]),
    ]  # fmt: skip
    for arrays, recorded in ((run.slots, trace.slots), (run.terms, trace.terms)):
        if list(arrays) != list(recorded):
            return False
        pairs += [(arrays[name][0, :n], recorded[name]["point"]) for name in arrays]
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
