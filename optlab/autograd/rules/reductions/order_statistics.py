"""Derivative rules of medians and quantiles.

A quantile interpolates between two neighbors among the sorted elements. Its gradient is split
between them by the weights of the interpolation; ties keep the order of the input (stable sort).
The neighbors and weights depend on the number of elements alone, and are read from NumPy's same
quantile of 0, 1, 2, ...
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.manipulation.indexing import scatter_recorded
from optlab.autograd.rules.reductions.folding import (
    Axis,
    Shape,
    masked,
    normalized_axes,
    not_nan,
    reduced_axes_last,
    restore_reduced_axes,
)
from optlab.backend.arrays import constants_beside, on_host


def _scatter_to_neighbors(g: Any, x: Any, axis: Axis, position: Any) -> Any:
    """Scatter gradients to the elements on both sides of a position in sorted order.

    `g` has one gradient for each position along its last axis; `position` is shared by all rows, or
    has one row for each.
    """
    rows = reduced_axes_last(x, axis)
    order = np.argsort(rows, axis=-1, kind="stable")
    n = order.shape[-1]
    low = np.floor(position)
    share = position - low
    first_of_row = np.arange(math.prod(order.shape[:-1])).reshape((*order.shape[:-1], 1)) * n
    total: Any = 0.0
    for rank, part in ((low, 1.0 - share), (np.minimum(low + 1, n - 1), share)):
        ranks = np.broadcast_to(rank.astype(np.intp), g.shape)
        standing_there = np.take_along_axis(order, constants_beside(order, ranks), axis=-1)
        at = standing_there + constants_beside(order, first_of_row)
        given = g * constants_beside(order, part.astype(g.dtype))
        total = total + scatter_recorded(given, at, (math.prod(order.shape),))
    return restore_reduced_axes(total.reshape(order.shape), x.shape, axis)


def _quantiles_last(g: Any, shape: Shape, axis: Axis, q: Any) -> Any:
    """Reshape `g` to the rows of the input, with the quantiles along the last axis."""
    folded = normalized_axes(len(shape), axis)
    rest = tuple(length for i, length in enumerate(shape) if i not in folded)
    return np.moveaxis(g.reshape((np.size(q), *rest)), 0, -1)


def _not_nan_counts(x: Any, axis: Axis) -> Any:
    """Return the number of elements of each row that are not NaN, with 1 in place of 0."""
    return np.maximum(np.sum(not_nan(reduced_axes_last(x, axis)), axis=-1, keepdims=True), 1)


def _median(g: Any, x: Any, axis: Axis) -> Any:
    rows = reduced_axes_last(x, axis)
    middle = np.asarray([(rows.shape[-1] - 1) / 2])
    return _scatter_to_neighbors(g.reshape((*rows.shape[:-1], 1)), x, axis, middle)


def _nanmedian(g: Any, x: Any, axis: Axis) -> Any:
    n = _not_nan_counts(x, axis)
    found = _scatter_to_neighbors(g.reshape(n.shape), x, axis, (n - 1) / 2)
    return masked(found, not_nan(x))


def _quantile(g: Any, x: Any, q: Any, axis: Axis, method: str) -> Any:
    g = _quantiles_last(g, x.shape, axis, q)
    n = reduced_axes_last(x, axis).shape[-1]
    position = np.quantile(np.arange(float(n)), np.ravel(on_host(q)), method=method)  # type: ignore[call-overload]
    return _scatter_to_neighbors(g, x, axis, position)


def _with_array_q(quantile: Any) -> Any:
    """Wrap a quantile so that several `q` are moved to the device of the array."""

    def forward(x: Any, q: Any, **options: Any) -> Any:
        return quantile(x, q if isinstance(q, (int, float)) else constants_beside(x, q), **options)

    return forward


_nanquantiles = _with_array_q(np.nanquantile)


def _nanquantile(g: Any, x: Any, q: Any, axis: Axis, method: str) -> Any:
    g = _quantiles_last(g, x.shape, axis, q)
    n = _not_nan_counts(x, axis)
    ramp = constants_beside(n, np.arange(float(reduced_axes_last(x, axis).shape[-1])))
    rows = np.where(ramp < n, ramp, np.nan)
    position = _nanquantiles(rows, np.ravel(q), axis=-1, method=method)
    found = _scatter_to_neighbors(g, x, axis, np.moveaxis(position, 0, -1))
    return masked(found, not_nan(x))


rule(np.median, lambda g, x, axis=None: _median(g, x, axis), static="axis keepdims")
rule(np.nanmedian, lambda g, x, axis=None: _nanmedian(g, x, axis), static="axis keepdims")
rule(
    np.quantile,
    lambda g, x, q, axis=None, method="linear": _quantile(g, x, q, axis, method),
    static="q axis method keepdims",
    forward=_with_array_q(np.quantile),
)
rule(
    np.nanquantile,
    lambda g, x, q, axis=None, method="linear": _nanquantile(g, x, q, axis, method),
    static="q axis method keepdims",
    forward=_nanquantiles,
)
rule(
    np.percentile,
    lambda g, x, q, axis=None, method="linear": _quantile(
        g, x, np.true_divide(q, 100), axis, method
    ),
    static="q axis method keepdims",
    forward=_with_array_q(np.percentile),
)
rule(
    np.nanpercentile,
    lambda g, x, q, axis=None, method="linear": _nanquantile(
        g, x, np.true_divide(q, 100), axis, method
    ),
    static="q axis method keepdims",
    forward=_with_array_q(np.nanpercentile),
)
