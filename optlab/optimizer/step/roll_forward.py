"""Finishing what an exception has interrupted, so that a step is taken completely or not at all.

A step computes before it writes: an exception until then leaves everything as it was. One that
comes while the step is written, such as Ctrl-C, is raised when the step is finished: writes of
whole values are made again, passes that write in place go on where they were (`plan.progress`).
This runs in another thread, where no second signal interrupts it. Should it fail, for want of
memory for example, the next use of the optimizer begins with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from optlab.plan.progress import Progress
from optlab.plan.scratch import give_up
from optlab.plan.undisturbed import undisturbed


class Unfinished(list["_Redo"]):
    """What is left to write of the steps of an optimizer; empty but for the rarest of errors."""

    def finish(self) -> None:
        """Write it."""
        while self:
            undisturbed(self[0])

    def __deepcopy__(self, memo: Any) -> Unfinished:
        return Unfinished()

    def __reduce__(self) -> Any:
        return Unfinished, ()


class _Redo:
    """A function that is called until it has ended once."""

    def __init__(self, unfinished: Unfinished, f: Callable[[], Any], begun: Callable[[], bool]):
        self.unfinished, self.f, self.begun = unfinished, f, begun
        self.lock = threading.Lock()

    def __call__(self) -> None:
        with self.lock:
            if self not in self.unfinished:
                return
            try:
                self.f()
            except BaseException:
                if not self.begun():
                    self.unfinished.remove(self)
                raise
            self.unfinished.remove(self)


def roll_forward(
    unfinished: Unfinished,
    f: Callable[[], Any],
    error: BaseException,
    begun: Callable[[], bool] = lambda: True,
) -> None:
    """Call `f`, which finishes what `error` interrupted, or leave it to the next use.

    Parameters
    ----------
    unfinished : Unfinished
        That of the optimizer.
    f : callable
        May be called again if it fails.
    error : BaseException
        Gets a note if `f` fails.
    begun : callable, optional
        Returns whether anything was written; if not, nothing is left to the next use.
    """
    redo = _Redo(unfinished, f, begun)
    unfinished.append(redo)
    give_up()
    try:
        undisturbed(redo)
    except Exception as again:  # noqa: BLE001  # `error` is raised by the caller
        if redo in unfinished:
            error.add_note(
                f"The step is not written completely, as this failed: {again!r}. The next use of "
                "the optimizer goes on with it."
            )


def carried_through(
    unfinished: Unfinished, f: Callable[[Progress], Any], progress: Progress | None = None
) -> Any:
    """Return ``f(progress)``, which is finished if an exception comes after it has begun."""
    progress = progress or Progress()
    try:
        return f(progress)
    except BaseException as error:
        if progress.begun:
            roll_forward(unfinished, again(f, progress), error)
        raise


def again(f: Callable[[Progress], Any], progress: Progress) -> Callable[[], Any]:
    """Return a function that calls `f` with a record of what it has done."""

    def go_on() -> Any:
        progress.rewind()
        return f(progress)

    return go_on
