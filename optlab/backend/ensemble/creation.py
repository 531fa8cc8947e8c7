"""Batching rules of functions that create arrays like others, or describe an array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.backend.ensemble.batched_call import Call
from optlab.backend.ensemble.indexing import members_of
from optlab.backend.ensemble.registry import INSTEAD, batched, numpy_function
from optlab.backend.ensemble.shapes import lengths


def _like(path: str) -> None:
    function = numpy_function(path)

    @batched(path)
    def rule(call: Call, a: Any, *args: Any, shape: Any = None, **kwargs: Any) -> Any:
        # Positional: the dtype, and before it the value of full_like.
        names = ("fill_value", "dtype") if path == "full_like" else ("dtype",)
        given = dict(zip(names, args, strict=False)) | kwargs
        given.pop("order", None)
        given.pop("subok", None)
        shape = np.shape(a) if shape is None else lengths(shape)
        if "fill_value" in given:
            given["fill_value"] = call.padded(given["fill_value"], len(shape))
        return call.wrap(function(call.stacked(a), shape=(call.count, *shape), order="C", **given))


for path in ("zeros_like", "ones_like", "empty_like", "full_like"):
    _like(path)


@batched("copy")
def _copy(call: Call, a: Any, order: Any = "K", subok: bool = False) -> Any:
    return a.copy()


@batched("astype")
def _astype(call: Call, x: Any, dtype: Any, copy: bool = True, **options: Any) -> Any:
    return x.astype(dtype, copy=copy)


@batched("shape")
def _shape(call: Call, a: Any) -> Any:
    return a.shape if call.has(a) else np.asarray(a).shape


@batched("ndim")
def _ndim(call: Call, a: Any) -> Any:
    return len(np.shape(a))


@batched("size")
def _size(call: Call, a: Any, axis: Any = None) -> Any:
    shape = np.shape(a)
    if axis is None:
        return math.prod(shape)
    return math.prod(shape[i] for i in (axis if isinstance(axis, tuple) else (axis,)))


def _about_the_dtype(path: str) -> None:
    function = numpy_function(path)

    @batched(path)
    def rule(call: Call, *args: Any, **kwargs: Any) -> Any:
        return function(*[members_of(x) for x in args], **kwargs)


for path in (
    "result_type", "can_cast", "min_scalar_type", "common_type", "iscomplexobj", "isrealobj",
    "shares_memory", "may_share_memory",
):  # fmt: skip
    _about_the_dtype(path)


@batched("array2string")
def _array2string(call: Call, a: Any, *args: Any, **kwargs: Any) -> str:
    return f"{call.count} members of shape {a.shape}: {np.array2string(a.members, *args, **kwargs)}"


@batched("array_repr", "array_str")
def _array_repr(call: Call, arr: Any, *args: Any, **kwargs: Any) -> str:
    return repr(arr)


_LENGTHS = "Each member would get a length of its own. Keep the shape with np.where(mask, x, 0)."
_ONE_ANSWER = (
    "It gives one answer, and the members have one each. np.all(np.isclose(a, b)) or np.all(a == b)"
    " answer for every member."
)
for names, instead in {
    "nonzero flatnonzero argwhere unique unique_values unique_counts unique_inverse unique_all "
    "extract union1d intersect1d setdiff1d setxor1d trim_zeros place putmask": _LENGTHS,
    "allclose array_equal array_equiv": _ONE_ANSWER,
    "fill_diagonal put": "Build the value with np.where or np.eye instead of writing in place.",
    "piecewise": "Use np.select or np.where.",
}.items():
    for name in names.split():
        INSTEAD[numpy_function(name)] = instead
