"""Four optimizers race down the Rosenbrock valley.

From the same start, in the same number of steps, each of the four fails in its own way: SGD drops
to the valley floor and then crawls, Momentum overshoots the bend and loops back, RMSProp oscillates
along the floor, Adam swings in and follows it. Only the learning rates were chosen by hand; they
are listed under the picture.

Run it with ``python gallery/first_race.py``: it writes first-race.png beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import optlab as ol


def race() -> ol.lab.Comparison:
    """Run the race."""
    return ol.compare(
        "rosenbrock",
        {
            "SGD": ol.optimizer.SGD(0.001),
            "Momentum": ol.optimizer.Momentum(0.0005, momentum=0.9),
            "RMSProp": ol.optimizer.RMSProp(0.02),
            "Adam": ol.optimizer.Adam(0.2),
        },
        steps=500,
    )


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "first-race.png"
    picture.write_bytes(ol.viz.race_png(race(), scale=2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
