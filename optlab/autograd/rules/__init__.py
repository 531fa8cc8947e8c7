"""The derivative rules: one row a function, in plain NumPy.

Because a rule is plain NumPy, giving it Tensors makes it differentiable again, and giving it CuPy
arrays moves it to the GPU. How to read a row stands in `optlab.autograd.operation`.
"""

from optlab.autograd.rules import (
    elementwise,
    guarded,
    indexing,
    linear_algebra,
    reductions,
    shapes,
    special,
)

__all__ = [
    "elementwise", "guarded", "indexing", "linear_algebra", "reductions", "shapes", "special",
]  # fmt: skip
