r"""Byte budget for saved values: above it, those that are cheapest to recompute are dropped first.

Dynamic tensor rematerialization (Kirisame et al. 2021, arXiv 2006.09616) observes an eager program
and drops, whenever memory runs out, the array with the least

.. math:: \frac{c}{m \cdot s}

of m bytes, last used s operations ago, with the cost c of its own operation, of missing ancestors
and of dropped neighbors. (Their h_DTR^eq: sets of dropped neighbors are kept by union-find, and a
recomputed array subtracts its own cost from its set.)

Costs are counted in `costs`, not timed.
"""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from optlab.autograd.graph.saved_memory import arrays_in
from optlab.autograd.remat.costs import EvictedSet, cost_of, evicted_neighborhood
from optlab.autograd.remat.errors import MemoryBudgetError
from optlab.autograd.remat.tensors import Recomputable, RecomputePolicy, References
from optlab.autograd.tape.nodes import Node
from optlab.backend.arrays import owner_of
from optlab.backend.memory.sizes import in_words
from optlab.backend.user_frames import stack_level_outside

#: Number of storages from which the cheapest is dropped; comparing all is slow if there are many
#: small arrays (the authors of the method sample, too).
SAMPLE = 64

#: A storage that turns out to be held elsewhere is tried again at so many of the next operations,
#: then at doubling intervals. If no other is left, so many are tried at once.
RETRIES = 8
RETRIES_AT_ONCE = 16


class Storage:
    """Memory of an array, the results located in it, and how often it was held elsewhere."""

    __slots__ = ("bytes", "owner", "refused", "results")

    def __init__(self, owner: weakref.ref[Any], size: int) -> None:
        self.owner = owner
        self.bytes = size
        self.refused = 0
        self.results: list[Recomputable] = []


class Budget(RecomputePolicy):
    """Recompute policy that holds saved results up to a number of bytes.

    Parameters
    ----------
    limit : int
        Bytes for all outputs of operations, and for the working memory of operations and rules.
    selected : callable, optional
        See `RecomputePolicy`.

    Attributes
    ----------
    live : int
        Bytes of all outputs of operations that are alive, wherever they are held.
    reserve : int
        Bytes reserved for a running operation or derivative rule: twice its inputs and outputs,
        the largest so far, without parameters.
    smallest : int
        Largest need so far.
    dropped, recomputed : int
        Number of dropped arrays, and of operations that ran again.
    """

    def __init__(self, limit: int, selected: Callable[[Node, Any], bool] | None = None) -> None:
        super().__init__(selected)
        self.limit = limit
        self.live = self.reserve = self.smallest = self.dropped = 0
        self.clock = 0
        self.warned = False
        self.storages: dict[int, Storage] = {}
        #: Storages that may be dropped, those held elsewhere, and when to try these again.
        self.candidates: dict[int, Storage] = {}
        self.held: dict[int, Storage] = {}
        self.retries: list[tuple[int, int]] = []

    def keep(self, node: Node, saved: Any, forward: Any, values: Sequence[Any]) -> Any:
        """Return references in place of saved values; count also what cannot be dropped."""
        kept = super().keep(node, saved, forward, values)
        if kept is saved and len(values):
            arity = len(node.edges)
            inputs = [x for x in values[:arity] if hasattr(x, "nbytes")]
            outside = [owner_of(x) for x in inputs]
            y = values[arity]
            # Further values that a `Function` saved; `recompute` keeps only its arguments.
            own = list(arrays_in(saved)) if inputs else []
            for array in (*(y if isinstance(y, tuple) else (y,)), *own):
                owner: Any = owner_of(array)
                known = id(owner) in self.storages or any(owner is one for one in outside)
                if not known and getattr(owner, "ndim", 0) > 0:
                    self._new_storage(owner)
            self.make_room()
        return kept

    # Live memory --------------------------------------------------------------------------------

    def after_recording(
        self, result: Recomputable, y: Any, saved: References, values: Sequence[Any]
    ) -> None:
        """Count an output, hold the results that backward will read, and make room for them."""
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
        """Count the memory of an output, unless it is that of an input from outside."""
        for array in y if isinstance(y, tuple) else (y,):
            owner = owner_of(array)
            storage = self.storages.get(id(owner))
            if storage is None:
                if owner is not array and any(owner_of(x) is owner for x in inputs):
                    continue
                if not hasattr(owner, "nbytes") or getattr(owner, "ndim", 0) == 0:
                    continue
                storage = self._new_storage(owner)
            if result not in storage.results:
                storage.results.append(result)
            self._offer(id(owner), storage)

    def _new_storage(self, owner: Any) -> Storage:
        key, size = id(owner), int(owner.nbytes)

        def gone(_: Any) -> None:
            if self.storages.pop(key, None) is not None:
                self.live -= size
                self.candidates.pop(key, None)
                self.held.pop(key, None)

        storage = self.storages[key] = Storage(weakref.ref(owner, gone), size)
        self.live += size
        return storage

    # Making room --------------------------------------------------------------------------------

    def _offer_memory_of(self, result: Recomputable) -> None:
        """Make the memory of a result that backward will read a candidate for dropping."""
        array = result.array
        for one in array if isinstance(array, tuple) else (array,):
            key = id(owner_of(one))
            storage = self.storages.get(key)
            if storage is not None:
                self._offer(key, storage)

    def _offer(self, key: int, storage: Storage) -> None:
        if key not in self.candidates and key not in self.held:
            self.candidates[key] = storage

    def make_room(self, more: int = 0) -> None:
        """Drop arrays until live bytes and `more` leave the reserve free."""
        if self.live + more + self.reserve <= self.limit:
            return
        while self.retries and self.retries[0][0] <= self.clock:
            key = heappop(self.retries)[1]
            storage = self.held.pop(key, None)
            if storage is not None:
                self.candidates[key] = storage
        refused = 0
        while self.live + more + self.reserve > self.limit:
            cheapest = self._cheapest()
            if cheapest is not None:
                storage = self.candidates.pop(cheapest)
                if not self._drop(storage):
                    self._retry_later(cheapest, storage)
                continue
            if refused == min(RETRIES_AT_ONCE, len(self.held)):
                self._note_need(self.live + more + self.reserve)
                return
            key = next(iter(self.held))  # the one tried the longest ago
            storage = self.held.pop(key)
            if not self._drop(storage):
                self.held[key] = storage
                refused += 1

    def _retry_later(self, key: int, storage: Storage) -> None:
        """Schedule another attempt to drop a storage that is held elsewhere."""
        storage.refused += 1
        wait = 1 << max(0, storage.refused - RETRIES)
        self.held[key] = storage
        heappush(self.retries, (self.clock + wait, key))

    def _cheapest(self) -> int | None:
        """Return the key of the storage to drop, the best of a sample of about `SAMPLE`."""
        step = 1 + len(self.candidates) // SAMPLE
        keys = list(self.candidates)
        for offset in range(step):  # another sample if none of this one can be dropped
            best, least = None, math.inf
            for key in keys[(self.clock + offset) % step :: step]:
                score = self._score(self.candidates[key])
                if score < least:
                    best, least = key, score
                elif score == math.inf:  # until backward reads it again
                    del self.candidates[key]
            if best is not None:
                return best
        return None

    def _note_need(self, size: int) -> None:
        """Record a need for memory; warn the first time that it exceeds the budget."""
        self.smallest = max(self.smallest, size)
        if size > self.limit and not self.warned:
            self.warned = True
            warnings.warn(
                f"a budget of {_in_bytes(self.limit)} cannot be kept to: it came to "
                f"{_in_bytes(size)} here, and may come to more. The block goes on above its "
                "budget; when it is left, a MemoryBudgetError says what was needed.",
                UserWarning,
                stacklevel=stack_level_outside("optlab", "numpy"),
            )

    def _score(self, storage: Storage) -> float:
        """Return cost over (bytes times time since the last use), or infinity if not droppable."""
        cost, used, neighbors, holds = 0.0, 0, set(), False
        for result in storage.results:
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
        return cost / (storage.bytes * (self.clock - used + 1))

    def _drop(self, storage: Storage) -> bool:
        """Drop the arrays of a storage; return whether that has freed its memory."""
        before = []
        for result in storage.results:
            if result.array is not None:
                array = result.array
                before.append((result, _weak_references(array)))
                del array
                result.drop()
        if storage.owner() is not None:  # held elsewhere: dropping gains nothing
            for result, weak in before:
                arrays = _dereferenced(weak)
                if arrays is not None:
                    result.hold(arrays)
            return False
        for result, _ in before:
            self.dropped += 1
            # From now on its missing ancestors have to run with it.
            below, beside = evicted_neighborhood(result)
            evicted = result.evicted = EvictedSet(result.cost)
            for one in below:
                one.evicted = evicted
                evicted.cost += one.cost
            for other in beside:
                evicted.join(other)
        return True

    def check_met(self) -> None:
        """Raise MemoryBudgetError if the budget was exceeded."""
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

    # Recomputation ------------------------------------------------------------------------------

    def before_running(self, result: Recomputable) -> None:
        """Make room for a result that is about to be recomputed."""
        self.make_room(result.bytes)

    def after_running(self, result: Recomputable, y: Any) -> None:
        """Count a recomputed result, and hold it if backward will read it."""
        self.clock += 1
        result.used = self.clock
        if result.evicted is not None:
            result.evicted.root().cost -= result.cost
            result.evicted = None
        self._count(result, y, ())
        super().after_running(result, y)

    def values_of(self, sources: Any) -> tuple[Any, ...]:
        """Return values, recomputing dropped ones within the budget."""
        given = super().values_of(sources)
        self.clock += 1
        for source in sources:
            if source.result is not None:
                source.result.used = self.clock
        self.make_room()
        return given


def _in_bytes(size: int) -> str:
    return f"{in_words(size)} ({size:,} bytes)" if size >= 1024 else f"{size:,} bytes"


def _weak_references(array: Any) -> Any:
    if isinstance(array, tuple):
        return [_weak_references(part) for part in array]
    try:
        return weakref.ref(array)
    except TypeError:  # a NumPy scalar among several outputs
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
