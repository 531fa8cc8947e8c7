"""A compiled loop bound to arrays: one call for a whole update, with other numbers each time."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.backend import events
from optlab.plan.bound.calls import UnboundError
from optlab.plan.numba_codegen import CHUNK
from optlab.plan.numba_kernels import MachineLoops, memory_of, spans
from optlab.plan.progress import Call


class BoundLoop:
    """A plan without reductions as one compiled loop over arrays that stay the same.

    Attributes
    ----------
    calls : list of tuple
        The one call, for `optlab.plan.progress`. After it `rest` returns those that are left.

    Raises
    ------
    UnboundError
        If the plan has no loop with NumPy's bits on these arrays.
    """

    __slots__ = ("_arrays", "_cells", "_faulty", "_plan", "_prepared", "calls")

    def __init__(
        self, loops: MachineLoops, arrays: Sequence[Any], numbers: Sequence[float]
    ) -> None:
        plan = loops.plan
        loop = loops.loops[0]
        if plan.afters or plan.kept or loop is None:
            raise UnboundError("the plan has several phases, or no loop.")
        self._prepared = plan.prepare(*numbers)
        loops.phase(0, self._prepared)  # compares it with NumPy
        function = loops.kernels[0].function
        if loops.loops[0] is None or function is None:
            raise UnboundError("the loop has other bits.")
        size = len(arrays[0])
        given = [arrays[place] for place in (*loop.read, *loop.written)]
        if not all(one.flags.carray for one in given):
            raise UnboundError("an array is not contiguous.")
        self._plan, self._arrays = plan, list(arrays)
        self._faulty: Any = np.zeros(size // CHUNK + 2, np.int64)
        memory: list[Any] = [*given, self._faulty[1:]]
        memory += [np.empty(loop.old_size, dtype) for dtype in loop.old_dtypes]
        if events.array_kept.listeners:
            for array in memory[len(given) :]:
                events.array_kept.publish(array, "scratch of a bound loop", "temporary", "step")
        #: Where each number of a step is written, with its position and its largest value.
        self._cells: list[tuple[int, float, Any]] = []
        cells = []
        for number in loop.numbers:
            cell = (ctypes.c_float if number.dtype == np.float32 else ctypes.c_double)()
            if number.place is None:
                cell.value = float(number.constant)
            else:
                self._cells.append((number.place, float(np.finfo(number.dtype).max), cell))
            cells.append(cell)
        pointers = [memory_of(array) for array in memory]
        self.calls: list[Call] = [
            (function, memory_of(self._faulty), None, size, *pointers, *cells)
        ]

    def set_numbers(self, numbers: Sequence[float]) -> bool:
        """Set the numbers of the plan; return False if one is not finite in the dtype of arrays."""
        prepared = self._prepared = self._plan.prepare(*numbers)
        for position, largest, cell in self._cells:
            value = prepared[position]
            if not -largest <= value <= largest:
                return False
            cell.value = value
        return True

    def rest(self) -> list[Call]:
        """Return the calls for elements whose results are not finite, which NumPy reports."""
        count = self._faulty.item(0)
        if not count:
            return []
        plan = self._plan
        calls: list[Call] = []
        for span in spans(self._faulty[1 : count + 1].tolist()):
            again = [array[span] for array in self._arrays]
            scratch = [np.empty(len(again[0]), dtype) for dtype in plan.scratch]
            calls += plan.calls[0](*again, *scratch, *self._prepared)
        return calls
