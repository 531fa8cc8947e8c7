"""What the rules of linear algebra share: constants beside a matrix, and guarded divisions.

Constants are made from the matrix itself (`np.ones_like`), so that they lie on its device; of a
Tensor that gives the plain array, which is what a constant should be.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def transposed(x: Any) -> Any:
    """Exchange the last two axes."""
    return np.swapaxes(x, -1, -2)


def symmetric_part(x: Any) -> Any:
    """Give the symmetric part of each matrix."""
    return 0.5 * (x + transposed(x))


def column(x: Any) -> Any:
    """Let numbers, one a matrix or one a row, stretch along a new last axis."""
    return np.expand_dims(x, -1)


def row(x: Any) -> Any:
    """Let numbers, one a column, stretch along the rows."""
    return np.expand_dims(x, -2)


def per_matrix(x: Any) -> Any:
    """Let numbers, one a matrix, stretch over its rows and columns."""
    return np.expand_dims(x, (-2, -1))


def diagonal_part(x: Any) -> Any:
    """Give the diagonal of each square matrix."""
    return np.einsum("...ii->...i", x)


def identity_like(x: Any) -> Any:
    """Give the identity beside each square matrix."""
    return np.tril(np.triu(np.ones_like(x)))


def lower_ones(x: Any) -> Any:
    """Give ones on and below the diagonal of each matrix, zeros elsewhere."""
    return np.tril(np.ones_like(x))


def strictly_lower_ones(x: Any) -> Any:
    """Give ones below the diagonal of each matrix, zeros elsewhere."""
    return np.tril(np.ones_like(x), -1)


def right_solve(x: Any, a: Any) -> Any:
    """Give x a^-1."""
    return transposed(np.linalg.solve(transposed(a), transposed(x)))


def _rounding_tolerance(values: Any) -> Any:
    """Give, for each matrix, the size below which differences of its values are only rounding."""
    return 10 * np.finfo(values.dtype).eps * np.sum(np.abs(values), axis=-1, keepdims=True)


def over_gaps(values: Any) -> Any:
    """Give 1 / (value j - value i) for each pair, and 0 where the two are equal up to rounding.

    Vectors that belong to equal values are an arbitrary basis of the space that they span. What
    does not depend on that choice does not turn them within it, hence the 0.
    """
    gaps = row(values) - column(values)
    equal = np.abs(gaps) <= column(_rounding_tolerance(values))
    return np.where(equal, 0.0, 1.0 / np.where(equal, 1.0, gaps))


def nonzero_mask(values: Any) -> Any:
    """Say which values are more than rounding."""
    return np.abs(values) > _rounding_tolerance(values)


def reciprocal(values: Any) -> Any:
    """Give 1 / value, and 0 where the value is 0 up to rounding."""
    safe = nonzero_mask(values)
    return np.where(safe, 1.0 / np.where(safe, values, 1.0), 0.0)
