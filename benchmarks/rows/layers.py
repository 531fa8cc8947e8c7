"""Layers forward and backward, where PyTorch has kernels for a whole layer.

A depthwise convolution has one filter per channel: here its gradients are sums of shifted images.
An LSTM is sequential: its cost is mostly many small products. The gradients of input and
parameters are computed, as inside a network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.row import Peer, Row, Work, at_least, unbounded

SHAPES = {"depthwise": (16, 64, 28, 28), "lstm": (32, 50, 64), "lstm_32": (16, 50, 32)}


def arrays(name: str) -> tuple[Any, Any]:
    """Return an input and an upstream gradient, which has the same shape here."""
    import numpy as np

    numbers = np.random.default_rng(0)
    return tuple(  # type: ignore[return-value]
        numbers.standard_normal(SHAPES[name]).astype(np.float32) for _ in range(2)
    )


def step(layer: Callable[[Any], Any], x: Any, gradient: Any, parameters: list[Any]) -> Work:
    """Return forward and backward of a layer; an LSTM returns its last states as well."""

    def work() -> None:
        y = layer(x)
        (y[0] if isinstance(y, tuple) else y).backward(gradient)
        for leaf in (x, *parameters):
            leaf.grad = None

    return work


def ours(name: str) -> Work:
    """Return forward and backward of optlab's layer."""
    import optlab as ol

    given, gradient = arrays(name)
    width = given.shape[-1]
    if name == "depthwise":
        channels = given.shape[1]
        layer: Any = ol.nn.Conv2D(channels, channels, 3, padding=1, groups=channels)
    else:
        layer = ol.nn.LSTM(width, width)
    return step(layer, ol.to_tensor(given, requires_grad=True), gradient, layer.parameters())


def pytorch(name: str) -> Work:
    """Return the same in PyTorch."""
    import torch

    given, gradient = map(torch.from_numpy, arrays(name))
    width = given.shape[-1]
    if name == "depthwise":
        channels = given.shape[1]
        layer: Any = torch.nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
    else:
        layer = torch.nn.LSTM(width, width, batch_first=True)
    return step(layer, given.requires_grad_(), gradient, list(layer.parameters()))


TITLES = {
    "depthwise": "depthwise convolution, 16x64x28x28, kernel 3, forward and backward",
    "lstm": "LSTM, 32 sequences of 50 steps, 64 to 64, forward and backward",
    "lstm_32": "LSTM, 16 sequences of 50 steps, 32 to 32, forward and backward",
}
TARGETS = {"lstm_32": at_least(0.8)}
ROWS = [
    Row(
        name=name,
        title=title,
        unit="forward and backward",
        ours=partial(ours, name),
        peers=[
            Peer(
                "PyTorch eager", partial(pytorch, name), "torch", TARGETS.get(name, unbounded()),
                threads=(1, 2),
            ),
        ],
    )
    for name, title in TITLES.items()
]  # fmt: skip
