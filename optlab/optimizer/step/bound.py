"""Steps of small parameters by calls that are bound to their arrays.

Where parameters have some thousand elements, most of a step is the way to its operations: spans,
namespaces, new arrays, checks (of Adam's 16 us for 60 elements the arithmetic takes 5). All of that
is the same in each step. So after some steps the rule
is captured, as for large parameters (`fused`), and its calls are bound to the arrays once. From
then on a step compares what the calls depend on with what it was, sets the numbers of this step,
and makes the calls. It has the same bits. Whatever differs, or is not the usual (listeners, a
missing gradient, a policy for what is not finite), is left to the general step.
"""

from __future__ import annotations

import warnings
from collections import deque
from contextlib import suppress
from contextvars import Context
from functools import partial
from itertools import pairwise, repeat, starmap
from operator import call, setitem
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from optlab.autograd.tape.nodes import ZERO
from optlab.backend import events
from optlab.backend.user_frames import stack_level_outside
from optlab.nn.base.parameter import Parameter
from optlab.optimizer.params.flat import FlatParameters, Span
from optlab.optimizer.params.groups import Group
from optlab.optimizer.rule.namespaces import HyperParameters
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step import fused
from optlab.optimizer.step.apply_rule import scalars_of
from optlab.optimizer.step.roll_forward import roll_forward
from optlab.plan.bound.calls import BoundCalls, UnboundError
from optlab.plan.executors import chosen_executor, executor_of

if TYPE_CHECKING:
    from optlab.plan.numba_kernels import MachineLoops

try:  # `np.geterr()` takes 0.8 us, this 0.04
    from numpy._core.umath import _extobj_contextvar

    _error_state: Any = _extobj_contextvar.get
except ImportError:
    _error_state = np.geterr

#: General steps before the calls are bound: to capture a rule takes as long as 100 steps save.
AFTER = 64

#: From so many elements on a step is fused: calls are its smaller part there, compiled loops pay
#: off, and what belongs to bound calls (an array for gradients, one for each intermediate value)
#: would be large. Below, bound calls are the faster ones: Adam on 10,000 takes 20 us, by loops 60.
LARGEST = 1 << 15

#: To so many elements a captured call writes gradients into memory that is kept for them.
LARGEST_GATHERED = 1 << 20

#: Steps between two questions whether a compiled loop is there.
_EACH = 64
#: What a call of NumPy costs besides its elements, in operations on elements.
_CALL = 2048

_array = np.ndarray


class _BoundSpan:
    """Neighboring flat parameters and the calls that update all of them."""

    __slots__ = (
        "arrays", "calls", "clipped", "decay", "first", "flat", "gradients", "group", "h", "known",
        "last", "names", "numbers", "parameters", "params", "parts", "plan", "rate", "ratio",
        "regularizer", "size", "slots", "static", "t", "views",
    )  # fmt: skip

    def __init__(
        self,
        optimizer: UpdateRule,
        group: Group,
        params: FlatParameters,
        span: Span,
        compiled: bool,
        with_terms: bool,
    ) -> None:
        first, last, self.t, _, decay, _ = span
        self.first, self.last = first, last
        self.group, self.params = group, params
        self.parameters: list[Any] = params.parameters[first:last]
        self.views = params.views[first:last]
        self.h, self.ratio = params.settings[first]
        self.rate = self.parameters[0]._learning_rate
        self.regularizer = self.parameters[0]._regularizer
        self.clipped = group.grad_clip is not None
        self.decay = decay, None if decay is None else dict(vars(decay))
        self.h.__dict__["learning_rate"] = 0.1  # an example; each step sets it
        scalars = scalars_of(optimizer, self.t, self.h)
        clip = 0.5 if self.clipped else None
        plan = fused.plan_for(optimizer, params, span, scalars, clip, with_terms)
        if plan is None:
            raise UnboundError("the rule is not captured.")
        self.static = tuple(
            (name, type(x), x) for name, x in scalars.items() if type(x) is not float
        )
        self.known = dict(vars(self.h))
        self.slots, self.flat = params.slots, params.flat
        place = slice(params.bounds[first], params.bounds[last])
        buffer = np.empty_like(params.flat[place])
        if events.array_kept.listeners:
            events.array_kept.publish(buffer, "gradients of a step", "temporary", "step")
        self.size, start = len(buffer), place.start
        self.parts = [
            buffer[a - start : b - start].reshape(view.shape)
            for view, (a, b) in zip(
                self.views, pairwise(params.bounds[first : last + 1]), strict=True
            )
        ]
        slots = [array[place] for array in params.slots.values()]
        #: What the arrays are: parameter, gradient, slots, and terms where they are wanted.
        self.names = list(plan.arrays)
        terms = [np.empty_like(buffer) for _ in self.names[2 + len(slots) :]]
        self.plan, self.arrays = plan, [params.flat[place], buffer, *slots, *terms]
        self.numbers: list[float] = [0.1, 0.5][: 1 + self.clipped]
        self.numbers += [x for x in scalars.values() if type(x) is float]
        self.calls: Any = self.compiled(0) if compiled else BoundCalls(plan, self.arrays)
        if self.calls is None:
            raise UnboundError("its loop is not compiled.")
        self.gradients: list[Any] = []

    def _fits(self) -> bool:
        """Return whether the arrays are the same, and the next step is the same of all of them."""
        params = self.params
        if params.slots is not self.slots or params.flat is not self.flat:
            return False
        t = params.t if self.last == len(params.t) and not self.first else self._step_counts()
        if t.count(t[0]) != len(t):
            return False
        self.t = t[0] + 1
        return True

    def has_gathered(self) -> bool:
        """Return whether the calls fit gradients that are in place already."""
        if not self._fits():
            return False
        own, rate = self.regularizer, self.rate
        for p, view in zip(self.parameters, self.views, strict=False):
            if p.data is not view or p._regularizer is not own or p._learning_rate != rate:
                return False
        self.gradients = self.parts
        return True

    def gather(self) -> bool:
        """Read the gradients of all parameters; return False if the calls do not fit any more."""
        if not self._fits():
            return False
        found: list[Any] = []
        self.gradients = found
        own, rate = self.regularizer, self.rate
        for p, view in zip(self.parameters, self.views, strict=False):
            node, here = p.node, p.data
            if node is None or here is not view:
                return False
            g = node.grad
            if g is ZERO and found:  # that of the first parameter is worth a warning
                g = node.gradient(here)
            if (
                g.__class__ is not _array
                or g.dtype is not here.dtype
                or g.shape != here.shape
                or p._regularizer is not own
                or p._learning_rate != rate
            ):
                return False
            found.append(g)
        return True

    def _step_counts(self) -> list[int]:
        return self.params.t[self.first : self.last]

    def prepare(self, optimizer: UpdateRule, base_rate: float, factor: float | None) -> bool:
        """Set the numbers of this step; return False if that fails."""
        group, h, known = self.group, self.h, self.known
        rate = base_rate * group.multiplier * (self.ratio * self.rate)
        h.__dict__["learning_rate"] = known["learning_rate"] = rate
        decay, settings = self.decay
        if (
            vars(h) != known
            or (self.regularizer or group.regularizer) is not decay
            or (decay is not None and vars(decay) != settings)
            or (factor is not None) is not self.clipped
        ):
            return False
        numbers = [rate] if factor is None else [rate, factor]
        static: tuple[Any, ...] = ()
        for name, x in optimizer.scalars(self.t, h).items():
            if type(x) is float:
                numbers.append(x)
            else:
                static += ((name, type(x), x),)
        self.numbers = numbers
        return static == self.static and self.calls.set_numbers(numbers)

    def compiled(self, steps: int) -> Any:
        """Return the calls as one compiled loop, if it is compiled by now.

        Parameters
        ----------
        steps : int
            That were taken since this was asked before.
        """
        loops = executor_of(self.plan, steps * (self.size + _CALL))
        if loops is self.plan:
            return None
        from optlab.plan.bound.loop import BoundLoop  # which loads what only numba needs

        try:
            return BoundLoop(cast("MachineLoops", loops), self.arrays, self.numbers)
        except UnboundError:
            return None

    def copy_gradients(self) -> None:
        """Copy the gradients to where the calls read them."""
        # `setitem` takes half the time of `np.concatenate`, and reads any layout.
        deque(map(setitem, self.parts, repeat(...), self.gradients), 0)

    def finish(self, writer: str) -> None:
        """Write what belongs to the values; may be called again."""
        params, first, last = self.params, self.first, self.last
        params.t[first:last] = [self.t] * (last - first)
        params.mark_written(first, last, writer)


def _factor_of(group: Group, spans: list[_BoundSpan]) -> Any:
    """Return the factor of a clip, None if it clips in another way."""
    clip: Any = group.grad_clip
    factor = clip.common_factor(
        [pair for span in spans for pair in zip(span.parameters, span.gradients, strict=True)]
    )
    if factor is None or (getattr(clip, "auto_skip_clip", False) and clip.skips(factor)):
        return None
    return float(factor)


class BoundStep:
    """The step of an optimizer whose parameters are small, by bound calls.

    Parameters
    ----------
    optimizer
    compiled : bool
        Whether compiled loops run from the start, so that parameters may have any size.
    with_terms : bool
        Whether the terms of the rule are written, too: then `shown` has all arrays of a step.

    Attributes
    ----------
    shown : list of (FlatParameters, list of str, list of array)
        Of a step with terms: the parameters, and the names and arrays of what the step has read and
        written. The next step overwrites them.

    Raises
    ------
    UnboundError
        If its steps need more than calls on all of its parameters, or a loop is not compiled.
    """

    __slots__ = (
        "_calls", "_context", "_faults", "_groups", "_loops", "_rest", "_seen", "_shows", "_until",
        "_writer", "shown",
    )  # fmt: skip

    def __init__(
        self, optimizer: UpdateRule, compiled: bool = False, with_terms: bool = False
    ) -> None:
        if (
            optimizer.kind != "elementwise"
            or optimizer.draws
            or not optimizer.built_in
            or optimizer.not_finite != "pass"
        ):
            raise UnboundError("the rule needs more.")
        for group in optimizer.groups:
            for params in group.arenas:
                if (
                    type(params.flat) is not _array
                    or params.master is not None
                    or params.flat.dtype.itemsize < 4
                    or params.bounds[-1] == 0
                    or (params.bounds[-1] >= LARGEST and not compiled)
                    or not all(isinstance(p, Parameter) for p in params.parameters)
                    or not {HyperParameters}.issuperset(type(h) for h, _ in params.settings)
                ):
                    raise UnboundError("the parameters need more.")
            if group.grad_clip is not None and (
                not hasattr(group.grad_clip, "common_factor") or len(group.arenas) > 1
            ):
                raise UnboundError("the clip needs more.")
        self._groups: list[tuple[Group, list[_BoundSpan]]] = []
        for group in optimizer.groups:
            spans = []
            for params in group.arenas:
                params.make_ready()
                params.make_slots_writable()
                for span in params.spans(params.parameters, group.regularizer, True):
                    spans.append(_BoundSpan(optimizer, group, params, span, compiled, with_terms))
            self._groups.append((group, spans))
        all_spans = [span for _, spans in self._groups for span in spans]
        if with_terms and not all(
            span.last - span.first == len(span.params.parameters)
            and not span.clipped
            and span.decay[0] is None
            and {span.params.flat.dtype}.issuperset([x.dtype for x in span.arrays])
            for span in all_spans
        ):
            raise UnboundError("what a step reads are not all of its arrays.")
        self.shown = [(span.params, span.names, span.arrays) for span in all_spans]
        #: The same step with terms, made where it is wanted; False if there is none.
        self._shows: BoundStep | bool | None = None
        self._set_calls()
        #: Whether compiled loops run, and in how many steps it is asked for them.
        self._loops, self._until = compiled, 1
        #: The calls for elements that are not finite, and how many of them were made.
        self._rest: tuple[list[Any], list[Any]] | None = None
        self._writer = f"{type(optimizer).__name__}.step()"
        self._faults: dict[str, int] = {}
        self._seen: Any = None
        self._context: Any = None

    def _set_calls(self) -> None:
        self._calls = [
            one for _, spans in self._groups for span in spans for one in span.calls.calls
        ]

    def _is_fused(self) -> bool:
        """Return whether the general step is fused for some of the parameters."""
        return any(span.size >= fused.SMALL for _, spans in self._groups for span in spans)

    def _look_for_loops(self) -> None:
        """Use compiled loops once all of them are there."""
        self._until = _EACH
        spans = [span for _, spans in self._groups for span in spans]
        found = [span.compiled(_EACH) for span in spans]
        if None not in found:
            for span, calls in zip(spans, found, strict=True):
                span.calls = calls
                calls.set_numbers(span.numbers)
            self._loops, self._seen = True, None
            self._set_calls()

    def take(self, optimizer: UpdateRule) -> bool:
        """Take a step; return False, with nothing changed, if the general step has to."""
        for _, spans in self._groups:
            for span in spans:
                if not span.gather():
                    return False
        if not self._prepare(optimizer):
            return False
        for _, spans in self._groups:
            for span in spans:
                span.copy_gradients()
        self._run(optimizer)
        return True

    def with_terms(self, optimizer: UpdateRule) -> BoundStep | None:
        """Return the step that writes the terms of the rule, too; None if there is none."""
        if self._shows is None:
            try:
                self._shows = BoundStep(optimizer, with_terms=True)
            except UnboundError:
                self._shows = False
        return self._shows or None  # type: ignore[return-value]

    def whole_spans(self) -> list[_BoundSpan] | None:
        """Return what updates each flat array of parameters; None if some are updated in parts.

        A span has its parameters as `params`, and their gradient as ``arrays[1]`` after each step
        that is its own: then `t` is the number of steps that the parameters have had.
        """
        found = []
        for group, spans in self._groups:
            if len(spans) != len(group.arenas):
                return None
            for span in spans:
                if span.last - span.first != len(span.params.parameters):
                    return None
                found.append(span)
        return found

    def memory_for_gradients(self) -> dict[Any, Any]:
        """Return the array of each leaf from which `take_gathered` reads its gradient."""
        return {
            p.node: part
            for _, spans in self._groups
            for span in spans
            for p, part in zip(span.parameters, span.parts, strict=True)
        }

    def take_gathered(self, optimizer: UpdateRule) -> bool:
        """Take a step with gradients that are in place already, as a captured call writes them.

        It returns False, with nothing changed, if the general step has to.
        """
        if optimizer.unfinished:
            return False
        for _, spans in self._groups:
            for span in spans:
                if not span.has_gathered():
                    return False
        if not self._prepare(optimizer):
            return False
        self._run(optimizer)
        if self._faults:
            self.warn()
        return True

    def _prepare(self, optimizer: UpdateRule) -> bool:
        """Set the numbers of a step; return False if the general step has to be taken."""
        rate = optimizer.get_lr()
        groups = self._groups
        if rate.__class__ is not float or not rate or len(optimizer.groups) != len(groups):
            return False
        for group, spans in groups:
            factor = None if group.grad_clip is None else _factor_of(group, spans)
            for span in spans:
                if not span.prepare(optimizer, rate, factor):
                    return False
        executor = chosen_executor()
        if not self._loops:
            self._until -= 1
            if self._until <= 0 or executor == "numba":
                self._look_for_loops()
            if executor == "numba" and not self._loops and self._is_fused():
                return False  # the general step runs by compiled loops
        elif executor == "numpy":
            return False
        state = _error_state()
        return state is self._seen or self._follow(state)

    def _run(self, optimizer: UpdateRule) -> None:
        """Make the calls, and what belongs to them."""
        if self._faults:
            self._faults.clear()
        done: list[Any] = []
        try:
            # One call in C, which no signal interrupts.
            self._context.run(done.extend, starmap(call, self._calls))
            if self._loops:
                self._do_rest()
            self._finish()
        except BaseException as error:
            if done:
                roll_forward(optimizer.unfinished, partial(self._go_on, done), error)
            raise

    def _finish(self) -> None:
        for _, spans in self._groups:
            for span in spans:
                span.finish(self._writer)

    def _go_on(self, done: list[Any]) -> None:
        """Finish a step that an exception has interrupted."""
        self._context.run(done.extend, starmap(call, self._calls[len(done) :]))
        if self._loops:
            self._do_rest()
        self._finish()

    def _do_rest(self) -> None:
        """Let NumPy do what compiled loops have left; may be called again after an exception."""
        if self._rest is None:
            calls = [one for _, spans in self._groups for s in spans for one in s.calls.rest()]
            if not calls:
                return
            self._rest = calls, []
        calls, done = self._rest
        self._context.run(done.extend, starmap(call, calls[len(done) :]))
        self._rest = None

    def _follow(self, state: Any) -> bool:
        """Take over how floating-point errors are treated; return False where one is to raise."""
        actions: dict[str, Any] = dict(np.geterr())
        if not {"warn", "ignore"}.issuperset(actions.values()):
            return False
        if self._loops and actions["under"] != "ignore":
            return False  # loops find no underflow
        for kind, how in actions.items():
            actions[kind] = "call" if how == "warn" else "ignore"
        context = Context()  # of NumPy's settings alone: a function in C runs in it
        context.run(np.seterr, **actions)
        context.run(np.seterrcall, self._faults.setdefault)
        self._seen, self._context = state, context
        return True

    def warn(self) -> None:
        """Warn of floating-point errors, once the whole step is written."""
        if self._faults:
            faults = sorted(self._faults)
            self._faults.clear()
            for fault in faults:
                message = f"{fault} encountered in {self._writer.removesuffix('.step()')}.update"
                warnings.warn(message, RuntimeWarning, stacklevel=stack_level_outside("optlab"))

    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> Any:
        return type(None), ()


def bind_when_due(optimizer: UpdateRule) -> None:
    """Count a step, and bind the calls of an optimizer if it has taken `AFTER` since the last try.

    What cannot be bound is not tried again at once: to find that out takes as long as a step.
    """
    if optimizer.steps_until_bound > 0:
        optimizer.steps_until_bound -= 1
        return
    optimizer.steps_until_bound = AFTER
    with suppress(UnboundError):
        optimizer.bound_step = BoundStep(optimizer)


def step_with_memory_for_gradients(optimizer: UpdateRule) -> BoundStep | None:
    """Return the step by bound calls for gradients that a captured call writes into its memory.

    Of small parameters it is that of the optimizer; of others it needs compiled loops, as one pass
    by NumPy's calls takes longer than a pass over blocks. None if there is none by now.
    """
    if optimizer.bound_step is not None:
        return optimizer.bound_step  # type: ignore[no-any-return]
    largest = max((p.bounds[-1] for group in optimizer.groups for p in group.arenas), default=0)
    if not LARGEST <= largest <= LARGEST_GATHERED:
        return None
    with suppress(UnboundError):
        return BoundStep(optimizer, compiled=True)
    return None
