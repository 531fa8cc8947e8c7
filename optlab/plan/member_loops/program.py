"""The program of a member loop: what one step does to the state of every member.

A program has a few variants, for steps that do different things (the rectified steps of RAdam, the
synchronisations of LookAhead). A value has one number a member, or is *wide*: one number for each
coordinate of the point, computed alike.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from optlab.plan.blocks import UFUNCS
from optlab.plan.member_loops.numbers import Floats, Number, Numbers
from optlab.plan.plan import Instruction, Place, Plan
from optlab.plan.tracer import CaptureError

#: Operations that NumPy, numba and Python's floats compute to the same bits.
EXACT: tuple[Any, ...] = (
    np.add, np.subtract, np.multiply, np.divide, np.negative, np.positive, np.absolute, np.square,
    np.sqrt, np.reciprocal, np.maximum, np.minimum, np.sign, np.where, np.clip, np.less,
    np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.isnan, np.isfinite,
    np.isinf, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_and, np.logical_or,
    np.logical_xor, np.logical_not, np.invert, np.astype,
)  # fmt: skip

_NUMBER_UFUNCS = {**UFUNCS, "sqrt": np.sqrt}


class Ref(NamedTuple):
    """A reference to a value.

    `kind` is "value" (the result of an operation), "state" (the old state), "coordinate" (of the
    old point), "member", "step" or "table" (a number of the program).
    """

    kind: str
    number: int
    wide: bool = False


class State(NamedTuple):
    """A part of the state of every member: a point, a slot, a counter."""

    name: str
    wide: bool


class Op(NamedTuple):
    """An operation; `function` is a ufunc, ``np.where`` or ``np.clip``.

    Or it is "join", which makes coordinates a wide value, or ("split", d), which takes one of it.
    """

    function: Any
    operands: tuple[Any, ...]
    result: Ref
    dtype: Any


@dataclass
class Variant:
    """What a step does.

    Attributes
    ----------
    ops : list of Op
    value : Ref or float
        The loss at the old point.
    new : list
        The new value of each state: a `Ref` or a float.
    """

    ops: list[Op]
    value: Any
    new: list[Any]


@dataclass
class Program:
    """A loop over steps for any number of members.

    Attributes
    ----------
    dimension : int
    states : list of State
        The point first.
    variants : list of Variant
    kinds : array of int
        The variant of each step.
    member_numbers : list of array, shape (members,)
    step_numbers : list of array, shape (steps,)
    tables : list of (array of shape (steps, columns), array of int of shape (members,))
    """

    dimension: int
    states: list[State]
    variants: list[Variant]
    kinds: Any
    member_numbers: list[Floats] = field(default_factory=list)
    step_numbers: list[Floats] = field(default_factory=list)
    tables: list[tuple[Floats, Any]] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return len(self.kinds)

    @property
    def rows(self) -> list[slice]:
        """The rows of a state array that hold each state."""
        found, first = [], 0
        for state in self.states:
            count = self.dimension if state.wide else 1
            found.append(slice(first, first + count))
            first += count
        return found

    @property
    def height(self) -> int:
        """The number of rows of a state array."""
        return self.rows[-1].stop  # type: ignore[no-any-return]

    @property
    def work(self) -> int:
        """Operations on numbers that one member takes in all steps."""
        each = [
            sum(self.dimension if op.result.wide else 1 for op in variant.ops)
            for variant in self.variants
        ]
        counts: Any = np.bincount(self.kinds, minlength=len(each))
        return sum(map(operator.mul, each, counts.tolist()))

    @property
    def inexact(self) -> list[str]:
        """The names of operations whose bits NumPy alone gives."""
        found = {
            getattr(op.function, "__name__", str(op.function))
            for variant in self.variants
            for op in variant.ops
            if op.function not in EXACT and not isinstance(op.function, (str, tuple))
        }
        return sorted(found)


class ProgramBuilder:
    """Builds the variants of a program."""

    def __init__(self, dimension: int, states: Sequence[State], numbers: Numbers) -> None:
        self.program = Program(dimension, list(states), [], np.zeros(numbers.steps, np.int64))
        self.numbers = numbers
        self._ops: list[Op] = []
        self._known: dict[Any, Ref] = {}
        self._places: dict[int, tuple[Ref, Number]] = {}
        self._dtypes: dict[Any, Any] = {}
        self._count = 0

    def begin(self) -> None:
        """Begin a variant."""
        self._ops, self._known = [], {}

    def end(self, value: Any, new: Sequence[Any]) -> None:
        """End a variant: its loss, and the new values of the states."""
        value, *new = map(self._operand, (value, *new))
        wanted = {x for x in (value, *new) if isinstance(x, Ref)}
        kept: list[Op] = []
        for op in reversed(self._ops):
            if op.result in wanted:
                kept.append(op)
                wanted |= {x for x in op.operands if isinstance(x, Ref)}
        self.program.variants.append(Variant(kept[::-1], value, new))

    def op(self, function: Any, *operands: Any, dtype: Any = None, wide: bool = False) -> Any:
        """Write an operation, and return its result; equal operations are done once."""
        given = tuple(self._operand(x) for x in operands)
        if function is np.multiply and isinstance(given[0], float) and given[0] == 1:
            return given[1]  # exact
        wide = wide or any(isinstance(x, Ref) and x.wide for x in given)
        key = (function, wide, *(x if isinstance(x, Ref) else repr(x) for x in given))  # -0.0, 0.0
        if key not in self._known:
            result = Ref("value", self._count, wide)
            self._count += 1
            self._ops.append(Op(function, given, result, np.dtype(dtype or np.float64)))
            self._known[key] = result
            self._dtypes[result] = self._ops[-1].dtype
        return self._known[key]

    def _operand(self, x: Any) -> Any:
        if isinstance(x, Number):
            return self.number(x)
        if isinstance(x, (np.floating, np.integer)):
            return float(x)
        if isinstance(x, (bool, np.bool_, int, float, Ref)):
            return x
        raise CaptureError(f"a constant {type(x).__name__} in an operation.")

    def number(self, x: Number) -> Ref:
        """Return the reference of a number, which is computed in the loop if it must be."""
        if x.level == "loop":
            result: Ref = self.op(_NUMBER_UFUNCS[x.name], *x.operands)
            return result
        if id(x) not in self._places:
            program = self.program
            found: Any = {
                "member": program.member_numbers, "step": program.step_numbers,
                "table": program.tables,
            }[x.level]  # fmt: skip
            self._places[id(x)] = Ref(x.level, len(found)), x
            found.append(x.data if x.level != "table" else (x.data, x.columns))
        return self._places[id(x)][0]

    def coordinates(self, state: int = 0) -> list[Ref]:
        """Return the coordinates of an old wide state."""
        first = self.program.rows[state].start
        return [Ref("coordinate", first + d) for d in range(self.program.dimension)]

    def joined(self, coordinates: Sequence[Any]) -> Ref:
        """Return coordinates as one wide value."""
        result: Ref = self.op("join", *coordinates, wide=True)
        return result

    def state(self, number: int) -> Ref:
        """Return an old state."""
        return Ref("state", number, self.program.states[number].wide)

    def split(self, value: Ref, coordinate: int) -> Ref:
        """Return one coordinate of a wide value."""
        result = Ref("value", self._count, False)
        self._count += 1
        self._ops.append(Op(("split", coordinate), (value,), result, np.dtype(np.float64)))
        return result

    def surface(self, plan: Plan) -> list[Any]:
        """Write value and gradient at the old point, and return them."""
        known: dict[Place, Any] = {Place(i): x for i, x in enumerate(self.coordinates())}
        for step in plan.instructions:
            if step.shape != ():
                raise CaptureError(f"{step.name} gives no single number.")
            known[step.result] = self._instruction(step, known)
        return [known[x] if isinstance(x, Place) else _number(x) for x in plan.outputs]

    def rule(
        self,
        instructions: Sequence[Instruction],
        outputs: Mapping[str, Any],
        given: Mapping[Place, Any],
    ) -> dict[str, Any]:
        """Write an elementwise rule; `given` has its inputs, arrays and numbers, by place."""
        known = dict(given)
        for step in instructions:
            if step.shape is None:
                operands = [known[x] if isinstance(x, Place) else float(x) for x in step.arguments]
                known[step.result] = self.numbers.combine(step.name, *operands)
            else:
                known[step.result] = self._instruction(step, known)
        return {name: known[x] if isinstance(x, Place) else x for name, x in outputs.items()}

    def tape(
        self, ops: Sequence[Any], constants: Sequence[Any], inputs: Sequence[Any]
    ) -> list[Any]:
        """Write what a tape says, and return the values of all its places.

        Operations on numbers alone are done once, those on arrays in the loop.
        """
        found = list(inputs)
        for name, *references in ops:
            operands = [found[r] if r >= 0 else constants[-r - 1] for r in references]
            if any(isinstance(x, Ref) for x in operands):
                if name not in _NUMBER_UFUNCS:
                    raise CaptureError(f"{name} of an array after a step.")
                found.append(self.op(_NUMBER_UFUNCS[name], *operands))
            else:
                found.append(self.numbers.combine(name, *operands))
        return found

    def _instruction(self, step: Instruction, known: Mapping[Place, Any]) -> Any:
        function = step.function or UFUNCS.get(step.name)
        operands = [known[x] if isinstance(x, Place) else x for x in step.arguments]
        if function is np.astype:
            if np.dtype(operands[1]) != np.float64 or step.keywords:
                raise CaptureError("another type than float64.")
            return operands[0]
        if function is np.clip and not step.keywords and len(operands) == 3:
            return self.op(function, *operands)
        if function is np.where and not step.keywords and len(operands) == 3:
            if self._dtypes.get(operands[0]) != np.bool_:
                operands[0] = self.op(np.not_equal, operands[0], 0.0, dtype=np.bool_)
            return self.op(function, *operands, dtype=step.dtype)
        if (
            not isinstance(function, np.ufunc)
            or function.nout != 1
            or function.signature is not None
            or step.keywords
            or np.dtype(step.dtype) not in (np.float64, np.bool_)
        ):
            raise CaptureError(f"{step.name} is not element by element.")
        if function is np.power and any(isinstance(x, Number) for x in operands):
            raise CaptureError("a power that differs between members.")
        return self.op(function, *operands, dtype=step.dtype)


def _number(x: Any) -> float:
    if np.ndim(x):
        raise CaptureError("an array as a constant result.")
    return float(x)
