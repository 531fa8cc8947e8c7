"""Names of layers in a ledger: in a model, in a loop over several, and during backward."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import optlab as ol


def layer_names(step):
    """Return the layers of a ledger, in the order of their first entries."""
    return list(dict.fromkeys(name for name in ol.memory.report(step).layer if name))


@pytest.mark.parametrize("recomputed", [False, True])
def test_blocks_in_a_plain_loop_are_told_apart(recomputed):
    nn = ol.nn
    blocks = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(2)]
    head, loss = nn.Linear(4, 2), nn.MSELoss()

    def step():
        h = ol.ones([3, 4])
        for block in blocks:
            h = ol.recompute(block, h) if recomputed else block(h)
        loss(head(h), ol.zeros([3, 2])).backward()

    assert layer_names(step) == [
        "Sequential 0, 0: Linear", "Sequential 0, 1: Tanh",
        "Sequential 1, 0: Linear", "Sequential 1, 1: Tanh", "Linear", "MSELoss",
    ]  # fmt: skip
    trace = ol.memory.report(step)
    layers = {name for one in trace.by_operation(3) for name in one.layers}
    assert layers
    assert layers <= set(trace.layer)


def test_single_layers_in_a_plain_loop_are_numbered_as_they_come():
    layers = [ol.nn.Linear(4, 4) for _ in range(3)]

    def step():
        h = ol.ones([3, 4])
        for layer in (*layers, layers[0]):
            h = np.tanh(layer(h))
        np.mean(h).backward()

    assert layer_names(step) == ["Linear 0", "Linear 1", "Linear 2"]


def test_a_part_that_backward_runs_again_keeps_its_place_in_the_model():
    class Model(ol.nn.Layer):
        def __init__(self):
            super().__init__()
            self.block = ol.nn.Sequential(ol.nn.Linear(4, 4), ol.nn.Tanh())
            self.hidden = (ol.nn.Linear(4, 4), ol.nn.Linear(4, 4))

        def forward(self, x):
            return self.hidden[1](self.hidden[0](ol.recompute(self.block, x)))

    model = Model()
    names = layer_names(lambda: model(ol.ones([3, 4])).mean().backward())
    assert names[:2] == ["block.0: Linear", "block.1: Tanh"]
    assert len(names) == len(set(names)) == 5  # the two hidden ones, and Model for `recompute`


def test_a_trace_does_not_keep_the_layers():
    layers = [ol.nn.Linear(4, 4)]
    trace = ol.memory.report(lambda: layers[0](ol.ones([3, 4])))
    gone = weakref.ref(layers.pop())
    gc.collect()
    assert gone() is None
    assert trace.layer[1] == "Linear"


def test_a_layer_that_is_let_go_inside_is_gone():
    with ol.memory.ledger() as trace:
        layers = [ol.nn.Sequential(ol.nn.Linear(4, 4)) for _ in range(2)]
        for layer in layers:
            layer(ol.ones([3, 4]))
        gone = [weakref.ref(one) for one in layers]
        del layers, layer
        gc.collect()
        assert [one() for one in gone] == [None, None]
    assert trace.layer[1:3] == ["Sequential 0, 0: Linear", "Sequential 1, 0: Linear"]
