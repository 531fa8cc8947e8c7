"""Norms of whole parameters, for rules that scale their step by them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.backend.arrays import lies_on_device, unwrapped

#: Squares are added up block by block, in order, so that whoever sees one block after another gets
#: the same bits.
BLOCK = 65_536


def norm(x: Any) -> Any:
    """Give the Euclidean norm of an array, added up in float64, as a number of the array's dtype.

    Of an ensemble it is one number a member. It stays where the array is: nothing waits for a
    device.

    Parameters
    ----------
    x : array

    Returns
    -------
    array or scalar, shape ()

    Examples
    --------
    >>> import numpy as np
    >>> float(norm(np.array([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    >>> norm(np.full(3, 1e30, "float32")).dtype  # its square does not fit into float32
    dtype('float32')
    """
    flat = x.reshape(-1)
    size = math.prod(x.shape)
    block = max(size, 1) if lies_on_device(unwrapped(x)) else BLOCK
    total = sum_of_squares(flat[:block])
    for start in range(block, size, block):
        total = total + sum_of_squares(flat[start : start + block])
    return np.sqrt(total).astype(x.dtype)


def sum_of_squares(block: Any) -> Any:
    """Give the sum of the squares of one block, in float64, where squares fit."""
    return np.sum(np.square(block, dtype=np.float64))


def quotient_or_one(a: Any, b: Any) -> Any:
    """Give a / b where both are greater than 0, else 1, in their dtype.

    Examples
    --------
    >>> import numpy as np
    >>> float(quotient_or_one(np.float32(3), np.float32(2)))
    1.5
    >>> float(quotient_or_one(np.float32(3), np.float32(0)))
    1.0
    """
    both = (a > 0) & (b > 0)
    return np.where(both, a / np.where(both, b, 1.0), 1.0)
