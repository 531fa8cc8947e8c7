"""Norms of whole parameters, for rules that scale their step by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.plan.reductions import Reduction, sum_of_squares


def _root(total: Any, dtype: Any) -> Any:
    return np.sqrt(total).astype(dtype)


#: The Euclidean norm of an array, summed in float64, as a number of the array's dtype; one number
#: per member of an ensemble. It stays on the device of the array, so nothing is synchronized.
norm = Reduction(sum_of_squares, _root, "norm")


def quotient_or_one(a: Any, b: Any) -> Any:
    """Return a / b where both are greater than 0, else 1, in their dtype.

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
