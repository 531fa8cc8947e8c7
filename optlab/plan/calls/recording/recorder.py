"""The recorder of a call: every operation, draw and write of it, in order, with its data flow.

The call runs for real, on its real arrays; the engine and the arrays of the call report here what
they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from optlab.autograd.tape.apply import recorded_calls
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.grad_mode import grad_mode
from optlab.backend.call_recorder import ELEMENTARY, suspended
from optlab.backend.random import Key, current_stream, next_key, program_stream
from optlab.plan.calls.entries import Entry
from optlab.plan.calls.places import places_in
from optlab.plan.calls.recording.arrays import CallArray, is_vectorized, outside, plain, values_in
from optlab.plan.calls.recording.checked_facts import CheckedFacts
from optlab.plan.calls.recording.gradients import RecordedGradients
from optlab.plan.calls.recording.numbers import CallNumber
from optlab.plan.calls.recording.random_draws import CallKey
from optlab.plan.calls.recording.values import where
from optlab.plan.plan import Place
from optlab.plan.tracer import COMPUTE

#: Functions that read shapes and dtypes alone.
_OF_SHAPES = {
    np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.isrealobj, np.iscomplexobj,
    np.common_type, np.shares_memory, np.may_share_memory, np.broadcast_shapes,
}  # fmt: skip

#: Functions whose result has a shape that depends on values.
_OF_MANY_SHAPES = frozenset([
    "nonzero", "flatnonzero", "argwhere", "unique", "unique_all", "unique_counts", "unique_values",
    "unique_inverse", "compress", "extract", "trim_zeros", "union1d", "intersect1d", "setdiff1d",
    "setxor1d", "bincount", "histogram_bin_edges",
])  # fmt: skip


#: Operations of ``ol.vmap`` with a level, which is another one in every call; arrays have none.
_OF_LEVELS = frozenset(["enter", "leave", "share", "total"])
_NO_LEVEL = -1


class Recorder(RecordedGradients):
    """What a call does, while it runs: every operation, draw and write of it, in order."""

    def forward(self, operation: Any, forward: Any, inputs: Sequence[Any]) -> Any:
        """Return a forward function that records its call."""
        return partial(_run_recorded, self, operation, inputs, forward)

    def rule(
        self, name: str, run: Any, g: Any, saved: Any, static: Any, calls: dict[Any, Any]
    ) -> Any:
        """Run a derivative rule on arrays, and record it."""
        if is_vectorized((g, saved)) or any(map(is_vectorized, static.values())):
            return plain(run(g, saved, static))
        if name == "leave backward":
            return run(CallArray(self, self.place_of(g), g), saved, static)
        if name.removesuffix(" backward") in _OF_LEVELS:
            static = {**static, "level": _NO_LEVEL}
        arguments = (self.template(g), self.template(saved), self.template(static))
        with suspended():
            part = run(plain(g), values_in(saved), values_in(static))
        if part is None:
            return None
        keywords: dict[str, Any] = {}
        call = calls.get(run)
        if call is not None:  # the rule itself, which spares a call
            run, reads, names = call
            keywords = {key: arguments[2][key] for key in names if key in static}
            arguments = (arguments[0], *(arguments[1][i] for i in reads))
        if not self._in_steps(run, arguments, keywords, part):
            self.add("operation", name, run, arguments, keywords, part)
        return part

    def _in_steps(
        self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], value: Any
    ) -> bool:
        """Record the calls of which a function consists, if these are known; return whether."""
        write = ELEMENTARY.get(function)
        if write is None or not isinstance(value, (np.ndarray, np.generic)):
            return False
        plain = [self._values.get(x) if isinstance(x, Place) else x for x in arguments]
        named = {k: self._values.get(x) if isinstance(x, Place) else x for k, x in keywords.items()}
        if any(x is None for x in (*plain, *named.values())):
            return False
        made: list[tuple[Any, tuple[Any, ...], Any]] = []
        with suspended():
            steps = write(*plain, **named)
            result: Any = None
            while True:
                try:
                    call, *given = steps.send(result)
                except StopIteration:
                    break
                result = call(*given)
                made.append((call, tuple(given), result))
        if not made or not (
            result.dtype == value.dtype
            and result.strides == value.strides
            and result.tobytes() == value.tobytes()
        ):
            return False
        for call, given, result in made[:-1]:
            self.add(
                "operation", _name_of(call), call, [self.template(x) for x in given], {}, result
            )
        call, given, _ = made[-1]
        self.add("operation", _name_of(call), call, [self.template(x) for x in given], {}, value)
        return True

    def next_key(self) -> Any:
        """Return the next random key, which a plan draws anew."""
        with suspended():
            key = next_key()
        drawn = self._keys.get(key)
        if drawn is not None:
            return drawn  # drawn again, by a recomputation
        made = self._keys[key] = CallKey(key.seed, key.path)
        outer = self.undo.program.key
        if program_stream() is not None or self.undo.program is current_stream():
            self.add("read", "next_key", next_key, (), {}, made)
        elif key.seed == outer.seed and key.path[: len(outer.path)] == outer.path:
            below = key.path[len(outer.path) :]
            self.add("read", "next_key", _key_below, (below,), {}, made)
        else:  # of a scope with a seed of its own
            self.add("read", "next_key", Key, (key.seed, key.path), {}, made)
        return made

    def draw(self, name: str, method: Any, generator: Any, *args: Any, **kwargs: Any) -> Any:
        """Draw from a generator, and record the draw."""
        arguments = [self.template(x) for x in (generator, *args)]
        keywords = {k: self.template(x) for k, x in kwargs.items()}
        with suspended():
            value = method(generator, *values_in(args), **kwargs)
        if not isinstance(value, (np.ndarray, np.generic)):
            value = np.asarray(value)[()]
            method = partial(_as_array, method)
        (place,) = self.add("read", name, method, arguments, keywords, value)
        return CallArray(self, place, value)

    # CaptureArray writes its operations here, as into a `Tracer`.

    def write(self, name: str, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Compute with plain arrays, and record the operation."""
        compute = function or COMPUTE[name]
        if is_vectorized(args):
            return compute(*args, **kwargs)
        if self.closed:  # a value of it lives on
            return compute(*values_in(args), **values_in(kwargs))
        self.check_shapes(compute, args)
        arguments = [self.template(x) for x in args]
        keywords = {k: self.template(x) for k, x in kwargs.items()}
        with suspended():
            value = compute(*values_in(args), **values_in(kwargs))
        if isinstance(value, (np.ndarray, np.generic)):
            (place,) = self.add("operation", name, compute, arguments, keywords, value)
            if self.numbers and isinstance(value, np.generic):
                given = places_in([arguments, keywords])
                if given and self.numbers.issuperset(given):
                    self.numbers.add(place)  # it depends on single numbers alone
            return CallArray(self, place, value)
        if function in _OF_SHAPES:
            return value
        if isinstance(value, (tuple, list)) and all(
            isinstance(x, (np.ndarray, np.generic)) for x in value
        ):
            tupled = partial(_as_tuple, compute)
            places = self.add("operation", name, tupled, arguments, keywords, tuple(value))
            made = [CallArray(self, p, x) for p, x in zip(places, value, strict=True)]
            return type(value)(made) if type(value) is list else built_like(value, made)
        self.refuse(f"{name}, which gives a value of Python")
        return value

    def meet(self, x: Any) -> None:
        """Learn of the Tensors among arguments, whose arrays are about to be read."""
        if isinstance(x, TensorBase):
            self.place_of(x.data, x)
        elif isinstance(x, (tuple, list)):
            for part in x:
                self.meet(part)
        elif isinstance(x, dict):
            for part in x.values():
                self.meet(part)

    def check_shapes(self, function: Any, args: Any) -> None:
        """Refuse a function whose result has a shape that depends on values."""
        name = getattr(function, "__name__", "")
        if (
            name in _OF_MANY_SHAPES
            or (name == "where" and len(args) == 1)
            or (name in ("getitem", "take") and len(args) > 1 and self.has_mask(args[1]))
            or (name == "repeat" and len(args) > 1 and not isinstance(args[1], int))
        ):
            self.refuse(f"{name} of values, whose number decides the shape of the result,")

    def as_array(self, t: Any, writeable: bool = True) -> Any:
        """Return a copy of the values of a Tensor as an array that is recorded."""
        data = t.data
        if getattr(data, "is_traced", False) or is_vectorized(data):
            return data
        place = self.place_of(data, t)
        copied = np.array if writeable else _read_only
        copy = copied(data)
        (made,) = self.add("operation", "numpy", copied, (place,), {}, copy)
        return CallArray(self, made, copy)

    def traced(self, t: Any) -> Any:
        """Return the values of a Tensor as an array that is recorded; not a copy."""
        data = t.data
        if getattr(data, "is_traced", False) or is_vectorized(data):
            return data
        return CallArray(self, self.place_of(data, t), data)

    def handed_out(self, array: Any) -> Any:
        """Return an array that the user gets as one that is recorded."""
        if not isinstance(array, (np.ndarray, np.generic)):
            return array
        place = self.place_of(array)
        return CallArray(self, place, array) if isinstance(place, Place) else array

    def item(self, t: Any, position: Any) -> Any:
        """Return what stands for an element of a Tensor."""
        data = plain(t.data)
        value = data.item(*position)
        place = t.data.place if data is not t.data else self.place_of(data, t)
        return self.item_at(place, value, position)

    def item_at(self, place: Any, value: Any, position: Any) -> Any:
        """Return what stands for a number that is taken out: it may be returned."""
        if not isinstance(place, Place):
            return value
        number = CallNumber(self, self.place(), value, taken=True)
        self._append("operation", "item", _item, (place, *position), {}, number.place, value)
        return number

    def number(self, function: Any, *args: Any) -> Any:
        """Return what stands for a number that may change from call to call."""
        with suspended():
            value = function(*args)
        if type(value) is not float:
            return value
        number = CallNumber(self, self.place(), value)
        self._append("read", "setting", function, args, {}, number.place, value)
        return number

    def of_numbers(self, name: str, function: Any, *args: Any) -> Any:
        """Compute with numbers that change from call to call; arrays and Tensors come first."""
        if any(not isinstance(x, (CallNumber, int, float)) for x in args):
            return NotImplemented
        if self.closed:
            return function(*[plain(x) for x in args])
        for x in args:
            if getattr(x, "taken", False):
                self.refuse(".item(), whose number is used further,", x.where)
        value = function(*[plain(x) for x in args])
        derived = any(getattr(x, "argument", False) for x in args)
        number = CallNumber(self, self.place(), value, argument=derived)
        arguments = tuple([self.template(x) for x in args])
        self._append("operation", name, function, arguments, {}, number.place, value)
        return number

    def _append(
        self, kind: str, name: str, f: Any, args: Any, kwargs: Any, place: Place, value: Any
    ) -> None:
        self.entries.append(Entry(kind, name, f, args, kwargs, (place,), False, (value,), where()))

    def written(self, function: Any, t: Any, *args: Any) -> None:
        """Write to a Tensor in place, and record that."""
        self.undo.protect(t)
        if not any(t is other for other in self._tensors):
            self.owned(t.data)
        arguments = [self.template(x) for x in (function, t, *args)]
        with suspended():
            function(t, *[plain(x) for x in args])
        self.add("effect", function.__name__, _write, arguments, {}, t.data)

    def pure(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of arrays, whose results are arrays and facts; record the call."""
        arguments = [self.template(x) for x in args]
        keywords = {name: self.template(x) for name, x in kwargs.items()}
        with suspended():
            value = function(*[plain(x) for x in args], **{k: plain(x) for k, x in kwargs.items()})
        parts = value if isinstance(value, tuple) else (value,)
        arrays = tuple([x for x in parts if isinstance(x, np.ndarray)])
        facts = tuple([None if isinstance(x, np.ndarray) else x for x in parts])
        checked = CheckedFacts(function, facts)
        self.add("operation", function.__name__, checked, arguments, keywords, arrays)
        return value

    def taken(self, tensor: Any, call: str) -> Any:
        """Refuse that a value becomes a number of Python, or return what stands for it."""
        self.refuse(f"{call} takes the value of a Tensor out (return the Tensor, or t.item())")
        return None


def built_like(value: Any, parts: Any) -> Any:
    """Return parts in a tuple like a value: a plain one, or a named one."""
    return getattr(type(value), "_make", tuple)(parts)


def _write(function: Any, t: Any, *args: Any) -> Any:
    with grad_mode(False):
        function(t, *args)
    return t.data


def _key_below(place: tuple[Any, ...]) -> Key:
    """Return a key of a scope that the call opens."""
    return current_stream().key.fold(*place)


def _read_only(x: Any) -> Any:
    copy = np.array(x)
    copy.flags.writeable = False
    return copy


def _item(x: Any, *position: int) -> Any:
    return x.item(*position)


def _as_array(function: Any, *args: Any, **kwargs: Any) -> Any:
    return np.asarray(function(*args, **kwargs))[()]


def _as_tuple(function: Any, *args: Any, **kwargs: Any) -> Any:
    return tuple(function(*args, **kwargs))


def _name_of(function: Any) -> str:
    """Return the name of a function of NumPy; that of a reduction names its ufunc, too."""
    ufunc = getattr(function, "__self__", None)
    name: str = function.__name__
    return f"{ufunc.__name__}.{name}" if isinstance(ufunc, np.ufunc) else name


def _run_recorded(
    recorder: Recorder, operation: Any, inputs: Any, forward: Any, /, *values: Any, **static: Any
) -> Any:
    """Run a forward function and record it."""
    if operation.name == "enter" and not is_vectorized(values):
        (x,) = values  # from here on its members record what is computed of them
        return forward(CallArray(recorder, recorder.place_of(x, inputs[0]), x), **static)
    if is_vectorized(values) or any(map(is_vectorized, static.values())):
        return outside(forward(*values, **static))
    arguments = []
    given_values = []
    for x, given in zip(values, inputs, strict=True):
        tensor = given if isinstance(given, TensorBase) else None
        if getattr(x, "is_traced", False):
            if getattr(x, "taken", False):
                recorder.refuse(".item(), whose number is used further,", x.where)
            arguments.append(x.place)
            x = x.value
        elif isinstance(x, (int, float)) and not isinstance(x, np.generic):
            arguments.append(x)
        elif x is given or tensor is not None:
            arguments.append(recorder.place_of(x, tensor))
        else:  # made of a list, say
            arguments.append(recorder.template(x))
        given_values.append(x)
    keywords = {name: recorder.template(x) for name, x in static.items()}
    if operation.name in _OF_LEVELS:
        keywords["level"] = _NO_LEVEL
    if operation.name == "getitem" and recorder.has_mask(static["index"]):
        recorder.refuse("an index of truth values, whose number decides the shape,")
    if operation.name == "repeat" and not isinstance(static.get("repeats"), int):
        recorder.refuse("repeat by numbers that decide the shape of the result,")
    with suspended():
        y = forward(*given_values, **values_in(static))
    if not recorder._in_steps(forward, arguments, keywords, y):
        recorder.add("operation", operation.name, forward, arguments, keywords, y)
    return y


recorded_calls.append(_run_recorded)
