"""Names of layers and parameters beside those of Paddle itself, where it is installed."""

from __future__ import annotations

import re

import pytest

import optlab as ol
from tests.nn.test_names import NAMES

paddle = pytest.importorskip("paddle")
pytestmark = pytest.mark.peers


def without_numbers(layer):
    return [re.sub(r"_\d+\.", "_N.", p.name) for p in layer.parameters() if p.trainable]


@pytest.mark.parametrize("make", [case[0] for case in NAMES])
def test_parameters_are_called_as_in_paddle(make, monkeypatch):
    own = without_numbers(make())
    monkeypatch.setitem(make.__globals__, "nn", paddle.nn)
    theirs = [name for name in without_numbers(make()) if not re.search(r"norm.*\.w_[12]$", name)]
    assert own == theirs  # the running mean and variance are parameters there, buffers here


COMMON = sorted(
    name
    for name, thing in vars(ol.nn).items()
    if isinstance(thing, type)
    and issubclass(thing, ol.nn.Layer)
    and isinstance(getattr(paddle.nn, name, None), type)
)


@pytest.mark.parametrize("name", COMMON)
def test_classes_are_called_as_in_paddle(name):
    bare = type(name, (ol.nn.Layer,), {})().full_name().rpartition("_")[0]
    theirs = type(name, (paddle.nn.Layer,), {})().full_name().rpartition("_")[0]
    assert bare == theirs
