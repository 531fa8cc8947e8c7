"""A recording of one run: probes with their schedules, and the steps that they are shown."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from optlab.backend import random
from optlab.backend.arrays import on_host
from optlab.trace.columns import Column
from optlab.trace.probes import Memory, Probe, Run, Step
from optlab.trace.probes.rows import RowProbe
from optlab.trace.recordings.limits import WAITING_ELEMENTS, WAITING_STEPS
from optlab.trace.recordings.live_rows import LiveRows
from optlab.trace.recordings.parts import scalar_terms_of
from optlab.trace.recordings.pending import PendingSteps
from optlab.trace.records import Record


class Recording:
    """A recording of one run: probes with their schedules, and the steps that they are shown.

    Parameters
    ----------
    trace : Trace
        Empty, or one that goes on.
    run : Run
    probes : list of Probe
    every : int
        The schedule of loss, rate and time, and of probes without their own.
    limit : int
        The most bytes of rows in memory.
    changes_gradients : bool
        Whether clipping or decay change the gradient before the rule.
    """

    def __init__(
        self,
        trace: Any,
        run: Run,
        probes: list[Probe],
        every: int,
        limit: int,
        changes_gradients: bool,
    ) -> None:
        self.trace, self.run, self.every = trace, run, every
        self.probes = probes
        self.row_probes = [p for p in probes if isinstance(p, RowProbe)]
        self.others = [p for p in probes if not isinstance(p, (RowProbe, Memory))]
        self.due = {id(p): p.schedule.with_default(every) for p in probes}
        self.pending = PendingSteps(trace, self.row_probes, changes_gradients, limit)
        self.pending.scalar_terms = scalar_terms_of(run.optimizer)
        #: Whether every row probe has the schedule of the trace, and there are no other probes.
        self.simple = not self.others and all(
            p.needs_update and (not p.schedule.is_given or p.schedule.every == every)
            for p in self.row_probes
        )
        #: Row probes that read arrays as they are after the step, and what they make.
        self.live = [p for p in self.row_probes if not p.needs_update]
        self.live_rows: list[LiveRows] = []
        self.row_probes = [p for p in self.row_probes if p.needs_update]
        #: The next step at which something is to be done besides loss, rate and time: a probe
        #: observes, or another one observes the step after it.
        self.next_due: float = 1
        #: The next step that live rows are of: what was before it is copied after the one before.
        self.next_live: float = math.inf
        self.prepared = [p for p in self.others if type(p).before_step is not Probe.before_step]
        self.elements = sum(part.bounds[-1] for part in run.parts) if self.row_probes else 0
        self.waiting_elements = 0
        self.started = 0.0
        #: The gradients of the step, if they were given in place of those that parameters hold.
        self.given_gradients: Any = None
        #: Whether probes run just now: what they do is not part of the run.
        self.busy = False

    def start(self) -> None:
        """Prepare probes and columns."""
        try:
            self._start()
        except BaseException:
            for probe in self.probes:
                probe.stop()
            raise

    def _start(self) -> None:
        trace = self.trace
        for probe in self.probes:
            if probe.label in trace.records and not trace.is_resumed:
                raise ValueError(
                    f"two probes are called {probe.label!r}. Give one of them another label: a "
                    "class of its own with the property `label`."
                )
            probe.start(self.run)
            record = trace.records.setdefault(probe.label, Record(probe.label, repr(probe)))
            record.refresh, record.faults = probe.result, probe.left_out
        self.live_rows = [
            LiveRows(p, self.run, self.pending, trace.records[p.label]) for p in self.live
        ]
        self.pending.live_rows = self.live_rows
        current = None
        for probe in [*self.row_probes, *self.live]:
            if probe.clock not in trace.layouts:
                trace.layouts[probe.clock] = [probe.layout(i) for i in range(len(self.run.parts))]
                own = probe.schedule
                if not probe.needs_update or (own.is_given and own.every != self.every):
                    trace.columns[f"steps of {probe.clock}", 0] = Column()
            if probe.clock == "values" and ("parameter", 0) not in trace.columns:
                current = current or [on_host(part.values().copy()) for part in self.run.parts]
                for i, row in enumerate(current):
                    chosen = probe.row(i, row)
                    if chosen is not None:
                        trace.columns["parameter", i].append(chosen)
        trace.complete = self.pending.write
        self.started = self.pending.started = time.perf_counter() - trace.seconds_before
        self._prepare(trace.steps_taken + 1)

    def write_to(self, writer: Any, flush: int) -> None:
        """Write to a file after every `flush` steps, and at the end."""
        self.pending.writer, self.pending.flush = writer, flush
        self.pending.committed = self.trace.steps_taken

    def needs_update(self, number: int) -> bool:
        """Return whether a probe that reads the update observes step `number`."""
        return any(p.needs_update and self.due[id(p)].is_due(number) for p in self.probes)

    @property
    def needs_every_update(self) -> bool:
        """Whether a probe reads the update at every step."""
        return any(p.needs_update and self.due[id(p)].every == 1 for p in self.probes)

    def _prepare(self, number: int) -> None:
        """Prepare for step `number`, and find out what comes next."""
        for probe in self.prepared:
            probe.before_step(number, self.due[id(probe)].is_due(number))
        if self.simple and not self.live:
            return
        due = self.due
        if self.live:
            for rows in self.live_rows:
                rows.next = due[id(rows.probe)].next_after(number - 1)
            self.next_live = min([rows.next for rows in self.live_rows])
            if number == self.next_live:
                self.copy_values()
        # What is to be prepared is so after the step before.
        others = [due[id(p)].next_after(number - 1) - 1 for p in [*self.row_probes, *self.others]]
        following = min(others, default=math.inf)
        self.next_due = number if self.prepared else min(following, self.next_live)

    def copy_values(self) -> None:
        """Copy the parameters before the step that live rows are of."""
        for rows in self.live_rows:
            if rows.next == self.next_live:
                rows.copy_values()

    def take(
        self, number: int, loss: float | None, rate: Callable[[], float], rows: Callable[[], Any]
    ) -> None:
        """Record a step."""
        is_main = (number - 1) % self.every == 0
        if self.simple:
            if is_main:
                self._wait(number, True, loss, rate(), rows, self.row_probes)
        elif number < self.next_due:
            if is_main:
                self._wait(number, True, loss, rate(), rows, [])
            if number + 1 == self.next_live:
                self.copy_values()
        else:
            due = self.due
            row_probes = [p for p in self.row_probes if due[id(p)].is_due(number)]
            others = [p for p in self.others if due[id(p)].is_due(number)]
            if is_main or row_probes or others:
                now_rate = rate()
                self._wait(number, is_main, loss, now_rate, rows, row_probes)
                if others:
                    self._observe(others, number, loss, now_rate, rows)
            for live in self.live_rows:
                if due[id(live.probe)].is_due(number):
                    live.observe(number, self.given_gradients)
            self._prepare(number + 1)
        if self.pending.writer is not None:
            self._commit_if_due(number)

    def _commit_if_due(self, number: int) -> None:
        pending = self.pending
        if number - pending.committed >= pending.flush:
            pending.committed = number
            pending.commit()

    def _wait(
        self,
        number: int,
        is_main: bool,
        loss: float | None,
        rate: float,
        rows: Callable[[], Any],
        row_probes: list[RowProbe],
    ) -> None:
        now = time.perf_counter() - self.started
        pending = self.pending
        # The arrays of the updates do not change, so writing them can wait.
        found = rows() if row_probes else None
        pending.steps.append((number, is_main, loss, rate, now, found, row_probes))
        if row_probes:
            self.waiting_elements += self.elements
        if len(pending.steps) >= WAITING_STEPS or self.waiting_elements >= WAITING_ELEMENTS:
            self.waiting_elements = 0
            pending.write()

    def _observe(
        self,
        probes: list[Probe],
        number: int,
        loss: float | None,
        rate: float,
        rows: Callable[[], Any],
    ) -> None:
        given = rows() if any(p.needs_update for p in probes) else None
        seconds = time.perf_counter() - self.started
        value = math.nan if loss is None else loss
        fast = Step(self.run, number, value, rate, seconds, None)
        slow = fast if given is None else Step(self.run, number, value, rate, seconds, given)
        self.busy = True
        try:
            for probe in probes:
                self._observe_one(probe, slow if probe.needs_update else fast)
        finally:
            self.busy = False

    def _observe_one(self, probe: Probe, step: Step) -> None:
        pending, record = self.pending, self.trace.records[probe.label]
        if id(probe) in pending.stopped:
            return
        started = time.perf_counter()
        # What a probe draws does not touch the stream of the run.
        with random.scope("probe", probe.label, step.number):
            found = probe.observe(step)
        size = record.bytes // max(1, len(record.steps))
        if pending.writer is None and pending.held + size > pending.limit:
            pending.stopped.add(id(probe))
            pending.left_out.append(pending.sentence_of_limit(probe, step.number))
            return
        added = record.append(step.number, found)
        pending.held += added
        record.bytes += added
        record.seconds += time.perf_counter() - started

    def stop(self) -> None:
        """Write what waits, and let the probes go."""
        self.pending.write()
        for probe in self.probes:
            probe.stop()
        self.pending.commit()
