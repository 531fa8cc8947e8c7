"""Padding, axis by axis: later axes also pad what the earlier ones have added."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.rules.manipulation.padding import PAD
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import on_host
from optlab.backend.ensemble import EnsembleArray

#: The modes, and the argument that each takes besides the widths.
ARGUMENTS: dict[str, str | None] = {
    "constant": "constant_values", "linear_ramp": "end_values",
    "maximum": "stat_length", "minimum": "stat_length",
    "mean": "stat_length", "median": "stat_length",
    "reflect": "reflect_type", "symmetric": "reflect_type",
    "edge": None, "wrap": None,
}  # fmt: skip

STATISTICS = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}

Pair = tuple[Any, Any]


@composed(np.pad, moves=True)
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    if callable(mode):
        raise not_covered("pad with a function as its mode, which writes in place")
    if mode == "empty":
        raise not_covered("pad with mode='empty', whose values are undefined")
    if mode not in ARGUMENTS:
        raise ValueError(f"pad takes a mode among {', '.join(ARGUMENTS)}; got {mode!r}.")
    for name in kwargs:
        if name != ARGUMENTS[mode]:
            raise ValueError(f"pad with mode={mode!r} takes no argument {name!r}.")
    array = np.asarray(array) if isinstance(array, (list, tuple)) else array
    n = np.ndim(array)
    widths = _widths(pad_width, n)
    if not n:
        return np.copy(array)
    if mode == "constant":
        values = kwargs.get("constant_values", 0)
        if not _holds_tensor(values):
            static = {"pad_width": widths, "constant_values": values}
            return apply(PAD, (array,), static)
        return _pad_axes(array, widths, _value_pairs(values, n), _constants)
    for length, width in zip(np.shape(array), widths, strict=True):
        if length == 0 and any(width):
            raise ValueError(f"pad with mode={mode!r} has no values to extend on an empty axis.")
    if mode == "linear_ramp":
        return _pad_axes(array, widths, _value_pairs(kwargs.get("end_values", 0), n), _ramps)
    if mode in STATISTICS:
        lengths = _stat_lengths(kwargs.get("stat_length"), n)
        return _pad_axes(array, widths, lengths, _statistics(STATISTICS[mode]))
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type == "odd":
        for axis, width in enumerate(widths):
            array = _reflect_odd(array, axis, width, int(mode == "symmetric"))
        return array
    # The other modes copy elements of the array, gathered by padding their indices.
    for axis, width in enumerate(widths):
        if any(width):
            places = np.pad(np.arange(np.shape(array)[axis]), width, mode=mode)
            array = np.take(array, places, axis)
    return array


def _widths(pad_width: Any, n: int) -> tuple[Pair, ...]:
    """Return the pad widths before and after every axis, from any form that NumPy takes."""
    given = on_host(raw(pad_width))
    if isinstance(given, dict):
        pairs = [(0, 0)] * n
        for axis, width in given.items():
            pairs[axis] = tuple(np.broadcast_to(width, 2).tolist())
        given = pairs
    widths = np.asarray(given)
    if widths.dtype.kind not in "iu" and widths.size:
        raise TypeError(f"pad_width takes whole numbers; got {pad_width!r}.")
    if (widths < 0).any():
        raise ValueError(f"pad_width takes no negative numbers; got {pad_width!r}.")
    try:
        widths = np.broadcast_to(widths.astype(int), (n, 2))
    except ValueError:
        raise ValueError(
            f"pad_width is a number, a pair (before, after), or such a pair for each of the {n} "
            f"axes; got {pad_width!r}."
        ) from None
    return tuple((before, after) for before, after in widths.tolist())


#: Values that differ from one array to the next, or that need gradients: not numbers.
_VARIABLE = (Tensor, EnsembleArray)


def _holds_tensor(x: Any) -> bool:
    return isinstance(x, _VARIABLE) or (isinstance(x, (list, tuple)) and any(map(_holds_tensor, x)))


def _stack_tensors(x: Any) -> Any:
    """Stack nested tuples that hold Tensors into one Tensor."""
    if isinstance(x, _VARIABLE) or not _holds_tensor(x):
        return x
    return np.stack([_stack_tensors(part) for part in x])


def _value_pairs(values: Any, n: int) -> list[Pair]:
    """Return a pair of numbers for every axis, from any form that NumPy takes."""
    values = _stack_tensors(values)
    if not isinstance(values, _VARIABLE):
        values = np.asarray(on_host(values))
        if values.size > 2 or values.shape == (2, 1):  # NumPy converts these to Python numbers
            return [(before, after) for before, after in np.broadcast_to(values, (n, 2)).tolist()]
    spread = np.broadcast_to(values, (n, 2))
    return [(spread[axis, 0], spread[axis, 1]) for axis in range(n)]


def _stat_lengths(given: Any, n: int) -> list[Pair]:
    if given is None:
        return [(None, None)] * n
    lengths = np.broadcast_to(np.round(raw(given)).astype(int), (n, 2))
    if (lengths < 0).any():
        raise ValueError(f"stat_length takes no negative numbers; got {given!r}.")
    return [(before, after) for before, after in lengths.tolist()]


def _slice_axis(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return x[(*(slice(None),) * axis, slice(start, stop))]


def _pad_axes(x: Any, widths: Any, arguments: Any, sides_of: Any) -> Any:
    """Concatenate the two sides that `sides_of` returns before and after `x` on each axis."""
    for axis, (width, argument) in enumerate(zip(widths, arguments, strict=True)):
        if any(width):
            before, after = sides_of(x, axis, width, argument)
            x = np.concatenate((before, x, after), axis)
    return x


def _cast_like(values: Any, x: Any) -> Any:
    dtype = np.result_type(x)
    values = values if isinstance(values, _VARIABLE) else np.asarray(values)
    return values.astype(dtype)


def _constants(x: Any, axis: int, width: Pair, values: Pair) -> Any:
    shape = tuple(np.shape(x))
    return (
        np.broadcast_to(_cast_like(value, x), (*shape[:axis], count, *shape[axis + 1 :]))
        for value, count in zip(values, width, strict=True)
    )


def _ramps(x: Any, axis: int, width: Pair, ends: Pair) -> Any:
    dtype = np.result_type(x)
    edges = (_slice_axis(x, axis, 0, 1), _slice_axis(x, axis, -1, None))
    before, after = (
        np.linspace(end, np.squeeze(edge, axis), count, endpoint=False, dtype=dtype, axis=axis)
        for end, edge, count in zip(ends, edges, width, strict=True)
    )
    return before, np.flip(after, axis)


def _statistics(statistic: Any) -> Any:
    def sides(x: Any, axis: int, width: Pair, lengths: Pair) -> Any:
        n = np.shape(x)[axis]
        left, right = (n if length is None else min(length, n) for length in lengths)
        if statistic in (np.max, np.min) and 0 in (left, right):
            raise ValueError("pad with mode='maximum' or 'minimum' takes a stat_length above 0.")
        found = (
            _round_integers(statistic(part, axis=axis, keepdims=True), x)
            for part in (_slice_axis(x, axis, 0, left), _slice_axis(x, axis, n - right, n))
        )
        return (
            np.broadcast_to(value, [count if i == axis else m for i, m in enumerate(value.shape)])
            for value, count in zip(found, width, strict=True)
        )

    return sides


def _round_integers(value: Any, x: Any) -> Any:
    """Round a mean of integers to an integer."""
    dtype = np.result_type(x)
    return np.rint(value).astype(dtype) if dtype.kind in "iu" else value


def _reflect_odd(x: Any, axis: int, width: Pair, edge: int) -> Any:
    """Reflect about the edge value, repeated if `edge` is 1, as often as the width requires."""
    left, right = width
    period = np.shape(x)[axis] - 1 + edge
    if np.shape(x)[axis] == 1:
        places = np.pad(np.zeros(1, int), width, mode="edge")
        return np.take(x, places, axis) if left or right else x
    while left or right:
        # A reflected piece has whole periods, so that the next one continues it.
        most = (np.shape(x)[axis] - 1 + edge) // period * period
        before, after = min(left, most), min(right, most)
        pieces = [x]
        if before:
            piece = np.flip(_slice_axis(x, axis, 1 - edge, 1 - edge + before), axis)
            pieces.insert(0, 2 * _slice_axis(x, axis, 0, 1) - piece)
        if after:
            x = np.concatenate(pieces, axis) if before else x
            pieces = [x]
            n = np.shape(x)[axis]
            piece = np.flip(_slice_axis(x, axis, n - 1 + edge - after, n - 1 + edge), axis)
            pieces.append(2 * _slice_axis(x, axis, -1, None) - piece)
        x = np.concatenate(pieces, axis)
        left, right = left - before, right - after
    return x
