"""Functions that select, insert and delete elements, composed of other functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib import NumpyVersion
from numpy.lib.array_utils import normalize_axis_index

from optlab.autograd.composed.joining import _refuse_out
from optlab.autograd.composed.table import composed
from optlab.autograd.rules.manipulation.indexing import SCATTER, diagonal_index
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import as_array, given_beside, on_host


def _on_axis(axis: int, index: Any) -> tuple[Any, ...]:
    """Return the index that applies `index` to one axis and keeps the axes before it."""
    return (*(slice(None),) * axis, index)


def _getitem(x: Any, index: Any) -> Any:
    """Return ``x[index]``, also of a list or a number."""
    return x[index] if isinstance(x, Tensor) else as_array(x)[index]


def _apply_mode(indices: Any, length: int, mode: str) -> Any:
    """Apply NumPy's `mode` to out-of-bounds indices."""
    if mode == "wrap":
        return indices % length
    if mode == "clip":
        return np.clip(indices, 0, length - 1)
    if mode != "raise":
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip'; got {mode!r}.")
    return indices


def _as_indices(indices: Any) -> Any:
    """Cast indices to integers (bool too); raise for other dtypes."""
    indices = as_array(raw(indices))
    if indices.size and not np.can_cast(indices.dtype, np.intp, "same_kind"):
        raise TypeError(f"indices are whole numbers; these are of dtype {indices.dtype}.")
    return indices.astype(np.intp)


@composed(np.take, moves=True)
def _take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise"
) -> Any:
    _refuse_out("take", out)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = normalize_axis_index(axis, np.ndim(a))
    return _getitem(a, _on_axis(axis, _apply_mode(_as_indices(indices), np.shape(a)[axis], mode)))


@composed(np.take_along_axis, moves=True)
def _take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    if axis is None:
        arr, axis = np.ravel(arr), 0
    n, indices = np.ndim(arr), raw(indices)
    axis = normalize_axis_index(axis, n)
    if np.ndim(indices) != n:
        raise ValueError(
            f"take_along_axis takes indices with as many axes as the array; the array has {n}, "
            f"the indices have {np.ndim(indices)}."
        )
    if indices.dtype.kind not in "iu":
        raise IndexError(f"take_along_axis takes whole numbers as indices; got {indices.dtype}.")
    index = [
        np.arange(length).reshape([-1 if i == j else 1 for j in range(n)])
        for i, length in enumerate(np.shape(arr))
    ]
    index[axis] = indices
    return _getitem(arr, tuple(index))


@composed(np.compress, moves=True)
def _compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    condition = as_array(raw(condition))
    if condition.ndim != 1:
        raise ValueError(f"compress takes a condition with one axis; this has {condition.ndim}.")
    return _take(a, np.flatnonzero(condition), axis, out)


@composed(np.extract, moves=True)
def _extract(condition: Any, arr: Any) -> Any:
    return _take(arr, np.flatnonzero(raw(condition)))


@composed(np.choose)
def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    _refuse_out("choose", out)
    choices = list(choices)
    which = _as_indices(a)
    if mode == "raise" and which.size and not (which.min() >= 0 and which.max() < len(choices)):
        raise ValueError(f"choose has {len(choices)} choices; an entry points elsewhere.")
    which = _apply_mode(which, len(choices), mode)
    shape = np.broadcast_shapes(which.shape, *(np.shape(choice) for choice in choices))
    # NumPy determines the common dtype, from empty choices of the same dtypes.
    alike: Any = [
        x
        if isinstance(x, (bool, int, float))
        else np.empty(np.shape(x)[:1] and 0, np.result_type(x))
        for x in choices
    ]
    dtype = np.choose(np.zeros(0, int), alike).dtype
    y = choices[0]
    for i, choice in enumerate(choices[1:], 1):
        y = np.where(which == i, choice, y)
    y = y.astype(dtype) if isinstance(y, Tensor) else as_array(y, dtype)
    return np.broadcast_to(y, shape)


@composed(np.select)
def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"select takes as many conditions as choices; got {len(condlist)} conditions and "
            f"{len(choicelist)} choices."
        )
    if not len(condlist):
        raise ValueError("select takes at least one condition.")
    conditions = [as_array(raw(condition)) for condition in condlist]
    for condition in conditions:
        if condition.dtype != bool:
            raise TypeError(f"select takes masks as conditions; got one of {condition.dtype}.")
    choices = [np.asarray(x) if isinstance(x, (list, tuple)) else x for x in choicelist]
    default = np.asarray(default) if isinstance(default, (list, tuple)) else default
    dtype = np.result_type(*(raw(x) for x in choices), raw(default))
    y = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        y = np.where(condition, choice, y)
    return y.astype(dtype)


# Diagonals ------------------------------------------------------------------------------------


@composed(np.diag, moves=True)
def _diag(v: Any, k: int = 0) -> Any:
    n = np.ndim(v)
    if n == 2:
        return np.diagonal(v, k)
    if n != 1:
        raise ValueError(f"np.diag takes an array of one or two axes; this one has {n}.")
    side = np.shape(v)[0] + abs(k)
    index = diagonal_index((side, side), k)
    return apply(SCATTER, (v,), {"index": index, "shape": (side, side)})


@composed(np.diagflat, moves=True)
def _diagflat(v: Any, k: int = 0) -> Any:
    return _diag(np.ravel(v), k)


# Deletion and insertion -----------------------------------------------------------------------


@composed(np.delete, moves=True)
def _delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = normalize_axis_index(axis, np.ndim(arr))
    return _take(arr, np.delete(np.arange(np.shape(arr)[axis]), on_host(raw(obj))), axis)


#: Before NumPy 2.2 the elements of a mask are the positions 0 and 1.
_MASKS_INSERT = NumpyVersion(np.__version__) >= "2.2.0"


@composed(np.insert, moves=True)
def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, axis = np.ravel(arr), 0
    n = np.ndim(arr)
    axis = normalize_axis_index(axis, n)
    arr = np.asarray(arr) if isinstance(arr, (list, tuple)) else arr
    length = np.shape(arr)[axis]
    obj = on_host(raw(obj))
    places = np.arange(length)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == bool and _MASKS_INSERT:
        places = np.flatnonzero(places)
    places = places.astype(np.intp)
    dtype = np.result_type(arr)
    values = (
        values.astype(dtype) if isinstance(values, Tensor) else given_beside(arr, values, dtype)
    )
    values = np.reshape(values, (1,) * (n - np.ndim(values)) + tuple(np.shape(values)))
    if places.ndim == 0:
        values = np.moveaxis(values, 0, axis)
    # One position receives all the values.
    coming = np.shape(values)[axis] if places.size == 1 else places.size
    marks = np.insert(np.arange(length), places, -1 - np.arange(coming))
    shape = [coming if i == axis else side for i, side in enumerate(np.shape(arr))]
    together = np.concatenate((arr, np.broadcast_to(values, shape)), axis)
    # Negative marks number the new slices, which are stored after the old ones.
    return _take(together, np.where(marks < 0, length - 1 - marks, marks), axis)


@composed(np.trim_zeros, moves=True)
def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"trim_zeros takes trim 'f', 'b' or 'fb'; got {trim!r}.")
    values = as_array(raw(filt))
    axes = range(values.ndim) if axis is None else np.atleast_1d(axis) % values.ndim
    places = np.nonzero(values)
    index = [slice(None)] * values.ndim
    for i in axes:
        if places[i].size:
            first = int(places[i].min()) if "f" in trim else 0
            last = int(places[i].max()) + 1 if "b" in trim else values.shape[i]
            index[i] = slice(first, last)
        else:
            index[i] = slice(0, 0)
    return filt[tuple(index)]
