"""Functions that call a user function on parts of an array, composed of other functions."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from optlab.autograd.composed.table import composed
from optlab.autograd.rules.manipulation.indexing import SCATTER
from optlab.autograd.rules.manipulation.joining import UNSTACK
from optlab.autograd.tensor.tensor import apply, apply_several, raw
from optlab.backend.arrays import as_array, given_beside


@composed(np.apply_along_axis, moves=True)
def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    n = np.ndim(arr)
    axis = normalize_axis_index(axis, n)
    moved = np.moveaxis(arr, axis, -1)
    around, length = tuple(moved.shape[:-1]), moved.shape[-1]
    if 0 in around:
        raise ValueError("apply_along_axis has nothing to apply the function to: an axis is empty.")
    lines = apply_several(UNSTACK, (np.reshape(moved, (-1, length)),), {"axis": 0})
    results = [func1d(line, *args, **kwargs) for line in lines]
    # The axes of the function's results replace `axis`.
    own = tuple(np.shape(results[0]))
    y = np.reshape(np.stack(results), around + own)
    inside = range(len(around), len(around) + len(own))
    return np.transpose(y, (*range(axis), *inside, *range(axis, len(around))))


@composed(np.apply_over_axes, moves=True)
def _apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    n = np.ndim(a)
    for axis in np.atleast_1d(raw(axes)).tolist():
        axis = normalize_axis_index(axis, n)
        folded = func(a, axis)
        if np.ndim(folded) != n:
            folded = np.expand_dims(folded, axis)
        if np.ndim(folded) != n:
            raise ValueError(
                f"apply_over_axes takes a function that reduces one axis or keeps all; this one "
                f"returns {np.ndim(folded)} axes from {n}."
            )
        a = folded
    return a


@composed(np.piecewise, moves=True)
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    conditions = raw(condlist)
    if np.isscalar(conditions) or (np.ndim(conditions[0]) == 0 and np.ndim(x) != 0):
        conditions = [conditions]
    conditions = [as_array(raw(condition), bool) for condition in conditions]
    if len(conditions) == len(funclist) - 1:
        conditions.append(~reduce(np.logical_or, conditions))
    elif len(conditions) != len(funclist):
        raise ValueError(
            f"piecewise takes a function for each condition, and perhaps one for the rest; got "
            f"{len(conditions)} conditions and {len(funclist)} functions."
        )
    dtype = np.result_type(x)
    y: Any = np.zeros_like(raw(x))
    # Where conditions overlap the last one wins, as in NumPy.
    for condition, function in zip(conditions, funclist, strict=True):
        part = function
        if callable(function):
            chosen = x[condition]
            if not chosen.size:
                continue
            part = function(chosen, *args, **kw)
            static = {"index": condition, "shape": np.shape(x)}
            part = apply(SCATTER, (np.broadcast_to(given_beside(x, part), chosen.shape),), static)
        y = np.where(condition, part, y)
        y = y.astype(dtype)
    return y
