"""Noise is drawn on the host and moved to the device of the arrays that it meets."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.rules.gamma import slope_of_gamma
from optlab.autograd.rules.random import (
    correlated_noise,
    dropout,
    noise,
    products_with_noise,
    scaled_noise,
    triangular,
)
from optlab.backend.random import Key
from tests.guarded import GuardedArray

KEY = Key(3)


X, POSITIVE = np.linspace(-1, 2, 6).reshape(3, 2), np.array([0.3, 1.0, 4.0])
CASES = {
    "scaled noise": (lambda x: scaled_noise(x, ("laplace", 0.0, 1.0), KEY, (3, 2), x.dtype), X),
    "dropout": (lambda x: dropout(x, 0.5, KEY), X),
    "correlated noise": (lambda x: correlated_noise(x, KEY, (4,)), X[:2]),
    "products with noise": (lambda x: products_with_noise(x, KEY), X),
    "triangular": (lambda x: triangular(x - 5.0, x, x + 3.0, KEY, (3, 2), x.dtype), X),
    "slope of gamma": (lambda a: slope_of_gamma(a * 1.3, a), POSITIVE),
    "gamma": (lambda a: noise(("standard_gamma", a), KEY, (3,), a.dtype, like=a), POSITIVE),
}


@pytest.mark.parametrize("name", CASES)
def test_values_on_a_device(name: str) -> None:
    f, x = CASES[name]
    found = f(GuardedArray(x))
    assert isinstance(found, GuardedArray)
    np.testing.assert_array_equal(found.hidden, f(x))


@pytest.mark.parametrize("name", ["scaled noise", "dropout", "correlated noise", "triangular"])
def test_gradients_on_a_device(name: str) -> None:
    f, x = CASES[name]
    t = ol.Tensor(GuardedArray(x), ol.to_tensor(x, requires_grad=True).node)
    y = f(t)
    (y * y).backward()
    found = t.node.grad
    wanted = ol.to_tensor(x, requires_grad=True)
    y = f(wanted)
    (y * y).backward()
    assert isinstance(found, GuardedArray)
    np.testing.assert_array_equal(found.hidden, wanted.grad.numpy())
