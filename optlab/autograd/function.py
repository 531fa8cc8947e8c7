"""`Function`: base class of operations with a forward and a backward written by the user."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, Recipe
from optlab.autograd.tape import anomaly_mode, multi_output, versions, views
from optlab.autograd.tape.base import needs_grad
from optlab.autograd.tape.grad_mode import grad_mode, recording
from optlab.autograd.tape.hooks import read_only
from optlab.autograd.tape.nodes import Node
from optlab.autograd.tape.saved_tensors import apply_policy
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend import events
from optlab.backend.arrays import as_array
from optlab.backend.dtypes import is_floating


class Context:
    """Values passed from `forward` to `backward`; attributes of your own can be set on it too.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of `forward`, whether its gradient is needed.
    """

    #: Gradients are not widened to float32, as for rules of the table (see `half_precision`).
    takes_gradients_as_they_are = True

    def __init__(self, inputs: Sequence[Any]) -> None:
        self.needs_input_grad = tuple(isinstance(x, Tensor) and x.node is not None for x in inputs)
        self._saved: Any = ()
        self._places: tuple[tuple[str, int] | None, ...] = ()
        self._constants: set[int] = set()
        self._inputs: Sequence[Any] = inputs
        self._node: weakref.ref[Node] | None = None

    def save_for_backward(self, *values: Any) -> None:
        """Save Tensors (or arrays, or None) for backward.

        Save inputs and outputs only here: then they are freed in time, writes over them are
        detected, and derivatives of higher order reach their nodes.
        """
        self._saved = values

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Mark outputs of `forward` through which no gradient passes."""
        self._constants |= {id(raw(output)) for output in outputs}

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values of `save_for_backward`, as Tensors (None stays None)."""
        node = self._node() if self._node is not None else None
        if node is None or self._saved is None:
            raise RuntimeError(
                "saved_tensors is for backward, and gone once backward has freed the graph. Call "
                "the first backward with retain_graph=True to run it again."
            )
        saved = self._saved
        if type(saved) is not tuple:
            saved = saved.restored()
        elif versions.times.last_write > node.order:
            self._check_unchanged(node)
        attached = []
        for value, place in zip(saved, self._places, strict=True):
            owner = None
            if recording.on and place is not None:
                kind, i = place
                owner = node.edges[i] if kind == "input" else node
                if kind == "output" and node.operation.several:
                    attached.append(multi_output.outputs_of(node, self._outputs_like(i, value))[i])
                    continue
            attached.append(None if value is None else Tensor(value, owner))
        return tuple(attached)

    def _outputs_like(self, i: int, value: Any) -> list[Any]:
        """Return stand-ins for all outputs, number i being `value`."""
        return [
            value if k == i else np.empty(shape, value.dtype)
            for k, shape in enumerate(self._shapes)
        ]

    def _settle(self, node: Node, outputs: Sequence[Any]) -> None:
        """Locate the saved values among inputs and outputs, once the node exists."""
        places: list[tuple[str, int] | None] = []
        arrays = []
        for value in self._saved:
            array = raw(value)
            place: tuple[str, int] | None = None
            for kind, group in (("input", self._inputs), ("output", outputs)):
                for i, one in enumerate(group):
                    if raw(one) is array and array is not None and place is None:
                        place = (kind, i)
            places.append(place)
            arrays.append(array)
        self._places = tuple(places)
        self._shapes = [np.shape(raw(output)) for output in outputs]
        inputs, self._inputs = self._inputs, ()
        self._node = weakref.ref(node)
        self._saved = tuple(arrays)
        if slow_path.any:
            y = tuple(map(raw, outputs)) if node.operation.several else raw(outputs[0])
            self._saved = apply_policy(node, self._saved, None, (*map(raw, inputs), y))

    def _check_unchanged(self, node: Node) -> None:
        """Raise if a saved value was overwritten."""
        for place in self._places:
            edge = node.edges[place[1]] if place is not None and place[0] == "input" else None
            leaf = None if edge is None else edge.source
            if leaf is not None and leaf.overwritten_at > node.order:
                raise node.overwritten_error(leaf.writer, leaf.name or "a Tensor", leaf.shape)
        writer = versions.writer_since(node.order, self._saved)
        if writer is not None:
            raise node.overwritten_error(writer, "a Tensor", node.shape)


class Function:
    """Base class of a user's own operation.

    Write two static methods. ``forward(ctx, *args, **kwargs)`` computes the value; its Tensors need
    no gradient, so nothing inside is recorded. ``backward(ctx, *grads)`` takes the gradient of each
    output, as Tensors, and returns the gradient of each positional argument of `forward`, None for
    one that has none. Call it as ``MyFunction.apply(*args)``.

    With ``create_graph=True`` backward itself is recorded, so that its operations on
    ``ctx.saved_tensors`` and the gradients have derivatives of any order.

    Raises
    ------
    TypeError, ValueError
        If `backward` returns another number of gradients, or one of a shape that the argument
        cannot broadcast to.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> class Cube(ol.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * g
    >>> x = ol.to_tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad.item()
    12.0
    >>> ol.check_grad(lambda x: Cube.apply(x), np.array([0.5, -2.0]), order=3)
    """

    @staticmethod
    def forward(ctx: Context, *args: Any, **kwargs: Any) -> Any:
        """Compute the value from the arguments."""
        raise NotImplementedError("a Function needs a static method forward(ctx, *args).")

    @staticmethod
    def backward(ctx: Context, *grads: Any) -> Any:
        """Compute the gradient of each argument from the gradients of the outputs."""
        raise NotImplementedError("a Function needs a static method backward(ctx, *grads).")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the operation, and record it if a gradient is needed."""
        if slow_path.any:
            views.check_fresh(args)
        if any(isinstance(x, Tensor) and x.node is not None for x in kwargs.values()):
            raise TypeError(
                f"{cls.__name__}.apply got a Tensor that needs a gradient by keyword; gradients go "
                "to positional arguments only."
            )
        for i, x in enumerate(args):
            if isinstance(x, (tuple, list, dict)) and needs_grad(x):
                raise TypeError(
                    f"{cls.__name__}.apply got a {type(x).__name__} that holds Tensors that need a "
                    f"gradient as argument {i}; give each of them as an argument of its own."
                )
        ctx = Context(args)
        given = [Tensor(read_only(x.data)) if isinstance(x, Tensor) else x for x in args]
        ctx._inputs = given
        with grad_mode(False):
            returned = cls.forward(ctx, *given, **kwargs)
        many = isinstance(returned, (tuple, list))
        parts = list(returned) if many else [returned]
        constant = [id(raw(x)) in ctx._constants for x in parts]
        outputs = [_output(cls, x, given) for x in parts]
        if slow_path.any and events.operation_ran.listeners:
            events.operation_ran.publish(cls.__name__, args, tuple(outputs))
        if not any(ctx.needs_input_grad) or not recording.on:
            tensors = [Tensor(x) for x in outputs]
            return tuple(tensors) if many else tensors[0]
        node = _node_of(cls, ctx, args, outputs, many)
        ctx._settle(node, outputs)
        if slow_path.any and anomaly_mode.depth.value:
            anomaly_mode.check_forward(node, given, tuple(outputs) if many else outputs[0])
        if events.operation_recorded.listeners:
            events.operation_recorded.publish(node)
        tensors = (
            list(multi_output.outputs_of(node, outputs)) if many else [Tensor(outputs[0], node)]
        )
        for t, is_constant in zip(tensors, constant, strict=True):
            if is_constant:
                t.node = None
        return tuple(tensors) if many else tensors[0]


def _output(cls: type[Function], x: Any, args: Sequence[Any]) -> Any:
    """Return an output of forward as an array; copy it if it is an input."""
    array = raw(x)
    if not hasattr(array, "dtype"):
        if not isinstance(array, (int, float, list)):
            raise TypeError(
                f"{cls.__name__}.forward returned {x!r} of type {type(x).__name__}; return a "
                "Tensor or an array, or a tuple of them. (A missing return?)"
            )
        array = as_array(array)
    return array.copy() if any(array is raw(given) for given in args) else array


def _node_of(
    cls: type[Function], ctx: Context, args: Sequence[Any], outputs: Sequence[Any], many: bool
) -> Node:
    """Build the node of one call."""
    edges = tuple(x.node if isinstance(x, Tensor) else None for x in args)
    operation = Operation(
        cls.__name__,
        cls.forward,
        (),
        [f"argument {i}" for i in range(len(args))],
        several=many,
        joint=lambda g: None,
    )
    recipe = Recipe(operation, sum(1 << i for i, edge in enumerate(edges) if edge is not None))
    # The node saves the context itself, so that backward frees it with the node.
    recipe.sources = (len(args) + 1,)
    recipe.of_user = True
    recipe.joint = lambda g, saved, static: _gradients(cls, saved[0], g, edges)
    first = next((x for x in outputs if is_floating(x.dtype)), outputs[0])
    shape = () if many else outputs[0].shape
    return Node(operation, edges, (ctx,), recipe, {}, shape, first.dtype)


def _gradients(cls: type[Function], ctx: Context, g: Any, edges: Sequence[Any]) -> list[Any]:
    """Run the user's backward, and validate its gradients."""
    grads = (
        [g[i] for i in range(len(g.shapes))] if isinstance(g, multi_output.OutputGradients) else [g]
    )
    # Recorded only if gradients are Tensors, that is with create_graph=True.
    recorded = any(isinstance(x, Tensor) for x in grads)
    with grad_mode(recorded):
        returned = cls.backward(ctx, *[x if isinstance(x, Tensor) else Tensor(x) for x in grads])
    if returned is None:
        raise TypeError(
            f"{cls.__name__}.backward returned None. Return the gradient of each argument, or a "
            "tuple with None in the place of one that has none. (A missing return?)"
        )
    parts = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(parts) != len(edges):
        raise TypeError(
            f"{cls.__name__}.backward returned {len(parts)} gradients, but forward was given "
            f"{len(edges)} arguments. Return one for each, None where there is none."
        )
    checked: list[Any] = []
    for i, (part, edge) in enumerate(zip(parts, edges, strict=True)):
        if part is None or edge is None:
            checked.append(None)
            continue
        part = part if isinstance(part, Tensor) else Tensor(as_array(part))
        try:
            fits = np.broadcast_shapes(part.shape, edge.shape) == part.shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{cls.__name__}.backward returned a gradient of shape {part.shape} for argument "
                f"{i}, which has shape {edge.shape}."
            )
        checked.append(part if recorded else part.data)
    return checked
