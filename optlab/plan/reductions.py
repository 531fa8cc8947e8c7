"""Reductions of a whole array to a number, such as norms, accumulated block by block."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.backend.arrays import is_on_device, unwrapped
from optlab.plan import sizes


def sum_of_squares(block: Any) -> Any:
    """Return the sum of squares of one block, in float64, to avoid overflow."""
    return np.sum(np.square(block, dtype=np.float64))


class Reduction:
    """A reduction of a whole array to a number, summed block by block, in order.

    So processing block after block gives the same bits as processing the whole array.

    Parameters
    ----------
    partial : callable
        Maps a flat block to a number.
    finish : callable
        Maps the sum of these numbers and the dtype of the array to the result.

    Examples
    --------
    >>> import numpy as np
    >>> norm = Reduction(lambda b: np.sum(b * b), lambda total, dtype: np.sqrt(total).astype(dtype))
    >>> float(norm(np.array([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """

    def __init__(
        self, partial: Callable[[Any], Any], finish: Callable[[Any, Any], Any], name: str = "reduce"
    ) -> None:
        self.partial = partial
        self.finish = finish
        self.__name__ = name

    def __call__(self, x: Any) -> Any:
        """Return the number of an array; of an ensemble, one per member."""
        if hasattr(type(x), "reduced_by"):  # a captured array records it
            return x.reduced_by(self)
        flat = x.reshape(-1)
        size = math.prod(x.shape)
        # A device sums a whole array faster than one block after another.
        block = max(size, 1) if is_on_device(unwrapped(x)) else sizes.BLOCK
        total = self.partial(flat[:block])
        for start in range(block, size, block):
            total = total + self.partial(flat[start : start + block])
        return self.finish(total, x.dtype)
