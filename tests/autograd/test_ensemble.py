"""Ensembles on the tape: training many runs as one, per-example gradients, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from tests.autograd.rows import numbers

K = 3  # as many members as examples, features and classes: a mixed-up axis fits the shapes


def unstacked(x: Any, k: int) -> Any:
    return x.members[k] if isinstance(x, EnsembleArray) else x


# Training -----------------------------------------------------------------------------------------


def trained(w1: Any, b1: Any, w2: Any, b2: Any, rate: Any, x: Any, y: Any, steps: int) -> list[Any]:
    """Train a network of two layers; the code is the same for arrays and ensembles."""

    def loss(w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        hidden = np.tanh(x @ w1 + b1)
        return np.mean((hidden @ w2 + b2 - y) ** 2)

    weights = [w1, b1, w2, b2]
    for _ in range(steps):
        gradients = ol.grad(loss, (0, 1, 2, 3))(*weights)
        weights = [w - rate * g for w, g in zip(weights, gradients, strict=True)]
    return weights


@pytest.mark.parametrize("count", [4, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_copies_of_a_network_train_as_separate_runs(count: int, dtype: str) -> None:
    n = 4  # batch = features = hidden units = outputs (= members)
    shapes = [(n, n), (n,), (n, n), (n,)]
    starts = [
        numbers((count, *shape), -1, 1, seed=i).astype(dtype) for i, shape in enumerate(shapes)
    ]
    rates = np.geomspace(0.01, 0.2, count).astype(dtype)
    x, y = numbers((n, n), seed=8).astype(dtype), numbers((n, n), seed=9).astype(dtype)
    together = trained(*map(ol.ensemble, starts), ol.ensemble(rates), x, y, steps=20)  # type: ignore[misc]
    tolerance = 200 * np.finfo(dtype).eps
    for k in range(0, count, max(count // 10, 1)):
        alone = trained(*[s[k] for s in starts], rates[k], x, y, steps=20)
        for got, wanted in zip(together, alone, strict=True):
            assert got.dtype == wanted.dtype == dtype
            np.testing.assert_allclose(got.members[k], wanted, rtol=tolerance, atol=tolerance)


def test_the_bias_of_a_member_meets_no_axis_of_the_batch() -> None:
    w, b, x = numbers((K, K, K)), numbers((K, K), seed=1), numbers((K, K), seed=2)
    wrong = x @ w + b  # plain broadcasting adds the biases of all members to each
    got = x @ ol.ensemble(w) + ol.ensemble(b)
    for k in range(K):
        np.testing.assert_array_equal(got.members[k], x @ w[k] + b[k])
    assert not np.allclose(wrong, got.members)


def test_tensors_of_ensembles_train_with_backward() -> None:
    starts, x = numbers((K, K)), numbers((5, K), seed=1)
    w = ol.to_tensor(ol.ensemble(starts), requires_grad=True)
    assert (w.shape, w.size, w.ndim) == ((K,), K, 1)
    np.sum(np.tanh(x @ w) ** 2).backward()
    assert w.grad is not None
    for k in range(K):
        alone = ol.grad(lambda w: np.sum(np.tanh(x @ w) ** 2))(starts[k])
        np.testing.assert_allclose(ol.members(w.grad).numpy()[k], alone, rtol=1e-12)
    np.sum(w * 2).backward()  # accumulates
    w.grad = np.zeros(K)
    w.grad = ol.ensemble(np.ones((K, K)))
    np.testing.assert_array_equal(ol.members(w.grad).numpy(), np.ones((K, K)))


# Per-example gradients ----------------------------------------------------------------------------


def test_what_all_members_share_gets_the_gradient_of_each() -> None:
    w = ol.to_tensor(numbers((K, K)), requires_grad=True)
    x = numbers((K, K), seed=1)
    np.sum(np.tanh(ol.ensemble(x) @ w) ** 2).backward()
    assert w.grad is not None
    assert w.grad.shape == (K, K)
    for k in range(K):
        alone = ol.grad(lambda w, k=k: np.sum(np.tanh(x[k] @ w) ** 2))(w.numpy())
        np.testing.assert_allclose(ol.members(w.grad).numpy()[k], alone, rtol=1e-12)


def classifier() -> tuple[Any, Any]:
    ol.seed(0)
    layers = ol.nn.Linear(K, K), ol.nn.ReLU(), ol.nn.Linear(K, K)
    return ol.nn.Sequential(*layers), ol.nn.CrossEntropyLoss()


def gradients_of_each_example(x: Any, labels: Any) -> list[list[Any]]:
    """Return per-example gradients, computed one after the other."""
    model, criterion = classifier()
    found = []
    for k in range(len(x)):
        criterion(model(x[k : k + 1]), labels[k : k + 1]).backward()
        found.append([p.grad.numpy() for p in model.parameters()])
        for p in model.parameters():
            p.grad = None
    return found


def test_layers_and_loss_give_gradients_of_each_example() -> None:
    x, labels = numbers((K, K)).astype("float32"), np.array([2, 0, 1])
    model, criterion = classifier()
    # Each example is a batch of one.
    criterion(model(ol.ensemble(x[:, None])), ol.ensemble(labels[:, None])).backward()
    for k, alone in enumerate(gradients_of_each_example(x, labels)):
        for p, wanted in zip(model.parameters(), alone, strict=True):
            assert p.grad.dtype == np.float32
            np.testing.assert_allclose(ol.members(p.grad).numpy()[k], wanted, rtol=1e-5, atol=1e-7)


def test_layers_and_loss_inside_vmap_give_the_gradient_of_the_whole() -> None:
    x, labels = numbers((K, K)).astype("float32"), np.array([2, 0, 1])
    model, criterion = classifier()
    losses = ol.vmap(lambda x, label: criterion(model(x[None]), label[None]))(x, labels)
    np.sum(losses).backward()
    alone = gradients_of_each_example(x, labels)
    for i, p in enumerate(model.parameters()):
        wanted = sum(found[i] for found in alone)
        np.testing.assert_allclose(p.grad.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_functions_of_networks_give_gradients_of_each_example_by_vmap() -> None:
    F = ol.nn.functional
    x, labels = numbers((K, K)), np.array([2, 0, 1])
    w, b = numbers((K, K), seed=1), numbers((K,), seed=2)

    def loss(w: Any, b: Any, x: Any, label: Any) -> Any:
        return F.cross_entropy(F.linear(x[None], w, b), label[None])

    got = ol.vmap(ol.grad(loss, (0, 1)), (None, None, 0, 0))(w, b, x, labels)
    for k in range(K):
        for found, wanted in zip(got, ol.grad(loss, (0, 1))(w, b, x[k], labels[k]), strict=True):
            np.testing.assert_allclose(found[k], wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("per_member", ["x", "weight", "bias", "labels", "weight bias"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_any_part_of_a_network_may_differ_from_member_to_member(
    per_member: str, reduction: str
) -> None:
    F = ol.nn.functional
    shared = {"x": numbers((K, K)), "weight": numbers((K, K), seed=1), "bias": numbers((K,))}
    stacked: dict[str, Any] = {
        name: numbers((K, *value.shape), seed=5) for name, value in shared.items()
    }
    shared["labels"], stacked["labels"] = (
        np.array([2, 0, 2]),
        np.array([[0, 1, 2], [2] * 3, [0] * 3]),
    )

    def f(x: Any, weight: Any, bias: Any, labels: Any) -> Any:
        scores = F.softmax(F.relu(F.linear(x, weight, bias)))
        return np.sum(F.cross_entropy(scores, labels, reduction=reduction))

    def gradients(parts: Any) -> Any:
        return ol.value_and_grad(f, (0, 1, 2))(*parts.values())

    differ = per_member.split()
    value, together = gradients(
        {n: ol.ensemble(stacked[n]) if n in differ else v for n, v in shared.items()}
    )
    for k in range(K):
        wanted, alone = gradients(
            {n: stacked[n][k] if n in differ else v for n, v in shared.items()}
        )
        np.testing.assert_allclose(unstacked(value, k), wanted, rtol=1e-12)
        for got, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(unstacked(got, k), one, rtol=1e-11, atol=1e-14)


def test_labels_out_of_range_are_found_in_any_member() -> None:
    labels = ol.ensemble(np.array([[0, 1], [2, 7]]))
    with pytest.raises(ValueError, match=r"0 \.\.\. 7"):
        ol.nn.functional.cross_entropy(np.zeros((2, 3)), labels)


# Derivatives of functions -------------------------------------------------------------------------

DERIVATIVES = {
    "grad": lambda x, v: ol.grad(lambda x: np.sum(np.sin(x @ x) * x))(x),
    "grad of grad": lambda x, v: ol.grad(
        lambda x: np.sum(ol.grad(lambda x: np.sum(x @ x * x))(x) * v)
    )(x),
    "value_and_grad": lambda x, v: ol.value_and_grad(lambda x: np.std(np.sum(x, 0)) * 2)(x)[0],
    "vjp": lambda x, v: ol.vjp(lambda x: x @ x, x)[1](v)[0],
    "vjp, one u for all": lambda x, v: ol.vjp(lambda x: x[[0, 0, 1]], x)[1](np.ones((K, K)))[0],
    "jvp": lambda x, v: ol.jvp(lambda x: x @ np.tanh(x), (x,), (v,))[1],
    "hvp": lambda x, v: ol.hvp(lambda x: np.sum(x @ x @ x), x, v),
    "jacobian": lambda x, v: ol.jacobian(lambda x: x @ v)(x),
    "hessian": lambda x, v: ol.hessian(lambda x: np.sum(x @ x * v))(x),
}


@pytest.mark.parametrize("name", DERIVATIVES)
@pytest.mark.parametrize("both", [True, False])
def test_derivatives_of_an_ensemble_are_those_of_its_members(name: str, both: bool) -> None:
    f = DERIVATIVES[name]
    x, v = numbers((K, K, K)), numbers((K, K, K), seed=1)
    got = f(ol.ensemble(x), ol.ensemble(v) if both else v[0])
    for k in range(K):
        alone = f(x[k], v[k] if both else v[0])
        assert got.shape == np.shape(alone)
        np.testing.assert_allclose(got.members[k], alone, rtol=1e-11, atol=1e-13)


def test_a_hook_sees_the_gradients_of_all_members_and_may_replace_them() -> None:
    t = ol.to_tensor(ol.ensemble(np.ones((2, K))), requires_grad=True)
    t.register_hook(lambda g: g * 2)
    t.register_hook(lambda g: ol.ensemble(ol.members(g.data) + 1))
    np.sum(t * 3).backward()
    assert t.grad is not None
    np.testing.assert_array_equal(ol.members(t.grad).numpy(), np.full((2, K), 7.0))


def test_lists_of_ensembles_and_filled_arrays_are_for_our_numpy() -> None:
    onp: Any = ol.numpy
    a, b = numbers((K,)), numbers((K,), seed=1)
    x, y = ol.ensemble(a), ol.ensemble(b)
    got = onp.array([[x, 2.0], [y, x * y]])
    np.testing.assert_array_equal(
        got.members, [[[a[k], 2.0], [b[k], a[k] * b[k]]] for k in range(K)]
    )
    assert onp.asarray(x) is x
    np.testing.assert_array_equal(onp.full((2,), x).members, np.stack([a, a], 1))
    np.testing.assert_array_equal(onp.sum([x, y]).members, a + b)
    by_x = ol.grad(lambda x: np.sum(onp.array([x, x * y]) ** 2))(x)
    np.testing.assert_allclose(by_x.members, 2 * a + 2 * a * b**2)


def test_an_ensemble_enters_from_the_tape() -> None:
    x = ol.to_tensor(numbers((2, K)), requires_grad=True)
    np.sum(ol.ensemble(x, axis=1) ** 3).backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.numpy() ** 2)


def test_members_on_the_tape_are_refused_and_detached_ones_come_back() -> None:
    t = np.exp(ol.to_tensor(ol.ensemble([0.0, 1.0]), requires_grad=True))
    with pytest.raises(TypeError, match="vmap"):
        ol.members(t)
    np.testing.assert_array_equal(ol.members(t.detach()).numpy(), np.exp([0.0, 1.0]))
    with pytest.raises(TypeError, match="takes an ensemble"):
        ol.members(np.ones(2))


def test_a_tensor_of_an_ensemble_shows_its_members() -> None:
    t = ol.to_tensor(ol.ensemble([1.0, 2.0]), requires_grad=True)
    assert "2 members of shape ()" in repr(t)
    assert "2." in repr(t)


@pytest.mark.parametrize(
    "call", [lambda t: t.item(), lambda t: t.numpy(), lambda t: t.tolist(), lambda t: f"{t:.2f}"]
)
def test_one_number_of_a_tensor_of_an_ensemble_is_refused(call: Any) -> None:
    with pytest.raises(EnsembleError, match="members"):
        call(ol.to_tensor(ol.ensemble([1.0, 2.0])))
