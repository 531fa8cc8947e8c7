"""Rows of the arrays of a run as they are after a step, which itself runs at full speed."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from optlab.backend.arrays import on_host
from optlab.trace.columns import Column
from optlab.trace.probes import Run
from optlab.trace.probes.rows import RowProbe
from optlab.trace.recordings.pending import PendingSteps

#: The most steps whose rows wait to be written together.
MOST = 64


class LiveRows:
    """The rows of one probe that reads arrays as they are after the step.

    Memory for what parameters were before the step is kept: a step that is observed allocates
    little.
    """

    def __init__(self, probe: RowProbe, run: Run, pending: PendingSteps, record: Any) -> None:
        self.probe, self.parts, self.pending, self.record = probe, run.parts, pending, record
        #: The parameters before the step that is observed next.
        self.before: list[Any] = [None] * len(run.parts)
        #: Steps whose rows are not in the columns yet: their numbers, and for each part its number,
        #: the names of its slots, and rows [step, kind, ...].
        self.waiting: list[tuple[list[int], list[tuple[int, Any, Any]]]] = []
        #: The next step that is observed.
        self.next: float = math.inf
        #: Takes some of the steps in a shorter way, and has their rows.
        self.pinned: Any = None

    def copy_values(self) -> None:
        """Copy the parameters before a step that is observed."""
        for i, part in enumerate(self.parts):
            values, kept = part.values(), self.before[i]
            if type(values) is type(kept) is np.ndarray and values.dtype == kept.dtype:
                np.copyto(kept, values)
            else:
                self.before[i] = values.copy()

    def made(self, given_gradients: Any) -> list[tuple[int, Any, Any]]:
        """Return the number of each part, the names of its slots, and its rows.

        Rows are those of the parameters, the gradients, the slots and the update.
        """
        found = []
        for i, part in enumerate(self.parts):
            now, (gradients, missing) = part.values(), part.gradients(given_gradients)
            slots = part.slots()
            if type(now) is np.ndarray and not missing:
                rows = self.probe.live_rows(i, now, gradients, slots.values(), self.before[i])
                if rows is not None:
                    found.append((i, tuple(slots), rows))
                    continue
            with np.errstate(all="ignore"):  # a run that diverges does so without this
                found.append((i, tuple(slots), self._by_numpy(i, now, gradients, missing, slots)))
        return found

    def _by_numpy(
        self, i: int, now: Any, gradients: list[Any], missing: bool, slots: dict[str, Any]
    ) -> Any:
        """Return the rows of a part, from arrays of any kind."""
        # What the parameters were is not needed any more.
        update = np.subtract(now, self.before[i], out=self.before[i])
        if missing:
            (gradient,) = gradients
            update = np.where(np.isnan(gradient), np.nan, update)
        arrays = [now, gradients, *slots.values(), update]
        if type(now) is not np.ndarray:
            arrays = [
                [on_host(one) for one in x] if type(x) is list else on_host(x) for x in arrays
            ]
        return self.probe.rows(i, arrays)

    def observe(self, number: int, given_gradients: Any) -> None:
        """Write the rows of step `number`."""
        started = time.perf_counter()
        if id(self.probe) in self.pending.stopped:
            return
        found = [(i, names, [rows]) for i, names, rows in self.made(given_gradients)]
        self.waiting.append(([number], found))
        if len(self.waiting) >= MOST and not self.pending.holds:
            self.write()
        self.record.seconds += time.perf_counter() - started

    def write(self) -> None:
        """Write the rows that wait into the columns."""
        if self.pinned is not None:
            self.pinned.settle()
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        names = [[part[1] for part in found] for _, found in waiting]
        numbers = [number for several, _ in waiting for number in several]
        size = sum(row.nbytes for _, _, rows in waiting[0][1] for row in rows[0])
        pending = self.pending
        fits = pending.writer is not None or pending.held + len(numbers) * size <= pending.limit
        if fits and all(other == names[0] for other in names):
            self._write_together(numbers, [found for _, found in waiting], size)
        else:
            for several, found in waiting:
                for k, number in enumerate(several):
                    self._write_one(number, [(i, names, rows[k]) for i, names, rows in found])

    def _write_together(self, numbers: list[int], waiting: list[Any], size: int) -> None:
        """Write the rows of several steps, of the same slots and within the limit."""
        pending, probe = self.pending, self.probe
        clock = pending.columns[f"steps of {probe.clock}", 0]
        before = len(clock)
        clock.append_all(numbers)
        for k, (i, names, _) in enumerate(waiting[0]):
            table = np.concatenate([found[k][2] for found in waiting])
            for j, column in enumerate(self._columns_of(i, names)):
                column.fill(before, table[0, j])
                column.extend(table[:, j])
        pending.count(probe, size, len(numbers))

    def _write_one(self, number: int, found: list[tuple[int, Any, Any]]) -> None:
        """Write the rows of one step, if there is room."""
        pending, probe = self.pending, self.probe
        if id(probe) in pending.stopped:
            return
        clock = pending.clock_at(probe, number)
        if clock is None:
            return
        before, added = len(clock) - 1, 0
        for i, names, rows in found:
            for column, row in zip(self._columns_of(i, names), rows, strict=True):
                column.fill(before, row)
                column.append(row)
                added += row.nbytes
        pending.count(probe, added)

    def _columns_of(self, i: int, names: tuple[str, ...]) -> list[Column]:
        kinds = ["parameter", "gradient", *(f"slot {name}" for name in names), "term update"]
        return [self.pending.columns[self.probe.prefix + kind, i] for kind in kinds]
