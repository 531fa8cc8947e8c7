"""Products with Paddle's names: ``ol.matmul``, ``ol.dot``, ``ol.outer``, ``ol.einsum``."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.paddle_names.arguments import documented, explain_names

_numpy: Any = np  # its type stubs do not know Tensors


def _axes(x: Any) -> int:
    return int(np.ndim(raw(x)))


def _turned(x: Any, wanted: bool) -> Any:
    """Return the transpose of each matrix if it is wanted; vectors stay."""
    return _numpy.swapaxes(x, -1, -2) if wanted and _axes(x) > 1 else x


@documented
def matmul(x: Any, y: Any, transpose_x: bool = False, transpose_y: bool = False) -> Any:
    """Multiply matrices, the last two axes; either may be transposed before.

    Parameters
    ----------
    x, y : Tensor or array
    transpose_x, transpose_y : bool
        Whether to exchange the last two axes first.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.matmul(ol.ones([2, 3]), ol.ones([4, 3]), transpose_y=True).shape
    (2, 4)
    """
    return _numpy.matmul(_turned(x, transpose_x), _turned(y, transpose_y))


@documented
def mm(input: Any, mat2: Any) -> Any:
    """Multiply two matrices.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.mm(ol.ones([2, 3]), ol.ones([3, 4])).shape
    (2, 4)
    """
    return _numpy.matmul(input, mat2)


@documented
def bmm(x: Any, y: Any) -> Any:
    """Multiply two stacks of as many matrices.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.bmm(ol.ones([5, 2, 3]), ol.ones([5, 3, 4])).shape
    (5, 2, 4)
    """
    if (_axes(x), _axes(y)) != (3, 3) or len(raw(x)) != len(raw(y)):
        raise ValueError(
            f"ol.bmm takes two stacks of as many matrices; got shapes {np.shape(raw(x))} and "
            f"{np.shape(raw(y))}. ol.matmul broadcasts."
        )
    return _numpy.matmul(x, y)


@documented
def mv(x: Any, vec: Any) -> Any:
    """Multiply a matrix and a vector.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.mv(ol.ones([2, 3]), ol.ones([3]))
    Tensor([3., 3.], dtype=float32)
    """
    return _numpy.matmul(x, vec)


@documented
def dot(x: Any, y: Any) -> Any:
    """Multiply and sum along the last axis: the products of two vectors, or of rows.

    ``np.dot`` of matrices is their matrix product instead.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.dot(ol.to_tensor([1.0, 2.0]), ol.to_tensor([3.0, 4.0]))
    Tensor(11., dtype=float32)
    """
    if np.shape(raw(x)) != np.shape(raw(y)) or _axes(x) not in (1, 2):
        raise ValueError(
            f"ol.dot takes two vectors, or two matrices of one shape, whose rows it multiplies; "
            f"got shapes {np.shape(raw(x))} and {np.shape(raw(y))}. The matrix product is x @ y."
        )
    return _numpy.sum(x * y, axis=-1)


@documented
def inner(x: Any, y: Any) -> Any:
    """Sum the products over the last axis of both.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.inner(ol.ones([2, 3]), ol.ones([4, 3])).shape
    (2, 4)
    """
    return _numpy.inner(x, y)


@documented
def outer(x: Any, y: Any) -> Any:
    """Multiply each element of `x` with each of `y`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.outer(ol.to_tensor([1.0, 2.0]), ol.to_tensor([3.0, 4.0]))
    Tensor([[3., 4.], [6., 8.]], dtype=float32)
    """
    return _numpy.outer(x, y)


@documented
def cross(x: Any, y: Any, axis: Any = None) -> Any:
    """Compute cross products along an axis of length 3, the first one by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.cross(ol.to_tensor([1.0, 0.0, 0.0]), ol.to_tensor([0.0, 1.0, 0.0]))
    Tensor([0., 0., 1.], dtype=float32)
    """
    shape = np.shape(raw(x))
    if axis is None:
        if 3 not in shape:
            raise ValueError(f"ol.cross needs an axis of length 3; x has shape {shape}.")
        axis = shape.index(3)
    return _numpy.cross(x, y, axis=axis)


@documented
def kron(x: Any, y: Any) -> Any:
    """Compute the Kronecker product.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.kron(ol.to_tensor([1.0, 2.0]), ol.to_tensor([1.0, 1.0]))
    Tensor([1., 1., 2., 2.], dtype=float32)
    """
    return _numpy.kron(x, y)


@documented
def addmm(input: Any, x: Any, y: Any, beta: float = 1.0, alpha: float = 1.0) -> Any:
    """Compute ``beta * input + alpha * (x @ y)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.addmm(ol.ones([1, 1]), ol.ones([1, 2]), ol.ones([2, 1]))
    Tensor([[3.]], dtype=float32)
    """
    return beta * input + alpha * _numpy.matmul(x, y)


@documented
def einsum(equation: str, *operands: Any) -> Any:
    """Sum products by Einstein's convention.

    Parameters
    ----------
    equation : str
    *operands : Tensors or arrays

    Examples
    --------
    >>> import optlab as ol
    >>> ol.einsum("ij,kj->ik", ol.ones([2, 3]), ol.ones([4, 3])).shape
    (2, 4)
    """
    return _numpy.einsum(equation, *operands)


explain_names(globals())
