"""Derivative rules of products and running products, with any number of zeros among the factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.folding import (
    Axis,
    aligned,
    cast_to,
    filled,
    folded_last,
    masked,
    numbers,
    unfolded,
)
from optlab.autograd.rules.indexing import scattered
from optlab.autograd.rules.recurrence import from_last, last, reversed_recurrence
from optlab.backend.arrays import constants_beside


def _one_later(y: Any) -> Any:
    """Shift by one along the last axis, a 1 in front."""
    shifted = scattered(y[..., :-1], (..., slice(1, None)), y.shape)
    in_front = constants_beside(y, np.arange(y.shape[-1]) == 0)
    return np.where(in_front, 1.0, shifted)


def _cumprod(g: Any, x: Any, y: Any, axis: int | None, dtype: Any) -> Any:
    """Give the gradient of running products: what stands before, times all that comes after."""
    axis = 0 if axis is None else axis
    factors = last(cast_to(x, dtype).reshape(g.shape), axis)
    after = reversed_recurrence(factors[..., 1:], last(g, axis))
    return from_last(_one_later(last(y, axis)) * after, axis).reshape(x.shape)


CUMPROD = rule(
    np.cumprod,
    lambda g, x, y, axis=None, dtype=None: _cumprod(g, x, y, axis, dtype),
    static="axis dtype",
)
NANCUMPROD = rule(
    np.nancumprod,
    lambda g, x, y, axis=None, dtype=None: masked(
        _cumprod(g, filled(x, numbers(x), 1.0), y, axis, dtype), numbers(x)
    ),
    static="axis dtype",
)


def _product_of_others(x: Any) -> Any:
    """Give, for each element, the product of the others along the last axis.

    Products from both sides: O(n), without a division, and right where some elements are 0.
    """
    if x.shape[-1] == 1:
        return np.ones_like(x)
    before = np.cumprod(_one_later(x), axis=-1)
    after = np.flip(np.cumprod(_one_later(np.flip(x, -1)), axis=-1), -1)
    return before * after


def _prod(g: Any, x: Any, axis: Axis, dtype: Any, where: Any, initial: Any) -> Any:
    factors = folded_last(filled(cast_to(x, dtype), where, 1.0), axis)
    others = unfolded(_product_of_others(factors), x.shape, axis)
    return masked(aligned(g * initial, x.shape, axis) * others, where)


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
        g, x, axis, dtype, numbers(x, where), initial
    ),
    static="axis keepdims dtype initial where",
)
