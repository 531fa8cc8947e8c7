"""LeNet-5, as in the gallery, learns to read handwritten digits."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol

EPOCHS = 15


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_lenet_reads_985_of_1000_digits_that_it_has_not_seen(seed):
    pytest.importorskip("sklearn.datasets")
    pytest.importorskip("matplotlib")  # imported by the gallery's plots
    from gallery.lenet_digits import LeNet

    digits = ol.lab.data.digits(28)
    images = np.concatenate([digits.train_x, digits.test_x])
    labels = np.concatenate([digits.train_y, digits.test_y])
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
            loss = ol.nn.functional.cross_entropy(model(x), labels[batch])
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    with ol.no_grad():
        found = model(ol.to_tensor(images[held_out])).numpy().argmax(1)
    assert np.mean(found == labels[held_out]) >= 0.985
