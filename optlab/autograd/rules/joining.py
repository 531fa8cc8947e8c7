"""Derivative rules of functions that join arrays, and of those that take them apart again."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, rule


def _slice_axis(g: Any, axis: int, start: int, stop: int) -> Any:
    """Give the part of `g` between two places along `axis`."""
    if axis == 0:
        return g[start:stop]
    return g[(slice(None),) * (axis % g.ndim) + (slice(start, stop),)]


def _index_axis(g: Any, axis: int, i: int) -> Any:
    """Give the i-th slice of `g` along `axis`, that axis gone."""
    return g[(slice(None),) * (axis % g.ndim) + (i,)]


_JOINS: dict[tuple[str, int], Operation] = {}


def concatenation(n: int) -> Operation:
    """Give the operation that concatenates `n` inputs; `bounds` says where each one lies."""
    operation = _JOINS.get(("concatenate", n))
    if operation is None:
        operation = _JOINS["concatenate", n] = Operation(
            "concatenate",
            lambda *arrays, axis, bounds: np.concatenate(arrays, axis),
            [],
            [f"x{i}" for i in range(n)],
            ["axis", "bounds"],
            joint=lambda g, axis, bounds: [_slice_axis(g, axis, a, b) for a, b in pairwise(bounds)],
        )
    return operation


def stacking(n: int) -> Operation:
    """Give the operation that stacks `n` inputs along a new axis."""

    def pick(i: int) -> Any:
        return lambda g, axis: _index_axis(g, axis, i)

    if ("stack", n) not in _JOINS:
        _JOINS["stack", n] = Operation(
            "stack",
            lambda *arrays, axis: np.stack(arrays, axis),
            [pick(i) for i in range(n)],
            [f"x{i}" for i in range(n)],
            ["axis"],
        )
    return _JOINS["stack", n]


# Taking apart. One operation for all parts: were each part an operation of its own, every one of
# them would bring back a gradient as large as the whole.


def array_split(x: Any, bounds: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """Cut `x` along `axis` at `bounds`, which start with 0 and end with its length.

    Examples
    --------
    >>> import numpy as np
    >>> array_split(np.arange(5), (0, 2, 5), 0)
    (array([0, 1]), array([2, 3, 4]))
    """
    return tuple(_slice_axis(x, axis, a, b) for a, b in pairwise(bounds))


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """Give the slices of `x` along `axis`, that axis gone.

    Examples
    --------
    >>> import numpy as np
    >>> unstack(np.eye(2))
    (array([1., 0.]), array([0., 1.]))
    """
    before = (slice(None),) * (axis % x.ndim)
    return tuple(x[(*before, i)] for i in range(x.shape[axis]))


def _output_gradients(g: Any) -> list[Any]:
    """Give what arrived at each part, zeros where nothing did."""
    return [g[i] for i in range(len(g.shapes))]


ARRAY_SPLIT = rule(
    array_split,
    lambda g, axis: np.concatenate(_output_gradients(g), axis),
    static="bounds axis",
    several=True,
    view=True,
)
UNSTACK = rule(
    unstack,
    lambda g, axis: np.stack(_output_gradients(g), axis),
    static="axis",
    several=True,
    view=True,
)
