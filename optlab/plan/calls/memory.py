"""The memory of a replay, predicted entry by entry: buffers, results, and what operations need.

A result lives from its entry to its last use; a gradient that a leaf collects until it is cleared,
in the next call if the call does not clear it. Views of arguments and of other results have no
memory. What an operation allocates inside is measured once, on arrays of the same shapes.
"""

from __future__ import annotations

import copy
import tracemalloc
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape.base import new_tensor
from optlab.backend import random
from optlab.backend.arrays import owner_of
from optlab.backend.display import Rendered
from optlab.plan.calls.entries import Entry, OfTensor
from optlab.plan.calls.places import places_in
from optlab.plan.plan import Place

ROLES = ("data", "gradient", "saved", "temporary")
#: The largest result that is not worth a measurement of what its operation needs inside.
_SMALL = 1 << 14


class Held(NamedTuple):
    """Arrays that are alive at one entry, by what made them; as `optlab.memory` describes them."""

    name: str
    phase: str
    role: str
    layers: tuple[str, ...]
    arrays: int
    nbytes: int
    share: float
    label: str


class Memory(Rendered):
    """The bytes that are alive over the entries of a plan; event 0 is the start.

    Attributes
    ----------
    during : array of shape (events, roles)
        The most that is alive on the way to each event.
    """

    drawn_as = "memory"
    roles = ROLES
    #: What the roles are called in a plan.
    names: Mapping[str, str] = {
        "data": "buffers of the plan",
        "gradient": "gradients of leaves",
        "saved": "results",
        "temporary": "inside operations",
    }
    title = "Memory of a plan"
    measured = None
    recomputed_operations = recomputed_bytes = 0

    def __init__(self, program: Any, allocated: dict[Place, int]) -> None:
        self._program = program
        self._allocated = allocated

    def __len__(self) -> int:
        return len(self.operation)

    def __str__(self) -> str:
        return str(self._program)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the plan's table."""
        return self._program.rows()  # type: ignore[no-any-return]

    @property
    def operation(self) -> list[str]:
        """What each event is."""
        names = [name_of(entry).removesuffix(" backward") for entry in self._program.entries]
        return ["start", *names]

    @property
    def layer(self) -> list[str]:
        """The layer of each event; a plan does not know it."""
        return [""] * len(self)

    @property
    def phase(self) -> list[str]:
        """Of each event: forward, backward or step."""
        found, now = [""], "forward"
        for entry in self._program.entries:
            if entry.name.endswith(" backward") or entry.name in ("collect", "add gradients"):
                now = "backward"
            elif entry.kind == "effect" and entry.name.rpartition(".")[2] == "step":
                now = "step"
            found.append(now)
        return found

    @property
    def during(self) -> Any:
        """Bytes by role on the way to each event."""
        return self._simulated[0]

    @property
    def total(self) -> Any:
        """Bytes after each event, nearly: what is alive on the way to it."""
        return self.during.sum(axis=1)

    @property
    def peak(self) -> int:
        """The most that is alive at once, in bytes."""
        return int(self.total.max())

    @property
    def peak_event(self) -> int:
        """The event at which most is alive."""
        return int(self.total.argmax())

    def by_operation(self) -> list[Held]:
        """Return what makes up the peak, largest first."""
        at, total = self.peak_event, max(1, self.peak)
        phases, program = self.phase, self._program
        found: dict[tuple[str, str, str], list[int]] = {}
        for buffer in program.buffers:
            found.setdefault(("buffers", "", "data"), []).append(buffer.nbytes)
        for i, role, nbytes in self._simulated[1]:
            name = "gradients" if i < 0 else name_of(program.entries[i])
            found.setdefault((name, phases[i + 1], role), []).append(nbytes)

        def label(name: str, sizes: list[int]) -> str:
            count = len(sizes)
            if name == "buffers":
                return f"{count} buffer{'s' * (count > 1)}"
            return name if count == 1 else f"{name}, {count} arrays"

        held = [
            Held(
                name,
                phase,
                role,
                (),
                len(sizes),
                sum(sizes),
                sum(sizes) / total,
                label(name, sizes),
            )
            for (name, phase, role), sizes in found.items()
        ]
        inside = int(self.during[at, ROLES.index("temporary")])
        if inside:
            name, phase = name_of(program.entries[at - 1]), phases[at]
            held.append(Held(name, phase, "temporary", (), 0, inside, inside / total, ""))
        return sorted(held, key=lambda one: -one.nbytes)

    @cached_property
    def _simulated(self) -> tuple[Any, list[tuple[int, str, int]]]:
        """Run the entries without computing; return bytes, and what is alive at the peak."""
        collected: dict[int, tuple[int, int]] = {}
        self._run(collected)
        # What the first call leaves behind is there when the second one starts.
        start = {leaf: (-1, nbytes) for leaf, (_, nbytes) in collected.items()}
        return self._run(start)

    def _run(self, collected: dict[int, tuple[int, int]]) -> tuple[Any, list[tuple[int, str, int]]]:
        """Simulate a replay; `collected` has the entry and bytes of the gradient of each leaf."""
        program, group = self._program, self._program.group
        buffers = sum(buffer.nbytes for buffer in program.buffers)
        ends: dict[int, list[Place]] = {}
        for place, i in program.last.items():
            ends.setdefault(i, []).append(place)
        live: dict[Place, tuple[int, int]] = {}
        rows = [(buffers, sum(n for _, n in collected.values()), 0, 0)]
        at_peak: list[tuple[int, str, int]] = []
        most = -1
        for i, entry in enumerate(program.entries):
            if "clear_grad" in entry.name:
                collected.clear()
            for place in entry.results:
                if self._allocated.get(place):
                    live[place] = (i, self._allocated[place])
            row = (
                buffers,
                sum(n for _, n in collected.values()),
                sum(n for _, n in live.values()),
                self._inside[i],
            )
            rows.append(row)
            if sum(row) > most:
                most = sum(row)
                at_peak = [(j, "gradient", n) for j, n in collected.values()]
                at_peak += [(j, "saved", n) for j, n in live.values()]
            if entry.name == "collect":
                leaf, given = id(entry.arguments[0]), places_in(entry.arguments)
                root = group.get(given[0], given[0]) if given else None
                if leaf not in collected and root in live:
                    collected[leaf] = live.pop(root)
            for place in ends.get(i, ()):
                live.pop(place, None)
        return np.array(rows, np.int64), at_peak

    @cached_property
    def _inside(self) -> list[int]:
        """The bytes that each entry allocates besides its results."""
        known: dict[Any, int] = {}
        found = []
        for entry in self._program.entries:
            nbytes = 0
            if entry.kind == "operation" and not isinstance(entry.function, np.ufunc):
                sizes = [self._size_of(p) for p in (*entry.results, *places_in(entry.arguments))]
                if max(sizes, default=0) > _SMALL:
                    operands = places_in([*entry.arguments, *entry.keywords.values()])
                    shapes = tuple(map(self._shape_of, (*operands, *entry.results)))
                    key = (entry.name, str(entry.keywords), shapes)
                    if key not in known:
                        known[key] = self._measured(entry)
                    nbytes = known[key]
            elif entry.kind == "effect" and name_of(entry) == "step" and entry.arguments:
                nbytes = inside_step(entry.arguments[0])
            found.append(nbytes)
        return found

    def _size_of(self, place: Place) -> int:
        value = self._program.values.get(place)
        return 0 if value is None else value.nbytes

    def _shape_of(self, place: Place) -> Any:
        return self._program.values.get(place)

    def _measured(self, entry: Entry) -> int:
        """Return the bytes that an operation allocates besides its results."""
        try:
            arguments = self._made(entry.arguments)
            keywords = self._made(entry.keywords)
            with np.errstate(all="ignore"):
                return workspace(entry.function, arguments, keywords)
        except Exception:  # noqa: BLE001  # it does not take such values
            return 0

    def _made(self, x: Any) -> Any:
        """Return an argument with arrays of the right shapes in place of places."""
        if isinstance(x, OfTensor):
            raise TypeError
        if isinstance(x, Place):
            constant = self._program.constants.get(x)
            if constant is not None:
                return constant
            value = self._program.values.get(x)
            if value is None or value.strides is None:
                return 1.0
            fill = 1 if value.dtype.kind in "fc" else 0
            return np.full(value.shape, fill, value.dtype) if value.shape else value.dtype.type(1)
        if type(x) in (tuple, list):
            return type(x)([self._made(part) for part in x])
        if type(x) is dict:
            return {name: self._made(part) for name, part in x.items()}
        return x


def name_of(entry: Entry) -> str:
    """Return the name of an entry; of a method of the engine without the class that defines it."""
    return entry.name if entry.kind == "operation" else entry.name.rpartition(".")[2]


def inside_step(optimizer: Any) -> int:
    """Return the bytes that a step of an optimizer allocates, measured on a copy of it."""
    if not hasattr(optimizer, "groups"):
        return 0  # of a schedule
    stream = random.stream_of_this_thread()
    draws = stream.draws
    try:
        twin = copy.deepcopy(optimizer)
        parameters = [p for group in twin.groups for p in group.parameters]
        found = 0
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for _ in range(2):  # the first one makes slots
                for p in parameters:
                    p.grad = new_tensor(np.ones_like(p.data))
                found = workspace(twin.step, (), {})
        return found
    except Exception:  # noqa: BLE001  # one that no copy can be made of, or that wants a closure
        return 0
    finally:
        stream.draws = draws


def workspace(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
    """Return the most bytes that a call allocates besides what it returns.

    A running `tracemalloc` goes on, but its peak so far is lost.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.ones(100_000)
    >>> [round(workspace(f, [x], {}), -5) for f in (np.exp, lambda x: np.exp(2 * np.exp(x)).sum())]
    [0, 1600000]
    """
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = function(*args, **kwargs)
        peak = tracemalloc.get_traced_memory()[1]
        owners = {id(x): x.nbytes for x in map(owner_of, _arrays_in(result))}
        given = {id(x) for x in map(owner_of, _arrays_in([*args, *kwargs.values()]))}
        kept = sum(int(nbytes) for one, nbytes in owners.items() if one not in given)
        # Python's own objects, a few KiB that differ from run to run, are not counted.
        return max(0, int(peak - before - kept) // _SMALL * _SMALL)
    finally:
        if not was_tracing:
            tracemalloc.stop()


def _arrays_in(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [array for part in x for array in _arrays_in(part)]
    return [x] if isinstance(x, np.ndarray) else []
