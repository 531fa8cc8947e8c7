"""`capture`: a function that records its first call, and replays it from then on."""

from __future__ import annotations

import functools
import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from optlab.autograd.tape import anomaly_mode, saved_tensors
from optlab.autograd.tape.nodes import InputLeaf
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import events, random
from optlab.backend.call_recorder import here
from optlab.plan.calls.arguments import signature
from optlab.plan.calls.first_call import FirstCall, run_both
from optlab.plan.calls.guards import Guards
from optlab.plan.calls.program import Program
from optlab.plan.calls.recaptures import Recaptures
from optlab.plan.calls.recording.checked_facts import FactsChangedError
from optlab.plan.calls.undo import Undo
from optlab.plan.tracer import CaptureError

#: The most plans that a captured function keeps, for different shapes, for different values of what
#: it reads from outside, and in bytes of their buffers.
MOST = 32
MOST_FOR_ONE = 8
MOST_BYTES = 1 << 28

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


def _why_never(f: Any) -> str:
    """Return why no call of a function has a plan; empty if that is not known."""
    if inspect.isgeneratorfunction(f) or inspect.isasyncgenfunction(f):
        return "is a generator"
    return "is a coroutine" if inspect.iscoroutinefunction(f) else ""


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
        self.busy = False
        self.always_eager = ""
        self._called = False
        #: Whether floats among the arguments may change from call to call.
        self.live_floats = True

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
        if here.recorder is not None or self.busy or watched() or InputLeaf.transforms:
            return self._eagerly(_why_not(self.busy), args, kwargs)
        if self.always_eager:
            return self._eagerly(self.always_eager, args, kwargs)
        leaves, key = signature(args, kwargs, self.live_floats)
        if key is None:
            why = "an argument needs a gradient, or is of an ensemble"
            return self._eagerly(why, args, kwargs)
        with self._lock:
            return self._by_plan(args, kwargs, leaves, key)

    def _eagerly(self, why: str, args: Any, kwargs: Any) -> Any:
        self.plan, self.reason = None, why
        return self.f(*args, **kwargs)

    def _by_plan(self, args: Any, kwargs: Any, leaves: list[Any], key: Any) -> Any:
        """Replay the plan for such arguments; capture the call if there is none."""
        one = self._that_holds(key)
        if one is not None:
            self.plan, self.reason = one.program, ""
            if one.checks > 0:
                one.checks -= 1
                return self._checked(one, args, kwargs, leaves)
            return self._replay(one.program, args, kwargs, leaves)
        if key in self._refused and key not in self._cache:
            return self._eagerly(self._refused[key], args, kwargs)
        outside = self._cache[key][-1].guards.changed() if key in self._cache else ""
        self._recaptures.count(args, kwargs, self.live_floats, outside)
        return FirstCall(self, args, kwargs, key).result()

    def _that_holds(self, key: Any) -> _Entry | None:
        """Return the plan that is for these arguments, and for what it reads from outside."""
        last_key, last = self._last
        if key == last_key and last.guards.hold():  # nearly every call
            return last  # type: ignore[no-any-return]
        entries = self._cache.get(key, ())
        for one in entries:
            if one.guards.hold():
                # Where there is one plan alone, the same key means it.
                self._last = (key, one) if len(entries) == 1 else _NOTHING
                self._cache.move_to_end(key)
                return one
        return None

    def by_numbers(self, args: Any, kwargs: Any) -> Any:
        """Call, with a plan for every value of numbers from now on: it branches on one, say."""
        self.live_floats = False
        leaves, key = signature(args, kwargs, live=False)
        return self._by_plan(args, kwargs, leaves, key)

    def _replay(self, program: Program, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        if not program.checks_facts:
            self.busy = True
            try:
                return program.run(*leaves)
            finally:
                self.busy = False
        stream = random.stream_of_this_thread()
        draws = stream.draws
        self.busy = True
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
            return self._eagerly(str(error), args, kwargs)
        finally:
            self.busy = False

    def keep(self, key: Any, guards: Guards, program: Program) -> None:
        """Keep a plan for arguments of a key; let go of those that have not been used for long."""
        self._last = _NOTHING
        found = self._cache.setdefault(key, [])
        found.append(_Entry(guards, program, self.check))
        if len(found) > MOST_FOR_ONE:
            del found[0]
        while len(self._cache) > MOST or (self._bytes() > MOST_BYTES and len(self._cache) > 1):
            self._cache.popitem(last=False)
        self.plan, self.reason = program, ""

    def drop(self, key: Any) -> None:
        """Let go of the latest plan of a key."""
        del self._cache[key][-1]
        if not self._cache[key]:
            del self._cache[key]

    def refuse(self, key: Any, why: str) -> None:
        """Run calls with arguments of a key eagerly from now on, and this one."""
        self.plan, self.reason = None, why
        self._refused[key] = why
        while len(self._refused) > MOST:
            del self._refused[next(iter(self._refused))]

    def _bytes(self) -> int:
        """Return the bytes of the buffers of all plans."""
        return sum(sum(b.nbytes for b in plan.buffers) for plan in self.plans)

    def _checked(self, one: _Entry, args: Any, kwargs: Any, leaves: list[Any]) -> Any:
        """Run the plan and the function, and compare."""
        roots = one.program.touched()
        undo = Undo()
        undo.protect_all(roots)
        self.busy = True
        try:
            result, why = run_both(self.f, one.program, undo, roots, args, kwargs, leaves)
        finally:
            self.busy = False
            undo.forget()
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
            self.always_eager = message
        return result

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
        values, printing, reading a file or a clock, writing into a plain array of the caller, other
        effects than those of the engine. Parameters, states and random numbers are as before then;
        what `f` did to your own objects before the error stays. At once, of a generator.

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
    made = Captured(f, strict, check)
    why = _why_never(f)
    if why and strict:
        raise CaptureError(
            f"{getattr(f, '__qualname__', f)} {why}: it does not return at once, and has no plan. "
            "Capture the functions that it calls, or write ol.capture(f, strict=False), which runs "
            "it as it is."
        )
    made.always_eager = f"it {why}" if why else ""
    return made
