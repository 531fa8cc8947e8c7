"""The step: skipped parameters, accepted gradients, and the effects of clear_grad and minimize."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.formulas import adam, path
from tests.optimizer.helpers import EACH, WithNorms, give, random

each = pytest.mark.parametrize("make", [*EACH.values(), WithNorms], ids=[*EACH, "WithNorms"])


@each
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_parameter_without_gradient_is_skipped_value_slots_and_t(make, position):
    """A run in which one parameter misses steps equals its run without those steps."""
    starts = [random(3, seed=i) for i in range(3)]
    some, alone = [ol.Parameter(s) for s in starts], ol.Parameter(starts[position])
    optimizer, other = make(parameters=some), make(parameters=[alone])
    for step in range(6):
        for i, p in enumerate(some):
            if i == position and step in (0, 2, 3):
                continue
            give(p, random(3, seed=10 * step + i))
        if step not in (0, 2, 3):
            give(alone, random(3, seed=10 * step + position))
            other.step()
        before = some[position].numpy()
        optimizer.step()
        if step in (0, 2, 3):
            assert np.array_equal(some[position].numpy(), before)
        optimizer.clear_grad(set_to_zero=False)
        other.clear_grad(set_to_zero=False)
        assert np.array_equal(some[position].numpy(), alone.numpy())


@each
def test_others_do_not_notice_who_is_skipped(make):
    p, q, alone = (ol.Parameter(random(3)) for _ in range(3))
    optimizer, other = make(parameters=[p, q]), make(parameters=[alone])
    for step in range(4):
        give(p, random(3, seed=step))
        give(alone, random(3, seed=step))
        if step % 2:
            give(q, random(3, seed=9))
        optimizer.step()
        other.step()
        optimizer.clear_grad(set_to_zero=False)
        other.clear_grad(set_to_zero=False)
    assert np.array_equal(p.numpy(), alone.numpy())


def test_with_no_gradient_at_all_nothing_happens():
    p = ol.Parameter([1.0, 2.0])
    optimizer = ol.optimizer.Adam(0.1, parameters=[p], weight_decay=0.5)
    with pytest.warns(UserWarning, match="no parameter of this Adam has a gradient"):
        optimizer.step()
    assert p.numpy().tolist() == [1.0, 2.0]
    give(p, [1.0, 1.0])
    optimizer.step()  # still step 1: the first step of Adam is as long as its rate
    np.testing.assert_allclose(p.numpy(), [0.9, 1.9], rtol=1e-6)


def test_a_zero_gradient_is_a_gradient():
    p = ol.Parameter([2.0])
    optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[p], weight_decay=0.25)
    give(p, [0.0])
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), [2.0 - 0.1 * 0.5], rtol=1e-6)


def test_after_clearing_to_zero_the_velocity_carries_on():
    p = ol.Parameter([1.0])
    optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[p])
    give(p, [1.0])
    optimizer.step()
    optimizer.clear_grad()
    assert p.grad.tolist() == [0.0]
    optimizer.step()
    np.testing.assert_allclose(p.numpy(), [1.0 - 0.1 - 0.05], rtol=1e-6)


def test_after_clearing_to_none_the_parameter_rests():
    p = ol.Parameter([1.0])
    optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[p])
    give(p, [1.0])
    optimizer.step()
    optimizer.clear_grad(set_to_zero=False)
    assert p.grad is None
    before = p.numpy()
    optimizer.step()
    assert np.array_equal(p.numpy(), before)


@pytest.mark.filterwarnings("ignore:all gradients of this Adam are the zeros")
def test_zeroed_steps_count():
    """Adam with zero gradients in between follows the formula with zeros in between."""
    gradients = [random(3), np.zeros(3), np.zeros(3), random(3, seed=1)]
    p = ol.Parameter(np.ones(3))
    optimizer = ol.optimizer.Adam(0.1, parameters=[p])
    for g in gradients:
        if g.any():
            give(p, g)
        optimizer.step()
        optimizer.clear_grad()
    expected = path(adam, np.ones(3), gradients, dict(optimizer.settings))[-1]
    np.testing.assert_allclose(p.numpy(), expected, rtol=1e-12)


def test_clear_grad_is_also_called_zero_grad():
    p = ol.Parameter([1.0])
    optimizer = ol.optimizer.SGD(parameters=[p])
    give(p, [1.0])
    optimizer.zero_grad()
    assert p.grad.tolist() == [0.0]


def test_gradients_add_up_after_clearing_to_zero():
    p = ol.Parameter([1.0])
    optimizer = ol.optimizer.SGD(parameters=[p])
    give(p, [5.0])
    optimizer.clear_grad()
    give(p, [1.0])
    give(p, [2.0])
    assert p.grad.tolist() == [3.0]


@each
def test_several_dtypes_in_one_optimizer(make):
    starts = [random(3, dtype=d) for d in ("float32", "float64", "float32")]
    mixed, alone = [ol.Parameter(s) for s in starts], [ol.Parameter(s) for s in starts]
    optimizer, others = make(parameters=mixed), [make(parameters=[p]) for p in alone]
    for step in range(3):
        for i, p in enumerate([*mixed, *alone]):
            give(p, random(3, seed=10 * step + i % 3))
        for one in (optimizer, *others):
            one.step()
            one.clear_grad()
    for p, q, start in zip(mixed, alone, starts, strict=True):
        assert p.dtype == start.dtype
        assert np.array_equal(p.numpy(), q.numpy())


@each
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 1, 2)])
def test_parameters_of_every_shape(make, shape):
    p = ol.Parameter(random(*shape))
    optimizer = make(parameters=[p])
    before = p.numpy()
    give(p, random(*shape, seed=1))
    optimizer.step()
    assert p.shape == shape
    assert np.all(p.numpy() != before)


def test_plain_tensors_are_parameters_too():
    w = ol.to_tensor([1.0, 2.0], requires_grad=True)
    b = ol.to_tensor(3.0, requires_grad=True)
    optimizer = ol.optimizer.SGD(0.5, parameters=[w, b])
    (w.sum() + 2 * b).backward()
    optimizer.step()
    assert w.tolist() == [0.5, 1.5]
    assert b.item() == 2.0


def test_a_step_is_seen_by_what_is_computed_next():
    layer = ol.nn.Linear(1, 1, weight_initializer=ol.nn.initializer.Constant(1.0))
    optimizer = ol.optimizer.SGD(0.5, parameters=layer.parameters())
    layer(ol.ones([1, 1])).sum().backward()
    optimizer.step()
    assert layer(ol.ones([1, 1])).item() == 0.0  # weight 0.5, bias -0.5


def test_a_step_between_two_backwards_of_one_graph_is_an_error():
    p = ol.Parameter([3.0], name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[p])
    loss = (p * p).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="w"):
        loss.backward()


def test_a_gradient_given_by_hand():
    p = ol.Parameter([1.0, 2.0])
    optimizer = ol.optimizer.SGD(0.5, parameters=[p])
    p.grad = np.array([2.0, 4.0])
    optimizer.step()
    assert p.numpy().tolist() == [0.0, 0.0]
    p.grad = ol.to_tensor(np.array([-2.0, -4.0]))  # a Tensor of float64
    optimizer.step()
    assert p.numpy().tolist() == [1.0, 2.0]
    assert p.dtype == np.float32


def test_an_untrainable_parameter_rests():
    p, q = ol.Parameter([1.0], trainable=False), ol.Parameter([1.0])
    optimizer = ol.optimizer.SGD(0.5, parameters=[p, q], weight_decay=0.1)
    (p * q).sum().backward()
    optimizer.step()
    assert p.numpy().tolist() == [1.0]
    assert q.numpy()[0] < 1.0


class TestMinimize:
    def test_without_backward_before(self):
        p = ol.Parameter([1.0])
        operations, pairs = ol.optimizer.SGD(0.5, parameters=[p]).minimize((3 * p).sum())
        assert p.numpy().tolist() == [-0.5]
        assert operations == []
        assert len(pairs) == 1
        assert pairs[0][0] is p
        assert pairs[0][1].tolist() == [3.0]

    @pytest.mark.parametrize("retain", [False, True])
    def test_with_backward_before_the_gradient_counts_once(self, retain):
        p = ol.Parameter([1.0])
        loss = (3 * p).sum()
        loss.backward(retain_graph=retain)
        ol.optimizer.SGD(0.5, parameters=[p]).minimize(loss)
        assert p.numpy().tolist() == [-0.5]

    def test_in_a_loop(self):
        p = ol.Parameter([1.0])
        optimizer = ol.optimizer.SGD(0.1, parameters=[p])
        for _ in range(3):
            optimizer.minimize((p * p).sum())
            optimizer.clear_grad()
        np.testing.assert_allclose(p.numpy(), [0.8**3], rtol=1e-6)

    def test_a_loss_that_needs_no_gradient(self):
        p = ol.Parameter([1.0])
        with pytest.raises(RuntimeError, match=r"backward\(\) has nowhere to go"):
            ol.optimizer.SGD(parameters=[p]).minimize(ol.ones([1]))

    def test_pairs_hold_the_parameters_that_were_used(self):
        p, q = ol.Parameter([1.0]), ol.Parameter([1.0])
        _, pairs = ol.optimizer.SGD(parameters=[p, q]).minimize((2 * p).sum())
        assert [(parameter is p, g.tolist()) for parameter, g in pairs] == [(True, [2.0])]


def test_a_template_has_nothing_to_step():
    with pytest.raises(RuntimeError, match=r"this Adam has no parameters.*model\.parameters\(\)"):
        ol.optimizer.Adam(0.1).step()
