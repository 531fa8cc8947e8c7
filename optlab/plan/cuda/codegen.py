"""The source of a CUDA kernel: elementwise instructions of a plan, one thread an element.

NumPy (and CuPy, operation by operation) passes over memory once per operation; one kernel reads
every array once, keeps intermediate values in registers, and writes every result once. Each
operation is rounded by itself, as in separate passes: kernels are compiled with `OPTIONS`, so that
a product and a sum are not contracted, and quotients and roots are rounded correctly. So + - * /
sqrt, comparisons and choices have NumPy's bits; exp, log and their kin are CUDA's own functions, as
they are in CuPy.

What changes from step to step (the rate, ``beta**t``) is read from an array of float64 on the
device, and rounded to the dtype of the operation there, as NumPy rounds a Python float. A CUDA
graph that holds the kernel is then replayed with other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from optlab.plan.blocks import UFUNCS, BlockPlan
from optlab.plan.plan import Instruction, Place

#: Of NVRTC: every operation rounded by itself and correctly, subnormal numbers kept.
OPTIONS = ("--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false")

_FLOATS = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
_BOOL = np.dtype(bool)

#: Of two zeros NumPy 2.0 clips to the bound, later releases keep the element.
_TIES_TAKE_THE_BOUND = bool(np.signbit(np.clip(np.zeros(8), -0.0, 1.0)).all())

#: Functions of floats as C, for float64; of names in brackets float32 has its own (``sqrtf``).
_FORMS: dict[Any, str] = {
    np.add: "{0} + {1}",
    np.subtract: "{0} - {1}",
    np.multiply: "{0} * {1}",
    np.divide: "{0} / {1}",
    np.reciprocal: "{one} / {0}",
    np.square: "{0} * {0}",
    np.negative: "-{0}",
    np.positive: "{0}",
    np.sqrt: "[sqrt]({0})",
    np.absolute: "[fabs]({0})",
    np.fabs: "[fabs]({0})",
    np.copysign: "[copysign]({0}, {1})",
    np.floor: "[floor]({0})",
    np.ceil: "[ceil]({0})",
    np.trunc: "[trunc]({0})",
    np.rint: "[rint]({0})",
    # Of two zeros the second is the maximum; a NaN wins.
    np.maximum: "({0} > {1} || {0} != {0}) ? {0} : {1}",
    np.minimum: "({0} < {1} || {0} != {0}) ? {0} : {1}",
    np.sign: "{0} > {zero} ? {one} : {0} < {zero} ? -{one} : {0} == {zero} ? {zero} : {0}",
    np.less: "{0} < {1}",
    np.less_equal: "{0} <= {1}",
    np.greater: "{0} > {1}",
    np.greater_equal: "{0} >= {1}",
    np.equal: "{0} == {1}",
    np.not_equal: "{0} != {1}",
    np.isnan: "{0} != {0}",
    np.isfinite: "[fabs]({0}) <= {largest}",
    np.isinf: "[fabs]({0}) > {largest}",
    np.signbit: "[copysign]({one}, {0}) < {zero}",
}
#: Functions whose last bit is CUDA's.
_FORMS |= {
    getattr(np, name): f"[{of_c}]({{0}})"
    for name, of_c in {
        "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
        "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan",
        "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsin": "asin", "arccos": "acos",
        "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
        "cbrt": "cbrt",
    }.items()
}  # fmt: skip
_FORMS |= {
    np.power: "[pow]({0}, {1})",
    np.arctan2: "[atan2]({0}, {1})",
    np.hypot: "[hypot]({0}, {1})",
}
_LOGIC: dict[Any, str] = {
    np.bitwise_and: "{0} && {1}",
    np.bitwise_or: "{0} || {1}",
    np.bitwise_xor: "{0} != {1}",
    np.logical_and: "{0} && {1}",
    np.logical_or: "{0} || {1}",
    np.logical_xor: "{0} != {1}",
    np.logical_not: "!{0}",
    np.invert: "!{0}",
}


class NoKernelError(Exception):
    """An instruction that a kernel does not do; its text names it."""


@dataclass(frozen=True)
class Kernel:
    """A group of elementwise instructions as one CUDA kernel.

    Its arguments are the arrays that it reads, those that it writes (which it may read, too), the
    array of float64 numbers if it takes any, and the number of elements, a 64-bit integer.

    Attributes
    ----------
    name, source : str
        The name ends with a fingerprint of the source, so that equal kernels are compiled once.
    read, written : list of str
        The arrays, by name.
    numbers : list of Place
        The prepared numbers that it reads, in their order in memory.
    """

    name: str
    source: str
    read: list[str]
    written: list[str]
    numbers: list[Place]


def write_kernel(
    instructions: Sequence[Instruction],
    inputs: Mapping[Place, str],
    outputs: Mapping[str, Place],
    dtypes: Mapping[Place, Any],
    numbers: Sequence[Place] = (),
) -> Kernel:
    """Write a group of elementwise instructions as one kernel.

    Parameters
    ----------
    instructions : sequence of Instruction
        On arrays of one shape, in order.
    inputs : mapping of Place to str
        The values that the arrays hold before, by the arrays' names.
    outputs : mapping of str to Place
        What the arrays hold afterwards; an input's array may be overwritten.
    dtypes : mapping of Place to dtype
        float32, float64 or bool.
    numbers : sequence of Place
        Places that are single numbers, not arrays; Python floats unless `dtypes` names another.

    Raises
    ------
    NoKernelError
        If an instruction has no form in CUDA, or a dtype is another one.

    Examples
    --------
    >>> from optlab.plan import capture_blocks
    >>> example = np.ones(2, np.float32)
    >>> plan = capture_blocks(
    ...     lambda a, n: {"p": a["p"] - n["rate"] * a["g"]},
    ...     {"p": example, "g": example},
    ...     {"rate": 0.1},
    ... )
    >>> print(kernel_of(plan, 0).source)
    extern "C" __global__ void fused_...(const float* a_g, float* a_p,
            const double* numbers, const long long size)
    {
        const float n0 = (float)numbers[0];
        const long long step = (long long)gridDim.x * blockDim.x;
        for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
            const float v0 = a_p[i];
            const float v1 = a_g[i];
            const float v3 = n0 * v1;
            const float v4 = v0 - v3;
            a_p[i] = v4;
        }
    }
    <BLANKLINE>
    """
    return _Writer(instructions, inputs, outputs, dtypes, numbers).written()


def kernel_of(plan: BlockPlan, number: int) -> Kernel | None:
    """Write a phase of a block plan as a kernel; None if CuPy has to run it by operations.

    Examples
    --------
    >>> from optlab.plan import capture_blocks
    >>> example = np.ones(2)
    >>> plan = capture_blocks(lambda a, n: {"p": np.spacing(a["p"])}, {"p": example}, {})
    >>> kernel_of(plan, 0) is None
    True
    """
    phase = plan.phases[number]
    try:
        return write_kernel(
            phase.instructions, phase.inputs, phase.outputs, plan.dtypes, plan.prepared[number]
        )
    except NoKernelError:
        return None


class _Writer:
    """Writes instructions as lines of C on one element."""

    def __init__(
        self,
        instructions: Sequence[Instruction],
        inputs: Mapping[Place, str],
        outputs: Mapping[str, Place],
        dtypes: Mapping[Place, Any],
        numbers: Sequence[Place],
    ) -> None:
        self.instructions, self.inputs, self.outputs = instructions, inputs, outputs
        self.dtypes, self.single = dtypes, set(numbers)
        #: The numbers that are used, and the name of each in each dtype.
        self.numbers: list[Place] = []
        self.named: dict[tuple[Place, str], str] = {}

    def written(self) -> Kernel:
        if not self.outputs:
            raise NoKernelError("a group without results.")
        lines = [self._line(step) for step in self.instructions]
        used = {place for step in self.instructions for place in step.reads()}
        used |= set(self.outputs.values())
        names = {place: name for place, name in self.inputs.items() if place in used}
        kinds = {name: self._kind(place) for place, name in names.items()}
        for name, place in self.outputs.items():
            if kinds.setdefault(name, self._kind(place)) != self._kind(place):
                raise NoKernelError(f"{name} holds two dtypes.")
        body = [f"const {self._kind(p)} v{p.number} = a_{name}[i];" for p, name in names.items()]
        body += lines
        body += [f"a_{name}[i] = v{place.number};" for name, place in self.outputs.items()]
        read = [name for name in names.values() if name not in self.outputs]
        given = [f"const {kinds[name]}* a_{name}" for name in read]
        given += [f"{kinds[name]}* a_{name}" for name in self.outputs]
        last = ["const double* numbers"] if self.numbers else []
        casts = [
            f"const {kind} {name} = ({kind})numbers[{self.numbers.index(place)}];"
            for (place, kind), name in self.named.items()
        ]
        stride = "const long long step = (long long)gridDim.x * blockDim.x;"
        start = "long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x"
        lines = [
            f"({', '.join(given)},\n        {', '.join([*last, 'const long long size'])})",
            "{",
            *(f"    {line}" for line in [*casts, stride]),
            f"    for ({start}; i < size; i += step) {{",
            *(f"        {line}" for line in body),
            "    }",
            "}",
        ]
        text = "\n".join(lines) + "\n"
        name = f"fused_{blake2b(text.encode(), digest_size=8).hexdigest()}"
        source = f'extern "C" __global__ void {name}{text}'
        return Kernel(name, source, read, list(self.outputs), self.numbers)

    def _line(self, step: Instruction) -> str:
        function = step.function or UFUNCS.get(step.name)
        if function is np.where and len(step.arguments) == 3:
            condition, chosen, other = step.arguments
            if step.keywords or self._dtype(condition) != _BOOL:
                raise NoKernelError("where without a condition of bools.")
            self._float(step.dtype)
            text = (
                f"{self._operand(condition, _BOOL)} ? {self._operand(chosen, step.dtype)} : "
                f"{self._operand(other, step.dtype)}"
            )
        elif function is np.clip:
            text = self._clipped(step)
        elif function is np.astype and not step.keywords and len(step.arguments) == 2:
            self._float(step.dtype)
            text = self._operand(step.arguments[0], step.dtype)
        elif function in _FORMS:
            *kinds, made = self._resolved(function, step)
            text = self._filled(_FORMS[function], step, [self._float(kind) for kind in kinds])
            self._check_result(step, made)
        elif function is np.remainder:
            *kinds, made = self._resolved(function, step)
            text = self._remainder(step, self._float(kinds[0]))
            self._check_result(step, made)
        elif function in _LOGIC:
            if any(kind != _BOOL for kind in self._resolved(function, step)):
                raise NoKernelError(f"{step.name} of numbers.")
            operands = [self._operand(x, _BOOL) for x in step.arguments]
            text = _LOGIC[function].format(*operands)
        else:
            raise NoKernelError(f"{step.name} has no form in CUDA.")
        return f"const {self._kind(step.result)} v{step.result.number} = {text};"

    def _check_result(self, step: Instruction, made: Any) -> None:
        if made != step.dtype:
            raise NoKernelError(f"{step.name} with a result of {step.dtype}.")

    def _clipped(self, step: Instruction) -> str:
        kind = self._float(step.dtype)
        arguments = list(step.arguments)
        if step.keywords or len(arguments) != 3 or self._dtype(arguments[0]) != kind:
            raise NoKernelError("clip with options.")
        if any(type(x) not in (int, float) and x not in self.single for x in arguments[1:]):
            raise NoKernelError("clip between arrays.")
        x, low, high = (self._operand(value, kind) for value in arguments)
        if _TIES_TAKE_THE_BOUND:
            raised = f"(({x} > {low} || {x} != {x}) ? {x} : {low})"
            return f"({raised} < {high} || {raised} != {raised}) ? {raised} : {high}"
        raised = f"({x} < {low} ? {low} : {x})"
        return f"{raised} > {high} ? {high} : {raised}"

    def _remainder(self, step: Instruction, kind: Any) -> str:
        """Return NumPy's remainder, which has the sign of the divisor, as Python's."""
        suffix = "f" * (kind.itemsize == 4)
        x, y = (self._operand(value, kind) for value in step.arguments)
        zero = self._constant(0.0, kind)
        left = f"fmod{suffix}({x}, {y})"
        signed = f"(({y} < {zero}) != ({left} < {zero}) ? {left} + {y} : {left})"
        none = f"({left} == {zero} ? copysign{suffix}({zero}, {y}) : {signed})"
        return f"{y} == {zero} ? {left} : {none}"

    def _float(self, dtype: Any) -> Any:
        if dtype not in _FLOATS:
            raise NoKernelError(f"an operation on {dtype}.")
        return np.dtype(dtype)

    def _kind(self, place: Place) -> str:
        """Return the type of a value in C."""
        dtype = self.dtypes[place]
        if dtype == _BOOL:
            return "bool"
        return _FLOATS[self._float(dtype)]

    def _dtype(self, value: Any) -> Any:
        if isinstance(value, Place):
            return self.dtypes.get(value, float) if value in self.single else self.dtypes[value]
        return type(value)

    def _resolved(self, function: Any, step: Instruction) -> tuple[Any, ...]:
        """Return the dtypes that NumPy casts the operands to, and that of the result."""
        kinds = [self._dtype(x) for x in step.arguments]
        if step.keywords or any(kind not in (float, int, *_FLOATS, _BOOL) for kind in kinds):
            raise NoKernelError(f"{step.name} with options, or of {kinds}.")
        resolved: tuple[Any, ...] = function.resolve_dtypes((*kinds, None))
        return resolved

    def _filled(self, form: str, step: Instruction, kinds: Sequence[Any]) -> str:
        operands = [self._operand(x, k) for x, k in zip(step.arguments, kinds, strict=True)]
        kind = kinds[0]
        named = form.replace("[", "").replace("]", "f" * (kind.itemsize == 4))
        return named.format(
            *operands,
            one=self._constant(1.0, kind),
            zero=self._constant(0.0, kind),
            largest=self._constant(float(np.finfo(kind).max), kind),
        )

    def _operand(self, value: Any, kind: Any) -> str:
        """Return the source of an operand, cast as NumPy casts it."""
        if isinstance(value, Place) and value in self.single:
            return self._number(value, _FLOATS[self._float(kind)])
        if isinstance(value, Place):
            name, own = f"v{value.number}", self.dtypes[value]
            return name if own == kind else f"({_FLOATS[self._float(kind)]}){name}"
        if type(value) is int and abs(value) > 1 << 53:
            raise NoKernelError("an integer that float64 does not hold.")
        if type(value) not in (int, float):
            raise NoKernelError(f"a constant {type(value).__name__}.")
        return self._constant(float(value), self._float(kind))

    @staticmethod
    def _constant(value: float, kind: Any) -> str:
        """Return a number as C: a literal of float64, cast as NumPy casts a Python float."""
        if math.isnan(value):
            text = "(0.0 / 0.0)"
        elif math.isinf(value):
            text = f"({'-' * (value < 0)}1e300 * 1e300)"
        else:
            text = f"({value!r})" if math.copysign(1.0, value) < 0 else repr(value)
        return f"(float){text}" if kind == np.float32 else text

    def _number(self, place: Place, kind: str) -> str:
        """Return the variable of a prepared number."""
        if place not in self.numbers:
            self.numbers.append(place)
        return self.named.setdefault((place, kind), f"n{len(self.named)}")
