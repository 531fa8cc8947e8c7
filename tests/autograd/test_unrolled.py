"""Gradients through loops that themselves take gradients: their values, and how the work grows."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol

X = np.random.default_rng(0).standard_normal((6, 3))
Y = np.random.default_rng(1).standard_normal(6)


def loss(w: Any) -> Any:
    r = X @ w - Y
    return np.mean(r * r * r * r)


def by_ol_grad(rate: Any, steps: int) -> Any:
    w: Any = np.zeros(3)
    for _ in range(steps):
        w = w - rate * ol.grad(loss)(w)
    return loss(w)


def by_vjp(rate: Any, steps: int) -> Any:
    w: Any = np.zeros(3)
    for _ in range(steps):
        value, pullback = ol.vjp(loss, w)
        w = w - rate * pullback(np.ones_like(value))[0]
    return loss(w)


def by_hvp(rate: Any, steps: int) -> Any:
    w: Any = np.zeros(3)
    for _ in range(steps):
        w = w - rate * ol.hvp(loss, w, 0.1 * (w - np.ones(3)))
    return loss(w)


def with_a_hidden_loop(rate: Any, steps: int) -> Any:
    """A loop inside the function whose gradient is taken in every step."""
    w: Any = np.zeros(3)

    def ahead(w: Any) -> Any:
        return loss(w - rate * ol.grad(loss)(w))

    for _ in range(steps):
        w = w - rate * ol.grad(ahead)(w)
    return loss(w)


LOOPS = [by_ol_grad, by_vjp, by_hvp, with_a_hidden_loop]


def lines_run(call: Callable[[], Any]) -> int:
    """Count the lines of Python that a call executes, comprehensions and generators included."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("loop", LOOPS)
def test_work_grows_with_the_steps_and_not_with_their_square(loop: Any) -> None:
    short, long = (lines_run(lambda n=n: ol.grad(loop)(0.02, n)) for n in (20, 80))
    assert long < 4.2 * short  # squares made it 6 to 9


@pytest.mark.parametrize("loop", LOOPS)
def test_the_slope_by_the_rate_equals_finite_differences(loop: Any) -> None:
    h = 1e-6
    wanted = (loop(0.005 + h, 7) - loop(0.005 - h, 7)) / (2 * h)
    assert ol.grad(loop)(0.005, 7) == pytest.approx(wanted, rel=1e-6)


def test_a_leaf_from_another_process_is_differentiated() -> None:
    """Its number on the clock of the tape is that of this process."""
    w = ol.Parameter(np.ones(3))
    w.node.made_at = 10**15  # that of a process which has run much longer
    copy = pickle.loads(pickle.dumps(w))
    assert copy.node.made_at < 10**15


def test_after_the_outer_gradient_inner_ones_are_arrays_again() -> None:
    """What remembers that something outside was differentiating must also forget it."""
    kept: list[Any] = []

    def outer(rate: Any) -> Any:
        w = np.zeros(3) - rate * ol.grad(loss)(np.zeros(3))
        w = w - rate * ol.grad(loss)(w)
        kept.append(w)
        return loss(w)

    ol.grad(outer)(0.02)
    (w,) = kept
    assert w.node is not None
    inner = ol.grad(loss)(w)
    assert inner.node is None
