"""A setting that is being differentiated: its gradient is right, or the function refuses it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import optlab as ol
import optlab.nn.functional as F
from optlab.autograd.tensor import SilentDetachError
from tests.nn.valid_calls import CALLS, CHANNELS, LAYERS, X

SETTINGS = [
    (name, argument)
    for name, given in CALLS.items()
    for argument, value in given.items()
    if isinstance(value, float) or getattr(value, "dtype", None) == np.float64
    if (name, argument) != ("instance_norm", "momentum")  # refuses all values but its default
]


def assert_gradient_or_refusal(f: Any, start: float, draws: bool = False) -> None:
    """Assert that the gradient is that of finite differences, or that there is a SilentDetachError.

    What `draws` is refused, as no finite difference tells its gradient.
    """
    try:
        found = float(ol.grad(f)(start))
    except SilentDetachError:
        with pytest.raises(SilentDetachError, match="Write"):
            ol.value_and_grad(f)(start)
        return
    assert not draws
    h = 1e-6 * max(abs(start), 1e-3)
    above, below = (f(x) for x in (start + h, start - h))
    expected = (ol.to_tensor(above).item() - ol.to_tensor(below).item()) / (2 * h)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def weighted(y: Any) -> Any:
    """Return a sum of an array with weights of its own."""
    return np.sum(y * np.random.default_rng(1).normal(size=y.shape))


@pytest.mark.parametrize(("name", "argument"), SETTINGS)
def test_argument_of_a_function(name: str, argument: str) -> None:
    given = CALLS[name]
    base = given[argument]

    def loss(t: Any) -> Any:
        ol.seed(3)
        value = t if isinstance(base, float) else base * t
        return weighted(getattr(F, name)(**{**given, argument: value}))

    draws = argument in ("p", "dropout_p") and "drop" in name + argument
    assert_gradient_or_refusal(loss, base if isinstance(base, float) else 1.0, draws)


def float_settings(callable_: Any) -> list[str]:
    return [
        name
        for name, one in inspect.signature(callable_).parameters.items()
        if type(one.default) is float or "float" in str(one.annotation)
    ]


def test_no_floating_setting_of_a_function_is_left_out() -> None:
    checked = [*SETTINGS, ("instance_norm", "momentum"), ("rms_norm", "epsilon")]  # epsilon is eps
    named = [
        (name, argument) for name in F.__all__ for argument in float_settings(getattr(F, name))
    ]
    assert [case for case in named if case not in checked] == []


@pytest.mark.parametrize("name", ["leaky_relu", "softplus", "hardtanh", "elu", "huber_loss"])
def test_a_setting_with_a_gradient_does_not_widen_float32(name: str) -> None:
    given = {
        key: np.float32(v) if isinstance(v, np.ndarray) else v for key, v in CALLS[name].items()
    }
    argument = next(key for key, value in given.items() if isinstance(value, float))
    t = ol.to_tensor(np.float64(given[argument]), requires_grad=True)
    y = getattr(F, name)(**{**given, argument: t})
    assert y.dtype == np.float32
    y.sum().backward()
    assert t.grad.dtype == np.float64


def test_under_no_grad_the_value_of_a_setting_is_taken() -> None:
    p = ol.to_tensor(1.0, requires_grad=True)
    with ol.no_grad():
        assert F.dropout(np.ones(3), p).tolist() == [0, 0, 0]
    with pytest.raises(SilentDetachError, match=r"p=t.*p=t\.item\(\)"):
        F.dropout(np.ones(3), p)


def test_running_statistics_that_need_a_gradient_are_not_overwritten() -> None:
    mean = ol.to_tensor(CHANNELS, requires_grad=True)
    with pytest.raises(SilentDetachError, match="running_mean"):
        F.batch_norm(X, mean, CHANNELS, training=True)
    assert mean.tolist() == CHANNELS.tolist()


#: Values of settings whose default is no number.
VALUES = {"norm_type": 3.0, "divisor_override": 3.0}


def layer_settings() -> list[tuple[str, str]]:
    layers = [
        name
        for name in ol.nn.__all__
        if isinstance(cls := getattr(ol.nn, name), type) and issubclass(cls, ol.nn.Layer)
    ]
    return [
        (name, setting)
        for name in layers
        for setting in float_settings(getattr(ol.nn, name))
        if "InstanceNorm" not in name or setting != "momentum"  # refuses all but its default
    ]


@pytest.mark.parametrize(("name", "setting"), layer_settings())
def test_setting_of_a_layer(name: str, setting: str) -> None:
    cls = getattr(ol.nn, name)
    given, inputs = LAYERS.get(name, ({}, (X,)))
    default = inspect.signature(cls).parameters[setting].default
    drops = setting.endswith("dropout") or "Dropout" in name
    known = float(default) if isinstance(default, (int, float)) else VALUES.get(setting, 0.5)
    start = 0.5 if drops else known

    def loss(t: Any) -> Any:
        ol.seed(3)
        layer = cls(**{**given, setting: t})
        layer.to(dtype="float64")
        y = layer(*inputs)
        return weighted(y[0] if isinstance(y, tuple) else y)

    assert_gradient_or_refusal(loss, start, drops)


INITIALIZERS = [
    (name, setting)
    for name in ol.nn.initializer.__all__
    if name != "Initializer"
    for setting in float_settings(getattr(ol.nn.initializer, name))
]


@pytest.mark.parametrize(("name", "setting"), [*INITIALIZERS, ("Assign", "value")])
def test_setting_of_an_initializer(name: str, setting: str) -> None:
    make = getattr(ol.nn.initializer, name)

    def loss(t: Any) -> Any:
        if name == "calculate_gain":
            return make("leaky_relu", t) * 1.0
        value = t * np.ones((2, 2)) if name == "Assign" else t
        layer = ol.nn.Linear(2, 2, weight_attr=make(**{setting: value}))
        return layer(ol.ones([1, 2])).sum()

    loss(0.5)
    with pytest.raises(SilentDetachError):
        ol.grad(loss)(0.5)
