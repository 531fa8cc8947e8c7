"""Functions that select, scatter and order elements: ``ol.gather``, ``ol.where``, ``ol.topk``."""

# A function of this module has the name of one of Python's own: `slice` is not used here.

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.rules.manipulation.indexing import scatter_recorded
from optlab.autograd.tape.base import raw
from optlab.autograd.tensor.creation import DEFAULT_DTYPE
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.dtypes import is_floating
from optlab.paddle_names.arguments import axes_of, documented, dtype_of, explain_names, plain

_numpy: Any = np  # its type stubs do not know Tensors


@documented
def gather(x: Any, index: Any, axis: Any = 0) -> Any:
    """Return the slices of `x` at `index`, along an axis (``np.take``).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.gather(ol.to_tensor([[1.0], [2.0], [3.0]]), ol.to_tensor([2, 0]))
    Tensor([[3.], [1.]], dtype=float32)
    """
    at = plain(index)
    if at.ndim == 2 and at.shape[1] == 1:
        at = at[:, 0]
    return _numpy.take(x, at, axis=axes_of(axis))


@documented
def gather_nd(x: Any, index: Any) -> Any:
    """Return the elements (or slices) at the positions in the last axis of `index`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.gather_nd(ol.to_tensor([[1.0, 2.0], [3.0, 4.0]]), ol.to_tensor([[1, 0], [0, 1]]))
    Tensor([3., 2.], dtype=float32)
    """
    return x[_positions(index)]


def _positions(index: Any) -> Any:
    """Return an index whose last axis holds positions as a tuple of arrays."""
    return tuple(np.moveaxis(plain(index), -1, 0))


@documented
def index_select(x: Any, index: Any, axis: int = 0) -> Any:
    """Return the slices of `x` at `index`, along an axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.index_select(ol.to_tensor([[1.0, 2.0, 3.0]]), ol.to_tensor([2, 0]), axis=1)
    Tensor([[3., 1.]], dtype=float32)
    """
    return _numpy.take(x, plain(index), axis=axis)


@documented
def index_sample(x: Any, index: Any) -> Any:
    """Return, of each row of `x`, the elements at that row of `index`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.index_sample(ol.to_tensor([[1.0, 2.0], [3.0, 4.0]]), ol.to_tensor([[1], [0]]))
    Tensor([[2.], [3.]], dtype=float32)
    """
    return _numpy.take_along_axis(x, plain(index), 1)


@documented
def take_along_axis(arr: Any, indices: Any, axis: int, broadcast: bool = True) -> Any:
    """Return elements along an axis, by an index of as many axes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.take_along_axis(ol.to_tensor([[1.0, 2.0], [3.0, 4.0]]), ol.to_tensor([[1], [0]]), 1)
    Tensor([[2.], [3.]], dtype=float32)
    """
    at = plain(indices)
    if broadcast:
        return _numpy.take_along_axis(arr, at, axis)
    return arr[_along(at, axis)]


def _along(at: Any, axis: int) -> Any:
    """Return the index tuple of ``take_along_axis`` without broadcasting."""
    grid = list(np.indices(at.shape, sparse=True))
    grid[axis] = at
    return tuple(grid)


@documented
def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int, reduce: str = "assign",
    include_self: bool = True, broadcast: bool = True,
) -> Any:  # fmt: skip
    """Return `arr` with `values` at the places that ``take_along_axis`` reads.

    Parameters
    ----------
    arr : Tensor or array
    indices : Tensor or array of int
    values : Tensor, array or number
    axis : int
    reduce : str
        "assign", or "add" to what is there.
    include_self : bool
        Only True: what is there counts.
    broadcast : bool
        Whether `indices` are broadcast to the other axes of `arr`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.put_along_axis(ol.zeros([2, 2]), ol.to_tensor([[1], [0]]), 5.0, 1)
    Tensor([[0., 5.], [5., 0.]], dtype=float32)
    """
    if reduce not in ("assign", "add") or not include_self:
        raise ValueError(
            f"ol.put_along_axis(reduce={reduce!r}, include_self={include_self}) is not there; "
            "reduce='assign' and 'add' are, with include_self=True."
        )
    at = plain(indices)
    if broadcast:
        lengths = list(np.shape(raw(arr)))
        lengths[axis] = at.shape[axis]
        at = np.broadcast_to(at, lengths)
    return _written(arr, _along(at, axis), values, add=reduce == "add")


def _written(x: Any, index: Any, values: Any, add: bool) -> Any:
    """Return `x` with values written at an index, or added, as often as it names a place."""
    if not add:
        made = x.copy()
        made[index] = values
        return made
    shape = np.shape(raw(x))
    places = np.empty(shape, bool)[index].shape
    dtype = dtype_of(x)
    if not hasattr(raw(values), "dtype"):
        values = np.asarray(values, dtype)
    added = scatter_recorded(_numpy.broadcast_to(values, places), index, shape)
    return x + (added if dtype_of(added) == dtype else added.astype(dtype))


@documented
def scatter(x: Any, index: Any, updates: Any, overwrite: bool = True) -> Any:
    """Return `x` with the rows at `index` replaced by `updates`.

    Parameters
    ----------
    x : Tensor or array
    index : Tensor or array of int
        One axis.
    updates : Tensor or array
        A row for each index.
    overwrite : bool
        Where an index stands twice: the last row (True), or the sum of the rows (False).

    Examples
    --------
    >>> import optlab as ol
    >>> x, rows = ol.ones([3, 1]), ol.to_tensor([[2.0], [3.0]])
    >>> ol.scatter(x, ol.to_tensor([1, 1]), rows, overwrite=False)
    Tensor([[1.], [5.], [1.]], dtype=float32)
    """
    at = plain(index).reshape(-1)
    if overwrite:
        return _written(x, at, updates, add=False)
    return _written(_written(x, at, 0, add=False), at, updates, add=True)


@documented
def scatter_nd_add(x: Any, index: Any, updates: Any) -> Any:
    """Return `x` with `updates` added at the positions in the last axis of `index`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.scatter_nd_add(ol.ones([3]), ol.to_tensor([[1], [1]]), ol.to_tensor([2.0, 3.0]))
    Tensor([1., 6., 1.], dtype=float32)
    """
    return _written(x, _positions(index), updates, add=True)


@documented
def scatter_nd(index: Any, updates: Any, shape: Any) -> Any:
    """Return zeros with `updates` added at the positions in the last axis of `index`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.scatter_nd(ol.to_tensor([[1], [1]]), ol.to_tensor([2.0, 3.0]), [3])
    Tensor([0., 5., 0.], dtype=float32)
    """
    return scatter_recorded(updates, _positions(index), tuple(int(raw(n)) for n in shape))


@documented
def index_add(x: Any, index: Any, axis: int, value: Any) -> Any:
    """Return `x` with slices added at `index`, along an axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.index_add(ol.ones([3]), ol.to_tensor([0, 0]), 0, ol.to_tensor([1.0, 2.0]))
    Tensor([4., 1., 1.], dtype=float32)
    """
    at = (slice(None),) * (axis % np.ndim(raw(x))) + (plain(index),)
    return _written(x, at, value, add=True)


@documented
def masked_select(x: Any, mask: Any) -> Any:
    """Return the elements where `mask` is True, one after the other.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, -2.0, 3.0])
    >>> ol.masked_select(x, x > 0)
    Tensor([1., 3.], dtype=float32)
    """
    x, mask = (
        _numpy.broadcast_arrays(x, raw(mask))
        if np.shape(raw(x)) != np.shape(raw(mask))
        else (x, raw(mask))
    )
    return x[raw(mask)]


@documented
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    """Return `x` with `value` where `mask` is True.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, -2.0, 3.0])
    >>> ol.masked_fill(x, x < 0, 0.0)
    Tensor([1., 0., 3.], dtype=float32)
    """
    return _numpy.where(raw(mask), value, x)


@documented
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return elements of `x` where the condition is True, else of `y`; alone, where it is True.

    Parameters
    ----------
    condition : Tensor or array of bool
    x, y : Tensor, array or number, optional

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, -2.0])
    >>> ol.where(x > 0, x, 0.0)
    Tensor([1., 0.], dtype=float32)
    """
    if x is None and y is None:
        return tuple(np.nonzero(raw(condition)))
    if x is None or y is None:
        raise ValueError("ol.where takes x and y, or neither of them.")
    made = _numpy.where(raw(condition), x, y)
    if isinstance(condition, Tensor) and all(isinstance(one, (int, float)) for one in (x, y)):
        return made.astype(DEFAULT_DTYPE) if is_floating(dtype_of(made)) else made
    return made


@documented
def nonzero(x: Any, as_tuple: bool = False) -> Any:
    """Return the positions of the elements that are not 0, one row each.

    Parameters
    ----------
    x : Tensor or array
    as_tuple : bool
        Give one vector for each axis instead (``np.nonzero``).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nonzero(ol.to_tensor([0.0, 2.0, 3.0]))
    Tensor([[1], [2]], dtype=int64)
    """
    found = np.nonzero(raw(x))
    return found if as_tuple else np.stack(found, axis=-1)


@documented
def sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Sort along an axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.sort(ol.to_tensor([2.0, 3.0, 1.0]), descending=True)
    Tensor([3., 2., 1.], dtype=float32)
    """
    if np.ndim(raw(x)) == 0:
        return +x
    if not descending:
        return _numpy.sort(x, axis=axis, stable=stable or None)
    return _numpy.take_along_axis(x, _order(x, axis, True), axis)


@documented
def argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Return the indices that sort along an axis; of equal elements, the first one first.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.argsort(ol.to_tensor([2.0, 3.0, 1.0]))
    Tensor([2, 0, 1], dtype=int64)
    """
    if np.ndim(raw(x)) == 0:
        return np.zeros((), "int64")
    return _order(x, axis, descending)  # always stable


def _order(x: Any, axis: int, descending: bool) -> Any:
    """Return the indices that sort `x`; equal elements keep their order."""
    values = raw(x)
    if not descending:
        return np.argsort(values, axis=axis, stable=True)
    backward = np.flip(values, axis)
    return np.flip(values.shape[axis] - 1 - np.argsort(backward, axis=axis, stable=True), axis)


@documented
def topk(x: Any, k: Any, axis: Any = None, largest: bool = True, sorted: bool = True) -> Any:
    """Return the k largest elements along an axis, and their indices.

    Parameters
    ----------
    x : Tensor or array
    k : int
    axis : int, optional
        The last one by default.
    largest : bool
        Otherwise the smallest.
    sorted : bool
        Only True: the result is in order.

    Returns
    -------
    values, indices : Tensor

    Examples
    --------
    >>> import optlab as ol
    >>> ol.topk(ol.to_tensor([1.0, 4.0, 3.0]), k=2)
    (Tensor([4., 3.], dtype=float32), Tensor([1, 2], dtype=int64))
    """
    if not sorted:
        raise ValueError("ol.topk gives its elements in order: leave sorted=False out.")
    axis, k = -1 if axis is None else axes_of(axis), int(raw(k))
    length = np.shape(raw(x))[axis]
    if not 1 <= k <= length:
        raise ValueError(f"ol.topk: k={k}, but axis {axis} of x has {length} elements.")
    at = np.take(_order(x, axis, largest), np.arange(k), axis=axis)
    return _numpy.take_along_axis(x, at, axis), at


@documented
def kthvalue(x: Any, k: int, axis: Any = None, keepdim: bool = False) -> Any:
    """Return the k-th smallest element along an axis, from 1, and its index.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.kthvalue(ol.to_tensor([1.0, 4.0, 3.0]), 2)
    (Tensor(3., dtype=float32), Tensor(2, dtype=int64))
    """
    axis = -1 if axis is None else axis
    length = np.shape(raw(x))[axis]
    if not 1 <= k <= length:
        raise ValueError(f"ol.kthvalue: k={k}, but axis {axis} of x has {length} elements.")
    at = np.take(_order(x, axis, False), [k - 1], axis=axis)
    found = _numpy.take_along_axis(x, at, axis)
    return (found, at) if keepdim else (_numpy.squeeze(found, axis), np.squeeze(at, axis))


@documented
def searchsorted(
    sorted_sequence: Any, values: Any, out_int32: bool = False, right: bool = False
) -> Any:
    """Return the places at which to insert values into a sorted vector.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.searchsorted(ol.to_tensor([1.0, 2.0, 4.0]), ol.to_tensor([3.0]))
    Tensor([2], dtype=int64)
    """
    found = np.searchsorted(raw(sorted_sequence), raw(values), "right" if right else "left")
    return found.astype("int32" if out_int32 else "int64")


@documented
def unique(
    x: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: Any = None, dtype: Any = "int64",
) -> Any:  # fmt: skip
    """Return the elements without repetition, in order (``np.unique``).

    Parameters
    ----------
    x : Tensor or array
    return_index, return_inverse, return_counts : bool
        Also return where each stands first, which one each element is, how often each occurs.
    axis : int, optional
        Compare slices along this axis, not elements.
    dtype : str or dtype
        Of what else is returned.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.unique(ol.to_tensor([3, 1, 3]))
    Tensor([1, 3], dtype=int64)
    """
    found = _numpy.unique(raw(x), return_index, return_inverse, return_counts, axis)
    if not isinstance(found, tuple):
        return found
    values, *others = found
    return (values, *(one.astype(dtype).reshape(-1) for one in others))


@documented
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Count how often each whole number occurs.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.bincount(ol.to_tensor([0, 2, 2]))
    Tensor([1, 0, 2], dtype=int64)
    """
    found = np.bincount(raw(x), raw(weights), minlength)
    return found if weights is None else found.astype(dtype_of(weights))


@documented
def tril(x: Any, diagonal: int = 0) -> Any:
    """Return the lower triangle of matrices, up to a diagonal; zeros above.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.tril(ol.ones([2, 2]))
    Tensor([[1., 0.], [1., 1.]], dtype=float32)
    """
    return _numpy.tril(x, diagonal)


@documented
def triu(x: Any, diagonal: int = 0) -> Any:
    """Return the upper triangle of matrices, from a diagonal on; zeros below.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.triu(ol.ones([2, 2]), 1)
    Tensor([[0., 1.], [0., 0.]], dtype=float32)
    """
    return _numpy.triu(x, diagonal)


@documented
def diag(x: Any, offset: int = 0, padding_value: Any = 0) -> Any:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.diag(ol.to_tensor([1.0, 2.0]))
    Tensor([[1., 0.], [0., 2.]], dtype=float32)
    """
    made = _numpy.diag(_numpy.atleast_1d(x), offset)
    if padding_value and np.ndim(raw(x)) < 2:
        return _numpy.where(np.eye(len(made), k=offset, dtype=bool), made, padding_value)
    return made


@documented
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return a diagonal, as the last axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.diagonal(ol.to_tensor([[1.0, 2.0], [3.0, 4.0]]))
    Tensor([1., 4.], dtype=float32)
    """
    return _numpy.diagonal(x, offset, axis1, axis2)


explain_names(globals())
