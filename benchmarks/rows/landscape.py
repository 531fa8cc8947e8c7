"""A plane of losses: LeNet-5 on 1,000 images at 25 points, against a loop in PyTorch.

The whole plane of the documentation has 51 x 51 points; the cost of a point does not depend on
their number.
"""

from __future__ import annotations

from typing import Any

from benchmarks.row import Peer, Row, Work, at_least

IMAGES, SIDE = 1000, 5


def arrays() -> tuple[Any, Any]:
    """Return images and classes."""
    import numpy as np

    numbers = np.random.default_rng(0)
    x = numbers.standard_normal((IMAGES, 1, 28, 28)).astype(np.float32)
    return x, numbers.integers(0, 10, IMAGES)


def ours() -> Work:
    """Return `landscape` on optlab's LeNet-5."""
    import optlab as ol

    x, y = arrays()
    images, classes = ol.to_tensor(x), ol.to_tensor(y)
    model = ol.models.LeNet5()
    model.eval()

    def plane() -> None:
        ol.lab.landscape(
            model, lambda: ol.nn.functional.cross_entropy(model(images), classes), size=SIDE
        )

    return plane


def pytorch() -> Work:
    """Return a loop over the same points that writes the weights of PyTorch's LeNet-5."""
    import torch

    x, y = map(torch.from_numpy, arrays())
    f, nn = torch.nn.functional, torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
        nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    start = [p.detach().clone() for p in model.parameters()]
    first, second = ([torch.randn_like(p) * p.std() for p in start] for _ in range(2))
    ticks = torch.linspace(-1, 1, SIDE)

    def plane() -> None:
        with torch.no_grad():
            for b in ticks:
                for a in ticks:
                    parts = zip(model.parameters(), start, first, second, strict=True)
                    for p, w, u, v in parts:
                        p.copy_(w + a * u + b * v)
                    f.cross_entropy(model(x), y).item()

    return plane


ROWS = [
    Row(
        name="landscape",
        title="plane of losses of LeNet-5, 1,000 images, 25 points",
        unit="plane",
        ours=ours,
        peers=[Peer("PyTorch, a loop", pytorch, "torch", at_least(2.0), threads=(1, 2))],
    )
]
