"""Every function of networks: derivatives, other arrays than NumPy's, dtypes, and PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.operation import Operation
from optlab.backend import events
from optlab.backend.ensemble import EnsembleArray
from tests.autograd.test_guarded import gradients, guarded_leaf, on_device_function
from tests.guarded import GuardedArray
from tests.nn.cases import CASES, Case

ALL = pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.label)
#: The modules whose operations the cases must cover.
FILES = [
    f"optlab.nn.functional.{name}" for name in (
        "activation.erf", "activation.rectifiers", "activation.shrinkage", "activation.smooth",
        "attention", "conv.rules", "distance", "loss.cross_entropy", "loss.regression",
        "norm.layer_norm", "pooling.indices", "pooling.rules", "pooling.unpooling", "recurrent",
        "resampling_rules", "sampling",
    )
] + ["optlab.autograd.rules.manipulation.embedding"]  # fmt: skip


def leaves(case: Case, dtype: str = "float64") -> list[ol.Tensor]:
    return [ol.to_tensor(x, dtype=dtype, requires_grad=True) for x in case.args]


def test_no_rule_goes_unchecked() -> None:
    met: set[Any] = set()
    with events.operation_recorded.subscribed(lambda node: met.add(node.operation)):
        for case in CASES.values():
            case.f(*leaves(case)).backward(create_graph=True)
    files = [import_module(name) for name in FILES]
    rules = {
        value: f"{file.__name__}.{name}"
        for file in files
        for name, value in vars(file).items()
        if isinstance(value, Operation)
    }
    assert [name for operation, name in rules.items() if operation not in met] == []


@ALL
def test_derivatives_to_second_order(case: Case) -> None:
    ol.check_grad(case.f, *case.args, order=2)


@ALL
def test_values_and_derivatives_stay_on_their_device(case: Case) -> None:
    plain = gradients(case.f, leaves(case))
    moved = gradients(on_device_function(case.f), [guarded_leaf(x) for x in case.args])
    for ours, theirs in zip(moved, plain, strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            assert isinstance(ours.data, GuardedArray)
            np.testing.assert_allclose(ours.data.get(), theirs.numpy(), rtol=1e-12, atol=1e-12)


def weighted(y: Any) -> Any:
    """Return a scalar with a different weight for every element."""
    return np.sum(y * np.cos(np.arange(y.size)).reshape(y.shape))


def first_and_second(case: Case, args: Any) -> list[Any]:
    """Return the value, its gradients, and the gradients of these."""
    places = range(len(args))

    def of_gradients(*points: Any) -> Any:
        found = ol.grad(lambda *args: weighted(case.f(*args)), places)(*points)
        return sum(weighted(g) for g in found)

    first = ol.grad(lambda *args: weighted(case.f(*args)), places)(*args)
    return [ol.autograd.tensor.raw(case.f(*args)), *first, *ol.grad(of_gradients, places)(*args)]


@ALL
def test_an_ensemble_equals_separate_runs(case: Case) -> None:
    numbers = np.random.default_rng(3)
    stacked = [x + numbers.uniform(-1e-3, 1e-3, (3, *x.shape)) for x in case.args]
    together = first_and_second(case, [EnsembleArray(x) for x in stacked])
    for k in range(3):
        alone = first_and_second(case, [x[k] for x in stacked])
        for got, wanted in zip(together, alone, strict=True):
            member = got.members[k] if isinstance(got, EnsembleArray) else got
            np.testing.assert_allclose(member, wanted, rtol=1e-9, atol=1e-9)


@ALL
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtypes_stay(case: Case, dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    given = leaves(case, dtype)
    y = case.f(*given)
    assert y.dtype == dtype
    exact = case.f(*leaves(case))
    tolerance = {"float32": 1e-4, "float16": 0.1, "bfloat16": 0.1}[dtype]
    np.testing.assert_allclose(
        y.detach().numpy(), exact.detach().numpy(), rtol=tolerance, atol=tolerance
    )
    y.backward()
    assert [t.grad.dtype for t in given] == [dtype] * len(given)


@pytest.mark.peers
@pytest.mark.parametrize(
    "case", [case for case in CASES.values() if case.torch], ids=lambda case: case.label
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pytorch_says_the_same(case: Case, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    assert case.torch is not None
    ours = leaves(case, dtype)
    theirs = [torch.tensor(x.astype(dtype), requires_grad=True) for x in case.args]
    y, z = case.f(*ours), case.torch(torch, *theirs)
    # Some of PyTorch's constants are float32.
    tolerance = 1e-5 if dtype == "float32" else 1e-7
    np.testing.assert_allclose(
        y.detach().numpy(), z.detach().numpy(), rtol=tolerance, atol=tolerance
    )
    g = np.cos(np.arange(y.size)).reshape(y.shape).astype(dtype)
    y.backward(g)
    z.backward(torch.tensor(g))
    for a, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(
            a.grad.numpy(), t.grad.numpy(), rtol=10 * tolerance, atol=tolerance
        )
