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
from optlab.autograd.pieces import Piece, Pieces, References
from optlab.autograd.recomputation_costs import Group, absent_around, cost_of
from optlab.autograd.tape import Node
from optlab.backend.arrays import owner_of
from optlab.backend.callers import stack_level_outside
from optlab.backend.sizes import in_words

#: Of so many pieces of memory the cheapest is dropped; to look at all takes long where arrays are
#: small and many (the authors of the method sample, too).
LOOKED_AT = 64

#: Memory that turns out to be held elsewhere is asked for again at so many of the next operations;
#: after that, twice as rarely each time. Where nothing else is left, so many are asked at once.
ASKED = 8
ASKED_AT_ONCE = 16


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

    __slots__ = ("bytes", "owner", "pieces", "refused")

    def __init__(self, owner: weakref.ref[Any], size: int) -> None:
        self.owner = owner
        self.bytes = size
        self.refused = 0
        self.pieces: list[Piece] = []


class Budget(Pieces):
    """Holds what backward will read, up to a number of bytes.

    Parameters
    ----------
    limit : int
        Bytes for all that operations give, and what they and their rules need while they run.
    selected : callable, optional
        See `Pieces`.

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
        self.said = False
        self.stores: dict[int, Store] = {}
        #: Those that may be dropped, those that others hold, and when to ask for these again.
        self.candidates: dict[int, Store] = {}
        self.held: dict[int, Store] = {}
        self.times: list[tuple[int, int]] = []

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

    def made(self, piece: Piece, y: Any, saved: References, values: Sequence[Any]) -> None:
        """Count what was made, hold what backward will read, and make room for it."""
        self.clock += 1
        piece.used = self.clock
        arity = len(piece.sources)
        inputs = values[:arity]
        piece.cost = cost_of(inputs, y)
        for source in piece.sources:
            if source.piece is not None:
                source.piece.used = self.clock
                source.piece.consumers.append(weakref.ref(piece))
        self._count(piece, y, inputs)
        super().made(piece, y, saved, values)
        for source in saved.sources:
            if source.piece is not None and source.piece is not piece:
                self._may_be_dropped(source.piece)
        between = [v for s, v in zip(piece.sources, inputs, strict=True) if s.piece is not None]
        working = piece.bytes + sum(_bytes(value) for value in between)
        self.reserve = max(self.reserve, 2 * working)
        held = sum(s.piece.bytes for s in saved.sources if s.piece is not None)
        self._came_to(held + 2 * working)
        self.make_room()

    def _count(self, piece: Piece, y: Any, inputs: Sequence[Any]) -> None:
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
            if piece not in store.pieces:
                store.pieces.append(piece)
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

    def _may_be_dropped(self, piece: Piece) -> None:
        """Take note of memory that backward will read."""
        array = piece.array
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
        while self.times and self.times[0][0] <= self.clock:
            key = heappop(self.times)[1]
            store = self.held.pop(key, None)
            if store is not None:
                self.candidates[key] = store
        refused = 0
        while self.live + more + self.reserve > self.limit:
            cheapest = self._cheapest()
            if cheapest is not None:
                store = self.candidates.pop(cheapest)
                if not self._drop(store):
                    self._held_elsewhere(cheapest, store)
                continue
            if refused == min(ASKED_AT_ONCE, len(self.held)):
                self._came_to(self.live + more + self.reserve)
                return
            key = next(iter(self.held))  # asked the longest ago
            store = self.held.pop(key)
            if not self._drop(store):
                self.held[key] = store
                refused += 1

    def _held_elsewhere(self, key: int, store: Store) -> None:
        """Ask for memory again later."""
        store.refused += 1
        wait = 1 << max(0, store.refused - ASKED)
        self.held[key] = store
        heappush(self.times, (self.clock + wait, key))

    def _cheapest(self) -> int | None:
        """Give the key of the store to drop, the best of a sample of about `LOOKED_AT`."""
        step = 1 + len(self.candidates) // LOOKED_AT
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

    def _came_to(self, size: int) -> None:
        """Note what would have been needed; say at once where that is more than there is."""
        self.smallest = max(self.smallest, size)
        if size > self.limit and not self.said:
            self.said = True
            warnings.warn(
                f"a budget of {_exactly(self.limit)} cannot be kept to: it came to "
                f"{_exactly(size)} here, and may come to more. The block goes on above its budget; "
                "when it is left, a MemoryBudgetError says what was needed.",
                UserWarning,
                stacklevel=stack_level_outside("optlab", "numpy"),
            )

    def _score(self, store: Store) -> float:
        """Give cost over bytes and time since the last use; infinity for what cannot be dropped."""
        cost, used, groups, holds = 0.0, 0, set(), False
        for piece in store.pieces:
            if piece.kept:
                return math.inf
            if piece.array is None:
                continue
            holds = True
            cost += piece.cost
            used = max(used, piece.used)
            below, beside = absent_around(piece)
            cost += sum(one.cost for one in below)
            groups |= beside
        if not holds:
            return math.inf
        cost += sum(group.cost for group in groups)
        return cost / (store.bytes * (self.clock - used + 1))

    def _drop(self, store: Store) -> bool:
        """Drop the arrays of a store; say whether that has freed its memory."""
        before = []
        for piece in store.pieces:
            if piece.array is not None:
                array = piece.array
                before.append((piece, _weak(array)))
                del array
                piece.drop()
        if store.owner() is not None:  # the user holds it: nothing was gained
            for piece, weak in before:
                arrays = _alive(weak)
                if arrays is not None:
                    piece.hold(arrays)
            return False
        for piece, _ in before:
            self.dropped += 1
            # From now on all that it is made of, as far as it is not there, is to run with it.
            below, beside = absent_around(piece)
            group = piece.group = Group(piece.cost)
            for one in below:
                one.group = group
                group.cost += one.cost
            for other in beside:
                group.join(other)
        return True

    def check_met(self) -> None:
        """Make sure that the budget was large enough so far."""
        if self.smallest > self.limit:
            raise MemoryBudgetError(
                f"a budget of {_exactly(self.limit)} cannot be kept to: the smallest that can, if "
                f"it drops what this run dropped, is {_exactly(self.smallest)}. Under another "
                "budget other arrays go first, and it may take a few per cent more. "
                f"{in_words(self.reserve)} of it is room for the operation that runs and for its "
                "derivative, twice what goes in and out of the largest. (A plain run has no such "
                "room set aside, and may need less than a budget.)",
                self.smallest,
            )

    # Bringing back ------------------------------------------------------------------------------

    def before_running(self, piece: Piece) -> None:
        """Make room for what is about to be made again."""
        self.make_room(piece.bytes)

    def ran(self, piece: Piece, y: Any) -> None:
        """Count what was made again, and hold it where backward will read it."""
        self.clock += 1
        piece.used = self.clock
        if piece.group is not None:
            piece.group.root().cost -= piece.cost
            piece.group = None
        self._count(piece, y, ())
        super().ran(piece, y)

    def give(self, sources: Any) -> tuple[Any, ...]:
        """Give values, running again what has been dropped, within the budget."""
        given = super().give(sources)
        self.clock += 1
        for source in sources:
            if source.piece is not None:
                source.piece.used = self.clock
        self.make_room()
        return given


def _exactly(size: int) -> str:
    return f"{in_words(size)} ({size:,} bytes)" if size >= 1024 else f"{size} bytes"


def _weak(array: Any) -> Any:
    if isinstance(array, tuple):
        return [_weak(part) for part in array]
    try:
        return weakref.ref(array)
    except TypeError:  # a single number, as one of several outputs
        return lambda: array


def _alive(weak: Any) -> Any:
    if isinstance(weak, list):
        parts = tuple(one() for one in weak)
        return None if any(part is None for part in parts) else parts
    return weak()


def _bytes(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(part.nbytes for part in value)
    return int(getattr(value, "nbytes", 0))
