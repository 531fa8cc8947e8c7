"""Draws with Paddle's documented signatures: ol.rand, ol.normal, ol.bernoulli, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import optlab as ol

N = 20_000


def test_normal_of_tensors_follows_them() -> None:
    mean = ol.to_tensor([1.0, 2.0], requires_grad=True)
    std = ol.to_tensor([0.5, 0.1], requires_grad=True)
    ol.seed(3)
    y = ol.normal(mean, std)
    assert (y.shape, y.dtype) == ((2,), np.float32)
    y.backward()
    assert mean.grad.tolist() == [1.0, 1.0]
    np.testing.assert_allclose(std.grad.numpy(), (y - mean).numpy() / [0.5, 0.1], rtol=1e-5)
    assert ol.normal(mean, 1.0, [4, 2]).shape == (4, 2)
    assert ol.normal(0.0, std.detach(), [4, 2], "float64").dtype == np.float64
    ol.seed(3)
    plain = ol.normal(1.0, 0.5, [6])
    ol.seed(3)
    np.testing.assert_allclose(
        ol.normal(ol.to_tensor(1.0), ol.to_tensor(0.5), [6]).numpy(), plain.numpy(), rtol=1e-6
    )


def test_uniform_between_tensors_follows_them() -> None:
    low, high = (ol.to_tensor(x, requires_grad=True) for x in (1.0, 3.0))
    ol.seed(3)
    u = ol.rand([50])
    ol.seed(3)
    y = ol.uniform([50], min=low, max=high)
    np.testing.assert_allclose(y.numpy(), 1 + 2 * u.numpy(), rtol=1e-6)
    y.backward()
    assert high.grad.item() == pytest.approx(u.sum().item(), rel=1e-5)
    assert low.grad.item() == pytest.approx(50 - u.sum().item(), rel=1e-5)


def test_standard_normal_is_randn() -> None:
    ol.seed(3)
    one = ol.standard_normal([3], "float64")
    ol.seed(3)
    np.testing.assert_array_equal(ol.randn([3], "float64").numpy(), one.numpy())


def test_randperm() -> None:
    ol.seed(3)
    x = ol.randperm(50)
    assert x.dtype == np.int64
    assert sorted(x.tolist()) == list(range(50)) != x.tolist()
    assert ol.randperm(0).shape == (0,)
    assert ol.randperm(4, "int32").dtype == np.int32


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bernoulli(dtype: str) -> None:
    ol.seed(3)
    p = np.repeat(np.array([[0.0, 0.3, 1.0]], dtype), N, 0)
    x = ol.bernoulli(ol.to_tensor(p))
    assert x.dtype == dtype
    none, some, every = x.numpy().mean(0)
    assert (none, every) == (0.0, 1.0)
    assert abs(some - 0.3) < 5 * math.sqrt(0.3 * 0.7 / N)
    assert set(np.unique(x.numpy())) == {0.0, 1.0}


def test_poisson() -> None:
    ol.seed(3)
    x = ol.poisson(ol.full([N], 3.0))
    assert x.dtype == np.float32
    assert abs(x.numpy().mean() - 3) < 5 * math.sqrt(3 / N)
    assert ol.poisson([0.0]).tolist() == [0.0]


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(replacement: bool) -> None:
    ol.seed(3)
    weights = ol.to_tensor(np.repeat([[1.0, 0.0, 3.0, 4.0]], N, 0))
    x = ol.multinomial(weights, 2, replacement).numpy()
    assert (x.shape, x.dtype) == ((N, 2), np.int64)
    p = np.array([1.0, 0.0, 3.0, 4.0]) / 8
    first, second = (np.bincount(x[:, i], minlength=4) / N for i in (0, 1))
    # Without replacement: P(second = i) is the sum over j of p[j] p[i] / (1 - p[j]).
    later = p if replacement else p * (np.sum(p / (1 - p)) - p / (1 - p))
    for found, wanted in ((first, p), (second, later)):
        assert np.all(np.abs(found - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / N))
    assert np.any(x[:, 0] == x[:, 1]) == replacement
    assert ol.multinomial(ol.to_tensor([0.0, 2.0])).tolist() == [1]


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: ol.multinomial(ol.to_tensor([1.0, 0.0]), 2), "replacement=True"),
        (lambda: ol.multinomial(ol.to_tensor([1.0, -1.0])), "0 or more"),
        (lambda: ol.multinomial(ol.zeros([2])), "not all 0"),
        (lambda: ol.multinomial(ol.zeros([2, 2, 2])), r"\[B, N\]"),
        (lambda: ol.bernoulli(ol.to_tensor([0.5, 1.5])), "0 to 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        call()


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "multinomial"])
def test_whole_numbers_refuse_a_gradient(name: str) -> None:
    x = ol.to_tensor([0.5, 0.5], requires_grad=True)
    with pytest.raises(TypeError, match=rf"{name}.*'x'.*x\.detach\(\)"):
        getattr(ol, name)(x)
    assert getattr(ol, name)(x.detach()).node is None
    with pytest.raises(TypeError, match="int64"):
        getattr(ol, name)(ol.to_tensor([1, 1]))
