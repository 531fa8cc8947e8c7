"""``ol.linalg``: functions of matrices, as ``paddle.linalg`` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.backend.namespaces import missing as _missing
from optlab.paddle_names.arguments import axes_of, checked_keepdim, documented
from optlab.paddle_names.indexing import diagonal
from optlab.paddle_names.products import cross, matmul
from optlab.paddle_names.reductions import norm

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul",
    "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "vector_norm",
]  # fmt: skip

_linalg: Any = np.linalg  # its type stubs do not know Tensors


def _of_one(name: str, does: str, shown: str, call: str = "ol.eye(2)") -> Any:
    """Make a function of one stack of matrices."""
    forward = getattr(np.linalg, name)

    def function(x: Any) -> Any:
        return forward(x)

    function.__name__ = function.__qualname__ = name
    lines = ["", "", "Examples", "--------", ">>> import optlab as ol"]
    lines += [f">>> ol.linalg.{name}({call})", shown, ""]
    function.__doc__ = does + "\n    ".join(lines)
    return documented(function)


det = _of_one("det", "Compute the determinant.", "Tensor(1., dtype=float32)")
inv = _of_one(
    "inv", "Compute the inverse.", "Tensor([[0.5]], dtype=float32)", "ol.to_tensor([[2.0]])"
)
svdvals = _of_one("svdvals", "Compute the singular values.", "Tensor([1., 1.], dtype=float32)")
multi_dot = _of_one(
    "multi_dot", "Multiply the matrices of a list, in the order that costs least.",
    "Tensor([[1., 0.], [0., 1.]], dtype=float32)", "[ol.eye(2), ol.eye(2), ol.eye(2)]",
)  # fmt: skip


@documented
def matrix_transpose(x: Any) -> Any:
    """Return the transpose of each matrix.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.matrix_transpose(ol.ones([2, 3])).shape
    (3, 2)
    """
    return _linalg.matrix_transpose(x)


@documented
def solve(x: Any, y: Any, left: bool = True) -> Any:
    """Solve ``x @ result = y``, or, with ``left=False``, ``result @ x = y``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.solve(ol.to_tensor([[2.0]]), ol.to_tensor([3.0]))
    Tensor([1.5], dtype=float32)
    """
    if left:
        return _linalg.solve(x, y)
    turned: Any = np.swapaxes(x, -1, -2)
    return np.swapaxes(_linalg.solve(turned, np.swapaxes(y, -1, -2)), -1, -2)


@documented
def slogdet(x: Any) -> Any:
    """Compute sign and logarithm of the absolute value of the determinant, as one array.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.slogdet(ol.eye(2))
    Tensor([1., 0.], dtype=float32)
    """
    stacked: Any = np.stack(tuple(_linalg.slogdet(x)))
    return stacked


@documented
def cholesky(x: Any, upper: bool = False) -> Any:
    """Compute the Cholesky factor, the lower one by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.cholesky(ol.to_tensor([[4.0]]))
    Tensor([[2.]], dtype=float32)
    """
    factor = _linalg.cholesky(x)
    return np.swapaxes(factor, -1, -2) if upper else factor


@documented
def matrix_power(x: Any, n: int) -> Any:
    """Multiply a square matrix by itself, n times; the inverse if n is negative.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.matrix_power(ol.to_tensor([[2.0]]), 3)
    Tensor([[8.]], dtype=float32)
    """
    return _linalg.matrix_power(x, n)


@documented
def matrix_rank(x: Any, tol: Any = None, hermitian: bool = False) -> Any:
    """Return the rank: how many singular values are larger than `tol`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.matrix_rank(ol.ones([2, 2]))
    Tensor(1, dtype=int64)
    """
    return np.asarray(np.linalg.matrix_rank(raw(x), raw(tol), hermitian))


@documented
def pinv(x: Any, rcond: Any = 1e-15, hermitian: bool = False) -> Any:
    """Compute the pseudo-inverse.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.pinv(ol.to_tensor([[2.0]]))
    Tensor([[0.5]], dtype=float32)
    """
    return _linalg.pinv(x, rcond=rcond, hermitian=hermitian)


@documented
def cond(x: Any, p: Any = None) -> Any:
    """Compute the condition number, in the 2-norm by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.cond(ol.eye(2))
    Tensor(1., dtype=float32)
    """
    return _linalg.cond(x, p)


@documented
def eigh(x: Any, UPLO: str = "L") -> Any:
    """Compute eigenvalues, in ascending order, and eigenvectors of symmetric matrices.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.eigh(ol.to_tensor([[2.0, 0.0], [0.0, 1.0]]))[0]
    Tensor([1., 2.], dtype=float32)
    """
    return tuple(_linalg.eigh(x, UPLO))


@documented
def eigvalsh(x: Any, UPLO: str = "L") -> Any:
    """Compute the eigenvalues of symmetric matrices, in ascending order.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.eigvalsh(ol.to_tensor([[2.0, 0.0], [0.0, 1.0]]))
    Tensor([1., 2.], dtype=float32)
    """
    return _linalg.eigvalsh(x, UPLO)


@documented
def qr(x: Any, mode: str = "reduced") -> Any:
    """Compute the QR decomposition; with ``mode="r"`` only R.

    Examples
    --------
    >>> import optlab as ol
    >>> q, r = ol.linalg.qr(ol.ones([3, 2]))
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    found = _linalg.qr(x, mode)
    return found if mode == "r" else tuple(found)


@documented
def svd(x: Any, full_matrices: bool = False) -> Any:
    """Compute U, the singular values and the transpose of V; by default U and V are not square.

    Examples
    --------
    >>> import optlab as ol
    >>> [part.shape for part in ol.linalg.svd(ol.ones([3, 2]))]
    [(3, 2), (2,), (2, 2)]
    """
    return tuple(_linalg.svd(x, full_matrices=full_matrices))


@documented
def vector_norm(x: Any, p: Any = 2.0, axis: Any = None, keepdim: bool = False) -> Any:
    """Compute the p-norm of vectors, of all elements by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linalg.vector_norm(ol.to_tensor([3.0, 4.0]))
    Tensor(5., dtype=float32)
    """
    keepdims = checked_keepdim(keepdim)
    return _linalg.vector_norm(x, ord=p, axis=axes_of(axis), keepdims=keepdims)


def __getattr__(name: str) -> object:
    error = _missing("ol.linalg", name, __all__)
    if callable(getattr(np.linalg, name, None)):
        raise AttributeError(
            f"ol.linalg has no {name!r}: NumPy's functions take Tensors, write np.linalg.{name}"
            "(...), whose arguments are NumPy's.",
            name=name,
            obj=None,
        )
    raise error


def __dir__() -> list[str]:
    return __all__
