"""Worker processes.

Each has its own pipe, so workers cannot disturb each other. The position of the example that it
reads is in shared memory: when it dies, the example is still known. A thread in it listens to the
pipe, so that tasks never wait for results, and so that it ends at once when its parent is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from optlab.io.fetch import Task
from optlab.io.workers import Pool, Settings, failure, outcome

_ours: set[Connection[Any, Any]] = set()
"""The parent's ends of all pipes: a forked process must close its copies of them."""


_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def ends_with_parent() -> Callable[[], None]:
    """Return a function by which a process is killed when its parent is, where the system can.

    The process calls it at its start: between fork and exec, too, so all that needs a lock of
    Python is done here.
    """
    if sys.platform != "linux":
        return _nothing
    import ctypes

    try:
        control = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return _nothing
    return lambda: control(_DIE_WITH_PARENT, signal.SIGKILL) and None


def _nothing() -> None:
    """Leave a process as it is."""


class _Worker:
    """One process, its pipe, and its pending tasks."""

    def __init__(self, number: int, process: Any, pipe: Connection[Any, Any]) -> None:
        self.number, self.process, self.pipe = number, process, pipe
        self.doing: deque[tuple[int, Task]] = deque()
        self.dead = False


class Processes(Pool):
    """Worker processes, forked from this one or newly started ("spawn")."""

    def __init__(self, settings: Settings, method: str) -> None:
        super().__init__(settings.count)
        context: Any = multiprocessing.get_context(method)
        self.method = method
        self.positions = context.RawArray("q", [-1] * settings.count)  # -1: still starting
        self.workers: list[_Worker] = []
        payload = settings if method == "fork" else _pickled(settings)
        try:
            for number in range(settings.count):
                mine, theirs = context.Pipe()
                _ours.add(mine)
                close = list(_ours) if method == "fork" else []
                process = context.Process(
                    target=_in_process,
                    args=(payload, number, theirs, close, self.positions),
                    name=f"optlab worker {number}",
                    daemon=True,
                )
                with warnings.catch_warnings():
                    # A notebook forks beside running threads; see the notes of DataLoader.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                theirs.close()
                self.workers.append(_Worker(number, process, mine))
        except BaseException:
            self.close()
            raise

    def submit(self, task: Task) -> int:
        """Submit a task and return its ticket."""
        ticket = next(self.tickets)
        worker = min(self.workers, key=lambda worker: len(worker.doing))
        worker.doing.append((ticket, task))
        with contextlib.suppress(OSError):  # it died; noticed when its results are awaited
            worker.pipe.send((ticket, task))
        return ticket

    def advance(self, timeout: float | None) -> None:
        """Wait for a result, at most `timeout` seconds."""
        busy = [worker for worker in self.workers if worker.doing]
        found = wait(
            [*(worker.pipe for worker in busy), *(worker.process.sentinel for worker in busy)],
            timeout,
        )
        for worker in busy:
            if worker.pipe in found or worker.process.sentinel in found:
                self._receive_results(worker)

    def _receive_results(self, worker: _Worker) -> None:
        """Receive the results of a worker; mark it as dead if its pipe is closed."""
        try:
            if worker.pipe.poll():
                ticket, result = _receive(worker.pipe)
                worker.doing.popleft()
                self.settle(ticket, result)
                return
        except (EOFError, OSError):
            worker.dead = True  # its end of the pipe is closed
        if not worker.process.is_alive() or worker.dead:
            self._settle_dead(worker)

    def _settle_dead(self, worker: _Worker) -> None:
        """Settle the pending tasks of a dead worker as failed."""
        worker.process.join(1)
        message = self._death_message(worker)
        for ticket, _ in worker.doing:
            self.settle(ticket, ("error", (message, None)))
        worker.doing.clear()

    def _death_message(self, worker: _Worker) -> str:
        """Return the message on how a worker died, and at which example."""
        code = worker.process.exitcode
        if code is not None and code < 0:
            try:
                name = f" ({signal.Signals(-code).name})"
            except ValueError:
                name = ""
            how = f"was killed by signal {-code}{name}"
            why = {
                9: " Often that is the system, which has run out of memory: try fewer workers or "
                "smaller batches.",
                11: " Code that is not Python crashed.",
            }.get(-code, "")
        else:
            how = f"ended with exit code {code}"
            why = " Does the data set, or something that it calls, exit the process?"
            if self.method == "spawn":
                why += (
                    " A script that starts processes needs its code under "
                    "`if __name__ == '__main__':`."
                )
        position = self.positions[worker.number]
        what = f"read {worker.doing[0][1].example(position)}" if position >= 0 else "started"
        return (
            f"worker {worker.number} of {self.count} (process {worker.process.pid}) {how} while it "
            f"{what}.{why} With num_workers=0 the same happens here, where a debugger can "
            "look."
        )

    def describe(self, ticket: int) -> str:
        """Return the name of the batch of a ticket, for messages."""
        for worker in self.workers:
            for mine, task in worker.doing:
                if mine == ticket and worker.doing[0][0] == ticket:
                    position = max(self.positions[worker.number], 0)
                    return f"worker {worker.number} reads {task.example(position)}"
                if mine == ticket:
                    return f"batch {task.number} waits for worker {worker.number}"
        return "an unknown batch"

    def close(self) -> None:
        """End the workers."""
        if sys.is_finalizing():
            return
        for worker in self.workers:
            if worker.doing:
                worker.process.terminate()
            else:
                with contextlib.suppress(OSError):
                    worker.pipe.send(None)
        for worker in self.workers:
            worker.process.join(2)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            _ours.discard(worker.pipe)
            worker.pipe.close()
            worker.process.close()
        self.workers = []


def _pickled(settings: Settings) -> bytes:
    """Pickle the settings for a new process."""
    try:
        return pickle.dumps(settings)
    except Exception as error:
        raise TypeError(
            "on this system workers are fresh processes, and the data set, collate_fn or "
            f"worker_init_fn cannot be sent to one ({error}). Define them at the top of a module "
            "(no lambdas, nothing inside functions), or use worker_type='thread'."
        ) from error


def _in_process(
    payload: Any, number: int, pipe: Connection[Any, Any], close: list[Any], positions: Any
) -> None:
    """Run one worker process."""
    for other in close:
        other.close()
    _ours.clear()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks), daemon=True).start()
    who = f"worker {number}"
    broken = None
    try:
        settings: Any = pickle.loads(payload) if isinstance(payload, bytes) else payload
        settings.start(number)
    except Exception as error:  # noqa: BLE001 - reported with the first batch
        hint = ""
        if isinstance(error, AttributeError) and "__main__" in str(error):
            hint = (
                " (what is defined in a notebook cannot be found by a fresh process: put it into a "
                "module, or use worker_type='thread')"
            )
        broken = failure(error, f"{who} could not start{hint}")

    def progress(position: int) -> None:
        positions[number] = position

    while (job := tasks.get()) is not None:
        ticket, task = job
        if broken is not None:
            _send(pipe, (ticket, ("error", broken)))
            continue
        result = outcome(settings.fetch, task, progress, who)
        try:
            _send(pipe, (ticket, result))
        except OSError:
            os._exit(1)  # the parent is gone
        except Exception as error:  # noqa: BLE001 - results that cannot be pickled
            unsent = failure(error, f"{who} could not send batch {task.number}")
            _send(pipe, (ticket, ("error", unsent)))


def _listen(pipe: Connection[Any, Any], tasks: Any) -> None:
    """Receive tasks; end the process when the parent is gone."""
    try:
        while True:
            job = pipe.recv()
            tasks.put(job)
            if job is None:
                return
    except (EOFError, OSError):
        os._exit(1)


def _send(pipe: Connection[Any, Any], message: Any) -> None:
    """Send a message, with its arrays out of band to avoid a copy."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    parts = [buffer.raw() for buffer in buffers]
    pipe.send((data, [part.nbytes for part in parts]))
    for part in parts:
        if part.nbytes:
            pipe.send_bytes(part)


def _receive(pipe: Connection[Any, Any]) -> Any:
    """Receive a message of `_send`."""
    data, sizes = pipe.recv()
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        if buffer:
            pipe.recv_bytes_into(buffer)
    return pickle.loads(data, buffers=buffers)
