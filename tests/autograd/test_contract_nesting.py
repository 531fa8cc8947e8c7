"""The array contract, continued: `optlab.numpy`, nesting, scalars and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
import optlab.numpy as onp


def taped(data: Any, dtype: str = "float64") -> ol.Tensor:
    return ol.to_tensor(data, dtype=dtype, requires_grad=True)


# Bullet 3. optlab.numpy: what NumPy cannot dispatch ---------------------------------------------

BUILDERS = {
    "array of numbers": lambda np, x: np.array([x[0], 2.0, x[1] * x[1]]),
    "array, nested": lambda np, x: np.array([[x[0], 1.0], [2.0, x[1]], [3.0, 4.0]]),
    "array of vectors": lambda np, x: np.array([x, x * x]),
    "array, a tuple": lambda np, x: np.array((x[1], x[0])),
    "array of an array": lambda np, x: np.array(x) * x,
    "array and dtype": lambda np, x: np.array([x[0], x[1]], dtype="float64"),
    "array and ndmin": lambda np, x: np.array([x[0], x[1]], ndmin=2),
    "asarray": lambda np, x: np.asarray(x) * x,
    "asarray of a list": lambda np, x: np.asarray([x[0], x[1]]),
    "asanyarray": lambda np, x: np.asanyarray([x[0], x[1]]),
    "full": lambda np, x: np.full(3, x[0]),
    "full, a shape": lambda np, x: np.full((3, 2), x),
    "full, a list as shape": lambda np, x: np.full([3, 2], x),
    "full, a NumPy integer as shape": lambda np, x: np.full(np.int64(3), x[0]),
    "full of a list": lambda np, x: np.full((3, 2), [x[0], 1.0]),
    "full_like": lambda np, x: np.full_like(np.ones((3, 2)), x),
    "full_like of single precision": lambda np, x: np.full_like(np.ones(2, "f4"), x[0]),
    "sum of a list": lambda np, x: np.sum([x[0], 3.0 * x[1]]),
    "sum of vectors over an axis": lambda np, x: np.sum([x, x * x], axis=0),
    "mean of a list": lambda np, x: np.mean([x[0], x[1], 1.0]),
    "max of a list": lambda np, x: np.max([x[0], x[1] * 3.0]),
    "prod of a list": lambda np, x: np.prod([x[0], x[1], x[0]]),
    "dot of lists": lambda np, x: np.dot([x[0], x[1]], [x[1], 2.0]),
    "exp of a list": lambda np, x: np.exp([x[0], x[1]]),
    "maximum of a list": lambda np, x: np.maximum([x[0], x[1]], 0.7),
    "where with lists": lambda np, x: np.where([True, False], [x[0], x[1]], [0.0, x[0]]),
    "stack of a list": lambda np, x: np.stack([x, x * x], axis=1),
    "stack of numbers": lambda np, x: np.stack([x[0], x[1]]),
    "concatenate": lambda np, x: np.concatenate([x, x[:1]]),
    "by name": lambda np, x: np.sum(a=[x[0], x[1]]),
    "plain NumPy": lambda np, x: np.sum(np.exp(x) * np.pi),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_optlab_numpy_keeps_the_gradient_and_gives_the_values_of_numpy(name: str) -> None:
    build, x = BUILDERS[name], np.array([0.5, 1.5])
    wanted = build(np, x)
    found = build(onp, taped(x))
    assert isinstance(found, ol.Tensor)
    assert found.requires_grad
    assert found.shape == np.shape(wanted)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-7 if found.dtype == "f4" else 1e-14)
    if "single" not in name:
        ol.check_grad(lambda x: build(onp, x), x)


@pytest.mark.parametrize("name", BUILDERS)
def test_optlab_numpy_is_numpy_on_arrays(name: str) -> None:
    build, x = BUILDERS[name], np.array([0.5, 1.5])
    found, wanted = build(onp, x), build(np, x)
    assert type(found) is type(wanted)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_optlab_numpy_passes_everything_else_through() -> None:
    for name in ("pi", "e", "inf", "newaxis", "float32", "float64", "ndarray",
                 "fft", "errstate", "s_", "finfo", "dtype", "__version__", "integer"):  # fmt: skip
        assert getattr(onp, name) is getattr(np, name), name
    assert isinstance(onp.float64(2.0), np.float64)
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(onp.linalg.inv(matrix), np.linalg.inv(matrix))
    np.testing.assert_array_equal(onp.linspace(0, 1, 5), np.linspace(0, 1, 5))
    np.testing.assert_array_equal(onp.r_[1:3, 7], [1, 2, 7])
    assert set(dir(np)) <= set(dir(onp))
    with pytest.raises(AttributeError, match="no_such_function"):
        onp.no_such_function  # noqa: B018


def test_optlab_numpy_has_the_methods_of_universal_functions() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(onp.add.reduce(matrix), [3.0, 5.0, 7.0])
    np.testing.assert_array_equal(
        onp.maximum.accumulate(matrix, axis=1), np.maximum.accumulate(matrix, axis=1)
    )
    np.testing.assert_array_equal(onp.multiply.outer([1, 2], [3, 4]), [[3, 4], [6, 8]])
    assert onp.add.identity == 0
    summed = onp.add.reduce(taped(matrix))
    assert isinstance(summed, ol.Tensor)
    assert summed.requires_grad


def test_errors_point_to_optlab_numpy() -> None:
    t = taped(2.0)
    for call in (lambda: np.array([t]), lambda: np.full(3, t), lambda: np.sum([t, t])):
        with pytest.raises(TypeError, match=r"optlab\.numpy"):
            call()


# Bullet 4. Nesting ------------------------------------------------------------------------------


def test_the_classic_of_nesting() -> None:
    inner = lambda x: ol.grad(lambda y: x * y)(1.0)  # noqa: E731
    assert ol.grad(lambda x: x * inner(x))(2.0) == 4.0


@pytest.mark.parametrize("give", [float, np.float64, np.array])
def test_an_inner_gradient_that_reads_its_own_argument(give: Any) -> None:
    """d/dx of d/dy (x y^3) at y = 2 is 12, a plain number: no outer transform traces it."""
    found = ol.grad(lambda x: ol.grad(lambda y: x * y**3)(give(2.0)))(give(5.0))
    assert not isinstance(found, ol.Tensor)
    assert found == 12.0


def test_three_levels_through_closures() -> None:
    def f(x: Any) -> Any:
        return ol.grad(lambda y: ol.grad(lambda z: x**2 * y**3 * z**4)(y))(x)

    # d/dz: 4 x^2 y^3 z^3 at z = y is 4 x^2 y^6; d/dy at y = x: 24 x^2 x^5; its slope: 168 x^6.
    assert ol.grad(f)(1.5) == pytest.approx(168 * 1.5**6)
    assert not isinstance(ol.grad(f)(1.5), ol.Tensor)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_repeated_gradients(order: int) -> None:
    f: Any = lambda x: x**5 + np.sin(x)  # noqa: E731
    for _ in range(order):
        f = ol.grad(f)
    smooth = [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin, np.cos][order - 1]
    falling = np.prod(np.arange(5, 5 - order, -1.0))
    assert f(0.7) == pytest.approx(falling * 0.7 ** (5 - order) + smooth(0.7))
    assert not isinstance(f(0.7), ol.Tensor)


def test_inner_transforms_of_every_kind_inside_grad() -> None:
    v, x = np.array([1.0, -2.0]), np.array([0.5, 1.5])
    cube = lambda y: np.sum(y**3)  # noqa: E731
    inside = {
        "value_and_grad": lambda x: np.sum(ol.value_and_grad(cube)(x)[1] * v),
        "vjp": lambda x: np.sum(ol.vjp(lambda y: y**3, x)[1](x)[0] * v),
        "jvp": lambda x: np.sum(ol.jvp(lambda y: y**3, (x,), (x,))[1] * v),
        "hvp": lambda x: np.sum(ol.hvp(cube, x, x) * v),
        "jacobian": lambda x: np.sum(ol.jacobian(lambda y: y**3)(x) @ v),
        "hessian": lambda x: np.sum(ol.hessian(cube)(x) @ v),
    }
    wanted = {
        "value_and_grad": 6 * x * v, "vjp": 9 * x**2 * v, "jvp": 9 * x**2 * v,
        "hvp": 12 * x * v, "jacobian": 6 * x * v, "hessian": 6 * v,
    }  # fmt: skip
    for name, f in inside.items():
        found = ol.grad(f)(x)
        assert type(found) is np.ndarray, name
        np.testing.assert_allclose(found, wanted[name], rtol=1e-13, err_msg=name)
        ol.check_grad(f, x)


def test_an_outer_variable_in_the_closure_of_every_transform() -> None:
    """The inner arguments are constants; only the closure depends on the outer variable."""
    x, v = np.array([0.5, 1.5]), np.array([1.0, -2.0])
    inside = {
        "grad": lambda s: np.sum(ol.grad(lambda y: np.sum(s * y**3))(x)),
        "value_and_grad": lambda s: ol.value_and_grad(lambda y: np.sum(s * y**3))(x)[0],
        "vjp": lambda s: np.sum(ol.vjp(lambda y: s * y**3, x)[1](v)[0]),
        "jvp": lambda s: np.sum(ol.jvp(lambda y: s * y**3, (x,), (v,))[1]),
        "jvp, its tangent": lambda s: np.sum(ol.jvp(lambda y: y**3, (x,), (s * v,))[1]),
        "hvp": lambda s: np.sum(ol.hvp(lambda y: np.sum(s * y**3), x, v)),
        "hvp, its vector": lambda s: np.sum(ol.hvp(lambda y: np.sum(y**3), x, s * v)),
        "jacobian": lambda s: np.sum(ol.jacobian(lambda y: s * y**3)(x)),
        "hessian": lambda s: np.sum(ol.hessian(lambda y: np.sum(s * y**3))(x)),
        "pullback": lambda s: np.sum(ol.vjp(lambda y: y**3, x)[1](s * v)[0]),
    }
    for name, f in inside.items():
        found = ol.grad(f)(2.0)
        assert not isinstance(found, ol.Tensor), name
        assert found == pytest.approx((f(2.5) - f(1.5)).item(), rel=1e-12), name  # f is linear


def test_a_parameter_in_a_closure_stays_on_its_tape() -> None:
    w = taped([2.0, 3.0])
    value, slope = ol.value_and_grad(lambda x: np.sum(w * x**2))(np.array([1.0, 10.0]))
    for found in (value, slope):
        assert isinstance(found, ol.Tensor)
        assert found.requires_grad
    np.sum(slope).backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2.0, 20.0]


def test_under_no_grad_a_parameter_in_a_closure_is_unwrapped() -> None:
    w = taped([2.0, 3.0])
    x = np.array([1.0, 10.0])
    with ol.no_grad():
        value, slope = ol.value_and_grad(lambda x: np.sum(w * x**2))(x)
        assert type(slope) is np.ndarray
        assert not isinstance(value, ol.Tensor)
        assert type(ol.hvp(lambda x: np.sum(w * x**2), x, x)) is np.ndarray
        assert type(ol.hessian(lambda x: np.sum(w * x**2))(x)) is np.ndarray
    np.testing.assert_array_equal(slope, 2 * np.array([2.0, 3.0]) * x)
    assert w.grad is None


def test_transforms_leave_the_gradients_of_parameters_alone() -> None:
    w, x = taped([2.0, 3.0]), taped([1.0, 2.0])
    ol.grad(lambda x: np.sum(w * x**2))(x)
    ol.hvp(lambda x: np.sum(w * x**3), x, np.ones(2))
    assert w.grad is None
    assert x.grad is None


@pytest.mark.parametrize("kind", ["array", "Tensor", "taped Tensor"])
def test_arrays_for_arrays_and_tensors_for_tensors(kind: str) -> None:
    data = np.array([0.5, 1.5])
    x: Any = data if kind == "array" else ol.to_tensor(data)
    if kind == "taped Tensor":
        x.requires_grad = True
    f, cubes = lambda x: np.sum(x**3), lambda x: x**3
    value, slope = ol.value_and_grad(f)(x)
    y, pullback = ol.vjp(cubes, x)
    results = [
        (value, np.sum(data**3)), (slope, 3 * data**2), (ol.grad(f)(x), 3 * data**2),
        (y, data**3), (pullback(np.ones(2))[0], 3 * data**2),
        *zip(ol.jvp(cubes, (x,), (data,)), (data**3, 3 * data**3), strict=True),
        (ol.hvp(f, x, data), 6 * data**2), (ol.jacobian(cubes)(x), np.diag(3 * data**2)),
        (ol.hessian(f)(x), np.diag(6 * data)),
    ]  # fmt: skip
    for position, (found, wanted) in enumerate(results):
        assert isinstance(found, ol.Tensor) is (kind != "array"), position
        if isinstance(found, ol.Tensor):
            assert found.requires_grad is (kind == "taped Tensor"), position
        np.testing.assert_allclose(getattr(found, "data", found), wanted, rtol=1e-13)


# Bullet 5. Scalars and dtypes -------------------------------------------------------------------

OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "**": lambda a, b: a**b, "%": lambda a, b: a % b,
    "np.maximum": np.maximum, "np.arctan2": np.arctan2,
    "np.where": lambda a, b: np.where(True, a, b),
}  # fmt: skip

OTHERS = {
    "float": 1.7, "int": 3, "bool": True, "float32 scalar": np.float32(1.7),
    "float64 scalar": np.float64(1.7), "int64 scalar": np.int64(3),
    "float32 0-d": np.array(1.7, "float32"), "float64 0-d": np.array(1.7),
    "float32 array": np.array([1.7, 0.3], "float32"), "float64 array": np.array([1.7, 0.3]),
    "int64 array": np.array([3, 1]), "bool array": np.array([True, True]),
}  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_both_operand_orders_have_the_values_and_dtypes_of_numpy(
    sign: str, other: str, dtype: str, shape: tuple[int, ...]
) -> None:
    function, b = OPERATORS[sign], OTHERS[other]
    a = np.array([1.3, 2.3] if shape else 1.3, dtype)
    for found, wanted in (
        (function(taped(a, dtype), b), function(a, b)),
        (function(b, taped(a, dtype)), function(b, a)),
        (function(taped(a, dtype), ol.to_tensor(b, dtype=np.result_type(b))), None),
    ):
        assert isinstance(found, ol.Tensor)
        assert found.requires_grad
        if wanted is not None:
            assert found.dtype == wanted.dtype
            tolerance = 4 * np.finfo(wanted.dtype).eps
            np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance)


@pytest.mark.parametrize("rate", [0.1, 3, True])
def test_float32_stays_float32_beside_numbers_of_python(rate: Any) -> None:
    t = taped([1.0, 2.0], "float32")
    y = np.sum(np.tanh(rate * t + rate) / rate - rate**t + t**rate + np.maximum(t, rate)) % 7.0
    y = y + np.mean(t, axis=0) + np.var(t) + np.clip(t, 0.5, 1.5) + np.where(t > 1, t, rate)
    assert y.dtype == np.float32
    y.backward()
    assert t.grad is not None
    assert t.grad.dtype == np.float32
    value, slope = ol.value_and_grad(lambda x: np.sum(x * rate))(np.ones(2, "float32"))
    assert (value.dtype, slope.dtype) == (np.float32, np.float32)


def test_a_gradient_has_the_dtype_of_its_tensor_across_mixed_precision() -> None:
    single, double = taped([1.0, 2.0], "float32"), taped([3.0, 4.0])
    y = single * double
    assert y.dtype == np.float64
    y.backward()
    assert single.grad is not None
    assert double.grad is not None
    assert (single.grad.dtype, double.grad.dtype) == (np.float32, np.float64)


def test_a_cast_brings_the_gradient_back_in_the_dtype_it_came_from() -> None:
    t = taped([1.0, 2.0], "float32")
    (t.astype("float64") * np.array([1 / 3, 2 / 3])).backward()
    assert t.grad is not None
    assert t.grad.dtype == np.float32


def test_a_starting_gradient_of_another_precision_is_cast() -> None:
    t = taped([1.0, 2.0], "float32")
    t.backward(np.ones(2))
    assert t.grad is not None
    assert t.grad.dtype == np.float32


def test_looking_at_a_function_does_not_change_the_module() -> None:
    assert onp.any([False, True])
    assert isinstance(onp.array([1.0, 2.0]), np.ndarray)
