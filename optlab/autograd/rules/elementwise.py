"""Derivative rules of elementwise functions, and their conventions where no derivative exists.

=============================================  =====================================================
where there is no derivative                   convention of the rule
=============================================  =====================================================
``abs(x)`` and ``fabs`` at 0                   0
``copysign(a, b)`` at a = 0                    0 for a; the slope for b is 0 everywhere
``sign``, ``floor``, ``ceil``, ``trunc``,      0, also where they jump
``fix``, ``rint``, ``round``, ``//``,
``heaviside``, ``spacing``, ``angle``
``maximum(a, b)``, ``minimum``, ``fmax``,      half to each where a = b; ``fmax`` and ``fmin`` give
``fmin``                                       all to the number where the other is NaN
``clip(x, low, high)`` at a bound              all to x
``remainder(a, b)``, ``fmod`` at a multiple    1 for a, minus the integer quotient for b
``sqrt``, ``cbrt``, ``log``, ``x**0.5`` at 0,  the one-sided slope: infinite
``arcsin``, ``arccos`` at -1 and 1
``hypot(a, b)``, ``arctan2(a, b)`` at (0, 0)   0 for both
``a**b`` at a = 0                              for a: 0 where b = 0, else b * 0**(b - 1), which is
                                               infinite for b < 1; for b: 0
``a**b`` at a < 0                              for a: b * a**(b - 1) for integer b; for b: NaN
``logaddexp(a, b)`` at infinities              half to each where a = b, else all to the larger
``nan_to_num(x)``                              0 where a value was replaced
=============================================  =====================================================

**A gradient of 0 stays 0 through an infinite slope**, so that a branch not selected by ``np.where``
cannot make it NaN: ``np.where(x > 0, np.sqrt(x), 0.0)`` has the gradient 0 at x = 0. This holds for
every function whose slope can be infinite or undefined at a finite argument: division, roots,
powers, logarithms, exponentials (whose slope overflows), and the inverse trigonometric and
hyperbolic functions. It does not hold for a factor of a product: where x itself is infinite or NaN,
so is the gradient of ``x * y`` for y. The price is that ``np.sqrt(x)**2`` has the gradient 0 at 0.

An infinite gradient is masked on a flat side too: ``np.sqrt(np.maximum(x, 0.0))`` has the gradient
0 at x = -1, although the slope of the root at 0 is infinite. `guarded` implements both.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import product, quotient, where_mask, zeros_of

LOG_2 = math.log(2.0)
LOG_10 = math.log(10.0)

# Arithmetic. The operators return the same values as the functions, and are faster on scalars.
ADD = rule(np.add, lambda g: g, lambda g: g, forward=operator.add)
SUBTRACT = rule(np.subtract, lambda g: g, lambda g: -g, forward=operator.sub)
MULTIPLY = rule(np.multiply, lambda g, b: g * b, lambda g, a: g * a, forward=operator.mul)
DIVIDE = rule(
    np.divide,
    lambda g, b: quotient(g, b),
    lambda g, b, y: -quotient(product(g, y), b),
    forward=operator.truediv,
)
NEGATIVE = rule(np.negative, lambda g: -g, forward=operator.neg)
POSITIVE = rule(np.positive, lambda g: g)
RECIPROCAL = rule(np.reciprocal, lambda g, x: -quotient(g, x * x))

# Integer quotients and remainders.
FLOOR_DIVIDE = rule(np.floor_divide, lambda g: zeros_of(g), lambda g: zeros_of(g))


def _integer_quotient(a: Any, b: Any, y: Any) -> Any:
    """Return q in a = q b + y, as rounded by NumPy; faster than ``a // b``."""
    return np.rint((a - y) / b)


REMAINDER = rule(
    np.remainder, lambda g: g, lambda g, a, b, y: -product(g, _integer_quotient(a, b, y))
)
rule(np.fmod, lambda g: g, lambda g, a, b, y: -product(g, _integer_quotient(a, b, y)))
DIVMOD = rule(np.divmod, lambda g: g[1], lambda g, y: -product(g[1], y[0]), several=True)


# Powers. Small integer powers are products: `np.power(x, 3)` costs ten times as much.
def integer_power(x: Any, exponent: int) -> Any:
    """Raise to an integer power by repeated squaring.

    Examples
    --------
    >>> integer_power(3.0, 5)
    243.0
    """
    if exponent < 0:
        return 1.0 / integer_power(x, -exponent)
    if exponent == 0:
        return np.ones_like(x)
    if exponent < 4:  # the loop takes longer than products of scalars
        return x if exponent == 1 else x * x if exponent == 2 else x * (x * x)
    result = None
    square = x
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        if exponent:
            square = square * square
    return result


def _integer_power(g: Any, x: Any, exponent: int) -> Any:
    if exponent < 0:
        return exponent * quotient(g, integer_power(x, 1 - exponent))
    return g * (exponent * integer_power(x, exponent - 1))


def number_power(x: Any, exponent: float) -> Any:
    """Raise to a power that is a Python number.

    Examples
    --------
    >>> float(number_power(4.0, 1.5))
    8.0
    """
    if isinstance(x, np.generic):  # whose operator rounds differently from that of an array
        return np.power(x, exponent)
    return x**exponent


def _number_power(g: Any, x: Any, exponent: float) -> Any:
    if exponent == 0:
        return zeros_of(g)
    if exponent < 1:  # as a guarded quotient: a gradient of 0 stays 0 at x = 0
        return exponent * quotient(g, number_power(x, 1 - exponent))
    return product(g, exponent * number_power(x, exponent - 1))


def _power_by_base(g: Any, a: Any, b: Any) -> Any:
    """Return g * b * a**(b - 1), with 0 where b is 0 (also at a = 0, where a**-1 is infinite)."""
    return product(g, product(b, np.power(np.where((a == 0) & (b == 0), 1.0, a), b - 1)))


def _power_by_exponent(g: Any, a: Any, y: Any) -> Any:
    """Return g * y * log(a), with 0 at a = 0 (the limit for positive exponents)."""
    if isinstance(a, (int, float)) and a > 0:
        return product(g, math.log(a) * y)
    # If the dtype of a is narrower, the ones of y's dtype promote it: log(a) needs all the digits.
    one = 1.0 if getattr(a, "dtype", y.dtype) == y.dtype else np.ones_like(y)
    return product(g, product(np.log(np.where(a == 0, one, a)), y))


INTEGER_POWER = rule(integer_power, _integer_power, static="exponent")
NUMBER_POWER = rule(number_power, _number_power, static="exponent")
POWER = rule(np.power, _power_by_base, _power_by_exponent)
rule(np.float_power, _power_by_base, _power_by_exponent)
SQUARE = rule(np.square, lambda g, x: g * (x + x), forward=lambda x: x * x)
SQRT = rule(np.sqrt, lambda g, y: quotient(g, y + y))
rule(np.cbrt, lambda g, y: quotient(g, 3 * y * y))
rule(np.hypot, lambda g, a, y: g * quotient(a, y), lambda g, b, y: g * quotient(b, y))

# Exponentials and logarithms.
EXP = rule(np.exp, lambda g, y: product(g, y))
rule(np.exp2, lambda g, y: LOG_2 * product(g, y))
rule(np.expm1, lambda g, y: product(g, y + 1))
LOG = rule(np.log, lambda g, x: quotient(g, x))
rule(np.log2, lambda g, x: quotient(g, x * LOG_2))
rule(np.log10, lambda g, x: quotient(g, x * LOG_10))
rule(np.log1p, lambda g, x: quotient(g, x + 1))


def _minus_logaddexp(a: Any, b: Any, y: Any, half: float) -> Any:
    """Return a - y for y = logaddexp(a, b), where inf - inf is 0, or -`half` if a equals b."""
    infinite = np.isinf(y) & (a == y)
    return np.where(infinite, 0.0, a) - np.where(infinite, np.where(a == b, half, 0.0), y)


rule(
    np.logaddexp,
    lambda g, a, b, y: g * np.exp(_minus_logaddexp(a, b, y, LOG_2)),
    lambda g, a, b, y: g * np.exp(_minus_logaddexp(b, a, y, LOG_2)),
)
rule(
    np.logaddexp2,
    lambda g, a, b, y: g * np.exp2(_minus_logaddexp(a, b, y, 1.0)),
    lambda g, a, b, y: g * np.exp2(_minus_logaddexp(b, a, y, 1.0)),
)

# Trigonometric and hyperbolic functions.
SIN = rule(np.sin, lambda g, x: g * np.cos(x))
COS = rule(np.cos, lambda g, x: -g * np.sin(x))
rule(np.tan, lambda g, y: g * (1 + y * y))
rule(np.arcsin, lambda g, x: quotient(g, np.sqrt((1 - x) * (1 + x))))
rule(np.arccos, lambda g, x: -quotient(g, np.sqrt((1 - x) * (1 + x))))
rule(np.arctan, lambda g, x: g / (1 + x * x))
rule(
    np.arctan2,
    lambda g, a, b: g * quotient(b, a * a + b * b),
    lambda g, a, b: -g * quotient(a, a * a + b * b),
)
rule(np.sinh, lambda g, x: product(g, np.cosh(x)))
rule(np.cosh, lambda g, x: product(g, np.sinh(x)))
TANH = rule(np.tanh, lambda g, y: g * (1 - y * y))
rule(np.arcsinh, lambda g, x: g / np.sqrt(x * x + 1))
rule(np.arccosh, lambda g, x: quotient(g, np.sqrt((x - 1) * (x + 1))))
rule(np.arctanh, lambda g, x: quotient(g, (1 - x) * (1 + x)))
for to_radians in (np.radians, np.deg2rad):
    rule(to_radians, lambda g: g * (math.pi / 180))
for to_degrees in (np.degrees, np.rad2deg):
    rule(to_degrees, lambda g: g * (180 / math.pi))

# Signs.
ABSOLUTE = rule(np.absolute, lambda g, x: product(np.sign(x), g))
rule(np.fabs, lambda g, x: product(np.sign(x), g))
rule(np.copysign, lambda g, a, y: product(np.sign(a) * np.sign(y), g), lambda g: zeros_of(g))


# Maximum and minimum of two.
def _split_pair(g: Any, a_wins: Any, b_wins: Any, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    """Pass `g` to the selected input, half to each at ties."""
    if type(a_wins) is np.ndarray and a_wins.shape == g.shape:  # one input may win everywhere
        if not np.count_nonzero(b_wins):
            return where_mask(g, a_wins), zeros_of(g)
        if not np.count_nonzero(a_wins):
            return zeros_of(g), where_mask(g, b_wins)
    both = a_wins & b_wins
    none_tie = type(both) is np.ndarray and not np.count_nonzero(both)
    share = g if none_tie else np.where(both, 0.5 * g, g)
    return (
        where_mask(share, a_wins) if needs[0] else None,
        where_mask(share, b_wins) if needs[1] else None,
    )


MAXIMUM = rule(
    np.maximum, joint=lambda g, a, b, needs: _split_pair(g, a >= b, b >= a, needs), inputs="a b"
)
MINIMUM = rule(
    np.minimum, joint=lambda g, a, b, needs: _split_pair(g, a <= b, b <= a, needs), inputs="a b"
)
rule(
    np.fmax,
    joint=lambda g, a, b, needs: _split_pair(g, (a >= b) | (b != b), (b >= a) | (a != a), needs),
    inputs="a b",
)
rule(
    np.fmin,
    joint=lambda g, a, b, needs: _split_pair(g, (a <= b) | (b != b), (b <= a) | (a != a), needs),
    inputs="a b",
)
rule(
    np.clip,
    lambda g, x, low, high: where_mask(g, _within_bounds(x, low, high)),
    lambda g, x, low, high: where_mask(g, (x < low) & (True if high is None else low <= high)),
    lambda g, x, low, high: where_mask(g, (x if low is None else np.maximum(x, low)) > high),
    inputs="x low high",
)


def _within_bounds(x: Any, low: Any, high: Any) -> Any:
    """Return the mask of elements within the bounds, the bounds included."""
    if low is None:
        return True if high is None else x <= high
    return x >= low if high is None else (x >= low) & (x <= high)


# Selection.
WHERE = rule(
    np.where,
    None,
    lambda g, condition: where_mask(g, condition),
    lambda g, condition: where_mask(g, np.logical_not(condition)),
    inputs="condition a b",
)
NAN_TO_NUM = rule(
    np.nan_to_num, lambda g, x: where_mask(g, np.isfinite(x)), static="copy nan posinf neginf"
)

# Step functions: piecewise constant, so their derivative is 0.
for step_function in (np.sign, np.floor, np.ceil, np.trunc, np.rint, np.spacing):
    rule(step_function, lambda g: zeros_of(g))
# NumPy 2.5 deprecates fix in favor of trunc, which gives the same.
rule(np.fix, lambda g: zeros_of(g), forward=np.trunc)
ROUND = rule(np.round, lambda g: zeros_of(g), static="decimals")
rule(np.heaviside, lambda g: zeros_of(g), lambda g, a: where_mask(g, a == 0))
rule(np.nextafter, lambda g: g, lambda g: zeros_of(g))

# The parts of a float. Exponents are integers and have no derivative.
rule(np.modf, lambda g: g[0], several=True)
rule(np.frexp, lambda g, y: np.ldexp(g[0], -y[1]), several=True)
rule(np.ldexp, lambda g, b: np.ldexp(g, b), None)

# Complex conjugate, imaginary part and angle of real numbers.
CONJUGATE = rule(np.conjugate, lambda g: g)
IMAGINARY = rule(np.imag, lambda g: zeros_of(g))
rule(np.angle, lambda g: zeros_of(g), static="deg")
