"""State dicts of wrappers: bitwise resuming at any step, and refusals of unsuitable states."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optlab as ol
from tests.optimizer.helpers import EACH, give
from tests.optimizer.test_state import assert_same, model, train, values

O = ol.optimizer  # noqa: E741

#: All ways to wrap an optimizer.
WRAP = {
    "LookAhead": lambda inner: O.LookAhead(inner, 0.3, 3),
    "LookAhead twice": lambda inner: O.LookAhead(O.LookAhead(inner, 0.5, 2), 0.8, 2),
    "EMA": lambda inner: O.ExponentialMovingAverage.around(inner, 0.7),
    "ModelAverage": lambda inner: O.ModelAverage.around(
        inner, 0.5, min_average_window=2, max_average_window=4
    ),
    "EMA around LookAhead": lambda inner: O.ExponentialMovingAverage.around(
        O.LookAhead(inner, 0.3, 3), 0.7
    ),
    "LookAhead around ModelAverage": lambda inner: O.LookAhead(
        O.ModelAverage.around(inner, 0.5), 0.3, 3
    ),
}


def averaged(network, optimizer):
    """Return the averaged weights that `apply` swaps in, if there are averages."""
    if not hasattr(optimizer, "apply"):
        return {}
    with optimizer.apply():
        return values(network)


@given(st.sampled_from(list(WRAP)), st.sampled_from(list(EACH)), st.integers(0, 7), st.booleans())
def test_a_resumed_run_equals_an_unbroken_one(wrap, name, at, reverse):
    def make(network, backwards=False):
        parameters = network.parameters()
        return WRAP[wrap](EACH[name](parameters=parameters[::-1] if backwards else parameters))

    unbroken = model()
    whole = make(unbroken)
    train(unbroken, whole, 8)
    first = model()
    optimizer = make(first)
    train(first, optimizer, at)
    second = model()
    train(second, make(second), 3)  # other weights than the initial ones
    resumed = make(second, reverse)
    second.set_state_dict(first.state_dict())
    resumed.set_state_dict(optimizer.state_dict())
    train(second, resumed, 8 - at, start=at)
    assert_same(values(second), values(unbroken))
    assert_same(averaged(second, resumed), averaged(unbroken, whole))


def test_through_a_file_in_a_new_process(tmp_path):
    script = """
import sys, numpy as np, optlab as ol
sys.path.insert(0, sys.argv[1])
from tests.optimizer.test_state import model, train
from tests.optimizer.test_wrapper_states import make_one, averaged
network = model()
optimizer = make_one(network.parameters()[::-1])
state = ol.load(sys.argv[2])
network.set_state_dict(state["model"])
optimizer.set_state_dict(state["optimizer"])
train(network, optimizer, 4, start=4)
np.savez(sys.argv[3], **averaged(network, optimizer))
"""
    network = model()
    optimizer = make_one(network.parameters())
    train(network, optimizer, 4)
    saved, out = tmp_path / "state", tmp_path / "out.npz"
    ol.save({"model": network.state_dict(), "optimizer": optimizer.state_dict()}, saved)
    subprocess.run([sys.executable, "-c", script, ".", saved, out], check=True)
    train(network, optimizer, 4, start=4)
    with np.load(out) as found:
        assert_same(dict(found), averaged(network, optimizer))


def make_one(parameters):
    schedule = ol.optimizer.lr.CosineAnnealingDecay(0.1, 10)
    inner = ol.optimizer.Adam(schedule, parameters=parameters)
    return WRAP["EMA around LookAhead"](inner)


def test_an_average_by_itself():
    w, v = (ol.Parameter([1.0, 2.0], name="w") for _ in range(2))
    for make in (
        lambda p: O.ExponentialMovingAverage(0.9, parameters=[p]),
        lambda p: O.ModelAverage(0.15, [p]),
    ):
        one, other = make(w), make(v)
        one.update() if hasattr(one, "update") else one.step()
        other.set_state_dict(one.state_dict())
        np.testing.assert_array_equal(other.averages()[0], one.averages()[0])


def test_a_state_stays_as_it_was():
    w = ol.Parameter([1.0], name="w")
    optimizer = O.LookAhead(O.SGD(0.25, parameters=[w]), k=1)
    give(w, [1.0])
    optimizer.step()
    state = optimizer.state_dict()
    optimizer.step()
    assert state["w.slow"].item() == 0.875
    assert state["w.slow_steps"] == 1
    assert state["inner_optimizer"]["w.t"] == 1


@pytest.mark.parametrize("wrap", WRAP)
def test_what_does_not_fit_is_listed_and_nothing_changes(wrap):
    network = model()
    optimizer = WRAP[wrap](ol.optimizer.Adam(0.1, parameters=network.parameters()))
    train(network, optimizer, 2)
    state = optimizer.state_dict()
    label = next(key for key in state if key != "inner_optimizer" and key.startswith("0.weight"))
    bad = dict(state) | {"intruder": 1}
    if hasattr(state[label], "dtype"):
        bad[label] = ol.to_tensor(np.zeros(3, "float32"))
    else:
        bad[label] = -1
    del bad[next(key for key in state if key.startswith("2.bias"))]
    innermost = bad
    while "inner_optimizer" in innermost:
        innermost["inner_optimizer"] = dict(innermost["inner_optimizer"])
        innermost = innermost["inner_optimizer"]
    del innermost["0.bias.moment1"]
    innermost["0.bias.t"] = 77
    with pytest.raises(ValueError, match="Nothing was changed") as caught:
        optimizer.set_state_dict(bad)
    for said in ("intruder is unexpected", "2.bias", label, "0.bias.moment1 is missing"):
        assert said in str(caught.value)
    for (name, one), other in zip(state.items(), optimizer.state_dict().values(), strict=True):
        if name != "inner_optimizer":
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    assert "77" not in repr(optimizer.state_dict()["inner_optimizer"].get("0.bias.t"))


def test_the_state_of_another_kind_is_refused():
    w = ol.Parameter([1.0], name="w")
    sgd = O.SGD(0.1, parameters=[w])
    with pytest.raises(ValueError, match="inner_optimizer is missing"):
        O.LookAhead(sgd).set_state_dict(sgd.state_dict())
    with pytest.raises(ValueError, match=r"w.slow is unexpected"):
        O.ExponentialMovingAverage.around(sgd).set_state_dict(O.LookAhead(sgd).state_dict())
    for wrong in (None, [1]):
        with pytest.raises(TypeError, match="set_state_dict takes what state_dict gave"):
            O.LookAhead(sgd).set_state_dict(wrong)
        with pytest.raises(TypeError, match="set_state_dict takes what state_dict gave"):
            O.ModelAverage(0.1, [w]).set_state_dict(wrong)


@pytest.mark.parametrize("wrap", WRAP)
def test_the_state_of_one_run_begins_every_member_of_an_ensemble(wrap):
    def make(start):
        p = ol.Parameter(start, name="p")
        return p, WRAP[wrap](O.Momentum(0.1, parameters=[p]))

    def go_on(p, optimizer):
        for _ in range(4):
            (p * p).sum().backward()
            optimizer.step()
            optimizer.clear_grad()

    start = np.array([1.0, -2.0])
    one, optimizer = make(start)
    go_on(one, optimizer)
    many, ensemble = make(ol.ensemble(np.stack([one.numpy()] * 3)))
    ensemble.set_state_dict(optimizer.state_dict())
    go_on(one, optimizer)
    go_on(many, ensemble)
    for member in ol.members(many.detach()).numpy():
        np.testing.assert_array_equal(member, one.numpy())
    _, fewer = make(ol.ensemble(np.ones((2, 2))))
    with pytest.raises(ValueError, match=r"of shape \(3, 2\) in place of .* shape \(2, 2\)"):
        fewer.set_state_dict(ensemble.state_dict())
