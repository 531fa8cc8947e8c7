"""Work that no signal interrupts: another thread does it, as handlers run in the main one alone."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_tasks: SimpleQueue[_Task] | None = None


def _forget_thread() -> None:
    # A forked child does not have it.
    global _tasks
    _tasks = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_thread)


class _Task:
    """A function to be called once, by whichever thread takes it first."""

    def __init__(self, f: Callable[[], Any]) -> None:
        self.f = f
        self.context = contextvars.copy_context()
        self.error: BaseException | None = None
        self.ended = threading.Lock()
        self.ended.acquire()
        self.finished = False
        self._taken = threading.Lock()

    def run(self) -> None:
        if not self._taken.acquire(blocking=False):
            return
        try:
            self.context.run(self.f)
        except BaseException as error:  # noqa: BLE001  # raised where the task was given
            self.error = error
        self.finished = True
        self.ended.release()


def _work(tasks: SimpleQueue[_Task]) -> None:
    while True:
        tasks.get().run()


def _queue() -> SimpleQueue[_Task] | None:
    """Return the queue of the thread; None if no thread can be started."""
    global _tasks
    if _tasks is None:
        tasks: SimpleQueue[_Task] = SimpleQueue()
        try:
            threading.Thread(
                target=_work, args=(tasks,), name="optlab undisturbed", daemon=True
            ).start()
        except RuntimeError:  # the interpreter ends, or has no threads
            return None
        _tasks = tasks
    return _tasks


def undisturbed(f: Callable[[], Any]) -> None:
    """Call a function; an interrupt of the main thread is raised after it has ended.

    Examples
    --------
    >>> undisturbed(lambda: print("done"))
    done
    """
    if threading.current_thread() is not threading.main_thread():
        f()
        return
    task = _Task(f)
    interrupt: BaseException | None = None
    while not task.finished:
        try:
            queue = _queue()
            if queue is None:
                task.run()
            else:
                queue.put(task)
                task.ended.acquire()
        except BaseException as error:  # noqa: BLE001  # raised when the task has ended
            interrupt = error
    if task.error is not None:
        raise task.error
    if interrupt is not None:
        raise interrupt


def whole(write: Callable[[], Any]) -> Any:
    """Call a function that writes; an interrupt is raised when it has written all.

    Parameters
    ----------
    write : callable
        Without arguments. It may be called twice, as it is called again after an interrupt.

    Examples
    --------
    >>> values = {}
    >>> whole(lambda: values.update(a=1))
    >>> values
    {'a': 1}
    """
    try:
        return write()
    except Exception:
        raise  # its own, which would come again
    except BaseException:
        undisturbed(write)
        raise
