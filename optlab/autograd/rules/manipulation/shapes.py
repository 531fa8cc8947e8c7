"""Derivative rules of functions that rearrange, repeat, copy, cast or transfer elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.autograd.tape.backward import unbroadcast
from optlab.autograd.tape.half_precision import halves, rounded
from optlab.backend.device import moved

Axes = tuple[int, ...]
Shape = tuple[int, ...]


def _inverse_permutation(axes: Any, ndim: int) -> Axes | None:
    """Return the inverse of the permutation `axes`."""
    if axes is None:
        return None
    if isinstance(axes, (int, np.integer)):
        return (0,)  # of a vector: NumPy accepts a number for its only axis
    axes = [axis % ndim for axis in axes]
    return tuple(axes.index(i) for i in range(ndim))


def _reshape_back(g: Any, x_shape: Any) -> Any:
    return g.reshape(x_shape)


def repeat_evenly(x: Any, repeats: int, axis: int) -> Any:
    """Repeat every slice of `x` along `axis` equally often.

    Examples
    --------
    >>> import numpy as np
    >>> repeat_evenly(np.array([1, 2]), 2, 0)
    array([1, 1, 2, 2])
    """
    return np.repeat(x, repeats, axis)


def _sum_of_copies(g: Any, shape: Shape, copies: Sequence[int], inner: bool) -> Any:
    """Sum the gradients of the copies of each element, in blocks (tile) or in runs (repeat)."""
    split = [pair if inner else pair[::-1] for pair in zip(shape, copies, strict=True)]
    axes = tuple(range(1 if inner else 0, 2 * len(shape), 2))
    return np.sum(g.reshape([length for pair in split for length in pair]), axis=axes)


def _untile(g: Any, A_shape: Shape, reps: Any) -> Any:
    copies = np.ravel(reps).tolist()
    shape = (1,) * (len(copies) - len(A_shape)) + tuple(A_shape)
    copies = [1] * (len(shape) - len(copies)) + copies
    return _sum_of_copies(g, shape, copies, inner=False).reshape(A_shape)


def _unrepeat(g: Any, x_shape: Shape, repeats: int, axis: int) -> Any:
    copies = [repeats if i == axis else 1 for i in range(len(x_shape))]
    return _sum_of_copies(g, x_shape, copies, inner=True)


RESHAPE = rule(
    np.reshape,
    _reshape_back,
    static="shape",
    forward=lambda x, shape: x.reshape(shape),  # the method is six times as fast
    view=True,
)
RAVEL = rule(np.ravel, _reshape_back, view=True)
SQUEEZE = rule(np.squeeze, _reshape_back, static="axis", view=True)
EXPAND_DIMS = rule(np.expand_dims, _reshape_back, static="axis", view=True)
TRANSPOSE = rule(
    np.transpose,
    lambda g, axes=None: np.transpose(g, _inverse_permutation(axes, g.ndim)),
    static="axes",
    view=True,
)
SWAPAXES = rule(
    np.swapaxes,
    lambda g, axis1, axis2: np.swapaxes(g, axis1, axis2),
    static="axis1 axis2",
    view=True,
)
MOVEAXIS = rule(
    np.moveaxis,
    lambda g, source, destination: np.moveaxis(g, destination, source),
    static="source destination",
    view=True,
)
FLIP = rule(np.flip, lambda g, axis=None: np.flip(g, axis), inputs="m", static="axis", view=True)
ROLL = rule(
    np.roll,
    lambda g, shift, axis=None: np.roll(g, np.negative(shift).tolist(), axis),
    static="shift axis",
)
BROADCAST_TO = rule(
    np.broadcast_to,
    lambda g, array_shape: unbroadcast(g, array_shape),
    inputs="array",
    static="shape",
    view=True,
)
TILE = rule(np.tile, _untile, inputs="A", static="reps")
REPEAT = rule(repeat_evenly, _unrepeat, static="repeats axis")
# The zeroed triangle does not depend on the input, so its gradient is 0.
TRIL = rule(np.tril, lambda g, k=0: np.tril(g, k), inputs="m", static="k")
TRIU = rule(np.triu, lambda g, k=0: np.triu(g, k), inputs="m", static="k")


def copied(x: Any, order: str = "K") -> Any:
    """Return a copy of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> copied(np.ones(2))
    array([1., 1.])
    """
    return x.copy(order=order)


COPY = rule(copied, lambda g: g, static="order")


def cast(x: Any, dtype: Any) -> Any:
    """Return `x` cast to `dtype`."""
    return rounded(x, dtype) if halves.on else x.astype(dtype)


CAST = rule(cast, lambda g: g, static="dtype")
TO_DEVICE = rule(
    moved,
    lambda g, device, origin: as_single_operation(moved, g, device=origin, origin=device),
    static="device origin",
)
