"""The table of the gradient checks: for every function, how to call it and where.

A row is a list of cases; a case is a function of arrays and the arrays to check it at, away from
kinks. `tests/autograd/test_rules.py` fails when a function of the engine has no row here.
"""

from tests.autograd.rows import calculus, elementwise, linear_algebra, reductions, shapes
from tests.autograd.rows.elementwise import BINARY, UNARY
from tests.autograd.rows.table import ROWS, Case, distinct, numbers

__all__ = [
    "BINARY", "ROWS", "UNARY", "Case", "calculus", "distinct", "elementwise", "linear_algebra",
    "numbers", "reductions", "shapes",
]  # fmt: skip
