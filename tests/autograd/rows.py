"""The table of the gradient checks: for every function, how to call it and where.

A row is a list of cases; a case is a function of arrays and the arrays to check it at, away from
kinks. `tests/autograd/test_rules.py` fails when a function of the engine has no row here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.operation import TABLE
from optlab.autograd.rules.elementwise import integer_power
from optlab.autograd.rules.indexing import getitem, scatter
from optlab.autograd.rules.shapes import cast
from optlab.autograd.tensor import apply

Shape = tuple[int, ...]


class Case(NamedTuple):
    """A function of arrays, and the arrays."""

    label: str
    f: Callable[..., Any]
    args: tuple[np.ndarray, ...]


def numbers(shape: Shape, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """Give fixed numbers between two bounds."""
    return np.asarray(np.random.default_rng((seed, *shape)).uniform(low, high, shape))


def distinct(shape: Shape) -> np.ndarray:
    """Give fixed numbers no two of which are close, none of them close to 0."""
    n = int(np.prod(shape))
    order = np.random.default_rng(n).permutation(n)
    return np.asarray((0.3 * order - 0.15 * n + 0.07).reshape(shape))


ROWS: dict[Any, list[Case]] = {}


def put(function: Any, label: str, f: Callable[..., Any], *args: np.ndarray) -> None:
    ROWS.setdefault(function, []).append(Case(f"{function.__name__} {label}", f, args))


# Elementwise functions of one argument ----------------------------------------------------------

SHAPES = [(), (1,), (3,), (2, 3), (2, 1, 3), (0, 2)]

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
    np.rint: [(1.1, 1.4), (-1.9, -1.6)],
}  # fmt: skip

for function, ranges in UNARY.items():
    for (low, high), shape in product(ranges, SHAPES):
        put(function, f"{shape} in ({low}, {high})", function, numbers(shape, low, high))

# Elementwise functions of two arguments ---------------------------------------------------------

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
    np.fmin: [(ANY, ANY)],
}  # fmt: skip


def _left(function: Any, constant: Any) -> Callable[..., Any]:
    return lambda x: function(constant, x)


def _right(function: Any, constant: Any) -> Callable[..., Any]:
    return lambda x: function(x, constant)


for function, both in BINARY.items():
    for a_range, b_range in both:
        for a_shape, b_shape in PAIRS:
            a, b = numbers(a_shape, *a_range, seed=1), numbers(b_shape, *b_range, seed=2)
            put(function, f"{a_shape} {b_shape} in {a_range} {b_range}", function, a, b)
        a, b = numbers((2, 3), *a_range, seed=3), numbers((3,), *b_range, seed=4)
        one, two = float(a[0, 0]) + 1e-3, float(b[0]) + 1e-3
        put(function, f"number left, in {b_range}", _left(function, one), b)
        put(function, f"number right, in {a_range}", _right(function, two), a)
        put(function, f"array left, in {b_range}", _left(function, a), b)
        put(function, f"array right, in {a_range}", _right(function, b), a)
        put(function, f"NumPy scalar left, in {b_range}", _left(function, a[0, 0]), b)
        put(function, f"NumPy scalar right, in {a_range}", _right(function, b[0]), a)

for n in (2, 3, 5, 7, 64, -1, -2, -5):
    for shape in SHAPES:
        x = numbers(shape, -1.2, -0.7) if n % 2 else numbers(shape, 0.7, 1.2)
        put(integer_power, f"{n} {shape}", lambda x, n=n: x**n, x)
for n in (0, 1, 0.5, 2.5, -1.5, 65):
    put(np.power, f"number {n}", lambda x, n=n: np.power(x, n), numbers((2, 3), 0.7, 1.2))
put(np.power, "zero and whole exponents in an array",
    lambda x: np.power(x, np.array([0.0, 1.0, 2.0])), numbers((2, 3), -2, -0.5))  # fmt: skip

X, LOW, HIGH = distinct((2, 5)), numbers((5,), -1.1, -0.9), numbers((2, 1), 0.9, 1.1)
put(np.clip, "three arrays", np.clip, X, LOW, HIGH)
put(np.clip, "two numbers", lambda x: np.clip(x, -0.5, 0.5), X)
put(np.clip, "0-d", lambda x: np.clip(x, -0.5, 0.5), numbers((), 0.1, 0.2))
put(np.clip, "from below", lambda x: np.clip(x, -0.5, None), X)
put(np.clip, "from above", lambda x: np.clip(x, None, 0.5), X)
put(np.clip, "by name", lambda x: np.clip(x, min=-0.5, max=0.5), X)
put(np.clip, "a_min and a_max", lambda x, low: np.clip(x, a_min=low, a_max=None), X, LOW)

MASK = numbers((2, 3)) > 0
for a_shape, b_shape in PAIRS[:-4]:
    put(np.where, f"{a_shape} {b_shape}", lambda a, b: np.where(MASK, a, b),
        numbers(a_shape, seed=1), numbers(b_shape, seed=2))  # fmt: skip
put(np.where, "number left", lambda b: np.where(MASK, 0.5, b), numbers((3,)))
put(np.where, "number right", lambda a: np.where(MASK, a, 0.5), numbers((2, 1)))
put(np.where, "0-d condition", lambda a, b: np.where(True, a, b), numbers((3,)), numbers(()))

# Functions that fold axes away ------------------------------------------------------------------

AXES: dict[Shape, list[Any]] = {
    (): [None, ()],
    (1,): [None, 0, (0,), ()],
    (4,): [None, 0, -1, (0,), ()],
    (2, 3): [None, 0, 1, -1, -2, (0, 1), (1, 0), (-1,), ()],
    (2, 1, 3): [None, 0, 1, -1, (0, 2), (0, -1), (2, 0, 1), (1,), ()],
    (1, 1): [None, 0, (0, 1)],
}


def _folding(function: Any, **static: Any) -> Callable[..., Any]:
    return lambda x: function(x, **static)


for function in (np.sum, np.mean, np.max, np.min, np.prod, np.var, np.std):
    for shape, axes in AXES.items():
        for axis, keepdims in product(axes, (False, True)):
            x = distinct(shape)
            folded = x.size / np.asarray(np.sum(x, axis=axis)).size
            if function is np.std and folded == 1:
                continue  # the square root of 0 is a kink
            static = {"axis": axis, "keepdims": keepdims}
            put(function, f"{shape} {static}", _folding(function, **static), x)
            if function in (np.var, np.std) and folded > 1:
                put(function, f"{shape} ddof {static}", _folding(function, ddof=1, **static), x)
    put(function, "whole array", function, distinct((3, 2)))
    put(function, "axis by position", lambda x, f=function: f(x, 1), distinct((3, 2)))
for function in (np.sum, np.mean):
    put(function, "nothing to add", lambda x, f=function: f(x, axis=1), np.zeros((0, 2)))

for shape, axes in AXES.items():
    for axis in axes:
        if not isinstance(axis, tuple):
            put(np.cumsum, f"{shape} {axis}", _folding(np.cumsum, axis=axis), distinct(shape))

# Functions that move elements -------------------------------------------------------------------

for function, calls in {
    np.reshape: [((2, 3), (3, 2)), ((2, 3), (-1,)), ((2, 3), 6), ((1,), ()), ((), (1, 1)),
                 ((2, 3), (1, -1, 2)), ((6,), [2, 3])],
    np.squeeze: [((2, 1, 3),), ((2, 1, 3), 1), ((1, 2, 1), (0, -1)), ((2, 3),), ((1,),), ((),)],
    np.expand_dims: [((2, 3), 0), ((2, 3), -1), ((2, 3), (0, 3)), ((), 0)],
    np.ravel: [((2, 3),), ((),), ((3,),)],
    np.transpose: [((2, 3),), ((2, 1, 3), (1, 2, 0)), ((2, 1, 3), (-1, 0, 1)), ((3,),), ((),),
                   ((2, 3, 4), [2, 0, 1])],
    np.swapaxes: [((2, 3), 0, 1), ((2, 1, 3), -1, 0), ((2, 3), 1, 1)],
    np.moveaxis: [((2, 1, 3), 0, -1), ((2, 1, 3), (0, 1), (-1, 0)), ((2, 3), 1, 0),
                  ((2, 3, 4), [2, 0], [0, 1])],
    np.flip: [((2, 3),), ((2, 3), 0), ((2, 3), (0, -1)), ((3,), 0), ((),)],
    np.roll: [((2, 3), 1), ((2, 3), -2, 1), ((2, 3), (1, 2), (0, 1)), ((4,), 5),
              ((2, 3), 1, (0, 1))],
    np.broadcast_to: [((3,), (2, 3)), ((), (2, 3)), ((2, 1), (4, 2, 3)), ((2, 3), (2, 3)),
                      ((1, 1), (1, 4)), ((1,), 3)],
    np.atleast_1d: [((),), ((3,),), ((2, 3),)],
    np.atleast_2d: [((),), ((3,),), ((2, 3),), ((2, 1, 3),)],
}.items():  # fmt: skip
    for shape, *rest in calls:
        put(function, f"{shape} {rest}", lambda x, f=function, r=tuple(rest): f(x, *r),
            numbers(shape))  # fmt: skip

INDICES: list[tuple[str, Any]] = [
    ("one", 1), ("from the end", -1), ("one number", (1, 2)), ("slice", slice(1, None)),
    ("backwards", slice(None, None, -2)), ("dots", (Ellipsis, 0)), ("new axis", (None, 1)),
    ("row twice", [1, 0, 1]), ("array", np.array([[0, 2], [2, 2]])), ("none", []),
    ("mask", numbers((3, 4)) > 0), ("mask of rows", np.array([True, False, True])),
    ("points", (np.array([0, 1, 1, 0]), np.array([3, 2, 2, 3]))),
    ("slice and list", (slice(None, 2), [0, 0, 3])), ("0-d array", np.array(2)),
    ("NumPy integer", np.int64(2)), ("everything", ()),
]  # fmt: skip
for label, index in INDICES:
    put(getitem, label, lambda x, index=index: x[index], numbers((3, 4)))
put(getitem, "of a vector", lambda x: x[2], numbers((3,)))
put(getitem, "the only number", lambda x: x[()], numbers(()))


def _scatter(x: Any, index: Any) -> Any:
    if isinstance(x, np.ndarray):
        return scatter(x, index, (3, 4))
    return apply(TABLE[scatter], (x,), {"index": index, "shape": (3, 4)})


for label, index in INDICES:
    part = np.zeros((3, 4))[index]
    put(scatter, label, lambda x, index=index: _scatter(x, index), numbers(np.shape(part)))

for shape in SHAPES:
    put(cast, f"{shape}", lambda x: x.astype("float64") * 2.0, numbers(shape))

# Joining and splitting --------------------------------------------------------------------------

put(np.concatenate, "vectors", lambda a, b: np.concatenate([a, b]), numbers((2,)), numbers((3,)))
for axis in (0, 1, -1, None):
    put(np.concatenate, f"three, axis {axis}",
        lambda a, b, c, axis=axis: np.concatenate((a, b, c), axis=axis),
        numbers((2, 2)), numbers((2, 2), seed=1), numbers((2, 2), seed=2))  # fmt: skip
put(np.concatenate, "one twice", lambda a: np.concatenate([a, a * a]), numbers((3,)))
put(np.concatenate, "beside an array", lambda a: np.concatenate([np.ones(2), a]), numbers((3,)))
put(np.concatenate, "an empty one", lambda a, b: np.concatenate([a, b]),
    numbers((0, 2)), numbers((1, 2)))  # fmt: skip
put(np.concatenate, "unlike lengths", lambda a, b: np.concatenate([a, b], 1),
    numbers((2, 3)), numbers((2, 1)))  # fmt: skip
for shape, axis in [((), 0), ((3,), 0), ((3,), -1), ((2, 3), 1), ((2, 3), 2)]:
    put(np.stack, f"{shape} {axis}", lambda a, b, axis=axis: np.stack([a, b, a * b], axis=axis),
        numbers(shape), numbers(shape, seed=1))  # fmt: skip
put(np.stack, "beside an array", lambda a: np.stack((np.ones(3), a)), numbers((3,)))
for function in (np.vstack, np.hstack, np.column_stack):
    for shape in [(), (3,), (2, 3)] if function is not np.column_stack else [(3,), (2, 3)]:
        put(function, f"{shape}", lambda a, b, f=function: f([a, b]),
            numbers(shape), numbers(shape, seed=1))  # fmt: skip
put(np.column_stack, "vector and matrix", lambda a, b: np.column_stack((a, b)),
    numbers((3,)), numbers((3, 2)))  # fmt: skip
for function, parts in product((np.split, np.array_split), (2, [1, 3], 4)):
    put(function, f"{parts}", lambda x, f=function, p=parts: f(x, p)[1] * np.sum(f(x, p)[0]),
        numbers((4, 3)))  # fmt: skip
put(np.split, "axis", lambda x: np.split(x, 3, axis=-1)[2], numbers((2, 3)))
put(np.array_split, "unequal", lambda x: np.array_split(x, 2, axis=1)[1], numbers((2, 3)))

# Products of matrices and vectors ---------------------------------------------------------------

PRODUCTS: list[tuple[Shape, Shape]] = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 3), (3, 1)),
]  # fmt: skip
BATCHED: list[tuple[Shape, Shape]] = [
    ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (2, 3, 1)), ((0, 3), (3, 2)),
    ((1, 1), (1, 1)),
]  # fmt: skip
for a_shape, b_shape in PRODUCTS + BATCHED:
    a, b = numbers(a_shape), numbers(b_shape, seed=1)
    put(np.matmul, f"{a_shape} {b_shape}", np.matmul, a, b)
    put(np.matmul, f"{a_shape} array right", _right(np.matmul, b), a)
    put(np.matmul, f"{b_shape} array left", _left(np.matmul, a), b)
for a_shape, b_shape in [*PRODUCTS, ((), ()), ((), (3,)), ((2, 3), ()), ((5, 2, 3), (3,)),
                         ((5, 2, 3), (3, 4))]:  # fmt: skip
    a, b = numbers(a_shape), numbers(b_shape, seed=1)
    put(np.dot, f"{a_shape} {b_shape}", np.dot, a, b)
    put(np.dot, f"{a_shape} array right", _right(np.dot, b), a)
for a_shape, b_shape in [((2,), (3,)), ((), (3,)), ((2, 2), (3,)), ((1,), (1,))]:
    put(np.outer, f"{a_shape} {b_shape}", np.outer, numbers(a_shape), numbers(b_shape, seed=1))
