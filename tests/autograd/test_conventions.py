"""The conventions for derivatives where mathematics leaves a choice: kinks, ties, zeros, bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.autograd.rows.table import quietly


def slopes(f: Any, *args: Any) -> list[list[float]]:
    """Return the gradients of the sum of f, as lists."""
    found = ol.grad(lambda *xs: np.sum(f(*xs)), tuple(range(len(args))))(*map(np.array, args))
    return [g.tolist() for g in found]


# abs, sign and steps.


@pytest.mark.parametrize("function", [np.absolute, np.fabs, abs])
def test_abs_has_slope_0_at_0(function: Any) -> None:
    assert slopes(function, [-2.0, 0.0, -0.0, 3.0]) == [[-1.0, 0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    "function",
    [np.sign, np.floor, np.ceil, np.trunc, np.rint, quietly(np.fix), np.round, np.angle],
    ids=lambda function: function.__name__,
)
def test_steps_are_flat_also_where_they_jump(function: Any) -> None:
    assert slopes(function, [-1.0, -0.5, 0.0, 0.5, 1.0]) == [[0.0] * 5]


def test_copysign_has_slope_0_at_0_and_for_the_sign() -> None:
    size, sign = slopes(np.copysign, [-2.0, 0.0, -0.0, 3.0, 3.0], [5.0, -5.0, 5.0, -5.0, 0.0])
    assert size == [-1.0, 0.0, 0.0, -1.0, 1.0]
    assert sign == [0.0] * 5


def test_heaviside_gives_its_gradient_at_0_to_the_value_there() -> None:
    x, value = slopes(np.heaviside, [-1.0, 0.0, 1.0], [0.3, 0.4, 0.5])
    assert (x, value) == ([0.0, 0.0, 0.0], [0.0, 1.0, 0.0])


def test_remainders_jump_at_multiples_and_have_the_slopes_beside_them() -> None:
    assert slopes(np.remainder, [6.0, -6.0, 7.0], [3.0, 3.0, -3.0]) == [[1.0] * 3, [-2, 2, 3]]
    assert slopes(np.fmod, [6.0, -6.0, 7.0], [3.0, 3.0, -3.0]) == [[1.0] * 3, [-2, 2, 2]]
    # 1.0 / 0.1 is 10 after rounding, but NumPy's floor division gives 9.
    assert slopes(np.remainder, [1.0], [0.1]) == [[1.0], [-9.0]]


def test_numbers_put_in_by_nan_to_num_have_slope_0() -> None:
    assert slopes(np.nan_to_num, [np.nan, np.inf, -np.inf, 2.0]) == [[0.0, 0.0, 0.0, 1.0]]


# Ties.


@pytest.mark.parametrize("function", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_two_values_that_tie_share_the_gradient(function: Any) -> None:
    larger = function is np.maximum or function is np.fmax
    first, second = slopes(function, [1.0, 2.0, 3.0], [1.0, 5.0, 0.0])
    assert first == ([0.5, 0.0, 1.0] if larger else [0.5, 1.0, 0.0])
    assert second == ([0.5, 1.0, 0.0] if larger else [0.5, 0.0, 1.0])


def test_a_number_that_ties_takes_its_share_too() -> None:
    assert slopes(lambda x: np.maximum(x, 0), [-1.0, 0.0, 1.0]) == [[0.0, 0.5, 1.0]]
    assert slopes(lambda x: np.minimum(0.0, x), [-1.0, 0.0, 1.0]) == [[1.0, 0.5, 0.0]]


@pytest.mark.parametrize(("function", "other"), [(np.fmax, 1.0), (np.fmin, 1.0)])
def test_nan_gives_its_gradient_to_the_number_beside_it(function: Any, other: float) -> None:
    first, second = slopes(function, [np.nan, other], [other, np.nan])
    assert (first[1], second[0]) == (1.0, 1.0)
    assert (first[0], second[1]) == (0.0, 0.0)


@pytest.mark.parametrize("function", [np.fmax, np.fmin])
def test_two_nans_tie(function: Any) -> None:
    assert slopes(function, [np.nan], [np.nan]) == [[0.5], [0.5]]


@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
def test_logaddexp_at_infinities(function: Any) -> None:
    inf = np.inf
    with np.errstate(invalid="ignore"):  # of the sum over infinities
        a, b = slopes(function, [-inf, inf, inf, 1.0, -inf, inf], [-inf, inf, 1.0, inf, 1.0, -inf])
    np.testing.assert_allclose(a, [0.5, 0.5, 1.0, 0.0, 0.0, 1.0], rtol=1e-15)
    np.testing.assert_allclose(b, [0.5, 0.5, 0.0, 1.0, 1.0, 0.0], rtol=1e-15)


@pytest.mark.parametrize("function", [np.logaddexp, np.logaddexp2])
def test_logaddexp_of_unlike_numbers(function: Any) -> None:
    a, b = slopes(function, [-1e4, 1e4, -40.0], [1e4, -1e4, 0.0])
    np.testing.assert_allclose(a[:2], [0.0, 1.0])
    np.testing.assert_allclose(b[:2], [1.0, 0.0])
    base = np.e if function is np.logaddexp else 2.0
    np.testing.assert_allclose(a[2], 1 / (1 + base**40.0), rtol=1e-13)
    ol.check_grad(function, np.array([1.0, -3.0]), np.array([1.0, -3.0]))


@pytest.mark.parametrize("function", [np.max, np.min])
def test_elements_that_tie_share_the_gradient_equally(function: Any) -> None:
    sign = 1.0 if function is np.max else -1.0
    x = sign * np.array([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])
    third = 1 / 3
    assert slopes(lambda x: function(x, axis=1), x) == [[[0.5, 0.0, 0.5], [third] * 3]]
    assert slopes(function, x) == [[[0.5, 0.0, 0.5], [0.0] * 3]]
    assert slopes(lambda x: function(x, axis=(0, 1), keepdims=True), x) == slopes(function, x)
    np.testing.assert_array_equal(
        slopes(lambda x: function(x, axis=0), x)[0], np.abs(x) == [3, 2, 3]
    )


@pytest.mark.parametrize("function", [np.max, np.min])
def test_the_shares_of_a_tie_add_up_to_the_gradient(function: Any) -> None:
    (found,) = slopes(lambda x: 7.0 * function(x), np.full((2, 3), 4.0))
    np.testing.assert_allclose(found, np.full((2, 3), 7 / 6))


# Choices between values (gradients of the branch not taken: test_guards.py).


def test_the_branch_not_taken_gets_nothing() -> None:
    first, second = slopes(lambda a, b: np.where([True, False], a, b), [1.0, 2.0], [3.0, 4.0])
    assert (first, second) == ([1.0, 0.0], [0.0, 1.0])


def test_clip_passes_the_gradient_at_its_bounds() -> None:
    assert slopes(lambda x: np.clip(x, -1, 1), [-2.0, -1.0, 0.0, 1.0, 2.0]) == [[0, 1, 1, 1, 0]]


def test_the_bounds_of_clip_get_the_gradient_only_where_they_bind() -> None:
    x, low, high = slopes(
        lambda x, low, high: np.clip(x, low, high), [-2.0, -1.0, 1.0, 2.0], [-1.0] * 4, [1.0] * 4
    )
    assert (x, low, high) == ([0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1])


# Powers.


@pytest.mark.parametrize(
    ("exponent", "slope"), [(0, 0.0), (1, 1.0), (2, 0.0), (3, 0.0), (2.5, 0.0), (1.5, 0.0)]
)
@pytest.mark.parametrize("as_array", [False, True])
def test_powers_of_zero(exponent: float, slope: float, as_array: bool) -> None:
    power = np.array([float(exponent)]) if as_array else exponent
    assert slopes(lambda x: np.power(x, power), [0.0]) == [[slope]]


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("as_array", [False, True])
def test_second_derivatives_of_powers_at_zero(exponent: int, as_array: bool) -> None:
    power = np.array(float(exponent)) if as_array else exponent
    second = ol.grad(ol.grad(lambda x: np.power(x, power)))(np.array(0.0))
    assert float(second) == (2.0 if exponent == 2 else 0.0)


@pytest.mark.parametrize("exponent", [-3, -2, -1, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("as_array", [False, True])
def test_whole_powers_of_negative_numbers(exponent: int, as_array: bool) -> None:
    power = np.array(float(exponent)) if as_array else exponent
    ol.check_grad(lambda x: np.power(x, power), np.array([-1.5, -0.7, 0.8]))


def test_the_exponent_of_a_zero_base_gets_the_limit() -> None:
    base, exponent = slopes(np.power, [0.0, 0.0], [2.0, 3.0])
    assert (base, exponent) == ([0.0, 0.0], [0.0, 0.0])


@pytest.mark.parametrize("function", [np.power, np.float_power])
def test_mixed_derivatives_of_powers_at_exponent_zero(function: Any) -> None:
    """d/da d/db a**b at b = 0 is 1/a, although d/da a**0 is 0 everywhere."""
    ol.check_grad(function, np.array([0.5, 3.0]), np.array([0.0, 0.0]))
    mixed = ol.hessian(lambda v: function(v[0], v[1]))(np.array([3.0, 0.0]))
    np.testing.assert_allclose(mixed, [[0.0, 1 / 3], [1 / 3, np.log(3.0) ** 2]], atol=1e-15)


def test_the_slope_of_a_power_at_base_zero() -> None:
    with np.errstate(divide="ignore"):
        base, exponent = slopes(np.power, [0.0] * 6, [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0])
        assert slopes(lambda x: x**0.3, [0.0]) == [[np.inf]]
    assert base == [-np.inf, 0.0, np.inf, 1.0, 0.0, 0.0]
    assert exponent == [0.0] * 6


def test_the_slope_of_a_power_at_a_negative_base() -> None:
    with np.errstate(invalid="ignore"):
        base, exponent = slopes(np.power, [-2.0, -2.0], [3.0, -1.0])
    np.testing.assert_allclose(base, [12.0, -0.25])
    assert np.isnan(exponent).all()


def test_a_square_given_as_an_array_has_its_second_derivative_at_zero() -> None:
    two = np.array([2.0, 2.0])
    found = ol.hessian(lambda x: np.sum(np.power(x, two)))(np.array([0.0, -3.0]))
    np.testing.assert_allclose(found, [[2.0, 0.0], [0.0, 2.0]])


# Products.


@pytest.mark.parametrize("axis", [None, 0, (0,), -1])
@pytest.mark.parametrize(
    "x",
    [[2.0, 3.0, 5.0], [2.0, 0.0, 5.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [0.0]],
    ids=["no zero", "one zero", "two zeros", "zeros only", "the only one"],
)
def test_prod_with_zeros_is_exact_to_second_order(x: list[float], axis: Any) -> None:
    others = [float(np.prod(x[:i] + x[i + 1 :])) for i in range(len(x))]
    assert slopes(lambda x: np.prod(x, axis=axis), x) == [others]
    ol.check_grad(lambda x: np.prod(x, axis=axis), np.array(x))
    n = range(len(x))
    wanted = [
        [0.0 if i == j else float(np.prod([x[k] for k in n if k not in (i, j)])) for j in n]
        for i in n
    ]
    found = ol.hessian(lambda x: np.prod(x, axis=axis))(np.array(x))
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), (1, 0), (0, 2), (2, 0, 1), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_prod_with_zeros_over_axes(axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2.0, (2, 3, 2))
    x[0, 1, 0] = x[1, 2, 1] = x[1, 0, 1] = 0.0
    ol.check_grad(lambda x: np.prod(x, axis=axis, keepdims=keepdims), x)


def test_third_derivatives_of_a_product_with_zeros() -> None:
    x = np.array([0.0, 0.0, 0.0, 7.0])
    ol.check_grad(np.prod, x, order=3)


# Norms and roots.


def test_std_of_unlike_numbers_has_a_second_derivative() -> None:
    ol.check_grad(np.std, np.array([1.0, 2.0, 4.0]), order=3)


def test_var_of_equal_numbers_is_flat() -> None:
    assert slopes(np.var, [2.0, 2.0]) == [[0.0, 0.0]]


@pytest.mark.parametrize("function", [np.hypot, np.arctan2])
def test_lengths_and_angles_are_flat_at_the_origin(function: Any) -> None:
    assert slopes(function, [0.0], [0.0]) == [[0.0], [0.0]]
    found = ol.hessian(lambda v: function(v[0], v[1]))(np.zeros(2))
    np.testing.assert_array_equal(found, np.zeros((2, 2)))
    for point in ([0.0, 2.0], [2.0, 0.0], [-2.0, 0.0]):
        ol.check_grad(function, *np.array(point))


def test_broadcast_and_repeated_reads_add_up() -> None:
    assert slopes(lambda x: np.broadcast_to(x, (4, 2)), [1.0, 2.0]) == [[4.0, 4.0]]
    assert slopes(lambda x: x[[0, 0, 1, 0]], [1.0, 2.0]) == [[3.0, 1.0]]
