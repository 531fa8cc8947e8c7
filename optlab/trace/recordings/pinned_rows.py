"""Rows of arrays that are the same objects in every step, as those of a step by bound calls.

Where they are is looked up once in a few hundred steps. In between, a step that is observed takes
two calls: one copies the parameters before it, the other writes the rows after it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter as _clock
from typing import Any

import numpy as np

from optlab.trace.recordings.limits import WAITING_STEPS
from optlab.trace.recordings.live_rows import MOST, LiveRows


class PinnedRows:
    """Takes the steps that one probe observes, every few ones, of an optimizer with bound calls.

    Parameters
    ----------
    optimizer
    rows : LiveRows
        They are not observed in another way before `settle`.
    every : int
        The probe observes every so many steps, at least 2.

    Attributes
    ----------
    every : int
    left : int
        So many more steps can be observed before `settle`.
    """

    __slots__ = (
        "_copies", "_copy", "_first", "_found", "_guards", "_observe", "_optimizer", "_rows",
        "_total", "every", "left",
    )  # fmt: skip

    def __init__(self, optimizer: Any, rows: LiveRows, every: int) -> None:
        self._optimizer, self._rows, self.every = optimizer, rows, every
        self.left = self._total = self._first = 0
        #: Flat parameters, the slots that they had, and what updates them.
        self._guards: list[tuple[Any, Any, Any]] = []
        self._copy: list[Callable[[], Any]] = []
        self._observe: list[Callable[[], Any]] = []
        self._found: list[tuple[tuple[str, ...], np.ndarray]] = []
        #: Whether the parameters before the step that is observed next are there.
        self._copies = False

    def pin(self, number: int, waiting: int, steps: float) -> None:
        """Look up where the arrays are, after step `number`, if the optimizer takes bound steps.

        Parameters
        ----------
        number : int
        waiting : int
            Steps that wait to be written.
        steps : float
            The number of steps after which something else is to be done.
        """
        self.left = self._total = 0
        rows, following = self._rows, self._rows.next
        if self._optimizer.bound_step is None or following <= number:
            return
        ahead = following - number
        fit = 1 + (WAITING_STEPS - waiting - ahead) // self.every
        count = int(min(MOST - len(rows.waiting), fit, (steps - ahead) / self.every))
        if count <= 0 or id(rows.probe) in rows.pending.stopped:
            return
        spans = self._optimizer.bound_step.whole_spans()
        if spans is None or any(type(x) is not np.ndarray for x in rows.before):
            return
        self._guards, self._copy, self._observe, self._found = [], [], [], []
        for i, (span, before) in enumerate(zip(spans, rows.before, strict=True)):
            flat, gradient = span.params, span.arrays[1]
            now, slots = flat.flat, flat.slots
            if before.dtype != now.dtype or before.shape != now.shape:
                return
            observe, found = rows.probe.writer(i, now, gradient, slots.values(), before, count)
            self._guards.append((flat, slots, span))
            self._copy.append(partial(before.__setitem__, ..., now))
            self._observe.append(observe)
            self._found.append((tuple(slots), found))
        self._first, self._copies = int(following), following == number + 1
        self.left = self._total = count

    def take(self, plain: Any) -> bool:
        """Take a step that is observed, or the one before it; return False if that may not be.

        `plain` is told how many of the next steps are neither.
        """
        for flat, slots, span in self._guards:
            if flat.slots is not slots or flat.t[0] != span.t:  # another step than that of the span
                return False
        if self._copies:
            started = _clock()
            for observe in self._observe:
                observe()
            self._copies = False
            self.left -= 1
            plain.left = self.every - 2
            self._rows.record.seconds += _clock() - started
        else:
            for copy in self._copy:
                copy()
            self._copies = True
        return True

    def settle(self) -> None:
        """Put the rows so far to those that wait to be written."""
        count, self._total = self._total - self.left, self.left
        rows = self._rows
        if count:
            rows.next = end = self._first + count * self.every
            found = [(i, names, table[:count]) for i, (names, table) in enumerate(self._found)]
            rows.waiting.append((list(range(self._first, end, self.every)), found))
        self.left = self._total = 0
