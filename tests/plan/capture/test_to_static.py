"""`ol.jit.to_static` is capture that is not strict; a layer is given back itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as paddle
from tests.plan.capture.twins import counted, given

nn = paddle.nn


def test_a_function_is_captured() -> None:
    f = lambda x: np.tanh(x) * 2  # noqa: E731
    static = paddle.jit.to_static(f)
    static(given(3))
    with counted(f) as runs:
        for i in range(4):
            np.testing.assert_array_equal(static(given(3, seed=i)), np.tanh(given(3, seed=i)) * 2)
    assert runs == [0]
    assert static.plan is not None


@pytest.mark.parametrize("form", ["plain", "called", "named"])
def test_every_form_of_the_decorator(form: str) -> None:
    def double(x: Any) -> Any:
        """Return twice x."""
        return 2 * x

    decorate = {
        "plain": paddle.jit.to_static,
        "called": paddle.jit.to_static(),
        "named": lambda f: paddle.jit.to_static(function=f),
    }[form]
    static = decorate(double)
    assert static(paddle.ones([2])).tolist() == [2.0, 2.0]
    assert (static.__name__, static.__doc__) == ("double", "Return twice x.")


def test_a_layer_is_given_back_itself() -> None:
    layer = nn.Linear(2, 2)
    assert paddle.jit.to_static(layer) is layer


def test_a_branch_on_a_value_takes_the_path_of_each_call() -> None:
    @paddle.jit.to_static
    def f(x: Any) -> Any:
        if x.mean() > 0:
            return x - 1
        return x + 1

    for value in (1.0, -1.0, -1.0, 1.0):
        wanted = [value - 1 if value > 0 else value + 1] * 2
        assert f(paddle.full([2], value)).tolist() == wanted


def test_a_loop_on_a_value() -> None:
    @paddle.jit.to_static
    def halve(x: Any) -> Any:
        n = 0
        while x.sum() > 1:
            x, n = x / 2, n + 1
        return x, n

    assert [halve(paddle.full([2], value))[1] for value in (8.0, 0.1, 4.0)] == [4, 0, 3]


class SimpleNet(nn.Layer):
    """The network of the documents: its forward has a branch on a value."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(10, 3)

    @paddle.jit.to_static
    def forward(self, x: Any, y: Any = None) -> Any:
        out = self.linear(x)
        if y is not None:
            out = out + y
        if paddle.mean(out) > 0:
            out = out * 2
        return out


def test_a_documents_network_trains_as_without_the_decorator() -> None:
    class Plain(SimpleNet):
        def forward(self, x: Any, y: Any = None) -> Any:
            out = self.linear(x)
            if y is not None:
                out = out + y
            if paddle.mean(out) > 0:
                out = out * 2
            return out

    def losses(kind: type[Any]) -> list[bytes]:
        paddle.seed(3)
        net = kind()
        sgd = paddle.optimizer.SGD(0.05, parameters=net.parameters())
        found = []
        for i in range(10):
            x = paddle.to_tensor(given(4, 10, seed=i))
            y = paddle.ones([4, 3]) if i % 2 else None
            loss = net(x, y).mean() ** 2
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            found.append(loss.numpy().tobytes())
        return found

    assert losses(SimpleNet) == losses(Plain)


def test_a_training_loop_with_a_list_of_losses() -> None:
    """Effects on the user's objects happen as they do without the decorator."""
    net = nn.Linear(3, 1)
    sgd = paddle.optimizer.SGD(0.05, parameters=net.parameters())
    losses: list[float] = []

    @paddle.jit.to_static
    def step(x: Any) -> Any:
        loss = (net(x) ** 2).mean()
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        losses.append(loss.item())
        return loss

    found = [step(paddle.to_tensor(given(4, 3))).item() for _ in range(6)]
    assert losses == found
    assert found[-1] < found[0]


@pytest.mark.parametrize("options", [{"input_spec": [1]}, {"full_graph": True}, {"wrong": 1}])
def test_options_that_nothing_would_follow_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(options))):
        paddle.jit.to_static(lambda x: x, **options)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be called"):
        paddle.jit.to_static(3)
