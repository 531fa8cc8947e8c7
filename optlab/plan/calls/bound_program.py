"""Programs bound to their memory: what a replay does in the shortest way.

A program reads its parameters, makes its views and writes its gradients anew in every call. Where
all of these arrays are those of the last call, none of that is needed: the calls of NumPy have
fixed arrays as operands, neighboring operations are compiled kernels, and gradients are written
where the step of the optimizer reads them. A bound program finds out first whether that holds, and
changes nothing before its last kernel has said that all values are finite; otherwise the program
itself runs, from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any, NamedTuple, Protocol

import numpy as np

from optlab.autograd.tape.nodes import ZERO
from optlab.backend import events, random
from optlab.plan import executors
from optlab.plan.calls.entries import Entry
from optlab.plan.calls.places import places_in
from optlab.plan.calls.program import Program, Value
from optlab.plan.calls.recording.recorded_pass import announce, collect
from optlab.plan.calls.schedule import Copy, Run, Schedule
from optlab.plan.calls.source import Source
from optlab.plan.numba_codegen import NoLoopError
from optlab.plan.numba_steps import StepKernel
from optlab.plan.plan import Place

try:  # `np.geterr()` takes 0.8 us, this 0.04
    from numpy._core.umath import _extobj_contextvar

    error_state: Any = _extobj_contextvar.get
except ImportError:
    error_state = np.geterr

#: Replays before a program is bound, and after a call that it was not bound for.
AFTER = 16
#: How often a program is bound: one whose parameters get new memory in each call never pays off.
MOST_BINDINGS = 8
#: Replays between two questions whether there are kernels, or a step that gathers gradients; how
#: often it asks for the latter.
EACH = 32
MOST_QUESTIONS = 8
#: Values that are not finite, before kernels are given up.
MOST_FAULTS = 16
#: What a call costs besides its elements, in operations on elements.
_CALL = 2048
#: The most bytes of arrays in kernels, which are compared with NumPy on other memory.
_MOST_BYTES = 1 << 24


class UnboundError(Exception):
    """A program does nothing before its first effect that could be bound."""


class GathersGradients(Protocol):
    """A step of an optimizer that reads its gradients from memory of its own."""

    def memory_for_gradients(self) -> dict[Any, Any]:
        """Return the array for the gradient of each leaf."""

    def take_gathered(self, optimizer: Any) -> bool:
        """Take a step; return False, with nothing changed, if the general step has to."""


class Kernels:
    """The kernels of a schedule, compiled together."""

    def __init__(self, kernels: Sequence[StepKernel]) -> None:
        self.kernels = kernels

    @property
    def problem(self) -> str:
        """Why they cannot be compiled, if so."""
        return next((one.problem for one in self.kernels if one.problem), "")

    def look_up(self) -> bool:
        """Return whether all are compiled; load those that the cache has."""
        found = [one.look_up() for one in self.kernels]
        return all(found)

    def request(self) -> None:
        """Let a child process compile what the cache lacks."""
        for one in self.kernels:
            one.request()

    def compile(self) -> None:
        """Compile all now."""
        for one in self.kernels:
            one.compile()


class _Tail(NamedTuple):
    """Effects at the end of what is scheduled: gradients collected, a step, gradients cleared.

    Attributes
    ----------
    end : int
        The number of the first entry after it.
    finished : Entry or None
        That announces the end of the backward pass.
    """

    leaves: list[Any]
    places: list[Place]
    optimizer: Any
    step: Any
    cleared: Any
    end: int
    finished: Entry | None


def _teller(tail: _Tail) -> tuple[Any, Any, Any]:
    """Return what publishes the end of the backward pass and the step, given the first value.

    With it come the leaves of the backward pass, and what shows them their gradients. Those who
    listen to a plan keep no array, so they are shown the gradients where they are.
    """
    step_of, step, finished = tail.optimizer, events.step_finished, events.backward_finished
    replayed = events.step_replayed
    reached = () if tail.finished is None else tail.finished.arguments[1]
    memory = tail.step.memory_for_gradients()
    gradients = [(leaf, memory[leaf]) for leaf in tail.leaves]

    def show() -> None:
        for leaf, g in gradients:
            leaf.grad = g

    def tell(value: Any) -> None:
        short = replayed.listeners
        if reached and short and len(short) == len(step.listeners):
            for listener in short:
                listener(value, reached, step_of, show)
            return
        if reached:
            for listener in finished.listeners:
                listener(value, reached)
        if step.listeners:
            show()
            for listener in step.listeners:
                listener(step_of)

    return tell, reached, show


class _FixedSource(Source):
    """Writes entries with the names of fixed arrays in place of variables."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def place(self, place: Place) -> str:
        array = self._schedule.fixed.get(place)
        if array is None:
            return super().place(place)
        name = self.constant(array)
        return f"{name}[()]" if place in self._schedule.cells else name


class BoundProgram:
    """A program on the arrays of now.

    Parameters
    ----------
    program : Program
    compiled : bool
        Whether neighboring operations are kernels, which have to be compiled before `link`.

    Attributes
    ----------
    schedule : Schedule
    source : str
    replay : callable
        Once it is linked.

    Raises
    ------
    UnboundError
    """

    def __init__(self, program: Program, compiled: bool) -> None:
        self.program = program
        end = _first_effect(program)
        self.tail = _tail_of(program, end)
        given: dict[Place, Any] = {}
        if self.tail is not None:
            memory = self.tail.step.memory_for_gradients()
            given = {
                place: memory[leaf]
                for leaf, place in zip(self.tail.leaves, self.tail.places, strict=True)
            }
        try:
            self.schedule = Schedule(program, end, given, compiled)
        except NoLoopError:  # a parameter has another layout by now
            raise UnboundError from None
        self.kernels = Kernels(self.schedule.kernels)
        fixed = [
            one for one in self.schedule.actions if isinstance(one, Run) or one.out is not None
        ]
        if not fixed or (compiled and not self.kernels.kernels):
            raise UnboundError
        if compiled and sum(x.nbytes for x in self._memory().values()) > _MOST_BYTES:
            raise UnboundError
        sizes = [
            max(kernel.arrays[p].size for p in step.reads)
            for kernel in self.kernels.kernels
            for step in kernel.steps
        ]
        #: What NumPy does in place of the kernels, in operations on elements.
        self.work = sum(sizes) + _CALL * len(sizes)
        self.state: Any = None
        self.run_in: Any = None
        self.source = ""
        self.replay: Any = None

    def _memory(self) -> dict[int, Any]:
        return {id(x): x for one in self.kernels.kernels for x in one.arrays.values()}

    def follow(self) -> bool:
        """Take over how floating-point errors are treated now; return False where kernels may not.

        Kernels leave it to NumPy to report errors, and find no underflow.
        """
        if executors.chosen_executor() == "numpy":
            return False
        actions = dict(np.geterr())
        if actions["under"] != "ignore" or not {"warn", "ignore"}.issuperset(actions.values()):
            return False
        context = Context()  # of NumPy's settings alone
        context.run(np.seterr, all="ignore")
        self.state, self.run_in = error_state(), context.run
        return True

    def link(self, missed: Any, faulted: Any, poll: Any = None) -> None:
        """Write the replay, and make it.

        Parameters
        ----------
        missed, faulted : callable
            Called with the arguments where the arrays are others, where a value is not finite.
        poll : callable, optional
            Called in each replay.
        """
        program, schedule, tail = self.program, self.schedule, self.tail
        source = _FixedSource(schedule)
        self._written = source
        given = ", ".join(program.parameters())
        count = len(self.kernels.kernels)
        faults, none = bytearray(8 * count), bytes(8 * count)
        scope = source.scope
        scope |= {
            "missed": missed, "faulted": faulted, "bound": self, "faults": faults, "none": none,
            "error_state": error_state, "copyto": np.copyto, "poll": poll, "ZERO": ZERO,
            "stream_of_this_thread": random.stream_of_this_thread, "executors": executors,
        }  # fmt: skip
        body = self._body(source, memoryview(faults))
        draws = any(entry.name == "next_key" for entry in program.entries[: schedule.end])
        again = "stream.draws = draws; " if draws else ""
        lines = [f"def replay({given}):"]
        guards = self._guards(source)
        if guards:
            lines += [f"    if {' or '.join(guards)}:", f"        return missed({given})"]
        if poll is not None:
            lines.append("    poll()")
        if draws:
            lines += ["    stream = stream_of_this_thread()", "    draws = stream.draws"]
        parts = []
        if count and schedule.silent:
            needed = self._needed_later()
            names = "".join(f"v{p.number}, " for p in needed)
            parts = [f"def prefix({given}):", *body, "    if faults != none: return None"]
            parts += [f"    return ({names})", ""]
            lines.append(f"    found = bound.run_in(prefix, {given})")
            lines.append(f"    if found is None: {again}return faulted({given})")
            if needed:
                lines.append(f"    {names}= found")
        else:
            lines += body
            if count:
                lines.append(f"    if faults != none: {again}return faulted({given})")
        first = schedule.end
        if tail is not None:
            step, optimizer = source.constant(tail.step), source.constant(tail.optimizer)
            lines.append(f"    if not {step}.take_gathered({optimizer}):")
            lines.append(f"        {again}return missed({given})")
            value = None if tail.finished is None else tail.finished.arguments[0]
            tell, reached, show = _teller(tail)
            scope |= {
                "finished": events.backward_finished, "stepped": events.step_finished,
                "replayed": events.step_replayed, "tell": tell, "reached": reached, "show": show,
            }  # fmt: skip
            first_value = source.expression(value)
            lines.append("    if stepped.listeners or finished.listeners:")
            if reached:  # one recording, without a further call
                lines.append("        if len(stepped.listeners) == len(replayed.listeners) == 1:")
                args = f"{first_value}, reached, {optimizer}, show"
                lines += [f"            replayed.listeners[0]({args})", "        else:"]
            lines.append(f"        {'    ' if reached else ''}tell({first_value})")
            targets = [f"{source.constant(leaf)}.grad" for leaf in tail.leaves]
            lines.append(f"    {' = '.join(targets)} = {source.constant(tail.cleared)}")
            first = tail.end
        release = program.released()
        for i in range(first, len(program.entries)):
            lines.append(f"    {source.statement(program.entries[i])}")
            lines += self._releases(release.get(i, ()))
        lines.append(f"    return {source.expression(program.output)}")
        self.source = "\n".join([*parts, *lines]) + "\n"
        exec(compile(self.source, "<optlab bound plan>", "exec"), scope)
        self.replay = scope["replay"]

    def _body(self, source: _FixedSource, faults: Any) -> list[str]:
        """Return the statements before the first effect."""
        lines = []
        released = sorted(self.program.released().items())
        number = 0
        for one in self.schedule.actions:
            if isinstance(one, Copy):
                lines.append(f"    copyto({source.constant(one.out)}, v{one.place.number}, 'no')")
                continue
            if isinstance(one, Run):
                run = one.kernel.bind(faults[8 * number : 8 * number + 8])
                source.scope[f"k{number}"] = run
                lines.append(f"    k{number}()")
                number += 1
                continue
            while released and released[0][0] < one.number:
                lines += self._releases(released.pop(0)[1])
            if one.out is None:
                lines.append(f"    {source.statement(one.entry)}")
            else:
                function = self._product(one.entry, one.out)
                lines.append(f"    {source.call(one.entry, function, source.constant(one.out))}")
        return lines

    def _releases(self, places: Sequence[Place]) -> list[str]:
        """Return the statement that releases large values, if there are any."""
        names = [f"v{p.number}" for p in places if p not in self.schedule.fixed]
        return [f"    {' = '.join(names)} = None"] if names else []

    def _product(self, entry: Any, out: Any) -> Any:
        """Return what multiplies two matrices in the shortest way.

        `np.dot` gives them to the same function of BLAS as `np.matmul`, in 0.35 us less; but it
        reports no floating-point errors.
        """
        if entry.function is not np.matmul or not self.schedule.silent:
            return None
        values = [self.program.values.get(x) for x in entry.arguments]
        dense = all(x is not None and x.dtype == out.dtype and _is_dense(x) for x in values)
        if not all(self._has_known_layout(x) for x in entry.arguments):
            return None
        one, other = (self.schedule.fixed.get(x) for x in entry.arguments)
        # Of a matrix and its own transpose BLAS makes half, and each function asks in its own way.
        shared = one is None or other is None or np.may_share_memory(one, other)
        if one is None and other is not None:
            shared = entry.arguments[0] == entry.arguments[1]
        floats = out.dtype in (np.float32, np.float64)
        return np.dot if dense and not shared and floats and out.flags.c_contiguous else None

    def _has_known_layout(self, place: Any) -> bool:
        """Return whether the strides of a value are those of the capture in every call."""
        if place in self.schedule.fixed:
            return True
        if place in self.program.inputs:
            return self.program.keyed
        makers = [e for e in self.program.entries if place in e.results]
        return (
            len(makers) == 1
            and makers[0].function is np.transpose
            and self._has_known_layout(makers[0].arguments[0])
        )

    def _guards(self, source: _FixedSource) -> list[str]:
        """Return what must be false, as expressions."""
        found = []
        if self.kernels.kernels:
            found.append("error_state() is not bound.state")
            found.append('executors._chosen == "numpy"')
        for tensor, array in self.schedule.sources:
            found.append(f"{source.constant(tensor)}.data is not {source.constant(array)}")
        if self.tail is not None:
            for leaf in self.tail.leaves:
                name = source.constant(leaf)
                found.append(f"({name}.grad is not ZERO and {name}.grad is not None)")
                found.append(f"{name}.hooks")
        return list(dict.fromkeys(found))

    def _needed_later(self) -> list[Place]:
        """Return the values that are read after the first effect, and are not fixed."""
        program, end = self.program, self.schedule.end
        if self.tail is not None:
            end = self.tail.end
        entries = program.entries[end:]
        if self.tail is not None and self.tail.finished is not None:
            entries = [self.tail.finished, *entries]
        rest = [x for e in entries for x in (*e.arguments, *e.keywords.values())]
        made = {p for e in program.entries[: self.schedule.end] for p in e.results}
        wanted = dict.fromkeys(places_in([*rest, program.output]))
        return [p for p in wanted if p in made and p not in self.schedule.fixed]


def _is_dense(value: Value) -> bool:
    """Return whether a value is a matrix without gaps, or the transpose of one."""
    if len(value.shape) != 2 or value.strides is None or min(value.shape) < 2:
        return False
    size, (rows, columns) = value.dtype.itemsize, value.shape
    return value.strides in ((columns * size, size), (size, rows * size))


class Binding:
    """Binds a program once that pays off, and again where its arrays are others."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.bound: BoundProgram | None = None
        #: With kernels, as soon as they are compiled.
        self._wanted: BoundProgram | None = None
        self._by_numpy = program.run
        self._left = MOST_BINDINGS
        self._until = AFTER
        self._polls = self._asked = 0
        self._without_step = False
        self._worked = 0
        self._faults = 0
        self._kernels = executors.has_numba()
        program.run = self._counted
        program.binding = self

    @property
    def compiled(self) -> bool:
        """Whether kernels run."""
        return self.bound is not None and bool(self.bound.kernels.kernels)

    def groups(self) -> list[list[int]]:
        """Return the numbers of the entries of each kernel that does several, or will."""
        found = self.bound if self.compiled else self._wanted
        if found is None and self._kernels:
            with suppress(UnboundError):
                found = BoundProgram(self.program, compiled=True)
        actions = [] if found is None else found.schedule.actions
        runs = [one.entries for one in actions if isinstance(one, Run)]
        return [entries for entries in runs if len(entries) > 1]

    def _counted(self, *given: Any) -> Any:
        self._until -= 1
        if self._until <= 0:
            self._until = AFTER
            self._bind()
            if self.bound is not None:
                return self.program.run(*given)
        return self._by_numpy(*given)

    def _bind(self) -> None:
        """Bind the program to the arrays of now, or give it up."""
        self.bound = None
        if self._left == 0:
            self.program.run = self._by_numpy
            return
        self._left -= 1
        try:
            self._wanted = BoundProgram(self.program, compiled=True) if self._kernels else None
        except UnboundError:
            self._wanted = None
        if self._wanted is not None and self._use_kernels():
            return
        try:
            bound = BoundProgram(self.program, compiled=False)
        except UnboundError:
            self.program.run = self._by_numpy
            return
        self._take(bound)

    def _take(self, bound: BoundProgram) -> None:
        """Replay by a bound program, which asks from time to time for a better one."""
        self._without_step = (
            bound.tail is None and self._asked < MOST_QUESTIONS and self._lacks_step()
        )
        waits = self._wanted is not None or self._without_step
        bound.link(self._missed, self._faulted, self._poll if waits else None)
        self.bound, self.program.run = bound, bound.replay

    def _lacks_step(self) -> bool:
        """Return whether an optimizer may later have a step that gathers its gradients."""
        entries = self.program.entries
        start = _first_effect(self.program)
        engine = (collect, announce)
        step = next((e for e in entries[start:] if e.function not in engine), None)
        if step is None or step.name != "Optimizer.step":
            return False
        make = getattr(step.arguments[0], "_step_for_replay", None)
        return make is not None and make() is None

    def _use_kernels(self) -> bool:
        """Use kernels if they are compiled; return whether they are."""
        wanted = self._wanted
        if wanted is None or not executors.may_use_loops():
            return False
        ready = executors.is_compiled(wanted.kernels, self._worked)
        if ready is None or (ready and not all(one.agrees() for one in wanted.kernels.kernels)):
            self._wanted, self._kernels = None, False
            return False
        if not ready or not wanted.follow():
            return False
        self._wanted = None
        self._take(wanted)
        return True

    def _poll(self) -> None:
        """Count a replay, and look from time to time for kernels, and for a step."""
        if self._wanted is not None:
            self._worked += self._wanted.work
        self._polls += 1
        if self._polls % EACH == 0:
            if self._without_step:
                self._asked += 1
                if not self._lacks_step() or self._asked == MOST_QUESTIONS:
                    self._left += 1
                    self._bind()
                    return
            if self._wanted is not None:
                self._use_kernels()

    def _missed(self, *given: Any) -> Any:
        """Replay a call whose arrays or settings are not those of the binding."""
        bound = self.bound
        if bound is not None and bound.kernels.kernels and error_state() is not bound.state:
            if bound.follow():
                return bound.replay(*given)
        elif executors.chosen_executor() != "numpy":
            self._until -= 1
            if self._until <= 0:
                self._until = AFTER
                self._bind()
        return self._by_numpy(*given)

    def _faulted(self, *given: Any) -> Any:
        """Replay a call with a value that is not finite by NumPy, which reports it."""
        self._faults += 1
        if self._faults == MOST_FAULTS:
            self._kernels = False
            self._left += 1
            self._bind()
        return self._by_numpy(*given)


def _first_effect(program: Program) -> int:
    """Return the number of the first entry that cannot run twice."""
    for i, entry in enumerate(program.entries):
        if entry.kind == "effect" and entry.name != "Optimizer.clear_grad":
            return i
    return len(program.entries)


def _tail_of(program: Program, start: int) -> _Tail | None:
    """Return the step that follows a backward pass, if it can gather the gradients itself."""
    entries = program.entries
    if any(entry.kind == "effect" for entry in entries[:start]):
        return None  # gradients are cleared at first, and may be read after the call
    leaves: list[Any] = []
    places: list[Any] = []
    i = start
    while i < len(entries) and entries[i].function is collect:
        leaf, place = entries[i].arguments
        leaves.append(leaf)
        places.append(place)
        i += 1
    finished = None
    if i < len(entries) and entries[i].function is announce:
        finished, i = entries[i], i + 1
    if i + 1 >= len(entries) or not leaves or not all(isinstance(p, Place) for p in places):
        return None
    step, clear = entries[i : i + 2]
    if step.name != "Optimizer.step" or clear.name != "Optimizer.clear_grad":
        return None
    (optimizer,), (same, cleared) = step.arguments, clear.arguments
    make = getattr(optimizer, "_step_for_replay", None)
    bound = None if make is None else make()
    if step.keywords or clear.keywords or same is not optimizer or bound is None:
        return None
    memory = bound.memory_for_gradients()
    values = program.values
    fit = (
        len(set(map(id, leaves))) == len(set(places)) == len(leaves)
        and memory is not None
        and {id(leaf) for leaf in memory} == {id(leaf) for leaf in leaves}
        and all(
            p in values and (values[p].shape, values[p].dtype) == (memory[x].shape, memory[x].dtype)
            for x, p in zip(leaves, places, strict=True)
        )
    )
    # What the call returns, and what later effects read, is not overwritten by the next call.
    rest = [x for e in entries[i + 2 :] for x in (*e.arguments, *e.keywords.values())]
    alive = {program.group.get(p, p) for p in places_in([*rest, program.output])}
    if not fit or not alive.isdisjoint(program.group.get(p, p) for p in places):
        return None
    return _Tail(leaves, places, optimizer, bound, ZERO if cleared else None, i + 2, finished)
