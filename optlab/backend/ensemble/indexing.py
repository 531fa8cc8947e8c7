"""Indexing: reads and writes, also with indices that differ by member."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optlab.backend.ensemble.array import EnsembleArray, register
from optlab.backend.ensemble.batched_call import Call, as_array
from optlab.backend.errors import EnsembleError


class FullIndex(NamedTuple):
    """An index into one member, with an entry for every axis.

    Attributes
    ----------
    entries : list
        Integers, slices, None, plain arrays and ensembles.
    first : int
        The position of the axes of the index arrays in the result of one member.
    depth : int
        The number of axes of the broadcast index arrays.
    apart : bool
        Whether the index arrays are separated, so that NumPy puts their axes first.
    ndim : int
        The number of axes of the result of one member.
    """

    entries: list[Any]
    first: int
    depth: int
    apart: bool
    ndim: int


def members_of(x: Any) -> Any:
    """Return the members as one plain array; return anything else unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> members_of(EnsembleArray(np.ones((2, 3)))).shape
    (2, 3)
    """
    return x.members if isinstance(x, EnsembleArray) else x


def _entry(part: Any) -> Any:
    """Return one part of an index: a list as an array, a 0-d integer array as an int."""
    if part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)):
        return part
    if isinstance(part, list) and not part:
        return np.zeros(0, np.intp)
    part = as_array(part)
    if isinstance(part, np.ndarray) and not part.ndim and part.dtype.kind in "iu":
        return int(part)
    return part


def _expand_booleans(x: Any, index: Any) -> tuple[Any, Any]:
    """Replace True and False in an index by a new axis of which all or nothing is taken."""
    parts = list(index) if isinstance(index, tuple) else [index]
    for i, part in enumerate(parts):
        if np.ndim(part) or getattr(part, "dtype", type(part)) not in (bool, np.bool):
            continue
        if isinstance(part, EnsembleArray):
            raise EnsembleError(
                "a condition as an index gives each member of an ensemble a length of its own; "
                "keep the shape with np.where."
            )
        before = parts[:i]
        axis = sum(map(_axes_taken, before))
        if any(p is Ellipsis for p in before):
            axis = np.ndim(x) - sum(map(_axes_taken, parts[i + 1 :]))
        parts[i] = [0] * bool(part)
        return _expand_booleans(np.expand_dims(x, axis), tuple(parts))
    return x, index


def _axes_taken(part: Any) -> int:
    """Return the number of axes that one part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    mask = getattr(part, "dtype", None) == np.bool or (
        isinstance(part, list) and as_array(part).dtype == np.bool
    )
    return np.ndim(part) if mask else 1


def full_index(index: Any, ndim: int) -> FullIndex:
    """Expand an index into an array of `ndim` axes."""
    parts = [_entry(part) for part in (index if isinstance(index, tuple) else (index,))]
    entries: list[Any] = []
    for part in parts:  # a mask stands for the indices where it is True
        if part is not None and getattr(part, "dtype", None) == np.bool:
            if isinstance(part, EnsembleArray):
                raise EnsembleError(
                    "reading through a mask gives each member of an ensemble a length of its own. "
                    "Keep the shape with np.where(mask, x, 0)."
                )
            entries.extend(np.nonzero(part))
        else:
            entries.append(part)
    taken = sum(part is not None and part is not Ellipsis for part in entries)
    if taken > ndim:
        raise IndexError(f"too many indices: a member has {ndim} axes, and {taken} were indexed.")
    where = [i for i, part in enumerate(entries) if part is Ellipsis]
    if len(where) > 1:
        raise IndexError("an index can only have a single ellipsis ('...').")
    at = where[0] if where else len(entries)
    entries[at : at + 1] = [slice(None)] * (ndim - taken)
    arrays = [part for part in entries if hasattr(part, "__array_function__") and np.ndim(part)]
    given = [i for i, part in enumerate(entries) if part is not None and not _is_slice(part)]
    apart = bool(given) and given[-1] - given[0] >= len(given)
    free = len(entries) - len(given)
    depth = max((np.ndim(part) for part in arrays), default=0)
    first = given[0] if given and not apart else 0
    return FullIndex(entries, first, depth, apart, free + depth)


def _is_slice(part: Any) -> bool:
    return isinstance(part, slice)


def _is_array(part: Any) -> bool:
    return hasattr(part, "__array_function__") and not isinstance(part, np.integer)


def _with_member_axis(call: Call, to: FullIndex) -> tuple[Any, ...]:
    """Return the entries, with ensembles as arrays whose first axis counts the members."""
    return tuple(call.padded(e, to.depth) if call.has(e) else e for e in to.entries)


def _member_numbers(call: Call, to: FullIndex) -> Any:
    return np.arange(call.count).reshape((call.count,) + (1,) * to.depth)


@register
def getitem(x: Any, index: Any) -> Any:
    """Return ``x[index]`` for each member; `x`, the index or both are ensembles."""
    if type(index) in (int, slice) and x.ndim:  # the most common case, fast
        return EnsembleArray(x.members[:, index], x.level)
    x, index = _expand_booleans(x, index)
    call = Call(x, index)
    to = full_index(index, np.ndim(x))
    if not call.has(x):
        y = _read(x, _with_member_axis(call, to))
        return call.wrap(np.moveaxis(y, 0 if to.apart else to.first, 0))
    if not any(call.has(e) for e in to.entries):
        y = _read(x.members, (slice(None), *to.entries))
        if to.apart and any(_is_array(e) for e in to.entries):
            y = np.moveaxis(y, to.depth, 0)
        elif not to.first and to.depth and type(y) is np.ndarray:
            # NumPy puts the axes of index arrays first in memory; sums depend on the layout.
            y = np.ascontiguousarray(y)
        return call.wrap(y)
    y = _read(x.members, (_member_numbers(call, to), *_with_member_axis(call, to)))
    if to.first:
        y = np.moveaxis(y, range(1, 1 + to.depth), range(1 + to.first, 1 + to.first + to.depth))
    return call.wrap(y)


def _read(x: Any, index: tuple[Any, ...]) -> Any:
    """Return ``x[index]``, also of a plain array with outer-level ensembles in the index."""
    if any(isinstance(part, EnsembleArray) for part in index):
        return getitem(x, index)
    return x[index]


def _index_axes_first(call: Call, value: Any, to: FullIndex) -> Any:
    """Return `value` with the axes of the index arrays first, as NumPy writes them."""
    value = call.padded(value, to.ndim) if call.has(value) else as_array(value)
    if not to.first or np.ndim(value) <= to.ndim - to.first - to.depth:
        return value
    value = np.reshape(value, (1,) * (to.ndim + 1 - np.ndim(value)) + np.shape(value))
    return np.moveaxis(value, range(1 + to.first, 1 + to.first + to.depth), range(1, 1 + to.depth))


def _must_have_members(call: Call, x: Any) -> None:
    if not call.has(x):
        raise EnsembleError(
            "values that differ from member to member cannot be written into an array that all "
            "members share. Start from np.zeros_like of an ensemble, or build the value with "
            "np.where."
        )


@register
def setitem(x: Any, index: Any, value: Any) -> None:
    """Write `value` to ``x[index]``, for each member."""
    call = Call(x, index, value)
    _must_have_members(call, x)
    if call.has(index) and index.dtype == np.bool:
        _write_where(call, x, index, value)
        return
    x, index = _expand_booleans(x, index)
    to = full_index(index, x.ndim)
    if any(_is_array(e) for e in to.entries):
        where = (_member_numbers(call, to), *_with_member_axis(call, to))
        x.members[where] = _index_axes_first(call, value, to)
    else:
        value = call.padded(value, to.ndim) if call.has(value) else value
        x.members[(slice(None), *to.entries)] = value


def _write_where(call: Call, x: Any, mask: Any, value: Any) -> None:
    if np.ndim(value):
        raise EnsembleError(
            "x[mask] = values would need another number of values for each member; write one "
            "number a member, or use np.where(mask, values, x)."
        )
    missing = x.ndim - mask.ndim
    where = mask.members.reshape(mask.members.shape + (1,) * missing)
    np.copyto(x.members, call.padded(value, x.ndim), where=where)


def at(ufunc: Any, x: Any, index: Any, *value: Any) -> None:
    """Apply ``ufunc.at(x, index, value)``: an index may occur several times."""
    call = Call(x, index, value)
    _must_have_members(call, x)
    x, index = _expand_booleans(x, index)
    to = full_index(index, x.ndim)
    where = (_member_numbers(call, to), *_with_member_axis(call, to))
    ufunc.at(x.members, where, *[_index_axes_first(call, v, to) for v in value])
