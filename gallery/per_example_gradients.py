"""The gradient of every example separately finds the labels that are wrong.

A network with a convolution learns 1,200 of the digits of scikit-learn, of whose labels 60 were
replaced by others. `vmap` of `grad` of `functional_call` gives the gradient of the loss of each
example by all weights of the network; its norm tells how hard an example pulls. The examples that
pull hardest are those with a wrong label.

Run it with ``python gallery/per_example_gradients.py``: it writes per-example-gradients.png beside
this file. It needs the extra ``lab``.
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

EXAMPLES, WRONG, EPOCHS, RATE = 1200, 60, 12, 3e-3
RIGHT_COLOR, WRONG_COLOR = "#005f9e", "#b84a00"


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return images, the labels given, and which of these are wrong."""
    digits = load_digits()
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(digits.images))[:EXAMPLES]
    images = digits.images[chosen, None].astype("float32") / 16
    labels = digits.target[chosen].copy()
    wrong = np.zeros(EXAMPLES, bool)
    wrong[:WRONG] = True
    labels[wrong] = (labels[wrong] + rng.integers(1, 10, WRONG)) % 10
    return images, labels, wrong


def network() -> ol.nn.Layer:
    """Return an untrained network."""
    ol.seed(0)
    return ol.nn.Sequential(
        ol.nn.Conv2D(1, 8, 3),
        ol.nn.ReLU(),
        ol.nn.MaxPool2D(2),
        ol.nn.Flatten(),
        ol.nn.Linear(72, 10),
    )


def train(model: ol.nn.Layer, images: np.ndarray, labels: np.ndarray) -> None:
    """Train the network on all examples, as if their labels were right."""
    loader = ol.io.DataLoader(
        ol.io.TensorDataset([images, labels]), batch_size=50, shuffle=True
    )  # fmt: skip
    optimizer = ol.optimizer.Adam(RATE, parameters=model.parameters())
    criterion = ol.nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for x, y in loader:
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer.clear_grad()


def pulls(model: ol.nn.Layer, images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the norm of the gradient of each example."""
    weights = {name: p.numpy() for name, p in model.named_parameters()}

    def loss(weights: Any, x: Any, y: Any) -> Any:
        scores = ol.nn.functional_call(model, weights, x[None])
        return ol.nn.functional.cross_entropy(scores, y[None])

    each = ol.vmap(ol.grad(loss), in_axes=(None, 0, 0))(weights, images, labels)
    squares = [np.sum(g.reshape(len(images), -1) ** 2, axis=1) for g in each.values()]
    return np.sqrt(sum(squares))


def draw(images: np.ndarray, labels: np.ndarray, wrong: np.ndarray, norms: np.ndarray) -> Figure:
    """Plot the norms of right and wrong labels, and the examples that pull hardest."""
    figure = Figure(figsize=(1000 / DOTS_PER_INCH, 420 / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)
    left, right = figure.subfigures(1, 2, width_ratios=[1.1, 1])
    axes = left.subplots()
    left.subplots_adjust(0.12, 0.13, 0.97, 0.9)
    bins = np.geomspace(max(norms.min(), 1e-4), norms.max(), 41)
    for mask, color, name in (
        (~wrong, RIGHT_COLOR, "right label"), (wrong, WRONG_COLOR, "wrong label"),
    ):  # fmt: skip
        axes.hist(norms[mask], bins, color=color, alpha=0.75, label=f"{mask.sum()} with a {name}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("norm of the gradient of one example", fontsize=9)
    axes.set_ylabel("examples", fontsize=9)
    axes.legend(frameon=False, fontsize=9)
    order = np.argsort(-norms)
    found = int(wrong[order[:WRONG]].sum())
    axes.set_title(
        f"Of the {WRONG} that pull hardest, {found} have a wrong label", fontsize=10
    )  # fmt: skip
    right.suptitle("The 15 that pull hardest, and the labels given to them", fontsize=10)
    panels = right.subplots(3, 5)
    right.subplots_adjust(0.02, 0.02, 0.98, 0.84, hspace=0.35)
    for at, panel in zip(order, panels.flat, strict=False):
        panel.imshow(images[at, 0], cmap="gray_r")
        color = WRONG_COLOR if wrong[at] else RIGHT_COLOR
        panel.set_title(str(labels[at]), fontsize=10, color=color)
        panel.set_axis_off()
    return figure


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    images, labels, wrong = data()
    model = network()
    train(model, images, labels)
    picture = folder / "per-example-gradients.png"
    norms = pulls(model, images, labels)
    picture.write_bytes(as_png(draw(images, labels, wrong, norms), 2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
