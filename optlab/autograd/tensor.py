"""Tensor: an array that remembers how it was computed.

Read this file and `tape` first, then `gradients` and `backpropagation`: together they are the whole
of reverse-mode differentiation here. The derivative rules themselves are in `rules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from optlab.autograd import anomaly, constants, saving, writes
from optlab.autograd.conversions import (
    Conversions,
    SilentDetachError,
    as_operand,
    needs_grad,
    not_real,
    refusal,
)
from optlab.autograd.extras import extras
from optlab.autograd.gradients import Gradients
from optlab.autograd.halves import (
    HALVES,
    cast_by_policy,
    compute_together,
    forward_in_float32,
    halves,
    meet,
)
from optlab.autograd.methods import ArrayMethods
from optlab.autograd.mode import recording
from optlab.autograd.operation import COMPOSED, TABLE, Operation
from optlab.autograd.operators import Operators
from optlab.autograd.paddle_names import PaddleNames
from optlab.autograd.places import Places
from optlab.autograd.reported import plain, reported
from optlab.autograd.several import collected, outputs_of
from optlab.autograd.tape import Node
from optlab.backend import events
from optlab.backend.arrays import (
    as_array,
    check_matmul_shapes,
    check_same_device,
    copied,
    on_host,
    spread_beside,
)
from optlab.backend.dtypes import is_floating

__all__ = [
    "SilentDetachError",
    "Tensor",
    "apply",
    "apply_several",
    "first_gradient",
    "needs_grad",
    "raw",
    "refusal",
]

_NOTHING: dict[str, Any] = {}
_array = np.ndarray
#: What an operation takes as it is; everything else is looked at.
_PLAIN = (np.ndarray, np.generic, int, float)
_new: Any = object.__new__


class Tensor(Gradients, Operators, ArrayMethods, Conversions, Places, PaddleNames):
    """An array that, where a gradient is needed, knows the operation that made it.

    Every function of NumPy that has a rule takes Tensors: ``np.exp(t)`` simply works. Make one
    with `optlab.to_tensor`.

    Parameters
    ----------
    data : array
        The array itself, of any shape and dtype, not copied.
    node : Node or Leaf, optional
        Its place on the tape; None for a value that needs no gradient.

    Attributes
    ----------
    data
        The array itself: read it, do not write to it.
    grad : Tensor or None
        The gradient that backward left on a Tensor made with ``requires_grad=True``.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> t = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> np.sum(t**3).backward()
    >>> t.grad
    Tensor([ 3., 12.], dtype=float32)
    """

    __slots__ = ("__weakref__", "data", "node")

    #: Functions of ours, too, become one operation of the tape (see `operation.as_one`).
    records_calls = True
    #: Where the array itself is.
    holds = "data"

    data: Any
    node: Any

    def __init__(self, data: Any, node: Any = None) -> None:
        self.data = data
        self.node = node
        if data.dtype.itemsize == 2:
            meet(data.dtype)

    def __repr__(self) -> str:
        values = as_array(on_host(self.data))
        precision = None
        if values.dtype.kind == "V":  # NumPy prints digits that bfloat16 does not have
            values, precision = values.astype(np.float32), 4
        body = np.array2string(values, precision=precision, separator=", ", prefix="Tensor(")
        asks = ", requires_grad=True" if self.node is not None else ""
        return f"{type(self).__name__}({body}, dtype={self.dtype}{asks})"

    def __len__(self) -> int:
        return len(self.data)

    __hash__ = object.__hash__

    # Out of the tape ----------------------------------------------------------------------------

    def detach(self) -> Tensor:
        """Give the same values cut off from the tape: no gradient passes through the result.

        The memory is shared, except with a Tensor that was written to in place.
        """
        record = writes.record_of(self.data)
        if record is not None and record.order and self.node is not None:
            return Tensor(self.data.copy())
        return Tensor(self.data)

    # What NumPy calls when it meets a Tensor (NEP 13, NEP 18) -----------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        # What nearly every call is, without further questions; COMPOSED is filled by the first.
        if method == "__call__" and not kwargs and COMPOSED and ufunc not in COMPOSED:
            operation = TABLE.get(ufunc)
            if operation is not None:
                return apply(operation, inputs)
        return _dispatch().universal_function(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        written = COMPOSED.get(function)
        if written is not None and "out" not in kwargs:
            if halves.on:
                return compute_together(written, args, kwargs)
            return written(*args, **kwargs)
        return _dispatch().array_function(function, args, kwargs)


@cache
def _dispatch() -> Any:
    """Give the module that answers NumPy; it imports this one, so it is met at the first call."""
    from optlab.autograd import dispatch

    return dispatch


def apply(operation: Operation, inputs: Sequence[Any], static: dict[str, Any] = _NOTHING) -> Tensor:
    """Run `operation` on Tensors and arrays, and put it on the tape where a gradient is needed.

    For an operation with several outputs see `apply_several`.
    """
    forward = operation.forward
    if extras.on:
        if extras.on > halves.on:
            writes.check_fresh(inputs)
        if halves.policy is not None:
            inputs = cast_by_policy(operation, inputs)
        for x in inputs if halves.on else ():
            if getattr(x.data if isinstance(x, Tensor) else x, "dtype", None) in HALVES:
                forward = forward_in_float32(operation)
                break
        if events.operation_ran.listeners:
            forward = reported(operation.name, forward, inputs)
    values: Any
    edges: tuple[Any, ...]
    values = inputs
    try:
        if len(inputs) == 2:  # written out for few inputs: the loop takes twice as long
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
    except TypeError:
        check_same_device(operation.name, [raw(x) for x in inputs])
        raise
    except ValueError:
        check_matmul_shapes(operation.name, [raw(x) for x in inputs])
        raise
    if not mask or not recording.on:
        return collected(y, map(Tensor, y)) if operation.several else Tensor(y)
    recipe = operation.recipes.get(mask) or operation.recipe(mask)
    large = False
    if recipe.constants:
        values, large = constants.protected(values, inputs, recipe.constants)
    if recipe.needs_shapes:
        shapes = [x.shape if type(x) is _array else np.shape(x) for x in values[:-1]]
        values = (*values, *shapes, *y) if operation.several else (*values, *shapes)
    shape, dtype = ((), y[0].dtype) if operation.several else (y.shape, y.dtype)
    if dtype.char not in "fd":
        if not is_floating(dtype):
            raise not_real(operation.name, dtype)
        meet(dtype)
    source = edges[0].source if operation.view and edges[0] is not None else None
    node = Node(operation, edges, recipe.select(values), recipe, static, shape, dtype, source)
    if extras.on and extras.on > halves.on:
        node.saved = saving.kept(node, node.saved, plain(forward), values)
        if anomaly.mode.depth:
            anomaly.check_forward(node, values[: len(inputs)], y)
    if large and node.saved.__class__ is tuple:
        node.saved = constants.watched(operation.name, node.saved, recipe.sources, inputs)
    if events.operation_recorded.listeners:
        events.operation_recorded.publish(node)
    if operation.several:
        return outputs_of(node, y)  # type: ignore[no-any-return]
    result: Tensor = _new(Tensor)  # as Tensor(y, node) does, in half the time
    result.data, result.node = y, node
    return result


def apply_several(
    operation: Operation, inputs: Sequence[Any], static: dict[str, Any] = _NOTHING
) -> tuple[Tensor, ...]:
    """Run an operation with several outputs: as `apply`, but it gives a tuple of Tensors."""
    return apply(operation, inputs, static)  # type: ignore[return-value]


def raw(x: Any) -> Any:
    """Give the array inside a Tensor; anything else as it is."""
    return x.data if isinstance(x, Tensor) else x


def first_gradient(data: Any, grad: Any) -> Any:
    """Give the gradient that backward starts from, of the shape and kind of the value `data`."""
    if isinstance(grad, Tensor) and grad.node is None:
        grad = grad.data
    if grad.__class__ is _array and grad.dtype is data.dtype and grad.shape == data.shape:
        # A copy: the caller may go on writing to his array. A number, where NumPy made a number
        # (a loss, mostly): rules are quicker on it.
        if data.__class__ is _array:
            return grad.copy()
        if isinstance(data, np.generic):
            return grad[()]
    if grad is None:
        return data.dtype.type(1) if isinstance(data, np.generic) else np.ones_like(data)
    if isinstance(grad, Tensor):
        seed: Any = grad if grad.dtype == data.dtype else grad.astype(data.dtype)
    else:
        seed = copied(grad, data.dtype)
    if seed.shape != data.shape:
        raise ValueError(
            f"the gradient to start from must have the shape of the Tensor, {data.shape}; "
            f"got {seed.shape}."
        )
    return seed if isinstance(seed, Tensor) else spread_beside(seed, data)
