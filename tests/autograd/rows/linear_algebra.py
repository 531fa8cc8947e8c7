"""Rows of products of matrices and vectors, and of norms."""

from __future__ import annotations

import numpy as np

from optlab.autograd.rules.reductions import euclidean_norm
from tests.autograd.rows.table import (
    Shape,
    numbers,
    put,
    with_left,
    with_right,
)

# Products of matrices and vectors -----------------------------------------------------------------

PRODUCTS: list[tuple[Shape, Shape]] = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 3), (3, 1)),
]  # fmt: skip
BATCHED: list[tuple[Shape, Shape]] = [
    ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (2, 3, 1)), ((0, 3), (3, 2)),
    ((1, 1), (1, 1)),
]  # fmt: skip
for a_shape, b_shape in PRODUCTS + BATCHED:
    a, b = numbers(a_shape), numbers(b_shape, seed=1)
    put(np.matmul, f"{a_shape} {b_shape}", np.matmul, a, b)
    put(np.matmul, f"{a_shape} array right", with_right(np.matmul, b), a)
    put(np.matmul, f"{b_shape} array left", with_left(np.matmul, a), b)
for a_shape, b_shape in [*PRODUCTS, ((), ()), ((), (3,)), ((2, 3), ()), ((5, 2, 3), (3,)),
                         ((5, 2, 3), (3, 4))]:  # fmt: skip
    a, b = numbers(a_shape), numbers(b_shape, seed=1)
    put(np.dot, f"{a_shape} {b_shape}", np.dot, a, b)
    put(np.dot, f"{a_shape} array right", with_right(np.dot, b), a)
for a_shape, b_shape in [((2,), (3,)), ((), (3,)), ((2, 2), (3,)), ((1,), (1,))]:
    put(np.outer, f"{a_shape} {b_shape}", np.outer, numbers(a_shape), numbers(b_shape, seed=1))


# Norms --------------------------------------------------------------------------------------------

for shape, options in [
    ((3,), {}), ((), {}), ((1,), {}), ((2, 3), {}), ((2, 3), {"axis": 0}), ((2, 3), {"axis": -1}),
    ((2, 3), {"axis": 1, "keepdims": True}), ((2, 3, 2), {"axis": (0, 2)}),
    ((3,), {"ord": 2}), ((2, 3), {"ord": 2, "axis": 1}), ((2, 3), {"ord": "fro"}),
]:  # fmt: skip
    put(
        np.linalg.norm,
        f"{shape} {options}",
        lambda x, options=options: np.linalg.norm(x, **options),
        numbers(shape, 0.5, 2),
    )
put(euclidean_norm, "(3,)", lambda x: np.linalg.norm(x), numbers((3,), 0.5, 2))
put(np.copy, "(2, 3)", np.copy, numbers((2, 3), -1, 1))
put(np.astype, "(2,)", lambda x: np.astype(x, x.dtype), numbers((2,), -1, 1))
