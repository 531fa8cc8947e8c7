"""Rows of the arrays of a run as they are after a step, which itself runs at full speed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from optlab.backend.arrays import on_host
from optlab.trace.columns import Column
from optlab.trace.probes import Run
from optlab.trace.probes.rows import RowProbe
from optlab.trace.recordings.pending import PendingSteps


class LiveRows:
    """The rows of one probe that reads arrays as they are after the step.

    Memory for what parameters were before the step is kept: a step that is observed allocates
    little.
    """

    def __init__(self, probe: RowProbe, run: Run, pending: PendingSteps, record: Any) -> None:
        self.probe, self.parts, self.pending, self.record = probe, run.parts, pending, record
        #: The parameters before the step that is observed next.
        self.before: list[Any] = [None] * len(run.parts)
        #: The names of the slots that the columns of each part are of, and the columns.
        self._columns: list[tuple[Any, list[Column]]] = [((), [])] * len(run.parts)

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
            # What the parameters were is not needed any more.
            update = np.subtract(now, self.before[i], out=self.before[i])
            if missing:
                (gradients,) = gradients
                update = np.where(np.isnan(gradients), np.nan, update)
                gradients = [gradients]
            arrays = [now, gradients, *slots.values(), update]
            if type(now) is not np.ndarray:
                arrays = [
                    [on_host(one) for one in x] if type(x) is list else on_host(x) for x in arrays
                ]
            found.append((i, tuple(slots), self.probe.rows(i, arrays)))
        return found

    def observe(self, number: int, given_gradients: Any) -> None:
        """Write the rows of step `number`."""
        started = time.perf_counter()
        if id(self.probe) in self.pending.stopped:
            return
        found = self.made(given_gradients)
        if self.pending.holds:
            self.pending.hold(self.write, number, found)
        else:
            self.write(number, found)
        self.record.seconds += time.perf_counter() - started

    def write(self, number: int, found: list[tuple[int, Any, Any]]) -> None:
        """Write what `made` has returned into the columns."""
        pending, probe = self.pending, self.probe
        clock = pending.clock_at(probe, number)
        if clock is None:
            return
        before, added = len(clock) - 1, 0
        for i, names, rows in found:
            known, columns = self._columns[i]
            if known != names or not columns:
                kinds = ["parameter", "gradient", *(f"slot {name}" for name in names)]
                columns = [
                    pending.columns[probe.prefix + kind, i] for kind in [*kinds, "term update"]
                ]
                self._columns[i] = names, columns
            for column, row in zip(columns, rows, strict=True):
                if column.count < before:
                    column.fill(before, row)
                column.append(row)
                added += row.nbytes
        pending.count(probe, added)
