"""Max pooling of small windows, which saves the index of each maximum in its window, in a byte.

Nothing else is saved for the backward pass: not the input, which may be sixteen times as large, and
not the output. Larger windows are searched again (see `rules`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.nn.functional.pooling.rules import SMALL, AllWindows, Part, _axes, _pieces, max_pool

#: Windows in a block of images of the backward pass: temporary arrays stay in the cache and add
#: little to the memory peak of a step.
BLOCK = 1 << 16


def are_small(windows: AllWindows) -> bool:
    """Return whether windows have few enough elements to be searched at once."""
    return math.prod(len(one.pieces) for one in windows) <= SMALL


def max_pool_with_indices(x: Any, windows: AllWindows) -> tuple[Any, Any]:
    """Return the maximum of each window, and the index of the first maximum within its window.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> max_pool_with_indices(np.array([[1.0, 3.0, 2.0, 2.0]]), (sliding(4, 2, 2, (0, 0), False),))
    (array([[3., 2.]]), array([[1, 0]], dtype=uint8))
    """
    y = max_pool(x, windows)
    pieces = _pieces(x.ndim, _axes(x, windows))
    # The index is the number of elements before the first that is not less than the maximum;
    # padding is less, and NaN is never less than anything.
    before: Any = None
    indices: Any = None
    for of, to in pieces[:-1]:
        less = x[of] < y[to]
        if before is None:
            before = less if np.shape(less) == y.shape else np.ones_like(y, dtype=bool)
        before[to] &= less
        indices = before.astype(np.uint8) if indices is None else indices + before
    return y, np.zeros_like(y, dtype=np.uint8) if indices is None else indices


def scatter_to_indices(upper: Any, indices: Any, windows: AllWindows) -> Any:
    """Scatter `upper` to the elements of its windows at `indices`.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> windows = (sliding(4, 2, 2, (0, 0), False),)
    >>> scatter_to_indices(np.array([[5.0, 7.0]]), np.array([[1, 0]]), windows)
    array([[0., 5., 7., 0.]])
    """
    pieces = _pieces(upper.ndim, _axes(upper, windows))
    shape = upper.shape[: upper.ndim - len(windows)] + tuple(one.length for one in windows)
    out: Any = None
    if type(upper) is np.ndarray and type(indices) is np.ndarray:
        out = np.zeros_like(indices, dtype=upper.dtype, shape=shape)
        alone = all(one.disjoint for one in windows)
        for block in _blocks(indices, len(windows)):
            one, at, into = upper[block], indices[block], out[block]
            for i, (of, to) in enumerate(pieces):
                hit = at[to] == i
                if alone:
                    np.multiply(one[to], hit, out=into[of])
                else:
                    into[of] += one[to] * hit
        return out
    for i, (of, to) in enumerate(pieces):
        part = upper[to] * (indices[to] == i)
        if out is None:
            like = indices if type(indices) is type(part) else part  # in the input's memory layout
            out = np.zeros_like(like, dtype=part.dtype, shape=shape)
        out[of] += part
    return out


def gather_from_indices(upper: Any, indices: Any, windows: AllWindows) -> Any:
    """Gather the elements of windows of `upper` at `indices`: transpose of `scatter_to_indices`.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> windows = (sliding(4, 2, 2, (0, 0), False),)
    >>> gather_from_indices(np.array([[5.0, 6.0, 7.0, 8.0]]), np.array([[1, 0]]), windows)
    array([[6., 7.]])
    """
    out: Any = None
    for i, (of, to) in enumerate(_pieces(upper.ndim, _axes(upper, windows))):
        part = upper[of] * (indices[to] == i)
        if out is None:
            out = np.zeros_like(part, shape=indices.shape)
        out[to] += part
    return out


def _blocks(x: Any, space: int) -> Iterator[Part]:
    """Yield blocks of an array along its non-spatial axis that is outermost in memory."""
    before = x.ndim - space
    axis = max(range(before), key=lambda i: (x.strides[i], -i))
    step = max(1, x.shape[axis] * BLOCK // max(x.size, 1))
    for start in range(0, x.shape[axis], step):
        yield (*(slice(None),) * axis, slice(start, start + step))


# The index of the maximum is constant in x, except at ties.
MAX_POOL_WITH_INDICES = rule(
    max_pool_with_indices,
    lambda g, y1, windows: as_single_operation(scatter_to_indices, g[0], y1, windows),
    static="windows",
    several=True,
)
SCATTER_TO_INDICES = rule(
    scatter_to_indices,
    lambda g, indices, windows: as_single_operation(gather_from_indices, g, indices, windows),
    None,
    inputs="upper indices",
    static="windows",
)
GATHER_FROM_INDICES = rule(
    gather_from_indices,
    lambda g, indices, windows: as_single_operation(scatter_to_indices, g, indices, windows),
    None,
    inputs="upper indices",
    static="windows",
)
