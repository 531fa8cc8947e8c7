"""Derivative rules of sorting, and of sums over bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule


def _to_where_they_were(g: Any, x: Any, y: Any, axis: int) -> Any:
    """Bring the gradient of each element of `y`, which is `x` in another order, back to its place.

    The k-th smallest of `y` is the k-th smallest of `x`. Among equal elements the order is that of
    memory on both sides (a stable sort), so that the derivative is a permutation at ties too.
    """
    in_order = np.take_along_axis(g, np.argsort(y, axis=axis, kind="stable"), axis)
    places = np.argsort(np.argsort(x, axis=axis, kind="stable"), axis=axis, kind="stable")
    return np.take_along_axis(in_order, places, axis)


SORT = rule(
    np.sort,
    lambda g, a, y, axis=-1: _to_where_they_were(g, a, y, axis),
    inputs="a",
    static="axis kind",
)
PARTITION = rule(
    np.partition,
    lambda g, a, y, axis=-1: _to_where_they_were(g, a, y, axis),
    inputs="a",
    static="kth axis kind",
)

# Sums over bins: each weight goes into the bin of its number, and the numbers have no derivative.
BINCOUNT = rule(
    np.bincount,
    None,
    lambda g, x: np.take(g, x),
    inputs="x weights",
    static="minlength",
)


def weights_in_bins(weights: Any, numbers: Any, edges: Any) -> Any:
    """Give ``np.histogram(numbers, edges, weights=weights)[0]``.

    Examples
    --------
    >>> import numpy as np
    >>> weights_in_bins(np.array([1.0, 2.0, 4.0]), np.array([0.0, 5.0, 9.0]), np.array([0, 5, 9]))
    array([1., 6.])
    """
    return np.histogram(numbers, edges, weights=weights)[0]


def _of_my_bin(g: Any, numbers: Any, edges: Any) -> Any:
    """Give each number what arrived at its bin; the last bin includes its right edge."""
    bins = np.searchsorted(edges, numbers, side="right") - 1
    bins = np.where(numbers == edges[-1], len(edges) - 2, bins)
    inside = (bins >= 0) & (bins < len(edges) - 1)
    return np.where(inside, np.take(g, np.where(inside, bins, 0)), 0.0)


HISTOGRAM = rule(weights_in_bins, _of_my_bin, inputs="weights", static="numbers edges")
