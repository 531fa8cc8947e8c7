"""Evenly spaced numbers between Tensors, composed of other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.rules.manipulation.spacing import GEOMSPACE, LINSPACE
from optlab.autograd.tensor.tensor import apply, raw


@composed(np.linspace)
def _linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    if device not in (None, "cpu"):
        raise not_covered(f"linspace with device={device!r}")
    num = int(raw(num))
    static = {"num": num, "endpoint": endpoint, "dtype": dtype, "axis": axis}
    samples = apply(LINSPACE, (start, stop), static)
    if not retstep:
        return samples
    pieces = num - 1 if endpoint else num
    step = np.subtract(np.multiply(stop, 1.0), np.multiply(start, 1.0)) / (pieces or np.nan)
    return samples, step


@composed(np.geomspace)
def _geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    static = {"num": int(raw(num)), "endpoint": endpoint, "dtype": dtype, "axis": axis}
    return apply(GEOMSPACE, (start, stop), static)


@composed(np.logspace)
def _logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    if np.ndim(base):
        ndim = len(np.broadcast_shapes(np.shape(start), np.shape(stop), np.shape(base)))
        start, stop, base = (
            np.reshape(x, (1,) * (ndim - np.ndim(x)) + tuple(np.shape(x)))
            for x in (start, stop, base)
        )
        base = np.expand_dims(base, axis)
    y = np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else y.astype(dtype)
