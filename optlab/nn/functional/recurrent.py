"""Steps of recurrent cells, and an LSTM along a sequence, each beside its derivative rule.

Affine parts are left to `linear`, of the whole sequence at once where possible; the rest of a step
is one operation, which saves its inputs and outputs and recomputes the gates.

An LSTM along a sequence is also one fused operation, for NumPy arrays: its steps record nothing on
the tape, and what does not depend on the step before is computed for all steps at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import run_or_record
from optlab.nn.functional.activation.smooth import SIGMOID


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
    """Return the outputs, along axis `time` as in `given`, and by time the cells and the gates."""
    steps = given.swapaxes(0, time)
    length, batch, gates = steps.shape
    width = gates // 4
    y = np.empty_like(given, shape=(*given.shape[:2], width), order="C")
    outputs = y.swapaxes(0, time)
    cells = np.empty_like(given, shape=(length, batch, width), order="C")
    opened = np.empty_like(given, shape=steps.shape, order="C")
    with np.errstate(over="ignore"):  # as in SIGMOID
        for t in range(length - 1, -1, -1) if backwards else range(length):
            raw = hidden @ turned
            raw += bias
            raw += steps[t]
            now, new = opened[t], cells[t]
            np.negative(raw, now)
            np.exp(now, now)
            now += 1
            np.divide(1, now, now)
            i, f, u, o = _chunks(now, 4)
            np.tanh(_chunks(raw, 4)[2], u)
            np.multiply(f, cell, new)
            new += i * u
            np.multiply(o, np.tanh(new), outputs[t])
            hidden, cell = outputs[t], new
    return y, cells, opened


def _lstm_back(
    g: Any, turned: Any, hidden: Any, cell: Any, y: Any, time: int, backwards: bool
) -> Any:
    outputs, cells, opened = y[0].swapaxes(0, time), y[1], y[2]
    by_outputs = g[0].swapaxes(0, time)
    i, f, u, o = _chunks(opened, 4)
    squashed = np.tanh(cells)
    slopes = np.concatenate([i * (1 - i), f * (1 - f), 1 - u * u, o * (1 - o)], axis=-1)
    factors = np.concatenate([u, _previous(cell, cells, backwards), i, squashed], axis=-1) * slopes
    by_squashed = o * (1 - squashed * squashed)
    back = turned.swapaxes(0, 1)
    length = len(cells)
    by_hidden: Any = 0.0
    by_cell: Any = 0.0
    found: list[Any] = [None] * length
    for t in range(length) if backwards else range(length - 1, -1, -1):
        by_hidden = by_outputs[t] + by_hidden
        by_cell = by_hidden * by_squashed[t] + by_cell
        if 1 in g:
            by_cell = by_cell + g[1][t]
        by_gates = np.concatenate([by_cell, by_cell, by_cell, by_hidden], axis=-1) * factors[t]
        if 2 in g:
            by_gates = by_gates + g[2][t] * slopes[t]
        found[t] = by_gates
        by_hidden = by_gates @ back
        by_cell = by_cell * f[t]
    by_given = np.stack(found)
    before = _previous(hidden, outputs, backwards)
    rows = by_given.reshape((-1, by_given.shape[-1]))
    by_turned = before.reshape((-1, before.shape[-1])).swapaxes(0, 1) @ rows
    return by_given.swapaxes(0, time), by_turned, np.add.reduce(rows, axis=0), by_hidden, by_cell


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
