"""Rows of steps that show their arrays: all arrays of a step are one row of one table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from optlab.trace.recordings.limits import WAITING_ELEMENTS, WAITING_STEPS


class ShownRows:
    """A table of the arrays of successive steps of one flat array of parameters.

    Parameters
    ----------
    shown
        What `optlab.backend.events.step_shown` publishes, of one flat array of parameters.

    Attributes
    ----------
    most : int
        The rows of a table.
    kinds : list of str
        The kinds of columns that the arrays of a step are for, in their order.
    """

    def __init__(self, shown: Any) -> None:
        self._shown = shown
        ((_, names, self._arrays),) = shown
        self.kinds = [name.replace("_", " ", 1) for name in names]
        self.size = len(self._arrays[0])
        self.most = max(1, min(WAITING_STEPS, WAITING_ELEMENTS // self.size))
        width, dtype = self.size * len(self.kinds), self._arrays[0].dtype
        self.table = np.empty((self.most, width), dtype)
        self._next: Callable[[], Any] = iter(self.table).__next__
        self._join = partial(np.concatenate, self._arrays)

    def fits(self, shown: Any) -> bool:
        """Return whether these are the arrays of the table."""
        return shown is self._shown

    def take(self) -> None:
        """Copy the arrays."""
        self._join(out=self._next())

    def of_kinds(self, count: int) -> list[tuple[str, np.ndarray]]:
        """Return the first rows kind by kind."""
        parts = self.table[:count].reshape(count, len(self.kinds), self.size)
        apart = np.ascontiguousarray(parts.swapaxes(0, 1))
        return list(zip(self.kinds, apart, strict=True))

    def as_updates(self, count: int) -> list[list[Any]]:
        """Return the first rows as updates of a step each."""
        by_kind = self.of_kinds(count)
        found = []
        for i in range(count):
            row = {kind: rows[i] for kind, rows in by_kind}
            named: dict[str, dict[str, Any]] = {"slot": {}, "term": {}}
            for kind, array in row.items():
                what, _, name = kind.partition(" ")
                if name:
                    named[what][name] = array
            gradient = row["gradient"]
            found.append([
                SimpleNamespace(
                    parameter=row["parameter"], raw_gradient=gradient, gradient=gradient,
                    slots=named["slot"], terms=named["term"], whole=True,
                )
            ])  # fmt: skip
        return found
