"""Rows of elementwise functions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from optlab.autograd.rules.elementwise import integer_power, number_power
from optlab.autograd.rules.guarded import product as guarded_product
from optlab.autograd.rules.guarded import quotient
from optlab.autograd.rules.scipy_special import polygamma
from optlab.autograd.rules.special import modified_bessel
from tests.autograd.rows.table import (
    NUMPY,
    SHAPES,
    Shape,
    distinct,
    numbers,
    put,
    quietly,
    with_left,
    with_right,
)

# Elementwise functions of one argument ------------------------------------------------------------

UNARY: dict[Any, list[tuple[float, float]]] = {
    np.negative: [(-2, 2)], np.positive: [(-2, 2)], np.square: [(-2, 2)],
    np.reciprocal: [(0.5, 2), (-2, -0.5)], np.sqrt: [(0.5, 2)], np.cbrt: [(0.5, 2), (-2, -0.5)],
    np.exp: [(-1, 1)], np.exp2: [(-1, 1)], np.expm1: [(-1, 1)],
    np.log: [(0.5, 3)], np.log2: [(0.5, 3)], np.log10: [(0.5, 3)], np.log1p: [(-0.5, 2)],
    np.sin: [(-3, 3)], np.cos: [(-3, 3)], np.tan: [(-1, 1)],
    np.arcsin: [(-0.8, 0.8)], np.arccos: [(-0.8, 0.8)], np.arctan: [(-2, 2)],
    np.sinh: [(-2, 2)], np.cosh: [(-2, 2)], np.tanh: [(-2, 2)],
    np.arcsinh: [(-2, 2)], np.arccosh: [(1.3, 3)], np.arctanh: [(-0.8, 0.8)],
    np.radians: [(-90, 90)], np.deg2rad: [(-90, 90)], np.degrees: [(-2, 2)], np.rad2deg: [(-2, 2)],
    np.absolute: [(0.3, 2), (-2, -0.3)], np.fabs: [(0.3, 2), (-2, -0.3)],
    np.sign: [(0.3, 2), (-2, -0.3)], np.floor: [(1.1, 1.4), (-1.9, -1.6)],
    np.ceil: [(1.1, 1.4), (-1.9, -1.6)], np.trunc: [(1.1, 1.4), (-1.9, -1.6)],
    np.rint: [(1.1, 1.4), (-1.9, -1.6)], np.spacing: [(1.1, 1.9)], np.conjugate: [(-2, 2)],
    np.modf: [(1.1, 1.9), (-1.9, -1.1)], np.frexp: [(1.1, 1.9), (-0.24, -0.14), (5, 7)],
    np.ldexp: [(-2, 2)],
}  # fmt: skip

#: Elementwise functions that are no ufuncs.
OTHERS: dict[Any, list[tuple[float, float]]] = {
    np.fix: [(1.1, 1.4), (-1.9, -1.6)], np.round: [(1.1, 1.4)], np.around: [(1.1, 1.4)],
    np.real: [(-2, 2)], np.imag: [(-2, 2)], np.real_if_close: [(-2, 2)],
    np.angle: [(0.3, 2), (-2, -0.3)], np.nan_to_num: [(-2, 2)],
    np.sinc: [(-3, 3), (-0.01, 0.01), (0.7, 0.9)],
    np.i0: [(-2, 2), (-0.01, 0.01), (25, 35), (-35, -25)],
}  # fmt: skip

#: Calls of functions with several outputs or with an argument without derivative.
CALLS: dict[Any, Any] = {
    np.modf: lambda x: np.stack(np.modf(x)),
    np.frexp: lambda x: np.frexp(x)[0],
    np.ldexp: lambda x: np.ldexp(x, -2),
    np.divmod: lambda a, b: np.stack(np.divmod(a, b)),
    np.fix: quietly(np.fix),  # deprecated by NumPy 2.5
}

for function, ranges in {**UNARY, **OTHERS}.items():
    call = CALLS.get(function, function)
    for (low, high), shape in product(ranges, SHAPES):
        put(function, f"{shape} in ({low}, {high})", call, numbers(shape, low, high))

put(np.exp, "in float64", lambda x: np.exp(x, dtype="float64"), numbers((2, 3)))
put(np.ldexp, "by an array", lambda x: np.ldexp(x, np.array([[2], [-1]])), numbers((3,)))
put(np.frexp, "times the power", lambda x: np.ldexp(*np.frexp(x)), numbers((3,), 1.1, 1.9))
put(np.modf, "the fraction alone", lambda x: np.modf(x)[0], numbers((2, 3), 1.1, 1.9))
put(np.modf, "the whole part alone", lambda x: np.modf(x)[1], numbers((2, 3), 1.1, 1.9))

X = distinct((2, 5))
for n in (1, 0, -1):
    put(np.round, f"{n} decimals", lambda x, n=n: np.round(x, n), X)
    put(np.around, f"{n} decimals", lambda x, n=n: np.around(x, decimals=n), X)
put(np.angle, "degrees", lambda x: np.angle(x, deg=True), X)
put(np.real_if_close, "tolerance", lambda x: np.real_if_close(x, tol=5), X)
GAPS = np.array([1.5, np.nan, np.inf, -np.inf, -2.5])
put(np.nan_to_num, "gaps", np.nan_to_num, GAPS)
put(np.nan_to_num, "with numbers", lambda x: np.nan_to_num(x, True, 7.5, 8.5, -8.5), GAPS)
put(np.nan_to_num, "with arrays",
    lambda x: np.nan_to_num(x, nan=np.arange(5.0), posinf=np.float64(9)), GAPS)  # fmt: skip

for n in range(4):
    for low, high in [(-2, 2), (29, 31), (-31, -29)]:
        put(modified_bessel, f"{n} in ({low}, {high})",
            lambda x, n=n: modified_bessel(x, n), numbers((4,), low, high))  # fmt: skip
for n in (0, 0.3, 1.5, 2.5, -0.5, -1.5, 65):
    for shape in SHAPES:
        put(number_power, f"{n} {shape}", lambda x, n=n: x**n, numbers(shape, 0.7, 1.2))
for function in (guarded_product, quotient):
    for a_shape, b_shape in [((), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 1))]:
        put(function, f"{a_shape} {b_shape}", function,
            numbers(a_shape), numbers(b_shape, 0.5, 2))  # fmt: skip
    put(function, "with zeros", function, np.array([0.0, 1.0, -0.0]), np.array([2.0, 0.5, -1.5]))


# Elementwise functions of two arguments -----------------------------------------------------------

PAIRS: list[tuple[Shape, Shape]] = [
    ((), ()), ((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), ()),
    ((), (2, 3)), ((2, 1), (1, 3)), ((1,), (4, 1)), ((2, 3, 1), (3, 4)), ((1, 1), (3,)),
    ((0, 2), (1, 2)),
]  # fmt: skip

ANY = (-2.0, 2.0)
PLUS, MINUS = (0.5, 2.0), (-2.0, -0.5)
BINARY: dict[Any, list[tuple[tuple[float, float], tuple[float, float]]]] = {
    np.add: [(ANY, ANY)], np.subtract: [(ANY, ANY)], np.multiply: [(ANY, ANY)],
    np.divide: [(ANY, PLUS), (ANY, MINUS)],
    np.remainder: [((2.3, 2.6), (0.95, 1.05)), ((-2.6, -2.3), (0.95, 1.05)),
                   ((2.3, 2.6), (-1.05, -0.95))],
    np.floor_divide: [((2.3, 2.6), (0.95, 1.05)), ((-2.6, -2.3), (0.95, 1.05))],
    np.fmod: [((2.3, 2.6), (0.95, 1.05)), ((-2.6, -2.3), (0.95, 1.05)),
              ((2.3, 2.6), (-1.05, -0.95))],
    np.power: [(PLUS, ANY)], np.float_power: [(PLUS, ANY)],
    np.logaddexp: [(ANY, ANY)], np.logaddexp2: [(ANY, ANY)],
    np.arctan2: [(PLUS, PLUS), (MINUS, PLUS), (PLUS, MINUS)],
    np.hypot: [(PLUS, PLUS), (MINUS, PLUS)],
    np.copysign: [(PLUS, PLUS), (PLUS, MINUS), (MINUS, PLUS), (MINUS, MINUS)],
    np.maximum: [(ANY, ANY)], np.minimum: [(ANY, ANY)], np.fmax: [(ANY, ANY)],
    np.fmin: [(ANY, ANY)], np.nextafter: [(ANY, ANY)], np.heaviside: [(PLUS, ANY), (MINUS, ANY)],
    np.divmod: [((2.3, 2.6), (0.95, 1.05)), ((-2.6, -2.3), (0.95, 1.05))],
}  # fmt: skip


for function, both in BINARY.items():
    call = CALLS.get(function, function)
    for a_range, b_range in both:
        for a_shape, b_shape in PAIRS:
            a, b = numbers(a_shape, *a_range, seed=1), numbers(b_shape, *b_range, seed=2)
            put(function, f"{a_shape} {b_shape} in {a_range} {b_range}", call, a, b)
        a, b = numbers((2, 3), *a_range, seed=3), numbers((3,), *b_range, seed=4)
        one, two = float(a[0, 0]) + 1e-3, float(b[0]) + 1e-3
        put(function, f"number left, in {b_range}", with_left(call, one), b)
        put(function, f"number right, in {a_range}", with_right(call, two), a)
        put(function, f"array left, in {b_range}", with_left(call, a), b)
        put(function, f"array right, in {a_range}", with_right(call, b), a)
        put(function, f"NumPy scalar left, in {b_range}", with_left(call, a[0, 0]), b)
        put(function, f"NumPy scalar right, in {a_range}", with_right(call, b[0]), a)

for n in (2, 3, 5, 7, 64, -1, -2, -5):
    for shape in SHAPES:
        x = numbers(shape, -1.2, -0.7) if n % 2 else numbers(shape, 0.7, 1.2)
        put(integer_power, f"{n} {shape}", lambda x, n=n: x**n, x)
for n in (0, 1, 0.5, 2.5, -1.5, 65):
    put(np.power, f"number {n}", lambda x, n=n: np.power(x, n), numbers((2, 3), 0.7, 1.2))
for scalar in (np.float64(3), np.int64(3), np.float32(-2), np.int32(2), np.float64(1.5)):
    put(np.power, f"{scalar!r}", lambda x, n=scalar: x**n, numbers((2, 3), 0.7, 1.2))
    put(np.power, f"{scalar!r} by name", lambda x, n=scalar: np.power(x, n),
        numbers((2, 3), 0.7, 1.2))  # fmt: skip
put(np.power, "zero and whole exponents in an array",
    lambda x: np.power(x, np.array([0.0, 1.0, 2.0])), numbers((2, 3), -2, -0.5))  # fmt: skip

LOW, HIGH = numbers((5,), -1.1, -0.9), numbers((2, 1), 0.9, 1.1)
put(np.clip, "three arrays", np.clip, X, LOW, HIGH)
put(np.clip, "two numbers", lambda x: np.clip(x, -0.5, 0.5), X)
put(np.clip, "0-d", lambda x: np.clip(x, -0.5, 0.5), numbers((), 0.1, 0.2))
put(np.clip, "from below", lambda x: np.clip(x, -0.5, None), X)
put(np.clip, "from above", lambda x: np.clip(x, None, 0.5), X)
if NUMPY >= (2, 1):
    put(np.clip, "by name", lambda x: np.clip(x, min=-0.5, max=0.5), X)
    put(np.clip, "none", lambda x: np.clip(x, None, None), X)
    put(np.clip, "only min", lambda x: np.clip(x, min=-0.5), X)
    put(np.clip, "only max", lambda x, high: np.clip(x, max=high), X, HIGH)
put(np.clip, "in float64", lambda x: np.clip(x, -0.5, 0.5, dtype="float64"), X)
put(np.clip, "method", lambda x: x.clip(max=0.5), X)
put(np.clip, "method, by place", lambda x: x.clip(-0.5, 0.5), X)
put(np.clip, "the bounds alone", lambda low, high: np.clip(X.astype(low.dtype), low, high),
    LOW, HIGH)  # fmt: skip
put(np.clip, "bounds that cross", lambda x, low, high: np.clip(x, high, low), X, LOW, HIGH)
put(np.clip, "a_min and a_max", lambda x, low: np.clip(x, a_min=low, a_max=None), X, LOW)

MASK = numbers((2, 3)) > 0
for a_shape, b_shape in PAIRS[:-4]:
    put(np.where, f"{a_shape} {b_shape}", lambda a, b: np.where(MASK, a, b),
        numbers(a_shape, seed=1), numbers(b_shape, seed=2))  # fmt: skip
put(np.where, "number left", lambda b: np.where(MASK, 0.5, b), numbers((3,)))
put(np.where, "number right", lambda a: np.where(MASK, a, 0.5), numbers((2, 1)))
put(np.where, "0-d condition", lambda a, b: np.where(True, a, b), numbers((3,)), numbers(()))

for n in (0, 1, 3):
    put(polygamma, f"{n}", lambda x, n=n: polygamma(n, x), numbers((2, 3), 0.3, 4.0))
