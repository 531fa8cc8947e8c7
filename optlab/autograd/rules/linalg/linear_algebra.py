"""Derivative rules of matrix and vector products, inverses and linear systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.linalg.matrices import column, row, symmetric_part, transposed

# Products. The tape sums gradients over broadcast batch axes, as for every operation.


def _matmul(a: Any, b: Any) -> Any:
    """Return a @ b; for two small matrices `dot` takes half the time."""
    if type(a) is type(b) is np.ndarray and a.ndim == b.ndim == 2:
        return a.dot(b)
    return a @ b


def _matmul_by_a(g: Any, b: Any, a_shape: Any) -> Any:
    """Return G B' for matrices; a vector is a row on the left and a column on the right."""
    if b.ndim == 1:
        return g * b if len(a_shape) == 1 else column(g) * b
    if len(a_shape) == 1:
        return np.matmul(b, column(g))[..., 0]
    return _matmul(g, b.T if b.ndim == 2 else transposed(b))


def _matmul_by_b(g: Any, a: Any, b_shape: Any) -> Any:
    """Return A' G for matrices."""
    if a.ndim == 1:
        return g * a if len(b_shape) == 1 else column(a) * row(g)
    if len(b_shape) == 1:
        return a.T @ g if a.ndim == 2 else np.matmul(transposed(a), column(g))[..., 0]
    return _matmul(a.T if a.ndim == 2 else transposed(a), g)


MATMUL = rule(np.matmul, _matmul_by_a, _matmul_by_b)
#: For b with one or two axes and a with at least one, where dot equals matmul.
DOT = rule(np.dot, _matmul_by_a, _matmul_by_b)
VECDOT = rule(np.vecdot, lambda g, b: column(g) * b, lambda g, a: column(g) * a)
if hasattr(np, "matvec"):  # since NumPy 2.2
    MATVEC = rule(np.matvec, lambda g, b: column(g) * row(b), lambda g, a: np.vecmat(g, a))
    VECMAT = rule(np.vecmat, lambda g, b: np.matvec(b, g), lambda g, a: column(a) * row(g))


# Inverses and linear systems.

INV = rule(np.linalg.inv, lambda g, y: -(transposed(y) @ g @ transposed(y)))


def _solve(g: Any, a: Any, b_shape: Any, y: Any, needs: Any) -> Any:
    """Return -w y' for a and w for b, where a' w = g; a right-hand side with one axis is a column.

    As in NumPy, the shapes alone decide which right-hand sides share one matrix of a.
    """
    vector = len(b_shape) == 1
    w = np.linalg.solve(transposed(a), column(g) if vector else g)
    by_a = -(w @ (row(y) if vector else transposed(y))) if needs[0] else None
    return by_a, w[..., 0] if vector else w


SOLVE = rule(np.linalg.solve, inputs="a b", joint=_solve)


def _pinv(g: Any, x: Any, y: Any, hermitian: bool = False) -> Any:
    """Return the gradient for perturbations of constant rank (Golub and Pereyra, 1973).

    Where the rank changes, the pseudo-inverse is discontinuous and has no derivative. With
    hermitian=True the gradient is symmetric, like the matrix.
    """
    yt, gt = transposed(y), transposed(g)
    right = gt @ y @ yt  # g' P P'
    left = yt @ y @ gt  # P' P g'
    by_x = -(yt @ g @ yt) + (right - x @ (y @ right)) + (left - (left @ y) @ x)
    return symmetric_part(by_x) if hermitian else by_x


PINV = rule(np.linalg.pinv, _pinv, static="rcond hermitian rtol")


def _lstsq(g: Any, a: Any, b: Any, y: Any, rcond: Any = None) -> Any:
    """Return the gradients through the solution, the residual sums of squares and singular values.

    The solution is pinv(a) b, so as for `_pinv` the rank is taken as constant.
    """
    x, squares, _, s = y
    by_a, by_b = a * 0, b * 0
    if b.ndim == 1:
        b, x = column(b), column(x)
    residual = b - a @ x
    if 0 in g:
        gx = column(g[0]) if len(g[0].shape) == 1 else g[0]
        cutoff = np.finfo(s.dtype).eps * max(a.shape) if rcond is None or rcond < 0 else rcond
        inverse = np.linalg.pinv(a, cutoff)
        w = transposed(inverse) @ gx
        by_b = by_b + w.reshape(by_b.shape)
        by_a = by_a - w @ transposed(x) + residual @ transposed(inverse @ w)
        by_a = by_a + (transposed(inverse) @ x) @ transposed(gx - transposed(a) @ w)
    if 1 in g and squares.shape == b.shape[1:]:  # otherwise NumPy returns an empty array
        slope = 2 * residual * g[1]
        by_b = by_b + slope.reshape(by_b.shape)
        by_a = by_a - slope @ transposed(x)
    if 3 in g:
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        by_a = by_a + (u * g[3]) @ vh
    return by_a, by_b


LSTSQ = rule(np.linalg.lstsq, inputs="a b", static="rcond", several=True, joint=_lstsq)
