"""The comparison of two runs of a call: what a plan repeats must not have been different."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase
from optlab.backend.user_frames import location
from optlab.plan.calls.entries import Entry, OfTensor, same_array
from optlab.plan.calls.places import places_in
from optlab.plan.calls.recording.recorder import Recorder
from optlab.plan.plan import Place

_UNSEEN = (
    "an array that NumPy computed from other values each time, which a recording does not see: "
    "make a buffer of an argument, np.empty_like(x), and take values by t.numpy(), not t.data"
)
_CODES = (int, float, complex, str, bytes, bool, type(None))


def difference(
    first: Recorder, second: Recorder, outputs: tuple[Any, Any]
) -> tuple[str, dict[Place, Any]]:
    """Return how two runs differ, in words (empty if not), and copies of the constants.

    Returns
    -------
    str
    dict of Place to array
        The constants of the second run that were made inside the call. They replace reads of
        Tensors that were made inside as well.
    """
    made: dict[Place, Any] = {}
    if len(first.entries) != len(second.entries):
        return _of_lengths(first, second), made
    for place, x in first.constants.items():
        y = second.constants.get(place)
        if y is x:
            continue
        if y is None or not same(first.contents[place], second.contents[place]):
            return _of_constant(first, place), made
        made[place] = second.contents[place]
    for one, two in zip(first.entries, second.entries, strict=True):
        if one.name == two.name == "read" and one.arguments[0] is not two.arguments[0]:
            x, y = one.values[0], two.values[0]
            if one.results != two.results or not same(x, y):
                return f"a Tensor made from other values each time ({location(*two.where)})", made
            made[two.results[0]] = y.copy()
            continue
        if one.name == "read" and one.results[0] in first.made:
            where = location(*one.where)
            return f"a write into a Tensor that capture cannot find from outside ({where})", made
        if (
            one.kind != two.kind
            or one.name != two.name
            or one.results != two.results
            or not same(one.function, two.function)
            or not same(one.arguments, two.arguments)
            or not same(one.keywords, two.keywords)
        ):
            return f"{_why(one, two)} ({location(*two.where)})", made
        for x, y in zip(one.values, two.values, strict=True):
            if getattr(x, "shape", None) != getattr(y, "shape", None) and one.kind == "operation":
                return (
                    f"a shape that depends on values: {two.name} gave {x.shape}, then {y.shape} "
                    f"({location(*two.where)})"
                ), made
    if not same(*outputs):
        return "it returned something else each time", made
    return "", made


def _why(one: Entry, two: Entry) -> str:
    """Return why two entries differ."""
    if one.name == two.name and one.kind == "effect":
        for x, y in zip(one.arguments, two.arguments, strict=False):
            if isinstance(x, FunctionType) and isinstance(y, FunctionType) and not same(x, y):
                return (
                    f"{two.name} with a function that every call makes anew: it decides by values "
                    "how often that is called. Capture what the function computes, and call "
                    f"{two.name} outside: it"
                )
            if (
                type(x) is type(y)
                and type(x).__module__.partition(".")[0] == "optlab"
                and (x is not y and not isinstance(x, (Place, OfTensor)))
            ):
                return (
                    f"{two.name} of a {type(x).__name__} that every call makes anew (make it "
                    "outside; inside, ol.grad and functional_step need no such object)"
                )
    return f"{two.name} got other numbers each time"


def _of_lengths(first: Recorder, second: Recorder) -> str:
    for one, two in zip(first.entries, second.entries, strict=False):
        if one.name != two.name:
            return f"it ran {one.name}, then {two.name} ({location(*two.where)})"
    longer = max((first.entries, second.entries), key=len)
    extra = longer[min(len(first.entries), len(second.entries))]
    return f"it ran {extra.name} in one run only ({location(*extra.where)})"


def _of_constant(recorder: Recorder, place: Place) -> str:
    for i, entry in enumerate(recorder.entries):
        if place in _all_places(entry):
            if i >= recorder.ended_at:
                return f"it returned {_UNSEEN}"
            return f"{entry.name} was given {_UNSEEN} ({location(*entry.where)})"
    return "an array differs from run to run"


def _all_places(entry: Entry) -> list[Place]:
    return places_in([*entry.arguments, *entry.keywords.values()])


def same(a: Any, b: Any) -> bool:
    """Return whether two things are the same to a plan: objects, or equal constants."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (Place, OfTensor)):
        return bool(a == b)
    if isinstance(a, _CODES):
        return bool(a == b or (a != a and b != b)) and repr(a) == repr(b)
    if isinstance(a, np.generic):
        return bool(a.tobytes() == b.tobytes() and a.dtype == b.dtype)
    if isinstance(a, np.ndarray):
        return same_array(a, b)
    if isinstance(a, slice):
        return same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, partial):
        return bool(same(a.func, b.func) and same(a.args, b.args) and same(a.keywords, b.keywords))
    if isinstance(a, TensorBase):
        return False
    if isinstance(a, Callable) and hasattr(a, "__code__"):  # type: ignore[arg-type]
        bound = same(getattr(a, "__self__", None), getattr(b, "__self__", None))
        return bound and a.__code__ is b.__code__ and same(_held(a), _held(b))
    try:
        return bool(a == b)
    except Exception:  # noqa: BLE001  # of any class
        return False


def same_bits(a: Any, b: Any) -> bool:
    """Return whether results of two runs are equal to the bit."""
    if isinstance(a, TensorBase):
        return (
            isinstance(b, TensorBase)
            and (a.node is None) == (b.node is None)
            and same(np.asarray(a.data), np.asarray(b.data))
        )
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(same_bits(a[k], b[k]) for k in a)
    return same(a, b)


def _held(function: Any) -> tuple[Any, ...]:
    """Return what a function closes over, and its defaults."""
    cells = function.__closure__ or ()
    return (*(cell.cell_contents for cell in cells), function.__defaults__, function.__kwdefaults__)
