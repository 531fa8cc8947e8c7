"""A learning rate that is learned: gradient descent by the rate, through thirty steps of Adam.

`functional_step` makes the training of a network a function of the rate and of beta1. Its gradient
goes through all thirty steps, and an outer Adam follows it: a run that was much too slow becomes
one of the best. Beside it is the loss at many rates, computed together by `vmap`: what the path
had to find, and did not see.

Run it with ``python gallery/hypergradient.py``: it writes hypergradient.png beside this file. It
needs the extra ``lab``, and some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import optlab as ol
from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, as_png
from optlab.viz.style import theme

STEPS, ROUNDS, START, OUTER_RATE = 30, 20, 3e-4, 0.3
FIRST, LAST = "#b84a00", "#005f9e"


class Training:
    """The training of a network on digits, as a function of rate and beta1."""

    def __init__(self) -> None:
        digits = load_digits()
        self.x, self.y = (digits.data[:100] / 16).astype("float32"), digits.target[:100]
        ol.seed(0)
        self.model = ol.nn.Sequential(ol.nn.Linear(64, 24), ol.nn.Tanh(), ol.nn.Linear(24, 10))
        self.start = {name: p.numpy() for name, p in self.model.named_parameters()}
        self.adam = ol.optimizer.Adam()

    def loss(self, weights: Any) -> Any:
        """Return the loss of the network with these weights."""
        scores = ol.nn.functional_call(self.model, weights, self.x)
        return ol.nn.functional.cross_entropy(scores, self.y)

    def curve(self, rate: Any, beta1: Any) -> list[Any]:
        """Return the loss after every step."""
        weights, state = self.start, self.adam.functional_init(self.start)
        losses = []
        for _ in range(STEPS):
            value, slope = ol.value_and_grad(self.loss)(weights)
            losses.append(value)
            weights, state = self.adam.functional_step(
                weights, slope, state, learning_rate=rate, beta1=beta1
            )
        return [*losses, self.loss(weights)]

    def final(self, settings: Any) -> Any:
        """Return the last loss, by the logarithm of the rate and the logit of beta1."""
        return self.curve(np.exp(settings["log_rate"]), 1 / (1 + np.exp(-settings["logit"])))[-1]


class Result(NamedTuple):
    """The settings tried and their losses; the first and last curve; and a scan of the rates."""

    rates: list[float]
    betas: list[float]
    losses: list[float]
    curves: list[list[float]]
    scanned: np.ndarray
    scan: np.ndarray


def learn(rounds: int = ROUNDS, points: int = 40) -> Result:
    """Learn rate and beta1, and compute the loss at many rates."""
    training = Training()
    outer = ol.optimizer.Adam(OUTER_RATE)
    settings: Any = {"log_rate": np.float64(np.log(START)), "logit": np.float64(np.log(9))}
    state = outer.functional_init(settings)
    rates, betas, losses = [], [], []
    for _ in range(rounds + 1):
        value, slope = ol.value_and_grad(training.final)(settings)
        rates.append(float(np.exp(settings["log_rate"])))
        betas.append(float(1 / (1 + np.exp(-settings["logit"]))))
        losses.append(float(value))
        settings, state = outer.functional_step(settings, slope, state)
    best = int(np.argmin(losses))
    curves = [
        [float(x) for x in training.curve(rates[at], betas[at])] for at in (0, best)
    ]  # fmt: skip
    scanned = np.geomspace(1e-4, 0.5, points)
    scan = np.asarray(ol.vmap(lambda rate: training.curve(rate, 0.9)[-1])(scanned))
    return Result(rates, betas, losses, curves, scanned, scan)


def draw(found: Result) -> Figure:
    """Plot the path of the rate over the loss, and the first and the last training."""
    figure = Figure(figsize=(1000 / DOTS_PER_INCH, 400 / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(0.06, 0.13, 0.98, 0.9, wspace=0.16)
    left.plot(
        found.scanned, found.scan, color=theme.QUIET, linewidth=1, label="all rates, beta1 0.9"
    )
    left.plot(found.rates, found.losses, ".-", color=LAST, label="the path of the rate and beta1")
    left.plot(found.rates[0], found.losses[0], "o", color=FIRST)
    left.set_xscale("log")
    left.set_xlabel("learning rate", fontsize=9)
    left.set_title(f"The loss after {STEPS} steps of Adam", fontsize=10)
    left.legend(frameon=False, fontsize=9)
    best = int(np.argmin(found.losses))
    for at, losses, color in ((0, found.curves[0], FIRST), (best, found.curves[1], LAST)):
        name = f"rate {found.rates[at]:.2g}, beta1 {found.betas[at]:.2f}"
        right.plot(losses, color=color, label=name)
    right.set_xlabel("step", fontsize=9)
    right.set_title("Training with the first settings, and with those learned", fontsize=10)
    right.legend(frameon=False, fontsize=9)
    return figure


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "hypergradient.png"
    picture.write_bytes(as_png(draw(learn()), 2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
