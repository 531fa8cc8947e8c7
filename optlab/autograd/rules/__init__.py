"""The derivative rules: one row a function, in plain NumPy.

Because a rule is plain NumPy, giving it Tensors makes it differentiable again, and giving it CuPy
arrays moves it to the GPU. How to read a row stands in `optlab.autograd.operation`.
"""

from optlab.autograd.rules import elementwise, indexing, linear_algebra, random, reductions, shapes

__all__ = ["elementwise", "indexing", "linear_algebra", "random", "reductions", "shapes"]
