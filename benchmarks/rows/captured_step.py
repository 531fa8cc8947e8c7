"""Captured training steps: a whole step as one plan, where the overhead of Python decides."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from benchmarks.row import Peer, Row, Target, Work, at_least, unbounded


class Size(NamedTuple):
    """The sizes of a network with two hidden layers, and of its batch."""

    batch: int
    widths: tuple[int, int, int, int]


SMALL = Size(32, (64, 32, 32, 10))
LARGE = Size(128, (784, 256, 256, 10))
RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8


def batch(size: Size) -> tuple[Any, Any]:
    """Return float32 inputs and their labels.

    Every input occurs twice, with two labels, so that the network can never fit them all and the
    gradients keep an ordinary size however many steps are timed.
    """
    import numpy as np

    half = size.batch // 2  # not a multiple of ten: equal inputs differ in label
    once = np.random.default_rng(0).standard_normal((half, size.widths[0])).astype(np.float32)
    return np.concatenate([once, once]), np.arange(size.batch, dtype=np.int64) % size.widths[-1]


def weights(size: Size) -> list[Any]:
    """Return weights and biases as layers of all sides start with them, in turns."""
    import numpy as np

    rng = np.random.default_rng(1)
    found: list[Any] = []
    for n, m in zip(size.widths[:-1], size.widths[1:], strict=True):
        bound = n**-0.5
        found += [
            rng.uniform(-bound, bound, (n, m)).astype(np.float32),
            rng.uniform(-bound, bound, m).astype(np.float32),
        ]
    return found


def training(size: Size) -> Any:
    """Return an optimizer of optlab, the function of one eager step, and its arguments."""
    import optlab as ol

    inputs, labels = batch(size)
    x, y = ol.to_tensor(inputs), ol.to_tensor(labels)
    n, first, second, last = size.widths
    model = ol.nn.Sequential(
        ol.nn.Linear(n, first),
        ol.nn.ReLU(),
        ol.nn.Linear(first, second),
        ol.nn.ReLU(),
        ol.nn.Linear(second, last),
    )
    loss_function = ol.nn.CrossEntropyLoss()
    optimizer = ol.optimizer.Adam(RATE, BETA1, BETA2, EPSILON, parameters=model.parameters())

    def step(x: Any, y: Any) -> Any:
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return optimizer, step, x, y


def ours(size: Size) -> Work:
    """Return one captured training step of optlab."""
    import optlab as ol

    _, step, x, y = training(size)
    captured = ol.capture(step)
    return lambda: captured(x, y)


def eager(size: Size) -> Work:
    """Return the same step of optlab without capture."""
    _, step, x, y = training(size)
    return lambda: step(x, y)


def by_hand(size: Size) -> Work:
    """Return the same step written in NumPy by hand: every result in a buffer of its own.

    It is what a plan can be at best with NumPy's calls alone: no call that is not needed, no array
    allocated, parameters, gradients and moments each in one flat array.
    """
    import numpy as np

    x, y = batch(size)
    rows = np.arange(size.batch)
    start = weights(size)
    flat = np.concatenate([w.ravel() for w in start])
    gradient, moment1, moment2 = (np.zeros_like(flat) for _ in range(3))
    bounds = np.cumsum([0, *(w.size for w in start)])

    def parts(array: Any) -> list[Any]:
        return [
            array[a:b].reshape(w.shape)
            for a, b, w in zip(bounds[:-1], bounds[1:], start, strict=True)
        ]

    w1, b1, w2, b2, w3, b3 = parts(flat)
    dw1, db1, dw2, db2, dw3, db3 = parts(gradient)
    f4 = np.float32
    h1, h2, out = (np.empty((size.batch, m), f4) for m in size.widths[1:])
    d1, d2 = np.empty_like(h1), np.empty_like(h2)
    on1, on2 = np.empty(h1.shape, bool), np.empty(h2.shape, bool)
    column = np.empty((size.batch, 1), f4)
    one, two = np.empty_like(flat), np.empty_like(flat)
    zero, scale = f4(0), f4(1 / size.batch)
    keep1, new1, keep2, new2 = f4(BETA1), f4(1 - BETA1), f4(BETA2), f4(1 - BETA2)
    epsilon = f4(EPSILON)
    t = 0

    def step() -> Any:
        nonlocal t
        t += 1
        np.matmul(x, w1, out=h1)
        np.add(h1, b1, out=h1)
        np.greater(h1, zero, out=on1)
        np.maximum(h1, zero, out=h1)
        np.matmul(h1, w2, out=h2)
        np.add(h2, b2, out=h2)
        np.greater(h2, zero, out=on2)
        np.maximum(h2, zero, out=h2)
        np.matmul(h2, w3, out=out)
        np.add(out, b3, out=out)
        np.maximum.reduce(out, axis=1, keepdims=True, out=column)
        np.subtract(out, column, out=out)
        chosen = out[rows, y]
        np.exp(out, out=out)
        np.add.reduce(out, axis=1, keepdims=True, out=column)
        np.divide(out, column, out=out)
        np.log(column, out=column)
        loss = (np.add.reduce(column[:, 0]) - np.add.reduce(chosen)) * scale
        out[rows, y] -= 1
        np.multiply(out, scale, out=out)
        np.matmul(h2.T, out, out=dw3)
        np.add.reduce(out, axis=0, out=db3)
        np.matmul(out, w3.T, out=d2)
        np.multiply(d2, on2, out=d2)
        np.matmul(h1.T, d2, out=dw2)
        np.add.reduce(d2, axis=0, out=db2)
        np.matmul(d2, w2.T, out=d1)
        np.multiply(d1, on1, out=d1)
        np.matmul(x.T, d1, out=dw1)
        np.add.reduce(d1, axis=0, out=db1)
        np.multiply(moment1, keep1, out=moment1)
        np.multiply(gradient, new1, out=one)
        np.add(moment1, one, out=moment1)
        np.multiply(moment2, keep2, out=moment2)
        np.multiply(gradient, gradient, out=one)
        np.multiply(one, new2, out=one)
        np.add(moment2, one, out=moment2)
        np.sqrt(moment2, out=one)
        np.multiply(one, f4((1 - BETA2**t) ** -0.5), out=one)
        np.add(one, epsilon, out=one)
        np.multiply(moment1, f4(RATE / (1 - BETA1**t)), out=two)
        np.divide(two, one, out=two)
        np.subtract(flat, two, out=flat)
        return loss

    return step


def pytorch(size: Size) -> Work:
    """Return the same step of PyTorch, eager, with its fused optimizer."""
    import torch

    inputs, labels = batch(size)
    x, y = torch.from_numpy(inputs), torch.from_numpy(labels)
    n, first, second, last = size.widths
    model = torch.nn.Sequential(
        torch.nn.Linear(n, first),
        torch.nn.ReLU(),
        torch.nn.Linear(first, second),
        torch.nn.ReLU(),
        torch.nn.Linear(second, last),
    )
    loss_function = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), RATE, (BETA1, BETA2), EPSILON, fused=True)

    def step() -> Any:
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def jax_jit(size: Size) -> Work:
    """Return the same step of JAX: forward, backward and update compiled as one function.

    Parameters and moments are donated, so that XLA may update them in place.
    """
    import jax
    import jax.numpy as jnp

    inputs, labels = batch(size)
    x, y = jnp.asarray(inputs), jnp.asarray(labels)

    def loss_of(ws: Any, x: Any, y: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = ws
        h = jnp.maximum(x @ w1 + b1, 0)
        h = jnp.maximum(h @ w2 + b2, 0)
        out = jax.nn.log_softmax(h @ w3 + b3)
        return -jnp.mean(jnp.take_along_axis(out, y[:, None], axis=1))

    def step(ws: Any, m1: Any, m2: Any, t: Any, x: Any, y: Any) -> Any:
        loss, g = jax.value_and_grad(loss_of)(ws, x, y)
        t = t + 1
        m1 = [BETA1 * m + (1 - BETA1) * d for m, d in zip(m1, g, strict=True)]
        m2 = [BETA2 * m + (1 - BETA2) * d * d for m, d in zip(m2, g, strict=True)]
        rate, root = RATE / (1 - BETA1**t), (1 - BETA2**t) ** -0.5
        ws = [
            w - rate * a / (jnp.sqrt(b) * root + EPSILON)
            for w, a, b in zip(ws, m1, m2, strict=True)
        ]
        return loss, ws, m1, m2, t

    compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    ws = [jnp.asarray(w) for w in weights(size)]
    state: list[Any] = [ws, [jnp.zeros_like(w) for w in ws], [jnp.zeros_like(w) for w in ws]]
    state.append(jnp.float32(0))

    def run() -> Any:
        loss, *state[:] = compiled(*state, x, y)
        return loss.block_until_ready()

    return run


def peers(size: Size, of_pytorch: float, of_jax: Target) -> list[Peer]:
    """Return the peers of a size: compiled, eager, by hand, and our own eager step."""
    return [
        Peer(
            "PyTorch eager, fused Adam",
            partial(pytorch, size),
            "torch",
            at_least(of_pytorch),
            threads=(1, 2),
        ),
        Peer("jax.jit of the step", partial(jax_jit, size), "jax", of_jax, threads=(1, 2)),
        Peer(
            "NumPy by hand",
            partial(by_hand, size),
            "numpy",
            unbounded(),
            threads=(1, 2),
            in_our_environment=True,
        ),
        Peer(
            "optlab eager",
            partial(eager, size),
            "numpy",
            unbounded(),
            threads=(1, 2),
            in_our_environment=True,
        ),
    ]


ROWS = [
    Row(
        name="captured_step",
        title="captured MLP step, 32x64-32-32-10, ReLU, cross entropy, Adam, float32",
        unit="training step",
        ours=partial(ours, SMALL),
        peers=peers(SMALL, 3.5, at_least(1.3)),
    ),
    Row(
        name="captured_step_large",
        title="captured MLP step, 128x784-256-256-10, ReLU, cross entropy, Adam, float32",
        unit="training step",
        ours=partial(ours, LARGE),
        peers=peers(LARGE, 1.0, unbounded()),
    ),
]
