"""Derivative rules of determinants.

The derivative of a determinant is the cofactor matrix, which exists for every square matrix. It is
computed from the singular values and not from the inverse, so first and second derivatives hold at
singular matrices too. Third and higher derivatives require an invertible matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.autograd.rules.linalg.matrices import (
    column,
    diagonal_part,
    identity_like,
    per_matrix,
    row,
    transposed,
)


def _leave_one_out_products(values: Any) -> Any:
    """Return, for each value along the last axis, the product of the others, without division."""
    ones = np.ones_like(values[..., :1])
    before = np.cumprod(np.concatenate([ones, values[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([ones, np.flip(values[..., 1:], -1)], -1), -1)
    return before * np.flip(after, -1)


def _svd_and_sign(x: Any) -> tuple[Any, Any, Any, Any]:
    """Return the singular value decomposition and the sign of det(U) det(V')."""
    u, s, vh = np.linalg.svd(x)
    return u, s, vh, np.sign(np.linalg.det(u) * np.linalg.det(vh))


def cofactors(x: Any) -> Any:
    """Return the cofactor matrix, det(x) inv(x)', of any square matrix, also a singular one.

    Examples
    --------
    >>> import numpy as np
    >>> cofactors(np.array([[1.0, 2.0], [2.0, 4.0]])).round(12)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    if x.shape[-1] == 0:
        return x
    u, s, vh, sign = _svd_and_sign(x)
    return (u * row(column(sign) * _leave_one_out_products(s))) @ vh


def change_of_cofactors(h: Any, x: Any) -> Any:
    """Return the directional derivative of the cofactors of any square matrix `x` along `h`.

    Examples
    --------
    >>> import numpy as np
    >>> change_of_cofactors(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2))).round(12)
    array([[ 4., -3.],
           [-2.,  1.]])
    """
    if x.shape[-1] == 0:
        return x
    u, s, vh, sign = _svd_and_sign(x)
    turned = transposed(u) @ h @ transposed(vh)
    same = identity_like(turned)
    # products[i, j] is the product of all singular values but the i-th and the j-th
    products = _leave_one_out_products(np.where(same == 1, 1.0, row(s)))
    products = np.where(same == 1, 0.0, products)
    along = (products @ column(diagonal_part(turned))) * same
    return per_matrix(sign) * (u @ (along - transposed(products * turned)) @ vh)


def _third_det(g: Any, h: Any, x: Any) -> Any:
    """Return the third derivative of det along `g` and `h`, by the inverse."""
    y = np.linalg.inv(x)
    a, b = y @ g, y @ h
    trace_a, trace_b = np.sum(diagonal_part(a), -1), np.sum(diagonal_part(b), -1)
    both = per_matrix(trace_a * trace_b - np.sum(a * transposed(b), (-2, -1)))
    inner = both * y - per_matrix(trace_b) * (a @ y) - per_matrix(trace_a) * (b @ y)
    return per_matrix(np.linalg.det(x)) * transposed(inner + a @ b @ y + b @ a @ y)


DET = rule(np.linalg.det, lambda g, x: per_matrix(g) * as_single_operation(cofactors, x))
COFACTORS = rule(cofactors, lambda g, x: as_single_operation(change_of_cofactors, g, x))
CHANGE_OF_COFACTORS = rule(
    change_of_cofactors,
    lambda g, x: as_single_operation(change_of_cofactors, g, x),
    _third_det,
    inputs="h x",
)

# The sign is piecewise constant; log(abs(det)) has no derivative where det is 0, and inv raises.
SLOGDET = rule(
    np.linalg.slogdet, lambda g, x: per_matrix(g[1]) * transposed(np.linalg.inv(x)), several=True
)
