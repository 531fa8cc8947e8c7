"""Functions of NumPy that move, join and split, written with other functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.shapes import concatenation, stacking
from optlab.autograd.tensor import Tensor, apply


@composed(np.concatenate)
def _concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Any:
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [np.ravel(x) for x in arrays], 0
    # On a Tensor np.shape takes the long way, through NumPy's dispatch and back.
    lengths = [(x.shape if isinstance(x, Tensor) else np.shape(x))[axis] for x in arrays]
    bounds = tuple(itertools.accumulate(lengths, initial=0))
    return apply(concatenation(len(arrays)), arrays, {"axis": axis, "bounds": bounds})


@composed(np.stack)
def _stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    arrays = list(arrays)
    return apply(stacking(len(arrays)), arrays, {"axis": axis})


@composed(np.atleast_1d)
def _atleast_1d(x: Any) -> Any:
    return np.reshape(x, (1,)) if np.ndim(x) == 0 else x


@composed(np.atleast_2d)
def _atleast_2d(x: Any) -> Any:
    return np.reshape(x, (1,) * (2 - np.ndim(x)) + np.shape(x)) if np.ndim(x) < 2 else x


@composed(np.vstack)
def _vstack(arrays: Sequence[Any]) -> Any:
    return np.concatenate([np.atleast_2d(x) for x in arrays], 0)


@composed(np.hstack)
def _hstack(arrays: Sequence[Any]) -> Any:
    arrays = [np.atleast_1d(x) for x in arrays]
    return np.concatenate(arrays, 0 if np.ndim(arrays[0]) == 1 else 1)


@composed(np.column_stack)
def _column_stack(arrays: Sequence[Any]) -> Any:
    return np.concatenate([np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in arrays], 1)


@composed(np.ravel)
def _ravel(x: Any, order: str = "C") -> Any:
    if order != "C":
        raise TypeError(f"np.ravel(..., order={order!r}) is not covered on Tensors; order='C' is.")
    return apply(TABLE[np.ravel], (x,))


@composed(np.reshape)
def _reshape(x: Any, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Any:
    if order != "C":
        raise TypeError(
            f"np.reshape(..., order={order!r}) is not covered on Tensors; order='C' is."
        )
    shape = newshape if shape is None else shape
    shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    return apply(TABLE[np.reshape], (x,), {"shape": shape})


@composed(np.array_split)
def _array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    before = (slice(None),) * (axis % np.ndim(x))
    parts = np.array_split(np.arange(np.shape(x)[axis]), indices_or_sections)
    starts = np.cumsum([0] + [len(part) for part in parts]).tolist()
    return [x[(*before, slice(a, b))] for a, b in itertools.pairwise(starts)]


@composed(np.split)
def _split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    length = np.shape(x)[axis]
    if isinstance(indices_or_sections, (int, np.integer)) and length % indices_or_sections:
        raise ValueError(
            f"an axis of length {length} cannot be split into {indices_or_sections} equal parts."
        )
    return _array_split(x, indices_or_sections, axis)
