"""Cross entropy with many classes, and attention with small and large scores."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.nn.functional.loss.classification import BLOCK

cross_entropy = ol.nn.functional.cross_entropy
attention = ol.nn.functional.scaled_dot_product_attention


def by_hand(x, labels, smoothing):
    x = x.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    log_probability = x - np.log(np.exp(x).sum(-1, keepdims=True))
    picked = log_probability[np.arange(len(labels)), labels]
    losses = -(1 - smoothing) * picked - smoothing * log_probability.mean(-1)
    slope = np.exp(log_probability) - smoothing / x.shape[1]
    slope[np.arange(len(labels)), labels] -= 1 - smoothing
    return losses, slope


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("rows", "classes"), [(3, BLOCK), (77, 1000), (20, 4000), (5000, 20)])
def test_losses_and_gradients_of_many_numbers(rows, classes, smoothing):
    numbers = np.random.default_rng(0)
    x = (3 * numbers.standard_normal((rows, classes)) + 100).astype(np.float32)
    labels = numbers.integers(0, classes, rows)
    labels[: rows // 3] = labels[0]  # the same class repeatedly
    t = ol.to_tensor(x, requires_grad=True)
    losses = cross_entropy(t, labels, reduction="none", label_smoothing=smoothing)
    weights = numbers.standard_normal(rows).astype(np.float32)
    losses.backward(weights)
    expected, slope = by_hand(x, labels, smoothing)
    np.testing.assert_allclose(losses.numpy(), expected, rtol=2e-5)
    np.testing.assert_allclose(t.grad, slope * weights[:, None], atol=1e-5)

    t.grad = None
    ignored = labels == labels[0]
    mean = cross_entropy(t, labels, ignore_index=int(labels[0]), label_smoothing=smoothing)
    mean.backward()
    assert mean.item() == pytest.approx(expected[~ignored].mean(), rel=1e-5)
    slope[ignored] = 0
    np.testing.assert_allclose(t.grad, slope / (~ignored).sum(), atol=1e-7)


def test_the_graph_can_be_walked_twice():
    x = ol.to_tensor(np.random.default_rng(0).standard_normal((4, 30000)), requires_grad=True)
    loss = cross_entropy(x, [0, 1, 2, 3])
    loss.backward(retain_graph=True)
    once = x.grad.copy()
    loss.backward()
    np.testing.assert_array_equal(x.grad, 2 * once)


@pytest.mark.parametrize("options", [{}, {"ignore_index": 2}, {"weight": [0.5, 2.0, 1.0]},
                                     {"label_smoothing": 0.2}, {"reduction": "none"}])  # fmt: skip
def test_derivatives_to_second_order(options):
    x = np.random.default_rng(1).standard_normal((4, 3))
    ol.check_grad(lambda t: cross_entropy(t, [0, 2, 1, 0], **options), x, order=2)


def test_only_what_backward_makes_probabilities_of_is_kept():
    x = ol.to_tensor(np.zeros((50, 2000), np.float32), requires_grad=True)
    scores = x * 1.0
    kept = []
    with ol.autograd.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        cross_entropy(scores, np.zeros(50, int))
    assert sum(np.asarray(k).nbytes for k in kept) <= 1.01 * scores.numpy().nbytes


@pytest.mark.parametrize("size", [0.1, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_to_small_and_large_scores(size, causal):
    numbers = np.random.default_rng(0)
    given = [numbers.standard_normal((2, 5, 3, 4)) for _ in range(3)]
    given[0] *= size
    q, k, v = (x.swapaxes(1, 2) for x in given)
    found = q @ k.swapaxes(-1, -2) / 2
    if causal:
        found = np.where(np.tri(5) > 0, found, -np.inf)
    weights = np.exp(found - found.max(-1, keepdims=True))
    expected = (weights / weights.sum(-1, keepdims=True)) @ v
    y = attention(*map(ol.to_tensor, given), is_causal=causal)
    np.testing.assert_allclose(y.numpy(), expected.swapaxes(1, 2), rtol=1e-12, atol=1e-13)
    single = [x.astype(np.float32) for x in given]
    y = attention(*map(ol.to_tensor, single), is_causal=causal)
    np.testing.assert_allclose(y.numpy(), expected.swapaxes(1, 2), atol=2e-4)
    if size < 100:
        ol.check_grad(lambda *t: attention(*t, is_causal=causal), *given, order=1)


def test_attention_to_scores_that_are_no_numbers_says_so():
    q = np.full((1, 2, 1, 2), np.nan, np.float32)
    assert np.isnan(attention(q, q, q).numpy()).all()


def test_attention_to_no_examples():
    q = np.zeros((0, 2, 1, 2), np.float32)
    assert attention(q, q, q, is_causal=True).shape == (0, 2, 1, 2)
