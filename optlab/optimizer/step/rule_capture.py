"""Capture of an optimizer as data: its rule, slots, settings, and tables of its scalars.

`optlab.plan.javascript` writes such a rule for pages with no Python behind them. Clip, decay and
update are captured once for each form of the rule, with the settings as inputs. What `scalars`
computes of the step and the settings is traced for every step: sums, products, quotients and roots
of settings stay formulas, powers (``beta1**t``) and numbers that change from step to step become
tables. A setting that a rule branches on, or hands to a function of Python, is fixed: each of its
notches gets tables or a form of its own.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optlab.nn.base.parameter import Parameter
from optlab.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, GradientClip
from optlab.optimizer.regularizer import with_decay
from optlab.optimizer.rule.hyperparameters import checked_of, is_schedule
from optlab.optimizer.rule.namespaces import Scalars, Slots
from optlab.optimizer.step.after_steps import layer_part
from optlab.optimizer.step.fused import FixedHyperParameters, mutable_attributes, observed_copy
from optlab.optimizer.step.traced_steps import (
    COLUMNS,
    SettingNumber,
    TracedStep,
    changing_constants,
    evaluate,
    same_number,
    settings_read,
    traced_scalars,
    with_columns,
)
from optlab.plan import CaptureError, capture, capture_blocks
from optlab.plan.block_capture import BlockArray
from optlab.plan.javascript import rule as data
from optlab.plan.javascript.elementwise import ElementLoop
from optlab.plan.plan import Place
from optlab.plan.threads import run_pieces
from optlab.plan.traced_scalars import CaptureNumber
from optlab.plan.tracer import Tracer, written

#: What an attempt to capture may raise: of the engine, or of a rule that gets no plain number.
_REFUSALS = (CaptureError, TypeError, ValueError, AttributeError)


def capture_rule(
    optimizer: Any,
    steps: int,
    notches: Mapping[str, Sequence[Any]] | None = None,
    dimension: int = 2,
) -> data.Rule:
    """Capture an optimizer with its wrappers as data, for `optlab.plan.javascript_module`.

    Parameters
    ----------
    optimizer : Optimizer
        A template. Its rule is captured for parameters of float64, from the first step on.
    steps : int
        The most steps that will be taken.
    notches : mapping of str to sequence, optional
        Further values that settings will have: for every one of them the tables are made. A setting
        that enters no table takes any value, with or without notches. Beside hyper-parameters there
        are ``weight_decay`` and the settings of wrappers; notches of ``learning_rate`` may be
        schedules.
    dimension : int
        The number of elements of the parameter. Elementwise rules are captured for any number.

    Raises
    ------
    CaptureError
        If the rule cannot be captured: it draws random numbers, has a step of its own, branches on
        values, or keeps a state of its own.
    TypeError
        If what is given is no optimizer but its class, say.
    ValueError, TypeError
        If there is no such setting, or a value is out of its range.

    Examples
    --------
    >>> import optlab as ol
    >>> rule = capture_rule(ol.optimizer.Adam(0.1), steps=3, notches={"beta1": [0.5]})
    >>> part = rule.parts[0]
    >>> part.variants[0].slots
    {'moment1': 0.0, 'moment2': 0.0}
    >>> part.variants[0].tables["beta1_power"].rows
    {(0.9,): [0.9, 0.81, 0.7290000000000001], (0.5,): [0.5, 0.25, 0.125]}
    """
    _check_is_optimizer(optimizer)
    steps = _whole("steps", steps)
    dimension = _whole("dimension", dimension)
    if steps < 1 or dimension < 1:
        raise ValueError(f"steps and dimension are at least 1; got {steps} and {dimension}.")
    layers: list[Any] = optimizer.layers()
    inner = layers[0].inner_optimizer if layers else optimizer
    given = _checked_notches(notches)
    own_names = [dict(layer.own_settings) for layer in layers]
    core = _Core(inner, steps, dimension, given)
    known = {*core.settings, *(name for one in own_names for name in one)}
    for name in given:
        if name not in known:
            raise ValueError(
                f"{type(inner).__name__} has no setting {name!r} to give notches for; there is "
                f"{', '.join(sorted(known))}."
            )
    parts = [core.part()]
    taken = {name for variant in parts[0].variants for name in variant.slots}
    for layer in layers:
        part = layer_part(layer, steps, given, taken)
        if part is not None:
            parts.append(part)
    title = type(optimizer).__name__
    return data.Rule(title, dimension, steps, parts)


def _check_is_optimizer(optimizer: Any) -> None:
    """Raise a TypeError for what is no optimizer, which says what to write."""
    how = "capture_rule(ol.optimizer.Adam(0.1), steps=500)"
    if isinstance(optimizer, type):
        raise TypeError(
            f"capture_rule takes an optimizer with its settings; got the class "
            f"{optimizer.__name__}. Write capture_rule(ol.optimizer.{optimizer.__name__}(0.1), "
            "steps=500)."
        )
    if not hasattr(optimizer, "layers") or not hasattr(optimizer, "is_template"):
        raise TypeError(
            f"capture_rule takes an optimizer, such as {how}; got {type(optimizer).__name__}. (A "
            "surface is captured by ol.plan.capture_value_and_grad.)"
        )


def _checked_notches(notches: Any) -> dict[str, list[Any]]:
    if notches is None:
        return {}
    listed = isinstance(notches, Mapping) and all(
        isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, str)
        for values in notches.values()
    )
    if not listed:
        raise TypeError(
            "notches of capture_rule is a dict of lists, such as {'beta1': [0.5, 0.9]}; got "
            f"{notches!r}."
        )
    return {name: list(values) for name, values in notches.items()}


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name} of capture_rule is a whole number, such as steps=500; got {value!r}."
        ) from None


# The optimizer itself -----------------------------------------------------------------------------


class _Inputs:
    """What `scalars` of a rule gets in each step: settings as captured numbers, and as they are."""

    def __init__(self, core: _Core, settings: Mapping[str, Any], free: Sequence[str]) -> None:
        self.rule, _, self._ratio = core._bound(settings)
        self._core, self._settings, self._free = core, settings, free
        self._plain = {**settings, **{name: core.settings[name] for name in free}}
        self._made: Any = None
        self._begin: tuple[list[Any], int] = [], 0

    def of_step(self, t: int) -> tuple[Tracer, FixedHyperParameters, FixedHyperParameters]:
        """Return a tracer, and the hyper-parameters of step t, captured and plain."""
        core = self._core
        if self._made is None or core.rates:  # a rate of a schedule changes from step to step
            tracer = Tracer(BlockArray)
            numbers = {
                name: SettingNumber(tracer, tracer.place(), core._value(name, t))
                for name in self._free
            }
            captured = core._h(self._settings, numbers, self._ratio, t)
            self._made = tracer, captured, core._h(self._plain, {}, self._ratio, t)
            self._begin = tracer.instructions, tracer.count  # the rate may be a product
        found: tuple[Tracer, FixedHyperParameters, FixedHyperParameters] = self._made
        begin, found[0].count = self._begin
        found[0].instructions = list(begin)
        return found


class _Core:
    """The capture of an optimizer without its wrappers."""

    def __init__(
        self, optimizer: Any, steps: int, dimension: int, given: dict[str, list[Any]]
    ) -> None:
        self.optimizer, self.steps, self.dimension = optimizer, steps, dimension
        self.name = type(optimizer).__name__
        self._refuse_uncapturable()
        self.rates: dict[str, list[float]] = {}
        settings = dict(optimizer.settings)
        schedule = optimizer.schedule
        settings["learning_rate"] = (
            float(optimizer.get_lr()) if schedule is None else self._label_of(schedule)
        )
        self.regularizer, self.clip = optimizer.decay_and_clip
        coefficient = getattr(self.regularizer, "coeff", None)
        if "weight_decay" not in settings and type(coefficient) is float:
            settings["weight_decay"] = coefficient
        self.settings = settings
        self.notches = {name: self._notches(name, given.get(name, [])) for name in settings}
        self._rows: dict[Any, list[TracedStep]] = {}
        #: Settings of the parameter, which a function of the user may have chosen.
        self._own = self._bound(settings)[1]
        self.free = [
            name
            for name, value in settings.items()
            if name not in self._own and (type(value) is float or name == "learning_rate")
        ]

    def _refuse_uncapturable(self) -> None:
        optimizer, why = self.optimizer, ""
        if optimizer.custom_step:
            why = "it has a step() of its own, which is more than a rule applied to gradients"
        elif optimizer.draws:
            why = "it draws random numbers"
        elif optimizer.not_finite != "pass":
            why = f"not_finite={optimizer.not_finite!r} looks at values"
        elif changeable := mutable_attributes(optimizer):
            why = f"it may change its {changeable[0]!r}"
        if why:
            raise CaptureError(f"{self.name} cannot be captured: {why}.")

    # Settings -----------------------------------------------------------------------------------

    def _label_of(self, schedule: Any) -> str:
        """Return the text of a schedule, by which a page chooses it, and keep its rates."""
        try:
            rates = schedule.preview(self.steps)
        except TypeError as error:
            raise CaptureError(f"{type(schedule).__name__}: {error}") from error
        label = repr(schedule)
        self.rates[label] = [float(rate) for rate in rates]
        return label

    def _notches(self, name: str, values: list[Any]) -> list[Any]:
        """Return the values of a setting, checked, its own first."""
        found = [self.settings[name]]
        for value in values:
            if name == "learning_rate" and is_schedule(value):
                value = self._label_of(value)
            elif name in self.optimizer.hyperparameters:
                value = checked_of(type(self.optimizer), name, value)
            else:
                value = type(self.regularizer)(value).coeff
            if not any(value == one and type(value) is type(one) for one in found):
                found.append(value)
        return found

    def _bound(self, settings: Mapping[str, Any]) -> tuple[Any, dict[str, Any], float]:
        """Return the optimizer with these settings, what differs for its parameter, its rate."""
        rule = copy.copy(self.optimizer)
        own = {k: x for k, x in settings.items() if k in self.optimizer.hyperparameters}
        rate = own["learning_rate"]
        own["learning_rate"] = self.rates[rate][0] if isinstance(rate, str) else rate
        rule.settings, rule.schedule = own, None
        bound = rule.bind([Parameter(np.zeros(self.dimension), name="point")])
        h, ratio = bound.groups[0].arenas[0].settings[0]
        chosen = {
            k: x
            for k, x in vars(h).items()
            if k != "learning_rate" and x is not own[k] and x != own[k]
        }
        return bound, chosen, float(ratio)

    def _h(
        self, settings: Mapping[str, Any], numbers: Mapping[str, Any], ratio: float, t: int
    ) -> FixedHyperParameters:
        """Return the hyper-parameters of step t, some of them captured numbers."""
        values = {k: x for k, x in settings.items() if k in self.optimizer.hyperparameters}
        rate = values["learning_rate"]
        values["learning_rate"] = self.rates[rate][t - 1] if isinstance(rate, str) else rate
        values |= {k: x for k, x in numbers.items() if k in values} | self._own
        if ratio != 1.0:
            values["learning_rate"] = values["learning_rate"] * ratio
        return FixedHyperParameters(**values)

    def _value(self, name: str, t: int = 1) -> float:
        value = self.settings[name]
        return self.rates[value][t - 1] if isinstance(value, str) else value

    # Scalars ------------------------------------------------------------------------------------

    def _row(self, settings: Mapping[str, Any], free: Sequence[str]) -> list[TracedStep]:
        """Return the scalars of every step, traced with these settings as inputs."""
        key = (tuple(free), repr(sorted((k, x) for k, x in settings.items() if k not in free)))
        if key not in self._rows:
            inputs = _Inputs(self, settings, free)
            known: dict[Any, TracedStep] = {}
            self._rows[key] = [self._scalars_of(inputs, t, known) for t in range(1, self.steps + 1)]
        return self._rows[key]

    def _scalars_of(self, inputs: _Inputs, t: int, known: dict[Any, TracedStep]) -> TracedStep:
        """Trace the scalars of a step; powers of settings are apart."""
        tracer, h, plain_h = inputs.of_step(t)
        found = inputs.rule.scalars(t, h)
        if type(found) is not dict:
            raise TypeError(f"{self.name}.scalars(t, h) must return a dict of names and numbers.")
        plain = inputs.rule.scalars(t, plain_h)
        results: dict[str, Any] = {}
        for name, x in found.items():
            if not same_number(x.value if isinstance(x, CaptureNumber) else x, plain.get(name)):
                raise CaptureError(
                    f"{self.name}.scalars(t, h) computes {name} otherwise when it is captured."
                )
            number = x.item() if isinstance(x, np.generic) else x
            if not isinstance(number, (CaptureNumber, bool, int, float)):
                raise CaptureError(f"the scalar {name} of {self.name} is no number.")
            results[name] = written(number)
        return traced_scalars(tracer.instructions, results, known)

    def _starts(self, settings: Mapping[str, Any], free: Sequence[str]) -> dict[str, Any]:
        """Return the start value of each slot: a number, or the setting that it is."""
        rule, _, _ = self._bound(settings)
        tracer = Tracer(BlockArray)
        numbers = {name: SettingNumber(tracer, tracer.place(), self._value(name)) for name in free}
        found: dict[str, Any] = {}
        for name, x in rule.slots_for(self._h(settings, numbers, 1.0, 1)).items():
            if isinstance(x, CaptureNumber) and x.place.number >= len(free):
                raise CaptureError(f"the start of the slot {name} is computed of settings.")
            found[name] = free[x.place.number] if isinstance(x, CaptureNumber) else float(x)
        return found

    def _blocked(self, attempt: Callable[[Sequence[str]], Any], free: Sequence[str]) -> list[str]:
        """Return the settings that cannot be inputs of a capture.

        Raises
        ------
        Exception
            That of a capture with no setting as an input.
        """
        try:
            attempt(free)
        except _REFUSALS:
            attempt([])
        else:
            return []
        kept: list[str] = []
        for name in free:
            try:
                attempt([*kept, name])
            except _REFUSALS:
                continue
            kept.append(name)
        return [name for name in free if name not in kept]

    # The update ---------------------------------------------------------------------------------

    def _update(
        self,
        settings: Mapping[str, Any],
        free: Sequence[str],
        statics: Mapping[str, Any],
        scalars: Mapping[str, float],
        whole: bool,
    ) -> tuple[ElementLoop | Any, list[str], list[str]]:
        """Capture clip, decay and update; return the plan, its arrays and its outputs.

        With `whole` the plan is one of arrays of the given number of elements: of a rule that takes
        norms.
        """
        bound, _, ratio = self._bound(settings)
        rule, read = observed_copy(bound)
        names = list(bound.slots_for(self._h(settings, {}, 1.0, 1)))
        labels = ["p", "g", *(f"slot_{name}" for name in names)]

        def step(arrays: dict[str, Any], numbers: dict[str, Any]) -> dict[str, Any]:
            h = self._h(settings, numbers, ratio, 1)
            p, g = arrays["p"], self._clipped(arrays["p"], arrays["g"])
            regularizer = self.regularizer
            if "weight_decay" in numbers and "weight_decay" not in bound.hyperparameters:
                regularizer = copy.copy(regularizer)
                regularizer.coeff = numbers["weight_decay"]
            elif regularizer is not None and "weight_decay" in settings:
                regularizer = copy.copy(regularizer)
                regularizer.coeff = settings["weight_decay"]
            g, decay = with_decay(regularizer, g, p, bound.separate_decay)
            slots = Slots(**{name: arrays[f"slot_{name}"] for name in names})
            c = Scalars(**statics, **{name: numbers[f"c.{name}"] for name in scalars})
            if decay is not None:
                c.decay = decay
            new, made, *terms = rule.update(p, g, slots, h, c)
            if len(terms) > 1 or read:
                raise CaptureError("what the rule returns, or reads of itself, is not fixed.")
            if made.keys() != set(names):
                raise CaptureError("the slots are not those of the class.")
            return {"p": new, **{f"slot_{name}": made[name] for name in names}}

        values = {name: self._value(name) for name in free}
        values |= {f"c.{name}": x for name, x in scalars.items()}
        if not whole:
            example = np.ones(2)
            plan = capture_blocks(step, dict.fromkeys(labels, example), values)
            loop = ElementLoop.of(plan)
            rows = [
                np.linspace(0.5, 2.5, 4) * (-1.0) ** (i + np.arange(4)) for i in range(len(labels))
            ]
            with np.errstate(all="ignore"):
                wanted = step(
                    dict(zip(labels, [x.copy() for x in rows], strict=True)), dict(values)
                )
                run_pieces(plan, list(values.values()), [rows])
            for label, row in zip(labels, rows, strict=True):
                if label != "g" and not np.array_equal(wanted[label], row, equal_nan=True):
                    raise CaptureError("the rule computes otherwise when it is captured.")
            return loop, ["p", "g", *names], []

        def flat(*given: Any) -> tuple[Any, ...]:
            arrays = dict(zip(labels, given, strict=False))
            numbers = dict(zip(values, given[len(labels) :], strict=True))
            return tuple(step(arrays, numbers).values())

        examples = [np.linspace(1.0, 2.0, self.dimension) for _ in labels]
        with np.errstate(all="ignore"):
            whole_plan = capture(flat, *examples, *map(np.float64, values.values()))
        return whole_plan, ["p", "g", *names], ["p", *names]

    def _clipped(self, p: Any, g: Any) -> Any:
        if self.clip is None:
            return g
        clip = self.clip
        if isinstance(clip, ClipGradByGlobalNorm):  # of one parameter
            clip = ClipGradByNorm(clip.clip_norm)
        if isinstance(clip, GradientClip):
            return clip.clip([g])[0]
        ((_, clipped),) = clip([(p, g)])
        return clipped

    # All of it ----------------------------------------------------------------------------------

    def part(self) -> data.Part:
        """Return the optimizer as data."""
        rule_names = [name for name in self.free if name in self.optimizer.hyperparameters]

        blocked = self._blocked(lambda names: self._starts(self.settings, names), rule_names)
        rule_names = [name for name in rule_names if name not in blocked]
        blocked += self._blocked(lambda names: self._row(self.settings, names), rule_names)
        free = [name for name in rule_names if name not in blocked]
        seen: dict[Any, TracedStep] = {}
        for one in self._row(self.settings, free):
            seen.setdefault((tuple(one.statics.items()), tuple(one.results)), one)
        whole = self._must_be_whole(next(iter(seen.values())))
        blocked_in_update: list[str] = []
        for one in seen.values():
            scalars = {k: 0.5 for k in one.results if k not in one.statics}
            attempt = lambda names, one=one, scalars=scalars: self._update(  # noqa: E731
                self.settings, names, one.statics, scalars, whole
            )
            names = [name for name in self.free if name not in blocked_in_update]
            blocked_in_update += self._blocked(attempt, names)
        return self._assembled(blocked, blocked_in_update, whole)

    def _must_be_whole(self, traced: TracedStep) -> bool:
        """Return whether the rule is no loop over elements; raise if it cannot be captured."""
        scalars = {k: 0.5 for k in traced.results if k not in traced.statics}
        try:
            self._update(self.settings, [], traced.statics, scalars, False)
        except _REFUSALS as error:
            norms = isinstance(self.clip, GradientClip) or self.optimizer.kind != "elementwise"
            if not norms:
                raise CaptureError(f"{self.name} cannot be captured: {error}") from error
            self._update(self.settings, [], traced.statics, scalars, True)
            return True
        return False

    def _assembled(
        self, blocked: list[str], blocked_in_update: list[str], whole: bool
    ) -> data.Part:
        fixed = [
            name
            for name in self.settings
            if name not in self.free or name in blocked or name in blocked_in_update
        ]
        in_scalars = [
            name for name in self.free
            if name in self.optimizer.hyperparameters and name not in blocked
        ]  # fmt: skip
        in_update = [name for name in self.free if name not in blocked_in_update]
        variants = data.combinations(fixed, self.notches)
        traces = []
        for chosen in variants:
            settings = {**self.settings, **chosen}
            traces.append(self._row(settings, in_scalars))
        kinds = list(dict.fromkeys(one.key for row in traces for one in row))
        plans: dict[Any, Any] = {}
        found = []
        for chosen, row in zip(variants, traces, strict=True):
            settings = {**self.settings, **chosen}
            tables: dict[str, data.Table] = {}
            forms: list[data.Form] = []
            numbers: dict[Any, int] = {}
            for one in row:
                if one.key in numbers:
                    continue
                numbers[one.key] = len(forms)
                kind = kinds.index(one.key)
                alike = [x for other in traces for x in other if x.key == one.key]
                at = [t for t, x in enumerate(row) if x.key == one.key]
                scalars = self._columns(kind, in_scalars, row, at, alike, tables)
                names = [k for k in one.results if k not in one.statics]
                key = (
                    tuple(one.statics.items()), tuple(names),
                    tuple((k, repr(x)) for k, x in chosen.items() if k not in in_update),
                )  # fmt: skip
                if key not in plans:
                    plans[key] = self._update(
                        settings, in_update, one.statics, dict.fromkeys(names, 0.5), whole
                    )
                plan, arrays, outputs = plans[key]
                inputs = [*(f"h.{name}" for name in in_update), *names]
                forms.append(data.Form(scalars, plan, arrays, inputs, outputs))
            slots = self._starts(settings, in_scalars)
            form_of_step = [numbers[one.key] for one in row]
            found.append(data.Variant(chosen, slots, forms, form_of_step, tables))
        return data.Part(self.name, self.settings, self.notches, self.rates, found)

    def _columns(
        self,
        kind: int,
        free: Sequence[str],
        row: list[TracedStep],
        at: list[int],
        alike: list[TracedStep],
        tables: dict[str, data.Table],
    ) -> data.Scalars:
        """Return the scalars of the steps `at`, which are of one kind, and make their tables."""
        first = row[at[0]]
        inputs = {Place(i): f"h.{name}" for i, name in enumerate(free)}
        columns: dict[int, Place] = {}
        for number in changing_constants(alike):
            name = f"c{kind}_{number}"
            values = [0.0] * self.steps
            for t in at:
                values[t] = row[t].constants[number]
            tables[name] = data.Table((), {(): values})
            columns[number] = Place(COLUMNS + number)
            inputs[columns[number]] = f"table.{name}[t]"
        for place in first.powers:
            name = self._power_table(place, kind, free, row, at, tables)
            inputs[place] = f"table.{name}[t]"
        instructions, results = with_columns(first, columns)
        results = {k: x for k, x in results.items() if k not in first.statics}
        return data.Scalars(instructions, inputs, results)

    def _power_table(
        self,
        place: Place,
        kind: int,
        free: Sequence[str],
        row: list[TracedStep],
        at: list[int],
        tables: dict[str, data.Table],
    ) -> str:
        """Make the table of a power, by Python, for all notches of the settings that it reads."""
        made = row[at[0]].made
        read = sorted(settings_read(place, made, len(free)))
        names = tuple(free[i] for i in read)
        base, exponents = made[place].arguments[0], [row[t].made[place].arguments[1] for t in at]
        simple = base == Place(read[0]) and exponents == [t + 1 for t in at]
        name = f"{names[0]}_power" if simple else f"c{kind}_{place.number}"
        if name in tables and simple:
            known = tables[name].rows
        else:
            known = {
                tuple(one.values()): [0.0] * self.steps
                for one in data.combinations(names, self.notches)
            }
            tables[name] = data.Table(names, known)
        for values, numbers in known.items():
            given = {Place(i): x for i, x in zip(read, values, strict=True)}
            if simple and type(values[0]) is float and 0.0 < values[0] <= 1.0:
                for t in at:  # `evaluate` in short: no such power is out of range
                    numbers[t] = values[0] ** (t + 1)
                continue
            for t in at:
                rates = {p: self.rates[x][t] if isinstance(x, str) else x for p, x in given.items()}
                numbers[t] = evaluate(place, row[t].made, rates)
        return name
