"""Derivatives through functional steps, beside finite differences, and under every transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import random
from tests.optimizer.test_functional_step import MORE, WRAPPERS

TARGET = random(2, 3, seed=4)
START = random(2, 3, seed=5) + 3 * np.sign(random(2, 3, seed=5))
TARGETS = {"matrix": TARGET, "vector": random(4, seed=6)}


def loss(w: Any) -> Any:
    """A smooth loss that is no quadratic, with slopes of ordinary size."""
    return sum(np.sum(np.sqrt(1 + (w[key] - TARGETS[key]) ** 2)) for key in TARGETS)


def start() -> dict[str, np.ndarray]:
    return {"matrix": START, "vector": random(4, seed=7) - 2.5}


def run(optimizer: Any, w: Any, steps: int = 5, **given: Any) -> Any:
    """Return the loss after some steps."""
    begins = {k: given.pop(k) for k in ("initial_accumulator_value",) if k in given}
    ol.seed(0)
    state = optimizer.functional_init(w, **begins)
    for _ in range(steps):
        w, state = optimizer.functional_step(w, ol.grad(loss)(w), state, **given)
    return loss(w)


HYPER = [
    (rule, name)
    for rule, make in MORE.items()
    for name, value in make().settings.items()
    if type(value) is float
]


@pytest.mark.parametrize(("rule", "name"), HYPER)
def test_by_every_hyper_parameter(rule: str, name: str) -> None:
    optimizer = MORE[rule]()
    value = optimizer.settings[name] or 1e-3
    if rule in ("Dpsgd", "noisy Dpsgd", "fluid Dpsgd") and name == "clip":
        value = 1.0  # below the norms
    h = max(1e-6 * abs(value), 1e-7)
    if name == "epsilon":
        value, h = 1e-2, 1e-6  # one that matters

    def final(x: Any) -> Any:
        return run(optimizer, start(), **{name: x})

    slope = (final(value + h) - final(value - h)) / (2 * h)
    found = ol.grad(final)(value)
    assert found == pytest.approx(slope, rel=2e-5, abs=1e-7)


@pytest.mark.parametrize("rule", MORE)
def test_by_the_initial_weights_and_the_decay(rule: str) -> None:
    optimizer = MORE[rule](grad_clip=ol.nn.ClipGradByGlobalNorm(1.0))
    w = start()
    v = {key: random(*x.shape, seed=8) for key, x in w.items()}

    def along(s: Any) -> Any:
        return run(optimizer, {key: x + s * v[key] for key, x in w.items()})

    h = 1e-6
    assert ol.grad(along)(0.0) == pytest.approx(
        (along(h) - along(-h)) / (2 * h), rel=1e-4, abs=1e-7
    )
    by_weights = ol.grad(lambda w: run(optimizer, w))(w)
    total = sum(float(np.sum(by_weights[key] * v[key])) for key in v)
    assert total == pytest.approx(ol.grad(along)(0.0), rel=1e-9, abs=1e-12)

    def decayed(c: Any) -> Any:
        return run(optimizer, w, weight_decay=c)

    slope = (decayed(0.1 + h) - decayed(0.1 - h)) / (2 * h)
    assert ol.grad(decayed)(0.1) == pytest.approx(slope, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_through_wrappers(wrap: str) -> None:
    optimizer = WRAPPERS[wrap](ol.optimizer.Adam(0.1))
    names = {"learning_rate": 0.1, "beta1": 0.8, "alpha": 0.4, "decay": 0.7}
    own = {"alpha": "ook" in wrap and "follows" not in wrap, "decay": "EMA" in wrap}
    for name in [name for name in names if own.get(name, True)]:

        def final(x: Any, name: str = name) -> Any:
            w: Any = start()
            state = optimizer.functional_init(w)
            for _ in range(5):
                w, state = optimizer.functional_step(
                    w, ol.grad(loss)(w), state, **{name: x}
                )  # fmt: skip
            if hasattr(optimizer, "functional_averages"):
                w = optimizer.functional_averages(w, state)
            return loss(w)

        x, h = names[name], 1e-6
        slope = (final(x + h) - final(x - h)) / (2 * h)
        assert ol.grad(final)(x) == pytest.approx(slope, rel=1e-5, abs=1e-8), name


@pytest.mark.parametrize("pair", ["etas", "learning_rate_range"])
def test_by_the_pairs_of_rprop(pair: str) -> None:
    rprop = ol.optimizer.Rprop(0.3)
    values = {"etas": (0.6, 1.3), "learning_rate_range": (0.2, 0.4)}[pair]

    def final(a: Any, b: Any) -> Any:
        return run(rprop, start(), 6, **{pair: (a, b)})

    h = 1e-6
    found = ol.grad(final, argnums=(0, 1))(*values)
    for i in range(2):
        up = [x + h * (i == k) for k, x in enumerate(values)]
        down = [x - h * (i == k) for k, x in enumerate(values)]
        assert found[i] == pytest.approx((final(*up) - final(*down)) / (2 * h), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("clip", ["value", "norm", "global norm"])
@pytest.mark.parametrize("bound", [0.05, 100.0])
def test_through_clips(clip: str, bound: float) -> None:
    clips = {
        "value": ol.nn.ClipGradByValue, "norm": ol.nn.ClipGradByNorm,
        "global norm": ol.nn.ClipGradByGlobalNorm,
    }  # fmt: skip
    optimizer = ol.optimizer.Momentum(0.1, grad_clip=clips[clip](bound))
    w = start()
    v = {key: random(*x.shape, seed=8) for key, x in w.items()}

    def along(s: Any) -> Any:
        return run(optimizer, {key: x + s * v[key] for key, x in w.items()})

    h = 1e-5
    assert ol.grad(along)(0.0) == pytest.approx((along(h) - along(-h)) / (2 * h), rel=1e-6)


# Transforms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", MORE)
def test_many_rates_at_once_equal_a_loop(rule: str) -> None:
    optimizer = MORE[rule](grad_clip=ol.nn.ClipGradByGlobalNorm(1.0), weight_decay=0.01)
    rates = np.array([0.3, 0.1, 0.5]) * optimizer.get_lr()

    def final(rate: Any) -> Any:
        return run(optimizer, start(), 4, learning_rate=rate)

    found = np.asarray(ol.vmap(final)(rates))
    slopes = np.asarray(ol.vmap(ol.grad(final))(rates))
    np.testing.assert_allclose(found, [final(rate) for rate in rates], 1e-12)
    np.testing.assert_allclose(slopes, [ol.grad(final)(rate) for rate in rates], 1e-8, 1e-10)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_many_networks_at_once_equal_a_loop(wrap: str) -> None:
    """The state goes into `vmap` and comes out of it, counts and keys included."""
    optimizer = WRAPPERS[wrap](ol.optimizer.Dpsgd(0.1, 2.0, 4.0, 0.3))
    several = np.stack([random(2, 2, seed=k) for k in range(3)])

    def step(w: Any, state: Any) -> Any:
        return optimizer.functional_step(w, 2 * w, state)

    ol.seed(0)
    w, state = several, ol.vmap(optimizer.functional_init)(several)
    for _ in range(4):
        w, state = ol.vmap(step)(w, state)
    for k in range(3):
        ol.seed(0)
        alone, own = several[k], optimizer.functional_init(several[k])
        for _ in range(4):
            alone, own = step(alone, own)
        np.testing.assert_allclose(np.asarray(w)[k], alone, 1e-12)


def test_second_derivatives_jacobians_and_recomputation() -> None:
    adam = ol.optimizer.Adam(0.1)

    def final(x: Any) -> Any:
        return run(adam, start(), 4, learning_rate=x[0], beta1=x[1])

    x, h = np.array([0.1, 0.8]), 1e-5
    slope = ol.grad(final)
    wanted = np.stack([(slope(x + h * e) - slope(x - h * e)) / (2 * h) for e in np.eye(2)])
    np.testing.assert_allclose(ol.hessian(final)(x), wanted, 1e-5)
    np.testing.assert_allclose(ol.hvp(final, x, np.array([1.0, 2.0])), wanted @ [1, 2], 1e-5)

    def weights(x: Any) -> Any:
        w: Any = START
        state = adam.functional_init(w)
        for _ in range(3):
            w, state = adam.functional_step(w, w - TARGET, state, learning_rate=x[0], beta1=x[1])
        return w

    wanted = [(weights(x + h * e) - weights(x - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(ol.jacobian(weights)(x), np.stack(wanted, -1), 1e-6, 1e-8)

    def recomputed(rate: Any) -> Any:
        w, state = start(), adam.functional_init(start())

        def step(rate: Any, w: Any, state: Any) -> Any:
            return adam.functional_step(w, ol.grad(loss)(w), state, learning_rate=rate)

        for _ in range(4):
            w, state = ol.recompute(step, rate, w, state)
        return loss(w)

    plain = ol.grad(lambda rate: run(adam, start(), 4, learning_rate=rate))(0.1)
    assert ol.grad(recomputed)(0.1) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_nothing_widens(wrap: str) -> None:
    """float32 parameters stay float32 beside a rate in float64, and so does their state."""
    optimizer = WRAPPERS[wrap](ol.optimizer.Adam(0.1, weight_decay=0.1))
    w: Any = [START.astype("float32")]
    rate = ol.to_tensor(0.1, dtype="float64", requires_grad=True)
    state = optimizer.functional_init(w)
    for _ in range(3):
        w, state = optimizer.functional_step(w, [w[0] * 2], state, learning_rate=rate, beta2=rate)
    assert w[0].dtype == np.float32
    arrays: list[Any] = []

    def walk(x: Any) -> None:
        for part in x.values() if isinstance(x, dict) else x:
            walk(part) if isinstance(part, (dict, list)) else arrays.append(part)

    walk(state)
    assert {str(x.dtype) for x in arrays if getattr(x, "shape", ())} == {"float32"}
    w[0].sum().backward()
    assert rate.grad.dtype == np.float64


def test_parameters_without_a_slope_do_not_spoil_the_rest() -> None:
    """The root of a mean square of 0 has an infinite slope, which is that of nothing here."""
    for rule in ("Adam", "RMSProp", "Adagrad", "NAdam", "Adadelta", "Lamb"):
        optimizer = MORE[rule]()
        w0 = np.array([1.0, 2.0])

        def final(rate: Any, optimizer: Any = optimizer, w0: Any = w0) -> Any:
            w = w0
            state = optimizer.functional_init(w)
            for _ in range(3):
                slope = ol.grad(lambda w: w[0] ** 2)(w)
                w, state = optimizer.functional_step(w, slope, state, learning_rate=rate)
            return w[0] ** 2

        h = 1e-6
        slope = (final(0.1 + h) - final(0.1 - h)) / (2 * h)
        assert ol.grad(final)(0.1) == pytest.approx(slope, rel=1e-6), rule
