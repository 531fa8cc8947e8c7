"""Moments and distribution functions of the draws of each distribution.

The seeds are fixed, so a test passes always or never; with a wrong formula it would fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.numpy import random

N = 20_000
EULER = 0.5772156649015329

#: The mean and variance of each distribution, from its textbook page.
MOMENTS: dict[str, tuple[list[Any], float, float]] = {
    "random": ([], 1 / 2, 1 / 12),
    "uniform": ([-1.0, 3.0], 1.0, 16 / 12),
    "standard_normal": ([], 0.0, 1.0),
    "normal": ([1.0, 2.0], 1.0, 4.0),
    "laplace": ([1.0, 2.0], 1.0, 8.0),
    "logistic": ([1.0, 2.0], 1.0, 4 * math.pi**2 / 3),
    "gumbel": ([1.0, 2.0], 1 + 2 * EULER, 4 * math.pi**2 / 6),
    "lognormal": ([0.5, 0.4], math.exp(0.58), math.expm1(0.16) * math.exp(1.16)),
    "standard_exponential": ([], 1.0, 1.0),
    "exponential": ([2.0], 2.0, 4.0),
    "rayleigh": ([2.0], 2 * math.sqrt(math.pi / 2), 4 * (2 - math.pi / 2)),
    "weibull": ([2.0], math.gamma(1.5), math.gamma(2.0) - math.gamma(1.5) ** 2),
    "pareto": ([9.0], 1 / 8, 9 / (64 * 7)),
    "power": ([2.0], 2 / 3, 1 / 18),
    "triangular": ([-1.0, 0.5, 3.0], 2.5 / 3, (1 + 0.25 + 9 - (-0.5 - 3 + 1.5)) / 18),
    "standard_gamma": ([0.4], 0.4, 0.4),
    "gamma": ([3.0, 2.0], 6.0, 12.0),
    "chisquare": ([3.0], 3.0, 6.0),
    "f": ([4.0, 14.0], 14 / 12, 2 * 196 * 16 / (4 * 144 * 10)),
    "standard_t": ([10.0], 0.0, 10 / 8),
    "beta": ([2.0, 0.5], 0.8, 1 / (6.25 * 3.5)),
    "wald": ([2.0, 3.0], 2.0, 8 / 3),
    "noncentral_chisquare": ([3.0, 2.0], 5.0, 14.0),
    "noncentral_f": ([4.0, 14.0, 2.0], 1.75, 2 * (36 + 8 * 12) / (144 * 10) * (14 / 4) ** 2),
    "binomial": ([10, 0.3], 3.0, 2.1),
    "negative_binomial": ([4, 0.4], 6.0, 15.0),
    "geometric": ([0.3], 1 / 0.3, 0.7 / 0.09),
    "hypergeometric": ([5, 6, 4], 20 / 11, 4 * (5 / 11) * (6 / 11) * (7 / 10)),
    "poisson": ([3.0], 3.0, 3.0),
    "logseries": ([0.4], 0.4 / 0.6 / -math.log(0.6),
                  -0.4 * (0.4 + math.log(0.6)) / (0.36 * math.log(0.6) ** 2)),
    "randint": ([2, 8], 4.5, 35 / 12),
}  # fmt: skip
ALSO_WITH_TENSORS = [name for name, (parameters, _, _) in MOMENTS.items() if parameters]


def draw(name: str, parameters: list[Any], with_tensors: bool) -> np.ndarray:
    ol.seed(20)
    if with_tensors:
        parameters = [ol.to_tensor(np.array(x)) for x in parameters]
    return np.asarray(getattr(random, name)(*parameters, size=N), "float64")


def check_moments(x: np.ndarray, mean: float, variance: float) -> None:
    """Check the sample mean and variance to within five of their standard deviations."""
    assert abs(x.mean() - mean) < 5 * math.sqrt(variance / N)
    fourth = np.mean((x - mean) ** 4)
    assert abs(np.mean((x - mean) ** 2) - variance) < 5 * math.sqrt((fourth - variance**2) / N)


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name: str) -> None:
    parameters, mean, variance = MOMENTS[name]
    check_moments(draw(name, parameters, False), mean, variance)


@pytest.mark.parametrize("name", ALSO_WITH_TENSORS)
def test_moments_with_tensors(name: str) -> None:
    parameters, mean, variance = MOMENTS[name]
    check_moments(draw(name, parameters, True), mean, variance)


def test_the_moments_would_notice_a_wrong_scale() -> None:
    with pytest.raises(AssertionError):
        check_moments(1.04 * draw("normal", [0.0, 1.0], False), 0.0, 1.0)
    with pytest.raises(AssertionError):
        check_moments(0.05 + draw("normal", [0.0, 1.0], False), 0.0, 1.0)


def standard_normal_below(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


#: Distribution functions that have a simple form.
BELOW: dict[str, tuple[list[Any], Callable[[float], float]]] = {
    "uniform": ([-1.0, 3.0], lambda x: (x + 1) / 4),
    "normal": ([1.0, 2.0], lambda x: standard_normal_below((x - 1) / 2)),
    "lognormal": ([0.5, 0.4], lambda x: standard_normal_below((math.log(x) - 0.5) / 0.4)),
    "laplace": ([1.0, 2.0], lambda x: 0.5 * math.exp((x - 1) / 2) if x < 1
                else 1 - 0.5 * math.exp((1 - x) / 2)),
    "logistic": ([1.0, 2.0], lambda x: 1 / (1 + math.exp((1 - x) / 2))),
    "gumbel": ([1.0, 2.0], lambda x: math.exp(-math.exp((1 - x) / 2))),
    "exponential": ([2.0], lambda x: -math.expm1(-x / 2)),
    "rayleigh": ([2.0], lambda x: -math.expm1(-x * x / 8)),
    "weibull": ([1.7], lambda x: -math.expm1(-(x**1.7))),
    "pareto": ([3.0], lambda x: 1 - (1 + x) ** -3),
    "power": ([2.5], lambda x: x**2.5),
    "triangular": ([-1.0, 0.5, 3.0], lambda x: (x + 1) ** 2 / 6 if x < 0.5
                   else 1 - (3 - x) ** 2 / 10),
    "standard_cauchy": ([], lambda x: 0.5 + math.atan(x) / math.pi),
    "standard_gamma": ([0.5], lambda x: math.erf(math.sqrt(x))),
    "chisquare": ([2.0], lambda x: -math.expm1(-x / 2)),
    "f": ([2.0, 4.0], lambda x: 1 - (1 + x / 2) ** -2),
    "standard_t": ([1.0], lambda x: 0.5 + math.atan(x) / math.pi),
    "beta": ([0.5, 0.5], lambda x: 2 / math.pi * math.asin(math.sqrt(x))),
}  # fmt: skip


def largest_distance(x: np.ndarray, below: Callable[[float], float]) -> float:
    """Return the Kolmogorov-Smirnov statistic, times sqrt(n): above 2.2 once in 16,000 samples."""
    wanted = np.array([below(value) for value in np.sort(x)])
    found = np.arange(len(x) + 1) / len(x)
    distance = max((found[1:] - wanted).max(), (wanted - found[:-1]).max())
    return float(distance) * math.sqrt(len(x))


@pytest.mark.parametrize("with_tensors", [False, True])
@pytest.mark.parametrize("name", BELOW)
def test_distribution_functions(name: str, with_tensors: bool) -> None:
    parameters, below = BELOW[name]
    assert largest_distance(draw(name, parameters, with_tensors and bool(parameters)), below) < 2.2


def test_the_distance_would_notice_another_distribution() -> None:
    x = draw("logistic", [0.0, math.sqrt(3) / math.pi], False)  # mean 0 and variance 1 as well
    assert largest_distance(x, standard_normal_below) > 3


@pytest.mark.parametrize("with_tensors", [False, True])
def test_vonmises(with_tensors: bool) -> None:
    x = draw("vonmises", [1.0, 2.0], with_tensors)
    assert np.abs(x).max() <= math.pi
    # The mean resultant length is I1(2) / I0(2).
    assert abs(np.mean(np.cos(x - 1)) - 0.697774657964) < 5 * x.std() / math.sqrt(N)
    assert abs(np.mean(np.sin(x - 1))) < 5 * x.std() / math.sqrt(N)


def test_zipf() -> None:
    x = draw("zipf", [3.0], False)
    zeta = 1.2020569031595942
    for k in (1, 2, 3):
        p = k**-3 / zeta
        assert abs(np.mean(x == k) - p) < 5 * math.sqrt(p * (1 - p) / N)


@pytest.mark.parametrize("with_tensors", [False, True])
def test_dirichlet(with_tensors: bool) -> None:
    alpha = [0.5, 1.5, 2.0]
    shares = draw("dirichlet", [alpha], with_tensors)
    np.testing.assert_allclose(shares.sum(1), 1.0, rtol=1e-12)
    for i, a in enumerate(alpha):
        check_moments(shares[:, i], a / 4, a * (4 - a) / (16 * 5))


def test_small_shapes_do_not_underflow() -> None:
    a = ol.to_tensor(np.full(1000, 1e-4), requires_grad=True)
    for y in (random.beta(a, a), random.dirichlet(a, size=2)):
        assert np.all(np.isfinite(y.numpy()))
        y.sum().backward()
        assert np.all(np.isfinite(a.grad.numpy()))


def test_counts_of_several_outcomes() -> None:
    counts = draw("multinomial", [10, [0.2, 0.3, 0.5]], True)
    assert np.all(counts.sum(1) == 10)
    for i, p in enumerate([0.2, 0.3, 0.5]):
        check_moments(counts[:, i], 10 * p, 10 * p * (1 - p))
    taken = draw("multivariate_hypergeometric", [[5, 6], 4], True)
    check_moments(taken[:, 0], 20 / 11, 4 * (5 / 11) * (6 / 11) * (7 / 10))


def test_choice_with_probabilities_and_without_replacement() -> None:
    ol.seed(20)
    x = random.choice(3, size=N, p=[0.2, 0.3, 0.5])
    for i, p in enumerate([0.2, 0.3, 0.5]):
        assert abs(np.mean(x == i) - p) < 5 * math.sqrt(p * (1 - p) / N)
    assert sorted(random.choice(8, size=8, replace=False)) == list(range(8))
    firsts = np.array([random.permutation(4)[0] for _ in range(2000)])
    for i in range(4):
        assert abs(np.mean(firsts == i) - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 2000)


def test_draws_of_neighbouring_keys_are_independent() -> None:
    ol.seed(20)
    one, two = random.standard_normal(N), random.standard_normal(N)
    with ol.random_scope("elsewhere"):
        three = random.standard_normal(N)
    for a, b in ((one, two), (one, three), (one[1:], two[:-1]), (one[1:], one[:-1])):
        assert abs(np.mean(a * b)) < 5 / math.sqrt(len(a))
