"""Recording wrappers: fast, slow and averaged weights by name, without changing the run."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give, random
from tests.optimizer.test_wrapper_states import WRAP, model, train, values

O = ol.optimizer  # noqa: E741


@pytest.mark.parametrize("wrap", WRAP)
def test_a_recorded_run_equals_an_unrecorded_one(wrap):
    plain, watched = model(), model()
    one = WRAP[wrap](ol.optimizer.Adam(0.1, parameters=plain.parameters()))
    other = WRAP[wrap](ol.optimizer.Adam(0.1, parameters=watched.parameters()))
    train(plain, one, 9)
    with ol.record(other) as trace:
        train(watched, other, 9)
    assert len(trace) == 9
    for name, value in values(plain).items():
        np.testing.assert_array_equal(values(watched)[name], value)
        np.testing.assert_array_equal(trace.parameters[name][-1], value)


def test_fast_slow_and_synchronisations():
    w = ol.Parameter([1.0], name="w")
    optimizer = O.LookAhead(O.SGD(0.25, parameters=[w]), alpha=0.5, k=2)
    with ol.record(optimizer) as trace:
        for _ in range(4):
            give(w, [1.0])
            optimizer.step()
            optimizer.clear_grad()
    assert trace["parameter"].ravel().tolist() == [1, 0.75, 0.75, 0.5, 0.5]
    assert trace["fast"].ravel().tolist() == [0.75, 0.5, 0.5, 0.25]
    assert trace["slow"].ravel().tolist() == [1, 0.75, 0.75, 0.5]
    assert trace["lead"].ravel().tolist() == [-0.25, -0.5, -0.25, -0.5]
    assert trace["synchronised"].ravel().tolist() == [0, 1, 0, 1]
    assert trace.synchronisations.tolist() == [2, 4]
    assert trace.settings["class"] == "LookAhead"
    assert trace.settings["inner_optimizer"] == "SGD"
    assert (trace.settings["alpha"], trace.settings["k"]) == (0.5, 2)


def test_norms_of_large_models():
    w = ol.Parameter(random(50, 50, dtype="float32"), name="w")
    optimizer = O.LookAhead(O.SGD(0.25, parameters=[w]), k=3)
    with ol.record(optimizer) as trace:
        for t in range(6):
            give(w, random(50, 50, seed=t))
            optimizer.step()
            optimizer.clear_grad()
    assert not trace.parameters
    assert trace.norms["slow"]["w"].shape == (6,)
    assert trace.synchronisations.tolist() == [3, 6]


def test_a_parameter_that_is_skipped():
    a, b = ol.Parameter([1.0], name="a"), ol.Parameter([2.0], name="b")
    optimizer = O.LookAhead(O.Momentum(0.25, parameters=[a, b]), k=2)
    with ol.record(optimizer) as trace:
        for t in range(3):
            give(a, [1.0])
            if t == 1:
                give(b, [1.0])
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
    assert trace.slots["slow"]["b"].ravel().tolist() == [2, 2, 2]
    assert np.isnan(trace.terms["update"]["b"][[0, 2]]).all()
    assert trace.terms["fast"]["b"].ravel().tolist() == [2, 1.75, 1.75]
    assert trace.terms["synchronised"]["b"].ravel().tolist() == [0, 0, 0]
    assert trace.synchronisations.tolist() == [2]


@pytest.mark.parametrize("kind", ["EMA", "ModelAverage"])
def test_the_average_is_what_apply_gives(kind):
    network = model()
    optimizer = WRAP[kind](O.Adam(0.1, parameters=network.parameters()))
    lent = []
    with ol.record(optimizer) as trace:
        for t in range(6):
            train(network, optimizer, 1, start=t)
            with optimizer.apply():
                lent.append(values(network))
    for t, there in enumerate(lent):
        for name, value in there.items():
            np.testing.assert_array_equal(trace.slots["average"][name][t], value)


def test_the_inner_optimizer_can_be_recorded_too():
    w = ol.Parameter([1.0], name="w")
    sgd = O.SGD(0.25, parameters=[w])
    optimizer = O.LookAhead(sgd, k=1)
    with ol.record(sgd) as inner, ol.record(optimizer) as outer:
        give(w, [1.0])
        optimizer.step()
    assert inner["parameter"].ravel().tolist() == [1, 0.75]
    assert outer["parameter"].ravel().tolist() == [1, 0.875]


def test_nothing_is_computed_when_nobody_listens(monkeypatch):
    w = ol.Parameter([1.0], name="w")
    optimizer = O.ExponentialMovingAverage.around(O.LookAhead(O.SGD(0.25, parameters=[w]), k=1))
    for cls in (O.LookAhead, O.Averaged):
        monkeypatch.setattr(cls, "_add_to_row", None)
    monkeypatch.setattr(O.ExponentialMovingAverage, "averages", None)
    give(w, [1.0])
    optimizer.step()


def test_no_synchronisations_without_look_ahead():
    race = ol.compare("parabola", {"SGD": O.SGD(0.1)}, steps=3)
    assert race["SGD"].synchronisations.tolist() == []
