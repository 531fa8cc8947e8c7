"""Non-reentrant checkpointing: deferred saved values of operations that stay on the tape.

The first operation that backward reaches triggers a replay, which serves all the others.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from optlab.autograd.checkpoint.fingerprints import Fingerprint
from optlab.autograd.checkpoint.replay import INSIDE, CompareReplay, DropSaved, ReplayedCall
from optlab.autograd.tape import saved_tensors, versions
from optlab.autograd.tape.nodes import Node


class DeferredSaved:
    """Saved values of an operation, available after a replay of its function."""

    __slots__ = ("node", "number", "places", "replay")

    def __init__(self, replay: Replay, number: int, node: Node, places: Any) -> None:
        self.replay = replay
        self.number = number
        self.node = weakref.ref(node)
        self.places = places

    @property
    def call(self) -> ReplayedCall:
        """The call that is replayed."""
        return self.replay.call

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments of the call, which all its operations keep alive."""
        arrays = self.call.arrays
        return () if isinstance(arrays, _DeferredArguments) else arrays

    def restored(self) -> Any:
        """Return the values that the operation saves in the replay."""
        node = self.node()
        assert node is not None  # its own rules ask for them
        saved, node.static = self.replay.saved_by(self.number)
        if self.places is not None:
            saved[0].places = self.places
            return saved
        # The memory of leaves does not come from the replay.
        orders = [0 if edge is None else edge.order for edge in (*node.edges, node)]
        for source, value in zip(node.recipe.sources, saved, strict=False):
            if source < len(orders) and orders[source] and hasattr(value, "dtype"):
                versions.attribute_to(value, orders[source])
        return saved


class _DeferredArguments:
    """Arguments of a nested call, available after a replay of the enclosing one."""

    def __init__(self, replay: Replay, number: int) -> None:
        self.replay = replay
        self.number = number

    def restored(self) -> tuple[Any, int]:
        """Return the arrays of the replay, and the time of the call in it."""
        _, (arrays, made_at) = self.replay.recorded_as(self.number)
        return arrays, made_at


#: Entry of the log for the arguments of a nested call.
_ARGUMENTS = Fingerprint("a call of recompute", (), "", 0)


class DeferSaved(DropSaved):
    """Save policy of a first run whose operations stay on the tape: defers their saved values."""

    def __init__(self, call: ReplayedCall) -> None:
        super().__init__(call)
        self.replay = Replay(call)

    def level(self, opened: int) -> int:
        """Record the level of a `vmap`."""
        self.replay.levels.append(opened)
        return opened

    def hold_arguments(self, call: ReplayedCall) -> _DeferredArguments:
        """Defer the arguments of a nested call."""
        self.call.log.append(_ARGUMENTS)
        return _DeferredArguments(self.replay, len(self.call.log) - 1)

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Defer the saved values; only a chain of layers keeps its own, which its nodes share."""
        self.record(node, values)
        places = None
        if node.recipe.runs_backward:
            if not isinstance(saved[0], ReplayedCall):
                return saved
            # The nested call starts from its current nodes, not from those of the enclosing replay.
            places = saved[0].places
        return DeferredSaved(self.replay, len(self.call.log) - 1, node, places)


class _PerThread(threading.local):
    """Nodes of a replay by number; each thread in backward has a replay of its own."""

    def __init__(self) -> None:
        self.nodes: dict[int, tuple[Any, Any]] = {}


class Replay(CompareReplay):
    """Save policy of the replay that the first operation triggers and that serves all others."""

    def __init__(self, call: ReplayedCall) -> None:
        super().__init__(call)
        self.local = _PerThread()
        self.lock = threading.RLock()
        #: Levels of the `vmap` calls of the first run, and how many of them the replay has opened.
        self.levels: list[int] = []
        self.opened = 0

    def level(self, opened: int) -> int:
        """Return the level that a `vmap` had in the first run."""
        self.opened += 1
        return self.levels[self.opened - 1] if self.opened <= len(self.levels) else opened

    def hold_arguments(self, call: ReplayedCall) -> tuple[Any, ...]:
        """Record the arguments of a nested call for that of the first run."""
        self.call.compare(self.count, _ARGUMENTS)
        self.local.nodes[self.count] = None, (call.arrays, call.made_at)
        self.count += 1
        return call.arrays  # type: ignore[no-any-return]

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Compare the operation, and record its saved values for that of the first run."""
        stored = super().keep(node, saved, forward, values)
        if not node.recipe.runs_backward or isinstance(saved[0], ReplayedCall):
            self.local.nodes[self.count - 1] = node, stored
        return stored

    def saved_by(self, number: int) -> tuple[Any, dict[str, Any]]:
        """Return the saved values and static arguments (a random key may be another) by number."""
        node, stored = self.recorded_as(number)
        node.check_unchanged()
        node.saved = None  # the backward pass frees each operation when it is done
        return stored if stored.__class__ is tuple else stored.restored(), node.static

    def recorded_as(self, number: int) -> tuple[Any, Any]:
        """Return and remove the record of a number; replay the function first if it is missing."""
        if not self.call.ended:
            raise RuntimeError(INSIDE)
        nodes = self.local.nodes
        if number not in nodes:
            arrays, made_at = self.call.arrays, None
            if isinstance(arrays, _DeferredArguments):
                arrays, made_at = arrays.restored()
            nodes.clear()
            with self.lock:
                self.count, self.opened, self.outer = 0, 0, saved_tensors.innermost()
                self.started = next(versions.clock)
                try:
                    self.call.replay(arrays, self, made_at)
                except BaseException:
                    nodes.clear()  # an incomplete replay must not be used
                    raise
        return nodes.pop(number)
