"""Steps without effect warn once; steps with an effect do not warn."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer import LBFGS, SGD, Adam, ExponentialMovingAverage, LookAhead, lr
from tests.optimizer.helpers import give

WRAPPERS = [lambda one: one, LookAhead, lambda one: ExponentialMovingAverage.around(one, decay=0.5)]


@pytest.fixture(autouse=True)
def loud():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def w():
    return ol.Parameter(np.array([1.0, 2.0]), name="w")


# No gradient ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_step_without_any_gradient_warns_once(w, wrap):
    optimizer = wrap(Adam(0.1, parameters=[w]))
    said = r"no parameter of this Adam has a gradient.*loss.backward\(\)"
    with pytest.warns(UserWarning, match=said) as caught:
        optimizer.step()
    assert caught[0].filename == __file__
    optimizer.step()
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0])


def test_each_optimizer_of_a_template_warns(w):
    template = Adam(0.1)
    for _ in range(2):
        with pytest.warns(UserWarning, match="no parameter of this Adam"):
            template.bind([w]).step()


def test_a_loss_of_something_else_warns(w):
    other = ol.Parameter([1.0])
    with pytest.warns(UserWarning, match="computed from these parameters"):
        SGD(0.1, parameters=[w]).minimize((other * other).sum())


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_steps_that_are_meant_say_nothing(w, wrap):
    optimizer = wrap(Adam(0.1, parameters=[w]))
    optimizer.apply_gradients([])
    give(w, [1.0, 1.0])
    optimizer.step()
    give(w, [0.0, 0.0])
    optimizer.step()  # zeros are gradients
    optimizer.clear_grad(False)
    optimizer.step()  # there was a gradient once


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_step_on_what_clear_grad_left_warns_once(w, wrap):
    other = ol.Parameter([1.0])
    optimizer = wrap(Adam(0.1, parameters=[w, other]))
    give(w, [1.0, 1.0])
    optimizer.step()
    optimizer.clear_grad()
    (w * w).sum().backward()
    optimizer.step()  # one parameter has a gradient
    optimizer.clear_grad()
    before = w.numpy()
    with pytest.warns(UserWarning, match="zeros that clear_grad.. left"):
        optimizer.step()
    assert (w.numpy() != before).all()  # Paddle's clear_grad leaves zeros, which are gradients
    optimizer.clear_grad()
    optimizer.step()


def test_few_rows_are_gradients():
    table = ol.nn.Embedding(5, 2, sparse=True)
    optimizer = Adam(0.1, lazy_mode=True, parameters=table.parameters())
    table(ol.to_tensor(np.array([1, 3]))).sum().backward()
    optimizer.step()


def test_a_closure_says_nothing(w):
    optimizer = LookAhead(LBFGS(parameters=[w]))

    def closure():
        optimizer.clear_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def test_a_large_parameter_that_is_updated_in_place_says_nothing():
    w = ol.Parameter(ol.zeros([20_000]))
    optimizer = SGD(0.1, parameters=[w])
    w.sum().backward()
    optimizer.step()
    assert "in place" in str(optimizer.execution)


# Skipped steps ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_skipped_steps_are_counted_and_shown(w, wrap):
    optimizer = wrap(SGD(0.1, parameters=[w], not_finite="skip"))
    assert optimizer.skipped == 0
    assert "skipped" not in optimizer._repr_html_()
    for g in ([np.inf, 1.0], [1.0, 1.0], [np.nan, 1.0]):
        optimizer.clear_grad()
        give(w, g)
        optimizer.step()
    assert optimizer.skipped == 2
    page = optimizer._repr_html_()
    assert "not_finite = &#x27;skip&#x27;" in page
    assert "2 steps were skipped" in page
    assert copy.deepcopy(optimizer).skipped == 2
    assert optimizer.bind([ol.Parameter([1.0])]).skipped == 0


def test_steps_that_raise_are_not_skipped(w):
    optimizer = SGD(0.1, parameters=[w], not_finite="raise")
    give(w, [np.inf, 1.0])
    with pytest.raises(FloatingPointError):
        optimizer.step()
    assert optimizer.skipped == 0


def test_skipped_closures_are_counted(w):
    optimizer = LBFGS(parameters=[w], not_finite="skip")

    def closure():
        optimizer.clear_grad()
        give(w, [np.nan, 1.0])
        return 1.0

    optimizer.step(closure)
    assert optimizer.skipped == 1


# A rate of zero ---------------------------------------------------------------------------------


def steps(optimizer, w, count, schedule=None):
    for _ in range(count):
        give(w, [1.0, 1.0])
        optimizer.step()
        if schedule is not None:
            schedule.step()


def test_the_tenth_step_at_a_rate_of_zero_warns_once(w):
    schedule = lr.LinearWarmup(0.5, 10, 0.0, 0.5)
    optimizer = SGD(schedule, parameters=[w])
    steps(optimizer, w, 9)
    with pytest.warns(UserWarning, match=r"LinearWarmup begins.*Did you call schedule.step\(\)"):
        steps(optimizer, w, 1)
    steps(optimizer, w, 20)
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0])


def test_a_schedule_that_is_stepped_says_nothing(w):
    up = lr.LinearWarmup(0.5, 10, 0.0, 0.5)
    steps(SGD(up, parameters=[w]), w, 20, up)
    down = lr.PolynomialDecay(0.5, 5, end_lr=0.0)
    steps(SGD(down, parameters=[w]), w, 30, down)


def test_a_rate_of_zero_without_schedule_says_nothing(w):
    steps(SGD(0.0, parameters=[w]), w, 12)


# Recordings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["loss", "slots", "parameters", "learning_rate", "memory", "name"])
def test_a_recording_without_with(w, name):
    trace = ol.record(SGD(0.1, parameters=[w]))
    with pytest.raises(
        AttributeError, match=rf"with ol.record\(optimizer\) as trace.*trace.{name}"
    ):
        getattr(trace, name)
    with pytest.raises(AttributeError, match=r"^record has no 'nonsense'\.$"):
        trace.nonsense  # noqa: B018
