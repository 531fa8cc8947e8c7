"""Norms of all arrays of a step by one compiled call, with NumPy's bits.

A network of 3,000 weights has its norms of five arrays in 4 us of arithmetic; NumPy's calls around
it take three times as long, and fill the cache with copies in float64. So one kernel converts each
piece into a small buffer, and calls what NumPy calls for its sum of squares, the inner loop of
`numpy.vecdot`: the bits are NumPy's.

As for updates (`optlab.plan.executors`), it is compiled in a child process once that pays off, and
NumPy does the work until then, and wherever it may not run. It is compared with NumPy before its
first use.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from optlab.backend.native_calls import loop_address
from optlab.plan.executors import LOOK_UP, chosen_executor, has_numba, is_compiled

#: Tables of kernels: addresses of the arrays, of which the last one is what the first was before;
#: numbers (rows, parameters, pieces, the address of the loop and of its arguments, these arguments,
#: and first element, length and parameter of each piece); a buffer and a cell for a sum; results.
_SOURCE = """
def kernel(arrays, p_numbers, p_buffer, p_found):
    numbers = carray(p_numbers, 15)
    rows, parameters, count = numbers[0], numbers[1], numbers[2]
    loop, calls = numbers[3], numbers[4]
    pieces = carray(p_numbers, 15 + 3 * count)
    buffer = carray(p_buffer, {block} + 1)
    found = carray(p_found, rows * parameters)
    for j in range(rows * parameters):
        found[j] = 0.0
    size = pieces[15 + 3 * (count - 1)] + pieces[15 + 3 * (count - 1) + 1]
    now = carray(arrays[0], size, np.{kind})
    for i in range(rows):
        x = carray(arrays[i], size, np.{kind})
        for j in range(count):
            first = pieces[15 + 3 * j]
            length = pieces[15 + 3 * j + 1]
            part = x[first:first + length]
            if i == rows - 1:
                after = now[first:first + length]
                for k in range(length):
                    buffer[k] = after[k] - part[k]
            else:
                for k in range(length):
                    buffer[k] = part[k]
            numbers[9] = length
            call_loop(loop, calls, calls + 24, calls + 40)
            found[i * parameters + pieces[15 + 3 * j + 2]] += buffer[{block}]
    for j in range(rows * parameters):
        found[j] = np.sqrt(found[j])
    return 0
"""
_PARAMETERS = ("void**", "int64*", "float64*", "float64*")
_KINDS = {np.dtype(np.float32): "float32", np.dtype(np.float64): "float64"}
#: What a call of NumPy takes, in operations on elements; calls, and operations on each element.
_CALL, _CALLS, _EACH = 2048, 64, 3
#: One kernel serves all models, so it is asked for so many times as early as one of a single model.
_MODELS = 8
#: Results for which memory is made at once.
_MOST = 64

_kernels: dict[Any, Any] = {}
#: Dtypes and pieces of which the kernel has NumPy's bits, and the most that are kept.
_agreed: set[Any] = set()
_MOST_AGREED = 256
#: Operations on elements that NumPy has done instead.
_worked = 0


def _kernel(dtype: Any, block: int, elements: int, times: int = 1) -> Any:
    """Return the kernel for arrays of a dtype if it is compiled by now; otherwise count the work.

    That are so many elements, so many times. None means that it will never be.
    """
    global _worked
    executor = chosen_executor()
    if executor == "numpy":
        return False
    _worked += (elements * _EACH + _CALLS * _CALL) * times
    if executor == "auto" and (_worked * _MODELS < LOOK_UP or not has_numba()):
        return False  # and nothing is imported
    kernel = _kernels.get((dtype, block))
    if kernel is None:
        from optlab.plan.numba_cache import kernel_of

        source = _SOURCE.format(kind=_KINDS[dtype], block=block)
        kernel = _kernels[dtype, block] = kernel_of(source, _PARAMETERS)
    ready = is_compiled(kernel, _worked * _MODELS)
    return kernel if ready else ready


class CompiledNorms:
    """The norms of arrays of one flat array of parameters, as they are after a step.

    Parameters
    ----------
    pieces : list of (int, int, int)
        First element, length and parameter of what is summed at once, in order.
    parameters : int
    block : int
        The most elements of a piece.

    Attributes
    ----------
    refused : bool
        Whether NumPy does it in every step.
    agrees : bool
        Whether its bits were found to be NumPy's, of these arrays or of others like them.
    """

    def __init__(self, pieces: Sequence[tuple[int, int, int]], parameters: int, block: int) -> None:
        self._pieces, self._parameters, self._block = pieces, parameters, block
        self._size = pieces[-1][0] + pieces[-1][1] if pieces else 0
        self._loop = loop_address(np.vecdot, np.dtype(np.float64), 2)
        self.refused = self._loop is None or not self._size
        #: The arrays that the tables are for, as far as another step may have them, too.
        self._held: list[Any] = []
        self._gradient: Any = None
        self._tables: tuple[Any, ...] = ()
        self._dtype: Any = None
        self._run: Any = None
        #: Results, the address of the first ones, their bytes, and how many are used.
        self._found = np.empty((0, 0, 0))
        self._start = self._bytes = self._used = 0
        self.agrees = False

    def compare(self, found: np.ndarray, by_numpy: np.ndarray) -> None:
        """Compare its first norms with NumPy's; where bits differ, NumPy does all."""
        self.agrees = found.tobytes() == by_numpy.tobytes()
        self.refused = not self.agrees
        if self.agrees and len(_agreed) < _MOST_AGREED:
            _agreed.add((by_numpy.shape[1], self._dtype, tuple(self._pieces)))

    def of(self, now: Any, gradients: list[Any], slots: Collection[Any], before: Any) -> Any:
        """Return norms, [row, parameter]; None if NumPy has to compute them.

        Rows are those of parameters, gradients, slots, and the change of the parameters.
        """
        whole = gradients if len(gradients) == 1 else ()
        arrays = [now, *whole, *slots, before]
        held = self._held
        if len(arrays) != len(held) or not all(map(_is, held, arrays)):
            if not self._bind(arrays, bool(whole)):
                return None
        elif chosen_executor() == "numpy":
            return None
        if not whole:
            try:
                np.concatenate(gradients, axis=None, out=self._gradient, casting="no")
            except TypeError:  # of another dtype
                return None
        run, found = self._results(1)
        run()
        return found[0]

    def writer(
        self, now: Any, gradient: Any, slots: Collection[Any], before: Any, count: int
    ) -> tuple[Callable[[], Any], np.ndarray] | None:
        """Return a function that writes a row of an array in each call, and that array.

        So often it may be called, as long as the memory of all arrays is the same. None if NumPy
        has to compute norms.
        """
        arrays = [now, gradient, *slots, before]
        held = self._held
        if self.refused or now.dtype not in _KINDS:
            return None
        if not self.agrees:  # `of` finds that out once the kernel is there
            _kernel(now.dtype, self._block, len(arrays) * self._size, count)
            return None
        if chosen_executor() == "numpy":
            return None
        if (len(arrays) != len(held) or not all(map(_is, held, arrays))) and not self._bind(
            arrays, True
        ):
            return None
        return self._results(count)

    def _results(self, count: int) -> tuple[Callable[[], Any], np.ndarray]:
        """Return a function that writes one result in each call, and so many results."""
        place = self._used
        if place + count > len(self._found):  # those that there are may be kept
            self._found = np.empty((max(count, _MOST), *self._found.shape[1:]))
            self._start, place = self._found.ctypes.data, 0
        self._used = place + count
        first = self._start + place * self._bytes
        addresses = range(first, first + count * self._bytes, self._bytes)
        return map(self._run, addresses).__next__, self._found[place : place + count]

    def _bind(self, arrays: list[Any], is_whole: bool) -> bool:
        """Write the tables for other arrays, if the kernel is there and takes them.

        The gradient is among them where it `is_whole`; its pieces are copied side by side.
        """
        dtype, size = arrays[0].dtype, self._size
        rows = len(arrays) + (not is_whole)
        self._held = []
        if self.refused or dtype not in _KINDS:
            return False
        kernel = _kernel(dtype, self._block, rows * size)
        if not kernel:
            self.refused = kernel is None
            return False
        self._dtype = dtype
        self.agrees = self.agrees or (self._parameters, dtype, tuple(self._pieces)) in _agreed
        for x in arrays:
            flags = x.flags
            if x.dtype != dtype or x.size != size or not (flags.c_contiguous and flags.aligned):
                return False
        in_order = list(arrays)
        if not is_whole:
            if self._gradient is None or self._gradient.dtype != dtype:
                self._gradient = np.empty(size, dtype)
            in_order.insert(1, self._gradient)
        numbers = np.zeros(15 + 3 * len(self._pieces), np.int64)
        buffer = np.zeros(self._block + 1)
        start, calls = buffer.ctypes.data, numbers.ctypes.data + 8 * 5
        numbers[:5] = rows, self._parameters, len(self._pieces), self._loop or 0, calls
        # The operands of the loop, how often it runs, over how much, and the steps between these.
        numbers[5:15] = start, start, start + 8 * self._block, 1, 0, 0, 0, 0, 8, 8
        numbers[15:] = np.ravel(self._pieces)
        table = (ctypes.c_void_p * rows)(*[x.ctypes.data for x in in_order])
        result = ctypes.c_int64()
        self._tables = numbers, buffer, table, result
        self._run = partial(
            kernel.function, ctypes.byref(result), None, table, numbers.ctypes.data, start
        )
        self._found, self._used = np.empty((0, rows, self._parameters)), 0
        self._bytes = 8 * rows * self._parameters
        # Arrays that each step makes anew are let go, so that their memory serves the next step.
        self._held = [weakref.ref(x) for x in arrays]
        return True


def _is(reference: Any, x: Any) -> bool:
    return reference() is x
