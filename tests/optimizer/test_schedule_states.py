"""State dicts of schedules: accepted and refused ones, and properties of all schedules."""

from __future__ import annotations

import copy
import itertools
import json
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import optlab as ol
from tests.optimizer.schedules import PLATEAUS, SETTINGS, drive, make, metrics

lr = ol.optimizer.lr
nan = float("nan")


# States.


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda s: [s], TypeError, "the state of a schedule is a dict"),
        (lambda s: {**s, "schedule": "StepDecay"}, ValueError,
         "state of a StepDecay, but the schedule is a LinearWarmup"),
        (lambda s: {k: v for k, v in s.items() if k != "last_lr"}, ValueError, "lacks last_lr"),
        (lambda s: {**s, "best": 1, "colour": 2}, ValueError, "has unexpected best, colour"),
        (lambda s: {k: v for k, v in s.items() if k != "LinearWarmup_LR"}, ValueError,
         "lacks LinearWarmup_LR"),
        (lambda s: {**s, "last_epoch": 1.5}, TypeError, "last_epoch must be a whole number"),
        (lambda s: {**s, "last_epoch": -1}, ValueError, "last_epoch must be a whole number of"),
        (lambda s: {**s, "last_lr": nan}, ValueError, "last_lr must be finite"),
        (lambda s: {**s, "last_lr": "much"}, TypeError, "last_lr must be one number"),
        (lambda s: {**s, "LinearWarmup_LR": {**s["LinearWarmup_LR"], "schedule": "LinearLR"}},
         ValueError, "LinearWarmup_LR: this is the state of a LinearLR"),
        (lambda s: {**s, "LinearWarmup_LR": {**s["LinearWarmup_LR"], "last_lr": None}},
         TypeError, "LinearWarmup_LR: last_lr must be one number"),
        (lambda s: {**s, "LinearWarmup_LR": 3}, TypeError, "LinearWarmup_LR: the state of"),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_changes_nothing(change, error, said):
    def warm_up():
        return lr.LinearWarmup(lr.StepDecay(0.5, 3), 2, 0.0, 0.5)

    saved, schedule = warm_up(), warm_up()
    for _ in range(9):
        saved.step()
    before = schedule.state_dict()
    with pytest.raises(error, match=said):
        schedule.set_state_dict(change(saved.state_dict()))
    assert schedule.state_dict() == before


@pytest.mark.parametrize("method", ["set_state_dict", "set_dict", "load_state_dict"])
def test_numbers_of_a_state_may_come_as_arrays(method):
    schedule = lr.StepDecay(0.5, 3)
    getattr(schedule, method)({"last_epoch": np.array(7), "last_lr": np.array([0.005])})
    assert (schedule.last_epoch, schedule.last_lr) == (7, 0.005)
    assert type(schedule.last_epoch) is int


def test_a_state_goes_through_a_file(tmp_path):
    schedule = lr.ReduceOnPlateau(0.5, patience=1)
    for metric in metrics(3, 40):
        schedule.step(metric)
    ol.save(schedule.state_dict(), tmp_path / "schedule.pdopt")
    other = lr.ReduceOnPlateau(0.5, patience=1)
    other.set_state_dict(ol.load(tmp_path / "schedule.pdopt"))
    assert other.state_dict() == schedule.state_dict()


# Properties.


@settings(deadline=None, max_examples=60)
@given(case=st.sampled_from(SETTINGS), steps=st.integers(0, 120), data=st.data())
def test_a_resume_at_any_step_is_equal_to_the_bit(case, steps, data):
    schedule, resumed = make(lr, case), make(lr, case)
    for _ in range(steps):
        jump = data.draw(st.none() | st.none() | st.integers(0, 120)) if steps < 20 else None
        schedule.step(jump)
    for _ in range(data.draw(st.integers(0, 10))):
        resumed.step()
    resumed.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    assert resumed.state_dict() == schedule.state_dict()
    assert resumed.preview(60) == schedule.preview(60)


@settings(deadline=None, max_examples=40)
@given(case=st.sampled_from(PLATEAUS), seen=st.lists(st.floats(-10, 10), max_size=60))
def test_a_plateau_resumes_equal_to_the_bit(case, seen):
    schedule, resumed = make(lr, case), make(lr, case)
    half = len(seen) // 2
    for metric in seen[:half]:
        schedule.step(metric)
    resumed.set_state_dict(json.loads(json.dumps(schedule.state_dict())))
    rates = resumed.preview(seen[half:])
    walked = [schedule()]
    for metric in seen[half:]:
        schedule.step(metric)
        walked.append(schedule())
    assert rates == walked
    assert all(0 <= later <= rate for rate, later in itertools.pairwise(walked))


@settings(deadline=None, max_examples=60)
@given(case=st.sampled_from(SETTINGS), steps=st.integers(1, 120), before=st.integers(0, 120))
def test_a_preview_is_what_stepping_gives(case, steps, before):
    schedule = make(lr, case)
    for _ in range(before):
        schedule.step()
    seen = schedule.preview(steps)
    walked = [schedule()]
    for _ in range(steps - 1):
        schedule.step()
        walked.append(schedule())
    assert seen == walked
    assert min(seen) >= 0


@settings(deadline=None, max_examples=60)
@given(
    case=st.sampled_from(SETTINGS + PLATEAUS),
    steps=st.integers(0, 60),
    twin=st.sampled_from([copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]),
)
def test_copies_go_their_own_way(case, steps, twin):
    schedule = make(lr, case)
    for metric in metrics(1, steps):
        schedule.step(metric if case in PLATEAUS else None)
    copied, before = twin(schedule), schedule.state_dict()
    assert copied.state_dict() == before
    ahead = metrics(2, 60)
    rates = drive(copied, {"metrics" if case in PLATEAUS else "epochs": [
        metric if case in PLATEAUS else None for metric in ahead]})  # fmt: skip
    assert schedule.state_dict() == before
    assert rates == drive(schedule, {"metrics" if case in PLATEAUS else "epochs": [
        metric if case in PLATEAUS else None for metric in ahead]})  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(
    rate=st.floats(1e-6, 10),
    lowest=st.floats(0, 10),
    length=st.integers(1, 50),
    start=st.floats(0.01, 1),
    end=st.floats(0, 1),
)
def test_rates_are_never_negative(rate, lowest, length, start, end):
    assume(start != end)
    for schedule in (
        lr.CosineAnnealingDecay(rate, length, eta_min=lowest),
        lr.LinearLR(rate, length, start, end),
        lr.OneCycleLR(rate, 2 * length + 1, phase_pct=0.4, end_learning_rate=0),
        lr.OneCycleLR(rate, 2 * length + 1, three_phase=True, anneal_strategy="linear"),
        lr.CyclicLR(min(rate, lowest), max(rate, lowest), length),
        lr.PolynomialDecay(rate, length, end_lr=lowest, power=1 + start, cycle=length % 2 == 0),
    ):
        assert min(schedule.preview(2 * length + 1)) >= 0


@settings(deadline=None, max_examples=40)
@given(
    warm_up=st.integers(1, 60),
    start=st.floats(0, 0.4),
    rate=st.floats(0.5, 5),
    name=st.sampled_from(["ExponentialDecay", "CosineAnnealingDecay", "PolynomialDecay"]),
)
def test_a_warm_up_ends_where_the_next_begins(warm_up, start, rate, name):
    inner = getattr(lr, name)(rate, 0.9 if name == "ExponentialDecay" else 30)
    follows = inner.preview(20)
    rates = lr.LinearWarmup(inner, warm_up, start, rate).preview(warm_up + 20)
    np.testing.assert_allclose(rates[warm_up:], follows, rtol=1e-12)
    line = start + (rate - start) * np.arange(warm_up + 1) / warm_up
    np.testing.assert_allclose(rates[: warm_up + 1], line, rtol=1e-12)
