"""Rows of functions that fold axes away."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from tests.autograd.rows.table import (
    Shape,
    distinct,
    put,
    with_static,
)

AXES: dict[Shape, list[Any]] = {
    (): [None, ()],
    (1,): [None, 0, (0,), ()],
    (4,): [None, 0, -1, (0,), ()],
    (2, 3): [None, 0, 1, -1, -2, (0, 1), (1, 0), (-1,), ()],
    (2, 1, 3): [None, 0, 1, -1, (0, 2), (0, -1), (2, 0, 1), (1,), ()],
    (1, 1): [None, 0, (0, 1)],
}

for function in (
    np.sum, np.mean, np.max, np.min, np.amax, np.amin, np.prod, np.var, np.std,
):  # fmt: skip
    for shape, axes in AXES.items():
        for axis, keepdims in product(axes, (False, True)):
            x = distinct(shape)
            folded = x.size / np.asarray(np.sum(x, axis=axis)).size
            if function is np.std and folded == 1:
                continue  # the square root of 0 is a kink
            static = {"axis": axis, "keepdims": keepdims}
            put(function, f"{shape} {static}", with_static(function, **static), x)
            if function in (np.var, np.std) and folded > 1:
                put(function, f"{shape} ddof {static}", with_static(function, ddof=1, **static), x)
    put(function, "whole array", function, distinct((3, 2)))
    put(function, "axis by position", lambda x, f=function: f(x, 1), distinct((3, 2)))
for function in (np.sum, np.mean):
    put(function, "nothing to add", lambda x, f=function: f(x, axis=1), np.zeros((0, 2)))

for shape, axes in AXES.items():
    for axis in axes:
        if not isinstance(axis, tuple):
            put(np.cumsum, f"{shape} {axis}", with_static(np.cumsum, axis=axis), distinct(shape))
