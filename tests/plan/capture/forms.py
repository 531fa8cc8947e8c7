"""Functions of every form, each with calls: what is captured gives what eager calls give."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import optlab as ol
from tests.plan.capture.twins import given, leaves

nn = ol.nn
F = nn.functional

Call = tuple[tuple[Any, ...], dict[str, Any]]
Pair = namedtuple("Pair", "loss accuracy")


@dataclass
class Form:
    """A function and its calls; `state` is what is compared after each of them."""

    f: Callable[..., Any]
    calls: list[Call]
    state: Callable[[], Any] = lambda: None
    kept: list[Any] = field(default_factory=list)


def calls(*several: Any, **options: Any) -> list[Call]:
    """Return calls with positional arguments; `options` are the same in all."""
    return [(one if isinstance(one, tuple) else (one,), options) for one in several]


def arrays(*shape: int, count: int = 4, dtype: str = "float32") -> list[Any]:
    return [given(*shape, seed=i, dtype=dtype) for i in range(count)]


def tensors(*shape: int, count: int = 4, **options: Any) -> list[Any]:
    return [ol.to_tensor(x, **options) for x in arrays(*shape, count=count)]


def outcome(make: Callable[[], Form], how: Callable[[Any], Any]) -> dict[str, Any]:
    """Run the calls of a form; return everything seen."""
    ol.seed(11)
    form = make()
    f = how(form.f)
    seen: list[Any] = []
    for args, options in form.calls:
        seen += [f(*args, **options), copied(form.state())]
    return dict(leaves({"seen": seen, "next random number": ol.rand([1])}))


def copied(value: Any) -> Any:
    """Return a copy of what a later call may write to."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [copied(part) for part in value]
    return value.numpy().copy() if isinstance(value, ol.Tensor) else value


# Training steps, one function each of model, optimizer and loss.


def trained(body: Callable[..., Any], extra: dict[str, Any] | None = None) -> Callable[[], Form]:
    """Return a form: ``body(model, optimizer, x, y)`` is called for four batches, twice each."""

    def make() -> Form:
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Dropout(0.2), nn.Linear(5, 4))
        optimizer = ol.optimizer.Adam(0.05, parameters=model.parameters())
        labels = np.arange(6) % 4

        def step(x: Any, y: Any, **options: Any) -> Any:
            return body(model, optimizer, x, y, **options)

        def state() -> Any:
            return [
                model.state_dict(),
                optimizer.state_dict(),
                [None if p.grad is None else p.grad for p in model.parameters()],
            ]

        batches = [(x, np.roll(labels, i)) for i, x in enumerate(tensors(6, 3))] * 2
        return Form(step, calls(*batches, **(extra or {})), state)

    return make


def update(optimizer: Any, loss: Any) -> None:
    """Take a step, and clear the gradients."""
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()


def returns_a_tensor(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    update(optimizer, loss)
    return loss


def returns_a_tuple(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    out = model(x)
    loss = F.cross_entropy(out, y)
    update(optimizer, loss)
    return loss, out


def returns_a_named_tuple(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss, out = returns_a_tuple(model, optimizer, x, y)
    return Pair(loss, (out.argmax(axis=1) == y).mean())


def returns_a_dict(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss, out = returns_a_tuple(model, optimizer, x, y)
    return {"loss": loss, "parts": [out[0], {"largest": out.max(axis=1)}], "rows": 6}


def returns_nothing(model: Any, optimizer: Any, x: Any, y: Any) -> None:
    returns_a_tensor(model, optimizer, x, y)


def returns_arrays(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss, out = returns_a_tuple(model, optimizer, x, y)
    return loss.numpy(), out.detach().numpy()


def returns_parameters(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    returns_a_tensor(model, optimizer, x, y)
    return [p.numpy() for p in model.parameters()]


def returns_gradients(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    F.cross_entropy(model(x), y).backward()
    found = [p.grad.numpy() for p in model.parameters()]
    optimizer.step()
    optimizer.clear_grad()
    return found


def clears_first(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    optimizer.clear_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def clears_between(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    optimizer.clear_grad()
    loss.backward()
    optimizer.step()
    return loss


def clears_to_none(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad(set_to_zero=False)
    return loss


def clears_by_the_model(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    model.clear_gradients()
    return loss


def never_clears(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def steps_before_backward(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    """The step uses the gradients of the call before."""
    optimizer.step()
    optimizer.clear_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss


def only_backward(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss


def two_backwards(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    F.cross_entropy(model(x), y).backward()
    loss = (model(x) ** 2).mean()
    update(optimizer, loss)
    return loss


def two_steps(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    first = returns_a_tensor(model, optimizer, x, y)
    return first, returns_a_tensor(model, optimizer, 0.5 * x, y)


def steps_in_a_loop(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    return [returns_a_tensor(model, optimizer, x * (0.5 + i), y) for i in range(3)]


def minimizes(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    optimizer.minimize(loss)
    optimizer.clear_grad()
    return loss


def applies_gradients(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    optimizer.apply_gradients(optimizer.backward(loss))
    optimizer.clear_grad()
    return loss


def clips_in_place(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    optimizer.clear_grad()
    return loss, norm


def evaluates_in_between(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    with ol.no_grad():
        before = F.cross_entropy(model(x), y)
    loss = returns_a_tensor(model, optimizer, x, y)
    with ol.no_grad():
        return before, loss, F.cross_entropy(model(x), y)


def switches_modes(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = returns_a_tensor(model, optimizer, x, y)
    model.eval()
    out = model(x)
    model.train()
    return loss, out


def writes_a_parameter(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = returns_a_tensor(model, optimizer, x, y)
    with ol.no_grad():
        model[0].weight[...] = model[0].weight * 0.99
        model[3].bias.set_value(model[3].bias * 0.5)
    return loss


def descends_by_hand(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    with ol.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
            p.clear_grad()
    return loss


def draws_noise(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    noisy = (
        x + 0.1 * ol.randn([6, 3]) + ol.numpy.random.uniform(-0.1, 0.1, (6, 3)).astype("float32")
    )
    return returns_a_tensor(model, optimizer, noisy, y), ol.randint(0, 9, [2]), ol.rand([])


def with_options(
    model: Any, optimizer: Any, x: Any, y: Any, *, scale: Any, smooth: float = 0.1
) -> Any:
    loss = F.cross_entropy(model(x * scale), y, label_smoothing=smooth)
    update(optimizer, loss)
    return loss


def sets_the_rate(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    loss = returns_a_tensor(model, optimizer, x, y)
    optimizer.set_lr(0.02)
    return loss


STEPS: dict[str, Callable[[], Form]] = {
    f.__name__: trained(f)
    for f in (
        returns_a_tensor, returns_a_tuple, returns_a_named_tuple, returns_a_dict, returns_nothing,
        returns_arrays, returns_parameters, returns_gradients, clears_first, clears_between,
        clears_to_none, clears_by_the_model, never_clears, steps_before_backward, only_backward,
        two_backwards, two_steps, steps_in_a_loop, minimizes, applies_gradients, clips_in_place,
        evaluates_in_between, switches_modes, writes_a_parameter, descends_by_hand, draws_noise,
        sets_the_rate,
    )
}  # fmt: skip
STEPS["keywords"] = trained(with_options, {"scale": ol.ones([3]), "smooth": 0.2})
STEPS["a keyword with its default"] = trained(with_options, {"scale": 2.0})


# Plain functions of arrays, Tensors and numbers.


def plain(f: Callable[..., Any], *several: Any, **options: Any) -> Callable[[], Form]:
    return lambda: Form(f, calls(*several, **options))


def _mixed(x: Any, y: Any) -> Any:
    return {"x": x, "sum": [x + y, (y * 2).sum()], "text": "yes", "none": None, "n": 3}


def _of_containers(batch: Any, weights: Any) -> Any:
    x, (a, b) = batch["x"], batch["pair"]
    return [np.tanh(x @ weights[0] + a), {"b": b * weights[1]}]


def _shape_of(x: Any) -> Any:
    return np.reshape(x, (x.shape[1], -1)) / x.shape[0] + len(x) * x.ndim


def _branch_on_shape(x: Any) -> Any:
    return x.sum() if x.shape[0] > 4 else x.mean()


def _in_place(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[1] * 2
    y += 1
    y[..., 0] *= x[..., 1]
    return y


PLAIN: dict[str, Callable[[], Form]] = {
    "an array": plain(lambda x: np.exp(x).sum(), *arrays(4, 3)),
    "a Tensor": plain(lambda x: np.exp(x).sum(), *tensors(4, 3)),
    "float64": plain(lambda x: np.sin(x) @ x.T, *arrays(3, 3, dtype="float64")),
    "whole numbers": plain(lambda x: (x // 3 + x % 2) << 1, *(np.arange(6) + i for i in range(4))),
    "truth values": plain(lambda x: np.logical_not(x > 0) | (x < -1), *arrays(7)),
    "zero dimensions": plain(lambda x: x * x + 1, *map(np.asarray, arrays(4, dtype="float64")[0])),
    "NumPy numbers": plain(lambda x: x * x + 1, *arrays(4, dtype="float64")[0]),
    "no elements": plain(lambda x: (x * 2, x.sum()), *arrays(0, 3)),
    "one element": plain(lambda x: (x * 2, x.sum()), *arrays(1, 1)),
    "two arrays": plain(lambda x, y: x @ y, *zip(arrays(3, 4), arrays(4, 2), strict=True)),
    "an array and a Tensor": plain(_mixed, *zip(arrays(3), tensors(3), strict=True)),
    "the argument itself": plain(lambda x: x, *tensors(3)),
    "a view of the argument": plain(lambda x: (x.T, x[1:], np.reshape(x, -1)), *tensors(4, 3)),
    "the same twice": plain(lambda x: (y := x + 1, y), *tensors(3)),
    "nothing of the arguments": plain(lambda x: np.ones(3) * 2, *arrays(3)),
    "containers": plain(
        _of_containers,
        *(
            ({"x": x, "pair": (a, 0.5)}, [w, a])
            for x, w, a in zip(arrays(2, 3), arrays(3, 4), arrays(4), strict=True)
        ),
    ),
    "numbers": plain(lambda x, k: x * k + k, *((x, 0.1 * i) for i, x in enumerate(arrays(3)))),
    "whole numbers as shapes": plain(
        lambda x, n: np.reshape(x, (n, -1)), *((x, n) for x in arrays(12) for n in (2, 3, 4))
    ),
    "whole numbers as loops": plain(
        lambda x, n: sum(x**i for i in range(1, n)), *((x, n) for x in arrays(3) for n in (2, 4))
    ),
    "flags": plain(
        lambda x, flag: x.sum() if flag else x * 2,
        *((x, flag) for x in arrays(3) for flag in (True, False)),
    ),
    "texts": plain(
        lambda x, how: getattr(np, how)(x), *((x, how) for x in arrays(3) for how in ("exp", "sin"))
    ),
    "None": plain(
        lambda x, bias: x if bias is None else x + bias,
        *((x, bias) for x in tensors(3) for bias in (None, ol.ones([3]))),
    ),
    "other types of the same numbers": plain(
        lambda x, k: x * k, *((x, k) for x in arrays(3) for k in (2, 2.0, True, np.float32(2)))
    ),
    "zeros of both signs": plain(
        lambda x, k: x / k, *((arrays(3)[0] ** 2 + 1, k) for k in (0.0, -0.0))
    ),
    "infinite and no numbers": plain(
        lambda x, k: np.minimum(x, k), *((arrays(3)[0], k) for k in (np.inf, -np.inf, np.nan))
    ),
    "shapes": plain(_shape_of, *arrays(4, 6), *arrays(2, 6)),
    "a branch on the shape": plain(_branch_on_shape, *arrays(5), *arrays(3)),
    "writes in place": plain(_in_place, *tensors(3, 4)),
    "writes in place into arrays": plain(_in_place, *arrays(3, 4)),
    "a keyword": plain(lambda x, *, axis: x.sum(axis=axis), *tensors(3, 4), axis=1),
    "methods of Tensors": plain(
        lambda x: (x.reshape([4, 3]).transpose([1, 0]) @ x.T).exp().max(axis=0), *tensors(3, 4)
    ),
    "functions of optlab": plain(
        lambda x: ol.concat([x, ol.exp(x)], axis=1).sum(axis=0) + ol.ones([8]), *tensors(3, 4)
    ),
    "constants of its own": plain(
        lambda x: x * ol.to_tensor([1.0, 2.0, 3.0]) + np.array([1, 2, 3], "float32"), *tensors(3)
    ),
    "sorting": plain(lambda x: (np.sort(x), np.argsort(x), np.argmax(x)), *tensors(7)),
    "an index that depends on values": plain(lambda x: x[np.argsort(x)][:2], *tensors(7)),
    "where": plain(lambda x: np.where(x > 0, x, 0.1 * x).sum(), *tensors(7)),
    "products of matrices": plain(lambda x: np.linalg.inv(x @ x.T + np.eye(3)), *tensors(3, 5)),
    "einsum": plain(lambda x: np.einsum("ij,kj->ik", x, x), *tensors(3, 5)),
    "random numbers": plain(lambda x: F.dropout(x, 0.5) + ol.rand([4]), *tensors(4)),
}  # fmt: skip
