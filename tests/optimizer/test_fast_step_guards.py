"""Changes that the fused step must notice: in rules, regularizers, gradients and clips."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from optlab.optimizer.regularizer import Regularizer

LARGE = 20_000


def path(make, change, n, values=(1.0, 10.0, 10.0)):
    """Return the first of n elements of a parameter after steps with these values."""
    w = ol.Parameter(np.zeros(n, np.float32))
    optimizer = make(parameters=[w])
    for value in values:
        change(optimizer, value)
        w.grad = np.ones(n, np.float32)
        optimizer.step()
    return float(w.numpy()[0])


class Plain(ol.optimizer.Optimizer):
    hyperparameters = {"learning_rate": 0.1}


class ReadsItself(Plain):
    def update(self, p, g, s, h, c):
        return p - h.learning_rate * self.gain * g, {}


GAIN = [1.0]


class ReadsAVariable(Plain):
    def update(self, p, g, s, h, c):
        return p - h.learning_rate * GAIN[0] * g, {}


class CallsASetting(ol.optimizer.Optimizer):
    hyperparameters = {"learning_rate": 0.1, "temperature": None}

    def update(self, p, g, s, h, c):
        return p - h.learning_rate * h.temperature() * g, {}


class Counts(Plain):
    count = 0

    def update(self, p, g, s, h, c):
        self.count += 1
        return p - h.learning_rate / self.count * g, {}


class AsksForTheType(Plain):
    def update(self, p, g, s, h, c):
        rate = h.learning_rate if isinstance(h.learning_rate, float) else 2 * h.learning_rate
        return p - rate * g, {}


def set_gain(optimizer, value):
    GAIN[0] = value


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (ReadsItself, lambda o, value: setattr(o, "gain", value)),
        (ReadsAVariable, set_gain),
        (lambda **k: CallsASetting(temperature=lambda: GAIN[0], **k), set_gain),
        (Counts, lambda o, value: None),
        (AsksForTheType, lambda o, value: None),
    ],
)
def test_a_rule_that_is_not_fixed_takes_the_same_path_at_every_size(make, change):
    assert path(make, change, LARGE) == path(make, change, 4)


class Elastic(Regularizer):
    def __init__(self, l1, l2):
        super().__init__(0.0)
        self.l1, self.l2 = l1, l2

    def add_to(self, g, p):
        return g + self.l1 * np.sign(p) + self.l2 * p


def test_regularizers_of_ones_own_are_told_apart():
    a, b = (ol.Parameter(np.ones(LARGE, np.float32)) for _ in range(2))
    groups = [
        {"params": [a], "weight_decay": Elastic(0.25, 0.0)},
        {"params": [b], "weight_decay": Elastic(0.5, 0.0)},
    ]
    optimizer = ol.optimizer.SGD(1.0, parameters=groups)
    optimizer.apply_gradients([(p, np.zeros(LARGE, np.float32)) for p in (a, b)])
    assert (a.numpy()[0], b.numpy()[0]) == (0.75, 0.5)


def test_a_gradient_that_is_the_memory_of_a_parameter():
    x, y = ol.Parameter(np.ones(70_000)), ol.Parameter(np.full(70_000, 2.0))
    ol.optimizer.SGD(0.5, parameters=[x, y]).apply_gradients([(x, y), (y, x)])
    assert (x.numpy()[0], y.numpy()[0]) == (0.0, 1.5)


def test_a_fourth_result_is_refused_at_every_size():
    class Four(Plain):
        def update(self, p, g, s, h, c):
            return p - g, {}, {}, None

    for n in (4, LARGE):
        with pytest.raises(TypeError, match="must return"):
            path(Four, lambda o, value: None, n)


def test_errors_that_numpy_is_to_ignore_are_ignored_in_the_fast_step(recwarn):
    p = ol.Parameter(np.ones(LARGE, np.float32))
    optimizer = ol.optimizer.Adam(0.1, parameters=[p])
    with np.errstate(all="ignore"):
        optimizer.apply_gradients([(p, np.full(LARGE, 1e30, np.float32))])
    assert not recwarn
    assert optimizer.plans


def test_partial_updates_copy_no_slots_and_give_the_same(monkeypatch):
    def train(listen):
        weights = ol.Parameter(np.ones(50_000, np.float32), name="w")
        biases = [ol.Parameter(np.ones(10, np.float32), learning_rate=1.0 + i) for i in range(6)]
        optimizer = ol.optimizer.Adam(0.1, parameters=[weights, *biases])
        kept = []
        keep = lambda o, updates: kept.extend(  # noqa: E731
            (array, array.copy()) for u in updates for array in u.slots.values()
        )
        for t in range(5):
            for p in (weights, *biases):
                p.grad = np.full(p.shape, 0.5 + t, np.float32)
            if listen and t % 2:
                events.step_taken.subscribe(keep)
            optimizer.step()
            if listen and t % 2:
                events.step_taken.unsubscribe(keep)
        for array, copy in kept:
            np.testing.assert_array_equal(array, copy)
        return [p.numpy() for p in (weights, *biases)]

    for one, other in zip(train(False), train(True), strict=True):
        np.testing.assert_array_equal(one, other)


class TestClipsOfOnesOwn:
    def optimizer(self, clip):
        a, b = ol.Parameter(np.ones(2), name="a"), ol.Parameter(np.ones(3), name="b")
        optimizer = ol.optimizer.SGD(1.0, parameters=[a, b], grad_clip=clip)
        return a, b, optimizer

    def test_pairs_in_another_order(self):
        a, b, optimizer = self.optimizer(lambda pairs: [(p, 2 * g) for p, g in reversed(pairs)])
        optimizer.apply_gradients([(a, np.full(2, 0.25)), (b, np.full(3, 0.125))])
        assert (a.numpy()[0], b.numpy()[0]) == (0.5, 0.75)

    @pytest.mark.parametrize(
        ("clip", "error", "words"),
        [
            (lambda pairs: pairs[:1], ValueError, "was given 2 .* and returned 1"),
            (lambda pairs: None, TypeError, "takes .parameter, gradient. pairs and returns"),
            (lambda pairs: [(p, g[:1]) for p, g in pairs], ValueError, r"a has shape \(1,\)"),
        ],
    )
    def test_what_does_not_fit_is_named_before_anything_changes(self, clip, error, words):
        a, b, optimizer = self.optimizer(clip)
        with pytest.raises(error, match=words):
            optimizer.apply_gradients([(a, np.ones(2)), (b, np.ones(3))])
        assert (a.numpy()[0], b.numpy()[0]) == (1.0, 1.0)

    def test_a_class_in_place_of_a_clip(self):
        with pytest.raises(TypeError, match="grad_clip takes"):
            self.optimizer(ol.nn.ClipGradByNorm)


@pytest.mark.parametrize("size", [100, 20_000])
def test_a_rule_that_counts_in_a_list_of_its_class_counts_every_step_once(size):
    class Slowing(ol.optimizer.Optimizer):
        seen = []

        def update(self, p, g, s, h, c):
            self.seen.append(1)
            return p - len(self.seen) * g, {}

    w = ol.Parameter(np.zeros(size, np.float32))
    optimizer = Slowing(0.1, parameters=[w])
    for _ in range(4):
        w.grad = np.ones(size, np.float32)
        optimizer.step()
    assert (w.numpy() == -(1 + 2 + 3 + 4)).all()
