"""NumPy functions composed of other functions, so that they need no derivative rule."""

from optlab.autograd.composed import (
    calculus,
    decompositions,
    einsum,
    elementwise,
    fourier,
    indexing,
    joining,
    linear_algebra,
    norms,
    padding,
    piecewise,
    polynomials,
    reductions,
    shapes,
    sorting,
    spacing,
    statistics,
    writes,
)
from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.operation import COMPOSED

__all__ = [
    "COMPOSED", "calculus", "composed", "decompositions", "einsum", "elementwise", "fourier",
    "indexing", "joining", "linear_algebra", "norms", "not_covered", "padding", "piecewise",
    "polynomials", "reductions", "shapes", "sorting", "spacing", "statistics",
    "writes",
]  # fmt: skip
