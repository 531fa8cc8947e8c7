"""Functions that sort or count elements, composed of other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.rules.manipulation.sorting import BINCOUNT, HISTOGRAM, PARTITION, SORT
from optlab.autograd.tensor.tensor import Tensor, apply, raw


@composed(np.sort, moves=True)
def _sort(
    a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    if order is not None:
        raise not_covered("sort with order=... (it names the fields of structured arrays)")
    if axis is None:
        a, axis = np.ravel(a), 0
    if kind is not None and stable is not None:
        raise ValueError("sort takes kind=... or stable=..., not both.")
    # Elements that compare equal have the same value, so stability does not change the result.
    return apply(SORT, (a,), {"axis": axis, "kind": "stable" if stable else kind})


@composed(np.partition, moves=True)
def _partition(
    a: Any, kth: Any, axis: int | None = -1, kind: Any = "introselect", order: Any = None
) -> Any:
    if order is not None:
        raise not_covered("partition with order=... (it names the fields of structured arrays)")
    if axis is None:
        a, axis = np.ravel(a), 0
    options = {} if kind == "introselect" else {"kind": kind}
    return apply(PARTITION, (a,), {"kth": raw(kth), "axis": axis, **options})


def _first_indices(values: Any, equal_nan: bool, found: Any) -> Any:
    """Return the first index in `values` of each of its distinct elements `found`."""
    _, first = np.unique(values, return_index=True, equal_nan=equal_nan)
    # `first` is in ascending order of value; permute it to the order of `found`.
    return first[np.argsort(np.argsort(found, kind="stable"), kind="stable")]


@composed(np.unique, moves=True)
def _unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    **sorted: Any,
) -> Any:
    """Return the distinct elements; the gradient passes to the first of equal elements."""
    given = raw(ar)
    distinct: Any = np.unique
    _, first, *others = distinct(
        given, True, return_inverse, return_counts, axis, equal_nan=equal_nan
    )
    y = np.take(ar, first, axis)
    if sorted.pop("sorted", True) is not True and axis is None:
        found = distinct(given, equal_nan=equal_nan, sorted=False)
        if return_index or return_inverse or return_counts:
            raise not_covered("unique with sorted=False and return_index, _inverse or _counts")
        return np.take(ar, _first_indices(given, equal_nan, found))
    if sorted:
        raise TypeError(f"np.unique takes no argument named {min(sorted)!r}.")
    outputs = (y, *([first] if return_index else []), *others)
    return outputs if len(outputs) > 1 else y


@composed(np.unique_values, moves=True)
def _unique_values(x: Any, /) -> Any:
    given = raw(x)
    return np.take(x, _first_indices(given, False, np.unique_values(given)))


def _compose_named_tuple(function: Any) -> None:
    """Register a function that returns the distinct elements and more, as a named tuple."""

    @composed(function, moves=True)
    def written(x: Any, /) -> Any:
        found = function(raw(x))
        first = _first_indices(raw(x), False, found.values)
        return found._replace(values=np.take(x, first))


for function in (np.unique_all, np.unique_counts, np.unique_inverse):
    _compose_named_tuple(function)


@composed(np.union1d, moves=True)
def _union1d(ar1: Any, ar2: Any) -> Any:
    return _unique(np.concatenate((ar1, ar2), axis=None))


# Weighted histograms --------------------------------------------------------------------------


@composed(np.bincount, moves=True)
def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    if not isinstance(weights, Tensor):
        return np.bincount(raw(x), weights, raw(minlength))
    return apply(BINCOUNT, (raw(x), weights), {"minlength": raw(minlength)})


@composed(np.histogram, moves=True)
def _histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if isinstance(a, Tensor) and a.node is not None:
        raise not_covered(
            "histogram of a Tensor that needs a gradient (counts have none; weights= has one)"
        )
    if density:
        raise not_covered("histogram with density=True")
    if not isinstance(weights, Tensor):
        return np.histogram(raw(a), raw(bins), range, weights=weights)
    edges = np.histogram(raw(a), raw(bins), range)[1]
    if np.shape(a) != weights.shape:
        raise ValueError(
            f"histogram takes a weight for each number: {np.shape(a)} numbers, but "
            f"{weights.shape} weights."
        )
    # With explicit edges NumPy sums by another algorithm; the bins stay the same.
    numbers = np.ravel(raw(a))
    static = {"numbers": numbers, "edges": edges}
    return apply(HISTOGRAM, (np.ravel(weights),), static), edges
