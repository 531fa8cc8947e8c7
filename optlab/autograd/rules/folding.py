"""How a reduction folds axes away, and how its gradient comes back over them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Axis = int | tuple[int, ...] | None
Shape = tuple[int, ...]

#: Up to this size to copy is quicker than `np.broadcast_to`, which takes 2 us whatever the size.
SMALL = 10_000

_NUMPYS, _empty = (np.ndarray, np.generic), np.empty


def normalized_axes(ndim: int, axis: Axis) -> tuple[int, ...]:
    """Give the axes that `axis` names, counted from the front.

    Examples
    --------
    >>> normalized_axes(3, -1), normalized_axes(3, None)
    ((2,), (0, 1, 2))
    """
    if axis is None:
        return tuple(range(ndim))
    named = axis if isinstance(axis, tuple) else (axis,)
    return tuple(a % ndim for a in named) if ndim else ()


def keepdims_shape(shape: Shape, axis: Axis) -> Shape:
    """Give the shape that a reduction with ``keepdims=True`` has.

    Examples
    --------
    >>> keepdims_shape((2, 3, 4), (0, -1))
    (1, 3, 1)
    """
    if axis is None:
        return (1,) * len(shape)
    folded = normalized_axes(len(shape), axis)
    return tuple(1 if i in folded else length for i, length in enumerate(shape))


def reduced_size(shape: Shape, axis: Axis) -> int:
    """Give the number of elements that fold into one.

    Examples
    --------
    >>> reduced_size((2, 3, 4), (0, -1))
    8
    """
    if axis is None:
        return math.prod(shape)
    return math.prod(shape[a] for a in normalized_axes(len(shape), axis))


def with_keepdims(y: Any, shape: Shape, axis: Axis) -> Any:
    """Give a result the shape that stands beside what it was folded from."""
    return y.reshape(keepdims_shape(shape, axis))


def broadcast_back(g: Any, shape: Shape, axis: Axis) -> Any:
    """Give every element of the original shape the gradient of the result it went into."""
    if isinstance(g, _NUMPYS) and math.prod(shape) < SMALL:
        filled = _empty(shape, g.dtype)
        if axis is None:
            filled.fill(g.reshape(()) if g.shape else g)
        else:
            filled[...] = with_keepdims(g, shape, axis)
        return filled
    return np.broadcast_to(with_keepdims(g, shape, axis), shape)


def reduced_axes_last(x: Any, axis: Axis) -> Any:
    """Move the axes that are folded to the end, as one.

    Examples
    --------
    >>> reduced_axes_last(np.ones((2, 3, 4)), (0, 2)).shape
    (3, 8)
    """
    axes = normalized_axes(len(x.shape), axis)
    rest = tuple(i for i in range(len(x.shape)) if i not in axes)
    shape = (*(x.shape[i] for i in rest), math.prod(x.shape[i] for i in axes))
    return (np.transpose(x, rest + axes) if rest else x).reshape(shape)


def restore_reduced_axes(flat: Any, shape: Shape, axis: Axis) -> Any:
    """Bring an array of the form `reduced_axes_last` gives back to `shape`."""
    axes = normalized_axes(len(shape), axis)
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    if not rest:
        return flat.reshape(shape)
    order = rest + axes
    back = tuple(order.index(i) for i in range(len(shape)))
    return np.transpose(flat.reshape(tuple(shape[i] for i in order)), back)


# Elements that take part --------------------------------------------------------------------------


def masked(g: Any, where: Any) -> Any:
    """Give `g`, with 0 for the elements that take no part."""
    return g if where is True else np.where(where, g, 0.0)


def filled(x: Any, where: Any, filling: float) -> Any:
    """Give `x`, with a number that changes nothing for the elements that take no part."""
    return x if where is True else np.where(where, x, filling)


def not_nan(x: Any, where: Any = True) -> Any:
    """Give the mask of the elements that take part and are not NaN."""
    found = np.logical_not(np.isnan(x))
    return found if where is True else np.logical_and(found, where)


def element_counts(shape: Shape, axis: Axis, where: Any, dtype: Any) -> Any:
    """Give how many elements take part in each result: one number, or an array in `dtype`."""
    if where is True:
        return reduced_size(shape, axis)
    taking_part = np.broadcast_to(where, shape)
    return np.add.reduce(taking_part, axis=axis, keepdims=True).astype(dtype)


def at_least_1(n: Any) -> Any:
    """Give a number of elements, 1 where there are none."""
    return max(n, 1) if isinstance(n, int) else np.maximum(n, 1)


def cast_to(x: Any, dtype: Any) -> Any:
    """Give `x` in the dtype that a reduction was asked to compute in (None: its own)."""
    return x if dtype is None else x.astype(dtype)
