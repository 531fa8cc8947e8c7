"""Initial values: their statistics, their shapes, and that one seed fixes them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optlab as ol

I = ol.nn.initializer  # noqa: E741 - the module, as the documents write it

SHAPE = (300, 500)

#: Name, maker, mean, standard deviation and bound for a weight of shape [300, 500].
RANDOM = [
    ("Uniform", lambda: I.Uniform(-1.0, 3.0), 1.0, 4 / math.sqrt(12), (-1.0, 3.0)),
    ("Normal", lambda: I.Normal(2.0, 0.5), 2.0, 0.5, None),
    ("XavierUniform", I.XavierUniform, 0.0, math.sqrt(2 / 800), math.sqrt(6 / 800)),
    ("XavierNormal", I.XavierNormal, 0.0, math.sqrt(2 / 800), None),
    ("KaimingUniform", I.KaimingUniform, 0.0, math.sqrt(2 / 300), math.sqrt(6 / 300)),
    ("KaimingNormal", I.KaimingNormal, 0.0, math.sqrt(2 / 300), None),
]
MAKERS = [pytest.param(make, id=name) for name, make, *_ in RANDOM]


@pytest.mark.parametrize(
    ("make", "mean", "std", "bound"), [pytest.param(*row[1:], id=row[0]) for row in RANDOM]
)
def test_statistics(make, mean, std, bound):
    ol.seed(3)
    drawn = make()(SHAPE, "float64")
    n = drawn.size
    assert abs(drawn.mean() - mean) < 5 * std / math.sqrt(n)
    assert drawn.std() == pytest.approx(std, rel=5 / math.sqrt(n))
    if bound is not None:
        low, high = bound if isinstance(bound, tuple) else (-bound, bound)
        assert low <= drawn.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < drawn.max() <= high
    else:
        share = np.mean(np.abs(drawn - mean) < std)  # 68 % of a normal distribution
        assert share == pytest.approx(math.erf(1 / math.sqrt(2)), abs=0.01)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("shape", [(3, 4), [3, 4], (5,)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shape_and_dtype(make, shape, dtype):
    drawn = make()(shape, dtype)
    assert drawn.shape == tuple(shape)
    assert drawn.dtype == dtype


@pytest.mark.parametrize("make", MAKERS)
def test_one_seed_fixes_the_numbers_and_draws_differ(make):
    ol.seed(5)
    first, second = make()((4, 3)), make()((4, 3))
    ol.seed(5)
    again = make()((4, 3))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    ol.seed(6)
    assert not np.array_equal(first, make()((4, 3)))


def test_constant_and_assign():
    assert I.Constant(2.5)((2, 3)).tolist() == [[2.5] * 3] * 2
    assert I.Assign([[1, 2], [3, 4]])((2, 2)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(ValueError, match=r"shape \(2,\) cannot start a parameter of \(3,\)"):
        I.Assign([1.0, 2.0])((3,))


def test_a_parameter_does_not_share_memory_with_an_assigned_array():
    start = np.array([[1.0, 2.0]], np.float32)
    layer = ol.nn.Linear(1, 2, weight_initializer=I.Assign(start))
    start[...] = 9.0
    assert layer.weight.numpy().tolist() == [[1.0, 2.0]]


def test_linear_starts_with_xavier_weights_and_no_bias():
    ol.seed(4)
    layer = ol.nn.Linear(200, 300)
    bound = math.sqrt(6 / 500)
    weight = layer.weight.numpy()
    assert 0.99 * bound < np.abs(weight).max() <= np.float32(bound)
    assert weight.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    assert not layer.bias.numpy().any()


def test_linear_takes_other_initializers():
    layer = ol.nn.Linear(
        2, 3, weight_initializer=I.Constant(1.5), bias_initializer=I.Constant(-1.0)
    )
    assert layer.weight.numpy().tolist() == [[1.5] * 3] * 2
    assert layer.bias.numpy().tolist() == [-1.0] * 3


def test_one_seed_fixes_a_model():
    def weights(seed):
        ol.seed(seed)
        model = ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.Linear(4, 2))
        return [p.numpy() for p in model.parameters()]

    for one, other in zip(weights(1), weights(1), strict=True):
        assert np.array_equal(one, other)
    assert not np.array_equal(weights(1)[0], weights(2)[0])


def test_an_initializer_of_ones_own():
    class Ramp(I.Initializer):
        def draw(self, shape):
            return np.arange(np.prod(shape), dtype=float).reshape(shape)

    layer = ol.nn.Linear(2, 2, weight_initializer=Ramp())
    assert layer.weight.numpy().tolist() == [[0.0, 1.0], [2.0, 3.0]]
    with pytest.raises(NotImplementedError, match=r"has no draw\(shape\) method"):
        I.Initializer()((2,))
