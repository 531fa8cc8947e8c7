"""Reader of the tape: builds the graph of `optlab.autograd.graph.graph` behind a Tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from optlab.autograd.graph.graph import Graph, GraphNode, Input, Kept
from optlab.autograd.graph.saved_memory import Memory, arrays_in
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.source import rules_of
from optlab.autograd.tape import backward, nodes
from optlab.autograd.tape.constants import CheckedConstants
from optlab.autograd.tape.multi_output import OUTPUT
from optlab.autograd.tensor.tensor import Tensor, raw

_MOST_TO_RECOMPUTE = 10_000


def graph_of(tensor: Tensor, names: Mapping[str, Any] | None = None) -> Graph:
    """Return the graph of operations from which `tensor` was computed.

    Parameters
    ----------
    tensor : Tensor
        One that needs a gradient.
    names : mapping of str to Tensor or array, optional
        The caller's names. The tape keeps only the values that its rules read; these Tensors add
        theirs. Single numbers that follow from known values are computed again.

    Raises
    ------
    TypeError, ValueError
        If `tensor` is no Tensor, or has no graph.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> [(node.kind, node.name, node.shape) for node in graph_of(np.sum(np.tanh(x))).nodes]
    [('leaf', '', (2,)), ('operation', 'tanh', (2,)), ('operation', 'sum', ())]
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"a graph belongs to a Tensor, such as the loss that you computed; got "
            f"{type(tensor).__name__}."
        )
    if tensor.node is None:
        raise ValueError(
            "this Tensor has no graph: nothing that it was computed from needs a gradient, so "
            "nothing was recorded. Make the inputs with requires_grad=True (or use Parameters), "
            "and compute outside no_grad()."
        )
    return _Reader(tensor, dict(names or {})).graph()


class _Reader:
    """Reader of the tape behind a Tensor, in the order in which it was recorded."""

    def __init__(self, tensor: Tensor, names: dict[str, Any]) -> None:
        self.tensor = tensor
        self.names: dict[Any, str] = {}
        self.values: dict[Any, Any] = {}
        for name, held in names.items():
            if isinstance(held, Tensor) and held.node is not None:
                self.names.setdefault(held.node, name)
                self.values[held.node] = held.data
            else:
                self.names.setdefault(id(raw(held)), name)
        self.values[tensor.node] = tensor.data
        self.nodes: list[GraphNode] = []
        self.places: dict[Any, int] = {}
        self.memory = Memory()
        self.recomputable = set(TABLE.values())  # the user's own operations may have side effects

    def graph(self) -> Graph:
        """Build the graph."""
        order = backward.toposort(self.tensor.node)[::-1]
        for node in order:
            self._collect_values(node)
        if any(_overwritten(node) for node in order):
            self.recomputable.clear()
        for node in order:
            for edge in node.edges:  # a leaf comes just before its first reader
                if edge is not None and not edge.order and edge not in self.places:
                    self._leaf(edge)
            if node.order:
                self._operation(node)
        if not order[-1].order:
            self._leaf(order[-1])
        return Graph(tuple(self.nodes), self.tensor, self.places)

    def _collect_values(self, node: Any) -> None:
        """Store the values of nodes that an operation saved."""
        for source, value in _saved(node):
            arity = len(node.edges)
            owner = node if source == arity else node.edges[source] if source < arity else None
            if owner is not None and not isinstance(value, tuple):
                self.values.setdefault(owner, value)

    def _add(self, key: Any, node: GraphNode) -> int:
        self.places[key] = node.index
        self.nodes.append(node)
        return node.index

    def _leaf(self, leaf: Any) -> None:
        value = self.values.get(leaf)
        found = GraphNode(len(self.nodes), "leaf", leaf.name or "", leaf.shape, leaf.dtype)
        found.variable = self.names.get(leaf, "")
        found.value = value
        found.hooks = len(leaf.hooks or ())
        found.collected = None if leaf.grad is None or leaf.grad is nodes.ZERO else leaf.grad
        self._add(leaf, found)

    def _data(self, value: Any) -> int:
        """Return the node of an array that needs no gradient; the same array is one node."""
        if id(value) in self.places:
            return self.places[id(value)]
        found = GraphNode(len(self.nodes), "data", "", value.shape, value.dtype)
        found.variable = self.names.get(id(value), "")
        found.value = value
        return self._add(id(value), found)

    def _operation(self, node: Any) -> None:
        operation = node.operation
        arity = len(node.edges)
        saved = dict(_saved(node))
        sources: list[int | None] = []
        for position, edge in enumerate(node.edges):
            value = saved.get(position)
            if edge is not None:
                sources.append(self.places[edge])
            elif getattr(value, "shape", ()):
                sources.append(self._data(value))
            else:
                sources.append(None)
        texts = rules_of(operation)
        found = GraphNode(len(self.nodes), "operation", operation.name, node.shape, node.dtype)
        found.inputs = tuple(
            Input(
                operation.inputs[position],
                sources[position],
                saved.get(position) if sources[position] is None else None,
                texts[position] if node.edges[position] is not None else "",
            )
            for position in range(arity)
        )
        found.variable = self.names.get(node, "")
        found.static = dict(node.static)
        if operation is OUTPUT:
            found.static.pop("shapes")
            several = self.nodes[found.sources[0]]
            several.shapes = node.static["shapes"]
        found.view = operation.view
        found.hooks = len(node.hooks or ())
        found.value = self._value(node, saved)
        self._add(node, found)
        if node.saved is None:
            found.kept = None
            return
        kept = []
        for source, value in saved.items():
            if arity < source <= 2 * arity:  # a shape, or the context of a Function
                for part in arrays_in(value):
                    kept.append(Kept("context", None, part.nbytes, self.memory.add(part)))
                continue
            owner = node if source >= arity else node.edges[source]
            held = owner is not None and owner.source is not None
            what = operation.inputs[source] if source < arity else "output"
            of = sources[source] if source < arity else found.index
            for part in value if isinstance(value, tuple) else (value,):
                size = getattr(part, "nbytes", 0)
                added = self.memory.add(part)  # also memory of a leaf, which is not counted
                kept.append(Kept(what, of, size, 0 if held else added))
        for name, value in node.static.items():
            if getattr(value, "nbytes", 0):  # labels, index arrays
                added = self.memory.add(value)
                kept.append(Kept(name, None, value.nbytes, added))
        found.kept = tuple(kept)

    def _value(self, node: Any, saved: dict[int, Any]) -> Any:
        """Return the output of a node: known, or computed again where that is fast and safe."""
        if node in self.values:
            return self.values[node]
        operation = node.operation
        if operation not in self.recomputable or operation.several or math.prod(node.shape) > 1:
            return None
        inputs = []
        for position, edge in enumerate(node.edges):
            value = saved.get(position) if edge is None else self.values.get(edge)
            if value is None or np.size(value) > _MOST_TO_RECOMPUTE:
                return None
            inputs.append(value)
        with np.errstate(all="ignore"):
            value = operation.forward(*inputs, **node.static)
        self.values[node] = value
        return value


def _saved(node: Any) -> list[tuple[int, Any]]:
    """Return the saved values of a node, each with its position among inputs, output and shapes."""
    if not node.order:
        return []
    saved = node.saved.values if isinstance(node.saved, CheckedConstants) else node.saved
    if saved.__class__ is not tuple:  # freed, or kept by the user's hooks
        return []
    return list(zip(node.recipe.sources, saved, strict=True))


def _overwritten(node: Any) -> bool:
    """Return whether a saved value of a node was overwritten."""
    if not node.order or node.saved is None or not node.recipe.saved_inputs:
        return False
    try:
        node.check_unchanged()
    except RuntimeError:
        return True
    return False
