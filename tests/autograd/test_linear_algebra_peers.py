"""Linear algebra against JAX and PyTorch, first and second order, where differences are weak."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.autograd.rows import numbers

pytestmark = pytest.mark.peers

SQUARE = numbers((4, 4), -0.4, 0.4) + np.diag([1.0, 2.0, 3.0, 4.5])
TALL = numbers((5, 3)) + np.eye(5, 3) * np.array([1.0, 2.0, 4.0])
WIDE = TALL.T.copy()
SINGULAR = numbers((4, 3)) @ numbers((3, 4), seed=1)
WEIGHTS = numbers((5, 5), seed=9)


def weighted(np: Any, y: Any) -> Any:
    """Return a scalar with a different weight for every element."""
    rows, columns = y.shape
    return np.sum(np.asarray(WEIGHTS[:rows, :columns]) * y * y)


def of_svd(np: Any, x: Any, full: bool) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=full)
    return weighted(np, u[:, : len(s)]) + weighted(np, vh[: len(s)]) + np.sum(s**3)


def of_eigh(np: Any, x: Any) -> Any:
    values, vectors = np.linalg.eigh((x + x.T) / 2)
    return weighted(np, vectors) + np.sum(np.exp(values))


def of_qr(np: Any, x: Any) -> Any:
    q, r = np.linalg.qr(x)
    return weighted(np, q) + weighted(np, r)


FUNCTIONS: dict[str, tuple[Any, np.ndarray]] = {
    "eigh": (of_eigh, SQUARE),
    "eigvalsh": (lambda np, x: np.sum(np.linalg.eigvalsh(x + x.T) ** 3), SQUARE),
    "svd": (lambda np, x: of_svd(np, x, False), SQUARE),
    "svd, tall": (lambda np, x: of_svd(np, x, False), TALL),
    "svd, wide": (lambda np, x: of_svd(np, x, False), WIDE),
    "singular values": (
        lambda np, x: np.sum(np.linalg.svd(x, compute_uv=False)[..., 0] ** 3),
        TALL,
    ),
    "qr": (of_qr, SQUARE),
    "qr, tall": (of_qr, TALL),
    "cholesky": (lambda np, x: weighted(np, np.linalg.cholesky(x @ x.T)), SQUARE),
    "pinv, tall": (lambda np, x: weighted(np, np.linalg.pinv(x)), TALL),
    "pinv, wide": (lambda np, x: weighted(np, np.linalg.pinv(x)), WIDE),
    "det": (lambda np, x: np.linalg.det(x), SQUARE),
    "slogdet": (lambda np, x: np.linalg.slogdet(x)[1], SQUARE),
    "solve": (lambda np, x: weighted(np, np.linalg.solve(x, np.asarray(WEIGHTS[:4]))), SQUARE),
    "norm": (lambda np, x: np.sum(np.linalg.norm(x, axis=0)), TALL),
    "norm 3": (lambda np, x: np.sum(np.linalg.norm(x, 3, axis=1)), TALL),
    "norm 1.5": (lambda np, x: np.sum(np.linalg.norm(x, 1.5, axis=1)), TALL),
    "norm 1 of matrices": (lambda np, x: np.linalg.norm(x, 1) ** 2, TALL),
    "norm 2 of matrices": (lambda np, x: np.linalg.norm(x, 2), TALL),
    "nuclear norm": (lambda np, x: np.linalg.norm(x, "nuc"), TALL),
    "cond": (lambda np, x: np.linalg.cond(x), TALL),
    "matrix power": (lambda np, x: weighted(np, np.linalg.matrix_power(x, -3)), SQUARE),
    "einsum": (lambda np, x: np.einsum("ij,kj,ki,ii->", x, x, x, x), SQUARE),
    "kron": (lambda np, x: np.sum(np.kron(x, x[:2]) ** 2), TALL),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_and_their_gradients_equal_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    f, x = FUNCTIONS[name]
    direction = numbers(x.shape, seed=5)
    theirs = jax.grad(lambda x: f(jax.numpy, x))
    np.testing.assert_allclose(ol.grad(lambda x: f(np, x))(x), theirs(x), rtol=1e-8, atol=1e-9)
    _, product = jax.jvp(theirs, (x,), (direction,))
    ours = ol.hvp(lambda x: f(np, x), x, direction)
    np.testing.assert_allclose(np.asarray(ours), product, rtol=1e-7, atol=1e-8)


def both_orders(torch: Any, f: Any, x: np.ndarray, direction: np.ndarray) -> Any:
    """Return PyTorch's gradient, and the Hessian's product with a direction."""
    t = torch.tensor(x, requires_grad=True)
    (gradient,) = torch.autograd.grad(f(t), t, create_graph=True)
    (product,) = torch.autograd.grad(gradient, t, torch.tensor(direction))
    return gradient.detach().numpy(), product.numpy()


TORCH: dict[str, tuple[Any, Any, np.ndarray]] = {
    "det at a singular matrix": (
        lambda x: np.linalg.det(x),
        lambda torch, x: torch.linalg.det(x),
        SINGULAR,
    ),
    "eigvals": (
        lambda x: np.sum(np.linalg.eigvals(x) ** 3),
        lambda torch, x: torch.sum(torch.linalg.eigvals(x).real ** 3),
        SQUARE,
    ),
    "eig": (
        lambda x: np.sum(np.linalg.eig(x)[1] ** 4),
        lambda torch, x: torch.sum(torch.linalg.eig(x)[1].real ** 4),
        SQUARE,
    ),
    "lstsq": (
        lambda x: np.sum(np.linalg.lstsq(x, WEIGHTS[0])[0] ** 3),
        lambda torch, x: torch.sum(
            torch.linalg.lstsq(x, torch.tensor(WEIGHTS[0])[:, None], driver="gelsd")[0] ** 3
        ),
        TALL,
    ),
    "qr, wide": (
        lambda x: np.sum(np.linalg.qr(x)[0] ** 3 @ np.linalg.qr(x)[1]),
        lambda torch, x: torch.sum(torch.linalg.qr(x)[0] ** 3 @ torch.linalg.qr(x)[1]),
        WIDE,
    ),
}


@pytest.mark.parametrize("name", TORCH)
def test_gradients_and_their_gradients_equal_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs, x = TORCH[name]
    direction = numbers(x.shape, seed=5)
    gradient, product = both_orders(torch, lambda t: theirs(torch, t), x, direction)
    np.testing.assert_allclose(np.asarray(ol.grad(ours)(x)), gradient, rtol=1e-8, atol=1e-9)
    found = np.asarray(ol.hvp(ours, x, direction))
    np.testing.assert_allclose(found, product, rtol=1e-6, atol=1e-8)
