"""Decompositions, matrix powers and tensor systems, composed of other functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.operation import TABLE, Operation
from optlab.autograd.rules.linalg.decompositions import SINGULAR_VALUES, real_where_real
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.multi_output import tuple_like
from optlab.autograd.tensor.tensor import Tensor, apply, raw


@composed(np.linalg.svd)
def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if not compute_uv:
        return apply(SINGULAR_VALUES, (a,), {"hermitian": True} if hermitian else {})
    static = {"full_matrices": full_matrices}
    if hermitian:  # CuPy has no such argument
        static["hermitian"] = True
    return apply(TABLE[np.linalg.svd], (a,), static)


@composed(np.linalg.svdvals)
def _svdvals(x: Any, /) -> Any:
    return apply(SINGULAR_VALUES, (x,))


def _wants_no_gradient(a: Any) -> bool:
    return not (isinstance(a, Tensor) and a.requires_grad and recording.on)


@composed(np.linalg.eig)
def _eig(a: Any) -> Any:
    if _wants_no_gradient(a):  # then the results may be complex
        found = np.linalg.eig(raw(a))
        return tuple_like(found, map(Tensor, real_where_real(*found)))
    return apply(TABLE[np.linalg.eig], (a,))


@composed(np.linalg.eigvals)
def _eigvals(a: Any) -> Any:
    """Return the eigenvalues in the order of `eig`, from which NumPy's `eigvals` may differ."""
    if _wants_no_gradient(a):
        return Tensor(*real_where_real(np.linalg.eigvals(raw(a))))
    return np.linalg.eig(a)[0]


@composed(np.linalg.qr)
def _qr(a: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return np.linalg.qr(a)[1]
    rows, columns = np.shape(a)[-2:]
    if mode not in ("reduced", "complete") or (mode == "complete" and rows > columns):
        raise not_covered(f"linalg.qr of shape {np.shape(a)} with mode={mode!r}")
    return apply(TABLE[np.linalg.qr], (a,), {"mode": mode})


IDENTITY = Operation(
    "matrix_power", lambda a: np.linalg.matrix_power(a, 0), [lambda g: g * 0], ["a"]
)


@composed(np.linalg.matrix_power)
def _matrix_power(a: Any, n: int) -> Any:
    """Compute the power by repeated squaring."""
    n = operator.index(n)
    if n == 0:
        return apply(IDENTITY, (a,))
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 3:
        return a @ a @ a
    result, square = None, a
    while True:
        if n & 1:
            result = square if result is None else result @ square
        n >>= 1
        if not n:
            return +result if result is a else result
        square = square @ square


@composed(np.linalg.tensorinv)
def _tensorinv(a: Any, ind: int = 2) -> Any:
    if ind <= 0:
        raise ValueError(f"tensorinv needs a positive ind, but got {ind!r}.")
    shape = np.shape(a)
    rows = math.prod(shape[:ind])
    matrix = np.reshape(a, (rows, math.prod(shape[ind:])))
    return np.reshape(np.linalg.inv(matrix), shape[ind:] + shape[:ind])


@composed(np.linalg.tensorsolve)
def _tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    if axes is not None:
        ndim = np.ndim(a)
        last = list(normalize_axis_tuple(axes, ndim))
        a = np.transpose(a, [i for i in range(ndim) if i not in last] + last)
    solution = np.shape(a)[np.ndim(b) :]
    matrix = np.reshape(a, (math.prod(np.shape(b)), math.prod(solution)))
    return np.reshape(np.linalg.solve(matrix, np.ravel(b)), solution)
