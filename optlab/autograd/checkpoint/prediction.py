"""Predicted cost of recomputing a chain of layers: bytes and operations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import Any

from optlab.autograd import pytrees
from optlab.autograd.checkpoint.chain import called, list_of, schedule_for
from optlab.autograd.checkpoint.non_reentrant import DeferredSaved
from optlab.autograd.checkpoint.replay import DropSaved, ReplayedCall
from optlab.autograd.checkpoint.schedules.schedule import Schedule
from optlab.autograd.checkpoint.sequential import Saves
from optlab.autograd.graph.saved_memory import Memory, arrays_in
from optlab.autograd.tape import saved_tensors
from optlab.autograd.tape.grad_mode import grad_mode, recomputing
from optlab.autograd.tape.nodes import Leaf
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events, random
from optlab.backend.memory.sizes import in_words


@dataclass(frozen=True, repr=False)
class Prediction:
    """Predicted cost of a schedule on a chain of layers.

    Attributes
    ----------
    schedule : Schedule
    saved : tuple of int
        Bytes that each layer saves for backward when it is recorded, without parameters.
    inputs : tuple of int
        Bytes of the input of each layer; 0 for the first, whose input is the caller's.
    shared : tuple of int
        Bytes that a layer saves and the layer before it saves too.
    operations : tuple of int
        Number of operations of each layer.
    first : int
        The first layer that backward reaches: nothing in those before it needs a gradient.
    inner : tuple of int
        Operations that each layer recomputes itself in backward, because it calls `recompute` or
        `recompute_sequential` inside. The bytes that they save then come on top of all counts here.
    """

    schedule: Schedule
    saved: tuple[int, ...]
    inputs: tuple[int, ...]
    shared: tuple[int, ...]
    operations: tuple[int, ...]
    first: int = 0
    inner: tuple[int, ...] = ()

    @property
    def peak(self) -> int:
        """Peak of the bytes kept: stored inputs, and saved values of recorded layers.

        Gradients and the working memory of the running operation come on top.
        """
        return self.schedule.peak(self.saved, self.inputs, shared=self.shared)

    @property
    def recomputed_layers(self) -> int:
        """Number of runs of layers beyond the first of each."""
        return sum(self.recomputed)

    @property
    def recomputed(self) -> tuple[int, ...]:
        """Number of runs of each layer beyond the first."""
        return tuple(runs - 1 for runs in self.schedule.runs(self.first))

    @property
    def recomputed_operations(self) -> int:
        """Number of operations that run again, those recomputed inside layers included."""
        by_schedule = zip(self.recomputed, self.operations, strict=True)
        return sum(times * count for times, count in by_schedule) + self.inner_operations

    @property
    def inner_operations(self) -> int:
        """Number of operations that layers recompute themselves: see ``inner``."""
        return sum(self.inner[self.first :])

    def __repr__(self) -> str:
        return f"<Prediction {self}>"

    def _repr_html_(self) -> str:
        """Format the prediction as HTML: the sentence, and a table by layer."""
        runs = self.schedule.runs(self.first)
        columns = (self.saved, self.inputs, self.operations, runs)
        rows = "".join(
            f"<tr><td>{i}</td><td>{in_words(saved)}</td><td>{in_words(entry)}</td>"
            f"<td>{operations}</td><td>{times}</td></tr>"
            for i, (saved, entry, operations, times) in enumerate(zip(*columns, strict=True))
        )
        heads = ("layer", "keeps", "its input", "operations", "runs")
        return (
            f'<div class="optlab-prediction"><div>{escape(str(self))}</div><details>'
            "<summary>layer by layer</summary><table><tr>"
            + "".join(f"<th>{head}</th>" for head in heads)
            + f"</tr>{rows}</table></details></div>"
        )

    def __str__(self) -> str:
        plain = sum(self.saved) - sum(self.shared)
        inside = self.inner_operations
        return (
            f"{self.schedule.name}: {in_words(self.peak)} kept for backward at most (plainly "
            f"{in_words(plain)}), {self.recomputed_layers} layers and "
            f"{self.recomputed_operations} operations run again"
        ) + (
            f"; {inside} of these operations run because layers recompute inside, and the bytes "
            "that they keep meanwhile come on top"
            if inside
            else ""
        )


def predict(
    layers: Any, *args: Any, segments: Any = None, snapshots: int | None = None
) -> Prediction:
    """Run the layers once, and predict the cost of `recompute_sequential`.

    Random numbers of optlab and running statistics are unaffected; other changes that layers make
    in forward remain. `optlab.memory.predict` undoes those too, and documents the parameters.
    """
    chain = list_of(layers)
    schedule = schedule_for(len(chain), segments, snapshots)
    given = [p.data for p in pytrees.flatten(list(args))[0] if isinstance(p, Tensor)]
    value: Any = args
    before, first = Memory(), 0
    rows = []
    recomputing.depth += 1
    try:
        with random.replayed(random.bookmark()), grad_mode(True):
            for i, layer in enumerate(chain):
                parts, build = pytrees.flatten(value)
                size = sum(p.data.nbytes for p in parts if isinstance(p, Tensor)) if i else 0
                entries = [_as_leaf(part) for part in parts]
                costs = _LayerCosts(
                    {e.node for e in entries if isinstance(e, Tensor)}, given, before
                )
                with saved_tensors.use_policy(costs), events.operation_ran.subscribed(costs.ran):
                    value = called(layer, build(entries))
                seen = _ancestors_of(value)
                costs.count_deferred(seen)
                if not seen or not seen & costs.entries:
                    first = i if seen else i + 1
                rows.append((costs.saved, size, costs.shared, costs.operations, costs.inner(seen)))
                before = costs.own
    finally:
        recomputing.depth -= 1
    saved, inputs, shared, operations, inner = zip(*rows, strict=True)
    return Prediction(schedule, saved, inputs, shared, operations, first, inner)


def _as_leaf(part: Any) -> Any:
    """Return the input of a layer as a leaf."""
    if not isinstance(part, Tensor) or part.node is None:
        return part
    return Tensor(part.data, Leaf(part.shape, part.dtype))


def _ancestors_of(value: Any) -> set[Any]:
    """Return the nodes that backward reaches from the value of a layer."""
    seen = {p.node for p in pytrees.flatten(value)[0] if getattr(p, "node", None) is not None}
    stack = list(seen)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return seen


def _replays_at(node: Any) -> dict[ReplayedCall, int]:
    """Return the calls that are replayed when backward reaches a node, and how often."""
    saved = getattr(node, "saved", None)
    of = saved[0] if isinstance(saved, tuple) and saved else saved
    if isinstance(of, ReplayedCall):
        return {of: of.replays}
    if isinstance(of, DeferredSaved):
        return {of.call: of.call.replays}
    if not isinstance(of, Saves):
        return {}
    runs = of.chain.schedule.runs(of.start)
    return {call: times - 1 for call, times in zip(of.chain.calls, runs, strict=True)}


class _LayerCosts:
    """Save policy that counts what one layer saves, and changes nothing.

    Attributes
    ----------
    own : Memory
        The memory that the layer keeps.
    saved, shared : int
        Its bytes, and those of them that the layer before keeps too.
    operations : int
    inside_calls : Counter
        Number of operations inside calls that will be replayed, by the nested calls.
    """

    def __init__(self, entries: set[Any], given: list[Any], before: Memory) -> None:
        self.entries, self.before = entries, before
        self.own, self.ignored = Memory(), Memory()
        for array in given:
            self.ignored.add(array)
        self.saved = self.shared = self.operations = 0
        self.inside_calls: Counter[tuple[ReplayedCall, ...]] = Counter()

    def count_deferred(self, seen: set[Any]) -> None:
        """Count what operations on the tape keep whose saved values are deferred."""
        for node in seen:
            if isinstance(getattr(node, "saved", None), DeferredSaved):
                for value in (*node.saved.values, *node.static.values()):
                    self._count(value)

    def inner(self, seen: set[Any]) -> int:
        """Return the number of operations that are replayed if backward reaches these nodes."""
        replays: dict[ReplayedCall, int] = {}
        for node in seen:
            for call, times in _replays_at(node).items():
                replays[call] = max(times, replays.get(call, 0))
        return sum(
            count * (replays[first] + sum(call.replays for call in others))
            for (first, *others), count in self.inside_calls.items()
            if first in replays
        )

    def ran(self, *what: Any) -> None:
        """Count an operation, recorded or not."""
        self.operations += 1
        policies = saved_tensors.entered_since(self)
        calls = tuple(one.call for one in policies if isinstance(one, DropSaved))
        if calls:
            self.inside_calls[calls] += 1

    def keep(self, node: Any, saved: Any, forward: Any, values: Any) -> Any:
        """Count the saved values of an operation, except parameters and arguments of the chain."""
        arity = len(node.edges)
        for place, value in zip(node.recipe.sources, saved, strict=False):
            edge = node.edges[place] if place < arity else None
            if edge is not None and edge.source is not None and edge.source not in self.entries:
                continue
            self._count(value)
        for value in node.static.values():
            self._count(value)
        return saved

    def _count(self, value: Any) -> None:
        for array in arrays_in(value):
            if self.ignored.knows(array):
                continue
            size = self.own.add(array)
            self.saved += size
            self.shared += size if self.before.knows(array) else 0
