"""Rules against those of PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import give, random

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")

O = ol.optimizer  # noqa: E741

#: Ours, theirs, with equivalent settings.
PAIRS = {
    "Momentum": (
        lambda p: O.Momentum(0.1, momentum=0.8, use_nesterov=True, parameters=[p]),
        lambda p: torch.optim.SGD([p], 0.1, momentum=0.8, nesterov=True),
    ),
    "Adagrad": (
        lambda p: O.Adagrad(0.1, 1e-3, 0.5, parameters=[p]),
        lambda p: torch.optim.Adagrad([p], 0.1, initial_accumulator_value=0.5, eps=1e-3),
    ),
    "Adadelta": (
        lambda p: O.Adadelta(0.5, 1e-3, 0.9, parameters=[p]),
        lambda p: torch.optim.Adadelta([p], 0.5, rho=0.9, eps=1e-3),
    ),
    "Adam": (
        lambda p: O.Adam(0.1, epsilon=1e-3, parameters=[p]),
        lambda p: torch.optim.Adam([p], 0.1, eps=1e-3),
    ),
    "Adam with decay": (
        lambda p: O.Adam(0.1, weight_decay=0.1, parameters=[p]),
        lambda p: torch.optim.Adam([p], 0.1, weight_decay=0.1),
    ),
    "AdamW": (
        lambda p: O.AdamW(0.1, weight_decay=0.1, parameters=[p]),
        lambda p: torch.optim.AdamW([p], 0.1, weight_decay=0.1),
    ),
    "Adamax": (
        lambda p: O.Adamax(0.1, epsilon=1e-8, parameters=[p]),
        lambda p: torch.optim.Adamax([p], 0.1, eps=1e-8),
    ),
    "NAdam": (
        lambda p: O.NAdam(0.1, momentum_decay=0.05, parameters=[p]),
        lambda p: torch.optim.NAdam([p], 0.1, momentum_decay=0.05),
    ),
    "RAdam": (
        lambda p: O.RAdam(0.1, beta2=0.9, parameters=[p]),
        lambda p: torch.optim.RAdam([p], 0.1, betas=(0.9, 0.9)),
    ),
    "Rprop": (
        lambda p: O.Rprop(0.1, (1e-6, 50), (0.5, 1.2), parameters=[p]),
        lambda p: torch.optim.Rprop([p], 0.1),
    ),
    "ASGD of one batch": (
        lambda p: O.ASGD(0.1, parameters=[p]),
        lambda p: torch.optim.SGD([p], 0.1),
    ),
}


@pytest.mark.parametrize("name", list(PAIRS))
def test_thirty_steps(name):
    ours, theirs = PAIRS[name]
    p = ol.Parameter(random(3, 4))
    q = torch.nn.Parameter(torch.tensor(random(3, 4)))
    one, other = ours(p), theirs(q)
    # PyTorch adds epsilon of Adamax to the maximum, and of RAdam elsewhere: 1e-8, far below this.
    for t in range(30):
        g = random(3, 4, seed=t + 1)
        give(p, g)
        q.grad = torch.tensor(g)
        one.step()
        other.step()
        one.clear_grad()
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)])
def test_muon(shape):
    """PyTorch iterates in bfloat16: the paths agree to its precision."""
    p = ol.Parameter(random(*shape))
    q = torch.nn.Parameter(torch.tensor(random(*shape)))
    one = O.Muon(0.1, momentum=0.9, weight_decay=0.1, parameters=[p])
    other = torch.optim.Muon([q], 0.1, momentum=0.9, weight_decay=0.1)
    for t in range(5):
        g = random(*shape, seed=t + 1)
        give(p, g)
        q.grad = torch.tensor(g)
        one.step()
        other.step()
        one.clear_grad()
    np.testing.assert_allclose(p.numpy(), q.detach().numpy(), atol=0.02)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs(search):
    matrix = random(5, 5)
    matrix = matrix @ matrix.T + np.eye(5)
    p = ol.Parameter(random(5, seed=1))
    q = torch.nn.Parameter(torch.tensor(random(5, seed=1)))
    one = O.LBFGS(0.3, max_iter=4, line_search_fn=search, parameters=[p])
    other = torch.optim.LBFGS([q], 0.3, max_iter=4, line_search_fn=search)

    def ours():
        one.clear_grad()
        loss = (p @ (matrix @ p)) + (p**4).sum()
        loss.backward()
        return loss

    def theirs():
        other.zero_grad()
        loss = (q @ (torch.tensor(matrix) @ q)) + (q**4).sum()
        loss.backward()
        return loss

    for _ in range(4):
        a, b = one.step(ours), other.step(theirs)
        np.testing.assert_allclose(a.item(), b.item(), rtol=1e-7)
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-6, atol=1e-9)
