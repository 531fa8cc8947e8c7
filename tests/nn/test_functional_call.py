"""Layers called with given weights: values, derivatives, ensembles, and a layer left alone."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab import nn


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


class Tied(nn.Layer):
    """One weight in two places, one of them in a list inside a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.parts = {"rest": [nn.Linear(4, 3), (nn.Tanh(), nn.Linear(3, 2))]}

    def forward(self, x: Any) -> Any:
        linear, (tanh, last) = self.parts["rest"]
        return last(tanh(linear(np.tanh(self.second(np.tanh(self.first(x)))))))


class Scaled(nn.Layer):
    """Parameters and buffers of its own, a bound method as attribute, and calls that it counts."""

    def __init__(self) -> None:
        super().__init__()
        self.factors = nn.ParameterList([ol.Parameter(numbers(4)), ol.Parameter(numbers(4))])
        self.register_buffer("shift", ol.to_tensor(numbers(4, seed=2)))
        self.rule = self.product
        self.calls = 0
        self.sizes: list[int] = []

    def product(self, x: Any) -> Any:
        for factor in self.factors:
            x = x * factor
        return x + self.shift

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.sizes.append(x.shape[0])
        return self.rule(x)


def first(layer: nn.Layer) -> nn.Layer:
    """Return a layer that gives the first of several outputs."""

    class First(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.inside = layer

        def forward(self, *inputs: Any) -> Any:
            return self.inside(*inputs)[0]

    return First()


#: Name: a function that makes the layer, and the inputs of two examples.
LAYERS: dict[str, tuple[Any, Any]] = {
    "Linear": (lambda: nn.Linear(4, 3), numbers(2, 4)),
    "Bilinear": (lambda: nn.Bilinear(4, 4, 3), (numbers(2, 4), numbers(2, 4, seed=1))),
    "Sequential": (
        lambda: nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Dropout(0.0), nn.Linear(5, 3)),
        numbers(2, 4),
    ),
    "PReLU": (lambda: nn.PReLU(4), numbers(2, 4)),
    "Conv1D": (lambda: nn.Conv1D(2, 3, 3, padding=1), numbers(2, 2, 6)),
    "Conv2D": (lambda: nn.Conv2D(2, 4, 3, stride=2, groups=2), numbers(2, 2, 6, 5)),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(2, 3, 3, stride=2), numbers(2, 2, 3, 3)),
    "Conv3D": (lambda: nn.Conv3D(1, 2, 2), numbers(2, 1, 3, 3, 3)),
    "a small LeNet": (
        lambda: nn.Sequential(
            nn.Conv2D(1, 2, 3), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(8, 3)
        ),
        numbers(2, 1, 6, 6),
    ),
    "BatchNorm1D": (lambda: nn.BatchNorm1D(3), numbers(2, 3, 5)),
    "BatchNorm2D": (lambda: nn.BatchNorm2D(3), numbers(2, 3, 4, 4)),
    "BatchNorm2D in evaluation": (lambda: nn.BatchNorm2D(3).eval(), numbers(2, 3, 4, 4)),
    "InstanceNorm2D": (lambda: nn.InstanceNorm2D(3), numbers(2, 3, 4, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(4), numbers(2, 3, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), numbers(2, 4, 3)),
    "Embedding": (lambda: nn.Embedding(5, 3), np.array([[1, 4, 4], [0, 2, 1]])),
    "SimpleRNN": (lambda: first(nn.SimpleRNN(3, 4)), numbers(2, 5, 3)),
    "LSTM": (lambda: first(nn.LSTM(3, 4, num_layers=2)), numbers(2, 5, 3)),
    "LSTM, both ways": (lambda: first(nn.LSTM(3, 2, direction="bidirect")), numbers(2, 4, 3)),
    "GRU": (lambda: first(nn.GRU(3, 4)), numbers(2, 5, 3)),
    "LSTMCell": (lambda: first(nn.LSTMCell(3, 4)), numbers(2, 3)),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(4, 2), numbers(2, 3, 4)),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0), 2),
        numbers(2, 3, 4),
    ),
    "Transformer": (
        lambda: nn.Transformer(4, 2, 1, 1, 6, dropout=0.0),
        (numbers(2, 3, 4), numbers(2, 2, 4, seed=1)),
    ),
    "weight_norm": (lambda: nn.utils.weight_norm(nn.Linear(4, 3), dim=1), numbers(2, 4)),
    "spectral_norm": (lambda: nn.utils.spectral_norm(nn.Linear(4, 3)), numbers(2, 4)),
    "spectral_norm of a convolution in evaluation": (
        lambda: nn.utils.spectral_norm(nn.Conv2D(2, 3, 2)).eval(),
        numbers(2, 2, 4, 4),
    ),
    "Tied": (Tied, numbers(2, 4)),
    "Scaled": (Scaled, numbers(2, 4)),
}


def case(name: str) -> tuple[Any, dict[str, np.ndarray], tuple[np.ndarray, ...]]:
    """Return the layer in float64, its parameters as arrays, and the inputs."""
    make, x = LAYERS[name]
    ol.seed(0)
    layer = make().to(dtype="float64")
    return layer, weights_of(layer), x if isinstance(x, tuple) else (x,)


def weights_of(layer: Any) -> dict[str, np.ndarray]:
    return {name: p.numpy() for name, p in layer.named_parameters()}


def bits(layer: Any) -> dict[str, bytes]:
    held = [*layer.named_parameters(), *layer.named_buffers()]
    return {name: t.numpy().tobytes() for name, t in held}


def energy(layer: Any, weights: Any, *x: Any) -> Any:
    y = nn.functional_call(layer, weights, *x)
    return np.mean(np.sin(y) * (1 + y))


def assert_close(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        scale = 1e-11 * (1 + np.max(np.abs(value)))
        np.testing.assert_allclose(np.asarray(found[name]), np.asarray(value), 1e-9, scale, name)


@pytest.mark.parametrize("name", LAYERS)
def test_values_and_gradients_are_those_of_a_layer_that_holds_the_weights(name: str) -> None:
    layer, weights, x = case(name)
    other = {key: value + 0.1 * numbers(*value.shape) for key, value in weights.items()}
    before = bits(layer)
    gradient = ol.grad(lambda w: energy(layer, w, *x))(other)
    y = nn.functional_call(layer, other, *x)
    assert bits(layer) == before
    assert all(isinstance(g, np.ndarray) for g in gradient.values())
    for key, p in layer.named_parameters():
        p.set_value(other[key])
    wanted = layer(*map(ol.to_tensor, x))
    assert np.array_equal(raw(y), wanted.numpy())
    for key, p in layer.named_buffers():
        p.set_value(np.frombuffer(before[key], p.dtype).reshape(p.shape))
    loss = layer(*map(ol.to_tensor, x))
    np.mean(np.sin(loss) * (1 + loss)).backward()
    assert_close(gradient, {key: p.grad.numpy() for key, p in layer.named_parameters()})


def raw(y: Any) -> np.ndarray:
    return y.numpy() if isinstance(y, ol.Tensor) else y


@pytest.mark.parametrize("name", LAYERS)
def test_directional_derivatives_equal_finite_differences(name: str) -> None:
    layer, weights, x = case(name)
    if name == "spectral_norm":  # a power iteration is a constant of backward
        layer.eval()
    v = {key: numbers(*value.shape, seed=9) for key, value in weights.items()}

    def f(s: Any) -> Any:
        return energy(layer, {key: value + s * v[key] for key, value in weights.items()}, *x)

    h = 1e-5
    slope = float(ol.grad(f)(0.0))
    assert slope == pytest.approx((f(h) - f(-h)) / (2 * h), rel=1e-5, abs=1e-8)
    along = ol.hvp(lambda w: energy(layer, w, *x), weights, v)
    curvature = sum(float(np.sum(along[key] * v[key])) for key in v)
    df = ol.grad(f)
    assert curvature == pytest.approx((df(h) - df(-h)) / (2 * h), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_single_examples_equal_a_loop(name: str) -> None:
    layer, weights, x = case(name)

    def one(w: Any, *x: Any) -> Any:
        return energy(layer, w, *[np.expand_dims(part, 0) for part in x])

    each = ol.vmap(ol.grad(one), in_axes=(None,) + (0,) * len(x))(weights, *x)
    for i in range(2):
        wanted = ol.grad(one)(weights, *[part[i] for part in x])
        assert_close({key: g[i] for key, g in each.items()}, wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_many_networks_at_once_equal_a_loop(name: str) -> None:
    layer, weights, x = case(name)
    several = {
        key: np.stack([value + 0.1 * numbers(*value.shape, seed=k) for k in range(3)])
        for key, value in weights.items()
    }
    before = bits(layer)
    y = ol.vmap(lambda w: nn.functional_call(layer, w, *x))(several)
    each = ol.vmap(ol.grad(lambda w: energy(layer, w, *x)))(several)
    assert bits(layer) == before
    for k in range(3):
        member = {key: value[k] for key, value in several.items()}
        wanted = raw(nn.functional_call(layer, member, *x))
        np.testing.assert_allclose(raw(y)[k], wanted, 1e-9, 1e-12)
        found = {key: raw(g)[k] for key, g in each.items()}
        assert_close(found, ol.grad(lambda w: energy(layer, w, *x))(member))


# Buffers ------------------------------------------------------------------------------------------


def test_given_buffers_are_used_and_none_is_written_to() -> None:
    layer = nn.BatchNorm1D(2)
    x = numbers(5, 2).astype("float32")
    given = {
        "running_mean": np.array([1, 2], "float32"),
        "running_var": ol.to_tensor(np.array([4, 9], "float32")),
    }
    kept = {key: np.array(raw(value)) for key, value in given.items()}
    before = bits(layer)
    nn.functional_call(layer, given, x)  # in training
    assert bits(layer) == before
    assert all(np.array_equal(raw(given[key]), kept[key]) for key in given)
    layer.eval()
    y = raw(nn.functional_call(layer, given, x))
    np.testing.assert_allclose(y, (x - [1, 2]) / np.sqrt(np.array([4, 9]) + 1e-5), 1e-5, 1e-6)


def test_weights_and_buffers_may_be_two_dicts() -> None:
    layer = nn.BatchNorm1D(2).eval()
    x = numbers(5, 2).astype("float32")
    halves = (dict(layer.named_parameters()), dict(layer.named_buffers()))
    assert np.array_equal(raw(nn.functional_call(layer, halves, x)), layer(x).numpy())
    assert np.array_equal(raw(nn.functional_call(layer, layer.state_dict(), x)), layer(x).numpy())


def test_what_forward_sets_stays_as_it_was() -> None:
    layer = Scaled().to(dtype="float64")
    nn.functional_call(layer, {}, numbers(2, 4))
    assert (layer.calls, layer.sizes) == (0, [])


# Names and shapes ---------------------------------------------------------------------------------


def test_missing_names_keep_the_values_of_the_layer_which_still_learn() -> None:
    layer = nn.Linear(2, 1)
    x = np.ones((3, 2), "float32")
    y = nn.functional_call(layer, {"weight": np.zeros((2, 1), "float32")}, x)
    y.sum().backward()
    assert layer.bias.grad.item() == 3
    assert layer.weight.grad is None


def test_a_shared_weight_is_replaced_in_every_place() -> None:
    layer, x = Tied(), numbers(2, 4).astype("float32")
    w = numbers(4, 4, seed=5).astype("float32")
    by_first, by_second = (
        raw(nn.functional_call(layer, {name: w}, x)) for name in ("first.weight", "second.weight")
    )
    both = nn.functional_call(layer, {"first.weight": w, "second.weight": w.copy()}, x)
    layer.first.weight.set_value(w)
    wanted = layer(ol.to_tensor(x)).numpy()
    assert np.array_equal(by_first, wanted)
    assert np.array_equal(by_second, wanted)
    assert np.array_equal(raw(both), wanted)
    with pytest.raises(ValueError, match="are one parameter of the layer, but were"):
        nn.functional_call(layer, {"first.weight": w, "second.weight": w + 1}, x)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (
            {"wieght": np.zeros((2, 3))},
            ValueError,
            "no parameter or buffer named 'wieght'.*mean 'w",
        ),
        ({"weight": np.zeros((3, 2))}, ValueError, r"'weight' has the shape \(2, 3\).*\(3, 2\)"),
        ({"weight": np.zeros((9, 2, 3))}, ValueError, "along a first axis, are for ol.vmap"),
        ({"weight": np.zeros((2, 3), int)}, TypeError, "float32 in the layer.*int64.*astype"),
        ({"weight": "zeros"}, TypeError, "the value of 'weight' must be an array"),
        ([np.zeros((2, 3))], TypeError, "takes the weights as a dict by name"),
        (np.zeros((2, 3)), TypeError, "takes the weights as a dict by name"),
        (({"bias": np.zeros(3)}, {"bias": np.zeros(3)}), ValueError, "'bias' in two of the dicts"),
    ],
)
def test_what_does_not_fit_is_refused(given: Any, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        nn.functional_call(nn.Linear(2, 3), given, np.zeros((1, 2)))


@pytest.mark.parametrize("layer", [nn.Linear, np.tanh, None])
def test_something_that_is_no_layer_is_refused(layer: Any) -> None:
    with pytest.raises(TypeError, match="functional_call takes a Layer"):
        nn.functional_call(layer, {}, 1.0)


# Nesting, exceptions and threads ------------------------------------------------------------------


def test_an_exception_leaves_the_layer_as_it_was() -> None:
    layer = nn.utils.weight_norm(nn.Linear(2, 3))
    before, weight = bits(layer), layer.weight
    zeros = {key: np.zeros_like(value) + 1 for key, value in weights_of(layer).items()}
    with pytest.raises(ValueError, match="the last axis of x"):
        nn.functional_call(layer, zeros, np.zeros((1, 5), "float32"))
    assert bits(layer) == before
    assert layer.weight is weight


def test_a_call_within_a_call_of_the_same_layer_has_its_own_weights() -> None:
    shared = nn.Linear(1, 1, bias_attr=False)

    class Twice(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear = shared

        def forward(self, x: Any) -> Any:
            inner = nn.functional_call(shared, {"weight": np.array([[3.0]])}, x)
            return self.linear(inner) + 100 * self.linear(x)

    y = nn.functional_call(Twice(), {"linear.weight": np.array([[2.0]])}, np.array([[1.0]]))
    assert raw(y).item() == 6 + 200


def test_calls_in_threads_do_not_mix_with_each_other_or_with_the_layer() -> None:
    layer = nn.Sequential(*[nn.Linear(2, 2, bias_attr=False) for _ in range(8)])
    x = np.ones((1, 2), "float32")
    own = layer(x).numpy()
    wrong: list[Any] = []

    def run(scale: float) -> None:
        weights = {f"{i}.weight": np.eye(2, dtype="float32") * scale for i in range(8)}
        for _ in range(60):
            if scale and not np.array_equal(
                raw(nn.functional_call(layer, weights, x)), x * scale**8
            ):
                wrong.append(scale)
            if not scale and not np.array_equal(layer(x).numpy(), own):
                wrong.append("the layer itself")

    threads = [threading.Thread(target=run, args=(scale,)) for scale in (0.0, 1.0, 2.0, 0.5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_hooks_get_the_layer_with_the_given_weights() -> None:
    layer = nn.Linear(1, 1, bias_attr=False)
    seen: list[float] = []
    layer.register_forward_pre_hook(
        lambda layer, inputs: seen.append(float(raw(layer.weight)[0, 0]))
    )
    nn.functional_call(layer, {"weight": np.array([[7.0]])}, np.array([[1.0]]))
    assert seen == [7.0]


# Compositions -------------------------------------------------------------------------------------


def test_meta_gradients_through_inner_steps_equal_finite_differences() -> None:
    """MAML: the gradient by the initial weights through two steps on each of three tasks."""
    ol.seed(0)
    net = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1)).to(dtype="float64")
    weights = weights_of(net)
    x, tasks = numbers(6, 1), numbers(3, 6, 1, seed=1)

    def loss(w: Any, y: Any) -> Any:
        return np.mean((nn.functional_call(net, w, x) - y) ** 2)

    def adapted(w: Any, y: Any) -> Any:
        for _ in range(2):
            slope = ol.grad(loss)(w, y)
            w = {key: value - 0.1 * slope[key] for key, value in w.items()}
        return loss(w, y)

    def meta(w: Any) -> Any:
        return np.sum(ol.vmap(adapted, in_axes=(None, 0))(w, tasks))

    gradient = ol.grad(meta)(weights)
    one_by_one = ol.grad(lambda w: sum(adapted(w, y) for y in tasks))(weights)
    assert_close(gradient, one_by_one)
    v = {key: numbers(*value.shape, seed=3) for key, value in weights.items()}
    slope = sum(float(np.sum(gradient[key] * v[key])) for key in v)

    def shifted(s: float) -> float:
        return float(meta({key: value + s * v[key] for key, value in weights.items()}))

    assert slope == pytest.approx((shifted(1e-5) - shifted(-1e-5)) / 2e-5, rel=1e-6)


def test_jacobian_and_hessian_of_a_layer() -> None:
    layer = nn.Linear(2, 2).to(dtype="float64")
    x = numbers(3, 2)
    weights = weights_of(layer)
    matrix = ol.jacobian(lambda w: nn.functional_call(layer, w, x))(weights)
    np.testing.assert_allclose(matrix["weight"], np.einsum("ni,jk->nkij", x, np.eye(2)), 1e-12)
    curvature = ol.hessian(lambda w: np.sum(nn.functional_call(layer, w, x) ** 2))(weights)
    wanted = 2 * np.einsum("ni,nj,kl->ikjl", x, x, np.eye(2))
    np.testing.assert_allclose(curvature["weight"]["weight"], wanted, 1e-12, 1e-12)


def test_weights_in_deques_partials_and_closures_are_replaced() -> None:
    class Network(ol.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.linear = ol.nn.Linear(3, 2)
            self.queue = deque([self.linear], maxlen=1)
            self.partial = partial(nn.functional.linear, weight=self.linear.weight)
            self.closure = lambda x: self.linear(x)

        def forward(self, x: Any) -> Any:
            return self.queue[0](x) + self.partial(x) + self.closure(x)

    network = Network()
    seen: list[Any] = []
    network.linear.register_forward_post_hook(
        lambda layer, x, y: seen.append(network.linear is layer)
    )
    zeros = {name: np.zeros(p.shape, "float32") for name, p in network.named_parameters()}
    y = ol.nn.functional_call(network, zeros, np.ones((1, 3), "float32"))
    np.testing.assert_array_equal(y.numpy(), np.zeros((1, 2)))
    assert seen == [True, True]
    assert network.queue[0] is network.linear
    assert np.any(network(np.ones((1, 3), "float32")).numpy())
