"""Many optimizers of one kind as the program of one loop: rule, schedule, decay and wrappers.

Settings that differ between the members are symbols: the rule is captured once for all of them.
What a rule or wrapper decides by the step count alone gives the program several variants.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optlab.optimizer.regularizer import with_decay
from optlab.optimizer.rule.declaration import is_built_in
from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots
from optlab.optimizer.step.fused import FixedHyperParameters, mutable_attributes, observed_copy
from optlab.plan import CaptureError, Plan
from optlab.plan.block_capture import trace_blocks
from optlab.plan.member_loops import Number, Numbers, Program, ProgramBuilder, State, Symbol, Tape
from optlab.plan.member_loops.numbers import Floats, per_member, per_step, table
from optlab.plan.plan import Place

#: The most variants of a program; each is captured by itself.
_MOST_VARIANTS = 64
#: Captured rules of optlab's own, which are kept, and how many of them.
_captured_rules: dict[Any, Any] = {}
_MOST_RULES = 256


class Rates(NamedTuple):
    """Learning rates of schedules: one row a step, and for each member the column that is its own.

    With one schedule for all, `columns` is None.
    """

    table: Floats
    columns: Any


def refuse_rule(rule: Any) -> None:
    """Raise if the members of a rule cannot go through one loop, whatever their settings are.

    Raises
    ------
    CaptureError
    """
    kind = type(rule).__name__
    if rule.kind != "elementwise":
        raise CaptureError(f"{kind} needs each parameter by itself")
    if rule.custom_step:
        raise CaptureError(f"{kind} has a step of its own")
    if rule.draws:
        raise CaptureError(f"{kind} draws random numbers")
    if any(callable(value) for value in rule.settings.values()):
        raise CaptureError(f"{kind} asks for each parameter by itself")
    if rule.not_finite != "pass":
        raise CaptureError("not_finite is answered run by run")
    if rule.decay_and_clip[1] is not None:
        raise CaptureError("grad_clip is applied run by run")
    if not rule.built_in and (changeable := mutable_attributes(rule)):
        raise CaptureError(f"{kind} may change its {changeable[0]!r}")


def rates_of(schedule: Any, steps: int) -> list[float]:
    """Return the learning rates that a schedule gives in these steps.

    Raises
    ------
    CaptureError
        If they depend on more than the step.
    """
    if hasattr(schedule, "best"):
        raise CaptureError(f"{type(schedule).__name__} looks at the loss of each run")
    schedule = copy.deepcopy(schedule)
    rates = []
    for _ in range(steps):
        rates.append(float(schedule()))
        schedule.step()
    return rates


class MemberProgram:
    """The program of members that differ in numbers only.

    Parameters
    ----------
    rule : Optimizer
        A template that has the settings that all share.
    layers : sequence of Wrapper
        The wrappers around it, the inner ones first.
    varying : dict of str to array, shape (members,)
        The settings that differ.
    rates : Rates, optional
        Learning rates that change from step to step.
    surface : Plan
        Value and gradient at a point, single numbers.
    dimension, steps : int
    noise : array, shape (steps, dimension), optional
        Added to the gradients.
    arrival : (targets, distance), optional
        One array of coordinates a dimension: the program then has the state ``"arrival"``, the
        number of steps after which a member stays within this distance of its target, if it begins
        at 1 for members that start outside.

    Raises
    ------
    CaptureError
        If the rule branches on a setting that differs, or is not elementwise.

    Attributes
    ----------
    program : Program
    """

    def __init__(
        self,
        rule: Any,
        layers: Sequence[Any],
        varying: Mapping[str, Floats],
        rates: Rates | None,
        surface: Plan,
        dimension: int,
        steps: int,
        noise: Floats | None = None,
        arrival: tuple[Sequence[Floats], float] | None = None,
    ) -> None:
        refuse_rule(rule)
        if closed := [layer for layer in layers if vars(type(layer)).get("needs_closure")]:
            raise CaptureError(f"{type(closed[0]).__name__} evaluates several gradients a step")
        self.rule = rule
        self.layers = layers
        self.steps = steps
        self.dimension = dimension
        self.numbers = Numbers(steps)
        self.inputs: dict[str, Any] = {name: per_member(x) for name, x in varying.items()}
        self.rates: list[float] | None = None
        self._step_rates: Any = None
        if rates is not None and rates.columns is None:
            self.rates = rates.table[:, 0].tolist()
            self._step_rates = per_step(rates.table[:, 0])
        elif rates is not None:
            self.inputs["learning_rate"] = table(rates.table, rates.columns)
        self.tape = Tape(len(self.inputs) + 1, [x.data for x in self.inputs.values()])
        *symbols_of, self._t = self.tape.symbols()
        self._count = per_step(np.arange(1.0, steps + 1))
        symbols = dict(zip(self.inputs, symbols_of, strict=True))
        self.h = HyperParameters(**{**rule.settings, **symbols})
        self._columns_known: dict[Any, list[Any]] = {}
        self._slots = self._starts()
        self._memories = [dict(layer.member_memory(np.zeros(1))) for layer in layers]
        #: The arrays of the wrappers: the number of the wrapper, and the name.
        self._arrays = [
            (i, name)
            for i, memory in enumerate(self._memories)
            for name, value in memory.items()
            if hasattr(value, "dtype")
        ]
        self._kinds, self._traces = self._trace()
        self.program = self._written(surface, noise, arrival)

    def start(self, points: Floats) -> Floats:
        """Return the states of members at these points (one a row) before the first step."""
        states: Floats = np.empty((self.program.height, len(points)))
        memories = [layer.member_memory(points.T) for layer in self.layers]
        values = [points.T, *self._slots.values(), *(memories[i][name] for i, name in self._arrays)]
        for i, place in enumerate(self.program.rows):
            states[place] = values[i] if i < len(values) else 0.0
        return states

    def start_slots(self, points: Floats) -> dict[str, Floats]:
        """Return the slots of the rule before the first step, one row a member."""
        return {
            name: np.full(points.shape, x if np.ndim(x) == 0 else np.asarray(x)[:, None])
            for name, x in self._slots.items()
        }

    @property
    def varying(self) -> dict[str, Any]:
        """The settings that differ, one row a member; not a rate that changes with the steps."""
        return {name: x.data[:, None] for name, x in self.inputs.items() if x.level == "member"}

    def evaluated(self, states: Floats) -> Floats:
        """Return the points that are evaluated after the last step, one a row: averages, if any."""
        places = dict(
            zip([state.name for state in self.program.states], self.program.rows, strict=True)
        )
        for i in reversed(range(len(self.layers))):
            average = vars(self.layers[i]).get("average")
            if average is not None:
                last = {
                    name: states[places[f"layer {i} {name}"]] for j, name in self._arrays if i == j
                }
                found: Floats = average._average({**self._memories[i], **last}).T
                return found
        return states[places["parameter"]].T

    def _written(self, surface: Plan, noise: Floats | None, arrival: Any) -> Program:
        slots = list(self._slots)
        kept = [f"layer {i} {name}" for i, name in self._arrays]
        names = ["parameter", *(f"slot_{name}" for name in slots), *kept]
        states = [State(name, True) for name in names]
        if arrival is not None:
            states.append(State("arrival", False))
        builder = ProgramBuilder(self.dimension, states, self.numbers)
        builder.program.kinds = np.array(self._kinds, np.int64)
        noises = [] if noise is None else [per_step(column) for column in noise.T]
        for trace in self._traces:
            builder.begin()
            value, *gradient = builder.surface(surface)
            if noises:
                pairs = zip(gradient, noises, strict=True)
                gradient = [builder.op(np.add, g, one) for g, one in pairs]
            new = self._rule(builder, trace, builder.joined(gradient))
            constants = self._columns(trace, trace.layer_constants)
            before = [builder.state(1 + len(slots) + i) for i in range(len(kept))]
            after = builder.tape(trace.layer_ops, constants, [new["parameter"], *before])
            moved, *memories = (
                after[r] if r >= 0 else constants[-r - 1] for r in trace.layer_results
            )
            results = [moved, *(new[f"slot_{name}"] for name in slots), *memories]
            if arrival is not None:
                results.append(self._arrival(builder, moved, len(states) - 1, *arrival))
            builder.end(value, results)
        return builder.program

    def _starts(self) -> dict[str, Any]:
        """Return the first value of each slot: a float, or one value a member."""
        given = self.rule.slots_for(self.h)
        values = self._evaluate(self.tape.ops, self.tape.constants)
        return {
            name: _per_member(values[x.place]) if x.__class__ is Symbol else float(x)
            for name, x in given.items()
        }

    def _evaluate(self, ops: Sequence[Any], constants: Sequence[Any]) -> list[Any]:
        found = [*self.inputs.values(), self._count]
        for name, *references in ops:
            operands = [found[r] if r >= 0 else constants[-r - 1] for r in references]
            found.append(self.numbers.combine(name, *operands))
        return found

    # One step after the other -------------------------------------------------------------------

    def _trace(self) -> tuple[list[int], list[_Trace]]:
        """Run scalars and wrappers once a step; return each step's variant, and all of them."""
        rule, tape, rates, h = self.rule, self.tape, self.rates, self.h
        layer_tape = Tape(1 + len(self._arrays))
        variants: dict[Any, _Trace] = {}
        kinds: list[int] = []
        if not self.layers and (trace := self._traced_at_once()) is not None:
            return [0] * self.steps, [trace]
        for t in range(self.steps):
            tape.clear()
            if rates is not None:
                h.__dict__["learning_rate"] = rates[t]
            layout = self._layout(rule.scalars(t + 1, h))
            results = [0]
            if self.layers:
                results = self._trace_layers(layer_tape)
            key = (tuple(tape.ops), layout, tuple(layer_tape.ops), tuple(results))
            trace = variants.get(key)
            if trace is None:
                if len(variants) == _MOST_VARIANTS:
                    raise CaptureError(f"it has more than {_MOST_VARIANTS} kinds of steps")
                trace = variants[key] = _Trace(len(variants), *key)
            trace.steps.append(t)
            trace.constants.append(tape.constants)
            trace.layer_constants.append(layer_tape.constants)
            kinds.append(trace.number)
        return kinds, list(variants.values())

    def _traced_at_once(self) -> _Trace | None:
        """Trace the scalars of all steps in one call, if they do not branch on the step count.

        Of built-in rules only: those of a user may compute with whole numbers in their own way.
        """
        if not is_built_in(type(self.rule).scalars) or self.rates is not None:
            return None
        self.tape.clear()
        try:
            layout = self._layout(self.rule.scalars(self._t, self.h))
        except TypeError:
            return None
        trace = _Trace(0, tuple(self.tape.ops), layout, (), (0,))
        trace.steps = list(range(self.steps))
        trace.constants = [self.tape.constants]
        trace.layer_constants = [[]]
        return trace

    def _layout(self, scalars: Any) -> tuple[Any, ...]:
        """Return the scalars by name: references on the tape, or values that are not floats."""
        if scalars.__class__ is not dict:
            raise CaptureError("scalars() returns no dict")
        layout: list[tuple[Any, ...]] = []
        for name, x in scalars.items():
            if x.__class__ is Symbol:
                layout.append((name, x.place))
            elif x.__class__ is float:
                self.tape.constants.append(x)
                layout.append((name, -len(self.tape.constants)))
            elif x.__class__ is int or x.__class__ is bool:
                layout.append((name, None, x.__class__, x))
            else:
                raise CaptureError(f"the scalar {name!r} is no Python number")
        return tuple(layout)

    def _trace_layers(self, tape: Tape) -> list[int]:
        """Run the wrappers on symbols; return the references of the point and of their arrays."""
        tape.clear()
        p, *memories = tape.symbols()
        for (i, name), symbol in zip(self._arrays, memories, strict=True):
            self._memories[i][name] = symbol
        for i, layer in enumerate(self.layers):
            p, self._memories[i] = layer.member_after(self._memories[i], p)
        kept = [self._memories[i][name] for i, name in self._arrays]
        return [tape.reference(x) for x in (p, *kept)]

    def _columns(self, trace: _Trace, rows: list[list[float]]) -> list[Any]:
        """Return the constants of a tape: a float where all steps agree, else one value a step."""
        key = (trace.number, id(rows))
        if key not in self._columns_known:
            found: list[Any] = []
            for column in zip(*rows, strict=True):
                own = np.array(column)
                if not np.isfinite(own).all():
                    raise CaptureError("a number of the rule is not finite for some step.")
                bits = own.view(np.int64)  # 0.0 and -0.0 are different
                if (bits == bits[0]).all():
                    found.append(column[0])
                    continue
                values = np.full(self.steps, column[0])
                values[trace.steps] = own
                found.append(per_step(values))
            self._columns_known[key] = found
        return self._columns_known[key]

    def _rule(self, builder: ProgramBuilder, trace: _Trace, gradient: Any) -> dict[str, Any]:
        """Write the rule of a variant, and return what it gives."""
        found = self._evaluate(trace.ops, self._columns(trace, trace.constants))
        constants = self._columns(trace, trace.constants)
        moving: dict[str, Any] = {}
        static: dict[str, Any] = {}
        for name, place, *value in trace.layout:
            if place is None:
                static[name] = value[1]
            else:
                moving[name] = found[place] if place >= 0 else constants[-place - 1]
        given = dict(self.inputs)
        if self.rates is not None:
            given["learning_rate"] = self._step_rates
        instructions, outputs = self._captured(tuple(given), tuple(moving), static)
        arrays = [builder.state(0), gradient]
        arrays += [builder.state(1 + i) for i in range(len(self._slots))]
        inputs = [*arrays, *given.values(), *moving.values()]
        return builder.rule(instructions, outputs, {Place(i): x for i, x in enumerate(inputs)})

    def _captured(
        self, given: tuple[str, ...], moving: tuple[str, ...], static: dict[str, Any]
    ) -> Any:
        key = self._key(given, moving, static)
        if key not in _captured_rules:
            found = self._captured_anew(given, moving, static)
            if key is None:
                return found
            if len(_captured_rules) >= _MOST_RULES:
                _captured_rules.clear()
            _captured_rules[key] = found
        return _captured_rules[key]

    def _key(self, given: tuple[str, ...], moving: tuple[str, ...], static: dict[str, Any]) -> Any:
        """Return what a captured rule depends on; None if it has to be captured anew.

        Optlab's own rules do what their settings say; those of a user may have changed since.
        """
        rule = self.rule
        fixed = {name: value for name, value in rule.settings.items() if name not in given}
        plain = all(value.__class__ in (bool, int, float) for value in fixed.values())
        own = is_built_in(type(rule)) and is_built_in(type(rule).update)
        if not (own and plain and rule.decay_and_clip[0] is None):
            return None
        update = type(rule).update
        return type(rule), update, given, moving, repr(static), repr(fixed), tuple(self._slots)

    def _captured_anew(
        self, given: tuple[str, ...], moving: tuple[str, ...], static: dict[str, Any]
    ) -> Any:
        rule, read = observed_copy(self.rule)
        slots = list(self._slots)
        regularizer = self.rule.decay_and_clip[0]

        def step(arrays: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
            own = {name: numbers[f"h {name}"] for name in given}
            h = FixedHyperParameters(**{**self.rule.settings, **own})
            p, g = arrays["parameter"], arrays["gradient"]
            g, decay = with_decay(regularizer, g, p, self.rule.separate_decay)
            c = Scalars(**static, **{name: numbers[f"c {name}"] for name in moving})
            if decay is not None:
                c.decay = decay
            state = Slots(**{name: arrays[f"slot_{name}"] for name in slots})
            new, made, *terms = rule.update(p, g, state, h, c)
            if len(terms) > 1 or read:
                raise CaptureError("what the rule returns, or reads of itself, is not fixed.")
            if made.keys() != set(slots):
                raise CaptureError("the slots are not those of the class.")
            return {"parameter": new, **{f"slot_{name}": made[name] for name in slots}}

        example = np.ones(2)
        arrays = dict.fromkeys(["parameter", "gradient", *(f"slot_{n}" for n in slots)], example)
        numbers = {f"h {name}": 0.5 for name in given} | {f"c {name}": 0.5 for name in moving}
        return trace_blocks(step, arrays, numbers)

    def _arrival(
        self, builder: ProgramBuilder, point: Any, state: int, targets: Any, distance: float
    ) -> Any:
        """Write the count of the steps after which a member stays close to its target."""
        if self._targets is None:
            # A start that has no target never arrives.
            self._next = per_step(np.arange(2.0, self.steps + 2))
            self._targets = [per_member(np.where(np.isnan(x), np.inf, x)) for x in targets]
        apart = builder.op(np.subtract, point, builder.joined(self._targets))
        square = builder.op(np.multiply, apart, apart)
        total = builder.split(square, 0)
        for d in range(1, self.dimension):
            total = builder.op(np.add, total, builder.split(square, d))
        close = builder.op(np.less_equal, total, distance * distance, dtype=np.bool_)
        # After a step that ends outside, arrival is after the next one at the earliest.
        return builder.op(np.where, close, builder.state(state), self._next)

    _targets: Any = None

    # What a replay reads ------------------------------------------------------------------------

    def scalars_at(self, t: int) -> dict[str, Any]:
        """Return the scalars of a step from 0, one row a member where they differ."""
        trace = self._traces[self._kinds[t]]
        if trace.values is None:
            constants = self._columns(trace, trace.constants)
            found = self._evaluate(trace.ops, constants)
            trace.values = {
                name: value[1] if place is None
                else found[place] if place >= 0 else constants[-place - 1]
                for name, place, *value in trace.layout
            }  # fmt: skip
        return {name: self._value_at(x, t) for name, x in trace.values.items()}

    def rate_at(self, t: int) -> Any:
        """Return the learning rate of a step from 0, one row a member where it differs."""
        if self.rates is not None:
            return self.rates[t]
        return self._value_at(
            self.inputs.get("learning_rate", self.rule.settings["learning_rate"]), t
        )

    def _value_at(self, x: Any, t: int) -> Any:
        if not isinstance(x, Number):
            return x
        if x.level == "step":
            return float(x.data[t])
        if x.level == "member":
            return x.data[:, None]
        if x.level == "table":
            return x.data[t][x.columns][:, None]
        operands = [self._value_at(one, t) for one in x.operands]
        return _OPERATIONS[x.name](*operands)


def _per_member(value: Any) -> Any:
    if isinstance(value, Number):
        if value.level != "member":
            raise CaptureError("a slot begins at a number that changes with the steps.")
        return value.data
    return value


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "neg": np.negative, "sqrt": np.sqrt,
}  # fmt: skip


class _Trace:
    """What scalars and wrappers do in steps that do the same, and the constants of each step."""

    def __init__(self, number: int, ops: Any, layout: Any, layer_ops: Any, results: Any) -> None:
        self.number = number
        self.ops = ops
        self.layout = layout
        self.layer_ops = layer_ops
        self.layer_results = results
        self.steps: list[int] = []
        self.constants: list[list[float]] = []
        self.layer_constants: list[list[float]] = []
        self.values: dict[str, Any] | None = None
