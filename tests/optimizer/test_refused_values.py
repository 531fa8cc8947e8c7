"""Values that would spoil a run are refused where they are given, and nothing is changed."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import optlab as ol

optim = ol.optimizer


def adam(**more):
    p = ol.Parameter(np.array([1.0, 2.0]), name="p")
    optimizer = optim.Adam(0.1, parameters=[p], **more)
    p.grad = np.array([0.5, -0.5])
    optimizer.step()
    return p, optimizer


@pytest.mark.parametrize(
    ("name", "value", "error", "words"),
    [
        ("beta1", 1.5, ValueError, "beta1 must be in [0, 1); got 1.5"),
        ("beta1", "many", TypeError, "beta1 must be one number"),
        ("epsilon", np.nan, ValueError, "epsilon must be finite"),
        ("nonsense", 1, AttributeError, "Adam has no setting 'nonsense'"),
        ("learning_rate", 0.5, AttributeError, "optimizer.set_lr(0.01)"),
        ("amsgrad", True, ValueError, "make a new optimizer with it"),
        ("beta1", ol.ensemble(np.array([0.8, 0.9])), ValueError, "make a new optimizer with it"),
    ],
)
def test_a_setting_of_a_group_is_checked(name, value, error, words):
    _, optimizer = adam()
    h = optimizer.groups[0].h
    before = dict(vars(h))
    with pytest.raises(error, match=re.escape(words)):
        setattr(h, name, value)
    assert vars(h) == before


def test_settings_are_checked_together():
    optimizer = optim.Ftrl(0.1, parameters=[ol.Parameter([1.0])])
    with pytest.raises(ValueError, match="lr_power must be at most 0"):
        optimizer.groups[0].h.lr_power = 0.5


def test_a_setting_that_fits_is_used():
    runs = []
    for changed in (False, True):
        p, optimizer = adam() if changed else adam(beta1=0.9)
        optimizer.groups[0].h.beta1 = 0.5 if changed else 0.9
        optimizer.step()
        runs.append(p.numpy())
    assert optimizer.groups[0].h.beta1 == 0.5
    assert not np.array_equal(*runs)


@pytest.mark.parametrize("how", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_settings_of_copies_are_checked_too(how):
    optimizer = how(adam()[1])
    optimizer.groups[0].h.beta1 = 0.8
    with pytest.raises(ValueError, match="beta1"):
        optimizer.groups[0].h.beta1 = 1.5
    assert optimizer.groups[0].h.beta1 == 0.8
    optimizer.step()


def test_a_setting_cannot_be_deleted():
    with pytest.raises(AttributeError, match="beta1"):
        del adam()[1].groups[0].h.beta1


STATEFUL = {
    "Adam": lambda p: optim.Adam(0.1, parameters=[p]),
    "LookAhead": lambda p: optim.LookAhead(optim.SGD(0.1, parameters=[p]), k=2),
    "EMA": lambda p: optim.ExponentialMovingAverage.around(optim.SGD(0.1, parameters=[p])),
    "ModelAverage": lambda p: optim.ModelAverage.around(optim.SGD(0.1, parameters=[p]), 0.5),
}


@pytest.mark.parametrize("name", STATEFUL)
def test_a_state_with_nan_is_refused(name):
    p = ol.Parameter(np.array([1.0, 2.0]), name="p")
    optimizer = STATEFUL[name](p)
    for _ in range(3):
        p.grad = np.array([0.5, -0.5])
        optimizer.step()
    before = optimizer.state_dict()
    bad = optimizer.state_dict()
    key = next(k for k, v in bad.items() if isinstance(v, ol.Tensor))
    bad[key] = ol.to_tensor(np.array([np.nan, 1.0]))
    with pytest.raises(ValueError, match=f"{re.escape(key)} has 1 element that is NaN"):
        optimizer.set_state_dict(bad)
    now = optimizer.state_dict()
    np.testing.assert_array_equal(now[key].numpy(), before[key].numpy())
    optimizer.set_state_dict(before)


def test_a_member_of_an_ensemble_may_have_spoiled_itself():
    p = ol.Parameter(ol.ensemble(np.ones((2, 3))), name="p")
    optimizer = optim.Momentum(0.1, parameters=[p])
    state = optimizer.state_dict()
    values = state["p.velocity"].numpy().copy()
    values[0] = np.nan
    state["p.velocity"] = ol.to_tensor(values)
    optimizer.set_state_dict(state)
    np.testing.assert_array_equal(optimizer.state_dict()["p.velocity"].numpy(), values)


def test_a_history_of_lbfgs_with_nan_is_refused():
    p = ol.Parameter(np.array([1.0, 2.0]), name="p")
    optimizer = optim.LBFGS(0.1, max_iter=3, parameters=[p])

    def closure():
        optimizer.clear_grad()
        loss = (p**4).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    state = optimizer.state_dict()
    state["extra"]["last"]["p"][0] = ol.to_tensor(np.array([np.nan, 1.0]))
    with pytest.raises(ValueError, match="hold NaN"):
        optimizer.set_state_dict(state)
