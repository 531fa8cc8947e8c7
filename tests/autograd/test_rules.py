"""Every derivative rule against finite differences to second order, every value against NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.composed import COMPOSED
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.elementwise import integer_power
from tests.autograd.rows import BINARY, ROWS, UNARY, Case, numbers

# Read at collection: functions that other tests and doctests add later are checked there, those of
# layers in the tests of layers.
FUNCTIONS = frozenset(
    f for f in {*TABLE, *COMPOSED} if not getattr(f, "__module__", "").startswith("optlab.nn")
)
CASES = [case for row in ROWS.values() for case in row]

#: Functions computed by other operations than NumPy's, so that rounding may differ.
ROUNDED = {np.power, np.dot, np.linalg.norm, integer_power}
ROUNDED |= {np.inner, np.einsum, np.linalg.vector_norm, np.linalg.cond}
# Of real numbers NumPy has algorithms of their own, and a product of complex ones may be fused.
ROUNDED |= {getattr(np.fft, name) for name in np.fft.__all__ if name.endswith(("fft", "2", "n"))}

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)


def test_every_function_of_the_engine_has_a_row() -> None:
    missing = sorted(f"{f.__module__}.{f.__name__}" for f in FUNCTIONS - set(ROWS))
    assert not missing, f"add rows to tests/autograd/rows for: {', '.join(missing)}"


def test_every_row_is_of_a_function_of_the_engine() -> None:
    assert not set(ROWS) - FUNCTIONS


def test_every_elementwise_function_of_the_table_is_checked_with_broadcasting() -> None:
    ufuncs = {f for f in FUNCTIONS if isinstance(f, np.ufunc) and not f.signature} - {np.clip}
    assert ufuncs == {*UNARY, *BINARY}


@every_case
def test_derivatives_equal_finite_differences_to_second_order(case: Case) -> None:
    ol.check_grad(case.f, *case.args, order=2)


def _as(dtype: str, args: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [x.astype(dtype) for x in args]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "case"),
    [pytest.param(f, case, id=case.label) for f, row in ROWS.items() for case in row],
)
def test_values_and_dtypes_are_those_of_numpy(function: Any, case: Case, dtype: str) -> None:
    arrays = _as(dtype, case.args)
    wanted = case.f(*arrays)
    tensors = [ol.to_tensor(x, requires_grad=True) for x in arrays]
    got = case.f(*tensors)
    assert isinstance(got, ol.Tensor)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if function in ROUNDED:
        tolerance = 64 * np.finfo(dtype).eps
        np.testing.assert_allclose(got.numpy(), wanted, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got.numpy(), wanted)


@every_case
def test_gradients_of_float32_are_float32_and_near_those_of_float64(case: Case) -> None:
    found = {}
    for dtype in ("float32", "float64"):
        tensors = [ol.to_tensor(x, requires_grad=True) for x in _as(dtype, case.args)]
        case.f(*tensors).backward()
        found[dtype] = [t.grad for t in tensors]
    for single, double, x in zip(found["float32"], found["float64"], case.args, strict=True):
        assert single is not None
        assert double is not None
        assert (single.dtype, double.dtype) == (np.float32, np.float64)
        assert single.shape == double.shape == x.shape
        np.testing.assert_allclose(single.numpy(), double.numpy(), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("order", ["F", "strided", "negative strides"])
def test_the_order_of_memory_does_not_matter(order: str) -> None:
    x = numbers((4, 6), 0.5, 2.0)
    laid_out = {
        "F": np.asfortranarray(x),
        "strided": np.repeat(x, 2, axis=1)[:, ::2],
        "negative strides": x[::-1, ::-1].copy()[::-1, ::-1],
    }[order]

    def f(x: Any) -> Any:
        return np.sum(np.cumsum(np.log(x), axis=1) @ np.sqrt(x).T * np.reshape(x, (-1,))[3])

    np.testing.assert_allclose(ol.grad(f)(laid_out), ol.grad(f)(x), rtol=1e-12)
    ol.check_grad(f, laid_out)


# Other ways to call NumPy's functions.

WAYS = {
    "add.reduce": lambda x: np.add.reduce(x),
    "add.reduce over all": lambda x: np.add.reduce(x, axis=None),
    "multiply.reduce": lambda x: np.multiply.reduce(x, axis=1, keepdims=True),
    "maximum.reduce": lambda x: np.maximum.reduce(x, axis=-1),
    "minimum.reduce": lambda x: np.minimum.reduce(x),
    "add.accumulate": lambda x: np.add.accumulate(x, axis=1),
    "multiply.outer": lambda x: np.multiply.outer(x, x),
    "subtract.outer": lambda x: np.subtract.outer(x, np.array([1.0, 2.0])),
    "method sum": lambda x: x.sum(1),
    "method mean": lambda x: x.mean(axis=0, keepdims=True),
    "method max": lambda x: x.max(axis=1),
    "method min": lambda x: x.min(0),
    "method prod": lambda x: x.prod(1),
    "method var": lambda x: x.var(axis=0, ddof=1),
    "method std": lambda x: x.std(axis=1),
    "method cumsum": lambda x: x.cumsum(0),
    "method dot": lambda x: x.dot(np.arange(3.0)),
    "method clip": lambda x: x.clip(-0.5, 0.5),
    "method reshape": lambda x: x.reshape(3, 2) @ x.reshape([2, 3]),
    "method ravel": lambda x: x.ravel() * x.flatten(),
    "method squeeze": lambda x: x[None].squeeze(0),
    "method transpose": lambda x: x.transpose() @ x.transpose(0, 1),
    "method swapaxes": lambda x: x.swapaxes(0, 1),
    "attribute T": lambda x: x.T @ x,
    "operators": lambda x: 2.0 - (-x + 1.0) * 3.0 / (+x * x + 2.0) - abs(x),
    "reflected": lambda x: 1.0 / (3.0 + x) + 2.0**x - 5.0 % (x + 3.5),
    "iteration": lambda x: sum(row[0] * row[1] for row in x),
    "unpacking": lambda x: (lambda a, b: a * b * b)(*x),
}


@pytest.mark.parametrize("way", WAYS)
def test_other_ways_to_call_a_function(way: str) -> None:
    f, x = WAYS[way], numbers((2, 3), seed=5)
    np.testing.assert_allclose(f(ol.to_tensor(x, requires_grad=True)).numpy(), f(x), rtol=1e-14)
    ol.check_grad(f, x)


# NumPy converts lists among the operands to arrays.

LISTS = {
    "add": lambda x: np.add([1.0, 2.0, 3.0], x),
    "operator +": lambda x: operator.add(x, [1.0, 2.0, 3.0]),
    "multiply": lambda x: x * [1.0, 2.0, 3.0],
    "divide by": lambda x: x / [1.0, 2.0, 3.0],
    "divide": lambda x: [1.0, 2.0, 3.0] / x,
    "power": lambda x: np.power(x, [2.0, 0.0, 3.0]),
    "power of a list": lambda x: np.power([1.0, 2.0, 3.0], x),
    "arctan2": lambda x: np.arctan2(x, [1.0, 2.0, 3.0]),
    "maximum": lambda x: np.maximum(x, [0.2, 9.0, 0.3]),
    "minimum": lambda x: np.minimum([0.2, 9.0, 0.3], x),
    "hypot": lambda x: np.hypot(x, [1.0, 2.0, 3.0]),
    "remainder": lambda x: np.remainder([5.1, 5.1, 5.1], x),
    "matmul": lambda x: x @ [1.0, 2.0, 3.0],
    "matmul from the left": lambda x: [[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]] @ x,
    "where": lambda x: np.where([True, False, True], x, [1.0, 2.0, 3.0]),
    "clip": lambda x: np.clip(x, [0.6, 0.1, 0.1], [3.0, 3.0, 0.4]),
    "stack": lambda x: np.stack([x, [1.0, 2.0, 3.0]]),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_as_good_as_an_array(name: str) -> None:
    f, x = LISTS[name], np.array([0.55, 0.8, 0.95])
    np.testing.assert_allclose(f(ol.to_tensor(x, requires_grad=True)).numpy(), f(x), rtol=1e-14)
    ol.check_grad(f, x)


def _refused() -> Iterator[Any]:
    t = ol.to_tensor([[1.0, 2.0]], requires_grad=True)
    yield pytest.param(lambda: np.exp(t, where=t > 1), "where", id="exp where")
    yield pytest.param(lambda: np.exp(t, dtype="int64"), "dtype", id="exp dtype")
    yield pytest.param(lambda: np.roots(t), "roots", id="no rule")
    yield pytest.param(lambda: np.gcd(t, t), "gcd", id="no rule, a ufunc")
    yield pytest.param(lambda: np.divide.accumulate(t), "divide.accumulate", id="accumulate")
    yield pytest.param(lambda: np.multiply.reduceat(t, [0]), "multiply.reduceat", id="reduceat")


@pytest.mark.parametrize(("call", "named"), list(_refused()))
def test_what_has_no_rule_is_refused_by_name(call: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        call()


def test_no_derivative_for_a_condition() -> None:
    t = ol.to_tensor([1.0, 0.0], requires_grad=True)
    got = np.where(t, t, 2.0)  # the condition is read as a value
    got.backward()
    assert t.grad is not None
    np.testing.assert_array_equal(t.grad.numpy(), [1.0, 0.0])


@pytest.mark.peers
@pytest.mark.parametrize("name", ["logsumexp", "prod", "norm", "cumsum", "variance"])
def test_gradients_equal_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = {
        "logsumexp": (
            lambda x: np.sum(np.log(np.sum(np.exp(x), axis=1))),
            lambda x: torch.logsumexp(x, 1).sum(),
        ),
        "prod": (lambda x: np.sum(np.prod(x, axis=0)), lambda x: torch.prod(x, 0).sum()),
        "norm": (lambda x: np.sqrt(np.sum(x**2)), lambda x: x.norm()),
        "cumsum": (
            lambda x: np.sum(np.cumsum(x, axis=1) ** 3),
            lambda x: (torch.cumsum(x, 1) ** 3).sum(),
        ),
        "variance": (
            lambda x: np.sum(np.var(x, axis=0, ddof=1)),
            lambda x: torch.var(x, 0).sum(),
        ),
    }[name]
    x = numbers((3, 4))
    x[1, 2] = 0.0
    t = torch.tensor(x, requires_grad=True)
    theirs(t).backward()
    np.testing.assert_allclose(ol.grad(ours)(x), t.grad.numpy(), rtol=1e-12, atol=1e-14)


def test_a_ufunc_with_too_few_pullbacks_is_refused_and_stays_without_a_rule():
    length = np.frompyfunc(math.hypot, 2, 1)
    t = ol.to_tensor(np.array([3.0, 6.0]), requires_grad=True)
    with pytest.raises(TypeError, match=r"rule\(hypot, lambda g, a, b: g \* \.\.\., lambda g"):
        length(4.0, t)
    with pytest.raises(TypeError, match="has 2 inputs, and needs one pullback for each: got 1"):
        ol.autograd.rule(length, lambda g, x: g * x)
    for _ in range(2):
        with pytest.raises(TypeError, match="no derivative rule"):
            length(4.0, t)
    ol.autograd.rule(length, None, lambda g, y, b: g * b / y, forward=np.hypot)
    got = ol.grad(lambda x: np.sum(length(4.0, x)))(t.numpy())
    np.testing.assert_allclose(got, [0.6, 6 / np.hypot(4, 6)])
