"""In-place writes to Tensors: ``t[i] = v``, ``t += v``, and how the tape records them.

The memory itself is written, so views and aliases see the new values. The Tensor then has a new
node: the operation that made the new values; and so has every Tensor that it is a view of, up to
the one that owns the memory. Other views derive theirs when they are read (see `tape.views`).
Backward detects that operations had saved the old values (see `tape.versions`).
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
from optlab.autograd.rules.manipulation.indexing import GETITEM, has_unique_elements
from optlab.autograd.tape import anomaly_mode, saved_tensors, versions, views
from optlab.autograd.tape.apply import apply
from optlab.autograd.tape.base import TensorBase, new_tensor, raw
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.nodes import InputLeaf, Leaf, Node
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tape.write_observers import about_to_write
from optlab.autograd.tensor.powers import power
from optlab.backend import events
from optlab.backend.arrays import Shape, constants_beside, owner_of, placed_beside
from optlab.backend.call_recorder import here
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


def _viewed(x: Any, operation: Operation, options: dict[str, Any]) -> Any:
    """Take the view of an array or a Tensor that an operation makes."""
    if isinstance(x, TensorBase):
        return apply(operation, (x,), options)
    return operation.forward(x, **options)


def _through(value: Any, operation: Operation, options: dict[str, Any], shape: Shape) -> Any:
    """Return the array of which `value` is the view, where a view shows every element of it."""
    recipe = operation.recipe(1)
    ((_, run),) = recipe.pullbacks
    return run(value, recipe.select((None, None, shape)), options)


#: A write through a view of all elements, such as a transpose; not in the table of rules.
THROUGH = Operation(
    "write through a view", _through,
    [lambda g, operation, options: _viewed(g, operation, options)],
    ["value"], ["operation", "options", "shape"],
)  # fmt: skip


def write_item(t: Tensor, index: Any, value: Any) -> None:
    """Run ``t[index] = value`` and record it."""
    if here.recorder is not None:
        here.recorder.written(write_item, t, index, value)
        return
    if slow_path.written:
        views.check_fresh((t, value))
    _refuse_leaf(t, "t[i] = x", "np.where, np.concatenate or optlab.numpy.stack")
    node = value.node if isinstance(value, TensorBase) else None
    if not recording.on or (t.node is None and node is None):
        before = t.data
        data = _own_memory(t, raw(value))
        data[index] = placed_beside(data, raw(value), "what is written")
        _mark_overwritten(t, before, _writer("item assignment"))
        return
    data = _own_memory(t, raw(value))
    through_view = slow_path.written and isinstance(value, TensorBase)
    if (
        through_view
        and any(base is t for base in views.bases_of(value))
        and versions.same_memory(data[index], raw(value))
    ):
        return  # t[0:2] += 1 has written through the view t[0:2], and assigns that now
    if not is_floating(t.dtype):
        raise TypeError(
            f"a Tensor of dtype {t.dtype} cannot take in values that need a gradient; make it of a "
            "floating dtype, or give it the .detach() of them."
        )
    new = placed_beside(data, raw(value), "what is written")
    data[index] = new
    made = _assignment(t, node, new, index)
    if slow_path.any and anomaly_mode.depth.value:
        anomaly_mode.check_forward(made, (new,), data)
    _move_to_node(t, made, _writer("item assignment"))


def _assignment(t: Tensor, node: Any, value: Any, index: Any) -> Node:
    """Return the node of `t` with `value`, whose node is `node`, at `index`."""
    mask = (t.node is not None) + 2 * (node is not None)
    return _recorded(ASSIGN, mask, (t.node, node), (t.data, value), t, {"index": index})


def _recorded(
    operation: Operation, mask: int, edges: Any, values: Any, t: Tensor, static: dict[str, Any]
) -> Node:
    """Return the node of an operation that has written `t`, given the values of its inputs."""
    recipe = operation.recipe(mask)
    saved = recipe.select((*values, t.data, *map(np.shape, values)))
    made = Node(operation, edges, saved, recipe, static, t.shape, t.dtype)
    if events.operation_recorded.listeners:
        events.operation_recorded.publish(made)
    return made


def combine(t: Tensor, symbol: str, other: Any) -> Tensor:
    """Run ``t += other`` or another operator, record it, and return `t`."""
    if here.recorder is not None:
        here.recorder.written(combine, t, symbol, other)
        return t
    if slow_path.written:
        views.check_fresh((t, other))
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
        if isinstance(other, TensorBase) and owner_of(other.data) is owner_of(t.data):
            other = new_tensor(other.data.copy(), other.node)  # y[0] *= y[1] writes over it
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
        if not isinstance(t.data, np.generic):
            _leave_memory(t, f"{symbol}=")
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
    if not recording.on:
        return
    owners = [one.node.source for one in (t, *views.bases_of(t)) if one.node is not None]
    leaf = next((one for one in owners if one is not None), None)
    if leaf is None or isinstance(leaf, InputLeaf):
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
        _leave_memory(t, "item assignment")
        t.data = np.zeros_like(new, shape=data.shape, dtype=data.dtype) + data
    elif isinstance(data, np.generic):
        t.data = np.array(data)
    elif not getattr(getattr(data, "flags", None), "writeable", True):
        if 0 not in data.strides or not data.size:
            if views.view_of(t) is not None:
                raise TypeError(
                    f"this Tensor of shape {t.shape} is a view that NumPy makes read-only "
                    "(np.diagonal, sliding_window_view). Write to the Tensor that it is a view of "
                    "(t[i, i] = x), or to a copy (t.copy())."
                )
            raise TypeError(
                f"the memory of this Tensor of shape {t.shape} is shared by others and read-only. "
                "Make a new value (g = g * 2 in place of g *= 2) and give that back."
            )
        t.data = data.copy()  # broadcast: several elements share memory
    return t.data


def _move_to_node(t: Tensor, node: Any, writer: str) -> None:
    """Set the node of `t` to that of its new values, record the write, and tell the bases of it."""
    t.node = node
    versions.record_write(t.data, writer, node.order)
    while (view := views.view_of(t)) is not None:
        base, operation, static = view
        if operation is GETITEM:
            base.node = _assignment(base, t.node, t.data, static["index"])
        elif t.size == base.size:
            static = {"operation": operation, "options": static, "shape": base.shape}
            base.node = _recorded(THROUGH, 1, (t.node,), (t.data,), base, static)
        else:
            places = operation.forward(np.arange(base.size).reshape(base.shape), **static)
            index = np.unravel_index(places, base.shape)
            base.node = _assignment(base, t.node, t.data, index)
        t = base


def _leave_memory(t: Tensor, writer: str) -> None:
    """Check that `t` may be given other memory; its views raise an error from then on."""
    if views.view_of(t) is not None:
        raise TypeError(
            f"{writer} would write values that differ between the examples of vmap into a view (of "
            f"shape {t.shape}) of a Tensor that all of them share. Make that Tensor of an argument "
            "(np.zeros_like(x)), or write to the whole of it first (t[...] = 0 * x)."
        )
    if recording.on:
        versions.record_write(t.data, _writer(writer), next(versions.clock))


def _mark_overwritten(t: Tensor, before: Any, writer: str) -> None:
    """Record a write to `t` off the tape; `before` is its array before the write."""
    leaf = None if t.node is None else t.node.source
    if leaf is not None and t.data is before:
        leaf.mark_overwritten(writer)
    else:
        versions.record_write(t.data, writer)


def _writer(what: str) -> str:
    return f"{what} ({location_of(frame_outside('optlab', 'numpy'))})"
