"""Steps of recurrent cells, and an LSTM along a sequence, each beside its derivative rule.

Affine parts are left to `linear`, of the whole sequence at once where possible; the rest of a step
is one operation, which saves its inputs and outputs and recomputes the gates.

An LSTM along a sequence is also one fused operation, for NumPy arrays: its steps record nothing on
the tape, and what does not depend on the step before is computed for all steps at once.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import run_or_record
from optlab.backend.arrays import constants_beside
from optlab.backend.blas_threads import one_each
from optlab.nn.functional.activation.smooth import SIGMOID
from optlab.nn.functional.arguments import total_of_rows
from optlab.nn.functional.lstm_kernels import run_backward, run_forward, steps_of


def _chunks(x: Any, count: int) -> list[Any]:
    width = x.shape[-1] // count
    return [x[..., i * width : (i + 1) * width] for i in range(count)]


def _lstm_step(gates: Any, cell: Any) -> Any:
    """Return the output and the new cell; the gates are input, forget, candidate and output."""
    i, f, u, o = _chunks(gates, 4)
    new = run_or_record(SIGMOID, f) * cell + run_or_record(SIGMOID, i) * np.tanh(u)
    return run_or_record(SIGMOID, o) * np.tanh(new), new


def _lstm_step_back(g: Any, gates: Any, cell: Any, y: Any) -> Any:
    i, f, u, o = _chunks(gates, 4)
    i, f, u, o = (
        run_or_record(SIGMOID, i),
        run_or_record(SIGMOID, f),
        np.tanh(u),
        run_or_record(SIGMOID, o),
    )
    squashed = np.tanh(y[1])
    by_new = g[0] * o * (1 - squashed * squashed)
    if 1 in g:
        by_new = by_new + g[1]
    by_gates = [
        by_new * u * (i * (1 - i)),
        by_new * cell * (f * (1 - f)),
        by_new * i * (1 - u * u),
        g[0] * squashed * (o * (1 - o)),
    ]
    return np.concatenate(by_gates, axis=-1), by_new * f


LSTM_STEP = rule(_lstm_step, inputs="gates cell", several=True, joint=_lstm_step_back)


def _lstm(
    given: Any, turned: Any, bias: Any, hidden: Any, cell: Any, time: int, backwards: bool
) -> Any:
    with one_each():  # the products of a step are too small to share
        return _lstm_forward(given, turned, bias, hidden, cell, time, backwards)


def _lstm_forward(
    given: Any, turned: Any, bias: Any, hidden: Any, cell: Any, time: int, backwards: bool
) -> Any:
    """Return the outputs, along axis `time` as in `given`, and by time the cells and the gates."""
    steps = given.swapaxes(0, time)
    length, batch, gates = steps.shape
    width = gates // 4
    y = np.empty_like(given, shape=(*given.shape[:2], width), order="C")
    cells = np.empty_like(given, shape=(length, batch, width), order="C")
    opened = np.empty_like(given, shape=steps.shape, order="C")
    # sigmoid(x) = (1 + tanh(x / 2)) / 2: one tanh for all gates, whose inputs are halved at once.
    scale, half, rest = (constants_beside(given, x) for x in _halving(given.dtype, width))
    turned = np.multiply(turned, scale, order="C")
    arrays = turned, hidden, cell, y.swapaxes(0, time), cells, opened
    kernels = _kernels(given, width, length, batch)
    if kernels is None or not run_forward(kernels, steps, bias, scale, *arrays, backwards):
        _lstm_steps(steps, bias, scale, half, rest, *arrays, backwards)
    return y, cells, opened


@lru_cache(maxsize=16)
def _halving(dtype: Any, width: int) -> Any:
    """Return the factors of the inputs of gates, and those and the terms of their outputs."""
    scale = np.repeat(np.array([0.5, 0.5, 1, 0.5], dtype), width)
    made = scale, scale.copy(), 1 - scale
    for x in made:
        x.flags.writeable = False
    return made


def _lstm_steps(
    steps: Any, bias: Any, scale: Any, half: Any, rest: Any, turned: Any, hidden: Any, cell: Any,
    outputs: Any, cells: Any, opened: Any, backwards: bool,
) -> None:  # fmt: skip
    length, batch, _ = opened.shape
    affine = steps + bias
    affine *= scale
    # A row that is broadcast takes twice as long.
    half, rest = np.tile(half, (batch, 1)), np.tile(rest, (batch, 1))
    order = range(length - 1, -1, -1) if backwards else range(length)
    rows = [[x[t] for t in order] for x in (affine, opened, *_chunks(opened, 4), cells, outputs)]
    for step, now, i, f, u, o, new, output in zip(*rows, strict=True):
        np.add(hidden @ turned, step, now)
        np.tanh(now, now)
        np.multiply(now, half, now)
        np.add(now, rest, now)
        np.multiply(f, cell, new)
        np.add(new, i * u, new)
        np.multiply(o, np.tanh(new), output)
        hidden, cell = output, new


def _kernels(x: Any, width: int, length: int, batch: int) -> Any:
    """Return the compiled steps for arrays like `x`; None if NumPy does them."""
    if type(x) is not np.ndarray:
        return None
    return steps_of(x.dtype, (length, batch, width), partial(_agree, x.dtype, width, batch))


def _agree(dtype: Any, width: int, batch: int, kernels: Any) -> bool:
    """Return whether compiled steps have NumPy's bits, on an example."""
    draw = np.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        """Return numbers of many magnitudes, with both zeros."""
        found = draw.standard_normal(shape) * 10.0 ** draw.integers(-4, 2, shape)
        found[draw.random(shape) < 0.1] = 0.0
        return np.copysign(found, draw.standard_normal(shape)).astype(dtype)

    steps, bias, cell = numbers(batch, 3, 4 * width), numbers(4 * width), numbers(batch, width)
    turned, hidden, g = numbers(width, 4 * width), numbers(batch, width), numbers(batch, 3, width)
    factors = _halving(dtype, width)
    in_place: Any = _lstm_back_in_place
    found = []
    for backwards in (False, True):
        for compiled in (True, False):
            y, cells = np.empty((batch, 3, width), dtype), np.empty((3, batch, width), dtype)
            opened, outputs = np.empty((3, batch, 4 * width), dtype), y.swapaxes(0, 1)
            arrays: Any = turned, hidden, cell, outputs, cells, opened, backwards
            if compiled:
                run_forward(kernels, steps.swapaxes(0, 1), bias, factors[0], *arrays)
            else:
                _lstm_steps(steps.swapaxes(0, 1), bias, *factors, *arrays)
            found += [y, cells, opened]
        given: list[Any] = [g.swapaxes(0, 1), None, None, numbers(4 * width, width)]
        given += [cells, opened, cell]
        for one in (kernels, None):
            found += in_place(*given, backwards, one)
    halves = [found[i : i + 3] for i in range(0, len(found), 3)]
    return all(
        _same(a, b)
        for one, other in zip(halves[::2], halves[1::2], strict=True)
        for a, b in zip(one, other, strict=True)
    )


def _same(a: Any, b: Any) -> bool:
    return bool(a.tobytes() == b.tobytes())


def _lstm_back(
    g: Any, turned: Any, hidden: Any, cell: Any, y: Any, time: int, backwards: bool
) -> Any:
    with one_each():
        return _lstm_backward(g, turned, hidden, cell, y, time, backwards)


def _lstm_backward(
    g: Any, turned: Any, hidden: Any, cell: Any, y: Any, time: int, backwards: bool
) -> Any:
    outputs, cells, opened = y[0].swapaxes(0, time), y[1], y[2]
    by_outputs, before = g[0].swapaxes(0, time), _previous(hidden, outputs, backwards)
    cotangents = [g[i] if i in g else None for i in (1, 2)]  # noqa: SIM401 (it is no dict)
    given: list[Any] = [by_outputs, *cotangents, turned.swapaxes(0, 1), cells, opened, cell]
    recorded: Any = _lstm_back_recorded
    in_place: Any = _lstm_back_in_place
    if not all(type(x) is np.ndarray for x in given if x is not None):
        by_given, by_hidden, by_cell = recorded(*given, backwards)
        rows = by_given.reshape((-1, by_given.shape[-1]))
        by_turned = before.reshape((-1, before.shape[-1])).swapaxes(0, 1) @ rows
        by_bias = np.add.reduce(rows, axis=0)
        return by_given.swapaxes(0, time), by_turned, by_bias, by_hidden, by_cell
    length, batch, width = cells.shape
    kernels = _kernels(cells, width, length, batch)
    by_given, by_hidden, by_cell = in_place(*given, backwards, kernels, time)
    rows = by_given.reshape(-1, 4 * width)
    by_turned = before.swapaxes(0, time).reshape(-1, width).T @ rows
    return by_given, by_turned, total_of_rows(rows), by_hidden, by_cell


def _lstm_back_in_place(
    by_outputs: Any, by_cells: Any, by_opened: Any, back: Any, cells: Any, opened: Any,
    cell: Any, backwards: bool, kernels: Any = None, time: int = 0,
) -> Any:  # fmt: skip
    """Return the gradients of the gates' inputs and of the initial states.

    The former are contiguous, with time along axis `time`.
    """
    length, batch, width = cells.shape
    squashed = np.tanh(cells)
    if kernels is not None and by_cells is None and by_opened is None:
        shape = (length, batch) if time == 0 else (batch, length)
        by_given = np.empty((*shape, 4 * width), cells.dtype)
        states = np.zeros((2, batch, width), cells.dtype)
        if run_backward(
            kernels, by_outputs, back, cells, opened, squashed, cell, by_given.swapaxes(0, time),
            states, backwards,
        ):  # fmt: skip
            return by_given, *states
    previous = _previous(cell, cells, backwards)
    # Gates apart: contiguous arrays of a step take half the time of slices.
    apart = np.ascontiguousarray(opened.reshape(length, batch, 4, width).swapaxes(1, 2))
    i, f, u, o = (apart[:, k] for k in range(4))
    factors = apart * apart
    np.subtract(apart, factors, factors)
    np.subtract(1, u * u, factors[:, 2])
    if by_opened is not None:
        by_opened = by_opened * factors.swapaxes(1, 2).reshape(opened.shape)
    for k, other in enumerate((u, previous, i, squashed)):
        np.multiply(factors[:, k], other, factors[:, k])
    squashed *= squashed
    np.subtract(1, squashed, squashed)
    squashed *= o
    by_outputs, back = np.ascontiguousarray(by_outputs), np.ascontiguousarray(back)
    by_given = np.empty_like(opened)
    gates = by_given.reshape(length, batch, 4, width).swapaxes(1, 2)
    by_hidden, by_cell, term = (np.zeros((batch, width), cells.dtype) for _ in range(3))
    steps = zip(
        by_given, gates[:, :3], gates[:, 3], factors[:, :3], factors[:, 3], by_outputs, squashed, f,
        range(length), strict=True,
    )  # fmt: skip
    for all_gates, three, last, of_cell, of_output, output, slope, kept, t in list(steps)[
        :: 1 if backwards else -1
    ]:
        np.add(by_hidden, output, by_hidden)
        np.multiply(by_hidden, slope, term)
        np.add(by_cell, term, by_cell)
        if by_cells is not None:
            np.add(by_cell, by_cells[t], by_cell)
        np.multiply(by_cell, of_cell, three)
        np.multiply(by_hidden, of_output, last)
        if by_opened is not None:
            np.add(all_gates, by_opened[t], all_gates)
        np.matmul(all_gates, back, by_hidden)
        np.multiply(by_cell, kept, by_cell)
    return np.ascontiguousarray(by_given.swapaxes(0, time)), by_hidden, by_cell


def _lstm_back_recorded(
    by_outputs: Any, by_cells: Any, by_opened: Any, back: Any, cells: Any, opened: Any,
    cell: Any, backwards: bool,
) -> Any:  # fmt: skip
    """Return the same, by time, by operations that the tape can record."""
    previous = _previous(cell, cells, backwards)
    i, f, u, o = _chunks(opened, 4)
    squashed = np.tanh(cells)
    slopes = np.concatenate([i * (1 - i), f * (1 - f), 1 - u * u, o * (1 - o)], axis=-1)
    factors = np.concatenate([u, previous, i, squashed], axis=-1) * slopes
    by_squashed = o * (1 - squashed * squashed)
    length = len(factors)
    by_hidden: Any = 0.0
    by_cell: Any = 0.0
    found: list[Any] = [None] * length
    for t in range(length) if backwards else range(length - 1, -1, -1):
        by_hidden = by_outputs[t] + by_hidden
        by_cell = by_hidden * by_squashed[t] + by_cell
        if by_cells is not None:
            by_cell = by_cell + by_cells[t]
        by_gates = np.concatenate([by_cell, by_cell, by_cell, by_hidden], axis=-1) * factors[t]
        if by_opened is not None:
            by_gates = by_gates + by_opened[t] * slopes[t]
        found[t] = by_gates
        by_hidden = by_gates @ back
        by_cell = by_cell * f[t]
    return np.stack(found), by_hidden, by_cell


def _previous(start: Any, along: Any, backwards: bool) -> Any:
    """Return the state before each step: the initial one, then those after the steps before."""
    parts = [along[1:], start[None]] if backwards else [start[None], along[:-1]]
    return np.concatenate(parts)


LSTM = rule(
    _lstm, inputs="given turned bias hidden cell", static="time backwards", several=True,
    joint=_lstm_back,
)  # fmt: skip


def _gru_gates(given: Any, before: Any) -> Any:
    """Return the gates reset and update, the candidate, and the term that reset multiplies."""
    (r, z, c), (hr, hz, hc) = _chunks(given, 3), _chunks(before, 3)
    r = run_or_record(SIGMOID, r + hr)
    return r, run_or_record(SIGMOID, z + hz), np.tanh(c + r * hc), hc


def _gru_step(given: Any, before: Any, hidden: Any) -> Any:
    """Return the new state; `given` is affine in the input and `before` in the state `hidden`."""
    _, z, c, _ = _gru_gates(given, before)
    return (hidden - c) * z + c


def _gru_step_back(g: Any, given: Any, before: Any, hidden: Any) -> Any:
    r, z, c, hc = _gru_gates(given, before)
    by_hidden = g * z
    by_c = (g - by_hidden) * (1 - c * c)
    by_z = g * (hidden - c) * (z * (1 - z))
    by_r = by_c * hc * (r * (1 - r))
    return (
        np.concatenate([by_r, by_z, by_c], axis=-1),
        np.concatenate([by_r, by_z, by_c * r], axis=-1),
        by_hidden,
    )


GRU_STEP = rule(_gru_step, inputs="given before hidden", joint=_gru_step_back)
