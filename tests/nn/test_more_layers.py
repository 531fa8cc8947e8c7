"""Layers that hold settings, shapes, lookup, dropout of channels, and the error function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import optlab as ol

nn, F = ol.nn, ol.nn.functional


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).normal(0.0, 2.0, shape)


#: A layer, and the function that it must equal.
SETTINGS: list[Any] = [
    (nn.CELU(0.5), lambda x: F.celu(x, 0.5)),
    (nn.ELU(0.5), lambda x: F.elu(x, 0.5)),
    (nn.GELU(True), lambda x: F.gelu(x, True)),
    (nn.GLU(0), lambda x: F.glu(x, 0)),
    (nn.Hardshrink(0.7), lambda x: F.hardshrink(x, 0.7)),
    (nn.Hardsigmoid(), F.hardsigmoid),
    (nn.Hardswish(), F.hardswish),
    (nn.Hardtanh(-0.5, 0.7), lambda x: F.hardtanh(x, -0.5, 0.7)),
    (nn.LeakyReLU(0.2), lambda x: F.leaky_relu(x, 0.2)),
    (nn.LogSigmoid(), F.log_sigmoid),
    (nn.LogSoftmax(0), lambda x: F.log_softmax(x, 0)),
    (nn.Maxout(2, 0), lambda x: F.maxout(x, 2, 0)),
    (nn.Mish(), F.mish),
    (nn.PReLU(init=0.1), lambda x: F.prelu(x, ol.to_tensor([0.1]))),
    (nn.ReLU(), F.relu),
    (nn.ReLU6(), F.relu6),
    (nn.SELU(1.5, 0.5), lambda x: F.selu(x, 1.5, 0.5)),
    (nn.Sigmoid(), F.sigmoid),
    (nn.Silu(), F.silu),
    (nn.Softmax(0), lambda x: F.softmax(x, 0)),
    (nn.Softplus(2.0, 3.0), lambda x: F.softplus(x, 2.0, 3.0)),
    (nn.Softshrink(0.7), lambda x: F.softshrink(x, 0.7)),
    (nn.Softsign(), F.softsign),
    (nn.Swish(), F.swish),
    (nn.Tanh(), F.tanh),
    (nn.Tanhshrink(), F.tanhshrink),
    (nn.ThresholdedReLU(0.5, -1.0), lambda x: F.thresholded_relu(x, 0.5, -1.0)),
    (nn.Identity(3, any=4), lambda x: x),
]
LABELS = np.array([1, 0, 2, 2])
Y = np.sign(numbers(4, 3))
LOSSES: list[Any] = [
    (nn.CrossEntropyLoss(ol.to_tensor([1.0, 2.0, 3.0]), 2, "sum", label_smoothing=0.1),
     lambda x: F.cross_entropy(x, LABELS, [1.0, 2.0, 3.0], 2, "sum", label_smoothing=0.1), LABELS),
    (nn.NLLLoss(None, 2, "none"), lambda x: F.nll_loss(x, LABELS, None, 2, "none"), LABELS),
    (nn.MSELoss("sum"), lambda x: F.mse_loss(x, Y, "sum"), Y),
    (nn.L1Loss("sum"), lambda x: F.l1_loss(x, Y, "sum"), Y),
    (nn.SmoothL1Loss("sum", 0.5, False), lambda x: F.smooth_l1_loss(x, Y, "sum", 0.5, False), Y),
    (nn.HuberLoss("sum", 0.5), lambda x: F.huber_loss(x, Y, "sum", 0.5), Y),
    (nn.BCEWithLogitsLoss(np.abs(Y) * 2, "sum", np.ones(3) * 3),
     lambda x: F.binary_cross_entropy_with_logits(x, Y, 2 * np.abs(Y), "sum", np.ones(3) * 3), Y),
    (nn.KLDivLoss("batchmean", True), lambda x: F.kl_div(x, Y, "batchmean", True), Y),
    (nn.HingeEmbeddingLoss(0.5, "sum"), lambda x: F.hinge_embedding_loss(x, Y, 0.5, "sum"), Y),
    (nn.SoftMarginLoss("sum"), lambda x: F.soft_margin_loss(x, Y, "sum"), Y),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "f"), SETTINGS, ids=lambda x: type(x).__name__)
def test_a_layer_hands_its_settings_on(layer: Any, f: Any) -> None:
    x = ol.to_tensor(numbers(4, 3).astype("float32"))
    assert np.array_equal(layer(x).detach().numpy(), f(x).numpy())


@pytest.mark.parametrize(("layer", "f", "label"), LOSSES, ids=lambda x: type(x).__name__)
def test_a_loss_hands_its_settings_on(layer: Any, f: Any, label: Any) -> None:
    x = ol.to_tensor(numbers(4, 3).astype("float32"))
    assert np.array_equal(layer(x, label).numpy(), f(x).numpy())
    with pytest.raises(ValueError, match="reduction must be"):
        type(layer)(reduction="average")


def test_losses_of_other_inputs() -> None:
    p = ol.to_tensor([0.25, 0.5])
    assert nn.BCELoss([2.0, 0.0], "sum")(p, [1.0, 1.0]).item() == pytest.approx(2 * math.log(4))
    ranking = nn.MarginRankingLoss(1.0, "none")
    assert ranking(ol.to_tensor([1.0, 3.0]), ol.to_tensor([2.0, 0.0]), 1.0).tolist() == [2.0, 0.0]


def test_repr_shows_what_was_set() -> None:
    assert repr(nn.LeakyReLU()) == "LeakyReLU()"
    assert repr(nn.LeakyReLU(0.2, name="bend")) == "LeakyReLU(negative_slope=0.2, name='bend')"
    assert repr(nn.Maxout(2)) == "Maxout(groups=2)"
    assert repr(nn.MSELoss("sum")) == "MSELoss(reduction='sum')"
    assert repr(nn.Embedding(5, 2, 0)) == "Embedding(5, 2, padding_idx=0)"


@pytest.mark.parametrize("given", [(), (1, -1), (0, 1), (-2, -1), (2, 2)])
def test_flatten(given: Any) -> None:
    x = numbers(2, 3, 4)
    expected = {(): (2, 12), (1, -1): (2, 12), (0, 1): (6, 4), (-2, -1): (2, 12), (2, 2): (2, 3, 4)}
    y = nn.Flatten(*given)(ol.to_tensor(x))
    assert y.shape == expected[given]
    assert np.array_equal(y.numpy().ravel(), x.ravel())


def test_flatten_and_unflatten_say_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="no such axes"):
        nn.Flatten(1, 3)(ol.ones([2, 3]))
    assert nn.Unflatten(-1, [2, -1])(ol.ones([3, 8])).shape == (3, 2, 4)


class TestEmbedding:
    def test_lookup_and_gradient(self) -> None:
        layer = nn.Embedding(5, 2, padding_idx=-4)
        assert layer.weight[1].tolist() == [0.0, 0.0]
        y = layer([[0, 1], [3, 3]])
        assert y.shape == (2, 2, 2)
        y.sum().backward()
        assert layer.weight.grad[:, 0].tolist() == [1.0, 0.0, 0.0, 2.0, 0.0]

    def test_a_sparse_gradient(self) -> None:
        layer = nn.Embedding(5, 2, sparse=True)
        layer([0, 3]).sum().backward()
        assert "RowSparse" in repr(layer.weight.grad)

    def test_bad_input(self) -> None:
        with pytest.raises(ValueError, match="num_embeddings must be a whole number"):
            nn.Embedding(0, 2)
        with pytest.raises(ValueError, match="padding_idx must be one of the 5 rows"):
            nn.Embedding(5, 2, padding_idx=5)


class TestDropout:
    def test_only_while_training(self) -> None:
        ol.seed(1)
        x = ol.ones([1000])
        layer = nn.Dropout(0.25)
        assert np.mean(layer(x).numpy() == 0) == pytest.approx(0.25, abs=0.06)
        layer.eval()
        assert layer(x).tolist() == x.tolist()
        lower = nn.Dropout(0.25, mode="downscale_in_infer")
        lower.eval()
        assert lower(ol.ones([1])).tolist() == [0.75]

    @pytest.mark.parametrize(
        ("make", "shape"), [(nn.Dropout2D, (8, 9, 2, 3)), (nn.Dropout3D, (8, 9, 2, 3, 2))]
    )
    def test_whole_channels(self, make: Any, shape: Any) -> None:
        ol.seed(1)
        y = make(0.5)(ol.ones(shape)).numpy().reshape(72, -1)
        assert np.array_equal(y.min(1), y.max(1))
        assert set(np.unique(y)) == {0.0, 2.0}
        with pytest.raises(ValueError, match=f"takes x of {len(shape)} axes"):
            make(0.5)(ol.ones([2, 3]))
        last = make(0.5, data_format="NHWC" if len(shape) == 4 else "NDHWC")
        z = last(ol.ones([8, *shape[2:], 9])).numpy().reshape(8, -1, 9)
        assert np.array_equal(z.min(1), z.max(1))

    def test_alpha_dropout_keeps_mean_and_variance(self) -> None:
        ol.seed(1)
        x = ol.randn([100_000])
        y = nn.AlphaDropout(0.3)(x).numpy()
        assert abs(y.mean()) < 0.02
        assert y.var() == pytest.approx(1.0, abs=0.03)
        assert len(np.unique(y[y == y.min()])) == 1
        layer = nn.AlphaDropout(0.3)
        layer.eval()
        assert layer(x) is x
        with pytest.raises(ValueError, match="p from 0 to below 1"):
            F.alpha_dropout(x, 1.0)

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    @pytest.mark.parametrize("make", [nn.AlphaDropout, nn.Dropout])
    def test_the_type_of_numbers_stays(self, make: Any, dtype: str) -> None:
        if dtype == "bfloat16":
            pytest.importorskip("ml_dtypes")
        x = ol.to_tensor(np.linspace(-1, 1, 8), dtype=dtype, requires_grad=True)
        y = make()(x)
        y.sum().backward()
        assert str(y.dtype) == str(x.grad.dtype) == dtype

    @pytest.mark.parametrize("p", [-0.1, 1.5])
    def test_bad_rates(self, p: float) -> None:
        with pytest.raises(ValueError, match="from 0"):
            nn.Dropout(p)


class TestErf:
    def test_of_float64_to_the_last_digits(self) -> None:
        x = np.concatenate([np.linspace(-7, 7, 40_001), np.geomspace(1e-300, 1, 500)])
        expected = np.array([math.erf(value) for value in x])
        got = F.erf(ol.to_tensor(x)).numpy()
        np.testing.assert_allclose(got, expected, rtol=2e-15, atol=0)

    def test_of_float32(self) -> None:
        x = np.linspace(-6, 6, 40_001).astype("float32")
        expected = np.array([math.erf(value) for value in x.astype(float)])
        np.testing.assert_allclose(F.erf(ol.to_tensor(x)).numpy(), expected, rtol=5e-7, atol=1e-12)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_at_the_ends(self, dtype: str) -> None:
        x = np.array([-np.inf, -1e4, -0.0, 0.0, 1e4, np.inf, np.nan], dtype)
        got = F.erf(ol.to_tensor(x)).numpy()
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, np.array([-1, -1, -0.0, 0.0, 1, 1, np.nan], dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", "relu relu6 hardswish leaky_relu elu selu celu softplus log_sigmoid silu mish gelu "
    "sigmoid softsign tanhshrink hardshrink softshrink".split(),
)  # fmt: skip
def test_far_out_everything_is_finite_and_nan_stays(name: str, dtype: str) -> None:
    f = getattr(F, name)
    big = np.array([-1e4, -500.0, -90.0, -1e-30, 0.0, 1e-30, 90.0, 500.0, 1e4], dtype)
    for x in (big, np.tile(big, 2000)):  # large arrays take separate code paths
        t = ol.to_tensor(x, requires_grad=True)
        y = f(t)
        y.backward()
        assert np.isfinite(y.detach().numpy()).all()
        assert np.isfinite(t.grad.numpy()).all()
    assert np.isnan(f(ol.to_tensor(np.array([np.nan], dtype))).numpy()).all()


@pytest.mark.parametrize("name", "relu relu6 hardtanh leaky_relu elu sigmoid gelu".split())
def test_large_arrays_give_what_small_ones_give(name: str) -> None:
    x = numbers(20_000)
    x[:3] = -0.0, 0.0, 1e30
    f = getattr(F, name)
    large, small = ol.to_tensor(x, requires_grad=True), ol.to_tensor(x, requires_grad=True)
    y = f(large)
    z = np.concatenate([f(small[i : i + 100]) for i in range(0, 20_000, 100)])
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-14)
    y.backward()
    z.backward()
    np.testing.assert_allclose(large.grad.numpy(), small.grad.numpy(), rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: F.elu(x, -1.0), "elu takes alpha of at least 0"),
        (lambda x: F.celu(x, 0.0), "celu takes alpha greater than 0"),
        (lambda x: F.selu(x, 1.0), "selu takes scale above 1"),
        (lambda x: F.hardtanh(x, 2.0, 1.0), "min must not exceed max"),
        (lambda x: F.softplus(x, 0.0), "softplus takes beta greater than 0"),
        (lambda x: F.hardshrink(x, -1.0), "threshold of at least 0"),
        (lambda x: F.softshrink(x, -1.0), "threshold of at least 0"),
        (lambda x: F.glu(x), "glu takes an axis of even length"),
        (lambda x: F.glu(x, 3), "got axis=3"),
        (lambda x: F.maxout(x, 2), "cannot be put into groups of 2"),
        (lambda x: F.prelu(x, ol.ones([2])), "give one weight, or one for each"),
        (lambda x: F.normalize(x, axis=2), "got axis=2"),
        (lambda x: F.mse_loss(x, ol.ones([2])), "compares element by element"),
        (lambda x: F.l1_loss(x, ol.ones([2, 1])), r"label of shape \(2, 1\)"),
        (lambda x: F.smooth_l1_loss(x, x, delta=0.0), "delta must be greater than 0"),
        (lambda x: F.binary_cross_entropy(x + 3, x), "probabilities from 0 to 1"),
        (lambda x: F.kl_div(x, x, "average"), "'batchmean', 'sum' or 'none'"),
        (lambda x: F.cross_entropy(x, [0, 5]), "labels must lie in 0 ... 2"),
        (lambda x: F.cross_entropy(x, [0, -5], ignore_index=-5, label_smoothing=2.0), "label_smoo"),
        (lambda x: F.cross_entropy(x, [0, 1], [1.0, 2.0]), "one number for each of the 3 classes"),
        (lambda x: F.cross_entropy(x, x, ignore_index=1, soft_label=True), "ignore_index names a"),
        (lambda x: F.cross_entropy(x, [[0.5, 0.5]], soft_label=True), "compares element by"),
        (lambda x: F.cross_entropy(x, [0, 1], axis=2), "got axis=2"),
        (lambda x: F.nll_loss(x[0], [0]), r"input of shape \[N, C, ...\]"),
        (lambda x: F.bilinear(x, x, ol.ones([2, 3, 4])), r"they must be \[N, in1\]"),
        (lambda x: F.local_response_norm(x, 2), r"x of shape \[N, C, ...\]"),
        (lambda x: F.label_smooth(x, epsilon=2.0), "epsilon from 0 to 1"),
        (lambda x: F.one_hot([3], 3), r"classes must lie in 0 \.\.\. 2"),
    ],
)
def test_what_does_not_fit_is_said(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call(ol.to_tensor(numbers(2, 3)))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: F.silu(x, inplace=True), r"silu\(inplace=True\)"),
        (lambda x: F.relu(x, name="a"), "results of functions have no names"),
        (lambda x: F.cross_entropy(x, x), "write soft_label=True"),
        (lambda x: F.cross_entropy(x, [0, 1], ol.Parameter([1.0] * 3)), "weight.detach()"),
        (lambda x: F.one_hot(x, 3), "one_hot takes integers"),
    ],
)
def test_what_is_not_covered_is_named(call: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call(ol.to_tensor(numbers(2, 3)))


class TestLabels:
    x = numbers(4, 3).astype("float32")

    def test_a_mean_over_rows_that_count(self) -> None:
        loss = F.cross_entropy(self.x, [0, -100, 2, -100])
        alone = F.cross_entropy(self.x[[0, 2]], [0, 2])
        assert loss.item() == pytest.approx(alone.item(), rel=1e-6)

    @pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0]])
    def test_all_rows_ignored(self, weight: Any) -> None:
        x = ol.to_tensor(self.x, requires_grad=True)
        loss = F.cross_entropy(x, [-100] * 4, weight)
        loss.backward()
        assert loss.item() == 0.0
        assert not x.grad.numpy().any()

    def test_an_ignored_row_of_infinities_changes_nothing(self) -> None:
        x = self.x.copy()
        x[1, 0] = -np.inf
        assert np.isfinite(F.cross_entropy(x, [0, -100, 2, 1]).item())

    def test_soft_labels_of_0_at_scores_of_minus_infinity(self) -> None:
        x = np.array([[0.0, -np.inf]], np.float32)
        assert F.cross_entropy(x, [[1.0, 0.0]], soft_label=True).item() == 0.0

    def test_one_hot_and_smoothing(self) -> None:
        hot = F.one_hot([0, 2])
        assert hot.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
        smooth = F.label_smooth(hot, epsilon=0.3)
        np.testing.assert_allclose(smooth.numpy()[0], [0.8, 0.1, 0.1], rtol=1e-6)
        prior = F.label_smooth(hot, [[0.5, 0.5, 0.0]], 0.5)
        np.testing.assert_allclose(prior.numpy()[1], [0.25, 0.25, 0.5], rtol=1e-6)
        soft = F.cross_entropy(self.x[:2], smooth, soft_label=True)
        hard = F.cross_entropy(self.x[:2], [0, 2], label_smoothing=0.3)
        assert soft.item() == pytest.approx(hard.item(), rel=1e-6)

    def test_paddle_s_weights_of_smoothed_labels(self) -> None:
        w = np.array([1.0, 2.0, 4.0], np.float32)
        labels = np.array([0, 1, 2, 1])
        hard = F.cross_entropy(self.x, labels, w, label_smoothing=0.3)
        q = F.label_smooth(F.one_hot(labels, 3), epsilon=0.3).numpy()
        log_p = F.log_softmax(self.x).numpy()
        rows = -(q * log_p).sum(1) * (q @ w)
        assert hard.item() == pytest.approx(rows.sum() / (q @ w).sum(), rel=1e-6)
        soft = F.cross_entropy(self.x, q, w, soft_label=True)
        assert soft.item() == pytest.approx(hard.item(), rel=1e-6)
