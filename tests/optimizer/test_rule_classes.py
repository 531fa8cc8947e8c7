"""Errors in classes of user rules: at the definition of the class, and in its steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer import LBFGS, lr
from tests.optimizer.helpers import give
from tests.optimizer.test_messages import says


def test_a_class_may_be_made_where_no_module_has_a_name():
    code = """
class Plain(Optimizer):
    hyperparameters = {"learning_rate": 0.1}
    def update(self, p, g, s, h, c):
        return p - h.learning_rate * g, {}
"""
    place = {"Optimizer": ol.optimizer.Optimizer}
    exec(code, place)
    w = ol.Parameter(np.ones(2))
    optimizer = place["Plain"](parameters=[w])
    for _ in range(2):
        (w * 2.0).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    np.testing.assert_array_equal(w.numpy(), np.ones(2) - 0.1 * 2 - 0.1 * 2)


def rule(**declared):
    """Return a class of a user's rule."""

    def update(self, p, g, s, h, c):
        return p - h.learning_rate * g, {name: getattr(s, name) for name in self.slots}

    return type("Mine", (ol.optimizer.Optimizer,), {"update": update, **declared})


@pytest.mark.parametrize("start", [None, "0", [0.0], np.zeros])
def test_slots_begin_at_numbers(start):
    with says(TypeError, "Mine.slots: 'prev' begins at a number, such as 0.0; got "):
        rule(slots={"prev": start})


@pytest.mark.parametrize("start", [0, 1.5, np.float32(2), float("inf")])
def test_any_number_will_do_for_a_slot(start):
    optimizer = rule(slots={"prev": start})(0.1, parameters=[ol.Parameter([1.0])])
    assert optimizer.state_dict()["parameter 0.prev"].item() == start


def test_slots_of_the_settings_begin_at_numbers_too():
    cls = rule(slots_for=lambda self, h: {"prev": None})
    with says(TypeError, "Mine.slots_for(h): 'prev' begins at a number"):
        cls(0.1)


@pytest.mark.parametrize("slots", [["m"], "m", 0.0, None, {0: 0.0}])
def test_slots_are_a_dict(slots):
    with says(TypeError, "Mine.slots must be a dict of name and start value, such as {'m': 0.0}"):
        rule(slots=slots)


@pytest.mark.parametrize("settings", [["learning_rate"], 0.1, "learning_rate"])
def test_hyperparameters_are_a_dict(settings):
    with says(TypeError, "Mine.hyperparameters must be a dict of name and start value, such as"):
        rule(hyperparameters=settings)


def test_a_rate_is_a_float_whatever_the_class_begins_at():
    cls = rule(hyperparameters={"learning_rate": 1})
    rates = [cls().get_lr(), cls(0.1).get_lr(), cls(lr.StepDecay(0.5, 2)).get_lr()]
    assert rates == [1.0, 0.1, 0.5]
    assert [type(rate) for rate in rates] == [float] * 3


def test_what_makes_a_setting_whole_is_said():
    cls = rule(hyperparameters={"learning_rate": 0.1, "power": 2})
    assert cls(power=3).settings["power"] == 3
    with says(ValueError, "power must be a whole number; got 0.5.", "write 2.0 in the class"):
        cls(power=0.5)
    with says(ValueError, "power", "write 2.0 in the class"):
        cls(parameters=[{"params": [ol.Parameter([1.0])], "power": 0.5}])
    with pytest.raises(ValueError, match=r"must be a whole number; got 1\.5\.$"):
        LBFGS(max_iter=1.5)


@pytest.mark.parametrize(
    ("name", "method", "wanted"),
    [
        ("update", lambda self, p, g: p, "update(self, p, g, s, h, c)"),
        ("update", lambda p, g, s, h, c: p, "update(self, p, g, s, h, c)"),
        ("update", lambda self, p, g, s, h, c, t: p, "update(self, p, g, s, h, c)"),
        ("scalars", lambda self, t: {}, "scalars(self, t, h)"),
        ("check", lambda self: None, "check(self, h)"),
    ],
)
def test_methods_take_what_they_are_given(name, method, wanted):
    method.__name__ = name
    with says(TypeError, f"Mine.{name} must be written as {wanted}", f"it is {name}("):
        rule(**{name: method})


def test_methods_may_take_more_by_default():
    rule(scalars=lambda self, t, h, extra=1: {}, update=lambda self, *given: given)
    rule(scalars=staticmethod(lambda t, h: {}))


# Rules that treat arrays as scalars -------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "instead"),
    [
        (lambda g: g if g > 0 else -g, "np.where(g > 0, a, b)"),
        (lambda g: max(g, 0 * g), "np.maximum(a, b)"),
        (math.sqrt, "np.sqrt(g)"),
        (lambda g: g * float(g), "np.sqrt(g)"),
    ],
)
@pytest.mark.parametrize("size", [3, 20_000])
def test_arrays_are_no_single_numbers(compute, instead, size):
    def update(self, p, g, s, h, c):
        return p - h.learning_rate * compute(g), {}

    w = ol.Parameter(np.ones(size))
    optimizer = rule(update=update)(0.1, parameters=[w])
    give(w, np.ones(size))
    with pytest.raises((TypeError, ValueError)) as caught:
        optimizer.step()
    [note] = caught.value.__notes__
    assert "In Mine.update" in note
    assert instead in note
    assert (w.numpy() == 1).all()


def test_other_errors_of_a_rule_stay_as_they_are():
    def update(self, p, g, s, h, c):
        raise TypeError("of its own")

    w = ol.Parameter([1.0])
    give(w, [1.0])
    with pytest.raises(TypeError, match="of its own") as caught:
        rule(update=update)(0.1, parameters=[w]).step()
    assert not hasattr(caught.value, "__notes__")
