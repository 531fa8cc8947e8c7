"""Derivative rules of functions that move elements without changing them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, rule
from optlab.autograd.tape import unbroadcast

Axes = tuple[int, ...]


def _inverse(axes: Any, ndim: int) -> Axes | None:
    """Give the permutation that undoes `axes`."""
    if axes is None:
        return None
    axes = [axis % ndim for axis in axes]
    return tuple(axes.index(i) for i in range(ndim))


def _back_in_shape(g: Any, x_shape: Any) -> Any:
    return g.reshape(x_shape)


RESHAPE = rule(
    np.reshape,
    _back_in_shape,
    static="shape",
    forward=lambda x, shape: x.reshape(shape),  # the method is six times as quick
    view=True,
)
RAVEL = rule(np.ravel, _back_in_shape, view=True)
SQUEEZE = rule(np.squeeze, _back_in_shape, static="axis", view=True)
EXPAND_DIMS = rule(np.expand_dims, _back_in_shape, static="axis", view=True)
TRANSPOSE = rule(
    np.transpose,
    lambda g, axes=None: np.transpose(g, _inverse(axes, g.ndim)),
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
FLIP = rule(np.flip, lambda g, axis=None: np.flip(g, axis), static="axis", view=True)
ROLL = rule(
    np.roll,
    lambda g, shift, axis=None: np.roll(g, np.negative(shift).tolist(), axis),
    static="shift axis",
)
BROADCAST_TO = rule(
    np.broadcast_to, lambda g, x_shape: unbroadcast(g, x_shape), static="shape", view=True
)


def cast(x: Any, dtype: Any) -> Any:
    """Give `x` in another dtype."""
    return x.astype(dtype)


CAST = rule(cast, lambda g: g, static="dtype")


def _cut(g: Any, axis: int, start: int, stop: int) -> Any:
    """Give the part of `g` between two places along `axis`."""
    return g[(slice(None),) * (axis % g.ndim) + (slice(start, stop),)]


def _pick(g: Any, axis: int, i: int) -> Any:
    """Give the i-th slice of `g` along `axis`, that axis gone."""
    return g[(slice(None),) * (axis % g.ndim) + (i,)]


_JOINS: dict[tuple[str, int], Operation] = {}


def concatenation(n: int) -> Operation:
    """Give the operation that concatenates `n` inputs; `bounds` says where each one lies."""
    if ("concatenate", n) not in _JOINS:
        _JOINS["concatenate", n] = Operation(
            "concatenate",
            lambda *arrays, axis, bounds: np.concatenate(arrays, axis),
            [],
            [f"x{i}" for i in range(n)],
            ["axis", "bounds"],
            joint=lambda g, axis, bounds: [_cut(g, axis, a, b) for a, b in pairwise(bounds)],
        )
    return _JOINS["concatenate", n]


def stacking(n: int) -> Operation:
    """Give the operation that stacks `n` inputs along a new axis."""

    def pick(i: int) -> Any:
        return lambda g, axis: _pick(g, axis, i)

    if ("stack", n) not in _JOINS:
        _JOINS["stack", n] = Operation(
            "stack",
            lambda *arrays, axis: np.stack(arrays, axis),
            [pick(i) for i in range(n)],
            [f"x{i}" for i in range(n)],
            ["axis"],
        )
    return _JOINS["stack", n]
