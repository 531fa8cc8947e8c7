"""16-bit dtypes: the behavior that the module of half precision documents."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.backend import dtypes
from tests.autograd.rows import ROWS, Case

try:
    import ml_dtypes
except ModuleNotFoundError:
    ml_dtypes = None

needs_ml_dtypes = pytest.mark.skipif(ml_dtypes is None, reason="needs the package ml_dtypes")
HALVES = ["float16", pytest.param("bfloat16", marks=needs_ml_dtypes)]
both = pytest.mark.parametrize("dtype", HALVES)

#: Cases with a float32 scalar give float32.
CASES = [case for row in ROWS.values() for case in row if "np.float32" not in case.label]


def eps(dtype: str) -> float:
    return float(dtypes.finfo(dtypes.dtype_named(dtype)).eps)


def half(x: Any, dtype: str, requires_grad: bool = True) -> ol.Tensor:
    return ol.to_tensor(np.asarray(x), dtype=dtype, requires_grad=requires_grad)


def exact(t: Any) -> np.ndarray:
    """Return 16-bit values as float64."""
    array = t.numpy() if isinstance(t, ol.Tensor) else np.asarray(t)
    return np.asarray(array.astype(np.float64))


def near(got: Any, wanted: Any, dtype: str, ulps: float) -> None:
    """Compare up to `ulps` roundings of the largest value."""
    wanted = exact(wanted)
    with np.errstate(over="ignore"):
        wanted = wanted.astype("float32").astype(dtypes.dtype_named(dtype)).astype("float64")
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = max(1.0, float(finite.max()) if finite.size else 0.0)
    np.testing.assert_allclose(exact(got), wanted, rtol=0, atol=ulps * eps(dtype) * scale)


# All functions that have a rule.


@both
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_values_and_gradients_are_those_of_float32_rounded(case: Case, dtype: str) -> None:
    narrow = [half(x, dtype) for x in case.args]
    wide = [ol.to_tensor(t.numpy().astype("float32"), requires_grad=True) for t in narrow]
    y, wanted = case.f(*narrow), case.f(*wide)
    assert y.dtype == (dtype if wanted.dtype == "float32" else wanted.dtype)
    near(y, wanted, dtype, 4)
    y.backward()
    wanted.backward()
    for t, other in zip(narrow, wide, strict=True):
        assert t.grad is not None
        assert other.grad is not None
        assert t.grad.dtype == dtype
        near(t.grad, other.grad, dtype, 16)


# Single rules.


@both
@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        (2.5, None), (3, None), (True, None), (10**4, None), (np.float32(2), "float32"),
        (np.float64(2), "float64"), (np.ones(2, "float32"), "float32"),
        (np.ones(2), "float64"), ([1.0, 2.0], "float64"), (np.array([True, True]), None),
        (np.ones(2, "int8"), None), (np.ones(2, "uint8"), None), (np.ones(2, "int16"), "float32"),
        (np.ones(2, "uint16"), "float32"), (np.ones(2, "int32"), "float64"),
        (np.int64(2), "float64"),
    ],
    ids=str,
)  # fmt: skip
def test_what_16_bits_give_beside_others(other: Any, wanted: str | None, dtype: str) -> None:
    t = half([1.0, 2.0], dtype)
    calls = [lambda a, b: a + b, lambda a, b: b * a, np.maximum, lambda a, b: a / b, np.add]
    calls.append(lambda a, b: np.where([True, False], a, b))
    for call in calls:
        y = call(t, other)
        assert y.dtype == (wanted or dtype)
        if dtype == "float16" and not isinstance(other, (list, int)):
            assert y.dtype == call(t.numpy(), other).dtype  # as in NumPy
        t.grad = None
        y.backward()
        assert t.grad is not None
        assert t.grad.dtype == dtype


@needs_ml_dtypes
def test_float16_beside_bfloat16_gives_float32() -> None:
    a, b = half([1.0, 2.0], "float16"), half([3.0, 0.1], "bfloat16")
    y = a * b
    assert y.dtype == "float32"
    y.backward()
    assert a.grad is not None
    assert b.grad is not None
    assert (a.grad.dtype, b.grad.dtype) == ("float16", "bfloat16")
    assert b.grad.tolist() == [1.0, 2.0]


FOLDED = {
    "sum": (lambda x: np.sum(x, 0), lambda x: np.sum(x, 0)),
    "mean": (lambda x: np.mean(x, 0), lambda x: np.mean(x, 0)),
    "var": (lambda x: np.var(x, 0), lambda x: np.var(x, 0)),
    "norm": (lambda x: np.linalg.norm(x, axis=0), lambda x: np.linalg.norm(x, axis=0)),
    "method sum": (lambda x: x.sum(0), lambda x: np.sum(x, 0)),
    "cumsum": (lambda x: np.cumsum(x, 0)[-1], lambda x: np.sum(x, 0)),
    "matmul": (lambda x: x.T @ x, lambda x: x.T @ x),
    "einsum": (lambda x: np.einsum("ij,ik->jk", x, x), lambda x: x.T @ x),
    "softmax": (lambda x: ol.nn.functional.softmax(x, 0), None),
    "cross entropy": (
        lambda x: ol.nn.functional.cross_entropy(x, np.zeros(len(x), int)), None,
    ),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", FOLDED)
def test_many_numbers_are_added_up_in_float32(name: str, dtype: str) -> None:
    """In 16 bits a sum of ones would stop at 2048, or at 256."""
    f, plain = FOLDED[name]
    x = half(np.random.default_rng(0).uniform(0.5, 1, (6000, 2)), dtype, False)
    reference = f(ol.to_tensor(exact(x))) if plain is None else plain(exact(x))
    np.testing.assert_allclose(exact(f(x)), exact(reference), rtol=eps(dtype))


@both
def test_a_gradient_that_broadcasting_folds_is_added_up_in_float32(dtype: str) -> None:
    bias = half([0.0, 0.0], dtype)
    (ol.ones([6000, 2], dtype) + bias).backward()
    near(bias.grad, np.array([6000.0, 6000.0]), dtype, 0.51)


@both
def test_repeated_rows_are_added_up_in_float32(dtype: str) -> None:
    table, rows = half(np.ones((2, 1)), dtype), np.zeros(3000, int)
    table[rows].backward()
    near(table.grad, np.array([[3000.0], [0.0]]), dtype, 0.51)
    for sparse in (False, True):
        table.grad = None
        ol.nn.functional.embedding(rows, table, sparse=sparse).backward()
        near(table.grad.numpy(), np.array([[3000.0], [0.0]]), dtype, 0.51)
    assert exact(table.grad.merged().values).tolist() == exact(table.grad)[:1].tolist()


@both
def test_an_operation_rounds_once(dtype: str) -> None:
    x = half(np.random.default_rng(0).uniform(0.5, 2, 1000), dtype, False)
    wide = ol.to_tensor(exact(x), dtype="float32")
    for f in (np.exp, np.tanh, np.var, np.std, ol.nn.functional.gelu, np.linalg.norm):
        wanted = f(wide).numpy().astype(dtypes.dtype_named(dtype))
        np.testing.assert_array_equal(exact(f(x)), exact(wanted))


@both
def test_what_is_kept_for_backward_has_16_bits(dtype: str) -> None:
    kept = []
    x = half(np.ones((10, 10)), dtype)
    with ol.autograd.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        np.tanh(x @ x) * x
    assert {t.dtype.name for t in kept} == {dtype}


@both
def test_views_stay_views(dtype: str) -> None:
    x = half(np.zeros((2, 3)), dtype, False)
    for view in (x.reshape(3, 2), x[0], x.T, np.broadcast_to(x, (4, 2, 3)), np.split(x, 2)[0]):
        assert np.shares_memory(view.data, x.data)
    x[0] = 1.5
    x += 0.25
    x *= 2
    assert x.dtype == dtype
    assert x.tolist() == [[3.5] * 3, [0.5] * 3]


@both
def test_higher_derivatives(dtype: str) -> None:
    x = half([0.5, 2.0], dtype, False)
    second = ol.grad(lambda x: np.sum(ol.grad(lambda z: np.sum(z**3))(x)))(x)
    assert second.dtype == dtype
    assert second.tolist() == [3.0, 12.0]
    assert ol.hessian(lambda x: np.sum(x**3))(x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
    primal, tangent = ol.jvp(lambda x: x * x, (x,), (ol.ones([2], dtype),))
    assert (primal.dtype, tangent.dtype) == (dtype, dtype)
    assert (
        ol.vmap(lambda row: np.sum(row * row))(half(np.ones((3, 2)), dtype, False)).dtype == dtype
    )


def test_beyond_the_largest_number_is_infinity_without_a_warning() -> None:
    x = half([300.0, -60000.0, 1e-4], "float16")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = x * x
        y.backward(ol.to_tensor([1.0, 60000.0, 1.0]))
        cast = ol.to_tensor([1e30, 1e-30]).astype("float16")
    assert y.tolist() == [np.inf, np.inf, 0.0]
    assert x.grad is not None
    assert x.grad.tolist()[1] == -np.inf
    assert cast.tolist() == [np.inf, 0.0]
    assert (y + 1.0).tolist()[:2] == [np.inf, np.inf]


def test_detect_anomaly_finds_where_float16_overflowed() -> None:
    x = half([300.0], "float16")
    with ol.autograd.detect_anomaly(), pytest.raises(ol.autograd.AnomalyError, match=r"multiply"):
        x * x


@needs_ml_dtypes
def test_bfloat16_reaches_as_far_as_float32() -> None:
    assert half([1e30], "bfloat16").item() == pytest.approx(1e30, rel=0.01)


@both
def test_moving_numbers_changes_nothing(dtype: str) -> None:
    x = half(np.random.default_rng(0).standard_normal((4, 3)), dtype)
    for f in (
        lambda x: np.concatenate([x, x]), np.stack, np.sort, np.flip, np.ravel, np.copy, np.abs,
        lambda x: np.pad(x, 1), lambda x: np.max(x, 0), lambda x: x.astype("float64"),
        lambda x: np.where([True, False, True], x, 0.0), lambda x: np.clip(x, -0.5, 0.5),
    ):  # fmt: skip
        y = f(x)
        near(y.detach(), f(exact(x)), dtype, 0)


@both
@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int64"])
def test_casts_there_and_back(source: str, dtype: str) -> None:
    t = ol.to_tensor([1.0, 3.0], dtype=source)
    there = t.astype(dtype)
    assert there.dtype == dtype
    assert there.to(dtype=source).tolist() == t.tolist()
    assert there.astype("int64").tolist() == [1, 3]


@given(
    x=st.lists(st.floats(-100, 100, width=16), min_size=1, max_size=20),
    name=st.sampled_from(["float16"] + ["bfloat16"] * (ml_dtypes is not None)),
)
@settings(max_examples=60, deadline=None)
def test_one_operation_is_float32_rounded(x: list[float], name: str) -> None:
    t = half(x, name, False)
    wide = t.astype("float32")
    for f in (lambda t: t * 1.3 + 0, lambda t: t + t * t, np.sum, np.tanh, lambda t: t / 3):
        got, wanted = f(t), f(wide)
        assert got.dtype == name
        near(got, wanted, name, 2)
    assert (t * 1.3).tolist() == (wide * 1.3).astype(name).tolist()


# Names of dtypes.


def test_names_of_dtypes() -> None:
    for name in ("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"):
        assert np.dtype(getattr(ol, name)) == name
        assert ol.zeros([2], getattr(ol, name)).dtype == getattr(ol, name)
    assert ol.to_tensor([True]).dtype == ol.bool


MAKERS = {
    "to_tensor": lambda d: ol.to_tensor([1.0, 2.0], dtype=d),
    "zeros": lambda d: ol.zeros([2], d), "ones": lambda d: ol.ones([2], dtype=d),
    "full": lambda d: ol.full([2], 0.1, d), "arange": lambda d: ol.arange(3, dtype=d),
    "rand": lambda d: ol.rand([2], d), "randn": lambda d: ol.randn([2], dtype=d),
    "uniform": lambda d: ol.uniform([200], d, 0.0, 1.0),
    "normal": lambda d: ol.normal(0.0, 1.0, [2], d), "randint": lambda d: ol.randint(5, dtype=d),
    "randperm": lambda d: ol.randperm(4, d), "astype": lambda d: ol.ones([2]).astype(d),
    "to": lambda d: ol.ones([2]).to(dtype=d), "sum": lambda d: np.sum(ol.ones([2, 2]), 0, d),
    "bernoulli": lambda d: ol.bernoulli(ol.full([2], 0.5, d)),
    "poisson": lambda d: ol.poisson(ol.ones([2], d)),
    "dropout": lambda d: ol.nn.functional.dropout(ol.ones([9], d)),
    "softmax": lambda d: ol.nn.functional.softmax(ol.ones([2]), dtype=d),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", MAKERS)
def test_a_dtype_is_named_wherever_one_is(name: str, dtype: str) -> None:
    for given_as in (dtype, dtypes.dtype_named(dtype), dtypes.dtype_named(dtype).type):
        assert MAKERS[name](given_as).dtype == dtype


@both
def test_numpy_s_own_dtype_argument(dtype: str) -> None:
    wanted = dtypes.dtype_named(dtype)
    t = ol.to_tensor([1.0, 2.0], requires_grad=True)
    for y in (np.exp(t, dtype=wanted), np.sum(t, dtype=wanted), np.mean(t, dtype=wanted)):
        assert y.dtype == wanted
    many = ol.ones([6000, 2])
    assert exact(ol.sum(many, 0, dtype)).tolist() == exact(half([6000, 6000], dtype)).tolist()
    assert exact(np.mean(many, 0, dtype=wanted)).tolist() == [1.0, 1.0]
    x = half([1.0, 2.0], dtype)
    assert np.sum(x, dtype="float32").dtype == "float32"
    assert np.var(x, dtype=np.float64).dtype == "float64"


@both
def test_uniform_numbers_stay_below_the_end(dtype: str) -> None:
    drawn = exact(ol.uniform([5000], dtype, 0.0, 1.0))
    assert drawn.min() >= 0
    assert drawn.max() < 1


def test_bfloat16_without_ml_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.delitem(vars(ol), "bfloat16", raising=False)
    for call in (
        lambda: ol.ones([2], "bfloat16"), lambda: ol.to_tensor([1.0], dtype="bfloat16"),
        lambda: ol.ones([2]).astype("bfloat16"), lambda: ol.nn.Linear(2, 2).bfloat16(),
        lambda: ol.bfloat16, lambda: ol.amp.auto_cast(dtype="bfloat16"),
        lambda: ol.rand([2], "bfloat16"),
    ):  # fmt: skip
        with pytest.raises(ModuleNotFoundError, match=r"bfloat16.*ml_dtypes.*optlab\[formats\]"):
            call()


@needs_ml_dtypes
def test_bfloat16_prints_the_digits_it_has() -> None:
    assert repr(half([0.1, 1.0], "bfloat16", False)) == "Tensor([0.1001, 1.    ], dtype=bfloat16)"
    assert repr(half([1e-9], "bfloat16", False)) == "Tensor([9.9681e-10], dtype=bfloat16)"


def test_nothing_changes_for_float32_after_16_bits_were_met() -> None:
    half([1.0], "float16")
    x = ol.to_tensor([[1.0, 2.0], [3.0, 4.5]], requires_grad=True)
    y = np.var(x @ x, axis=0)
    y.backward()
    assert (y.dtype, x.grad is not None and x.grad.dtype) == ("float32", "float32")


# Arrays other than NumPy's.


def network(x: Any, w: Any) -> Any:
    y = np.tanh(x @ w * 0.5)
    return np.mean(np.where(y > 0, y, 0.1 * y) ** 2) + np.var(y) + np.sum(np.exp(-np.abs(y)))


def points(dtype: str) -> list[np.ndarray]:
    numbers = np.random.default_rng(0)
    shapes = ((4, 3), (3, 2))
    return [numbers.uniform(-1, 1, s).astype(dtypes.dtype_named(dtype)) for s in shapes]


@both
def test_values_and_derivatives_stay_on_their_device(dtype: str) -> None:
    from tests.autograd.test_guarded import gradients, guarded_leaf, on_device_function
    from tests.guarded import GuardedArray

    there = gradients(on_device_function(network), [guarded_leaf(x) for x in points(dtype)])
    here = gradients(network, [ol.to_tensor(x, requires_grad=True) for x in points(dtype)])
    for moved, plain in zip(there, here, strict=True):
        assert isinstance(moved.data, GuardedArray)
        assert moved.dtype == dtype
        near(moved.data.get(), plain, dtype, 1)


@both
def test_an_ensemble_equals_separate_runs(dtype: str) -> None:
    x, w = points(dtype)
    many = np.stack([w, w * 2, -w]).astype(w.dtype)
    found = ol.vmap(lambda w: ol.grad(network, 1)(x, w))(ol.to_tensor(many))
    assert found.dtype == dtype
    for k in range(3):
        near(found[k], ol.grad(network, 1)(x, many[k]), dtype, 2)


@both
def test_a_captured_run_equals_an_eager_one(dtype: str) -> None:
    from optlab.plan.capture import capture_value_and_grad

    x, w = points(dtype)
    value, gradient = capture_value_and_grad(lambda w: network(x, w), w)(w * 2)
    wanted, slope = ol.value_and_grad(lambda w: network(x, w))(w * 2)
    assert gradient.dtype == dtype
    near(value, wanted, dtype, 1)
    near(gradient, slope, dtype, 1)
