"""Bytes saved for the backward pass, by the ledger and by `ol.memory.predict` of a chain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.schedules import plain

nn = ol.nn


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def perceptron() -> tuple[list[Any], Any]:
    blocks = [nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 64)) for _ in range(7)]
    return blocks, ol.to_tensor(numbers(128, 64))


def convolutions() -> tuple[list[Any], Any]:
    layers = [
        nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(8, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(),
        nn.Linear(512, 10),
    ]  # fmt: skip
    return layers, ol.to_tensor(numbers(16, 3, 16, 16))


def elementwise() -> tuple[list[Any], Any]:
    return [nn.Tanh() for _ in range(9)], ol.to_tensor(numbers(128, 64), requires_grad=True)


def kept(trace: Any) -> np.ndarray:
    roles = trace.by_role()
    return roles["saved"] + roles["recomputed"]


@pytest.mark.parametrize("chain", [perceptron, convolutions, elementwise])
@pytest.mark.parametrize(
    "how",
    [
        {"segments": 1},
        {"segments": 2},
        {"segments": 3},
        {"segments": "sqrt"},
        {"segments": "revolve"},
        {"segments": "revolve", "snapshots": 1},
        {"segments": "revolve", "snapshots": 2},
        {"segments": "revolve", "snapshots": 4},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_what_is_kept_at_most_is_what_was_predicted_to_the_byte(chain, how):
    ol.seed(0)
    layers, x = chain()
    predicted = ol.memory.predict(layers, x, **how).peak

    def step():
        np.mean(ol.recompute_sequential(layers, x, **how)).backward()

    step()
    trace = ol.memory.report(step)
    assert kept(trace).max() == predicted
    assert kept(trace)[-1] == 0


def test_an_input_that_backward_stores_again_is_recomputed_and_one_of_forward_is_saved():
    layers, x = elementwise()
    size = x.data.nbytes

    def step():
        np.mean(ol.recompute_sequential(layers, x, segments="revolve", snapshots=2)).backward()

    roles = ol.memory.report(step).by_role()
    in_backward = len(layers) + 2  # the start, the layers, the mean
    # One stored input (that of the chain is the caller's), and the saved values of the last layer.
    assert roles["saved"][in_backward] == 2 * size
    assert roles["recomputed"][:in_backward].max() == 0
    # Once the stored input of forward is used up, another stored input and replayed values follow.
    assert roles["recomputed"].max() == 2 * size
    assert roles["saved"][roles["recomputed"].argmax()] == 0


def test_a_second_walk_through_a_chain_stores_again_what_the_first_has_used():
    layers, x = convolutions()
    predicted = ol.memory.predict(layers, x, segments="revolve").peak
    loss = np.mean(ol.recompute_sequential(layers, x, segments="revolve"))
    loss.backward(retain_graph=True)
    with ol.memory.ledger() as trace:
        loss.backward()
    assert kept(trace).max() == predicted
    assert trace.by_role()["saved"].max() == 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_the_arguments_of_a_function_that_a_layer_recomputes_are_saved_and_predicted(reentrant):
    ol.seed(0)
    part = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64))
    layers = [
        nn.Tanh(),
        lambda x: np.exp(ol.recompute(part, np.sin(x) + 1, use_reentrant=reentrant)),
        nn.Linear(64, 8),
    ]
    x = ol.to_tensor(numbers(128, 64), requires_grad=True)
    schedule = plain(3)
    with ol.memory.ledger() as trace:
        loss = ol.recompute_sequential(layers, x, segments=schedule)
    size = x.data.nbytes
    # The outputs of tanh (which the sine reads too), of the sum (the argument), and of exp.
    assert kept(trace).max() == 3 * size
    predicted = ol.memory.predict(layers, x, segments=schedule)
    assert predicted.peak == 3 * size
    assert predicted.inner_operations == 3
    loss.sum().backward()


class OwnMean(nn.Layer):
    """A layer that updates a running mean, in place or by a new Tensor."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place
        self.register_buffer("mean", ol.zeros([64]))

    def forward(self, x: Any) -> Any:
        with ol.no_grad():
            new = 0.9 * self.mean + 0.1 * x.mean(axis=0)
            if self.in_place:
                self.mean[:] = new
            else:
                self.mean = new
        return np.tanh(x - self.mean)


@pytest.mark.parametrize("wrap", [lambda layer: layer, lambda layer: lambda x: layer(x)])
@pytest.mark.parametrize(
    "layer",
    [
        OwnMean(in_place=True),
        OwnMean(in_place=False),
        nn.utils.spectral_norm(nn.Linear(64, 64)),
        nn.BatchNorm1D(64),
    ],
    ids=["in place", "replaced", "spectral norm", "batch norm"],
)
def test_nothing_remains_of_a_prediction(layer, wrap):
    import random

    x = ol.to_tensor(numbers(128, 64), requires_grad=True)

    def moody(y):
        return y * random.random() * np.random.random()  # noqa: NPY002

    def everything():
        buffers = [(id(b), b.numpy()) for b in layer.buffers()]
        return buffers, random.getstate(), np.random.get_state()[1:]  # noqa: NPY002

    before = everything()
    assert before[0]
    assert ol.memory.predict([wrap(layer), moody], x, segments=2).operations[0] > 0
    np.testing.assert_equal(everything(), before)
    assert not hasattr(ol.nn.Layer.__call__, "__wrapped__")


def test_a_prediction_on_a_line_of_its_own_is_a_sentence():
    layers, x = elementwise()
    predicted = ol.memory.predict(layers, x, segments=3)
    assert repr(predicted) == f"<Prediction {predicted}>"
    assert len(repr(predicted)) < 150
    page = predicted._repr_html_()
    assert f"<div>{predicted}</div>" in page
    assert page.count("<tr>") == 1 + len(layers)
