"""Gradient clipping against the formulas, alone and inside an optimizer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import optlab as ol

gradients = st.lists(
    arrays.arrays(
        st.sampled_from([np.float32, np.float64]),
        arrays.array_shapes(min_dims=0, max_dims=2, max_side=4),
        elements=st.floats(-1e4, 1e4, width=32),
    ),
    min_size=1,
    max_size=4,
)
limits = st.floats(1e-3, 1e3)


def clipped(clip, grads):
    return [g for _, g in clip([(None, g) for g in grads])]


def norm(*grads):
    return math.sqrt(sum(float(np.sum(np.square(g, dtype=np.float64))) for g in grads))


def equal(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@given(gradients, limits)
def test_by_value(grads, limit):
    result = clipped(ol.nn.ClipGradByValue(limit), grads)
    equal(result, [np.minimum(np.maximum(g, -limit), limit) for g in grads])


@given(gradients, limits)
def test_by_norm(grads, limit):
    result = clipped(ol.nn.ClipGradByNorm(limit), grads)
    equal(result, [g * (limit / max(norm(g), limit)) for g in grads])


@given(gradients, limits)
def test_by_global_norm(grads, limit):
    result = clipped(ol.nn.ClipGradByGlobalNorm(limit), grads)
    equal(result, [g * (limit / max(norm(*grads), limit)) for g in grads])


CLIPS = [ol.nn.ClipGradByValue, ol.nn.ClipGradByNorm, ol.nn.ClipGradByGlobalNorm]


@pytest.mark.parametrize("cls", CLIPS)
@given(grads=gradients, limit=limits)
def test_clipping_twice_is_clipping_once(cls, grads, limit):
    once = clipped(cls(limit), grads)
    for one, two in zip(once, clipped(cls(limit), once), strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5)


@pytest.mark.parametrize("cls", CLIPS)
@given(grads=gradients, limit=limits)
def test_what_goes_in_is_never_changed_and_dtypes_stay(cls, grads, limit):
    before = [g.copy() for g in grads]
    result = clipped(cls(limit), grads)
    for g, copy, new in zip(grads, before, result, strict=True):
        assert np.array_equal(g, copy)
        assert new.dtype == g.dtype


@pytest.mark.parametrize("cls", CLIPS)
def test_gradients_within_the_limit_stay_to_the_bit(cls):
    grads = [np.array([0.1, -0.2], np.float32), np.array(0.3, np.float32)]
    for g, new in zip(grads, clipped(cls(10.0), grads), strict=True):
        assert np.array_equal(g, new)


def test_bounds_of_by_value():
    clip = ol.nn.ClipGradByValue(2.0, min=-0.5)
    assert clipped(clip, [np.array([-3.0, 1.0, 5.0])])[0].tolist() == [-0.5, 1.0, 2.0]
    with pytest.raises(ValueError, match="min must not exceed max"):
        ol.nn.ClipGradByValue(-1.0)


@pytest.mark.parametrize("cls", CLIPS[1:])
@pytest.mark.parametrize("limit", [0, -1.0, float("nan")])
def test_a_limit_is_positive(cls, limit):
    with pytest.raises(ValueError, match="clip_norm must be finite and greater than 0"):
        cls(limit)


@pytest.mark.parametrize("cls", CLIPS)
@pytest.mark.parametrize("limit", ["1", None, [1.0, 2.0], True])
def test_a_limit_is_a_number(cls, limit):
    with pytest.raises(TypeError, match="must be one number"):
        cls(limit)


@pytest.mark.parametrize("cls", CLIPS[1:])
def test_half_precision_is_added_up_in_float32(cls):
    g = np.full(1000, 300.0, np.float16)  # the sum of squares is beyond float16
    new = clipped(cls(1.0), [g])[0]
    assert new.dtype == np.float16
    np.testing.assert_allclose(new, 1 / math.sqrt(1000), rtol=2e-3)


@pytest.mark.parametrize("cls", CLIPS)
def test_pairs_without_gradient_and_parameters_that_opt_out_pass(cls):
    keep = ol.Parameter([1.0], need_clip=False)
    take = ol.Parameter([1.0])
    none = ol.Parameter([1.0])
    big = np.array([100.0], np.float32)
    pairs = cls(1.0)([(keep, big), (take, big), (none, None)])
    assert all(a is b for (a, _), b in zip(pairs, [keep, take, none], strict=True))
    assert pairs[0][1].tolist() == [100.0]
    assert pairs[1][1].tolist() == [1.0]
    assert pairs[2][1] is None


def test_a_parameter_that_opts_out_does_not_count_in_the_global_norm():
    out, inside = ol.Parameter([0.0], need_clip=False), ol.Parameter([0.0])
    pairs = ol.nn.ClipGradByGlobalNorm(1.0)([(out, np.array([1e6])), (inside, np.array([0.5]))])
    assert pairs[1][1].tolist() == [0.5]


def test_tensors_come_back_as_tensors():
    pairs = ol.nn.ClipGradByNorm(1.0)([(None, ol.to_tensor([3.0, 4.0]))])
    assert isinstance(pairs[0][1], ol.Tensor)
    np.testing.assert_allclose(pairs[0][1].numpy(), [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("cls", CLIPS)
def test_inside_an_optimizer_the_clipped_gradient_is_used_and_grad_stays(cls):
    p, q = ol.Parameter([3.0, 0.0]), ol.Parameter([[4.0]])
    optimizer = ol.optimizer.SGD(1.0, parameters=[p, q], grad_clip=cls(0.5))
    (0.5 * (p * p).sum() + 0.5 * (q * q).sum()).backward()
    optimizer.step()
    assert p.grad.tolist() == [3.0, 0.0]
    assert q.grad.tolist() == [[4.0]]
    step = {
        ol.nn.ClipGradByValue: (0.5, 0.5),
        ol.nn.ClipGradByNorm: (0.5, 0.5),
        ol.nn.ClipGradByGlobalNorm: (0.3, 0.4),
    }[cls]
    np.testing.assert_allclose(p.numpy(), [3.0 - step[0], 0.0], rtol=1e-6)
    np.testing.assert_allclose(q.numpy(), [[4.0 - step[1]]], rtol=1e-6)
