"""Derivative rules (vector-Jacobian products), one ``rule(...)`` call a function, in plain NumPy.

A rule in plain NumPy is differentiable again when called with Tensors, and runs on the GPU when
called with CuPy arrays. `optlab.autograd.operation` defines the format of a rule.
"""

from optlab.autograd.rules import (
    calculus,
    cumulative,
    decompositions,
    determinants,
    devices,
    einsum,
    elementwise,
    embedding,
    gamma,
    guarded,
    indexing,
    joining,
    linear_algebra,
    norms,
    order_statistics,
    padding,
    products,
    random,
    recurrence,
    reductions,
    shapes,
    sorting,
    spacing,
    special,
)

__all__ = [
    "calculus", "cumulative", "decompositions", "determinants", "devices", "einsum",
    "elementwise", "embedding", "gamma", "guarded", "indexing", "joining", "linear_algebra",
    "norms", "order_statistics", "padding", "products", "random", "recurrence", "reductions",
    "shapes", "sorting", "spacing", "special",
]  # fmt: skip
