"""Sequences of writes that an exception cannot tear: what was done is recorded, and gone on with.

Ctrl-C raises KeyboardInterrupt between any two operations of Python, but not inside one call that
is made in C. So a function that writes in place makes its calls through `Progress.do`, which makes
them, and records that they were made, in one loop in C. After an exception the function is called
again with the same record: it makes the calls that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap
from operator import call
from typing import Any

#: A function and its arguments.
Call = tuple[Any, ...]


class Progress:
    """The calls that a function has made, so that it can go on after an exception.

    The function has to be called again with the same arguments, after `rewind`. What it computes
    for its calls may have changed by then: the calls of the first time are those that are made.

    Examples
    --------
    >>> import operator
    >>> numbers = [1, 2]
    >>> def double(progress):
    ...     progress.do([(operator.setitem, numbers, i, 2 * x) for i, x in enumerate(numbers)])
    >>> progress = Progress()
    >>> double(progress)
    >>> progress.rewind()
    >>> double(progress)
    >>> numbers
    [2, 4]
    """

    __slots__ = ("_done", "_place")

    def __init__(self) -> None:
        self._done: list[tuple[Sequence[Call], list[Any]]] = []
        self._place = 0

    @property
    def begun(self) -> bool:
        """Whether a call may have been made."""
        return bool(self._done)

    def rewind(self) -> None:
        """Begin with the first calls again: those that were made are not repeated."""
        self._place = 0

    def do(self, calls: Sequence[Call]) -> list[Any]:
        """Make calls, in order, and return their results.

        A call must be to a function in C, or one that may be made twice.
        """
        place = self._place
        if place < len(self._done):
            calls, results = self._done[place]
        else:
            results = []
            self._done.append((calls, results))
        self._place = place + 1
        if len(results) < len(calls):
            results.extend(starmap(call, calls[len(results) :] if results else calls))
            self._done[place] = ((), results)  # what they were called with may be large
        return results


def once(
    done: dict[Any, Any], key: Any, f: Callable[[Any, Progress], list[Any]], given: Any
) -> list[Any]:
    """Return ``f(given, progress)``, or what `done` has as its result; go on where it stopped."""
    found = done.get(key)
    if found is None:
        found = done[key] = Progress()
    elif type(found) is not Progress:
        return found  # type: ignore[no-any-return]
    else:
        found.rewind()
    result = done[key] = f(given, found)  # and no reference to the calls
    return result


class Blocks:
    """Which blocks of a pass are done: a byte for each, and a record of those that are begun."""

    __slots__ = ("_begun", "_finished")

    def __init__(self) -> None:
        self._finished = bytearray()
        self._begun: dict[int, Progress] = {}

    def expect(self, count: int) -> None:
        """Make room for so many blocks."""
        if count > len(self._finished):
            self._finished.extend(bytes(count - len(self._finished)))

    def run(self, number: int, f: Callable[[Any, Progress], Any], given: Any) -> None:
        """Call ``f(given, progress)`` for a block that is not done; go on where it stopped."""
        if self._finished[number]:
            return
        progress = self._begun.get(number)
        if progress is None:
            progress = self._begun[number] = Progress()
        else:
            progress.rewind()
        f(given, progress)
        self._finished[number] = 1
        self._begun.pop(number, None)
