"""Derivatives of reductions, cumulative functions and calculus against JAX and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.autograd.rows import numbers

pytestmark = pytest.mark.peers

X = numbers((3, 4))
WITH_ZEROS = np.where(np.abs(X) < 0.8, 0.0, X)
POSITIVE = numbers((5,), 0.5, 2.0)
IN_JAX = {
    "prod": (lambda np, x: np.prod(x, axis=1), WITH_ZEROS),
    "prod of all": (lambda np, x: np.prod(x), WITH_ZEROS[:2]),
    "cumprod": (lambda np, x: np.cumprod(x, axis=1), X),
    "std": (lambda np, x: np.std(x, axis=0, ddof=1), X),
    "var where": (lambda np, x: np.var(x, axis=1, where=X > -1), X),
    "mean where": (lambda np, x: np.mean(x, axis=0, where=X > -1.5), X),
    "nanvar": (lambda np, x: np.nanvar(np.where(X > 1, np.nan, x), axis=1), X),
    "max": (lambda np, x: np.max(x, axis=1), X),
    "ptp": (lambda np, x: np.ptp(x, axis=1), X),
    "median": (lambda np, x: np.median(x, axis=0), X),
    "nanmedian": (lambda np, x: np.nanmedian(x, axis=1), X),
    "cov": (lambda np, x: np.cov(x), X),
    "cov weights": (lambda np, x: np.cov(x, aweights=POSITIVE[:4], ddof=0), X),
    "corrcoef": (lambda np, x: np.corrcoef(x, rowvar=False), X),
    "average": (lambda np, x: np.average(x, weights=POSITIVE[:4], axis=1), X),
    "diff": (lambda np, x: np.diff(x, 2, axis=0, prepend=1.0), X),
    "gradient": (lambda np, x: np.gradient(x, 0.5, axis=1), X),
    "trapezoid": (lambda np, x: np.trapezoid(x, POSITIVE[:4].cumsum()), X),
    "convolve": (lambda np, x: np.convolve(x[0], x[1, :3], "same"), X),
    "correlate": (lambda np, x: np.correlate(x[0], x[1, :3], "full"), X),
    "interp": (
        lambda np, x: np.interp(X, POSITIVE.cumsum() - 4, x[:, 0] * x[0, 1]),
        numbers((5, 2)),
    ),
    "vander": (lambda np, x: np.vander(x, 4), numbers((3,))),
    "polyval": (lambda np, x: np.polyval(x, x[:2]), numbers((4,))),
    "unwrap": (lambda np, x: np.unwrap(3 * x, axis=1), X),
    "logaddexp": (lambda np, x: np.logaddexp.reduce(x, axis=1), X),
    **{
        f"quantile {method}": (
            lambda np, x, m=method: np.quantile(x, np.array([0.1, 0.45, 0.8]), axis=1, method=m),
            X,
        )
        for method in ("linear", "lower", "higher", "midpoint", "nearest")
    },
}


@pytest.mark.parametrize("name", IN_JAX)
def test_gradients_and_second_derivatives_equal_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    f, x = IN_JAX[name]
    with jax.enable_x64(True):
        theirs = lambda x: (f(jax.numpy, x) ** 2).sum()  # noqa: E731
        first, second = jax.grad(theirs)(x), jax.hessian(theirs)(x)
    ours = lambda x: np.sum(f(np, x) ** 2)  # noqa: E731
    np.testing.assert_allclose(ol.grad(ours)(x), first, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ol.hessian(ours)(x), second, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ["cumlogsumexp", "cummax", "cummin"])
def test_running_functions_equal_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    ours = {
        "cumlogsumexp": np.logaddexp.accumulate,
        "cummax": np.maximum.accumulate,
        "cummin": np.minimum.accumulate,
    }[name]
    x = numbers((3, 7))
    with jax.enable_x64(True):
        theirs = lambda x: (getattr(jax.lax, name)(x, axis=1) ** 3).sum()  # noqa: E731
        first, second = jax.grad(theirs)(x), jax.hessian(theirs)(x)
    here = lambda x: np.sum(ours(x, axis=1) ** 3)  # noqa: E731
    np.testing.assert_allclose(ol.grad(here)(x), first, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ol.hessian(here)(x), second, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["prod", "cumprod", "std"])
def test_derivatives_to_third_order_equal_those_of_pytorch(name: str, zeros: int) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = {
        "prod": (lambda x: np.prod(x, axis=-1), lambda x: torch.prod(x, -1)),
        "cumprod": (np.cumprod, lambda x: torch.cumprod(x, -1)),
        "std": (lambda x: np.std(x, ddof=1), lambda x: torch.std(x)),
    }[name]
    x = numbers((6,), 0.3, 2.0)
    x[[4, 1, 2][:zeros]] = 0.0
    weights = np.cos(np.arange(6.0))
    t = torch.tensor(x, requires_grad=True)
    there = (torch.tensor(weights[: theirs(t).numel()]).reshape(theirs(t).shape) * theirs(t)).sum()
    here = lambda x: np.sum(weights[: np.size(ours(x))].reshape(np.shape(ours(x))) * ours(x))  # noqa: E731
    for _ in range(3):
        (g,) = torch.autograd.grad(there, t, create_graph=True)
        np.testing.assert_allclose(ol.grad(here)(x), g.detach().numpy(), rtol=1e-8, atol=1e-9)
        there = (g * torch.tensor(weights)).sum()
        here = lambda x, f=here: np.sum(ol.grad(f)(x) * weights)  # noqa: E731
