"""Derivative rules of sorting, partitioning and weighted histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.tape.base import raw


def _stable_argsort(x: Any, axis: int) -> Any:
    """Return the stable argsort along `axis`."""
    x = raw(x)  # a permutation has no derivative
    if isinstance(x, np.ndarray):
        # Without ties every algorithm returns this order, and the default is five times as fast.
        order = np.argsort(x, axis)
        risen = np.moveaxis(np.take_along_axis(x, order, axis), axis, -1)
        if (risen[..., 1:] > risen[..., :-1]).all():
            return order
    return np.argsort(x, axis=axis, kind="stable")


def _inverse_permutation(order: Any, axis: int) -> Any:
    """Return the inverse of the permutation `order` along `axis`."""
    if not isinstance(order, np.ndarray):
        return np.argsort(order, axis=axis, kind="stable")
    places = np.empty_like(order)
    along = np.arange(order.shape[axis]).reshape(
        (-1,) + (1,) * (order.ndim - 1 - axis % order.ndim)
    )
    np.put_along_axis(places, order, np.broadcast_to(along, order.shape), axis)
    return places


# The gradient of each element of y is passed to its source in x. The stable sort defines the source
# of ties, so the gradient is a permutation there too.
SORT = rule(
    np.sort,
    lambda g, a, axis=-1: np.take_along_axis(
        g, _inverse_permutation(_stable_argsort(a, axis), axis), axis
    ),
    inputs="a",
    static="axis kind",
)


def _partition_gradient(g: Any, a: Any, y: Any, axis: int = -1) -> Any:
    """Pass gradients back by rank: the k-th smallest of y is the k-th smallest of the input."""
    risen = np.take_along_axis(g, _stable_argsort(y, axis), axis)
    return np.take_along_axis(risen, _inverse_permutation(_stable_argsort(a, axis), axis), axis)


PARTITION = rule(np.partition, _partition_gradient, inputs="a", static="kth axis kind")

# Weighted histograms: a weight is added to the bin of its number; the numbers have no derivative.
BINCOUNT = rule(
    np.bincount, None, lambda g, x: np.take(g, x), inputs="x weights", static="minlength"
)


def weights_in_bins(weights: Any, numbers: Any, edges: Any) -> Any:
    """Return ``np.histogram(numbers, edges, weights=weights)[0]``.

    Examples
    --------
    >>> import numpy as np
    >>> weights_in_bins(np.array([1.0, 2.0, 4.0]), np.array([0.0, 5.0, 9.0]), np.array([0, 5, 9]))
    array([1., 6.])
    """
    return np.histogram(numbers, edges, weights=weights)[0]


def _gather_from_bins(g: Any, numbers: Any, edges: Any) -> Any:
    """Gather the gradient of the bin of each number; the last bin includes its right edge."""
    bins = np.searchsorted(edges, numbers, side="right") - 1
    bins = np.where(numbers == edges[-1], len(edges) - 2, bins)
    inside = (bins >= 0) & (bins < len(edges) - 1)
    return np.where(inside, np.take(g, np.where(inside, bins, 0)), 0.0)


HISTOGRAM = rule(weights_in_bins, _gather_from_bins, inputs="weights", static="numbers edges")
