"""Drawing of a graph: operations, shapes and bytes, and the backward pass step by step."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from optlab.autograd import Tensor
from optlab.autograd.graph.graph import Graph, GraphNode
from optlab.autograd.graph.reader import graph_of
from optlab.viz.graphs import labels
from optlab.viz.graphs.build import view_of
from optlab.viz.graphs.result import GraphPicture
from optlab.viz.graphs.variable_names import names_in
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.text import format_bytes

__all__ = ["GraphPicture", "graph"]


def graph(
    tensor: Tensor,
    *,
    grad: Any = None,
    names: Mapping[str, Any] | None = None,
    max_nodes: int = 200,
) -> GraphPicture:
    """Draw the graph of operations of a Tensor, and step through its backward pass.

    Each operation shows shape and bytes of its result (the value of a single number). In the steps
    of the backward pass, each shows its derivative rule, the gradient that arrives, and the
    gradients that it sends on.

    Call it before ``loss.backward()``, which frees the values that the rules read (or keep them
    with ``retain_graph=True``); afterwards the graph is drawn without gradients. Drawing has no
    side effects: no ``grad`` changes, nothing is freed, and hooks do not run, so the gradients
    shown are without them.

    Parameters
    ----------
    tensor : Tensor
        The result of a computation, such as a loss.
    grad : array, optional
        The gradient to start from, of the shape of the Tensor. Ones by default.
    names : mapping of str to Tensor, optional
        Names of Tensors. By default, the names of your variables.
    max_nodes : int
        Of a larger graph the latest operations are drawn, and the earlier ones as one node; the
        headline has the number that draws all. Constants are drawn only in small graphs.

    Returns
    -------
    GraphPicture
        Displays itself in a notebook; ``print`` shows a table; ``.figure()`` returns a plotly
        figure; ``.save(path)`` writes HTML, PNG, SVG or JSON.

    Raises
    ------
    TypeError, ValueError
        If it is not a Tensor, or has no graph.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor(0.5, requires_grad=True)
    >>> y = np.tanh(x * x)
    >>> print(ol.viz.graph(y))
    How y was computed: 2 operations, 1 leaf; 4 B kept for backward besides the leaves' own memory.
    #  name      what       reads  gives                bytes  kept
    0  x         leaf              one number, float32    4 B
    1  multiply  operation  x, x   one number, float32    4 B   0 B
    2  tanh      operation  1      one number, float32    4 B   4 B
    """
    if isinstance(max_nodes, bool) or not isinstance(max_nodes, int) or max_nodes < 2:
        raise ValueError(f"max_nodes must be a whole number of at least 2; got {max_nodes!r}.")
    refuse_runs(
        tensor, "graph",
        "a run keeps no operations. Give the loss of one step: ol.viz.graph(loss).",
    )  # fmt: skip
    called = names_in(sys._getframe(1)) if names is None else dict(names)
    found = graph_of(tensor, called)
    return GraphPicture(view_of(found, grad=grad, most=max_nodes), _table(found))


def _table(graph: Graph) -> list[tuple[str, ...]]:
    """Return the graph as rows of text."""
    rows: list[tuple[str, ...]] = [("#", "name", "what", "reads", "gives", "bytes", "kept")]
    for node in graph.nodes:
        kept = ""
        if node.kind == "operation":
            added = sum(one.added for one in node.kept or ())
            kept = "freed" if node.kept is None else format_bytes(added)
        what = "parameter" if node.kind == "leaf" and node.name else node.kind
        rows.append(
            (
                str(node.index),
                labels.title(node),
                what,
                ", ".join(_short(graph.nodes[i]) for i in node.sources),
                f"{labels.shape(node)}, {np.dtype(node.dtype).name}",
                format_bytes(node.bytes),
                kept,
            )
        )
    return rows


def _short(node: GraphNode) -> str:
    """Return the name of an input: of a leaf its name, of others their row."""
    return labels.title(node) if node.kind == "leaf" and (node.name or node.variable) else (
        str(node.index)
    )  # fmt: skip
