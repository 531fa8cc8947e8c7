"""Promises: what operations inside a recomputed function keep, where they stay on the tape.

The first of them that backward asks has the function run again, and that run serves all the others.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from optlab.autograd import saving, writes
from optlab.autograd.fingerprints import Fingerprint
from optlab.autograd.second_runs import INSIDE, CompareReplay, DropSaved, ReplayedCall
from optlab.autograd.tape import Node


class DeferredSaved:
    """What an operation saved, once its function has run again."""

    __slots__ = ("node", "number", "places", "replay")

    def __init__(self, replay: Replay, number: int, node: Node, places: Any) -> None:
        self.replay = replay
        self.number = number
        self.node = weakref.ref(node)
        self.places = places

    @property
    def call(self) -> ReplayedCall:
        """The call that will bring it back."""
        return self.replay.call

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments of the call, which all its operations keep for it."""
        arrays = self.call.arrays
        return () if isinstance(arrays, _DeferredArguments) else arrays

    def restored(self) -> Any:
        """Give what the operation saves in the second run."""
        node = self.node()
        assert node is not None  # it is the one that asks
        saved, node.static = self.replay.saved_by(self.number)
        if self.places is not None:
            saved[0].places = self.places
            return saved
        # Of leaves the memory is not of the second run.
        orders = [0 if edge is None else edge.order for edge in (*node.edges, node)]
        for source, value in zip(node.recipe.sources, saved, strict=False):
            if source < len(orders) and orders[source] and hasattr(value, "dtype"):
                writes.stands_at(value, orders[source])
        return saved


class _DeferredArguments:
    """The arguments of a call inside another one: forgotten, until that one has run again."""

    def __init__(self, replay: Replay, number: int) -> None:
        self.replay = replay
        self.number = number

    def restored(self) -> tuple[Any, int]:
        """Give the arrays of the second run, and when the call was made in it."""
        _, (arrays, made_at) = self.replay.recorded_as(self.number)
        return arrays, made_at


#: What stands for the arguments of a call inside, where operations are counted and compared.
_ARGUMENTS = Fingerprint("a call of recompute", (), "", 0)


class DeferSaved(DropSaved):
    """The keeper of a first run whose operations stay on the tape: they get promises."""

    def __init__(self, call: ReplayedCall) -> None:
        super().__init__(call)
        self.replay = Replay(call)

    def level(self, opened: int) -> int:
        """Remember the level of a `vmap`."""
        self.replay.levels.append(opened)
        return opened

    def hold_arguments(self, call: ReplayedCall) -> _DeferredArguments:
        """Forget the arguments of a call inside, too."""
        self.call.log.append(_ARGUMENTS)
        return _DeferredArguments(self.replay, len(self.call.log) - 1)

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Keep nothing but the promise, and a chain: its nodes know it, and do not let it go."""
        self.record(node, values)
        places = None
        if node.recipe.walks:
            if not isinstance(saved[0], ReplayedCall):
                return saved
            # The call inside is made from where it stands now, not from the second run around it.
            places = saved[0].places
        return DeferredSaved(self.replay, len(self.call.log) - 1, node, places)


class _PerThread(threading.local):
    """What a second run found, by its number: each thread that goes back has a run of its own."""

    def __init__(self) -> None:
        self.nodes: dict[int, tuple[Any, Any]] = {}


class Replay(CompareReplay):
    """The second run: made for the first operation that asks, it serves all the others."""

    def __init__(self, call: ReplayedCall) -> None:
        super().__init__(call)
        self.local = _PerThread()
        self.lock = threading.RLock()
        #: The levels of each `vmap` of the first run, and how many of them opened again.
        self.levels: list[int] = []
        self.opened = 0

    def level(self, opened: int) -> int:
        """Give the level that a `vmap` had in the first run."""
        self.opened += 1
        return self.levels[self.opened - 1] if self.opened <= len(self.levels) else opened

    def hold_arguments(self, call: ReplayedCall) -> tuple[Any, ...]:
        """Hold the arguments of a call inside for that of the first run."""
        self.call.compare(self.count, _ARGUMENTS)
        self.local.nodes[self.count] = None, (call.arrays, call.made_at)
        self.count += 1
        return call.arrays  # type: ignore[no-any-return]

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Compare, and hold what is stored for the operation of the first run."""
        stored = super().keep(node, saved, forward, values)
        if not node.recipe.walks or isinstance(saved[0], ReplayedCall):
            self.local.nodes[self.count - 1] = node, stored
        return stored

    def saved_by(self, number: int) -> tuple[Any, dict[str, Any]]:
        """Give what an operation saved, and its static arguments (a random key may be another)."""
        node, stored = self.recorded_as(number)
        node.check_unchanged()
        node.saved = None  # the walk frees what it is done with
        return stored if stored.__class__ is tuple else stored.restored(), node.static

    def recorded_as(self, number: int) -> tuple[Any, Any]:
        """Find what was noted as a number in the second run; once, and then it is made again."""
        if not self.call.ended:
            raise RuntimeError(INSIDE)
        nodes = self.local.nodes
        if number not in nodes:
            arrays, made_at = self.call.arrays, None
            if isinstance(arrays, _DeferredArguments):
                arrays, made_at = arrays.restored()
            nodes.clear()
            with self.lock:
                self.count, self.opened, self.outer = 0, 0, saving.innermost()
                self.started = next(writes.clock)
                try:
                    self.call.replay(arrays, self, made_at)
                except BaseException:
                    nodes.clear()  # nobody is to go on with half a run
                    raise
        return nodes.pop(number)
