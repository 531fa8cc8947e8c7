"""The derivative rules: one row a function, in plain NumPy.

Because a rule is plain NumPy, giving it Tensors makes it differentiable again, and giving it CuPy
arrays moves it to the GPU. How to read a row stands in `optlab.autograd.operation`.
"""

from optlab.autograd.rules import (
    calculus,
    cumulative,
    elementwise,
    folding,
    indexing,
    linear_algebra,
    order_statistics,
    products,
    recurrence,
    reductions,
    shapes,
)

__all__ = [
    "calculus", "cumulative", "elementwise", "folding", "indexing", "linear_algebra",
    "order_statistics", "products", "recurrence", "reductions", "shapes",
]  # fmt: skip
