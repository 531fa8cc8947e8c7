"""Workers fetch batches ahead: what all of them share, and those that are threads."""

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
    """A worker of a DataLoader raised, or died; the message says which example it read."""


class Settings:
    """What all workers of a loader are told at their start."""

    def __init__(
        self, fetch: Fetch, count: int, key: Key, init: Callable[[int], Any] | None
    ) -> None:
        self.fetch, self.count, self.key, self.init = fetch, count, key, init

    def start(self, number: int) -> None:
        """Do, in a worker, what comes before its first batch."""
        seed = int(self.key.fold("worker", number).generator().integers(2**31))
        worker_info.value = WorkerInfo(number, self.count, seed, self.fetch.dataset)
        if self.init is not None:
            self.init(number)


def outcome(fetch: Fetch, task: Task, progress: Any, who: str) -> Outcome:
    """Fetch a batch; give it, or what went wrong with it, in words."""
    position = 0

    def noted(now: int) -> None:
        nonlocal position
        position = now
        progress(now)

    try:
        return "batch", fetch.fetch(task, noted)
    except Exception as error:  # noqa: BLE001 - it is told where it can be seen
        return "error", failure(error, f"{who} could not read {task.example(position)}")


def failure(error: BaseException, what: str) -> tuple[str, BaseException | None]:
    """Give the message of a failure, and the exception where it can travel."""
    said = "".join(traceback.format_exception(error)).rstrip()
    message = f"{what}: {type(error).__name__}: {error}\n\nThere it happened:\n\n{said}"
    try:
        back = pickle.loads(pickle.dumps(error))
        return message, back if type(back) is type(error) else None
    except Exception:  # noqa: BLE001 - whatever a user's exception does when it is pickled
        return message, None


class Pool:
    """Workers that take tasks and give outcomes by their tickets. Subclasses say what they are."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.tickets = itertools.count()
        self.ready: dict[int, Outcome] = {}
        self.abandoned: set[int] = set()

    def submit(self, task: Task) -> int:
        """Have a task done; give its ticket."""
        raise NotImplementedError

    def result(self, ticket: int, timeout: float) -> Any:
        """Wait for a batch.

        Raises
        ------
        WorkerError
            If its worker raised or died.
        TimeoutError
            If it took more than `timeout` seconds (0 for as long as it takes).
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
        """Keep an outcome, unless nobody wants it any more."""
        if ticket in self.abandoned:
            self.abandoned.discard(ticket)
        else:
            self.ready[ticket] = result

    def abandon(self, tickets: Any) -> None:
        """Say that nobody will ask for these outcomes."""
        for ticket in tickets:
            if self.ready.pop(ticket, None) is None:
                self.abandoned.add(ticket)

    def advance(self, timeout: float | None) -> None:
        """Wait until something is finished, at most `timeout` seconds."""
        raise NotImplementedError

    def describe(self, ticket: int) -> str:
        """Say what a ticket is for."""
        raise NotImplementedError

    def close(self) -> None:
        """End the workers."""
        raise NotImplementedError


class Threads(Pool):
    """Threads of this process: nothing is copied, and a data set may be anything."""

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
                daemon=True,  # never keeps the interpreter from ending
            ).start()

    def submit(self, task: Task) -> int:
        """Have a task done; give its ticket."""
        ticket = next(self.tickets)
        self.doing[ticket] = task
        self.tasks.put((ticket, task))
        return ticket

    def advance(self, timeout: float | None) -> None:
        """Wait until something is finished, at most `timeout` seconds."""
        with contextlib.suppress(queue.Empty):
            ticket, result = self.done.get(timeout=timeout)
            self.doing.pop(ticket, None)
            self.settle(ticket, result)

    def describe(self, ticket: int) -> str:
        """Say what a ticket is for."""
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
    except BaseException as error:  # noqa: BLE001 - told with the first batch
        broken = failure(error, f"{who} could not start")
    while (job := tasks.get()) is not None:
        ticket, task = job
        try:
            result = ("error", broken) if broken else outcome(settings.fetch, task, int, who)
        except BaseException as error:  # noqa: BLE001 - SystemExit: nobody would wake the loader
            result = ("error", failure(error, f"{who} was ended by batch {task.number}"))
        done.put((ticket, result))
