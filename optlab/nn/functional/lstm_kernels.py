"""All steps of an LSTM as one compiled function, forward and backward, with NumPy's bits.

A step of a small LSTM is a dozen calls from Python, each of which takes longer than what it
computes: 16 sequences of 32 units are 2 us of arithmetic, and 11 of calls. The functions here do
the steps of `optlab.nn.functional.recurrent` in the same order of operations, and call what NumPy
calls for tanh and for products of matrices (`optlab.backend.native_calls`).

As for updates (`optlab.plan.executors`), they are compiled in a child process once they pay off,
and NumPy does the work until then, and wherever they may not run. For each shape they are compared
with NumPy before they are used. They stop at a value that is not finite: NumPy then does all steps
again, and reports what there is to report.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.backend.native_calls import gemm, loop_address
from optlab.plan.executors import LOOK_UP, chosen_executor, has_numba, is_compiled, may_use_loops

#: Kernels have the width in their source: one for each, and so many are kept.
_MOST_WIDTHS = 16
#: Operations on each gate of each step, about.
_OPERATIONS = 8

_FORWARD = """
def kernel(length, batch, first, by, gt, gb, yt, yb, gemm, tanh, a_hidden, a_turned, a_y, a_opened,
           a_cells, a_squashed, a_calls, p_given, p_bias, p_scale, p_cell, p_y,
           p_opened, p_cells, p_squashed, p_calls):
    given = carray(p_given, (length - 1) * gt + (batch - 1) * gb + {gates})
    bias = carray(p_bias, {gates})
    scale = carray(p_scale, {gates})
    zero = {kind}(0)
    one = {kind}(1)
    half = {kind}(0.5)
    start = carray(p_cell, batch * {width})
    y = carray(p_y, (length - 1) * yt + (batch - 1) * yb + {width})
    opened = carray(p_opened, length * batch * {gates})
    cells = carray(p_cells, length * batch * {width})
    squashed = carray(p_squashed, batch * {width})
    calls = carray(p_calls, 5)
    calls[3] = {size}
    calls[4] = {size}
    fault = False
    for n in range(length):
        t = first + by * n
        row = t * batch
        at = a_opened + row * {gates} * {size}
        if n == 0:
            {gemm}(gemm, batch, {gates}, {width}, a_hidden, {width}, a_turned, {gates}, at, {gates})
        else:
            {gemm}(gemm, batch, {gates}, {width}, a_y + (t - by) * yt * {size}, yb, a_turned,
                   {gates}, at, {gates})
        for b in range(batch):
            now = opened[(row + b) * {gates}:(row + b) * {gates} + {gates}]
            x = given[t * gt + b * gb:t * gt + b * gb + {gates}]
            for j in range({gates}):
                v = now[j] + (x[j] + bias[j]) * scale[j]
                fault |= not (abs(v) < {kind}(np.inf))
                now[j] = v
        calls[0] = at
        calls[1] = at
        calls[2] = batch * {gates}
        call_loop(tanh, a_calls, a_calls + 16, a_calls + 24)
        for b in range(batch):
            now = opened[(row + b) * {gates}:(row + b) * {gates} + {gates}]
            i = now[0:{width}]
            f = now[{width}:2 * {width}]
            u = now[2 * {width}:3 * {width}]
            o = now[3 * {width}:{gates}]
            if n == 0:
                old = start[b * {width}:b * {width} + {width}]
            else:
                at_old = ((t - by) * batch + b) * {width}
                old = cells[at_old:at_old + {width}]
            new = cells[(row + b) * {width}:(row + b) * {width} + {width}]
            for j in range({width}):
                v_i = i[j] * half + half
                v_f = f[j] * half + half
                v_u = u[j] * one + zero
                v = v_f * old[j] + v_i * v_u
                fault |= not (abs(v) < {kind}(np.inf))
                i[j] = v_i
                f[j] = v_f
                u[j] = v_u
                o[j] = o[j] * half + half
                new[j] = v
        calls[0] = a_cells + row * {width} * {size}
        calls[1] = a_squashed
        calls[2] = batch * {width}
        call_loop(tanh, a_calls, a_calls + 16, a_calls + 24)
        for b in range(batch):
            o = opened[(row + b) * {gates} + 3 * {width}:(row + b) * {gates} + {gates}]
            s = squashed[b * {width}:b * {width} + {width}]
            out = y[t * yt + b * yb:t * yt + b * yb + {width}]
            for j in range({width}):
                out[j] = o[j] * s[j]
    return 1 if fault else 0
"""
_FORWARD_PARAMETERS = [*["int64"] * 17, *["{kind}*"] * 8, "int64*"]

_BACKWARD = """
def kernel(length, batch, first, by, ot, ob, dt, db, gemm, a_back, a_by_given, a_states, p_outputs,
           p_opened, p_cells, p_cell, p_squashed, p_states, p_by_given):
    one = {kind}(1)
    outputs = carray(p_outputs, (length - 1) * ot + (batch - 1) * ob + {width})
    opened = carray(p_opened, length * batch * {gates})
    cells = carray(p_cells, length * batch * {width})
    start = carray(p_cell, batch * {width})
    squashed = carray(p_squashed, length * batch * {width})
    states = carray(p_states, 2 * batch * {width})
    by_given = carray(p_by_given, (length - 1) * dt + (batch - 1) * db + {gates})
    fault = False
    for n in range(length):
        t = first + by * n
        row = t * batch
        for b in range(batch):
            now = opened[(row + b) * {gates}:(row + b) * {gates} + {gates}]
            i = now[0:{width}]
            f = now[{width}:2 * {width}]
            u = now[2 * {width}:3 * {width}]
            o = now[3 * {width}:{gates}]
            s = squashed[(row + b) * {width}:(row + b) * {width} + {width}]
            g = outputs[t * ot + b * ob:t * ot + b * ob + {width}]
            h = states[b * {width}:b * {width} + {width}]
            c = states[(batch + b) * {width}:(batch + b) * {width} + {width}]
            for j in range({width}):
                v = h[j] + g[j]
                h[j] = v
                c[j] = c[j] + v * ((one - s[j] * s[j]) * o[j])
            if n == length - 1:
                old = start[b * {width}:b * {width} + {width}]
            else:
                at_old = ((t + by) * batch + b) * {width}
                old = cells[at_old:at_old + {width}]
            d = by_given[t * dt + b * db:t * dt + b * db + {gates}]
            d_i = d[0:{width}]
            d_f = d[{width}:2 * {width}]
            d_u = d[2 * {width}:3 * {width}]
            d_o = d[3 * {width}:{gates}]
            for j in range({width}):
                v_i = c[j] * ((i[j] - i[j] * i[j]) * u[j])
                v_f = c[j] * ((f[j] - f[j] * f[j]) * old[j])
                v_u = c[j] * ((one - u[j] * u[j]) * i[j])
                v_o = h[j] * ((o[j] - o[j] * o[j]) * s[j])
                fault |= not (abs(v_i) < {kind}(np.inf))
                fault |= not (abs(v_f) < {kind}(np.inf))
                fault |= not (abs(v_u) < {kind}(np.inf))
                fault |= not (abs(v_o) < {kind}(np.inf))
                d_i[j] = v_i
                d_f[j] = v_f
                d_u[j] = v_u
                d_o[j] = v_o
            for j in range({width}):
                v = c[j] * f[j]
                fault |= not (abs(v) < {kind}(np.inf))
                c[j] = v
        {gemm}(gemm, batch, {width}, {gates}, a_by_given + t * dt * {size}, db, a_back, {width},
               a_states, {width})
    for j in range(batch * {width}):
        fault |= not (abs(states[j]) < {kind}(np.inf))
    return 1 if fault else 0
"""
_BACKWARD_PARAMETERS = [*["int64"] * 12, *["{kind}*"] * 7]


class _Steps:
    """The kernels of one dtype and width, and what is known of them."""

    def __init__(self, dtype: Any, width: int, product: tuple[int, str], tanh: int) -> None:
        from optlab.plan.numba_cache import kernel_of

        #: Addresses of the product of matrices and of tanh.
        self.product, self.tanh = product[0], tanh

        words = {
            "kind": dtype.name, "width": width, "gates": 4 * width, "size": dtype.itemsize,
            "gemm": f"gemm_{dtype.name}_{product[1]}",
        }  # fmt: skip

        def kernel(source: str, parameters: list[str]) -> Any:
            return kernel_of(source.format(**words), [p.format(**words) for p in parameters])

        self.forward = kernel(_FORWARD, _FORWARD_PARAMETERS)
        self.backward = kernel(_BACKWARD, _BACKWARD_PARAMETERS)
        #: Whether they agree with NumPy, by the number of sequences.
        self.agrees: dict[int, bool] = {}

    @property
    def problem(self) -> str:
        """Why they cannot be compiled, if so."""
        return self.forward.problem or self.backward.problem  # type: ignore[no-any-return]

    def look_up(self) -> bool:
        """Return whether both are compiled; load those that the cache has."""
        return all([self.forward.look_up(), self.backward.look_up()])

    def request(self) -> None:
        """Let a child process compile them."""
        self.forward.request()
        self.backward.request()

    def compile(self) -> None:
        """Compile them now."""
        self.forward.compile()
        self.backward.compile()


_known: dict[tuple[Any, int], Any] = {}
#: Operations on elements that NumPy has done instead.
_worked = 0


def steps_of(dtype: Any, shape: tuple[int, ...], verify: Callable[[Any], bool]) -> _Steps | None:
    """Return the kernels for sequences of a shape; None if NumPy has to go on.

    Parameters
    ----------
    dtype : dtype
        Of all arrays.
    shape : (length, batch, width)
    verify : callable
        Returns whether kernels have NumPy's bits; called before they are first used.
    """
    global _worked
    length, batch, width = shape
    # Of one row or column NumPy computes other products, and of none no kernel is needed.
    if not may_use_loops() or min(batch, width) < 2 or not length:
        return None
    _worked += 4 * length * batch * width * _OPERATIONS
    if chosen_executor() == "auto" and (_worked < LOOK_UP or not has_numba()):
        return None  # and nothing is imported
    key = dtype, width
    found = _known.get(key, False)
    if found is False:
        if len(_known) >= _MOST_WIDTHS:
            _known.clear()
        product, tanh = gemm(dtype), loop_address(np.tanh, dtype)
        there = product is not None and tanh is not None
        found = _known[key] = _Steps(dtype, width, product, tanh) if there else None  # type: ignore[arg-type]
    if found is None:
        return None
    ready = is_compiled(found, _worked)
    if ready is None:
        _known[key] = None
    if not ready:
        return None
    agrees = found.agrees.get(batch)
    if agrees is None:
        agrees = found.agrees[batch] = verify(found)
    return found if agrees else None


def run_forward(
    steps: _Steps,
    given: Any,
    bias: Any,
    scale: Any,
    turned: Any,
    hidden: Any,
    cell: Any,
    y: Any,
    cells: Any,
    opened: Any,
    backwards: bool,
) -> bool:
    """Fill y, cells and opened gates; return whether all values were finite.

    All arrays are by time; the rows of all are contiguous, and all but `given` and `y` as a whole.
    """
    dtype = opened.dtype
    length, batch, gates = opened.shape
    given, hidden, cell = _rows(given), np.ascontiguousarray(hidden), np.ascontiguousarray(cell)
    bias, turned = np.ascontiguousarray(bias), np.ascontiguousarray(turned)
    squashed, calls = np.empty(batch * gates // 4, dtype), np.empty(5, np.int64)
    operands = [_address(x) for x in (hidden, turned, y, opened, cells, squashed, calls)]
    return not _called(
        steps.forward.function, *_order(length, backwards), batch, *_strides(given), *_strides(y),
        steps.product, steps.tanh, *operands, *map(_address, (given, bias, scale, cell)),
        *operands[2:],
    )  # fmt: skip


def run_backward(
    steps: _Steps, by_outputs: Any, back: Any, cells: Any, opened: Any, squashed: Any, cell: Any,
    by_given: Any, states: Any, backwards: bool,
) -> bool:  # fmt: skip
    """Fill the gradients of gates and initial states; return whether all values were finite."""
    by_outputs, back = _rows(by_outputs), np.ascontiguousarray(back)
    cell = np.ascontiguousarray(cell)
    operands = [_address(by_given), _address(states)]
    others = [_address(x) for x in (by_outputs, opened, cells, cell, squashed)]
    return not _called(
        steps.backward.function, *_order(len(opened), not backwards), opened.shape[1],
        *_strides(by_outputs), *_strides(by_given), steps.product, _address(back), *operands,
        *others, operands[1], operands[0],
    )  # fmt: skip


_memory: Any = (ctypes.c_char * 0).from_buffer


def _address(x: Any) -> int:
    """Return the address of an array: half of the time of ``x.ctypes.data``."""
    return ctypes.addressof(_memory(x)) if x.flags.carray else x.ctypes.data


def _called(function: Any, length: int, first: int, by: int, batch: int, *rest: int) -> int:
    result = ctypes.c_int64()
    function(ctypes.byref(result), None, length, batch, first, by, *rest)
    return result.value


def _order(length: int, backwards: bool) -> tuple[int, int, int]:
    """Return the number of steps, the first one, and what leads to the next."""
    return (length, length - 1, -1) if backwards else (length, 0, 1)


def _strides(x: Any) -> tuple[int, int]:
    return x.strides[0] // x.itemsize, x.strides[1] // x.itemsize


def _rows(x: Any) -> Any:
    """Return an array whose rows are contiguous, and one after another."""
    if x.strides[2] == x.itemsize and min(x.strides) >= 0:
        return x
    return np.ascontiguousarray(x)
