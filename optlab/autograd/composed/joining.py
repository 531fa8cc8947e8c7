"""Functions that join and split arrays, composed of other functions."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from optlab.autograd.composed.table import composed
from optlab.autograd.rules.manipulation.indexing import GETITEM
from optlab.autograd.rules.manipulation.joining import ARRAY_SPLIT, UNSTACK, concatenation, stacking
from optlab.autograd.tape import views
from optlab.autograd.tensor.tensor import Tensor, apply, apply_several, raw
from optlab.backend.arrays import as_array, given_beside, on_host

_ARRAYS = (Tensor, np.ndarray)


def _arrays_to_join(given: Any, dtype: Any = None, casting: Any = "same_kind") -> list[Any]:
    """Return the arrays to join as a list, cast to `dtype` if it is given."""
    if isinstance(given, Tensor):
        given = apply_several(UNSTACK, (given,), {"axis": 0})
    arrays = _as_arrays(given)
    if dtype is None:
        return arrays
    for x in arrays:
        if not np.can_cast(np.result_type(x), dtype, casting):
            raise TypeError(
                f"{np.result_type(x)} is not cast to {np.dtype(dtype)} with casting={casting!r}."
            )
    return [x.astype(dtype) if isinstance(x, Tensor) else as_array(x, dtype) for x in arrays]


def _as_arrays(given: Any) -> list[Any]:
    """Convert lists and numbers to arrays, on the device of the first array."""
    like = next((x for x in given if hasattr(x, "dtype")), 0.0)
    return [x if hasattr(x, "dtype") else given_beside(like, x) for x in given]


def _refuse_out(name: str, out: Any) -> None:
    if out is not None:
        raise TypeError(
            f"np.{name}(..., out=) writes into an existing array, which would lose the gradient "
            "of a Tensor. Use the value that it returns."
        )


@composed(np.concatenate, moves=True)
def _concatenate(
    arrays: Any,
    /,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    if out is not None:
        _refuse_out("concatenate", out)
    arrays = _arrays_to_join(arrays, dtype, casting)
    if axis is None:
        arrays, axis = [np.ravel(x) for x in arrays], 0
    # The edges of the inputs. On a Tensor np.shape takes the slow path, through NumPy's dispatch.
    bounds = [0]
    for x in arrays:
        shape = x.shape if isinstance(x, _ARRAYS) else np.shape(x)
        if not shape:
            raise ValueError("arrays without axes are not concatenated; np.stack adds one to them.")
        if axis:
            axis = normalize_axis_index(axis, len(shape))
        bounds.append(bounds[-1] + shape[axis])
    return apply(concatenation(len(arrays)), arrays, {"axis": axis, "bounds": bounds})


@composed(np.stack, moves=True)
def _stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    _refuse_out("stack", out)
    arrays = _arrays_to_join(arrays, dtype, casting)
    return apply(stacking(len(arrays)), arrays, {"axis": axis})


@composed(np.vstack, moves=True)
def _vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    return np.concatenate([np.atleast_2d(x) for x in _arrays_to_join(tup, dtype, casting)], 0)


@composed(np.hstack, moves=True)
def _hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    arrays = [np.atleast_1d(x) for x in _arrays_to_join(tup, dtype, casting)]
    return np.concatenate(arrays, 0 if np.ndim(arrays[0]) == 1 else 1)


@composed(np.dstack, moves=True)
def _dstack(tup: Any) -> Any:
    return np.concatenate([np.atleast_3d(x) for x in _arrays_to_join(tup)], 2)


@composed(np.column_stack, moves=True)
def _column_stack(tup: Any) -> Any:
    columns = [np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in _arrays_to_join(tup)]
    return np.concatenate(columns, 1)


@composed(np.block, moves=True)
def _block(arrays: Any) -> Any:
    depth, ndim = _depth_and_ndim(arrays)
    like = next((x for x in _blocks(arrays) if hasattr(x, "dtype")), 0.0)
    return _join_blocks(arrays, depth, max(depth, ndim), like)


def _blocks(arrays: Any) -> Iterator[Any]:
    """Yield the blocks in nested lists, in order."""
    if isinstance(arrays, list):
        for part in arrays:
            yield from _blocks(part)
    else:
        yield arrays


def _depth_and_ndim(blocks: Any) -> tuple[int, int]:
    """Return the depth of nested lists, and the largest number of axes of their blocks."""
    if isinstance(blocks, tuple):
        raise TypeError("np.block takes nested lists; a tuple among them would be ambiguous.")
    if not isinstance(blocks, list):
        return 0, np.ndim(blocks)
    if not blocks:
        raise ValueError("np.block takes nonempty lists; one of these is empty.")
    depths, ndims = zip(*map(_depth_and_ndim, blocks), strict=True)
    if len(set(depths)) > 1:
        raise ValueError("np.block takes lists that are nested to the same depth everywhere.")
    return 1 + depths[0], max(ndims)


def _join_blocks(blocks: Any, depth: int, ndim: int, like: Any) -> Any:
    """Join the innermost lists along the last axis, the lists around them along the one before."""
    if not isinstance(blocks, list):
        block = blocks if hasattr(blocks, "dtype") else given_beside(like, blocks)
        return np.reshape(block, (1,) * (ndim - np.ndim(block)) + tuple(np.shape(block)))
    return np.concatenate([_join_blocks(block, depth - 1, ndim, like) for block in blocks], -depth)


@composed(np.append, moves=True)
def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, values, axis = np.ravel(arr), np.ravel(values), 0
    return np.concatenate((arr, values), axis)


# Splitting ------------------------------------------------------------------------------------


@composed(np.array_split, moves=True)
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    axis = normalize_axis_index(axis, np.ndim(ary))
    length = np.shape(ary)[axis]
    sections = on_host(raw(indices_or_sections))
    if np.ndim(sections):
        edges = [0, *map(operator.index, np.asarray(sections).tolist()), length]
    elif sections < 1:
        raise ValueError(f"an axis is split into at least one part; got {sections}.")
    else:
        short, longer = divmod(length, int(sections))
        sizes = [short + 1] * longer + [short] * (int(sections) - longer)
        edges = list(itertools.accumulate(sizes, initial=0))
    bounds = tuple(slice(edge).indices(length)[1] for edge in edges)
    if all(a <= b for a, b in itertools.pairwise(bounds)):
        parts = apply_several(ARRAY_SPLIT, (ary,), {"bounds": bounds, "axis": axis})
        before = (slice(None),) * axis
        indices = [(*before, slice(a, b)) for a, b in itertools.pairwise(bounds)]
        views.link_parts(parts, ary, GETITEM, indices)
        return list(parts)
    # Decreasing bounds make parts that overlap.
    return [ary[(slice(None),) * axis + (slice(a, b),)] for a, b in itertools.pairwise(edges)]


@composed(np.split, moves=True)
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    length = np.shape(ary)[axis]
    if np.ndim(indices_or_sections) == 0 and length % indices_or_sections:
        raise ValueError(
            f"an axis of length {length} cannot be split into {indices_or_sections} equal parts; "
            "np.array_split makes parts of unequal length."
        )
    return _array_split(ary, indices_or_sections, axis)


def _split_along(name: str, axis: int, least: int) -> Any:
    def split(ary: Any, indices_or_sections: Any) -> Any:
        n = np.ndim(ary)
        if n < least:
            raise ValueError(f"{name} takes arrays of {least} or more axes; this one has {n}.")
        return _split(ary, indices_or_sections, min(axis, n - 1))

    return split


composed(np.hsplit, moves=True)(_split_along("hsplit", 1, 1))
composed(np.vsplit, moves=True)(_split_along("vsplit", 0, 2))
composed(np.dsplit, moves=True)(_split_along("dsplit", 2, 3))


def _unstack(x: Any, /, *, axis: int = 0) -> Any:
    if np.ndim(x) == 0:
        raise ValueError("unstack takes an array with at least one axis.")
    axis = normalize_axis_index(axis, np.ndim(x))
    parts = apply_several(UNSTACK, (x,), {"axis": axis})
    views.link_parts(parts, x, GETITEM, [(*(slice(None),) * axis, i) for i in range(len(parts))])
    return parts


if hasattr(np, "unstack"):  # since NumPy 2.1
    composed(np.unstack, moves=True)(_unstack)
