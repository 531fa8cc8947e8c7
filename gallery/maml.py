"""MAML: weights from which one step of gradient descent fits a new task.

Tasks are sine waves of random amplitude and phase, of which ten points are seen. The meta-gradient
goes through the step of descent on each task: `grad` of a loss at weights that `grad` has moved,
`vmap` over the tasks, the network called with given weights by `functional_call`. Beside it stands
the same network, trained on the same waves without that step: it learns their mean.

Source: Finn, Abbeel and Levine 2017, arXiv 1703.03400, section 5.1.

Run it with ``python gallery/maml.py``: it writes maml.png beside this file. It needs the extra
``lab``, and some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import optlab as ol
from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, as_png
from optlab.viz.style import theme

POINTS, TASKS, INNER_RATE, OUTER_RATE = 10, 25, 0.01, 2e-3
ROUNDS = 800
COLORS = {"MAML": "#005f9e", "trained on all waves": "#b84a00"}

Weights = dict[str, Any]


def network() -> ol.nn.Layer:
    """Return the network: two hidden layers of 40."""
    ol.seed(0)
    return ol.nn.Sequential(
        ol.nn.Linear(1, 40), ol.nn.ReLU(), ol.nn.Linear(40, 40), ol.nn.ReLU(), ol.nn.Linear(40, 1)
    )


def waves(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and values of tasks, each with points to learn from and points to judge by."""
    amplitude = rng.uniform(0.1, 5, (count, 1, 1))
    phase = rng.uniform(0, np.pi, (count, 1, 1))
    x = rng.uniform(-5, 5, (count, 2 * POINTS, 1))
    return x.astype("float32"), (amplitude * np.sin(x - phase)).astype("float32")


class Learner:
    """The network as a function of its weights."""

    def __init__(self) -> None:
        self.model = network()
        self.start = {name: p.numpy() for name, p in self.model.named_parameters()}

    def loss(self, weights: Weights, x: Any, y: Any) -> Any:
        """Return the mean squared error."""
        return np.mean((ol.nn.functional_call(self.model, weights, x) - y) ** 2)

    def adapted(self, weights: Weights, x: Any, y: Any, steps: int = 1) -> Weights:
        """Return the weights after some steps of gradient descent on a task."""
        for _ in range(steps):
            slope = ol.grad(self.loss)(weights, x, y)
            weights = {name: w - INNER_RATE * slope[name] for name, w in weights.items()}
        return weights

    def meta_loss(self, weights: Weights, x: Any, y: Any) -> Any:
        """Return the loss on the other points of a task, after a step on the first ones."""
        moved = self.adapted(weights, x[:POINTS], y[:POINTS])
        return self.loss(moved, x[POINTS:], y[POINTS:])

    def train(self, loss: Any, rounds: int) -> Weights:
        """Minimize the mean of a loss over the tasks."""
        rng = np.random.default_rng(1)
        adam = ol.optimizer.Adam(OUTER_RATE)
        weights, state = self.start, adam.functional_init(self.start)
        slope = ol.grad(
            lambda weights, x, y: np.mean(ol.vmap(loss, in_axes=(None, 0, 0))(weights, x, y))
        )
        for _ in range(rounds):
            gradient = slope(weights, *waves(rng, TASKS))
            weights, state = adam.functional_step(weights, gradient, state)
        return weights


def learn(rounds: int = ROUNDS) -> tuple[Learner, dict[str, Weights]]:
    """Train by MAML, and on all waves together."""
    learner = Learner()
    return learner, {
        "MAML": learner.train(learner.meta_loss, rounds),
        "trained on all waves": learner.train(learner.loss, rounds),
    }


def draw(learner: Learner, found: dict[str, Weights]) -> Figure:
    """Plot a new wave before and after steps on it, and the loss on many new waves."""
    figure = Figure(figsize=(1060 / DOTS_PER_INCH, 380 / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)
    panels = figure.subplots(1, 3)
    figure.subplots_adjust(0.05, 0.13, 0.98, 0.88, wspace=0.22)
    line = np.linspace(-5, 5, 200, dtype="float32")[:, None]
    rng = np.random.default_rng(7)
    x = rng.uniform(-5, 5, (POINTS, 1)).astype("float32")
    for panel, (name, weights) in zip(panels, found.items(), strict=False):
        panel.plot(line, 3.5 * np.sin(line - 1), color=theme.QUIET, linewidth=1, label="the wave")
        panel.plot(x, 3.5 * np.sin(x - 1), "o", color=theme.INK, markersize=4)
        for steps, dash in ((0, ":"), (1, "--"), (5, "-")):
            moved = learner.adapted(weights, x, 3.5 * np.sin(x - 1), steps)
            y = ol.nn.functional_call(learner.model, moved, line)
            label = f"{steps} step{'s' * (steps != 1)}"
            panel.plot(line, np.asarray(y), dash, color=COLORS[name], label=label)
        panel.set_title(f"A new wave: {name}", fontsize=10)
        panel.set_ylim(-5.5, 6.5)
        panel.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")
    x, y = waves(np.random.default_rng(8), 200)
    counts = range(6)
    for name, weights in found.items():

        def after(x: Any, y: Any, steps: int, weights: Weights = weights) -> Any:
            moved = learner.adapted(weights, x[:POINTS], y[:POINTS], steps)
            return learner.loss(moved, x[POINTS:], y[POINTS:])

        losses = [np.median(ol.vmap(lambda x, y, n=n: after(x, y, n))(x, y)) for n in counts]
        panels[2].plot(counts, losses, "o-", color=COLORS[name], markersize=4, label=name)
    panels[2].set_title("200 new waves: median error elsewhere", fontsize=10)
    panels[2].set_xlabel("steps of gradient descent on ten points", fontsize=9)
    panels[2].set_ylim(bottom=0)
    panels[2].legend(frameon=False, fontsize=9)
    return figure


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "maml.png"
    picture.write_bytes(as_png(draw(*learn()), 2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
