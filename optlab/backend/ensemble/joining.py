"""Batching rules of functions that join and split arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from optlab.backend.ensemble.batched_call import Call, shifted
from optlab.backend.ensemble.registry import batched, refusal


@batched("concatenate", "concat")
def _concatenate(
    call: Call, arrays: Sequence[Any], /, axis: int | None = 0, out: Any = None, **options: Any
) -> Any:
    if out is not None:
        raise refusal("np.concatenate with out=", "Use the value that it returns.")
    arrays = list(arrays)
    if axis is None:
        arrays, axis = [np.reshape(x, (-1,)) for x in arrays], 0
    axis = shifted(axis, np.ndim(arrays[0]))
    return call.wrap(np.concatenate([call.stacked(x) for x in arrays], axis, **options))


@batched("stack")
def _stack(
    call: Call, arrays: Sequence[Any], axis: int = 0, out: Any = None, **options: Any
) -> Any:
    if out is not None:
        raise refusal("np.stack with out=", "Use the value that it returns.")
    arrays = list(arrays)
    axis = normalize_axis_index(axis, np.ndim(arrays[0]) + 1) + 1
    return call.wrap(np.stack([call.stacked(x) for x in arrays], axis, **options))


@batched("vstack", "row_stack")
def _vstack(call: Call, tup: Sequence[Any], **options: Any) -> Any:
    return np.concatenate([np.atleast_2d(x) for x in tup], 0, **options)


@batched("hstack")
def _hstack(call: Call, tup: Sequence[Any], **options: Any) -> Any:
    arrays = [np.atleast_1d(x) for x in tup]
    return np.concatenate(arrays, 0 if np.ndim(arrays[0]) == 1 else 1, **options)


@batched("dstack")
def _dstack(call: Call, tup: Sequence[Any]) -> Any:
    return np.concatenate([np.atleast_3d(x) for x in tup], 2)


@batched("column_stack")
def _column_stack(call: Call, tup: Sequence[Any]) -> Any:
    return np.concatenate([np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in tup], 1)


@batched("append")
def _append(call: Call, arr: Any, values: Any, axis: int | None = None) -> Any:
    return np.concatenate([arr, values], axis)


@batched("block")
def _block(call: Call, arrays: Any) -> Any:
    def depth(part: Any) -> int:
        return 1 + max(map(depth, part)) if isinstance(part, list) else 0

    def leaves(part: Any) -> list[Any]:
        return [x for p in part for x in leaves(p)] if isinstance(part, list) else [part]

    levels = depth(arrays)
    ndim = max(levels, *[np.ndim(x) for x in leaves(arrays)])

    def joined(part: Any, level: int) -> Any:
        if isinstance(part, list):
            return np.concatenate([joined(p, level - 1) for p in part], axis=-level)
        return np.reshape(part, (1,) * (ndim - np.ndim(part)) + np.shape(part))

    return joined(arrays, levels)


@batched("array_split")
def _array_split(call: Call, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    parts = np.array_split(ary.members, indices_or_sections, shifted(axis, ary.ndim))
    return [call.wrap(part) for part in parts]


@batched("split")
def _split(call: Call, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    parts = np.split(ary.members, indices_or_sections, shifted(axis, ary.ndim))
    return [call.wrap(part) for part in parts]


@batched("vsplit")
def _vsplit(call: Call, ary: Any, indices_or_sections: Any) -> Any:
    return np.split(ary, indices_or_sections, 0)


@batched("hsplit")
def _hsplit(call: Call, ary: Any, indices_or_sections: Any) -> Any:
    return np.split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@batched("dsplit")
def _dsplit(call: Call, ary: Any, indices_or_sections: Any) -> Any:
    return np.split(ary, indices_or_sections, 2)


@batched("unstack")
def _unstack(call: Call, x: Any, /, *, axis: int = 0) -> Any:
    return tuple(np.moveaxis(x, axis, 0))
