"""Optimizers written by users, right and wrong."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give, random

Optimizer = ol.optimizer.Optimizer


class SignDescent(Optimizer):
    hyperparameters = {"learning_rate": 0.1}

    def update(self, p, g, s, h, c):
        step = h.learning_rate * np.sign(g)
        return p - step, {}, {"update": -step}


class HeavyBall(Optimizer):
    """Polyak's momentum, with the previous point as the slot."""

    hyperparameters = {"learning_rate": 0.1, "momentum": 0.9}
    slots = {"previous": float("nan")}

    def update(self, p, g, s, h, c):
        before = np.where(np.isnan(s.previous), p, s.previous)
        return p - h.learning_rate * g + h.momentum * (p - before), {"previous": p}


class Lion(Optimizer):
    """A rule of ten lines with a slot, from Chen et al. 2023, algorithm 2."""

    hyperparameters = {"learning_rate": 1e-4, "beta1": 0.9, "beta2": 0.99}
    slots = {"moment": 0.0}

    def update(self, p, g, s, h, c):
        step = h.learning_rate * np.sign(h.beta1 * s.moment + (1 - h.beta1) * g)
        return p - step, {"moment": h.beta2 * s.moment + (1 - h.beta2) * g}, {"update": -step}


class Lars(Optimizer):
    """One norm per parameter, and a scalar term."""

    hyperparameters = {"learning_rate": 0.1, "coefficient": 0.5}
    kind = "tensor"

    def update(self, p, g, s, h, c):
        ratio = h.coefficient * float(np.linalg.norm(p)) / float(np.linalg.norm(g))
        step = h.learning_rate * ratio * g
        return p - step, {}, {"update": -step}


class Decaying(Optimizer):
    """A rule with scalars of step t."""

    hyperparameters = {"learning_rate": 1.0}

    def scalars(self, t, h):
        return {"rate": h.learning_rate / t}

    def update(self, p, g, s, h, c):
        return p - c.rate * g, {}


def test_ten_lines_are_an_optimizer():
    p, q = ol.Parameter([1.0, -2.0]), ol.Parameter([[3.0]])
    optimizer = SignDescent(0.5, parameters=[p, q], weight_decay=0.1)
    ((p * p).sum() - q.sum()).backward()
    optimizer.step()
    assert p.numpy().tolist() == [0.5, -1.5]
    assert q.numpy().tolist() == [[3.5]]
    assert repr(SignDescent(0.5)) == "SignDescent(learning_rate=0.5)"


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("skip", [False, True])
def test_a_slot_that_remembers_the_parameter(count, skip):
    ps = [ol.Parameter(random(2, seed=i)) for i in range(count)]
    optimizer = HeavyBall(0.1, momentum=0.5, parameters=ps)
    expected = [p.numpy() for p in ps]
    previous = [p.numpy() for p in ps]
    for step in range(4):
        for i, p in enumerate(ps):
            if skip and (i + step) % 2:
                continue
            g = random(2, seed=20 * step + i)
            give(p, g)
            now = expected[i]
            expected[i] = now - 0.1 * g + 0.5 * (now - previous[i])
            previous[i] = now
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        for p, wanted in zip(ps, expected, strict=True):
            np.testing.assert_allclose(p.numpy(), wanted, rtol=1e-12)


def test_a_slot_that_remembers_the_gradient():
    class Difference(Optimizer):
        slots = {"last": 0.0}

        def update(self, p, g, s, h, c):
            return p - h.learning_rate * (2 * g - s.last), {"last": g}

    p, buffer = ol.Parameter(np.zeros(2)), np.array([1.0, 2.0])
    optimizer = Difference(1.0, parameters=[p])
    p.grad = buffer
    optimizer.step()
    buffer[...] = [10.0, 20.0]  # the next gradient, computed in the same array
    p.grad = buffer
    optimizer.step()
    assert p.numpy().tolist() == [-2.0 - 19.0, -4.0 - 38.0]


def test_a_slot_and_numpy():
    p = ol.Parameter(np.zeros(3))
    optimizer = Lion(0.1, parameters=[p])
    q, m = np.zeros(3), np.zeros(3)
    for step in range(5):
        g = random(3, seed=step)
        give(p, g)
        optimizer.step()
        optimizer.clear_grad()
        q = q - 0.1 * np.sign(0.9 * m + 0.1 * g)
        m = 0.99 * m + 0.01 * g
    np.testing.assert_allclose(p.numpy(), q, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_norms_are_those_of_one_parameter(shape):
    ps = [ol.Parameter(random(*shape, seed=i)) for i in range(2)]
    starts = [p.numpy() for p in ps]
    optimizer = Lars(parameters=ps)
    for i, p in enumerate(ps):
        give(p, random(*shape, seed=10 + i))
    optimizer.step()
    for i, (p, start) in enumerate(zip(ps, starts, strict=True)):
        g = random(*shape, seed=10 + i)
        ratio = 0.5 * np.sqrt((start**2).sum()) / np.sqrt((g**2).sum())
        np.testing.assert_allclose(p.numpy(), start - 0.1 * ratio * g, rtol=1e-12)


def test_scalars_count_the_steps_of_each_parameter():
    p, q = ol.Parameter([0.0]), ol.Parameter([0.0])
    optimizer = Decaying(parameters=[p, q])
    for step in range(4):
        give(p, [-1.0])
        if step >= 2:
            give(q, [-1.0])
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    np.testing.assert_allclose([p.item(), q.item()], [1 + 1 / 2 + 1 / 3 + 1 / 4, 1.5], rtol=1e-6)


@pytest.mark.parametrize("kind", ["elementwise", "tensor"])
@pytest.mark.parametrize("number", [lambda x: x, np.float32], ids=["float", "float32"])
def test_a_term_may_be_one_number(kind, number):
    class Named(Optimizer):
        def update(self, p, g, s, h, c):
            return p - h.learning_rate * g, {}, {"ratio": number(0.5)}

    Named.kind = kind
    p = ol.Parameter([1.0, 2.0], name="w")
    optimizer = Named(1.0, parameters=[p])
    with ol.record(optimizer) as trace:
        for _ in range(2):
            give(p, [1.0, 1.0])
            optimizer.step()
            optimizer.clear_grad()
    assert p.numpy().tolist() == [-1.0, 0.0]
    assert np.all(trace.terms["ratio"]["w"] == 0.5)
    assert len(trace.terms["ratio"]["w"]) == 2


def wrong(answer, kind="elementwise", slots=None):
    """Return a class whose update returns `answer(p, g, s)`."""

    class Wrong(Optimizer):
        def update(self, p, g, s, h, c):
            return answer(p, g, s)

    Wrong.kind, Wrong.slots = kind, slots or {}
    return Wrong


MEMORY = {"memory": 0.0}

#: What a rule returns, its slots, and a part of the message.
MISTAKES = {
    "a shape": (lambda p, g, s: (p[:1], {}), {}, "shape"),
    "a sum": (lambda p, g, s: (p.sum(), {}), {}, "shape"),
    "a wider dtype": (lambda p, g, s: (p - np.float64(0.1) * g.astype(float), {}), {}, "float64"),
    "integers": (lambda p, g, s: (p.astype(int), {}), {}, "int64"),
    "no slot": (lambda p, g, s: (p - g, {}), MEMORY, "memory"),
    "a slot too many": (lambda p, g, s: (p - g, {"extra": g}), {}, "extra"),
    "a slot of another shape": (lambda p, g, s: (p - g, {"memory": g[:1]}), MEMORY, "memory"),
    "a slot of another dtype": (
        lambda p, g, s: (p - g, {"memory": g.astype("float64")}), MEMORY, "memory",
    ),
    "a slot that is a number": (lambda p, g, s: (p - g, {"memory": 1.0}), MEMORY, "memory"),
    "nothing": (lambda p, g, s: None, {}, "update"),
    "the parameter alone": (lambda p, g, s: p - g, {}, "update"),
    "a list": (lambda p, g, s: ([1.0, 2.0], {}), {}, "update"),
    "slots that are no dict": (lambda p, g, s: (p - g, [g]), MEMORY, "update"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["elementwise", "tensor"])
@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_a_wrong_rule_says_what_is_wrong_and_changes_nothing(mistake, kind):
    answer, slots, named = MISTAKES[mistake]
    p, q = ol.Parameter([1.0, 2.0], name="p"), ol.Parameter([3.0, 4.0], name="q")
    optimizer = wrong(answer, kind, slots)(parameters=[p, q])
    give(p, [1.0, 1.0])
    give(q, [1.0, 1.0])
    with pytest.raises((TypeError, ValueError), match=r"Wrong\.update") as caught:
        optimizer.step()
    assert named in str(caught.value)
    assert p.numpy().tolist() == [1.0, 2.0]
    assert q.numpy().tolist() == [3.0, 4.0]


def test_a_parameter_turned_round_is_a_wrong_shape():
    p = ol.Parameter(random(2, 3))
    optimizer = wrong(lambda p, g, s: ((p - g).T, {}), kind="tensor")(parameters=[p])
    give(p, np.ones((2, 3)))
    with pytest.raises(ValueError, match="shape"):
        optimizer.step()
    assert np.array_equal(p.numpy(), random(2, 3))


@pytest.mark.parametrize("kind", ["elementwise", "tensor"])
def test_a_rule_that_fails_for_the_second_changes_the_first_neither(kind):
    def answer(p, g, s):
        if np.any(p == 3.0):
            raise ZeroDivisionError("no")
        return p - g, {"memory": s.memory + 1}

    p, q = ol.Parameter([1.0]), ol.Parameter(np.array([3.0]))
    optimizer = wrong(answer, kind, MEMORY)(parameters=[p, q])
    give(p, [1.0])
    give(q, [1.0])
    with pytest.raises(ZeroDivisionError):
        optimizer.step()
    assert p.numpy().tolist() == [1.0]
    q.set_value([4.0])
    with ol.record(optimizer, probes="toy") as trace:
        optimizer.step()
    assert [a.tolist() for a in trace.slots["memory"].values()] == [[[1.0]], [[1.0]]]


def test_a_class_without_update_says_what_to_write():
    class Empty(Optimizer):
        pass

    p = ol.Parameter([1.0])
    optimizer = Empty(parameters=[p])
    give(p, [1.0])
    with pytest.raises(NotImplementedError, match=r"Empty has no update\(self, p, g, s, h, c\)"):
        optimizer.step()


def test_a_class_without_learning_rate_says_so():
    class Rated(Optimizer):
        hyperparameters = {"rate": 0.1}

        def update(self, p, g, s, h, c):
            return p - h.rate * g, {}

    with pytest.raises(TypeError, match="learning_rate"):
        Rated(parameters=[ol.Parameter([1.0])])


def test_ranges_of_ones_own():
    class Ranged(SignDescent):
        hyperparameters = {"learning_rate": 0.1, "sharpness": 1.0}
        ranges = {"sharpness": (1.0, 5.0)}

    assert Ranged(sharpness=4.5).settings["sharpness"] == 4.5
    with pytest.raises(ValueError, match=r"sharpness must be in \[1, 5\); got 5\.0"):
        Ranged(sharpness=5)
