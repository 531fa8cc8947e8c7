"""Capture of what a wrapper does after each step of the optimizer inside, for `rule_capture`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from optlab.optimizer.step.traced_steps import (
    COLUMNS,
    TracedStep,
    changing_constants,
    traced_step,
    with_columns,
)
from optlab.plan.block_capture import BlockArray
from optlab.plan.javascript import rule as data
from optlab.plan.javascript.elementwise import ElementLoop
from optlab.plan.plan import Place
from optlab.plan.tracer import Tracer, written


class AfterSteps(NamedTuple):
    """What a wrapper does after the steps of the optimizer inside, for `capture_rule`.

    Attributes
    ----------
    slots : dict of str to float or None
        Start values; None for that of the weights.
    after : callable
        Takes the step, from 1, the weights and a dict of the slots; returns new ones. It is called
        for one step after another, and keeps counts of its own.
    evaluated : str or None
        The slot with the weights that are evaluated, if not the parameters.
    """

    slots: dict[str, float | None]
    after: Callable[[int, Any, dict[str, Any]], tuple[Any, dict[str, Any]]]
    evaluated: str | None = None


class _Layer(Protocol):
    """A wrapper, as `capture_rule` sees it."""

    own_settings: dict[str, Any]

    def _captured(self, own: Mapping[str, Any]) -> AfterSteps | None:
        """Return what it does with these settings of its own; None if that changes nothing."""


class LayerArray(BlockArray):
    """The weights, or a slot of a wrapper, in the capture of what the wrapper does."""

    __slots__ = ()

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in (np.zeros_like, np.ones_like):
            return float(function is np.ones_like)
        return super().__array_function__(function, types, args, kwargs)


def layer_part(
    layer: _Layer, steps: int, given: dict[str, list[Any]], taken: set[str]
) -> data.Part | None:
    """Return what a wrapper does after each step as data; None if it changes nothing."""
    settings = {k: x for k, x in layer.own_settings.items() if not callable(x)}
    notches = {k: _distinct([x, *given.get(k, [])]) for k, x in settings.items()}
    if layer._captured(settings) is None:
        return None
    variants = data.combinations(list(settings), notches)
    found = [layer._captured({**settings, **chosen}) for chosen in variants]
    traces = [_trace_layer(one, steps) for one in found if one is not None]
    kinds = list(dict.fromkeys(one.key for row in traces for one in row))
    names: dict[str, str] = {}
    made = []
    evaluated = None
    for chosen, after, row in zip(variants, found, traces, strict=True):
        assert after is not None
        for name in after.slots:
            names[name] = names.get(name) or _free(name, taken)
        evaluated = after.evaluated and names[after.evaluated]
        tables: dict[str, data.Table] = {}
        forms: list[data.Form] = []
        numbers: dict[Any, int] = {}
        for one in row:
            if one.key in numbers:
                continue
            numbers[one.key] = len(forms)
            alike = [x for other in traces for x in other if x.key == one.key]
            forms.append(_layer_form(one, kinds.index(one.key), alike, row, after, names, tables))
        slots = {names[name]: start for name, start in after.slots.items()}
        made.append(data.Variant(chosen, slots, forms, [numbers[one.key] for one in row], tables))
    return data.Part(type(layer).__name__, settings, notches, {}, made, evaluated)


def _trace_layer(after: AfterSteps, steps: int) -> list[TracedStep]:
    """Trace what a wrapper does after each step."""
    found = []
    for t in range(1, steps + 1):
        tracer = Tracer(LayerArray)
        p, *slots = (LayerArray(tracer, tracer.place(), np.ones(2)) for _ in ("p", *after.slots))
        new, memory = after.after(t, p, dict(zip(after.slots, slots, strict=True)))
        results = {"p": new, **{name: memory[name] for name in after.slots}}
        found.append(traced_step(tracer.instructions, {k: written(x) for k, x in results.items()}))
    return found


def _layer_form(
    one: TracedStep,
    kind: int,
    alike: list[TracedStep],
    row: list[TracedStep],
    after: AfterSteps,
    names: Mapping[str, str],
    tables: dict[str, data.Table],
) -> data.Form:
    """Return one kind of step of a wrapper, and make the tables of its constants."""
    changing = changing_constants(alike)
    arrays = ["p", *after.slots]
    inputs = []
    for number in changing:
        inputs.append(f"a{kind}_{number}")
        values = [x.constants[number] if x.key == one.key else 0.0 for x in row]
        tables[inputs[-1]] = data.Table((), {(): values})
    columns = {number: Place(COLUMNS + i) for i, number in enumerate(changing)}
    instructions, results = with_columns(one, columns)

    def place(x: Any) -> Any:
        """Make room for the numbers behind the arrays."""
        if not isinstance(x, Place) or x.number < len(arrays):
            return x
        if x.number >= COLUMNS:
            return Place(len(arrays) + x.number - COLUMNS)
        return Place(x.number + len(changing))

    steps = [
        x._replace(
            arguments=tuple(map(place, x.arguments)),
            keywords=tuple((k, place(y)) for k, y in x.keywords),
            result=place(x.result),
        )
        for x in instructions
    ]
    loop = ElementLoop(arrays, inputs, steps, {k: place(x) for k, x in results.items()}, [])
    listed = ["p", *(names[name] for name in after.slots)]
    numbers = [f"table.{name}[t]" for name in inputs]
    return data.Form(data.Scalars([], {}, {}), loop, listed, numbers, [])


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if not any(value == one and type(value) is type(one) for one in found):
            found.append(value)
    return found


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no other slot has; nested wrappers have slots slow, slow2, ..."""
    found, count = name, 2
    while found in taken:
        found, count = f"{name}{count}", count + 1
    taken.add(found)
    return found
