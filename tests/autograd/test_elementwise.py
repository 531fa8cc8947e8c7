"""Elementwise functions: coverage, options of ufuncs, and dtypes."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.composed import COMPOSED
from optlab.autograd.dispatch.array_protocols import PLAIN, WHOLE_NUMBERS
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.special import modified_bessel
from tests.autograd.rows.table import NUMPY

UFUNCS = {f for f in vars(np).values() if isinstance(f, np.ufunc)}
ELEMENTWISE = {f for f in UFUNCS if f.signature is None}


def tensor(x: Any, dtype: Any = "float64") -> ol.Tensor:
    return ol.to_tensor(x, dtype=dtype, requires_grad=True)


# Coverage.


def test_every_ufunc_has_a_derivative_or_is_known_to_have_none() -> None:
    left = ELEMENTWISE - {*TABLE} - {*COMPOSED} - PLAIN - WHOLE_NUMBERS
    assert {f.__name__ for f in left} <= {"isnat"}  # isnat is for dates


@pytest.mark.parametrize("ufunc", sorted(WHOLE_NUMBERS, key=lambda f: f.__name__))
def test_ufuncs_of_whole_numbers_say_so(ufunc: Any) -> None:
    t = tensor([1.0, 2.0])
    with pytest.raises(TypeError, match=f"{ufunc.__name__} is for whole numbers"):
        ufunc(*[t] * ufunc.nin)
    whole = ol.to_tensor([5, 6])
    got = ufunc(*[whole] * ufunc.nin)
    np.testing.assert_array_equal(got, ufunc(*[np.array([5, 6])] * ufunc.nin))
    assert not isinstance(got, ol.Tensor)


@pytest.mark.parametrize(
    "name", ["acos", "asin", "atan", "acosh", "asinh", "atanh", "atan2", "pow", "true_divide",
             "mod", "conj", "abs"],
)  # fmt: skip
def test_newer_and_older_names_are_the_same_functions(name: str) -> None:
    f = getattr(np, name)
    assert f in TABLE or f in COMPOSED


def test_several_outputs_are_tensors_that_can_be_used_alone() -> None:
    t = tensor([1.75, -2.5])
    fraction, whole = np.modf(t)
    np.testing.assert_array_equal(fraction.numpy(), [0.75, -0.5])
    np.testing.assert_array_equal(whole.numpy(), [1.0, -2.0])
    (fraction * [1.0, 10.0]).backward()
    np.testing.assert_array_equal(t.grad.numpy(), [1.0, 10.0])

    mantissa, exponent = np.frexp(tensor([6.0]))
    assert exponent.dtype.kind == "i"
    assert not exponent.requires_grad
    np.testing.assert_array_equal(np.ldexp(mantissa, exponent).numpy(), [6.0])


def test_divmod_works_as_function_and_as_operator() -> None:
    x = np.array([7.5, -7.5])
    for call in (divmod, np.divmod):
        whole, rest = call(tensor(x), 2.0)
        np.testing.assert_array_equal(np.stack([whole, rest]).numpy(), divmod(x, 2.0))
        whole, rest = call(20.0, tensor(x))
        np.testing.assert_array_equal(np.stack([whole, rest]).numpy(), divmod(20.0, x))
    ol.check_grad(lambda b: np.stack(divmod(20.0, b)), np.array([7.5, -7.5]))


# The options of ufuncs.


@pytest.mark.parametrize("ufunc", [np.exp, np.add, np.divide, np.maximum, np.power, np.sign])
def test_dtype_computes_in_that_dtype_and_the_gradient_comes_back_in_its_own(ufunc: Any) -> None:
    arrays = [np.array([0.3, 1.7], "float32"), np.array([2.1, 0.9], "float32")][: ufunc.nin]
    tensors = [tensor(x, "float32") for x in arrays]
    got = ufunc(*tensors, dtype="float64")
    wanted = ufunc(*arrays, dtype="float64")
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got.numpy(), wanted)
    got.backward()
    assert [t.grad.dtype for t in tensors] == [np.float32] * ufunc.nin
    assert ufunc(*[x.astype("float64") for x in tensors], dtype=np.float32).dtype == np.float32


def test_dtype_casts_the_inputs_that_are_no_tensors() -> None:
    t, whole = tensor([0.3], "float32"), np.array([3])
    assert (t * whole).dtype == np.float64
    got = np.multiply(t, whole, dtype=np.float32)
    assert got.dtype == np.multiply(t.numpy(), whole, dtype=np.float32).dtype == np.float32
    assert np.multiply(t, [3.0], dtype="float32").dtype == np.float32
    assert np.multiply(t, 3.0, dtype="float32").dtype == np.float32


REFUSED = {
    "where": lambda t: np.exp(t, where=t > 1),
    "casting": lambda t: np.add(t, 1.0, casting="unsafe"),
    "order": lambda t: np.add(t, 1.0, order="F"),
    "subok": lambda t: np.exp(t, subok=False),
    "signature": lambda t: np.exp(t, signature="d->d"),
    "dtype=int64": lambda t: np.sign(t, dtype="int64"),
    "out": lambda t: np.exp(t, out=np.zeros(2)),
    "axis": lambda t: np.add(t, t, axis=0),
    "clip.*where": lambda t: np.clip(t, 0, 1, where=t > 1),
    "clip.*out": lambda t: np.clip(t, 0, 1, np.zeros(2)),
    "clip.*both": lambda t: np.clip(t, 0, 1, max=1),
    "clip.*a_max": lambda t: np.clip(t, 0),
    "clip.*nonsense": lambda t: np.clip(t, 0, 1, nonsense=3),
    "round.*out": lambda t: np.round(t, out=np.zeros(2)),
    "around.*out": lambda t: np.around(t, 1, np.zeros(2)),
    "copy=False": lambda t: np.nan_to_num(t, copy=False),
    "nan=": lambda t: np.nan_to_num(t, nan=t[0]),
    "copy.*order": lambda t: np.copy(t, order="F"),
    "astype.*order": lambda t: t.astype("float32", order="F"),
    "astype.*casting": lambda t: t.astype("float32", casting="safe"),
    "astype.*gpu": lambda t: np.astype(t, "float32", device="gpu"),
    "add.at": lambda t: np.add.at(np.zeros(2), [0], t[0]),
    "multiply.at": lambda t: np.multiply.at(t.detach(), [0], 1.0),
    "bitwise_and": lambda t: (t > 1) & t,
    "bitwise_or": lambda t: t | 1,
    "invert": lambda t: ~t,
    "left_shift": lambda t: 1 << t,
}
if NUMPY < (2, 1):
    del REFUSED["astype.*gpu"]


@pytest.mark.parametrize("named", REFUSED)
def test_what_is_not_covered_is_refused_by_name(named: str) -> None:
    with pytest.raises((TypeError, ValueError), match=named):
        REFUSED[named](tensor([0.5, 2.0]))


def test_where_in_a_call_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"Write np\.where\(mask, np\.log\(\.\.\.\), other\)"):
        np.log(tensor([1.0]), where=np.array([False]))


def test_options_that_change_nothing_may_be_given() -> None:
    t = tensor([0.5, 2.0])
    got = np.exp(t, where=True, casting="same_kind", order="K", subok=True, dtype=None, out=None)
    np.testing.assert_array_equal(got.numpy(), np.exp([0.5, 2.0]))
    assert t.astype("float64", copy=False) is t
    assert t.astype("float64") is not t
    np.testing.assert_array_equal(t.clip(min=1.0, out=None).numpy(), [1.0, 2.0])


BINARY = sorted(
    (f for f in ELEMENTWISE - WHOLE_NUMBERS - {np.ldexp} if f.nin == 2 and f.nout == 1),
    key=lambda f: f.__name__,
)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda f: f.__name__)
def test_outer_takes_all_pairs(ufunc: Any) -> None:
    a, b = np.array([[0.5, 1.7], [2.3, 0.9]]), np.array([1.1, 0.6, 2.9])
    wanted = ufunc.outer(a, b)
    for got in (ufunc.outer(tensor(a), b), ufunc.outer(a, tensor(b)), ufunc.outer(tensor(a), b)):
        np.testing.assert_array_equal(getattr(got, "data", got), wanted)
    if ufunc not in PLAIN:
        ol.check_grad(ufunc.outer, a, b)


# Methods.


def test_methods_take_the_arguments_of_arrays() -> None:
    x = np.array([-1.26, 0.5, 2.0])
    t = tensor(x)
    np.testing.assert_array_equal(t.round(1).numpy(), x.round(1))
    np.testing.assert_array_equal(t.round(decimals=0).numpy(), x.round(decimals=0))
    np.testing.assert_array_equal(t.clip(-1, 1).numpy(), x.clip(-1, 1))
    np.testing.assert_array_equal(t.clip(max=1).numpy(), x.clip(max=1))
    np.testing.assert_array_equal(t.conj().numpy(), x)
    np.testing.assert_array_equal(t.real.numpy(), x)
    np.testing.assert_array_equal(t.imag.numpy(), [0.0] * 3)
    (t.round() + t.clip(-1, 1) + t.conj() * 10 + t.real * 100 + t.imag * 1000).backward()
    np.testing.assert_array_equal(t.grad.numpy(), [110.0, 111.0, 110.0])


def test_bits_of_whole_numbers_are_plain_arrays() -> None:
    t, x = ol.to_tensor([5, 6]), np.array([5, 6])
    calls: list[Any] = [
        lambda x: ~x, lambda x: x & 3, lambda x: 3 & x, lambda x: x | 8, lambda x: 8 | x,
        lambda x: x ^ 1, lambda x: 1 ^ x, lambda x: x << 2, lambda x: 2 << x, lambda x: x >> 1,
        lambda x: 99 >> x,
    ]  # fmt: skip
    for call in calls:
        np.testing.assert_array_equal(call(t), call(x))


# Dtypes (NEP 50): Python numbers adopt the dtype of the array, NumPy scalars keep their own.

OTHERS = {
    "float": 2.5, "int": 2, "float32": np.float32(2.5), "float64": np.float64(2.5),
    "float16": np.float16(2.5), "int64": np.int64(2), "an array": np.array([2.5, 1.5]),
    "0-d": np.array(2.5),
}  # fmt: skip
CALLS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.floordiv,
    operator.pow, np.add, np.maximum, np.fmin, np.arctan2, np.hypot, np.logaddexp, np.copysign,
    np.power, np.float_power, np.heaviside,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("call", CALLS, ids=lambda f: f.__name__)
def test_dtypes_are_those_of_numpy_and_gradients_come_back_in_their_own(
    call: Any, other: str, dtype: str
) -> None:
    x, y = np.array([0.5, 1.5], dtype), OTHERS[other]
    for swap in (False, True):
        t = tensor(x, dtype)
        got, wanted = (call(y, t), call(y, x)) if swap else (call(t, y), call(x, y))
        assert got.dtype == wanted.dtype
        tolerance = 8 * np.finfo(wanted.dtype).eps
        np.testing.assert_allclose(got.numpy(), wanted, rtol=tolerance)
        got.backward()
        assert t.grad.dtype == dtype
        assert np.isfinite(t.grad.numpy()).all()


ONE = [
    np.sqrt, np.exp, np.log, np.tanh, np.abs, np.sinc, np.i0, np.sign, np.floor, np.nan_to_num,
    np.round, np.angle, np.cbrt, np.arcsin, np.radians, np.square, np.reciprocal, np.log1p,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("function", ONE, ids=lambda f: f.__name__)
def test_rules_do_not_widen(function: Any, dtype: str) -> None:
    """The rule itself computes in the narrow dtype, before the tape would cast its result."""
    x = np.array([0.25, 0.75], dtype)
    t = tensor(x, dtype)
    node = function(t).node
    _, run = node.recipe.pullbacks[0]
    g = run(np.ones(2, dtype), node.saved, node.static)
    assert g.dtype == dtype


# Powers.


@pytest.mark.parametrize("three", [3, 3.0, np.int64(3), np.float64(3), np.float32(3), np.int8(3)])
def test_small_whole_powers_are_products_however_they_are_written(three: Any) -> None:
    for dtype in ("float32", "float64"):
        x = np.array([1.5, -2.0], dtype)
        for call in (operator.pow, np.power):
            t = tensor(x, dtype)
            got = call(t, three)
            assert got.node.operation.name == "integer_power"
            assert got.dtype == call(x, three).dtype
            got.backward()
            np.testing.assert_allclose(t.grad.numpy(), 3 * x * x)
            assert t.grad.dtype == dtype


def test_powers_of_whole_numbers_stay_numpys() -> None:
    assert (ol.to_tensor([2, 3]) ** 2).dtype == np.int64
    np.testing.assert_array_equal(np.power(ol.to_tensor([2, 3]), np.int64(3)).numpy(), [8, 27])


# Special functions, against integrals that quadrature gives to the last digit.


def _bessel(x: np.ndarray, order: int) -> np.ndarray:
    """Return I_n(x), the mean of exp(x cos t) cos(n t) over a period."""
    t = 2 * math.pi * np.arange(400) / 400
    return np.mean(np.exp(np.multiply.outer(x, np.cos(t))) * np.cos(order * t), axis=-1)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_modified_bessel_functions(order: int) -> None:
    x = np.array([0.3, 1.0, 5.0, 29.99, 30.01, 60.0, 300.0])
    np.testing.assert_allclose(modified_bessel(x, order), _bessel(x, order), rtol=3e-13)
    np.testing.assert_allclose(
        modified_bessel(-x, order), (-1) ** order * _bessel(x, order), rtol=3e-13
    )


def test_derivatives_of_i0_to_third_order() -> None:
    x = np.array([-40.0, -3.0, 0.0, 0.2, 8.0, 30.0])
    i0, i1, i2, i3 = (_bessel(x, n) for n in range(4))
    first = lambda x: ol.grad(lambda x: np.sum(np.i0(x)))(x)  # noqa: E731
    second = lambda x: ol.grad(lambda x: np.sum(first(x)))(x)  # noqa: E731
    third = lambda x: ol.grad(lambda x: np.sum(second(x)))(x)  # noqa: E731
    np.testing.assert_allclose(first(x), i1, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(second(x), (i0 + i2) / 2, rtol=1e-12)
    np.testing.assert_allclose(third(x), (3 * i1 + i3) / 4, rtol=1e-12, atol=1e-15)


def test_derivatives_of_sinc_to_fourth_order() -> None:
    """The derivatives of sinc are means of those of cos(pi x t) over t from 0 to 1."""
    x = np.array([0.0, 1e-9, 1e-3, 0.5, 0.799999, 0.800001, 1.0, 2.7, -0.4])
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t, weights = (nodes + 1) / 2, weights / 2
    f: Any = np.sinc
    for order in range(1, 5):
        f = lambda x, f=f: ol.grad(lambda x: np.sum(f(x)))(x)  # noqa: E731
        wave = np.cos(math.pi * np.multiply.outer(x, t) + order * math.pi / 2)
        wanted = (wave * (math.pi * t) ** order) @ weights
        np.testing.assert_allclose(f(x), wanted, rtol=1e-12, atol=1e-12)


def test_the_overflowing_slope_of_i0_spoils_nothing() -> None:
    with np.errstate(over="ignore"):
        found = ol.grad(lambda x: np.sum(np.where(x < 500, np.i0(x), 0.0)))(np.array([1e4]))
    assert found.tolist() == [0.0]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("power", [np.power, np.float_power])
def test_the_derivative_by_an_exponent_has_its_digits_beside_a_narrower_base(
    power: Any, dtype: str
) -> None:
    base = np.array([1.7, 0.6, 0.0], dtype)
    found = ol.grad(lambda x: np.sum(power(base, x)))(np.array([1.3, 2.1, 1.0]))
    wide = base.astype(float)
    wanted = ol.grad(lambda x: np.sum(power(wide, x)))(np.array([1.3, 2.1, 1.0]))
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
