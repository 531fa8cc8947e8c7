"""The tape as data: the graph behind a Tensor, and the walk back through it, one node at a time.

Everything here looks and changes nothing: no leaf's ``grad``, no saved value, no hook of the user.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optlab.autograd import backpropagation, tape
from optlab.autograd.base import first_gradient
from optlab.autograd.tensor import Tensor
from optlab.backend.arrays import Shape


@dataclass(frozen=True)
class Kept:
    """A value that an operation keeps for its derivative rules.

    Attributes
    ----------
    what : str
        ``"output"``, or the name of the input or of the static argument; ``"context"`` for what a
        `Function` of the user saved.
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
        The output, where it is known: see `read_tape.graph_of`.
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
    """The graph behind a Tensor; `optlab.autograd.read_tape.graph_of` makes one.

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

    def seed(self, grad: Any = None) -> Any:
        """Give the gradient that the walk starts from: ones, or `grad` in the right dtype."""
        return first_gradient(self._tensor.data, grad)

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
        >>> from optlab.autograd.read_tape import graph_of
        >>> x = ol.to_tensor(3.0, requires_grad=True)
        >>> for stage in graph_of(x * x + 1).back():
        ...     print(stage.node, float(stage.arrived), [float(g) for _, _, g in stage.sent])
        2 1.0 [1.0]
        1 1.0 [3.0, 3.0]
        """
        pending = {self._tensor.node: self.seed(grad)}
        for node in backpropagation.ancestors(self._tensor.node):
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
    wanted = [i for i, edge in enumerate(node.edges) if edge is not None]
    parts = backpropagation.backpropagate(
        alone, g, targets=[alone.edges[i] for i in wanted], retain_graph=True
    )
    for i, part in zip(wanted, parts, strict=True):
        if part is not None:
            yield i, node.edges[i], part
