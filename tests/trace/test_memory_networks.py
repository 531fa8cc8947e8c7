"""The ledger against NumPy's allocator, at every event of a step, on twenty networks."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.lab.models.gpt import GPT

F = ol.nn.functional
nn = ol.nn
Networks = dict[str, Callable[[], Callable[[], None]]]
NETWORKS: Networks = {}


def network(make: Callable[[], Callable[[], None]]) -> Callable[[], Callable[[], None]]:
    NETWORKS[make.__name__] = make
    return make


def images(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def classes(n: int, k: int = 10) -> np.ndarray:
    return np.random.default_rng(1).integers(0, k, n)


def trained(model: Any, optimizer: Any, loss: Callable[[], Any]) -> Callable[[], None]:
    """Return a training step; the gradients are zeros or None, as the optimizer clears them."""

    def step() -> None:
        loss().backward()
        optimizer.step()
        optimizer.clear_grad()

    return step


def classified(model: Any, optimizer: Any, x: np.ndarray, k: int = 10) -> Callable[[], None]:
    y = classes(len(x), k)
    return trained(model, optimizer, lambda: F.cross_entropy(model(x), y))


def perceptron(*widths: int, activation: Any = nn.Tanh, dtype: str = "float32") -> Any:
    layers: list[Any] = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), activation()]
    return nn.Sequential(*layers[:-1]).to(dtype=dtype)


@network
def mlp_sgd():
    model = perceptron(64, 128, 10)
    sgd = ol.optimizer.SGD(0.1, parameters=model.parameters())
    return classified(model, sgd, images(128, 64))


@network
def mlp_momentum_decay_clip():
    model = perceptron(64, 128, 128, 10, activation=nn.ReLU)
    momentum = ol.optimizer.Momentum(
        0.1, 0.9, parameters=model.parameters(), weight_decay=1e-4,
        grad_clip=nn.ClipGradByGlobalNorm(1.0),
    )  # fmt: skip
    return classified(model, momentum, images(128, 64))


@network
def deep_mlp_adam():
    model = perceptron(64, *[96] * 12, 10, activation=nn.GELU)
    return classified(
        model, ol.optimizer.Adam(0.001, parameters=model.parameters()), images(96, 64)
    )


@network
def mlp_float64_adamw():
    model = perceptron(64, 128, 10, dtype="float64")
    adamw = ol.optimizer.AdamW(0.001, parameters=model.parameters())
    return classified(model, adamw, images(128, 64, dtype="float64"))


@network
def mlp_float16_multi_precision():
    model = perceptron(64, 256, 10, activation=nn.ReLU, dtype="float16")
    adam = ol.optimizer.Adam(0.001, parameters=model.parameters(), multi_precision=True)
    return classified(model, adam, images(128, 64, dtype="float16"))


@network
def mlp_auto_cast():
    model = perceptron(64, 256, 256, 10, activation=nn.ReLU)
    sgd, x, y = ol.optimizer.SGD(0.1, parameters=model.parameters()), images(128, 64), classes(128)

    def loss():
        with ol.amp.auto_cast(dtype="float16"):
            return F.cross_entropy(model(x), y)

    return trained(model, sgd, loss)


@network
def mlp_dropout_lamb():
    model = nn.Sequential(
        nn.Linear(64, 256), nn.Dropout(0.5), nn.ReLU(), nn.Linear(256, 256), nn.Dropout(0.5),
        nn.Linear(256, 10),
    )  # fmt: skip
    return classified(
        model, ol.optimizer.Lamb(0.001, parameters=model.parameters()), images(128, 64)
    )


@network
def mlp_gradients_of_zero_kept():
    model = perceptron(64, 256, 10)
    adagrad = ol.optimizer.Adagrad(0.1, parameters=model.parameters())
    x, y = images(128, 64), classes(128)

    def step():
        for part in (slice(0, 64), slice(64, 128)):  # the gradients of two batches accumulate
            F.cross_entropy(model(x[part]), y[part]).backward()
        adagrad.step()
        adagrad.clear_grad(set_to_zero=False)

    return step


@network
def mlp_muon():
    model = perceptron(64, 128, 128, 10)
    return classified(
        model, ol.optimizer.Muon(0.01, parameters=model.parameters()), images(128, 64)
    )


@network
def mlp_lbfgs():
    model = perceptron(64, 128, 10)
    lbfgs = ol.optimizer.LBFGS(max_iter=3, parameters=model.parameters())
    x, y = images(128, 64), classes(128)

    def closure():
        lbfgs.clear_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return lambda: lbfgs.step(closure)


@network
def mlp_look_ahead():
    model = perceptron(64, 128, 10)
    inner = ol.optimizer.Adam(0.01, parameters=model.parameters())
    return classified(model, ol.optimizer.LookAhead(inner, k=1), images(128, 64))


@network
def lenet():
    model = nn.Sequential(
        nn.Conv2D(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(6, 16, 5),
        nn.ReLU(), nn.MaxPool2D(2, 2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(),
        nn.Linear(120, 10),
    )  # fmt: skip
    adam = ol.optimizer.Adam(0.001, parameters=model.parameters())
    return classified(model, adam, images(32, 1, 28, 28))


@network
def convolutions_with_batch_norm():
    model = nn.Sequential(
        nn.Conv2D(3, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU(), nn.AvgPool2D(2),
        nn.Conv2D(16, 32, 3, padding=1), nn.BatchNorm2D(32), nn.ReLU(),
        nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    momentum = ol.optimizer.Momentum(0.1, 0.9, parameters=model.parameters())
    return classified(model, momentum, images(16, 3, 16, 16))


@network
def residual_blocks():
    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm, self.wide = nn.LayerNorm(64), nn.Linear(64, 256)
            self.drop, self.back = nn.Dropout(0.1), nn.Linear(256, 64)

        def forward(self, x):
            return x + self.back(self.drop(F.gelu(self.wide(self.norm(x)))))

    model = nn.Sequential(*[Block() for _ in range(6)], nn.Linear(64, 10))
    adamw = ol.optimizer.AdamW(0.001, parameters=model.parameters())
    return classified(model, adamw, images(128, 64))


@network
def gpt():
    model = GPT(50, length=32, width=32, depth=2)
    adam = ol.optimizer.Adam(0.001, parameters=model.parameters())
    words, y = classes(8 * 32, 50).reshape(8, 32), classes(8 * 32, 50)
    return trained(model, adam, lambda: F.cross_entropy(model(words).reshape([8 * 32, 50]), y))


@network
def transformer_encoder():
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1)
    model = nn.TransformerEncoder(layer, 2)
    adam = ol.optimizer.NAdam(0.001, parameters=model.parameters())
    x = ol.to_tensor(images(16, 24, 32))
    return trained(model, adam, lambda: (model(x) ** 2).mean())


@network
def lstm():
    model, head = nn.LSTM(32, 48), nn.Linear(48, 10)
    rmsprop = ol.optimizer.RMSProp(0.001, parameters=[*model.parameters(), *head.parameters()])
    x, y = ol.to_tensor(images(16, 20, 32)), classes(16)
    return trained(model, rmsprop, lambda: F.cross_entropy(head(model(x)[0][:, -1]), y))


@network
def gru_of_two_directions():
    model = nn.GRU(16, 32, direction="bidirect")
    adamax = ol.optimizer.Adamax(0.001, parameters=model.parameters())
    x = ol.to_tensor(images(16, 20, 16))
    return trained(model, adamax, lambda: (model(x)[0] ** 2).mean())


@network
def embeddings_with_sparse_gradients():
    table, head = nn.Embedding(2000, 64, sparse=True), nn.Linear(64, 10)
    sgd = ol.optimizer.SGD(0.1, parameters=[*table.parameters(), *head.parameters()])
    words, y = classes(64 * 12, 2000).reshape(64, 12), classes(64)
    return trained(table, sgd, lambda: F.cross_entropy(head(table(words).mean(axis=1)), y))


@network
def autoencoder_whose_batch_is_made_in_the_step():
    model = perceptron(128, 32, 128, activation=nn.Sigmoid)
    adadelta = ol.optimizer.Adadelta(1.0, parameters=model.parameters())
    everything, draw = images(512, 128), np.random.default_rng(2)

    def loss():
        batch = everything[draw.integers(0, 512, 64)]
        return F.mse_loss(model(batch), batch)

    return trained(model, adadelta, loss)


@network
def own_operation_and_penalty_on_the_gradient():
    class Cube(ol.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

    w = ol.Parameter(images(64, 64))
    sgd = ol.optimizer.SGD(0.01, parameters=[w])
    x = images(128, 64)

    def loss():
        return Cube.apply(np.tanh(x @ w)).mean() + np.sum(np.exp(-(w**2)))

    return trained(None, sgd, loss)


@network
def second_derivative_of_a_function():
    a = images(100, 100)

    def step():
        x = ol.to_tensor(a, requires_grad=True)
        np.sum(np.tanh(x) ** 2).backward(create_graph=True)
        (x.grad**2).sum().backward()

    return step


@network
def gradient_penalty():
    model = perceptron(100, 100, 100, 1)
    a, sgd = images(100, 100), ol.optimizer.SGD(0.01, parameters=model.parameters())

    def step():
        x = ol.to_tensor(a, requires_grad=True)
        model(x).sum().backward(create_graph=True)
        ((x.grad**2).sum(axis=1) - 1).sum().backward()
        sgd.step()
        sgd.clear_grad()

    return step


@network
def gradient_of_a_gradient_by_transforms():
    model = perceptron(64, 128, 128, 1)
    sgd = ol.optimizer.SGD(0.01, parameters=model.parameters())
    x = ol.to_tensor(images(128, 64), stop_gradient=False)

    def loss():
        slope = ol.grad(lambda v: model(v).sum())(x)
        return model(x).mean() + ((np.sqrt((slope**2).sum(axis=1)) - 1) ** 2).mean()

    return trained(model, sgd, loss)


@network
def hessian_vector_products():
    w, v = ol.Parameter(images(128, 128)), ol.to_tensor(images(128, 128))

    def step():
        w.grad = None
        np.sum(np.exp(np.sin(w))).backward(create_graph=True)
        (w.grad * v).sum().backward(create_graph=True)
        (w.grad * v).sum().backward()

    return step


@network
def large_gradients_with_hooks():
    model = perceptron(64, 256, 256, 10)
    sgd = ol.optimizer.SGD(0.1, parameters=model.parameters())
    for p in model.parameters():
        p.register_hook(lambda g: np.sign(np.tanh(g)))
    return classified(model, sgd, images(128, 64))


@network
def written_with_numpy():
    w, v = ol.Parameter(images(64, 128)), ol.Parameter(images(128, 10))
    rprop = ol.optimizer.Rprop(0.01, parameters=[w, v])
    x, y = images(128, 64), classes(128)

    def loss():
        z = np.maximum(x @ w, 0) @ v
        z = z - np.max(z, axis=1, keepdims=True)
        return -np.mean(z[np.arange(128), y] - np.log(np.sum(np.exp(z), axis=1)))

    return trained(None, rprop, loss)


def blocks(n: int) -> Any:
    return [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Dropout(0.1), nn.Linear(256, 64))
            for _ in range(n)]  # fmt: skip


@network
def recomputed_blocks():
    parts = blocks(4)
    model = nn.Sequential(*parts, nn.Linear(64, 10))
    adam = ol.optimizer.Adam(0.001, parameters=model.parameters())
    x, y = ol.to_tensor(images(128, 64)), classes(128)

    def loss():
        h = x
        for part in parts:
            h = h + ol.recompute(part, h)
        return F.cross_entropy(model[4](h), y)

    return trained(model, adam, loss)


@network
def recomputed_blocks_without_a_walk_of_their_own():
    parts = blocks(4)
    sgd = ol.optimizer.SGD(0.1, parameters=[p for part in parts for p in part.parameters()])
    x = ol.to_tensor(images(128, 64))

    def loss():
        h = x
        for part in parts:
            h = ol.recompute(part, h, use_reentrant=False)
        return (h * h).mean()

    return trained(None, sgd, loss)


@network
def chain_in_segments():
    parts = blocks(6)
    sgd = ol.optimizer.SGD(0.1, parameters=[p for part in parts for p in part.parameters()])
    x = ol.to_tensor(images(128, 64))
    return trained(None, sgd, lambda: (ol.recompute_sequential(parts, x, segments=3) ** 2).mean())


@network
def checkpoints():
    parts = blocks(6)
    model = nn.Sequential(*parts)
    inner = ol.optimizer.Adam(0.001, parameters=model.parameters())
    optimizer = ol.optimizer.RecomputeOptimizer(inner)
    optimizer.set_checkpoints([parts[1], parts[3]])
    x = ol.to_tensor(images(128, 64))
    return trained(model, optimizer, lambda: (model(x) ** 2).mean())


@network
def within_a_budget():
    model = nn.Sequential(*blocks(6))
    sgd = ol.optimizer.SGD(0.1, parameters=model.parameters())
    x = ol.to_tensor(images(128, 64))

    def step():
        with ol.rematerialize(budget="2 MiB"):
            (model(x) ** 2).mean().backward()
        sgd.step()
        sgd.clear_grad()

    return step


@network
def everything_dropped():
    model = perceptron(128, *[128] * 8, 10)
    sgd = ol.optimizer.SGD(0.1, parameters=model.parameters())
    x, y = images(128, 128), classes(128)

    def loss():
        with ol.rematerialize():
            return F.cross_entropy(model(x), y)

    return trained(model, sgd, loss)


def test_there_are_twenty():
    assert len(NETWORKS) >= 20


@pytest.mark.parametrize("name", NETWORKS)
def test_the_ledger_says_what_the_allocator_measures_at_every_event(name):
    ol.seed(0)
    step = NETWORKS[name]()
    for _ in range(2):  # the third step is like all that follow: some plans are made in the second
        step()
    trace = ol.memory.report(step, verify=True)
    made, measured = trace.made, trace.measured
    assert len(trace) > 8
    assert measured.max() > 50_000
    worst = [
        (i, trace.operation[i], trace.phase[i], int(made[i]), int(measured[i]))
        for i in np.flatnonzero(np.abs(made - measured) > 0.02 * measured)
    ]
    assert not worst
