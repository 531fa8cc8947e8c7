"""The source of a machine loop: a phase of a block plan, one element after another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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

#: Of two zeros NumPy 2.0 clips to the bound, later releases keep the element.
_TIES_TAKE_THE_BOUND = bool(np.signbit(np.clip(np.zeros(8), -0.0, 1.0)).all())

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
    old_dtypes : list of dtype
    old_size : int
        Arrays for old values that the loop takes besides, all of this size.
    """

    source: str
    body: str
    read: list[int]
    written: list[int]
    read_dtypes: list[Any]
    written_dtypes: list[Any]
    numbers: list[Number]
    old_dtypes: list[Any]
    old_size: int

    @property
    def parameters(self) -> list[str]:
        """The kinds of its parameters, for `optlab.plan.numba_cache.Kernel`."""
        arrays = [*self.read_dtypes, *self.written_dtypes, np.dtype(np.int64), *self.old_dtypes]
        return [
            *("int64", *(f"{kind}*" for kind in arrays)),
            *(str(number.dtype) for number in self.numbers),
        ]

    def cast(self, prepared: Sequence[Any]) -> list[float] | None:
        """Return the numbers, cast to the dtypes of the arrays; None if one is not finite there."""
        with np.errstate(all="ignore"):
            numbers = [
                float(
                    number.dtype.type(
                        float(number.constant) if number.place is None else prepared[number.place]
                    )
                )
                for number in self.numbers
            ]
        return numbers if all(map(math.isfinite, numbers)) else None


def loop_of(plan: BlockPlan, number: int, rows: bool = False) -> Loop | None:
    """Write a phase of a plan as a loop; None if NumPy has to run it.

    With `rows` it is a loop over rows of elements, each row with numbers of its own: the arrays get
    a distance between rows each, and the numbers are one array of all rows.

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
    def kernel(size, p_g, p_p, p_faulty, p_old_float32, n0):
        a_g = carray(p_g, size)
        a_p = carray(p_p, size)
        faulty = carray(p_faulty, size)
        old_float32 = carray(p_old_float32, 528)
        count = 0
        for start in range(0, size, 512):
            stop = min(start + 512, size)
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
        return (_RowsWriter if rows else _Writer)(plan, number).written()
    except NoLoopError:
        return None


class Lines:
    """Writes instructions, each as one line on scalars.

    Parameters
    ----------
    dtypes : mapping of Place to dtype
        Of all values; `float` for Python's.
    prepared : mapping of Place to int
        The values that are numbers, and their places among the numbers of a call.

    Attributes
    ----------
    lines : list of str
    numbers : dict of Number to str
        The names of the numbers that the lines use.
    """

    def __init__(self, dtypes: Mapping[Place, Any], prepared: Mapping[Place, int]) -> None:
        self.dtypes, self.prepared = dtypes, prepared
        self.numbers: dict[Number, str] = {}
        self.lines: list[str] = []
        #: Values that make a later result not finite, and all float values; the rest is checked.
        self.shown: set[Place] = set()
        self.floats: list[Place] = []

    def write(self, instructions: Sequence[Instruction]) -> None:
        """Write instructions.

        Raises
        ------
        NoLoopError
            If a loop would not do one of them to NumPy's bits.
        """
        for step in instructions:
            self._write(step)

    def checks(self) -> list[str]:
        """Return the lines that find out whether a value is not finite."""
        return [
            f"fault |= not (abs(v{place.number}) < {self.dtypes[place]}(np.inf))"
            for place in self.floats
            if place not in self.shown
        ]

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
        if _TIES_TAKE_THE_BOUND:
            raised = f"({x} if {x} > {low} or {x} != {x} else {low})"
            return f"{raised} if {raised} < {high} or {raised} != {raised} else {high}"
        raised = f"({low} if {x} < {low} else {x})"
        return f"{high} if {raised} > {high} else {raised}"

    @staticmethod
    def _float(dtype: Any) -> Any:
        if dtype not in _FLOATS:
            raise NoLoopError
        return dtype

    def _dtype(self, value: Any) -> Any:
        return self.dtypes[value] if isinstance(value, Place) else type(value)

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
            name, own = f"v{value.number}", self.dtypes[value]
            return name if own == kind else f"{kind}({name})"
        if type(value) is int and abs(value) > 1 << 53:
            raise NoLoopError
        if type(value) not in (int, float) or kind not in _FLOATS:
            raise NoLoopError
        return self._number(Number(None, repr(float(value)), kind))

    def _number(self, number: Number) -> str:
        return self.numbers.setdefault(number, f"n{len(self.numbers)}")


class _Writer(Lines):
    """Writes a phase of a block plan."""

    def __init__(self, plan: BlockPlan, number: int) -> None:
        super().__init__(plan.dtypes, {place: i for i, place in enumerate(plan.prepared[number])})
        self.plan, self.phase = plan, plan.phases[number]

    def written(self) -> Loop:
        self.write(self.phase.instructions)
        if not self.phase.outputs or not self.lines:
            raise NoLoopError
        body = list(self.lines)
        self.lines += self.checks()
        used = {place for step in self.phase.instructions for place in step.reads()}
        used |= set(self.phase.outputs.values())
        names = {place: name for place, name in self.phase.inputs.items() if place in used}
        outputs = self.phase.outputs
        kinds = {name: self._float(self.plan.dtypes[place]) for place, name in names.items()}
        kinds |= {name: self._float(self.plan.dtypes[place]) for name, place in outputs.items()}
        read = [name for name in names.values() if name not in outputs]
        old = [kinds[name] for name in names.values() if name in outputs]
        held = self.plan.held
        return Loop(
            self._function(names, read, kinds),
            "\n".join(body),
            [held.index(name) for name in read],
            [held.index(name) for name in outputs],
            [kinds[name] for name in read],
            [kinds[name] for name in outputs],
            list(self.numbers),
            list(dict.fromkeys(old)),
            STRIDE * len(old),
        )

    def _function(self, names: dict[Place, str], read: list[str], kinds: dict[str, Any]) -> str:
        outputs = self.phase.outputs
        old = [kinds[name] for name in names.values() if name in outputs]
        given = [*read, *outputs]
        parameters = [
            *("size", *(f"p_{name}" for name in given), "p_faulty"),
            *(*(f"p_old_{kind}" for kind in dict.fromkeys(old)), *self.numbers.values()),
        ]
        lines = [
            f"def kernel({', '.join(parameters)}):",
            *(f"    a_{name} = carray(p_{name}, size)" for name in given),
            "    faulty = carray(p_faulty, size)",
            *self._old_values(old),
            "    count = 0",
            *self._chunks(names, read, kinds, dict.fromkeys(given, ""), "start"),
        ]
        return "\n".join([*lines, "    return count"]) + "\n"

    @staticmethod
    def _old_values(old: Sequence[Any]) -> list[str]:
        return [
            f"    old_{kind} = carray(p_old_{kind}, {STRIDE * len(old)})"
            for kind in dict.fromkeys(old)
        ]

    def _chunks(
        self,
        names: dict[Place, str],
        read: list[str],
        kinds: dict[str, Any],
        first: dict[str, str],
        place_of_fault: str,
    ) -> list[str]:
        """Return the loop over chunks; `first` is what is added to a place in each array."""
        # Slices, because an index that starts at 0 is known not to be negative: otherwise elements
        # are gathered one by one. All old values of a dtype are in one array: with few pointers
        # that may alias, the loop is vectorized.
        outputs = self.phase.outputs
        old = {name: f"v{place.number}" for place, name in names.items() if name in outputs}
        places = {name: i * STRIDE for i, name in enumerate(old)}
        given = [*read, *outputs]
        lines = [
            f"    for start in range(0, size, {CHUNK}):",
            f"        stop = min(start + {CHUNK}, size)",
            *(
                f"        c_{name} = a_{name}[{first[name]}start:{first[name]}stop]"
                for name in given
            ),
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
            f"            faulty[count] = {place_of_fault}",
            "            count += 1",
        ]
        for name in old:
            lines += ["            for i in range(stop - start):"]
            lines += [f"                c_{name}[i] = o_{name}[i]"]
        return lines


class _RowsWriter(_Writer):
    """Writes a phase of a block plan for rows, each with numbers of its own."""

    def _function(self, names: dict[Place, str], read: list[str], kinds: dict[str, Any]) -> str:
        outputs = self.phase.outputs
        old = [kinds[name] for name in names.values() if name in outputs]
        given = [*read, *outputs]
        if len({number.dtype for number in self.numbers}) > 1:
            raise NoLoopError
        parameters = [
            *("size", "rows", *(f"d_{name}" for name in given)),
            *(*(f"p_{name}" for name in given), "p_faulty"),
            *(*(f"p_old_{kind}" for kind in dict.fromkeys(old)), "p_numbers"),
        ]
        many = len(self.numbers)
        chunks = self._chunks(
            names, read, kinds, {name: f"row * d_{name} + " for name in given}, "row * size + start"
        )
        lines = [
            f"def kernel({', '.join(parameters)}):",
            *(f"    a_{name} = carray(p_{name}, (rows - 1) * d_{name} + size)" for name in given),
            "    faulty = carray(p_faulty, rows * size)",
            *self._old_values(old),
            f"    numbers = carray(p_numbers, rows * {max(many, 1)})",
            "    count = 0",
            "    for row in range(rows):",
            *(
                f"        {name} = numbers[row * {many} + {place}]"
                for place, name in enumerate(self.numbers.values())
            ),
            *(f"    {line}" for line in chunks),
        ]
        return "\n".join([*lines, "    return count"]) + "\n"
