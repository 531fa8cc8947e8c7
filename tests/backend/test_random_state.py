"""Resuming the random state, also in another process."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import optlab as ol

PROGRAM = """
import json, sys
import numpy as np
import optlab as ol
ol.seed(5)
data = ol.io.TensorDataset([np.arange(7)])
loaders = [ol.io.DataLoader(data, batch_size=3, shuffle=True) for _ in range(2)]
def epoch():
    found = [batch[0].tolist() for loader in loaders for batch in loader]
    return found, ol.rand([2]).tolist()
"""


def run(program: str) -> list:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


def test_a_program_goes_on_in_another_process():
    unbroken = run("print(json.dumps([epoch() for _ in range(4)]))")
    state = run("_ = epoch(), epoch(); print(json.dumps(ol.get_rng_state()))")
    resumed = run(f"ol.set_rng_state({state!r}); print(json.dumps([epoch(), epoch()]))")
    assert resumed == unbroken[2:]


def test_the_state_goes_through_a_file(tmp_path):
    ol.seed(1)
    ol.rand([3])
    ol.save({"random": ol.get_rng_state()}, tmp_path / "state")
    expected = ol.rand([3]).numpy()
    ol.set_rng_state(ol.load(tmp_path / "state")["random"])
    np.testing.assert_array_equal(ol.rand([3]).numpy(), expected)


def test_dropout_goes_on():
    ol.seed(2)
    layer = ol.nn.Dropout(0.5)
    layer(ol.ones([8]))
    state = ol.get_rng_state()
    expected = layer(ol.ones([8])).numpy()
    ol.set_rng_state(state)
    np.testing.assert_array_equal(layer(ol.ones([8])).numpy(), expected)


@pytest.mark.parametrize(
    "state",
    [
        {},
        3,
        {"seed": 1},
        {"seed": 1, "draws": -1, "epochs": []},
        {"seed": 1, "draws": 0, "epochs": [-1]},
        {"seed": 1, "draws": 0, "epochs": [], "more": 1},
    ],
)
def test_what_is_no_state_is_refused_and_changes_nothing(state):
    ol.seed(3)
    before = ol.get_rng_state()
    with pytest.raises(ValueError, match="takes what get_rng_state gave"):
        ol.set_rng_state(state)
    assert ol.get_rng_state() == before


def test_inside_a_scope_there_is_nothing_to_keep():
    with ol.random_scope("a", seed=1), pytest.raises(RuntimeError, match="start anew each time"):
        ol.get_rng_state()
