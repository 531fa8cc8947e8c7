"""Races of one point as programs of floats: the traces of the general run, to the bit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from optlab.lab import recorded_path
from tests.optimizer.helpers import EACH

optim = ol.optimizer
STEPS = 150
RULES = [name for name, make in EACH.items() if make().kind == "elementwise"]


@pytest.fixture
def taken(monkeypatch):
    """Return what the runs of floats returned."""
    found = []
    run_path = recorded_path.run_path

    def counting(*args):
        found.append(run_path(*args))
        return found[-1]

    monkeypatch.setattr(recorded_path, "run_path", counting)
    return found


def race(problem, make, monkeypatch=None, steps=STEPS, **more):
    """Race one optimizer; with `monkeypatch` by the general run."""
    if monkeypatch is not None:
        monkeypatch.setattr(recorded_path, "FEWEST", 1 << 40)
    return ol.compare(problem, {"it": make()}, steps=steps, **more)


def assert_same(one, other):
    a, b = one["it"], other["it"]
    assert a.stopped == b.stopped
    assert len(a) == len(b)
    assert set(a.columns) == set(b.columns)
    assert a.names == b.names
    for name in a.names:
        if name == "seconds":
            assert len(a.seconds) == len(b.seconds)
            assert (np.diff(a.seconds) >= 0).all()
            continue
        x, y = a[name], b[name]
        np.testing.assert_array_equal(x, y, strict=True)
    np.testing.assert_array_equal(a.step, b.step, strict=True)
    np.testing.assert_array_equal(a.parameters["point"], b.parameters["point"], strict=True)
    np.testing.assert_equal(one.final_loss, other.final_loss)
    np.testing.assert_array_equal(one.evaluations["it"], other.evaluations["it"], strict=True)
    assert repr(a) == repr(b)


@pytest.mark.parametrize("problem", ["rosenbrock", "quadratic", "himmelblau"])
@pytest.mark.parametrize("name", RULES)
def test_every_elementwise_rule(name, problem, monkeypatch, taken):
    found = race(problem, EACH[name])
    if name in ("SGD", "Momentum", "Adam", "AMSGrad", "RMSProp", "Lion", "Adadelta", "AdamW"):
        assert taken[0] is not None
    assert_same(found, race(problem, EACH[name], monkeypatch))


CASES = {
    "decay": lambda: optim.Adam(0.1, weight_decay=0.1),
    "L1": lambda: optim.Momentum(0.001, weight_decay=ol.regularizer.L1Decay(0.1)),
    "schedule": lambda: optim.Adam(optim.lr.StepDecay(0.1, step_size=20)),
    "plateau": lambda: optim.Adam(optim.lr.ReduceOnPlateau(0.1, patience=3)),
    "RAdam": lambda: optim.RAdam(0.1),
    "beta": lambda: optim.Adam(0.1, beta1=0.0, beta2=0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_settings_and_schedules(name, monkeypatch, taken):
    found = race("rosenbrock", CASES[name])
    assert taken[0] is not None
    assert_same(found, race("rosenbrock", CASES[name], monkeypatch))


GENERAL = {
    "clip": lambda: optim.Adam(0.1, grad_clip=ol.nn.ClipGradByNorm(1.0)),
    "LookAhead": lambda: optim.LookAhead(optim.SGD(1e-3)),
    "Muon": lambda: optim.Muon(0.1),
    "policy": lambda: optim.SGD(1e-3, not_finite="raise"),
}


@pytest.mark.parametrize("name", GENERAL)
def test_what_needs_the_general_run(name, taken):
    found = race("rosenbrock", GENERAL[name])
    assert not taken
    assert len(found["it"]) == STEPS


@pytest.mark.parametrize("rate", [0.01, 1.0, 1e200])
def test_a_run_that_diverges(rate, monkeypatch, taken):
    def make():
        return optim.SGD(rate)

    found = race("rosenbrock", make)
    assert "diverged at step" in found["it"].stopped
    assert_same(found, race("rosenbrock", make, monkeypatch))


def bowl(x, y):
    return np.sqrt(x * x + 4 * y * y) + 0.5 * np.abs(x - y)


def test_a_function_of_the_user(monkeypatch):
    assert_same(
        race(bowl, lambda: optim.Adam(0.1), start=(1.0, 2.0)),
        race(bowl, lambda: optim.Adam(0.1), monkeypatch, start=(1.0, 2.0)),
    )


@pytest.mark.parametrize("of", [lambda x: (x - 1.0) ** 4 - x * x, lambda x: x * np.cos(x)])
def test_a_curve(of, monkeypatch):
    assert_same(
        race(of, lambda: optim.RMSProp(0.05), start=(0.5,)),
        race(of, lambda: optim.RMSProp(0.05), monkeypatch, start=(0.5,)),
    )


def test_gradient_noise(monkeypatch, taken):
    problem = ol.problems.noisy("rosenbrock", 0.5)
    found = race(problem, lambda: optim.Adam(0.1), seed=3)
    assert taken[0] is not None
    assert_same(found, race(problem, lambda: optim.Adam(0.1), monkeypatch, seed=3))


def test_a_quotient_by_zero_is_that_of_numpy(monkeypatch, taken):
    """Without epsilon 0 / 0 is NaN for NumPy, and an error for Python."""

    def make():
        return optim.Adam(0.1, epsilon=0.0)

    found = race("quadratic", make, start=(1.0, 0.0))
    assert taken == [None]
    assert_same(found, race("quadratic", make, monkeypatch, start=(1.0, 0.0)))


def test_a_square_root_below_zero(monkeypatch):
    def make():
        return optim.Adam(0.1, beta2=0.0)

    assert_same(race("beale", make), race("beale", make, monkeypatch))


def test_another_listener_hears_every_step(taken):
    heard = []
    with events.step_taken.subscribed(lambda optimizer, updates: heard.append(len(updates))):
        race("rosenbrock", lambda: optim.Adam(0.1))
    assert heard == [1] * STEPS
    assert not taken


def test_an_interrupt_keeps_what_there_is(monkeypatch):
    whole = race("rosenbrock", lambda: optim.Adam(0.1))
    left = 41

    def clock():
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return perf_counter()

    perf_counter = recorded_path.time.perf_counter
    with monkeypatch.context() as patch:
        patch.setattr(recorded_path, "time", SimpleNamespace(perf_counter=clock))
        both = {"it": optim.Adam(0.1), "never": optim.SGD(1e-3)}
        found = ol.compare("rosenbrock", both, steps=STEPS)
    trace = found["it"]
    assert list(found) == ["it"]
    assert trace.stopped == "interrupted in step 41"
    np.testing.assert_array_equal(trace.loss, whole["it"].loss[:40], strict=True)
