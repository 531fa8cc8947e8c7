"""Losses of probabilities, pairs and triplets: Paddle's numbers, layers, and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import optlab as ol

F, nn = ol.nn.functional, ol.nn

X = np.array([[0.2, 0.5, -0.3], [1.0, 0.1, 0.4]])
P = np.exp(X) / np.exp(X).sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: F.multi_margin_loss(X, [0, 2], 2, weight=[2, 1, 3], reduction="none"),
            [1.29333331, 3.04999997],
        ),
        (lambda: F.dice_loss(P, [[0], [2]]), 0.6905427),
        (lambda: F.npair_loss(X, X * 2 + 1, [0, 0], l2_reg=0.01), 0.9675865),
        (lambda: F.npair_loss(X, X * 2 + 1, [0, 1], l2_reg=0.01), 0.3225865),
        (
            lambda: F.sigmoid_focal_loss(X, X > 0.3, normalizer=[2.0], alpha=0.3, gamma=1.5),
            0.3094716642759938,
        ),
        (lambda: F.log_loss(P[:, :1], [[1.0], [0.0]]), [[1.0836732], [0.71602535]]),
        (lambda: F.gaussian_nll_loss(X, X * 0, X * 0 + 1e-8, full=True), 129160.67784992092),
        (lambda: F.swiglu(X, X)[1], [0.73105858, 0.00524979, 0.09579003]),
        (lambda: F.lp_pool1d(np.arange(6.0)[None, None], 2, 2)[0, 0], [1, 3.60555124, 6.40312433]),
        (
            lambda: F.lp_pool1d(np.arange(5.0)[None, None], 3.0, 2, padding=1),
            [[[0.0, 2.08008385, 4.49794149]]],
        ),
        (
            lambda: F.cosine_embedding_loss(X, X[::-1].copy(), [1, -1], 0.1, reduction="none"),
            [0.80503412, 0.09496588],
        ),
        (lambda: F.sequence_mask([1, 3], 4), [[1, 0, 0, 0], [1, 1, 1, 0]]),
        (lambda: F.channel_shuffle(np.arange(6.0).reshape(1, 6, 1, 1), 3).ravel(),
         [0, 2, 4, 1, 3, 5]),
    ],
)  # fmt: skip
def test_paddle_says_the_same(call: Any, expected: Any) -> None:
    np.testing.assert_allclose(call().numpy(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("layer", "inputs", "function"),
    [
        (nn.CosineEmbeddingLoss(0.1), (X, X[::-1], [1, -1]), F.cosine_embedding_loss),
        (nn.TripletMarginLoss(swap=True), (X, X + 1, X - 1), F.triplet_margin_loss),
        (nn.MultiMarginLoss(2), (X, [0, 2]), F.multi_margin_loss),
        (nn.MultiLabelSoftMarginLoss(), (X, X > 0), F.multi_label_soft_margin_loss),
        (nn.PoissonNLLLoss(full=True), (X, X + 2), F.poisson_nll_loss),
        (nn.GaussianNLLLoss(full=True), (X, X + 1, np.ones((2, 1))), F.gaussian_nll_loss),
    ],
)
def test_layers_call_their_functions(layer: Any, inputs: Any, function: Any) -> None:
    settings = {name: getattr(layer, name) for name in type(layer)._settings if name != "name"}
    assert layer(*inputs).item() == function(*inputs, **settings).item()


def test_what_is_shown_of_arrays_and_functions() -> None:
    assert repr(nn.MultiMarginLoss(weight=np.ones(3))) == (
        "MultiMarginLoss(weight=<ndarray of shape (3,)>)"
    )
    assert repr(nn.TripletMarginWithDistanceLoss(F.pairwise_distance)) == (
        "TripletMarginWithDistanceLoss(distance_function=pairwise_distance)"
    )


def test_gumbel_softmax_draws_as_the_softmax_says() -> None:
    ol.seed(0)
    scores = np.log(np.array([0.5, 0.3, 0.2]))
    x = ol.to_tensor(np.broadcast_to(scores, (20_000, 3)).copy(), requires_grad=True)
    drawn = F.gumbel_softmax(x, 0.5, hard=True)
    assert set(np.unique(drawn.detach().numpy())) == {0.0, 1.0}
    np.testing.assert_allclose(drawn.detach().numpy().mean(0), [0.5, 0.3, 0.2], atol=0.015)
    (drawn * [1.0, 2.0, 3.0]).sum().backward()
    assert np.abs(x.grad.numpy()).max() > 0
    ol.seed(0)
    y = ol.to_tensor(x.numpy(), requires_grad=True)
    (F.gumbel_softmax(y, 0.5) * [1.0, 2.0, 3.0]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: F.cosine_embedding_loss(X, X, [1]), "one label for each"),
        (lambda: F.cosine_embedding_loss(X, X, [1, 1], 2.0), "margin from -1 to 1"),
        (lambda: F.triplet_margin_loss(X, X, X[0]), "compares element by element"),
        (lambda: F.triplet_margin_loss(X, X, X, margin=0), "margin greater than 0"),
        (lambda: F.multi_margin_loss(X, [0, 3]), r"0 \.\.\. 2 for 3 classes"),
        (lambda: F.multi_margin_loss(X, [0, 1], p=3), "p=1 or p=2"),
        (lambda: F.npair_loss(X, X, [0]), "N labels"),
        (lambda: F.gaussian_nll_loss(X, X, np.ones(3)), "one for each element, or one for"),
        (lambda: F.poisson_nll_loss(X, X, epsilon=0.0), "epsilon greater than 0"),
        (lambda: F.dice_loss(X, [0, 1]), r"labels of shape \[N, ..., 1\]"),
        (lambda: F.sigmoid_focal_loss(X, X, alpha=2), "alpha from 0 to 1"),
        (lambda: F.sigmoid_focal_loss(X, X, X), "takes one normalizer"),
        (lambda: F.swiglu(X), "halves the last axis"),
        (lambda: F.gumbel_softmax(X, 0.0), "greater than 0"),
        (lambda: F.gumbel_softmax(X, axis=2), "axis=2"),
        (lambda: F.sequence_mask([1.0]), "takes integers"),
        (lambda: F.lp_pool1d(X[None], 0, 2), "other than 0"),
        (lambda: F.channel_shuffle(np.ones((1, 4, 1, 1)), 3), "a multiple of 3 channels"),
        (lambda: F.log_loss(X, X, name="loss"), "no names here"),
        (lambda: nn.GaussianNLLLoss(reduction="max"), "reduction must be"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        call()


def test_dictionaries() -> None:
    parameters = nn.ParameterDict({"a": ol.Parameter([1.0]), "b": ol.Parameter([2.0, 3.0])})
    assert repr(parameters) == "ParameterDict(a: (1,), b: (2,))"
    assert [name for name, _ in parameters.named_parameters()] == ["a", "b"]
    parameters.update(nn.ParameterDict([("b", ol.Parameter([5.0]))]))
    assert parameters["b"].tolist() == [5.0]
    assert parameters.pop("a").tolist() == [1.0]
    assert "a" not in parameters
    with pytest.raises(KeyError, match="no parameter is named 'c'; there are b"):
        parameters["c"]
    with pytest.raises(TypeError):
        parameters["c"] = ol.ones([1])
    assert math.isclose(sum(p.sum().item() for p in parameters.values()), 5.0)
