"""LeNet-5 classifies handwritten digits: its first filters, and the digits that it confuses.

The 1,797 digits of scikit-learn, of 8 x 8 pixels, are resized to 28 x 28, and a fifth of them is
held out. The network of LeCun et al. (1998), with ReLU and max pooling in place of tanh and
averages, is trained on the others for six epochs. It is then saved to a file and loaded into a
copy; the picture shows the predictions of the copy for the digits held out.

Run it with ``python gallery/lenet_digits.py``: it prints the layers and writes lenet-digits.png
beside this file. It needs the extra ``lab``, and half a minute.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import optlab as ol
from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, as_png
from optlab.viz.style import theme

EPOCHS, RATE, HELD_OUT = 6, 2e-3, 360
WIDTH, HEIGHT = 1120, 500


class LeNet(ol.nn.Layer):
    """Two convolutions with pooling, then three linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = ol.nn.Conv2D(1, 6, 5, padding=2)
        self.second = ol.nn.Conv2D(6, 16, 5)
        self.pool = ol.nn.MaxPool2D(2)
        self.reader = ol.nn.Sequential(
            ol.nn.Flatten(),
            ol.nn.Linear(400, 120),
            ol.nn.ReLU(),
            ol.nn.Linear(120, 84),
            ol.nn.ReLU(),
            ol.nn.Linear(84, 10),
        )

    def forward(self, x: Any) -> Any:
        """Return a score for each of the ten digits."""
        x = self.pool(ol.nn.functional.relu(self.first(x)))
        x = self.pool(ol.nn.functional.relu(self.second(x)))
        return self.reader(x)


class Reading(NamedTuple):
    """The digits held out, their labels, the predictions, and the network."""

    images: np.ndarray
    labels: np.ndarray
    found: np.ndarray
    model: LeNet

    @property
    def accuracy(self) -> float:
        """The share of correct predictions."""
        return float(np.mean(self.found == self.labels))


def data() -> tuple[ol.io.TensorDataset, ol.io.TensorDataset]:
    """Return the training digits and the digits held out."""
    digits = load_digits()
    images = ol.to_tensor(digits.images[:, None].astype("float32"))
    images = ol.nn.functional.interpolate(images, size=28, mode="bilinear").numpy()
    images = (images - images.mean()) / images.std()
    order = np.random.default_rng(0).permutation(len(images))
    held_out, learned = order[:HELD_OUT], order[HELD_OUT:]
    return (
        ol.io.TensorDataset([images[learned], digits.target[learned]]),
        ol.io.TensorDataset([images[held_out], digits.target[held_out]]),
    )


def train(examples: ol.io.TensorDataset, epochs: int) -> LeNet:
    """Train a network; the learning rate decays to 0 in equal steps, one per epoch."""
    ol.seed(0)
    model = LeNet()
    loader = ol.io.DataLoader(examples, batch_size=32, shuffle=True, drop_last=True)
    optimizer = ol.optimizer.Adam(RATE, parameters=model.parameters())
    criterion = ol.nn.CrossEntropyLoss()
    for epoch in range(epochs):
        optimizer.set_lr(RATE * (1 - epoch / epochs))
        for images, labels in loader:
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    return model


def read(epochs: int = EPOCHS) -> Reading:
    """Train a network, save it, and classify the digits held out with a copy made from the file."""
    learned, held_out = data()
    model = train(learned, epochs)
    print(model.summary([1, 1, 28, 28]))
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "lenet.npz"
        ol.save(model.state_dict(), file)
        copy = LeNet()
        copy.set_state_dict(ol.load(file))
    copy.eval()
    images, labels, found = [], [], []
    with ol.no_grad():
        for some, right in ol.io.DataLoader(held_out, batch_size=60):
            images.append(some.numpy())
            labels.append(right.numpy())
            found.append(copy(some).numpy().argmax(1))
    return Reading(*(np.concatenate(parts) for parts in (images, labels, found)), copy)


def draw(reading: Reading) -> Figure:
    """Plot the filters, their feature maps for one digit, the confusion matrix, and mistakes."""
    figure = Figure(figsize=(WIDTH / DOTS_PER_INCH, HEIGHT / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)
    left, right = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    upper, lower = left.subfigures(2, 1, height_ratios=[1.75, 1])
    for part in (left, right, upper, lower):
        part.set_facecolor(theme.PAPER)

    weights = reading.model.first.weight.numpy()[:, 0]
    digit = reading.images[:1]
    with ol.no_grad():
        maps = np.maximum(reading.model.first(ol.to_tensor(digit)).numpy()[0], 0)
    upper.suptitle("The six filters of the first layer, and what they see in a digit", fontsize=10)
    panels = upper.subplots(2, 6)
    upper.subplots_adjust(0.02, 0.02, 0.98, 0.88, wspace=0.12, hspace=0.12)
    most = np.abs(weights).max()
    for k in range(6):
        panels[0, k].imshow(weights[k], cmap="RdBu", vmin=-most, vmax=most)
        panels[1, k].imshow(maps[k], cmap="gray_r")

    wrong = np.flatnonzero(reading.found != reading.labels)[:6]
    lower.suptitle("Misread: what it is, and what was read", fontsize=10)
    mistakes = lower.subplots(1, 6)
    lower.subplots_adjust(0.02, 0.06, 0.98, 0.68, wspace=0.12)
    for k, panel in enumerate(mistakes):
        if k < len(wrong):
            at = wrong[k]
            panel.imshow(reading.images[at, 0], cmap="gray_r")
            panel.set_title(f"{reading.labels[at]}, read {reading.found[at]}", fontsize=9)
    for panel in [*panels.flat, *mistakes]:
        panel.set_axis_off()

    counts = np.zeros((10, 10), int)
    np.add.at(counts, (reading.labels, reading.found), 1)
    axes = right.subplots()
    right.subplots_adjust(0.1, 0.1, 0.98, 0.92)
    axes.imshow(np.sqrt(counts), cmap="Blues", vmax=1.6 * np.sqrt(counts.max()))
    for i, j in np.argwhere(counts):
        axes.text(j, i, counts[i, j], ha="center", va="center", fontsize=9)
    axes.set_xticks(range(10))
    axes.set_yticks(range(10))
    axes.tick_params(length=0, labelsize=9)
    axes.set_xlabel("read", fontsize=9)
    axes.set_ylabel("is", fontsize=9)
    axes.set_title(
        f"{len(reading.labels)} digits held out: {100 * reading.accuracy:.1f} % read rightly",
        fontsize=10,
    )
    return figure


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "lenet-digits.png"
    picture.write_bytes(as_png(draw(read()), 2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
