"""What the workers of one step share: queues between sections, who waits for whom, who failed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from optlab.backend.exchange import Silence
from optlab.optimizer.wrappers.pipeline.errors import SectionError, StalledSectionError

#: Seconds between two looks at the workers.
_LOOK = 0.1


class Worker:
    """The state of one worker: its place, what it does, and signs of life."""

    def __init__(self, section: int, number: int, title: str) -> None:
        self.section, self.number, self.title = section, number, title
        self.doing = "begins"
        #: The section that it waits for, None while it computes.
        self.waits_for: int | None = None
        self.since = time.monotonic()
        self.ended = False
        self._clock: int | None = None
        self._silence = Silence(2 * _LOOK)

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"section {self.section} ({self.title}), worker {self.number},"

    def begin(self) -> None:
        """Find the clock of this thread; some systems have none."""
        if hasattr(time, "pthread_getcpuclockid"):
            with contextlib.suppress(OSError):
                self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self.begins("begins")

    def begins(self, what: str) -> None:
        """Note what it computes from now on."""
        self.doing, self.waits_for = what, None
        self.since = time.monotonic()
        self._silence.breaks()

    def silent(self, now: float) -> float:
        """Return for how many seconds the thread has used no processor time."""
        used = None
        if self._clock is not None:
            with contextlib.suppress(OSError):
                used = time.clock_gettime(self._clock)
        return self._silence.look(used, now)


class Board:
    """The state that the workers of a step share.

    Parameters
    ----------
    timeout : float
        Seconds without processor time after which a worker that computes counts as stalled.
    longest : float
        The most seconds that a pass or a wait takes.
    """

    def __init__(self, timeout: float, longest: float) -> None:
        self.timeout, self.longest = timeout, longest
        self.changed = threading.Condition()
        self.over = threading.Event()
        self.workers: list[Worker] = []
        self.failure: SectionError | None = None

    def fail(self, error: SectionError, cause: BaseException | None = None) -> None:
        """End the step; the first failure counts."""
        with self.changed:
            if self.failure is None:
                error.__cause__ = cause
                self.failure = error
            self.changed.notify_all()
        self.over.set()

    def end(self, worker: Worker) -> None:
        """Note that a worker has done its passes, or failed."""
        with self.changed:
            worker.ended = True
            if all(one.ended for one in self.workers):
                self.over.set()

    def wait(self, worker: Worker, ready: Callable[[], bool], section: int) -> None:
        """Wait, with `changed` held, until something from a section, or room for it, is there.

        Raises
        ------
        SectionError
            If the deadline has passed; it names the section that is missing.
        Ended
            If another worker has failed.
        """
        begin = time.monotonic()
        while self.failure is None and not ready():
            worker.waits_for = section
            left = begin + self.longest - time.monotonic()
            if left <= 0:
                late = self._missing(section)
                raise StalledSectionError(
                    f"section {late} ({self._title(late)}) did not come within {self.longest:g} "
                    f"seconds; {worker.name} waits for it.",
                    late,
                )
            self.changed.wait(min(left, 1.0))
        if self.failure is not None:
            raise Ended
        if worker.waits_for is not None:
            worker.begins(worker.doing)

    def _missing(self, section: int) -> int:
        """Return the section at the end of a chain of sections that wait for each other."""
        seen = set()
        while section not in seen:
            seen.add(section)
            waits = [one.waits_for for one in self.workers if one.section == section]
            if None in waits:
                break
            section = next(s for s in waits if s is not None)
        return section

    def _title(self, section: int) -> str:
        return next(one.title for one in self.workers if one.section == section)

    def watch(self) -> None:
        """Wait until all workers have ended or one has failed; look after those that compute."""
        while not self.over.wait(_LOOK):
            now = time.monotonic()
            for worker in self.workers:
                if worker.ended or worker.waits_for is not None:
                    continue
                silent, spent = worker.silent(now), now - worker.since
                if silent >= self.timeout or spent >= self.longest:
                    why = (
                        f"gave no sign of life for {silent:.1f} seconds"
                        if silent >= self.timeout
                        else f"has computed for {spent:.0f} seconds"
                    )
                    self.fail(
                        StalledSectionError(
                            f"{worker.name} {why}, in {worker.doing}: {self._who_waits()}A pass "
                            "that takes longer needs PipelineOptimizer(..., timeout=seconds).",
                            worker.section,
                        )
                    )

    def _who_waits(self) -> str:
        waiting = sorted({one.section for one in self.workers if one.waits_for is not None})
        if not waiting:
            return ""
        return f"section{'s' * (len(waiting) > 1)} {', '.join(map(str, waiting))} waited. "


class Ended(Exception):
    """Another worker has failed."""


class Queue:
    """A bounded queue between two sections, which keeps the order of the micro-batches.

    Parameters
    ----------
    board : Board
    size : int
        Who puts more waits until something is taken.
    before, after : int
        The sections at its ends.
    """

    def __init__(self, board: Board, size: int, before: int, after: int) -> None:
        self.board, self.size, self.before, self.after = board, size, before, after
        self.items: dict[int, Any] = {}
        self.next = 0

    def put(self, worker: Worker, micro_batch: int, item: Any) -> None:
        """Put an item into the queue, when it is its turn and there is room."""
        with self.board.changed:
            self.board.wait(
                worker,
                lambda: self.next == micro_batch and len(self.items) < self.size,
                self.after if self.next == micro_batch else self.before,
            )
            self.items[micro_batch] = item
            self.next += 1
            self.board.changed.notify_all()

    def take(self, worker: Worker, micro_batch: int) -> Any:
        """Return an item, when it is there."""
        with self.board.changed:
            self.board.wait(worker, lambda: micro_batch in self.items, self.before)
            item = self.items.pop(micro_batch)
            self.board.changed.notify_all()
        return item
