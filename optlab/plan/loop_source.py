"""The source of a machine loop: a phase of a block plan, one element after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from optlab.plan.blocks import UFUNCS, BlockPlan
from optlab.plan.plan import Instruction, Place

#: Elements that are checked together; their old values stay in the L1 cache meanwhile.
CHUNK = 512
#: Distance between the old values of two arrays; no power of two, to avoid cache conflicts.
STRIDE = CHUNK + 16

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_BOOL = np.dtype(bool)

#: Functions of floats as Python source, and the operands that make the result not finite if they
#: are not finite (inf / x is not finite, x / inf is).
_ARITHMETIC: dict[Any, tuple[str, tuple[int, ...]]] = {
    np.add: ("{0} + {1}", (0, 1)),
    np.subtract: ("{0} - {1}", (0, 1)),
    np.multiply: ("{0} * {1}", (0, 1)),
    np.divide: ("{0} / {1}", (0,)),
    np.reciprocal: ("{one} / {0}", ()),
    np.square: ("{0} * {0}", (0,)),
    np.sqrt: ("np.sqrt({0})", (0,)),
    np.negative: ("-{0}", (0,)),
    np.absolute: ("abs({0})", (0,)),
    np.positive: ("{0}", (0,)),
}
#: Functions of floats without floating-point errors, which may hide an operand that is not finite.
#: Of two zeros the second is the maximum; a NaN wins.
_CHOICES: dict[Any, str] = {
    np.maximum: "({0} if ({0} > {1}) | ({0} != {0}) else {1})",
    np.minimum: "({0} if ({0} < {1}) | ({0} != {0}) else {1})",
    np.sign: "({one} if {0} > {zero} else -{one} if {0} < {zero} else "
    "{zero} if {0} == {zero} else {0})",
    np.less: "{0} < {1}",
    np.less_equal: "{0} <= {1}",
    np.greater: "{0} > {1}",
    np.greater_equal: "{0} >= {1}",
    np.equal: "{0} == {1}",
    np.not_equal: "{0} != {1}",
    np.isnan: "{0} != {0}",
    np.isfinite: "abs({0}) < {inf}",
    np.isinf: "abs({0}) == {inf}",
}
_LOGIC: dict[Any, str] = {
    np.bitwise_and: "{0} & {1}",
    np.bitwise_or: "{0} | {1}",
    np.bitwise_xor: "{0} ^ {1}",
    np.logical_and: "{0} & {1}",
    np.logical_or: "{0} | {1}",
    np.logical_xor: "{0} ^ {1}",
    np.logical_not: "not {0}",
    np.invert: "not {0}",
}


class NoLoopError(Exception):
    """A phase has an operation that a machine loop would not do to NumPy's bits."""


class Number(NamedTuple):
    """A number that a loop takes: the index of a prepared one, or a constant; and its dtype."""

    place: int | None
    constant: str
    dtype: Any


@dataclass(frozen=True)
class Loop:
    """A phase as a loop.

    Attributes
    ----------
    source, body : str
        The whole function, and its operations on one element.
    read, written : list of int
        The arrays (of a block, then kept ones) that it only reads, and those that it writes.
    read_dtypes, written_dtypes : list of dtype
    numbers : list of Number
        Further arguments, constants included: rules that differ only in these share one compiled
        loop.
    """

    source: str
    body: str
    read: list[int]
    written: list[int]
    read_dtypes: list[Any]
    written_dtypes: list[Any]
    numbers: list[Number]

    def cast(self, prepared: Sequence[Any]) -> list[Any] | None:
        """Return the numbers in the dtypes of the arrays; None if one is not finite there."""
        with np.errstate(all="ignore"):
            numbers = [
                number.dtype.type(
                    float(number.constant) if number.place is None else prepared[number.place]
                )
                for number in self.numbers
            ]
        return numbers if all(map(math.isfinite, numbers)) else None


def loop_of(plan: BlockPlan, number: int) -> Loop | None:
    """Write a phase of a plan as a loop; None if NumPy has to run it.

    Examples
    --------
    >>> from optlab.plan import capture_blocks
    >>> example = np.ones(2, np.float32)
    >>> plan = capture_blocks(
    ...     lambda a, n: {"p": a["p"] - n["rate"] * a["g"]},
    ...     {"p": example, "g": example},
    ...     {"rate": 0.1},
    ... )
    >>> print(loop_of(plan, 0).source)
    def loop(a_g, a_p, faulty, n0):
        count = 0
        old_float32 = np.empty(528, np.float32)
        for start in range(0, len(a_g), 512):
            stop = min(start + 512, len(a_g))
            c_g = a_g[start:stop]
            c_p = a_p[start:stop]
            o_p = old_float32[0:512]
            fault = False
            for i in range(stop - start):
                v0 = c_p[i]
                v1 = c_g[i]
                v3 = n0 * v1
                v4 = v0 - v3
                fault |= not (abs(v4) < float32(np.inf))
                o_p[i] = v0
                c_p[i] = v4
            if fault:
                faulty[count] = start
                count += 1
                for i in range(stop - start):
                    c_p[i] = o_p[i]
        return count
    <BLANKLINE>
    """
    try:
        return _Writer(plan, number).written()
    except NoLoopError:
        return None


class _Writer:
    """Writes the instructions of a phase, each as one line on scalars."""

    def __init__(self, plan: BlockPlan, number: int) -> None:
        self.plan = plan
        self.phase = plan.phases[number]
        self.prepared = {place: i for i, place in enumerate(plan.prepared[number])}
        self.numbers: dict[Number, str] = {}
        self.lines: list[str] = []
        #: Values that make a later result not finite, and all float values; the rest is checked.
        self.shown: set[Place] = set()
        self.floats: list[Place] = []

    def written(self) -> Loop:
        for step in self.phase.instructions:
            self._write(step)
        if not self.phase.outputs or not self.lines:
            raise NoLoopError
        looked_at = [place for place in self.floats if place not in self.shown]
        body = list(self.lines)
        for place in looked_at:
            kind = self.plan.dtypes[place]
            self.lines.append(f"fault |= not (abs(v{place.number}) < {kind}(np.inf))")
        used = {place for step in self.phase.instructions for place in step.reads()}
        used |= set(self.phase.outputs.values())
        names = {place: name for place, name in self.phase.inputs.items() if place in used}
        outputs = self.phase.outputs
        kinds = {name: self._float(self.plan.dtypes[place]) for place, name in names.items()}
        kinds |= {name: self._float(self.plan.dtypes[place]) for name, place in outputs.items()}
        read = [name for name in names.values() if name not in outputs]
        held = self.plan.held
        return Loop(
            self._function(names, read, kinds),
            "\n".join(body),
            [held.index(name) for name in read],
            [held.index(name) for name in outputs],
            [kinds[name] for name in read],
            [kinds[name] for name in outputs],
            list(self.numbers),
        )

    def _function(self, names: dict[Place, str], read: list[str], kinds: dict[str, Any]) -> str:
        # Slices, because an index that starts at 0 is known not to be negative: otherwise elements
        # are gathered one by one. All old values of a dtype are in one array: with few pointers
        # that may alias, the loop is vectorized.
        outputs = self.phase.outputs
        old = {name: f"v{place.number}" for place, name in names.items() if name in outputs}
        places = {name: i * STRIDE for i, name in enumerate(old)}
        given = [*read, *outputs]
        parameters = [*(f"a_{name}" for name in given), "faulty", *self.numbers.values()]
        lines = [
            f"def loop({', '.join(parameters)}):",
            "    count = 0",
            *(
                f"    old_{kind} = np.empty({STRIDE * len(old)}, np.{kind})"
                for kind in dict.fromkeys(kinds[name] for name in old)
            ),
            f"    for start in range(0, len(a_{given[0]}), {CHUNK}):",
            f"        stop = min(start + {CHUNK}, len(a_{given[0]}))",
            *(f"        c_{name} = a_{name}[start:stop]" for name in given),
            *(
                f"        o_{name} = old_{kinds[name]}[{place}:{place + CHUNK}]"
                for name, place in places.items()
            ),
            "        fault = False",
            "        for i in range(stop - start):",
            *(f"            v{place.number} = c_{name}[i]" for place, name in names.items()),
            *(f"            {line}" for line in self.lines),
            *(f"            o_{name}[i] = {value}" for name, value in old.items()),
            *(f"            c_{name}[i] = v{place.number}" for name, place in outputs.items()),
            "        if fault:",
            "            faulty[count] = start",
            "            count += 1",
        ]
        for name in old:
            lines += ["            for i in range(stop - start):"]
            lines += [f"                c_{name}[i] = o_{name}[i]"]
        return "\n".join([*lines, "    return count"]) + "\n"

    def _write(self, step: Instruction) -> None:
        function = step.function or UFUNCS.get(step.name)
        result = step.result
        if function is np.where:
            condition, *others = step.arguments
            kind = self._float(step.dtype)
            if self._dtype(condition) != _BOOL:
                raise NoLoopError
            chosen, other = (self._operand(x, kind) for x in others)
            text = f"{chosen} if {self._operand(condition, _BOOL)} else {other}"
        elif function is np.clip:
            text = self._clipped(step)
        elif function is np.astype:
            if step.keywords or len(step.arguments) != 2:
                raise NoLoopError
            text = self._operand(step.arguments[0], self._float(step.dtype))
            self._shows(result, [step.arguments[0]])
        elif function in _ARITHMETIC:
            kinds = self._resolved(function, step)
            form, shown = _ARITHMETIC[function]
            text = self._filled(form, step, [self._float(kind) for kind in kinds[:-1]])
            self._float(kinds[-1])
            self._shows(result, [step.arguments[i] for i in shown])
        elif function in _CHOICES:
            kinds = self._resolved(function, step)
            text = self._filled(
                _CHOICES[function], step, [self._float(kind) for kind in kinds[:-1]]
            )
        elif function in _LOGIC:
            kinds = self._resolved(function, step)
            if any(kind != _BOOL for kind in kinds):
                raise NoLoopError
            text = self._filled(_LOGIC[function], step, kinds[:-1])
        else:
            raise NoLoopError
        self.lines.append(f"v{result.number} = {text}")

    def _shows(self, result: Place, operands: list[Any]) -> None:
        """Record that a result may be not finite, and is so if one of these operands is."""
        self.floats.append(result)
        self.shown |= {place for place in operands if isinstance(place, Place)}

    def _clipped(self, step: Instruction) -> str:
        kind = self._float(step.dtype)
        given = dict(step.keywords)
        arguments = list(step.arguments)
        if given or len(arguments) != 3 or self._dtype(arguments[0]) != kind:
            raise NoLoopError
        if any(type(x) not in (int, float) and x not in self.prepared for x in arguments[1:]):
            raise NoLoopError
        x, low, high = (self._operand(value, kind) for value in arguments)
        raised = f"({low} if {x} < {low} else {x})"
        return f"{high} if {raised} > {high} else {raised}"

    @staticmethod
    def _float(dtype: Any) -> Any:
        if dtype not in _FLOATS:
            raise NoLoopError
        return dtype

    def _dtype(self, value: Any) -> Any:
        return self.plan.dtypes[value] if isinstance(value, Place) else type(value)

    def _resolved(self, function: Any, step: Instruction) -> tuple[Any, ...]:
        """Return the dtypes that NumPy casts the operands to, and that of the result."""
        kinds = [self._dtype(x) for x in step.arguments]
        if step.keywords or any(kind not in (float, int, *_FLOATS, _BOOL) for kind in kinds):
            raise NoLoopError
        resolved: tuple[Any, ...] = function.resolve_dtypes((*kinds, None))
        return resolved

    def _filled(self, form: str, step: Instruction, kinds: Sequence[Any]) -> str:
        operands = [self._operand(x, k) for x, k in zip(step.arguments, kinds, strict=True)]
        kind = kinds[0]
        return form.format(
            *operands, one=f"{kind}(1.0)", zero=f"{kind}(0.0)", inf=f"{kind}(np.inf)"
        )

    def _operand(self, value: Any, kind: Any) -> str:
        """Return the source of an operand, cast as NumPy casts it."""
        if isinstance(value, Place) and value in self.prepared:
            if kind not in _FLOATS or self._dtype(value) == _BOOL:
                raise NoLoopError
            return self._number(Number(self.prepared[value], "", kind))
        if isinstance(value, Place):
            name, own = f"v{value.number}", self.plan.dtypes[value]
            return name if own == kind else f"{kind}({name})"
        if type(value) is int and abs(value) > 1 << 53:
            raise NoLoopError
        if type(value) not in (int, float) or kind not in _FLOATS:
            raise NoLoopError
        return self._number(Number(None, repr(float(value)), kind))

    def _number(self, number: Number) -> str:
        return self.numbers.setdefault(number, f"n{len(self.numbers)}")
