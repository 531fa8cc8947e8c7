"""Reductions over axes: shapes, masks of reduced elements, and broadcasting of their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Axis = int | tuple[int, ...] | None
Shape = tuple[int, ...]

#: Below this size a copy is faster than `np.broadcast_to`, which takes 2 us at any size.
SMALL = 10_000

_NUMPYS, _empty = (np.ndarray, np.generic), np.empty


def normalized_axes(ndim: int, axis: Axis) -> tuple[int, ...]:
    """Return the reduced axes as a tuple of nonnegative numbers.

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
    """Return the shape of a reduction with ``keepdims=True``.

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
    """Return the number of elements that are reduced to one.

    Examples
    --------
    >>> reduced_size((2, 3, 4), (0, -1))
    8
    """
    if axis is None:
        return math.prod(shape)
    return math.prod(shape[a] for a in normalized_axes(len(shape), axis))


def with_keepdims(y: Any, shape: Shape, axis: Axis) -> Any:
    """Reshape a result, or its gradient, as with ``keepdims=True``: it broadcasts to `shape`."""
    return y.reshape(keepdims_shape(shape, axis))


def broadcast_back(g: Any, shape: Shape, axis: Axis) -> Any:
    """Broadcast the gradient of a reduction back to the shape of its input."""
    if isinstance(g, _NUMPYS) and math.prod(shape) < SMALL:
        filled = _empty(shape, g.dtype)
        if axis is None:
            filled.fill(g.reshape(()) if g.shape else g)
        else:
            filled[...] = with_keepdims(g, shape, axis)
        return filled
    return np.broadcast_to(with_keepdims(g, shape, axis), shape)


def reduced_axes_last(x: Any, axis: Axis) -> Any:
    """Move the reduced axes to the end, merged into one.

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
    """Undo `reduced_axes_last` for an input of `shape`."""
    axes = normalized_axes(len(shape), axis)
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    if not rest:
        return flat.reshape(shape)
    order = rest + axes
    back = tuple(order.index(i) for i in range(len(shape)))
    return np.transpose(flat.reshape(tuple(shape[i] for i in order)), back)


# Masks of the elements that are reduced -----------------------------------------------------------


def masked(g: Any, where: Any) -> Any:
    """Return `g`, with 0 for masked-out elements."""
    return g if where is True else np.where(where, g, 0.0)


def filled(x: Any, where: Any, filling: float) -> Any:
    """Return `x`, with the neutral element `filling` for masked-out elements."""
    return x if where is True else np.where(where, x, filling)


def not_nan(x: Any, where: Any = True) -> Any:
    """Return the mask of the elements in `where` that are not NaN."""
    found = np.logical_not(np.isnan(x))
    return found if where is True else np.logical_and(found, where)


def element_counts(shape: Shape, axis: Axis, where: Any, dtype: Any) -> Any:
    """Return the number of elements in each result: an int, or an array of `dtype` for a mask."""
    if where is True:
        return reduced_size(shape, axis)
    taking_part = np.broadcast_to(where, shape)
    return np.add.reduce(taking_part, axis=axis, keepdims=True).astype(dtype)


def at_least_1(n: Any) -> Any:
    """Return a number of elements, with 1 in place of 0."""
    return max(n, 1) if isinstance(n, int) else np.maximum(n, 1)


def cast_to(x: Any, dtype: Any) -> Any:
    """Return `x` in the ``dtype=`` of a reduction; unchanged for None."""
    return x if dtype is None else x.astype(dtype)
