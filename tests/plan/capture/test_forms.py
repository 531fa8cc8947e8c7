"""A captured function takes and gives what the function takes and gives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture.forms import PLAIN, STEPS, Form, calls, outcome, tensors
from tests.plan.capture.twins import F, counted, given, leaves, mlp, nn, same


def eager(f: Any) -> Any:
    return f


@pytest.mark.filterwarnings("ignore:no parameter of this Adam has a gradient")
@pytest.mark.parametrize("name", STEPS)
def test_steps_of_every_form(name: str) -> None:
    same(outcome(STEPS[name], ol.capture), outcome(STEPS[name], eager))


@pytest.mark.parametrize("name", PLAIN)
def test_functions_of_every_form(name: str) -> None:
    with np.errstate(all="ignore"):
        same(outcome(PLAIN[name], ol.capture), outcome(PLAIN[name], eager))


@pytest.mark.filterwarnings("ignore:no parameter of this Adam has a gradient")
@pytest.mark.parametrize("name", [*STEPS, *PLAIN])
def test_that_they_are_repeatable(name: str) -> None:
    """Else a difference would say nothing about capture."""
    forms = STEPS | PLAIN
    with np.errstate(all="ignore"):
        same(outcome(forms[name], eager), outcome(forms[name], eager))


def test_layout_of_results() -> None:
    """Results have the strides of the eager ones: what the user computes next has its bits, too."""
    f = lambda x: (x.T * 2, x + 1, x[:, ::2] * 1, np.swapaxes(x, 0, 1).copy())  # noqa: E731
    captured = ol.capture(f)
    x = given(6, 4)
    for x in (given(6, 4), given(6, 4, seed=1)):
        for one, other in zip(captured(x), f(x), strict=True):
            assert one.strides == other.strides
            np.testing.assert_array_equal(one, other)


# Ways to write it.


def test_a_decorated_function_keeps_its_name() -> None:
    @ol.capture
    def double(x: Any) -> Any:
        """Return twice x."""
        return 2 * x

    assert double.__name__ == "double"
    assert double.__doc__ == "Return twice x."
    assert double.__wrapped__(3) == 6
    assert double(ol.ones([2])).tolist() == [2.0, 2.0]


def test_a_decorator_with_options() -> None:
    @ol.capture(strict=False)
    def absolute(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    assert absolute(ol.ones([2])).tolist() == [1.0, 1.0]
    assert absolute(-ol.ones([2])).tolist() == [1.0, 1.0]


class Trainer:
    """A class whose method is captured: one plan must not serve two of its objects."""

    def __init__(self, seed: int) -> None:
        ol.seed(seed)
        self.model = mlp()
        self.optimizer = ol.optimizer.Adam(0.01, parameters=self.model.parameters())

    def step(self, x: Any, y: Any) -> Any:
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        return loss


class Decorated(Trainer):
    """The same with the decorator."""

    step = ol.capture(Trainer.step) if hasattr(ol, "capture") else Trainer.step


def losses(trainers: list[Any], steps: list[Any]) -> list[bytes]:
    x, y = ol.to_tensor(given(8, 6)), np.arange(8) % 4
    ol.seed(5)
    found = [step(x, y).numpy().tobytes() for _ in range(5) for step in steps]
    return found + [
        value.numpy().tobytes() for one in trainers for value in one.model.state_dict().values()
    ]


def test_methods() -> None:
    def of(kind: type, how: Any) -> list[bytes]:
        trainers = [kind(1), kind(2)]
        return losses(trainers, [how(one.step) for one in trainers])

    wanted = of(Trainer, eager)
    assert of(Trainer, ol.capture) == wanted
    assert of(Decorated, eager) == wanted


def test_the_forward_method_of_a_layer() -> None:
    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 2)

        @ol.capture
        def forward(self, x: Any) -> Any:
            return np.tanh(self.linear(x))

    nets = [Net(), Net()]
    for x in tensors(4, 3):
        for net in nets:
            net(x).sum().backward()
            found = net.linear.weight.grad.numpy()
            net.clear_gradients()
            np.tanh(net.linear(x)).sum().backward()
            np.testing.assert_array_equal(found, net.linear.weight.grad.numpy())
            net.clear_gradients()
    assert [name for name, _ in nets[0].named_parameters()] == ["linear.weight", "linear.bias"]


def test_a_layer_is_captured_as_a_function() -> None:
    model = mlp()
    model.eval()
    captured = ol.capture(model)
    for x in tensors(5, 6):
        np.testing.assert_array_equal(captured(x).detach().numpy(), model(x).detach().numpy())
    assert captured.plan is not None


def test_a_partial_function_and_a_callable_object() -> None:
    class Scale:
        def __call__(self, x: Any, k: float = 2.0) -> Any:
            return x * k

    for f in (partial(Scale(), k=3.0), Scale(), np.tanh, partial(np.sum, axis=0)):
        captured = ol.capture(f)
        for x in tensors(2, 3):
            assert dict(leaves(captured(x))) == dict(leaves(f(x)))


@pytest.mark.parametrize("wrong", [3, "text", ol.ones([2])], ids=str)
def test_what_cannot_be_called_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="call"):
        ol.capture(wrong)(ol.ones([2]))


def test_arguments_are_bound_as_the_function_binds_them() -> None:
    captured = ol.capture(lambda x, k=2.0, *more, scale=1.0: x * k * scale + sum(more))
    x = ol.ones([2])
    for args, options in [((x,), {}), ((x, 3.0), {}), ((x,), {"k": 3.0}), ((x, 1.0, 5.0), {}),
                          ((x,), {"scale": 4.0}), ((), {"x": x})]:  # fmt: skip
        wanted = captured.__wrapped__(*args, **options)
        assert captured(*args, **options).tolist() == wanted.tolist()
    with pytest.raises(TypeError, match="missing 1 required"):
        captured()
    with pytest.raises(TypeError, match="unexpected keyword argument 'wrong'"):
        captured(x, wrong=1)


def test_an_error_of_the_function_is_its_own() -> None:
    def f(x: Any) -> Any:
        if x.shape[0] != 3:
            raise ValueError("three rows, please")
        return x * 2

    captured = ol.capture(f)
    assert captured(ol.ones([3])).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(ValueError, match="three rows"):
        captured(ol.ones([2]))
    assert captured(ol.ones([3])).tolist() == [2.0, 2.0, 2.0]


# Nested.


def test_a_captured_function_inside_another() -> None:
    inner = ol.capture(lambda x: np.tanh(x) * 2)
    body = lambda x: (inner(x) + inner(x * 2)).sum()  # noqa: E731
    outer = ol.capture(body)
    for x in tensors(4):
        wanted = (np.tanh(x) * 2 + np.tanh(x * 2) * 2).sum()
        assert inner(x).tolist() == (np.tanh(x) * 2).tolist()
        assert outer(x).item() == wanted.item() == body(x).item()
    with counted(body) as runs:
        outer(tensors(4)[0])
    assert runs == [0]


def test_a_captured_step_that_calls_a_captured_loss() -> None:
    def make(how: Any) -> Form:
        model = nn.Linear(3, 2)
        optimizer = ol.optimizer.Momentum(0.1, parameters=model.parameters())
        loss_of = how(lambda x: (model(x) ** 2).mean())

        def step(x: Any) -> Any:
            loss = loss_of(x)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return Form(step, calls(*tensors(5, 3), *tensors(5, 3)), model.state_dict)

    wanted = outcome(partial(make, eager), eager)
    for inner in (ol.capture, eager):
        for outer in (ol.capture, eager):
            same(outcome(partial(make, inner), outer), wanted)


def test_captured_of_captured() -> None:
    f = ol.capture(ol.capture(lambda x: x * 3))
    assert [f(x).tolist() for x in tensors(2)] == [(x * 3).tolist() for x in tensors(2)]


# Modes around a call.


def test_recording_of_the_tape_around_a_call() -> None:
    w = ol.Parameter([1.0, 2.0, 3.0])
    captured = ol.capture(lambda x: (w * x).sum())
    for i, x in enumerate(tensors(3) * 2):
        if i % 2:
            with ol.no_grad():
                y = captured(x)
            assert not y.requires_grad
        else:
            y = captured(x)
            assert y.requires_grad
            y.backward()
            np.testing.assert_array_equal(w.grad.numpy(), x.numpy())
            w.clear_grad()
        assert y.item() == (w * x).sum().item()


def test_precision_around_a_call() -> None:
    model = nn.Linear(3, 2)
    captured = ol.capture(lambda x: model(x))
    for i, x in enumerate(tensors(4, 3)):
        with ol.amp.auto_cast(enable=bool(i % 2), dtype="float16"):
            found, wanted = captured(x), model(x)
        assert found.dtype == wanted.dtype == ("float16" if i % 2 else "float32")
        assert found.detach().numpy().tobytes() == wanted.detach().numpy().tobytes()


def test_random_scopes_around_a_call() -> None:
    f = lambda x: F.dropout(x, 0.5) + ol.rand([4])  # noqa: E731
    captured = ol.capture(f)
    x = ol.ones([4])

    def values(call: Any) -> list[Any]:
        found = []
        ol.seed(2)
        for scope in (0, 1, 0, None, 5):
            if scope is None:
                found += [call(x).tolist(), ol.rand([1]).tolist()]
            else:
                with ol.random_scope(scope):
                    found += [call(x).tolist(), call(x).tolist(), ol.rand([1]).tolist()]
        return found

    assert values(captured) == values(f)


def test_threads_call_one_function_at_a_time_or_together() -> None:
    from concurrent.futures import ThreadPoolExecutor

    captured = ol.capture(lambda x: np.tanh(x @ x.T).sum(axis=0))
    inputs = [given(8, 8, seed=i) for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(captured, inputs))
    for x, y in zip(inputs, found, strict=True):
        np.testing.assert_array_equal(y, np.tanh(x @ x.T).sum(axis=0))
