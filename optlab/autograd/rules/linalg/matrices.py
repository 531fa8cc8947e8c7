"""Helpers of the linear algebra rules: constant matrices, and guarded reciprocals.

Constants are created from the matrix by `np.ones_like`, so they are on its device; for a Tensor
that returns a Tensor without gradient, as a constant should be.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def transposed(x: Any) -> Any:
    """Swap the last two axes."""
    return np.swapaxes(x, -1, -2)


def symmetric_part(x: Any) -> Any:
    """Return the symmetric part of each matrix."""
    return 0.5 * (x + transposed(x))


def column(x: Any) -> Any:
    """Append an axis, so that one scalar a row (or a matrix) broadcasts along it."""
    return np.expand_dims(x, -1)


def row(x: Any) -> Any:
    """Insert an axis before the last, so that one scalar a column broadcasts along the rows."""
    return np.expand_dims(x, -2)


def per_matrix(x: Any) -> Any:
    """Append two axes: one scalar a matrix broadcasts over its rows and columns."""
    return np.expand_dims(x, (-2, -1))


def diagonal_part(x: Any) -> Any:
    """Return the diagonal of each square matrix."""
    return np.einsum("...ii->...i", x)


def identity_like(x: Any) -> Any:
    """Return an identity matrix for each square matrix."""
    return np.tril(np.triu(np.ones_like(x)))


def lower_ones(x: Any) -> Any:
    """Return ones on and below the diagonal of each matrix, zeros elsewhere."""
    return np.tril(np.ones_like(x))


def strictly_lower_ones(x: Any) -> Any:
    """Return ones below the diagonal of each matrix, zeros elsewhere."""
    return np.tril(np.ones_like(x), -1)


def right_solve(x: Any, a: Any) -> Any:
    """Return x a^-1."""
    return transposed(np.linalg.solve(transposed(a), transposed(x)))


def _rounding_tolerance(values: Any) -> Any:
    """Return, for each matrix, the tolerance below which differences of values are rounding."""
    return 10 * np.finfo(values.dtype).eps * np.sum(np.abs(values), axis=-1, keepdims=True)


def inverse_gaps(values: Any) -> Any:
    """Return 1 / (value j - value i) for each pair, and 0 where the two are equal up to rounding.

    The vectors of repeated values are an arbitrary basis of their subspace. A function that does
    not depend on that basis has no gradient for rotations within the subspace, hence the 0.
    """
    gaps = row(values) - column(values)
    equal = np.abs(gaps) <= column(_rounding_tolerance(values))
    return np.where(equal, 0.0, 1.0 / np.where(equal, 1.0, gaps))


def nonzero_mask(values: Any) -> Any:
    """Return the mask of the values that exceed rounding."""
    return np.abs(values) > _rounding_tolerance(values)


def reciprocal(values: Any) -> Any:
    """Return 1 / value, and 0 where the value is 0 up to rounding."""
    safe = nonzero_mask(values)
    return np.where(safe, 1.0 / np.where(safe, values, 1.0), 0.0)
