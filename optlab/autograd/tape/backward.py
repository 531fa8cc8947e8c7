"""The backward pass: gradients from an output to the leaves that it was computed from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from operator import attrgetter
from sys import getrefcount
from threading import RLock
from typing import Any

import numpy as np

from optlab.autograd.tape import anomaly_mode, base, versions
from optlab.autograd.tape.grad_mode import grad_mode, recording
from optlab.autograd.tape.half_precision import halves, rounded, widen_for_rule
from optlab.autograd.tape.hooks import run_hooks
from optlab.autograd.tape.multi_output import outputs_of
from optlab.autograd.tape.nodes import ZERO, Leaf, Shape
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import events
from optlab.backend.call_recorder import here
from optlab.backend.dtypes import is_half
from optlab.backend.ensemble import EnsembleArray, EnsembleError

_newest_first = attrgetter("order")

_array = np.ndarray

#: From this many bytes on, a gradient without other references is overwritten, not replaced: the
#: peak memory of a step is lower, and cached memory is faster. Below, the check costs more.
LARGE = 1 << 15


#: Held while a gradient is added to that of a leaf: several, so that leaves seldom share one. The
#: thread that has one may take it again: the sum of Tensors is recorded, and a listener may run a
#: backward pass, too.
_adding = [RLock() for _ in range(16)]


def _renew_locks() -> None:
    # Another thread may have held one when the process was forked.
    _adding[:] = [RLock() for _ in _adding]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _references_of_one_holder() -> int:
    """Return `getrefcount` of an array that a local name and one slot refer to."""
    leaf = Leaf((), np.dtype(float))
    leaf.grad = np.zeros(1)
    g: Any = leaf.grad
    return getrefcount(g)


#: `getrefcount` of a gradient that only its leaf and one local name refer to. Without other
#: references it may be written to in place.
REFERENCES_WHEN_ALONE = _references_of_one_holder()
#: `getrefcount` of an array that only one local name refers to.
REFERENCES_OF_A_LOCAL = REFERENCES_WHEN_ALONE - 1


def toposort(root: Any, oldest: int = 0) -> list[Any]:
    """Return `root` and its ancestors in reverse topological order.

    Nodes are numbered as they are recorded; in descending order every gradient has been accumulated
    before its node is processed. Ancestors with a number below `oldest` are left out.
    """
    seen = {root}
    stack = [root]
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge not in seen and edge.order >= oldest:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=_newest_first, reverse=True)


def reaches_leaf(root: Any, own: set[Any], live: bool = True) -> bool:
    """Return whether `root` was computed from a leaf that is not among `own`.

    The nodes on the way remember the leaf. A loop that differentiates in every step what all steps
    before it have computed would otherwise search the whole history in each of them.

    Parameters
    ----------
    root : Node or Leaf
    own : set of Leaf
    live : bool
        Whether only leaves count whose gradient may still be read.
    """
    way = {root: root}  # to each node, the one from which it was found
    stack = [root]
    while stack:
        node = stack.pop()
        leaf = getattr(node, "reached", None) if node.order else node
        if leaf is not None and leaf not in own and (leaf.live or not live):
            while node is not root:
                node = way[node]
                node.reached = leaf
            return True
        for edge in node.edges:
            if edge is not None and edge not in way:
                way[edge] = node
                stack.append(edge)
    return False


def _nodes_leading_to(targets: Iterable[Any], nodes: Sequence[Any]) -> set[Any]:
    """Return the nodes through which a gradient reaches one of `targets`."""
    useful = set(targets)
    for node in reversed(nodes):
        if node not in useful and any(edge in useful for edge in node.edges):
            useful.add(node)
    return useful


def unbroadcast(g: Any, shape: Shape) -> Any:
    """Sum `g` over the axes that broadcasting stretched, for every rule.

    Examples
    --------
    >>> import numpy as np
    >>> unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])
    """
    extra = len(g.shape) - len(shape)
    stretched = tuple(range(extra)) + tuple(
        axis + extra
        for axis, length in enumerate(shape)
        if length == 1 and g.shape[axis + extra] != 1
    )
    if stretched:
        g = np.add.reduce(g, axis=stretched)
    return g.reshape(shape)


def _accumulate(total: Any, part: Any, create_graph: bool) -> Any:
    """Add a gradient to those accumulated before, in place if there are no other references."""
    if (
        create_graph
        or total.__class__ is not _array
        or getrefcount(total) != REFERENCES_OF_A_LOCAL
        or total.base is not None
        or not total.flags.writeable
    ):
        return total + part
    total += part
    return total


def backpropagate(
    root: Any,
    seed: Any,
    value: Any = None,
    targets: Sequence[Any] | None = None,
    create_graph: bool = False,
    retain_graph: bool = False,
) -> list[Any]:
    """Run the backward pass from `root`, and accumulate gradients in the leaves or in `targets`.

    Parameters
    ----------
    root : Node or Leaf
        The node of the output.
    seed
        The gradient with respect to `root`: an array, or a Tensor where `create_graph` is set.
    targets : sequence of Node or Leaf, optional
        Return their gradients in this order (None where none arrived) and leave the ``grad`` of
        leaves unchanged. Without targets the gradients are added to the leaves.
    create_graph : bool
        Pass Tensors to the rules, so that the gradients are themselves on the tape.
    retain_graph : bool
        Keep the saved values, so that another backward pass can use the same graph.

    Raises
    ------
    RuntimeError
        If an earlier backward pass freed the saved values of a node.
    """
    if targets is not None:
        # Edges lead to older nodes, so none that is older than all targets leads to one.
        oldest = min((target.order or target.made_at for target in targets), default=0)
        useful = _nodes_leading_to(targets, toposort(root, oldest))
        found: dict[Any, Any] = {}
        ends = {root: seed}
        if root.order:
            ends = _backward_pass(
                root,
                seed,
                {},
                [],
                create_graph,
                retain_graph,
                useful=useful,
                found=(targets, found),
            )
        for leaf, g in ends.items():
            found[leaf] = run_hooks(leaf, g) if leaf.hooks else g
        return [found.get(target) for target in targets]
    if events.backward_starts.listeners:
        events.backward_starts.publish()
    reached: list[Any] = []
    if root.order:
        ends = _backward_pass(
            root, seed, {}, [], create_graph, retain_graph, 0, None, None, reached
        )
    else:
        ends = {root: seed}
    if slow_path.any and here.recorder is not None:
        for leaf, g in ends.items():
            here.recorder.collect(leaf, g, create_graph)
        here.recorder.backward_done(value, [*reached, *ends])
        reached += ends
        ends = {}
    for leaf, g in ends.items():
        if g.__class__ is _array and not leaf.hooks and (leaf.grad is ZERO or leaf.grad is None):
            leaf.grad = g  # as `collect` does
        else:
            collect(leaf, g, create_graph)
    if root.order:
        root.backward_done = True  # a pass that failed left the leaves unchanged
    if listeners := events.backward_finished.listeners:
        leaves = [*reached, *ends]
        for listener in listeners:  # as `publish` does, without its call
            listener(value, leaves)
    return []


anomaly_mode.backward_code = backpropagate.__code__


def gradients_of_leaves(starts: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Run a backward pass from several nodes; return the gradient of each leaf that it reaches.

    The ``grad`` of leaves stays as it is. Hooks of leaves run.

    Parameters
    ----------
    starts : iterable of (Node or Leaf, array)
        Where to start, each with its gradient; those of one node are added in their order.
    """
    pending: dict[Any, Any] = {}
    for node, g in starts:
        pending[node] = pending[node] + g if node in pending else g
    heap = [(-node.order, node) for node in pending if node.order]
    if heap:
        heapify(heap)
        node = heappop(heap)[1]
        pending = _backward_pass(node, pending.pop(node), pending, heap, False, False)
    return {leaf: run_hooks(leaf, g) if leaf.hooks else g for leaf, g in pending.items()}


def gradients_of_ends(
    starts: dict[Any, Any],
    since: int,
    create_graph: bool,
    edges: Sequence[Any],
    arriving: dict[Any, Any],
) -> dict[Any, Any]:
    """Run a backward pass from several nodes through the nodes recorded since a time.

    Parameters
    ----------
    starts : dict
        The gradient of each node to start from.
    since : int
        Nodes up to this number are ends, like leaves: gradients stop there, and their hooks do not
        run.
    create_graph : bool
        As for `backpropagate`. If set, the graph is kept.
    edges : sequence
        The nodes whose gradients the surrounding backward pass expects.
    arriving : dict
        The pending gradients of that pass. Gradients are added to those of `edges` term by term, in
        the order of one backward pass through the whole graph.

    Returns
    -------
    dict
        The gradient of each other end that was reached.
    """
    pending = dict(starts)
    begun = [edge for edge in edges if edge in arriving]
    for edge in begun:
        pending[edge] = arriving.pop(edge)
    heap = [(-node.order, node) for node in starts]
    heapify(heap)
    node = heappop(heap)[1]
    ends = _backward_pass(
        node, pending.pop(node), pending, heap, create_graph, create_graph, since=since
    )
    for edge in begun:
        arriving[edge] = ends.pop(edge)
    return ends


def _backward_pass(
    node: Any,
    g: Any,
    pending: dict[Any, Any],
    heap: list[tuple[int, Any]],
    create_graph: bool,
    retain_graph: bool,
    since: int = 0,
    useful: set[Any] | None = None,
    found: tuple[Sequence[Any], dict[Any, Any]] | None = None,
    reached: list[Any] | None = None,
) -> dict[Any, Any]:
    """Propagate gradients until none is left; return those of the ends.

    The first is `g`, of `node`; `pending` holds the other gradients by node. Nodes whose gradient
    is complete are taken from the `heap`, the newest first. With `reached`, leaves collect large
    gradients as soon as they are complete, which saves memory, and are listed there.
    """
    if slow_path.any and here.recorder is not None:
        return here.recorder.backward_pass(  # type: ignore[no-any-return]
            node, g, pending, heap, create_graph, retain_graph, since, useful, found
        )
    missing: dict[Any, int] | None = None  # the number of gradients that a leaf still waits for
    if create_graph:  # else the rules read arrays, and nothing is recorded
        was_on, recording.on = recording.on, True
        policy, halves.policy = halves.policy, None
    early: Any = ()  # the gradients of leaves before the pass, restored if it fails
    saved: Any = ()
    quiet: Any = None  # suppresses warnings of infinity after the first node of 16 bits
    try:
        while True:
            if node.hooks:
                g = run_hooks(node, g)
            if found is not None and node in found[0]:
                found[1][node] = g
            saved = node.saved
            if node.order < versions.times.last_write:
                node.check_unchanged()
            if saved.__class__ is not tuple:
                if saved is None:
                    raise node.freed_error()
                if events.values_wanted.listeners:
                    events.values_wanted.publish(node, g, pending)
                saved = saved.restored()
            if create_graph:
                saved = attach(node, saved)
            edges, recipe, static = node.edges, node.recipe, node.static
            if slow_path.any:
                if events.rule_starts.listeners:
                    events.rule_starts.publish(node, g, saved, pending)
                if halves.on:
                    if quiet is None and is_half(node.dtype):
                        quiet = np.errstate(over="ignore", invalid="ignore")
                        quiet.__enter__()
                    g, saved = widen_for_rule(g, saved)
            if recipe.joint is not None:
                part = None  # it may be g, and would count as another reference
                if recipe.runs_backward:
                    g = recipe.joint(g, saved, static, pending)
                elif (
                    recipe.over is None
                    or g.__class__ is not _array
                    or g.nbytes < LARGE
                    or getrefcount(g) != REFERENCES_OF_A_LOCAL
                    or g.base is not None
                    or not g.flags.writeable
                    or slow_path.needs_values
                    or not all(x.__class__ is _array for x in saved)
                ):
                    g = recipe.joint(g, saved, static)
                else:
                    g = recipe.over(g, saved, static)
            for position, run in recipe.pullbacks:
                edge = edges[position]
                if useful is not None and edge not in useful:
                    continue
                part = run(g, saved, static)
                if part is None:
                    continue
                if slow_path.any and anomaly_mode.depth.value:
                    anomaly_mode.check_backward(node, position, part, g, saved)
                if part.shape != edge.shape:
                    part = unbroadcast(part, edge.shape)
                if part.dtype is not edge.dtype and part.dtype != edge.dtype:
                    part = rounded(part, edge.dtype) if halves.on else part.astype(edge.dtype)
                if edge in pending:
                    if part.__class__ is _array and part.nbytes >= LARGE:
                        pending[edge] = _accumulate(pending.pop(edge), part, create_graph)
                    else:
                        pending[edge] = pending[edge] + part
                    part = None
                else:
                    pending[edge] = part
                    if edge.order > since:
                        heappush(heap, (-edge.order, edge))
                    elif (
                        missing is None
                        and reached is not None
                        and part.__class__ is _array
                        and part.nbytes >= LARGE
                    ):
                        missing, early = _count_consumers(node, heap), []
            if not retain_graph:
                node.saved = None
            if missing:
                part = None
                _collect_complete(edges, missing, pending, reached, early, create_graph)
            if not heap:
                return pending
            node = heappop(heap)[1]
            g = pending.pop(node)
    except BaseException:
        for leaf, before in early:
            leaf.grad = before
        raise
    finally:
        if create_graph:
            recording.on, halves.policy = was_on, policy
        if quiet is not None:
            quiet.__exit__(None, None, None)
        if slow_path.any and events.backward_pass_ended.listeners:
            events.backward_pass_ended.publish(g, saved, pending)


def attach(node: Any, saved: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return saved values as Tensors with their nodes, so that the rule is recorded."""
    output = len(node.edges)
    attached = []
    for value, source in zip(saved, node.recipe.sources, strict=True):
        owner: Any = node if source == output else node.edges[source] if source < output else None
        if owner is node and node.operation.several:
            attached.append(outputs_of(node, value))
        else:
            attached.append(value if owner is None else base.Tensor(value, owner))
    return tuple(attached)


def _count_consumers(node: Any, heap: list[tuple[int, Any]]) -> dict[Any, int]:
    """Count for each leaf the inputs through which the backward pass will still reach it.

    Return an empty dict if the pass is going to fail, so that no leaf changes before it does.
    """
    counts: dict[Any, int] = {}
    stack = [node, *(waiting for _, waiting in heap)]
    seen = set(stack)
    while stack:
        one = stack.pop()
        if one.saved is None:
            return {}
        for edge in one.edges:
            if edge is None:
                continue
            if not edge.order:
                counts[edge] = counts.get(edge, 0) + 1
            elif edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return counts


def _collect_complete(
    edges: Sequence[Any],
    missing: dict[Any, int],
    pending: dict[Any, Any],
    reached: Any,
    early: list[tuple[Any, Any]],
    create_graph: bool,
) -> None:
    """Accumulate in the leaves among `edges` the gradients that are complete.

    `early` lists leaves without a gradient before: a sum updated in place cannot be restored.
    """
    for leaf in edges:
        if leaf is None or leaf.order:
            continue
        missing[leaf] -= 1
        if missing[leaf] == 0 and getattr(pending.get(leaf), "nbytes", 0) >= LARGE:
            reached.append(leaf)
            if leaf.grad is None or leaf.grad is ZERO:
                early.append((leaf, leaf.grad))
            if events.leaf_collects.listeners:
                events.leaf_collects.publish(leaf)
            collect(leaf, pending.pop(leaf), create_graph)


def collect(leaf: Any, g: Any, create_graph: bool) -> None:
    """Add `g` to the gradient of a leaf, in place if that has no other reference."""
    if leaf.hooks:
        g = run_hooks(leaf, g)
    if g.__class__ is EnsembleArray and g.level > leaf.made_at:
        raise EnsembleError(
            "backward() inside vmap would leave a Tensor from outside with a gradient for "
            "each example. Return gradients instead: ol.vmap(ol.grad(loss))(...), or call "
            "backward() on the sum of what vmap gives."
        )
    # From reading the sum to writing it no other thread may add. (A first gradient is written
    # without a lock in `backpropagate`: no thread runs between its test and its write.)
    with _adding[id(leaf) // 64 % 16]:
        if leaf.grad is None or leaf.grad is ZERO:
            leaf.grad = g
            return
        total = leaf.grad
        if (
            g.__class__ is _array
            and g.nbytes >= LARGE
            and total.__class__ is _array
            and getrefcount(total) == REFERENCES_WHEN_ALONE
            and total.base is None
            and total.flags.writeable
        ):
            total += g
            return
        with grad_mode(create_graph):
            leaf.grad = total + g
