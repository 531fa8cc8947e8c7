"""The methods of Paddle 1.8.5 on wrappers."""

import numpy as np
import pytest

import optlab as ol

old = ol.fluid.optimizer


@pytest.mark.parametrize(
    "wrap",
    [lambda sgd: sgd, old.LookaheadOptimizer, old.RecomputeOptimizer],
    ids=["plain", "LookAhead", "recompute"],
)
def test_backward_and_minimize_take_a_parameter_list(wrap):
    a, b = ol.Parameter([1.0]), ol.Parameter([1.0])
    optimizer = wrap(old.SGD(0.5, parameter_list=[a, b]))
    if hasattr(optimizer, "set_checkpoints"):
        optimizer.set_checkpoints([])
    assert optimizer.current_step_lr() == 0.5
    [(p, g)] = optimizer.backward((a * b).sum(), parameter_list=[b])
    assert p is b
    assert g.numpy() == 1.0
    optimizer.clear_gradients()
    optimizer.minimize((3 * a * b).sum(), parameter_list=[b])
    assert (a.numpy(), b.numpy()) == (1.0, -0.5)


def test_a_clip_of_one_call_on_a_wrapper():
    a = ol.Parameter(np.array([1.0, 1.0]))
    optimizer = old.LookaheadOptimizer(old.SGD(1.0, parameter_list=[a]), k=100)
    optimizer.minimize((a * np.array([3.0, 4.0])).sum(), grad_clip=ol.nn.ClipGradByNorm(1.0))
    np.testing.assert_allclose(a.numpy(), [0.4, 0.2])
    assert optimizer.groups[0].grad_clip is None
