"""The memory of a training step of a small transformer, event by event.

The forward pass saves arrays for the backward pass, which releases them while the gradients are
allocated. The panel beside the curve lists what is alive at the peak, by operation.

Run it with ``python gallery/memory_timeline.py``: it writes memory-timeline.png beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import optlab as ol


def step_of_training() -> Any:
    """Return a function that trains a transformer of four blocks for one step."""
    ol.seed(0)
    model = ol.lab.models.GPT(65, length=64, width=64, depth=4, heads=4, dropout=0.1)
    optimizer = ol.optimizer.Adam(1e-3, parameters=model.parameters())
    text = np.random.default_rng(0).integers(0, 65, (16, 65))

    def step() -> None:
        scores = model(text[:, :-1]).reshape([-1, 65])
        ol.nn.functional.cross_entropy(scores, text[:, 1:].ravel()).backward()
        optimizer.step()
        optimizer.clear_grad()

    return step


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    step = step_of_training()
    step()  # the first step fills caches; the second is like all that follow
    picture = folder / "memory-timeline.png"
    trace = ol.memory.report(step)
    picture.write_bytes(ol.viz.memory_png(trace, width=1000, height=500, scale=2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
