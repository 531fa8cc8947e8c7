"""The backward pass of a call that is recorded.

It is `optlab.autograd.tape.backward._backward_pass` without its short cuts: nothing is written in
place, so that every array of the pass keeps its identity.
"""

from __future__ import annotations

import operator
from functools import partial
from heapq import heappop, heappush
from typing import Any

import numpy as np

from optlab.autograd.tape import backward, versions
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.half_precision import HALVES, halves, rounded, widen_for_rule
from optlab.autograd.tape.hooks import run_hooks
from optlab.autograd.tape.nodes import ZERO
from optlab.backend import events
from optlab.backend.call_recorder import suspended
from optlab.plan.calls.recording.arrays import plain


def collect(leaf: Any, g: Any) -> None:
    """Add a gradient to that of a leaf, as the backward pass does."""
    if (leaf.grad is ZERO or leaf.grad is None) and not leaf.hooks:
        leaf.grad = g
    else:
        backward.collect(leaf, g, False)


def announce(value: Any, leaves: tuple[Any, ...]) -> None:
    """Publish that a backward pass is finished."""
    if events.backward_finished.listeners:
        events.backward_finished.publish(value, list(leaves))


def recorded_pass(
    recorder: Any,
    node: Any,
    g: Any,
    pending: dict[Any, Any],
    heap: list[tuple[int, Any]],
    create_graph: bool,
    retain_graph: bool,
    since: int,
    useful: set[Any] | None,
    found: Any,
) -> dict[Any, Any]:
    """Propagate gradients as `_backward_pass` does, and record the rules."""
    if create_graph:  # rules on Tensors record themselves
        was_on, recording.on = recording.on, True
        policy, halves.policy = halves.policy, None
    try:
        while True:
            if node.hooks:
                g = _hooked(recorder, node, g)
            if found is not None and node in found[0]:
                found[1][node] = g
            saved = node.saved
            if node.order < versions.times.last_write:
                node.check_unchanged()
            if saved.__class__ is not tuple:
                if saved is None:
                    raise node.freed_error()
                saved = saved.restored()
            if create_graph:
                saved = backward.attach(node, saved)
            edges, recipe, static = node.edges, node.recipe, node.static
            name = f"{node.operation.name} backward"
            if recipe.joint is not None:
                if recipe.runs_backward:
                    g = recipe.joint(g, saved, static, pending)
                elif create_graph:
                    g = recipe.joint(g, saved, static)
                elif recipe.of_user:  # its operations record themselves
                    g = [plain(part) for part in recipe.joint(g, saved, static)]
                else:
                    g = recorder.rule(
                        name, _widened(recipe.joint, g, saved), g, saved, static, recipe.calls
                    )
            for position, run in recipe.pullbacks:
                edge = edges[position]
                if useful is not None and edge not in useful:
                    continue
                if create_graph or recipe.joint is not None:
                    part = run(g, saved, static)
                else:
                    part = recorder.rule(
                        name, _widened(run, g, saved), g, saved, static, recipe.calls
                    )
                if part is None:
                    continue
                part = _fitted(recorder, part, edge)
                if edge in pending:
                    pending[edge] = _sum(recorder, pending[edge], part)
                else:
                    pending[edge] = part
                    if edge.order > since:
                        heappush(heap, (-edge.order, edge))
            if not retain_graph:
                node.saved = None
            if not heap:
                return pending
            node = heappop(heap)[1]
            g = pending.pop(node)
    finally:
        if create_graph:
            recording.on, halves.policy = was_on, policy


def _widened(run: Any, g: Any, saved: Any) -> Any:
    """Return a rule that computes in float32 where values have 16 bits."""
    if not halves.on:
        return run
    narrow = any(getattr(x, "dtype", None) in HALVES for x in (g, *saved))
    return partial(_run_widened, run) if narrow or not hasattr(g, "nbytes") else run


def _run_widened(run: Any, g: Any, saved: Any, static: Any) -> Any:
    g, saved = widen_for_rule(g, saved)
    with np.errstate(over="ignore", invalid="ignore"):
        return run(g, saved, static)


def _fitted(recorder: Any, part: Any, edge: Any) -> Any:
    """Return a gradient in the shape and dtype of what it is the gradient of."""
    if _is_tensor(part):
        if part.shape != edge.shape:
            part = backward.unbroadcast(part, edge.shape)
        if part.dtype != edge.dtype:
            part = rounded(part, edge.dtype) if halves.on else part.astype(edge.dtype)
        return part
    if part.shape != edge.shape:
        part = recorder.compute("unbroadcast", backward.unbroadcast, part, edge.shape)
    if part.dtype != edge.dtype:
        part = recorder.compute("cast", rounded if halves.on else _cast, part, edge.dtype)
    return part


def _is_tensor(x: Any) -> bool:
    return isinstance(x, TensorBase)


def _cast(part: Any, dtype: Any) -> Any:
    return part.astype(dtype)


def _sum(recorder: Any, total: Any, part: Any) -> Any:
    if isinstance(total, TensorBase) or isinstance(part, TensorBase):
        return total + part
    return recorder.compute("add gradients", operator.add, total, part)


def _hooked(recorder: Any, node: Any, g: Any) -> Any:
    """Run the hooks of a node: functions of the user, whose operations are recorded."""
    if node.order or isinstance(g, TensorBase):  # its operations record themselves
        return plain(run_hooks(node, g))
    before = recorder.template(g)
    with suspended():
        after = run_hooks(node, g)
    if after is not g:
        recorder.add("effect", "hooks", run_hooks, (node, before), {}, after)
    else:
        recorder.add("effect", "hooks", run_hooks, (node, before), {}, None)
    return after
