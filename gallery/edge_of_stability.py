"""The edge of stability: gradient descent sharpens a network until its rate is just too large.

A small network learns 200 digits by full-batch gradient descent. The sharpness, the largest
eigenvalue of the Hessian of the loss, rises ("progressive sharpening") until it reaches 2 / rate,
where a quadratic loss would begin to diverge. It does not: the sharpness hovers there, and the loss
goes on falling, no longer at every step (Cohen et al., Gradient descent on neural networks
typically occurs at the edge of stability, 2021).

The eigenvalues are recorded as the network trains, by Lanczos' method on products of the Hessian
with vectors.

Run it with ``python gallery/edge_of_stability.py``: it writes edge-of-stability.png beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import optlab as ol

SCALE = 0.3
RATE = 0.2
STEPS = 1200
EVERY = 30


def train(steps: int = STEPS) -> Any:
    """Train the network; return the trace."""
    data = ol.problems.digits_mlp().data()
    x = np.asarray(data.train_x[:200], dtype=np.float32)
    x = (x - x.mean(axis=0)) * np.float32(SCALE)
    y = np.eye(10, dtype=np.float32)[data.train_y[:200]]
    with ol.random_scope("weights", seed=0):
        model = ol.nn.Sequential(
            ol.nn.Linear(64, 24), ol.nn.Tanh(), ol.nn.Linear(24, 24), ol.nn.Tanh(),
            ol.nn.Linear(24, 10),
        )  # fmt: skip

    def loss(weights: Any) -> Any:
        return ((ol.nn.functional_call(model, weights, x) - y) ** 2).sum() / (2 * len(x))

    optimizer = ol.optimizer.SGD(RATE, parameters=model.parameters(), name="gradient descent")
    probes = [ol.probes.Curvature(loss, every=EVERY, tolerance=1e-3)]
    with ol.record(optimizer, probes=probes) as trace:
        for _ in range(steps):
            optimizer.clear_grad()
            loss({}).backward()
            optimizer.step()
    return trace


def draw(trace: Any) -> bytes:
    """Draw loss and sharpness, and 2 / rate beside the sharpness."""
    limit = ol.trace.Trace("2 / rate")
    for n, rate in zip(trace.step, trace.learning_rate, strict=True):
        limit.steps_taken = int(n)
        limit.log("sharpness", 2 / rate)
    note = (
        f"Full-batch gradient descent at rate {RATE:g} on 200 digits, 64-24-24-10, tanh, squared "
        "loss. The rate was chosen by hand, so that the edge is reached within the picture."
    )
    return ol.viz.series_png(
        {"gradient descent": trace, "2 / rate": limit}, ["sharpness"],
        axis="linear", note=note, width=900, height=460, scale=2,
    )  # fmt: skip


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "edge-of-stability.png"
    picture.write_bytes(draw(train()))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
