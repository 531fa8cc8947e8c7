"""One optimizer for many runs: settings with a value per member, parameters that are ensembles."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH, random

RATES = [0.01, 0.05, 0.1, 0.5]
START = random(len(RATES), 3, dtype="float32")

CLIPS = {
    "none": lambda: None,
    "global norm": lambda: ol.nn.ClipGradByGlobalNorm(0.5),
    "norm": lambda: ol.nn.ClipGradByNorm(0.3),
    "value": lambda: ol.nn.ClipGradByValue(0.2),
}


def run(make, start, steps=5):
    """Train two parameters on a nonconvex loss."""
    p, q = ol.Parameter(start, name="p"), ol.Parameter(start * np.float32(2), name="q")
    optimizer = make([p, q])
    for _ in range(steps):
        ((p * p * p).sum() + (p * q).sum()).backward()
        optimizer.step()
        optimizer.clear_grad()
    return p, q, optimizer


def members(p):
    return ol.members(p.detach()).numpy()


def assert_each_member_is_a_run_of_its_own(make_one, together):
    p, q, _ = run(together, ol.ensemble(START))
    for k in range(len(RATES)):
        own_p, own_q, _ = run(lambda tensors, k=k: make_one(k, tensors), START[k])
        np.testing.assert_array_equal(members(p)[k], own_p.numpy(), strict=True)
        np.testing.assert_array_equal(members(q)[k], own_q.numpy(), strict=True)


@pytest.mark.parametrize("name", list(EACH))
@pytest.mark.parametrize("clip", CLIPS)
def test_a_hundred_rates_at_once(name, clip):
    def make(rate, tensors):
        optimizer = EACH[name](parameters=tensors, grad_clip=CLIPS[clip]())
        optimizer.set_lr(rate)
        return optimizer

    assert_each_member_is_a_run_of_its_own(
        lambda k, tensors: make(RATES[k], tensors),
        lambda tensors: make(ol.ensemble(RATES), tensors),
    )


def test_several_settings_at_once():
    betas, epsilons = [0.0, 0.5, 0.9, 0.99], [1e-8, 1e-4, 1e-2, 1.0]
    assert_each_member_is_a_run_of_its_own(
        lambda k, tensors: ol.optimizer.Adam(
            RATES[k], betas[k], epsilon=epsilons[k], parameters=tensors, weight_decay=0.1
        ),
        lambda tensors: ol.optimizer.Adam(
            ol.ensemble(RATES),
            ol.to_tensor(ol.ensemble(betas)),
            epsilon=ol.ensemble(epsilons),
            parameters=tensors,
            weight_decay=0.1,
        ),
    )


def test_the_norm_of_many_parameters_is_that_of_a_run_of_its_own():
    """The sum is added in the same order, whatever the order of the parameters."""
    starts = [random(len(RATES), 7, seed=i) for i in range(9)]

    def last(points, rate, order=1):
        ps = [ol.Parameter(point, name=f"p{i}") for i, point in enumerate(points)]
        clip = ol.nn.ClipGradByGlobalNorm(0.5)
        optimizer = ol.optimizer.SGD(rate, parameters=ps[::order], grad_clip=clip)
        for _ in range(5):
            sum((p * p * p).sum() for p in ps).backward()
            optimizer.step()
            optimizer.clear_grad()
        return ps

    together = last([ol.ensemble(start) for start in starts], ol.ensemble(RATES))
    for k, rate in enumerate(RATES):
        for order in (1, -1):
            alone = last([start[k] for start in starts], rate, order)
            for p, q in zip(together, alone, strict=True):
                np.testing.assert_array_equal(members(p)[k], q.numpy())


def test_in_a_group():
    momenta = [0.0, 0.5, 0.9, 0.99]
    assert_each_member_is_a_run_of_its_own(
        lambda k, tensors: ol.optimizer.Momentum(
            0.01, parameters=[{"params": tensors, "momentum": momenta[k]}]
        ),
        lambda tensors: ol.optimizer.Momentum(
            0.01, parameters=[{"params": tensors, "momentum": ol.ensemble(momenta)}]
        ),
    )


def test_one_rate_for_all_members():
    assert_each_member_is_a_run_of_its_own(
        lambda k, tensors: ol.optimizer.Adam(0.1, parameters=tensors),
        lambda tensors: ol.optimizer.Adam(0.1, parameters=tensors),
    )


def test_the_state_goes_on():
    def make(tensors):
        return ol.optimizer.Adam(ol.ensemble(RATES), parameters=tensors)

    _, _, optimizer = run(make, ol.ensemble(START), steps=3)
    fresh = make([ol.Parameter(ol.ensemble(START), name=name) for name in "pq"])
    fresh.set_state_dict(optimizer.state_dict())
    assert fresh.get_lr() == optimizer.get_lr()
    assert fresh.state_dict()["p.t"] == 3


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ol.optimizer.SGD(ol.ensemble([0.1, -0.1])), ValueError, "learning_rate must be"),
        (
            lambda: ol.optimizer.Adam(ol.ensemble([0.1, 0.2]), beta1=ol.ensemble([0.1, 0.2, 0.3])),
            ValueError,
            "equally many: learning_rate has 2, beta1 has 3",
        ),
        (
            lambda: run(lambda t: ol.optimizer.SGD(ol.ensemble(RATES), parameters=t), START[0]),
            TypeError,
            r"needs parameters that are ensembles: ol.Parameter\(ol.ensemble\(array\)\)",
        ),
        (
            lambda: ol.record(ol.optimizer.SGD(0.1, parameters=[ol.Parameter(ol.ensemble(START))])),
            TypeError,
            "record keeps one run",
        ),
    ],
)
def test_what_does_not_fit_is_said(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_as_many_rates_as_members():
    def make(rates):
        w = ol.Parameter(ol.ensemble(START), name="w")
        return ol.optimizer.SGD(ol.ensemble(rates), parameters=[w])

    words = "learning_rate has 2 values, one a member, but w is an ensemble of 4 members"
    with pytest.raises(ValueError, match=words):
        make([0.1, 0.2])
    optimizer = make(RATES)
    before = optimizer.get_lr()
    with pytest.raises(ValueError, match=words):
        optimizer.set_lr(ol.ensemble([0.1, 0.2]))
    assert optimizer.get_lr() is before
    optimizer.set_lr(ol.ensemble([0.1, 0.2, 0.3, 0.4]))
    assert optimizer.get_lr().values == [0.1, 0.2, 0.3, 0.4]
    optimizer.set_lr(0.5)
    assert optimizer.get_lr() == 0.5


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("decay", ol.optimizer.ExponentialMovingAverage),
        ("alpha", lambda x: ol.optimizer.LookAhead(ol.optimizer.SGD(0.1), alpha=x)),
        ("clip_norm", ol.nn.ClipGradByNorm),
        ("learning_rate", lambda x: setattr(ol.Parameter([1.0]), "learning_rate", x)),
    ],
)
def test_what_all_members_share_is_one_number(name, make):
    with pytest.raises(TypeError, match=f"{name} must be one number for all members .* got 2"):
        make(ol.ensemble([0.1, 0.2]))


def test_raise_takes_finite_steps_and_names_the_members_that_are_not():
    def make(tensors, policy="raise"):
        return ol.optimizer.Adam(0.1, parameters=tensors, not_finite=policy)

    p, q, optimizer = run(make, ol.ensemble(START))
    other, _, _ = run(lambda tensors: make(tensors, "pass"), ol.ensemble(START))
    np.testing.assert_array_equal(members(p), members(other))
    bad = START.copy()
    bad[1, 2] = bad[3, 0] = bad[3, 1] = np.nan
    before = members(p)
    with pytest.raises(
        FloatingPointError, match=r"gradient of q .* 3 elements .* in members 1, 3 of the ensemble"
    ):
        optimizer.apply_gradients([(p, ol.ensemble(START)), (q, ol.ensemble(bad))])
    np.testing.assert_array_equal(members(p), before)


def test_skip_is_refused_where_the_parameters_are_known():
    with pytest.raises(ValueError, match=r"not_finite='skip' would skip .* some members"):
        ol.optimizer.SGD(0.1, parameters=[ol.Parameter(ol.ensemble(START))], not_finite="skip")
    template = ol.optimizer.SGD(0.1, not_finite="skip")
    with pytest.raises(ValueError, match=r"not_finite='skip'"):
        template.bind([ol.Parameter(ol.ensemble(START))])


def test_a_rule_that_chooses_by_a_setting_says_so():
    class Choosing(ol.optimizer.Optimizer):
        hyperparameters = {"learning_rate": 0.1, "bound": 1.0}

        def update(self, p, g, s, h, c):
            return p - h.learning_rate * (g if h.bound > 0.5 else -g), {}

    with pytest.raises(TypeError, match="a choice by a setting that has 4 values"):
        run(lambda t: Choosing(0.1, ol.ensemble(RATES), parameters=t), ol.ensemble(START))
