"""One eager training step of a small network, dominated by the overhead of each call."""

from __future__ import annotations

from typing import Any

from benchmarks.row import Peer, Row, Work, at_least


def batch() -> tuple[Any, Any]:
    """Return 32 inputs of 64 float32 numbers and their labels.

    Every input occurs twice, with two labels, so that the network can never fit them all and the
    gradients keep an ordinary size however many steps are timed.
    """
    import numpy as np

    once = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)
    labels = np.arange(32, dtype=np.int64) % 10  # 16 % 10 != 0: equal inputs differ in label
    return np.concatenate([once, once]), labels


def ours() -> Work:
    """Return one training step of optlab."""
    import optlab as ol

    inputs, labels = batch()
    x, y = ol.to_tensor(inputs), ol.to_tensor(labels)
    model = ol.nn.Sequential(
        ol.nn.Linear(64, 32),
        ol.nn.ReLU(),
        ol.nn.Linear(32, 32),
        ol.nn.ReLU(),
        ol.nn.Linear(32, 10),
    )
    loss_function = ol.nn.CrossEntropyLoss()
    optimizer = ol.optimizer.Adam(1e-3, parameters=model.parameters())

    def step() -> None:
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    return step


def pytorch() -> Work:
    """Return the same step in PyTorch, with its fused optimizer."""
    import torch

    inputs, labels = batch()
    x, y = torch.from_numpy(inputs), torch.from_numpy(labels)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 10),
    )
    loss_function = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def step() -> None:
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


ROWS = [
    Row(
        name="mlp_step",
        title="eager MLP step, 32x64-32-32-10, ReLU, cross entropy, Adam, float32",
        unit="training step",
        ours=ours,
        peers=[
            Peer("PyTorch eager, fused Adam", pytorch, "torch", at_least(1.7), threads=(1, 2)),
        ],
    )
]
