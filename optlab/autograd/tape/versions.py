"""Version counters: in-place writes, by which backward detects that a saved value was overwritten.

Leaves record writes to their own memory (see `nodes.Leaf.mark_overwritten`). Every other in-place
write of a Tensor is recorded here by the array that owns the memory, so that views find it too. The
table is empty, and costs nothing, before the first write.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from optlab.autograd.tape.slow_path import slow_path
from optlab.backend.arrays import owner_of

#: Numbers recorded operations and in-place writes: a value saved before a write has the smaller
#: number.
clock = itertools.count(1)


class _Times:
    """The time of the last in-place write of all: backward checks only nodes that are older."""

    __slots__ = ("last_write",)

    def __init__(self) -> None:
        self.last_write = 0


times = _Times()


class WriteRecord:
    """The in-place writes to the memory of one array.

    Attributes
    ----------
    time : int
        Of the last write, on the clock that numbers nodes.
    writer : str
        The call of the last write, and its line.
    order : int
        The number of the node of the last recorded write; 0 for none. The node of a Tensor on the
        same memory that is older is out of date.
    """

    __slots__ = ("order", "owner", "time", "writer")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.time = 0
        self.writer = ""
        self.order = 0


_RECORDS: dict[int, WriteRecord] = {}


def record_of(array: Any) -> WriteRecord | None:
    """Return the record of writes to the memory of `array`; None if there were none."""
    return _RECORDS.get(id(owner_of(array))) if _RECORDS else None


def record_write(array: Any, writer: str, order: int = 0) -> None:
    """Record an in-place write to the memory of `array`."""
    owner = owner_of(array)
    key = id(owner)
    record = _RECORDS.get(key)
    if record is None:

        def forget(_: Any) -> None:
            if _RECORDS.pop(key, None) is not None:
                slow_path.leave(written=True)

        # First: after an interrupt in between the slow path is taken in vain, not left twice.
        slow_path.enter(written=True)
        record = _RECORDS[key] = WriteRecord(weakref.ref(owner, forget))
    record.time = times.last_write = next(clock)
    record.writer = writer
    record.order = max(record.order, order)


def writer_since(time: int, values: Iterable[Any]) -> str | None:
    """Return who wrote after `time` to one of `values` (arrays, or tuples of them), or None."""
    for value in values:
        if isinstance(value, tuple):
            writer = writer_since(time, value)
            if writer is not None:
                return writer
        else:
            record = record_of(value)
            if record is not None and record.time > time:
                return record.writer
    return None


def attribute_to(array: Any, order: int) -> None:
    """Attribute the writes to the memory of `array` to an earlier node.

    A replay writes to its own memory; its values stand for those of the nodes of the first run.
    """
    record = record_of(array)
    if record is not None:
        record.order = min(record.order, order)


def same_memory(a: Any, b: Any) -> bool:
    """Return whether two arrays are the same elements of the same memory."""
    if type(a) is not type(b) or a.shape != b.shape or not isinstance(a, np.ndarray):
        return False
    first = (0,) * a.ndim + (...,)
    return a.strides == b.strides and (a.size == 0 or bool(np.may_share_memory(a[first], b[first])))
