"""Softmax, cross entropy, and every derivative rule of optlab.nn.functional to second order."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import optlab as ol
from optlab.autograd.operation import Operation

F = ol.nn.functional


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(11).standard_normal(shape)


LABELS = np.array([2, 0, 1, 2])

#: Every rule of the module, with the calls that check it.
CHECKS = {
    "RELU": [(F.relu, [numbers(3, 4)]), (F.relu, [numbers(2, 3, 2)])],
    "TANH": [(F.tanh, [numbers(3, 4)]), (F.tanh, [numbers()])],
    "AFFINE": [
        (F.linear, [numbers(4), numbers(4, 2), numbers(2)]),
        (F.linear, [numbers(3, 4), numbers(4, 2), numbers(2)]),
        (F.linear, [numbers(1, 4), numbers(4, 1), numbers(1)]),
    ],
    "STACKED_AFFINE": [
        (F.linear, [numbers(2, 3, 4), numbers(4, 2), numbers(2)]),
        (F.linear, [numbers(2, 1, 3, 4), numbers(4, 1), numbers(1)]),
    ],
    "MATMUL": [
        (F.linear, [numbers(4), numbers(4, 2)]),
        (F.linear, [numbers(3, 4), numbers(4, 2)]),
        (F.linear, [numbers(2, 3, 4), numbers(4, 2)]),
    ],
    "LINEAR": [
        (F.linear, [numbers(2, 3, 4), numbers(4, 5)]),
        (F.linear, [numbers(2, 1, 3, 4), numbers(4, 1)]),
    ],
    "TAKE_ROWS": [
        (lambda w: F.embedding([[0, 2], [2, 2]], w), [numbers(3, 4)]),
        (lambda w: F.embedding([0, 2, 2], w, sparse=True) ** 2, [numbers(3, 4)]),
    ],
    "MULTIPLY": [
        (lambda w: F.embedding([[0, 2], [2, 1]], w, padding_idx=2), [numbers(3, 4)]),
        (lambda w: F.embedding([0, 2, 1], w, padding_idx=-3, sparse=True), [numbers(3, 4)]),
    ],
    "LOG_SOFTMAX": [
        (F.log_softmax, [numbers(5)]),
        (F.log_softmax, [numbers(3, 4)]),
        (lambda x: F.log_softmax(x, axis=0), [numbers(3, 4)]),
        (lambda x: F.log_softmax(x, axis=1), [numbers(2, 3, 4)]),
        (F.softmax, [numbers(3, 4)]),
        (lambda x: F.softmax(x, 0), [numbers(3, 4)]),
    ],
    "PICKED_SUM": [
        (lambda x: F.cross_entropy(x, LABELS), [numbers(4, 3)]),
        (lambda x: F.cross_entropy(x, LABELS[:, None], reduction="sum"), [numbers(4, 3)]),
        (lambda x: F.cross_entropy(x, LABELS, reduction="none"), [numbers(4, 3)]),
        (lambda x: F.cross_entropy(x, LABELS[:1]), [numbers(1, 3)]),
        (lambda x: F.cross_entropy(x, LABELS * 0), [numbers(4, 1)]),
    ],
}


def test_no_rule_of_the_file_goes_unchecked():
    rules = {
        name
        for name, value in vars(import_module("optlab.nn.functional.affine")).items()
        if isinstance(value, Operation)
    }
    assert rules <= set(CHECKS)


@pytest.mark.parametrize(
    ("function", "points"),
    [
        pytest.param(*check, id=f"{name} {i}")
        for name, checks in CHECKS.items()
        for i, check in enumerate(checks)
    ],
)
def test_derivatives_to_second_order(function, points):
    def on_tensors(*args):
        return function(*[x if isinstance(x, ol.Tensor) else ol.to_tensor(x) for x in args])

    ol.check_grad(on_tensors, *points, order=2)


def test_check_grad_reaches_a_whole_network():
    labels = np.array([0, 1, 1])

    def loss(x, w1, b1, w2, b2):
        hidden = F.tanh(F.linear(x, w1, b1))
        return F.cross_entropy(F.linear(hidden, w2, b2), labels)

    def on_tensors(*args):
        return loss(*[x if isinstance(x, ol.Tensor) else ol.to_tensor(x) for x in args])

    ol.check_grad(
        on_tensors, numbers(3, 2), numbers(2, 4), numbers(4), numbers(4, 2), numbers(2), order=2
    )


class TestSoftmax:
    @given(
        arrays.arrays(
            np.float64, arrays.array_shapes(min_dims=1, max_dims=3), elements=st.floats(-1e4, 1e4)
        ),
        st.data(),
    )
    def test_is_positive_adds_up_to_one_and_is_the_exponential_of_log_softmax(self, x, data):
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        y = F.softmax(ol.to_tensor(x), axis).numpy()
        assert np.all(y >= 0)
        np.testing.assert_allclose(y.sum(axis), 1.0, rtol=1e-12)
        np.testing.assert_allclose(
            np.exp(F.log_softmax(ol.to_tensor(x), axis).numpy()), y, rtol=1e-12
        )

    @given(arrays.arrays(np.float64, (3, 4), elements=st.floats(-50, 50)), st.floats(-1e3, 1e3))
    def test_does_not_feel_a_shift(self, x, shift):
        np.testing.assert_allclose(
            F.softmax(ol.to_tensor(x + shift)).numpy(),
            F.softmax(ol.to_tensor(x)).numpy(),
            rtol=1e-9,
        )

    def test_large_scores(self):
        x = ol.to_tensor([[1e30, 0.0, -1e30], [-3e38, -3e38, -3e38]], requires_grad=True)
        with np.errstate(all="ignore"):
            y = F.softmax(x)
            F.log_softmax(x)[0, 0].backward()
        np.testing.assert_allclose(y.detach().numpy(), [[1, 0, 0], [1 / 3] * 3], rtol=1e-6)
        assert np.all(np.isfinite(x.grad.numpy()))

    def test_a_score_of_minus_infinity_has_no_chance(self):
        y = F.softmax(ol.to_tensor([0.0, float("-inf"), 0.0]))
        assert y.tolist() == [0.5, 0.0, 0.5]

    @pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
    def test_integer_scores(self, dtype):
        x = np.array([1, 2, 3], dtype)
        expected = np.exp([1.0, 2, 3]) / np.exp([1.0, 2, 3]).sum()
        np.testing.assert_allclose(F.softmax(ol.to_tensor(x)).numpy(), expected, rtol=1e-6)


def by_hand(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the negative log-probability of each label's class, from the definition."""
    odds = np.exp(x.astype(np.float64))
    return -np.log(odds[np.arange(len(x)), labels] / odds.sum(1))


class TestCrossEntropy:
    x = numbers(4, 3).astype("float32")

    @pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8", ">i4"])
    @pytest.mark.parametrize("column", [False, True])
    @pytest.mark.parametrize("kind", [np.asarray, ol.to_tensor, np.ndarray.tolist])
    def test_labels_in_every_form(self, dtype, column, kind):
        labels = LABELS.astype(dtype)
        given_labels = kind(labels[:, None] if column else labels)
        loss = ol.nn.CrossEntropyLoss()(ol.to_tensor(self.x), given_labels)
        assert loss.shape == ()
        assert loss.dtype == np.float32
        assert loss.item() == pytest.approx(by_hand(self.x, LABELS).mean(), rel=1e-6)

    @pytest.mark.parametrize(
        ("reduction", "reduced"), [("mean", np.mean), ("sum", np.sum), ("none", np.asarray)]
    )
    def test_reductions(self, reduction, reduced):
        loss = ol.nn.CrossEntropyLoss(reduction=reduction)(ol.to_tensor(self.x), LABELS)
        expected = reduced(by_hand(self.x, LABELS))
        assert loss.shape == expected.shape
        np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-5)

    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_the_gradient_is_softmax_minus_one_hot(self, reduction):
        x = ol.to_tensor(self.x.astype("float64"), requires_grad=True)
        F.cross_entropy(x, LABELS, reduction=reduction).backward()
        odds = np.exp(self.x.astype("float64"))
        expected = odds / odds.sum(1, keepdims=True) - np.eye(3)[LABELS]
        np.testing.assert_allclose(
            x.grad.numpy(), expected / (4 if reduction == "mean" else 1), rtol=1e-6, atol=1e-9
        )

    def test_a_confident_mistake_is_finite(self):
        x = ol.to_tensor([[1e4, -1e4]], requires_grad=True)
        loss = F.cross_entropy(x, [1])
        loss.backward()
        assert loss.item() == pytest.approx(2e4)
        assert x.grad.tolist() == [[1.0, -1.0]]

    def test_scores_of_plain_numpy(self):
        assert F.cross_entropy(self.x, LABELS).item() == pytest.approx(
            by_hand(self.x, LABELS).mean(), rel=1e-6
        )

    def test_integer_scores(self):
        x = np.array([[1, 2, 0]])
        loss = F.cross_entropy(ol.to_tensor(x), [1])
        assert loss.item() == pytest.approx(by_hand(x, np.array([1]))[0], rel=1e-6)

    def test_nan_scores_pass(self):
        assert math.isnan(F.cross_entropy(ol.to_tensor([[float("nan"), 1.0]]), [0]).item())

    @pytest.mark.parametrize("labels", [[0, 3, 1, 1], [0, -1, 1, 1]])
    @pytest.mark.parametrize("dtype", ["int64", "int8", ">i4"])
    def test_a_label_outside_the_classes(self, labels, dtype):
        with pytest.raises(ValueError, match=r"labels must lie in 0 \.\.\. 2 for 3 classes"):
            F.cross_entropy(self.x, np.array(labels, dtype))

    @pytest.mark.parametrize("shape", [(3,), (5,), (4, 2), (4, 1, 1), (1, 4)])
    def test_one_label_a_row(self, shape):
        with pytest.raises(ValueError, match="one label for each of the 4 rows") as caught:
            F.cross_entropy(self.x, np.zeros(shape, int))
        assert str(shape) in str(caught.value)

    @pytest.mark.parametrize("labels", [np.zeros(4), np.zeros(4, bool), ["a"] * 4, [0.0] * 4])
    def test_labels_are_integers(self, labels):
        with pytest.raises(TypeError, match="takes integer labels"):
            F.cross_entropy(self.x, labels)

    @pytest.mark.parametrize("label", [1, None])
    def test_a_label_that_is_no_array_is_named(self, label):
        with pytest.raises((TypeError, ValueError), match="label"):
            F.cross_entropy(self.x[:1], label)

    @pytest.mark.parametrize(
        ("shape", "said"),
        [((3,), "one label for each of the 1 rows"), ((), "takes scores with an axis of classes"),
         ((2, 3, 4), "one label for each of the 6 rows"), ((0, 3), "got no rows")],
    )  # fmt: skip
    def test_scores_are_rows_of_classes(self, shape, said):
        with pytest.raises(ValueError, match=said):
            F.cross_entropy(np.zeros(shape, "float32"), LABELS)

    def test_unknown_reduction(self):
        for call in (
            lambda: ol.nn.CrossEntropyLoss(reduction="average"),
            lambda: F.cross_entropy(self.x, LABELS, reduction="average"),
        ):
            with pytest.raises(ValueError, match="'mean', 'sum' or 'none'; got 'average'"):
                call()


@pytest.mark.parametrize("threshold", [0.5, 1.0, 4.0, 20.0])
def test_softplus_has_the_slope_of_the_side_of_the_threshold_that_its_input_is_on(
    threshold: float,
) -> None:
    """Just below a low threshold the output is already above it, and the curve is still bent."""
    beta = 2.0
    edge = threshold / beta
    x = ol.to_tensor(edge + np.array([-2.0, -0.2, -0.01, 0.01, 1.0]), requires_grad=True)
    F.softplus(x, beta, threshold).sum().backward()
    bent = 1 / (1 + np.exp(-beta * x.numpy()))
    expected = np.where(x.numpy() > edge, 1.0, bent)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-8)
    ol.check_grad(lambda t: F.softplus(t, beta, threshold), x.numpy())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("power", [1, 2])
def test_gradients_of_a_shared_table_for_each_sentence(sparse, padding, power):
    rows = np.array([[1, 0], [2, 2], [3, 1]])
    table = ol.to_tensor(numbers(4, 2), requires_grad=True)

    def loss(weight, sentence):
        return (F.embedding(sentence, weight, padding, sparse) ** power).sum()

    alone = [np.asarray(ol.grad(loss)(table.detach(), sentence)) for sentence in rows]
    together = ol.vmap(ol.grad(loss), in_axes=(None, 0))(table.detach(), ol.to_tensor(rows))
    np.testing.assert_array_equal(together, np.stack(alone))
    ol.vmap(lambda sentence: loss(table, sentence))(ol.to_tensor(rows)).sum().backward()
    np.testing.assert_allclose(table.grad.numpy(), np.sum(alone, axis=0), rtol=1e-12)


def test_an_embedding_layer_looks_at_one_sentence_at_a_time():
    layer = ol.nn.Embedding(5, 3, sparse=True)
    rows = ol.to_tensor([[1, 0], [4, 4]])
    np.testing.assert_array_equal(ol.vmap(layer)(rows).detach(), layer(rows).detach())


@pytest.mark.parametrize("options", [
    {}, {"weight": [1.0, 2.0, 3.0]}, {"label_smoothing": 0.1}, {"use_softmax": False},
])  # fmt: skip
@pytest.mark.parametrize("places", [(), (2,)])
def test_losses_of_an_empty_batch(options, places):
    labels = np.zeros((0, *places), int)
    x = ol.to_tensor(np.zeros((0, *places, 3), "float32"), requires_grad=True)
    whole = F.cross_entropy(x, labels, reduction="sum", **options)
    assert (whole.item(), whole.dtype) == (0.0, "float32")
    whole.backward()
    assert x.grad.shape == x.shape
    each = F.cross_entropy(x, labels, reduction="none", **options)
    assert (each.shape, each.dtype) == (labels.shape, "float32")
    log_probability = np.zeros((0, 3, *places), "float32")
    assert F.nll_loss(log_probability, labels, reduction="sum").item() == 0.0
    assert F.nll_loss(log_probability, labels, reduction="none").shape == labels.shape
    with pytest.raises(ValueError, match=r"no mean loss.*reduction='sum'"):
        F.cross_entropy(x, labels, **options)


def test_labels_of_a_cross_entropy_that_were_meant_otherwise():
    with pytest.raises(ValueError, match="classes are on axis 1 of the scores, write axis=1"):
        F.cross_entropy(np.zeros((2, 3, 4, 4)), np.zeros((2, 4, 4), int))
    with pytest.raises(ValueError, match=r"soft_label=True .* label\.argmax\(axis\)"):
        F.cross_entropy(np.zeros((2, 3)), np.array([[0, 1, 0], [1, 0, 0]]))
