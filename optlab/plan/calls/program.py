"""The program of a captured call: its entries as Python source, with buffers chosen by liveness."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optlab.backend.arrays import owner_of
from optlab.plan.calls.description import Description
from optlab.plan.calls.entries import Entry, OfTensor
from optlab.plan.calls.memory import Memory
from optlab.plan.calls.places import places_in
from optlab.plan.calls.source import Source, takes_out
from optlab.plan.plan import Place

#: From this many bytes on, a value is released after its last use; smaller ones at the end.
LARGE = 1 << 14


class Value(NamedTuple):
    """What is known of a place: the array that it was when it was captured."""

    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...] | None
    nbytes: int


class Program(Description):
    """The entries of a call, ready to run again.

    ``print(plan)`` shows the operations as a table; `table` returns them for pandas, and `figure`
    draws the memory of a replay over them.

    Attributes
    ----------
    entries : list of Entry
        Without operations whose results nothing needs.
    buffers : list of array
        Reused memory.
    buffer_of : dict of Place to int
    memory : Memory
        What a replay allocates besides the buffers, entry by entry.
    """

    def __init__(
        self,
        inputs: Sequence[Place],
        entries: Sequence[Entry],
        constants: dict[Place, Any],
        output: Any,
        given: Mapping[Place, Any] | None = None,
        keyed: bool = True,
    ) -> None:
        self.inputs = list(inputs)
        self.output = output
        self.binding = None
        #: Whether every call has inputs of the layout that the inputs of the capture have.
        self.keyed = keyed
        self.entries = _folded(_needed(entries, output), output)
        self.constants = constants
        self.values: dict[Place, Value] = {}
        for entry in self.entries:
            for place, x in zip(entry.results, entry.values, strict=True):
                shape = getattr(x, "shape", None)
                if shape is not None:
                    self.values[place] = Value(
                        shape, x.dtype, getattr(x, "strides", None), getattr(x, "nbytes", 0)
                    )
        known = {**constants, **(getattr(output, "given", {}) if given is None else given)}
        self.entries = _with_ufuncs(self.entries, known)
        #: Whether what may find other facts than the capture runs before all that changes state.
        self.facts_first = _facts_first(self.entries)
        self.checks_facts = any(getattr(e.function, "checks_facts", False) for e in self.entries)
        self._lay_out(known)
        self.source = self._write()
        scope: dict[str, Any] = dict(self._scope)
        exec(compile(self.source, "<optlab plan>", "exec"), scope)
        self.run: Any = scope["replay"]
        self.entries = [entry._replace(values=()) for entry in self.entries]

    def touched(self) -> list[Any]:
        """Return the objects of the engine that its entries read or change."""
        found: dict[int, Any] = {}
        for entry in self.entries:
            if entry.kind == "operation":
                continue
            for x in (*entry.arguments, *entry.keywords.values()):
                if not isinstance(x, (Place, OfTensor)):
                    found[id(x)] = x
        return list(found.values())

    # Memory -------------------------------------------------------------------------------------

    def _lay_out(self, known: Mapping[Place, Any]) -> None:
        """Choose a buffer for each result that may have one.

        Parameters
        ----------
        known : mapping of Place to array
            What the inputs and the constants are: results may be views of them.
        """
        for place, x in known.items():
            if isinstance(x, np.ndarray):
                self.values[place] = Value(x.shape, x.dtype, x.strides, x.nbytes)
        group = _alias_groups(self.entries, known)
        last: dict[Place, int] = {}
        escapes: set[Place] = set()
        end = len(self.entries)
        for i, entry in enumerate(self.entries):
            for place in places_in([*entry.arguments, *entry.keywords.values()]):
                root = group.get(place, place)
                last[root] = i
                if entry.kind == "effect":
                    escapes.add(root)
            for place in entry.results:
                last.setdefault(group.get(place, place), i)
        for place in places_in([self.output]):
            escapes.add(group.get(place, place))
            last[group.get(place, place)] = end
        self.last = last
        self.group = group
        self.buffers: list[Any] = []
        self.buffer_of: dict[Place, int] = {}
        free: dict[Any, list[int]] = {}
        dying: dict[int, list[Place]] = {}
        for place, i in last.items():
            dying.setdefault(i, []).append(place)
        holder: dict[Place, int] = {}
        for i, entry in enumerate(self.entries):
            if writes_into(entry):
                (place,) = entry.results
                root = group.get(place, place)
                if root == place and root not in escapes and place in self.values:
                    value = self.values[place]
                    key = (value.shape, value.dtype, value.strides)
                    if getattr(entry.function, "signature", "no ufunc") is None:
                        for one in dying.get(i, ()):
                            if one in holder and one != root and self._key(holder[one]) == key:
                                free.setdefault(key, []).append(holder.pop(one))
                    pool = free.get(key)
                    if pool:
                        number = pool.pop()
                    else:
                        number = len(self.buffers)
                        self.buffers.append(empty_like(value))
                    holder[root] = self.buffer_of[place] = number
            for one in dying.get(i, ()):
                if one in holder:
                    number = holder.pop(one)
                    free.setdefault(self._key(number), []).append(number)
        self.memory = Memory(self, self._allocated())

    def _allocated(self) -> dict[Place, int]:
        """Return the bytes of each result that is neither in a buffer nor a view."""
        found: dict[Place, int] = {}
        for entry in self.entries:
            draws = entry.kind == "read" and places_in(entry.arguments)
            if entry.kind != "operation" and not draws and entry.name != "hooks":
                continue
            for place, x in zip(entry.results, entry.values, strict=True):
                own = self.group.get(place, place) == place and place not in self.buffer_of
                if own and isinstance(x, np.ndarray):
                    found[place] = getattr(owner_of(x), "nbytes", x.nbytes)
        return found

    def _key(self, number: int) -> Any:
        buffer = self.buffers[number]
        return (buffer.shape, buffer.dtype, buffer.strides)

    # Source -------------------------------------------------------------------------------------

    def _write(self) -> str:
        source = Source()
        lines = [f"def replay({', '.join(self.parameters())}):"]
        for place, array in self.constants.items():
            source.scope[f"v{place.number}"] = array
        for number, buffer in enumerate(self.buffers):
            source.scope[f"b{number}"] = buffer
        release = self.released()
        for i, entry in enumerate(self.entries):
            held = self.buffer_of.get(entry.results[0]) if len(entry.results) == 1 else None
            out = None if held is None else f"b{held}"
            lines.append(f"    {source.statement(entry, out=out)}")
            names = release.get(i)
            if names:
                lines.append(f"    {' = '.join(f'v{p.number}' for p in names)} = None")
        lines.append(f"    return {source.expression(self.output)}")
        self._scope = source.scope
        return "\n".join(lines) + "\n"

    def parameters(self) -> list[str]:
        """Return the names of the parameters: an array that is given twice has one name."""
        first = [i == self.inputs.index(p) for i, p in enumerate(self.inputs)]
        return [
            f"v{p.number}" if own else f"same{i}"
            for i, (p, own) in enumerate(zip(self.inputs, first, strict=True))
        ]

    def released(self) -> dict[int, list[Place]]:
        """Return the large values that no entry after this one reads, by number of the entry."""
        found: dict[int, list[Place]] = {}
        for entry in self.entries:
            for place in entry.results:
                root = self.group.get(place, place)
                when = self.last.get(root)
                value = self.values.get(place)
                large = value is not None and value.nbytes >= LARGE
                if large and when is not None and place not in self.buffer_of:
                    found.setdefault(when, []).append(place)
        return found


#: Operators of arrays as the functions that they call, which write into a given array. A power is
#: not among them: NumPy's operator computes some exponents with other functions.
_UFUNCS = {
    operator.add: np.add, operator.sub: np.subtract, operator.mul: np.multiply,
    operator.truediv: np.true_divide, operator.neg: np.negative, operator.abs: np.absolute,
    operator.matmul: np.matmul, operator.lt: np.less, operator.le: np.less_equal,
    operator.gt: np.greater, operator.ge: np.greater_equal, operator.eq: np.equal,
    operator.ne: np.not_equal,
}  # fmt: skip


def _with_ufuncs(entries: Sequence[Entry], known: Mapping[Place, Any]) -> list[Entry]:
    """Return entries with NumPy's functions in place of operators on arrays."""
    values = dict(known)
    found = []
    for entry in entries:
        values.update(zip(entry.results, entry.values, strict=True))
        ufunc = _UFUNCS.get(entry.function) if entry.kind == "operation" else None
        if ufunc is not None and not entry.keywords and type(entry.values[0]) is np.ndarray:
            operands = [values.get(x) if isinstance(x, Place) else x for x in entry.arguments]
            if all(type(x) in (np.ndarray, int, float) or _is_number(x) for x in operands):
                entry = entry._replace(function=ufunc)
        found.append(entry)
    return found


def _is_number(x: Any) -> bool:
    return isinstance(x, np.generic) and x.dtype.kind in "fiub"


def writes_into(entry: Entry) -> bool:
    """Return whether an operation takes an array for its result."""
    return (
        takes_out(entry)
        and type(entry.values[0]) is np.ndarray
        and entry.values[0].ndim > 0
        and entry.values[0].base is None
        and empty_like(entry.values[0]).strides == entry.values[0].strides
    )


def empty_like(value: Any) -> Any:
    """Return memory laid out like a value."""
    order = sorted(range(len(value.shape)), key=lambda i: -(value.strides or ())[i])
    base = np.empty([value.shape[i] for i in order], value.dtype)
    return base.transpose(np.argsort(order)) if order != list(range(len(order))) else base


def _folded(entries: Sequence[Entry], output: Any) -> list[Entry]:
    """Return the entries without arithmetic on constant numbers, whose values take its place."""
    known: dict[Place, Any] = {}
    found = []
    elsewhere = set(places_in([output]))
    for entry in entries:
        for x in (*entry.arguments, *entry.keywords.values()):
            if not isinstance(x, Place):
                elsewhere.update(places_in([x]))
    for entry in entries:
        arguments = tuple([known.get(x, x) if isinstance(x, Place) else x for x in entry.arguments])
        if any(x is not y for x, y in zip(arguments, entry.arguments, strict=True)):
            entry = entry._replace(arguments=arguments)
        if (
            entry.kind == "operation"
            and entry.function in _UFUNCS
            and not entry.keywords
            and isinstance(entry.values[0], np.floating)
            and all(type(x) in (int, float) or _is_number(x) for x in arguments)
            and elsewhere.isdisjoint(entry.results)
        ):
            known[entry.results[0]] = entry.values[0]
            continue
        found.append(entry)
    return found


def _needed(entries: Sequence[Entry], output: Any) -> list[Entry]:
    """Return the entries without operations and reads whose results are not used."""
    wanted = set(places_in([output]))
    kept = []
    for entry in reversed(entries):
        # A read may change state: the next random key, a gradient that is handed out.
        idle = entry.kind == "operation" or entry.name == "read"
        if idle and wanted.isdisjoint(entry.results):
            continue
        kept.append(entry)
        wanted.update(places_in([*entry.arguments, *entry.keywords.values()]))
    return kept[::-1]


def _alias_groups(entries: Sequence[Entry], known: Mapping[Place, Any]) -> dict[Place, Place]:
    """Return for each place that may share memory with others the first of them.

    Parameters
    ----------
    entries : sequence of Entry
    known : mapping of Place to array
        Inputs and constants.
    """
    first: dict[Place, Place] = {}
    arrays: dict[Place, Any] = dict(known)

    def root(place: Place) -> Place:
        while place in first:
            place = first[place]
        return place

    for entry in entries:
        given = [p for p in places_in([*entry.arguments, *entry.keywords.values()]) if p in arrays]
        for place, x in zip(entry.results, entry.values, strict=True):
            if x is None or isinstance(x, np.generic):
                continue
            arrays[place] = x
            for other in given:
                # An object that is no array (a row-sparse gradient) may hold what it was made of.
                is_array = isinstance(x, np.ndarray) and isinstance(arrays[other], np.ndarray)
                if not is_array or np.may_share_memory(x, arrays[other]):
                    # What the plan does not make (an input, a constant) is nobody's view.
                    one, two = sorted((root(place), root(other)), key=lambda p: (p not in known, p))
                    if one != two:
                        first[two] = one
            given.append(place)  # the parts of a result may be views of one array
    return {place: root(place) for place in arrays if root(place) != place}


def _facts_first(entries: Sequence[Entry]) -> bool:
    changed = False
    for entry in entries:
        changed = changed or entry.kind == "effect"
        if changed and getattr(entry.function, "checks_facts", False):
            return False
    return True
