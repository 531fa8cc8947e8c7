"""Derivative rules of cumulative sums, maxima and log-sum-exp, and of segment sums (reduceat)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.manipulation.indexing import scatter_recorded
from optlab.autograd.rules.reductions.aggregates import replace_minus_inf
from optlab.autograd.rules.reductions.folding import Shape, masked, not_nan
from optlab.autograd.rules.reductions.recurrence import (
    from_last,
    recurrence,
    reversed_recurrence,
    to_last,
)
from optlab.backend.arrays import constants_beside, on_host


def _cumsum(g: Any, shape: Shape, axis: int | None) -> Any:
    axis = 0 if axis is None else axis
    return np.flip(np.cumsum(np.flip(g, axis), axis), axis).reshape(shape)


CUMSUM = rule(
    np.cumsum, lambda g, x_shape, axis=None: _cumsum(g, x_shape, axis), static="axis dtype"
)
NANCUMSUM = rule(
    np.nancumsum,
    lambda g, x, axis=None: masked(_cumsum(g, x.shape, axis), not_nan(x)),
    static="axis dtype",
)

# Cumulative maxima, minima and log-sum-exp --------------------------------------------------------


def maximum_accumulate(x: Any, axis: int = 0, dtype: Any = None) -> Any:
    """Return ``np.maximum.accumulate``: the cumulative maximum.

    Examples
    --------
    >>> maximum_accumulate(np.array([1.0, 3.0, 2.0]))
    array([1., 3., 3.])
    """
    return np.maximum.accumulate(x, axis, dtype)


def minimum_accumulate(x: Any, axis: int = 0, dtype: Any = None) -> Any:
    """Return ``np.minimum.accumulate``: the cumulative minimum.

    Examples
    --------
    >>> minimum_accumulate(np.array([2.0, 3.0, 1.0]))
    array([2., 2., 1.])
    """
    return np.minimum.accumulate(x, axis, dtype)


def logaddexp_accumulate(x: Any, axis: int = 0, dtype: Any = None) -> Any:
    """Return ``np.logaddexp.accumulate``: the cumulative log-sum-exp.

    Examples
    --------
    >>> np.exp(logaddexp_accumulate(np.log(np.array([1.0, 2.0, 5.0])))).round(6)
    array([1., 3., 8.])
    """
    return np.logaddexp.accumulate(x, axis, dtype)


def _running_extreme(g: Any, x: Any, y: Any, axis: int) -> Any:
    """Split the gradient of each result equally among the elements so far that equal it."""
    g, x, y = to_last(g, axis), to_last(x, axis), to_last(y, axis)
    reaching = (x == y) | np.isnan(x)
    stays = ((y[..., 1:] == y[..., :-1]) | np.isnan(y[..., :-1])).astype(g.dtype)
    reached_by = recurrence(stays, reaching.astype(g.dtype))
    return from_last(masked(reversed_recurrence(stays, g / reached_by), reaching), axis)


def _running_logaddexp(g: Any, x: Any, y: Any, axis: int) -> Any:
    """Return the sum of ``g[j] * exp(x[i] - y[j])`` over j >= i, in factors of at most 1."""
    g, x, y = to_last(g, axis), to_last(x, axis), replace_minus_inf(to_last(y, axis))
    later = reversed_recurrence(np.exp(y[..., :-1] - y[..., 1:]), g)
    return from_last(np.exp(x - y) * later, axis)


for running_extreme in (maximum_accumulate, minimum_accumulate):
    rule(
        running_extreme,
        lambda g, x, y, axis=0: _running_extreme(g, x, y, axis),
        static="axis dtype",
    )
rule(
    logaddexp_accumulate,
    lambda g, x, y, axis=0: _running_logaddexp(g, x, y, axis),
    static="axis dtype",
)


# Segment sums -------------------------------------------------------------------------------------


def add_reduceat(x: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    """Return ``np.add.reduceat``: sums from each index up to the next.

    Examples
    --------
    >>> add_reduceat(np.arange(4.0), [0, 3])
    array([3., 3.])
    """
    return np.add.reduceat(x, constants_beside(x, indices), axis, dtype)


def _reduceat_gradient(g: Any, shape: Shape, indices: Any, axis: int) -> Any:
    """Add up, for each element, the gradients of the segments that contain it."""
    n, g = shape[axis], to_last(g, axis)
    start = np.asarray(on_host(indices))
    following = np.append(start[1:], n)
    length = np.where(following > start, following - start, 1)
    of_segment = np.repeat(np.arange(start.size), length)
    given = g[..., constants_beside(g, of_segment)]
    if np.all(start[1:] > start[:-1]):  # disjoint segments; elements before the first are in none
        at: Any = (..., slice(int(start[0]), None))
        return from_last(scatter_recorded(given, at, (*g.shape[:-1], n)), axis)
    place = np.arange(of_segment.size) + np.repeat(start - np.cumsum(length) + length, length)
    at = (..., constants_beside(g, place))
    return from_last(scatter_recorded(given, at, (*g.shape[:-1], n)), axis)


rule(
    add_reduceat,
    lambda g, x_shape, indices, axis=0: _reduceat_gradient(g, x_shape, indices, axis),
    static="indices axis dtype",
)
