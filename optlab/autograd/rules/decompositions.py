"""Derivative rules of decompositions: eigenvalues, singular values, QR and Cholesky.

Vectors are determined up to their sign, and those of equal values up to a rotation among
themselves: only functions that do not depend on that choice have a derivative. Where values are
equal, the part of the gradient that belongs to the arbitrary rotation is taken as 0 (see
`over_gaps`). So the gradient of every function of the values alone in which they play the same
part (their sum, a norm) is right there too. What divides by the gaps, a second derivative through
equal values or a function put together again from equal values and their vectors, misses the part
that would need the rotation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, rule
from optlab.autograd.rules.matrices import (
    column,
    diagonal_part,
    identity_like,
    lower_ones,
    over_gaps,
    reciprocal,
    right_solve,
    row,
    strictly_lower_ones,
    symmetric_part,
    transposed,
)

# Eigenvalues --------------------------------------------------------------------------------------

# NumPy reads one triangle of a symmetric matrix. The gradient is symmetric, shared by both
# triangles: it is the one for changes that keep the matrix symmetric.


def _eigh(g: Any, y: Any) -> Any:
    """Give V (diag(g0) + F * (V' g1)) V', where F holds 1 / gaps of the eigenvalues."""
    values, vectors = y
    inner = over_gaps(values) * (transposed(vectors) @ g[1]) if 1 in g else None
    by_x = (vectors * row(g[0])) @ transposed(vectors)
    if inner is not None:
        by_x = by_x + vectors @ inner @ transposed(vectors)
    return symmetric_part(by_x)


def _eigvalsh(g: Any, x: Any, UPLO: str = "L") -> Any:
    vectors = np.linalg.eigh(x, UPLO).eigenvectors  # type: ignore[call-overload]
    return (vectors * row(g)) @ transposed(vectors)


EIGH = rule(np.linalg.eigh, _eigh, static="UPLO", several=True)
EIGVALSH = rule(np.linalg.eigvalsh, _eigvalsh, static="UPLO")


def _real_eig(x: Any) -> Any:
    """Give eigenvalues and eigenvectors where all of them are real."""
    found = np.linalg.eig(x)
    if found[0].dtype.kind == "c":
        raise TypeError(
            "np.linalg.eig finds complex eigenvalues for this matrix; on Tensors that need a "
            "gradient it is covered where all are real. Use np.linalg.eigh for a symmetric "
            "matrix, or t.detach() where no gradient is needed."
        )
    return found


def _eig(g: Any, y: Any) -> Any:
    """Give V'^-1 (diag(g0) + F * (V' g1 - V'V diag(V' g1))) V'; each eigenvector has length 1."""
    values, vectors = y
    vt = transposed(vectors)
    inner = column(g[0]) * vt
    if 1 in g:
        turned = vt @ g[1]
        turned = turned - (vt @ vectors) * row(diagonal_part(turned))
        inner = inner + (over_gaps(values) * turned) @ vt
    return np.linalg.solve(vt, inner)


EIG = rule(np.linalg.eig, _eig, forward=_real_eig, several=True)


# Singular values ----------------------------------------------------------------------------------


def _split_rotation(u: Any, g: Any, k: int) -> tuple[Any, Any]:
    """Split the gradient of singular vectors: the turn among the first k, and what leads outside.

    Further columns of `u` (full_matrices=True) are a basis of the outside: they turn against the
    first k, while a turn among themselves is arbitrary and has no gradient.
    """
    first, g_first = u[..., :k], g[..., :k]
    among = transposed(first) @ g_first
    if u.shape[-1] > k:
        rest, g_rest = u[..., k:], g[..., k:]
        outside = rest @ (transposed(rest) @ g_first - transposed(g_rest) @ first)
    else:
        outside = g_first - first @ among
    return among - transposed(among), outside


def _svd(g: Any, y: Any, hermitian: bool = False) -> Any:
    u, s, vh = y
    k, v = s.shape[-1], transposed(vh)
    first_u, first_v = u[..., :k], v[..., :k]
    by_x = (first_u * row(g[1])) @ transposed(first_v)
    if 0 in g or 2 in g:
        # 1 / (s_j^2 - s_i^2), by the difference and the sum so that no digits are lost
        factor = over_gaps(s) * reciprocal(column(s) + row(s))
    if 0 in g:
        among, outside = _split_rotation(u, g[0], k)
        by_x = by_x + first_u @ (factor * among * row(s)) @ transposed(first_v)
        if u.shape[-2] > k:
            by_x = by_x + (outside * row(reciprocal(s))) @ transposed(first_v)
    if 2 in g:
        among, outside = _split_rotation(v, transposed(g[2]), k)
        by_x = by_x + first_u @ (column(s) * factor * among) @ transposed(first_v)
        if v.shape[-2] > k:
            by_x = by_x + (first_u * row(reciprocal(s))) @ transposed(outside)
    return symmetric_part(by_x) if hermitian else by_x


def _singular_values(g: Any, x: Any, hermitian: bool = False) -> Any:
    options: dict[str, Any] = {"hermitian": True} if hermitian else {}
    u, _, vh = np.linalg.svd(x, full_matrices=False, **options)
    by_x = (u * row(g)) @ vh
    return symmetric_part(by_x) if hermitian else by_x


SVD = rule(np.linalg.svd, _svd, static="full_matrices compute_uv hermitian", several=True)
#: ``svdvals``, and ``svd`` with compute_uv=False.
SINGULAR_VALUES = Operation(
    "svdvals",
    lambda x, **options: np.linalg.svd(x, compute_uv=False, **options),
    [_singular_values],
    ["x"],
    ["hermitian"],
)


# QR and Cholesky ----------------------------------------------------------------------------------


def _qr_tall(q: Any, r: Any, gq: Any, gr: Any) -> Any:
    """Give (gq + Q M) R'^-1, M the symmetric matrix with the lower triangle of R gr' - gq' Q."""
    inner = r @ transposed(gr) - transposed(gq) @ q
    mirrored = inner * lower_ones(inner) + transposed(inner * strictly_lower_ones(inner))
    return right_solve(gq + q @ mirrored, transposed(r))


def _qr(g: Any, y: Any) -> Any:
    """Take the first k columns of x as a square matrix; the further ones are Q times those of R.

    The columns have to be independent: where they are not, NumPy's solve says so.
    """
    q, r = y
    k, gq, gr = q.shape[-1], g[0], g[1]
    if r.shape[-1] == k:
        return _qr_tall(q, r, gq, gr)
    further = gr[..., k:]
    gq = gq + q @ r[..., k:] @ transposed(further)
    return np.concatenate([_qr_tall(q, r[..., :k], gq, gr[..., :k]), q @ further], -1)


QR = rule(np.linalg.qr, _qr, static="mode", several=True)


def _cholesky(g: Any, y: Any, upper: bool = False) -> Any:
    """Give the symmetric part of L'^-1 (lower triangle of L' g, its diagonal halved) L^-1."""
    if upper:
        g, y = transposed(g), transposed(y)
    inner = transposed(y) @ g
    inner = inner * (lower_ones(inner) - 0.5 * identity_like(inner))
    return symmetric_part(right_solve(np.linalg.solve(transposed(y), inner), y))


CHOLESKY = rule(np.linalg.cholesky, _cholesky, static="upper")
