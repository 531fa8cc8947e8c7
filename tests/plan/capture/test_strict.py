"""`strict=False` runs eagerly what cannot be captured; `check=n` compares the first calls."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture.forms import PLAIN, STEPS, outcome
from tests.plan.capture.refused import CHANCE, EFFECTS, REFUSED, Bench, inputs
from tests.plan.capture.twins import counted, equal_runs, given, leaves, program, same


def results(name: str, how: Any) -> list[Any]:
    """Call a function five times; return its results, the engine's state and the user's."""
    ol.seed(1)
    b = Bench()
    f = how(REFUSED[name](b))
    found = dict(leaves({"results": [f(x) for x in inputs(5)]}))
    return [found, b.state(), b.of_the_user()]


REPEATABLE = [name for name in REFUSED if name not in CHANCE]


@pytest.mark.parametrize("name", REPEATABLE)
def test_what_is_refused_runs_eagerly(name: str) -> None:
    """The effects on the user's objects happen once a call, as they do eagerly."""
    eager = results(name, lambda f: f)
    found = results(name, partial(ol.capture, strict=False))
    assert found[2] == eager[2]
    same(found[1], eager[1])
    same(found[0], eager[0])


@pytest.mark.parametrize("name", CHANCE)
def test_chance_stays_chance(name: str) -> None:
    ol.seed(1)
    b = Bench()
    f = ol.capture(CHANCE[name](b), strict=False)
    x = inputs(1)[0]
    found = {f(x).numpy().tobytes() for _ in range(6)}
    assert len(found) == 6


def test_a_generator_of_the_user_is_advanced_once_a_call() -> None:
    found = results("random_generator_of_the_user", partial(ol.capture, strict=False))
    assert found == results("random_generator_of_the_user", lambda f: f)


@pytest.mark.parametrize("name", EFFECTS)
def test_that_they_are_repeatable(name: str) -> None:
    assert results(name, lambda f: f) == results(name, lambda f: f)


def test_what_is_printed_is_printed_once_a_call(capsys: pytest.CaptureFixture[str]) -> None:
    results("printing", lambda f: f)
    wanted = capsys.readouterr().out
    results("printing", partial(ol.capture, strict=False))
    assert capsys.readouterr().out == wanted
    assert wanted.count("Tensor(") == 5


@pytest.mark.filterwarnings("ignore:no parameter of this Adam has a gradient")
@pytest.mark.parametrize("name", [*STEPS, *PLAIN])
def test_what_can_be_captured_still_is(name: str) -> None:
    form = (STEPS | PLAIN)[name]
    with np.errstate(all="ignore"):
        found = outcome(form, partial(ol.capture, strict=False))
        same(found, outcome(form, lambda f: f))


def test_it_does_not_run_the_function_once_it_is_captured() -> None:
    f = lambda x: np.tanh(x) * 2  # noqa: E731
    captured = ol.capture(f, strict=False)
    captured(given(3))
    with counted(f) as runs:
        for i in range(5):
            captured(given(3, seed=i))
    assert runs == [0]


def test_branches_on_values_take_the_path_of_each_call() -> None:
    captured = ol.capture(lambda x: x * 2 if x.sum() > 0 else -x, strict=False)
    for sign in (1, -1, -1, 1, -1):
        x = sign * np.ones(3)
        np.testing.assert_array_equal(captured(x), x * 2 if sign > 0 else -x)


def test_a_function_that_was_refused_is_not_tried_in_every_call() -> None:
    f = lambda x: x * 2 if x.sum() > 0 else -x  # noqa: E731
    captured = ol.capture(f, strict=False)
    captured(np.ones(3))
    with counted(f) as runs:
        for _ in range(20):
            captured(np.ones(3))
    assert runs == [20]


def test_why_it_runs_eagerly_can_be_read() -> None:
    captured = ol.capture(lambda x: x * 2 if x.sum() > 0 else -x, strict=False)
    captured(np.ones(3))
    assert captured.plan is None
    assert "branch" in captured.execution
    captured = ol.capture(lambda x: x * 2, strict=False)
    captured(np.ones(3))
    assert captured.plan is not None
    assert "captured" in captured.execution


# check=n.


@pytest.mark.parametrize("network", ["mlp", "lstm"])
@pytest.mark.parametrize("check", [1, 5, 1000])
def test_checked_runs_are_those_of_eager_running(network: str, check: int) -> None:
    make = lambda **common: ol.optimizer.Adam(0.01, **common)  # noqa: E731
    equal_runs(partial(program, network, make), 12, check=check)


def test_so_many_calls_run_both_ways() -> None:
    f = lambda x: np.tanh(x) * 2  # noqa: E731
    checked, plain = ol.capture(f, check=4), ol.capture(f)
    counts = []
    for captured in (checked, plain):
        with counted(f) as runs:
            for i in range(10):
                captured(given(3, seed=i))
        counts.append(runs[0])
    assert counts[0] >= counts[1] + 3  # the first of the four calls runs it anyway
    with counted(f) as runs:
        checked(given(3))
    assert runs == [0]


def test_what_capture_cannot_see_is_found_by_a_check() -> None:
    """A number in memory that is none of Python's is a constant of the plan."""
    scale = ctypes.c_double(2.0)
    f = lambda x: x * scale.value  # noqa: E731
    captured = ol.capture(f, check=3)
    np.testing.assert_array_equal(captured(np.ones(3)), [2.0] * 3)
    scale.value = 3.0
    with pytest.raises(ol.CaptureError, match=r"test_strict\.py") as error:
        captured(np.ones(3))
    assert "check" in str(error.value)


def test_a_check_that_fails_runs_eagerly_if_not_strict() -> None:
    scale = ctypes.c_double(2.0)
    f = lambda x: x * scale.value  # noqa: E731
    captured = ol.capture(f, check=3, strict=False)
    np.testing.assert_array_equal(captured(np.ones(3)), [2.0] * 3)
    for number in (3.0, 4.0, 5.0, 6.0):
        scale.value = number
        np.testing.assert_array_equal(captured(np.ones(3)), [number] * 3)


@pytest.mark.parametrize("check", [-1, 1.5, "two", True])
def test_a_wrong_number_of_checks_is_refused(check: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="check"):
        ol.capture(lambda x: x, check=check)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="full_graph"):
        ol.capture(lambda x: x, full_graph=True)
