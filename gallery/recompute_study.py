"""Memory and time of recomputation: sixteen residual blocks, run in eight ways.

The forward pass saves 80 MiB for the backward pass. Segments store only their inputs and are run
again; Revolve runs the fewest layers for a given number of stored inputs; a byte budget drops the
results that are cheapest to recompute. All gradients are bitwise equal.

Run it with ``python gallery/recompute_study.py``: it writes recompute-study.png and
recompute-revolve.png, the schedule of Revolve, beside this file. It takes a minute or two.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import optlab as ol
from optlab.autograd.schedules import revolve

WIDTH, BATCH, DEPTH = 256, 512, 16


class Block(ol.nn.Layer):
    """A residual block: LayerNorm, Linear, GELU, Dropout, Linear."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = ol.nn.LayerNorm(width)
        self.up = ol.nn.Linear(width, 4 * width)
        self.act = ol.nn.GELU()
        self.drop = ol.nn.Dropout(0.1)
        self.down = ol.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """Add the output of the layers to `x`."""
        return x + self.down(self.drop(self.act(self.up(self.norm(x)))))


def study(width: int = WIDTH, batch: int = BATCH, depth: int = DEPTH, repeats: int = 3) -> Any:
    """Run a step of the network in eight ways; return the study."""
    ol.seed(0)
    blocks = [Block(width) for _ in range(depth)]
    x = ol.randn([batch, width])

    def step(run: Any) -> Any:
        loss = run(blocks, x).mean()
        loss.backward()
        return loss

    one = 10 * 4 * width * batch  # bytes that a block saves for the backward pass
    return ol.lab.memory_study(
        step,
        ["plain", 2, 4, depth, ("revolve", 8), ("revolve", 3)],
        [one * depth // 2, one * depth // 4],
        repeats=repeats,
    )


def draw(found: Any, folder: Path) -> Path:
    """Write the images into `folder`; return the path of the first."""
    picture = folder / "recompute-study.png"
    picture.write_bytes(ol.viz.recompute_png(found, scale=2))
    schedule = ol.viz.recompute_schedule_png(revolve(DEPTH, 3), scale=2)
    (folder / "recompute-revolve.png").write_bytes(schedule)
    return picture


def main(folder: Path) -> Path:
    """Run the study and write its images; return the path of the first."""
    found = study()
    print(found)
    return draw(found, folder)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
