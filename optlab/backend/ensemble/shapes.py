"""Batching rules of functions that move elements: the member axis stays first."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from optlab.backend.ensemble.batched_call import Call, shifted
from optlab.backend.ensemble.registry import batched, refusal


def lengths(shape: Any) -> tuple[int, ...]:
    """Return a shape, or one length, as a tuple."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    return tuple(operator.index(length) for length in shape)


@batched("reshape")
def _reshape(call: Call, a: Any, shape: Any = None, order: str = "C", **options: Any) -> Any:
    shape = options.pop("newshape", None) if shape is None else shape
    if options:
        raise refusal(f"np.reshape with {', '.join(options)}")
    shape = lengths(shape)
    if order == "F" or (order == "A" and a.flags.fnc):
        return np.transpose(np.reshape(np.transpose(a), shape[::-1]))
    return call.wrap(a.members.reshape((call.count, *shape)))


@batched("ravel")
def _ravel(call: Call, a: Any, order: str = "C") -> Any:
    if order == "K":  # in the memory order of a member
        a = np.transpose(a, sorted(range(a.ndim), key=lambda axis: -abs(a.strides[axis])))
    elif order == "F" or (order == "A" and a.flags.fnc):
        a = np.transpose(a)
    return call.wrap(a.members.reshape((call.count, -1)))


@batched("squeeze")
def _squeeze(call: Call, a: Any, axis: Any = None) -> Any:
    if axis is None:
        axis = tuple(i for i, length in enumerate(a.shape) if length == 1)
    return call.wrap(np.squeeze(a.members, shifted(axis, a.ndim)))


@batched("expand_dims")
def _expand_dims(call: Call, a: Any, axis: Any) -> Any:
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    return call.wrap(np.expand_dims(a.members, shifted(axes, a.ndim + len(axes))))


@batched("transpose", "permute_dims")
def _transpose(call: Call, a: Any, axes: Any = None) -> Any:
    axes = range(a.ndim)[::-1] if axes is None else normalize_axis_tuple(axes, a.ndim)
    return call.wrap(np.transpose(a.members, (0, *[i + 1 for i in axes])))


@batched("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(call: Call, x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


@batched("swapaxes")
def _swapaxes(call: Call, a: Any, axis1: int, axis2: int) -> Any:
    return call.wrap(np.swapaxes(a.members, shifted(axis1, a.ndim), shifted(axis2, a.ndim)))


@batched("moveaxis")
def _moveaxis(call: Call, a: Any, source: Any, destination: Any) -> Any:
    places = (shifted(list(lengths(axes)), a.ndim) for axes in (source, destination))
    return call.wrap(np.moveaxis(a.members, *places))


@batched("rollaxis")
def _rollaxis(call: Call, a: Any, axis: int, start: int = 0) -> Any:
    axis = normalize_axis_index(axis, a.ndim)
    # As in NumPy, -1 is before the last axis; only ndim itself is after it.
    start = start if start == a.ndim else normalize_axis_index(start, a.ndim)
    return np.moveaxis(a, axis, start - (start > axis))


@batched("broadcast_to")
def _broadcast_to(call: Call, array: Any, shape: Any, subok: bool = False) -> Any:
    shape = lengths(shape)
    return call.wrap(np.broadcast_to(call.padded(array, len(shape)), (call.count, *shape)))


@batched("broadcast_arrays")
def _broadcast_arrays(call: Call, *args: Any, subok: bool = False) -> Any:
    shape = np.broadcast_shapes(*[np.shape(x) for x in args])
    return tuple(np.broadcast_to(x, shape) for x in args)


def _at_least(ndim: int) -> Any:
    def rule(call: Call, *arys: Any) -> Any:
        grown = []
        for x in arys:
            n = np.ndim(x)
            if n >= ndim:
                grown.append(x)
            elif ndim == 3 and n:  # NumPy puts the new axes of atleast_3d on both sides
                grown.append(x[None, :, None] if n == 1 else x[..., None])
            else:
                grown.append(np.reshape(x, (1,) * (ndim - n) + np.shape(x)))
        return grown[0] if len(grown) == 1 else tuple(grown)

    return rule


for n in (1, 2, 3):
    batched(f"atleast_{n}d")(_at_least(n))


@batched("roll")
def _roll(call: Call, a: Any, shift: Any, axis: Any = None) -> Any:
    if call.has(shift):
        raise refusal("np.roll with a shift of each member", "Read with np.take.")
    if axis is None:
        return np.reshape(np.roll(np.ravel(a), shift, 0), a.shape)
    return call.wrap(np.roll(a.members, shift, shifted(axis, a.ndim)))


@batched("rot90")
def _rot90(call: Call, m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    return call.wrap(np.rot90(m.members, k, shifted(tuple(axes), m.ndim)))


@batched("flipud")
def _flipud(call: Call, m: Any) -> Any:
    return np.flip(m, 0)


@batched("fliplr")
def _fliplr(call: Call, m: Any) -> Any:
    return np.flip(m, 1)


@batched("tile")
def _tile(call: Call, A: Any, reps: Any) -> Any:
    times = lengths(reps)
    times = (1,) * (A.ndim - len(times)) + times
    return call.wrap(np.tile(call.padded(A, len(times)), (1, *times)))


def _for_each_axis(given: Any, ndim: int) -> Any:
    """Expand an argument of np.pad (a number, a pair, or a pair per axis) to all axes."""
    return [(0, 0), *np.broadcast_to(np.asarray(given), (ndim, 2)).tolist()]


@batched("pad")
def _pad(call: Call, array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if callable(mode) or isinstance(pad_width, dict) or any(map(call.has, options.values())):
        raise refusal("np.pad with a function, a dict, or values of each member")
    for name, value in options.items():
        if name != "reflect_type" and value is not None:
            options[name] = _for_each_axis(value, array.ndim)
            if name == "stat_length":
                options[name][0] = (1, 1)
    return call.wrap(np.pad(array.members, _for_each_axis(pad_width, array.ndim), mode, **options))


@batched("tril")
def _tril(call: Call, m: Any, k: int = 0) -> Any:
    return _triangle(m, k, np.tril)


@batched("triu")
def _triu(call: Call, m: Any, k: int = 0) -> Any:
    return _triangle(m, k, np.triu)


def _triangle(m: Any, k: int, function: Any) -> Any:
    """Set what is outside to 0, NaN too (no product). A vector is repeated as rows."""
    n = m.shape[-1]
    mask = function(np.ones((n if m.ndim == 1 else m.shape[-2], n), bool), k)
    return np.where(mask, m, m.dtype.type(0))


@batched("diagonal")
def _diagonal(call: Call, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    axes = shifted(axis1, a.ndim), shifted(axis2, a.ndim)
    return call.wrap(np.diagonal(a.members, offset, *axes))


@batched("trace")
def _trace(
    call: Call, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    if out is not None:
        raise refusal("np.trace with out=", "Use the value that it returns.")
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@batched("linalg.diagonal")
def _linalg_diagonal(call: Call, x: Any, *, offset: int = 0) -> Any:
    return np.diagonal(x, offset, -2, -1)


@batched("linalg.trace")
def _linalg_trace(call: Call, x: Any, *, offset: int = 0, dtype: Any = None) -> Any:
    return np.trace(x, offset, -2, -1, dtype)


@batched("diag")
def _diag(call: Call, v: Any, k: int = 0) -> Any:
    return np.diagonal(v, k) if np.ndim(v) == 2 else np.diagflat(v, k)


@batched("diagflat")
def _diagflat(call: Call, v: Any, k: int = 0) -> Any:
    v = np.ravel(v)
    n = v.shape[0] + abs(k)
    out = np.zeros_like(v, shape=(n, n))
    i = np.arange(v.shape[0])
    out[i + max(-k, 0), i + max(k, 0)] = v
    return out


@batched("lib.stride_tricks.sliding_window_view")
def _windows(call: Call, x: Any, window_shape: Any, axis: Any = None, **options: Any) -> Any:
    window_shape = lengths(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = tuple(shifted(a, x.ndim) for a in (axes if isinstance(axes, tuple) else (axes,)))
    view = np.lib.stride_tricks.sliding_window_view
    return call.wrap(view(x.members, window_shape, axes, **options))
