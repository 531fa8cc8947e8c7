"""Gradient clipping against the formulas, alone and inside an optimizer."""

from __future__ import annotations

import math
import tracemalloc

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
    g = np.full(1000, 300.0, np.float16)  # the sum of squares overflows float16
    new = clipped(cls(1.0), [g])[0]
    assert new.dtype == np.float16
    np.testing.assert_allclose(new, 1 / math.sqrt(1000), rtol=2e-3)


@pytest.mark.parametrize("cls", CLIPS)
def test_parameters_that_opt_out_pass_and_pairs_without_gradient_are_left_out(cls):
    keep = ol.Parameter([1.0], need_clip=False)
    take = ol.Parameter([1.0])
    none = ol.Parameter([1.0])
    big = np.array([100.0], np.float32)
    pairs = cls(1.0)([(keep, big), (none, None), (take, big)])
    assert all(a is b for (a, _), b in zip(pairs, [keep, take], strict=True))
    assert pairs[0][1].tolist() == [100.0]
    assert pairs[1][1].tolist() == [1.0]
    assert cls(1.0)([(none, None)]) == []


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


@pytest.mark.parametrize("limit", [1e6, 1e-3], ids=["within", "beyond"])
@pytest.mark.parametrize("cls", CLIPS)
def test_what_is_within_the_limit_is_not_copied(cls, limit):
    grads = [np.full(10_000, 2.0, np.float32), ol.to_tensor(np.full(10_000, -3.0, np.float32))]
    pairs = cls(limit)([(None, g) for g in grads])
    same = [new is g for g, (_, new) in zip(grads, pairs, strict=True)]
    assert same == [limit == 1e6] * 2


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("cls", CLIPS)
@pytest.mark.parametrize("limit", [1e6, 1e-3], ids=["within", "beyond"])
def test_a_step_copies_no_gradients_that_are_within_the_limit(cls, limit):
    free = ol.Parameter(np.zeros(2_000_000, "float32"), need_clip=False)
    bound = ol.Parameter(np.zeros(2_000_000, "float32"))
    optimizer = ol.optimizer.SGD(0.1, parameters=[free, bound], grad_clip=cls(limit))
    (free.sum() + bound.sum()).backward()
    optimizer.step()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    optimizer.step()
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    copied = 0 if limit == 1e6 else bound.numpy().nbytes  # `free` is never copied
    assert peak < copied + 4_000_000  # blocks of a norm, in float64


def test_auto_skip_clip_gives_the_same_bits():
    grads = [np.array([0.1, -0.2], np.float32), np.array([0.3, 7.0], np.float32)]
    for limit in (1.0, 100.0):
        plain, skips = (
            clipped(ol.nn.ClipGradByGlobalNorm(limit, auto_skip_clip=skip), grads)
            for skip in (False, True)
        )
        for one, other in zip(plain, skips, strict=True):
            np.testing.assert_array_equal(one, other)
    assert repr(ol.nn.ClipGradByGlobalNorm(1.0, auto_skip_clip=True)) == (
        "ClipGradByGlobalNorm(1.0, auto_skip_clip=True)"
    )


def test_auto_skip_clip_multiplies_nothing():
    def factor_of_step(skip, limit):
        p = ol.Parameter([3.0, 4.0])
        clip = ol.nn.ClipGradByGlobalNorm(limit, auto_skip_clip=skip)
        sgd = ol.optimizer.SGD(1.0, parameters=[p], grad_clip=clip)
        (0.5 * p * p).sum().backward()
        with pytest.MonkeyPatch.context() as patch:
            used = []
            patch.setattr(
                "optlab.optimizer.step.step.scaled", lambda g, f: used.append(f) or g * float(f)
            )
            sgd.step()
        return [float(one) for one in used], p.tolist()

    assert factor_of_step(False, 10.0) == ([1.0], [0.0, 0.0])
    assert factor_of_step(True, 10.0) == ([], [0.0, 0.0])
    assert factor_of_step(True, 2.5)[0] == factor_of_step(False, 2.5)[0] == [0.5]


def test_auto_skip_clip_of_an_ensemble():
    clip = ol.nn.ClipGradByGlobalNorm(1.0, auto_skip_clip=True)
    small, large = ol.ensemble([[0.3], [0.4]]), ol.ensemble([[0.3], [4.0]])
    [[_, same]], [[_, new]] = clip([(None, small)]), clip([(None, large)])
    assert same is small
    np.testing.assert_allclose(new.members, [[0.3], [1.0]])


def test_arguments_of_the_global_norm():
    given = [(None, np.array([3.0])), (None, np.array([4.0]))]
    named = ol.nn.ClipGradByGlobalNorm(1.0, group_name="mine")
    assert named(given) == ol.nn.ClipGradByGlobalNorm(1.0)(given)
    assert repr(named) == "ClipGradByGlobalNorm(1.0, 'mine')"
    with pytest.raises(TypeError, match="group_name must be text; got 3"):
        ol.nn.ClipGradByGlobalNorm(1.0, 3)
    with pytest.raises(TypeError, match="auto_skip_clip must be True or False; got 1"):
        ol.nn.ClipGradByGlobalNorm(1.0, auto_skip_clip=1)


@pytest.mark.parametrize("cls", CLIPS)
@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (None, "got None"),
        ([1, 2], r"entry 0 is 1\.$"),
        ([(None, [1.0])], r"the gradient of entry 0 is \[1.0\]"),
        (ol.Parameter([1.0, 2.0]), "got "),
        ([ol.Parameter([1.0, 2.0])], r"Write \[\(p, p.grad\)"),
        ([(1, 2, 3)], r"entry 0 is \(1, 2, 3\)"),
    ],
)
def test_what_is_no_list_of_pairs(cls, pairs, words):
    with pytest.raises(TypeError, match=rf"(?s){cls.__name__} takes a list of .*{words}"):
        cls(1.0)(pairs)


@pytest.mark.parametrize("clip", [ol.nn.ClipGradByNorm(0.5), ol.nn.ClipGradByGlobalNorm(0.5)])
def test_whole_numbers_are_clipped_as_floats(clip):
    [(_, g)] = clip([(None, np.array([3, 4]))])
    np.testing.assert_allclose(g, [0.3, 0.4])
