"""Recordings: they take the steps of a run, and write them into the columns of a trace.

This is the machinery behind `optlab.record`; it knows traces by what they hold.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import ZERO
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.tensor import raw
from optlab.backend import events, random
from optlab.backend.arrays import on_host
from optlab.backend.memory.sizes import in_words
from optlab.optimizer.params.groups import parameter_names
from optlab.optimizer.step.records import whole_updates
from optlab.trace.columns import Column
from optlab.trace.probes import Memory, Probe, Run, Step
from optlab.trace.probes.base import Part
from optlab.trace.probes.rows import RowProbe
from optlab.trace.records import Record

#: Elements that waiting steps may keep alive, and the most steps that wait.
WAITING_ELEMENTS = 20_000
WAITING_STEPS = 512


class PendingSteps:
    """Steps that wait to be written into the columns of a trace, and how they are written.

    It refers to the columns and, weakly, to their trace, which refers to it. So no cycle keeps an
    unreferenced trace alive: its memory is freed at once and serves the next run.

    Attributes
    ----------
    steps : list of tuple
        Number, whether it is on the clock of the trace, loss, rate, time, updates and the row
        probes of each.
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
        self.held = 0
        self.steps: list[Any] = []
        #: The bytes of the last step of each row probe.
        self.last_bytes: dict[str, int] = {}
        #: Row probes that have been stopped, as memory is full.
        self.stopped: set[int] = set()
        #: Writes to a file, after so many steps; None if nothing does.
        self.writer: Any = None
        self.flush = 0
        self.committed = 0
        self.commits = False

    def write(self) -> None:
        """Write the waiting steps into the columns of the trace."""
        steps, self.steps = self.steps, []
        if not steps:
            return
        mains: list[Any] = []
        for one in steps:
            if one[1]:
                mains.append(one)
            for probe in one[6]:
                if id(probe) not in self.stopped:
                    self._write_mains(mains)
                    self._write_rows(probe, one[0], one[5])
        self._write_mains(mains)
        if self.writer is not None and self.held > self.limit // 2 and not self.commits:
            self.commit()

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

    def write_live(
        self, probe: RowProbe, taken: int, rows: list[tuple[str, int, np.ndarray]]
    ) -> None:
        """Write rows that were made of the arrays of a step: kind, part and row of each."""
        if id(probe) in self.stopped:
            return
        clock = self._clock_at(probe, taken)
        if clock is not None:
            before = len(clock) - 1
            for kind, i, made in rows:
                column = self.columns[kind, i]
                column.fill(before, made)
                column.append(made)
            self._count(probe, sum(made.nbytes for _, _, made in rows))

    def _clock_at(self, probe: RowProbe, taken: int) -> Column | None:
        """Return the clock of a probe, which is at this step now; None if memory is full."""
        if self.writer is None and self.held + self.last_bytes.get(probe.label, 0) > self.limit:
            self._stop(probe, taken)
            return None
        clock = self.columns.get((f"steps of {probe.clock}", 0))
        if clock is None:
            return self.columns["step", 0]
        clock.append(taken)
        return clock

    def _count(self, probe: RowProbe, added: int) -> None:
        self.held += added
        self.last_bytes[probe.label] = added
        self.records[probe.label].bytes += added

    def _write_rows(self, probe: RowProbe, taken: int, rows: Sequence[Any]) -> None:
        """Write the rows of the updates of a step."""
        started = time.perf_counter()
        clock = self._clock_at(probe, taken)
        if clock is None:
            return
        before = len(clock) - 1
        added, columns, prefix, make = 0, self.columns, probe.prefix, probe.row
        for i, row in enumerate(rows):
            for kind, there in kinds_of(row, self.changes_gradients):
                made = make(i, on_host(there))  # traces are read, drawn and saved on the host
                if made is None:
                    continue
                added += made.nbytes
                column = columns[prefix + kind, i]
                wanted = before + (kind == "parameter" and not prefix)
                if column.count < wanted:
                    column.fill(wanted, made)
                column.append(made)
        self._count(probe, added)
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


def kinds_of(row: Any, changes_gradients: bool) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of one update that are recorded, with the kind of their column."""
    yield "parameter", row.parameter
    yield "gradient", row.raw_gradient
    for name, array in row.slots.items():
        yield f"slot {name}", array
    if changes_gradients:
        yield "term used_gradient", row.gradient
    for name, array in row.terms.items():
        whole = np.shape(array) == row.parameter.shape
        yield f"term {name}", array if whole else np.broadcast_to(array, row.parameter.shape)


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
        #: Whether every row probe has the schedule of the trace, and there are no other probes.
        self.simple = not self.others and all(
            p.needs_update and (not p.schedule.is_given or p.schedule.every == every)
            for p in self.row_probes
        )
        #: Row probes that read arrays as they are after the step, and what these were before it.
        self.live = [p for p in self.row_probes if not p.needs_update]
        self.row_probes = [p for p in self.row_probes if p.needs_update]
        self._before: list[Any] = []
        #: The next step at which a probe observes.
        self.next_due: float = 1
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
        self.started = time.perf_counter() - trace.seconds_before
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
        for probe in self.prepared:
            probe.before_step(number, self.due[id(probe)].is_due(number))
        if any(self.due[id(p)].is_due(number) for p in self.live):
            self._before = [part.values().copy() for part in self.run.parts]
        if not self.simple:
            following = [self.due[id(p)].next_after(number - 1) for p in self.probes]
            # What is to be prepared is so after the step before.
            self.next_due = number if self.prepared else min(following, default=math.inf) - 1

    def _write_live(self, probe: RowProbe, number: int) -> None:
        """Write the rows of the arrays as they are now."""
        started = time.perf_counter()
        found = []
        for i, (part, before) in enumerate(zip(self.run.parts, self._before, strict=True)):
            now, (gradient, missing) = part.values(), part.gradients(self.given_gradients)
            update = now - before
            if missing:
                update = np.where(np.isnan(gradient), np.nan, update)
            kinds = ["parameter", "gradient", *(f"slot {name}" for name in part.slots())]
            arrays = [now, gradient, *part.slots().values(), update]
            made = probe.rows(i, [on_host(array) for array in arrays])
            for kind, row in zip([*kinds, "term update"], made, strict=True):
                found.append((probe.prefix + kind, i, row))
        self.pending.write_live(probe, number, found)
        self.trace.records[probe.label].seconds += time.perf_counter() - started

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
        else:
            due = self.due
            row_probes = [p for p in self.row_probes if due[id(p)].is_due(number)]
            others = [p for p in self.others if due[id(p)].is_due(number)]
            if is_main or row_probes or others:
                now_rate = rate()
                self._wait(number, is_main, loss, now_rate, rows, row_probes)
                if others:
                    self._observe(others, number, loss, now_rate, rows)
            live = [p for p in self.live if due[id(p)].is_due(number)]
            for probe in live:
                self._write_live(probe, number)
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


class OptimizerRecording(Recording):
    """A recording of an optimizer of optlab: it listens to its events.

    Where no probe needs every update, steps between run at full speed: it listens to updates only
    at the steps that one observes.
    """

    def __init__(self, optimizer: Any, ledger: Any, *rest: Any) -> None:
        super().__init__(*rest)
        self.optimizer = optimizer
        self.flats = [flat for group in optimizer.groups for flat in group.arenas]
        self._parameters = optimizer.parameters
        self._memory = ledger
        self.bytes: Any = None
        self.asks_for_the_loss = hasattr(optimizer, "loss_of_step") or hasattr(
            optimizer, "inner_optimizer"
        )
        innermost = optimizer
        while hasattr(innermost, "inner_optimizer"):
            innermost = innermost.inner_optimizer
        self.innermost = innermost
        #: Whether it listens to the updates of every step.
        self.always = self.needs_every_update or innermost.custom_step
        self._listens = False
        self._updates: Any = None
        self._skipped = 0
        self._loss: float | None = None
        #: The first leaf of the last backward pass that reached a parameter.
        self._leaf: Any = None
        #: Whether steps that no probe observes take the short way of `_on_finished`.
        self._short = not self.asks_for_the_loss and ledger is None

    def start(self) -> None:
        """Begin to listen."""
        super().start()
        if self._memory is not None:
            self.bytes = self._memory.__enter__()
        events.backward_finished.subscribe(self._on_backward)
        self._skipped = self.optimizer.skipped
        if self.always:
            events.step_taken.subscribe(self._on_step)
        else:
            events.step_finished.subscribe(self._on_finished)
            self._listen_if_needed()

    def stop(self) -> None:
        """End to listen."""
        events.backward_finished.unsubscribe(self._on_backward)
        for event, listener in (
            (events.step_taken, self._on_step),
            (events.step_taken, self._on_update),
            (events.step_finished, self._on_finished),
        ):
            event.unsubscribe(listener)
        if self._memory is not None:
            self._memory.__exit__(None, None, None)
            self.bytes = None
        super().stop()

    def _listen_if_needed(self) -> None:
        if self.trace.steps_taken + 1 < self.next_due and not self._listens:
            return
        wanted = self.needs_update(self.trace.steps_taken + 1)
        if wanted and not self._listens:
            events.step_taken.subscribe(self._on_update)
        elif self._listens and not wanted:
            events.step_taken.unsubscribe(self._on_update)
        self._listens = wanted

    def _on_backward(self, value: Any, leaves: list[Any]) -> None:
        if self.busy:
            return
        if not leaves or leaves[0] is not self._leaf:
            for p in self._parameters:
                if p.node in leaves:
                    break
            else:
                return
            self._leaf = leaves[0]  # in a loop it is the same next time
        if value is not None:
            total = float(value if value.shape == () else value.sum())
            self._loss = total if self._loss is None else self._loss + total

    def _on_update(self, optimizer: Any, updates: Any) -> None:
        if optimizer is self.optimizer:
            self._updates = updates

    def _on_finished(self, optimizer: Any) -> None:
        if optimizer is not self.optimizer or self.busy:
            if optimizer is self.innermost:
                self.given_gradients = optimizer.given_gradients
            return
        if (skipped := optimizer.skipped) != self._skipped:  # by not_finite="skip"
            self._skipped = skipped
            return
        trace = self.trace
        number = trace.steps_taken + 1
        if number < self.next_due and self._short:
            trace.steps_taken = number
            loss, self._loss = self._loss, None
            if not (number - 1) % self.every:
                now = time.perf_counter() - self.started
                rate = optimizer.get_lr() * optimizer.groups[0].multiplier
                steps = self.pending.steps
                steps.append((number, True, loss, rate, now, None, ()))
                if len(steps) >= WAITING_STEPS:
                    self.pending.write()
            if self.pending.writer is not None:
                self._commit_if_due(number)
            return
        if optimizer is self.innermost:
            self.given_gradients = optimizer.given_gradients
        updates, self._updates = self._updates, None
        self._on_step(optimizer, updates)
        self._listen_if_needed()

    def _on_step(self, optimizer: Any, updates: Any) -> None:
        if optimizer is not self.optimizer or self.busy:
            return
        number = self.trace.steps_taken = self.trace.steps_taken + 1
        # LBFGS runs several backward passes per step, and provides the loss before it itself.
        loss, self._loss = self._loss, None
        if self.asks_for_the_loss:
            loss = getattr(optimizer, "loss_of_step", loss)
        if self.bytes is not None:
            memory = self.bytes.cut(type(optimizer).__name__)
            if (number - 1) % self.every == 0:
                self.trace.columns["memory", 0].append(memory)
        self.take(number, loss, self._rate, lambda: self._rows(updates))

    def _rate(self) -> float:
        optimizer = self.optimizer
        return optimizer.get_lr() * optimizer.groups[0].multiplier  # type: ignore[no-any-return]

    def _rows(self, updates: Any) -> Any:
        # What a step left out must be read from the flat arrays now.
        return whole_updates(self.flats, updates, self.optimizer.get_lr())


def changes_gradients(optimizer: Any) -> bool:
    """Return whether clipping or decay change the gradient before the rule."""
    return any(
        group.grad_clip is not None or group.regularizer is not None for group in optimizer.groups
    ) or any(getattr(p, "regularizer", None) is not None for p in optimizer.parameters)


def _live_gradients(flat: Any, given: Any) -> Any:
    """Return the gradients that parameters hold, or that were given in their place, flat.

    With whether one is missing: NaN stands for it.
    """
    found, missing = [], False
    for p in flat.parameters:
        node = p.node
        g = None if node is None else node.grad
        if given is not None:
            g = raw(given.get(id(p)))
        if g is ZERO:
            g = np.zeros_like(p.data)
        elif g is None:
            g, missing = np.full_like(p.data, np.nan), True
        elif isinstance(g, RowSparse):
            g = g.dense()
        found.append(g)
    return np.concatenate(found, axis=None) if len(found) > 1 else found[0].reshape(-1), missing


def parts_of(optimizer: Any) -> list[Part]:
    """Return the flat parameters of an optimizer as the parts of its rows."""
    names = parameter_names(optimizer.groups)
    return [
        Part(
            [names[id(p)] for p in flat.parameters],
            flat.bounds,
            [p.shape for p in flat.parameters],
            lambda flat=flat: flat.flat,  # type: ignore[misc]
            lambda flat=flat: flat.slots,  # type: ignore[misc]
            partial(_live_gradients, flat),
        )
        for group in optimizer.groups
        for flat in group.arenas
    ]
