"""Rows of functions that move, index, join and split."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from optlab.autograd.in_place import assign
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.indexing import getitem, scatter
from optlab.autograd.rules.shapes import cast
from optlab.autograd.sparse import take_rows
from optlab.autograd.tensor import apply
from tests.autograd.rows.table import (
    SHAPES,
    numbers,
    put,
)

# Functions that move elements ---------------------------------------------------------------------

for function, calls in {
    np.reshape: [((2, 3), (3, 2)), ((2, 3), (-1,)), ((2, 3), 6), ((1,), ()), ((), (1, 1)),
                 ((2, 3), (1, -1, 2)), ((6,), [2, 3])],
    np.squeeze: [((2, 1, 3),), ((2, 1, 3), 1), ((1, 2, 1), (0, -1)), ((2, 3),), ((1,),), ((),)],
    np.expand_dims: [((2, 3), 0), ((2, 3), -1), ((2, 3), (0, 3)), ((), 0)],
    np.ravel: [((2, 3),), ((),), ((3,),)],
    np.transpose: [((2, 3),), ((2, 1, 3), (1, 2, 0)), ((2, 1, 3), (-1, 0, 1)), ((3,),), ((),),
                   ((2, 3, 4), [2, 0, 1])],
    np.swapaxes: [((2, 3), 0, 1), ((2, 1, 3), -1, 0), ((2, 3), 1, 1)],
    np.moveaxis: [((2, 1, 3), 0, -1), ((2, 1, 3), (0, 1), (-1, 0)), ((2, 3), 1, 0),
                  ((2, 3, 4), [2, 0], [0, 1])],
    np.flip: [((2, 3),), ((2, 3), 0), ((2, 3), (0, -1)), ((3,), 0), ((),)],
    np.roll: [((2, 3), 1), ((2, 3), -2, 1), ((2, 3), (1, 2), (0, 1)), ((4,), 5),
              ((2, 3), 1, (0, 1))],
    np.broadcast_to: [((3,), (2, 3)), ((), (2, 3)), ((2, 1), (4, 2, 3)), ((2, 3), (2, 3)),
                      ((1, 1), (1, 4)), ((1,), 3)],
    np.atleast_1d: [((),), ((3,),), ((2, 3),)],
    np.atleast_2d: [((),), ((3,),), ((2, 3),), ((2, 1, 3),)],
}.items():  # fmt: skip
    for shape, *rest in calls:
        put(function, f"{shape} {rest}", lambda x, f=function, r=tuple(rest): f(x, *r),
            numbers(shape))  # fmt: skip

INDICES: list[tuple[str, Any]] = [
    ("one", 1), ("from the end", -1), ("one number", (1, 2)), ("slice", slice(1, None)),
    ("backwards", slice(None, None, -2)), ("dots", (Ellipsis, 0)), ("new axis", (None, 1)),
    ("row twice", [1, 0, 1]), ("array", np.array([[0, 2], [2, 2]])), ("none", []),
    ("mask", numbers((3, 4)) > 0), ("mask of rows", np.array([True, False, True])),
    ("points", (np.array([0, 1, 1, 0]), np.array([3, 2, 2, 3]))),
    ("slice and list", (slice(None, 2), [0, 0, 3])), ("0-d array", np.array(2)),
    ("NumPy integer", np.int64(2)), ("everything", ()),
]  # fmt: skip
for label, index in INDICES:
    put(getitem, label, lambda x, index=index: x[index], numbers((3, 4)))
put(getitem, "of a vector", lambda x: x[2], numbers((3,)))
put(getitem, "the only number", lambda x: x[()], numbers(()))


def _scatter(x: Any, index: Any) -> Any:
    if isinstance(x, np.ndarray):
        return scatter(x, index, (3, 4))
    return apply(TABLE[scatter], (x,), {"index": index, "shape": (3, 4)})


for sparse in (False, True):
    for rows in (np.array([2, 0, 2]), np.array([[1], [1]]), np.array([], int), np.array(1)):
        put(take_rows, f"{rows.tolist()} sparse={sparse}",
            lambda x, rows=rows, sparse=sparse: _take_rows(x, rows, sparse),
            numbers((3, 4)))  # fmt: skip


def _take_rows(x: Any, rows: Any, sparse: bool) -> Any:
    if isinstance(x, np.ndarray):
        return take_rows(x, rows)
    return apply(TABLE[take_rows], (x,), {"rows": rows, "sparse": sparse})


def _assign(x: Any, value: Any, index: Any) -> Any:
    if isinstance(x, np.ndarray):
        return assign(x, value, index)
    return apply(TABLE[assign], (x, value), {"index": index})


for label, index in INDICES:
    part = np.zeros((3, 4))[index]
    put(scatter, label, lambda x, index=index: _scatter(x, index), numbers(np.shape(part)))

for label, index in INDICES:
    part = np.zeros((3, 4))[index]
    put(assign, label,
        lambda x, value, index=index: _assign(x, value, index),
        numbers((3, 4)), numbers(np.shape(part), seed=1))  # fmt: skip

for shape in SHAPES:
    put(cast, f"{shape}", lambda x: x.astype("float64") * 2.0, numbers(shape))


# Joining and splitting ----------------------------------------------------------------------------

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
for function in (np.vstack, np.hstack, np.column_stack):
    for shape in [(), (3,), (2, 3)] if function is not np.column_stack else [(3,), (2, 3)]:
        put(function, f"{shape}", lambda a, b, f=function: f([a, b]),
            numbers(shape), numbers(shape, seed=1))  # fmt: skip
put(np.column_stack, "vector and matrix", lambda a, b: np.column_stack((a, b)),
    numbers((3,)), numbers((3, 2)))  # fmt: skip
for function, parts in product((np.split, np.array_split), (2, [1, 3], 4)):
    put(function, f"{parts}", lambda x, f=function, p=parts: f(x, p)[1] * np.sum(f(x, p)[0]),
        numbers((4, 3)))  # fmt: skip
put(np.split, "axis", lambda x: np.split(x, 3, axis=-1)[2], numbers((2, 3)))
put(np.array_split, "unequal", lambda x: np.array_split(x, 2, axis=1)[1], numbers((2, 3)))
