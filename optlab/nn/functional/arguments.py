"""Helpers of several neural-network functions: conversion, reductions, validation."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from optlab.autograd.tensor.creation import DEFAULT_DTYPE
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array, constants_beside, placed_beside, unwrapped
from optlab.backend.dtypes import is_floating
from optlab.backend.text import or_list

#: From this size on, `clip` is faster than NumPy's maximum with a number.
MANY = 10_000

REDUCTIONS = ("mean", "sum", "none")


def scores(x: Any) -> Tensor:
    """Return x as a Tensor of floating dtype."""
    if isinstance(x, Tensor) and x.data.dtype.char in "fd":
        return x
    t: Tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    return t if is_floating(t.dtype) else t.astype(DEFAULT_DTYPE)


def bounded(x: Any, low: float, high: float) -> Any:
    """Clip the value of an operation; `clip` takes a third of the time of `maximum` if large."""
    if type(x) is np.ndarray and x.size >= MANY:
        return np.clip(x, low, high)
    if high != np.inf:
        x = np.minimum(x, high)
    return x if low == -np.inf else np.maximum(x, low)


def given_with(x: Any, given: Any, what: str) -> Any:
    """Return `given` as an array; lists and Python numbers become an array on the device of `x`.

    Raises
    ------
    MixedArraysError
        If an array or a Tensor is on another device than `x`: the message names both.
    """
    if not hasattr(given, "__array_function__"):
        return constants_beside(x, np.asarray(given))
    array = raw(given)
    if type(array) is not np.ndarray or type(x) is not np.ndarray:
        placed_beside(unwrapped(x), unwrapped(array), what)
    return array


#: Elements of a block: enough that the calls cost nothing, few enough for the cache.
BLOCK = 3 << 13


def in_blocks(function: Callable[..., Any], *arrays: Any, out: Any = None) -> Any:
    """Evaluate an element-wise function, block by block on large NumPy arrays.

    Temporary arrays of a formula are then as small as a block. `out` may be one of the arrays.

    Examples
    --------
    >>> in_blocks(lambda x: x * x, np.arange(3.0))
    array([0., 1., 4.])
    """
    first = arrays[0]
    for x in arrays:
        if type(x) is not np.ndarray or x.size <= BLOCK or x.shape != first.shape:
            break
        if not x.flags.c_contiguous:
            break
    else:
        made = np.empty_like(first) if out is None else out
        flat = made.reshape(-1)
        lines = [x.reshape(-1) for x in arrays]
        for start in range(0, flat.size, BLOCK):
            block = slice(start, start + BLOCK)
            flat[block] = function(*[line[block] for line in lines])
        return made
    found = function(*arrays)
    if out is not None:
        out[...] = found
    return found


@lru_cache(maxsize=64)
def _ones(length: int, dtype: Any) -> Any:
    ones = np.ones(length, dtype)
    ones.flags.writeable = False
    return ones


_BY_PRODUCTS = (np.dtype(np.float32), np.dtype(np.float64))


def total(x: Any, axis: int) -> Any:
    """Return the sum along an axis, keeping dimensions.

    Along the last axis a product with ones takes a third of the time of a sum.
    """
    if type(x) is np.ndarray and x.dtype in _BY_PRODUCTS and axis in (-1, x.ndim - 1):
        return (x @ _ones(x.shape[-1], x.dtype))[..., None]
    return np.add.reduce(x, axis=axis, keepdims=True)


def total_of_rows(x: Any) -> Any:
    """Return the sum of the rows of a NumPy matrix, by a product with ones as in `total`."""
    return _ones(len(x), x.dtype) @ x if x.dtype in _BY_PRODUCTS else np.add.reduce(x, axis=0)


def inner(a: Any, b: Any, axis: int) -> Any:
    """Return the sum of products along an axis, keeping dimensions."""
    if type(a) is np.ndarray and type(b) is np.ndarray and axis in (-1, a.ndim - 1):
        return np.vecdot(a, b)[..., None]
    return np.add.reduce(a * b, axis=axis, keepdims=True)


def no_name(name: Any) -> None:
    """Raise if a name is given: layers and parameters have names, results have none."""
    if name is not None:
        raise TypeError(
            f"name={name!r}: the results of functions have no names here; name the layer or the "
            "parameter, or leave name out."
        )


def channel_axis(data_format: str, ndim: int, function: str) -> int:
    """Return the axis of the channels: 1 for 'NCHW' and its like, the last for 'NHWC'."""
    formats = ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")
    if data_format not in formats:
        raise ValueError(
            f"{function} takes data_format={', '.join(map(repr, formats))}; got {data_format!r}."
        )
    return 1 if data_format.startswith("NC") else ndim - 1


def reduced(losses: Any, reduction: str) -> Tensor:
    """Return the mean or the sum of losses, or the losses unreduced."""
    if reduction == "mean":
        return np.mean(losses)  # type: ignore[no-any-return]
    if reduction == "sum":
        return np.sum(losses)  # type: ignore[no-any-return]
    check_reduction(reduction)
    return losses  # type: ignore[no-any-return]


def check_reduction(reduction: str, allowed: tuple[str, ...] = REDUCTIONS) -> None:
    """Raise if a reduction is unknown."""
    if reduction not in allowed:
        raise ValueError(f"reduction must be {or_list(allowed)}; got {reduction!r}.")


def check_same_shape(function: str, **arrays: Any) -> None:
    """Raise if shapes differ: a loss that broadcasts hides a mistake."""
    shapes = {name: np.shape(x) for name, x in arrays.items()}
    if len(set(shapes.values())) > 1:
        given = " and ".join(f"{name} of shape {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"{function} compares element by element and got {given}: reshape one to the shape of "
            "the other."
        )
