"""Derivative rules of functions that fold an axis away, and of running sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import rule

Axis = int | tuple[int, ...] | None
Shape = tuple[int, ...]

#: Up to this size to copy is quicker than `np.broadcast_to`, which takes 2 us whatever the size.
SMALL = 10_000

#: Called with positions only: keywords take 0.2 us more. NumPy's types know it with keywords.
_add_up: Any = np.add.reduce


def kept(shape: Shape, axis: Axis) -> Shape:
    """Give the shape that a reduction with ``keepdims=True`` has.

    Examples
    --------
    >>> kept((2, 3, 4), (0, -1))
    (1, 3, 1)
    """
    if axis is None:
        return (1,) * len(shape)
    folded = (
        {a % len(shape) for a in (axis if isinstance(axis, tuple) else (axis,))} if shape else ()
    )
    return tuple(1 if i in folded else length for i, length in enumerate(shape))


def count(shape: Shape, axis: Axis) -> int:
    """Give the number of elements that fold into one.

    Examples
    --------
    >>> count((2, 3, 4), (0, -1))
    8
    """
    if axis is None:
        return math.prod(shape)
    return math.prod(shape[a] for a in (axis if isinstance(axis, tuple) else (axis,)))


def spread(g: Any, shape: Shape, axis: Axis) -> Any:
    """Give every element of the original shape the gradient of the result it went into."""
    if isinstance(g, (np.ndarray, np.generic)) and math.prod(shape) < SMALL:
        filled = np.empty(shape, g.dtype)
        filled[...] = g.reshape(kept(shape, axis)) if g.shape else g
        return filled
    return np.broadcast_to(g.reshape(kept(shape, axis)), shape)


def _shared_among_ties(g: Any, x: Any, y: Any, axis: Axis) -> Any:
    """Give the gradient of a maximum or minimum, shared equally where several elements reach it."""
    shape = kept(x.shape, axis)
    reached = x == y.reshape(shape)
    ties = _add_up(reached, axis, x.dtype, None, True)
    return (g.reshape(shape) / ties) * reached


def _others(x: Any, axis: int) -> Any:
    """Give, for each element, the product of the others along `axis`, also where some are 0."""
    n = x.shape[axis]
    last = np.moveaxis(x, axis, -1)
    table = np.where(np.eye(n, dtype=bool), 1.0, np.expand_dims(last, -2))
    return np.moveaxis(np.prod(table, axis=-1), -1, axis)


def _prod(g: Any, x: Any, y: Any, axis: Axis) -> Any:
    if axis is None:
        return (
            (g * _others(np.reshape(x, (-1,)), 0)).reshape(x.shape) if _has_zero(x) else g * y / x
        )
    if not _has_zero(x):
        return spread(g * y, x.shape, axis) / x
    if isinstance(axis, tuple):
        axes = tuple(sorted(a % x.ndim for a in axis))
        rest = tuple(i for i in range(x.ndim) if i not in axes)
        order = rest + axes
        flat = np.transpose(x, order).reshape((*(x.shape[i] for i in rest), -1))
        back = tuple(order.index(i) for i in range(x.ndim))
        others = np.transpose(_others(flat, -1).reshape(tuple(x.shape[i] for i in order)), back)
    else:
        others = _others(x, axis)
    return spread(g, x.shape, axis) * others


def _has_zero(x: Any) -> bool:
    try:
        return bool(np.any(x == 0))
    except TypeError as error:  # arrays that have no values of their own, in a capture
        raise type(error)(f"the derivative of prod looks for zeros; {error}") from None


def _sum(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return _add_up(x, axis, None, None, keepdims)


def _mean(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    if x.dtype.itemsize < 4:  # NumPy adds up float16 in float32
        return np.mean(x, axis=axis, keepdims=keepdims)
    return _add_up(x, axis, None, None, keepdims) / count(x.shape, axis)


SUM = rule(
    np.sum,
    lambda g, x_shape, axis=None: spread(g, x_shape, axis),
    static="axis keepdims",
    forward=_sum,
)
MEAN = rule(
    np.mean,
    lambda g, x_shape, axis=None: spread(g / count(x_shape, axis), x_shape, axis),
    static="axis keepdims",
    forward=_mean,
)


def euclidean_norm(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Give the root of the sum of squares.

    Examples
    --------
    >>> import numpy as np
    >>> float(euclidean_norm(np.array([3.0, 4.0])))
    5.0
    """
    return np.sqrt(np.add.reduce(x * x, axis=axis, keepdims=keepdims))


# At 0 every direction is as steep: the derivative there is 0, the middle of them all.
NORM = rule(
    euclidean_norm,
    lambda g, x, y, axis=None: spread(g / np.where(y == 0, 1.0, y), x.shape, axis) * x,
    static="axis keepdims",
)
MAX = rule(
    np.max,
    lambda g, x, y, axis=None: _shared_among_ties(g, x, y, axis),
    static="axis keepdims",
)
MIN = rule(
    np.min,
    lambda g, x, y, axis=None: _shared_among_ties(g, x, y, axis),
    static="axis keepdims",
)
PROD = rule(np.prod, lambda g, x, y, axis=None: _prod(g, x, y, axis), static="axis keepdims")
VAR = rule(
    np.var,
    lambda g, x, axis=None, ddof=0: (
        spread(2 * g / (count(x.shape, axis) - ddof), x.shape, axis)
        * (x - np.mean(x, axis=axis, keepdims=True))
    ),
    static="axis ddof keepdims",
)
STD = rule(
    np.std,
    lambda g, x, y, axis=None, ddof=0: (
        spread(g / (y * (count(x.shape, axis) - ddof)), x.shape, axis)
        * (x - np.mean(x, axis=axis, keepdims=True))
    ),
    static="axis ddof keepdims",
)
CUMSUM = rule(
    np.cumsum,
    lambda g, x_shape, axis=None: np.flip(
        np.cumsum(np.flip(g, 0 if axis is None else axis), 0 if axis is None else axis),
        0 if axis is None else axis,
    ).reshape(x_shape),
    static="axis",
)
