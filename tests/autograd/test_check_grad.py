"""check_grad finds what is wrong, and says where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.operation import Operation
from optlab.autograd.tensor import apply


def with_rules(forward: Callable[..., Any], *pullbacks: Any, name: str = "mine") -> Any:
    """Give a function with rules of its own, which no table knows."""
    operation = Operation(name, forward, pullbacks, ["a", "b"][: len(pullbacks)])
    return lambda *args: apply(operation, args)


X = np.array([0.4, -1.2, 2.0])


def cube(a: Any) -> Any:
    return a * a * a


def test_a_right_rule_passes_at_every_order() -> None:
    f = with_rules(cube, lambda g, a: g * 3 * a * a)
    for order in (1, 2, 3, 4):
        ol.check_grad(f, X, order=order)


@pytest.mark.parametrize(
    "pullback",
    [lambda g, a: g * 2 * a * a, lambda g, a: g * 0, lambda g, a: -3 * g * a * a,
     lambda g, a: g * 3 * a * a * (1 + 1e-3), lambda g, a: g * np.nan],
    ids=["factor", "zero", "sign", "a thousandth", "nan"],
)  # fmt: skip
def test_a_wrong_first_order_is_found(pullback: Any) -> None:
    with pytest.raises(AssertionError, match=r"order 1: the derivative of .* for argument 0 is"):
        ol.check_grad(with_rules(cube, pullback), X, order=1)


def test_a_wrong_second_order_is_found_although_the_first_is_right() -> None:
    """The rule's numbers are right, but it hides from the tape how they were made."""
    f = with_rules(cube, lambda g, a: g * 3 * (a.detach() if isinstance(a, ol.Tensor) else a) ** 2)
    ol.check_grad(f, X, order=1)
    with pytest.raises(AssertionError, match=r"order 2: the derivative of the gradient of"):
        ol.check_grad(f, X, order=2)
    with pytest.raises(AssertionError, match="order 2"):
        ol.check_grad(f, X)


def test_the_argument_that_is_wrong_is_named() -> None:
    f = with_rules(lambda a, b: a * b, lambda g, b: g * b, lambda g, a: g * a * 2)
    with pytest.raises(AssertionError, match="argument 1"):
        ol.check_grad(f, X, X[::-1])


def test_a_function_that_cuts_the_tape_is_found() -> None:
    with pytest.raises(AssertionError, match="order 1"):
        ol.check_grad(lambda x: x.detach() ** 2 if isinstance(x, ol.Tensor) else x**2, X)


def test_the_name_of_the_function_is_in_the_message() -> None:
    def crooked(x: Any) -> Any:
        return with_rules(cube, lambda g: g)(x)

    with pytest.raises(AssertionError, match="crooked"):
        ol.check_grad(crooked, X)


@pytest.mark.parametrize("x", [2.0, [1.0, 2.0], np.float32(0.3), np.ones((2, 0)), [[1.0]]])
def test_any_kind_of_argument(x: Any) -> None:
    ol.check_grad(np.sin, x)
    ol.check_grad(np.sin, ol.to_tensor(x))


def test_it_draws_from_nobody_elses_random_numbers() -> None:
    ol.seed(3)
    wanted = ol.rand([4]).tolist()
    ol.seed(3)
    ol.check_grad(np.sin, X)
    assert ol.rand([4]).tolist() == wanted


def test_it_works_under_no_grad() -> None:
    with ol.no_grad():
        ol.check_grad(np.sin, X)
        with pytest.raises(AssertionError):
            ol.check_grad(with_rules(cube, lambda g, a: g * 2 * a * a), X)
