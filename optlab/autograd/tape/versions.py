"""Who has written to which memory: how backward notices that a value it saved is gone.

Leaves count the writes to their own memory (see `tape.Leaf.overwritten`). Every other write of a
Tensor in place is noted here, under the array that owns the memory, so that views find it too. The
table is empty, and costs nothing, until something is written in place.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend.arrays import owner_of

#: Numbers what happens: operations as they are recorded, and writes to memory that they may have
#: saved. What was saved before a write is older than it.
clock = itertools.count(1)


class _Times:
    """When anything was last written in place, anywhere: if not since, backward asks no further."""

    __slots__ = ("last_write",)

    def __init__(self) -> None:
        self.last_write = 0


times = _Times()


class WriteRecord:
    """The writes to one piece of memory.

    Attributes
    ----------
    time : int
        When the last one was, on the clock that also numbers nodes.
    writer : str
        Who wrote last, and in which line.
    order : int
        The number of the node that wrote last, 0 if no recorded operation did. A Tensor on the same
        memory whose node is older no longer says where its values come from.
    """

    __slots__ = ("order", "owner", "time", "writer")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.time = 0
        self.writer = ""
        self.order = 0


_RECORDS: dict[int, WriteRecord] = {}


def record_of(array: Any) -> WriteRecord | None:
    """Give what is known of writes to the memory of `array`."""
    return _RECORDS.get(id(owner_of(array))) if _RECORDS else None


def record_write(array: Any, writer: str, order: int = 0) -> None:
    """Note that the memory of `array` has been written to."""
    owner = owner_of(array)
    key = id(owner)
    record = _RECORDS.get(key)
    if record is None:

        def forget(_: Any) -> None:
            if _RECORDS.pop(key, None) is not None:
                slow_path.leave(written=True)

        record = _RECORDS[key] = WriteRecord(weakref.ref(owner, forget))
        slow_path.enter(written=True)
    record.time = times.last_write = next(clock)
    record.writer = writer
    record.order = max(record.order, order)


def writer_since(time: int, values: Iterable[Any]) -> str | None:
    """Name who wrote to the memory of one of `values` (arrays, or tuples of them) after `time`."""
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
    """Note that what was written to the memory of `array` is the value of a node.

    A second run has written to memory of its own; its values stand for those of the first.
    """
    record = record_of(array)
    if record is not None:
        record.order = min(record.order, order)


def check_fresh(tensors: Iterable[Any]) -> None:
    """Make sure that the tape still says where the values of these Tensors come from.

    Raises
    ------
    RuntimeError
        If one shares its memory with another Tensor through which it was written to.
    """
    if not recording.on:  # no gradient will ask
        return
    for t in tensors:
        record = record_of(t.data) if isinstance(t, TensorBase) else None
        if record is None or not record.order:
            continue
        if t.node is None or t.node.order < record.order:
            raise RuntimeError(
                f"the memory of this Tensor of shape {t.shape} was written to through another "
                f"Tensor ({record.writer}), so its own gradient would be wrong. Write to the whole "
                "Tensor instead (t[0:2] += 1, not v = t[0:2]; v += 1), and take views of it after."
            )


def same_memory(a: Any, b: Any) -> bool:
    """Say whether two arrays are the same elements of the same memory."""
    if type(a) is not type(b) or a.shape != b.shape or not isinstance(a, np.ndarray):
        return False
    first = (0,) * a.ndim + (...,)
    return a.strides == b.strides and (a.size == 0 or bool(np.may_share_memory(a[first], b[first])))
