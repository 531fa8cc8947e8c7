"""Rows of random operations: for a fixed key they are deterministic functions."""

from __future__ import annotations

from itertools import product
from typing import Any

from optlab.autograd.rules.random import (
    correlated_noise,
    dropout,
    products_with_noise,
    scaled_noise,
    triangular,
)
from optlab.backend.random import Key
from tests.autograd.rows.table import SHAPES, numbers, put

KEY = Key(5).fold("rows")
LAWS: list[tuple[Any, ...]] = [
    ("standard_normal",), ("random",), ("laplace", 0.0, 1.0), ("log of exponential",),
    ("log of power",),
]  # fmt: skip

for law in LAWS:
    for x_shape, shape in [((), (3,)), ((3,), (3,)), ((2, 1), (2, 3)), ((), ()), ((1,), (0, 2))]:
        put(scaled_noise, f"{law[0]} {x_shape} to {shape}",
            lambda x, law=law, shape=shape: scaled_noise(x, law, KEY, shape, x.dtype),
            numbers(x_shape))  # fmt: skip

for shape, rate in product(SHAPES, (0.0, 0.4, 1.0)):
    put(dropout, f"{shape} at {rate}", lambda x, rate=rate: dropout(x, rate, KEY), numbers(shape))
put(dropout, "not scaled", lambda x: dropout(x, 0.4, KEY, None, False), numbers((2, 3)))
put(dropout, "whole rows", lambda x: dropout(x, 0.5, KEY, (4, 1)), numbers((4, 3)))
put(dropout, "whole columns", lambda x: dropout(x, 0.5, KEY, (1, 3)), numbers((4, 3)))
put(dropout, "twice with other keys",
    lambda x: dropout(dropout(x, 0.3, KEY) * x, 0.3, KEY.fold(1)), numbers((4, 3)))  # fmt: skip

for size in [(), (4,), (2, 3)]:
    put(correlated_noise, f"{size}", lambda factor, size=size: correlated_noise(factor, KEY, size),
        numbers((2, 2)))  # fmt: skip
    put(products_with_noise, f"{size}", lambda y: products_with_noise(y, KEY), numbers((*size, 3)))

LEFT, MODE, RIGHT = numbers((3,), -2, -1), numbers((2, 1), -0.5, 0.5), numbers((), 1, 2)
put(triangular, "three arrays",
    lambda left, mode, right: triangular(left, mode, right, KEY, (2, 3), left.dtype),
    LEFT, MODE, RIGHT)  # fmt: skip
put(triangular, "over a row of draws",
    lambda left, mode, right: triangular(left, mode, right, KEY, (8,), left.dtype),
    numbers((), -2, -1), numbers((), -0.5, 0.5), numbers((), 1, 2))  # fmt: skip
put(triangular, "left alone", lambda left: triangular(left, 0.2, 1.5, KEY, (3,), left.dtype), LEFT)
put(triangular, "mode at the left end",
    lambda right: triangular(-1.0, -1.0, right, KEY, (4,), right.dtype), RIGHT)  # fmt: skip
put(triangular, "mode at the right end",
    lambda left: triangular(left, 1.0, 1.0, KEY, (3,), left.dtype), LEFT)  # fmt: skip
