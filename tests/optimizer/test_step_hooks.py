"""Hooks of a step: they run around every way to take one, and a handle removes them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH, give, random


def heard(optimizer):
    found = []
    before = optimizer.register_step_pre_hook(lambda o, a, k: found.append(("before", o, a, k)))
    after = optimizer.register_step_post_hook(lambda o, a, k: found.append(("after", o, a, k)))
    return found, before, after


@pytest.mark.parametrize("name", [*EACH, "LookAhead"])
def test_hooks_see_the_parameters_before_and_after_each_step(name):
    p = ol.Parameter(random(2, 3), name="w")
    optimizer = EACH.get(name, EACH["SGD"])(parameters=[p])
    if name == "LookAhead":
        optimizer = ol.optimizer.LookAhead(optimizer, k=2)
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(p.numpy()))
    optimizer.register_step_post_hook(lambda *_: seen.append(p.numpy()))
    path = [p.numpy()]
    for step in range(70):  # beyond the step at which small parameters are bound
        give(p, random(2, 3, seed=step))
        optimizer.step()
        optimizer.clear_grad()
        path.append(p.numpy())
    assert np.array_equal(seen[::2], path[:-1])
    assert np.array_equal(seen[1::2], path[1:])


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("how", ["step", "minimize", "apply_gradients"])
def test_every_way_to_take_a_step(how, wrapped):
    p = ol.Parameter([1.0], name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[p])
    inner, optimizer = optimizer, ol.optimizer.LookAhead(optimizer) if wrapped else optimizer
    found, before, after = heard(optimizer)
    of_inner = heard(inner)[0] if wrapped else None
    for _ in range(2):
        loss = (p * p).sum()
        if how == "minimize":
            optimizer.minimize(loss)
        elif how == "apply_gradients":
            optimizer.apply_gradients(optimizer.backward(loss))
        else:
            loss.backward()
            optimizer.step()
        before.remove()
    assert [what for what, *_ in found] == ["before", "after", "after"]
    assert all(o is optimizer for _, o, _, _ in found)
    if wrapped:
        assert [o is inner for _, o, _, _ in of_inner] == [True] * 4
    after.remove()
    after.remove()
    assert not optimizer.has_step_hooks


def test_lbfgs_gives_its_closure():
    p = ol.Parameter([1.0], name="w")
    optimizer = ol.optimizer.LBFGS(parameters=[p], max_iter=3)
    found, *_ = heard(optimizer)

    def closure():
        optimizer.clear_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert [(what, a, k) for what, _, a, k in found] == [
        ("before", (closure,), {}), ("after", (closure,), {}),
    ]  # fmt: skip


def test_a_pre_hook_may_change_the_gradient():
    p = ol.Parameter([1.0], name="w")
    optimizer = ol.optimizer.SGD(1.0, parameters=[p])

    def halve(*_):
        p.grad = p.grad / 2

    optimizer.register_step_pre_hook(halve)
    give(p, [0.5])
    optimizer.step()
    assert p.numpy().tolist() == [0.75]


def test_no_post_hook_after_a_step_that_raised():
    p = ol.Parameter([1.0], name="w")
    optimizer = ol.optimizer.SGD(1.0, parameters=[p], not_finite="raise")
    found, *_ = heard(optimizer)
    give(p, [np.inf])
    with pytest.raises(FloatingPointError):
        optimizer.step()
    assert [what for what, *_ in found] == ["before"]


def test_copies_have_hooks_of_their_own():
    template = ol.optimizer.SGD(0.1)
    found, before, _ = heard(template)
    p = ol.Parameter([1.0])
    bound = template.bind([p])
    before.remove()
    bound.minimize((p * p).sum())
    assert [what for what, *_ in found] == ["before", "after"]
    for other in (copy.deepcopy(bound), pickle.loads(pickle.dumps(bound))):
        assert not other.has_step_hooks


@pytest.mark.parametrize(
    "make", [EACH["SGD"], lambda **c: ol.optimizer.LookAhead(EACH["SGD"](**c))]
)
def test_a_plan_refuses_a_step_with_hooks(make):
    p = ol.Parameter([1.0], name="w")
    optimizer = make(parameters=[p])
    heard(optimizer)

    def step():
        (p * p).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    with pytest.raises(ol.CaptureError, match="step hooks"):
        ol.capture(step)()


@pytest.mark.parametrize("wrong", [None, 3, "step"])
def test_what_is_no_hook(wrong):
    optimizer = ol.optimizer.SGD(0.1, parameters=[ol.Parameter([1.0])])
    with pytest.raises(TypeError, match="hook of a step is a function"):
        optimizer.register_step_pre_hook(wrong)


class TestSubscribe:
    def test_a_handle_ends_the_subscription(self):
        p = ol.Parameter([1.0])
        optimizer = ol.optimizer.SGD(0.1, parameters=[p])
        steps = []
        handle = ol.events.subscribe("step_finished", steps.append)
        other = ol.events.subscribe(ol.events.step_finished, steps.append)
        optimizer.minimize((p * p).sum())
        handle.remove()
        handle.remove()
        optimizer.minimize((p * p).sum())
        other.remove()
        optimizer.minimize((p * p).sum())
        assert steps == [optimizer] * 3
        assert ol.events.step_finished.listeners == ()

    def test_a_listener_to_one_optimizer_hears_no_other(self):
        made = [ol.optimizer.SGD(0.1, parameters=[ol.Parameter([1.0])]) for _ in range(2)]
        heard = []
        with (
            ol.events.subscribe("step_taken", lambda who, _: heard.append(("one", who)), made[0]),
            ol.events.subscribe("step_taken", lambda who, _: heard.append(("all", who))),
        ):
            for optimizer in made:
                optimizer.minimize((optimizer.parameters[0] ** 2).sum())
        assert heard == [("one", made[0]), ("all", made[0]), ("all", made[1])]
        assert ol.events.step_taken.audience_of(made[0]) == ol.events.step_taken.listeners == ()

    def test_wrong_names_and_listeners(self):
        with pytest.raises(ValueError, match=r"there is no event 'step'; there are.*step_taken"):
            ol.events.subscribe("step", print)
        with pytest.raises(TypeError, match="an event or its name; got int"):
            ol.events.subscribe(3, print)
        with pytest.raises(TypeError, match="a listener is a function"):
            ol.events.subscribe("step_taken", None)
