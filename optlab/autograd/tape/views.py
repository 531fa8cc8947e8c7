"""Views: Tensors on memory of another Tensor, and how they hear of writes to it.

The result of an operation that shares memory with its input (a slice, a row, a transpose) refers to
that input: its base. A recorded write gives a new node to the Tensor that is written to and to its
bases (see `tensor.in_place`). Other views of that memory find, when they are read next, that their
node is older than the last write, and derive a new one from their base.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.operation import Operation
from optlab.autograd.tape import versions
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.nodes import Node
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import events
from optlab.backend.arrays import owner_of

_array = np.ndarray
# Not an attribute access: that would call `__getattr__` of Tensors where the slot is not set.
_slot: Any = vars(TensorBase)["viewed"].__get__


class View(NamedTuple):
    """What a Tensor is a view of.

    Attributes
    ----------
    base : Tensor
        The Tensor whose memory it shares.
    operation, static
        The operation that made the view, and its arguments that are not arrays.
    """

    base: Any
    operation: Operation
    static: dict[str, Any]


def link(t: Any, base: Any, operation: Operation, static: dict[str, Any]) -> None:
    """Note that `t` is a view of `base`, if they share memory: an index of lists makes a copy."""
    y, x = t.data, base.data
    if y.__class__ is _array is x.__class__:
        below = y.base
        if (
            y is not x
            and (below is None or (below is not x and below is not x.base))
            and (below is None or below.__class__ is _array or owner_of(y) is not owner_of(x))
        ):
            return
    elif isinstance(y, np.generic) or owner_of(y) is not owner_of(x):
        return
    elif y.__class__ is not x.__class__ or getattr(y, "level", 0) != getattr(x, "level", 0):
        return  # it enters or leaves an ensemble
    t.viewed = base, operation, static


def link_parts(parts: Iterable[Any], base: Any, operation: Operation, indices: Any) -> None:
    """Note that each of `parts` is the view of `base` at one of `indices`."""
    if recording.on and isinstance(base, TensorBase):
        for t, index in zip(parts, indices, strict=True):
            link(t, base, operation, {"index": index})


def view_of(t: Any) -> View | None:
    """Return what a Tensor is a view of; None for a Tensor on memory of its own."""
    try:
        view = View(*_slot(t))
    except AttributeError:
        return None
    # Either may have been moved to other memory since, to a device for instance.
    return view if owner_of(view.base.data) is owner_of(t.data) else None


def bases_of(t: Any) -> Iterable[Any]:
    """Yield the Tensors that `t` is a view of, the nearest first."""
    while (view := view_of(t)) is not None:
        t = view.base
        yield t


def renew(t: Any) -> str | None:
    """Bring the node of a Tensor up to date after writes through others.

    Returns
    -------
    str or None
        The writer if that is impossible: neither the Tensor nor a base of it knows of the write.
    """
    record = versions.record_of(t.data)
    if record is None or not record.order:
        return None
    stale = []
    while t.node is None or t.node.order < record.order:
        stale.append(t)
        view = view_of(t)
        if view is None:
            return record.writer
        t = view.base
    for t in reversed(stale):
        t.node = _node_of(t, *_slot(t))
    return None


def _node_of(t: Any, base: Any, operation: Operation, static: dict[str, Any]) -> Node:
    """Return a node that makes the view `t` from the current values of its base."""
    edge = base.node
    recipe = operation.recipe(1)
    saved = recipe.select((base.data, t.data, base.shape))
    node = Node(operation, (edge,), saved, recipe, static, t.shape, t.dtype, edge.source)
    if events.operation_recorded.listeners:
        events.operation_recorded.publish(node)
    return node


def renew_all(values: Iterable[Any]) -> None:
    """Bring the nodes of the Tensors among `values` up to date, where that is possible."""
    if slow_path.written:
        for t in values:
            if isinstance(t, TensorBase):
                renew(t)
            elif isinstance(t, (tuple, list)):
                renew_all(t)


def is_recorded(t: Any) -> bool:
    """Return whether a Tensor needs a gradient, after writes through others too."""
    if slow_path.written:
        renew(t)
    return t.node is not None


def check_fresh(tensors: Iterable[Any]) -> None:
    """Bring the nodes of these Tensors up to date.

    Raises
    ------
    RuntimeError
        If the memory of one was written to through a Tensor that is no view of it on the tape.
    """
    if not recording.on:  # no gradient depends on it
        return
    for t in tensors:
        writer = renew(t) if isinstance(t, TensorBase) else None
        if writer is not None:
            raise RuntimeError(
                f"the memory of this Tensor of shape {t.shape} was written to through another "
                f"Tensor ({writer}) that is cut off from it (by .detach(), or as a view taken "
                "inside no_grad), so its own gradient would be wrong. Write to the Tensor itself "
                "or to a view of it (t[0:2] += 1, or v = t[0:2]; v += 1), or give .detach().copy()."
            )
