"""Elementwise functions of NumPy written with other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed
from optlab.autograd.operation import TABLE
from optlab.autograd.operators import power
from optlab.autograd.tensor import Tensor, apply, raw


@composed(np.power)
def _power(a: Any, b: Any) -> Any:
    return power(a, b) if isinstance(a, Tensor) else apply(TABLE[np.power], (a, b))


@composed(np.clip)
def _clip(x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low = a_min if a_min is not None else min
    high = a_max if a_max is not None else max
    return apply(TABLE[np.clip], (x, low, high))


@composed(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    condition = raw(condition)
    if not choices:
        return np.nonzero(condition)
    return apply(TABLE[np.where], (condition, *choices))


@composed(np.astype)
def _astype(x: Any, dtype: Any, **kwargs: Any) -> Any:
    return x.astype(dtype)


@composed(np.copy)
def _copy(a: Any, **kwargs: Any) -> Any:
    return +a
