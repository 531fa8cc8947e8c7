"""The values of a call that is recorded: a place for every array, known by its identity.

An array is an argument, the result of an operation that was recorded, what a Tensor from outside
holds, or a constant. A second run of the call, on other values, tells constants from values that
were computed without the recorder's knowledge (see `optlab.plan.calls.comparison`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from optlab.autograd.tape import versions
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.constants import checksum_of
from optlab.autograd.tape.nodes import Leaf
from optlab.backend.arrays import owner_of
from optlab.backend.call_recorder import suspended
from optlab.backend.random import Key
from optlab.backend.user_frames import frame_outside, location, location_of
from optlab.plan.calls.entries import Entry, FreedTensor, OfTensor
from optlab.plan.calls.places import places_in
from optlab.plan.calls.recording.arrays import is_vectorized, plain, values_in
from optlab.plan.calls.recording.containers import Container
from optlab.plan.calls.recording.numbers import NumberNeededError
from optlab.plan.calls.undo import Undo
from optlab.plan.plan import Place
from optlab.plan.tracer import CaptureError

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type, slice, type(Ellipsis), np.dtype)

INSTEAD = (
    "a plan cannot repeat it. Return what is needed, and print, append and count outside; write "
    "np.where(...) for a branch on values. ol.capture(f, strict=False) runs such a function as "
    "it is."
)


def data_of(t: Any) -> Any:
    """Return the array that a Tensor holds now."""
    return t.data


def where() -> tuple[str, int]:
    """Return file and line of the user's code that runs now."""
    frame = frame_outside("optlab", "numpy")
    return frame.f_code.co_filename, frame.f_lineno


def _view(base: Any, shape: Any, dtype: Any, offset: int, strides: Any) -> Any:
    """Return a view of the memory of an array."""
    owner = owner_of(base)
    start = base.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return np.ndarray(shape, dtype, owner, start + offset, strides)


def _contains(whole: Any, part: Any) -> bool:
    """Return whether the memory of an array contains that of another."""
    first, last = np.lib.array_utils.byte_bounds(whole)
    start, end = np.lib.array_utils.byte_bounds(part)
    return bool(first <= start and end <= last)


class RecordedValues:
    """The arrays of a call and its entries, while it runs.

    Attributes
    ----------
    entries : list of Entry
    constants : dict of Place to array
        Arrays from outside, or made by the call without recorded operations.
    dead : str
        Why the call cannot be captured; empty as long as it can.
    """

    def __init__(self, strict: bool, tensors: Sequence[Any] = (), live_floats: bool = True) -> None:
        self.strict = strict
        self.live_floats = live_floats
        self._tensors = tensors
        self._written: dict[int, tuple[Any, bytes, str]] = {}
        self._holders: dict[int, Any] = {}
        #: Plain arrays that the function reads from outside, by identity.
        self.outside: set[int] = set()
        #: The lists and dicts that the function was given.
        self.containers: list[Container] = []
        self.changed_container = ""
        self.entries: list[Entry] = []
        self.constants: dict[Place, Any] = {}
        self.contents: dict[Place, Any] = {}
        self.sources: dict[Place, Any] = {}
        #: Of these, Tensors that the call writes into and has made: a replay makes copies.
        self.made: set[Place] = set()
        self.dead = ""
        #: The arrays and numbers that code of the user has got.
        self.handed: list[Any] = []
        #: Arguments that are single numbers of NumPy.
        self.numbers: set[Place] = set()
        #: How many entries there were when the function returned; -1 before.
        self.ended_at = -1
        #: Whether the call has ended.
        self.closed = False
        self.undo = Undo()
        self.count = 0
        self._places: dict[int, Place] = {}
        self._values: dict[Place, Any] = {}
        self._kept: list[Any] = []  # so that identities stay unique
        self._truths = False
        self._keys: dict[Key, Any] = {}
        self._with_graph: list[Any] = []
        #: On the clock that numbers nodes: leaves that are younger are those of the call.
        self.started = next(versions.clock)

    def forget(self) -> None:
        """Let go of every array of the call, which has ended; values that live on hold theirs."""
        self.undo.forget()
        self.entries, self.handed, self.containers = [], [], []
        self.constants, self.contents, self.sources = {}, {}, {}
        self._tensors, self._kept, self._with_graph = [], [], []
        self._values, self._places, self._keys = {}, {}, {}
        self._written, self._holders = {}, {}

    def place(self) -> Place:
        """Return a new place."""
        self.count += 1
        return Place(self.count - 1)

    def know(self, value: Any, place: Place | None = None) -> Place:
        """Return the place of a value of the call; a new one if it is not known."""
        known = self._places.get(id(value))
        if known is not None:
            return known
        if place is None:
            place = self.place()
        if isinstance(value, np.bool_):
            self._truths = True  # there are two of them, so they have no identity
            return place
        self._places[id(value)] = place
        self._kept.append(value)
        self._values[place] = value
        return place

    def known(self, x: Any) -> Any:
        """Return the place of an array, or None."""
        return self._places.get(id(x))

    def alias(self, value: Any, copy: Any) -> None:
        """Know an equal copy of a value by the place of the value."""
        if copy is not value:
            place = self.place_of(value)
            if isinstance(place, Place):
                self._places[id(copy)] = place
                self._kept.append(copy)

    def place_of(self, x: Any, tensor: Any = None) -> Any:
        """Return the place of an array, or itself for a constant that is no array.

        Parameters
        ----------
        x : array, or anything else
        tensor : Tensor, optional
            Which holds it.
        """
        known = self._places.get(id(x))
        if known is not None:
            return known
        if getattr(x, "is_traced", False):
            return x.place
        if is_vectorized(x):
            return x
        if tensor is not None and not getattr(tensor.data, "is_traced", False):
            if not self.from_outside(tensor) and isinstance(x, np.ndarray):
                viewed = self._as_view(x)
                if viewed is not None:
                    return viewed
            place = self.know(x)
            entry = Entry("read", "read", data_of, (tensor,), {}, (place,), False, (x,), where())
            self.entries.append(entry)
            self.sources[place] = tensor
            return place
        if isinstance(x, np.ndarray):
            holder = self._holder_of(x)
            if holder is not None:
                return self.place_of(x, holder)
            viewed = self._as_view(x)
            return self._constant(x) if viewed is None else viewed
        if isinstance(x, np.bool_) and self._truths:
            self.refuse("a single truth value")
        return x

    def _holder_of(self, x: Any) -> Any:
        """Return the Tensor from outside that holds an array, or None."""
        found = self._holders.get(id(x))
        if found is None or found.data is not x:
            self._holders = {id(t.data): t for t in self._tensors}
            found = self._holders.get(id(x))
        return found

    def _constant(self, x: Any) -> Place:
        if x.dtype.hasobject and any(getattr(one, "is_traced", False) for one in x.flat):
            raise NumberNeededError  # np.array([t, 2 * t])
        place = self.know(x)
        self.constants[place] = x
        self.contents[place] = x.copy()  # it may be a view of something that changes
        return place

    def _as_view(self, x: Any) -> Place | None:
        """Return the place of an array that is a view of a known one; record the view."""
        base = x.base
        while base is not None:
            known = self._places.get(id(base))
            holder = self._holder_of(base) if known is None else None
            if holder is not None:
                known = self.place_of(base, holder)
            if known is not None and isinstance(base, np.ndarray):
                start = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
                static = (x.shape, x.dtype, start, x.strides)
                return self.add("operation", "view", _view, (known, *static), {}, x)[0]
            base = getattr(base, "base", None)
        owner = owner_of(x)
        for t in self._tensors if owner is not x else ():
            data = t.data  # parameters lie side by side in one array
            if isinstance(data, np.ndarray) and owner_of(data) is owner and _contains(data, x):
                start = x.__array_interface__["data"][0] - data.__array_interface__["data"][0]
                static = (x.shape, x.dtype, start, x.strides)
                return self.add(
                    "operation", "view", _view, (self.place_of(data, t), *static), {}, x
                )[0]
        return None

    def template(self, x: Any) -> Any:
        """Return an argument with places for the values of the call."""
        known = self._places.get(id(x))
        if known is not None:
            return known
        if isinstance(x, _PLAIN):
            return x
        if isinstance(x, TensorBase):
            data: Any = x.data
            if getattr(x.node, "order", 0):
                self.place_of(data, x)
                return FreedTensor(self._places[id(data)], x.node)
            if isinstance(x.node, Leaf) and x.node.made_at > self.started:
                return OfTensor(self.place_of(data))  # its gradient is a value of the call
            if x.node is None and self._holder_of(data) is not None and not self.from_outside(x):
                return OfTensor(self.place_of(data))  # another Tensor of memory from outside
            if x.node is not None or (
                id(data) not in self._places and not getattr(data, "is_traced", False)
            ):
                self.undo.protect(x)
                return x  # a Tensor from outside
            return OfTensor(self.place_of(data))
        if getattr(x, "is_traced", False):
            return x.place
        if isinstance(x, np.ndarray):
            return self.place_of(x)
        if type(x) is tuple or isinstance(x, list):
            return (tuple if type(x) is tuple else list)([self.template(part) for part in x])
        if type(x) is dict:
            return {name: self.template(part) for name, part in x.items()}
        if isinstance(x, tuple) and hasattr(x, "_make") and not isinstance(x, Key):
            return type(x)._make([self.template(part) for part in x])
        return x

    # Entries ------------------------------------------------------------------------------------

    def add(
        self, kind: str, name: str, function: Any, args: Any, kwargs: Any, value: Any
    ) -> tuple[Place, ...]:
        """Add an entry, and return the places of its results."""
        several = isinstance(value, tuple) and not isinstance(value, Key)
        parts = tuple(value) if several else (value,)
        if not several and id(value) in self._places:
            if kind == "operation":
                return (self._places[id(value)],)  # it gave what it was given
            value, parts = None, (None,)
        places = tuple([self.place() for _ in parts])
        for place, part in zip(places, parts, strict=True):
            if part is not None and type(part) not in (int, float, str):
                known = self.know(part, place)
                if known != place:
                    self._copied(kind, name, function, args, kwargs, value)
                    return tuple([self._places.get(id(part)) or place for part in parts])
        self.entries.append(
            Entry(kind, name, function, tuple(args), kwargs, places, several, parts, where())
        )
        return places

    def _copied(self, kind: str, name: str, f: Any, args: Any, kwargs: Any, value: Any) -> None:
        """Add an entry whose result holds arrays that are known already."""
        fresh = tuple([self.place() for _ in value])
        self.entries.append(
            Entry(kind, name, f, tuple(args), kwargs, fresh, True, tuple(value), where())
        )

    def settle(self, x: Any) -> None:
        """Give Tensors plain arrays, which are known by identity."""
        if isinstance(x, TensorBase):
            data: Any = x.data
            if getattr(data, "is_traced", False):
                x.data = data.value
        elif type(x) in (tuple, list):
            for part in x:
                self.settle(part)
        elif type(x) is dict:
            for part in x.values():
                self.settle(part)

    def from_outside(self, t: Any) -> bool:
        """Return whether a Tensor is not one that the call has made."""
        return any(t is x for x in (*self._tensors, *self.sources.values()))

    def plain_arrays(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Return the inputs of an operation with plain arrays, which are known by identity."""
        for x in inputs:
            data: Any = x.data if isinstance(x, TensorBase) else None
            if getattr(data, "is_traced", False):
                x.data = self._with_identity(data)
        return tuple(
            [self._with_identity(x) if getattr(x, "is_array", False) else x for x in inputs]
        )

    def _with_identity(self, x: Any) -> Any:
        """Return the plain array of a recorded one; of a single truth value, an array of its own.

        There are two objects of ``np.bool_``, so no place is known by one of them.
        """
        value = x.value
        if isinstance(value, np.bool_):
            value = np.array(value)
            self._places[id(value)] = x.place
            self._kept.append(value)
        return value

    def compute(self, name: str, function: Any, *args: Any) -> Any:
        """Call a function of arrays, and record it."""
        if is_vectorized(args):
            return plain(function(*args))
        with suspended():
            value = function(*args)
        self.add("operation", name, function, [self.template(x) for x in args], {}, value)
        return value

    def effect(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function that changes state, and record the call."""
        arguments = [self.template(x) for x in args]
        keywords = {name: self.template(x) for name, x in kwargs.items()}
        for x in (*args, *kwargs.values()):
            self.settle(x)
            self.undo.protect(x)
        with suspended():
            value = function(*values_in(args), **values_in(kwargs))
        self._finish("effect", function, arguments, keywords, value)
        return value

    def read(self, function: Any, *args: Any) -> Any:
        """Call a function whose result depends on state, and record the call."""
        for x in args:
            self.undo.protect(x)
        with suspended():
            value = function(*args)
        self._finish("read", function, args, {}, value)
        return value

    def _finish(self, kind: str, function: Any, args: Any, kwargs: Any, value: Any) -> None:
        name = getattr(function, "__qualname__", repr(function))
        if isinstance(value, TensorBase):
            self.add(kind, name, partial(_array_of, function), args, kwargs, value.data)
            return
        array = isinstance(value, (np.ndarray, np.generic, Key))
        self.add(kind, name, function, args, kwargs, value if array else None)

    def copied(self, x: Any, dtype: Any) -> Any:
        """Copy an array, and record the copy."""
        given = x.place if getattr(x, "is_traced", False) else self.place_of(x)
        if not isinstance(plain(x), (np.ndarray, np.generic)):
            return x.astype(x.dtype if dtype is None else dtype)  # of an ensemble
        value = np.array(plain(x), dtype)
        if isinstance(given, Place):
            self.add("operation", "copy", np.array, (given, dtype), {}, value)
        return value

    # Plain arrays that are written into ---------------------------------------------------------

    def owned(self, x: Any, whole: bool = False) -> None:
        """Prepare for a write to an array: one that the call has made is made anew each time.

        Parameters
        ----------
        x : array
        whole : bool
            Whether all of it is written, so that what it holds does not matter.
        """
        if not isinstance(x, np.ndarray):
            return
        if whole and id(x) not in self._places and x.base is None and x.flags.c_contiguous:
            self.add("operation", "empty", np.empty, (x.shape, x.dtype), {}, x)
            return
        place = self.place_of(x)
        if place in self.constants:
            pristine = self._constant(x.copy())
            del self._places[id(x)]
            self.add("operation", "copy", np.array, (pristine,), {}, x)
        elif place in self.sources and not any(self.sources[place] is t for t in self._tensors):
            self.made.add(place)
            del self._places[id(x)]
            self.add("operation", "copy", np.array, (place,), {}, x)

    def was_written(self, x: Any) -> None:
        """Remember what a plain array of the call holds after a write that is recorded."""
        if isinstance(x, np.ndarray):
            line = location_of(frame_outside("optlab", "numpy"))
            self._written[id(x)] = (x, checksum_of(x), line)

    def check_written(self) -> None:
        """Refuse a call that has written to such an array in a way that was not recorded."""
        for x, before, line in self._written.values():
            if checksum_of(x) != before:
                self.refuse(
                    "a write by NumPy to an array that the call has made: make it of the arguments "
                    "(np.zeros_like(x)), or write to a Tensor; it",
                    line,
                )

    def has_mask(self, index: Any) -> bool:
        """Return whether an index holds truth values that the call has computed."""
        if isinstance(index, tuple):
            return any(map(self.has_mask, index))
        if getattr(index, "dtype", None) != np.bool_ or not getattr(index, "ndim", 0):
            return False
        return self.template(index) not in self.constants

    # What cannot be captured --------------------------------------------------------------------

    def refuse(self, what: str, where: str = "") -> None:
        """Raise CaptureError where that is wanted, and end the recording where it is not."""
        reason = f"{what} ({where or location_of(frame_outside('optlab', 'numpy'))})"
        if self.closed:
            return
        self.dead = self.dead or reason
        if self.strict:
            raise CaptureError(f"{reason}: {INSTEAD}")

    def end(self, what: str, frame: FrameType | None = None) -> None:
        """End the recording at a frame of the user, and let the call itself end as it does."""
        where = location_of(frame or frame_outside("optlab", "numpy", "logging"))
        self.dead = self.dead or f"{what} ({where})"

    def line_of_write(self, x: Any) -> str:
        """Return the line of the first effect on an array of the caller; empty if none is known."""
        place = self.known(x)
        for entry in self.entries:
            if entry.kind == "effect" and place in places_in([entry.arguments, entry.keywords]):
                return location(*entry.where)
        return ""

    def refuse_outcome(self, what: str, instead: str = INSTEAD) -> None:
        """Do the same for what is wrong with the whole call."""
        if self.strict:
            raise CaptureError(f"{what}: {instead}")
        self.dead = self.dead or what


def _array_of(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs).data
