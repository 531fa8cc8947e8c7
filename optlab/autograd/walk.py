"""The tape as data: the graph behind a Tensor, and the walk back through it, one node at a time.

Everything here looks and changes nothing: no leaf's ``grad``, no saved value, no hook of the user.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optlab.autograd import tape
from optlab.autograd.operation import TABLE
from optlab.autograd.rule_text import rules_of
from optlab.autograd.several import OUTPUT
from optlab.autograd.tensor import Tensor, _seed, raw
from optlab.backend.arrays import Shape

_MOST_TO_RECOMPUTE = 10_000


@dataclass(frozen=True)
class Kept:
    """A value that an operation keeps for its derivative rules.

    Attributes
    ----------
    what : str
        ``"output"``, or the name of the input.
    of : int or None
        The node whose value it is; None for a number that is not drawn.
    bytes : int
        Its size.
    added : int
        Bytes that are alive because of this alone: nothing for a leaf's own memory, nor for memory
        that an earlier operation keeps already.
    """

    what: str
    of: int | None
    bytes: int
    added: int


@dataclass(frozen=True)
class Input:
    """What an operation reads.

    Attributes
    ----------
    name : str
        As the rules call it.
    source : int or None
        The node it comes from; None for a number or an array that is no node.
    value
        That number, where the operation kept it; else None.
    rule : str
        Source text of the rule that gives its gradient; empty where none is needed.
    """

    name: str
    source: int | None
    value: Any
    rule: str


@dataclass
class GraphNode:
    """An operation that ran, a leaf where gradients collect, or data that need no gradient.

    Attributes
    ----------
    index : int
        Its place in `Graph.nodes`: what it reads stands before it.
    kind : {'operation', 'leaf', 'data'}
    name : str
        Of the operation, or of the leaf (empty where it has none).
    variable : str
        What the caller calls the Tensor, if he said so.
    shape, dtype
        Of the output. Of an operation with several outputs, see `shapes`.
    shapes : tuple of shapes
        Of all outputs.
    inputs : tuple of Input
    static : dict
        The arguments that are not arrays, such as ``axis``.
    kept : tuple of Kept or None
        None once backward has freed it.
    value
        The output, where it is known: see `graph_of`.
    view : bool
        Whether the output may lie in the memory of the first input.
    hooks : int
        How many hooks of the user wait here.
    collected
        Of a leaf: its ``grad``, or None.
    """

    index: int
    kind: str
    name: str
    shape: Shape
    dtype: Any
    shapes: tuple[Shape, ...] = ()
    variable: str = ""
    inputs: tuple[Input, ...] = ()
    static: dict[str, Any] = field(default_factory=dict)
    kept: tuple[Kept, ...] | None = ()
    value: Any = None
    view: bool = False
    hooks: int = 0
    collected: Any = None

    @property
    def bytes(self) -> int:
        """Size of the output, or of all outputs."""
        shapes = self.shapes or (self.shape,)
        return sum(math.prod(shape) for shape in shapes) * int(np.dtype(self.dtype).itemsize)

    @property
    def sources(self) -> tuple[int, ...]:
        """The nodes it reads, once for each time it reads them."""
        return tuple(one.source for one in self.inputs if one.source is not None)


@dataclass(frozen=True)
class Stage:
    """One step of the walk back.

    Attributes
    ----------
    node : int
        The operation whose turn it is.
    arrived
        The gradient that reached it, complete; of an operation with several outputs, `Parts`.
    sent : tuple of (int, int, array)
        Position of an input, the node it comes from, and the gradient that it is sent.
    """

    node: int
    arrived: Any
    sent: tuple[tuple[int, int, Any], ...]


class Graph:
    """The graph behind a Tensor; `graph_of` makes one.

    Attributes
    ----------
    nodes : tuple of GraphNode
        In the order in which they ran.
    root : int
        The node of the Tensor itself, the last.
    """

    def __init__(self, nodes: tuple[GraphNode, ...], tensor: Tensor, places: dict[Any, int]):
        self.nodes = nodes
        self.root = len(nodes) - 1
        self._tensor = tensor
        self._places = places

    @property
    def operations(self) -> int:
        """How many operations there are."""
        return sum(node.kind == "operation" for node in self.nodes)

    @property
    def freed(self) -> bool:
        """Whether backward has been here and freed what operations had kept."""
        return any(node.kept is None for node in self.nodes)

    @property
    def kept_bytes(self) -> int:
        """Bytes that the graph keeps for backward, each piece of memory counted once."""
        return sum(kept.added for node in self.nodes for kept in node.kept or ())

    def back(self, grad: Any = None) -> Iterator[Stage]:
        """Walk back, one operation at a time, the latest first.

        Nothing is added to a leaf's ``grad``, nothing is freed, and hooks do not run.

        Parameters
        ----------
        grad : array, optional
            The gradient to start from. Ones by default.

        Raises
        ------
        RuntimeError
            Where saved values are gone, or were written over.

        Examples
        --------
        >>> import optlab as ol
        >>> x = ol.to_tensor(3.0, requires_grad=True)
        >>> for stage in graph_of(x * x + 1).back():
        ...     print(stage.node, float(stage.arrived), [float(g) for _, _, g in stage.sent])
        2 1.0 [1.0]
        1 1.0 [3.0, 3.0]
        """
        pending = {self._tensor.node: _seed(self._tensor, grad)}
        for node in tape.ancestors(self._tensor.node):
            if node not in pending or not node.order:
                continue
            arrived = pending.pop(node)
            sent = []
            for position, edge, part in _run_alone(node, arrived):
                pending[edge] = pending[edge] + part if edge in pending else part
                sent.append((position, self._places[edge], part))
            yield Stage(self._places[node], arrived, tuple(sent))


def _run_alone(node: Any, g: Any) -> Iterator[tuple[int, Any, Any]]:
    """Run the rules of one node: on a copy with leaves of its own, so that nobody else notices."""
    if node.saved is not None:  # else backpropagate says what is wrong, in its own words
        node.check_unchanged()
    alone = copy.copy(node)
    alone.hooks = None
    alone.edges = tuple(
        None if edge is None else tape.Leaf(edge.shape, edge.dtype) for edge in node.edges
    )
    alone.version = 0
    wanted = [i for i, edge in enumerate(node.edges) if edge is not None]
    parts = tape.backpropagate(
        alone, g, targets=[alone.edges[i] for i in wanted], retain_graph=True
    )
    for i, part in zip(wanted, parts, strict=True):
        if part is not None:
            yield i, node.edges[i], part


def graph_of(tensor: Tensor, names: Mapping[str, Any] | None = None) -> Graph:
    """Give the graph of operations from which `tensor` was computed.

    Parameters
    ----------
    tensor : Tensor
        One that needs a gradient.
    names : mapping of str to Tensor or array, optional
        What the caller calls them. The tape keeps no values but those that its rules read; these
        Tensors know theirs. Single numbers that follow from known values are computed again.

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
    """Reads the tape behind a Tensor, in the order in which it was written."""

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
        self.memory = _Memory()
        self.recomputable = set(TABLE.values())  # the user's own might do more than compute

    def graph(self) -> Graph:
        """Read everything."""
        order = tape.ancestors(self.tensor.node)[::-1]
        for node in order:
            self._note_saved(node)
        if any(_overwritten(node) for node in order):
            self.recomputable.clear()
        for node in order:
            for edge in node.edges:  # a leaf stands just before what first reads it
                if edge is not None and not edge.order and edge not in self.places:
                    self._leaf(edge)
            if node.order:
                self._operation(node)
        if not order[-1].order:
            self._leaf(order[-1])
        return Graph(tuple(self.nodes), self.tensor, self.places)

    def _note_saved(self, node: Any) -> None:
        """Learn the values of nodes from what the operations keep of them."""
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
        found.collected = None if leaf.grad is None or leaf.grad is tape.ZERO else leaf.grad
        self._add(leaf, found)

    def _data(self, value: Any) -> int:
        """Give the node of an array that needs no gradient; the same array is one node."""
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
            if source > arity:
                continue  # a shape costs nothing
            owner = node if source == arity else node.edges[source]
            held = owner is not None and owner.source is not None
            what = operation.inputs[source] if source < arity else "output"
            of = sources[source] if source < arity else found.index
            for part in value if isinstance(value, tuple) else (value,):
                size = getattr(part, "nbytes", 0)
                added = self.memory.add(part, held)
                kept.append(Kept(what, of, size, added))
        for name, value in node.static.items():
            if getattr(value, "nbytes", 0):  # labels, index arrays
                added = self.memory.add(value, False)
                kept.append(Kept(name, None, value.nbytes, added))
        found.kept = tuple(kept)

    def _value(self, node: Any, saved: dict[int, Any]) -> Any:
        """Give the output of a node: known, or computed again where that is quick and safe."""
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
    """Give what a node keeps, each with its place among inputs, output and shapes."""
    if not node.order or node.saved is None:
        return []
    return list(zip(node.recipe.sources, node.saved, strict=True))


def _overwritten(node: Any) -> bool:
    """Say whether somebody has written over what a node kept."""
    if not node.order or node.saved is None or not node.recipe.saved_inputs:
        return False
    try:
        node.check_unchanged()
    except RuntimeError:
        return True
    return False


class _Memory:
    """Which bytes have been counted already."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []
        self.seen: set[int] = set()

    def add(self, value: Any, held: bool) -> int:
        """Give the bytes of `value` that were not counted yet; none if a leaf holds them anyway."""
        if held or not getattr(value, "nbytes", 0):
            return 0
        if not isinstance(value, np.ndarray):  # a single number, or an array of another module
            fresh = id(value) not in self.seen
            self.seen.add(id(value))
            return int(value.nbytes) if fresh else 0
        low, high = np.lib.array_utils.byte_bounds(value)
        covered = 0
        for start, stop in self.spans:
            covered += max(0, min(high, stop) - max(low, start))
        merged = [span for span in self.spans if span[1] < low or span[0] > high]
        touching = [span for span in self.spans if not (span[1] < low or span[0] > high)]
        merged.append(
            (min([low, *(s for s, _ in touching)]), max([high, *(e for _, e in touching)]))
        )
        self.spans = merged
        return min(int(value.nbytes), high - low - covered)
