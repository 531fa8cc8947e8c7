"""MemoryTrace: the bytes that were alive at every event of a step, and why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from optlab.backend.display import Rendered
from optlab.backend.extras import needed_for
from optlab.backend.memory.ledger import NOISE, ROLES, Entry, Ledger
from optlab.backend.text import encodable
from optlab.trace.memory.holding import Holding
from optlab.trace.memory.tables import as_html, as_text, one_line


class MemoryTrace(Rendered):
    """The bytes that were alive over the course of a step, and why.

    Events are numbered from 0, the start, to the end. ``bytes[i]`` is the state after event i;
    ``during[i]`` is the state at the highest point between event i - 1 and event i.

    Attributes
    ----------
    roles : tuple of str
        Why arrays are alive: "parameter", "gradient", "slot", "data", "saved" (for the backward
        pass), "recomputed" and "temporary".
    operation, phase, layer : list of str, one per event
        What happened; "forward", "backward", "step" or "recompute"; and the layer that ran, if any
        ("1: GELU"; in a loop over several models "Sequential 2, 1: GELU").
    bytes, during : array of int, shape (events, roles)
    entries : list of Entry
        Every block of memory that was met.
    recomputed_operations, recomputed_bytes : int
        How many operations were recomputed, and the bytes of their results.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones(100_000), requires_grad=True)
    >>> trace = ol.memory.report(lambda: np.sum(np.exp(w)).backward())
    >>> trace
    <MemoryTrace of 8 events: peak 2.29 MiB in backward of exp, 781.25 KiB at the start>
    >>> trace.by_role()["gradient"].tolist()
    [0, 0, 0, 0, 0, 800000, 800000, 800000]
    """

    drawn_as = "memory"
    roles: tuple[str, ...] = ROLES

    def __init__(self, ledger: Ledger, said: Callable[[str], str] = str) -> None:
        self._ledger = ledger
        self._label = said
        self._found: tuple[np.ndarray, np.ndarray] | None = None

    def call_layers(self, names: dict[str, str]) -> None:
        """Use these labels of layers from now on, by the paths of the ledger."""
        self._label = lambda path: names.get(path, path)

    # Over events --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._ledger.rows)

    @property
    def entries(self) -> list[Entry]:
        """Every block of memory that was met."""
        return self._ledger.entries

    @property
    def operation(self) -> list[str]:
        """What happened at each event."""
        return [row.name for row in self._ledger.rows]

    @property
    def phase(self) -> list[str]:
        """The phase of each event."""
        return [row.phase for row in self._ledger.rows]

    @property
    def layer(self) -> list[str]:
        """The layer that ran."""
        return [self._label(row.path) for row in self._ledger.rows]

    @property
    def recomputed_operations(self) -> int:
        """How many operations were recomputed."""
        return self._ledger.recomputed[0]

    @property
    def recomputed_bytes(self) -> int:
        """The bytes of their results."""
        return self._ledger.recomputed[1]

    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the bytes after events, and at the highest point before them."""
        if self._found is None or len(self._found[0]) != len(self):
            self._found = self._added_up()
        return self._found

    def _added_up(self) -> tuple[np.ndarray, np.ndarray]:
        n = len(self)
        after = np.zeros((n + 2, len(ROLES)), np.int64)
        before = np.zeros((n + 2, len(ROLES)), np.int64)
        born = np.zeros(n + 2, np.int64)
        for entry in self.entries:
            if not entry.was_there and entry.born:
                born[entry.born] += entry.nbytes
            died = n if entry.died is None else entry.died
            for since, until, role in _spans(entry, died):
                at = ROLES.index(role)
                after[since, at] += entry.nbytes
                after[until, at] -= entry.nbytes
                # At the highest point before an event the roles had not changed yet.
                before[since + (since > entry.born), at] += entry.nbytes
                before[until + (until < n), at] -= entry.nbytes
        after, before = np.cumsum(after, axis=0)[:n], np.cumsum(before, axis=0)[:n]
        temporary = ROLES.index("temporary")
        for i in range(1, n):
            rise, base = self._ledger.rows[i].rise, after[i - 1].sum()
            if rise >= born[i] - NOISE:
                extra = rise - born[i]
                before[i, temporary] += extra if extra >= NOISE else 0
            elif base + rise <= after[i].sum():
                before[i] = after[i]
            else:
                before[i] = after[i - 1]
                before[i, temporary] += rise
        return after, before

    @property
    def bytes(self) -> np.ndarray:
        """Bytes of each role after each event."""
        return self._tables()[0]

    @property
    def during(self) -> np.ndarray:
        """Bytes of each role at the highest point before each event."""
        return self._tables()[1]

    @property
    def total(self) -> np.ndarray:
        """Bytes of all roles after each event."""
        return self.bytes.sum(axis=1)

    @property
    def made(self) -> np.ndarray:
        """Bytes after each event of what was created since the start, as `measured` counts."""
        sums = np.zeros(len(self) + 1, np.int64)
        for entry in self.entries:
            if not entry.was_there:
                sums[entry.born] += entry.nbytes
                if entry.died is not None:
                    sums[entry.died] -= entry.nbytes
        return np.cumsum(sums)[:-1]

    @property
    def measured(self) -> np.ndarray | None:
        """What the allocators counted of it; None without ``verify=True``."""
        if not self._ledger.verify:
            return None
        return np.array([row.measured for row in self._ledger.rows])

    def by_role(self) -> dict[str, np.ndarray]:
        """Return the bytes of each role after each event."""
        return dict(zip(ROLES, self.bytes.T, strict=True))

    # The peak -----------------------------------------------------------------------------------

    @property
    def peak(self) -> int:
        """The highest number of live bytes."""
        return int(self.during.sum(axis=1).max(initial=0))

    @property
    def peak_event(self) -> int:
        """The event before which the peak was reached."""
        return int(self.during.sum(axis=1).argmax())

    def by_operation(self, event: int | None = None) -> list[Holding]:
        """Return what makes up the memory at the highest point before an event, largest first.

        Parameters
        ----------
        event : int, optional
            By default the peak.

        Examples
        --------
        >>> import numpy as np
        >>> import optlab as ol
        >>> w = ol.to_tensor(np.ones(100_000), requires_grad=True)
        >>> trace = ol.memory.report(lambda: np.sum(np.exp(w)).backward())
        >>> [(held.name, held.role, held.nbytes) for held in trace.by_operation()[:3]]
        [('parameter', 'parameter', 800000), ('exp', 'saved', 800000), ('exp', 'gradient', 800000)]
        """
        i = self.peak_event if event is None else int(event)
        if not 0 <= i < len(self):
            raise IndexError(f"there are events 0 to {len(self) - 1}; got {event!r}.")
        total = max(1, int(self.during[i].sum()))
        groups: dict[Any, list[Entry]] = defaultdict(list)
        left = self.during[i].copy()
        for entry in self._alive_before(i):
            role = entry.role_at(max(i - 1, entry.born))
            left[ROLES.index(role)] -= entry.nbytes
            named = entry.phase or role not in ("parameter", "gradient")
            groups[entry.name if named else None, entry.phase, role].append(entry)
        found = [
            self._holding(name or _together(role, entries), phase, role, entries, total)
            for (name, phase, role), entries in groups.items()
        ]
        extra = int(left[ROLES.index("temporary")])
        if extra > 0:
            name, phase, path = self.operation[i], self.phase[i], self.layer[i]
            layers = (path,) if path else ()
            inside = Holding(name, phase, "temporary", layers, 0, extra, (), "", extra / total)
            found.append(inside)
        return sorted(found, key=lambda held: -held.nbytes)

    def _holding(self, name: str, phase: str, role: str, held: list[Entry], total: int) -> Holding:
        largest = max(held, key=lambda entry: entry.nbytes)
        size = sum(entry.nbytes for entry in held)
        layers = tuple(dict.fromkeys(self._label(entry.path) for entry in held if entry.path))
        return Holding(
            name, phase, role, layers, len(held), size, largest.shape, largest.dtype, size / total
        )

    def _alive_before(self, i: int) -> Iterator[Entry]:
        """Yield what was alive at the highest point before an event."""
        rows = self._ledger.rows
        born = sum(e.nbytes for e in self.entries if e.born == i and not e.was_there)
        new = not i or rows[i].rise >= born - NOISE
        late = not new and self.during[i].sum() == self.bytes[i].sum()
        for entry in self.entries:
            died = len(rows) if entry.died is None else entry.died
            first = entry.born <= (i if new or late else i - 1)
            if first and (died > i if late else died >= i):
                yield entry

    def cut(self, name: str) -> np.ndarray:
        """Return the bytes by role at the highest point so far, and restart the trace.

        Parameters
        ----------
        name : str
            What has just happened: the name of the event that ends the part.
        """
        with self._ledger.paused():
            self._ledger.event(name, "step")
            highest: np.ndarray = self.during[self.peak_event].copy()
            self._ledger.begin_anew()
            self._found = None
        return highest

    # Representations ----------------------------------------------------------------------------

    def to_xarray(self) -> Any:
        """Return the trace as an `xarray.Dataset` over events and roles.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed (it comes with the extra ``lab``).
        """
        with needed_for("MemoryTrace.to_xarray()"):
            import xarray

        return xarray.Dataset(
            {"bytes": (("event", "role"), self.bytes), "during": (("event", "role"), self.during)},
            coords={
                "event": np.arange(len(self)),
                "role": list(ROLES),
                "operation": ("event", self.operation),
                "phase": ("event", self.phase),
                "layer": ("event", self.layer),
            },
            attrs={"peak": self.peak, "peak_event": self.peak_event},
        )

    def table(self) -> Any:
        """Return what makes up the peak as a pandas DataFrame, one row per operation.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).
        """
        with needed_for("MemoryTrace.table()"):
            import pandas

        return pandas.DataFrame(
            [
                {
                    "operation": held.name,
                    "phase": held.phase,
                    "role": held.role,
                    "layer": ", ".join(held.layers),
                    "arrays": held.arrays,
                    "bytes": held.nbytes,
                    "share": held.share,
                    "shape": held.shape,
                    "dtype": held.dtype,
                }
                for held in self.by_operation()
            ]
        )

    def __repr__(self) -> str:
        return one_line(self)

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return encodable(as_html(self))


def _spans(entry: Entry, died: int) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of events in which a block of memory had one role."""
    ends = [since for since, _ in entry.history[1:]] + [died]
    for (since, role), until in zip(entry.history, ends, strict=True):
        if min(until, died) > since:
            yield since, min(until, died), role
        elif since == died:  # it was created and freed before one event
            yield since, since, role


def _together(role: str, entries: list[Entry]) -> str:
    """Return the label of parameters, or gradients, of before: by name if there is one."""
    if len(entries) == 1:
        return entries[0].name
    many = re.compile(r"(\d+) parameters")  # the flat array of an optimizer
    counts = [found[1] if (found := many.fullmatch(e.name)) else "1" for e in entries]
    return f"{sum(map(int, counts))} {role}s"
