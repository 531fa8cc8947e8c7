"""`apply`: run an operation on Tensors and arrays, and record it where a gradient is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from optlab.autograd.operation import Operation
from optlab.autograd.tape import anomaly_mode, base, constants, saved_tensors, versions, views
from optlab.autograd.tape.base import TensorBase, as_operand, not_real, raw
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.half_precision import (
    HALVES,
    cast_by_policy,
    enable_half,
    forward_in_float32,
    halves,
)
from optlab.autograd.tape.multi_output import outputs_of, tuple_like
from optlab.autograd.tape.nodes import Node
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import events
from optlab.backend.arrays import check_matmul_shapes, check_same_device
from optlab.backend.call_recorder import here
from optlab.backend.dtypes import is_floating
from optlab.backend.wrong_arguments import check_axes

Forward = Callable[..., Any]
T = TypeVar("T", bound=type[TensorBase])

_NOTHING: dict[str, Any] = {}
_array = np.ndarray
#: The names of static arguments that are axes.
_AXES = ("axis", "axes", "axis1", "axis2")
#: Types of operands that are used unchanged; others are converted by `as_operand`.
_PLAIN = (np.ndarray, np.generic, int, float)
_new: Any = object.__new__

#: The class of results. A global of this module: one operation looks it up up to four times.
Tensor: Any = TensorBase


def register(cls: T) -> T:
    """Register the decorated class as that of the results of operations."""
    global Tensor
    Tensor = cls
    base.register(cls)
    return cls


def apply(operation: Operation, inputs: Sequence[Any], static: dict[str, Any] = _NOTHING) -> Any:
    """Run `operation` on Tensors and arrays; record it where a gradient is needed.

    Returns a Tensor, or a tuple of them for an operation with several outputs.
    """
    forward = operation.forward
    if slow_path.any:
        if slow_path.written:
            views.check_fresh(inputs)
        if halves.policy is not None:
            inputs = cast_by_policy(operation, inputs)
        for x in inputs if halves.on else ():
            if getattr(x.data if isinstance(x, Tensor) else x, "dtype", None) in HALVES:
                forward = forward_in_float32(operation)
                break
        if events.operation_ran.listeners or events.operation_starts.listeners:
            forward = _with_events(operation.name, forward, inputs)
        if here.recorder is not None:
            inputs = here.recorder.plain_arrays(inputs)
            forward = here.recorder.forward(operation, forward, inputs)
    values: Any
    edges: tuple[Any, ...]
    values = inputs
    try:
        if len(inputs) == 2:  # unrolled for few inputs: the loop takes twice as long
            a, b = inputs
            one = two = None
            if isinstance(a, Tensor):
                one, a = a.node, a.data
            elif not isinstance(a, _PLAIN):
                a = as_operand(a)
            if isinstance(b, Tensor):
                two, b = b.node, b.data
            elif not isinstance(b, _PLAIN):
                b = as_operand(b)
            mask = (one is not None) + 2 * (two is not None)
            y = forward(a, b, **static) if static else forward(a, b)
            values, edges = (a, b, y), (one, two)
        elif len(inputs) == 1 and isinstance(inputs[0], Tensor):
            (t,) = inputs
            one, a = t.node, t.data
            mask = 0 if one is None else 1
            y = forward(a, **static) if static else forward(a)
            values, edges = (a, y), (one,)
        elif (
            len(inputs) == 3
            and isinstance((a := inputs[0]), Tensor)
            and isinstance((b := inputs[1]), Tensor)
            and isinstance((c := inputs[2]), Tensor)
        ):
            edges = one, two, three = a.node, b.node, c.node
            a, b, c = a.data, b.data, c.data
            mask = (one is not None) + 2 * (two is not None) + 4 * (three is not None)
            y = forward(a, b, c, **static) if static else forward(a, b, c)
            values = (a, b, c, y)
        else:
            values, nodes, mask, bit = [], [], 0, 1
            for x in inputs:
                if isinstance(x, Tensor):
                    values.append(x.data)
                    node = x.node
                    nodes.append(node)
                    if node is not None:
                        mask += bit
                else:
                    values.append(x if isinstance(x, _PLAIN) else as_operand(x))
                    nodes.append(None)
                bit += bit
            y = forward(*values, **static) if static else forward(*values)
            values, edges = (*values, y), tuple(nodes)
    except TypeError as error:
        if error.__class__ is base.MetPair:
            return base.answer_pair(operation, inputs, static)
        check_same_device(operation.name, [raw(x) for x in inputs])
        raise
    except (ValueError, OverflowError):
        check_matmul_shapes(operation.name, [raw(x) for x in inputs])
        axes = [value for name, value in static.items() if name in _AXES]
        check_axes(axes, np.ndim(raw(inputs[0])))
        raise
    if not mask or not recording.on:
        if operation.several:
            return tuple_like(y, map(Tensor, y))
        result = Tensor(y)
        if operation.view and recording.on:
            views.link(result, inputs[0], operation, static)
        return result
    recipe = operation.recipes.get(mask) or operation.recipe(mask)
    large = False
    if recipe.constants and (not slow_path.any or here.recorder is None):
        values, large = constants.copy_constants(values, inputs, recipe.constants)
    if recipe.needs_shapes:
        shapes = [x.shape if type(x) is _array else np.shape(x) for x in values[:-1]]
        values = (*values, *shapes, *y) if operation.several else (*values, *shapes)
    shape, dtype = ((), y[0].dtype) if operation.several else (y.shape, y.dtype)
    if dtype.char not in "fd":
        if not is_floating(dtype):
            raise not_real(operation.name, dtype)
        enable_half(dtype)
    source = edges[0].source if operation.view and edges[0] is not None else None
    node = _new(Node)  # the same as Node(...) in half the time
    node.operation, node.edges, node.recipe, node.static = operation, edges, recipe, static
    node.saved, node.shape, node.dtype, node.source = recipe.select(values), shape, dtype, source
    node.order, node.hooks = next(versions.clock), None
    if slow_path.needs_values:
        node.saved = saved_tensors.apply_policy(node, node.saved, _without_events(forward), values)
        if anomaly_mode.depth.value:
            anomaly_mode.check_forward(node, values[: len(inputs)], y)
    if large and node.saved.__class__ is tuple:
        node.saved = constants.with_checksums(operation.name, node.saved, recipe.sources, inputs)
    if events.operation_recorded.listeners:
        events.operation_recorded.publish(node)
    if operation.several:
        return outputs_of(node, y)
    result = _new(Tensor)  # the same as Tensor(y, node) in half the time
    result.data, result.node = y, node
    if operation.view:
        views.link(result, inputs[0], operation, static)
    return result


def apply_several(
    operation: Operation, inputs: Sequence[Any], static: dict[str, Any] = _NOTHING
) -> tuple[Any, ...]:
    """Run an operation with several outputs, as `apply` does; return a tuple of Tensors."""
    return apply(operation, inputs, static)  # type: ignore[no-any-return]


def _with_events(name: str, forward: Forward, inputs: Sequence[Any]) -> Forward:
    """Return a forward function that publishes its call and its result."""
    events.operation_starts.publish(name, inputs)
    return partial(_run, name, forward)


def _run(name: str, forward: Forward, /, *values: Any, **static: Any) -> Any:
    events.operation_starts.publish(name, (*values, *static.values()))
    y = forward(*values, **static)
    events.operation_ran.publish(name, values, y)
    return y


def _without_events(forward: Forward) -> Forward:
    """Return the forward function inside one of `_with_events`; any other unchanged."""
    while isinstance(forward, partial) and forward.func in (_run, *recorded_calls):
        forward = forward.args[-1]
    return forward


#: The functions around a forward function, the last argument, in a captured call.
recorded_calls: list[Forward] = []
