"""Initializers: statistics, shapes, and reproducibility by a seed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optlab as ol

I = ol.nn.initializer  # noqa: E741 - the module, as the documents write it

SHAPE = (300, 500)

#: Name, initializer, mean, standard deviation and bounds for a weight of shape [300, 500].
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


@pytest.mark.parametrize(
    ("shape", "fans"),
    [((), (1, 1)), ((6,), (6, 6)), ((3, 5), (3, 5)), ((8, 4, 3, 2), (24, 48))],
)
def test_fans_of_every_shape(shape, fans):
    many = (*shape[:1], *shape[1:])
    ol.seed(1)
    bound = math.sqrt(6 / sum(fans))
    drawn = np.stack([I.XavierUniform()(many, "float64") for _ in range(400)])
    assert 0.97 * bound < np.abs(drawn).max() <= bound
    deviation = math.sqrt(2 / fans[0])
    drawn = np.stack([I.KaimingNormal()(many, "float64") for _ in range(3000)])
    assert drawn.std() == pytest.approx(deviation, rel=0.1)


def test_fans_and_gains_that_are_given():
    ol.seed(1)
    drawn = I.XavierUniform(fan_in=3, fan_out=9, gain=2.0)((100, 100), "float64")
    assert 0.99 * 2 * math.sqrt(0.5) < np.abs(drawn).max() <= 2 * math.sqrt(0.5)
    drawn = I.KaimingUniform(fan_in=5)((100, 100), "float64")
    assert 0.99 * math.sqrt(6 / 5) < np.abs(drawn).max() <= math.sqrt(6 / 5)
    drawn = I.KaimingNormal(mode="fan_out")((20, 500), "float64")
    assert drawn.std() == pytest.approx(math.sqrt(2 / 500), rel=0.05)
    drawn = I.KaimingNormal(negative_slope=1.0, nonlinearity="leaky_relu")((500, 20), "float64")
    assert drawn.std() == pytest.approx(math.sqrt(1 / 500), rel=0.05)
    with pytest.raises(ValueError, match="mode must be 'fan_in' or 'fan_out'"):
        I.KaimingNormal(mode="both")


@pytest.mark.parametrize(
    ("name", "gain"),
    [("linear", 1), ("conv2d", 1), ("conv_transpose3d", 1), ("conv1d_transpose", 1), ("sigmoid", 1),
     ("tanh", 5 / 3), ("relu", math.sqrt(2)), ("selu", 0.75),
     ("leaky_relu", math.sqrt(2 / 1.0001))],
)  # fmt: skip
def test_gains(name, gain):
    assert I.calculate_gain(name) == pytest.approx(gain)


def test_the_gain_of_a_given_slope_and_of_nothing_known():
    assert I.calculate_gain("leaky_relu", 0.5) == pytest.approx(math.sqrt(1.6))
    with pytest.raises(ValueError, match="got 'rulu'"):
        I.calculate_gain("rulu")


@pytest.mark.parametrize(
    ("low", "high"), [(-2.0, 2.0), (-0.1, 0.1), (1.0, 9.0), (4.0, math.inf), (-8.0, -5.0)]
)
def test_truncated_normal(low, high):
    ol.seed(2)
    drawn = I.TruncatedNormal(0.0, 1.0, low, high)((20_000,), "float64")
    assert low <= drawn.min() <= drawn.max() <= high
    grid = np.linspace(low, min(high, max(low, 0) + 9), 100_001)
    density = np.exp(-(grid**2) / 2)
    mean = (grid * density).sum() / density.sum()
    deviation = math.sqrt(((grid - mean) ** 2 * density).sum() / density.sum())
    assert abs(drawn.mean() - mean) < 5 * deviation / math.sqrt(20_000)
    assert drawn.std() == pytest.approx(deviation, rel=0.03)


def test_truncated_normal_moves_and_scales():
    ol.seed(2)
    drawn = I.TruncatedNormal(5.0, 0.1, 4.9, 5.1)((1000,))
    assert 4.9 <= drawn.min() < 4.91
    assert 5.09 < drawn.max() <= np.float32(5.1)
    with pytest.raises(ValueError, match="a < b and std > 0"):
        I.TruncatedNormal(a=1.0, b=1.0)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (5, 5), (3, 2, 2, 2), (8, 1, 2)])
def test_orthogonal(shape):
    ol.seed(3)
    q = I.Orthogonal(2.0)(shape, "float64").reshape(shape[0], -1)
    smaller = min(q.shape)
    product = q @ q.T if q.shape[0] == smaller else q.T @ q
    np.testing.assert_allclose(product, 4 * np.eye(smaller), atol=1e-12)
    with pytest.raises(ValueError, match="two axes or more"):
        I.Orthogonal()((3,))


def test_orthogonal_prefers_no_direction():
    ol.seed(3)
    corners = [I.Orthogonal()((3, 3), "float64")[0, 0] for _ in range(400)]
    assert abs(np.mean(corners)) < 0.15


@pytest.mark.parametrize("shape", [(4, 4, 3), (4, 2, 3, 3), (6, 3, 1, 5, 3)])
def test_dirac(shape):
    groups = shape[0] // shape[1]
    weight = I.Dirac(groups)(shape)
    middle = tuple(length // 2 for length in shape[2:])
    assert weight.sum() == shape[0]
    for i in range(shape[0]):
        assert weight[(i, i % shape[1], *middle)] == 1
    with pytest.raises(ValueError, match="weights of convolutions"):
        I.Dirac()((3, 3))


def test_bilinear():
    weight = I.Bilinear()((2, 1, 4, 4))
    assert np.array_equal(weight[0], weight[1])
    np.testing.assert_allclose(weight[0, 0], weight[0, 0].T)
    np.testing.assert_allclose(weight[0, 0].reshape(2, 2, 2, 2).sum((0, 2)), 1.0)
    with pytest.raises(ValueError, match=r"\[out, in, k, k\]"):
        I.Bilinear()((2, 1, 4, 3))
