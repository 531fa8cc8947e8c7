"""Gradients through unrolled gradient descent: by the learning rate, through every inner step."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.row import Peer, Row, Work, at_most

RATE = 0.05


def data() -> tuple[Any, Any]:
    """Return 32 inputs of 16 float64 numbers and their targets."""
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.standard_normal((32, 16)), rng.standard_normal(32)


def ours(steps: int) -> Work:
    """Return the gradient of optlab: `grad` of a loop over `grad`."""
    import numpy as np

    import optlab as ol

    x, y = data()

    def loss(w: Any) -> Any:
        r = x @ w - y
        return (r * r).mean()

    slope = ol.grad(loss)

    def learned(rate: Any) -> Any:
        w: Any = np.zeros(16)
        for _ in range(steps):
            w = w - rate * slope(w)
        return loss(w)

    of_rate = ol.grad(learned)
    return lambda: of_rate(RATE)


def pytorch(steps: int) -> Work:
    """Return the same gradient of PyTorch, by `autograd.grad` with `create_graph`."""
    import torch

    x, y = map(torch.from_numpy, data())

    def loss(w: Any) -> Any:
        r = x @ w - y
        return (r * r).mean()

    def of_rate() -> Any:
        rate = torch.tensor(RATE, dtype=torch.float64, requires_grad=True)
        w = torch.zeros(16, dtype=torch.float64, requires_grad=True)
        for _ in range(steps):
            (g,) = torch.autograd.grad(loss(w), w, create_graph=True)
            w = w - rate * g
        return torch.autograd.grad(loss(w), rate)[0]

    return of_rate


ROWS = [
    Row(
        name=f"unrolled_{steps}",
        title=f"gradient by the rate through {steps} steps of descent, least squares 32x16",
        unit="gradient",
        ours=partial(ours, steps),
        peers=[Peer("PyTorch", partial(pytorch, steps), "torch", at_most(3.0), threads=(1, 2))],
    )
    for steps in (50, 200, 800)
]
