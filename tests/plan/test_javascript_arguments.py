"""Wrong arguments of `javascript_module` and `capture_rule`: each error says what to write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer import capture_rule
from optlab.plan import capture_value_and_grad, javascript_module

O = ol.optimizer  # noqa: E741
BOWL = capture_value_and_grad(lambda x, y: x * x + y * y, np.float64(1), np.float64(1))
RULE = capture_rule(O.SGD(0.1), steps=5)

WRONG_OPTIMIZERS = {
    "a class": (O.Adam, r"the class Adam\. Write capture_rule\(ol\.optimizer\.Adam\(0\.1\)"),
    "a surface": (ol.problems.rosenbrock, r"got Surface\. \(A surface is captured by"),
    "a plan": (BOWL, "got Plan"),
    "text": ("Adam", "got str"),
}


@pytest.mark.parametrize("name", WRONG_OPTIMIZERS)
def test_what_is_no_optimizer_is_not_captured(name: str) -> None:
    given, said = WRONG_OPTIMIZERS[name]
    with pytest.raises(TypeError, match=said):
        capture_rule(given, steps=5)


def test_steps_and_notches_have_kinds() -> None:
    with pytest.raises(TypeError, match=r"steps of capture_rule is a whole number.*got 'many'"):
        capture_rule(O.Adam(0.1), steps="many")  # type: ignore[arg-type]
    wrong: Any
    for wrong in ([0.5], {"beta1": 0.5}, {"beta1": "0.5"}):
        with pytest.raises(
            TypeError, match=r"a dict of lists, such as \{'beta1': \[0\.5, 0\.9\]\}"
        ):
            capture_rule(O.Adam(0.1), steps=5, notches=wrong)


WRONG_RULES = {
    "a rule alone": (RULE, "a dict of titles and rules; got Rule"),
    "an optimizer": ({"SGD": O.SGD(0.1)}, r"'SGD' must be what capture_rule returns.*got SGD\. Wr"),
    "a class": ({"SGD": O.SGD}, "got the class SGD"),
    "a surface": ({"SGD": ol.problems.rosenbrock}, "got Surface"),
    "a plan": ({"SGD": BOWL}, "got Plan"),
    "no title": ({1: RULE}, "the rule 1 must be .* a text for its title"),
}


@pytest.mark.parametrize("name", WRONG_RULES)
def test_what_is_no_rule_is_not_written(name: str) -> None:
    rules: Any
    rules, said = WRONG_RULES[name]
    with pytest.raises(TypeError, match=said) as error:
        javascript_module(BOWL, rules)
    assert "capture_rule(ol.optimizer.Adam(0.1), steps=500)" in str(error.value)


WRONG_SURFACES = {
    "a surface": (ol.problems.rosenbrock, "got Surface"),
    "a name": ("rosenbrock", "got str 'rosenbrock'"),
    "a function": ({"bowl": lambda x, y: x * x + y * y}, "'bowl' must be a plan .* got function"),
    "a rule": (RULE, "got Rule"),
    "no title": ({1: BOWL}, "the surface 1 must be a plan with a text for its title"),
}


@pytest.mark.parametrize("name", WRONG_SURFACES)
def test_what_is_no_plan_is_not_written(name: str) -> None:
    surfaces: Any
    surfaces, said = WRONG_SURFACES[name]
    with pytest.raises(TypeError, match=said) as error:
        javascript_module(surfaces, {"SGD": RULE})
    assert "capture_value_and_grad(f, np.float64(1), np.float64(1))" in str(error.value)


def test_what_the_error_says_to_write_works() -> None:
    rules = {"Adam": capture_rule(O.Adam(0.1), steps=5)}
    assert "export function run" in javascript_module(ol.problems.rosenbrock.plan, rules)
