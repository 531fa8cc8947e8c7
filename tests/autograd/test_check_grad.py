"""check_grad finds wrong derivatives and names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.operation import Operation
from optlab.autograd.tensor.tensor import apply


def with_rules(forward: Callable[..., Any], *pullbacks: Any, name: str = "mine") -> Any:
    """Return a function with its own rules, which are in no table."""
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
    """The rule's values are right, but it detaches them from the tape."""
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


def failure(f: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        ol.check_grad(f, *args, **options)
    prose, table, rest = str(caught.value).partition("\nThe gradient of")
    return prose.replace("\n", " ") + table + rest


def test_containers_are_checked_and_their_parts_are_named() -> None:
    def loss(network: Any, x: Any) -> Any:
        return {"out": np.tanh(x @ network["w"]) + network["layers"][0], "n": x * 2}

    network = {"w": np.ones((3, 2)) / 3, "layers": [np.zeros(2), (X,)]}
    ol.check_grad(loss, network, np.ones((4, 3)))
    double = with_rules(lambda a: a * 1.0, lambda g: g * 2)
    said = failure(lambda p: p["w"] * double(p["layers"][1]), {"w": X, "layers": [X, X * 2]})
    assert "argument 0['layers'][1]" in said
    assert "your function" in said


@pytest.mark.parametrize("n", [2, np.array([0, 2]), np.array([True, False, True]), "sum", None])
def test_what_is_no_floating_number_is_passed_through_as_it_is(n: Any) -> None:
    def f(x: Any, n: Any) -> Any:
        assert not isinstance(n, ol.Tensor)
        return x**n if isinstance(n, int) else x[n] ** 2 if isinstance(n, np.ndarray) else x * x

    ol.check_grad(f, X, n)
    said = failure(lambda n, x: with_rules(lambda a: a * a, lambda g, a: g * a)(x), n, X)
    assert "for argument 1 is wrong" in said


def test_nothing_to_differentiate_by_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Write 2\.0 instead of 2"):
        ol.check_grad(np.sin, 2)


def test_the_message_shows_which_entry_is_wrong_and_by_what_factor() -> None:
    f = with_rules(cube, lambda g, a: g * 3 * a * a * np.where(a < 0, 2.0, 1.0))
    lines = failure(f, X, order=1).splitlines()
    assert [line.endswith("(right)") for line in lines if line.startswith("  [")] == [1, 0, 1]
    (wrong,) = (line for line in lines if line.startswith("  [1]"))
    assert [float(word) for word in wrong.split()[1:]] == pytest.approx([8.64, 4.32, 2.0])
    said = failure(f, X)
    assert max(map(len, said.splitlines()[1:])) <= 96
    said = " ".join(said.split())
    for part in ("<u'J, v>", "no derivatives themselves", "kink", "float32", "random", "ctx.y = y"):
        assert part in said
    assert "entry by entry" not in failure(f, np.linspace(-1, 1, 11))


def test_where_the_sum_hides_the_mistake_random_weights_show_it() -> None:
    f = with_rules(lambda a: a - np.mean(a), lambda g: (g - np.mean(g)) * 2)
    said = failure(f, X, order=1)
    assert "randomly weighted sum" in said
    assert [float(line.split()[3]) for line in said.splitlines() if line.startswith("  [")] == [
        2
    ] * 3


def test_the_second_order_numbers_arguments_as_the_user_does_and_names_the_function() -> None:
    class Cube(ol.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a)
            ctx.b = b
            return a * b * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (a,) = ctx.saved_tensors
            b = ctx.b.data if isinstance(ctx.b, ol.Tensor) else ctx.b
            return g * b * b, g * 2 * a * b

    said = failure(Cube.apply, X, X + 1)
    assert "order 2: the derivative of the gradient of Cube for argument 1 is wrong" in said
    assert "derivatives of order 1, entry by entry" in said


def test_a_function_that_closes_over_trained_parameters() -> None:
    layer = ol.nn.Linear(3, 2, dtype="float64")
    ol.check_grad(lambda x: np.tanh(layer(x)), np.array([[0.1, -0.4, 0.8]]))
