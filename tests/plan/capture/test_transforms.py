"""Derivatives of captured functions, and captured derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH
from tests.plan.capture.forms import Form, calls, outcome, tensors
from tests.plan.capture.twins import F, given, leaves, mlp, nn, same


def bits(value: Any) -> dict[str, Any]:
    return dict(leaves({"": value}))


def surface(x: Any) -> Any:
    return np.sum((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2)


def energy(x: Any) -> Any:
    return np.sum(np.log(np.cosh(x)) * np.tanh(x[::-1])) + np.max(x)


SCALARS: dict[str, Callable[[Any], Any]] = {"surface": surface, "energy": energy}
POINTS = [given(5, seed=i, dtype="float64") for i in range(4)]

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": ol.grad,
    "value_and_grad": ol.value_and_grad,
    "hessian": ol.hessian,
    "jacobian of grad": lambda f: ol.jacobian(ol.grad(f)),
    "grad of grad": lambda f: ol.grad(lambda x: (ol.grad(f)(x) ** 2).sum()),
    "hvp": lambda f: lambda x: ol.hvp(f, x, np.ones_like(x)),
    "jvp": lambda f: lambda x: ol.jvp(f, (x,), (np.ones_like(x),)),
    "vjp": lambda f: lambda x: (lambda y, pull: (y, pull(np.ones_like(y))))(*ol.vjp(f, x)),
    "vmap": lambda f: lambda x: ol.vmap(f)(np.stack([x, 2 * x, x - 1])),
    "vmap of grad": lambda f: lambda x: ol.vmap(ol.grad(f))(np.stack([x, 2 * x, x - 1])),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("scalar", SCALARS)
def test_a_captured_transform(name: str, scalar: str) -> None:
    f = TRANSFORMS[name](SCALARS[scalar])
    captured = ol.capture(f)
    for x in POINTS:
        same(bits(captured(x)), bits(f(x)))
    assert len(captured.plans) == 1


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("scalar", SCALARS)
def test_a_transform_of_a_captured_function(name: str, scalar: str) -> None:
    inside = TRANSFORMS[name](ol.capture(SCALARS[scalar]))
    plain = TRANSFORMS[name](SCALARS[scalar])
    for x in POINTS:
        same(bits(inside(x)), bits(plain(x)))


@pytest.mark.parametrize("name", ["grad", "hessian", "vmap of grad"])
def test_captured_inside_and_outside(name: str) -> None:
    both = ol.capture(TRANSFORMS[name](ol.capture(energy)))
    plain = TRANSFORMS[name](energy)
    for x in POINTS:
        same(bits(both(x)), bits(plain(x)))


def test_nested_transforms_do_not_mix() -> None:
    f = ol.capture(lambda x: x * ol.grad(ol.capture(lambda y: x * y))(1.0))
    for _ in range(2):
        assert float(ol.grad(f)(2.0)) == 4.0
        assert float(ol.grad(f)(3.0)) == 6.0


# Backward outside of what is captured.


def test_forward_captured_and_backward_outside() -> None:
    def make(how: Any) -> Form:
        model = mlp()
        optimizer = ol.optimizer.Adam(0.02, parameters=model.parameters())
        forward = how(lambda x: model(x))

        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(forward(x), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        labels = np.arange(7) % 4
        state = lambda: [model.state_dict(), optimizer.state_dict()]  # noqa: E731
        return Form(step, calls(*((x, labels) for x in tensors(7, 6))) * 3, state)

    same(outcome(partial(make, ol.capture), lambda f: f), outcome(partial(make, _plain), _plain))


def _plain(f: Any) -> Any:
    return f


def test_gradients_of_arguments() -> None:
    f = lambda x, y: (np.sin(x) @ y).sum()  # noqa: E731
    captured = ol.capture(f)
    for i in range(4):
        found = []
        for call in (captured, f):
            x = ol.to_tensor(given(3, 4, seed=i), requires_grad=True)
            y = ol.to_tensor(given(4, 2, seed=i), requires_grad=bool(i % 2))
            z = x * 2  # not a leaf
            call(z, y).backward()
            found.append(bits([x.grad, y.grad]))
        assert found[0] == found[1]


def test_several_results_go_backward_each_alone() -> None:
    w = ol.Parameter(given(3))
    f = lambda x: (np.exp(w * x), {"sum": (w + x).sum(), "none": x * 2})  # noqa: E731
    captured = ol.capture(f)
    for i in range(3):
        x = ol.to_tensor(given(3, seed=i))
        found = []
        for call in (captured, f):
            y, parts = call(x)
            assert not parts["none"].requires_grad
            y.backward(ol.ones([3]) * 0.5)
            found.append(bits(w.grad))
            parts["sum"].backward()
            found.append(bits(w.grad))
            w.grad = None
        assert found[:2] == found[2:]


def test_double_backward_through_a_captured_forward() -> None:
    w = ol.Parameter(given(3, dtype="float64"))
    f = lambda x: (np.tanh(w * x) ** 2).sum()  # noqa: E731

    def penalty(call: Any, x: Any) -> Any:
        call(x).backward(create_graph=True)
        g = w.grad
        w.grad = None
        (g * g).sum().backward()
        found = bits(w.grad)
        w.grad = None
        return found

    captured = ol.capture(f)
    x = given(3, dtype="float64")
    captured(x)
    with pytest.raises(RuntimeError, match=r"backward.create_graph=True.*without ol.capture"):
        penalty(captured, x)
    w.grad = None
    assert penalty(f, x)


def test_a_gradient_penalty_inside() -> None:
    def make() -> Form:
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
        optimizer = ol.optimizer.Adam(0.02, parameters=model.parameters())

        def step(x: Any) -> Any:
            x = ol.to_tensor(x, stop_gradient=False)
            y = model(x).sum()
            y.backward(create_graph=True)
            loss = ((x.grad**2).sum() - 1) ** 2
            optimizer.clear_grad()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return Form(step, calls(*tensors(6, 3)) * 2, model.state_dict)

    same(outcome(make, ol.capture), outcome(make, _plain))


# Functional training: parameters and states are arguments and results.


def network(weights: dict[str, Any], x: Any) -> Any:
    return np.tanh(x @ weights["a"] + weights["b"]) @ weights["c"]


def start() -> dict[str, Any]:
    return {"a": given(3, 6), "b": given(6, seed=1), "c": given(6, 2, seed=2)}


def test_value_and_grad_with_updates_by_hand() -> None:
    def step(weights: Any, x: Any, y: Any, rate: Any) -> Any:
        loss, slopes = ol.value_and_grad(lambda w: ((network(w, x) - y) ** 2).mean())(weights)
        return loss, {name: w - rate * slopes[name] for name, w in weights.items()}

    def trained(call: Any) -> Any:
        weights, losses = start(), []
        for i in range(20):
            x, y = given(4, 3, seed=i % 5), given(4, 2, seed=10 + i % 5)
            loss, weights = call(weights, x, y, np.float32(0.1))
            losses.append(loss)
        return bits([losses, weights])

    captured = ol.capture(step)
    assert trained(captured) == trained(step)
    assert len(captured.plans) == 1


@pytest.mark.parametrize("name", EACH)
def test_functional_steps(name: str) -> None:
    optimizer = EACH[name]()

    def step(weights: Any, state: Any, x: Any, y: Any) -> Any:
        loss, slopes = ol.value_and_grad(lambda w: ((network(w, x) - y) ** 2).mean())(weights)
        return loss, *optimizer.functional_step(weights, slopes, state)

    def trained(call: Any) -> Any:
        ol.seed(4)
        weights = start()
        state, losses = optimizer.functional_init(weights), []
        for i in range(12):
            x, y = given(4, 3, seed=i % 5), given(4, 2, seed=10 + i % 5)
            loss, weights, state = call(weights, state, x, y)
            losses.append(loss)
        return bits([losses, weights, state])

    if name == "Dpsgd":  # it draws by the state
        with pytest.raises(ol.CaptureError, match=r"test_transforms\.py"):
            trained(ol.capture(step))
        assert trained(ol.capture(step, strict=False)) == trained(step)
        return
    captured = ol.capture(step)
    assert trained(captured) == trained(step)
    by_count = name in ("RAdam", "Rprop", "ASGD")  # what they do depends on the number of the step
    assert len(captured.plans) == (12 if by_count else 1)


def test_functional_steps_with_a_rate_that_changes() -> None:
    optimizer = ol.optimizer.Adam(0.1)

    def step(w: Any, state: Any, rate: float) -> Any:
        return optimizer.functional_step(w, 2 * w, state, learning_rate=rate)

    def trained(call: Any) -> Any:
        w, state = given(3), optimizer.functional_init(given(3))
        for i in range(5):
            w, state = call(w, state, 0.1 / (1 + i))
        return bits([w, state])

    captured = ol.capture(step)
    assert trained(captured) == trained(step)
    assert len(captured.plans) == 1
    with pytest.raises(ValueError, match="learning_rate must be"):
        captured(given(3), optimizer.functional_init(given(3)), -1.0)


def test_functional_steps_of_averages() -> None:
    optimizer = ol.optimizer.ExponentialMovingAverage.around(ol.optimizer.Adam(0.1), decay=0.9)
    step = lambda w, state: optimizer.functional_step(w, 2 * w, state)  # noqa: E731
    captured = ol.capture(step)
    w, state = given(3), optimizer.functional_init(given(3))
    for _ in range(6):
        same(bits(captured(w, state)), bits(step(w, state)))
        w, state = step(w, state)
    assert len(captured.plans) == 1


def test_a_functional_step_that_goes_another_way_than_the_captured_one() -> None:
    optimizer = ol.optimizer.RAdam(0.1)
    step = lambda w, state: optimizer.functional_step(w, 2 * w, state)  # noqa: E731
    w, first = given(3), optimizer.functional_init(given(3))
    state = first
    for _ in range(10):
        w, state = step(w, state)  # from the sixth on it is rectified
    captured = ol.capture(step)
    for now in (state, step(w, state)[1], first, state):
        same(bits(captured(w, now)), bits(step(w, now)))
    assert len(captured.plans) == 1


def test_a_state_of_a_captured_step_is_saved(tmp_path: Path) -> None:
    optimizer = ol.optimizer.Adam(0.1)
    captured = ol.capture(lambda w, state: optimizer.functional_step(w, 2 * w, state))
    w, state = captured(given(3), optimizer.functional_init(given(3)))
    ol.save(state, tmp_path / "state")
    same(bits(captured(w, ol.load(tmp_path / "state"))), bits(captured(w, state)))


def test_functional_call_of_a_layer() -> None:
    layer = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    loss = lambda w, x: (nn.functional_call(layer, w, x) ** 2).mean()  # noqa: E731
    captured = ol.capture(ol.value_and_grad(loss))
    weights = {name: p.numpy() for name, p in layer.named_parameters()}
    for i in range(3):
        x = given(5, 3, seed=i)
        same(bits(captured(weights, x)), bits(ol.value_and_grad(loss)(weights, x)))
        weights = {name: 0.9 * w for name, w in weights.items()}


def test_recomputation_inside() -> None:
    def make() -> Form:
        blocks = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.3)) for _ in range(3)]
        model = nn.Sequential(*blocks)
        optimizer = ol.optimizer.Adam(0.02, parameters=model.parameters())

        def step(x: Any) -> Any:
            h = ol.recompute(blocks[0], x)
            loss = (ol.recompute_sequential(blocks[1:], h, segments=2) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return Form(step, calls(*tensors(6, 4)) * 2, model.state_dict)

    same(outcome(make, ol.capture), outcome(make, _plain))


def test_a_function_of_the_user() -> None:
    class Cube(ol.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * g * x * x

    f = ol.grad(lambda x: Cube.apply(x).sum())
    captured = ol.capture(f)
    for x in POINTS:
        same(bits(captured(x)), bits(f(x)))
    assert len(captured.plans) == 1


def test_hooks_of_gradients() -> None:
    def make() -> Form:
        model = nn.Linear(3, 2)
        model.weight.register_hook(lambda g: g * 0.5)
        optimizer = ol.optimizer.SGD(0.1, parameters=model.parameters())

        def step(x: Any) -> Any:
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return Form(step, calls(*tensors(6, 3)), model.state_dict)

    same(outcome(make, ol.capture), outcome(make, _plain))
