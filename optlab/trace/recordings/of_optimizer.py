"""Recordings of optimizers of optlab: they listen to the events of the engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from time import perf_counter as _clock
from typing import Any

from optlab.backend import events
from optlab.optimizer.step.records import whole_updates
from optlab.trace.probes.rows import Values
from optlab.trace.recordings.limits import WAITING_ELEMENTS, WAITING_STEPS
from optlab.trace.recordings.pinned_rows import PinnedRows
from optlab.trace.recordings.plain_steps import PlainSteps
from optlab.trace.recordings.recording import Recording

_WHOLE = attrgetter("whole")


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
        #: Whether steps that no probe observes take the short way.
        self._short = not self.asks_for_the_loss and ledger is None
        self.plain = PlainSteps(optimizer, self.pending, self)
        #: Whether steps may be parts of captured calls, and the next one may.
        self._fits_plans = (
            not self.always and ledger is None and all(p.fits_plans for p in self.probes)
        )
        self._in_plans = False
        self._handles: list[Any] = []
        #: Whether every probe reads arrays as they are after a step.
        self._only_live = bool(self.live) and not (self.row_probes or self.others)
        #: Whether row probes keep each update as it is, of so many flat parameters.
        self._keeps_all = (
            self.simple and bool(self.row_probes) and not self.live and self.every == 1
            and self._short
        )  # fmt: skip
        self._count = len(self.flats)
        #: What a call that is rehearsed began with, and what it has come to.
        self._kept: Any = None
        self._tentative: Any = None

    def start(self) -> None:
        """Begin to listen."""
        super().start()
        self._plan_ahead()
        if self._memory is not None:
            self.bytes = self._memory.__enter__()
        self.plain.skipped = self.optimizer.skipped
        self.plain.live = self._only_live and self._short and self.every == 1
        if self.plain.live and len(self.live_rows) == 1:
            every = self.due[id(self.live[0])].spacing
            if every >= 2:
                self.plain.pinned = PinnedRows(self.optimizer, self.live_rows[0], every)
                self.live_rows[0].pinned = self.plain.pinned
        events.call_rehearsed.subscribe(self._on_rehearsal, in_plans=True)
        if self.always:
            events.backward_finished.subscribe(self.on_backward)
            events.step_taken.subscribe(self._on_step, of=self.optimizer)
            if self._keeps_values():
                events.step_shown.subscribe(self._on_shown, of=self.optimizer)
        else:
            self._listen()
            self._listen_if_needed()

    def stop(self) -> None:
        """End to listen."""
        for event, listener in (
            (events.call_rehearsed, self._on_rehearsal),
            (events.backward_finished, self.on_backward),
            (events.backward_finished, self.plain.on_backward),
            (events.step_taken, self._on_step),
            (events.step_shown, self._on_shown),
            (events.step_taken, self._on_update),
            (events.step_finished, self.plain.on_finished),
            (events.step_replayed, self.plain.on_replay),
        ):
            event.unsubscribe(listener)
        self.plain.release()
        if self._memory is not None:
            self._memory.__exit__(None, None, None)
            self.bytes = None
        super().stop()
        for rows in self.live_rows:  # a circle of references would keep the trace
            rows.pinned = None

    def _listen(self) -> None:
        """Listen to backward passes and steps, in captured calls too if no probe needs more."""
        number = self.trace.steps_taken + 1
        fits = self._fits_plans and not any(
            self.due[id(p)].is_due(number) for p in self.others
        )  # an observation runs what is no part of the call
        if self._handles and fits == self._in_plans:
            return
        for handle in self._handles:
            handle.remove()
        self._in_plans = fits
        self._handles = [
            events.backward_finished.subscribe(self.plain.on_backward, in_plans=fits),
            events.step_finished.subscribe(self.plain.on_finished, in_plans=fits),
        ]
        if fits:
            replayed = events.step_replayed.subscribe(self.plain.on_replay, in_plans=True)
            self._handles.append(replayed)

    def _listen_if_needed(self) -> None:
        if self.trace.steps_taken + 1 < self.next_due and not self._listens and self._in_plans:
            return
        self._listen()
        wanted = self.needs_update(self.trace.steps_taken + 1)
        if wanted and not self._listens:
            events.step_taken.subscribe(self._on_update, of=self.optimizer)
        elif self._listens and not wanted:
            events.step_taken.unsubscribe(self._on_update)
        self._listens = wanted

    # A call that is rehearsed -------------------------------------------------------------------

    def _on_rehearsal(self, what: str) -> None:
        """Keep a call that is rehearsed apart until it is known whether it stands.

        `what` is "begins", "rests" (what follows is no part of it), "stands" or "undone".
        """
        if what == "begins":
            if not self.busy:  # a probe may call what is captured: that is no part of the run
                self._kept = self._state()
                self.pending.holds = True
        elif self._kept is None:
            return
        elif what == "rests":
            if not self.busy:
                self._tentative, self.busy = self._state(), True
                self.plain.left, self.plain.live = 0, False
        else:
            if what == "undone":
                self._restore(self._kept)
            elif self._tentative is not None:
                self._restore(self._tentative)
            self._kept = self._tentative = None
            self.busy = self.pending.holds = False
            self.pending.count_steps()
            if not self.always:
                self._listen_if_needed()

    def _state(self) -> dict[str, Any]:
        own = ("_updates", "next_due", "next_live", "waiting_elements")
        of_plain = ("leaf", "left", "live", "loss", "skipped")
        self._settle_pinned()
        self.pending.settle()
        return {
            "own": {name: getattr(self, name) for name in own},
            "plain": {name: getattr(self.plain, name) for name in of_plain},
            "taken": self.trace.steps_taken,
            "waiting": len(self.pending.steps),
            "before": [[x if x is None else x.copy() for x in r.before] for r in self.live_rows],
            "rows": [(len(r.waiting), r.next) for r in self.live_rows],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._settle_pinned()
        self.pending.settle()
        vars(self).update(state["own"])
        for name, x in state["plain"].items():
            setattr(self.plain, name, x)
        self.pending.first = state["taken"] + 1
        self.trace.steps_taken = state["taken"]
        del self.pending.steps[state["waiting"] :]
        for rows, before in zip(self.live_rows, state["before"], strict=True):
            rows.before = before
        for rows, (count, following) in zip(self.live_rows, state["rows"], strict=True):
            del rows.waiting[count:]
            rows.next = following

    # Events -------------------------------------------------------------------------------------

    def on_backward(self, value: Any, leaves: Sequence[Any]) -> None:
        """Take a backward pass."""
        if self.busy:
            return
        plain = self.plain
        if not leaves or leaves[0] is not plain.leaf:
            for p in self._parameters:
                if p.node in leaves:
                    break
            else:
                return
            plain.leaf = leaves[0]  # in a loop it is the same next time
        if value is not None:
            total = float(value if not value.ndim else value.sum())
            plain.loss = total if plain.loss is None else plain.loss + total

    def _on_update(self, optimizer: Any, updates: Any) -> None:
        self._updates = updates

    def on_finished(self, optimizer: Any) -> None:
        """Take a step."""
        if optimizer is not self.optimizer or self.busy:
            if optimizer is self.innermost and not self.busy:
                self.given_gradients = optimizer.given_gradients
            return
        if (skipped := optimizer.skipped) != self.plain.skipped:  # by not_finite="skip"
            self.plain.skipped = skipped
            return
        pending = self.pending
        if self.plain.live:
            self.plain.take()
            self.take_live()
            return
        self._settle_pinned()
        pending.count_steps()
        number = self.trace.steps_taken + 1
        if self._short and (number < self.next_due or self._only_live):
            self._take_short(number)
        else:
            pending.settle()
            if optimizer is self.innermost:
                self.given_gradients = optimizer.given_gradients
            updates, self._updates = self._updates, None
            self._on_step(optimizer, updates)
            self._listen_if_needed()
            self._plan_ahead()

    def take_live(self, show: Callable[[], None] | None = None) -> None:
        """Observe the arrays after a step that was taken, or before the next one."""
        self._settle_pinned()
        if show is not None:
            show()
        pending = self.pending
        number = pending.first + len(pending.losses) - 1
        if number == self.next_live:
            self._observe_live(number)
        if number + 1 == self.next_live:
            self.copy_values()
        waiting = len(pending.losses) + len(pending.steps)
        # With no place for more pinned rows, what waits is written now, not a few steps later.
        room = 0 if self.plain.pinned is None else self.plain.pinned.every
        if pending.writer is not None or waiting >= WAITING_STEPS - room:
            pending.count_steps()
            self._after_short(number, room)
            waiting = len(pending.losses) + len(pending.steps)
        else:
            left = min(self.next_live - 2 - number, WAITING_STEPS - 1 - waiting)
            self.plain.left = max(0, left)
        if self.plain.pinned is not None and not pending.holds:
            flush = math.inf
            if pending.writer is not None:
                flush = pending.committed + pending.flush - 1 - number
            self.plain.pinned.pin(number, waiting, flush)

    def _settle_pinned(self) -> None:
        """Put rows that were written in the shortest way to the others."""
        if self.plain.pinned is not None:
            self.plain.pinned.settle()
            self.next_live = self.live_rows[0].next

    def _take_short(self, number: int) -> None:
        """Take a step with a loss, a rate and a time, and perhaps rows of arrays after it."""
        self.trace.steps_taken = number
        plain, pending = self.plain, self.pending
        if self.every == 1:
            plain.take()
        elif not (number - 1) % self.every:
            now = _clock() - self.started
            pending.steps.append((number, True, plain.loss, plain.rate(), now, None, ()))
        plain.loss = None
        if number >= self.next_live - 1:
            if number == self.next_live:
                self._observe_live(number)
            if number + 1 == self.next_live:
                self.copy_values()
        self._after_short(number)

    def _after_short(self, number: int, room: int = 0) -> None:
        """Write steps when enough wait, and find out how many are plain."""
        pending = self.pending
        if len(pending.losses) + len(pending.steps) >= WAITING_STEPS - room:
            pending.write()
        if pending.writer is not None:
            self._commit_if_due(number)
        self._plan_ahead()

    def _plan_ahead(self) -> None:
        """Find out how many of the next steps are plain."""
        if not self._short or self.every > 1:
            return
        pending, number = self.pending, self.trace.steps_taken
        if not pending.losses:
            pending.first = number + 1
        waiting = len(pending.losses) + len(pending.steps)
        ends = [WAITING_STEPS - 1 - waiting, self.next_live - 2 - number]
        if not self._only_live:
            ends.append(self.next_due - 1 - number)
        if pending.writer is not None:
            ends.append(pending.committed + pending.flush - 1 - number)
        self.plain.left = max(0, int(min(ends)))

    def _observe_live(self, number: int) -> None:
        """Observe the arrays after a step that takes the short way."""
        optimizer = self.optimizer
        if optimizer is self.innermost:
            self.given_gradients = optimizer.given_gradients
        for rows in self.live_rows:
            if rows.next == number:
                rows.observe(number, self.given_gradients)
                rows.next = self.due[id(rows.probe)].next_after(number)
        self.next_live = min([rows.next for rows in self.live_rows])

    def _on_step(self, optimizer: Any, updates: Any) -> None:
        if self.busy:
            return
        trace, plain = self.trace, self.plain
        if self.pending.shown is not None:
            self.pending.settle()
        number = trace.steps_taken = trace.steps_taken + 1
        if self._keeps_all and len(updates) == self._count and all(map(_WHOLE, updates)):
            self._keep(number, updates)
            return
        # LBFGS runs several backward passes per step, and provides the loss before it itself.
        loss, plain.loss = plain.loss, None
        if self.asks_for_the_loss:
            loss = getattr(optimizer, "loss_of_step", loss)
        if self.bytes is not None:
            memory = self.bytes.cut(type(optimizer).__name__)
            if (number - 1) % self.every == 0:
                trace.columns["memory", 0].append(memory)
        self.take(number, loss, plain.rate, lambda: self._rows(updates))

    def _keep(self, number: int, updates: Any) -> None:
        """Keep what the rule returned; the same as `take` does, in fewer calls."""
        plain, pending = self.plain, self.pending
        now = _clock() - self.started
        pending.steps.append(
            (number, True, plain.loss, plain.rate(), now, updates, self.row_probes)
        )
        plain.loss = None
        self.waiting_elements += self.elements
        if len(pending.steps) >= WAITING_STEPS or self.waiting_elements >= WAITING_ELEMENTS:
            self.waiting_elements = 0
            pending.write()
        if pending.writer is not None:
            self._commit_if_due(number)

    def _keeps_values(self) -> bool:
        """Return whether one probe keeps each array of steps as it is, of one flat array."""
        if not self._keeps_all or self._count != 1 or len(self.row_probes) != 1:
            return False
        probe = self.row_probes[0]
        return (
            isinstance(probe, Values)
            and probe.keeps_everything
            and not self.pending.changes_gradients
        )

    def _on_shown(self, optimizer: Any, shown: Any) -> None:
        """Copy the arrays of a step; they are one row, so that few calls take it."""
        if self.busy:
            return
        plain, pending = self.plain, self.pending
        rows = pending.shown
        if rows is None or not rows.fits(shown):
            rows = pending.show(shown)
        rows.take()
        plain.take()
        if len(pending.losses) >= rows.most:
            pending.write()
            pending.settle()  # of a call that is rehearsed, nothing is written
        if pending.writer is not None:
            pending.count_steps()
            self._commit_if_due(self.trace.steps_taken)

    def _rows(self, updates: Any) -> Any:
        # What a step left out must be read from the flat arrays now.
        return whole_updates(self.flats, updates, self.optimizer.get_lr())
