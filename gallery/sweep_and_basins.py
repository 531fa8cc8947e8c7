"""A hundred rates times sixty momenta, and the four basins of Himmelblau's function.

First, `ol.sweep` runs 6,000 settings of Momentum down the Rosenbrock valley as one loop over steps
and runs, and `sweep.heatmap()` draws how low each ends: the best lie on the edge of divergence.
Below, `ol.basins` starts SGD and Momentum from 40,000 points each. SGD ends in the basin that it
starts in; Momentum flies over ridges, and its basins fray.

Run it with ``python gallery/sweep_and_basins.py``: it writes sweep-and-basins.png beside this file.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

import numpy as np

import optlab as ol


def sweep() -> ol.lab.Sweep:
    """Run all settings."""
    settings = {
        "learning_rate": np.geomspace(1e-5, 1e-2, 100),
        "momentum": np.linspace(0.0, 0.98, 60),
    }
    return ol.sweep("rosenbrock", ol.optimizer.Momentum, settings, steps=300)


def basins() -> list[ol.lab.Basins]:
    """Run all starts."""
    return [
        ol.basins("himmelblau", optimizer, steps=200)
        for optimizer in (ol.optimizer.SGD(0.01), ol.optimizer.Momentum(0.01, 0.9))
    ]


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    from PIL import Image

    pictures = [ol.viz.heatmap_png(sweep(), width=860, height=480, scale=1.5)]
    pictures += [ol.viz.basins_png(found, width=860, height=480, scale=1.5) for found in basins()]
    parts = [Image.open(BytesIO(picture)).convert("RGB") for picture in pictures]
    page = Image.new("RGB", (parts[0].width, sum(part.height for part in parts)), "white")
    top = 0
    for part in parts:
        page.paste(part, (0, top))
        top += part.height
    target = folder / "sweep-and-basins.png"
    page.quantize(256).save(target, optimize=True)
    return target


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
