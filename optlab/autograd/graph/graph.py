"""The tape as data: the graph behind a Tensor, and its backward pass one node at a time.

Nothing here has side effects: no leaf's ``grad`` and no saved value changes, no hook runs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optlab.autograd.tape import backward
from optlab.autograd.tape.base import first_gradient
from optlab.autograd.tape.nodes import Leaf
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import Shape


@dataclass(frozen=True)
class Kept:
    """Value that an operation saves for its derivative rules.

    Attributes
    ----------
    what : str
        ``"output"``, or the name of the input or of the static argument; ``"context"`` for what a
        `Function` of the user saved.
    of : int or None
        The node whose value it is; None for a number that is not drawn.
    bytes : int
        Size of the value.
    added : int
        Bytes that are alive because of this value alone: 0 for a leaf's own memory and for memory
        that an earlier operation keeps already.
    """

    what: str
    of: int | None
    bytes: int
    added: int


@dataclass(frozen=True)
class Input:
    """Input of an operation.

    Attributes
    ----------
    name : str
        Its name in the rules.
    source : int or None
        The node it comes from; None for a number or an array that is no node.
    value
        That number, if the operation saved it; else None.
    rule : str
        Source text of the rule of its gradient; empty where none is needed.
    """

    name: str
    source: int | None
    value: Any
    rule: str


@dataclass
class GraphNode:
    """Operation that ran, leaf that accumulates a gradient, or data that need no gradient.

    Attributes
    ----------
    index : int
        Position in `Graph.nodes`, after the nodes that it reads.
    kind : {'operation', 'leaf', 'data'}
    name : str
        Name of the operation, or of the leaf (empty if it has none).
    variable : str
        The caller's name of the Tensor, if one was passed.
    shape, dtype
        Of the output; for an operation with several outputs see `shapes`.
    shapes : tuple of shapes
        Of all outputs.
    inputs : tuple of Input
    static : dict
        The arguments that are not arrays, such as ``axis``.
    kept : tuple of Kept or None
        Saved values; None once backward has freed them.
    value
        The output, where it is known: see `reader.graph_of`.
    view : bool
        Whether the output may be a view of the first input.
    hooks : int
        Number of the user's hooks on this node.
    collected
        The ``grad`` of a leaf, or None.
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
        """Size of the output, or of all outputs together."""
        shapes = self.shapes or (self.shape,)
        return sum(math.prod(shape) for shape in shapes) * int(np.dtype(self.dtype).itemsize)

    @property
    def sources(self) -> tuple[int, ...]:
        """The nodes of its inputs, repeated where an input is."""
        return tuple(one.source for one in self.inputs if one.source is not None)


@dataclass(frozen=True)
class Stage:
    """One step of the backward pass.

    Attributes
    ----------
    node : int
        The operation whose rules run.
    arrived
        The complete gradient of its output; of an operation with several outputs,
        `OutputGradients`.
    sent : tuple of (int, int, array)
        Position of an input, the node it comes from, and its gradient.
    """

    node: int
    arrived: Any
    sent: tuple[tuple[int, int, Any], ...]


class Graph:
    """Graph behind a Tensor, built by `optlab.autograd.graph.reader.graph_of`.

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
        """Number of operations."""
        return sum(node.kind == "operation" for node in self.nodes)

    @property
    def freed(self) -> bool:
        """Whether backward has run and freed saved values."""
        return any(node.kept is None for node in self.nodes)

    @property
    def kept_bytes(self) -> int:
        """Bytes that the graph keeps for backward, each block of memory counted once."""
        return sum(kept.added for node in self.nodes for kept in node.kept or ())

    def seed(self, grad: Any = None) -> Any:
        """Return the gradient of the root: ones, or `grad` in the right dtype."""
        return first_gradient(self._tensor.data, grad)

    def back(self, grad: Any = None) -> Iterator[Stage]:
        """Yield the steps of the backward pass, one operation at a time, the latest first.

        Nothing is added to a leaf's ``grad``, nothing is freed, and hooks do not run.

        Parameters
        ----------
        grad : array, optional
            The gradient to start from. Ones by default.

        Raises
        ------
        RuntimeError
            If saved values were freed or overwritten.

        Examples
        --------
        >>> import optlab as ol
        >>> from optlab.autograd.graph.reader import graph_of
        >>> x = ol.to_tensor(3.0, requires_grad=True)
        >>> for stage in graph_of(x * x + 1).back():
        ...     print(stage.node, float(stage.arrived), [float(g) for _, _, g in stage.sent])
        2 1.0 [1.0]
        1 1.0 [3.0, 3.0]
        """
        pending = {self._tensor.node: self.seed(grad)}
        for node in backward.toposort(self._tensor.node):
            if node not in pending or not node.order:
                continue
            arrived = pending.pop(node)
            sent = []
            for position, edge, part in _run_alone(node, arrived):
                pending[edge] = pending[edge] + part if edge in pending else part
                sent.append((position, self._places[edge], part))
            yield Stage(self._places[node], arrived, tuple(sent))


def _run_alone(node: Any, g: Any) -> Iterator[tuple[int, Any, Any]]:
    """Run the rules of one node on a copy with leaves of its own, so that nothing else changes."""
    if node.saved is not None:  # else backpropagate raises its own error
        node.check_unchanged()
    alone = copy.copy(node)
    alone.hooks = None
    alone.edges = tuple(
        None if edge is None else Leaf(edge.shape, edge.dtype) for edge in node.edges
    )
    wanted = [i for i, edge in enumerate(node.edges) if edge is not None]
    parts = backward.backpropagate(
        alone, g, targets=[alone.edges[i] for i in wanted], retain_graph=True
    )
    for i, part in zip(wanted, parts, strict=True):
        if part is not None:
            yield i, node.edges[i], part
