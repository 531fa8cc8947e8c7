"""Errors and warnings for a user who has read only the README and guesses the rest."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer import (
    LBFGS,
    SGD,
    Adam,
    ExponentialMovingAverage,
    LarsMomentum,
    LookAhead,
    ModelAverage,
    Momentum,
    lr,
)
from tests.optimizer.helpers import give
from tests.optimizer.test_messages import says


def test_an_optimizer_with_a_rate_for_each_member_shows_itself():
    p = ol.Parameter(ol.ensemble(np.tile([-1.5, 2.0], (100, 1))))
    optimizer = Adam(ol.ensemble(np.geomspace(1e-4, 1, 100)), parameters=[p])
    assert "&lt;100 values from 0.0001 to 1&gt;</td>" in optimizer._repr_html_()


def test_the_rate_of_a_group_is_shown_with_its_share():
    p = ol.Parameter(ol.ensemble(np.ones((2, 3))))
    optimizer = Adam(
        ol.ensemble(np.array([0.1, 0.2])), parameters=[{"params": [p], "learning_rate": 0.5}]
    )
    assert "&lt;2 values from 0.05 to 0.1&gt;</td>" in optimizer._repr_html_()


# Groups -----------------------------------------------------------------------------------------


def make(cls=Adam, *settings, **named):
    w = ol.Parameter([1.0, 2.0], name="w")
    return w, cls(*(settings or (0.1,)), parameters=[w], **named)


def test_a_group_shows_itself():
    _, optimizer = make(Momentum, weight_decay=0.5)
    assert repr(optimizer.groups[0]) == (
        "<Group of 1 parameter of 2 elements, multiplier=1, momentum=0.9, use_nesterov=False, "
        "rescale_grad=1.0, regularizer=L2Decay(0.5)>"
    )


@pytest.mark.parametrize("name", ["lr", "learning_rate"])
def test_the_rate_of_a_group(name):
    _, optimizer = make()
    group = optimizer.groups[0]
    parts = "optimizer.get_lr() * group.multiplier", "optimizer.set_lr(0.01)"
    with says(AttributeError, f"A group has no {name!r}", *parts):
        getattr(group, name)
    with says(AttributeError, f"A group has no {name!r}", *parts):
        setattr(group, name, 0.5)
    with says(TypeError, "a group is no dict here", *parts):
        group[name]
    with says(TypeError, "a group is no dict here", *parts):
        group[name] = 0.5
    assert optimizer.get_lr() == 0.1


def test_what_else_groups_are_asked_for():
    _, optimizer = make()
    [group] = optimizer.groups
    with says(AttributeError, "its parameters are group.parameters"):
        group.params  # noqa: B018
    with says(TypeError, "Write group.parameters."):
        group["parameters"]
    with says(AttributeError, "A group has no 'betas'", "group.h.beta1"):
        group.betas  # noqa: B018
    assert copy.deepcopy(group).multiplier == 1


# Clearing and stepping --------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda one: one, LookAhead, ExponentialMovingAverage.around])
def test_gradients_are_cleared_as_elsewhere(wrap):
    w = ol.Parameter([1.0, 2.0])
    optimizer = wrap(Adam(0.1, parameters=[w]))
    for named, left in [({}, True), ({"set_to_none": False}, True), ({"set_to_none": True}, False)]:
        give(w, [1.0, 1.0])
        optimizer.zero_grad(**named)
        assert (w.grad is not None) is left
    give(w, [1.0, 1.0])
    optimizer.zero_grad(False)
    assert w.grad is None


def test_messages_of_python_speak_of_the_optimizer():
    _, optimizer = make()
    with pytest.raises(TypeError, match=r"^Optimizer\.clear_grad\(\)"):
        optimizer.clear_grad(quickly=True)
    with pytest.raises(TypeError, match=r"^Optimizer\.set_lr\(\)"):
        optimizer.set_lr()


@pytest.mark.parametrize("wrap", [lambda one: one, LookAhead])
def test_a_step_takes_no_closure(wrap):
    w = ol.Parameter([1.0, 2.0])
    optimizer = wrap(Adam(0.1, parameters=[w]))
    loss = (w * w).sum()
    loss.backward()
    for given in (loss, lambda: loss):
        with says(TypeError, "Adam.step() takes nothing", "only LBFGS", "optimizer.minimize(loss)"):
            optimizer.step(given)
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0])


@pytest.mark.parametrize("cls", [Adam, ol.fluid.optimizer.AdamOptimizer])
def test_minimize_takes_the_loss(cls):
    w = ol.Parameter([1.0])
    optimizer = cls(0.1, parameters=[w])
    with says(TypeError, "the loss must be a Tensor", "optimizer.minimize(loss)"):
        optimizer.minimize()


# Arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda net: net.named_parameters(), "pairs of a name and a Tensor"),
        (lambda net: [net], "a Linear in it"),
        (lambda net: net, "got Linear"),
        (lambda net: net.state_dict(), "of names and Tensors"),
        (lambda net: dict(net.named_parameters()), "a dict of names and Tensors"),
        (lambda net: net.weight.numpy(), "a NumPy array, which has no gradient"),
        (lambda net: "weight", "got str"),
    ],
)
def test_what_is_no_list_of_parameters(given, said):
    net = ol.nn.Linear(2, 3)
    with says(TypeError, "parameters must be a list of Tensors", said, "model.parameters()"):
        Adam(0.1, parameters=given(net))
    with says(TypeError, "the 'params' of a group", said, "{'params': model.parameters()}"):
        Adam(0.1, parameters=[{"params": given(net)}])


def test_a_group_without_params_is_still_a_group():
    with says(TypeError, "a group is a dict with the key 'params'"):
        Adam(0.1, parameters={"parms": [ol.Parameter([1.0])]})


def test_betas_are_two_numbers():
    with says(TypeError, "beta1 must be one number", "beta1=0.9, beta2=0.99"):
        Adam(0.1, (0.9, 0.99))


def test_a_schedule_is_no_class():
    _, optimizer = make()
    for use in (Adam, optimizer.set_lr):
        with says(TypeError, "StepDecay, which is a class", "StepDecay(0.1, ...)"):
            use(lr.StepDecay)
    with says(TypeError, "set_lr_scheduler takes a schedule"):
        optimizer.set_lr_scheduler(lr.StepDecay)


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ({"clip_grad": 1.0}, "Did you mean 'grad_clip'?"),
        ({"scheduler": None}, "The schedule is the learning_rate: "),
        ({"lr_scheduler": None}, "The schedule is the learning_rate: "),
        ({"maximize": True}, "optimizer.minimize(-value)"),
    ],
)
def test_settings_of_elsewhere(named, hint):
    for cls in (Adam, SGD):
        with says(TypeError, f"{cls.__name__} has no setting", hint):
            cls(0.1, **named)


def test_what_has_no_default_comes_with_an_example():
    with says(TypeError, "LarsMomentum needs momentum, such as momentum=0.9."):
        LarsMomentum(0.1)


# Names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"), [("LinearWarmup", "LinearWarmup"), ("StepLR", "StepDecay")]
)
def test_schedules_are_in_lr(name, found):
    with says(AttributeError, f"Write optlab.optimizer.lr.{found}."):
        getattr(ol.optimizer, name)


@pytest.mark.parametrize(
    ("name", "cls"), [("adam", "Adam"), ("sgd", "SGD"), ("lars_momentum", "LarsMomentum")]
)
def test_a_module_in_place_of_its_class(name, cls):
    with says(TypeError, f"{name} is a module", f"the class is optlab.optimizer.{cls}."):
        getattr(ol.optimizer, name)(0.1)


def test_the_rate_of_a_schedule():
    schedule = lr.StepDecay(0.5, 2)
    for name in ("get_last_lr", "lr"):
        with says(AttributeError, f"StepDecay has no {name!r}", "The present rate is schedule()."):
            getattr(schedule, name)
    with pytest.raises(AttributeError, match=r"^StepDecay has no 'optimizer'\.$"):
        schedule.optimizer  # noqa: B018
    assert copy.deepcopy(schedule)() == 0.5


def test_what_schedules_step_with():
    with says(TypeError, "ReduceOnPlateau.step takes what was measured", "schedule.step(loss)"):
        lr.ReduceOnPlateau(0.5).step()
    schedule = lr.CosineAnnealingDecay(0.5, 10)
    with says(
        TypeError, "epoch must be a whole number", "only ReduceOnPlateau.step takes a metric"
    ):
        schedule.step(0.3)
    assert schedule.last_epoch == 0


# States -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("names", "swapped"), [(("a", "b"), False), ((None, None), True)])
def test_names_find_moments_in_another_order_and_places_do_not(names, swapped):
    """As documented: unnamed parameters are matched by the order in which they were saved."""

    def parameters():
        return [ol.Parameter(np.full(2, 1.0), name=name) for name in names]

    a, b = parameters()
    first = Momentum(0.1, parameters=[a, b])
    give(a, [1.0, 1.0])
    give(b, [2.0, 2.0])
    first.step()
    a, b = parameters()
    second = Momentum(0.1, parameters=[b, a])
    second.set_state_dict(first.state_dict())
    of_a = second.state_dict()[f"{names[0] or 'parameter 1'}.velocity"].numpy()
    np.testing.assert_array_equal(of_a, [2.0, 2.0] if swapped else [1.0, 1.0])


# The same line for every optimizer --------------------------------------------------------------


def test_lbfgs_takes_no_ensembles():
    p = ol.Parameter(ol.ensemble(np.ones((3, 2))))
    before = p.data
    with says(TypeError, "LBFGS takes no ensembles", "ol.compare("):
        LBFGS(parameters=[p])
    assert p.data is before
    with says(TypeError, "LBFGS takes no ensembles"):
        LBFGS(ol.ensemble(np.array([0.1, 1.0])))


# Averages in a notebook -------------------------------------------------------------------------


def test_averages_show_themselves():
    w = ol.Parameter(np.ones((2, 3), np.float32))
    average = ExponentialMovingAverage(0.9, name="<mine>")
    assert "It averages no parameters yet." in average._repr_html_()
    average = ExponentialMovingAverage(0.9, parameters=[w], name="<mine>")
    page = average._repr_html_()
    assert "<b>ExponentialMovingAverage</b>" in page
    assert "&lt;mine&gt;" in page
    assert "decay = 0.9" in page
    assert "It averages 1 parameter of 6 elements, and keeps " in page
    average = ModelAverage(0.15, parameters=[w])
    assert "average_window_rate = 0.15" in average._repr_html_()
