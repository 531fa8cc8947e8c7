"""Derivative rules of functions that join and split arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, rule
from optlab.autograd.rules.manipulation.indexing import element_of


def _slice_axis(g: Any, axis: int, start: int, stop: int) -> Any:
    """Return ``g[start:stop]`` along `axis`."""
    if axis == 0:
        return g[start:stop]
    return g[(slice(None),) * (axis % g.ndim) + (slice(start, stop),)]


def _index_axis(g: Any, axis: int, i: int) -> Any:
    """Return ``g[i]`` along `axis`, without that axis."""
    return g[(slice(None),) * (axis % g.ndim) + (i,)]


_JOINS: dict[tuple[str, int], Operation] = {}


def concatenation(n: int) -> Operation:
    """Return the operation that concatenates `n` inputs; `bounds` holds their edges on the axis."""
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
    """Return the operation that stacks `n` inputs along a new axis."""

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


# Splitting. One operation for all parts: with one operation a part, each would return a gradient
# of the size of the whole array.


def array_split(x: Any, bounds: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """Split `x` along `axis` at `bounds`, which start with 0 and end with its length.

    Examples
    --------
    >>> import numpy as np
    >>> array_split(np.arange(5), (0, 2, 5), 0)
    (array([0, 1]), array([2, 3, 4]))
    """
    return tuple(_slice_axis(x, axis, a, b) for a, b in pairwise(bounds))


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """Return the slices of `x` along `axis`, without that axis.

    Examples
    --------
    >>> import numpy as np
    >>> unstack(np.eye(2))
    (array([1., 0.]), array([0., 1.]))
    """
    before = (slice(None),) * (axis % x.ndim)
    parts = tuple(x[(*before, i)] for i in range(x.shape[axis]))
    return parts if x.ndim > 1 else tuple(map(element_of, parts))


def _output_gradients(g: Any) -> list[Any]:
    """Return the gradient of each output, zeros for outputs without one."""
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
