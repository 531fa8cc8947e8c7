"""LeNet-5 learns to read handwritten digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol

EPOCHS = 15


def enlarged(images: np.ndarray, length: int) -> np.ndarray:
    """Give square images of another size, linear between the centres of their pixels."""
    n = images.shape[-1]
    at = np.clip((np.arange(length) + 0.5) * n / length - 0.5, 0, n - 1)
    left = np.minimum(at.astype(int), n - 2)
    weights = np.zeros((length, n))
    weights[np.arange(length), left] = 1 - (at - left)
    weights[np.arange(length), left + 1] += at - left
    return weights @ images @ weights.T


class LeNet(ol.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.features = ol.nn.Sequential(
            ol.nn.Conv2D(1, 6, 5, padding=2),
            ol.nn.ReLU(),
            ol.nn.MaxPool2D(2),
            ol.nn.Conv2D(6, 16, 5),
            ol.nn.ReLU(),
            ol.nn.MaxPool2D(2),
        )
        self.classifier = ol.nn.Sequential(
            ol.nn.Linear(400, 120),
            ol.nn.ReLU(),
            ol.nn.Linear(120, 84),
            ol.nn.ReLU(),
            ol.nn.Linear(84, 10),
        )

    def forward(self, x: Any) -> Any:
        x = self.features(x)
        return self.classifier(x.reshape([x.shape[0], -1]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_lenet_reads_985_of_1000_digits_that_it_has_not_seen(seed):
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    images = enlarged(digits.images, 28)[:, None].astype("float32")
    images = (images - images.mean()) / images.std()
    order = np.random.default_rng(seed).permutation(len(images))
    held_out, training = order[:360], order[360:]
    ol.seed(seed)
    model = LeNet()
    optimizer = ol.optimizer.Adam(2e-3, parameters=model.parameters())
    shuffled = np.random.default_rng(seed)
    for epoch in range(EPOCHS):
        optimizer.set_lr(2e-3 * (1 - epoch / EPOCHS))
        places = shuffled.permutation(training)
        for start in range(0, len(places), 32):
            batch = places[start : start + 32]
            x = ol.to_tensor(images[batch])
            loss = ol.nn.functional.cross_entropy(model(x), digits.target[batch])
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    with ol.no_grad():
        found = model(ol.to_tensor(images[held_out])).numpy().argmax(1)
    assert np.mean(found == digits.target[held_out]) >= 0.985
