"""In-place writes to Tensors: ``t[i] = v``, ``t += v``, and how the tape records them.

The memory itself is written, so views and aliases see the new values. The Tensor then has a new
node: the operation that made the new values. Backward detects that operations had saved the old
values (see `tape.versions`); a Tensor on the same memory whose node is out of date raises an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optlab.autograd.operation import Operation, as_single_operation, rule
from optlab.autograd.rules.elementwise import (
    ADD,
    DIVIDE,
    FLOOR_DIVIDE,
    MULTIPLY,
    POWER,
    REMAINDER,
    SUBTRACT,
)  # fmt: skip
from optlab.autograd.rules.linalg.linear_algebra import MATMUL
from optlab.autograd.rules.manipulation.indexing import has_unique_elements
from optlab.autograd.tape import anomaly_mode, saved_tensors, versions
from optlab.autograd.tape.apply import apply
from optlab.autograd.tape.base import TensorBase, new_tensor, raw
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.nodes import InputLeaf, Leaf, Node
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tape.write_observers import about_to_write
from optlab.autograd.tensor.powers import power
from optlab.backend import events
from optlab.backend.arrays import Shape, constants_beside, placed_beside
from optlab.backend.dtypes import is_floating
from optlab.backend.ensemble import EnsembleArray
from optlab.backend.user_frames import frame_outside, location_of

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor

#: The operations behind ``t += v`` and the like.
OPERATIONS: dict[str, Operation] = {
    "+": ADD, "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE, "//": FLOOR_DIVIDE, "%": REMAINDER,
    "**": POWER, "@": MATMUL,
}  # fmt: skip


def assign(x: Any, value: Any, index: Any) -> Any:
    """Return a copy of `x` with `value` assigned at `index`.

    Examples
    --------
    >>> import numpy as np
    >>> assign(np.zeros(3), 5.0, slice(1, None))
    array([0., 5., 5.])
    """
    x = x.copy()
    x[index] = value
    return x


def _assigned(x: Any, value: Any, index: Any) -> Any:
    """Run `assign` on arrays or Tensors."""
    return as_single_operation(assign, x, value, index)


def _value_gradient(g: Any, x_shape: Shape, index: Any) -> Any:
    """Return the gradient of the assigned value: 0 where a repeated index overwrote it."""
    taken = g[index]
    if has_unique_elements(index):
        return taken
    counted = np.arange(int(np.prod(np.shape(taken)))).reshape(np.shape(taken))
    places = constants_beside(g, counted)
    last = constants_beside(g, np.full(x_shape, -1))
    last[index] = places
    stayed = last[index] == places
    return taken if stayed.all() else taken * stayed


ASSIGN = rule(
    assign,
    lambda g, index: _assigned(g, 0.0, index),
    lambda g, x_shape, index: _value_gradient(g, x_shape, index),
    inputs="x value",
    static="index",
)


def write_item(t: Tensor, index: Any, value: Any) -> None:
    """Run ``t[index] = value`` and record it."""
    _refuse_leaf(t, "t[i] = x", "np.where, np.concatenate or optlab.numpy.stack")
    node = value.node if isinstance(value, TensorBase) else None
    if not recording.on or (t.node is None and node is None):
        before = t.data
        data = _own_memory(t, raw(value))
        data[index] = placed_beside(data, raw(value), "what is written")
        _mark_overwritten(t, before, _writer("item assignment"))
        return
    data = _own_memory(t, raw(value))
    covered = slow_path.any and versions.same_memory(data[index], raw(value))
    if slow_path.any and not covered:
        versions.check_fresh((t, value))
    if not is_floating(t.dtype):
        raise TypeError(
            f"a Tensor of dtype {t.dtype} cannot take in values that need a gradient; make it of a "
            "floating dtype, or give it the .detach() of them."
        )
    new = placed_beside(data, raw(value), "what is written")
    if not covered:
        data[index] = new
    recipe = ASSIGN.recipe((t.node is not None) + 2 * (node is not None))
    shapes = (data.shape, np.shape(new))
    made = Node(
        ASSIGN,
        (t.node, node),
        recipe.select((data, new, data, *shapes)),
        recipe,
        {"index": index},
        t.shape,
        t.dtype,
    )
    if slow_path.any and anomaly_mode.depth.value:
        anomaly_mode.check_forward(made, (new,), data)
    if events.operation_recorded.listeners:
        events.operation_recorded.publish(made)
    _move_to_node(t, made, _writer("item assignment"))


def combine(t: Tensor, symbol: str, other: Any) -> Tensor:
    """Run ``t += other`` or another operator, record it, and return `t`."""
    _refuse_leaf(t, f"t {symbol}= x", f"t = t {symbol} x")
    node = other.node if isinstance(other, TensorBase) else None
    operation = OPERATIONS[symbol]
    old = t
    if recording.on and (t.node is not None or node is not None):
        mask = (t.node is not None) + 2 * (node is not None)
        # If a rule, or a policy that runs this again, reads the old values later, it needs a copy.
        again = slow_path.any and saved_tensors.innermost() is not None
        if again or symbol == "**" or 0 in operation.recipe(mask).saved_inputs:
            old = new_tensor(t.data.copy(), t.node)
    result = power(old, other) if symbol == "**" else apply(operation, (old, other))
    if result.shape != t.shape:
        raise ValueError(
            f"t {symbol}= x keeps the shape of t, {t.shape}, but t {symbol} x has shape "
            f"{result.shape}. Write t = t {symbol} x."
        )
    if result.dtype != t.dtype:
        if not np.can_cast(result.dtype, t.dtype, "same_kind"):
            raise TypeError(
                f"t {symbol}= x keeps the dtype of t, {t.dtype}, but t {symbol} x is of "
                f"{result.dtype}. Write t = t {symbol} x."
            )
        result = result.astype(t.dtype)
    new = result.data
    if isinstance(t.data, np.generic) or not isinstance(new, (type(t.data), np.generic)):
        # A scalar, or an array of another type than that of t, cannot be written to: replace it.
        if slow_path.any:
            about_to_write(t)
        t.data, t.node = new, result.node or t.node
        return t
    before = t.data
    data = _own_memory(t)
    data[...] = new
    if result.node is not None:
        _move_to_node(t, result.node, _writer(f"{symbol}="))
    else:
        _mark_overwritten(t, before, _writer(f"{symbol}="))
    return t


def overwrite(t: Tensor, values: Any, writer: str) -> None:
    """Overwrite `t` with `values`, unrecorded, as initializers and ``set_value`` do."""
    before = t.data
    _own_memory(t)[...] = values
    _mark_overwritten(t, before, writer)


def _refuse_leaf(t: Tensor, what: str, instead: str) -> None:
    """Raise an error for a recorded write to a leaf or a view of one."""
    leaf = None if t.node is None else t.node.source
    if leaf is None or isinstance(leaf, InputLeaf) or not recording.on:
        return
    name = f"{leaf.name!r}" if leaf.name else f"a Tensor of shape {leaf.shape}"
    which = name if isinstance(t.node, Leaf) else f"a view of {name}"
    raise TypeError(
        f"{what} would overwrite {which} that collects a gradient, and the gradient would be for "
        "values that are gone. To take a step write inside `with optlab.no_grad():` (and clear the "
        f"gradient), or let an optimizer take it; to compute on, make a new value ({instead})."
    )


def _own_memory(t: Tensor, new: Any = None) -> Any:
    """Return the array of `t`, or a copy that replaces it where that is not writeable.

    If the values to write, `new`, differ between members of an ensemble, `t` becomes an ensemble.

    Raises
    ------
    TypeError
        If the memory is shared and read-only: the gradient in a hook, an argument of
        `Function.forward`.
    """
    if slow_path.any:
        about_to_write(t)
    data = t.data
    if isinstance(new, EnsembleArray) and not isinstance(data, EnsembleArray):
        t.data = np.zeros_like(new, shape=data.shape, dtype=data.dtype) + data
    elif isinstance(data, np.generic):
        t.data = np.array(data)
    elif not getattr(getattr(data, "flags", None), "writeable", True):
        if 0 not in data.strides or not data.size:
            raise TypeError(
                f"the memory of this Tensor of shape {t.shape} is shared by others and read-only. "
                "Make a new value (g = g * 2 in place of g *= 2) and give that back."
            )
        t.data = data.copy()  # broadcast: several elements share memory
    return t.data


def _move_to_node(t: Tensor, node: Any, writer: str) -> None:
    """Set the node of `t` to that of its new values, and record the write."""
    t.node = node
    versions.record_write(t.data, writer, node.order)


def _mark_overwritten(t: Tensor, before: Any, writer: str) -> None:
    """Record a write to `t` off the tape; `before` is its array before the write."""
    leaf = None if t.node is None else t.node.source
    if leaf is not None and t.data is before:
        leaf.mark_overwritten(writer)
    else:
        versions.record_write(t.data, writer)


def _writer(what: str) -> str:
    return f"{what} ({location_of(frame_outside('optlab', 'numpy'))})"
