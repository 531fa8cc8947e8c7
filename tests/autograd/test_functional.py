"""Derivatives of functions: grad, vjp, jvp, hvp, jacobian, hessian and their laws."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import optlab as ol
import optlab.numpy as onp

A = np.array([[1.0, -2.0, 0.5], [0.3, 0.7, -1.1]])


def smooth(x: Any) -> Any:
    """Map three numbers to two."""
    return np.tanh(A @ x) * np.exp(0.3 * x[:2]) + x[2] * x[0]


def bowl(x: Any) -> Any:
    """Map three numbers to one."""
    return np.sum(smooth(x) ** 2) + np.sum(np.sin(x)) * x[1]


def slope_by_differences(f: Any, x: np.ndarray, v: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the central difference (f(x + s v) - f(x - s v)) / 2s, in plain NumPy."""
    return (f(x + step * v) - f(x - step * v)) / (2 * step)


def jacobian_by_differences(f: Any, x: np.ndarray) -> np.ndarray:
    columns = [slope_by_differences(f, x, e.reshape(x.shape)) for e in np.eye(x.size)]
    return np.stack(columns, -1).reshape(np.shape(f(x)) + x.shape)


X = np.array([0.4, -0.8, 1.3])

# grad and value_and_grad.


def test_value_and_grad_give_the_value_and_its_slopes() -> None:
    value, slope = ol.value_and_grad(bowl)(X)
    assert value == bowl(X)
    np.testing.assert_allclose(slope, jacobian_by_differences(bowl, X), rtol=1e-7)
    np.testing.assert_array_equal(ol.grad(bowl)(X), slope)


@pytest.mark.parametrize(
    ("argnums", "wanted"),
    [(0, 6.0), (1, 4.0), (2, 10.0), (-1, 10.0), (-3, 6.0), (np.int64(1), 4.0),
     ((0, 2), (6.0, 10.0)), ([2, 0], (10.0, 6.0)), ((1,), (4.0,)), ((-1, 0), (10.0, 6.0)),
     ((), ())],
)  # fmt: skip
def test_argnums(argnums: Any, wanted: Any) -> None:
    f = lambda a, b, c: 2.0 * a * b + c * c  # noqa: E731
    value, slopes = ol.value_and_grad(f, argnums)(2.0, 3.0, 5.0)
    assert value == 37.0
    assert slopes == wanted
    assert ol.grad(f, argnums=argnums)(2.0, 3.0, 5.0) == wanted
    assert type(slopes) is type(wanted) or not isinstance(wanted, tuple)


@pytest.mark.parametrize("argnums", [2, -3, (0, 5)])
def test_argnums_that_name_no_argument_are_refused(argnums: Any) -> None:
    with pytest.raises(TypeError, match=r"argnums names argument -?\d, but 2 were given"):
        ol.grad(lambda a, b: a * b, argnums)(1.0, 2.0)


def test_an_argument_named_twice_gets_its_gradient_twice_or_is_refused() -> None:
    with contextlib.suppress(TypeError):
        assert ol.grad(lambda x: x * x, (0, 0))(2.0) == (4.0, 4.0)


def test_keyword_arguments_are_passed_on_and_not_differentiated() -> None:
    def f(x: Any, *, power: int, names: Any = None) -> Any:
        assert type(power) is int
        return x**power if names else x

    assert ol.grad(f)(2.0, power=3, names=["a"]) == 12.0


def test_arguments_that_are_not_differentiated_arrive_as_they_are() -> None:
    data = {"rows": [1, 2]}

    def f(x: Any, data: Any, flag: Any) -> Any:
        assert data["rows"] == [1, 2]
        assert type(data["rows"]) is list
        return x * len(data["rows"]) if flag else x

    assert ol.grad(f)(3.0, data, True) == 2.0


def test_the_function_keeps_its_name_and_may_be_a_partial_or_an_object() -> None:
    def cubed(x: Any) -> Any:
        """Give the cube."""
        return x**3

    class Scaled:
        def __call__(self, x: Any) -> Any:
            return 5.0 * x

    assert ol.grad(cubed).__name__ == "cubed"
    assert ol.grad(cubed).__doc__ == "Give the cube."
    assert ol.grad(partial(lambda a, x: a * x, 7.0))(1.0) == 7.0
    assert ol.grad(Scaled())(1.0) == 5.0
    assert ol.grad(np.tanh)(0.0) == 1.0


@pytest.mark.parametrize(
    "x", [2.0, np.float64(2.0), np.float32(2.0), np.array(2.0), np.array([2.0]), [2.0], [[2.0]]]
)
def test_numbers_arrays_and_lists_are_arguments(x: Any) -> None:
    slope = ol.grad(lambda x: np.sum(np.multiply(x, x)))(x)
    assert np.shape(slope) == np.shape(x)
    np.testing.assert_array_equal(slope, np.full(np.shape(x), 4.0))
    assert slope.dtype == np.asarray(x).dtype


def test_a_value_that_does_not_depend_on_an_argument_has_slope_0() -> None:
    np.testing.assert_array_equal(ol.grad(lambda x: 3.0)(X), np.zeros(3))
    np.testing.assert_array_equal(ol.grad(lambda x, y: np.sum(y), 0)(X, X), np.zeros(3))
    (slope,) = ol.vjp(lambda x: np.ones(2), X)[1](np.ones(2))
    np.testing.assert_array_equal(slope, np.zeros(3))
    np.testing.assert_array_equal(ol.jacobian(lambda x: np.ones(2))(X), np.zeros((2, 3)))
    np.testing.assert_array_equal(ol.jvp(lambda x: np.ones(2), (X,), (X,))[1], np.zeros(2))
    np.testing.assert_array_equal(ol.hessian(lambda x: np.sum(2.0 * x))(X), np.zeros((3, 3)))
    np.testing.assert_array_equal(ol.hvp(lambda x: np.sum(x), X, X), np.zeros(3))


def test_the_identity() -> None:
    assert ol.grad(lambda x: x)(2.0) == 1.0
    np.testing.assert_array_equal(ol.jacobian(lambda x: x)(X), np.eye(3))
    np.testing.assert_array_equal(ol.jvp(lambda x: x, (X,), (A[0],))[1], A[0])


def test_the_arguments_are_left_as_they_were() -> None:
    x = X.copy()
    ol.hessian(bowl)(x)
    np.testing.assert_array_equal(x, X)
    t = ol.to_tensor(X, requires_grad=True)
    ol.grad(bowl)(t)
    assert t.grad is None


# Error messages.


@pytest.mark.parametrize("x", [2, np.array([1, 2]), True, [1, 2]])
@pytest.mark.parametrize("transform", [ol.grad, ol.jacobian, ol.value_and_grad])
def test_whole_numbers_are_refused_with_what_to_write(transform: Any, x: Any) -> None:
    with pytest.raises(TypeError, match=r"Write 2\.0 instead of 2"):
        transform(lambda x: np.sum(x))(x)


@pytest.mark.parametrize("transform", [ol.grad, ol.value_and_grad, ol.hessian])
def test_a_value_that_is_not_one_number_is_refused(transform: Any) -> None:
    def squares(x: Any) -> Any:
        return x * x

    with pytest.raises(TypeError, match=r"squares gave shape \(3,\)\. Take a sum or mean"):
        transform(squares)(X)


@pytest.mark.parametrize("value", [(1.0, 2.0), [1.0], {"loss": 1.0}])
def test_a_gradient_of_several_values_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"returned a (tuple|list|dict).*optlab\.numpy\.stack"):
        ol.grad(lambda x: value)(2.0)


@pytest.mark.parametrize("value", [None, "3.0"])
@pytest.mark.parametrize("transform", [ol.grad, ol.jacobian, ol.vjp])
def test_a_value_that_is_no_number_is_refused(transform: Any, value: Any) -> None:
    """A function without a return statement must not have slope 0."""

    def forgetful(x: Any) -> Any:
        return value

    with pytest.raises(TypeError, match="forgetful"):
        ol.vjp(forgetful, X) if transform is ol.vjp else transform(forgetful)(X)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape of the value, \(2,\); got \(3,\)"):
        ol.vjp(smooth, X)[1](np.ones(3))
    with pytest.raises(ValueError, match=r"shape of its argument, \(3,\); got \(2,\)"):
        ol.jvp(smooth, (X,), (np.ones(2),))
    with pytest.raises(TypeError, match="one tangent for each of 1 arguments; got 2"):
        ol.jvp(smooth, (X,), (X, X))
    with pytest.raises(ValueError, match=r"shape of x, \(3,\); got \(1,\)"):
        ol.hvp(bowl, X, np.ones(1))


def test_an_error_of_the_function_comes_through_and_recording_goes_on() -> None:
    def broken(x: Any) -> Any:
        raise ZeroDivisionError("mine")

    for transform in (ol.grad, ol.jacobian, ol.hessian):
        with ol.no_grad():
            with pytest.raises(ZeroDivisionError, match="mine"):
                transform(broken)(2.0)
            assert not ol.is_grad_enabled()
    assert ol.is_grad_enabled()


# vjp, jvp, jacobian, hessian, hvp.


def test_a_pullback_may_be_called_several_times() -> None:
    y, pullback = ol.vjp(smooth, X)
    np.testing.assert_array_equal(y, smooth(X))
    jacobian = jacobian_by_differences(smooth, X)
    for u in ([1.0, 0.0], np.array([0.0, 1.0]), [2.0, -3.0], [1.0, 0.0]):
        (found,) = pullback(u)
        np.testing.assert_allclose(found, np.asarray(u) @ jacobian, rtol=1e-7, atol=1e-9)


def test_a_pullback_gives_one_gradient_an_argument() -> None:
    y, pullback = ol.vjp(lambda a, b, c: a * b + 0.0 * c, X, 2.0, np.ones((2, 1)))
    assert y.shape == (2, 3)
    found = pullback(np.ones((2, 3)))
    assert type(found) is tuple
    assert [g.shape for g in found] == [(3,), (), (2, 1)]
    np.testing.assert_allclose(found[0], [4.0] * 3)
    assert found[1] == pytest.approx(2 * X.sum())


def test_a_pullback_does_not_remember_earlier_calls() -> None:
    _, pullback = ol.vjp(lambda x: x * x, X)
    u = ol.to_tensor(np.ones(3), requires_grad=True)
    assert type(pullback(np.ones(3))[0]) is np.ndarray
    assert isinstance(pullback(u)[0], ol.Tensor)
    assert type(pullback(np.ones(3))[0]) is np.ndarray


def test_a_pullback_can_be_differentiated_by_what_it_is_given() -> None:
    _, pullback = ol.vjp(smooth, X)
    np.testing.assert_allclose(
        ol.jacobian(lambda u: pullback(u)[0])(np.array([0.3, 0.7])),
        jacobian_by_differences(smooth, X).T,
        rtol=1e-7, atol=1e-9,
    )  # fmt: skip


def test_jvp_gives_value_and_directional_derivative() -> None:
    v = np.array([1.0, -2.0, 0.5])
    y, tangent = ol.jvp(smooth, (X,), (v,))
    np.testing.assert_array_equal(y, smooth(X))
    np.testing.assert_allclose(tangent, slope_by_differences(smooth, X, v), rtol=1e-7)
    with ol.no_grad():
        np.testing.assert_array_equal(ol.jvp(smooth, (X,), (v,))[1], tangent)


def test_jvp_of_several_arguments() -> None:
    f = lambda a, b: a * np.sum(b * b)  # noqa: E731
    y, tangent = ol.jvp(f, [2.0, X], [3.0, A[0]])
    assert y == pytest.approx(2 * (X @ X))
    assert tangent == pytest.approx(3 * (X @ X) + 2 * 2 * (X @ A[0]))


def test_jvp_of_jvp_is_the_second_derivative_along_two_directions() -> None:
    v, w = A
    along = lambda x: ol.jvp(bowl, (x,), (v,))[1]  # noqa: E731
    found = ol.jvp(along, (X,), (w,))[1]
    assert found == pytest.approx(v @ ol.hessian(bowl)(X) @ w, rel=1e-12)
    assert not isinstance(found, ol.Tensor)


@pytest.mark.parametrize(
    "f",
    [smooth, bowl, lambda x: np.outer(x, x), lambda x: x[:0], lambda x: np.sum(x)],
    ids=["two numbers", "one number", "a matrix", "nothing", "a sum"],
)
def test_jacobian_equals_finite_differences(f: Any) -> None:
    found = ol.jacobian(f)(X)
    assert found.shape == (*np.shape(f(X)), 3)
    np.testing.assert_allclose(found, jacobian_by_differences(f, X), rtol=1e-6, atol=1e-8)


def test_jacobian_of_matrices_and_other_arguments() -> None:
    found = ol.jacobian(lambda s, m: np.exp(s) * m.T @ m, argnums=1)(0.3, A)
    wanted = jacobian_by_differences(lambda m: np.exp(0.3) * m.T @ m, A)
    assert found.shape == (3, 3, 2, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    assert ol.jacobian(lambda x: x * x)(3.0) == 6.0


def test_hessian_equals_finite_differences_of_the_gradient() -> None:
    wanted = jacobian_by_differences(lambda x: jacobian_by_differences(bowl, x), X)
    np.testing.assert_allclose(ol.hessian(bowl)(X), wanted, rtol=1e-2, atol=1e-2)
    exact = jacobian_by_differences(ol.grad(bowl), X)
    np.testing.assert_allclose(ol.hessian(bowl)(X), exact, rtol=1e-6, atol=1e-8)
    assert ol.hessian(lambda a, b: a * b**3, argnums=1)(2.0, 5.0) == 60.0


def test_hvp_is_the_hessian_times_a_vector() -> None:
    v = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(ol.hvp(bowl, X, v), ol.hessian(bowl)(X) @ v, rtol=1e-12)
    assert ol.hvp(lambda x: x**3, 2.0, 5.0) == 60.0


# Laws, at any point.

FLOATS = st.floats(-2, 2, width=32)
POINTS = arrays(np.float64, 3, elements=FLOATS)
ROWS = arrays(np.float64, 2, elements=FLOATS)
laws = settings(deadline=None, max_examples=60, derandomize=True)


@laws
@given(POINTS, ROWS, ROWS, FLOATS)
def test_pullbacks_are_linear(x: Any, u: Any, w: Any, a: float) -> None:
    _, pullback = ol.vjp(smooth, x)
    (left,), (one,), (two,) = pullback(a * u + w), pullback(u), pullback(w)
    np.testing.assert_allclose(left, a * one + two, rtol=1e-10, atol=1e-10)


@laws
@given(POINTS, ROWS, POINTS)
def test_pullback_and_tangent_are_transposes(x: Any, u: Any, v: Any) -> None:
    """<u, Jv> = <J'u, v>."""
    tangent = ol.jvp(smooth, (x,), (v,))[1]
    (pulled,) = ol.vjp(smooth, x)[1](u)
    assert u @ tangent == pytest.approx(pulled @ v, rel=1e-9, abs=1e-9)


@laws
@given(POINTS)
def test_hessians_are_symmetric(x: Any) -> None:
    found = ol.hessian(bowl)(x)
    np.testing.assert_allclose(found, found.T, rtol=1e-9, atol=1e-9)


@laws
@given(POINTS, POINTS)
def test_jvp_equals_finite_differences(x: Any, v: Any) -> None:
    wanted = slope_by_differences(smooth, x, v)
    np.testing.assert_allclose(ol.jvp(smooth, (x,), (v,))[1], wanted, rtol=1e-5, atol=1e-6)


@laws
@given(POINTS, st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
def test_the_chain_rule(x: Any, word: list[str]) -> None:
    """The Jacobian of a composition is the product of the Jacobians."""
    steps: dict[str, Any] = {
        "a": np.tanh,
        "b": lambda x: x * np.cos(x),
        "c": lambda x: onp.stack([x[2], x[0] * x[1], np.exp(-x[1] * x[1])]),
    }

    def composed(x: Any) -> Any:
        for letter in word:
            x = steps[letter](x)
        return x

    product, at = np.eye(3), x
    for letter in word:
        product, at = ol.jacobian(steps[letter])(at) @ product, steps[letter](at)
    np.testing.assert_allclose(ol.jacobian(composed)(x), product, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("n", [3, 8, 20])
def test_a_jacobian_of_many_rows_needs_no_batching_rule(n: int) -> None:
    """Rows come from one batched backward pass if all rules allow it, else one by one."""
    from optlab.autograd.operation import Operation
    from optlab.autograd.tensor.tensor import apply

    doubled = Operation(
        "doubled", lambda x: 2 * x, [lambda g: np.array([2 * float(v) for v in g])], ["x"]
    )
    x = np.linspace(0.1, 1.0, n)
    found = ol.jacobian(lambda x: apply(doubled, (np.sin(x),)))(x)
    np.testing.assert_allclose(found, np.diag(2 * np.cos(x)))


def test_a_jacobian_can_be_differentiated() -> None:
    matrix = np.linspace(-1.0, 1.0, 12).reshape(4, 3)

    def f(w: Any) -> Any:
        return np.sum(ol.jacobian(lambda w: np.tanh(matrix @ w) ** 2)(w) ** 2)

    ol.check_grad(f, np.linspace(0.1, 0.9, 9).reshape(3, 3))


def test_gradients_handed_out_may_be_written_to_one_by_one() -> None:
    a, b = ol.grad(lambda a, b: np.sum(a + b), (0, 1))(np.ones(3), np.ones(3))
    a *= 10.0
    assert b.tolist() == [1.0, 1.0, 1.0]
    u = np.ones(3)
    (g,) = ol.vjp(lambda x: x, np.zeros(3))[1](u)
    g *= 5.0
    assert u.tolist() == [1.0, 1.0, 1.0]
    for shape in ((2, 3), (300, 400)):
        whole = ol.grad(np.sum)(np.ones(shape))
        whole *= 2.0
        assert whole[0, 0] == 2.0


def test_natural_mistakes_are_said() -> None:
    with pytest.raises(TypeError, match=r"jvp takes.*\(x,\), \(v,\)"):
        ol.jvp(smooth, X, X)
    with pytest.raises(TypeError, match=r"argnums says which positional arguments.*'y'"):
        ol.grad(bowl, "y")(X)
    with pytest.raises(
        TypeError, match=r"grad takes a function; got a Tensor of shape \(\).*ol\.grad\(f\)\(x\)"
    ):
        ol.grad(ol.to_tensor(1.0))(X)
    t = ol.to_tensor([1.0, 2.0], requires_grad=True)
    for name, written in {
        "clone": r"t\.copy\(\)",
        "expand": "ol.expand",
        "sinh": "np.sinh",
    }.items():
        with pytest.raises(AttributeError, match=written):
            getattr(t, name)
