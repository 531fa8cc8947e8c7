"""Steps of small parameters by bound calls: the bits of the general step, and nothing unnoticed."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from optlab.optimizer.step import bound, fused
from tests.optimizer.helpers import EACH, random
from tests.optimizer.interrupts import same, values_of

SHAPES = [(5, 4), (3,), (2, 3), ()]
ELEMENTWISE = [name for name, make in EACH.items() if make().kind == "elementwise"]


@pytest.fixture(autouse=True)
def taken(monkeypatch):
    """Bind from the third step on; return how many steps were taken by bound calls, and not."""
    monkeypatch.setattr(bound, "AFTER", 2)
    found = []
    take = bound.BoundStep.take

    def counting(self, optimizer):
        found.append(take(self, optimizer))
        return found[-1]

    monkeypatch.setattr(bound.BoundStep, "take", counting)
    return found


def parameters_of(dtype="float32"):
    return [
        ol.Parameter(random(*shape, seed=i, dtype=dtype), name=f"p{i}")
        for i, shape in enumerate(SHAPES)
    ]


def train(make, steps=12, listen=False, between=None, dtype="float32"):
    """Take steps, with `between(number, optimizer, parameters)` before each."""
    ol.seed(0)
    tensors = parameters_of(dtype)
    optimizer = make(parameters=tensors)
    ignore = lambda optimizer, updates: None  # noqa: E731
    if listen:
        events.step_taken.subscribe(ignore)
    try:
        for t in range(steps):
            for i, p in enumerate(tensors):
                p.grad = random(*p.shape, seed=100 * t + i, dtype=dtype)
            if between is not None:
                optimizer = between(t, optimizer, tensors) or optimizer
            optimizer.step()
    finally:
        if listen:
            events.step_taken.unsubscribe(ignore)
    return tensors, optimizer


def assert_same(one, other):
    assert same(values_of(*one), values_of(*other))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_rule(name, dtype, taken):
    found = train(EACH[name], dtype=dtype)
    if name not in ("Rprop", "ASGD", "RAdam", "NAdam"):
        assert taken.count(True) == 10
    assert_same(found, train(EACH[name], dtype=dtype, listen=True))


def adam(**common):
    return ol.optimizer.Adam(0.1, **common)


MAKERS = {
    "clip": lambda **k: adam(grad_clip=ol.nn.ClipGradByGlobalNorm(0.5), **k),
    "clip, skipped": lambda **k: adam(
        grad_clip=ol.nn.ClipGradByGlobalNorm(4.0, auto_skip_clip=True), **k
    ),
    "clip by value": lambda **k: adam(grad_clip=ol.nn.ClipGradByValue(0.5), **k),
    "L1": lambda **k: adam(weight_decay=ol.regularizer.L1Decay(0.1), **k),
    "L2": lambda **k: adam(weight_decay=0.1, **k),
    "schedule": lambda **k: ol.optimizer.Adam(
        ol.optimizer.lr.ExponentialDecay(0.1, gamma=0.9), **k
    ),
    "decay of some": lambda **k: ol.optimizer.AdamW(
        0.1, apply_decay_param_fun=lambda name: name != "p1", **k
    ),
    "two groups": lambda parameters: adam(
        parameters=[
            {"params": parameters[:2], "learning_rate": 0.5, "beta1": 0.5},
            {"params": parameters[2:], "weight_decay": 0.2},
        ]
    ),
    "LookAhead": lambda **k: ol.optimizer.LookAhead(adam(**k), k=3),
    "average": lambda **k: ol.optimizer.ExponentialMovingAverage.around(adam(**k), decay=0.5),
}


@pytest.mark.parametrize("name", MAKERS)
def test_settings_and_wrappers(name, taken):
    def forward(t, optimizer, tensors):
        if name == "schedule":
            optimizer.schedule.step()

    found = train(MAKERS[name], between=forward)
    if not name.startswith("clip"):
        assert taken.count(True) == 10
    assert_same(found, train(MAKERS[name], between=forward, listen=True))


def test_a_clip_of_the_global_norm_is_bound(taken):
    train(MAKERS["clip"])
    assert taken.count(True) == 10


def _reload(t, optimizer, tensors):
    state = optimizer.state_dict()
    optimizer.set_state_dict(
        {k: v * 0.5 if isinstance(v, ol.Tensor) else v for k, v in state.items()}
    )


def _replace(t, optimizer, tensors):
    tensors[0].set_value(np.full(SHAPES[0], 0.25, "float32"))


def _adopt(t, optimizer, tensors):
    ol.optimizer.SGD(0.1, parameters=tensors[:2])


CHANGES = {
    "set_lr": lambda t, o, ps: o.set_lr(0.01 * t),
    "a schedule": lambda t, o, ps: o.set_lr_scheduler(ol.optimizer.lr.StepDecay(0.5, step_size=2)),
    "a setting of the group": lambda t, o, ps: setattr(o.groups[0].h, "beta1", 0.5),
    "epsilon": lambda t, o, ps: setattr(o.groups[0].h, "epsilon", 0.1),
    "a flag of the group": lambda t, o, ps: setattr(o.groups[0], "multiplier", 3.0),
    "a regularizer of the group": lambda t, o, ps: setattr(
        o.groups[0], "regularizer", ol.regularizer.L1Decay(0.5)
    ),
    "a clip of the group": lambda t, o, ps: setattr(
        o.groups[0], "grad_clip", ol.nn.ClipGradByGlobalNorm(0.1)
    ),
    "the rate of a parameter": lambda t, o, ps: setattr(ps[1], "learning_rate", 0.1),
    "the regularizer of a parameter": lambda t, o, ps: setattr(
        ps[0], "regularizer", ol.regularizer.L2Decay(0.5)
    ),
    "no gradient": lambda t, o, ps: setattr(ps[1], "grad", None),
    "a gradient cleared": lambda t, o, ps: ps[2].clear_gradient(),
    "a gradient of other layout": lambda t, o, ps: setattr(
        ps[0], "grad", np.asfortranarray(random(5, 4, seed=t, dtype="float32"))
    ),
    "a state": _reload,
    "a value": _replace,
    "another optimizer": _adopt,
    "a copy": lambda t, o, ps: None,
    "no rate": lambda t, o, ps: o.set_lr(0.0),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.filterwarnings("ignore:the learning rate")
def test_what_changes_between_steps_is_noticed(name, taken):
    def between(t, optimizer, tensors):
        if t in (6, 7):
            CHANGES[name](t, optimizer, tensors)

    found = train(adam, between=between)
    assert taken[:3] == [True] * 3
    assert_same(found, train(adam, between=between, listen=True))


def test_a_regularizer_that_is_changed_is_noticed(taken):
    def make(**common):
        return adam(weight_decay=ol.regularizer.L2Decay(0.1), **common)

    def between(t, optimizer, tensors):
        optimizer.groups[0].regularizer.coeff = 0.1 * t

    assert_same(train(make, between=between), train(make, between=between, listen=True))


def test_listeners_by_turns(taken):
    """Arrays that a listener keeps do not change."""
    kept = []

    def keep(optimizer, updates):
        for update in updates:
            kept.extend((x, x.copy()) for x in (update.parameter, *update.slots.values()))

    def between(t, optimizer, tensors):
        if t % 5 == 4:
            events.step_taken.subscribe(keep)
        elif t % 5 == 0 and t:
            events.step_taken.unsubscribe(keep)

    found = train(adam, 20, between=between)
    events.step_taken.unsubscribe(keep)
    assert taken.count(True) == 5
    assert kept
    assert all(np.array_equal(array, copied) for array, copied in kept)
    assert_same(found, train(adam, 20, listen=True))


def test_parameters_that_join_are_updated(taken):
    more = [ol.Parameter(np.ones(3, "float32"), name="more") for _ in range(2)]

    def joining(p):
        def between(t, optimizer, tensors):
            p.grad = np.full(3, 0.1 * t, "float32")
            if t == 6:
                optimizer.add_param_group({"params": [p]})

        return between

    train(adam, between=joining(more[0]))
    train(adam, between=joining(more[1]), listen=True)
    assert not np.array_equal(more[0].numpy(), np.ones(3))
    np.testing.assert_array_equal(more[0].numpy(), more[1].numpy())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_go_on_alone(copied, taken):
    tensors, optimizer = train(adam, 6)
    others, twin = copied((tensors, optimizer))
    assert taken.count(True) == 4
    for pair in ((tensors, optimizer), (others, twin)):
        for t in range(6):
            for i, p in enumerate(pair[0]):
                p.grad = random(*p.shape, seed=t + i, dtype="float32")
            pair[1].step()
    assert_same((tensors, optimizer), (others, twin))


def test_a_gradient_that_is_memory_of_a_parameter(taken):
    def between(t, optimizer, tensors):
        tensors[0].grad = tensors[0].data[::-1]

    assert_same(train(adam, between=between), train(adam, between=between, listen=True))
    assert any(taken)


def test_floating_point_errors_warn_when_the_step_is_written(taken):
    w = ol.Parameter(np.ones(3, "float32"), name="w")
    optimizer = ol.optimizer.SGD(10.0, parameters=[w])
    for _ in range(4):
        w.grad = np.zeros(3, "float32")
        optimizer.step()
    w.grad = np.full(3, 3e38, "float32")
    with pytest.warns(RuntimeWarning, match=r"overflow encountered in SGD\.update") as found:
        optimizer.step()
    assert found[0].filename == __file__
    assert taken[-1]
    assert np.isinf(w.numpy()).all()
    w.set_value(np.ones(3, "float32"))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
    w.set_value(np.ones(3, "float32"))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        optimizer.step()
    np.testing.assert_array_equal(w.numpy(), np.ones(3))  # nothing was written


def test_a_step_that_is_wrong_changes_nothing(taken):
    tensors, optimizer = train(adam, 6)
    before = [p.numpy() for p in tensors]
    tensors[1].node.grad = np.ones(7, "float32")
    with pytest.raises(ValueError, match="the gradient of p1 has shape"):
        optimizer.step()
    for p, values in zip(tensors, before, strict=True):
        np.testing.assert_array_equal(p.numpy(), values)


def test_how_it_runs_is_told(taken):
    _, optimizer = train(adam, 6)
    assert list(optimizer.execution.values()) == ["captured, in place and block by block"]
    _, optimizer = train(adam, 1)
    assert "fewer than 8,192 elements" in next(iter(optimizer.execution.values()))


def test_compiled_loops_run_where_they_are_chosen(taken, monkeypatch):
    chosen = iter(["auto", "auto", "auto", "numba"])
    monkeypatch.setattr(fused, "SMALL", 20)
    monkeypatch.setattr(bound, "chosen_executor", lambda: next(chosen, "numba"))
    found = train(adam)
    assert taken[:4] == [True, True, True, False]
    assert_same(found, train(adam, listen=True))


def test_parameters_of_many_elements_are_not_bound(taken):
    w = ol.Parameter(np.ones(bound.LARGEST, "float32"), name="w")
    optimizer = adam(parameters=[w])
    for _ in range(4):
        w.grad = w.numpy()
        optimizer.step()
    assert not taken
