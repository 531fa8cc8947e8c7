"""Rows of functions that join arrays and split them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import optlab as ol
from optlab.autograd.rules.manipulation.joining import (
    ARRAY_SPLIT,
    UNSTACK,
    array_split,
    unstack,
)
from optlab.autograd.tensor.tensor import apply_several
from tests.autograd.rows.table import numbers, put

# Joining ------------------------------------------------------------------------------------------

put(np.concatenate, "vectors", lambda a, b: np.concatenate([a, b]), numbers((2,)), numbers((3,)))
for axis in (0, 1, -1, None):
    put(np.concatenate, f"three, axis {axis}",
        lambda a, b, c, axis=axis: np.concatenate((a, b, c), axis=axis),
        numbers((2, 2)), numbers((2, 2), seed=1), numbers((2, 2), seed=2))  # fmt: skip
put(np.concatenate, "one twice", lambda a: np.concatenate([a, a * a]), numbers((3,)))
put(np.concatenate, "beside an array", lambda a: np.concatenate([np.ones(2), a]), numbers((3,)))
put(np.concatenate, "an empty one", lambda a, b: np.concatenate([a, b]),
    numbers((0, 2)), numbers((1, 2)))  # fmt: skip
put(np.concatenate, "unlike lengths", lambda a, b: np.concatenate([a, b], 1),
    numbers((2, 3)), numbers((2, 1)))  # fmt: skip
for shape, axis in [((), 0), ((3,), 0), ((3,), -1), ((2, 3), 1), ((2, 3), 2)]:
    put(np.stack, f"{shape} {axis}", lambda a, b, axis=axis: np.stack([a, b, a * b], axis=axis),
        numbers(shape), numbers(shape, seed=1))  # fmt: skip
put(np.stack, "beside an array", lambda a: np.stack((np.ones(3), a)), numbers((3,)))
for function in (np.vstack, np.hstack, np.dstack, np.column_stack):
    for shape in [(), (3,), (2, 3)]:
        put(function, f"{shape}", lambda a, b, f=function: f([a, b]),
            numbers(shape), numbers(shape, seed=1))  # fmt: skip
put(np.column_stack, "vector and matrix", lambda a, b: np.column_stack((a, b)),
    numbers((3,)), numbers((3, 2)))  # fmt: skip
for function, parts in product((np.split, np.array_split), (2, [1, 3], 4)):
    put(function, f"{parts}", lambda x, f=function, p=parts: f(x, p)[1] * np.sum(f(x, p)[0]),
        numbers((4, 3)))  # fmt: skip
put(np.split, "axis", lambda x: np.split(x, 3, axis=-1)[2], numbers((2, 3)))
put(np.array_split, "unequal", lambda x: np.array_split(x, 2, axis=1)[1], numbers((2, 3)))
for axis, options in product((0, -1), ({}, {"casting": "unsafe"})):
    put(np.concatenate, f"in another dtype, {axis} {options}",
        lambda a, b, axis=axis, o=options: np.concatenate((a, b), axis, dtype="float64", **o),
        numbers((2, 2)), numbers((2, 2), seed=1))  # fmt: skip
for function in (np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack):
    put(function, "one array", lambda a, f=function: f(a), numbers((3, 2, 2)))
put(np.vstack, "in another dtype", lambda a: np.vstack([a, a], dtype="float64"), numbers((2,)))
put(np.hstack, "in another dtype", lambda a: np.hstack([a, a], dtype="float64"), numbers((2,)))
put(np.concatenate, "beside a list", lambda a: np.concatenate([[1.0, 2.0], a]), numbers((3,)))
for shape, more in [((2,), (3,)), ((2, 3), (2,)), ((), (2,))]:
    put(np.append, f"{shape} {more}", np.append, numbers(shape), numbers(more, seed=1))
put(np.append, "axis", lambda a, b: np.append(a, b, axis=1), numbers((2, 1)), numbers((2, 3)))
put(np.append, "a number", lambda a: np.append(a, [1.0]), numbers((3,)))
for label, block in {
    "one": lambda a, b: np.block([a]) * b,
    "row": lambda a, b: np.block([a, b]),
    "matrix": lambda a, b: np.block([[a, b], [b, a]]),
    "unlike": lambda a, b: np.block([[a, 1.0, 2.0], [b, np.zeros(2)]]),
    "deep": lambda a, b: np.block([[[a, b]], [[b, b]]]),
}.items():
    put(np.block, label, block, numbers((2,)), numbers((2,), seed=1))
put(np.block, "of matrices", lambda a, b: np.block([[a, b], [np.ones((1, 4))]]),
    numbers((2, 3)), numbers((2, 1)))  # fmt: skip
put(np.block, "numbers", lambda a: np.block([[a, 1.0], [0.0, a]]), numbers(()))

# Splitting ----------------------------------------------------------------------------------------

for function, shape, parts in [
    (np.hsplit, (4,), 2), (np.hsplit, (2, 4), [1, 3]), (np.vsplit, (4, 2), 2),
    (np.vsplit, (4, 2), [1]), (np.dsplit, (2, 1, 4), 2), (np.dsplit, (2, 1, 4), [1, 2]),
]:  # fmt: skip
    put(function, f"{shape} {parts}",
        lambda x, f=function, p=parts: f(x, p)[0] * np.sum(f(x, p)[1] ** 2),
        numbers(shape))  # fmt: skip
for label, places in {
    "beyond the end": [2, 9], "backwards": [3, 1], "from the end": [-1], "none": [],
    "an array": np.array([1, 2]),
}.items():  # fmt: skip
    put(np.array_split, label,
        lambda x, p=places: np.concatenate([part * part for part in np.array_split(x, p)[::-1]]),
        numbers((4, 2)))  # fmt: skip
if hasattr(np, "unstack"):
    for axis in (0, 1, -1):
        put(np.unstack, f"axis {axis}",
            lambda x, axis=axis: np.unstack(x, axis=axis)[0] * np.unstack(x, axis=axis)[1],
            numbers((2, 3)))  # fmt: skip
    put(np.unstack, "numbers", lambda x: np.unstack(x)[2], numbers((3,)))


def _parts(operation: Any, forward: Any, **static: Any) -> Any:
    def call(x: Any) -> Any:
        known = isinstance(x, ol.Tensor)
        parts = apply_several(operation, (x,), static) if known else forward(x, **static)
        return parts[0] * np.sum(parts[1])

    return call


put(unstack, "axis 1", _parts(UNSTACK, unstack, axis=1), numbers((2, 3)))
put(array_split, "axis 1", _parts(ARRAY_SPLIT, array_split, bounds=(0, 1, 3), axis=1),
    numbers((2, 3)))  # fmt: skip
