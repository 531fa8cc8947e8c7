"""Two solutions of one network, and a valley between them.

Two networks learn the same digits from different starts. On the straight line between their weights
the loss rises; on a curve whose one free point is trained it stays low: the two minima lie in one
valley (Garipov, Izmailov, Podoprikhin, Vetrov and Wilson 2018).

Run it with ``python gallery/mode_connectivity.py``: it writes mode-connectivity.png beside this
file. It needs the extra ``lab``, and some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import optlab as ol

EXAMPLES, STEPS = 600, 400


def connected() -> ol.lab.Connection:
    """Train two networks and a curve between them; return the losses on the way."""
    first, second = (ol.lab.recipe("digits_mlp").run(steps=STEPS, seed=seed) for seed in (0, 1))
    x, y = first.data.train_x[:EXAMPLES], first.data.train_y[:EXAMPLES]
    ends = [
        {name: p.numpy() for name, p in training.model.named_parameters()}
        for training in (first, second)
    ]
    model = first.model
    return ol.lab.connect(model, lambda: ol.nn.functional.cross_entropy(model(x), y), *ends)


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "mode-connectivity.png"
    picture.write_bytes(ol.viz.connection_png(connected(), width=720, height=400, scale=2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
