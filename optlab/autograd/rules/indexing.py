"""Derivative rules of reading with an index, and of its transpose: adding into zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.backend.arrays import Shape, array_module, zeros_beside


def _is_basic(index: Any) -> bool:
    """Say whether `index` picks every element at most once (no integer or boolean arrays)."""
    if isinstance(index, (int, slice)):
        return True
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None or part is Ellipsis or isinstance(part, (int, slice, np.integer))
        for part in parts
    )


def getitem(x: Any, index: Any) -> Any:
    """Give ``x[index]``."""
    return x[index]


def scatter(x: Any, index: Any, shape: Shape) -> Any:
    """Add `x` into zeros of `shape`, at `index`: what indexing does, backwards.

    Examples
    --------
    >>> import numpy as np
    >>> scatter(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 0]), (3,))
    array([5., 0., 2.])
    """
    out = zeros_beside(x, shape)
    if _is_basic(index):
        out[index] = x
    else:
        array_module(x).add.at(out, index, x)
    return out


GETITEM = rule(
    getitem, lambda g, x_shape, index: _scattered(g, index, x_shape), static="index", view=True
)
SCATTER = rule(scatter, lambda g, index: g[index], static="index shape")


def _scattered(g: Any, index: Any, shape: Shape) -> Any:
    """Scatter an array, or whatever stands for one (a Tensor), in its own way."""
    if isinstance(g, (np.ndarray, np.generic)):
        return scatter(g, index, shape)
    return g.__array_function__(scatter, (type(g),), (g, index, shape), {})
