"""The memory ledger: which arrays are alive, why, and what created them, event by event.

Memory is counted by owner: an array and all its views count once, in full. Weak references report
when an owner is freed, so tracking extends no lifetime.

This module knows arrays, not Tensors: `optlab.autograd.graph.memory_tracker` assigns the roles.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from optlab.backend.arrays import owner_of
from optlab.backend.memory.high_water import HighWater, bytes_of

#: Why an array is alive, in the order of the tables.
ROLES = ("parameter", "gradient", "slot", "data", "saved", "recomputed", "temporary")

#: Precedence of roles; a role that is not listed yields to all others.
_RANK = {"gradient": 1, "slot": 2, "parameter": 3}

#: A smaller rise between two events may be Python's own objects.
NOISE = 4096


@dataclass(slots=True, eq=False)
class Entry:
    """One block of memory.

    Attributes
    ----------
    name : str
        The operation that created it, or the name of a parameter or slot.
    phase : str
        "forward", "backward", "step", or empty if it was there already.
    path : str
        The layer that ran.
    shape, dtype
        Of the array when it was first met.
    nbytes : int
    role : str
        Its role unless an operation saved it.
    born, died : int or None
        The first event at which it was alive, and the first at which it no longer was (None while
        it is alive). What is older than the ledger was born at event 0.
    was_there : bool
        Whether it is older than the ledger.
    saved_by : int
        How many operations saved it for the backward pass.
    history : list of (int, str)
        Events and the role that it had from there on.
    """

    name: str
    phase: str
    path: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    role: str
    born: int
    was_there: bool
    key: int
    reference: Any = None
    died: int | None = None
    saved_by: int = 0
    saved_as: str = "saved"
    history: list[tuple[int, str]] = field(default_factory=list)

    @property
    def present_role(self) -> str:
        """The role that it has now."""
        stays = self.role in _RANK or (self.was_there and self.role == "data")
        return self.saved_as if self.saved_by and not stays else self.role

    def role_at(self, event: int) -> str:
        """Return the role that it had at an event."""
        found = self.history[0][1]
        for since, role in self.history:
            if since > event:
                break
            found = role
        return found


class Row(NamedTuple):
    """One event.

    Attributes
    ----------
    name, phase, path : str
        What happened, when, and in which layer.
    rise : int
        The highest growth of the memory of arrays, in bytes, since the previous event.
    measured : int
        What the allocators counted; 0 unless the ledger verifies.
    """

    name: str
    phase: str
    path: str
    rise: int
    measured: int


class _Reference(weakref.ref[Any]):
    """A weak reference with the entry, or the key of the node, that it belongs to."""

    __slots__ = ("about",)

    about: Any


class Ledger:
    """Which arrays are alive, event by event.

    Parameters
    ----------
    verify : bool
        Also read the bytes of all arrays from the allocators at every event, which is slow.

    Examples
    --------
    >>> import numpy as np
    >>> ledger = Ledger()
    >>> ledger.open()
    >>> with ledger.paused():
    ...     x = np.zeros(1000)
    ...     entry = ledger.hold(x, "temporary", "zeros", "forward")
    ...     ledger.event("zeros", "forward")
    >>> ledger.alive
    8000
    >>> del x
    >>> ledger.close()
    >>> entry.died, ledger.alive
    (2, 0)
    """

    def __init__(self, verify: bool = False) -> None:
        self.verify = verify
        self.entries: list[Entry] = []
        self.rows: list[Row] = []
        self.alive = 0
        #: How many operations were recomputed, and the bytes of their results.
        self.recomputed = [0, 0]
        self._present: dict[int, Entry] = {}
        self._keepers: dict[int, tuple[Any, list[Entry]]] = {}
        #: References to freed arrays and nodes, appended from any thread at any time.
        self._gone: deque[_Reference] = deque()
        self._high_water = HighWater()
        self._lock = threading.RLock()
        self._depth = 0
        self._grown = self._highest = 0
        #: Bytes of the live arrays that the allocators know, now and at the last event.
        self._known = self._known_before = 0
        #: Growth of memory beyond the known arrays, mostly Python's own objects.
        self._unexplained = 0
        self._measured_at_start = 0
        self._open = False

    # From open to close -------------------------------------------------------------------------

    def open(self) -> None:
        """Start, and write the first row."""
        self._high_water.start()
        self._open = True
        with self.paused():
            if self.verify:
                self._measured_at_start = self._high_water.of_arrays()
            self.event("start", "")

    def close(self) -> None:
        """Write the last row, and stop."""
        with self.paused():
            self.event("end", "")
            self._open = False
        self._high_water.stop()
        self._present.clear()
        self._keepers.clear()
        for entry in self.entries:
            entry.reference = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the measurement, so that the ledger's own memory is not measured."""
        with self._lock:
            self._depth += 1
            if self._depth == 1 and self._open:
                grown, highest = self._high_water.reading()
                self._highest = max(self._highest, self._grown + highest)
                self._grown += grown
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._open:
                    self._high_water.mark()

    def event(self, name: str, phase: str, path: str = "") -> None:
        """Write a row for an event: the state now."""
        self._bury()
        # Python's own objects that are still alive are not arrays.
        rise = self._highest - max(0, self._grown - (self._known - self._known_before))
        measured = self._high_water.of_arrays() - self._measured_at_start if self.verify else 0
        self.rows.append(Row(name, phase, path, max(0, rise), measured))
        self._unexplained += self._grown - (self._known - self._known_before)
        self._known_before = self._known
        self._grown = self._highest = 0

    def begin_anew(self) -> None:
        """Drop what is freed; what is alive counts as there from the start."""
        with self.paused():
            self._bury()
            self.entries = [entry for entry in self.entries if entry.died is None]
            for entry in self.entries:
                entry.born, entry.history = 0, [(0, entry.present_role)]
            self.rows = [Row("start", "", "", 0, self.rows[-1].measured)]

    # Arrays -------------------------------------------------------------------------------------

    def hold(
        self, array: Any, role: str, name: str = "", phase: str = "", path: str = ""
    ) -> Entry | None:
        """Record an array and return its entry; None if it has no memory of its own.

        A known array keeps its maker, and its role unless `role` has precedence.
        """
        owner = owner_of(array)
        entry = self._present.get(id(owner))
        if entry is not None and entry.reference() is owner:
            if _RANK.get(role, 0) > _RANK.get(entry.role, 0):
                self._change(entry, len(self.rows), role=role)
            return entry
        size = bytes_of(owner)
        if not size:
            return None
        try:
            reference = _Reference(owner, self._gone.append)
        except TypeError:
            return None  # a type of array without weak references
        self._bury()
        was_there = self._was_there(owner, size, role)
        born = 0 if was_there else len(self.rows)
        if was_there:
            phase = ""
        dtype = str(array.dtype)
        shape = array.shape if array.nbytes == size else owner.shape
        key = id(owner)
        entry = Entry(name, phase, path, shape, dtype, size, role, born, was_there, key)
        entry.history.append((born, role))
        entry.reference = reference
        reference.about = entry
        self.entries.append(entry)
        self._present[key] = entry
        self.alive += size
        if not was_there:
            self._known += size
        return entry

    def _was_there(self, owner: Any, size: int, role: str) -> bool:
        """Return whether an array that is met for the first time is older than the ledger."""
        if self._high_water.was_there(owner):
            return True
        if self._high_water.is_mine or role == "temporary":
            return False
        # It was there if memory has not grown by that much beyond what is known.
        grown = self._unexplained + self._grown - (self._known - self._known_before)
        return grown < size

    def _change(self, entry: Entry, since: int, **values: Any) -> None:
        """Change attributes of an entry from an event on."""
        before = entry.present_role
        for name, value in values.items():
            setattr(entry, name, value)
        if entry.present_role != before:
            since = max(entry.born, since)
            if entry.was_there and len(entry.history) == 1 and entry.role in _RANK:
                entry.history.clear()  # it had that role from the start
                since = 0
            entry.history.append((since, entry.present_role))

    def _bury(self) -> None:
        """Record the end of what has been freed."""
        while self._gone:
            reference = self._gone.popleft()
            about = reference.about
            if isinstance(about, Entry):
                about.died = len(self.rows)
                self.alive -= about.nbytes
                if not (about.was_there and self._high_water.is_mine):
                    self._known -= about.nbytes
                if self._present.get(about.key) is about:
                    del self._present[about.key]
            elif self._keepers.get(about, (None,))[0] is reference:
                self._release(about, len(self.rows))

    # What is saved for the backward pass --------------------------------------------------------

    def keeps(self, keeper: Any, arrays: Iterable[Entry | None], role: str = "saved") -> None:
        """Record what `keeper`, a node, now saves for the backward pass, and nothing else."""
        key = id(keeper)
        self.frees(keeper)
        held = [entry for entry in arrays if entry is not None]
        if not held:
            return
        reference = _Reference(keeper, self._gone.append)
        reference.about = key
        self._keepers[key] = (reference, held)
        for entry in held:
            saved_as = role if not entry.saved_by else entry.saved_as
            self._change(entry, len(self.rows) - 1, saved_by=entry.saved_by + 1, saved_as=saved_as)

    def frees(self, keeper: Any) -> None:
        """Record that a node saves nothing any more."""
        known = self._keepers.get(id(keeper))
        if known is not None and known[0]() is keeper:
            self._release(id(keeper), len(self.rows) - 1)

    def _release(self, key: int, since: int) -> None:
        for entry in self._keepers.pop(key, (None, []))[1]:
            self._change(entry, since, saved_by=entry.saved_by - 1)
