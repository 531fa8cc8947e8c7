"""A rule that declares itself elementwise, and is not, raises when it is first applied."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from optlab.optimizer.rule.norms import norm

NOISE = np.random.default_rng(0)
SIZES = [2, 5, 20_000]


def rule(update, kind="elementwise", slots=None, **attributes):
    name = "Mine"
    own = {
        "update": lambda self, p, g, s, h, c: update(p, g, s),
        "kind": kind,
        "slots": slots or {},
        "__module__": __name__,
    }
    return type(name, (ol.optimizer.Optimizer,), own | attributes)


def optimizer_of(update, size, **options):
    w = ol.Parameter(np.arange(1.0, size + 1, dtype="float32"), name="w")
    optimizer = rule(update, **options)(0.1, parameters=[w])
    w.grad = np.linspace(-1, 1.5, size, dtype="float32")
    return w, optimizer


#: Rules of the whole array, and the name in the message.
MIXING = {
    "norm": (lambda p, g, s: (p - g / np.linalg.norm(g), {}), "np.linalg.norm"),
    "our norm": (lambda p, g, s: (p - g / norm(g), {}), "np.sum"),
    "mean": (lambda p, g, s: (p - (g - g.mean()), {}), "np.mean"),
    "np.mean": (lambda p, g, s: (p - (g - np.mean(g)), {}), "np.mean"),
    "std": (lambda p, g, s: (p - g / g.std(), {}), "np.std"),
    "var": (lambda p, g, s: (p - g / (g.var() + 1), {}), "np.var"),
    "sum of squares": (lambda p, g, s: (p - g / np.sqrt((g * g).sum()), {}), "np.sum"),
    "largest": (lambda p, g, s: (p - g / abs(g).max(), {}), "np.max"),
    "product": (lambda p, g, s: (p - g * (g @ p), {}), "np.matmul"),
    "dot": (lambda p, g, s: (p - g * g.dot(p), {}), "np.dot"),
    "float": (lambda p, g, s: (p - g / float(np.linalg.norm(g)), {}), "np.linalg.norm"),
    "item": (lambda p, g, s: (p - g / np.max(g).item(), {}), "np.max"),
    "in place": (lambda p, g, s: (_divided(p - g, g), {}), "np.sum"),
    "branch": (lambda p, g, s: (p - (g if (g > 0).all() else 2 * g), {}), "np.all"),
    "count": (lambda p, g, s: (p - g / len(g), {}), r"len\(\)"),
    "size": (lambda p, g, s: (p - g / g.size, {}), r"\.size"),
    "neighbour": (lambda p, g, s: (p - g[::-1], {}), r"\[\.\.\.\]"),
}

#: Rules that are elementwise, whatever else they do.
ELEMENTWISE = {
    "plain": lambda p, g, s: (p - g, {}),
    "where": lambda p, g, s: (np.where(g > 0, p - g, p), {}),
    "clip": lambda p, g, s: (np.clip(p - g, -1.0, 1.0), {}),
    "mask": lambda p, g, s: (_masked(p, g), {}),
    "a term of the whole": lambda p, g, s: (p - g, {}, {"norm": np.linalg.norm(g)}),
    "a check": lambda p, g, s: (p - g, {}) if np.isfinite(g).all() else (p, {}),
    "noise": lambda p, g, s: (p - g * NOISE.random(len(g), "float32"), {}),
    "maximum": lambda p, g, s: (p - np.maximum(g, 0.5 * g), {}),
    "select": lambda p, g, s: (np.select([g > 0, g < 0], [p - g, p + g], p), {}),
}


def _divided(new, g):
    new /= np.sum(np.abs(g))
    return new


def _masked(p, g):
    new = p.copy()
    new[g > 0] -= g[g > 0]
    return new


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MIXING)
def test_a_rule_of_the_whole_is_told_to_say_so(name, size):
    update, told = MIXING[name]
    w, optimizer = optimizer_of(update, size)
    before = w.numpy()
    for _ in range(2):  # every time
        with pytest.raises(ValueError, match=rf"computes with {told} of .*kind = 'tensor'"):
            optimizer.step()
    np.testing.assert_array_equal(w.numpy(), before)
    assert optimizer.state_dict()["w.t"] == 0


def test_a_slot_of_the_whole():
    slots = {"mean": 0.0}
    _, optimizer = optimizer_of(
        lambda p, g, s: (p - g, {"mean": s.mean + g.mean()}), 5, slots=slots
    )
    with pytest.raises(ValueError, match=r"computes with np\.mean"):
        optimizer.step()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_rule_that_is_elementwise_goes_on_as_before(name, size):
    w, optimizer = optimizer_of(ELEMENTWISE[name], size)
    p, g = w.numpy(), w.grad.numpy()
    for _ in range(3):
        optimizer.step()
        p = ELEMENTWISE[name](p, g, None)[0]
    if name != "noise":
        np.testing.assert_array_equal(w.numpy(), p)
    assert type(w.data) is np.ndarray
    assert all(type(a.slots) is dict for a in optimizer.groups[0].arenas)


@pytest.mark.parametrize("size", SIZES)
def test_kind_tensor_is_what_to_write(size):
    w, optimizer = optimizer_of(MIXING["norm"][0], size, kind="tensor")
    p, g = w.numpy(), w.grad.numpy()
    optimizer.step()
    np.testing.assert_array_equal(w.numpy(), p - g / np.linalg.norm(g))


OF_THE_SHAPE = {
    "the number of axes": lambda p, g, s: (p - g if p.ndim > 1 else p - 2 * g, {}),
    "the length of an axis": lambda p, g, s: (p - g / p.shape[0], {}),
    "the largest of plain numbers": lambda p, g, s: (p - g / np.max(np.abs(np.asarray(g))), {}),
    "a view": lambda p, g, s: (p - g / g.view(np.ndarray).max(), {}),
    "a list": lambda p, g, s: (p - g / max(g.tolist()), {}),
    "another order": lambda p, g, s: (p - np.flip(g), {}),
    "a spectrum": lambda p, g, s: (p - np.abs(np.fft.fft(g)).astype(p.dtype), {}),
    "one element": lambda p, g, s: (p - np.take(g, 0), {}),
    "in a slot": lambda p, g, s: (p - g, {"m": s.m + np.asarray(g).max()}),
}


@pytest.mark.parametrize("name", OF_THE_SHAPE)
def test_a_rule_that_gives_something_else_for_each_parameter_by_itself_is_refused(name):
    slots = {"m": 0.0} if name == "in a slot" else {}
    shapes = [(2, 3), (4,)]
    values = [
        np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes
    ]
    parameters = [ol.Parameter(value) for value in values]
    optimizer = rule(OF_THE_SHAPE[name], slots=slots)(0.1, parameters=parameters)
    for p, g in zip(parameters, values, strict=True):
        p.grad = g
    with pytest.raises(ValueError, match="of kind 'elementwise'"):
        optimizer.step()
    assert all((p.numpy() == value).all() for p, value in zip(parameters, values, strict=True))


@pytest.mark.parametrize(
    "update",
    [
        lambda p, g, s: (p - g * np.ones(p.shape, p.dtype), {}),
        lambda p, g, s: (p - np.asarray(g), {}),
        lambda p, g, s: (np.asarray(p - np.array(g)), {}),
    ],
    ids=["ones of the shape", "a plain gradient", "a plain result"],
)
def test_a_shape_and_plain_arrays_may_be_asked_for(update):
    a, b = ol.Parameter(np.ones((2, 3))), ol.Parameter(np.ones(4))
    optimizer = rule(update)(0.1, parameters=[a, b])
    a.grad, b.grad = np.full((2, 3), 0.5), np.arange(4.0)
    optimizer.step()
    assert (a.numpy() == 0.5).all()
    assert (b.numpy() == 1 - np.arange(4.0)).all()


def test_the_rule_is_called_once():
    calls = []
    _, optimizer = optimizer_of(lambda p, g, s: calls.append(1) or (p - g, {}), 5)
    optimizer.step()
    assert calls == [1]


def test_what_takes_plain_arrays_only_is_given_them():
    def only_plain(x):
        assert type(x) is np.ndarray
        return x

    w, optimizer = optimizer_of(lambda p, g, s: (p - only_plain(g), {}), 5)
    p, g = w.numpy(), w.grad.numpy()
    optimizer.step()
    np.testing.assert_array_equal(w.numpy(), p - g)
    _, mixing = optimizer_of(lambda p, g, s: (p - g / np.linalg.norm(only_plain(g)), {}), 5)
    with pytest.raises(ValueError, match="computes with a number of a whole array"):
        mixing.step()


def test_listeners_get_plain_arrays():
    kept = []
    _, optimizer = optimizer_of(
        lambda p, g, s: (p - g, {"m": s.m + g}, {"twice": 2 * g}), 5, slots={"m": 0.0}
    )
    with events.step_taken.subscribed(lambda o, updates: kept.extend(updates)):
        optimizer.step()
    [one] = kept
    arrays = [one.parameter, one.gradient, *one.slots.values(), *one.terms.values()]
    assert {type(a) for a in arrays} == {np.ndarray}


def test_every_copy_is_watched_for_itself():
    update, _ = MIXING["norm"]
    template = rule(update)(0.1)
    good = rule(ELEMENTWISE["plain"])(0.1, parameters=[ol.Parameter([1.0, 2.0])])
    good.parameters[0].grad = np.ones(2, "float32")
    good.step()
    assert good.elementwise_verified
    assert not good.bind([ol.Parameter([1.0])]).elementwise_verified
    assert copy.deepcopy(good).elementwise_verified
    w = ol.Parameter([1.0, 2.0])
    bound = template.bind([w])
    w.grad = np.ones(2, "float32")
    with pytest.raises(ValueError, match="elementwise"):
        bound.step()


def test_rules_of_the_package_are_not_watched():
    assert ol.optimizer.Adam(0.1).elementwise_verified
    assert type("Own", (ol.optimizer.Adam,), {})(0.1).elementwise_verified
