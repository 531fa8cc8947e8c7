"""Workers that prefetch batches: the common base, and worker threads."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import queue
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from optlab.backend.random import Key
from optlab.io.fetch import Fetch, Task, WorkerInfo, worker_info

Outcome = tuple[str, Any]


class WorkerError(RuntimeError):
    """A worker of a DataLoader raised or died; the message names the example."""


class Settings:
    """Settings of all workers of a loader."""

    def __init__(
        self, fetch: Fetch, count: int, key: Key, init: Callable[[int], Any] | None
    ) -> None:
        self.fetch, self.count, self.key, self.init = fetch, count, key, init

    def start(self, number: int) -> None:
        """Set up a worker, in that worker, before its first batch."""
        seed = int(self.key.fold("worker", number).generator().integers(2**31))
        worker_info.value = WorkerInfo(number, self.count, seed, self.fetch.dataset)
        if self.init is not None:
            self.init(number)


def outcome(fetch: Fetch, task: Task, progress: Any, who: str) -> Outcome:
    """Fetch a batch; return it, or the message of its failure."""
    position = 0

    def report(now: int) -> None:
        nonlocal position
        position = now
        progress(now)

    try:
        return "batch", fetch.fetch(task, report)
    except Exception as error:  # noqa: BLE001 - reported in the main process
        return "error", failure(error, f"{who} could not read {task.example(position)}")


def failure(error: BaseException, what: str) -> tuple[str, BaseException | None]:
    """Return the message of a failure, and the exception if it can be pickled."""
    said = "".join(traceback.format_exception(error)).rstrip()
    message = f"{what}: {type(error).__name__}: {error}\n\nThere it happened:\n\n{said}"
    try:
        back = pickle.loads(pickle.dumps(error))
        return message, back if type(back) is type(error) else None
    except Exception:  # noqa: BLE001 - pickling a user's exception may raise anything
        return message, None


class Pool:
    """Base class of workers that accept tasks and return outcomes by ticket."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.tickets = itertools.count()
        self.ready: dict[int, Outcome] = {}
        self.abandoned: set[int] = set()

    def submit(self, task: Task) -> int:
        """Submit a task and return its ticket."""
        raise NotImplementedError

    def result(self, ticket: int, timeout: float) -> Any:
        """Wait for a batch.

        Raises
        ------
        WorkerError
            If its worker raised or died.
        TimeoutError
            If it took more than `timeout` seconds (0 for no limit).
        """
        end = time.monotonic() + timeout if timeout else None
        while ticket not in self.ready:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                raise TimeoutError(
                    f"a batch took a worker of the DataLoader more than timeout={timeout} seconds: "
                    f"{self.describe(ticket)}."
                )
            self.advance(left)
        kind, value = self.ready.pop(ticket)
        if kind == "error":
            message, cause = value
            raise WorkerError(message) from cause
        return value

    def settle(self, ticket: int, result: Outcome) -> None:
        """Store an outcome, unless its ticket was abandoned."""
        if ticket in self.abandoned:
            self.abandoned.discard(ticket)
        else:
            self.ready[ticket] = result

    def abandon(self, tickets: Any) -> None:
        """Discard the outcomes of these tickets."""
        for ticket in tickets:
            if self.ready.pop(ticket, None) is None:
                self.abandoned.add(ticket)

    def advance(self, timeout: float | None) -> None:
        """Wait for a result, at most `timeout` seconds."""
        raise NotImplementedError

    def describe(self, ticket: int) -> str:
        """Return the name of the batch of a ticket, for messages."""
        raise NotImplementedError

    def close(self) -> None:
        """End the workers."""
        raise NotImplementedError


class Threads(Pool):
    """Worker threads of this process: nothing is copied, and a data set may be anything."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.count)
        self.tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.doing: dict[int, Task] = {}
        for number in range(settings.count):
            threading.Thread(
                target=_in_thread,
                args=(settings, number, self.tasks, self.done),
                name=f"optlab worker {number}",
                daemon=True,  # must not keep the interpreter from ending
            ).start()

    def submit(self, task: Task) -> int:
        """Submit a task and return its ticket."""
        ticket = next(self.tickets)
        self.doing[ticket] = task
        self.tasks.put((ticket, task))
        return ticket

    def advance(self, timeout: float | None) -> None:
        """Wait for a result, at most `timeout` seconds."""
        with contextlib.suppress(queue.Empty):
            ticket, result = self.done.get(timeout=timeout)
            self.doing.pop(ticket, None)
            self.settle(ticket, result)

    def describe(self, ticket: int) -> str:
        """Return the name of the batch of a ticket, for messages."""
        return f"batch {self.doing[ticket].number}"

    def close(self) -> None:
        """End the workers."""
        with contextlib.suppress(queue.Empty):
            while True:
                self.tasks.get_nowait()
        for _ in range(self.count):
            self.tasks.put(None)


def _in_thread(settings: Settings, number: int, tasks: Any, done: Any) -> None:
    """Run one worker thread."""
    who = f"worker {number}"
    try:
        settings.start(number)
        broken = None
    except BaseException as error:  # noqa: BLE001 - reported with the first batch
        broken = failure(error, f"{who} could not start")
    while (job := tasks.get()) is not None:
        ticket, task = job
        try:
            result = ("error", broken) if broken else outcome(settings.fetch, task, int, who)
        except BaseException as error:  # noqa: BLE001 - even SystemExit: otherwise the loader would wait forever
            result = ("error", failure(error, f"{who} was ended by batch {task.number}"))
        done.put((ticket, result))
