"""Derivative rules of products and cumulative products, for any number of zeros in the factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.manipulation.indexing import scatter_recorded
from optlab.autograd.rules.reductions.folding import (
    Axis,
    cast_to,
    filled,
    masked,
    not_nan,
    reduced_axes_last,
    restore_reduced_axes,
    with_keepdims,
)
from optlab.autograd.rules.reductions.recurrence import from_last, reversed_recurrence, to_last
from optlab.backend.arrays import constants_beside


def _shift_with_one(y: Any) -> Any:
    """Shift by one along the last axis, with a 1 in front."""
    shifted = scatter_recorded(y[..., :-1], (..., slice(1, None)), y.shape)
    in_front = constants_beside(y, np.arange(y.shape[-1]) == 0)
    return np.where(in_front, 1.0, shifted)


def _cumprod(g: Any, x: Any, y: Any, axis: int | None, dtype: Any) -> Any:
    """Return, for each factor, the product before it times a recurrence of `g` over the rest."""
    axis = 0 if axis is None else axis
    factors = to_last(cast_to(x, dtype).reshape(g.shape), axis)
    after = reversed_recurrence(factors[..., 1:], to_last(g, axis))
    return from_last(_shift_with_one(to_last(y, axis)) * after, axis).reshape(x.shape)


CUMPROD = rule(
    np.cumprod,
    lambda g, x, y, axis=None, dtype=None: _cumprod(g, x, y, axis, dtype),
    static="axis dtype",
)
NANCUMPROD = rule(
    np.nancumprod,
    lambda g, x, y, axis=None, dtype=None: masked(
        _cumprod(g, filled(x, not_nan(x), 1.0), y, axis, dtype), not_nan(x)
    ),
    static="axis dtype",
)


def _leave_one_out_products(x: Any) -> Any:
    """Return, for each element, the product of the others along the last axis.

    Cumulative products from both sides take O(n) and no division, so zeros are exact.
    """
    if x.shape[-1] == 1:
        return np.ones_like(x)
    before = np.cumprod(_shift_with_one(x), axis=-1)
    after = np.flip(np.cumprod(_shift_with_one(np.flip(x, -1)), axis=-1), -1)
    return before * after


def _prod(g: Any, x: Any, axis: Axis, dtype: Any, where: Any, initial: Any) -> Any:
    factors = reduced_axes_last(filled(cast_to(x, dtype), where, 1.0), axis)
    others = restore_reduced_axes(_leave_one_out_products(factors), x.shape, axis)
    return masked(with_keepdims(g * initial, x.shape, axis) * others, where)


def _prod_forward(x: Any, axis: Any = None, keepdims: Any = False, **options: Any) -> Any:
    return np.multiply.reduce(x, axis=axis, keepdims=keepdims, **options)


PROD = rule(
    np.prod,
    lambda g, x, axis=None, dtype=None, where=True, initial=1: _prod(
        g, x, axis, dtype, where, initial
    ),
    static="axis keepdims dtype initial where",
    forward=_prod_forward,
)
NANPROD = rule(
    np.nanprod,
    lambda g, x, axis=None, dtype=None, where=True, initial=1: _prod(
        g, x, axis, dtype, not_nan(x, where), initial
    ),
    static="axis keepdims dtype initial where",
)
