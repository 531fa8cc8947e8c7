"""The derivative rules: one row a function, in plain NumPy.

Because a rule is plain NumPy, giving it Tensors makes it differentiable again, and giving it CuPy
arrays moves it to the GPU. How to read a row stands in `optlab.autograd.operation`.
"""

from optlab.autograd.rules import (
    decompositions,
    determinants,
    einsum,
    elementwise,
    gamma,
    indexing,
    joining,
    linear_algebra,
    norms,
    padding,
    random,
    reductions,
    shapes,
    sorting,
    spacing,
)

__all__ = [
    "decompositions", "determinants", "einsum", "elementwise", "gamma", "indexing", "joining",
    "linear_algebra", "norms", "padding", "random", "reductions", "shapes", "sorting",
    "spacing",
]  # fmt: skip
