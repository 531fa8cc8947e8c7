"""Guarded products and quotients for derivative rules: 0 times infinity is 0, not NaN.

``np.where(x > 0, np.sqrt(x), 0.0)`` passes a gradient of exactly 0 to the branch that it does not
select. At x = 0 the slope of the root is infinite, and 0 times infinity is NaN: one unselected
element would turn the whole gradient into NaN. So rules whose slope can be infinite or undefined at
a finite argument multiply with `product` and divide with `quotient`, whose result is 0 where the
first factor is 0. Elsewhere both are plain arithmetic, and an infinite slope stays infinite.

Conversely, a function with a kink *selects*: elements on its flat side get 0 even from an infinite
gradient (`where_mask`, and `product` with the slope as first factor).

Both are operations with rules of their own: a guard written with ``np.where(g == 0)`` would be
wrong in the second derivative wherever g happens to be 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, rule
from optlab.autograd.tape.apply import apply
from optlab.autograd.tape.base import TensorBase

#: Types that are certainly no Tensors.
_PLAIN = (np.ndarray, np.generic, int, float)

_array, _count_nonzero = np.ndarray, np.count_nonzero

#: From this size on, one more pass over an array costs less than `np.where` on it.
LARGE = 1000


def run_or_record(operation: Operation, *inputs: Any, **static: Any) -> Any:
    """Run an operation that only rules use; record it if a Tensor is among the inputs."""
    for x in inputs:
        if not isinstance(x, _PLAIN):
            break
    else:
        return operation.forward(*inputs, **static)
    if any(isinstance(x, TensorBase) for x in inputs):
        return apply(operation, inputs, static)
    return operation.forward(*inputs, **static)


def product(a: Any, b: Any) -> Any:
    """Return ``a * b``, with 0 wherever `a` is 0, even if `b` is infinite or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> product(np.array([0.0, 2.0]), np.array([np.inf, 3.0]))
    array([0., 6.])
    """
    if type(a) is _array:  # fast path: without zeros in a there is nothing to guard
        size = a.size
        if a if size == 1 else size < LARGE and _count_nonzero(a) == size:
            return a * b
    return run_or_record(PRODUCT, a, b)


def quotient(a: Any, b: Any) -> Any:
    """Return ``a / b``, with 0 wherever `a` is 0, even if `b` is 0 or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> quotient(np.array([0.0, 6.0]), np.array([0.0, 3.0]))
    array([0., 2.])
    """
    if type(a) is _array:
        size = a.size
        if a if size == 1 else size < LARGE and _count_nonzero(a) == size:
            return a / b
    return run_or_record(QUOTIENT, a, b)


def where_mask(g: Any, mask: Any) -> Any:
    """Return `g` where `mask` is True and 0 elsewhere, even if `g` is infinite or NaN there.

    Examples
    --------
    >>> import numpy as np
    >>> where_mask(np.array([np.inf, 2.0]), np.array([False, True]))
    array([0., 2.])
    """
    if type(g) is _array and type(mask) is _array and g.shape == mask.shape:
        taken = int(_count_nonzero(mask))
        if not taken:
            return np.zeros(g.shape, g.dtype)
        if taken == mask.size:
            return g
    if _are_large(g, mask) and mask.dtype == bool and np.isfinite(g).all():
        # For irregular masks ten times as fast as np.where. Adding 0.0 turns -0.0 into 0.0.
        return g * mask + 0.0
    return _where(mask, g, 0.0)


def zeros_of(g: Any) -> Any:
    """Return zeros in the shape of `g`: the derivative of a step function.

    Examples
    --------
    >>> import numpy as np
    >>> zeros_of(np.array([np.inf, 2.0]))
    array([0., 0.])
    """
    if type(g) is np.ndarray:
        return np.zeros(g.shape, g.dtype)
    return _where(False, g, 0.0)


def _product(a: Any, b: Any) -> Any:
    if _has_no_zero(a) or (_are_large(a, b) and np.isfinite(b).all()):
        return a * b
    return a * _where(a, b, 0.0)


def _quotient(a: Any, b: Any) -> Any:
    if _has_no_zero(a) or (_are_large(a, b) and (np.abs(b) > 0).all()):
        return a / b
    return a / _where(a, b, 1.0)


def _has_no_zero(a: Any) -> bool:
    """Return whether `a` certainly has no zeros; only NumPy arrays and numbers are inspected."""
    if type(a) is np.ndarray:
        return np.count_nonzero(a) == a.size if a.size < LARGE else bool(a.all())
    return isinstance(a, (np.generic, int, float)) and bool(a)


def _where(condition: Any, x: Any, other: float) -> Any:
    """Return ``np.where(condition, x, other)``, also for a scalar condition."""
    if isinstance(condition, (bool, int, float)) and not isinstance(x, _PLAIN):
        condition = np.full_like(x, condition, dtype=bool)  # CuPy requires an array
    return np.where(condition, x, other)


def _are_large(a: Any, b: Any) -> bool:
    return type(a) is np.ndarray and type(b) is np.ndarray and a.size >= LARGE


# Where a is 0 and b infinite, the slope for a would be infinite again: it is set to 0, so that
# unselected elements have second derivatives of 0 as well.
PRODUCT = rule(
    product,
    lambda g, a, b: product(g, np.where((a == 0) & ~np.isfinite(b), 0.0, b)),
    lambda g, a: product(g, a),
    forward=_product,
)
QUOTIENT = rule(
    quotient,
    lambda g, a, b: quotient(g, np.where((a == 0) & ~(np.abs(b) > 0), np.inf, b)),
    lambda g, b, y: -quotient(product(g, y), b),
    forward=_quotient,
)
