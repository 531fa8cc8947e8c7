"""Recomputable results of operations, which may be dropped until backward reads them.

Under a `RecomputePolicy` an operation saves references to recomputable results in place of arrays.
A result holds its array, or has dropped it; then its operation runs again from its own inputs when
backward needs it. Checkpoints and byte budgets differ only in what they drop, and when.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.checkpoint.fingerprints import Fingerprint, fingerprint
from optlab.autograd.tape import constants, versions
from optlab.autograd.tape.grad_mode import RecomputationError
from optlab.autograd.tape.multi_output import OUTPUT
from optlab.autograd.tape.nodes import Node
from optlab.backend import events
from optlab.backend.arrays import owner_of

#: Arrays of fewer bytes are always kept: dropping them gains nothing.
SMALL = 1024


class Source(NamedTuple):
    """Origin of an input or of a saved value.

    Attributes
    ----------
    result : Recomputable or None
        The result that it is; None for parameters, data, numbers and shapes.
    output : int or None
        Number of the output, if the result has several.
    value
        The value itself, if there is no result.
    """

    result: Recomputable | None
    output: int | None
    value: Any

    def lasts_only_as(self, value: Any) -> bool:
        """Return whether the result will not be had again, as its memory is written to.

        A write in place (``t *= u``) gives its operation a copy of the old values.
        """
        result = self.result
        assert result is not None
        return result.fragile or (result.kept and _part(result.array, self.output) is not value)


class Recomputable:
    """Result of one operation, which can be dropped and computed again.

    Attributes
    ----------
    array
        The array, a tuple of several, or None while it is dropped.
    kept : bool
        Whether it is never dropped.
    fragile : bool
        Whether it shares memory that is written to in place, so that it cannot be computed again.
    readers : int
        Number of saved values that refer to it.
    bytes : int
        Size of the array.
    sources : tuple of Source
        The inputs.
    """

    __slots__ = (
        "__weakref__", "_weak", "array", "bytes", "closed", "consumers", "cost", "edges", "evicted",
        "fingerprint", "forward", "fragile", "kept", "name", "order", "policy", "readers",
        "sources", "static", "used",
    )  # fmt: skip

    def __init__(
        self, policy: RecomputePolicy, node: Node, forward: Any, values: Sequence[Any]
    ) -> None:
        arity = len(node.edges)
        self.policy = policy
        self.name = node.operation.name
        self.forward = forward
        self.static = node.static
        self.edges = node.edges
        self.order = node.order
        self.sources = tuple(map(_source, node.edges, values[:arity]))
        self.readers = 0
        self.kept = self.closed = self.fragile = False
        self.fingerprint: Fingerprint | None = None
        y = values[arity]
        self.bytes = sum(part.nbytes for part in y) if isinstance(y, tuple) else y.nbytes
        self.array: Any = None
        self._weak: Any = None
        #: Bookkeeping of `budget`.
        self.consumers: list[weakref.ref[Recomputable]] = []
        self.evicted: Any = None
        self.cost, self.used = 0.0, 0
        if self.bytes < SMALL:
            self.array, self.kept = y, True
        elif not isinstance(y, tuple):
            self._weak = weakref.ref(y)

    @property
    def present(self) -> Any:
        """The array, if it is held here or alive elsewhere and was not overwritten."""
        array = self.array
        if array is None and self._weak is not None:
            array = self._weak()
        if array is not None and self.order < versions.times.last_write:
            parts = array if isinstance(array, tuple) else (array,)
            if versions.writer_since(self.order, parts) is not None:
                self.array = self._weak = None
                return None
        return array

    def hold(self, array: Any) -> None:
        """Hold the array until it is dropped."""
        self.array = array
        if not isinstance(array, tuple) and self.bytes >= SMALL:
            self._weak = weakref.ref(array)

    def drop(self) -> None:
        """Drop the array, and keep its fingerprint."""
        if self.kept or self.array is None:
            return
        if self.fingerprint is None and (present := self.present) is not None:
            self.fingerprint = fingerprint(self.name, present)
        self.array = None

    def run(self, inputs: Sequence[Any]) -> Any:
        """Compute the array again.

        Raises
        ------
        RecomputationError
            If it differs from the first result.
        RuntimeError
            If a parameter or an array that it reads was overwritten.
        """
        for edge, source in zip(self.edges, self.sources, strict=True):
            leaf = None if edge is None or source.result is not None else edge.source
            writer = None
            if leaf is not None and leaf.overwritten_at > self.order:
                writer = leaf.writer
            elif source.result is None and versions.times.last_write > self.order:
                writer = versions.writer_since(self.order, (source.value,))
            if writer is not None:
                raise RuntimeError(
                    f"backward has to run {self.name!r} again, but {writer} has written over what "
                    "it was given. Run backward before that, make a new value in place of writing, "
                    "or compute the loss again."
                )
        if events.operation_starts.listeners:
            events.operation_starts.publish(self.name, inputs)
        with np.errstate(all="ignore"):  # the first run has warned
            y = self.forward(*inputs, **self.static)
        if self.fingerprint is not None:
            again = fingerprint(self.name, y)
            if again != self.fingerprint:
                raise RecomputationError(
                    f"an operation ran again for backward, and it was not the same: "
                    f"{self.fingerprint.difference(again)}. An array that it read has been written "
                    "to since, outside of optlab perhaps: run backward before that, or give the "
                    "operation a copy."
                )
        if events.operation_recomputed.listeners:
            events.operation_recomputed.publish(self, y)
        return y

    def __repr__(self) -> str:
        state = "dropped" if self.array is None else "kept" if self.kept else "held"
        return f"<Recomputable {self.name}, {self.bytes} bytes, {state}>"


def _source(edge: Any, value: Any) -> Source:
    """Return the origin of an input."""
    result, index = recomputable_of(edge)
    return Source(result, index, None if result is not None else value)


def recomputable_of(node: Any) -> tuple[Recomputable | None, int | None]:
    """Return the recomputable result of a node, and the number of the output if it has several."""
    index = None
    if node is not None and node.order and node.operation is OUTPUT:
        index = node.static["index"]
        node = node.edges[0]
    saved = node.saved if node is not None and node.order else None
    return (saved.result, index) if type(saved) is References else (None, None)


class References:
    """Saved values of a node as references to recomputable results."""

    __slots__ = ("__weakref__", "constants", "result", "sources")

    #: The values of leaves are not copied: the tape checks that they were not overwritten.
    reads_leaves = True

    def __init__(self, result: Recomputable, sources: tuple[Source, ...], constants: Any) -> None:
        self.result = result
        self.sources = sources
        self.constants = constants
        for source in sources:
            if source.result is not None:
                source.result.readers += 1

    def __del__(self) -> None:
        for source in getattr(self, "sources", ()):
            result = source.result
            if result is not None:
                result.readers -= 1
                if not result.readers and not result.kept:
                    result.array = None

    @property
    def values(self) -> tuple[Any, ...]:
        """The arrays that are held now."""
        held = [
            s.value if s.result is None else _part(s.result.array, s.output) for s in self.sources
        ]
        return tuple(value for value in held if value is not None)

    def restored(self) -> tuple[Any, ...]:
        """Return the saved values, recomputed if necessary."""
        if self.constants is not None:
            self.constants.restored()
        result = self.result
        if versions.times.last_write > result.order:
            held = [source.value for source in self.sources if source.result is None]
            writer = versions.writer_since(result.order, held)
            if writer is not None:
                raise RuntimeError(
                    f"backward needs a value that {result.name!r} saved, but {writer} has written "
                    "over it since. Run backward before that, make a new value in place of writing "
                    "(t = t + x, np.where(...)), or compute the loss again."
                )
        return self.result.policy.values_of(self.sources)


def _part(array: Any, index: int | None) -> Any:
    return array if index is None or array is None else array[index]


class RecomputePolicy:
    """Save policy that makes results recomputable; subclasses decide what is held and dropped.

    Parameters
    ----------
    selected : callable, optional
        Takes a node and its output; returns whether the output is never dropped.
    """

    def __init__(self, selected: Callable[[Node, Any], bool] | None = None) -> None:
        self.selected = selected
        self.recomputed = 0

    def keep(self, node: Node, saved: Any, forward: Any, values: Sequence[Any]) -> Any:
        """Return references to recomputable results in place of the saved values."""
        arity = len(node.edges)
        if forward is None or getattr(type(values[arity]), "records_calls", False):
            return saved  # it cannot run again; or a capture, whose plan runs it
        result = Recomputable(self, node, forward, values)
        y = values[arity]
        sources = []
        for place, value in zip(node.recipe.sources, saved, strict=True):
            if place < arity:
                source = result.sources[place]
                again = source.result is not None and not source.lasts_only_as(value)
                sources.append(source if again else Source(None, None, value))
            elif place == arity:
                sources.append(Source(result, None, None))
            elif place > 2 * arity:
                sources.append(Source(result, place - 2 * arity - 1, None))
            else:
                sources.append(Source(None, None, value))
        if self.selected is not None and self.selected(node, y):
            result.hold(y)
            result.kept = True
        if versions.times.last_write:
            self._keep_if_written_over(result, y, values)
        references = References(result, tuple(sources), _checked_constants(node, values))
        self.after_recording(result, y, references, values)
        return references

    def after_recording(
        self, result: Recomputable, y: Any, saved: References, values: Sequence[Any]
    ) -> None:
        """Hold the results that backward will read, as far as there is room."""
        arity = len(result.sources)
        for source in saved.sources:
            if source.result is result:
                result.hold(y)
            elif source.result is not None and source.result.array is None:
                self._hold_input(source.result, result, values[:arity])

    @staticmethod
    def _keep_if_written_over(result: Recomputable, y: Any, values: Sequence[Any]) -> None:
        """Keep a result that reads memory written to in place: it may be overwritten again."""
        for source, value in zip(result.sources, values, strict=False):
            if source.result is not None:
                if not source.lasts_only_as(value):
                    continue
            elif versions.record_of(value) is None:
                continue
            parts = y if isinstance(y, tuple) else (y,)
            if any(owner_of(part) is owner_of(value) for part in parts):
                result.fragile = True
            else:
                result.hold(y)
                result.kept = True

    @staticmethod
    def _hold_input(source: Recomputable, result: Recomputable, inputs: Sequence[Any]) -> None:
        """Hold a saved input of an operation while its array is available."""
        for own, value in zip(result.sources, inputs, strict=True):
            if own.result is source and own.output is None and not source.closed:
                source.hold(value)

    def values_of(self, sources: Iterable[Source]) -> tuple[Any, ...]:
        """Return values, recomputing those that were dropped."""
        sources = tuple(sources)
        found = self.rematerialized([s.result for s in sources if s.result is not None])
        return tuple(
            s.value if s.result is None else _part(found[s.result], s.output) for s in sources
        )

    def rematerialized(self, wanted: Sequence[Recomputable]) -> dict[Recomputable, Any]:
        """Return the arrays of results, recomputed if dropped; saved ones are held from now on."""
        arrays: dict[Recomputable, Any] = {}
        missing: dict[Recomputable, int] = {}  # the number of reads of each
        stack = list(wanted)
        while stack:
            result = stack.pop()
            if result in missing:
                missing[result] += 1
                continue
            if result not in arrays:
                arrays[result] = result.present
            if arrays[result] is None:
                del arrays[result]
                missing[result] = 1
                stack += [s.result for s in result.sources if s.result is not None]
        for result in sorted(missing, key=attrgetter("order")):
            inputs = []
            for source in result.sources:
                before = source.result
                if before is None:
                    inputs.append(source.value)
                    continue
                inputs.append(_part(arrays[before], source.output))
                if before in missing:
                    missing[before] -= 1
                    if not missing[before]:
                        del arrays[before]  # this was its last read
            self.before_running(result)
            arrays[result] = y = result.run(inputs)
            del inputs
            self.after_running(result, y)
        return arrays

    def before_running(self, result: Recomputable) -> None:
        """Prepare for the recomputation of a result."""

    def after_running(self, result: Recomputable, y: Any) -> None:
        """Hold a recomputed result if operations have saved it."""
        self.recomputed += 1
        if result.readers:
            result.hold(y)


def _checked_constants(node: Node, values: Sequence[Any]) -> Any:
    """Take checksums of large plain arrays among the inputs, as the tape does."""
    checksums = {
        i: constants.checksum_of(values[i])
        for i in node.recipe.constants
        if type(values[i]) is np.ndarray and values[i].nbytes > constants.COPIED
    }
    if not checksums:
        return None
    alone = tuple(value if i in checksums else None for i, value in enumerate(values))
    return constants.CheckedConstants(node.operation.name, alone, checksums)
