"""Derivative rules of norms.

At a kink the rule returns the central subgradient: 0 at the zero vector for every norm, 0 for an
element that is 0 (as for abs), and equal shares for elements or columns that tie for a maximum.
The second derivative is 0 at such points as well, never infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.autograd.rules.linalg.matrices import (
    column,
    nonzero_mask,
    per_matrix,
    reciprocal,
    row,
    transposed,
)
from optlab.autograd.rules.reductions.folding import broadcast_back


def euclidean_norm(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the square root of the sum of squares.

    Examples
    --------
    >>> import numpy as np
    >>> float(euclidean_norm(np.array([3.0, 4.0])))
    5.0
    """
    return np.sqrt(np.add.reduce(x * x, axis=axis, keepdims=keepdims))


def _euclidean(g: Any, x: Any, y: Any, axis: Any = None) -> Any:
    zero = y == 0
    return broadcast_back(np.where(zero, 0.0, g / np.where(zero, 1.0, y)), x.shape, axis) * x


NORM = rule(euclidean_norm, _euclidean, static="axis keepdims")


def power_norm(x: Any, power: float, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the p-norm: the sum of powers of absolute values, to the power 1 / power.

    Examples
    --------
    >>> import numpy as np
    >>> float(power_norm(np.array([1.0, -2.0]), 3.0) ** 3)  # 1 + 8
    9.0...
    """
    total = np.add.reduce(np.abs(x) ** power, axis=axis, keepdims=keepdims)
    return total ** np.reciprocal(power, dtype=total.dtype)


def _power_norm(g: Any, x: Any, y: Any, power: float, axis: Any = None) -> Any:
    """Return g * sign(x) * (abs(x) / y)^(power - 1): the quotient neither over- nor underflows."""
    size = broadcast_back(np.where(y == 0, 1.0, y), x.shape, axis)
    share = np.where((x == 0) | (broadcast_back(y, x.shape, axis) == 0), 1.0, np.abs(x) / size)
    return broadcast_back(g, x.shape, axis) * np.sign(x) * share ** (power - 1)


POWER_NORM = rule(power_norm, _power_norm, static="power axis keepdims")


def number_of_nonzeros(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Count the elements that are not 0, in the dtype of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> float(number_of_nonzeros(np.array([0.0, 3.0, -1.0])))
    2.0
    """
    return (x != 0).astype(x.dtype).sum(axis=axis, keepdims=keepdims)


NUMBER_OF_NONZEROS = rule(
    number_of_nonzeros,
    lambda g, x_shape, axis=None: broadcast_back(g * 0, x_shape, axis),
    static="axis keepdims",
)


def nuclear_norm(x: Any) -> Any:
    """Return the sum of the singular values of each matrix.

    Examples
    --------
    >>> import numpy as np
    >>> float(nuclear_norm(np.diag([3.0, -4.0])))
    7.0
    """
    return np.sum(np.linalg.svd(x, compute_uv=False), axis=-1)


def polar(x: Any) -> Any:
    """Return U V', the polar factor: the nearest matrix with orthonormal columns (or rows).

    Vectors of singular values 0 are left out, as they are arbitrary.

    Examples
    --------
    >>> import numpy as np
    >>> polar(np.array([[0.0, 2.0], [-3.0, 0.0]])).round(12) + 0.0
    array([[ 0.,  1.],
           [-1.,  0.]])
    """
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return (u * row(nonzero_mask(s))) @ vh


def _polar(g: Any, x: Any) -> Any:
    """Divide by sums of singular values, never by differences: repeated ones are harmless."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    v = transposed(vh)
    inner = transposed(u) @ g @ v
    by_x = u @ ((inner - transposed(inner)) * reciprocal(column(s) + row(s))) @ vh
    if x.shape[-2] > x.shape[-1]:
        return by_x + ((g @ v - u @ inner) * row(reciprocal(s))) @ vh
    if x.shape[-2] < x.shape[-1]:
        return by_x + (u * row(reciprocal(s))) @ (transposed(u) @ g - inner @ vh)
    return by_x


NUCLEAR_NORM = rule(nuclear_norm, lambda g, x: per_matrix(g) * as_single_operation(polar, x))
POLAR = rule(polar, _polar)
