"""Functions that write into their first argument: recorded as the item assignments that they are.

An element that is named twice has the last value, as in NumPy, and only that one has a gradient;
but ``np.add.at`` and ``np.subtract.at`` add all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed
from optlab.autograd.rules.manipulation.indexing import getitem, scatter_recorded
from optlab.autograd.tape.base import needs_grad
from optlab.autograd.tensor.in_place import combine
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import constants_beside, on_host
from optlab.backend.call_recorder import here

_numpy: Any = np  # its type stubs do not know Tensors


def _is_tensor(target: Any, name: str, *values: Any) -> bool:
    """Return whether what is written to is a Tensor; refuse an array that would lose a gradient."""
    if isinstance(target, Tensor):
        return True
    if needs_grad(values):
        raise TypeError(
            f"{name} would write values that need a gradient into an array of type "
            f"{type(target).__name__}, where the gradient would be lost. Write into a Tensor "
            "(a = np.zeros_like(t) of a Tensor t, a = ol.to_tensor(a)), build the value with "
            "np.where or np.stack, or import optlab.numpy as np, whose array and full keep it."
        )
    return False


def _cycled(values: Any, count: int) -> Any:
    """Return as many values as are written: the given ones from the start, over and over."""
    if np.ndim(values) == 0:
        return values
    return _numpy.resize(values, (count,))


def _unraveled(places: Any, shape: tuple[int, ...]) -> Any:
    """Return the index of elements that are numbered as in ``np.ravel``."""
    return np.unravel_index(np.asarray(places, dtype=np.intp), shape)


def write_at(ufunc: Any, target: Any, index: Any, *values: Any) -> None:
    """Run ``np.add.at(t, index, x)`` or ``np.subtract.at`` on a Tensor, and record it."""
    if here.recorder is not None and isinstance(target, Tensor):
        here.recorder.written(_write_at, target, ufunc, index, *values)
        return
    name = f"np.{ufunc.__name__}.at"
    if not _is_tensor(target, name, *values):
        ufunc.at(target, _plain(index), *map(raw, values))
        return
    symbol = {np.add: "+", np.subtract: "-"}.get(ufunc)
    if symbol is None:
        raise TypeError(
            f"{name} has no derivative rule on a Tensor; np.add.at and np.subtract.at have. Where "
            f"no element is named twice, write t[index] = np.{ufunc.__name__}(t[index], ...)."
        )
    if len(values) != 1:
        raise TypeError(f"{name}(t, index, x) takes what to add as its third argument.")
    index = _plain(index)
    added = _numpy.broadcast_to(values[0], getitem(raw(target), index).shape)
    if not isinstance(added, Tensor):
        added = constants_beside(raw(target), added)
    added = scatter_recorded(added, index, target.shape)
    combine(target, symbol, added)


def _write_at(target: Any, ufunc: Any, index: Any, *values: Any) -> None:
    write_at(ufunc, target, index, *values)


def _plain(index: Any) -> Any:
    """Return an index with arrays in place of Tensors."""
    return tuple(map(raw, index)) if isinstance(index, tuple) else raw(index)


@composed(np.put_along_axis, moves=True)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> None:
    indices = raw(indices)
    if not _is_tensor(arr, "np.put_along_axis", values):
        np.put_along_axis(arr, indices, raw(values), axis)
        return
    shape = arr.shape
    if axis is None:
        arr[_unraveled(on_host(indices) % max(arr.size, 1), shape)] = values
        return
    if indices.ndim != len(shape):
        raise ValueError(
            f"np.put_along_axis takes indices with as many axes as the Tensor, {len(shape)}; "
            f"got {indices.ndim}."
        )
    axis = range(len(shape))[axis]
    index: list[Any] = []
    for i, length in enumerate(shape):
        across = [-1 if k == i else 1 for k in range(len(shape))]
        counted = constants_beside(raw(arr), np.arange(length)).reshape(across)
        index.append(indices if i == axis else counted)
    arr[tuple(index)] = values


@composed(np.fill_diagonal, moves=True)
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    if not _is_tensor(a, "np.fill_diagonal", val):
        np.fill_diagonal(a, raw(val), wrap)
        return
    places = np.zeros(a.shape, bool)
    np.fill_diagonal(places, True, wrap)  # checks the shape too
    index = np.nonzero(places)
    a[index] = _cycled(val, len(index[0]))


@composed(np.put, moves=True)
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    if not _is_tensor(a, "np.put", v):
        np.put(a, raw(ind), raw(v), mode)  # type: ignore[arg-type, call-overload, unused-ignore]
        return
    numbered = np.arange(a.size)
    places = np.take(numbered, np.ravel(on_host(raw(ind))), mode=mode)  # type: ignore[arg-type, call-overload, unused-ignore]
    if len(places):
        a[_unraveled(places, a.shape)] = _cycled(v, len(places))


@composed(np.place, moves=True)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    mask = raw(mask)
    if not _is_tensor(arr, "np.place", vals):
        np.place(arr, mask, raw(vals))
        return
    mask = np.reshape(np.asarray(on_host(mask), bool), arr.shape)
    count = int(np.count_nonzero(mask))
    if not count:
        return
    if np.size(raw(vals)) == 0:
        raise ValueError("np.place got no values for the elements where the mask is True.")
    arr[np.nonzero(mask)] = _cycled(vals, count)


@composed(np.putmask, moves=True)
def _putmask(a: Any, mask: Any, values: Any) -> None:
    mask = raw(mask)
    if not _is_tensor(a, "np.putmask", values):
        np.putmask(a, mask, raw(values))
        return
    index = np.nonzero(np.reshape(np.asarray(on_host(mask), bool), a.shape))
    if np.ndim(values) and len(index[0]):
        values = _numpy.resize(values, a.shape)[index]
    a[index] = values


@composed(np.copyto, moves=True)
def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    where = raw(where)
    if not _is_tensor(dst, "np.copyto", src):
        np.copyto(dst, raw(src), casting, where)
        return
    given = getattr(src, "dtype", None)
    if given is not None and not np.can_cast(given, dst.dtype, casting):
        raise TypeError(f"np.copyto does not cast {given} to {dst.dtype} with casting={casting!r}.")
    if where is True:
        dst[...] = src
    else:
        index = np.nonzero(np.broadcast_to(on_host(where), dst.shape))
        dst[index] = _numpy.broadcast_to(src, dst.shape)[index]
