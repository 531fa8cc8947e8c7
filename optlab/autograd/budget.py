r"""A byte budget for what waits for backward: above it, the cheapest to bring back goes first.

Dynamic tensor rematerialisation (Kirisame et al. 2021, arXiv 2006.09616) watches an eager program
and drops, whenever there is no room, the array with the least

.. math:: \frac{c}{m \cdot s}

of m bytes, last used s operations ago, that takes c to make again: its own operation, and those of
what it is made of, where that is not there, and of dropped neighbours. (Their h_DTR^eq: classes of
dropped neighbours are kept by union and find, and an array that comes back takes its own cost out
of its class.)

What operations cost is counted in `recomputation_costs`, not timed.
"""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from optlab.autograd.kept_memory import arrays_in
from optlab.autograd.pieces import Recomputable, RecomputePolicy, References
from optlab.autograd.recomputation_costs import EvictedSet, cost_of, evicted_neighborhood
from optlab.autograd.tape import Node
from optlab.backend.arrays import owner_of
from optlab.backend.callers import stack_level_outside
from optlab.backend.sizes import in_words

#: Of so many pieces of memory the cheapest is dropped; to look at all takes long where arrays are
#: small and many (the authors of the method sample, too).
SAMPLE = 64

#: Memory that turns out to be held elsewhere is asked for again at so many of the next operations;
#: after that, twice as rarely each time. Where nothing else is left, so many are asked at once.
RETRIES = 8
RETRIES_AT_ONCE = 16


class MemoryBudgetError(MemoryError):
    """A byte budget could not be kept to; the message says what would have done.

    Attributes
    ----------
    smallest : int
        The bytes that the run came to: the smallest budget that can, if the same arrays are
        dropped. Under another budget others are, and it may come to a few per cent more: then the
        next error says so.

    Examples
    --------
    >>> MemoryBudgetError("too small", 1 << 20).smallest
    1048576
    """

    def __init__(self, message: str, smallest: int) -> None:
        super().__init__(message)
        self.smallest = smallest


class Store:
    """A piece of memory, the pieces whose arrays lie in it, and how often it was held elsewhere."""

    __slots__ = ("bytes", "owner", "refused", "results")

    def __init__(self, owner: weakref.ref[Any], size: int) -> None:
        self.owner = owner
        self.bytes = size
        self.refused = 0
        self.results: list[Recomputable] = []


class Budget(RecomputePolicy):
    """Holds what backward will read, up to a number of bytes.

    Parameters
    ----------
    limit : int
        Bytes for all that operations give, and what they and their rules need while they run.
    selected : callable, optional
        See `RecomputePolicy`.

    Attributes
    ----------
    live : int
        Bytes of the outputs of operations that are alive, whoever holds them.
    reserve : int
        Room that is kept for a running operation or derivative rule: twice its inputs and outputs,
        the largest so far, parameters not counted.
    smallest : int
        What has been needed so far, at the most.
    dropped, recomputed : int
        How often an array was dropped, and an operation ran again.
    """

    def __init__(self, limit: int, selected: Callable[[Node, Any], bool] | None = None) -> None:
        super().__init__(selected)
        self.limit = limit
        self.live = self.reserve = self.smallest = self.dropped = 0
        self.clock = 0
        self.warned = False
        self.stores: dict[int, Store] = {}
        #: Those that may be dropped, those that others hold, and when to ask for these again.
        self.candidates: dict[int, Store] = {}
        self.held: dict[int, Store] = {}
        self.retries: list[tuple[int, int]] = []

    def keep(self, node: Node, saved: Any, forward: Any, values: Sequence[Any]) -> Any:
        """Give references in place of saved values; count also what cannot be dropped."""
        kept = super().keep(node, saved, forward, values)
        if kept is saved and len(values):
            arity = len(node.edges)
            inputs = [x for x in values[:arity] if hasattr(x, "nbytes")]
            outside = [owner_of(x) for x in inputs]
            y = values[arity]
            # What else a `Function` of the user saved; `recompute` keeps what it was given alone.
            own = list(arrays_in(saved)) if inputs else []
            for array in (*(y if isinstance(y, tuple) else (y,)), *own):
                owner: Any = owner_of(array)
                known = id(owner) in self.stores or any(owner is one for one in outside)
                if not known and getattr(owner, "ndim", 0) > 0:
                    self._new_store(owner)
            self.make_room()
        return kept

    # What is alive ------------------------------------------------------------------------------

    def after_recording(
        self, result: Recomputable, y: Any, saved: References, values: Sequence[Any]
    ) -> None:
        """Count what was made, hold what backward will read, and make room for it."""
        self.clock += 1
        result.used = self.clock
        arity = len(result.sources)
        inputs = values[:arity]
        result.cost = cost_of(inputs, y)
        for source in result.sources:
            if source.result is not None:
                source.result.used = self.clock
                source.result.consumers.append(weakref.ref(result))
        self._count(result, y, inputs)
        super().after_recording(result, y, saved, values)
        for source in saved.sources:
            if source.result is not None and source.result is not result:
                self._offer_memory_of(source.result)
        between = [v for s, v in zip(result.sources, inputs, strict=True) if s.result is not None]
        working = result.bytes + sum(_size_of(value) for value in between)
        self.reserve = max(self.reserve, 2 * working)
        held = sum(s.result.bytes for s in saved.sources if s.result is not None)
        self._note_need(held + 2 * working)
        self.make_room()

    def _count(self, result: Recomputable, y: Any, inputs: Sequence[Any]) -> None:
        """Take note of the memory of an output, unless it is that of an input from outside."""
        for array in y if isinstance(y, tuple) else (y,):
            owner = owner_of(array)
            store = self.stores.get(id(owner))
            if store is None:
                if owner is not array and any(owner_of(x) is owner for x in inputs):
                    continue
                if not hasattr(owner, "nbytes") or getattr(owner, "ndim", 0) == 0:
                    continue
                store = self._new_store(owner)
            if result not in store.results:
                store.results.append(result)
            self._offer(id(owner), store)

    def _new_store(self, owner: Any) -> Store:
        key, size = id(owner), int(owner.nbytes)

        def gone(_: Any) -> None:
            if self.stores.pop(key, None) is not None:
                self.live -= size
                self.candidates.pop(key, None)
                self.held.pop(key, None)

        store = self.stores[key] = Store(weakref.ref(owner, gone), size)
        self.live += size
        return store

    # Making room --------------------------------------------------------------------------------

    def _offer_memory_of(self, result: Recomputable) -> None:
        """Take note of memory that backward will read."""
        array = result.array
        for one in array if isinstance(array, tuple) else (array,):
            key = id(owner_of(one))
            store = self.stores.get(key)
            if store is not None:
                self._offer(key, store)

    def _offer(self, key: int, store: Store) -> None:
        if key not in self.candidates and key not in self.held:
            self.candidates[key] = store

    def make_room(self, more: int = 0) -> None:
        """Drop arrays until what is alive, and `more`, leave the reserve free."""
        if self.live + more + self.reserve <= self.limit:
            return
        while self.retries and self.retries[0][0] <= self.clock:
            key = heappop(self.retries)[1]
            store = self.held.pop(key, None)
            if store is not None:
                self.candidates[key] = store
        refused = 0
        while self.live + more + self.reserve > self.limit:
            cheapest = self._cheapest()
            if cheapest is not None:
                store = self.candidates.pop(cheapest)
                if not self._drop(store):
                    self._retry_later(cheapest, store)
                continue
            if refused == min(RETRIES_AT_ONCE, len(self.held)):
                self._note_need(self.live + more + self.reserve)
                return
            key = next(iter(self.held))  # asked the longest ago
            store = self.held.pop(key)
            if not self._drop(store):
                self.held[key] = store
                refused += 1

    def _retry_later(self, key: int, store: Store) -> None:
        """Ask for memory again later."""
        store.refused += 1
        wait = 1 << max(0, store.refused - RETRIES)
        self.held[key] = store
        heappush(self.retries, (self.clock + wait, key))

    def _cheapest(self) -> int | None:
        """Give the key of the store to drop, the best of a sample of about `SAMPLE`."""
        step = 1 + len(self.candidates) // SAMPLE
        keys = list(self.candidates)
        for offset in range(step):  # where a sample has none that can be dropped, another is taken
            best, least = None, math.inf
            for key in keys[(self.clock + offset) % step :: step]:
                score = self._score(self.candidates[key])
                if score < least:
                    best, least = key, score
                elif score == math.inf:  # until backward wants it again
                    del self.candidates[key]
            if best is not None:
                return best
        return None

    def _note_need(self, size: int) -> None:
        """Note what would have been needed; say at once where that is more than there is."""
        self.smallest = max(self.smallest, size)
        if size > self.limit and not self.warned:
            self.warned = True
            warnings.warn(
                f"a budget of {_in_bytes(self.limit)} cannot be kept to: it came to "
                f"{_in_bytes(size)} here, and may come to more. The block goes on above its budget; "
                "when it is left, a MemoryBudgetError says what was needed.",
                UserWarning,
                stacklevel=stack_level_outside("optlab", "numpy"),
            )

    def _score(self, store: Store) -> float:
        """Give cost over bytes and time since the last use; infinity for what cannot be dropped."""
        cost, used, neighbors, holds = 0.0, 0, set(), False
        for result in store.results:
            if result.kept:
                return math.inf
            if result.array is None:
                continue
            holds = True
            cost += result.cost
            used = max(used, result.used)
            below, beside = evicted_neighborhood(result)
            cost += sum(one.cost for one in below)
            neighbors |= beside
        if not holds:
            return math.inf
        cost += sum(evicted.cost for evicted in neighbors)
        return cost / (store.bytes * (self.clock - used + 1))

    def _drop(self, store: Store) -> bool:
        """Drop the arrays of a store; say whether that has freed its memory."""
        before = []
        for result in store.results:
            if result.array is not None:
                array = result.array
                before.append((result, _weak_references(array)))
                del array
                result.drop()
        if store.owner() is not None:  # the user holds it: nothing was gained
            for result, weak in before:
                arrays = _dereferenced(weak)
                if arrays is not None:
                    result.hold(arrays)
            return False
        for result, _ in before:
            self.dropped += 1
            # From now on all that it is made of, as far as it is not there, is to run with it.
            below, beside = evicted_neighborhood(result)
            evicted = result.evicted = EvictedSet(result.cost)
            for one in below:
                one.evicted = evicted
                evicted.cost += one.cost
            for other in beside:
                evicted.join(other)
        return True

    def check_met(self) -> None:
        """Make sure that the budget was large enough so far."""
        if self.smallest > self.limit:
            raise MemoryBudgetError(
                f"a budget of {_in_bytes(self.limit)} cannot be kept to: the smallest that can, if "
                f"it drops what this run dropped, is {_in_bytes(self.smallest)}. Under another "
                "budget other arrays go first, and it may take a few per cent more. "
                f"{in_words(self.reserve)} of it is room for the operation that runs and for its "
                "derivative, twice what goes in and out of the largest. (A plain run has no such "
                "room set aside, and may need less than a budget.)",
                self.smallest,
            )

    # Bringing back ------------------------------------------------------------------------------

    def before_running(self, result: Recomputable) -> None:
        """Make room for what is about to be made again."""
        self.make_room(result.bytes)

    def after_running(self, result: Recomputable, y: Any) -> None:
        """Count what was made again, and hold it where backward will read it."""
        self.clock += 1
        result.used = self.clock
        if result.evicted is not None:
            result.evicted.root().cost -= result.cost
            result.evicted = None
        self._count(result, y, ())
        super().after_running(result, y)

    def values_of(self, sources: Any) -> tuple[Any, ...]:
        """Give values, running again what has been dropped, within the budget."""
        given = super().values_of(sources)
        self.clock += 1
        for source in sources:
            if source.result is not None:
                source.result.used = self.clock
        self.make_room()
        return given


def _in_bytes(size: int) -> str:
    return f"{in_words(size)} ({size:,} bytes)" if size >= 1024 else f"{size} bytes"


def _weak_references(array: Any) -> Any:
    if isinstance(array, tuple):
        return [_weak_references(part) for part in array]
    try:
        return weakref.ref(array)
    except TypeError:  # a single number, as one of several outputs
        return lambda: array


def _dereferenced(weak: Any) -> Any:
    if isinstance(weak, list):
        parts = tuple(one() for one in weak)
        return None if any(part is None for part in parts) else parts
    return weak()


def _size_of(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(part.nbytes for part in value)
    return int(getattr(value, "nbytes", 0))
