"""Layers, losses and clips against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol

pytestmark = pytest.mark.peers

F = ol.nn.functional


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def numbers(*shape: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(5).standard_normal(shape)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_linear(torch, shape):
    x, w, b = numbers(*shape), numbers(4, 2), numbers(2)
    theirs = [torch.tensor(a, requires_grad=True) for a in (x, w, b)]
    ours = [ol.to_tensor(a, requires_grad=True) for a in (x, w, b)]
    y = torch.nn.functional.linear(theirs[0], theirs[1].T, theirs[2])
    z = F.linear(*ours)
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-12)
    y.pow(2).sum().backward()
    (z**2).sum().backward()
    for a, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), t.grad.numpy(), rtol=1e-11)


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_activations(torch, name):
    x = numbers(3, 4)
    x[0, 0] = 0.0
    theirs, ours = torch.tensor(x, requires_grad=True), ol.to_tensor(x, requires_grad=True)
    y, z = getattr(torch, name)(theirs), getattr(F, name)(ours)
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-14)
    y.sum().backward()
    z.sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-13)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_softmax(torch, name, axis, scale):
    x, g = numbers(3, 4, scale=scale), numbers(3, 4)
    theirs, ours = torch.tensor(x, requires_grad=True), ol.to_tensor(x, requires_grad=True)
    y, z = getattr(torch, name)(theirs, axis), getattr(F, name)(ours, axis)
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-12)
    y.backward(torch.tensor(g))
    z.backward(g)
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cross_entropy(torch, reduction, dtype):
    x, labels = numbers(6, 5, scale=4.0).astype(dtype), np.array([0, 4, 2, 2, 1, 3])
    theirs, ours = torch.tensor(x, requires_grad=True), ol.to_tensor(x, requires_grad=True)
    y = torch.nn.functional.cross_entropy(theirs, torch.tensor(labels), reduction=reduction)
    z = F.cross_entropy(ours, labels, reduction=reduction)
    rtol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=rtol)
    y.sum().backward()
    z.sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=rtol, atol=1e-8)


@pytest.mark.parametrize("limit", [0.1, 1.0, 100.0])
def test_global_norm(torch, limit):
    grads = [numbers(3, 4), numbers(5), numbers(1)]
    leaves = [torch.zeros(g.shape, dtype=torch.float64, requires_grad=True) for g in grads]
    for leaf, g in zip(leaves, grads, strict=True):
        leaf.grad = torch.tensor(g)
    torch.nn.utils.clip_grad_norm_(leaves, limit)
    ours = ol.nn.ClipGradByGlobalNorm(limit)([(None, g) for g in grads])
    for (_, g), leaf in zip(ours, leaves, strict=True):
        np.testing.assert_allclose(g, leaf.grad.numpy(), rtol=1e-5)  # theirs adds 1e-6 to the norm


def test_a_training_run_of_a_network(torch):
    """Twenty steps of Adam on a small network, weight by weight."""
    ol.seed(0)
    ours = ol.nn.Sequential(ol.nn.Linear(4, 8, dtype="float64"), ol.nn.Tanh(),
                            ol.nn.Linear(8, 3, dtype="float64"))  # fmt: skip
    theirs = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    ).double()
    with torch.no_grad():
        for i in (0, 2):
            theirs[i].weight.copy_(torch.tensor(ours[i].weight.numpy().T))
            theirs[i].bias.copy_(torch.tensor(ours[i].bias.numpy()))
    x, labels = numbers(16, 4), np.arange(16) % 3
    one = ol.optimizer.Adam(0.01, parameters=ours.parameters())
    two = torch.optim.Adam(theirs.parameters(), lr=0.01)
    for _ in range(20):
        loss = F.cross_entropy(ours(x), labels)
        loss.backward()
        one.step()
        one.clear_grad()
        two.zero_grad()
        reference = torch.nn.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(labels))
        reference.backward()
        two.step()
        assert loss.item() == pytest.approx(reference.item(), rel=1e-9)
    for i in (0, 2):
        np.testing.assert_allclose(
            ours[i].weight.numpy().T, theirs[i].weight.detach().numpy(), rtol=1e-7
        )
