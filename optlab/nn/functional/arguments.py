"""Helpers of several neural-network functions: conversion, reductions, validation."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.rules.reductions import aggregates
from optlab.autograd.tensor.conversions import is_tracked
from optlab.autograd.tensor.creation import DEFAULT_DTYPE
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array, as_float, constants_beside, placed_beside, unwrapped
from optlab.backend.dtypes import is_floating
from optlab.backend.ensemble import EnsembleArray
from optlab.backend.text import or_list
from optlab.nn.functional.blocks import cut, for_each, ones
from optlab.plan.sizes import cores

#: From this size on, `clip` is faster than NumPy's maximum with a number.
MANY = 10_000

REDUCTIONS = ("mean", "sum", "none")


def scores(x: Any) -> Tensor:
    """Return x as a Tensor of floating dtype."""
    if isinstance(x, Tensor) and x.data.dtype.char in "fd":
        return x
    t: Tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    return t if is_floating(t.dtype) else t.astype(DEFAULT_DTYPE)


def setting_beside(x: Any, value: Any, name: str) -> Any:
    """Return a setting as a float; one that needs a gradient as a Tensor in the dtype of `x`."""
    if not is_tracked(value):
        return as_float(value, name)
    if value.size != 1:
        raise TypeError(f"{name} must be one number; got a Tensor of shape {value.shape}.")
    return value.reshape(()).astype(x.dtype)


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

#: From so many elements on compiled loops share an array among the cores, at most so many.
SHARED = 1 << 20
MOST_CORES = 8


def in_blocks(
    fill: Callable[..., None], out: Any, *arrays: Any, block: int = BLOCK, shared: bool = False
) -> Any:
    """Fill an array by an element-wise function, block by block if it is large; return it.

    Temporary arrays of a formula are then as small as a block. `out` may be one of the arrays.
    Compiled functions may be `shared` among all cores, with large blocks. NumPy's, which need
    Python's lock for each pass over a block, take twice as long on two cores as on one.

    Examples
    --------
    >>> in_blocks(lambda out, x: np.multiply(x, x, out), np.empty(3), np.arange(3.0))
    array([0., 1., 4.])
    """
    for x in (out, *arrays):
        if x.size <= BLOCK or x.shape != out.shape or not x.flags.c_contiguous:
            fill(out, *arrays)
            return out
    lines = [x.reshape(-1) for x in (out, *arrays)]

    def part(whole: slice) -> None:
        for start in range(whole.start, whole.stop, block):
            piece = slice(start, min(start + block, whole.stop))
            fill(*[line[piece] for line in lines])

    many = shared and out.size >= SHARED
    for_each(part, cut(out.size, min(cores(), MOST_CORES) if many else 1))
    return out


_BY_PRODUCTS = (np.dtype(np.float32), np.dtype(np.float64))


def total(x: Any, axis: int) -> Any:
    """Return the sum along an axis, keeping dimensions.

    Along the last axis a product with ones takes a third of the time of a sum.
    """
    if type(x) is np.ndarray and x.dtype in _BY_PRODUCTS and axis in (-1, x.ndim - 1):
        return (x @ ones(x.shape[-1], x.dtype))[..., None]
    if type(x) is EnsembleArray and axis in (-1, x.ndim - 1):  # each member as by itself
        return EnsembleArray(total(x.members, -1), x.level)
    return np.add.reduce(x, axis=axis, keepdims=True)


def total_steps(x: Any) -> Any:
    """Yield the calls of which `total` of the rows of a NumPy matrix consists, for `elementary`."""
    if x.dtype in _BY_PRODUCTS:
        sums = yield np.matmul, x, ones(x.shape[-1], x.dtype)
        return (yield operator.getitem, sums, (..., None))
    return (yield np.add.reduce, x, 1, None, None, True)


def largest(x: Any, axis: int) -> Any:
    """Return the maximum along an axis, keeping dimensions.

    NumPy takes 50 ns for each short row. Of an ensemble, which has many, the rows are put side by
    side first: 2048 rows of 10 classes take 14 us in place of 94.
    """
    if type(x) is EnsembleArray and type(x.members) is np.ndarray and axis in (-1, x.ndim - 1):
        members = x.members
        if 0 < members.shape[-1] <= _SHORT and members.dtype.itemsize >= 4:
            columns = np.ascontiguousarray(np.moveaxis(members, -1, 0))
            return EnsembleArray(np.maximum.reduce(columns, axis=0)[..., None], x.level)
    return aggregates.MAX.forward(x, axis=axis, keepdims=True)


#: Rows that are shorter are put side by side.
_SHORT = 32


def total_of_rows(x: Any) -> Any:
    """Return the sum of the rows of a NumPy matrix, by a product with ones as in `total`."""
    return ones(len(x), x.dtype) @ x if x.dtype in _BY_PRODUCTS else np.add.reduce(x, axis=0)


def inner(a: Any, b: Any, axis: int) -> Any:
    """Return the sum of products along an axis, keeping dimensions."""
    if type(a) is np.ndarray and type(b) is np.ndarray and axis in (-1, a.ndim - 1):
        return np.vecdot(a, b)[..., None]
    return np.add.reduce(a * b, axis=axis, keepdims=True)


def as_bool(value: Any, what: str, call: str) -> bool:
    """Return a boolean argument, or raise."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{call}: {what} is True or False; got {value!r}.")
    return bool(value)


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
