"""What the workers of one step share: queues between sections, who waits for whom, who failed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from optlab.optimizer.wrappers.pipeline.errors import SectionError, StalledSectionError

#: Seconds between two looks at the workers.
_LOOK = 0.1


class Worker:
    """The state of one worker: its place, what it does, and signs of life."""

    def __init__(self, section: int, number: int, title: str) -> None:
        self.section, self.number, self.title = section, number, title
        self.doing = "begins"
        #: For which sections it waits, None while it computes.
        self.waits_for: str | None = None
        self.since = time.monotonic()
        self.alive_at = self.since
        self.ended = False
        self._clock: int | None = None
        self._used = 0.0

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
        self.since = self.alive_at = time.monotonic()

    def silent(self, now: float) -> float:
        """Return for how many seconds the thread has used no processor time."""
        if self._clock is not None:
            with contextlib.suppress(OSError):
                used = time.clock_gettime(self._clock)
                if used != self._used:
                    self._used, self.alive_at = used, now
        return now - self.alive_at


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

    def wait(self, worker: Worker, ready: Callable[[], bool], for_whom: str) -> None:
        """Wait, with `changed` held, until something is there.

        Raises
        ------
        SectionError
            If another worker has failed, or the deadline has passed; it names who is missing.
        """
        begin = time.monotonic()
        if not ready():
            worker.waits_for = for_whom
        while not ready():
            if self.failure is not None:
                raise Ended
            left = begin + self.longest - time.monotonic()
            if left <= 0:
                raise StalledSectionError(
                    f"{for_whom} did not come within {self.longest:g} seconds; {worker.name} "
                    "waits for it.",
                    worker.section,
                )
            self.changed.wait(min(left, 1.0))
        if self.failure is not None:
            raise Ended
        worker.waits_for = None

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


class Ended(Exception):  # noqa: N818 - it is no error of its own: another worker's ends this one
    """Another worker has failed."""


class Queue:
    """A bounded queue between two sections, which keeps the order of the micro-batches.

    Parameters
    ----------
    board : Board
    size : int
        Who puts more waits until something is taken.
    before, after : str
        The sections at its ends, for messages.
    """

    def __init__(self, board: Board, size: int, before: str, after: str) -> None:
        self.board, self.size, self.before, self.after = board, size, before, after
        self.items: dict[int, Any] = {}
        self.next = 0
        #: The most items that it has held.
        self.most = 0

    def put(self, worker: Worker, micro_batch: int, item: Any) -> None:
        """Put an item into the queue, when it is its turn and there is room."""
        with self.board.changed:
            self.board.wait(
                worker,
                lambda: self.next == micro_batch and len(self.items) < self.size,
                self.after,
            )
            self.items[micro_batch] = item
            self.next += 1
            self.most = max(self.most, len(self.items))
            self.board.changed.notify_all()

    def take(self, worker: Worker, micro_batch: int) -> Any:
        """Return an item, when it is there."""
        with self.board.changed:
            self.board.wait(worker, lambda: micro_batch in self.items, self.before)
            item = self.items.pop(micro_batch)
            self.board.changed.notify_all()
        return item
