"""Derivative rules of reductions.

Every rule takes NumPy's options. ``where`` is the mask of the elements that are reduced (True for
all); masked-out elements have gradient 0, even where they are NaN or infinite. The functions that
skip NaN have the same rules, with NaN masked out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import where_mask
from optlab.autograd.rules.reductions.folding import (
    Axis,
    Shape,
    at_least_1,
    broadcast_back,
    cast_to,
    element_counts,
    filled,
    masked,
    not_nan,
    reduced_size,
    with_keepdims,
)
from optlab.autograd.tape.half_precision import with_dtype


def _reduction(ufunc: np.ufunc, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the reduction by `ufunc`, equal to `function`, over all axes by default."""
    reduce: Any = ufunc.reduce  # by position: keywords take 0.2 us more

    def forward(x: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
        if not isinstance(x, (np.ndarray, np.generic)):  # few ufuncs of CuPy have .reduce
            return function(x, axis=axis, keepdims=keepdims, **options)
        if options:
            return with_dtype(reduce, x, axis=axis, keepdims=keepdims, **options)
        return reduce(x, axis, None, None, keepdims)

    return forward


# Sums and means -----------------------------------------------------------------------------------


_add: Any = np.add.reduce


def _mean_forward(x: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
    if x.dtype.itemsize < 4 or options:  # NumPy accumulates float16 in float32
        return with_dtype(np.mean, x, axis=axis, keepdims=keepdims, **options)
    return _add(x, axis, None, None, keepdims) / reduced_size(x.shape, axis)


def _sum(g: Any, shape: Shape, axis: Axis, where: Any) -> Any:
    g = broadcast_back(g, shape, axis)
    return g if where is True else masked(g, where)


def _mean(g: Any, shape: Shape, axis: Axis, where: Any) -> Any:
    if where is True:
        return broadcast_back(g / reduced_size(shape, axis), shape, axis)
    n = at_least_1(element_counts(shape, axis, where, g.dtype))
    return masked(with_keepdims(g, shape, axis) / n, np.broadcast_to(where, shape))


SUM = rule(
    np.sum,
    lambda g, x_shape, axis=None, where=True: _sum(g, x_shape, axis, where),
    static="axis keepdims dtype initial where",
    forward=_reduction(np.add, np.sum),
)
NANSUM = rule(
    np.nansum,
    lambda g, x, axis=None, where=True: _sum(g, x.shape, axis, not_nan(x, where)),
    static="axis keepdims dtype initial where",
)
MEAN = rule(
    np.mean,
    lambda g, x_shape, axis=None, where=True: _mean(g, x_shape, axis, where),
    static="axis keepdims dtype where",
    forward=_mean_forward,
)
NANMEAN = rule(
    np.nanmean,
    lambda g, x, axis=None, where=True: _mean(g, x.shape, axis, not_nan(x, where)),
    static="axis keepdims dtype where",
)


# Roots of sums of squares -------------------------------------------------------------------------


def hypot_reduce(x: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
    """Return ``np.hypot.reduce``: the root of the sum of squares, without overflow.

    Examples
    --------
    >>> float(hypot_reduce(np.array([0.0, 1e200])))
    1e+200
    """
    return np.hypot.reduce(x, axis=axis, keepdims=keepdims, **options)


def _over_root(g: Any, y: Any) -> Any:
    """Return g / y, and 0, the central subgradient of a root of squares, where y is 0."""
    at_0 = y == 0
    return np.where(at_0, 0.0, g / np.where(at_0, 1.0, y))


HYPOT_REDUCE = rule(
    hypot_reduce,
    lambda g, x, y, axis=None, where=True: (
        broadcast_back(_over_root(g, y), x.shape, axis) * filled(x, where, 0.0)
    ),
    static="axis keepdims dtype initial where",
)


# Variances ----------------------------------------------------------------------------------------


def _deviations(x: Any, axis: Axis, where: Any) -> Any:
    """Return the deviations from the mean, 0 for masked-out elements."""
    if where is True:
        return x - np.mean(x, axis=axis, keepdims=True)
    total = np.sum(filled(x, where, 0.0), axis=axis, keepdims=True)
    return masked(x - total / at_least_1(element_counts(x.shape, axis, where, x.dtype)), where)


def _divisor(x: Any, axis: Axis, ddof: Any, where: Any) -> Any:
    """Return the divisor of the sum of squares: the number of elements minus `ddof`, at least 0."""
    n = element_counts(x.shape, axis, where, x.dtype) - ddof
    return max(n, 0) if where is True else np.maximum(n, 0)


def _var(g: Any, x: Any, axis: Axis, ddof: Any, dtype: Any, where: Any) -> Any:
    x = cast_to(x, dtype)
    slope = 2 * with_keepdims(g, x.shape, axis) / _divisor(x, axis, ddof, where)
    return masked(slope * _deviations(x, axis, where), where)


def _std(g: Any, x: Any, y: Any, axis: Axis, ddof: Any, dtype: Any, where: Any) -> Any:
    """Return the gradient of a standard deviation: 0 at the kink where all elements are equal.

    The deviations are centered twice, because the mean of equal numbers may have a rounding error.
    """
    x = cast_to(x, dtype)
    slope = with_keepdims(_over_root(g, y), x.shape, axis) / _divisor(x, axis, ddof, where)
    return masked(slope * _deviations(_deviations(x, axis, where), axis, where), where)


VAR = rule(
    np.var,
    lambda g, x, axis=None, ddof=0, dtype=None, where=True: _var(g, x, axis, ddof, dtype, where),
    static="axis ddof keepdims dtype where",
)
NANVAR = rule(
    np.nanvar,
    lambda g, x, axis=None, ddof=0, dtype=None, where=True: _var(
        g, x, axis, ddof, dtype, not_nan(x, where)
    ),
    static="axis ddof keepdims dtype where",
)
STD = rule(
    np.std,
    lambda g, x, y, axis=None, ddof=0, dtype=None, where=True: _std(
        g, x, y, axis, ddof, dtype, where
    ),
    static="axis ddof keepdims dtype where",
)
NANSTD = rule(
    np.nanstd,
    lambda g, x, y, axis=None, ddof=0, dtype=None, where=True: _std(
        g, x, y, axis, ddof, dtype, not_nan(x, where)
    ),
    static="axis ddof keepdims dtype where",
)


def variance_about(x: Any, mean: Any, **options: Any) -> Any:
    """Return ``np.var(x, mean=mean)``: the mean squared deviation from a given mean.

    Examples
    --------
    >>> float(variance_about(np.array([1.0, 3.0]), np.array([0.0])))
    5.0
    """
    return np.var(x, mean=mean, **options)


def deviation_about(x: Any, mean: Any, **options: Any) -> Any:
    """Return ``np.std(x, mean=mean)``: the root of `variance_about`.

    Examples
    --------
    >>> float(deviation_about(np.array([3.0, -3.0]), np.array([0.0])))
    3.0
    """
    return np.std(x, mean=mean, **options)


def _about(g: Any, x: Any, mean: Any, axis: Axis, ddof: Any, where: Any) -> Any:
    slope = with_keepdims(g, x.shape, axis) / _divisor(x, axis, ddof, where)
    return masked(slope * filled(x - mean, where, 0.0), where)


VAR_ABOUT = rule(
    variance_about,
    lambda g, x, mean, axis=None, ddof=0, where=True: _about(2 * g, x, mean, axis, ddof, where),
    lambda g, x, mean, axis=None, ddof=0, where=True: _about(-2 * g, x, mean, axis, ddof, where),
    inputs="x mean",
    static="axis ddof keepdims dtype where",
)
STD_ABOUT = rule(
    deviation_about,
    lambda g, x, mean, y, axis=None, ddof=0, where=True: _about(
        _over_root(g, y), x, mean, axis, ddof, where
    ),
    lambda g, x, mean, y, axis=None, ddof=0, where=True: (
        -_about(_over_root(g, y), x, mean, axis, ddof, where)
    ),
    inputs="x mean",
    static="axis ddof keepdims dtype where",
)


# Maximum and minimum ------------------------------------------------------------------------------


def _split_ties(g: Any, x: Any, y: Any, axis: Axis, where: Any, initial: Any) -> Any:
    """Split the gradient equally among the elements that attain the extreme.

    A NaN makes the result NaN, so it counts as attaining it. `initial` counts as one more element,
    whose share is dropped.
    """
    if axis is None and initial is None and where is True and type(x) is np.ndarray:
        equal = x == y
        ties = int(np.count_nonzero(equal))  # 0 if the result is NaN
        if ties:
            share = broadcast_back(g / ties, x.shape, None)
            return share if ties == x.size else where_mask(share, equal)
    y = with_keepdims(y, x.shape, axis)
    reaching = (x == y) | np.isnan(x)
    if where is not True:
        reaching = np.logical_and(reaching, where)
    n = np.add.reduce(reaching, axis=axis, keepdims=True)
    if initial is not None:
        n = n + ((y == initial) | np.isnan(initial))
    if where is not True:
        n = at_least_1(n)
    return masked(with_keepdims(g, x.shape, axis) / n.astype(g.dtype), reaching)


def fmax_reduce(x: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
    """Return ``np.fmax.reduce``: the largest element that is not NaN.

    Examples
    --------
    >>> float(fmax_reduce(np.array([3.0, np.nan])))
    3.0
    """
    return np.fmax.reduce(x, axis=axis, keepdims=keepdims, **options)


def fmin_reduce(x: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
    """Return ``np.fmin.reduce``: the smallest element that is not NaN.

    Examples
    --------
    >>> float(fmin_reduce(np.array([3.0, np.nan])))
    3.0
    """
    return np.fmin.reduce(x, axis=axis, keepdims=keepdims, **options)


MAX = rule(
    np.max,
    lambda g, x, y, axis=None, where=True, initial=None: _split_ties(g, x, y, axis, where, initial),
    static="axis keepdims initial where",
    forward=_reduction(np.maximum, np.max),
)
MIN = rule(
    np.min,
    lambda g, x, y, axis=None, where=True, initial=None: _split_ties(g, x, y, axis, where, initial),
    static="axis keepdims initial where",
    forward=_reduction(np.minimum, np.min),
)
for skipping_nan in (np.nanmax, np.nanmin, fmax_reduce, fmin_reduce):
    rule(
        skipping_nan,
        lambda g, x, y, axis=None, where=True, initial=None: _split_ties(
            g, x, y, axis, not_nan(x, where), initial
        ),
        static="axis keepdims dtype initial where",
    )


# Log-sum-exp --------------------------------------------------------------------------------------


def logaddexp_reduce(x: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
    """Return ``np.logaddexp.reduce``: the log-sum-exp.

    Examples
    --------
    >>> float(logaddexp_reduce(np.log(np.array([1.0, 2.0, 5.0]))).round(6)) == round(math.log(8), 6)
    True
    """
    return np.logaddexp.reduce(x, axis=axis, keepdims=keepdims, **options)


def logaddexp2_reduce(x: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
    """Return ``np.logaddexp2.reduce``: the log-sum-exp in base 2.

    Examples
    --------
    >>> float(logaddexp2_reduce(np.array([2.0, 2.0])))
    3.0
    """
    return np.logaddexp2.reduce(x, axis=axis, keepdims=keepdims, **options)


def replace_minus_inf(y: Any) -> Any:
    """Return `y` with 0 in place of -inf: where all terms vanish each has gradient 0, not NaN."""
    return np.where(y == -math.inf, 0.0, y)


def _logaddexp(base: Any, g: Any, x: Any, y: Any, axis: Axis, where: Any) -> Any:
    y = with_keepdims(replace_minus_inf(y), x.shape, axis)
    return masked(with_keepdims(g, x.shape, axis) * base(filled(x, where, 0.0) - y), where)


rule(
    logaddexp_reduce,
    lambda g, x, y, axis=None, where=True: _logaddexp(np.exp, g, x, y, axis, where),
    static="axis keepdims dtype initial where",
)
rule(
    logaddexp2_reduce,
    lambda g, x, y, axis=None, where=True: _logaddexp(np.exp2, g, x, y, axis, where),
    static="axis keepdims dtype initial where",
)
