"""Schedules: Paddle's rates, states, jumps, and what is said to bad arguments."""

from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.backend import display
from tests.golden import DESCRIPTION, FOLDER
from tests.optimizer.schedules import PLATEAUS, SETTINGS, drive, make, metrics, of

lr = ol.optimizer.lr
nan, inf = float("nan"), float("inf")

CLASSES = sorted(set(lr.__all__) - {"LRScheduler"})
RECORDS = json.loads((Path(FOLDER) / "schedules.json").read_text())
VALUES = np.split(
    np.load(Path(FOLDER) / "schedules.npz")["values"],
    np.cumsum([case["count"] for case in RECORDS["cases"]])[:-1],
)


def named(case):
    kwargs = ", ".join(f"{k}={v}" for k, v in case["kwargs"].items())
    return f"{case['class']}({kwargs}) {next(iter(case.get('program', {'': 0})))}"


recorded = pytest.mark.parametrize(
    ("case", "values"),
    [pytest.param(*pair, id=named(pair[0])) for pair in zip(RECORDS["cases"], VALUES, strict=True)],
)


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-15)


# Paddle's rates.


def test_all_seventeen_are_there():
    assert len(CLASSES) == 17
    assert {case["class"] for case in SETTINGS + PLATEAUS} == set(CLASSES)
    assert all(issubclass(getattr(lr, name), lr.LRScheduler) for name in CLASSES)


@pytest.mark.parametrize("case", DESCRIPTION["lr"], ids=lambda case: case["name"])
def test_the_given_cases(case):
    schedule = make(lr, case)
    assert drive(schedule, {"steps": case["n"] - 1}) == case["values"]
    state = schedule.state_dict()
    inner = state.get("LinearWarmup_LR", {})
    for key, value in case["state_dict"].items():
        if isinstance(value, str):
            assert {k: v for k, v in inner.items() if k != "schedule"} == eval(value)
        else:
            assert state[key] == value


@recorded
def test_the_recorded_rates(case, values):
    close(drive(make(lr, case), case["program"]), values)


@recorded
def test_the_recorded_rates_after_a_resume_half_way(case, values):
    (kind, program), = case["program"].items()  # fmt: skip
    steps = [None] * program if kind == "steps" else program
    first, second = make(lr, case), make(lr, case)
    half = len(steps) // 2
    for step in steps[:half]:
        first.step(step)
    second.set_state_dict(json.loads(json.dumps(first.state_dict())))
    rates = [second()]
    for step in steps[half:]:
        second.step(step)
        rates.append(second())
    close(rates, values[half:])


def test_a_state_that_paddle_wrote_is_taken():
    first = lr.CosineAnnealingWarmRestarts(0.5, T_0=5, T_mult=2)
    second = lr.CosineAnnealingWarmRestarts(0.5, T_0=5, T_mult=2)
    for _ in range(23):
        first.step()
    second.set_state_dict({"last_epoch": first.last_epoch, "last_lr": first.last_lr})
    assert second.preview(50) == first.preview(50)


# The rate belongs to the epoch.


@pytest.mark.parametrize("case", SETTINGS, ids=named)
@pytest.mark.parametrize("epoch", [0, 1, 8, 100, 121, 244])
def test_a_jump_gives_the_rate_of_the_epoch(case, epoch):
    walked, jumped, begun = make(lr, case), make(lr, case), None
    for _ in range(epoch):
        walked.step()
    jumped.step(37)
    jumped.step(epoch)
    assert jumped.last_epoch == epoch
    assert jumped() == pytest.approx(walked(), rel=1e-12, abs=1e-14)
    if epoch:
        begun = make(lr, case, last_epoch=epoch - 1)
        assert begun.last_epoch == epoch
        assert begun() == pytest.approx(walked(), rel=1e-12, abs=1e-14)
    for _ in range(5):
        walked.step()
        jumped.step()
    assert jumped() == pytest.approx(walked(), rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("case", SETTINGS, ids=named)
def test_asking_changes_nothing(case):
    schedule = make(lr, case)
    for _ in range(20):
        schedule.step()
        before = schedule.state_dict()
        assert schedule.get_lr() == schedule() == schedule.last_lr
        schedule.preview(30)
        assert schedule.state_dict() == before


@pytest.mark.parametrize("case", SETTINGS + PLATEAUS, ids=named)
def test_a_schedule_is_made_of_plain_numbers(case):
    given = {
        name: np.float64(value) if type(value) is float else value
        for name, value in case["kwargs"].items()
    }
    schedule = make(lr, of(case["class"], **given))
    schedule.step(np.float32(2.0) if case in PLATEAUS else None)
    for name, value in vars(schedule).items():
        assert not isinstance(value, (np.ndarray, np.generic, ol.Tensor)), name
    assert type(schedule()) is float
    assert json.loads(json.dumps(schedule.state_dict())) == schedule.state_dict()


def test_restarts_are_met_exactly_where_a_logarithm_would_miss_them():
    schedule = lr.CosineAnnealingWarmRestarts(0.5, T_0=1, T_mult=3)
    schedule.step(121)  # 1 + 3 + 9 + 27 + 81: the logarithm of 243 to base 3 comes out below 5
    assert (schedule.T_cur, schedule.T_i, schedule()) == (0, 243, 0.5)


def test_fractions_of_epochs_resume_to_the_bit():
    first = lr.CosineAnnealingWarmRestarts(0.5, T_0=4, T_mult=2)
    first.step(5.3)
    assert first.last_epoch == 5
    second = lr.CosineAnnealingWarmRestarts(0.5, T_0=4, T_mult=2)
    second.set_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.preview(30) == first.preview(30)


def test_a_function_is_asked_once_an_epoch():
    asked = []
    schedule = lr.MultiplicativeDecay(1.0, lambda epoch: asked.append(epoch) or 0.5)
    for _ in range(5):
        schedule.step()
    assert asked == [1, 2, 3, 4, 5]
    schedule.step(2)
    assert schedule() == 0.25


def test_triangles_halve_for_ever():
    schedule = lr.CyclicLR(0.1, 0.5, step_size_up=1, mode="triangular2")
    schedule.step(10_001)  # cycle 5001: 2.0**5000 is no float
    assert schedule() == 0.1


def test_one_cycle_with_a_rise_of_no_length_begins_at_the_top():
    assert lr.OneCycleLR(1.0, total_steps=10, phase_pct=0.1)() == 1.0


# LinearWarmup.


def test_a_warm_up_joins_what_follows():
    for inner in (0.5, lr.CosineAnnealingDecay(0.5, T_max=300), lr.ExponentialDecay(0.5, 0.99)):
        rates = np.array(lr.LinearWarmup(inner, 100, start_lr=0.0, end_lr=0.5).preview(200))
        assert rates[0] == 0.0
        assert rates[100] == 0.5
        assert np.abs(np.diff(rates)).max() < 0.00502


def test_a_plateau_does_not_fit_into_a_warm_up():
    with pytest.raises(TypeError, match="ReduceOnPlateau needs metrics"):
        lr.LinearWarmup(lr.ReduceOnPlateau(0.1), 5, 0.0, 0.1)


def test_previewing_a_warm_up_leaves_the_inner_schedule_alone(capsys):
    inner = lr.StepDecay(0.5, step_size=2, verbose=True)
    schedule = lr.LinearWarmup(inner, 2, 0.0, 0.5, verbose=True)
    capsys.readouterr()
    schedule.preview(20)
    assert inner.last_epoch == 0
    assert capsys.readouterr().out == ""


def test_a_deep_warm_up_previews_without_a_word(capsys):
    inner = lr.LinearWarmup(lr.StepDecay(0.5, 2, verbose=True), 2, 0.1, 0.5, verbose=True)
    schedule = lr.LinearWarmup(inner, 2, 0.0, 0.1)
    capsys.readouterr()
    schedule.preview(20)
    assert capsys.readouterr().out == ""


# ReduceOnPlateau.


@pytest.mark.parametrize(
    "as_given", [float, np.float32, np.float64, np.array, lambda m: np.array([m]), ol.to_tensor]
)
def test_metrics_of_every_kind(as_given):
    schedule = lr.ReduceOnPlateau(0.5, patience=0)
    for metric in (2.0, 1.0, 1.5):
        schedule.step(as_given(metric))
    assert schedule() == 0.05
    assert schedule.best == 1.0
    assert type(schedule.best) is float


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ("0.5", TypeError, "metrics must be one number"),
        (None, TypeError, "metrics must be one number"),
        (np.zeros(3), ValueError, r"shape \(3,\); take its mean"),
        (ol.to_tensor([1.0, 2.0]), ValueError, "take its mean"),
    ],
)
def test_a_metric_that_is_none(wrong, error, said):
    schedule = lr.ReduceOnPlateau(0.5, patience=0)
    before = schedule.state_dict()
    with pytest.raises(error, match=said):
        schedule.step(wrong)
    assert schedule.state_dict() == before


def test_a_metric_that_is_not_a_number_is_never_the_best():
    schedule = lr.ReduceOnPlateau(0.5, patience=2)
    schedule.step(nan)
    assert schedule.best is None
    schedule.step(1.0)
    assert schedule.best == 1.0
    schedule.step(nan)
    assert (schedule.best, schedule.num_bad_epochs) == (1.0, 1)


def test_after_an_infinite_metric_a_finite_one_is_better():
    schedule = lr.ReduceOnPlateau(0.5)
    schedule.step(inf)
    schedule.step(3.0)
    assert schedule.best == 3.0


def test_previewing_a_plateau_takes_metrics():
    schedule = lr.ReduceOnPlateau(0.5, patience=0)
    assert schedule.preview([1.0, 1.0]) == [0.5, 0.5, 0.05]
    assert schedule.last_epoch == 0
    with pytest.raises(TypeError, match="preview takes the metrics"):
        schedule.preview(100)


# What is printed and shown.


def test_verbose_prints_what_paddle_prints(capsys):
    schedule = lr.StepDecay(0.5, step_size=1, verbose=True)
    schedule.step()
    assert capsys.readouterr().out == (
        "Epoch 0: StepDecay set learning rate to 0.5.\n"
        "Epoch 1: StepDecay set learning rate to 0.05.\n"
    )
    plateau = lr.ReduceOnPlateau(0.5, patience=0, verbose=True)
    plateau.step(1.0)
    plateau.step(1.0)
    assert capsys.readouterr().out == "Epoch 2: ReduceOnPlateau set learning rate to 0.05.\n"


def double(epoch):
    return 2 * epoch


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (lr.StepDecay(0.5, 5), ("StepDecay(learning_rate=0.5, step_size=5, gamma=0.1), epoch 0, "
         "rate 0.5")),
        (lr.LambdaDecay(0.5, double), ("LambdaDecay(learning_rate=0.5, lr_lambda=double), epoch 0, "
         "rate 0.0")),
        (lr.LinearWarmup(lr.ExponentialDecay(0.5, 0.9), 5, 0, 0.5),
         ("LinearWarmup(learning_rate=ExponentialDecay(learning_rate=0.5, gamma=0.9), "
         "warmup_steps=5, start_lr=0.0, end_lr=0.5), epoch 0, rate 0.0")),
    ],
)  # fmt: skip
def test_a_schedule_shows_its_settings(schedule, text):
    assert repr(schedule) == text


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_tells_its_formula_and_source(name):
    cls = getattr(lr, name)
    assert cls.formula
    assert cls.formula.count("{") == cls.formula.count("}")
    assert cls.formula._repr_latex_().startswith("$\\displaystyle ")
    for section in ("Parameters", "Raises", "Notes", "Source:", "Examples"):
        assert section in cls.__doc__
    assert lr.LRScheduler.formula == ""


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_takes_last_epoch_and_verbose(name):
    import inspect

    parameters = inspect.signature(getattr(lr, name)).parameters
    assert list(parameters)[-2:] == ["last_epoch", "verbose"]
    assert parameters["last_epoch"].default == -1
    assert parameters["verbose"].default is False


def test_without_pictures_a_notebook_shows_the_words(monkeypatch):
    def none(kind):
        raise ModuleNotFoundError(kind)

    monkeypatch.setattr(display, "renderer", none)
    schedule = lr.StepDecay(0.5, 5)
    assert schedule._repr_mimebundle_() == {"text/plain": repr(schedule)}


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(AttributeError, match="Did you mean 'StepDecay'"):
        _ = lr.StepDeca


# A schedule of one's own.


class Rooted(lr.LRScheduler):
    """Written as for Paddle."""

    def __init__(self, learning_rate, shift=1, last_epoch=-1, verbose=False):
        self.shift = shift
        self.looks = 0
        super().__init__(learning_rate, last_epoch, verbose)

    def state_keys(self):
        self.keys = ["last_epoch", "last_lr", "looks"]

    def get_lr(self):
        self.looks += 1
        return self.base_lr / (self.last_epoch + self.shift) ** 0.5


def test_a_schedule_of_one_s_own():
    schedule = Rooted(1.0)
    schedule.step(3)
    assert schedule() == 0.5
    assert schedule.preview(2) == [0.5, 1 / 5**0.5]
    state = schedule.state_dict()
    assert state == {"last_epoch": 3, "last_lr": 0.5, "looks": 2, "schedule": "Rooted"}
    other = Rooted(1.0)
    other.set_state_dict(state)
    assert other.looks == 2
    assert repr(other) == "Rooted(learning_rate=1.0, shift=1), epoch 3, rate 0.5"


def test_without_get_lr_it_is_said_what_is_missing():
    class Empty(lr.LRScheduler):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty has no get_lr\(self\)"):
        Empty(0.1)


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


# Bad arguments.


BAD = [
    (lambda: lr.StepDecay("0.1", 5), TypeError, "learning_rate must be one number"),
    (lambda: lr.StepDecay(True, 5), TypeError, "learning_rate must be one number"),
    (lambda: lr.StepDecay(-0.1, 5), ValueError, r"learning_rate must be finite|at least 0"),
    (lambda: lr.StepDecay(nan, 5), ValueError, "learning_rate must be finite"),
    (lambda: lr.StepDecay(lr.StepDecay(0.1, 5), 5), TypeError, "learning_rate must be one number"),
    (lambda: lr.StepDecay(0.1, 5, last_epoch=-2), ValueError, "last_epoch must be a whole number"),
    (lambda: lr.StepDecay(0.1, 5, last_epoch=0.5), TypeError, "last_epoch must be a whole number"),
    (lambda: lr.StepDecay(0.1, 5, verbose=1), TypeError, "verbose must be True or False"),
    (lambda: lr.StepDecay(0.1, 0), ValueError, "step_size must be a whole number of at least 1"),
    (lambda: lr.StepDecay(0.1, 2.5), TypeError, "step_size must be a whole number"),
    (lambda: lr.StepDecay(0.1, True), TypeError, "step_size must be a whole number"),
    (lambda: lr.StepDecay(0.1, 5, gamma=1.0), ValueError, "gamma must be at least 0 and below 1"),
    (lambda: lr.StepDecay(0.1, 5, gamma=-0.5), ValueError, "gamma must be at least 0"),
    (lambda: lr.NoamDecay(0, 10), ValueError, "d_model must be above 0"),
    (lambda: lr.NoamDecay(64, 0), ValueError, "warmup_steps must be above 0"),
    (lambda: lr.PiecewiseDecay([], [0.1]), ValueError, "boundaries is empty"),
    (lambda: lr.PiecewiseDecay([3, 6], [0.1, 0.2]), ValueError, "2 boundaries need 3 values"),
    (lambda: lr.PiecewiseDecay([6, 3], [0.1] * 3), ValueError, "boundaries must rise; got 6"),
    (lambda: lr.PiecewiseDecay([3], [0.1, -1]), ValueError, r"values\[1\] must be at least 0"),
    (lambda: lr.PiecewiseDecay(3, [0.1, 1]), TypeError, "boundaries must be a list"),
    (lambda: lr.NaturalExpDecay(0.1, 0), ValueError, "gamma must be above 0"),
    (lambda: lr.InverseTimeDecay(0.1, -1), ValueError, "gamma must be at least 0"),
    (lambda: lr.ExponentialDecay(0.1, 1.5), ValueError, "gamma must be above 0 and below 1"),
    (lambda: lr.ExponentialDecay(0.1, [0.5]), TypeError, "gamma must be one number"),
    (lambda: lr.PolynomialDecay(0.1, 0), ValueError, "decay_steps must be a whole number"),
    (lambda: lr.PolynomialDecay(0.1, 5, end_lr=-1), ValueError, "end_lr must be at least 0"),
    (lambda: lr.PolynomialDecay(0.1, 5, power=0), ValueError, "power must be above 0"),
    (lambda: lr.PolynomialDecay(0.1, 5, cycle="yes"), TypeError, "cycle must be True or False"),
    (lambda: lr.LinearWarmup("0.1", 5, 0, 1), TypeError, "learning_rate must be one number"),
    (lambda: lr.LinearWarmup(0.1, 0, 0, 1), ValueError, "warmup_steps must be a whole number"),
    (lambda: lr.LinearWarmup(0.1, 5, 1, 1), ValueError, "end_lr must be above start_lr"),
    (lambda: lr.LinearWarmup(0.1, 5, -1, 1), ValueError, "start_lr must be at least 0"),
    (lambda: lr.MultiStepDecay(0.1, 5), TypeError, "milestones must be a list"),
    (lambda: lr.MultiStepDecay(0.1, [5, 5]), ValueError, "milestones must rise; got 5 before 5"),
    (lambda: lr.MultiStepDecay(0.1, [5, 7.5]), TypeError, r"milestones\[1\] must be a whole"),
    (lambda: lr.MultiStepDecay(0.1, [5], gamma=2), ValueError, "gamma must be at least 0 and"),
    (lambda: lr.LambdaDecay(0.1, 0.5), TypeError, "lr_lambda must be a function, such as"),
    (lambda: lr.LambdaDecay(0.1, lambda e: "x"), TypeError, r"lr_lambda\(0\) must be one number"),
    (lambda: lr.LambdaDecay(0.1, lambda e: -1), ValueError, "LambdaDecay at epoch 0 is -0.1"),
    (lambda: lr.MultiplicativeDecay(0.1, None), TypeError, "lr_lambda must be a function"),
    (lambda: lr.ReduceOnPlateau(0.1, mode="lowest"), ValueError, "mode must be 'min' or 'max'"),
    (lambda: lr.ReduceOnPlateau(0.1, mode=1), TypeError, "mode must be 'min' or 'max'"),
    (lambda: lr.ReduceOnPlateau(0.1, factor=1), ValueError, "factor must be at least 0 and below"),
    (lambda: lr.ReduceOnPlateau(0.1, patience=-1), ValueError, "patience must be a whole number"),
    (lambda: lr.ReduceOnPlateau(0.1, threshold=-1), ValueError, "threshold must be at least 0"),
    (lambda: lr.ReduceOnPlateau(0.1, threshold_mode="x"), ValueError, "threshold_mode must be"),
    (lambda: lr.ReduceOnPlateau(0.1, cooldown=1.5), TypeError, "cooldown must be a whole number"),
    (lambda: lr.ReduceOnPlateau(0.1, min_lr=-1), ValueError, "min_lr must be at least 0"),
    (lambda: lr.ReduceOnPlateau(0.1, epsilon=-1), ValueError, "epsilon must be at least 0"),
    (lambda: lr.CosineAnnealingDecay(0.1, 0), ValueError, "T_max must be a whole number"),
    (lambda: lr.CosineAnnealingDecay(0.1, 5, eta_min="0"), TypeError, "eta_min must be one number"),
    (lambda: lr.CosineAnnealingWarmRestarts(0.1, 0), ValueError, "T_0 must be a whole number"),
    (lambda: lr.CosineAnnealingWarmRestarts(0.1, 5, 0), ValueError, "T_mult must be a whole"),
    (lambda: lr.CosineAnnealingWarmRestarts(0.1, 5).step(-1), ValueError, "epoch must be at least"),
    (lambda: lr.OneCycleLR(0.1, 0), ValueError, "total_steps must be a whole number"),
    (lambda: lr.OneCycleLR(0.1, 9, divide_factor=0), ValueError, "divide_factor must be above 0"),
    (lambda: lr.OneCycleLR(0.1, 9, phase_pct=1.5), ValueError, "phase_pct must be at least 0 and"),
    (lambda: lr.OneCycleLR(0.1, 9, anneal_strategy="x"), ValueError, "must be 'cos' or 'linear'"),
    (lambda: lr.OneCycleLR(0.1, 9, end_learning_rate=-1), ValueError, "end_learning_rate must be"),
    (lambda: lr.OneCycleLR(0.1, 9, phase_pct=0.5, three_phase=True), ValueError, "below 0.5 with"),
    (lambda: lr.CyclicLR(0.5, 0.1, 5), ValueError, "max_learning_rate must be at least base_"),
    (lambda: lr.CyclicLR(0.1, 0.5, 0), ValueError, "step_size_up must be a whole number"),
    (lambda: lr.CyclicLR(0.1, 0.5, 5, 0), ValueError, "step_size_down must be a whole number"),
    (lambda: lr.CyclicLR(0.1, 0.5, 5, mode="x"), ValueError, "mode must be 'triangular', 'tri"),
    (lambda: lr.CyclicLR(0.1, 0.5, 5, exp_gamma="1"), TypeError, "exp_gamma must be one number"),
    (lambda: lr.CyclicLR(0.1, 0.5, 5, scale_fn=3), TypeError, "scale_fn must be a function"),
    (lambda: lr.CyclicLR(0.1, 0.5, 5, scale_mode="x"), ValueError, "scale_mode must be 'cycle'"),
    (lambda: lr.LinearLR(0.1, 0), ValueError, "total_steps must be a whole number"),
    (lambda: lr.LinearLR(0.1, 5, start_factor=0), ValueError, "start_factor must be above 0 and"),
    (lambda: lr.LinearLR(0.1, 5, end_factor=1.5), ValueError, "end_factor must be at least 0 and"),
    (lambda: lr.StepDecay(0.1, 5).preview(0), ValueError, "steps must be a whole number of at"),
]  # fmt: skip


@pytest.mark.parametrize(("make_it", "error", "said"), BAD, ids=[said for *_, said in BAD])
def test_bad_arguments_are_named(make_it, error, said):
    with pytest.raises(error, match=said):
        make_it()


@pytest.mark.parametrize("wrong", [-1, 2.5, "3", True])
def test_a_jump_to_nowhere_changes_nothing(wrong):
    schedule = lr.StepDecay(0.1, 5)
    with pytest.raises((TypeError, ValueError), match="epoch must be a whole number"):
        schedule.step(wrong)
    assert (schedule.last_epoch, schedule()) == (0, 0.1)


def test_one_cycle_past_its_end_says_so_and_stays():
    schedule = lr.OneCycleLR(0.1, total_steps=10)
    for _ in range(10):
        schedule.step()
    before = schedule.state_dict()
    for epoch in (None, 11, 500):
        with pytest.raises(ValueError, match=r"made for total_steps=10.*past the end"):
            schedule.step(epoch)
    assert schedule.state_dict() == before


def test_a_rate_that_is_none_changes_nothing():
    schedule = lr.LambdaDecay(0.1, lambda epoch: math.inf if epoch == 2 else 1.0)
    schedule.step()
    with pytest.raises(ValueError, match="LambdaDecay at epoch 2 is inf"):
        schedule.step()
    assert (schedule.last_epoch, schedule()) == (1, 0.1)
