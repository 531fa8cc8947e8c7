"""Cases of the steps of recurrent cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import apply, apply_several
from optlab.nn.functional.recurrent import GRU_STEP, LSTM, LSTM_STEP
from tests.nn.cases.table import numbers, put


def _both(*args: Any) -> Any:
    return np.concatenate(apply_several(LSTM_STEP, args), axis=-1)


put("a step of LSTM", _both, numbers(2, 8), numbers(2, 2))
put("the cell of a step of LSTM", lambda *a: apply_several(LSTM_STEP, a)[1], numbers(2, 8),
    numbers(2, 2))  # fmt: skip
put("a step of GRU", lambda *a: apply(GRU_STEP, a), numbers(2, 6), numbers(6, 2).T, numbers(2, 2))


def _along(time: int, backwards: bool) -> Any:
    static = {"time": time, "backwards": backwards}
    return lambda *args: apply_several(LSTM, args, static)[0]


put("LSTM along a sequence", _along(1, False), numbers(2, 3, 8), numbers(2, 8), numbers(8),
    numbers(2, 2), numbers(2, 2))  # fmt: skip
put("LSTM backwards, time first", _along(0, True), numbers(3, 2, 8), numbers(2, 8), numbers(8),
    numbers(2, 2), numbers(2, 2))  # fmt: skip
