"""Adding up numbers so that their order does not matter."""

from __future__ import annotations

import math
from collections.abc import Iterable


def exact_sum(numbers: Iterable[float]) -> float:
    """Add floats as if with infinite precision, and round once: the same in whatever order.

    Examples
    --------
    >>> exact_sum([1e16, 1.0, -1e16]), sum([1e16, 1.0, -1e16])
    (1.0, 0.0)
    >>> exact_sum([math.inf, 1.0])
    inf
    """
    numbers = [float(number) for number in numbers]
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # beyond float64, or infinities of both signs
        return sum(sorted(numbers))
