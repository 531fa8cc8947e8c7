"""Derivatives of draws of the gamma family with respect to their shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.rules.gamma import digamma, slope_of_gamma
from optlab.numpy import random

#: Shapes, and ranks in the distribution.
SHAPES = [0.02, 0.1, 0.5, 0.99, 1.0, 1.3, 3.0, 10.0, 40.0]
RANKS = [1e-4, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999]


def share_below(a: float, y: float) -> float:
    """Return the gamma distribution function at `y`, by its power series."""
    term = total = 1 / a
    k = a
    while term > 1e-18 * total:
        k += 1
        term *= y / k
        total += term
    return total * math.exp(a * math.log(y) - y - math.lgamma(a))


def point_at(a: float, rank: float, start: float) -> float:
    """Solve share_below(a, y) = rank by Newton's method in log(y)."""
    log_y = math.log(start)
    for _ in range(60):
        y = math.exp(log_y)
        step = (share_below(a, y) - rank) / math.exp(a * log_y - y - math.lgamma(a))
        log_y -= max(-2.0, min(2.0, step))
        if abs(step) < 1e-15:
            break
    return math.exp(log_y)


def points(a: float) -> list[tuple[float, float]]:
    """Return ranks and quantiles of the distribution that do not underflow."""
    start = (0.001 * math.gamma(a + 1)) ** (1 / a) if a < 1 else a
    found = [(rank, point_at(a, rank, start)) for rank in RANKS]
    return [(rank, y) for rank, y in found if y > 1e-100]


@pytest.mark.parametrize("a", SHAPES)
def test_the_slope_is_that_of_the_inverse_distribution_function(a: float) -> None:
    h = 1e-4 * a
    for rank, y in points(a):
        at = [point_at(a + k * h, rank, y) for k in (-2, -1, 1, 2)]
        wanted = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
        got = float(slope_of_gamma(np.array(y), np.array(a)))
        assert got == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("a", [0.1, 0.5, 1.3, 3.0, 40.0])
def test_the_slope_of_the_slope(a: float) -> None:
    h = 2e-3 * a
    for rank, y in points(a):
        at = [point_at(a + k * h, rank, y) for k in (-2, -1, 0, 1, 2)]
        weights = (-1, 16, -30, 16, -1)
        wanted = sum(w * x for w, x in zip(weights, at, strict=True)) / (12 * h * h)

        # y(a) near this point, to second order in a.
        def slope(shape: Any, at: float = y) -> Any:
            first = slope_of_gamma(np.array(at), np.array(shape.item()))
            moved = at + float(first) * (shape - shape.item())
            return slope_of_gamma(moved, shape)

        assert float(ol.grad(slope)(np.array(a))) == pytest.approx(wanted, rel=1e-4, abs=1e-8)


def test_a_draw_is_differentiable_twice() -> None:
    """The same through the tape, by backward with create_graph."""
    a = ol.to_tensor(np.array([0.5, 1.3, 3.0]), requires_grad=True)
    ol.seed(3)
    y = random.standard_gamma(a)
    y.backward(create_graph=True)
    first = a.grad
    assert first is not None
    a.grad = None
    first.backward()
    assert a.grad is not None
    for shape, at, one, two in zip(*(t.tolist() for t in (a, y, first, a.grad)), strict=True):
        rank, h = share_below(shape, at), 2e-3 * shape
        before, after = (point_at(shape + k * h, rank, at) for k in (-1, 1))
        assert one == pytest.approx((after - before) / (2 * h), rel=1e-4)
        assert two == pytest.approx((after - 2 * at + before) / h**2, rel=1e-3, abs=1e-6)


def test_digamma_to_any_order() -> None:
    zeta = {2: math.pi**2 / 6, 3: 1.2020569031595942}
    assert float(digamma(np.array(1.0))) == pytest.approx(-0.5772156649015329, rel=1e-13)
    assert float(digamma(np.array(0.01))) == pytest.approx(-100.5608854578687, rel=1e-13)
    one = ol.grad(digamma)
    assert float(one(np.array(1.0))) == pytest.approx(zeta[2], rel=1e-10)
    assert float(ol.grad(one)(np.array(1.0))) == pytest.approx(-2 * zeta[3], rel=1e-9)


# Through the draws: the mean of the derivative is the derivative of the mean.

N = 20_000
MEANS: dict[str, tuple[Callable[..., Any], list[float], list[float]]] = {
    "standard_gamma": (random.standard_gamma, [0.4], [1.0]),
    "its square": (lambda a: random.standard_gamma(a) ** 2, [1.7], [2 * 1.7 + 1]),
    "gamma": (random.gamma, [3.0, 2.0], [2.0, 3.0]),
    "chisquare": (random.chisquare, [3.0], [1.0]),
    "f": (random.f, [4.0, 14.0], [0.0, -2 / 144]),
    "t squared": (lambda df: random.standard_t(df) ** 2, [12.0], [-2 / 100]),
    "beta": (random.beta, [2.0, 0.5], [0.5 / 6.25, -2 / 6.25]),
}


@pytest.mark.parametrize("name", MEANS)
def test_derivatives_have_the_right_mean(name: str) -> None:
    f, parameters, wanted = MEANS[name]
    ol.seed(21)
    copies = [ol.to_tensor(np.full(N, x), requires_grad=True) for x in parameters]
    f(*copies).backward()
    for t, mean in zip(copies, wanted, strict=True):
        each = t.grad.numpy()
        assert abs(each.mean() - mean) < 5 * each.std() / math.sqrt(N)


def test_derivatives_of_dirichlet_have_the_right_mean() -> None:
    alpha = ol.to_tensor(np.array([0.5, 1.5, 2.0]), requires_grad=True)
    ol.seed(21)
    np.mean(random.dirichlet(alpha, size=N)[:, 0]).backward()
    np.testing.assert_allclose(alpha.grad.numpy(), [3.5 / 16, -0.5 / 16, -0.5 / 16], atol=0.006)


def test_gradients_of_float32_are_near_those_of_float64() -> None:
    found = []
    for dtype in ("float32", "float64"):
        a = ol.to_tensor(np.array([0.3, 1.5, 20.0], dtype), requires_grad=True)
        ol.seed(3)
        random.standard_gamma(a, size=(4, 3)).backward()
        assert a.grad.dtype == dtype
        found.append(a.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-4)


@pytest.mark.peers
@pytest.mark.parametrize("a", [0.003, *SHAPES, 300.0])
def test_the_slope_is_right_to_eight_digits(a: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        for y in np.quantile(np.random.default_rng(0).gamma(a, size=100_000), [*RANKS, 0.99999]):
            if y < 1e-250:
                continue
            below = mpmath.diff(lambda t, y=y: mpmath.gammainc(t, 0, y, regularized=True), a)
            density = mpmath.exp((a - 1) * mpmath.log(y) - y - mpmath.loggamma(a))
            wanted = float(-below / density)
            assert float(slope_of_gamma(np.array(y), np.array(a))) == pytest.approx(
                wanted, rel=2e-8
            )
