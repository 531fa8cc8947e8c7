"""Rows of decompositions: functions that do not depend on the signs that LAPACK picks.

A matrix that has to be symmetric is symmetrized inside, since NumPy reads only one triangle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.autograd.rows.linear_algebra import well_conditioned
from tests.autograd.rows.table import Shape, numbers, put


def symmetric(x: Any) -> Any:
    return x + np.swapaxes(x, -1, -2)


def spread_out(shape: Shape) -> np.ndarray:
    """Return matrices with well-separated eigenvalues and singular values."""
    return numbers(shape, -0.4, 0.4) + np.eye(*shape[-2:]) * np.arange(1.0, shape[-1] + 1)


def positive(x: Any) -> Any:
    """Return positive definite matrices."""
    return x @ np.swapaxes(x, -1, -2) + np.eye(x.shape[-1], dtype=x.dtype)


#: A sign-free function of eigenvectors or singular vectors.
def squared(vectors: Any) -> Any:
    return vectors * vectors


SQUARE: list[Shape] = [(1, 1), (2, 2), (3, 3), (2, 3, 3), (1, 2, 2, 2), (0, 2, 2)]
for shape in SQUARE:
    x = spread_out(shape)
    put(np.linalg.eigvalsh, f"{shape}", lambda x: np.linalg.eigvalsh(symmetric(x)), x)
    put(np.linalg.eigh, f"values {shape}", lambda x: np.linalg.eigh(symmetric(x))[0], x)
    put(np.linalg.eigh, f"vectors {shape}", lambda x: squared(np.linalg.eigh(symmetric(x))[1]), x)
    # NumPy 2.5 gives complex numbers without imaginary parts, Tensors are real.
    put(np.linalg.eigvals, f"{shape}", lambda x: np.real(np.linalg.eigvals(x)), x)
    put(np.linalg.eig, f"values {shape}", lambda x: np.real(np.linalg.eig(x)[0]), x)
    put(np.linalg.eig, f"vectors {shape}",
        lambda x: squared(np.real(np.linalg.eig(x).eigenvectors)), x)  # fmt: skip
    put(np.linalg.cholesky, f"{shape}", lambda x: np.linalg.cholesky(positive(x)), x)
x = spread_out((3, 3))
put(np.linalg.eigvalsh, "UPLO", lambda x: np.linalg.eigvalsh(symmetric(x), UPLO="U"), x)
put(
    np.linalg.eigh,
    "UPLO",
    lambda x: squared(np.linalg.eigh(symmetric(x), "U").eigenvectors),
    x,
)
put(
    np.linalg.eigh,
    "both",
    lambda x: (lambda w, v: (v * np.exp(w / 4)) @ v.T)(*np.linalg.eigh(symmetric(x))),
    x,
)
put(
    np.linalg.eig,
    "both",
    lambda x: (lambda w, v: squared(v) @ w)(*map(np.real, np.linalg.eig(x))),
    x,
)
put(
    np.linalg.cholesky,
    "upper",
    lambda x: np.linalg.cholesky(positive(x), upper=True),
    spread_out((2, 3, 3)),
)

for shape in [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3), (1, 1), (3, 1), (0, 2, 2)]:
    x = spread_out(shape)
    for full in (False, True):
        f = lambda x, full=full: np.linalg.svd(x, full_matrices=full)  # noqa: E731
        put(np.linalg.svd, f"{shape} full={full} S", lambda x, f=f: f(x)[1], x)
        k = min(shape[-2:])
        put(
            np.linalg.svd,
            f"{shape} full={full} U",
            lambda x, f=f, k=k: squared(f(x)[0])[..., :k],
            x,
        )
        put(
            np.linalg.svd,
            f"{shape} full={full} Vh",
            lambda x, f=f, k=k: squared(f(x)[2])[..., :k, :],
            x,
        )
    put(np.linalg.svdvals, f"{shape}", np.linalg.svdvals, x)
put(
    np.linalg.svd,
    "all three",
    lambda x: (lambda u, s, vh: (u * np.sqrt(s)) @ vh)(*np.linalg.svd(x, False)),
    spread_out((4, 3)),
)
put(
    np.linalg.svd,
    "the columns outside",
    lambda x: (lambda u: u[:, 2:] @ u[:, 2:].T)(np.linalg.svd(x)[0]),
    spread_out((4, 2)),
)
put(
    np.linalg.svd,
    "the rows outside",
    lambda x: (lambda vh: vh[2:].T @ vh[2:])(np.linalg.svd(x)[2]),
    spread_out((2, 4)),
)
put(np.linalg.svd, "no vectors", lambda x: np.linalg.svd(x, compute_uv=False), spread_out((3, 2)))
put(
    np.linalg.svd,
    "hermitian",
    lambda x: (lambda u, s, vh: squared(u) @ s + squared(vh.T) @ s)(
        *np.linalg.svd(symmetric(x), hermitian=True)
    ),
    spread_out((3, 3)) - 3 * np.eye(3)[::-1],
)
put(
    np.linalg.svd,
    "hermitian, no vectors",
    lambda x: np.linalg.svd(symmetric(x), compute_uv=False, hermitian=True),
    spread_out((2, 3, 3)),
)

for shape in [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3), (1, 1)]:
    x = well_conditioned(shape)
    modes = ["reduced", "complete"] if shape[-2] <= shape[-1] else ["reduced"]
    for mode in modes:
        put(np.linalg.qr, f"{shape} {mode} Q", lambda x, mode=mode: np.linalg.qr(x, mode)[0], x)
        put(np.linalg.qr, f"{shape} {mode} R", lambda x, mode=mode: np.linalg.qr(x, mode).R, x)
    put(np.linalg.qr, f"{shape} r", lambda x: np.linalg.qr(x, mode="r"), x)
put(
    np.linalg.qr,
    "both",
    lambda x: (lambda q, r: q * np.sum(r) + q @ r)(*np.linalg.qr(x)),
    well_conditioned((3, 2)),
)

for p in (None, 2, -2, 1, -1, "fro", "nuc", np.inf, -np.inf):
    f = lambda x, p=p: np.linalg.cond(x, p)  # noqa: E731
    put(np.linalg.cond, f"{p}", f, spread_out((2, 3, 3)))
put(np.linalg.cond, "tall", np.linalg.cond, spread_out((3, 2)))
