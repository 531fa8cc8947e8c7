"""One run of a scenario: the calls of a check on a class, and what came back, entry by entry.

A scenario is a function that takes a `Session`. The same scenario runs on a reference, on the
reference with a mistake put in (both in this process: `Local`), and on a student's class (in
another: `optlab.course.students`); `first_difference` compares two runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from optlab.course.student_process import Divisions

#: Two results are the same if they differ by less than this, beside the sizes of the numbers.
#: Rounding in forms that are algebraically equal stays below 1e-12; the smallest difference that a
#: mistake makes in a probe is above 1e-6 (a test holds both).
TOLERANCE = 1e-9


class Failed(Exception):
    """A call that gave no result: which mistake it is, and what was seen."""

    def __init__(self, mistake: str, detail: str) -> None:
        super().__init__(detail)
        self.mistake, self.detail = mistake, detail


class Stopped(Exception):
    """The scenario cannot go on: its last entry says why."""


@dataclass
class Entry:
    """What one call gave.

    Attributes
    ----------
    label : str
        The call, in words: ``"step 3"``.
    values : list of array, or None
        The result, an array for each parameter; None where the call failed.
    mistake, detail : str
        Why there is none.
    counted : bool
        Whether these are numbers that the check has counted, and no result.
    divided : bool
        Whether NumPy has divided by zero in the call.
    """

    label: str
    values: list[np.ndarray] | None = None
    mistake: str = ""
    detail: str = ""
    counted: bool = False
    divided: bool = False


@dataclass
class Reply:
    """A result, and the arguments as they are after the call (None: they were copies)."""

    value: Any
    after: list[Any] | None = None
    kind: str = ""
    divided: bool = False


class Target(Protocol):
    """Where the objects live on which a session calls."""

    given: dict[str, Any]

    def make(self, key: str, arguments: list[Any], settings: dict[str, Any]) -> None:
        """Make an object of the class under a key."""

    def call(self, key: str, method: str, arguments: list[Any], keep: str | None) -> Reply:
        """Call a method of an object; without a key, a function of the class itself."""

    def overwrite(self, values: list[Any]) -> None:
        """Write other numbers into the arrays of the last call, as their owner may do."""

    def get(self, key: str, attribute: str) -> Reply:
        """Read an attribute."""


class Local:
    """Objects of a class of ours, in this process."""

    def __init__(self, made: Any) -> None:
        self.made = made
        self.given: dict[str, Any] = {}
        self.objects: dict[str, Any] = {}
        self.last: list[Any] = []

    def make(self, key: str, arguments: list[Any], settings: dict[str, Any]) -> None:
        """Make an object of the class under a key."""
        self.objects[key] = self.made(
            *(self._given(value) for value in arguments),
            **{name: self._given(value) for name, value in settings.items()},
        )

    def call(self, key: str, method: str, arguments: list[Any], keep: str | None) -> Reply:
        """Call a method of an object; without a key, a function of the class itself."""
        target = self.objects[key] if key else self.made
        values = self.last = [self._given(value) for value in arguments]
        divisions = Divisions()
        try:  # a mutant may divide by zero: that is its mistake
            with (
                np.errstate(all="ignore"),
                np.errstate(divide="log", invalid="log", call=divisions),
            ):
                result = getattr(target, method)(*values)
        except (ValueError, ArithmeticError) as error:
            raise Failed("raises", str(error)) from None
        if keep is not None:
            self.objects[keep] = result
            return Reply(None)
        return Reply(result, kind=type(result).__name__, divided=divisions.by_zero)

    def overwrite(self, values: list[Any]) -> None:
        """Write other numbers into the arrays of the last call."""
        for kept, now in zip(self.last, values, strict=True):
            for old, new in zip(kept, now, strict=True) if isinstance(kept, list) else ():
                old[...] = new

    def get(self, key: str, attribute: str) -> Reply:
        """Read an attribute."""
        return Reply(getattr(self.objects[key], attribute))

    def _given(self, value: Any) -> Any:
        if isinstance(value, dict) and "object" in value:
            return self.objects[value["object"]]
        if isinstance(value, dict) and "given" in value:
            return self.given[value["given"]]
        return [self._given(item) for item in value] if isinstance(value, list) else copied(value)


def copied(value: Any) -> Any:
    """Return nested lists of arrays with arrays of their own."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple):
        return value
    return [copied(item) for item in value] if isinstance(value, list) else value


def an_object(key: str) -> dict[str, str]:
    """Return what stands for an object of the session among the arguments of a call."""
    return {"object": key}


def a_given(name: str) -> dict[str, str]:
    """Return what stands for a function of the check among the arguments of a call."""
    return {"given": name}


@dataclass
class Session:
    """Calls on the objects of one class, and their results.

    Attributes
    ----------
    target : Target
        Where the objects live.
    entries : list of Entry
        What the calls gave, in order.
    changed : str
        The first call after which one of its arguments was another, in words; or empty.
    expected : list of Entry, optional
        Entries to compare with; the session stops at the first one that differs.
    """

    target: Target
    entries: list[Entry] = field(default_factory=list)
    changed: str = ""
    expected: list[Entry] | None = None
    calls: list[tuple[str, list[Any], Any]] = field(default_factory=list)

    def give(self, name: str, thing: Any) -> dict[str, str]:
        """Offer a function of the check to the class; return what stands for it in calls."""
        self.target.given[name] = thing
        return a_given(name)

    def make(self, key: str, *arguments: Any, **settings: Any) -> None:
        """Make an object; its key stands for it afterwards."""
        try:
            self.target.make(key, list(arguments), settings)
        except Failed as failed:
            self._stop(Entry("making the object", None, failed.mistake, failed.detail))

    def call(
        self,
        key: str,
        method: str,
        *arguments: Any,
        like: Any = None,
        keep: str | None = None,
        label: str = "",
    ) -> Any:
        """Call a method and note its result.

        `like` has the arrays (a list, or one array) whose shapes the result must have, or is `...`
        for an array of any shape; without it nothing is asked of the result. `keep` names the
        result as a further object.
        """
        label = label or method
        try:
            reply = self.target.call(key, method, list(arguments), keep)
        except Failed as failed:
            self._stop(Entry(label, None, failed.mistake, failed.detail))
        if reply.after is not None and not self.changed:
            for sent, now in zip(arguments, reply.after, strict=False):
                if _is_numeric(sent) and not same(sent, now):
                    self.changed = label
        if like is None or keep is not None:
            self.calls.append((label, list(arguments), None))
            return None
        try:
            value = shaped(reply, like)
        except Failed as failed:
            self._stop(Entry(label, None, failed.mistake, failed.detail))
        values = value if isinstance(value, list) else [value]
        self.calls.append((label, list(arguments), copied(value)))
        self._enter(Entry(label, copied(values), divided=reply.divided))
        return copied(value)

    def get(self, key: str, attribute: str, *, like: Any, label: str = "") -> Any:
        """Read an attribute and note it."""
        label = label or attribute
        try:
            reply = self.target.get(key, attribute)
            value = shaped(reply, like)
        except Failed as failed:
            self._stop(Entry(label, None, failed.mistake, failed.detail))
        values = value if isinstance(value, list) else [value]
        self.calls.append((label, [], copied(value)))
        self._enter(Entry(label, copied(values)))
        return copied(value)

    def overwrite(self, *values: Any) -> None:
        """Write other numbers into the arrays of the last call: they belong to the caller."""
        try:
            self.target.overwrite(list(values))
        except Failed as failed:
            self._stop(Entry("the next call", None, failed.mistake, failed.detail))
        label, _, result = self.calls[-1]
        self.calls[-1] = (label, [], result)

    def note(self, label: str, *values: Any) -> None:
        """Note numbers that the check itself has counted."""
        numbers = [np.asarray(value, dtype=float) for value in values]
        self._enter(Entry(label, numbers, counted=True))

    def _enter(self, entry: Entry) -> None:
        self.entries.append(entry)
        if self.expected is not None:
            place = len(self.entries)
            if first_difference(self.expected[place - 1 : place], [entry]) is not None:
                raise Stopped(entry.label)

    def _stop(self, entry: Entry) -> None:
        self.entries.append(entry)
        raise Stopped(entry.label)

    def compare_with(self, seen: list[Any]) -> None:
        """Find arguments and results of earlier calls that are others now."""
        for (label, arguments, result), (now, result_now) in zip(self.calls, seen, strict=False):
            if self.changed:
                return
            kept = [
                same(value, after)
                for value, after in zip(arguments, now, strict=False)
                if _is_numeric(value)
            ]
            if isinstance(result, list):
                kept.append(same(result, result_now))
            elif result is not None and result_now is not None:
                kept.append(same(result, np.asarray(result_now, dtype=float)))
            if not all(kept):
                self.changed = f"{label} (later on)"


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, np.ndarray) for item in value)
    return isinstance(value, np.ndarray)


def same(one: Any, other: Any) -> bool:
    """Return whether nested lists of arrays have equal numbers (NaN is NaN)."""
    if isinstance(one, list) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) or isinstance(other, (dict, str, type(None))):
        return True if isinstance(one, dict) else one is other
    try:  # a class may give back nested lists of numbers for an array
        first, second = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    except (TypeError, ValueError):
        return False
    if first.shape != second.shape:
        return False
    return bool(((first == second) | ((first != first) & (second != second))).all())


def shaped(reply: Reply, like: Any) -> Any:
    """Return a result as arrays of the shapes that are asked for, or raise `Failed`."""
    value = reply.value
    if like is ...:
        return _array(value, None, "the result")
    if not isinstance(like, list):
        return _array(value, np.asarray(like).shape, "the result")
    if not isinstance(value, (list, tuple)):
        what = f"one array of shape {value.shape}" if isinstance(value, np.ndarray) else reply.kind
        what = "None (is the `return` missing?)" if value is None else what
        raise Failed("wrong_shape", f"a list of {len(like)} arrays was expected, and {what} came")
    if len(value) != len(like):
        raise Failed(
            "wrong_shape",
            f"a list of {len(like)} arrays was expected, and a list of {len(value)} came",
        )
    arrays, wrong = [], []
    for i, (item, wanted) in enumerate(zip(value, like, strict=True)):
        try:
            arrays.append(_array(item, np.shape(wanted), f"parameter {i}"))
        except Failed as failed:
            wrong.append(failed)
    if wrong:  # one that no broadcasting explains says more than the others
        raise min(wrong, key=lambda failed: failed.mistake != "wrong_shape")
    return arrays


def _array(value: Any, shape: tuple[int, ...] | None, name: str) -> np.ndarray:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise Failed(
            "wrong_shape",
            f"{name} should be an array of {f'shape {shape}' if shape else 'numbers'}; "
            f"{_word(value)} came",
        ) from None
    if shape is None or array.shape == shape:
        return array
    broadcast = (
        len(array.shape) >= len(shape)
        and all(n in (1, m) for n, m in zip(shape[::-1], array.shape[::-1], strict=False))
        and (array.size > int(np.prod(shape)) or shape == ())
    )
    raise Failed(
        "hidden_broadcast" if broadcast else "wrong_shape",
        f"{name} should have shape {shape}, and has shape {array.shape}",
    )


def _word(value: Any) -> str:
    return "nothing (None)" if value is None else f"a {type(value).__name__}"


def first_difference(expected: list[Entry], found: list[Entry]) -> tuple[int, int, int] | None:
    """Return entry, parameter and flat index of the first difference of two runs, or None.

    Where one run stopped, or has no such entry, parameter and index are -1.
    """
    for i, entry in enumerate(expected):
        if i >= len(found):
            return i, -1, -1
        other = found[i]
        if entry.values is None or other.values is None:
            if entry.values is None and other.values is None and entry.mistake == other.mistake:
                continue
            return i, -1, -1
        if len(entry.values) != len(other.values):
            return i, -1, -1
        for j, (a, b) in enumerate(zip(entry.values, other.values, strict=True)):
            if a.shape != b.shape:
                return i, j, -1
            if not close(a, b).all():
                return i, j, int((~close(a, b)).ravel().argmax())
    return None if len(found) <= len(expected) else (len(expected), -1, -1)


def close(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return where two arrays are equal but for rounding."""
    with np.errstate(all="ignore"):
        near = abs(a - b) <= TOLERANCE * (1 + abs(a))
        result: np.ndarray = near | (a == b) | ((a != a) & (b != b))
    return result


def run(
    scenario: Callable[[Session], None], target: Target, expected: list[Entry] | None = None
) -> Session:
    """Run a scenario to its end, to the call that stops it, or to the first difference."""
    session = Session(target, expected=expected)
    target.given.clear()
    with suppress(Stopped):
        scenario(session)
    return session


def gives(scenario: Callable[[Session], None], made: Any, entries: list[Entry]) -> bool:
    """Return whether a class of ours gives these entries."""
    return first_difference(run(scenario, Local(made), entries).entries, entries) is None
