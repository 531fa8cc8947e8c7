"""Errors for bad arguments of schedules."""

from __future__ import annotations

import math

import pytest

import optlab as ol

lr = ol.optimizer.lr
nan = float("nan")


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
