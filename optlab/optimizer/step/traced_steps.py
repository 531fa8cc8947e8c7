"""What a step computes of numbers alone, traced for every step: operations, constants, powers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from optlab.plan import CaptureError
from optlab.plan.plan import Instruction, Place
from optlab.plan.traced_scalars import CaptureNumber

#: Places of the columns of tables, behind all others.
COLUMNS = 1_000_000

_COMPUTE: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "pow": operator.pow, "neg": operator.neg, "sqrt": math.sqrt,
}  # fmt: skip


class SettingNumber(CaptureNumber):
    """A captured number whose square root is captured, too: `square_root` of a rule calls it."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.sqrt and method == "__call__" and not kwargs:
            return self.note("sqrt", (self,), math.sqrt(self.value))
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)


class TracedStep(NamedTuple):
    """The operations of one step, with what differs from step to step apart.

    Attributes
    ----------
    key : tuple
        Equal for steps that differ in constants alone.
    statics : dict of str to int or bool
    instructions : list of Instruction
    results : dict of str to Place or float
    constants : list of float
        In the order in which they stand in the instructions, then in the results.
    made : dict of Place to Instruction
        All operations on numbers, those too that only powers read.
    powers : tuple of Place
        The powers that instructions and results read.
    """

    key: Any
    statics: dict[str, Any]
    instructions: list[Instruction]
    results: dict[str, Any]
    constants: list[float]
    made: dict[Place, Instruction] = {}
    powers: tuple[Place, ...] = ()


def traced_step(instructions: list[Instruction], results: Mapping[str, Any]) -> TracedStep:
    """Return operations and results with their constants apart."""
    constants: list[float] = []

    def part(x: Any, numbers: tuple[type, ...] = (float, int)) -> Any:
        if isinstance(x, Place):
            return ("place", x.number)
        if type(x) in numbers:
            constants.append(x)
            return "constant"
        return ("static", x)

    steps = tuple(
        (one.name, one.function, tuple(part(x) for x in one.arguments),
         tuple((k, part(x)) for k, x in one.keywords), one.result.number)
        for one in instructions
    )  # fmt: skip
    # A whole number among the scalars chooses a form of the rule.
    key = (steps, tuple((name, part(x, (float,))) for name, x in results.items()))
    statics = {k: x for k, x in results.items() if isinstance(x, (bool, int))}
    return TracedStep(key, statics, instructions, dict(results), constants)


def traced_scalars(
    instructions: list[Instruction], results: Mapping[str, Any], known: dict[Any, TracedStep]
) -> TracedStep:
    """Return what a step computes of numbers, powers apart.

    Steps are alike but for constants: what is found of the first of a form is kept in `known`, and
    of the others the constants alone are read.
    """
    made = {one.result: one for one in instructions}
    form = (
        tuple((one.name, one.result, tuple(map(_kind, one.arguments))) for one in instructions),
        tuple((name, _kind(x, (float,))) for name, x in results.items()),
    )
    first = known.get(form)
    if first is None:
        powers = {place for place, one in made.items() if one.name == "pow"}
        needed = needed_numbers(instructions, results, powers)
        kept = [x for x in instructions if x.result in needed and x.result not in powers]
        traced = traced_step(kept, results)
        read = tuple(sorted(powers & needed))
        known[form] = traced._replace(key=(traced.key, read), made=made, powers=read)
        return known[form]
    kept = [made[one.result] for one in first.instructions]
    constants = [x for one in kept for x in one.arguments if type(x) in (float, int)]
    constants += [x for x in results.values() if type(x) is float]
    found = (first.key, first.statics, kept, dict(results), constants, made, first.powers)
    return TracedStep(*found)  # `_replace` takes several times as long


def _kind(x: Any, numbers: tuple[type, ...] = (float, int)) -> Any:
    """Return a place or a fixed value itself, and of a constant that it is one."""
    if type(x) is Place:
        return x
    return "constant" if type(x) in numbers else (type(x), x)


def with_columns(
    traced: TracedStep, columns: Mapping[int, Place]
) -> tuple[list[Instruction], dict[str, Any]]:
    """Return instructions and results with some of their constants replaced by columns."""
    count = iter(range(len(traced.constants)))

    def part(x: Any, numbers: tuple[type, ...] = (float, int)) -> Any:
        return columns.get(next(count), x) if type(x) in numbers else x

    instructions = [
        one._replace(
            arguments=tuple(map(part, one.arguments)),
            keywords=tuple((k, part(x)) for k, x in one.keywords),
        )
        for one in traced.instructions
    ]
    return instructions, {name: part(x, (float,)) for name, x in traced.results.items()}


def changing_constants(found: Iterable[TracedStep]) -> list[int]:
    """Return the numbers of the constants that are not the same in all of these."""
    rows = [one.constants for one in found]
    # Zeros of two signs are not the same, NaN is the same as NaN.
    return [
        i for i, values in enumerate(zip(*rows, strict=True)) if len(set(map(repr, values))) > 1
    ]


def same_number(a: Any, b: Any) -> bool:
    """Return whether two numbers are the same; NaN is NaN."""
    return bool(a == b or (a != a and b != b))


def needed_numbers(
    instructions: list[Instruction], results: Mapping[str, Any], powers: set[Place]
) -> set[Place]:
    """Return the results that are read; what a power is made of is in its table."""
    wanted = {x for x in results.values() if isinstance(x, Place)}
    for one in reversed(instructions):
        if one.result in wanted and one.result not in powers:
            wanted |= one.reads()
    return wanted


def settings_read(place: Place, made: Mapping[Place, Instruction], count: int) -> set[int]:
    """Return the numbers of the settings from which a number is computed."""
    if place.number < count:
        return {place.number}
    return set().union(*(settings_read(x, made, count) for x in made[place].reads()))


def evaluate(x: Any, made: Mapping[Place, Instruction], values: Mapping[Place, Any]) -> Any:
    """Compute a number from settings in Python floats."""
    if not isinstance(x, Place):
        return x
    if x in values:
        return values[x]
    one = made[x]
    try:
        return _COMPUTE[one.name](*[evaluate(y, made, values) for y in one.arguments])
    except (ZeroDivisionError, OverflowError) as error:
        raise CaptureError(f"a scalar of a step raises {type(error).__name__}.") from error
