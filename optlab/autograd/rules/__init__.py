"""Derivative rules (vector-Jacobian products), one ``rule(...)`` call a function, in plain NumPy.

A rule in plain NumPy is differentiable again when called with Tensors, and runs on the GPU when
called with CuPy arrays. `optlab.autograd.operation` defines the format of a rule.
"""

from optlab.autograd.rules import (
    calculus,
    elementwise,
    fourier,
    gamma,
    guarded,
    random,
    scipy_special,
    special,
)
from optlab.autograd.rules.linalg import decompositions, determinants, einsum, linear_algebra, norms
from optlab.autograd.rules.manipulation import (
    embedding,
    indexing,
    joining,
    padding,
    shapes,
    sorting,
    spacing,
)
from optlab.autograd.rules.reductions import (
    aggregates,
    cumulative,
    order_statistics,
    products,
    recurrence,
)

__all__ = [
    "aggregates", "calculus", "cumulative", "decompositions", "determinants", "einsum",
    "elementwise", "embedding", "fourier", "gamma", "guarded", "indexing", "joining",
    "linear_algebra", "norms", "order_statistics", "padding", "products", "random", "recurrence",
    "scipy_special", "shapes", "sorting", "spacing", "special",
]  # fmt: skip
