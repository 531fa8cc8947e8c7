"""Maxima of small windows, which note in a byte each which element of its window it is.

So nothing is kept for backward but these bytes: not the input, which may be sixteen times as large,
and not the output. Larger windows are searched again (see `pooling_rules`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from optlab.autograd.operation import as_one, rule
from optlab.nn.functional.pooling_rules import SMALL, AllWindows, Part, _axes, _pieces, max_pool

#: Backward goes through the images of a batch in blocks of so many windows, so that what it makes
#: underway stays in the cache and adds little to the peak of a step.
BLOCK = 1 << 16


def are_small(windows: AllWindows) -> bool:
    """Say whether windows have so few elements that they are looked at one by one."""
    return math.prod(len(one.pieces) for one in windows) <= SMALL


def max_pool_with_indices(x: Any, windows: AllWindows) -> tuple[Any, Any]:
    """Give the maximum of each window, and which of its elements is the first maximum.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.nn.functional.windows import sliding
    >>> max_pool_with_indices(np.array([[1.0, 3.0, 2.0, 2.0]]), (sliding(4, 2, 2, (0, 0), False),))
    (array([[3., 2.]]), array([[1, 0]], dtype=uint8))
    """
    y = max_pool(x, windows)
    pieces = _pieces(x.ndim, _axes(x, windows))
    # As many elements as come before the first that is not less than the maximum; those in padding
    # are, and NaN is nowhere less than anything.
    before: Any = None
    places: Any = None
    for of, to in pieces[:-1]:
        less = x[of] < y[to]
        if before is None:
            before = less if np.shape(less) == y.shape else np.ones_like(y, dtype=bool)
        before[to] &= less
        places = before.astype(np.uint8) if places is None else places + before
    return y, np.zeros_like(y, dtype=np.uint8) if places is None else places


def scatter_to_indices(upper: Any, places: Any, windows: AllWindows) -> Any:
    """Give each number of `upper` to the element of its window that `places` names.

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
    if type(upper) is np.ndarray and type(places) is np.ndarray:
        out = np.zeros_like(places, dtype=upper.dtype, shape=shape)
        alone = all(one.disjoint for one in windows)
        for block in _blocks(places, len(windows)):
            one, at, into = upper[block], places[block], out[block]
            for i, (of, to) in enumerate(pieces):
                hit = at[to] == i
                if alone:
                    np.multiply(one[to], hit, out=into[of])
                else:
                    into[of] += one[to] * hit
        return out
    for i, (of, to) in enumerate(pieces):
        part = upper[to] * (places[to] == i)
        if out is None:
            like = places if type(places) is type(part) else part  # laid out as the input was
            out = np.zeros_like(like, dtype=part.dtype, shape=shape)
        out[of] += part
    return out


def gather_from_indices(upper: Any, places: Any, windows: AllWindows) -> Any:
    """Read `upper` where `places` says: the transpose of `scatter_to_indices`.

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
        part = upper[of] * (places[to] == i)
        if out is None:
            out = np.zeros_like(part, shape=places.shape)
        out[to] += part
    return out


def _blocks(x: Any, space: int) -> Iterator[Part]:
    """Cut an array along the axis before those of space that is outermost in memory."""
    before = x.ndim - space
    axis = max(range(before), key=lambda i: (x.strides[i], -i))
    step = max(1, x.shape[axis] * BLOCK // max(x.size, 1))
    for start in range(0, x.shape[axis], step):
        yield (*(slice(None),) * axis, slice(start, start + step))


# Which element is the maximum does not change with x, except at ties.
MAX_POOL_WITH_INDICES = rule(
    max_pool_with_indices,
    lambda g, y1, windows: as_one(scatter_to_indices, g[0], y1, windows),
    static="windows",
    several=True,
)
SCATTER_TO_INDICES = rule(
    scatter_to_indices,
    lambda g, places, windows: as_one(gather_from_indices, g, places, windows),
    None,
    inputs="upper places",
    static="windows",
)
GATHER_FROM_INDICES = rule(
    gather_from_indices,
    lambda g, places, windows: as_one(scatter_to_indices, g, places, windows),
    None,
    inputs="upper places",
    static="windows",
)
