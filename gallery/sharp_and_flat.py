"""Sharp against flat: what the size of a batch, momentum and SAM do to the curvature along a run.

One network learns 1,000 digits four times from the same weights: by gradient descent on all of
them, on batches of 25, with momentum, and with sharpness-aware minimization. The largest
eigenvalues of the Hessian of the whole loss, its trace, and the share of gradient and update in the
space of the first eigenvectors are recorded on the way. Small batches and SAM keep to flatter
places; momentum stands sharper ones, since it diverges at 2 (1 + momentum) / rate only.

Sources: Keskar et al. 2017 (batches); Cohen et al. 2021 (momentum and the edge of stability); Foret
et al. 2021 (SAM); Gur-Ari, Roberts and Dyer 2018 (alignment).

Run it with ``python gallery/sharp_and_flat.py``: it writes sharp-and-flat.png beside this file. It
needs the extra ``lab``, and some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import optlab as ol

STEPS, EVERY, EXAMPLES, BATCH = 1200, 40, 1000, 25
RATE, MOMENTUM, RHO, SCALE = 0.45, 0.5, 0.05, 0.5


def train(template: Any, batch: int, steps: int = STEPS) -> Any:
    """Train the network; return the trace, with curvature and alignment."""
    data = ol.data.digits()
    x = (data.train_x[:EXAMPLES] - data.train_x.mean(axis=0)) * np.float32(SCALE)
    y = np.eye(10, dtype=np.float32)[data.train_y[:EXAMPLES]]
    with ol.random_scope("weights", seed=0):
        model = ol.models.MLP([64, 24, 10], "tanh")
    draws = np.random.default_rng(0)

    def loss(weights: Any, rows: Any = slice(None)) -> Any:
        error = ol.nn.functional_call(model, weights, x[rows]) - y[rows]
        return (error**2).sum() / (2 * len(y[rows]))

    optimizer = template.bind(model.parameters())
    probe = ol.probes.Curvature(loss, k=5, samples=4, alignment=True, tolerance=1e-3, every=EVERY)
    with ol.record(optimizer, probes=[probe], model=model) as trace:
        for _ in range(steps):
            rows = draws.permutation(EXAMPLES)[:batch]

            def evaluate(rows: Any = rows) -> Any:
                optimizer.clear_grad()
                value = loss({}, rows)
                value.backward()
                return value

            if isinstance(optimizer, ol.optimizer.SAM):
                optimizer.step(evaluate)
            else:
                evaluate()
                optimizer.step()
    return trace


def runs(steps: int = STEPS) -> dict[str, Any]:
    """Train in all four ways."""
    sgd = ol.optimizer.SGD
    return {
        "all examples": train(sgd(RATE), EXAMPLES, steps),
        f"batches of {BATCH}": train(sgd(RATE), BATCH, steps),
        "momentum": train(ol.optimizer.Momentum(RATE, MOMENTUM), EXAMPLES, steps),
        "SAM": train(ol.optimizer.SAM(sgd(RATE), rho=RHO), EXAMPLES, steps),
    }


def main(folder: Path, steps: int = STEPS) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "sharp-and-flat.png"
    found = runs(steps)
    for name, trace in found.items():
        sharp, total = trace["sharpness"][-1, 0], trace["hessian trace"][-1]
        print(f"{name}: sharpness {sharp:.3g}, trace {total:.3g}, loss {trace.loss[-1]:.3g}")
    picture.write_bytes(ol.viz.curvature_png(found, width=1100, height=460, scale=2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
