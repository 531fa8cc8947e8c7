"""Zero times infinity is zero: the branch not taken by np.where cannot spoil the gradient."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.rules.guarded import LARGE, product, quotient, where_mask, zeros_of

#: A function, a point with an infinite or undefined slope, and a regular one.
SINGULAR: dict[str, tuple[Any, float, float]] = {
    "sqrt": (np.sqrt, 0.0, 4.0),
    "sqrt of a negative number": (np.sqrt, -1.0, 4.0),
    "cbrt": (np.cbrt, 0.0, 8.0),
    "log": (np.log, 0.0, 2.0),
    "log of a negative number": (np.log, -1.0, 2.0),
    "log2": (np.log2, 0.0, 2.0),
    "log10": (np.log10, 0.0, 2.0),
    "log1p": (np.log1p, -1.0, 2.0),
    "divide by": (lambda x: 1.0 / x, 0.0, 2.0),
    "zero divided by": (lambda x: 0.0 / x, 0.0, 2.0),
    "divide": (lambda x: x / np.where(np.asarray(x == 0.5), 0.0, 3.0), 0.5, 2.0),
    "divide by itself": (lambda x: x / x, 0.0, 2.0),
    "reciprocal": (np.reciprocal, 0.0, 2.0),
    "remainder": (lambda x: np.remainder(7.5, x), 0.0, 2.0),
    "fmod": (lambda x: np.fmod(7.5, x), 0.0, 2.0),
    "x**-1": (lambda x: x**-1, 0.0, 2.0),
    "x**-2": (lambda x: x**-2, 0.0, 2.0),
    "x**0.5": (lambda x: x**0.5, 0.0, 2.0),
    "x**0.3": (lambda x: x**0.3, 0.0, 2.0),
    "x**1.5": (lambda x: x**1.5, -1.0, 2.0),
    "x**-0.5": (lambda x: x**-0.5, 0.0, 2.0),
    "overflowing power of a number": (lambda x: 2.0**x, 5000.0, 2.0),
    "exp": (np.exp, 1000.0, 2.0),
    "exp2": (np.exp2, 5000.0, 2.0),
    "expm1": (np.expm1, 1000.0, 2.0),
    "sinh": (np.sinh, 1000.0, 2.0),
    "cosh": (np.cosh, -1000.0, 2.0),
    "arcsin": (np.arcsin, 1.0, 0.5),
    "arcsin beyond 1": (np.arcsin, 3.0, 0.5),
    "arccos": (np.arccos, -1.0, 0.5),
    "arccosh": (np.arccosh, 1.0, 2.0),
    "arctanh": (np.arctanh, 1.0, 0.5),
    "log of sqrt": (lambda x: np.log(np.sqrt(x)), 0.0, 2.0),
    "softplus": (lambda x: np.log1p(np.exp(x)), 1000.0, 2.0),
    "log of a length": (lambda x: np.log(np.hypot(x, 0.0 * x)), 0.0, 2.0),
    "power of an array": (lambda x: np.power(x, np.full(np.shape(x), -1.5)), 0.0, 2.0),
}

every_function = pytest.mark.parametrize("name", SINGULAR)


def guarded(name: str) -> tuple[Any, np.ndarray, Any, float]:
    """Return a function that applies `f` where it is regular, two points, `f`, the regular one."""
    f, singular, regular = SINGULAR[name]
    x = np.array([singular, regular])
    ok = np.array([False, True])
    return lambda x: np.where(ok, f(x), 0.5), x, f, regular


@every_function
def test_the_branch_not_taken_spoils_nothing(name: str) -> None:
    call, x, f, regular = guarded(name)
    t = ol.to_tensor(x, requires_grad=True)
    with np.errstate(all="ignore"):  # NumPy warns about the values of f, as usual
        y = call(t)
    with np.errstate(all="warn"), warnings.catch_warnings():
        # The slope of the branch not taken is computed without a warning (powers do divide).
        warnings.simplefilter("ignore" if name in QUIET_NOT else "error")
        y.backward()
    wanted = float(ol.grad(f)(np.array(regular)))
    np.testing.assert_allclose(t.grad.numpy(), [0.0, wanted], rtol=1e-15)


#: Functions whose slope is a function of NumPy that warns about the branch not taken.
QUIET_NOT = {
    "remainder", "fmod", "x**1.5", "sinh", "cosh", "arcsin beyond 1", "power of an array",
}  # fmt: skip


@every_function
def test_second_derivatives_are_as_if_it_were_not_there(name: str) -> None:
    call, x, f, regular = guarded(name)
    with np.errstate(all="ignore"):
        found = ol.hessian(lambda x: np.sum(call(x)))(x)
        wanted = ol.hessian(f)(np.array(regular))
    np.testing.assert_allclose(found, [[0.0, 0.0], [0.0, float(wanted)]], rtol=1e-14)


@every_function
def test_large_arrays_and_small_numbers_follow_the_same_rule(name: str) -> None:
    """Large arrays and single numbers take different code paths of `guarded`."""
    f, singular, regular = SINGULAR[name]
    with np.errstate(all="ignore"):
        wanted = float(ol.grad(f)(np.array(regular)))
        x = np.tile([singular, regular], LARGE)
        ok = np.tile([False, True], LARGE)
        large = ol.grad(lambda x: np.sum(np.where(ok, f(x), 0.5)))(x)
        np.testing.assert_allclose(large, np.tile([0.0, wanted], LARGE), rtol=1e-14)
        small = [ol.grad(lambda x, k=k: np.where(k, f(x), 0.5))(x[i]) for i, k in enumerate(ok[:2])]
    np.testing.assert_allclose(small, [0.0, wanted], rtol=1e-15)


def test_guarded_products_have_second_derivatives_of_zero() -> None:
    x, z = np.array([0.0, 4.0]), np.array([3.0, 5.0])

    def f(v: Any) -> Any:
        x, z = v[:2], v[2:]
        return np.sum(np.where(x > 0, z * np.sqrt(x), 0.0))

    found = ol.hessian(f)(np.concatenate([x, z]))
    wanted = np.zeros((4, 4))
    wanted[1, 1] = -5.0 / 32
    wanted[1, 3] = wanted[3, 1] = 0.25
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_a_factor_that_is_infinite_itself_is_not_guarded() -> None:
    """The documented limit: products are not guarded."""
    with np.errstate(invalid="ignore"):
        found = ol.grad(lambda x: np.sum(np.where([False], x * np.inf, 0.0)))(np.array([1.0]))
    assert np.isnan(found).all()


def test_its_price_is_a_zero_where_two_slopes_would_cancel() -> None:
    assert ol.grad(lambda x: np.sqrt(x) ** 2)(np.array(0.0)) == 0.0


# Infinite slopes where they are wanted.


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (np.sqrt, 0.0, np.inf), (np.cbrt, 0.0, np.inf), (np.log, 0.0, np.inf),
        (np.arcsin, 1.0, np.inf), (np.arccos, 1.0, -np.inf), (np.arccos, -1.0, -np.inf),
        (np.arccosh, 1.0, np.inf), (np.arctanh, 1.0, np.inf), (np.reciprocal, 0.0, -np.inf),
        (lambda x: x**0.5, 0.0, np.inf), (lambda x: 1 / x, 0.0, -np.inf),
        (lambda x: np.log1p(x), -1.0, np.inf),
    ],
)  # fmt: skip
def test_infinite_slopes_show(f: Any, x: float, slope: float) -> None:
    with np.errstate(all="ignore"):
        assert ol.grad(f)(np.array(x)) == slope
        other = 2.0 if f is np.arccosh else 0.5
        rows = ol.jacobian(f)(np.array([x, other]))
    np.testing.assert_allclose(rows, np.diag([slope, float(ol.grad(f)(np.array(other)))]))


# Gradients that are 0 by chance.

REGULAR = {
    "sqrt": (lambda x: (np.sqrt(x) - 2.0) ** 2, 4.0),
    "log": (lambda x: (np.log(x) - np.log(3.0)) ** 3, 3.0),
    "divide": (lambda x: (1.0 / x - 0.5) ** 2, 2.0),
    "divide both": (lambda x: (x / (x + 1.0) - 0.5) ** 2, 1.0),
    "power": (lambda x: (x**1.5 - 8.0) ** 2, 4.0),
    "power of an array": (lambda x: (np.power(x, np.array([1.5])) - 8.0) ** 2, 4.0),
    "negative power": (lambda x: (x**-2 - 0.25) ** 2, 2.0),
    "exp": (lambda x: (np.exp(x) - 1.0) ** 2, 0.0),
    "arcsin": (lambda x: np.arcsin(x) ** 2, 0.0),
    "abs": (lambda x: (abs(x) - 3.0) ** 2, 3.0),
}


@pytest.mark.parametrize("name", REGULAR)
def test_second_derivatives_where_the_gradient_is_zero_by_chance(name: str) -> None:
    f, x = REGULAR[name]
    points = np.array([x, 0.6])
    ol.check_grad(f, points, order=3)
    _, tangent = ol.jvp(f, (points,), (np.ones(2),))
    np.testing.assert_allclose(tangent, ol.grad(lambda x: np.sum(f(x)))(points), rtol=1e-14)


# A flat side is flat for an infinite gradient too.

FLAT = {
    "maximum": (lambda x: np.sqrt(np.maximum(x, 0.0)), -1.0),
    "minimum": (lambda x: np.sqrt(np.minimum(x, 0.0)), 1.0),
    "fmax": (lambda x: np.sqrt(np.fmax(0.0, x)), -1.0),
    "fmin": (lambda x: np.sqrt(np.fmin(0.0, x)), 1.0),
    "clip": (lambda x: np.sqrt(np.clip(x, 0.0, 1.0)), -1.0),
    "where": (lambda x: np.sqrt(np.where(x > 0, x, 0.0)), -1.0),
    "floor": (lambda x: np.sqrt(np.floor(x)), 0.5),
    "sign": (lambda x: np.sqrt(np.sign(x)), 0.0),
    "round": (lambda x: np.sqrt(np.round(x)), 0.3),
    "abs": (lambda x: np.sqrt(np.abs(x)), 0.0),
    "copysign": (lambda x: np.sqrt(np.copysign(x, 1.0)), 0.0),
    "nan_to_num": (lambda x: np.sqrt(np.nan_to_num(x)), np.nan),
    "heaviside": (lambda x: np.sqrt(np.heaviside(x, 0.5)), -1.0),
}


@pytest.mark.parametrize("name", FLAT)
def test_a_flat_side_is_flat_for_an_infinite_gradient(name: str) -> None:
    f, x = FLAT[name]
    with np.errstate(divide="ignore"):
        assert ol.grad(f)(np.array(x)) == 0.0
        np.testing.assert_array_equal(ol.grad(lambda x: np.sum(f(x)))(np.full(LARGE, x)), 0.0)


# The functions that guard.


@pytest.mark.parametrize("n", [1, LARGE])
def test_product_and_quotient_are_plain_where_the_first_is_not_zero(n: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=5 * n), rng.normal(size=5 * n)
    for zeros in (False, True):
        for odd in (1.0, 0.0, np.inf, np.nan):
            a[0], b[0] = (0.0 if zeros else 2.0), odd
            with np.errstate(all="ignore"):
                times, over = a * b, a / b
                if zeros:
                    times[0] = over[0] = 0.0
                np.testing.assert_array_equal(product(a, b), times)
                np.testing.assert_array_equal(quotient(a, b), over)


@pytest.mark.parametrize("n", [1, LARGE])
def test_kept_chooses(n: int) -> None:
    g = np.random.default_rng(0).normal(size=5 * n)
    mask = g > 0.1
    for odd in (-1.0, np.inf, np.nan):
        g[0], mask[0] = odd, False
        got = where_mask(g, mask)
        np.testing.assert_array_equal(got, np.where(mask, g, 0.0))
        assert not np.signbit(got[~mask]).any()
    assert where_mask(g, True) is not g
    np.testing.assert_array_equal(where_mask(g, True), g)
    np.testing.assert_array_equal(where_mask(g, (g > 0.1).astype(int)), np.where(g > 0.1, g, 0.0))


def test_nothing_is_zeros_of_the_same_kind() -> None:
    for x in (np.array([np.inf, 2.0], "float32"), np.float32("nan")):
        got = zeros_of(x)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, np.zeros(np.shape(x)))
