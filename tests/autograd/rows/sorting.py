"""Rows of functions that sort and count elements, and of evenly spaced numbers."""

from __future__ import annotations

import numpy as np

from optlab.autograd.rules.manipulation.sorting import HISTOGRAM, weights_in_bins
from optlab.autograd.tensor.tensor import apply
from tests.autograd.rows.table import distinct, numbers, put

for shape, options in [
    ((4,), {}), ((3, 4), {}), ((3, 4), {"axis": 0}), ((2, 3, 2), {"axis": -2}), ((1,), {}),
    ((3, 4), {"axis": None}), ((3, 4), {"kind": "stable"}), ((3, 4), {"kind": "heapsort"}),
    ((3, 4), {"stable": True}), ((3, 4), {"stable": False, "axis": 0}), ((0, 2), {}), ((20,), {}),
]:  # fmt: skip
    put(np.sort, f"{shape} {options}", lambda x, o=options: np.sort(x, **o), distinct(shape))
for shape, kth, options in [
    ((5,), 2, {}), ((5,), -1, {}), ((5,), (1, 3), {}), ((3, 4), 1, {"axis": 0}),
    ((3, 4), 5, {"axis": None}), ((40,), 7, {}), ((3, 4), 2, {"kind": "introselect"}),
]:  # fmt: skip
    put(np.partition, f"{shape} {kth} {options}",
        lambda x, kth=kth, o=options: np.partition(x, kth, **o), distinct(shape))  # fmt: skip

TWICE = np.array([2, 0, 2, 1])
put(np.unique, "values", lambda x: np.unique(x[TWICE]), distinct((3,)))
put(np.unique, "of two axes", np.unique, distinct((2, 3)))
put(np.unique, "rows", lambda x: np.unique(x[TWICE], axis=0), distinct((3, 2)))
put(np.unique, "counts", lambda x: (lambda u, n: u * n)(*np.unique(x[TWICE], return_counts=True)),
    distinct((3,)))  # fmt: skip
put(np.unique, "all", lambda x: (lambda u, i, j, n: u[j] * n[j] + i[j])(
        *np.unique(x[TWICE], True, True, True)), distinct((3,)))  # fmt: skip
put(np.unique_values, "twice", lambda x: np.unique_values(x[TWICE]), distinct((3,)))
put(np.unique_all, "twice", lambda x: np.unique_all(x[TWICE]).values, distinct((3,)))
put(np.unique_counts, "twice",
    lambda x: (lambda found: found.values * found.counts)(np.unique_counts(x[TWICE])),
    distinct((3,)))  # fmt: skip
put(np.unique_inverse, "twice", lambda x: np.unique_inverse(x[TWICE])[0], distinct((3,)))
put(np.union1d, "overlapping", lambda a, b: np.union1d(a[:2], b), distinct((4,)), distinct((3,)))

# Sums over bins -----------------------------------------------------------------------------------

for label, options in {"few": {}, "at least": {"minlength": 6}}.items():
    put(np.bincount, label,
        lambda w, o=options: np.bincount([1, 3, 1, 0], weights=w, **o), numbers((4,)))  # fmt: skip
NUMBERS = np.array([0.0, 1.0, 2.5, 2.5, 4.0, 9.0])
for label, options in {
    "bins": {"bins": 4}, "edges": {"bins": [0.0, 1.0, 2.5, 4.0]}, "range": {"range": (1.0, 4.0)},
    "default": {}, "unequal": {"bins": [0.5, 3.0, 3.5, 9.0]},
}.items():  # fmt: skip
    put(np.histogram, label,
        lambda w, o=options: np.histogram(NUMBERS, weights=w, **o)[0], numbers((6,)))  # fmt: skip
put(weights_in_bins, "edges", lambda w: weights_in_bins(w, NUMBERS, EDGES)
    if isinstance(w, np.ndarray)
    else apply(HISTOGRAM, (w,), {"numbers": NUMBERS, "edges": EDGES}), numbers((6,)))  # fmt: skip
EDGES = np.array([0.0, 2.5, 4.0])

# Evenly spaced numbers ----------------------------------------------------------------------------

for function, (low, high) in {
    np.linspace: (-2.0, 2.0), np.logspace: (-1.0, 1.0), np.geomspace: (0.5, 3.0),
}.items():  # fmt: skip
    for shapes, options in [
        (((), ()), {}), (((), ()), {"num": 5, "endpoint": False}), (((), ()), {"num": 1}),
        (((), ()), {"num": 0}), (((2,), (2,)), {"num": 4}),
        (((2, 1), (3,)), {"num": 4, "axis": -1}), (((2,), ()), {"num": 3, "axis": 1}),
        (((), ()), {"num": 3, "dtype": "float64"}),
    ]:  # fmt: skip
        put(function, f"{shapes} {options}", lambda a, b, f=function, o=options: f(a, b, **o),
            numbers(shapes[0], low, high), numbers(shapes[1], low, high, seed=1))  # fmt: skip
    put(function, "from a number", lambda b, f=function: f(1.0, b, 4), numbers((), low, high))
    put(function, "to a number", lambda a, f=function: f(a, 1, 4), numbers((), low, high))
put(np.linspace, "with its step",
    lambda a, b: (lambda x, step: x * step)(*np.linspace(a, b, 4, retstep=True)),
    numbers(()), numbers((), seed=1))  # fmt: skip
put(np.geomspace, "negative", lambda a, b: np.geomspace(-a, -b, 4),
    numbers((), 1.0, 2.0), numbers((), 3.0, 4.0))  # fmt: skip
put(np.logspace, "base", lambda a, b: np.logspace(a, 2.0, 3, base=b),
    numbers(()), numbers((2,), 1.0, 3.0))  # fmt: skip
put(np.logspace, "base 2", lambda a: np.logspace(a, 2.0, 3, base=2), numbers(()))

# User functions on parts of an array --------------------------------------------------------------

for label, function, axis, shape in [
    ("to a number", lambda x: np.sum(x * x), 0, (3, 2)), ("same", lambda x: x * x[0], 1, (2, 3)),
    ("matrix", lambda x: np.outer(x, x), -2, (2, 2, 3)), ("vector", lambda x: x[0] ** 2, 0, (3,)),
]:  # fmt: skip
    put(np.apply_along_axis, label,
        lambda x, f=function, axis=axis: np.apply_along_axis(f, axis, x),
        numbers(shape))  # fmt: skip
put(np.apply_along_axis, "arguments",
    lambda x: np.apply_along_axis(lambda x, b, c: x * b + c, 0, x, 2.0, c=3.0),
    numbers((2, 2)))  # fmt: skip
for axes in (0, [0, -1], (1,)):
    put(np.apply_over_axes, f"{axes}", lambda x, axes=axes: np.apply_over_axes(np.sum, x, axes),
        numbers((2, 3, 2)))  # fmt: skip
put(
    np.apply_over_axes,
    "same shape",
    lambda x: np.apply_over_axes(np.cumsum, x, [0]),
    numbers((2, 3)),
)
for label, conditions, functions in [
    ("two", lambda x: [x < 0, x >= 0], [lambda x: x * x, np.exp]),
    ("and the rest", lambda x: [x < -1, x > 1], [-1.0, lambda x: 3 * x, np.sin]),
    ("overlapping", lambda x: [x < 1, x < 0], [np.exp, np.sin]),
    ("one condition", lambda x: x > 0, [np.exp, 0]),
    ("never", lambda x: [x > 99], [np.exp, np.sin]),
    ("to a number", lambda x: [x > 0], [np.sum, np.sin]),
]:  # fmt: skip
    for shape in [(5,), (2, 3)] if label != "one condition" else [(5,)]:
        put(np.piecewise, f"{label} {shape}",
            lambda x, c=conditions, f=functions: np.piecewise(x, c(x), f),
            distinct(shape))  # fmt: skip
put(
    np.piecewise,
    "a number",
    lambda x: np.piecewise(x, [x > 0, x <= 0], [np.exp, np.sin]),
    numbers(()),
)
put(np.piecewise, "arguments",
    lambda x: np.piecewise(x, [x > 0], [lambda x, k, b: k * x + b, 0.0], 2.0, b=1.0),
    distinct((4,)))  # fmt: skip
