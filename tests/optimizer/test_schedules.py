"""Schedules: Paddle's rates, states, jumps, and errors for bad arguments."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from optlab.backend import display
from tests.golden import DESCRIPTION, FOLDER
from tests.optimizer.schedules import PLATEAUS, SETTINGS, drive, make, of

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


# The rate is a function of the epoch.


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
    schedule.step(121)  # 1 + 3 + 9 + 27 + 81: the computed logarithm of 243 to base 3 is below 5
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
    schedule.step(10_001)  # cycle 5001: 2.0**5000 overflows
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


# Printing and display.


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
         "rate 0")),
        (lr.LinearWarmup(lr.ExponentialDecay(0.5, 0.9), 5, 0, 0.5),
         ("LinearWarmup(learning_rate=ExponentialDecay(learning_rate=0.5, gamma=0.9), "
         "warmup_steps=5, start_lr=0.0, end_lr=0.5), epoch 0, rate 0")),
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


# User schedules.


class Rooted(lr.LRScheduler):
    """A schedule written as for Paddle."""

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


def test_how_many_steps_show_a_cosine():
    """A figure shows the whole fall by default, also after a warm-up."""
    cosine = lr.CosineAnnealingDecay(0.5, T_max=30)
    assert cosine.horizon == 31
    assert lr.LinearWarmup(cosine, 10, 0.0, 0.5).horizon == 41


def test_milestones_of_every_kind_of_list():
    expected = lr.MultiStepDecay(0.5, [2, 5, 8]).preview(12)
    for given in ((2, 5, 8), np.array([2, 5, 8]), range(2, 9, 3)):
        assert lr.MultiStepDecay(0.5, given).preview(12) == expected
