"""Six learning-rate schedules over 200 steps.

Step decay, half a cosine, cosines with restarts, a linear decay after a warm-up, one cycle, and
triangles. All but one cycle and the triangles start at, or warm up to, the same rate.

Run it with ``python gallery/schedules.py``: it writes schedules.png beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import optlab as ol

lr = ol.optimizer.lr


def schedules() -> dict[str, Any]:
    """Build the schedules."""
    line = lr.PolynomialDecay(0.5, decay_steps=170, end_lr=0.0)
    return {
        "steps": lr.StepDecay(0.5, step_size=60, gamma=0.4),
        "cosine": lr.CosineAnnealingDecay(0.5, T_max=199),
        "restarts": lr.CosineAnnealingWarmRestarts(0.5, T_0=29, T_mult=2),
        "warm-up, line": lr.LinearWarmup(line, 30, start_lr=0.0, end_lr=0.5),
        "one cycle": lr.OneCycleLR(0.7, total_steps=200),
        "triangles": lr.CyclicLR(0.05, 0.3, step_size_up=20, mode="triangular2"),
    }


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "schedules.png"
    picture.write_bytes(
        ol.viz.schedule_png(schedules(), steps=200, width=1000, height=480, scale=2)
    )
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
