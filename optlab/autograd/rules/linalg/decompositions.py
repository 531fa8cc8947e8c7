"""Derivative rules of matrix decompositions: eigenvalues, singular values, QR and Cholesky.

Eigenvectors and singular vectors are unique up to sign, and those of repeated values up to a
rotation of their subspace: only functions invariant to that choice have a derivative. At repeated
values the gradient component of the arbitrary rotation is set to 0 (see `inverse_gaps`). Gradients
of symmetric functions of the values alone (a sum, a norm) are therefore exact there too. Whatever
divides by the gaps, such as a second derivative through repeated values or a function composed of
repeated values and their vectors, lacks the component of the rotation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, rule
from optlab.autograd.rules.linalg.matrices import (
    column,
    diagonal_part,
    identity_like,
    inverse_gaps,
    lower_ones,
    reciprocal,
    right_solve,
    row,
    strictly_lower_ones,
    symmetric_part,
    transposed,
)

# Eigenvalues --------------------------------------------------------------------------------------

# NumPy reads one triangle of a symmetric matrix. The gradient is symmetric, split between both
# triangles: it is the gradient with respect to symmetric perturbations.


def _eigh(g: Any, y: Any) -> Any:
    """Return V (diag(g0) + F * (V' g1)) V', where F holds 1 / gaps of the eigenvalues."""
    values, vectors = y
    inner = inverse_gaps(values) * (transposed(vectors) @ g[1]) if 1 in g else None
    by_x = (vectors * row(g[0])) @ transposed(vectors)
    if inner is not None:
        by_x = by_x + vectors @ inner @ transposed(vectors)
    return symmetric_part(by_x)


def _eigvalsh(g: Any, x: Any, UPLO: str = "L") -> Any:
    vectors = np.linalg.eigh(x, UPLO).eigenvectors  # type: ignore[call-overload]
    return (vectors * row(g)) @ transposed(vectors)


EIGH = rule(np.linalg.eigh, _eigh, static="UPLO", several=True)
EIGVALSH = rule(np.linalg.eigvalsh, _eigvalsh, static="UPLO")


def real_where_real(values: Any, *vectors: Any) -> tuple[Any, ...]:
    """Return results of `eig` as real arrays if no eigenvalue has an imaginary part.

    NumPy 2.5 returns complex arrays for every matrix, older releases only where they are needed.
    """
    numbers = values
    while hasattr(numbers, "members"):
        numbers = numbers.members
    if numbers.dtype.kind != "c" or np.any(numbers.imag != 0):
        return (values, *vectors)
    return tuple(np.copy(np.real(array)) for array in (values, *vectors))


def _real_eig(x: Any) -> Any:
    """Return eigenvalues and eigenvectors; raise if any of them is complex."""
    found: Any = np.linalg.eig(x)
    found = type(found)(*real_where_real(*found))
    if found[0].dtype.kind == "c":
        raise TypeError(
            "np.linalg.eig finds complex eigenvalues for this matrix; on Tensors that need a "
            "gradient it is covered where all are real. Use np.linalg.eigh for a symmetric "
            "matrix, or t.detach() where no gradient is needed."
        )
    return found


def _eig(g: Any, y: Any) -> Any:
    """Return V'^-1 (diag(g0) + F * (V' g1 - V'V diag(V' g1))) V' for eigenvectors of norm 1."""
    values, vectors = y
    vt = transposed(vectors)
    inner = column(g[0]) * vt
    if 1 in g:
        turned = vt @ g[1]
        turned = turned - (vt @ vectors) * row(diagonal_part(turned))
        inner = inner + (inverse_gaps(values) * turned) @ vt
    return np.linalg.solve(vt, inner)


EIG = rule(np.linalg.eig, _eig, forward=_real_eig, several=True)


# Singular values ----------------------------------------------------------------------------------


def _split_rotation(u: Any, g: Any, k: int) -> tuple[Any, Any]:
    """Split a gradient of singular vectors: rotation within the span of the first k, and out of it.

    Further columns of `u` (full_matrices=True) are a basis of the orthogonal complement. They
    rotate against the first k; a rotation among themselves is arbitrary and has no gradient.
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
        # 1 / (s_j^2 - s_i^2), from the difference and the sum to avoid cancellation
        factor = inverse_gaps(s) * reciprocal(column(s) + row(s))
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
    """Return (gq + Q M) R'^-1, M the symmetric matrix with the lower triangle of R gr' - gq' Q."""
    inner = r @ transposed(gr) - transposed(gq) @ q
    mirrored = inner * lower_ones(inner) + transposed(inner * strictly_lower_ones(inner))
    return right_solve(gq + q @ mirrored, transposed(r))


def _qr(g: Any, y: Any) -> Any:
    """Differentiate the first k columns of x as a square matrix, the further ones as Q R[:, k:].

    Requires linearly independent columns; otherwise NumPy's solve raises.
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
    """Return the symmetric part of L'^-1 (lower triangle of L' g, its diagonal halved) L^-1."""
    if upper:
        g, y = transposed(g), transposed(y)
    inner = transposed(y) @ g
    inner = inner * (lower_ones(inner) - 0.5 * identity_like(inner))
    return symmetric_part(right_solve(np.linalg.solve(transposed(y), inner), y))


CHOLESKY = rule(np.linalg.cholesky, _cholesky, static="upper")
