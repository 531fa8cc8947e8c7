"""The first call with arguments of a kind: it is recorded, and what was recorded is tested.

The function runs with a recorder, and again on other values, with which it has to do the same. Both
runs are undone. Then the plan runs and is undone, and the function is called as it is: both must
give and leave the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from optlab.backend import events
from optlab.plan.calls.arguments import signature
from optlab.plan.calls.bound_program import Binding
from optlab.plan.calls.comparison import difference, same_bits
from optlab.plan.calls.description import names_of_inputs
from optlab.plan.calls.guards import MOST, Guards
from optlab.plan.calls.outputs import Output
from optlab.plan.calls.perturbation import perturbed
from optlab.plan.calls.plain_again import make_plain, met_recorded
from optlab.plan.calls.program import Program
from optlab.plan.calls.recording.containers import give_back
from optlab.plan.calls.recording.numbers import CallNumber, NumberNeededError
from optlab.plan.calls.recording.recorder import Recorder
from optlab.plan.calls.recording.values import INSTEAD
from optlab.plan.calls.runs import record, undone
from optlab.plan.calls.state import state_of
from optlab.plan.calls.undo import Undo
from optlab.plan.tracer import CaptureError

#: Plain arrays from outside of up to so many bytes are compared with what they held in every call.
SMALL = 1 << 16

#: What to write in place of a write into a plain array.
_COMPUTE_ANEW = (
    "a plan gives the results of a call, and writes into Tensors alone. Compute a new array "
    "(y = x + 1; np.where(mask, a, x)), write into a copy (x = x.copy()), or give a Tensor "
    "(ol.to_tensor(x)), into which a replay writes, too. ol.capture(f, strict=False) runs such a "
    "function as it is."
)


class Plans(Protocol):
    """What a first call needs of the captured function that keeps its plan."""

    f: Callable[..., Any]
    strict: bool
    #: Whether floats among the arguments may change from call to call.
    live_floats: bool
    busy: bool

    def keep(self, key: Any, guards: Guards, program: Program) -> None:
        """Keep a plan."""

    def drop(self, key: Any) -> None:
        """Let go of the latest plan of a key."""

    def refuse(self, key: Any, why: str) -> None:
        """Run calls with arguments of a key eagerly."""

    def by_numbers(self, args: Any, kwargs: Any) -> Any:
        """Call, with a plan for every value of numbers."""


class FirstCall:
    """A call that is captured.

    Parameters
    ----------
    plans : Plans
        Where the plan is kept.
    args, kwargs
        Of the call.
    key
        Of the plan.
    """

    def __init__(self, plans: Plans, args: Any, kwargs: Any, key: Any) -> None:
        self.plans = plans
        self.f, self.args, self.kwargs, self.key = plans.f, args, kwargs, key
        self.guards = Guards(self.f, args, kwargs)
        self._recorders: list[Recorder] = []

    def result(self) -> Any:
        """Make the call, and a plan of it; return what the function returns."""
        if self.guards.recomputes():
            self.plans.refuse(self.key, "it uses an optimizer that decides what operations save")
            return self.f(*self.args, **self.kwargs)
        try:
            return self._made()
        finally:  # they hold copies of all states, in cycles that only the collector would find
            for recorder in self._recorders:
                recorder.forget()

    def _made(self) -> Any:
        """Make the call with a recorder, and once more as a plan where that stands."""
        rehearsed = events.call_rehearsed
        rehearsed.publish("begins")
        try:
            result, again = self._rehearse()
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

    def _rehearse(self) -> tuple[Any, Any]:
        """Run the function with a recorder, and make a plan.

        Returns
        -------
        result, again
            What the call returns, where the run of the recorder stands; otherwise that run is taken
            back, and `again` makes the call.
        """
        roots = self.guards.roots()
        first = self._recorder(roots)
        try:
            result, program = self._record(first)
        except NumberNeededError:
            return None, partial(self._again_by_numbers, first)
        except CaptureError:
            make_plain(first.handed)
            first.undo.restore()
            raise
        except Exception as error:
            make_plain(first.handed)
            named = CallNumber.__name__ in str(error)
            if self.plans.live_floats and first.ended_at < 0 and named:
                return None, partial(self._again_by_numbers, first)
            met = "" if first.ended_at >= 0 else first.dead or met_recorded(error)
            if not met:
                give_back(first.containers)
                raise
            first.undo.restore()
            if self.plans.strict:
                raise CaptureError(f"{met}: {INSTEAD}") from error
            self.guards.restore()
            self.plans.refuse(self.key, "it does not take arrays that are recorded")
            return None, partial(self.f, *self.args, **self.kwargs)
        if first.dead:
            make_plain(first.handed)
            give_back(first.containers)
            self.plans.refuse(self.key, first.dead)
        if program is None:
            return result, None
        return None, partial(self._verified, program, first.undo, roots)

    def _again_by_numbers(self, first: Recorder) -> Any:
        make_plain(first.handed)
        first.undo.restore()
        return self.plans.by_numbers(self.args, self.kwargs)

    def _recorder(self, roots: list[Any]) -> Recorder:
        recorder = Recorder(self.plans.strict, self.guards.tensors, self.plans.live_floats)
        recorder.outside = {id(x) for x in self.guards.arrays()}
        # What the call does to the engine without its knowledge is to be undone, too.
        recorder.undo.protect_all(roots)
        self._recorders.append(recorder)
        return recorder

    def _record(self, first: Recorder) -> tuple[Any, Program | None]:
        """Run the function for real, and again to compare; return its result, and make the plan."""
        guards = self.guards
        result, output = record(first, self.f, self.args, self.kwargs)
        events.call_rehearsed.publish("rests")
        if not first.dead:
            self._check_outside(first, output)
        if first.dead:
            if self.plans.strict:  # the function has caught the error
                raise CaptureError(f"{first.dead}: {INSTEAD}")
            return result, None
        before, why = (first, output), ""
        # At first plain arrays from outside get other values, too. If that makes a difference,
        # they must keep their values, and are watched.
        for number, moved in ((1, True), (2, True), (3, False), (4, False)):
            second, again = self._again(before[0], guards.arrays() if moved else [], number)
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
        decides = not moved or self._decides(first, output)
        guards.watch_contents(None if decides else SMALL)
        return result, self._planned(second, again, made)

    def _check_outside(self, first: Recorder, output: Output) -> None:
        """Refuse a call that has changed objects of the user, or reads too many of them."""
        guards = self.guards
        if guards.incomplete:
            first.refuse_outcome(
                f"it reads more than {MOST:,} objects from outside ({guards.line_of()}), too "
                "many to look at in every call. Give what it needs as arguments"
            )
        if first.changed_container:
            first.refuse_outcome(
                f"it changes {first.changed_container} among its arguments ({guards.line_of()})"
            )
        written = guards.written()
        if written is not None:
            array, name = written
            where = first.line_of_write(array) or guards.line_of(name)
            first.refuse_outcome(f"it writes into {name}, a plain array ({where})", _COMPUTE_ANEW)
        changed = guards.changed() or first.undo.drawn()
        if changed:
            where = "" if "line" in changed else f" ({guards.line_of()})"
            first.refuse_outcome(f"it changes {changed}{where}")

    def _again(self, before: Recorder, outside: Any, number: int) -> tuple[Recorder, Output]:
        """Run the function on other values, and undo what it changes."""
        second = self._recorder(self.guards.roots())
        others = perturbed(before, self.guards.tensors, outside, self.args, self.kwargs, number)
        try:
            with others as (given, named):
                return second, undone(second, self.f, given, named, number)
        except CaptureError:
            raise
        except Exception:  # noqa: BLE001  # it does not take such values
            second = self._recorder(self.guards.roots())
            return second, undone(second, self.f, self.args, self.kwargs, number)

    def _decides(self, first: Recorder, output: Output) -> bool:
        """Return whether NumPy finds out something about a large array that makes a difference.

        A sum that is compared, or an element that is an index, may be the same for values that
        differ little. For zeros it is not.
        """
        large = [x for x in self.guards.arrays() if x.nbytes > SMALL]
        if not large:
            return False
        second = self._recorder(self.guards.roots())
        others = perturbed(
            first, self.guards.tensors, large, self.args, self.kwargs, 1, blank=True
        )  # fmt: skip
        try:
            with others as (given, named), np.errstate(all="ignore"):
                again = undone(second, self.f, given, named, 1)
        except Exception:  # noqa: BLE001  # whatever it does not take zeros with
            return True
        again.match(output)
        return bool(second.dead or difference(first, second, (output.template, again.template))[0])

    def _planned(self, recorder: Recorder, output: Output, made: Any) -> Program:
        """Make a plan of a recording, and keep it."""
        constants = recorder.constants | made
        entries = [e for e in recorder.entries if not (e.name == "read" and e.results[0] in made)]
        for graph in output.graphs:
            graph.build(constants)
        program = Program(output.inputs, entries, constants, output.whole)
        Binding(program)
        output.forget()
        guards = self.guards
        guards.release_arguments()
        guards.renew()
        guards.watch_nodes(t for p, t in recorder.sources.items() if p not in made)
        guards.forget()
        program.input_names = names_of_inputs(
            self.f, self.args, self.kwargs, self.plans.live_floats
        )
        self.plans.keep(self.key, guards, program)
        return program

    def _verified(self, program: Program, undo: Undo, roots: list[Any]) -> Any:
        """Take back the call that was recorded, run its plan and the function, and compare.

        What a recording has not seen (a write into ``t.data``, ``type(x) is np.ndarray``) is found.
        """
        undo.restore()
        leaves, _ = signature(self.args, self.kwargs, self.plans.live_floats)
        self.plans.busy = True
        try:
            result, why = run_both(self.f, program, undo, roots, self.args, self.kwargs, leaves)
        finally:
            self.plans.busy = False
        if why:
            message = (
                f"what a plan would not repeat ({self.guards.line_of()}): {why}. "
                f"{self.guards.unseen()}"
            )
            self.plans.drop(self.key)
            if self.plans.strict:
                undo.restore()
                events.call_rehearsed.publish("undone")
                raise CaptureError(f"{message}ol.capture(f, strict=False) runs it as it is.")
            self.plans.refuse(self.key, message)
        events.call_rehearsed.publish("stands")
        return result


def run_both(
    f: Callable[..., Any], program: Program, undo: Undo, roots: list[Any], args: Any, kwargs: Any,
    leaves: list[Any],
) -> tuple[Any, str]:  # fmt: skip
    """Run a plan, take it back and run the function; return its result and a difference.

    The run of the function is a rehearsal that has to be ended.
    """
    rehearsed = events.call_rehearsed
    rehearsed.publish("begins")
    rehearsed.publish("rests")
    try:
        program.run(*leaves)
        undo.restore()
        found = program.run(*leaves)  # again: it may have written into its constants
        after = state_of([*roots, *leaves])
        failed = ""
    except Exception as error:  # noqa: BLE001  # of any operation
        failed = f"the plan raises {type(error).__name__}: {error}"
    finally:
        rehearsed.publish("undone")
    undo.restore()
    rehearsed.publish("begins")
    try:
        result = f(*args, **kwargs)
    except BaseException:
        rehearsed.publish("stands")
        raise
    if failed:
        return result, failed
    if not same_bits(found, result):
        return result, "the results differ"
    if after != state_of([*roots, *leaves]):
        return result, "what it leaves in parameters or states differs"
    return result, ""
