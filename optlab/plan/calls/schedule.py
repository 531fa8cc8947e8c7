"""The schedule of a program on fixed memory: which operations are calls, which are kernels.

A program runs up to its first effect on memory that stays the same: its buffers, the arrays of
parameters, views of these. Operations between two calls (of a product, of `exp`) are gathered into
kernels (`optlab.plan.numba_steps`), which may run later than the program has them, as long as
nobody reads or writes their memory before.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optlab.plan.calls.entries import Entry
from optlab.plan.calls.loops import picked_of, step_of
from optlab.plan.calls.places import places_in
from optlab.plan.calls.program import Program, Value, empty_like
from optlab.plan.calls.recording.values import data_of
from optlab.plan.calls.source import takes_out
from optlab.plan.kernel_steps import (
    Elementwise,
    Finite,
    LargestOfRows,
    Step,
    SumOfAll,
    SumOfRows,
)
from optlab.plan.numba_codegen import NoLoopError
from optlab.plan.numba_steps import StepKernel
from optlab.plan.plan import Place

#: Arrays among the arguments of up to so many bytes are copied to fixed memory for kernels.
_COPIED = 1 << 14
#: Results of up to so many bytes that have no buffer get memory of their own in a schedule.
_OWN = 1 << 14
#: Steps that find out whether all elements of what they read are finite.
_CHECKING = (Elementwise, LargestOfRows, SumOfRows, SumOfAll, Finite)


#: Functions that compute nothing.
_MOVES = (
    np.array, np.copy, np.take, np.concatenate, np.stack, np.broadcast_to, np.take_along_axis,
    operator.getitem,
)  # fmt: skip


#: Functions of integers that report no floating-point errors.
_WITHOUT_ERRORS = (
    np.add, np.subtract, np.multiply, np.negative, np.absolute, np.maximum, np.minimum, np.clip,
    np.add.reduce, np.maximum.reduce, np.minimum.reduce, np.bitwise_and, np.bitwise_or, None,
)  # fmt: skip


class Call(NamedTuple):
    """An entry that is called.

    Attributes
    ----------
    number : int
        Of the entry.
    entry : Entry
    out : array or None
        Where it writes its result.
    """

    number: int
    entry: Entry
    out: Any


class Copy(NamedTuple):
    """A value that differs from call to call, copied to fixed memory."""

    place: Place
    out: Any


class Run(NamedTuple):
    """A kernel, and the numbers of the entries that it does."""

    kernel: StepKernel
    entries: list[int]


class Schedule:
    """What a program does before its first effect, on fixed memory.

    Parameters
    ----------
    program : Program
    end : int
        The number of the first entry that is not scheduled.
    given : mapping of Place to array
        Memory for results that are handed to a step.
    compiled : bool
        Whether there are kernels.

    Attributes
    ----------
    actions : list of Call, Copy or Run
    fixed : dict of Place to array
        The values whose memory is always the same.
    cells : set of Place
        Of these, single numbers.
    sources : list of (Tensor, array)
        What Tensors have to hold.
    silent : bool
        Whether kernels find every value that is not finite, so that no call has to report one.
    """

    def __init__(
        self, program: Program, end: int, given: Mapping[Place, Any], compiled: bool
    ) -> None:
        self.program, self.end, self.compiled = program, end, compiled
        self.given = dict(given)
        self.actions: list[Call | Copy | Run] = []
        self.fixed: dict[Place, Any] = {
            p: x for p, x in program.constants.items() if type(x) is np.ndarray
        }
        self.cells: set[Place] = set()
        self.sources: list[tuple[Any, Any]] = []
        self.silent = compiled
        self._copies: dict[Place, Any] = {}
        self._entries = program.entries[:end]
        rest = [x for e in program.entries[end:] for x in (*e.arguments, *e.keywords.values())]
        #: The values that live on: results of the call, operands of effects.
        self._escaping = {
            program.group.get(p, p) for p in places_in([*rest, program.output])
        } - self.given.keys()
        self._readers: dict[Place, list[int]] = {}
        for i, entry in enumerate(self._entries):
            for place in places_in([*entry.arguments, *entry.keywords.values()]):
                self._readers.setdefault(place, []).append(i)
        self._steps: dict[int, Step] = {}
        if compiled:
            self._find_steps()
        self._waiting: list[tuple[int, Step]] = []
        for i, entry in enumerate(self._entries):
            self._schedule(i, entry)
        for place, array in self.given.items():
            if self.fixed.get(place) is not array:  # a view, or of an opaque function
                self._flush()
                self.actions.append(Copy(place, array))
                self._copies[place] = array
                self._check(place, array)
        self._flush()
        if not any(isinstance(one, Run) for one in self.actions):
            self.silent = False

    # Steps of kernels ---------------------------------------------------------------------------

    def _find_steps(self) -> None:
        """Choose the entries that kernels do; those that nothing but shapes speaks against."""
        values = self.program.values
        for i, entry in enumerate(self._entries):
            step = step_of(entry, values) or picked_of(entry, values, self.program.constants)
            if step is not None and all(self._may_be_fixed(p) for p in step.reads):
                assert step.result is not None
                value = values[step.result]
                if self._has_memory(step.result, value) and self._is_loop(step, values):
                    self._steps[i] = step

    def _may_be_fixed(self, place: Place) -> bool:
        value = self.program.values.get(place)
        return value is not None and _contiguous(value)

    def _has_memory(self, place: Place, value: Value) -> bool:
        """Return whether a result of a kernel may be at a fixed place."""
        if place in self.given or (value.shape == () and value.strides == ()):
            return True
        if not _contiguous(value) or self.program.group.get(place, place) in self._escaping:
            return False
        return place in self.program.buffer_of or value.nbytes <= _OWN

    def _is_loop(self, step: Step, values: Mapping[Place, Value]) -> bool:
        """Return whether a step has a loop, tried on memory of its own."""
        assert step.result is not None
        arrays = {
            p: np.ndarray(
                values[p].shape, values[p].dtype, np.empty(max(8, values[p].nbytes), np.uint8)
            )
            for p in (*step.reads, step.result)
        }
        try:
            StepKernel([step], arrays, {step.result})
        except NoLoopError:
            return False
        return True

    # Actions ------------------------------------------------------------------------------------

    def _schedule(self, i: int, entry: Entry) -> None:
        if entry.kind == "read" and entry.function is data_of:
            (tensor,) = entry.arguments
            if type(tensor.data) is np.ndarray:
                value = self.program.values[entry.results[0]]
                if (tensor.data.shape, tensor.data.dtype) != (value.shape, value.dtype):
                    raise NoLoopError
                self.fixed[entry.results[0]] = tensor.data
                self.sources.append((tensor, tensor.data))
                return
        if self._is_view(entry):
            return
        step = self._steps.get(i)
        if step is not None and self._gather(i, step):
            return
        out = self._out(entry)
        if out is None:
            if entry.kind == "operation":
                self._flush()
            self.actions.append(Call(i, entry, None))
            self._follow(entry)
            return
        read = [self.fixed[p] for p in places_in(entry.arguments) if p in self.fixed]
        if self._collides(read, [out]):
            self._flush()
        (place,) = entry.results
        self.fixed[place] = out
        self.actions.append(Call(i, entry, out))
        self._check(place, out, entry.function)

    def _follow(self, entry: Entry) -> None:
        """Find out whether values that are not finite may stay unknown."""
        if entry.kind == "read":
            self.silent = False  # a draw, say, of a scope, which another context does not have
            return
        if entry.function in _MOVES:
            return
        for place in entry.results:
            value = self.program.values.get(place)
            if value is None or value.dtype.kind in "iub" or self._is_read(place):
                continue
            if self.program.group.get(place, place) == place:
                self.silent = False

    def _is_view(self, entry: Entry) -> bool:
        """Make a view of fixed memory once; return whether an entry is one."""
        if entry.kind != "operation" or len(entry.results) != 1 or entry.several:
            return False
        (place,) = entry.results
        value = self.program.values.get(place)
        operands = places_in([*entry.arguments, *entry.keywords.values()])
        if (
            value is None
            or self.program.group.get(place, place) == place
            or not operands
            or any(p not in self.fixed or p in self.cells for p in operands)
        ):
            return False
        found = entry.function(
            *[self._made(x) for x in entry.arguments],
            **{name: self._made(x) for name, x in entry.keywords.items()},
        )
        same = (
            type(found) is np.ndarray
            and (found.shape, found.dtype, found.strides)
            == (value.shape, value.dtype, value.strides)
            and any(np.may_share_memory(found, self.fixed[p]) for p in operands)
        )
        if same:
            self.fixed[place] = found
        return same

    def _made(self, x: Any) -> Any:
        """Return an argument with arrays in place of places."""
        if isinstance(x, Place):
            return self.fixed[x]
        if type(x) in (tuple, list):
            return type(x)([self._made(part) for part in x])
        return x

    def _out(self, entry: Entry) -> Any:
        """Return the fixed memory for the result of a call; None if it has none."""
        if not takes_out(entry):
            return None
        (place,) = entry.results
        if place in self.given:
            return self.given[place]
        number = self.program.buffer_of.get(place)
        return None if number is None else self.program.buffers[number]

    def _gather(self, i: int, step: Step) -> bool:
        """Add a step to the waiting ones; return False if its operands are not fixed."""
        for place in step.reads:
            if place not in self.fixed and place not in self._copies:
                value = self.program.values[place]
                if value.nbytes > _COPIED:
                    return False
        for place in step.reads:
            if place not in self.fixed:
                value = self.program.values[place]
                if place not in self._copies:
                    self._copies[place] = np.empty(value.shape, value.dtype)
                    self.actions.append(Copy(place, self._copies[place]))
        assert step.result is not None
        self.fixed[step.result] = self._memory(step.result)
        self._waiting.append((i, step))
        return True

    def _memory(self, place: Place) -> Any:
        """Return the memory of a result of a kernel."""
        if place in self.given:
            return self.given[place]
        number = self.program.buffer_of.get(place)
        if number is not None:
            return self.program.buffers[number]
        value = self.program.values[place]
        if value.shape == ():
            self.cells.add(place)
        return empty_like(value._replace(strides=value.strides or ()))

    def _memory_of(self, place: Place) -> Any:
        """Return the memory from which kernels read a value."""
        return self.fixed[place] if place in self.fixed else self._copies[place]

    def _check(self, place: Place, array: Any, function: Any = None) -> None:
        """Let a kernel find out whether the result of a call is finite."""
        if not self.compiled or array.dtype.kind in "iub":
            if array.dtype.kind in "iu" and function not in _WITHOUT_ERRORS:
                self.silent = False  # a division of integers by zero is 0
            return
        if self._is_read(place):
            return
        if array.dtype not in (np.float32, np.float64) or not array.flags.c_contiguous:
            self.silent = False
            return
        self._waiting.append((-1, Finite(place)))

    def _is_read(self, place: Place) -> bool:
        """Return whether a kernel reads all elements of a value, and finds what is not finite."""
        value = self.program.values[place]
        for i in self._readers.get(place, ()):
            step = self._steps.get(i)
            if step is not None:
                if isinstance(step, _CHECKING):
                    return True
                continue
            entry = self._entries[i]
            (result,) = entry.results if len(entry.results) == 1 else (None,)
            if result is None or self.program.group.get(result, result) == result:
                continue
            view = self.program.values.get(result)
            if view is not None and view.nbytes == value.nbytes and self._is_read(result):
                return True
        return False

    def _collides(self, read: Sequence[Any], written: Sequence[Any]) -> bool:
        """Return whether a call meets memory of the waiting steps."""
        for _, step in self._waiting:
            reads = [self._memory_of(p) for p in step.reads]
            if step.result is not None:
                result = self.fixed[step.result]
                if any(np.may_share_memory(result, x) for x in (*read, *written)):
                    return True
            if any(np.may_share_memory(x, y) for x in reads for y in written):
                return True
        return False

    def _flush(self) -> None:
        """Make a kernel of the waiting steps."""
        if not self._waiting:
            return
        inside = {i for i, _ in self._waiting}
        results = {step.result for _, step in self._waiting if step.result is not None}
        group = self.program.group
        stored = {
            p
            for p in results
            if p in self.given
            or group.get(p, p) in self._escaping
            or not inside.issuperset(self._readers.get(p, ()))
        }
        steps = [step for _, step in self._waiting]
        arrays = {p: self._memory_of(p) for step in steps for p in step.reads}
        arrays |= {p: self.fixed[p] for p in results}
        kernel = StepKernel(steps, arrays, stored)
        self.actions.append(Run(kernel, sorted(i for i in inside if i >= 0)))
        self._waiting = []

    @property
    def kernels(self) -> list[StepKernel]:
        """All kernels."""
        return [one.kernel for one in self.actions if isinstance(one, Run)]


def _contiguous(value: Value) -> bool:
    if value.strides is None:
        return False  # no array
    wanted = value.dtype.itemsize
    for length, stride in zip(reversed(value.shape), reversed(value.strides), strict=True):
        if length != 1 and stride != wanted:
            return False
        wanted *= length
    return True
