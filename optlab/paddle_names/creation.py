"""New Tensors with Paddle's names: ``ol.zeros_like``, ``ol.eye``, ``ol.assign``."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.autograd.tensor import creation
from optlab.autograd.tensor.creation import DEFAULT_DTYPE, ShapeLike, to_tensor
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.device import made_here
from optlab.backend.dtypes import dtype_named
from optlab.paddle_names.arguments import documented, dtype_of, explain_names

_numpy: Any = np  # its type stubs do not know Tensors


def _like(x: Any, value: Any, dtype: Any) -> Tensor:
    """Make a Tensor like another one, on its device."""
    wanted = dtype_of(x) if dtype is None else dtype_named(dtype)
    data = raw(x) if hasattr(raw(x), "dtype") else np.asarray(x)
    return Tensor(_numpy.full_like(data, value, dtype=wanted))


def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """Make a Tensor of zeros with the shape of `x`; it needs no gradient.

    Parameters
    ----------
    x : Tensor or array
    dtype : str or dtype, optional
        That of `x` by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.zeros_like(ol.ones([2]))
    Tensor([0., 0.], dtype=float32)
    """
    return _like(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """Make a Tensor of ones with the shape of `x`; it needs no gradient.

    Parameters
    ----------
    x : Tensor or array
    dtype : str or dtype, optional
        That of `x` by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.ones_like(ol.zeros([2]))
    Tensor([1., 1.], dtype=float32)
    """
    return _like(x, 1, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Make a Tensor filled with one value, with the shape of `x`.

    Parameters
    ----------
    x : Tensor or array
    fill_value : number or Tensor
        A Tensor of one element keeps its gradient.
    dtype : str or dtype, optional
        That of `x` by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.full_like(ol.zeros([2]), 7)
    Tensor([7., 7.], dtype=float32)
    """
    if isinstance(fill_value, Tensor) and fill_value.node is not None:
        return creation.full(np.shape(raw(x)), fill_value, dtype_of(x) if dtype is None else dtype)
    return _like(x, raw(fill_value), dtype)


def empty(shape: ShapeLike, dtype: Any = None) -> Tensor:
    """Make a Tensor whose elements are to be written; here they are zeros.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.empty([2]).shape
    (2,)
    """
    creation.refuse_lengths("empty", shape, dtype)
    return creation.zeros(shape, dtype)


def empty_like(x: Any, dtype: Any = None) -> Tensor:
    """Make a Tensor with the shape of `x`, whose elements are to be written; here they are zeros.

    Parameters
    ----------
    x : Tensor or array
    dtype : str or dtype, optional
        That of `x` by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.empty_like(ol.ones([2])).shape
    (2,)
    """
    return _like(x, 0, dtype)


def eye(num_rows: int, num_columns: int | None = None, dtype: Any = None) -> Tensor:
    """Make a matrix with ones on its diagonal.

    Parameters
    ----------
    num_rows : int
    num_columns : int, optional
        As many as rows by default.
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.eye(2)
    Tensor([[1., 0.], [0., 1.]], dtype=float32)
    """
    wanted = DEFAULT_DTYPE if dtype is None else dtype_named(dtype)
    return Tensor(made_here().eye(num_rows, num_columns, dtype=wanted))


def linspace(start: Any, stop: Any, num: Any, dtype: Any = None) -> Tensor:
    """Make a Tensor of `num` numbers from `start` to `stop`, both included.

    Parameters
    ----------
    start, stop : number or Tensor of one
    num : int
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.linspace(0, 1, 5)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    return _spaced("linspace", start, stop, num, dtype)


def logspace(start: Any, stop: Any, num: Any, base: Any = 10.0, dtype: Any = None) -> Tensor:
    """Make a Tensor of `num` powers, from ``base**start`` to ``base**stop``.

    Parameters
    ----------
    start, stop : number or Tensor of one
    num : int
    base : number or Tensor of one
    dtype : str or dtype, optional
        float32 by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.logspace(0, 2, 3)
    Tensor([  1.,  10., 100.], dtype=float32)
    """
    return _spaced("logspace", start, stop, num, dtype, base=float(raw(base)))


def _spaced(name: str, start: Any, stop: Any, num: Any, dtype: Any, **options: Any) -> Tensor:
    wanted = DEFAULT_DTYPE if dtype is None else dtype_named(dtype)
    ends = [one.item() if isinstance(one, Tensor) else one for one in (start, stop)]
    values = getattr(made_here(), name)(*ends, int(raw(num)), **options)
    return Tensor(values.astype(wanted))


@documented
def assign(x: Any, output: Any = None) -> Any:
    """Return a copy as a Tensor, or write it to `output`; the gradient passes through.

    Parameters
    ----------
    x : Tensor, array, number or nested list
    output : Tensor, optional
        Overwritten with the values, and returned.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.assign([1.0, 2.0])
    Tensor([1., 2.], dtype=float32)
    """
    if output is None:
        return x.copy() if isinstance(x, Tensor) else to_tensor(x)
    if not isinstance(output, Tensor):
        raise TypeError(f"ol.assign writes to a Tensor; output is {type(output).__name__}.")
    if output.is_leaf:
        output.set_value(x)
    else:
        output[...] = x
    return output


@documented
def clone(x: Any) -> Any:
    """Return a copy in its own memory; the gradient passes through.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.clone(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """
    return x.copy()


def tolist(x: Any) -> Any:
    """Return the values as nested Python lists.

    Parameters
    ----------
    x : Tensor or array

    Examples
    --------
    >>> import optlab as ol
    >>> ol.tolist(ol.ones([2]))
    [1.0, 1.0]
    """
    return raw(x).tolist()


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Return rows and columns of the lower triangle of a matrix, as two rows.

    Parameters
    ----------
    row, col : int
        Shape of the matrix.
    offset : int
        Up to which diagonal.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.tril_indices(2, 2)
    Tensor([[0, 1, 1], [0, 0, 1]], dtype=int64)
    """
    return Tensor(np.asarray(np.tril_indices(row, offset, col), "int64"))


def triu_indices(row: int, col: int | None = None, offset: int = 0) -> Tensor:
    """Return rows and columns of the upper triangle of a matrix, as two rows.

    Parameters
    ----------
    row : int
    col : int, optional
        Shape of the matrix; square by default.
    offset : int
        From which diagonal on.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.triu_indices(2)
    Tensor([[0, 0, 1], [0, 1, 1]], dtype=int64)
    """
    return Tensor(np.asarray(np.triu_indices(row, offset, row if col is None else col), "int64"))


explain_names(globals())
