"""`recompute_sequential`: checkpointing of a chain of layers by a schedule.

Each part of the chain that a schedule backpropagates at once is one node of the tape. When the
backward pass reaches it, the actions of the schedule up to it are carried out: stored inputs are
restored, layers advance, and the part is recorded again and backpropagated.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from optlab.autograd import pytrees
from optlab.autograd.checkpoint.chain import called, list_of, schedule_for
from optlab.autograd.checkpoint.fingerprints import Fingerprint, fingerprint
from optlab.autograd.checkpoint.recompute import as_one_operation, ends_behind, made_since
from optlab.autograd.checkpoint.replay import CompareReplay, DropSaved, ReplayedCall
from optlab.autograd.checkpoint.schedules.actions import (
    Advance,
    Back,
    Free,
    Record,
    Restore,
    Snapshot,
)
from optlab.autograd.checkpoint.schedules.schedule import Schedule
from optlab.autograd.tape import multi_output, saved_tensors, versions
from optlab.autograd.tape.backward import gradients_of_ends
from optlab.autograd.tape.grad_mode import grad_mode, recording
from optlab.autograd.tape.nodes import InputLeaf
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events


def recompute_sequential(
    layers: Any,
    *args: Any,
    segments: Any = None,
    snapshots: int | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Run a chain of layers, and recompute it in backward by segments or a schedule.

    Values, gradients and parameters are those of ``layers[-1](... layers[0](*args))`` to the bit;
    the last bits of second derivatives may differ, see `recompute`.

    Parameters
    ----------
    layers : Sequential, or list of callables
        Each takes the value of the one before (a tuple as several arguments).
    *args
        Arguments of the first.
    segments : int, {'sqrt', 'revolve'} or Schedule, optional
        A number: so many segments, as even as possible; their inputs are stored, and each is
        recomputed as a whole, also the last. ``"sqrt"``: the square root of the number of layers
        (Chen et al. 2016). ``"revolve"``: the fewest runs for a number of stored inputs (Griewank
        and Walther 2000). 4 by default, or the number of layers if that is smaller.
    snapshots : int, optional
        For ``"revolve"``, the largest number of inputs stored at a time, that of the chain
        included. By default as many as ``"sqrt"`` stores.
    preserve_rng_state : bool
        Draw the same random numbers when a layer runs again; see `recompute`.

    Returns
    -------
    The value of the last layer.

    Raises
    ------
    TypeError, ValueError
        If there is no layer, one cannot be called, or `segments` or `snapshots` do not fit.
    RecomputationError, RuntimeError
        In backward, as for `recompute`.

    Notes
    -----
    `optlab.memory.predict` takes the same arguments and predicts the cost.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> blocks = [ol.nn.Sequential(ol.nn.Linear(4, 4), ol.nn.Dropout(0.1)) for _ in range(9)]
    >>> loss = ol.recompute_sequential(blocks, ol.ones([2, 4]), segments="sqrt").sum()
    >>> loss.backward()
    >>> blocks[0][0].weight.grad.shape
    (4, 4)
    """
    chain = list_of(layers)
    schedule = schedule_for(len(chain), segments, snapshots)
    if preserve_rng_state is not True and preserve_rng_state is not False:
        raise TypeError(f"preserve_rng_state is True or False; got {preserve_rng_state!r}.")
    if not recording.on:
        value: Any = args
        for layer in chain:
            value = called(layer, value)
        return value
    return Chain(chain, schedule, preserve_rng_state).forward(args)


def _output_fingerprints(value: Any) -> list[Fingerprint]:
    return [
        fingerprint("output", one.data)
        for one in pytrees.flatten(value)[0]
        if isinstance(one, Tensor)
    ]


class _StoredInput:
    """Stored input of a layer: its arrays, and the other values among them."""

    def __init__(self, value: Any) -> None:
        parts, self.build = pytrees.flatten(value)
        self.needs = [isinstance(p, Tensor) and p.node is not None for p in parts]
        # The arrays themselves, no copies: in another memory layout sums differ in their last bits.
        self.parts = [Tensor(p.data) if n else p for p, n in zip(parts, self.needs, strict=True)]

    def value(self, nodes: Sequence[Any] | None = None) -> Any:
        """Return the input; with `nodes`, on the tape."""
        if nodes is None:
            return self.build(list(self.parts))
        for part, node in zip(self.parts, nodes, strict=True):
            if node is not None:
                versions.attribute_to(part.data, node.order)
        return self.build(
            [
                part if node is None else Tensor(part.data, node)
                for part, node in zip(self.parts, nodes, strict=True)
            ]
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        return tuple(part.data for part in self.parts if isinstance(part, Tensor))


_UNREACHED = -1


class _Part:
    """Layers that are recorded and backpropagated at once: one node of the tape.

    Attributes
    ----------
    start, stop : int
        Bounds of the layers, as in a slice.
    edges : list of weakref
        The edges of its node; weak, since the earlier nodes hold the chain.
    entries : list
        For each part of the input the number of its edge, or None. `_UNREACHED`: it needs a
        gradient, but the output does not depend on it.
    recorded : tuple or None
        Time and outputs of a run that is recorded and not yet backpropagated.
    """

    def __init__(self, start: int, stop: int) -> None:
        self.start, self.stop = start, stop
        self.edges: list[weakref.ref[Any]] = []
        self.entries: list[int | None] = []
        self.recorded: tuple[int, list[Any]] | None = None


class Saves:
    """Saved value of the node of a part: the chain, and the record of the part in forward.

    The record refers to earlier nodes, which refer to the chain: so the chain must not hold it.
    """

    takes_gradients_as_they_are = True

    def __init__(self, chain: Chain, start: int, recorded: tuple[int, list[Any]] | None) -> None:
        self.chain = chain
        self.start = start
        self.recorded = recorded

    def restored(self) -> Saves:
        """Return itself: the schedule restores stored inputs, not the node."""
        return self

    @property
    def values(self) -> tuple[Any, ...]:
        """The arrays that are stored now, for `saved_memory`."""
        return tuple(array for stored in self.chain.stored.values() for array in stored.arrays)


class Chain:
    """One run of a chain of layers, and the state of its schedule.

    Attributes
    ----------
    stored : dict
        The stored inputs by layer.
    runs : list of int
        Number of runs of each layer so far.
    """

    def __init__(
        self, layers: list[Callable[..., Any]], schedule: Schedule, preserve_rng_state: bool
    ) -> None:
        self.layers = layers
        self.schedule = schedule
        self.preserve = preserve_rng_state
        self.calls: list[ReplayedCall] = []
        #: Fingerprints of what each layer returned, to compare unrecorded runs with.
        self.outputs: list[list[Fingerprint]] = []
        self.runs = [0] * len(layers)
        self.stored: dict[int, _StoredInput] = {}
        ranges = [a for a in schedule.actions if isinstance(a, (Record, Back))]
        cuts = sorted({cut for a in ranges for cut in (a.start, a.stop)})
        self.parts = {start: _Part(start, stop) for start, stop in pairwise(cuts)}
        #: By layer, the position of its `Back` action.
        self.back_at = {
            layer: i
            for i, action in enumerate(schedule.actions)
            if isinstance(action, Back)
            for layer in action.layers
        }
        #: The input of the chain, and the position in the schedule.
        self.begin: _StoredInput | None = None
        self.next = 0

    # Forward ------------------------------------------------------------------------------------

    def forward(self, args: tuple[Any, ...]) -> Any:
        """Carry out the actions of forward; return the value of the last layer, on the tape."""
        value: Any = args
        self.begin = _StoredInput(value)
        forward = self.schedule.forward
        recorded = {i for a in forward if isinstance(a, Record) for i in a.layers}
        snapshots = {a.layer for a in forward if isinstance(a, Snapshot)}
        for part in self.parts.values():
            since = next(versions.clock)
            nodes = [getattr(one, "node", None) for one in pytrees.flatten(value)[0]]
            for i in range(part.start, part.stop):
                if i in snapshots:
                    self._store(i, value)
                call = ReplayedCall(
                    self.layers[i], (), {}, self.preserve, self.schedule.layer_runs[i] - 1
                )
                self.calls.append(call)
                policy = _RecordOnly(call) if i in recorded else DropSaved(call)
                with call.first_run(policy):
                    value = self._run(i, value)
                self.outputs.append(_output_fingerprints(value) if self.preserve else [])
            value = self._as_node(part, value, nodes, since, part.start in recorded)
        self.next = len(forward)
        return value

    def _store(self, layer: int, value: Any) -> None:
        self.stored[layer] = stored = _StoredInput(value)
        if events.input_stored.listeners:
            events.input_stored.publish(stored, stored.arrays)

    def _run(self, layer: int, value: Any) -> Any:
        self.runs[layer] += 1
        return called(self.layers[layer], value)

    def _as_node(
        self, part: _Part, value: Any, nodes: Sequence[Any], since: int, recorded: bool
    ) -> Any:
        """Return the value of a part as the outputs of its node."""
        parts, _ = pytrees.flatten(value)
        made = made_since(parts, since)
        if not made:  # it returned its input, or nothing that needs a gradient
            part.entries = [None if node is None else _UNREACHED for node in nodes]
            return value
        outputs = [parts[i] for i in made]
        edges = ends_behind({t.node for t in outputs}, since)
        places = {edge: i for i, edge in enumerate(edges)}
        part.entries = [None if node is None else places.get(node, _UNREACHED) for node in nodes]
        part.edges = [weakref.ref(edge) for edge in edges]
        saves = Saves(self, part.start, (since, outputs) if recorded else None)

        def gradients(g: Any, saved: Any, static: Any, arriving: Any) -> list[Any]:
            if saved[0].recorded is not None:
                part.recorded, saved[0].recorded = saved[0].recorded, None
            return self._back(part, g, edges, arriving)

        return as_one_operation("recompute_sequential", saves, (), value, since, gradients)

    # Backward -----------------------------------------------------------------------------------

    def _back(self, part: _Part, g: Any, edges: tuple[Any, ...], arriving: Any) -> list[Any]:
        """Carry out the actions up to the backward pass of a part; return its gradients."""
        try:
            return self._run_until(part, g, edges, arriving)
        except BaseException:
            self.next = len(self.schedule.actions)  # a second attempt starts from the first action
            for one in self.parts.values():
                one.recorded = None
            raise

    def _run_until(self, part: _Part, g: Any, edges: tuple[Any, ...], arriving: Any) -> list[Any]:
        actions = self.schedule.actions
        value: Any = None
        if self.back_at.get(part.start, -1) < self.next:
            # Another backward pass through the same graph: everything runs again from the start.
            assert self.begin is not None
            self.next, value = 0, self.begin.value()
            self.stored.clear()
        while True:
            action = actions[self.next]
            if isinstance(action, Back) and part.start in action.layers:
                self.next += part.start == action.start
                return self._backpropagate(part, g, edges, arriving)
            self.next += 1
            match action:
                case Snapshot(layer):
                    self._store(layer, value)
                case Restore(layer):
                    value = self.stored[layer].value()
                case Free(layer):
                    del self.stored[layer]
                case Advance():
                    value = self._advance(action, value)
                case Record(start, stop):
                    for one in self._parts_of(start, stop):
                        value = self._record(one, value)
                    value = None
                case Back(start, stop):  # no gradient reaches these
                    for one in self._parts_of(start, stop):
                        one.recorded = None

    def _parts_of(self, start: int, stop: int) -> Iterator[_Part]:
        """Yield the parts between two cuts, in forward order."""
        while start < stop:
            yield self.parts[start]
            start = self.parts[start].stop

    def _advance(self, action: Advance, value: Any) -> Any:
        """Run layers without recording; return the value of the last."""
        with grad_mode(False):
            for layer in action.layers:
                with self.calls[layer].restored_context():
                    value = self._run(layer, value)
                if self.preserve and _output_fingerprints(value) != self.outputs[layer]:
                    raise self.calls[layer].mismatch("it returned something else")
        return value

    def _record(self, part: _Part, value: Any) -> Any:
        """Record the layers of a part; return the value of the last."""
        since = next(versions.clock)
        stored = _StoredInput(value)
        value = stored.value(
            [
                InputLeaf(one.shape, one.dtype)
                if place == _UNREACHED
                else None
                if place is None
                # In higher derivatives the node may be gone; then its gradient is not needed.
                else part.edges[place]() or InputLeaf(one.shape, one.dtype)
                for one, place in zip(stored.parts, part.entries, strict=True)
            ]
        )
        for layer in range(part.start, part.stop):
            call = self.calls[layer]
            policy = CompareReplay(call)
            with saved_tensors.use_policy(policy), grad_mode(True), call.restored_context():
                value = self._run(layer, value)
            policy.check_complete()
        parts, _ = pytrees.flatten(value)
        part.recorded = since, [parts[i] for i in made_since(parts, since)]
        return value

    def _backpropagate(
        self, part: _Part, g: Any, edges: tuple[Any, ...], arriving: Any
    ) -> list[Any]:
        """Run the backward pass of a part that is recorded."""
        arrived = g.arrived if isinstance(g, multi_output.OutputGradients) else {0: g}
        create_graph = any(isinstance(one, Tensor) for one in arrived.values())
        assert part.recorded is not None  # a schedule records a layer before `Back`
        (since, outputs), part.recorded = part.recorded, None
        starts: dict[Any, Any] = {}
        for i, one in arrived.items():
            node = outputs[i].node
            starts[node] = starts[node] + one if node in starts else one
        del outputs, arrived, g
        ends = gradients_of_ends(starts, since, create_graph, edges, arriving)
        return [ends.pop(edge, None) for edge in edges]


class _RecordOnly(DropSaved):
    """Save policy of the first run of a layer that stays recorded: drops nothing."""

    def keep(self, node: Any, saved: Any, forward: Any, values: Any) -> Any:
        """Record the operation, and save its values as the enclosing policy does."""
        self.record(node, values)
        return saved if self.outer is None else self.outer.keep(node, saved, forward, values)
