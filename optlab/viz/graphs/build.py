"""From a graph on the tape to its view: the nodes drawn, their texts, and the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.graph.graph import Graph, GraphNode, Input, Stage
from optlab.viz.graphs import labels, layering
from optlab.viz.graphs.view import (
    NARROWEST,
    NODE_HEIGHT,
    ROUND_ENDS,
    TEXT,
    EdgeView,
    GraphView,
    NodeView,
    Piece,
    RuleView,
)
from optlab.viz.style.layout import text_width
from optlab.viz.style.text import format_bytes

_WIDEST, _PADDING = 190.0, 22.0
_MOST_WITH_CONSTANTS = 30
"""A larger graph is easier to read without constants; the panel lists them."""
_CONSTANT = -2
"""Placeholder of a constant in the order of the nodes; -1 stands for the folded nodes."""
FREED = (
    "The gradients cannot be shown: backward() has been through this graph already and freed the "
    "values that it had kept. Call ol.viz.graph(loss) before loss.backward(), or keep them with "
    "loss.backward(retain_graph=True)."
)


def view_of(graph: Graph, *, grad: Any = None, most: int = 200) -> GraphView:
    """Build the view of a graph.

    Parameters
    ----------
    graph : Graph
    grad : array, optional
        The gradient to start from.
    most : int
        Most nodes to draw: in a larger graph the earliest operations are folded into one node.
    """
    shown = _chosen_nodes(graph, most)
    rest = [node for node in graph.nodes if node.index not in shown]
    constants = [] if rest else _constants(graph, min(most, _MOST_WITH_CONSTANTS) - len(shown))
    readers = [index for index, _ in constants]
    # A constant precedes the operation that reads it.
    order = [i for i in shown for i in (*(_CONSTANT,) * readers.count(i), i)]
    place = {index: at for at, index in enumerate(order) if index >= 0}
    folded = order.index(-1) if rest else None
    if folded is not None:
        place |= dict.fromkeys((node.index for node in rest), folded)
    written = iter(constants)
    nodes = [
        _constant(next(written)[1])
        if index == _CONSTANT
        else _folded_node(rest)
        if index < 0
        else _node(graph, graph.nodes[index])
        for index in order
    ]
    edges = _edges(graph, place, folded)
    read = [at for at, index in enumerate(order) if index == _CONSTANT]
    edges += [EdgeView(at, place[reader], []) for at, reader in zip(read, readers, strict=True)]
    view = GraphView(nodes, edges, [], [], 0, 0, _title(graph), _headline(graph, rest))
    with np.errstate(all="ignore"):  # values that are not finite are shown as such
        _add_backward_pass(graph, view, place, folded, grad)
    for node in nodes:
        ends = ROUND_ENDS if node.kind == "leaf" else 0.0
        widest = max(
            text_width(node.title, TEXT) * 1.06 + ends,
            text_width(node.line, TEXT),
            *(text_width(piece.short, TEXT) + ends for piece in node.pieces),
        )
        node.width = float(np.ceil(min(_WIDEST, max(NARROWEST, widest + _PADDING))))
    placed = layering.place(
        [node.width for node in nodes], NODE_HEIGHT, [(e.source, e.target) for e in edges]
    )
    for node, x, y in zip(nodes, placed.x, placed.y, strict=True):
        node.x, node.y = round(float(x), 1), round(float(y), 1)
    for edge, route in zip(edges, placed.routes, strict=True):
        edge.points = [(round(x, 1), round(y, 1)) for x, y in route]
    view.width, view.height = placed.width, placed.height
    return view


def _chosen_nodes(graph: Graph, most: int) -> list[int]:
    """Choose the nodes to draw, in topological order; -1 stands for the folded nodes.

    The latest operations are drawn, with their inputs.
    """
    if len(graph.nodes) <= most:
        return [node.index for node in graph.nodes]
    chosen: set[int] = set()
    for node in reversed(graph.nodes):
        if node.kind != "operation":
            continue
        more = {node.index} | {i for i in node.sources if graph.nodes[i].kind != "operation"}
        if len(chosen | more) > most - 1 and chosen:
            break
        chosen |= more
    sources = [i for i in sorted(chosen) if graph.nodes[i].kind != "operation"]
    operations = [i for i in sorted(chosen) if graph.nodes[i].kind == "operation"]
    return [*sources, -1, *operations]


def _constants(graph: Graph, room: int) -> list[tuple[int, Input]]:
    """Return the constant inputs and their readers; none if they are too many."""
    found = [(node.index, one) for node in graph.nodes for one in node.inputs if one.source is None]
    return found if len(found) <= room else []


def _constant(one: Input) -> NodeView:
    """Build the node of a plain number, or of an array that the tape does not keep."""
    if one.value is None:
        found = NodeView("data", "constant", "not kept", "data: needs no gradient")
        found.facts.append(("value", "not known: no rule reads it, so it was not kept"))
        return found
    found = NodeView("data", labels.value(one.value), "constant", "data: needs no gradient")
    found.facts.append(("is", "a number that you wrote beside a Tensor"))
    return found


def _edges(graph: Graph, place: dict[int, int], rest: int | None) -> list[EdgeView]:
    found: list[EdgeView] = []
    seen: set[tuple[int, int]] = set()
    for node in graph.nodes:
        for source in node.sources:
            ends = (place[source], place[node.index])
            if rest is not None and rest in ends:  # drawn once, without self-loops
                if ends in seen or ends[0] == ends[1]:
                    continue
                seen.add(ends)
            found.append(EdgeView(*ends, []))
    return found


def _title(graph: Graph) -> str:
    root = graph.nodes[graph.root]
    if root.kind == "leaf":
        return f"{labels.title(root)}: a leaf, computed from nothing"
    return f"How {root.variable or labels.title(root)} was computed"


def _headline(graph: Graph, rest: Sequence[GraphNode]) -> str:
    folded = sum(node.kind == "operation" for node in rest)
    more = f" {folded:,} earlier operation{'s are' if folded != 1 else ' is'} drawn as one node; "
    more = f"{more}max_nodes={len(graph.nodes)} draws all." if rest else ""
    operations = graph.operations
    leaves = sum(node.kind == "leaf" for node in graph.nodes)
    said = f"{operations:,} operation{'s' * (operations != 1)}, "
    said += f"{leaves:,} lea{'ves' if leaves != 1 else 'f'}"
    if graph.freed:
        return f"{said}; what was kept for backward has been freed.{more}"
    if operations:
        said += f"; {format_bytes(graph.kept_bytes)} kept for backward"
        said += " besides the leaves' own memory"
    return f"{said}.{more}"


def _folded_node(nodes: Sequence[GraphNode]) -> NodeView:
    count = sum(node.kind == "operation" for node in nodes)
    freed = any(node.kept is None for node in nodes)
    kept = sum(kept.added for node in nodes for kept in node.kept or ())
    named = [labels.title(node) for node in nodes if node.kind == "leaf"]
    found = NodeView(
        "rest",
        f"{count:,} earlier operation{'s' * (count != 1)}",
        "freed" if freed else f"keep {format_bytes(kept)}",
        "not drawn one by one; give max_nodes= to see more",
    )
    if named:
        more = f" and {len(named) - 12:,} more" if len(named) > 12 else ""
        found.facts.append(("leaves inside", ", ".join(named[:12]) + more))
    return found


def _node(graph: Graph, node: GraphNode) -> NodeView:
    single = not node.shapes and not node.shape
    if single and node.value is not None:
        line = f"{node.variable} = " if node.kind == "operation" and node.variable else "= "
        line += labels.value(node.value)
    else:
        known = node.variable if node.kind == "operation" else ""
        line = f"{known}: " if known else ""
        line += f"{labels.shape(node)} · {format_bytes(node.bytes)}"
    what = {"operation": "operation", "data": "data: needs no gradient"}.get(node.kind, "")
    found = NodeView(node.kind, labels.title(node), line, what)
    if node.kind == "leaf":
        found.what = "parameter: gradients collect here" if node.name else "gradients collect here"
    giving = f"{labels.shape(node)}, {np.dtype(node.dtype).name}, {format_bytes(node.bytes)}"
    giving += ", may lie in the memory of its input" * node.view
    found.facts.append(("gives" if node.kind == "operation" else "is", giving))
    if node.value is not None and np.size(node.value) <= 6:
        found.facts.append(("value", labels.value(node.value)))
    elif node.value is None and single and not node.shapes:
        found.facts.append(("value", "not known: no rule reads it, so it was not kept"))
    if node.kind == "operation":
        reads = [_input_text(graph, one) for one in node.inputs]
        found.facts.append(("reads", "\n".join(reads)))
        for name, value in node.static.items():
            found.facts.append((name, labels.argument(value)))
        found.facts.append(("keeps", _saved_text(graph, node)))
    if node.collected is not None:
        found.facts.append(("grad so far", labels.value(node.collected)))
    if node.hooks:
        said = "1 hook is" if node.hooks == 1 else f"{node.hooks} hooks are"
        found.facts.append(("hook", f"{said} registered; not run here, so not in these gradients"))
    return found


def _input_text(graph: Graph, one: Input) -> str:
    if one.source is not None:
        source = graph.nodes[one.source]
        said = f"{one.name}: {labels.title(source)}"
        return said + f" ({source.variable})" * bool(source.variable and source.kind == "operation")
    if one.value is not None:
        return f"{one.name}: {labels.value(one.value)}"
    return f"{one.name}: a constant, not kept"


def _saved_text(graph: Graph, node: GraphNode) -> str:
    if node.kept is None:
        return "nothing any more: freed by backward"
    lines = []
    for kept in node.kept:
        said = (
            f"{kept.what}, {format_bytes(kept.bytes)}" if kept.bytes else f"{kept.what}, a number"
        )
        if kept.bytes and not kept.added:
            owner = None if kept.of is None else graph.nodes[kept.of]
            leaf = owner is not None and owner.kind == "leaf"
            said += " (the leaf's own memory)" if leaf else " (kept already)"
        lines.append(said)
    return "\n".join(lines) or "nothing"


def _add_backward_pass(
    graph: Graph, view: GraphView, place: dict[int, int], folded: int | None, grad: Any
) -> None:
    """Add every stage of the backward pass to the view."""
    seed = graph.seed(grad)
    view.stages, view.current = ["Before backward: the values"], [[]]
    if graph.freed:
        view.problem = FREED
        return
    root = view.nodes[place[graph.root]]
    root.pieces.append(Piece(1, labels.short_gradient(seed), labels.gradient(seed)))
    sums: dict[int, Any] = {}
    try:
        for stage in graph.back(grad):
            _add_stage(graph, view, place, folded, stage, sums)
            sums.pop(stage.node, None)
    except Exception as error:  # noqa: BLE001 - a rule may raise anything; the graph is still drawn
        known = isinstance(error, RuntimeError)  # the tape's own messages are complete
        said = str(error) if known else f"{type(error).__name__}: {error}"
        view.problem = f"The backward pass cannot be shown. {said}"
        del view.stages[1:], view.current[1:]
        for node in view.nodes:
            node.turn, node.pieces, node.rules = None, [], []
        for edge in view.edges:
            edge.stage = None
        return
    for node in view.nodes:
        for piece in node.pieces[:-1]:
            piece.short += " so far" if piece.short else ""
        for piece in node.pieces[-1:]:
            piece.complete = True
    view.leaves = [
        (labels.title(node), labels.gradient(sums[node.index]))
        if node.index in sums
        else (labels.title(node), "no gradient arrives here")
        for node in graph.nodes
        if node.kind == "leaf" and node.index != graph.root
    ]
    leaves = [at for at, node in enumerate(view.nodes) if node.kind == "leaf" and node.pieces]
    view.stages.append("The leaves: backward() adds these to their grad")
    view.current.append(leaves)
    for at in leaves:
        view.nodes[at].turn = len(view.stages) - 1


def _add_stage(
    graph: Graph,
    view: GraphView,
    place: dict[int, int],
    folded: int | None,
    stage: Stage,
    sums: dict[int, Any],
) -> None:
    """Add one stage to the view; `sums` holds the gradients not yet processed."""
    at = place[stage.node]
    shown = view.nodes[at]
    if shown.turn is None:  # folded nodes share one stage
        view.stages.append(f"Back through {shown.title}")
        view.current.append([at])
        shown.turn = len(view.stages) - 1
    for position, target, part in stage.sent:
        sums[target] = sums[target] + part if target in sums else part
        if at != folded:
            _add_rule(graph.nodes[stage.node], shown, position, place[target], part)
        if place[target] != folded:
            _set_piece(view.nodes[place[target]], shown.turn, sums[target])
        elif at != folded:
            view.nodes[place[target]].pieces.append(Piece(shown.turn, "", ""))
    reached = {place[target] for _, target, _ in stage.sent}
    for edge in view.edges:
        if edge.target == at and edge.source in reached:
            edge.stage = shown.turn


def _set_piece(node: NodeView, stage: int, total: Any) -> None:
    piece = Piece(stage, labels.short_gradient(total), labels.gradient(total))
    if node.pieces and node.pieces[-1].stage == stage:
        node.pieces[-1] = piece
    else:
        node.pieces.append(piece)


def _add_rule(node: GraphNode, shown: NodeView, position: int, target: int, part: Any) -> None:
    one = node.inputs[position]
    shown.rules.append(RuleView(one.name, target, one.rule, labels.gradient(part)))
