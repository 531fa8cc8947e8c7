"""LookAhead around Momentum: wild fast weights, calm slow ones.

Momentum runs down the Rosenbrock valley at a learning rate close to divergence, and swings from
wall to wall. After every eighth step LookAhead interpolates halfway between the slow weights, where
the lap began, and the fast weights, where it ended.

Run it with ``python gallery/look_ahead.py``: it writes look-ahead.png beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import optlab as ol


def race() -> Any:
    """Run Momentum with and without LookAhead around it."""
    return ol.compare(
        "rosenbrock",
        {
            "LookAhead": ol.optimizer.LookAhead(ol.optimizer.Momentum(0.0015), alpha=0.5, k=8),
            "Momentum": ol.optimizer.Momentum(0.0015),
        },
        steps=80,
    )


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    result = race()
    note = (
        "The rate was chosen by hand, just below 0.002, at which Momentum diverges with LookAhead "
        "or without it; alpha and k by hand, so that the laps can be told apart. Momentum alone, "
        f"at the same rate, is at loss {result.final_loss['Momentum']:.3g} after 80 steps."
    )
    picture = folder / "look-ahead.png"
    picture.write_bytes(
        ol.viz.lookahead_png(result["LookAhead"], note=note, width=1000, height=500, scale=2)
    )
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
