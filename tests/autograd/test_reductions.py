"""Reductions, cumulative functions and quantiles at points that rows avoid: zeros, ties, NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.rules.reductions.recurrence import linear_recurrence
from optlab.plan.capture import capture_value_and_grad
from tests.autograd.rows import numbers

NAN, INF = np.nan, np.inf


def slope(f: Any, x: Any) -> list[Any]:
    """Return the gradient of the sum of f, as a list."""
    found = ol.grad(lambda x: np.sum(f(x)))(np.array(x))
    return found.tolist()  # type: ignore[no-any-return]


def weighted(f: Any) -> Any:
    """Return a scalar function that weights each element of f differently."""

    def total(x: Any) -> Any:
        y = f(x)
        weights = np.cos(np.arange(float(np.size(y)))).reshape(np.shape(y))
        return np.sum(weights * y * y)

    return total


# Products -----------------------------------------------------------------------------------------

FACTORS = {
    "no zero": [1.5, -2.0, 0.5, 3.0, 0.7],
    "one zero": [1.5, -2.0, 0.0, 3.0, 0.7],
    "two zeros": [1.5, 0.0, 0.5, 0.0, 0.7],
    "three zeros": [0.0, -2.0, 0.0, 3.0, 0.0],
    "all zeros": [0.0, 0.0, 0.0, 0.0, 0.0],
}


@pytest.mark.parametrize("function", [np.prod, np.cumprod, np.nanprod, np.nancumprod])
@pytest.mark.parametrize("name", FACTORS)
def test_products_with_zeros_are_right_to_third_order(function: Any, name: str) -> None:
    ol.check_grad(function, np.array(FACTORS[name]), order=3)


def test_the_third_derivatives_of_a_product_with_zeros() -> None:
    def third(i: int, j: int, k: int) -> Any:
        first = lambda x: ol.grad(np.prod)(x)[i]  # noqa: E731
        return ol.grad(lambda x: ol.grad(first)(x)[j])(np.array(FACTORS["three zeros"]))[k]

    assert third(0, 2, 4) == pytest.approx(-6.0)
    assert third(0, 2, 1) == 0.0


@pytest.mark.parametrize("function", [np.prod, np.cumprod])
def test_products_of_many_factors_take_linear_memory(function: Any) -> None:
    x = np.ones(200_001)
    x[[7, 90_000]] = 0.0, 3.0
    found = np.array(slope(function, x))
    if function is np.prod:
        assert found[7] == 3.0
        assert np.count_nonzero(found) == 1
    else:  # each of the products up to the 0 counts, and all of them do for the 0 itself
        np.testing.assert_array_equal(found[:9], [7, 6, 5, 4, 3, 2, 1, 89_993 + 110_001 * 3, 0])


def test_a_product_that_underflows_still_has_the_gradients_that_do_not() -> None:
    assert slope(np.prod, [1e-200, 1e-200, 1.0]) == [1e-200, 1e-200, 0.0]


def test_linear_recurrence_is_what_a_loop_gives() -> None:
    for n in range(12):
        a, b = numbers((2, max(n - 1, 0))), numbers((2, n), seed=1)
        wanted = np.array(b)
        for i in range(1, n):
            wanted[:, i] += a[:, i - 1] * wanted[:, i - 1]
        np.testing.assert_allclose(linear_recurrence(a, b), wanted, rtol=1e-13)


# Standard deviations ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("equal", [[2.0], [3.0, 3.0], [0.1] * 3, [1e8 / 3] * 7, [0.0] * 4])
def test_equal_numbers_have_a_standard_deviation_of_slope_0(equal: Any, dtype: str) -> None:
    x = np.array(equal, dtype)
    assert slope(np.std, x) == [0.0] * len(equal)
    assert slope(np.nanstd, [*x, NAN]) == [0.0] * (len(equal) + 1)
    assert slope(lambda x: np.std(x, where=[True] * len(equal)), x) == [0.0] * len(equal)


def test_the_slope_0_of_a_standard_deviation_is_that_of_its_row_only() -> None:
    found = slope(lambda x: np.std(x, axis=1), [[2.0, 2.0], [1.0, 3.0]])
    assert found == [[0.0, 0.0], [-0.5, 0.5]]


@pytest.mark.parametrize(
    "f",
    [np.std, np.hypot.reduce, lambda x: np.std(x, mean=np.zeros(1))],
    ids=["std", "hypot", "mean"],
)
def test_roots_are_flat_at_0_to_second_order_too(f: Any) -> None:
    assert slope(f, [0.0, 0.0]) == [0.0, 0.0]
    np.testing.assert_array_equal(ol.hessian(f)(np.zeros(2)), np.zeros((2, 2)))


# Maxima and minima --------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "sign"), [(np.max, 1.0), (np.min, -1.0)])
def test_nan_takes_the_gradient_of_the_nan_that_it_makes(function: Any, sign: float) -> None:
    assert slope(function, [1.0, NAN, 2.0, NAN]) == [0.0, 0.5, 0.0, 0.5]
    guarded = lambda x: function(x, where=~np.isnan(x), initial=-9 * sign)  # noqa: E731
    assert slope(guarded, [sign, NAN, 2 * sign]) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize(("function", "sign"), [(np.max, 1.0), (np.min, -1.0)])
def test_an_initial_value_that_ties_keeps_its_share(function: Any, sign: float) -> None:
    x = sign * np.array([3.0, 1.0, 3.0])
    assert slope(lambda x: function(x, initial=3 * sign), x) == [1 / 3, 0.0, 1 / 3]
    assert slope(lambda x: function(x, initial=4 * sign), x) == [0.0, 0.0, 0.0]
    assert slope(lambda x: function(x, initial=2 * sign), x) == [0.5, 0.0, 0.5]


@pytest.mark.parametrize("function", [np.nanmax, np.nanmin, np.fmax.reduce, np.fmin.reduce])
def test_ties_beside_nan_share(function: Any) -> None:
    assert slope(function, [NAN, 2.0, 2.0]) == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(("ufunc", "sign"), [(np.maximum, 1.0), (np.minimum, -1.0)])
def test_running_extremes_share_among_the_ties_so_far(ufunc: Any, sign: float) -> None:
    x = sign * np.array([1.0, 3.0, 2.0, 3.0, 0.0])
    for i, wanted in enumerate(
        (
            [1, 0, 0, 0, 0],
            [0, 1, 0, 0, 0],
            [0, 1, 0, 0, 0],
            [0, 0.5, 0, 0.5, 0],
            [0, 0.5, 0, 0.5, 0],
        )
    ):
        assert slope(lambda x, i=i: ufunc.accumulate(x)[i], x) == wanted
        assert slope(lambda x, i=i: ufunc.reduce(x[: i + 1]), x) == wanted
    assert slope(lambda x: ufunc.accumulate(x)[3], [1.0, NAN, 5.0, NAN]) == [0, 0.5, 0, 0.5]


# Masked elements and NaN --------------------------------------------------------------------------

FOLDS = {
    "sum": lambda x, where: np.sum(x, where=where),
    "mean": lambda x, where: np.mean(x, where=where),
    "prod": lambda x, where: np.prod(x, where=where),
    "max": lambda x, where: np.max(x, where=where, initial=-9.0),
    "min": lambda x, where: np.min(x, where=where, initial=9.0),
    "var": lambda x, where: np.var(x, where=where, ddof=1),
    "std": lambda x, where: np.std(x, where=where),
    "var about": lambda x, where: np.var(x, where=where, mean=np.ones(1)),
    "logaddexp": lambda x, where: np.logaddexp.reduce(x, where=where),
    "logaddexp2": lambda x, where: np.logaddexp2.reduce(x, where=where),
    "hypot": lambda x, where: np.hypot.reduce(x, where=where),
}


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("hidden", [NAN, INF, -INF])
def test_masked_elements_have_gradient_0_whatever_they_are(name: str, hidden: float) -> None:
    fold = FOLDS[name]
    x = np.array([0.5, hidden, 2.0, 1.5])
    mask = np.isfinite(x)
    alone = slope(lambda x: fold(x, True), x[mask])
    np.testing.assert_allclose(slope(lambda x: fold(x, mask), x), np.insert(alone, 1, 0.0))
    second = ol.hessian(lambda x: fold(x, mask))(x)
    np.testing.assert_allclose(
        second[np.ix_(mask, mask)], ol.hessian(lambda x: fold(x, True))(x[mask]), atol=1e-12
    )
    assert not second[1].any()
    assert not second[:, 1].any()


SKIPPING = {
    np.nansum: np.sum, np.nanmean: np.mean, np.nanprod: np.prod, np.nanmax: np.max,
    np.nanmin: np.min, np.nanvar: np.var, np.nanstd: np.std, np.nanmedian: np.median,
    np.fmax.reduce: np.max, np.fmin.reduce: np.min,
}  # fmt: skip


@pytest.mark.parametrize("skipping", SKIPPING)
def test_nan_has_gradient_0_and_the_others_theirs(skipping: Any) -> None:
    x = np.array([0.5, NAN, 2.0, 1.0, NAN, -1.5])
    numbers_only = ~np.isnan(x)
    found = np.array(slope(skipping, x))
    np.testing.assert_allclose(found[numbers_only], slope(SKIPPING[skipping], x[numbers_only]))
    assert not found[~numbers_only].any()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns of all-NaN rows
@pytest.mark.parametrize(
    "f",
    [
        *(lambda x, f=f: f(x, axis=1) for f in SKIPPING),
        lambda x: np.nanquantile(x, [0.2, 0.5], axis=1),
        lambda x: np.nanvar(x, axis=1, ddof=1),
        np.nancumsum,
        np.nancumprod,
    ],
)
def test_a_row_of_nan_alone_has_gradient_0(f: Any) -> None:
    found = np.array(slope(f, [[NAN, NAN, NAN], [1.0, 2.0, 4.0]]))
    assert not found[0].any()
    assert np.isfinite(found[1]).all()
    assert found[1].any()


def test_logarithms_of_sums_that_vanish_have_gradient_0() -> None:
    assert slope(np.logaddexp.reduce, [-INF, -INF]) == [0.0, 0.0]
    assert slope(np.logaddexp.reduce, [-INF, 3.0]) == [0.0, 1.0]
    assert slope(np.logaddexp.accumulate, [-INF, -INF, 3.0, -INF]) == [0.0, 0.0, 2.0, 0.0]


def test_running_logarithms_do_not_overflow() -> None:
    np.testing.assert_allclose(slope(np.logaddexp.accumulate, [0.0, 1e4, -1e4]), [1.0, 2.0, 0.0])


# Quantiles ----------------------------------------------------------------------------------------


def test_the_elements_beside_a_quantile_get_its_shares() -> None:
    x = [3.0, 1.0, 2.0, 10.0, 4.0]
    np.testing.assert_allclose(slope(lambda x: np.quantile(x, 0.6), x), [0.6, 0, 0, 0, 0.4])
    assert slope(lambda x: np.percentile(x, 60, method="lower"), x) == [1, 0, 0, 0, 0]
    assert slope(np.median, [3.0, 1.0, 2.0, 10.0]) == [0.5, 0.0, 0.5, 0.0]


def test_elements_that_tie_stand_in_their_order() -> None:
    assert slope(np.median, [2.0, 2.0, 2.0]) == [0.0, 1.0, 0.0]
    assert slope(lambda x: np.quantile(x, 0.0), [2.0, 1.0, 1.0]) == [0.0, 1.0, 0.0]


def test_many_quantiles_of_many_numbers_take_linear_memory() -> None:
    x = np.random.default_rng(0).permutation(50_000) * 1.0
    found = np.array(slope(lambda x: np.quantile(x, np.linspace(0, 1, 20_000)), x))
    assert found.sum() == pytest.approx(20_000)


# Captured: no rule branches on values -------------------------------------------------------------

CAPTURED = {
    "prod": np.prod,
    "prod along 0": lambda x: np.prod(x, axis=0),
    "cumprod": np.cumprod,
    "std": lambda x: np.std(x, axis=0),
    "where": lambda x: np.mean(x, axis=0, where=x > 0.2),
    "max": lambda x: np.max(x, axis=1),
    "nanmean": np.nanmean,
    "logaddexp.reduce": np.logaddexp.reduce,
    "maximum.accumulate": np.maximum.accumulate,
    "average": lambda x: np.average(x, axis=1, weights=[1.0, 2.0, 4.0]),
    "median": lambda x: np.median(x, axis=1),
    "quantile": lambda x: np.quantile(x, [0.2, 0.7], axis=1),
    "diff": np.diff,
    "interp": lambda x: np.interp(x[0], [-1.0, 0.3, 4.0], x[1]),
    "convolve": lambda x: np.convolve(x[0], x[1], "same"),
}  # fmt: skip


@pytest.mark.parametrize("name", CAPTURED)
def test_a_captured_rule_gives_what_it_gives_without_capture(name: str) -> None:
    f = weighted(CAPTURED[name])
    plan = capture_value_and_grad(f, numbers((2, 3), 0.1, 2.0))
    x = np.array([[0.5, 0.0, 2.0], [0.0, 1.0, 4.0]])  # zeros, unlike the captured example
    value, gradient = plan(x)
    wanted_value, wanted = ol.value_and_grad(f)(x)
    np.testing.assert_allclose(value, wanted_value, rtol=1e-14)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-14)


# Arguments ----------------------------------------------------------------------------------------


def test_a_mask_may_be_a_list_or_a_tensor() -> None:
    x = np.array([1.0, 2.0, 4.0])
    for mask in ([True, False, True], ol.to_tensor([True, False, True])):
        assert slope(lambda x, mask=mask: np.prod(x, where=mask), x) == [4.0, 0.0, 1.0]


def test_axes_may_be_numpy_integers_and_zero_axes() -> None:
    x = numbers((2, 3))
    for axis in (np.int64(-1), (np.int8(0),), ()):
        ol.check_grad(lambda x, axis=axis: np.prod(x, axis=axis), x)


METHODS = {
    "sum": lambda x: x.sum(0, None, None, True, 2.0),
    "sum where": lambda x: x.sum(where=[True, False, True]),
    "mean": lambda x: x.mean(axis=1, dtype="float64", where=[True, False, True]),
    "max": lambda x: x.max(1, None, True, -9.0, [True, False, True]),
    "min": lambda x: x.min(initial=0.1),
    "prod": lambda x: x.prod(1, initial=3.0),
    "var": lambda x: x.var(0, None, None, 1, True),
    "var where": lambda x: x.var(where=[True, False, True]),
    "std": lambda x: x.std(1, mean=np.zeros((2, 1))),
    "cumsum": lambda x: x.cumsum(1, "float64"),
    "cumprod": lambda x: x.cumprod(axis=0),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_the_arguments_of_those_of_arrays(name: str) -> None:
    f, x = METHODS[name], numbers((2, 3), seed=5)
    np.testing.assert_array_equal(f(ol.to_tensor(x, requires_grad=True)).numpy(), f(x))
    ol.check_grad(f, x)


def test_methods_that_have_no_derivative_give_plain_arrays() -> None:
    x = np.array([[1.0, 0.0, 2.0], [3.0, 4.0, 0.0]])
    t = ol.to_tensor(x, requires_grad=True)
    for call in (
        lambda x: x.argmax(1, keepdims=True), lambda x: x.argmin(), lambda x: x.all(axis=0),
        lambda x: x.any(1, keepdims=True),
        lambda x: np.logical_and.reduce(x, axis=1), lambda x: np.count_nonzero(x, axis=0),
    ):  # fmt: skip
        found = call(t)
        assert not isinstance(found, ol.Tensor)
        np.testing.assert_array_equal(found, call(x))


def test_several_gradients_come_as_numpy_gives_them() -> None:
    t = ol.to_tensor(numbers((3, 4)), requires_grad=True)
    found = np.gradient(t)
    assert type(found) is type(np.gradient(numbers((3, 4))))
    assert [type(part) for part in found] == [ol.Tensor, ol.Tensor]
    average, total = np.average(t, axis=0, weights=[1.0, 2.0, 3.0], returned=True)
    assert total.tolist() == [6.0] * 4
    assert isinstance(average, ol.Tensor)


T = ol.to_tensor([[1.0, 2.0], [3.0, 5.0]], "float64", requires_grad=True)

REFUSED = {
    "sum with out by position": (lambda: np.sum(T, 0, None, np.zeros(2)), "out="),
    "method with out": (lambda: T.cumprod(out=np.zeros(4)), "out="),
    "max with a dtype": (lambda: np.maximum.reduce(T, dtype="float32"), "dtype"),
    "sum of integers": (lambda: np.sum(T, dtype=int), "int64"),
    "initial": (lambda: np.sum(T, initial=T[0, 0]), "sum .with initial="),
    "quantile with weights": (
        lambda: np.quantile(T, 0.5, method="inverted_cdf", weights=np.ones((2, 2))),
        "quantile .with weights=",
    ),
    "median that overwrites": (lambda: np.median(T, overwrite_input=True), "overwrite_input"),
    "quantile of q": (lambda: np.quantile(np.arange(3.0), T), "quantile"),
    "nanvar with a mean": (lambda: np.nanvar(T, mean=0.0), "nanvar .with mean="),
    "subtract.reduce": (lambda: np.subtract.reduce(T), "subtract.reduce"),
    "fmax.accumulate": (lambda: np.fmax.accumulate(T), "fmax.accumulate"),
    "multiply.reduceat": (lambda: np.multiply.reduceat(T, [0]), "multiply.reduceat"),
    "interp with a period": (lambda: np.interp(T, [0, 1], [1, 2], period=T[0, 0]), "period="),
    "interp with left": (lambda: np.interp(T, [0, 1], [1, 2], left=T[0, 0]), "left="),
    "norm of an order": (lambda: np.linalg.norm(T[0], T[0, 0]), "norm .with ord="),
    "polyadd of a poly1d": (lambda: np.polyadd(np.poly1d([1, 2]), T), "polyadd .with a poly1d"),
    "polyval of a poly1d": (lambda: np.polyval(np.poly1d([1, 2]), T), "poly1d"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_refused_by_name(name: str) -> None:
    call, named = REFUSED[name]
    with pytest.raises(TypeError, match=named):
        call()


def test_both_names_of_one_number_are_too_many() -> None:
    with pytest.raises(ValueError, match="correction"):
        np.var(T, ddof=1, correction=1)


def test_weights_that_cancel_cannot_be_normalised() -> None:
    with pytest.raises(ZeroDivisionError):
        np.average(T, axis=0, weights=[1.0, -1.0])
