"""Rows of norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation
from optlab.autograd.rules.linalg.norms import (
    euclidean_norm,
    nuclear_norm,
    number_of_nonzeros,
    polar,
    power_norm,
)
from tests.autograd.rows.table import Shape, distinct, numbers, put, with_static

NORMS: list[tuple[Shape, dict[str, Any]]] = [
    ((3,), {}), ((), {}), ((1,), {}), ((2, 3), {}), ((2, 3), {"axis": 0}), ((2, 3), {"axis": -1}),
    ((2, 3), {"axis": 1, "keepdims": True}), ((2, 3, 2), {"axis": (0, 2)}), ((2, 3, 2), {}),
    ((2, 3), {"keepdims": True}), ((3,), {"ord": 2}), ((2, 3), {"ord": 2, "axis": 1}),
    ((2, 3), {"ord": "fro"}), ((2, 3), {"ord": "f", "axis": (1, 0)}), ((2, 3), {"axis": (1,)}),
]  # fmt: skip
for ord in (np.inf, -np.inf, 0, 1, -1, 2, -2, 3, 2.5, 1.5, 0.5, -3.0):
    NORMS += [((4,), {"ord": ord}), ((2, 3), {"ord": ord, "axis": 0, "keepdims": True})]
    NORMS += [((2, 3, 2), {"ord": ord, "axis": -2})]
for ord in (np.inf, -np.inf, 1, -1, 2, -2, "nuc", "fro"):
    NORMS += [((2, 3), {"ord": ord}), ((3, 3), {"ord": ord, "keepdims": True})]
    NORMS += [((2, 3, 4), {"ord": ord, "axis": (2, 0)})]
    NORMS += [((2, 3, 4), {"ord": ord, "axis": (0, 1), "keepdims": True})]
for shape, options in NORMS:
    x = distinct(shape) + 0.1 * numbers(shape, 0, 1)  # so that no two columns tie
    put(np.linalg.norm, f"{shape} {options}", with_static(np.linalg.norm, **options), x)
put(np.linalg.norm, "by position", lambda x: np.linalg.norm(x, 1, 0, True), distinct((2, 3)))

for shape, options in [
    ((3,), {}), ((), {}), ((2, 3), {}), ((2, 3), {"keepdims": True}), ((2, 3), {"axis": 0}),
    ((2, 3, 2), {"axis": (0, 2), "ord": 3}), ((2, 3, 2), {"axis": (2, 0), "ord": 1}),
    ((2, 3, 2), {"axis": (-1, 0, 1), "ord": np.inf, "keepdims": True}), ((2, 3), {"ord": -1}),
    ((2, 3), {"ord": 0}), ((2, 3), {"ord": -np.inf, "axis": -1}),
]:  # fmt: skip
    function = with_static(np.linalg.vector_norm, **options)
    put(np.linalg.vector_norm, f"{shape} {options}", function, distinct(shape))
for shape, options in [
    ((2, 3), {}), ((2, 3, 2), {"ord": "nuc"}), ((2, 3, 2), {"ord": 2, "keepdims": True}),
    ((2, 3, 2), {"ord": 1}), ((2, 3, 2), {"ord": -np.inf, "keepdims": True}),
]:  # fmt: skip
    function = with_static(np.linalg.matrix_norm, **options)
    put(np.linalg.matrix_norm, f"{shape} {options}", function, distinct(shape))

put(euclidean_norm, "(3,)", lambda x: as_single_operation(euclidean_norm, x), numbers((3,), 0.5, 2))
put(
    power_norm, "(3,)", lambda x: as_single_operation(power_norm, x, power=3), numbers((3,), 0.5, 2)
)
put(
    number_of_nonzeros, "(3,)", lambda x: as_single_operation(number_of_nonzeros, x), distinct((3,))
)
for shape in [(3, 3), (3, 2), (2, 3), (2, 2, 2)]:
    put(nuclear_norm, f"{shape}", lambda x: as_single_operation(nuclear_norm, x), distinct(shape))
    put(polar, f"{shape}", lambda x: as_single_operation(polar, x), distinct(shape))
put(
    nuclear_norm,
    "equal singular values",
    lambda x: as_single_operation(nuclear_norm, x),
    np.eye(3, 2),
)
