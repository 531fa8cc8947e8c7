"""Errors for code as another library, or a writer in a hurry, would have it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer import (
    LBFGS,
    SGD,
    Adam,
    AdamW,
    ExponentialMovingAverage,
    LookAhead,
    ModelAverage,
    Momentum,
    lr,
)
from tests.optimizer.helpers import give


def says(kind, *parts):
    """Expect an error that contains these parts in order."""
    return pytest.raises(kind, match="(?s)" + ".*".join(re.escape(part) for part in parts))


# Arguments of optimizers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda p: Adam(0.1, 0.9, 0.999, 1e-8, p, 0.01), "lazy_mode"),
        (lambda p: AdamW(0.1, 0.9, 0.999, 1e-8, p, 0.01), "weight_decay"),
        (lambda p: AdamW(0.1, 0.9, 0.999, 1e-8, 0.01, p), "lr_ratio"),
        (lambda p: Momentum(0.1, 0.9, p), "use_nesterov"),
        (lambda p: LBFGS(0.1, p), "max_iter"),
        (lambda p: SGD(p), "learning_rate"),
        (lambda p: SGD(iter_of(p)), "learning_rate"),
    ],
)
def test_parameters_in_the_place_of_a_setting(make, place):
    parameters = ol.nn.Linear(40, 40).parameters()
    with says(TypeError, f"in the place of {place}", "parameters=model.parameters()") as caught:
        make(parameters)
    assert len(str(caught.value)) < 250


def iter_of(parameters):
    return (p for p in parameters)


def test_parameters_beyond_the_last_place():
    with says(TypeError, "SGD takes at most 1 arguments", "parameters=model.parameters()"):
        SGD(0.1, ol.nn.Linear(2, 2).parameters())


def test_a_rate_may_be_a_tensor_of_one_number():
    assert SGD(ol.to_tensor(0.5)).get_lr() == 0.5


def test_what_is_no_switch_is_written_short():
    with says(TypeError, "lazy_mode must be True or False") as caught:
        Adam(lazy_mode=list(range(10000)))
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("cls", "named", "hint"),
    [
        (Adam, {"params": []}, "Did you mean 'parameters'?"),
        (Adam, {"paramters": []}, "Did you mean 'parameters'?"),
        (Adam, {"betas": (0.9, 0.99)}, "beta1=... and beta2=..."),
        (Adam, {"momentum": 0.9}, "beta1"),
        (SGD, {"momentum": 0.9}, "ol.optimizer.Momentum("),
        (SGD, {"nesterov": True}, "ol.optimizer.Momentum("),
        (Momentum, {"nesterov": True}, "Did you mean 'use_nesterov'?"),
    ],
)
def test_the_names_of_other_libraries(cls, named, hint):
    with says(TypeError, f"{cls.__name__} has no setting {next(iter(named))!r}", hint):
        cls(0.1, **named)


def test_decoupled_decay_is_a_number():
    with says(TypeError, "must be a number", "decoupled", "Adam(weight_decay=L1Decay(0.1))"):
        AdamW(0.1, weight_decay=ol.regularizer.L1Decay(0.1))
    with says(TypeError, "must be a number", "write weight_decay=0.1"):
        AdamW(0.1, weight_decay=ol.regularizer.L2Decay(0.1))


@pytest.mark.parametrize("rates", [np.geomspace(1e-4, 1, 5), [0.1, 0.2], (1, 2)])
def test_many_rates_are_an_ensemble(rates):
    with says(TypeError, "learning_rate must be one number", "ol.ensemble("):
        Adam(rates)


# Schedules --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "written"),
    [
        (
            lambda o: lr.CosineAnnealingDecay(o, T_max=10),
            "Adam(CosineAnnealingDecay(0.1, T_max=10), parameters=...)",
        ),
        (lambda o: lr.StepDecay(o, 30, gamma=0.5), "Adam(StepDecay(0.1, 30, gamma=0.5), "),
        (lambda o: lr.ReduceOnPlateau(o), "Adam(ReduceOnPlateau(0.1), "),
        (lambda o: lr.OneCycleLR(optimizer=o, total_steps=9), "Adam(OneCycleLR(0.1, total_steps"),
        (lambda o: lr.LinearWarmup(o, 5, 0, 0.1), "Adam(LinearWarmup(0.1, 5, 0, 0.1), "),
        (lambda o: lr.PiecewiseDecay(o), "Adam(PiecewiseDecay(...), "),
        (lambda o: lr.NoamDecay(LookAhead(o), 512), "Adam(NoamDecay(512), "),
        (lambda o: lr.LRScheduler(o), "Adam(LRScheduler(0.1), "),
    ],
)
def test_a_schedule_goes_into_the_optimizer(make, written):
    with says(TypeError, "the schedule goes into the optimizer", written):
        make(Adam(0.1, parameters=[ol.Parameter([1.0])]))


def test_a_schedule_of_ones_own_says_it_too():
    class Halving(lr.LRScheduler):
        def get_lr(self):
            return self.base_lr / 2**self.last_epoch

    class Wide(Halving):
        def __init__(self, width, **rest):
            super().__init__(**rest)

    with says(TypeError, "Adam(Halving(0.1), "):
        Halving(Adam(0.1))
    with says(TypeError, "Halving has no setting 'lr'", "Did you mean 'learning_rate'?"):
        Halving(lr=0.1)
    with says(TypeError, "Wide has no setting 'lr'; it has learning_rate, last_epoch, verbose"):
        Wide(3, lr=0.1)
    assert Wide(3, learning_rate=0.5)() == 0.5


def test_unknown_arguments_of_a_schedule():
    with says(TypeError, "StepDecay has no setting 'step_sizes'; it has", "mean 'step_size'?"):
        lr.StepDecay(0.1, step_sizes=5)


def test_a_schedule_takes_one_rate():
    with says(TypeError, "learning_rate of a schedule must be one number", "ensemble of 2"):
        lr.StepDecay(ol.ensemble(np.array([0.1, 0.2])), 5)


# Rules ------------------------------------------------------------------------------------------


def step_using(use):
    """Take a step of a rule that reads s, h or c by `use`."""

    class Rule(ol.optimizer.Optimizer):
        slots = {"m": 0.0}

        def update(self, p, g, s, h, c):
            return p - use(s, h, c) * g, {"m": s.m}, {}

    w = ol.Parameter([1.0])
    optimizer = Rule(parameters=[w])
    give(w, [1.0])
    optimizer.step()


def test_a_rule_that_asks_for_a_scalar_that_it_does_not_compute():
    with says(AttributeError, "no scalar 't'; there is none.", "scalars(self, t, h)", "float(t)"):
        step_using(lambda s, h, c: c.t)
    with says(AttributeError, "no slot 'v'; there is m.", "slots = {'v': 0.0}"):
        step_using(lambda s, h, c: s.v)


@pytest.mark.parametrize(
    ("use", "written"),
    [
        (lambda s, h, c: s["m"], "write s.m in place of s['m']"),
        (lambda s, h, c: h["learning_rate"], "write h.learning_rate in place of h["),
        (lambda s, h, c: c["rate"], "write c.rate in place of c['rate']"),
        (lambda s, h, c: s[0], "write s.name in place of s[0]"),
    ],
)
def test_what_a_rule_is_handed_has_attributes(use, written):
    with says(TypeError, "are attributes", written):
        step_using(use)


# Averages and wrappers --------------------------------------------------------------------------


def test_methods_of_averages_that_are_called_otherwise():
    w = ol.Parameter([1.0])
    ema = ExponentialMovingAverage(0.9, parameters=[w])
    with says(AttributeError, "has no 'step'. Call update() after", "around(optimizer)"):
        ema.step()
    average = ModelAverage(0.15, parameters=[w])
    with says(AttributeError, "has no 'update'. Call step() after", ".around(optimizer, "):
        average.update()
    with says(AttributeError, "ModelAverage has no 'rate'"):
        _ = average.rate
    assert not hasattr(ema, "step")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda o: ExponentialMovingAverage.around(o),
        lambda o: ModelAverage.around(o, 0.15),
        lambda o: LookAhead(o),
    ],
)
def test_what_is_around_an_optimizer_does_both_in_step(wrap):
    with says(TypeError, "around an optimizer, step() does both"):
        wrap(Adam(0.1)).update()


@pytest.mark.parametrize("cls", [ExponentialMovingAverage, ModelAverage])
def test_averages_take_settings_and_no_optimizer(cls):
    with says(TypeError, "but got an optimizer", f"{cls.__name__}.around(Adam(...), "):
        cls(Adam(0.1))
    layer = ol.nn.Linear(2, 2)
    for given in (layer, layer.parameters(), layer.weight):
        with says(TypeError, "by name", "parameters=model.parameters()", ".around(optimizer, "):
            cls(given)


def test_a_network_is_no_count_of_steps():
    with says(TypeError, "thres_steps of ExponentialMovingAverage is a setting"):
        ExponentialMovingAverage(0.9, ol.nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (
            lambda: LookAhead(Adam(0.1), la_steps=5),
            ["LookAhead has no setting 'la_steps'; it has inner_optimizer, alpha, k", "mean 'k'?"],
        ),
        (
            lambda: LookAhead(Adam(0.1), weight_decay=0.1),
            ["no setting 'weight_decay'", "Give weight_decay to the inner optimizer, Adam."],
        ),
        (
            lambda: ExponentialMovingAverage(decy=0.9),
            ["no setting 'decy'; it has decay, thres_steps, parameters", "mean 'decay'?"],
        ),
        (
            lambda: ExponentialMovingAverage.around(Adam(0.1), decy=0.9),
            ["no setting 'decy'", "mean 'decay'?"],
        ),
        (
            lambda: ModelAverage(0.15, min_average=3),
            ["no setting 'min_average'; it has average_window_rate", "'min_average_window'?"],
        ),
    ],
)
def test_unknown_arguments_of_wrappers(make, parts):
    with says(TypeError, *parts):
        make()


# The explorer and the race ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimizers", "kind", "parts"),
    [
        (Adam, TypeError, ["a list of names", "or a dict of names and templates"]),
        (5, TypeError, ["a list of names", "got 5."]),
        ("Adam", ValueError, ["a list of names", "Write ['Adam']."]),
        (["SGD", Adam(0.1)], ValueError, ["in the list. Names and templates come together in a "]),
        (["SGD", "Adm"], ValueError, ["no optimizer 'Adm'; there are ", "mean 'Adam'?"]),
    ],
)
def test_optimizers_to_explore_are_named(optimizers, kind, parts):
    with says(kind, *parts):
        ol.explore("beale", optimizers)


@pytest.mark.parametrize("name", ["LookAhead", "ExponentialMovingAverage", "ModelAverage"])
def test_a_wrapper_is_explored_around_an_optimizer(name):
    with says(ValueError, f"{name} goes around an optimizer", f"{{'{name} Adam': ") as caught:
        ol.explore("beale", ["Adam", name])
    written = str(caught.value).split("Write ")[1].rstrip(".")
    assert name in repr(ol.explore("beale", eval(written), steps=5))


def test_a_network_of_ones_own_is_made_a_problem():
    with says(TypeError, "network of your own (Linear)", "ol.problems.Network(", "ol.record("):
        ol.compare(ol.nn.Linear(2, 2), {"Adam": Adam(0.1)})


def test_the_problem_comes_before_the_optimizers():
    with says(TypeError, "the problem comes first", "got Adam as the problem"):
        ol.compare(Adam(0.1), {"Adam": Adam(0.1)})


# LBFGS ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("set_to_zero", [True, False])
def test_a_closure_without_backward(set_to_zero):
    w = ol.Parameter([3.0, 4.0])
    (w * 0).sum().backward()
    optimizer = LBFGS(parameters=[w])

    def closure():
        optimizer.clear_grad(set_to_zero)
        return (w * w).sum()

    with says(RuntimeError, "no parameter of LBFGS has a gradient", "loss.backward()"):
        optimizer.step(closure)
    assert w.numpy().tolist() == [3.0, 4.0]


def test_a_closure_that_clears_after_backward():
    w = ol.Parameter([3.0, 4.0])
    optimizer = LBFGS(parameters=[w])

    def closure():
        loss = (w * w).sum()
        loss.backward()
        optimizer.clear_grad()
        return loss

    with says(RuntimeError, "no parameter of LBFGS has a gradient"):
        optimizer.step(closure)


def test_a_gradient_that_is_zero_is_one():
    """A zero gradient is a gradient: at the minimum, and of some parameters alone."""
    w, other = ol.Parameter([0.0]), ol.Parameter([1.0])
    optimizer = LBFGS(parameters=[w, other])

    def closure():
        optimizer.clear_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0.0
