"""Errors for wrong arguments of the interface of training loops, raised before any change."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tensor import SilentDetachError


@pytest.fixture
def w():
    return ol.Parameter([1.0, 2.0], name="w")


@pytest.mark.parametrize("given", [None, -1, float("nan"), "0.5", np.inf])
def test_what_lr_ratio_must_give(given, w):
    late = ol.Parameter([0.0], name="late", trainable=True)
    late.data = late.data.astype("float64")  # has its own flat storage
    before = [w.data, late.data]
    with pytest.raises((TypeError, ValueError), match=r"lr_ratio gave .* for late; it gives a fin"):
        ol.optimizer.AdamW(
            0.1, parameters=[w, late], lr_ratio=lambda p: given if p is late else 1.0
        )
    assert w.data is before[0]
    assert late.data is before[1]


@pytest.mark.parametrize(
    ("cls", "name", "said"),
    [
        (ol.optimizer.AdamW, "lr_ratio", "must be a function that takes a parameter"),
        (ol.optimizer.AdamW, "apply_decay_param_fun", "must be a function that takes a name"),
        (ol.optimizer.Lamb, "exclude_from_weight_decay_fn", "must be a function that takes"),
        (ol.optimizer.LarsMomentum, "exclude_from_weight_decay", "must be a list of parts of nam"),
    ],
)
def test_a_traced_number_in_place_of_a_function(cls, name, said):
    """They take no number, so that nothing could be differentiated by it."""
    more = {"momentum": 0.9} if cls is ol.optimizer.LarsMomentum else {}
    with pytest.raises(TypeError, match=f"^{name} {said}") as error:
        ol.grad(lambda t: cls(0.1, **more, **{name: t}) and t)(0.5)
    assert not isinstance(error.value, SilentDetachError)


def test_a_factor_of_the_rate_that_is_differentiated(w):
    def loss(t):
        optimizer = ol.optimizer.AdamW(0.1, lr_ratio=lambda p: t, parameters=[w])
        return t + 0 * optimizer.get_lr()

    said = r"lr_ratio, whose factor for w is read.*functional_step\(.*learning_rate=t\)"
    with pytest.raises(SilentDetachError, match=said):
        ol.grad(loss)(0.5)

    # What the sentence says to write works.
    adam = ol.optimizer.AdamW(0.1, weight_decay=0.0)

    def value(t):
        state = adam.functional_init(w.numpy())
        new, _ = adam.functional_step(
            w.numpy(), np.ones(2, "float32"), state, learning_rate=0.1 * t
        )
        return np.sum(new)

    assert float(ol.grad(value)(1.0)) == pytest.approx(-0.2, rel=1e-4)


class Own(ol.optimizer.Optimizer):
    hyperparameters = {"learning_rate": 0.1, "beta": 0.5}
    own = {}

    def for_parameter(self, parameter, h):
        return self.own

    def update(self, p, g, s, h, c):
        return p - h.learning_rate * g, {}


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (None, "must return a dict of settings.*None"),
        ({"beta": "x"}, "beta must be one number"),
        ({"learning_rate": -1.0}, "learning_rate must be finite and at least 0"),
        ({"betta": 0.5}, "Own.for_parameter has no setting 'betta'.*'beta'"),
    ],
)
def test_what_for_parameter_must_give(own, words, w, monkeypatch):
    monkeypatch.setattr(Own, "own", own)
    before = w.data
    with pytest.raises((TypeError, ValueError), match=f"(?s){words}"):
        Own(parameters=[w])
    assert w.data is before


PAIRS = [
    (None, "got None"),
    (5, "got 5"),
    ([1, 2], "entry 0 is 1"),
    ([("w", None, 3)], "entry 0 is"),
    ([("w", [1.0, 2.0])], r"the gradient of entry 0 is \[1.0, 2.0\]"),
]


@pytest.mark.parametrize(("pairs", "words"), PAIRS)
@pytest.mark.parametrize("wrapped", [False, True])
def test_pairs_of_apply_gradients(pairs, words, wrapped, w):
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    outer = ol.optimizer.LookAhead(optimizer) if wrapped else optimizer
    with pytest.raises(TypeError, match=f"SGD.apply_gradients takes a list of .*{words}"):
        outer.apply_gradients(pairs)
    assert w.tolist() == [1.0, 2.0]
    assert optimizer.state_dict()["w.t"] == 0


@pytest.mark.parametrize(("pairs", "words"), PAIRS)
def test_pairs_of_append_regularization_ops(pairs, words, w):
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    with pytest.raises(TypeError, match=f"SGD.append_regularization_ops takes .*{words}"):
        optimizer.append_regularization_ops(pairs)


@pytest.mark.parametrize("argument", ["parameters", "no_grad_set"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("w", r"got str. Write {}=\['w'\]"),
        (3, "got int"),
        (ol.Parameter([1.0]), r"got Parameter. Write {}=\[w\]"),
    ],
)
def test_lists_of_parameters(argument, given, words, w):
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    with pytest.raises(TypeError, match=f"{argument} must be a list.*{words.format(argument)}"):
        optimizer.minimize((w * w).sum(), **{argument: given})
    assert w.grad is None
    optimizer.minimize((w * w).sum(), **{argument: ["w"]})
    assert (w.tolist() == [1.0, 2.0]) == (argument == "no_grad_set")


@pytest.mark.parametrize(
    ("group", "kind", "words"),
    [
        ({"params": None}, TypeError, "the 'params' of a group must be a list.*got NoneType"),
        ({"params": ol.nn.Linear(1, 1)}, TypeError, "'params': model.parameters()"),
        ({"params": []}, ValueError, "'params' is empty"),
    ],
)
def test_groups_without_parameters(group, kind, words, w):
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    with pytest.raises(kind, match=words):
        optimizer.add_param_group(group)
    assert len(optimizer.groups) == 1


def test_a_class_is_no_schedule(w):
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    with pytest.raises(TypeError, match=r"takes a schedule of.*got <class.*StepDecay"):
        optimizer.set_lr_scheduler(ol.optimizer.lr.StepDecay)
    assert optimizer.get_lr() == 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda: ol.optimizer.SGD(0.1, name=1),
        lambda: ol.optimizer.LookAhead(ol.optimizer.SGD(0.1), name=1),
        lambda: ol.optimizer.ExponentialMovingAverage(0.9, name=1),
        lambda: ol.optimizer.ModelAverage(0.15, name=1),
    ],
)
def test_names_are_text(make):
    with pytest.raises(TypeError, match=r"name must be text.*got 1"):
        make()


EMA, ModelAverage = ol.optimizer.ExponentialMovingAverage, ol.optimizer.ModelAverage


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (ol.optimizer.LookAhead, "alpha"),
        (ol.optimizer.LookAhead, "k"),
        (ol.optimizer.LookAhead, "beta1"),
        (ol.optimizer.LookAhead, "lr"),
        (lambda inner: EMA.around(inner, 0.5), "decay"),
        (lambda inner: EMA.around(inner, 0.5), "beta2"),
        (lambda inner: ModelAverage.around(inner, 0.5), "average_window_rate"),
        (lambda inner: EMA(0.5, parameters=inner.parameters), "decay"),
        (lambda inner: EMA(0.5, 3, parameters=inner.parameters), "thres_steps"),
        (lambda inner: ModelAverage(0.5, inner.parameters), "max_average_window"),
    ],
)
def test_settings_of_wrappers_are_no_attributes_that_do_nothing(make, name, w):
    wrapper = make(ol.optimizer.Adam(0.1, parameters=[w]))
    before = repr(wrapper)
    with pytest.raises(AttributeError, match=r"is given when|set by set_lr"):
        setattr(wrapper, name, 0)
    assert repr(wrapper) == before
    wrapper.name = "another"
    with pytest.raises(AttributeError, match=r"no 'decay'. Write .own_settings\['decay'\]"):
        EMA(0.5).decay  # noqa: B018
