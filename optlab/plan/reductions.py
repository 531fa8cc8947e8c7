"""Numbers of a whole array, gathered block by block, as norms are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.backend.arrays import is_on_device, unwrapped
from optlab.plan import sizes


def sum_of_squares(block: Any) -> Any:
    """Give the sum of the squares of one block, in float64, where squares fit."""
    return np.sum(np.square(block, dtype=np.float64))


class Reduction:
    """A number of a whole array that is added up block by block, in order.

    So whoever sees one block after another gets the bits of one who sees the whole array.

    Parameters
    ----------
    partial : callable
        Takes a flat block, gives a number.
    finish : callable
        Takes the sum of these numbers and the dtype of the array, gives the result.

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
        """Give the number of an array; of an ensemble, one a member."""
        if hasattr(type(x), "reduced_by"):  # a captured array writes it down
            return x.reduced_by(self)
        flat = x.reshape(-1)
        size = math.prod(x.shape)
        # A device adds up a whole array at once faster than one block after another.
        block = max(size, 1) if is_on_device(unwrapped(x)) else sizes.BLOCK
        total = self.partial(flat[:block])
        for start in range(block, size, block):
            total = total + self.partial(flat[start : start + block])
        return self.finish(total, x.dtype)
