"""The derivative rules: one row a function, in plain NumPy.

Because a rule is plain NumPy, giving it Tensors makes it differentiable again, and giving it CuPy
arrays moves it to the GPU. How to read a row stands in `optlab.autograd.operation`.
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
