"""One step of recurrent cells, each beside its derivative rule.

Affine parts are left to `linear`, of the whole sequence at once where that is possible; what
follows them is one operation a step. It keeps its inputs and outputs, and computes the gates again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import run
from optlab.nn.functional.activations import SIGMOID


def _parts(x: Any, count: int) -> list[Any]:
    width = x.shape[-1] // count
    return [x[..., i * width : (i + 1) * width] for i in range(count)]


def _lstm_step(gates: Any, cell: Any) -> Any:
    """Give the output and the new cell; the gates are input, forget, candidate and output."""
    i, f, u, o = _parts(gates, 4)
    new = run(SIGMOID, f) * cell + run(SIGMOID, i) * np.tanh(u)
    return run(SIGMOID, o) * np.tanh(new), new


def _lstm_step_back(g: Any, gates: Any, cell: Any, y: Any) -> Any:
    i, f, u, o = _parts(gates, 4)
    i, f, u, o = run(SIGMOID, i), run(SIGMOID, f), np.tanh(u), run(SIGMOID, o)
    bent = np.tanh(y[1])
    by_new = g[0] * o * (1 - bent * bent)
    if 1 in g:
        by_new = by_new + g[1]
    by_gates = [
        by_new * u * (i * (1 - i)),
        by_new * cell * (f * (1 - f)),
        by_new * i * (1 - u * u),
        g[0] * bent * (o * (1 - o)),
    ]
    return np.concatenate(by_gates, axis=-1), by_new * f


LSTM_STEP = rule(_lstm_step, inputs="gates cell", several=True, joint=_lstm_step_back)


def _gru_gates(given: Any, before: Any) -> Any:
    """Give the gates reset and update, the candidate, and what reset is multiplied with."""
    (r, z, c), (hr, hz, hc) = _parts(given, 3), _parts(before, 3)
    r = run(SIGMOID, r + hr)
    return r, run(SIGMOID, z + hz), np.tanh(c + r * hc), hc


def _gru_step(given: Any, before: Any, hidden: Any) -> Any:
    """Give the new state; `given` comes from the input and `before` from the state `hidden`."""
    _, z, c, _ = _gru_gates(given, before)
    return (hidden - c) * z + c


def _gru_step_back(g: Any, given: Any, before: Any, hidden: Any) -> Any:
    r, z, c, hc = _gru_gates(given, before)
    kept = g * z
    by_c = (g - kept) * (1 - c * c)
    by_z = g * (hidden - c) * (z * (1 - z))
    by_r = by_c * hc * (r * (1 - r))
    return (
        np.concatenate([by_r, by_z, by_c], axis=-1),
        np.concatenate([by_r, by_z, by_c * r], axis=-1),
        kept,
    )


GRU_STEP = rule(_gru_step, inputs="given before hidden", joint=_gru_step_back)
