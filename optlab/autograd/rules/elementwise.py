"""Derivative rules of elementwise functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from optlab.autograd.operation import rule

LOG_2 = math.log(2.0)
LOG_10 = math.log(10.0)

# Arithmetic. The operators compute what the functions compute, and are quicker on single numbers.
ADD = rule(np.add, lambda g: g, lambda g: g, forward=operator.add)
SUBTRACT = rule(np.subtract, lambda g: g, lambda g: -g, forward=operator.sub)
MULTIPLY = rule(np.multiply, lambda g, b: g * b, lambda g, a: g * a, forward=operator.mul)
DIVIDE = rule(np.divide, lambda g, b: g / b, lambda g, b, y: -g * y / b, forward=operator.truediv)
NEGATIVE = rule(np.negative, lambda g: -g, forward=operator.neg)
POSITIVE = rule(np.positive, lambda g: g)
REMAINDER = rule(np.remainder, lambda g: g, lambda g, a, b: -g * np.floor(a / b))
rule(np.fmod, lambda g: g, lambda g, a, b: -g * np.trunc(a / b))
FLOOR_DIVIDE = rule(np.floor_divide, lambda g: g * 0, lambda g: g * 0)
RECIPROCAL = rule(np.reciprocal, lambda g, y: -g * y * y)


# Powers. Small integer powers are products: `np.power(x, 3)` costs ten times as much.
def integer_power(x: Any, exponent: int) -> Any:
    """Raise to a whole power by repeated squaring.

    Examples
    --------
    >>> integer_power(3.0, 5)
    243.0
    """
    if exponent < 0:
        return 1.0 / integer_power(x, -exponent)
    if exponent == 0:
        return np.ones_like(x)
    if exponent == 2:
        return x * x
    if exponent == 3:
        return x * x * x
    result = None
    square = x
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        if exponent:
            square = square * square
    return result


def _power_by_base(g: Any, a: Any, b: Any) -> Any:
    """Give g * b * a**(b - 1), with 0 where b is 0 (also at a = 0, where a**-1 is infinite)."""
    return g * b * np.power(np.where((a == 0) & (b == 0), 1.0, a), b - 1)


def _power_by_exponent(g: Any, a: Any, y: Any) -> Any:
    """Give g * y * log(a), with 0 at a = 0 (the limit for positive exponents)."""
    return g * y * np.log(np.where(a == 0, 1.0, a))


POWER = rule(np.power, _power_by_base, _power_by_exponent)
rule(np.float_power, _power_by_base, _power_by_exponent)
INTEGER_POWER = rule(
    integer_power,
    lambda g, x, exponent: g * (float(exponent) * integer_power(x, exponent - 1)),
    static="exponent",
)
SQUARE = rule(np.square, lambda g, x: g * (2 * x), forward=lambda x: x * x)
SQRT = rule(np.sqrt, lambda g, y: 0.5 * g / y)
rule(np.cbrt, lambda g, y: g / (3 * y * y))

# Exponentials and logarithms.
EXP = rule(np.exp, lambda g, y: g * y)
rule(np.exp2, lambda g, y: g * y * LOG_2)
rule(np.expm1, lambda g, y: g * (y + 1))
LOG = rule(np.log, lambda g, x: g / x)
rule(np.log2, lambda g, x: g / (x * LOG_2))
rule(np.log10, lambda g, x: g / (x * LOG_10))
rule(np.log1p, lambda g, x: g / (x + 1))
rule(np.logaddexp, lambda g, a, y: g * np.exp(a - y), lambda g, b, y: g * np.exp(b - y))
rule(np.logaddexp2, lambda g, a, y: g * np.exp2(a - y), lambda g, b, y: g * np.exp2(b - y))

# Trigonometric and hyperbolic functions.
SIN = rule(np.sin, lambda g, x: g * np.cos(x))
COS = rule(np.cos, lambda g, x: -g * np.sin(x))
rule(np.tan, lambda g, y: g * (1 + y * y))
rule(np.arcsin, lambda g, x: g / np.sqrt(1 - x * x))
rule(np.arccos, lambda g, x: -g / np.sqrt(1 - x * x))
rule(np.arctan, lambda g, x: g / (1 + x * x))
rule(
    np.arctan2,
    lambda g, a, b: g * b / (a * a + b * b),
    lambda g, a, b: -g * a / (a * a + b * b),
)
rule(np.hypot, lambda g, a, y: g * a / y, lambda g, b, y: g * b / y)
rule(np.sinh, lambda g, x: g * np.cosh(x))
rule(np.cosh, lambda g, x: g * np.sinh(x))
TANH = rule(np.tanh, lambda g, y: g * (1.0 - y * y))
rule(np.arcsinh, lambda g, x: g / np.sqrt(x * x + 1))
rule(np.arccosh, lambda g, x: g / np.sqrt((x - 1) * (x + 1)))
rule(np.arctanh, lambda g, x: g / (1 - x * x))
for to_radians in (np.radians, np.deg2rad):
    rule(to_radians, lambda g: g * (math.pi / 180))
for to_degrees in (np.degrees, np.rad2deg):
    rule(to_degrees, lambda g: g * (180 / math.pi))

# Kinks. At 0 the derivative of abs is 0; where two values tie, maximum and minimum share.
ABSOLUTE = rule(np.absolute, lambda g, x: g * np.sign(x))
rule(np.fabs, lambda g, x: g * np.sign(x))
rule(np.copysign, lambda g, a, b: g * np.sign(a) * np.copysign(1.0, b), lambda g, b: g * (b * 0))


def _share_of_larger(a: Any, b: Any) -> Any:
    """Give 1 where a > b, 0 where a < b and 1/2 where they tie (NaN counts for neither)."""
    return 0.5 * (a >= b) + 0.5 * (a > b)


def _to_larger(g: Any, a: Any, b: Any) -> Any:
    """Give g where a > b, 0 where a < b and half of it where they tie."""
    half = g * 0.5
    return half * (a >= b) + half * (a > b)


MAXIMUM = rule(
    np.maximum,
    lambda g, a, b: _to_larger(g, a, b),
    lambda g, a, b: _to_larger(g, b, a),
)
MINIMUM = rule(
    np.minimum,
    lambda g, a, b: _to_larger(g, b, a),
    lambda g, a, b: _to_larger(g, a, b),
)
rule(
    np.fmax,
    lambda g, a, b: g * np.where(np.isnan(b), 1.0, _share_of_larger(a, b)),
    lambda g, a, b: g * np.where(np.isnan(a), 1.0, _share_of_larger(b, a)),
)
rule(
    np.fmin,
    lambda g, a, b: g * np.where(np.isnan(b), 1.0, _share_of_larger(b, a)),
    lambda g, a, b: g * np.where(np.isnan(a), 1.0, _share_of_larger(a, b)),
)
rule(
    np.clip,
    lambda g, x, low, high: g * _inside(x, low, high),
    lambda g, x, low, high: g * (x < low) * (True if high is None else low <= high),
    lambda g, x, low, high: g * ((x if low is None else np.maximum(x, low)) > high),
    inputs="x low high",
)


def _inside(x: Any, low: Any, high: Any) -> Any:
    """Give 1 where clip leaves x as it is, its bounds included."""
    inside: Any = True
    if low is not None:
        inside = inside & (x >= low)
    if high is not None:
        inside = inside & (x <= high)
    return inside


WHERE = rule(
    np.where,
    None,
    lambda g, condition: np.where(condition, g, 0.0),
    lambda g, condition: np.where(condition, 0.0, g),
    inputs="condition a b",
)

# Steps: flat almost everywhere, so their derivative is zero.
for step_function in (np.sign, np.floor, np.ceil, np.trunc, np.rint):
    rule(step_function, lambda g: g * 0)
