"""JavaScript for operations on single numbers, with NumPy's values.

Arithmetic, square roots, comparisons, selections and whole powers have the same bits, because both
languages have the arithmetic of IEEE 754. Exponentials, logarithms, trigonometric and hyperbolic
functions come from two libraries that round differently: they agree within 2 units in the last
place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from optlab.plan.blocks import UFUNCS
from optlab.plan.plan import Instruction
from optlab.plan.tracer import CaptureError

FLOAT, WHOLE, BOOL, NONE = "float", "whole", "bool", "none"

#: Of two zeros NumPy 2.0 clips to the bound, later releases keep the element.
_TIES_TAKE_THE_BOUND = bool(np.signbit(np.clip(np.zeros(8), -0.0, 1.0)).all())

#: JavaScript has whole numbers up to this one.
_LARGEST = 1 << 53


class Atom(NamedTuple):
    """A number in JavaScript: a variable or a literal, and of which kind it is.

    `value` is that of a literal, None for a variable.
    """

    text: str
    kind: str
    value: Any = None


#: Functions whose result is a float, as templates of their operands.
_ARITHMETIC: dict[Any, str] = {
    np.add: "{0} + {1}", np.subtract: "{0} - {1}", np.multiply: "{0} * {1}",
    np.divide: "{0} / {1}", np.negative: "-{0}", np.square: "{0} * {0}",
    np.reciprocal: "1 / {0}", np.sqrt: "Math.sqrt({0})", np.absolute: "Math.abs({0})",
    np.fabs: "Math.abs({0})", np.floor: "Math.floor({0})", np.ceil: "Math.ceil({0})",
    np.trunc: "Math.trunc({0})", np.fmod: "{0} % {1}",
}  # fmt: skip

#: Functions of which JavaScript has one of its own, rounded differently.
_ROUNDED: dict[Any, str] = {
    np.exp: "Math.exp({0})", np.expm1: "Math.expm1({0})", np.log: "Math.log({0})",
    np.log1p: "Math.log1p({0})", np.log2: "Math.log2({0})", np.log10: "Math.log10({0})",
    np.sin: "Math.sin({0})", np.cos: "Math.cos({0})", np.tan: "Math.tan({0})",
    np.arcsin: "Math.asin({0})", np.arccos: "Math.acos({0})", np.arctan: "Math.atan({0})",
    np.sinh: "Math.sinh({0})", np.cosh: "Math.cosh({0})",
    np.arcsinh: "Math.asinh({0})", np.arccosh: "Math.acosh({0})", np.arctanh: "Math.atanh({0})",
    np.arctan2: "Math.atan2({0}, {1})", np.cbrt: "Math.cbrt({0})",
    np.radians: f"{{0}} * {math.pi / 180!r}", np.deg2rad: f"{{0}} * {math.pi / 180!r}",
    np.degrees: f"{{0}} * {180 / math.pi!r}", np.rad2deg: f"{{0}} * {180 / math.pi!r}",
}  # fmt: skip

_COMPARISONS: dict[Any, str] = {
    np.less: "{0} < {1}", np.less_equal: "{0} <= {1}", np.greater: "{0} > {1}",
    np.greater_equal: "{0} >= {1}", np.equal: "{0} === {1}", np.not_equal: "{0} !== {1}",
    np.isnan: "{0} !== {0}", np.isfinite: "Number.isFinite({0})",
    np.isinf: "Math.abs({0}) === Infinity", np.signbit: "({0} < 0 || Object.is({0}, -0))",
}  # fmt: skip

_LOGIC: dict[Any, str] = {
    np.bitwise_and: "{0} && {1}", np.bitwise_or: "{0} || {1}", np.bitwise_xor: "{0} !== {1}",
    np.logical_and: "{0} && {1}", np.logical_or: "{0} || {1}", np.logical_xor: "{0} !== {1}",
    np.logical_not: "!{0}", np.invert: "!{0}", np.add: "{0} || {1}", np.multiply: "{0} && {1}",
    np.maximum: "{0} || {1}", np.minimum: "{0} && {1}", np.equal: "{0} === {1}",
    np.not_equal: "{0} !== {1}",
}  # fmt: skip

#: Functions that JavaScript lacks, or that treat NaN and signed zeros differently.
HELPERS: dict[str, str] = {
    "maximum": """\
// The larger number, as np.maximum: NaN wins, and of two zeros the second.
const maximum = (a, b) => (a > b || a !== a ? a : b);""",
    "minimum": """\
// The smaller number, as np.minimum: NaN wins, and of two zeros the second.
const minimum = (a, b) => (a < b || a !== a ? a : b);""",
    "fmax": """\
// The larger number, as np.fmax: NaN loses.
const fmax = (a, b) => (a >= b || b !== b ? a : b);""",
    "fmin": """\
// The smaller number, as np.fmin: NaN loses.
const fmin = (a, b) => (a <= b || b !== b ? a : b);""",
    "clip": """\
// The nearest number between two bounds, as np.clip.
"""
    + (
        "const clip = (x, low, high) => minimum(maximum(x, low), high);"
        if _TIES_TAKE_THE_BOUND
        else "const clip = (x, low, high) => {\n"
        "  const raised = x >= low || x !== x ? x : low;\n"
        "  return raised <= high || raised !== raised ? raised : high;\n};"
    ),
    "sign": """\
// -1, 0 or 1, as np.sign: the sign of -0 is 0.
const sign = (x) => (x > 0 ? 1 : x < 0 ? -1 : x === 0 ? 0 : x);""",
    "copysign": """\
// The size of a with the sign of b.
const copysign = (a, b) => (b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a));""",
    "rint": """\
// The nearest whole number, of two the even one: Math.round takes the larger one.
const rint = (x) => {
  const size = Math.abs(x);
  if (!(size < 4503599627370496)) return x;
  return copysign(size + 4503599627370496 - 4503599627370496, x);
};""",
    "remainder": """\
// The remainder with the sign of the divisor, as np.remainder.
const remainder = (a, b) => {
  const rest = a % b;
  if (rest === 0) return copysign(0, b);
  return rest < 0 !== b < 0 ? rest + b : rest;
};""",
    "floorDivide": """\
// The whole quotient, rounded down as np.floor_divide does it.
const floorDivide = (a, b) => {
  if (b === 0) return a / b;
  let rest = a % b;
  let quotient = (a - rest) / b;
  if (rest !== 0 && rest < 0 !== b < 0) quotient -= 1;
  if (quotient === 0) return copysign(0, a / b);
  const whole = Math.floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
};""",
    "heaviside": """\
const heaviside = (x, atZero) => (x !== x ? x : x > 0 ? 1 : x < 0 ? 0 : atZero);""",
    "hypot": """\
// The length of (a, b), without overflow on the way; the error of the root is taken out once.
const hypot = (a, b) => {
  if (Math.abs(a) === Infinity || Math.abs(b) === Infinity) return Infinity;
  const [large, small] = Math.abs(a) > Math.abs(b) ? [Math.abs(a), Math.abs(b)]
    : [Math.abs(b), Math.abs(a)];
  if (small === 0 || large !== large || small !== small) return large + small;
  const [u, v, unit] = large > 1e150 ? [large * 1e-200, small * 1e-200, 1e200]
    : small < 1e-150 ? [large * 1e200, small * 1e200, 1e-200] : [large, small, 1];
  if (v < u * 1e-10) return large;
  const root = Math.sqrt(u * u + v * v);
  const [uu, du] = product(u, u);
  const [vv, dv] = product(v, v);
  const [rr, dr] = product(root, root);
  return (root - (rr - uu - vv + (dr - du - dv)) / (2 * root)) * unit;
};""",
    "tanh": """\
// The hyperbolic tangent, for small x by Lambert's continued fraction: Math.tanh may be 2 units of
// the last place away from the true value there.
const tanh = (x) => {
  const a = Math.abs(x);
  if (a < 1e-9) return x;
  if (!(a < 0.6)) return copysign(1 - 2 / (Math.expm1(2 * a) + 2), x);
  let u = 0;
  for (let k = 17; k > 1; k -= 2) u = (x * x) / (k + u);
  return x - (x * u) / (1 + u);
};""",
    "logaddexp": """\
// log(exp(a) + exp(b)) without overflow.
const logaddexp = (a, b) => {
  if (a === b) return a + 0.6931471805599453;
  const d = a - b;
  return d > 0 ? a + Math.log1p(Math.exp(-d)) : d <= 0 ? b + Math.log1p(Math.exp(d)) : d;
};""",
    "logaddexp2": """\
const logaddexp2 = (a, b) => {
  if (a === b) return a + 1;
  const d = a - b;
  const more = (x) => Math.LOG2E * Math.log1p(power(2, x));
  return d > 0 ? a + more(-d) : d <= 0 ? b + more(d) : d;
};""",
    "product": """\
// A product as two numbers, the rounded one and its error (T. J. Dekker 1971).
const product = (a, b) => {
  const p = a * b;
  const s = 134217729 * a, t = 134217729 * b;
  const high = s - (s - a), other = t - (t - b);
  const low = a - high, rest = b - other;
  return [p, low * rest - (p - high * other - low * other - high * rest)];
};""",
    "power": """\
// A power. Whole exponents up to 64 are multiplied out with twice the digits, because Math.pow may
// be off in the last one.
const power = (x, y) => {
  if (y === 2) return x * x;
  if (y === 0.5) return Math.sqrt(x);
  if (y === 1 || y === -1) return y === 1 ? x : 1 / x;
  const plain = y === 0 || x === 1 ? 1 : Math.pow(x, y);
  const n = Math.abs(y);
  if (!(n <= 64) || n % 1 !== 0 || n < 2) return plain;
  if (!(Math.abs(plain) < 1e200 && Math.abs(plain) > 1e-200)) return plain;
  let high = 1, low = 0;
  for (let square = x, error = 0, k = n; ; ) {
    if (k % 2 === 1) {
      const [p, d] = product(high, square);
      const e = d + (high * error + low * square);
      high = p + e;
      low = e - (high - p);
    }
    k = Math.floor(k / 2);
    if (k === 0) break;
    const [p, d] = product(square, square);
    const e = d + 2 * square * error;
    square = p + e;
    error = e - (square - p);
  }
  if (y > 0) return high;
  const q = 1 / high;
  const [p, d] = product(q, high);
  return q + q * (1 - p - d - q * low);
};""",
}

#: What a helper calls.
_NEEDS = {
    "clip": ("maximum", "minimum"), "tanh": ("copysign",), "rint": ("copysign",),
    "remainder": ("copysign",), "floorDivide": ("copysign",), "hypot": ("product",),
    "power": ("product",), "logaddexp2": ("product", "power"),
}  # fmt: skip

_HELPED: dict[Any, str] = {
    np.maximum: "maximum({0}, {1})", np.minimum: "minimum({0}, {1})", np.fmax: "fmax({0}, {1})",
    np.fmin: "fmin({0}, {1})", np.sign: "sign({0})", np.copysign: "copysign({0}, {1})",
    np.rint: "rint({0})", np.remainder: "remainder({0}, {1})",
    np.floor_divide: "floorDivide({0}, {1})", np.heaviside: "heaviside({0}, {1})",
    np.hypot: "hypot({0}, {1})", np.tanh: "tanh({0})", np.logaddexp: "logaddexp({0}, {1})",
    np.logaddexp2: "logaddexp2({0}, {1})", np.power: "power({0}, {1})",
    np.float_power: "power({0}, {1})", np.exp2: "power(2, {0})",
}  # fmt: skip

#: Powers that NumPy computes without a power.
_SIMPLE_POWERS = {2: "{0} * {0}", 0.5: "Math.sqrt({0})", 1: "{0}", -1: "1 / {0}"}

#: Functions that give their operand itself.
_SAME = (np.positive, np.conjugate)


def literal(value: Any) -> Atom:
    """Return a constant as JavaScript.

    Examples
    --------
    >>> literal(1e-8).text, literal(np.float64(-2)).text, literal(-np.inf).text, literal(True).text
    ('1e-8', '(-2)', '(-Infinity)', 'true')
    """
    value = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
    if value is None:
        return Atom("null", NONE)
    if isinstance(value, bool):
        return Atom("true" if value else "false", BOOL, value)
    if not isinstance(value, (int, float)):
        raise CaptureError(
            f"a constant of type {type(value).__name__} cannot be written in JavaScript."
        )
    kind = WHOLE if isinstance(value, int) else FLOAT
    text = str(value) if kind == WHOLE and abs(value) <= _LARGEST else number_text(float(value))
    return Atom(f"({text})" if text.startswith("-") else text, kind, value)


def number_text(value: float) -> str:
    """Return the shortest decimal text of a float, which JavaScript reads as the same one.

    Examples
    --------
    >>> number_text(0.1), number_text(100.0), number_text(1e-07), number_text(-0.0)
    ('0.1', '100', '1e-7', '-0')
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    text = repr(value).removesuffix(".0").replace("e+", "e")
    return text.replace("e-0", "e-")


def kind_of(dtype: Any, what: str) -> str:
    """Return the kind of a NumPy dtype; raise if JavaScript has no such numbers."""
    dtype = np.dtype(dtype)
    if dtype == np.float64:
        return FLOAT
    if dtype.kind == "b":
        return BOOL
    if dtype.kind in "iu":
        return WHOLE
    raise CaptureError(
        f"{what} gives {dtype}; JavaScript has numbers of float64 alone. Capture the function with "
        "arguments of float64, such as np.float64(1)."
    )


def function_of(step: Instruction) -> Any:
    """Return the NumPy function of an instruction."""
    return step.function or (np.matmul if step.name == "matmul" else UFUNCS.get(step.name))


def options_of(step: Instruction) -> dict[str, Any]:
    """Return the options of an elementwise instruction, without those that change no number."""
    same = {"copy": (True, False), "dtype": (float, np.float64, np.dtype(float)), "out": (None,)}
    return {k: x for k, x in step.keywords if not any(x is y or x == y for y in same.get(k, ()))}


def is_elementwise(step: Instruction) -> bool:
    """Return whether `expression` writes this instruction."""
    function = function_of(step)
    return (
        function in (np.where, np.clip, np.astype, np.nan_to_num, np.round, np.fix)
        or function in _SAME
        or any(
            function in table for table in (_ARITHMETIC, _ROUNDED, _COMPARISONS, _LOGIC, _HELPED)
        )
    )


def helpers_in(source: str) -> list[str]:
    """Return the sources of the helpers that a source calls, in the order of `HELPERS`."""
    wanted = {name for name in HELPERS if f"{name}(" in source}
    for name in list(wanted):
        wanted.update(_NEEDS.get(name, ()))
    order = ["copysign", "product", "power", *HELPERS]
    return [HELPERS[name] for name in dict.fromkeys(order) if name in wanted]


def expression(step: Instruction, operands: list[Atom], keywords: dict[str, Any]) -> Atom:
    """Return an elementwise instruction on single numbers; an atom with a formula as its text."""
    function, kinds = function_of(step), [x.kind for x in operands]
    if function is np.astype:
        return _cast(step, operands[0])
    kind = kind_of(step.dtype, step.name)
    texts = [x.text if kind == BOOL else _as_number(x) for x in operands]
    if function is np.where:
        condition, chosen, other = operands
        if kind != BOOL:
            chosen, other = (x._replace(text=_as_number(x)) for x in (chosen, other))
        test = condition.text if condition.kind == BOOL else f"{condition.text} !== 0"
        return Atom(f"{test} ? {chosen.text} : {other.text}", kind)
    if function is np.clip:
        return _clipped(operands, keywords, kind)
    if function is np.nan_to_num:
        return _without_nan(step, operands, keywords)
    if function is np.round:
        return _rounded(step, operands, keywords)
    if keywords:
        raise unwritten(step, f"with the option {next(iter(keywords))}")
    if function in _SAME:
        return operands[0]._replace(kind=kind)
    if kind == BOOL and all(one == BOOL for one in kinds) and function in _LOGIC:
        return Atom(_LOGIC[function].format(*texts), BOOL)
    if kind == BOOL and function in _COMPARISONS:
        # JavaScript's === tells true from 1, and true < 2 is not what a student would look for.
        texts = [_as_number(x) for x in operands]
        return Atom(_COMPARISONS[function].format(*texts), BOOL)
    if kind == BOOL and function in _LOGIC:  # of numbers
        texts = [x.text if x.kind == BOOL else f"({x.text} !== 0)" for x in operands]
        return Atom(_LOGIC[function].format(*texts), BOOL)
    if kind == WHOLE and function not in (
        np.add, np.subtract, np.multiply, np.negative, np.absolute, np.square,
    ):  # fmt: skip
        raise unwritten(step, "of whole numbers")
    if function is np.fix:
        function = np.trunc
    if function is np.power and operands[1].value in _SIMPLE_POWERS:
        return Atom(_SIMPLE_POWERS[operands[1].value].format(*texts), kind)
    for table in (_ARITHMETIC, _ROUNDED, _HELPED):
        if function in table:
            return Atom(table[function].format(*texts), kind)
    raise unwritten(step)


def folded(step: Instruction, operands: list[Atom]) -> Atom | None:
    """Return the result of arithmetic on literals alone, or None; NumPy computes it."""
    if function_of(step) not in (np.add, np.subtract, np.multiply, np.divide, np.negative):
        return None
    if not all(x.value is not None and x.kind == FLOAT for x in operands):
        return None
    with np.errstate(all="ignore"):
        return literal(function_of(step)(*[np.float64(x.value) for x in operands]))


def unwritten(step: Instruction, how: str = "") -> CaptureError:
    """Return the error for an instruction that has no JavaScript."""
    where = f" ({step.where})" if step.where else ""
    said = " ".join(filter(None, [step.name, how]))
    return CaptureError(
        f"{said}{where} cannot be written in JavaScript: write it with +, -, *, /, np.sqrt, "
        "np.exp, np.where and their kin, or leave the function to Python."
    )


def _as_number(x: Atom) -> str:
    return f"Number({x.text})" if x.kind == BOOL and x.value is None else x.text


def _cast(step: Instruction, x: Atom) -> Atom:
    kind = kind_of(step.dtype, step.name)
    if kind == x.kind or (kind == FLOAT and x.kind == WHOLE):
        return x._replace(kind=kind)
    if x.kind == BOOL:
        return Atom(f"Number({x.text})", kind)
    if kind == BOOL:
        return Atom(f"{x.text} !== 0", kind)
    raise unwritten(step, f"of a float to {step.dtype}")


def _clipped(operands: list[Atom], keywords: dict[str, Any], kind: str) -> Atom:
    given = [*operands[1:], *[keywords[k] for k in ("a_min", "min") if k in keywords][:1]]
    given += [keywords[k] for k in ("a_max", "max") if k in keywords][:1]
    low, high = [*given, None, None][:2]
    x = operands[0].text
    low = None if low is None or low.kind == NONE else low
    high = None if high is None or high.kind == NONE else high
    if low is None or high is None:
        bound, name = (low, "maximum") if high is None else (high, "minimum")
        return Atom(x if bound is None else f"{name}({x}, {bound.text})", kind)
    return Atom(f"clip({x}, {low.text}, {high.text})", kind)


def _without_nan(step: Instruction, operands: list[Atom], keywords: dict[str, Any]) -> Atom:
    def given(name: str, otherwise: float) -> str:
        known = keywords.get(name)
        return literal(otherwise).text if known is None or known.kind == NONE else known.text

    if len(operands) > 1 or operands[0].kind != FLOAT:
        raise unwritten(step)
    largest = float(np.finfo(float).max)
    x, nan = operands[0].text, given("nan", 0.0)
    high, low = given("posinf", largest), given("neginf", -largest)
    text = f"{x} !== {x} ? {nan} : {x} === Infinity ? {high} : {x} === -Infinity ? {low} : {x}"
    return Atom(text, FLOAT)


def _rounded(step: Instruction, operands: list[Atom], keywords: dict[str, Any]) -> Atom:
    decimals = [*operands[1:], *[keywords[k] for k in ("decimals",) if k in keywords], literal(0)][
        0
    ]
    if decimals.value is None or operands[0].kind != FLOAT:
        raise unwritten(step)
    x, scale = operands[0].text, literal(10.0 ** abs(int(decimals.value))).text
    if decimals.value == 0:
        return Atom(f"rint({x})", FLOAT)
    way, back = ("*", "/") if decimals.value > 0 else ("/", "*")
    return Atom(f"rint({x} {way} {scale}) {back} {scale}", FLOAT)
