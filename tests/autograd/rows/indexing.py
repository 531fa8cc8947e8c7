"""Rows of functions that pick elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from optlab.autograd.operation import TABLE
from optlab.autograd.rules.manipulation.embedding import take_rows
from optlab.autograd.rules.manipulation.indexing import getitem, scatter
from optlab.autograd.tensor.in_place import assign
from optlab.autograd.tensor.tensor import apply
from tests.autograd.rows.table import numbers, put

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


def _scatter(x: Any, index: Any, shape: Any = (3, 4)) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        return scatter(x, index, shape)
    return apply(TABLE[scatter], (x,), {"index": index, "shape": shape})


for label, index in INDICES:
    part = np.zeros((3, 4))[index]
    put(scatter, label, lambda x, index=index: _scatter(x, index), numbers(np.shape(part)))


def _assign(x: Any, value: Any, index: Any) -> Any:
    if isinstance(x, np.ndarray):
        return assign(x, value, index)
    return apply(TABLE[assign], (x, value), {"index": index})


for label, index in INDICES:
    part = np.zeros((3, 4))[index]
    put(assign, label, lambda x, value, index=index: _assign(x, value, index),
        numbers((3, 4)), numbers(np.shape(part), seed=1))  # fmt: skip


def _take_rows(x: Any, rows: Any, sparse: bool) -> Any:
    if isinstance(x, np.ndarray):
        return take_rows(x, rows)
    return apply(TABLE[take_rows], (x,), {"rows": rows, "sparse": sparse})


for sparse in (False, True):
    for rows in (np.array([2, 0, 2]), np.array([[1], [1]]), np.array([], int), np.array(1)):
        put(take_rows, f"{rows.tolist()} sparse={sparse}",
            lambda x, rows=rows, sparse=sparse: _take_rows(x, rows, sparse),
            numbers((3, 4)))  # fmt: skip

# Three axes: separated advanced indices put their axes first.
ROWS_TWICE = np.array([1, 0, 1])
for label, index in {
    "apart": (ROWS_TWICE, slice(None), ROWS_TWICE),
    "together": (slice(None), ROWS_TWICE, ROWS_TWICE),
    "a number apart": (0, slice(None), ROWS_TWICE), "broadcast": (ROWS_TWICE[:, None], ROWS_TWICE),
    "dots and array": (Ellipsis, ROWS_TWICE), "array and dots": (ROWS_TWICE, Ellipsis),
    "new axis and array": (None, ROWS_TWICE), "new axis between": (ROWS_TWICE, None, ROWS_TWICE),
    "mask and array": (np.array([True, True]), [0, 0]), "mask of two axes": numbers((2, 3)) > 0,
    "mask and slice": (np.array([True, False]), slice(1, None)), "true": True, "false": False,
    "0-d mask": np.array(True), "mask in the middle": (slice(None), np.array([True, False, True])),
    "slice, array, slice": (slice(None, None, -1), [2, 2], slice(1, 3)),
    "negative": (-1, [-1, -3], Ellipsis), "dots between": (0, Ellipsis, [1, 1]),
    "new axes": (None, Ellipsis, None), "a list of a mask": [True, False],
}.items():  # fmt: skip
    put(getitem, f"3 axes, {label}", lambda x, index=index: x[index], numbers((2, 3, 2)))
    part = np.zeros((2, 3, 2))[index]
    put(scatter, f"3 axes, {label}", lambda x, index=index: _scatter(x, index, (2, 3, 2)),
        numbers(np.shape(part)))  # fmt: skip

for label, rest in {
    "one": (1,), "flat": ([0, 5, 5, 2],), "shape": ([[0, 1], [1, 0]],), "axis": ([1, 1, 0], 0),
    "last axis": ([2, 0], -1), "one on an axis": (1, 1), "mask is numbers": ([True, False], 0),
    "wrap": ([-1, 7, 3], 1, None, "wrap"), "clip": ([-1, 7, 1], 1, None, "clip"),
    "none": ([], 0), "array": (np.array([[2], [0]]), 1),
}.items():  # fmt: skip
    put(np.take, label, lambda x, r=rest: np.take(x, *r), numbers((2, 3)))
put(np.take, "method", lambda x: x.take([0, 0, 1], axis=1, mode="wrap"), numbers((2, 3)))
for label, indices, axis in [
    ("last", [[0, 0], [2, 1]], -1), ("first", [[0, 1, 1], [1, 1, 0], [0, 0, 0]], 0),
    ("broadcast", [[2, 0]], 1), ("flat", [5, 0, 0], None), ("broadcast below", [[1], [0]], 0),
]:  # fmt: skip
    put(np.take_along_axis, label,
        lambda x, i=indices, axis=axis: np.take_along_axis(x, np.array(i), axis),
        numbers((2, 3)))  # fmt: skip
put(np.take_along_axis, "argsort",
    lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0), numbers((4, 3)))  # fmt: skip
for axis, condition in [
    (None, [True, False, True, True]),
    (0, [False, True]),
    (1, [1, 0]),
    (-1, [1]),
]:
    put(np.compress, f"axis {axis}",
        lambda x, c=condition, axis=axis: np.compress(c, x, axis), numbers((2, 3)))  # fmt: skip
put(np.compress, "method", lambda x: x.compress([False, True], axis=1), numbers((2, 3)))
put(np.extract, "positive", lambda x: np.extract(x > 0, x), numbers((2, 3)))
put(np.extract, "shorter", lambda x: np.extract([[1, 0, 1]], x), numbers((2, 3)))
WHICH = np.array([[0, 2, 1], [2, 2, 0]])
for label, mode in [("raise", "raise"), ("wrap", "wrap"), ("clip", "clip")]:
    put(np.choose, label,
        lambda a, b, c, mode=mode, off=0 if mode == "raise" else 2: np.choose(
            WHICH - off, [a, b, c], mode=mode
        ),
        numbers((2, 3)), numbers((3,), seed=1), numbers((), seed=2))  # fmt: skip
put(np.choose, "one choice broadcast", lambda a: np.choose(0, [a]), numbers((2,)))
put(np.choose, "beside numbers", lambda a: np.choose([0, 1], [a, 3.0]), numbers((2,)))
put(np.choose, "of one array", lambda a: np.choose([0, 1, 0], a), numbers((2, 3)))
put(np.select, "two", lambda a, b: np.select([a > 0.5, a > -0.5], [a * a, b], -1.0),
    numbers((2, 3)), numbers((3,), seed=1))  # fmt: skip
put(np.select, "default", lambda a, b: np.select([a > 0.5], [a * a], default=b),
    numbers((2, 3)), numbers((2, 3), seed=1))  # fmt: skip
put(np.select, "condition broadcast",
    lambda a: np.select([np.array([[True], [False]]), np.array([True, False, False])], [a, 2 * a]),
    numbers((3,)))  # fmt: skip
put(np.select, "numbers", lambda a: np.select([np.array([True, False])], [a], 1), numbers(()))

# Diagonals ----------------------------------------------------------------------------------------

for shape, rest in [
    ((3, 3), ()), ((2, 4), (1,)), ((2, 4), (-1,)), ((4, 2), (-2,)), ((2, 3), (5,)),
    ((2, 3, 4), ()), ((2, 3, 4), (1, 2, 0)), ((2, 3, 4), (0, -1, -2)), ((2, 2, 2, 3), (-1, 1, 3)),
]:  # fmt: skip
    put(np.diagonal, f"{shape} {rest}", lambda x, r=rest: np.diagonal(x, *r), numbers(shape))
for shape, k in [((3,), 0), ((3,), 1), ((3,), -2), ((0,), 1), ((3, 3), 0), ((2, 4), 1)]:
    put(np.diag, f"{shape} {k}", lambda x, k=k: np.diag(x, k), numbers(shape))
for shape, k in [((3,), 0), ((2, 2), 1), ((), -1)]:
    put(np.diagflat, f"{shape} {k}", lambda x, k=k: np.diagflat(x, k), numbers(shape))

for shape, window, axis in [
    ((5,), 2, None), ((5,), (3,), 0), ((3, 4), (2, 3), None), ((3, 4), 2, -1),
    ((3, 4), (2, 2), (1, 0)), ((6,), (2, 3), (0, 0)),
]:  # fmt: skip
    put(sliding_window_view, f"{shape} {window} {axis}",
        lambda x, w=window, axis=axis: sliding_window_view(x, w, axis), numbers(shape))  # fmt: skip

# Leaving out and putting in -----------------------------------------------------------------------

for label, obj, axis in [
    ("one", 1, None), ("last", -1, 1), ("list", [0, 2], 1), ("slice", slice(0, 3, 2), 1),
    ("mask", np.array([True, False]), 0), ("twice", [1, 1], -1), ("none", [], 0),
]:  # fmt: skip
    put(np.delete, label, lambda x, o=obj, axis=axis: np.delete(x, o, axis), numbers((2, 3)))
for label, obj, shape, axis in [
    ("one", 1, (), None), ("several at one place", 2, (3,), None), ("row", 1, (3,), 0),
    ("column", 0, (2,), 1), ("columns", -1, (2, 2), 1), ("at places", [0, 2], (2, 2), 1),
    ("a number at places", [0, 2, 2], (), 1), ("unsorted", [3, 0], (2,), None),
    ("slice", slice(0, 2), (2, 1), 1), ("mask", np.array([True, False, True]), (2, 1), 1),
    ("at a list of one", [1], (2, 2), 1), ("at the end", 6, (), None),
]:  # fmt: skip
    put(np.insert, label, lambda x, v, o=obj, axis=axis: np.insert(x, o, v, axis),
        numbers((2, 3)), numbers(shape, seed=1))  # fmt: skip
put(np.insert, "a number", lambda x: np.insert(x, 1, 5), numbers((3,)))
put(np.insert, "into an array", lambda v: np.insert(np.ones(3, v.dtype), 1, v), numbers((2,)))
PADDING = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 0.0])
for label, rest in {"both": (), "front": ("f",), "back": ("b",), "upper case": ("FB",)}.items():
    put(np.trim_zeros, label, lambda x, r=rest: np.trim_zeros(x * PADDING, *r), numbers((6,), 1))
put(np.trim_zeros, "nothing left", lambda x: np.trim_zeros(x * 0.0), numbers((3,)))
