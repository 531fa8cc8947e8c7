"""The loss of two networks around what they have learned: with and without shortcuts.

Both networks have ten hidden layers and learn the same digits. The plane through their weights is
spanned by two random directions, scaled filter by filter to the norms of the weights, so that the
two pictures have one scale. Every point of the grid is the whole network with other weights:
`functional_call`, by `vmap` a row of points at a time.

Source: Li, Xu, Taylor, Studer and Goldstein 2018, arXiv 1712.09913, section 4.

Run it with ``python gallery/loss_landscape.py``: it writes loss-landscape.png beside this file. It
needs the extra ``lab``, and some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import optlab as ol
from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, as_png
from optlab.viz.style import theme

DEPTH, WIDTH, STEPS, RATE, POINTS, EXTENT = 10, 24, 300, 3e-3, 31, 1.0


class Network(ol.nn.Layer):
    """Ten hidden layers, each of which may be added to what goes into it."""

    def __init__(self, shortcuts: bool) -> None:
        super().__init__()
        self.shortcuts = shortcuts
        self.first = ol.nn.Linear(64, WIDTH)
        self.hidden = [ol.nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)]
        self.last = ol.nn.Linear(WIDTH, 10)

    def forward(self, x: Any) -> Any:
        """Return a score for each of the ten digits."""
        x = np.tanh(self.first(x))
        for layer in self.hidden:
            x = np.tanh(layer(x)) + x if self.shortcuts else np.tanh(layer(x))
        return self.last(x)


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return 300 digits as rows of pixels, and their labels."""
    digits = load_digits()
    return (digits.data[:300] / 16 - 0.3).astype("float32"), digits.target[:300]


def train(model: Network, x: np.ndarray, y: np.ndarray, steps: int) -> None:
    """Train with all digits in every step."""
    optimizer = ol.optimizer.Adam(RATE, parameters=model.parameters())
    for _ in range(steps):
        ol.nn.functional.cross_entropy(model(ol.to_tensor(x)), ol.to_tensor(y)).backward()
        optimizer.step()
        optimizer.clear_grad()


def direction(weights: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Return a random direction whose columns are as long as those of the weights."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, w in weights.items():
        d = rng.standard_normal(w.shape)
        length = np.linalg.norm(w, axis=0) / np.linalg.norm(d, axis=0)
        found[name] = (d * length if w.ndim > 1 else 0 * d).astype("float32")
    return found


def plane(model: Network, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the loss on a grid around the weights of the network."""
    weights = {name: p.numpy() for name, p in model.named_parameters()}
    a, b = direction(weights, 0), direction(weights, 1)
    ticks = np.linspace(-EXTENT, EXTENT, POINTS, dtype="float32")

    def loss(s: Any, t: Any) -> Any:
        moved = {name: w + s * a[name] + t * b[name] for name, w in weights.items()}
        return ol.nn.functional.cross_entropy(ol.nn.functional_call(model, moved, x), y)

    row = ol.vmap(loss, in_axes=(0, None))
    return np.stack([np.asarray(row(ticks, t)) for t in ticks])


def study(steps: int = STEPS) -> dict[str, np.ndarray]:
    """Train both networks, and return the loss around each of them."""
    x, y = data()
    found = {}
    for name, shortcuts in (("without shortcuts", False), ("with shortcuts", True)):
        ol.seed(0)
        model = Network(shortcuts)
        train(model, x, y, steps)
        found[name] = plane(model, x, y)
    return found


def draw(found: dict[str, np.ndarray]) -> Figure:
    """Plot the two landscapes with the same levels."""
    figure = Figure(figsize=(960 / DOTS_PER_INCH, 450 / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)
    panels = figure.subplots(1, 2)
    figure.subplots_adjust(0.06, 0.1, 0.98, 0.9, wspace=0.14)
    ticks = np.linspace(-EXTENT, EXTENT, POINTS)
    lowest = max(min(float(z.min()) for z in found.values()), 1e-4)
    levels = np.geomspace(lowest, max(float(z.max()) for z in found.values()), 18)
    for panel, (name, z) in zip(panels, found.items(), strict=True):
        panel.contourf(ticks, ticks, z, levels, colors=theme.surface_colors(17), extend="min")
        panel.contour(ticks, ticks, z, levels, colors=theme.CONTOUR, linewidths=0.6)
        panel.plot(0, 0, "o", color=theme.INK, markersize=5)
        panel.set_aspect("equal")
        panel.set_xticks([-1, 0, 1])
        panel.set_yticks([-1, 0, 1])
        panel.set_title(
            f"{DEPTH} layers {name}: {z[POINTS // 2, POINTS // 2]:.1g} in the middle",
            fontsize=10,
        )
    figure.supxlabel("along two random directions, scaled to the weights", fontsize=9)
    return figure


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "loss-landscape.png"
    picture.write_bytes(as_png(draw(study()), 2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
