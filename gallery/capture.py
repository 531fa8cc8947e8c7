"""A training step as a plan: what it does, where its results lie, and what capture saves.

`ol.capture` runs a step of a small network and writes down every array operation of forward,
backward and Adam. On the left are these operations in order, each at the buffer that its result
lies in: results that are never alive together share one. On the right is the time of a step by the
width of the network: where Python's overhead was most of the time, little is left.

Run it with ``python gallery/capture.py``: it writes capture.png beside this file. It needs the
extra ``lab``, and some seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

import optlab as ol
from optlab.backend.memory.sizes import in_words
from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, as_png
from optlab.viz.style import theme

BATCH, WIDTHS = 32, (8, 16, 32, 64, 128, 256, 512)
EAGER, CAPTURED = "#b84a00", "#005f9e"

nn = ol.nn


def training(width: int) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    """Return the function of one step of a network of this width, and a batch."""
    ol.seed(0)
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )
    adam = ol.optimizer.Adam(1e-3, parameters=model.parameters())

    def step(x: Any, y: Any) -> Any:
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    return step, ol.randn([BATCH, 64]), ol.randint(0, 10, [BATCH])


def seconds(step: Callable[..., Any], x: Any, y: Any, turns: int, calls: int = 10) -> float:
    """Return the least time of one call, over batches of calls."""
    least = np.inf
    for _ in range(turns):
        start = perf_counter()
        for _ in range(calls):
            step(x, y)
        least = min(least, (perf_counter() - start) / calls)
    return float(least)


class Result(NamedTuple):
    """The plan of a step; the time of a step, eager and captured, by the width; equal losses."""

    plan: Any
    widths: tuple[int, ...]
    eager: list[float]
    captured: list[float]
    losses: list[float]


def measure(widths: tuple[int, ...] = WIDTHS, turns: int = 15) -> Result:
    """Time steps of several widths, both ways, and compare what they learn."""
    plan, eager, captured, losses = None, [], [], []
    for width in widths:
        plain, x, y = training(width)
        eager.append(seconds(plain, x, y, turns))
        step = ol.capture(training(width)[0])
        captured.append(seconds(step, x, y, turns))
        if width == 32:
            plan = step.plan
        one, other = plain(x, y).item(), step(x, y).item()
        if one != other:
            raise AssertionError(f"the losses {one} and {other} should be equal")
        losses.append(one)
    return Result(plan, widths, eager, captured, losses)


def draw(found: Result) -> Figure:
    """Plot the operations at their buffers, and the time of a step by the width."""
    figure = Figure(figsize=(1000 / DOTS_PER_INCH, 420 / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    figure.subplots_adjust(0.06, 0.13, 0.98, 0.9, wspace=0.2)
    table = found.plan.table()
    placed = table[table["buffer"].notna()]
    rows = {buffer: i for i, buffer in enumerate(dict.fromkeys(placed["buffer"]))}
    grouped = placed["group"].notna()
    for chosen, color, label in (
        (~grouped, EAGER, "one call of NumPy"),
        (grouped, CAPTURED, "of an elementwise group"),
    ):
        part = placed[chosen]
        left.scatter(
            part.index,
            [rows[buffer] for buffer in part["buffer"]],
            s=6 + 2 * np.log2(part["bytes"].to_numpy(float) + 1),
            marker="s",
            color=color,
            label=label,
        )
    left.set_xlabel("operation", fontsize=9)
    left.set_ylabel("buffer", fontsize=9)
    left.yaxis.set_major_locator(MaxNLocator(integer=True))
    left.set_title(
        f"A step as {len(found.plan.entries)} operations in {len(rows)} buffers, "
        f"at most {in_words(found.plan.peak_bytes)}",
        fontsize=10,
    )
    left.legend(frameon=False, fontsize=9)
    for times, color, label in (
        (found.eager, EAGER, "eager"),
        (found.captured, CAPTURED, "captured, equal to the bit"),
    ):
        right.plot(found.widths, np.multiply(times, 1e6), ".-", color=color, label=label)
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    right.yaxis.set_major_formatter(ScalarFormatter())
    right.set_xlabel("width of the network", fontsize=9)
    right.set_title("Microseconds of a training step", fontsize=10)
    right.legend(frameon=False, fontsize=9)
    return figure


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "capture.png"
    picture.write_bytes(as_png(draw(measure()), 2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
