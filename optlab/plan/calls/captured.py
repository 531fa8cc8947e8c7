"""`capture`: a function that records its first call, and replays it from then on."""

from __future__ import annotations

import functools
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from optlab.autograd.tape import anomaly_mode, saved_tensors
from optlab.autograd.tape.base import TensorBase
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.half_precision import halves
from optlab.autograd.tape.nodes import InputLeaf, Leaf
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import events, random
from optlab.backend.call_recorder import here
from optlab.backend.device import get_device
from optlab.plan.calls.bound_program import Binding
from optlab.plan.calls.comparison import difference, same_bits
from optlab.plan.calls.description import names_of_inputs
from optlab.plan.calls.guards import MOST as MOST_READ
from optlab.plan.calls.guards import Guards
from optlab.plan.calls.outputs import Output
from optlab.plan.calls.perturbation import perturbed
from optlab.plan.calls.plain_again import make_plain, met_recorded
from optlab.plan.calls.program import Program
from optlab.plan.calls.recaptures import Recaptures, Same
from optlab.plan.calls.recording.checked_facts import FactsChangedError
from optlab.plan.calls.recording.numbers import CallNumber, NumberNeededError
from optlab.plan.calls.recording.recorder import Recorder
from optlab.plan.calls.recording.values import INSTEAD
from optlab.plan.calls.runs import record, undone
from optlab.plan.calls.state import state_of
from optlab.plan.calls.undo import Undo
from optlab.plan.tracer import CaptureError

#: The most plans that a captured function keeps, for different shapes, for different values of what
#: it reads from outside, and in bytes of their buffers.
MOST = 32
MOST_FOR_ONE = 8
MOST_BYTES = 1 << 28
#: Plain arrays from outside of up to so many bytes are compared with what they held in every call.
SMALL = 1 << 16

#: No key is None.
_NOTHING: tuple[Any, Any] = (None, None)

_LISTENED = (
    events.operation_recorded, events.operation_starts, events.operation_ran, events.rule_starts,
    events.values_wanted, events.leaf_collects, events.backward_pass_ended,
    events.operation_recomputed, events.backward_finished, events.input_stored, events.step_taken,
    events.step_finished, events.gradients_cleared, events.array_kept,
)  # fmt: skip


def watched() -> bool:
    """Return whether anything listens to the engine, or replaces what it saves."""
    if slow_path.needs_values and (
        anomaly_mode.depth.value or saved_tensors.of_this_thread() is not None
    ):
        return True
    for event in _LISTENED:  # noqa: SIM110 (a loop takes a third of the time of `any`)
        if event.eager:
            return True
    return False


def _why_not(busy: bool) -> str:
    """Return why a call runs eagerly in these surroundings."""
    if here.recorder is not None or busy:
        return "it ran inside of another captured call"
    if InputLeaf.transforms:
        return "it ran inside of a transform, such as ol.grad"
    if anomaly_mode.depth.value:
        return "it ran in anomaly mode"
    return "something listens to the engine, such as ol.record, or replaces what it saves"


class Captured:
    """A function whose calls are replayed as plans; see `capture`.

    Attributes
    ----------
    plan : Program or None
        The plan of the last call; None if that ran eagerly.
    plans : list of Program
    reason : str
        Why the last call ran eagerly; empty if it did not.
    """

    def __init__(self, f: Callable[..., Any], strict: bool, check: int) -> None:
        functools.update_wrapper(self, f)
        self.f = f
        self.strict = strict
        self.check = check
        self.plan: Program | None = None
        self.reason = ""
        self._cache: OrderedDict[Any, list[_Entry]] = OrderedDict()
        #: The key of the last replay, and its plan.
        self._last: tuple[Any, Any] = _NOTHING
        self._refused: dict[Any, str] = {}
        self._lock = threading.RLock()
        self._recaptures = Recaptures(f)
        self._busy = False
        self._always_eager = ""
        self._called = False
        #: Whether floats among the arguments may change from call to call.
        self._live_floats = True

    @property
    def execution(self) -> str:
        """How the last call ran, and why."""
        if not self._called:
            return "not called yet"
        return f"eagerly: {self.reason}" if self.plan is None else "captured: by a plan"

    @property
    def plans(self) -> list[Program]:
        """All plans, the latest used last."""
        return [one.program for entries in self._cache.values() for one in entries]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return a captured method of an object."""
        if instance is None:
            return self
        return BoundCaptured(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, by a plan if there is one."""
        self._called = True
        if here.recorder is not None or self._busy or watched() or InputLeaf.transforms:
            self.plan, self.reason = None, _why_not(self._busy)
            return self.f(*args, **kwargs)
        if self._always_eager:
            self.plan, self.reason = None, self._always_eager
            return self.f(*args, **kwargs)
        leaves, key = signature(args, kwargs, self._live_floats)
        if key is None:
            self.plan, self.reason = None, "an argument needs a gradient, or is of an ensemble"
            return self.f(*args, **kwargs)
        with self._lock:
            last_key, one = self._last
            if key == last_key and not one.checks and one.guards.hold():  # nearly every call
                self.plan, self.reason = one.program, ""
                return self._replay(one.program, args, kwargs, leaves)
            return self._call(args, kwargs, leaves, key)

    def _call(self, args: Any, kwargs: Any, leaves: list[Any], key: Any) -> Any:
        entries = self._cache.get(key)
        if entries is not None:
            for one in entries:
                if one.guards.hold():
                    # Where there is one plan alone, the same key means it.
                    self._last = (key, one) if len(entries) == 1 else _NOTHING
                    self.plan = one.program
                    self.reason = ""
                    self._cache.move_to_end(key)
                    if one.checks > 0:
                        one.checks -= 1
                        return self._checked(one, args, kwargs, leaves)
                    return self._replay(one.program, args, kwargs, leaves)
        elif key in self._refused:
            self.plan, self.reason = None, self._refused[key]
            return self.f(*args, **kwargs)
        return self._capture(args, kwargs, key)

    def _replay(self, program: Program, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        if not program.checks_facts:
            self._busy = True
            try:
                return program.run(*leaves)
            finally:
                self._busy = False
        stream = random.stream_of_this_thread()
        draws = stream.draws
        self._busy = True
        try:
            return program.run(*leaves)
        except FactsChangedError as error:
            if not program.facts_first:
                raise RuntimeError(
                    f"{error} It was noticed after the call had changed something: parameters or "
                    "states may be those of half a call. Write ol.capture(f, strict=False) around "
                    "what comes before."
                ) from None
            stream.draws = draws
            self.plan, self.reason = None, str(error)
            return self.f(*args, **kwargs)
        finally:
            self._busy = False

    def _capture(self, args: Any, kwargs: Any, key: Any) -> Any:
        outside = self._cache[key][-1].guards.changed() if key in self._cache else ""
        self._recaptures.count(args, kwargs, self._live_floats, outside)
        guards = Guards(self.f, args, kwargs)
        if guards.recomputes():
            self.plan, self.reason = None, "it uses an optimizer that decides what operations save"
            self._refuse(key, self.reason)
            return self.f(*args, **kwargs)
        rehearsed = events.call_rehearsed
        rehearsed.publish("begins")
        try:
            result, again = self._rehearse(guards, args, kwargs, key)
        except CaptureError:
            rehearsed.publish("undone")
            raise
        except BaseException:  # of the function: what it has done stays
            rehearsed.publish("stands")
            raise
        if again is None:
            rehearsed.publish("stands")
            return result
        rehearsed.publish("undone")
        return again()

    def _rehearse(self, guards: Guards, args: Any, kwargs: Any, key: Any) -> tuple[Any, Any]:
        """Run the function with a recorder, and make a plan.

        Returns
        -------
        result, again
            What the call returns, where the run of the recorder stands; otherwise that run is taken
            back, and `again` makes the call.
        """
        roots = guards.roots()
        first = self._recorder(guards, roots)
        try:
            result, one = self._record(first, guards, args, kwargs, key)
        except NumberNeededError:
            return None, partial(self._again_by_numbers, first, args, kwargs)
        except CaptureError:
            make_plain(first.handed)
            first.undo.restore()
            raise
        except Exception as error:
            make_plain(first.handed)
            if self._live_floats and first.ended_at < 0 and CallNumber.__name__ in str(error):
                return None, partial(self._again_by_numbers, first, args, kwargs)
            met = "" if first.ended_at >= 0 else first.dead or met_recorded(error)
            if not met:
                raise
            first.undo.restore()
            if self.strict:
                raise CaptureError(f"{met}: {INSTEAD}") from error
            guards.restore()
            self.plan, self.reason = None, "it does not take arrays that are recorded"
            self._refuse(key, self.reason)
            return None, partial(self.f, *args, **kwargs)
        if first.dead:
            make_plain(first.handed)
            self.plan, self.reason = None, first.dead
            self._refuse(key, first.dead)
        if one is None:
            return result, None
        return None, partial(self._verified, one, first.undo, roots, args, kwargs, key)

    def _again_by_numbers(self, first: Recorder, args: Any, kwargs: Any) -> Any:
        """Capture anew, with a plan for every value of numbers: it branches on one, say."""
        make_plain(first.handed)
        first.undo.restore()
        self._live_floats = False
        leaves, key = signature(args, kwargs, live=False)
        return self._call(args, kwargs, leaves, key)

    def _recorder(self, guards: Guards, roots: list[Any]) -> Recorder:
        recorder = Recorder(self.strict, guards.tensors, self._live_floats)
        recorder.outside = {id(x) for x in guards.arrays()}
        # What the call does to the engine without its knowledge is to be undone, too.
        recorder.undo.protect_all(roots)
        return recorder

    def _record(
        self, first: Recorder, guards: Guards, args: Any, kwargs: Any, key: Any
    ) -> tuple[Any, _Entry | None]:
        """Run the function for real, and again to compare; return its result, and make the plan."""
        result, output = record(first, self.f, args, kwargs)
        events.call_rehearsed.publish("rests")
        if guards.incomplete and not first.dead:
            first.refuse_outcome(
                f"it reads more than {MOST_READ:,} objects from outside ({guards.line_of()}), too "
                "many to look at in every call. Give what it needs as arguments"
            )
        changed = "" if first.dead else guards.changed() or first.undo.drawn()
        if changed:
            where = "" if "line" in changed else f" ({guards.line_of()})"
            first.refuse_outcome(f"it changes {changed}{where}")
        if first.dead:
            if self.strict:  # the function has caught the error
                raise CaptureError(f"{first.dead}: {INSTEAD}")
            return result, None
        before, why = (first, output), ""
        # At first plain arrays from outside get other values, too. If that makes a difference,
        # they must keep their values, and are watched.
        for number, moved in ((1, True), (2, True), (3, False), (4, False)):
            outside = guards.arrays() if moved else []
            second, again = self._again(before[0], guards, outside, args, kwargs, number)
            if second.dead:
                first.dead = second.dead
                return result, None
            again.match(before[1])
            why, made = difference(before[0], second, (before[1].template, again.template))
            if not why:
                break
            before = (second, again)
        if why:
            first.refuse_outcome(why if "line" in why else f"{why} ({guards.line_of()})")
            return result, None
        # What NumPy finds out about arrays (a sum, a branch) may be the same for other values.
        decides = not moved or self._decides(first, output, guards, args, kwargs)
        guards.watch_contents(None if decides else SMALL)
        one = self._keep(second, again, made, guards, key)
        one.program.input_names = names_of_inputs(self.f, args, kwargs, self._live_floats)
        return result, one

    def _again(
        self, before: Recorder, guards: Guards, outside: Any, args: Any, kwargs: Any, number: int
    ) -> tuple[Recorder, Output]:
        """Run the function on other values, and undo what it changes."""
        second = self._recorder(guards, guards.roots())
        others = perturbed(before, guards.tensors, outside, args, kwargs, number)
        try:
            with others as (given, named):
                return second, undone(second, self.f, given, named, number)
        except CaptureError:
            raise
        except Exception:  # noqa: BLE001  # it does not take such values
            second = self._recorder(guards, guards.roots())
            return second, undone(second, self.f, args, kwargs, number)

    def _decides(
        self, first: Recorder, output: Output, guards: Guards, args: Any, kwargs: Any
    ) -> bool:
        """Return whether NumPy finds out something about a large array that makes a difference.

        A sum that is compared, or an element that is an index, may be the same for values that
        differ little. For zeros it is not.
        """
        large = [x for x in guards.arrays() if x.nbytes > SMALL]
        if not large:
            return False
        second = self._recorder(guards, guards.roots())
        others = perturbed(first, guards.tensors, large, args, kwargs, 1, blank=True)
        try:
            with others as (given, named), np.errstate(all="ignore"):
                again = undone(second, self.f, given, named, 1)
        except Exception:  # noqa: BLE001  # whatever it does not take zeros with
            return True
        again.match(output)
        return bool(second.dead or difference(first, second, (output.template, again.template))[0])

    def _keep(
        self, recorder: Recorder, output: Output, made: Any, guards: Guards, key: Any
    ) -> _Entry:
        """Make a plan of a recording, and keep it."""
        constants = recorder.constants | made
        entries = [e for e in recorder.entries if not (e.name == "read" and e.results[0] in made)]
        for graph in output.graphs:
            graph.build(constants)
        program = Program(output.inputs, entries, constants, output.whole)
        Binding(program)
        output.forget()
        guards.renew()
        guards.watch_nodes(t for p, t in recorder.sources.items() if p not in made)
        guards.forget()
        self._last = _NOTHING
        one = _Entry(guards, program, self.check)
        found = self._cache.setdefault(key, [])
        found.append(one)
        if len(found) > MOST_FOR_ONE:
            del found[0]
        while len(self._cache) > MOST or (self._bytes() > MOST_BYTES and len(self._cache) > 1):
            self._cache.popitem(last=False)
        self.plan, self.reason = program, ""
        return one

    def _bytes(self) -> int:
        """Return the bytes of the buffers of all plans."""
        return sum(sum(b.nbytes for b in plan.buffers) for plan in self.plans)

    def _checked(self, one: _Entry, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """Run the plan and the function, and compare."""
        roots = one.program.touched()
        undo = Undo()
        undo.protect_all(roots)
        result, why = self._both(one, undo, roots, args, kwargs, leaves)
        events.call_rehearsed.publish("stands")
        if why:
            message = (
                f"a replay of {self._name()} is not what the function does "
                f"({one.guards.line_of()}): {why}. It may read something that capture cannot see; "
                "give that as an argument."
            )
            self._cache.clear()
            self._last = _NOTHING
            if self.strict:
                raise CaptureError(message)
            self.plan, self.reason = None, message
            self._always_eager = message
        return result

    def _verified(
        self, one: _Entry, undo: Undo, roots: list[Any], args: Any, kwargs: Any, key: Any
    ) -> Any:
        """Take back the call that was recorded, run its plan and the function, and compare.

        What a recording has not seen (a write into ``t.data``, ``type(x) is np.ndarray``) is found.
        """
        undo.restore()
        leaves, _ = signature(args, kwargs, self._live_floats)
        result, why = self._both(one, undo, roots, args, kwargs, leaves)
        if why:
            message = (
                f"what a plan would not repeat ({one.guards.line_of()}): {why}. "
                f"{one.guards.unseen()}"
            )
            del self._cache[key][-1]
            if not self._cache[key]:
                del self._cache[key]
            if self.strict:
                undo.restore()
                events.call_rehearsed.publish("undone")
                raise CaptureError(f"{message}ol.capture(f, strict=False) runs it as it is.")
            self.plan, self.reason = None, message
            self._refuse(key, message)
        events.call_rehearsed.publish("stands")
        return result

    def _both(
        self, one: _Entry, undo: Undo, roots: list[Any], args: Any, kwargs: Any, leaves: list[Any]
    ) -> tuple[Any, str]:
        """Run the plan, take it back and run the function; return its result and a difference.

        The run of the function is a rehearsal that has to be ended.
        """
        self._busy = True
        rehearsed = events.call_rehearsed
        rehearsed.publish("begins")
        rehearsed.publish("rests")
        try:
            try:
                one.program.run(*leaves)
                undo.restore()
                found = one.program.run(*leaves)  # again: it may have written into its constants
                after = state_of([*roots, *leaves])
                failed = ""
            except Exception as error:  # noqa: BLE001  # of any operation
                failed = f"the plan raises {type(error).__name__}: {error}"
            finally:
                rehearsed.publish("undone")
            undo.restore()
            rehearsed.publish("begins")
            try:
                result = self.f(*args, **kwargs)
            except BaseException:
                rehearsed.publish("stands")
                raise
        finally:
            self._busy = False
        if failed:
            return result, failed
        if not same_bits(found, result):
            return result, "the results differ"
        if after != state_of([*roots, *leaves]):
            return result, "what it leaves in parameters or states differs"
        return result, ""

    def _refuse(self, key: Any, why: str) -> None:
        """Run calls with such arguments eagerly from now on."""
        self._refused[key] = why
        while len(self._refused) > MOST:
            del self._refused[next(iter(self._refused))]

    def _name(self) -> str:
        text = str(getattr(self.f, "__qualname__", self.f))
        return text if "\n" not in text else f"{type(self.f).__name__}(...)"  # a network

    def __repr__(self) -> str:
        count = len(self.plans)
        return f"<captured {self._name()}, {count} plan{'s' * (count != 1)}>"


class BoundCaptured:
    """A captured function as a method of an object."""

    def __init__(self, captured: Captured, instance: Any) -> None:
        functools.update_wrapper(self, captured.f)
        self.captured, self.instance = captured, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method, by a plan if there is one."""
        return self.captured(self.instance, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the captured function: ``plan``, ``plans``, ``execution``."""
        if name in ("plan", "plans", "execution", "reason"):
            return getattr(self.captured, name)
        raise AttributeError(f"a captured method has no attribute {name!r}")

    def __repr__(self) -> str:
        return repr(self.captured)


class _Entry:
    """A plan, what it needs to hold, and how many calls to check."""

    __slots__ = ("checks", "guards", "program")

    def __init__(self, guards: Guards, program: Program, checks: int) -> None:
        self.guards, self.program, self.checks = guards, program, checks


def signature(args: Any, kwargs: Any, live: bool) -> tuple[list[Any], Any]:
    """Return the arrays among arguments, and the key of the plan; None for what has no plan.

    Floats are like arrays where they are `live`, and part of the key where not.
    """
    numbers = True if live else None
    leaves: list[Any] = []
    parts: list[Any] = []
    for x in args:
        if isinstance(x, TensorBase) and x.node is None and type(x.data) is _array:
            data = x.data  # what `_sign` does, in half the time
            parts += "Tensor", (data.shape, data.dtype, data.strides)
            leaves.append(data)
        elif not _sign(x, leaves, parts, numbers):
            return leaves, None
    if kwargs:
        for name in sorted(kwargs):
            parts.append(name)
            if not _sign(kwargs[name], leaves, parts, numbers):
                return leaves, None
        parts.append(tuple(kwargs))
    parts += recording.on, halves.policy, get_device()
    if len(leaves) > 1 and len({*map(id, leaves)}) < len(leaves):  # one array, several arguments
        identities = [id(x) for x in leaves]
        parts.append(tuple([identities.index(i) for i in identities]))
    return leaves, tuple(parts)


_array = np.ndarray


def _sign(x: Any, leaves: list[Any], parts: list[Any], numbers: Any) -> bool:
    if isinstance(x, TensorBase):
        node = x.node
        if node is not None and (not isinstance(node, Leaf) or isinstance(node, InputLeaf)):
            return False
        data = x.data
        kind: Any = "Tensor" if node is None else node
        parts.append(kind)
        if type(data) is _array:
            parts.append((data.shape, data.dtype, data.strides))
        elif isinstance(data, np.generic):
            parts.append(data.dtype)
        else:
            return False
        leaves.append(data)
    elif isinstance(x, _array):
        if type(x) is not _array:
            return False
        parts.append((x.shape, x.dtype, x.strides))
        leaves.append(x)
    elif isinstance(x, np.generic):
        parts.append((type(x), x.tobytes() if numbers is None else "scalar"))
        if numbers is not None:
            leaves.append(x)
    elif type(x) in (tuple, list):
        parts.append((type(x), len(x)))
        return all([_sign(part, leaves, parts, numbers) for part in x])  # noqa: C419 (the rest too)
    elif type(x) is dict:
        parts.append(tuple(x))
        return all([_sign(part, leaves, parts, numbers) for part in x.values()])  # noqa: C419
    elif type(x) is float:
        if numbers is None:
            parts.append(x.hex())  # zeros of both signs, and NaN
        else:
            parts.append(float)
            leaves.append(x)
    elif isinstance(x, (int, str, bytes, bool, type(None))):
        parts.append((type(x), x))
    elif hasattr(x, "shape") and hasattr(x, "dtype"):
        return False  # an array of another kind: of a device, of an ensemble
    elif isinstance(x, tuple) and hasattr(x, "_fields"):
        parts.append((type(x), len(x)))
        return all([_sign(part, leaves, parts, numbers) for part in x])  # noqa: C419
    else:
        parts.append(Same(x))
    return True


def capture(f: Callable[..., Any] | None = None, *, strict: bool = True, check: int = 0) -> Any:
    """Capture what a function does, whole steps of training too, and replay it as a plan.

    The first call records every array operation of `f`, forward, backward and update. A second run
    on other values must do the same; both are undone. Then the plan runs and is undone, and `f` is
    called: both must give and leave the same. From then on calls replay the plan, with reused
    memory and without the tape: the results are equal to the bit. There is a plan for each
    combination of shapes, dtypes and strides of the arguments, and for each value of an int, a str
    or an object among them.

    What `f` reads of the engine stays live: parameters, running statistics, learning rates,
    schedules, random keys. While something listens to the engine that a plan cannot serve, `f` runs
    eagerly. A recorder (`record`) that reads losses, rates and times of steps is served, and so are
    probes that read parameters, slots and gradients after a step: ``probes="light"``.

    Parameters
    ----------
    f : callable
        Without it, a decorator is returned.
    strict : bool
        Whether what a plan cannot repeat is an error; otherwise `f` runs eagerly.
    check : int
        How many of the first replays are compared with `f` itself.

    Returns
    -------
    Captured
        Takes and returns what `f` does. ``execution`` says how its last call ran, and ``plan`` is
        the plan of it, of which ``print(plan)`` shows inputs, operations and memory, and
        ``plan.table()``, ``plan.figure()``, ``plan.save(path)`` and ``plan.peak_bytes`` give them
        as data and as a picture.

    Raises
    ------
    CaptureError
        In the first call, if a plan cannot repeat it: a branch on a value, a shape that depends on
        values, printing, other effects than those of the engine. Parameters, states and random
        numbers are as before then; what `f` did to your own objects before the error stays.

    Warns
    -----
    UserWarning
        Once, if many calls in a row are captured because one argument is another value or object
        each time.

    Notes
    -----
    During the first call parameters have other values for a moment, and random states are set back:
    other threads should neither read nor draw then.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0, 4.0])
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> @ol.capture
    ... def step(x):
    ...     loss = np.sum((w - x) ** 2)
    ...     loss.backward()
    ...     optimizer.step()
    ...     optimizer.clear_grad()
    ...     return loss
    >>> x = ol.zeros([2])
    >>> [step(x).item() for _ in range(3)]
    [25.0, 6.25, 1.5625]
    """
    if isinstance(check, bool) or not isinstance(check, int):
        raise TypeError(f"check is a number of calls; got {check!r}.")
    if check < 0:
        raise ValueError(f"check is a number of calls, 0 or more; got {check!r}.")
    if f is None:
        return functools.partial(capture, strict=strict, check=check)
    if not callable(f):
        raise TypeError(
            f"capture takes a function; got {type(f).__name__}, which cannot be called."
        )
    if inspect.iscoroutinefunction(f) or inspect.isgeneratorfunction(f):
        raise CaptureError(
            f"{getattr(f, '__qualname__', f)} is a generator or a coroutine: it does not return at "
            "once, and has no plan."
        )
    return Captured(f, strict, check)
