"""A network of 200 layers that exceeds a memory budget, and still trains within it.

A step saves the outputs of all layers for the backward pass: several times the budget. The
operating system is set to limit the process to the budget. (This is a limit of Linux, not a number
that optlab guarantees.) The plain step ends in a `MemoryError`. With `ol.recompute_sequential` the
same network trains under the same limit, and its losses are bitwise those of the plain step.

Run it with ``python gallery/does_not_fit.py``: it writes does-not-fit.png beside this file.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import optlab as ol

LAYERS, WIDTH, STEPS, PLAIN_STEPS = 200, 64, 20, 3
MIB = 2**20
#: Memory that training may use in addition to the parameters and the data: gradients, slots and
#: everything that a step saves.
BUDGET = 40 * MIB


class Residual(ol.nn.Layer):
    """x + tanh(W x + b) / 10, a residual so small that 200 layers remain stable."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = ol.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """Add the residual."""
        return x + np.tanh(self.linear(x)) / 10


class Training:
    """The network, all training digits and an optimizer, with the same seed every time.

    Parameters
    ----------
    segments : int or str, optional
        Passed to `ol.recompute_sequential`; None for the plain step.
    """

    def __init__(self, segments: int | str | None = None) -> None:
        ol.seed(0)
        self.segments = segments
        train_x, train_y, test_x, test_y = ol.data.digits()
        self.x, self.y = ol.to_tensor(train_x), ol.to_tensor(train_y)
        self.test_x, self.test_y = ol.to_tensor(test_x), test_y
        first, last = ol.nn.Linear(64, WIDTH), ol.nn.Linear(WIDTH, 10)
        self.layers = [first, *[Residual() for _ in range(LAYERS - 2)], last]
        parameters = [p for layer in self.layers for p in layer.parameters()]
        self.optimizer = ol.optimizer.Momentum(0.05, parameters=parameters)
        self.layer = 0  # number of layers that have started, in the plain step
        self.accuracy()  # the threads of the matrix products allocate their buffers here

    def run_plain(self, x: Any) -> Any:
        """Run the layers in order, without recomputation."""
        for number, layer in enumerate(self.layers, start=1):
            self.layer = number
            x = layer(x)
        return x

    def step(self) -> float:
        """Run one training step; return the loss."""
        if self.segments is None:
            scores = self.run_plain(self.x)
        else:
            scores = ol.recompute_sequential(self.layers, self.x, segments=self.segments)
        loss = ol.nn.functional.cross_entropy(scores, self.y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        return float(loss.item())

    def accuracy(self) -> float:
        """Return the share of held-out digits that is classified correctly."""
        with ol.no_grad():
            read = np.argmax(self.run_plain(self.test_x).numpy(), axis=1)
        return float(np.mean(read == self.test_y))


def peak(segments: int | str | None = None) -> int:
    """Return the peak of the traced memory of a first step, above its start."""
    training = Training(segments)
    gc.collect()
    tracemalloc.start()
    start = tracemalloc.get_traced_memory()[0]
    training.step()
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return highest - start


def course(segments: int | str | None = None) -> np.ndarray:
    """Return the bytes above the start of a step, event by event."""
    trace = ol.memory.report(Training(segments).step)
    return trace.during.sum(axis=1) - trace.total[0]


def train(segments: int | str | None, steps: int, budget: int | None) -> dict[str, Any]:
    """Train in this process, limited to the budget from now on.

    Returns
    -------
    dict
        ``losses``, ``accuracy`` and, if memory ran out, ``layer``: the one whose allocation failed.
    """
    training = Training(segments)
    gc.collect()
    if budget is not None:
        limit_memory(budget)
    losses: list[float] = []
    try:
        losses.extend(training.step() for _ in range(steps))
    except MemoryError:
        return {"losses": losses, "layer": training.layer}
    return {"losses": losses, "accuracy": training.accuracy(), "layer": None}


def limit_memory(more: int) -> None:
    """Limit the memory of this process to `more` bytes above its present size."""
    import resource

    status = Path("/proc/self/status").read_text(encoding="ascii")
    (now,) = [int(line.split()[1]) * 1024 for line in status.splitlines() if "VmData" in line]
    resource.setrlimit(resource.RLIMIT_DATA, (now + more, now + more))


def in_a_process(
    segments: int | str | None, steps: int, budget: int | None = BUDGET
) -> dict[str, Any]:
    """Run `train` in a separate process with one thread.

    One thread takes the least memory: with several, OpenBLAS allocates a buffer in every product,
    and ends the process if it gets none.
    """
    command = [sys.executable, __file__, "--train", json.dumps([segments, steps, budget])]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


class Result(NamedTuple):
    """The data of the picture."""

    plain: np.ndarray  # bytes over the events of a step
    recomputed: np.ndarray
    losses: list[float]  # within the budget
    plain_losses: list[float]  # without a budget, the first few
    accuracy: float
    refused: int | None  # the layer at which the plain step failed; None: there was no limit


def learn(steps: int = STEPS) -> Result:
    """Train under the limit by both methods, and without a limit for some plain steps."""
    budget = BUDGET if sys.platform == "linux" else None  # on other systems without a limit
    inside = in_a_process("sqrt", steps, budget)
    refused = in_a_process(None, 1, budget)["layer"]
    plain = in_a_process(None, min(PLAIN_STEPS, steps), None)
    return Result(
        course(), course("sqrt"), inside["losses"], plain["losses"], inside["accuracy"], refused
    )


def draw(result: Result, folder: Path) -> Path:
    """Plot memory over a step, and the losses; return the image's path."""
    from matplotlib.figure import Figure

    orange, blue = "#b34700", "#0072b2"
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    memory, losses = figure.subplots(1, 2, width_ratios=(3, 2))
    plain, recomputed = result.plain / MIB, result.recomputed / MIB
    memory.plot(plain, color=orange, lw=1.5)
    memory.plot(recomputed, color=blue, lw=1.5)
    said = f"plain: {plain.max():.0f} MiB"
    if result.refused:
        said += f"\n(held to the budget, it ends in a\nMemoryError at layer {result.refused})"
    at = (plain.argmax(), plain.max())
    memory.annotate(said, at, (45, 0), textcoords="offset points", va="top", color=orange, size=9)
    said = f'segments="sqrt": {recomputed.max():.0f} MiB'
    memory.text(len(recomputed), recomputed.max() + 3, said, ha="right", color=blue, size=9)
    memory.axhline(BUDGET / MIB, color="0.3", ls="--", lw=1)
    said = f"budget: {BUDGET / MIB:.0f} MiB"
    memory.text(len(recomputed), BUDGET / MIB + 2, said, ha="right", color="0.3", size=9)
    memory.set(
        xlabel="operations of the step, forward and backward",
        ylabel="MiB above the start of the step",
        title=f"A step of {LAYERS} layers, {len(Training().x):,} digits",
    )
    memory.set_ylim(0, result.plain.max() / MIB * 1.15)
    memory.set_xlim(0)
    first = result.losses[: len(result.plain_losses)]
    same = "equal to the bit" if first == result.plain_losses else "NOT the same"
    losses.plot(np.arange(len(result.losses)), result.losses, "-", color=blue)
    losses.plot(
        np.arange(len(result.plain_losses)), result.plain_losses, "o", mfc="none", color=orange,
        label=f"plain, without the limit: {same}",
    )  # fmt: skip
    said = (
        f"after {len(result.losses)} steps {result.accuracy:.0%}\nof the digits held out are read"
    )
    losses.text(0.98, 0.68, said, transform=losses.transAxes, ha="right", size=9)
    losses.set(xlabel="step", ylabel="training loss", title="Learning within the budget")
    losses.xaxis.get_major_locator().set_params(integer=True)
    losses.set_ylim(0)
    losses.legend(frameon=False, fontsize=9)
    for axes in (memory, losses):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_size(11)
    picture = folder / "does-not-fit.png"
    figure.savefig(picture, dpi=150)
    return picture


def main(folder: Path) -> Path:
    """Train, write the image into `folder`; return its path."""
    result = learn()
    return draw(result, folder)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        print(json.dumps(train(*json.loads(sys.argv[2]))))
    else:
        target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
        print(main(target))
