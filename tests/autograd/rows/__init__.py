"""The table of the gradient checks: for every function, cases of arguments.

A row is a list of cases; a case is a function of arrays and the arrays to check it at, away from
kinks. `tests/autograd/test_rules.py` fails when a function of the engine has no row here.
"""

from tests.autograd.rows import (
    calculus,
    decompositions,
    devices,
    einsum,
    elementwise,
    fourier,
    indexing,
    joining,
    linear_algebra,
    norms,
    padding,
    polynomials,
    random,
    reductions,
    shapes,
    sorting,
    writes,
)
from tests.autograd.rows.elementwise import BINARY, UNARY
from tests.autograd.rows.table import ROWS, Case, distinct, numbers

__all__ = [
    "BINARY", "ROWS", "UNARY", "Case", "calculus", "decompositions", "devices", "distinct",
    "einsum", "elementwise", "fourier", "indexing", "joining", "linear_algebra", "norms",
    "numbers", "padding",
    "polynomials", "random", "reductions", "shapes", "sorting", "writes",
]  # fmt: skip
