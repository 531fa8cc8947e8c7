"""Derivatives inside of captured calls: graphs of gradients, leaves of the call, rules, `vmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture.forms import Form, calls, outcome, tensors
from tests.plan.capture.twins import F, given, leaves, nn, same


def bits(value: Any) -> dict[str, Any]:
    return dict(leaves({"": value}))


def eager(f: Any) -> Any:
    return f


def trained(body: Callable[..., Any]) -> Callable[[], Form]:
    """Return a form of ``body(model, optimizer, x)``, called for four batches."""

    def make() -> Form:
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
        optimizer = ol.optimizer.Adam(0.05, parameters=model.parameters())
        gradients = lambda: [p.grad for p in model.parameters()]  # noqa: E731
        state = lambda: [model.state_dict(), optimizer.state_dict(), gradients()]  # noqa: E731
        return Form(lambda x: body(model, optimizer, x), calls(*tensors(6, 3)), state)

    return make


def penalty_of_parameters(model: Any, optimizer: Any, x: Any) -> Any:
    loss = (model(x) ** 2).mean()
    loss.backward(create_graph=True)
    penalty = sum((p.grad**2).sum() for p in model.parameters())
    for p in model.parameters():
        p.grad = None
    penalty.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss, penalty


def penalty_added_to_gradients(model: Any, optimizer: Any, x: Any) -> Any:
    """The second backward adds to the gradients of the first, which have graphs."""
    loss = (model(x) ** 2).mean()
    loss.backward(create_graph=True)
    loss.backward(create_graph=True)
    norm = sum((p.grad**2).sum() for p in model.parameters())
    optimizer.clear_grad()
    norm.backward()
    optimizer.step()
    optimizer.clear_grad()
    return norm


def penalty_of_inputs(model: Any, optimizer: Any, x: Any) -> Any:
    x = ol.to_tensor(x.numpy(), stop_gradient=False)
    model(x).sum().backward(create_graph=True)
    loss = ((x.grad**2).sum(axis=1) - 1).mean()
    optimizer.clear_grad()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


def penalty_by_grad(model: Any, optimizer: Any, x: Any) -> Any:
    slopes = ol.grad(lambda z: model(z).sum())(x)
    loss = (model(x) ** 2).mean() + ((slopes**2).sum(axis=1) - 1).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


def descent_inside(_: Any, __: Any, x: Any) -> Any:
    w = ol.to_tensor(x * 0, stop_gradient=False)
    for _i in range(3):
        ((x - w) ** 2).sum().backward()
        with ol.no_grad():
            w -= 0.1 * w.grad
        w.clear_grad()
    return w.detach()


def gradients_that_add_up_inside(_: Any, __: Any, x: Any) -> Any:
    w = ol.Parameter(np.ones(3, "float32"))
    for factor in (1.0, 2.0):
        (factor * (w * x) ** 2).sum().backward()
    first = w.grad
    w.grad = 0.5 * w.grad
    return first, w.grad


def gradients_set(model: Any, optimizer: Any, x: Any) -> Any:
    loss = (model(x) ** 2).mean()
    loss.backward()
    for p in model.parameters():
        p.grad = np.sign(p.grad.numpy()) + 0.5 * p.grad.numpy()
    optimizer.step()
    for p in model.parameters():
        p.grad = None
    return loss


def hook_of_an_activation(model: Any, optimizer: Any, x: Any) -> Any:
    y = model[0](x)
    y.register_hook(lambda g: np.clip(g, -0.01, 0.01) * 3)
    loss = (model[2](y) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


class Cube(ol.autograd.Function):
    """With what it saves."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


class Rectified(ol.autograd.Function):
    """With an attribute of its context, in NumPy; two arguments."""

    @staticmethod
    def forward(ctx: Any, x: Any, slope: Any) -> Any:
        ctx.x, ctx.slope = x, slope
        return np.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return np.where(ctx.x > 0, g, ctx.slope * g), None


def functions_of_the_user(model: Any, optimizer: Any, x: Any) -> Any:
    loss = Rectified.apply(Cube.apply(model(x)), 0.1).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss


def examples_by_vmap(model: Any, optimizer: Any, x: Any) -> Any:
    losses = ol.vmap(lambda row: (model(row) ** 2).sum())(x)
    losses.mean().backward()
    optimizer.step()
    optimizer.clear_grad()
    return losses.detach()


def gradients_of_examples(model: Any, _: Any, x: Any) -> Any:
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights: Any, row: Any) -> Any:
        return F.mse_loss(nn.functional_call(model, weights, row), row[:2])

    each = ol.vmap(ol.grad(loss), in_axes=(None, 0))(weights, x)
    return {name: (g**2).sum() for name, g in each.items()}


BODIES = {
    f.__name__: f
    for f in (
        penalty_of_parameters, penalty_added_to_gradients, penalty_of_inputs, penalty_by_grad,
        descent_inside, gradients_that_add_up_inside, gradients_set, hook_of_an_activation,
        functions_of_the_user, examples_by_vmap, gradients_of_examples,
    )
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:no parameter of this Adam has a gradient")
@pytest.mark.parametrize("name", BODIES)
def test_captured_and_eager_are_equal_to_the_bit(name: str) -> None:
    make = trained(BODIES[name])
    plans: list[Any] = []

    def captured(f: Any) -> Any:
        plans.append(ol.capture(f))
        return plans[-1]

    same(outcome(make, captured), outcome(make, eager))
    assert plans[0].plan is not None


MAPPED: dict[str, Callable[..., Any]] = {
    "grad": lambda x, y: ol.vmap(ol.grad(lambda z: np.sum(np.exp(z) * z)))(x),
    "value_and_grad": lambda x, y: ol.vmap(
        ol.value_and_grad(lambda w, row: (w @ row) ** 2), in_axes=(None, 0)
    )(y[0], x),
    "hessian": lambda x, y: ol.vmap(ol.hessian(lambda z: np.sum(z**3) * z[0]))(x),
    "one in another": lambda x, y: ol.vmap(
        lambda a: ol.vmap(lambda b: np.dot(a, b) + np.tanh(b).max())(y)
    )(x),
    "grad in two": lambda x, y: ol.vmap(lambda a: ol.vmap(ol.grad(lambda b: np.dot(a, b) ** 2))(y))(
        x
    ),
    "around": lambda x, y: ol.grad(lambda w: ol.vmap(lambda a: np.dot(a, w) ** 2)(x).sum())(y[0]),
    "where": lambda x, y: ol.vmap(lambda a: np.where(a > 0, a, 0.1 * a).max())(x),
    "axes": lambda x, y: ol.vmap(lambda a: (a * 2, a.sum()), in_axes=1, out_axes=(1, 0))(x),
}


@pytest.mark.parametrize("kind", [np.asarray, ol.to_tensor], ids=["arrays", "Tensors"])
@pytest.mark.parametrize("name", MAPPED)
def test_vmap(name: str, kind: Any) -> None:
    captured = ol.capture(MAPPED[name])
    for i in range(4):
        x, y = kind(given(5, 3, seed=i)), kind(given(4, 3, seed=i + 9))
        same(bits(captured(x, y)), bits(MAPPED[name](x, y)))
    assert len(captured.plans) == 1


def test_a_gradient_that_keeps_its_graph_is_refused() -> None:
    w = ol.Parameter([1.0, 2.0])
    captured = ol.capture(lambda x: ((w * x) ** 3).sum().backward(create_graph=True))
    with pytest.raises(ol.CaptureError, match="clear"):
        captured(ol.ones([2]))
    assert w.grad is None


@pytest.mark.parametrize("name", ["stop_gradient", "trainable", "register_hook"])
def test_what_concerns_leaves_from_outside_is_refused_by_name(name: str) -> None:
    w = ol.Parameter([1.0, 2.0])

    def f(x: Any) -> Any:
        if name == "register_hook":
            w.register_hook(lambda g: 2 * g)
        else:
            setattr(w, name, name == "stop_gradient")
        return x * 2

    with pytest.raises(ol.CaptureError, match=rf"{name}.*test_derivatives\.py"):
        ol.capture(f)(ol.ones([2]))
    assert not w.stop_gradient
    assert not w.node.hooks
