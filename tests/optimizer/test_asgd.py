"""ASGD with decay, as its document prints it: outside of the averaged gradient.

`documented` is a float64 transcription of the formula on the page of paddle.optimizer.ASGD:
d = d - y_i + f_i'(x), y_i = f_i'(x), x = x - learning_rate (d / min(m + 1, n) + lambda x).
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give

ASGD = ol.optimizer.ASGD


def documented(x, gradients, rate, n, penalty):
    d, y = 0.0, [0.0] * n
    for m, g in enumerate(gradients):
        i = m % n
        d = d - y[i] + g
        y[i] = g
        x = x - rate * (d / min(m + 1, n) + penalty(x))
    return x


def run(optimizer, p, gradients):
    for g in gradients:
        give(p, g)
        optimizer.step()
        optimizer.clear_grad()
    return p.numpy()


def gradients(size, dtype="float64"):
    return np.random.default_rng(1).standard_normal((11, size)).astype(dtype)


DECAYS = [
    (0.5, lambda x: 0.5 * x),
    (ol.regularizer.L2Decay(0.5), lambda x: 0.5 * x),
    (ol.regularizer.L1Decay(0.5), lambda x: 0.5 * np.sign(x)),
    (None, lambda x: 0.0),
]


@pytest.mark.parametrize(("decay", "penalty"), DECAYS)
@pytest.mark.parametrize("n", [1, 3, 4])
def test_the_decay_stands_beside_the_mean(decay, penalty, n):
    start = np.array([1.0, -2.0, 0.25])
    p = ol.Parameter(start)
    found = run(ASGD(0.1, n, [p], decay), p, gradients(3))
    np.testing.assert_allclose(found, documented(start, gradients(3), 0.1, n, penalty), rtol=1e-12)


def test_a_regularizer_of_the_parameter_takes_the_place_of_the_optimizer_s():
    start = np.array([1.0, -2.0, 0.25])
    p = ol.Parameter(start, regularizer=ol.regularizer.L1Decay(0.25))
    found = run(ASGD(0.1, 3, [p], 0.5), p, gradients(3))
    expected = documented(start, gradients(3), 0.1, 3, lambda x: 0.25 * np.sign(x))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_clip_is_of_the_gradient_alone():
    start = np.array([1.0, -2.0, 0.25])
    p = ol.Parameter(start)
    found = run(ASGD(0.1, 3, [p], 0.5, ol.nn.ClipGradByValue(0.5)), p, gradients(3))
    clipped = np.clip(gradients(3), -0.5, 0.5)
    expected = documented(start, clipped, 0.1, 3, lambda x: 0.5 * x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("decay", [0.5, ol.regularizer.L1Decay(0.5)])
def test_large_parameters_take_the_same_steps_to_the_bit(decay):
    """They are updated in place and block by block, small ones and recorded ones are not."""
    size = 20_000
    start = np.random.default_rng(0).standard_normal(size).astype("float32")
    given = gradients(size, "float32")
    p, q = ol.Parameter(start), ol.Parameter(start)
    fused = ASGD(0.1, 3, [p], decay)
    found = run(fused, p, given)
    assert "captured" in next(iter(fused.execution.values()))
    plain = ASGD(0.1, 3, [q], decay)
    with ol.record(plain, probes="light"):
        np.testing.assert_array_equal(run(plain, q, given), found)


def test_16_bits_with_decay():
    start = np.array([1.0, -2.0, 0.25], "float16")
    p = ol.Parameter(start)
    found = run(ASGD(0.1, 3, [p], 0.5, None, True), p, gradients(3, "float16"))
    expected = documented(start.astype(float), gradients(3), 0.1, 3, lambda x: 0.5 * x)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_the_stored_gradients_are_those_of_the_loss():
    p = ol.Parameter(np.array([1.0]), name="w")
    optimizer = ASGD(0.1, 2, [p], 0.5)
    run(optimizer, p, [np.array([3.0]), np.array([5.0])])
    state = optimizer.state_dict()
    assert [state[f"w.{slot}"].item() for slot in ("d", "y0", "y1")] == [8.0, 3.0, 5.0]


def test_arguments_stand_in_the_documented_order():
    """(learning_rate, batch_num, parameters, weight_decay, grad_clip, multi_precision, name)."""
    p = ol.Parameter([1.0])
    clip = ol.nn.ClipGradByValue(1.0)
    optimizer = ASGD(0.1, 3, [p], 0.5, clip, True, "mine")
    assert optimizer.name == "mine"
    (group,) = optimizer.groups
    assert group.parameters == [p]
    assert (group.regularizer.coeff, group.grad_clip, group.h.batch_num) == (0.5, clip, 3)
    shown = [
        (one.name, one.default)
        for one in inspect.signature(ASGD).parameters.values()
        if one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    assert shown == [
        ("learning_rate", 0.001), ("batch_num", 1), ("parameters", None), ("weight_decay", None),
        ("grad_clip", None), ("multi_precision", False), ("name", None),
    ]  # fmt: skip


@pytest.mark.parametrize("decay", [None, 0.5])
def test_an_ensemble_takes_the_steps_of_its_members(decay):
    starts = np.array([[1.0, 2.0], [3.0, -4.0]])
    p = ol.Parameter(ol.ensemble(starts))
    optimizer = ASGD(0.1, 2, [p], decay)
    for g in gradients(2)[:5]:
        (p * g).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    for start, end in zip(starts, p.data.members, strict=True):
        q = ol.Parameter(start)
        np.testing.assert_array_equal(end, run(ASGD(0.1, 2, [q], decay), q, gradients(2)[:5]))


def test_a_sweep_of_rates():
    rates = [0.01, 0.1]
    runs = ol.sweep("quadratic", ASGD, {"learning_rate": rates}, steps=5)
    race = ol.compare("quadratic", {str(rate): ASGD(rate) for rate in rates}, steps=5)
    for i, rate in enumerate(rates):
        assert runs.loss[i].tolist()[:5] == race[str(rate)].loss.tolist()
