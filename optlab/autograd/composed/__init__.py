"""Functions of NumPy written with other functions, so that they need no rule of their own."""

from optlab.autograd.composed import (
    decompositions,
    einsum,
    elementwise,
    linear_algebra,
    norms,
    reductions,
    shapes,
)
from optlab.autograd.composed.table import COMPOSED, composed, not_covered

__all__ = [
    "COMPOSED", "composed", "decompositions", "einsum", "elementwise", "linear_algebra", "norms",
    "not_covered", "reductions", "shapes",
]  # fmt: skip
