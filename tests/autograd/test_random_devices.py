"""Noise is drawn on the host and goes to the device of what it meets."""

from __future__ import annotations

import sys
import types
from typing import Any

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

KEY = Key(3)


class DeviceArray:
    """An array that, like CuPy's, computes with numbers and its like alone."""

    def __init__(self, host: Any) -> None:
        self.host = np.asarray(host)
        self.shape, self.dtype, self.ndim = self.host.shape, self.host.dtype, self.host.ndim

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("implicit conversion to a NumPy array")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return DeviceArray(getattr(ufunc, method)(*map(self.inside, inputs), **kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = function(*map(self.inside, args), **kwargs)
        return DeviceArray(found) if isinstance(found, np.ndarray) else found

    @staticmethod
    def inside(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            raise TypeError("a NumPy array among arrays of the device")
        return x.host if isinstance(x, DeviceArray) else x

    def astype(self, dtype: Any) -> Any:
        return DeviceArray(self.host.astype(dtype))

    def reshape(self, *shape: Any) -> Any:
        return DeviceArray(self.host.reshape(*shape))

    @property
    def T(self) -> Any:
        return DeviceArray(self.host.T)


for name in ("add", "sub", "mul", "truediv", "matmul", "lt", "le", "gt", "ge", "and", "or"):
    dunder = {"sub": "subtract", "mul": "multiply", "truediv": "divide", "lt": "less",
              "le": "less_equal", "gt": "greater", "ge": "greater_equal", "and": "logical_and",
              "or": "logical_or"}.get(name, name)  # fmt: skip
    ufunc = getattr(np, dunder)
    setattr(DeviceArray, f"__{name}__", lambda self, other, ufunc=ufunc: ufunc(self, other))
    setattr(DeviceArray, f"__r{name}__", lambda self, other, ufunc=ufunc: ufunc(other, self))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("cupy")
    module.asarray = DeviceArray  # type: ignore[attr-defined]
    module.asnumpy = lambda x: x.host  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(DeviceArray, "__module__", "cupy")


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


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", CASES)
def test_values_on_a_device(name: str) -> None:
    f, x = CASES[name]
    found = f(DeviceArray(x))
    assert isinstance(found, DeviceArray)
    np.testing.assert_array_equal(found.host, f(x))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", ["scaled noise", "dropout", "correlated noise", "triangular"])
def test_gradients_on_a_device(name: str) -> None:
    f, x = CASES[name]
    t = ol.Tensor(DeviceArray(x), ol.to_tensor(x, requires_grad=True).node)
    y = f(t)
    (y * y).backward()
    found = t.node.grad
    wanted = ol.to_tensor(x, requires_grad=True)
    y = f(wanted)
    (y * y).backward()
    assert isinstance(found, DeviceArray)
    np.testing.assert_array_equal(found.host, wanted.grad.numpy())
