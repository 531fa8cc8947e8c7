"""Rows of reductions and cumulative functions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from optlab.autograd.rules.reductions import aggregates as rules
from optlab.autograd.rules.reductions import cumulative
from optlab.autograd.rules.reductions.recurrence import linear_recurrence, recurrence
from tests.autograd.rows.table import Shape, distinct, numbers, put, with_static

AXES: dict[Shape, list[Any]] = {
    (): [None, ()],
    (1,): [None, 0, (0,), ()],
    (4,): [None, 0, -1, (0,), ()],
    (2, 3): [None, 0, 1, -1, -2, (0, 1), (1, 0), (-1,), ()],
    (2, 1, 3): [None, 0, 1, -1, (0, 2), (0, -1), (2, 0, 1), (1,), ()],
    (1, 1): [None, 0, (0, 1)],
}

for function in (np.sum, np.mean, np.max, np.min, np.prod, np.var, np.std):
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
for function in (np.amax, np.amin, np.ptp):
    put(function, "whole array", function, distinct((3, 2)))
    for axis in (0, -1, (0, 1)):
        put(
            function,
            f"{axis}",
            with_static(function, axis=axis, keepdims=axis == 0),
            distinct((3, 2)),
        )

# Masks, initial values and dtypes -----------------------------------------------------------------

MASK = np.array([[True, False, True, True], [True, True, False, True], [False, True, True, True]])
MASKS: list[tuple[str, Any, Any]] = [
    ("whole", MASK, None),
    ("along 0", MASK, 0),
    ("along -1", MASK, -1),
    ("along both", MASK, (1, 0)),
    ("broadcast along 1", MASK[0], 1),
    ("broadcast along 0", MASK[:, :1], 1),
]

#: Reductions that need an initial value if the mask selects nothing.
START: dict[Any, dict[str, Any]] = {
    np.max: {"initial": -9.0}, np.min: {"initial": 9.0},
    np.nanmax: {"initial": -9.0}, np.nanmin: {"initial": 9.0},
}  # fmt: skip
SKIPPING_NAN: tuple[Any, ...] = (
    np.nansum, np.nanmean, np.nanprod, np.nanmax, np.nanmin, np.nanvar, np.nanstd,
)  # fmt: skip
HOLES = np.where(MASK, distinct((3, 4)), np.nan)

for function in (
    np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std, np.amax, np.amin, *SKIPPING_NAN,
):  # fmt: skip
    for label, mask, axis in MASKS:
        if function in (np.amax, np.amin, *SKIPPING_NAN) and label != "along -1":
            continue
        if label == "broadcast along 0":
            mask = ~mask if function in START else True
        static = {"axis": axis, "where": mask, "keepdims": axis == 0, **START.get(function, {})}
        if function in (np.amax, np.amin):
            static["initial"] = -9.0 if function is np.amax else 9.0
        put(function, f"where {label}", with_static(function, **static), distinct((3, 4)))

for function in (np.sum, np.mean, np.prod, np.var, np.std):
    f = with_static(function, axis=1, dtype=np.float64)
    put(function, "dtype", f, distinct((2, 3)))
for function in (np.sum, np.prod):
    for initial in (2.5, 0.0):
        put(
            function,
            f"initial {initial}",
            with_static(function, axis=0, initial=initial),
            distinct((3, 2)),
        )
for function in (np.max, np.min):
    put(
        function,
        "initial in the middle",
        with_static(function, axis=0, initial=0.0),
        distinct((2, 5)),
    )
for function in (np.var, np.std):
    f = with_static(function, axis=1, correction=1.5)
    put(function, "correction", f, distinct((2, 3)))
    f = with_static(function, axis=1, ddof=1, where=MASK)
    put(function, "where and ddof", f, distinct((3, 4)))
for function, ours in ((np.var, rules.variance_about), (np.std, rules.deviation_about)):
    for static in ({}, {"ddof": 1}, {"where": MASK}, {"keepdims": True}):
        put(
            ours,
            f"{sorted(static)}",
            lambda x, m, f=function, static=static: f(x, axis=1, mean=m, **static),
            distinct((3, 4)),
            numbers((3, 1)),
        )

# With zeros among the factors ---------------------------------------------------------------------

ZEROS = {
    "one zero": np.array([[1.5, 0.0, -2.0], [0.5, 3.0, 0.7]]),
    "two zeros": np.array([[0.0, 1.5, 0.0], [0.5, 3.0, 0.0]]),
    "all zeros": np.zeros((2, 3)),
}
for label, x in ZEROS.items():
    for axis in (None, 0, 1, (0, 1)):
        put(np.prod, f"{label} {axis}", with_static(np.prod, axis=axis), x)
        if not isinstance(axis, tuple):
            put(np.cumprod, f"{label} {axis}", with_static(np.cumprod, axis=axis), x)

# NaN ----------------------------------------------------------------------------------------------

for function in SKIPPING_NAN:
    for axis, keepdims in ((None, False), (0, False), (-1, True), ((0, 1), False)):
        static = {"axis": axis, "keepdims": keepdims}
        put(function, f"holes {static}", with_static(function, **static), HOLES)
    put(function, "no holes", with_static(function, axis=1), distinct((2, 3)))
for function in (np.nanvar, np.nanstd):
    put(function, "ddof", with_static(function, axis=1, ddof=1), HOLES)
for function in (np.nansum, np.nanprod):
    put(function, "initial", with_static(function, axis=1, initial=2.0), HOLES)
for function in (np.nancumsum, np.nancumprod):
    for axis in (None, 0, -1):
        put(function, f"holes {axis}", with_static(function, axis=axis), HOLES)

# Cumulative sums and products ---------------------------------------------------------------------

for function in (np.cumsum, np.cumprod):
    for shape, axes in AXES.items():
        for axis in axes:
            if not isinstance(axis, tuple):
                put(function, f"{shape} {axis}", with_static(function, axis=axis), distinct(shape))
    put(function, "nothing", function, np.zeros(0))
    put(function, "dtype", with_static(function, axis=0, dtype=np.float64), distinct((2, 3)))
    put(function, "nine", function, numbers((9,)))
for function in (getattr(np, name, None) for name in ("cumulative_sum", "cumulative_prod")):
    if function is not None:
        put(function, "one axis", function, distinct((4,)))
        for axis, initial in product((0, -1), (False, True)):
            static = {"axis": axis, "include_initial": initial}
            put(function, f"{static}", with_static(function, **static), distinct((2, 3)))
        put(function, "from nothing", with_static(function, include_initial=True), np.zeros(0))

for n in (1, 2, 3, 4, 5, 8, 11):
    put(linear_recurrence, f"{n}", recurrence, numbers((2, n - 1)), numbers((2, n), seed=1))

# The methods of ufuncs ----------------------------------------------------------------------------

REDUCED_BY: dict[Any, Any] = {
    rules.logaddexp_reduce: np.logaddexp, rules.logaddexp2_reduce: np.logaddexp2,
    rules.hypot_reduce: np.hypot, rules.fmax_reduce: np.fmax, rules.fmin_reduce: np.fmin,
}  # fmt: skip
for function, ufunc in REDUCED_BY.items():
    put(function, "first axis", ufunc.reduce, distinct((2, 3)))
    for static in (
        {"axis": None}, {"axis": -1}, {"axis": (0, 1), "keepdims": True},
        {"axis": 1, "initial": 0.4},
        {"axis": 1, "initial": -9.0 if function is not rules.fmin_reduce else 9.0, "where": MASK},
    ):  # fmt: skip
        shape = (3, 4) if "where" in static else (2, 3)
        f = with_static(ufunc.reduce, **static)
        put(function, f"{list(static)} {static['axis']}", f, distinct(shape))
ACCUMULATED_BY: dict[Any, Any] = {
    cumulative.maximum_accumulate: np.maximum, cumulative.minimum_accumulate: np.minimum,
    cumulative.logaddexp_accumulate: np.logaddexp,
}  # fmt: skip
for function, ufunc in ACCUMULATED_BY.items():
    put(function, "first axis", ufunc.accumulate, distinct((5, 2)))
    put(function, "last axis", with_static(ufunc.accumulate, axis=-1), distinct((2, 7)))
    put(function, "middle axis", with_static(ufunc.accumulate, axis=1), distinct((2, 4, 2)))
put(np.sum, "add.reduce", with_static(np.add.reduce, where=MASK), distinct((3, 4)))
put(np.cumsum, "add.accumulate", np.add.accumulate, distinct((3, 2)))
put(np.cumprod, "multiply.accumulate", np.multiply.accumulate, distinct((3, 2)))
for indices in ([0, 3, 4], [2, 5], [4], [0, 4, 1, 5], [3, 3, 0], [5, 1, 1, 2]):
    for axis in (0, -1):
        put(
            cumulative.add_reduceat,
            f"{indices} {axis}",
            lambda x, indices=indices, axis=axis: np.add.reduceat(x, indices, axis),
            distinct((6, 6)),
        )

# Medians and quantiles ----------------------------------------------------------------------------

for function, x in ((np.median, distinct((3, 4))), (np.nanmedian, HOLES)):
    for axis, keepdims in product((None, 0, -1, (0, 1), (-1, 0)), (False, True)):
        static = {"axis": axis, "keepdims": keepdims}
        put(function, f"{static}", with_static(function, **static), x)
    put(function, "one", function, distinct((1,)))
    put(function, "list of axes", with_static(function, axis=[0, 2]), distinct((2, 2, 3)))

METHODS = (
    "linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf "
    "closest_observation interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased"
).split()
QUANTILES: tuple[tuple[Any, Any, float], ...] = (
    (np.quantile, distinct((3, 4)), 1.0),
    (np.percentile, distinct((3, 4)), 100.0),
    (np.nanquantile, HOLES, 1.0),
    (np.nanpercentile, HOLES, 100.0),
)
for function, x, whole in QUANTILES:
    for method in METHODS:
        f = with_static(function, q=np.array([0.17, 0.61, 0.0, 1.0]) * whole, axis=1, method=method)
        put(function, method, f, x)
    for q, axis, keepdims in (
        (0.3, None, False), (0.3, 0, True), ([[0.1, 0.4], [0.5, 0.9]], -1, True),
        ([[0.1], [0.4]], (0, 1), False), ([], 0, False),
    ):  # fmt: skip
        static = {"q": np.multiply(q, whole), "axis": axis, "keepdims": keepdims}
        put(function, f"{q} {axis} {keepdims}", with_static(function, **static), x)

# Averages and covariances -------------------------------------------------------------------------

WEIGHTS = numbers((3, 4), 0.2, 2.0, seed=3)
put(np.average, "whole", np.average, distinct((3, 4)))
put(np.average, "along 0", with_static(np.average, axis=0, keepdims=True), distinct((3, 4)))
for axis, weights in ((None, WEIGHTS), (1, WEIGHTS), (1, WEIGHTS[0]), ((1, 0), WEIGHTS.T)):
    put(
        np.average,
        f"weights {weights.shape} {axis}",
        lambda x, w, axis=axis: np.average(x, axis, w),
        distinct((3, 4)),
        weights,
    )
put(np.average, "integers by weights", lambda w: np.average(np.arange(4), weights=w), WEIGHTS[0])
for i in range(2):
    put(
        np.average,
        f"returned {i}",
        lambda x, w, i=i: np.average(x, 0, w, returned=True)[i] + 0 * x[0],
        distinct((3, 4)),
        WEIGHTS[:, 0],
    )
for function in (np.cov, np.corrcoef):
    put(function, "rows", function, numbers((3, 5)))
    put(function, "columns", with_static(function, rowvar=False), numbers((5, 3)))
    put(
        function, "two rows", lambda x, y, f=function: f(x, y), numbers((5,)), numbers((5,), seed=2)
    )
    put(
        function,
        "two sets of columns",
        lambda x, y, f=function: f(x, y, False),
        numbers((5, 2)),
        numbers((5, 1), seed=2),
    )
put(
    np.cov,
    "columns and one row",
    lambda x, y: np.cov(x, y, rowvar=False),
    numbers((5, 2)),
    numbers((1, 5), seed=2),
)
put(np.cov, "one row", np.cov, numbers((5,)))
for static in (
    {"bias": True}, {"ddof": 2}, {"dtype": np.float64}, {"fweights": [1, 2, 1, 3, 1]},
    {"fweights": np.array([1, 2, 1, 3, 1]), "ddof": 0},
):  # fmt: skip
    put(np.cov, f"{static}", with_static(np.cov, **static), numbers((3, 5)))
for static in ({}, {"ddof": 0}, {"fweights": [1, 2, 1, 3, 1]}):
    put(
        np.cov,
        f"aweights {static}",
        lambda x, w, static=static: np.cov(x, aweights=w, **static),
        numbers((3, 5)),
        numbers((5,), 0.5, 2.0),
    )
