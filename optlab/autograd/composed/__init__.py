"""Functions of NumPy written with other functions, so that they need no rule of their own."""

from optlab.autograd.composed import (
    calculus,
    elementwise,
    linear_algebra,
    reductions,
    shapes,
    statistics,
)
from optlab.autograd.composed.table import COMPOSED, composed, not_covered

__all__ = [
    "COMPOSED", "calculus", "composed", "elementwise", "linear_algebra", "not_covered",
    "reductions", "shapes", "statistics",
]  # fmt: skip
