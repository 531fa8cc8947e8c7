"""Steps that wait to be written into the columns of a trace."""

from __future__ import annotations

import array as arrays
import math
import time
import weakref
from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from optlab.backend.arrays import on_host
from optlab.backend.memory.sizes import in_words
from optlab.trace.columns import Column
from optlab.trace.probes import Probe
from optlab.trace.probes.rows import RowProbe, Values
from optlab.trace.recordings.shown_rows import ShownRows
from optlab.trace.records import Record

_ARRAYS = {np.ndarray}


class PendingSteps:
    """Steps that wait to be written into the columns of a trace, and how they are written.

    It refers to the columns and, weakly, to their trace, which refers to it. So no cycle keeps an
    unreferenced trace alive: its memory is freed at once and serves the next run.

    Attributes
    ----------
    steps : list of tuple
        Number, whether it is on the clock of the trace, loss, rate, time, updates and the row
        probes of each.
    losses, rates, times : array of float
        Successive steps behind those, from step `first` on, of which nothing else is kept: a tuple
        a step, and lists that become arrays, take 0.3 us more. Times are those of the clock.
    """

    def __init__(
        self, trace: Any, row_probes: list[RowProbe], changes_gradients: bool, limit: int
    ) -> None:
        self.trace = weakref.ref(trace)
        self.columns: dict[tuple[str, int], Column] = trace.columns
        self.records: dict[str, Record] = trace.records
        self.left_out: list[str] = trace.sentences
        self.row_probes = row_probes
        self.changes_gradients = changes_gradients
        self.limit = limit
        #: Terms that are one number for a parameter: a probe of the optimizer's own keeps them.
        self.scalar_terms: Collection[str] = ()
        self.held = 0
        self.steps: list[Any] = []
        self.losses, self.rates, self.times = (arrays.array("d") for _ in range(3))
        self.first, self.started = 1, 0.0
        #: The arrays of these successive steps, of a run that keeps everything; None if there are
        #: none.
        self.shown: ShownRows | None = None
        #: The bytes of the last step of each row probe.
        self.last_bytes: dict[str, int] = {}
        #: Row probes that have been stopped, as memory is full.
        self.stopped: set[int] = set()
        #: Writes to a file, after so many steps; None if nothing does.
        self.writer: Any = None
        self.flush = 0
        self.committed = 0
        self.commits = False
        #: Whether a call is rehearsed, so that nothing may be written before it stands.
        self.holds = False
        #: Rows of arrays as they are after steps, which are written with the others.
        self.live_rows: list[Any] = []

    def write(self) -> None:
        """Write the waiting steps into the columns of the trace."""
        self.count_steps()
        if self.holds:
            return
        for rows in self.live_rows:
            rows.write()
        if self.losses and not self.steps and (self.shown is None or self._write_shown()):
            self._write_plain()
        self.settle()
        if self.steps:
            self._write_steps()
        if self.writer is not None and self.held > self.limit // 2 and not self.commits:
            self.commit()

    def count_steps(self) -> None:
        """Let the trace know how many steps were taken."""
        trace = self.trace()
        if self.losses and trace is not None:
            trace.steps_taken = self.first + len(self.losses) - 1

    def settle(self) -> None:
        """Put the steps of which nothing else is kept behind the others."""
        self.count_steps()
        count = len(self.losses)
        if count:
            scalars = zip(self.losses, self.rates, self.times, strict=True)
            rows: Any = repeat(None)
            probes: Any = ()
            if self.shown is not None:
                rows, probes = self.shown.as_updates(count), self.row_probes
            self.steps += [
                (number, True, loss, rate, now - self.started, updates, probes)
                for (number, (loss, rate, now)), updates in zip(
                    enumerate(scalars, self.first), rows, strict=False
                )
            ]
            self._begin_anew()
        self.shown = None

    def show(self, shown: Any) -> ShownRows:
        """Begin a table of the arrays of steps, behind those that wait."""
        self.write()
        self.settle()
        trace = self.trace()
        if trace is not None:
            self.first = trace.steps_taken + 1
        self.shown = rows = ShownRows(shown)
        return rows

    def _begin_anew(self) -> None:
        self.first += len(self.losses)
        for one in (self.losses, self.rates, self.times):
            del one[:]

    def _write_shown(self) -> bool:
        """Write the arrays of steps that were shown; return whether there was place for them."""
        rows, count, (probe,) = self.shown, len(self.losses), self.row_probes
        clock = self.columns.get((f"steps of {probe.clock}", 0))
        if rows is None or clock is not None or id(probe) in self.stopped:
            return False
        started = time.perf_counter()
        before = len(self.columns["step", 0])
        size = rows.table.itemsize * rows.table.shape[1]
        for kind in rows.kinds:
            if len(self.columns[kind, 0]) != before + (kind == "parameter"):
                return False
        if self.writer is None and self.held + size * count > self.limit:
            return False
        for kind, table in rows.of_kinds(count):
            self.columns[kind, 0].extend(table)
        self.count(probe, size, count)
        self.records[probe.label].seconds += time.perf_counter() - started
        return True

    def _write_plain(self) -> None:
        """Write the steps of which nothing else is kept."""
        column, first = self.columns, self.first
        column["step", 0].extend(np.arange(first, first + len(self.losses)))
        column["loss", 0].extend(np.array(self.losses))
        column["learning_rate", 0].extend(np.array(self.rates))
        column["seconds", 0].extend(np.array(self.times) - self.started)
        self._begin_anew()

    def _write_steps(self) -> None:
        """Write the waiting steps."""
        steps, self.steps = self.steps, []
        mains: list[Any] = []
        if len(steps) > 1 and self._write_alike(steps):
            self._write_mains(steps)
            steps = []
        for one in steps:
            if one[1]:
                mains.append(one)
            for probe in one[6]:
                if id(probe) not in self.stopped:
                    self._write_mains(mains)
                    self._write_rows(probe, one[0], one[5])
        self._write_mains(mains)

    def _write_alike(self, steps: list[Any]) -> bool:
        """Write the rows of steps of which one probe keeps everything; return whether they are so.

        A run of two numbers takes thousands of steps a second: its rows are written kind by kind.
        """
        probes = steps[0][6]
        probe = probes[0] if len(probes) == 1 else None
        if not isinstance(probe, Values) or not probe.keeps_everything:
            return False
        clock = self.columns.get((f"steps of {probe.clock}", 0))
        if clock is not None or id(probe) in self.stopped:
            return False
        if any(not one[1] or one[6] is not probes for one in steps):
            return False
        started = time.perf_counter()
        first, before = steps[0][5], len(self.columns["step", 0])
        found: list[tuple[str, int, list[Any]]] = []
        size = 0
        for i, row in enumerate(first):
            if type(row.parameter) is not np.ndarray:
                return False
            rows = [one[5][i] for one in steps]
            shape, slots, terms = row.parameter.shape, row.slots.keys(), row.terms.keys()
            if any(r.slots.keys() != slots or r.terms.keys() != terms for r in rows):
                return False
            kinds = [("parameter", [r.parameter for r in rows]),
                     ("gradient", [r.raw_gradient for r in rows])]  # fmt: skip
            kinds += [(f"slot {name}", [r.slots[name] for r in rows]) for name in slots]
            if self.changes_gradients:
                kinds.append(("term used_gradient", [r.gradient for r in rows]))
            for name in terms:
                listed = [r.terms[name] for r in rows]
                if set(map(type, listed)) != _ARRAYS or {x.shape for x in listed} != {shape}:
                    return False
                kinds.append((f"term {name}", listed))
            for kind, listed in kinds:
                if set(map(type, listed)) != _ARRAYS:
                    return False
                column = self.columns[kind, i]
                if len(column) != before + (kind == "parameter"):
                    return False
                found.append((kind, i, listed))
                size += listed[0].nbytes
        if self.writer is None and self.held + size * len(steps) > self.limit:
            return False
        for kind, i, listed in found:
            self.columns[kind, i].append_all(listed)
        self.count(probe, size, len(steps))
        self.records[probe.label].seconds += time.perf_counter() - started
        return True

    def _write_mains(self, mains: list[Any]) -> None:
        """Write step, loss, rate and time of steps, and forget these."""
        column = self.columns
        if len(mains) == 1:  # a step of a toy run: without more lists
            taken, _, loss, rate, now, _, _ = mains[0]
            column["step", 0].append(taken)
            column["loss", 0].append(math.nan if loss is None else loss)
            column["learning_rate", 0].append(rate)
            column["seconds", 0].append(now)
        elif mains:
            column["step", 0].append_all([one[0] for one in mains])
            losses = [math.nan if one[2] is None else one[2] for one in mains]
            column["loss", 0].append_all(losses)
            column["learning_rate", 0].append_all([one[3] for one in mains])
            column["seconds", 0].append_all([one[4] for one in mains])
        mains.clear()

    def clock_at(self, probe: RowProbe, taken: int) -> Column | None:
        """Return the clock of a probe, which is at this step now; None if memory is full."""
        if self.writer is None and self.held + self.last_bytes.get(probe.label, 0) > self.limit:
            self._stop(probe, taken)
            return None
        clock = self.columns.get((f"steps of {probe.clock}", 0))
        if clock is None:
            return self.columns["step", 0]
        clock.append(taken)
        return clock

    def count(self, probe: RowProbe, added: int, steps: int = 1) -> None:
        """Count the bytes of a step of a probe, or of several alike."""
        self.held += added * steps
        self.last_bytes[probe.label] = added
        self.records[probe.label].bytes += added * steps

    def _write_rows(self, probe: RowProbe, taken: int, rows: Sequence[Any]) -> None:
        """Write the rows of the updates of a step."""
        started = time.perf_counter()
        clock = self.clock_at(probe, taken)
        if clock is None:
            return
        before = len(clock) - 1
        added, columns, prefix, make = 0, self.columns, probe.prefix, probe.row
        for i, row in enumerate(rows):
            for kind, there in kinds_of(row, self.changes_gradients, self.scalar_terms):
                made = make(i, on_host(there))  # traces are read, drawn and saved on the host
                if made is None:
                    continue
                added += made.nbytes
                column = columns[prefix + kind, i]
                wanted = before + (kind == "parameter" and not prefix)
                if column.count < wanted:
                    column.fill(wanted, made)
                column.append(made)
        self.count(probe, added)
        self.records[probe.label].seconds += time.perf_counter() - started

    def _stop(self, probe: RowProbe, taken: int) -> None:
        """Keep nothing more of a probe: memory is full."""
        self.stopped.add(id(probe))
        key = f"steps of {probe.clock}", 0
        if key not in self.columns:
            known = self.columns["step", 0].array(np.int64)
            self.columns[key].extend(known[known < taken])
        self.left_out.append(self.sentence_of_limit(probe, taken))

    def sentence_of_limit(self, probe: Probe, taken: int) -> str:
        """Return what is left out as memory is full."""
        limit = in_words(self.limit)
        return f"{probe.label}: steps from {taken} on (the limit of {limit} is reached)."

    def commit(self) -> None:
        """Write everything so far to the file."""
        trace = self.trace()
        if self.writer is None or trace is None:
            return
        self.commits = True
        try:
            self.write()
            if self.writer.commit(trace):
                self.held = 0
            else:
                self.writer = None
        finally:
            self.commits = False


def kinds_of(
    row: Any, changes_gradients: bool, without: Collection[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of one update that are recorded, with the kind of their column."""
    yield "parameter", row.parameter
    yield "gradient", row.raw_gradient
    for name, array in row.slots.items():
        yield f"slot {name}", array
    if changes_gradients:
        yield "term used_gradient", row.gradient
    for name, array in row.terms.items():
        if name in without:
            continue
        whole = np.shape(array) == row.parameter.shape
        yield f"term {name}", array if whole else np.broadcast_to(array, row.parameter.shape)
