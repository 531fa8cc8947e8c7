"""Reductions with Paddle's names: ``ol.sum``, ``ol.std``, ``ol.argmax``, ``ol.norm``.

`sum`, `mean`, `max`, `min` and `prod` take NumPy's keywords as well.
"""

# Functions of this module have the names of Python's own: `sum`, `max`, `min`, `all`, `any`.

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.backend.wrong_arguments import unknown_argument
from optlab.paddle_names.arguments import (
    as_tensors,
    axes_of,
    checked_keepdim,
    documented,
    dtype_of,
    explain_names,
    floating,
    hint_here,
)

_numpy: Any = np  # its type stubs do not know Tensors

#: Arguments of NumPy that its reductions have here, too.
_OPTIONS = ("dtype", "out", "keepdims", "initial", "where")


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Sum elements over `axis`, all of them by default; truth values are counted.

    Parameters
    ----------
    x : Tensor or array
    axis : int or sequence of int, optional
    dtype : str or dtype, optional
        Of the result.
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    **options
        Further keyword arguments of ``np.sum``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.sum(ol.ones([2, 3]), axis=1, keepdim=True)
    Tensor([[3.], [3.]], dtype=float32)
    >>> ol.sum(ol.ones([2, 3]) > 0)
    Tensor(6, dtype=int64)
    """
    return _reduce(np.sum, x, axis, keepdim, options, dtype)


def mean(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Compute the mean over `axis`, all elements by default.

    Parameters
    ----------
    x : Tensor or array
    axis : int or sequence of int, optional
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    **options
        Further keyword arguments of ``np.mean``.

    Raises
    ------
    TypeError
        If `x` is a Tensor of integers or truth values, whose mean Paddle cuts to one of them.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.mean(ol.to_tensor([[1.0, 3.0]]), axis=-1)
    Tensor([2.], dtype=float32)
    """
    x = as_tensors(x)
    if "dtype" not in options:
        _refuse_integers("mean", x)
    return _reduce(np.mean, x, axis, keepdim, options)


def max(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Return the maximum over `axis`; elements that tie share its gradient.

    Parameters
    ----------
    x : Tensor or array
    axis : int or sequence of int, optional
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    **options
        Further keyword arguments of ``np.max``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.max(ol.to_tensor([[1.0, 3.0]]), axis=-1, keepdim=True)
    Tensor([[3.]], dtype=float32)
    """
    return _reduce(np.max, x, axis, keepdim, options)


def min(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Return the minimum over `axis`; elements that tie share its gradient.

    Parameters
    ----------
    x : Tensor or array
    axis : int or sequence of int, optional
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    **options
        Further keyword arguments of ``np.min``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.min(ol.to_tensor([[1.0, 3.0]]), axis=-1)
    Tensor([1.], dtype=float32)
    """
    return _reduce(np.min, x, axis, keepdim, options)


def prod(x: Any, axis: Any = None, keepdim: bool = False, dtype: Any = None, **options: Any) -> Any:
    """Multiply elements over `axis`, all of them by default.

    Parameters
    ----------
    x : Tensor or array
    axis : int or sequence of int, optional
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    dtype : str or dtype, optional
        Of the result.
    **options
        Further keyword arguments of ``np.prod``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.prod(ol.to_tensor([2.0, 3.0]))
    Tensor(6., dtype=float32)
    """
    if dtype is None and isinstance(x, Tensor) and x.dtype == np.int32:
        dtype = x.dtype
    return _reduce(np.prod, x, axis, keepdim, options, dtype)


def _reduce(
    function: Any, x: Any, axis: Any, keepdim: bool, options: dict[str, Any], dtype: Any = None
) -> Any:
    """Call a reduction of NumPy; Paddle also takes several axes as a list."""
    for name, value in options.items():
        if name not in _OPTIONS:
            known = ("x", "axis", "keepdim", *_OPTIONS)
            said = hint_here(name, value, known)
            raise TypeError(unknown_argument(f"ol.{function.__name__}", name, known, hint=said))
    x = as_tensors(x)
    if dtype is not None:
        options["dtype"] = dtype_named(dtype)
    elif isinstance(x, Tensor) and function in (np.sum, np.prod):
        _refuse_small_integers(function.__name__, x)
    if checked_keepdim(keepdim):
        options["keepdims"] = True
    result = function(x, axis=_axes(axis), **options)
    if isinstance(x, Tensor) and not isinstance(result, Tensor):
        return Tensor(np.asarray(result) if isinstance(result, np.generic) else result)
    return result


def _axes(axis: Any) -> Any:
    """Return axes as NumPy takes them; no axes are all axes for Paddle."""
    axis = axes_of(axis)
    return None if axis == () else axis


def _refuse_integers(name: str, x: Any) -> None:
    """Raise for a Tensor of integers or truth values."""
    if isinstance(x, Tensor) and not is_floating(x.dtype):
        raise TypeError(
            f"ol.{name} takes floating numbers; this Tensor has dtype {x.dtype}. (Paddle cuts the "
            f"result to {x.dtype}.) Write ol.{name}(x.astype('float32')), or np.{name}(x), which "
            "is float64."
        )


def _refuse_small_integers(name: str, x: Tensor) -> None:
    """Raise for integers whose sum in Paddle wraps around where NumPy's does not."""
    if x.dtype.kind in "iu" and x.dtype not in (np.int32, np.int64):
        raise TypeError(
            f"ol.{name} of dtype {x.dtype}: in Paddle the result has this dtype and wraps around, "
            f"in NumPy it is wider. Write ol.{name}(x, dtype='int64')."
        )


@documented
def amax(x: Any, axis: Any = None, keepdim: bool = False) -> Any:
    """Return the maximum over `axis`; elements that tie share its gradient.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.amax(ol.to_tensor([[1.0, 3.0]]), axis=-1)
    Tensor([3.], dtype=float32)
    """
    return _reduce(np.max, x, axis, keepdim, {})


@documented
def amin(x: Any, axis: Any = None, keepdim: bool = False) -> Any:
    """Return the minimum over `axis`; elements that tie share its gradient.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.amin(ol.to_tensor([[1.0, 3.0]]), axis=-1)
    Tensor([1.], dtype=float32)
    """
    return _reduce(np.min, x, axis, keepdim, {})


@documented
def all(x: Any, axis: Any = None, keepdim: bool = False) -> Any:
    """Return whether all elements (over `axis`) are not 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.all(ol.to_tensor([True, False]))
    Tensor(False, dtype=bool)
    """
    return np.all(raw(x), axis=_axes(axis), keepdims=checked_keepdim(keepdim))


@documented
def any(x: Any, axis: Any = None, keepdim: bool = False) -> Any:
    """Return whether an element (over `axis`) is not 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.any(ol.to_tensor([True, False]))
    Tensor(True, dtype=bool)
    """
    return np.any(raw(x), axis=_axes(axis), keepdims=checked_keepdim(keepdim))


@documented
def count_nonzero(x: Any, axis: Any = None, keepdim: bool = False) -> Any:
    """Count the elements (over `axis`) that are not 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.count_nonzero(ol.to_tensor([0.0, 2.0, 3.0]))
    Tensor(2, dtype=int64)
    """
    found = _numpy.count_nonzero(raw(x), axis=_axes(axis), keepdims=checked_keepdim(keepdim))
    return np.asarray(found)


@documented
def std(x: Any, axis: Any = None, unbiased: bool = True, keepdim: bool = False) -> Any:
    """Compute the standard deviation, by default with ``n - 1``, as Paddle does.

    ``np.std(x)`` and ``x.std()`` divide by n, as NumPy does.

    Parameters
    ----------
    x : Tensor or array
    axis : int or sequence of int, optional
        All axes by default.
    unbiased : bool
        Divide by ``n - 1`` (NumPy's ``ddof=1``) instead of n.
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).

    Raises
    ------
    TypeError
        If `x` has integers.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.std(ol.to_tensor([1.0, 2.0, 3.0]))
    Tensor(1., dtype=float32)
    """
    return _spread(_numpy.std, x, axis, unbiased, keepdim)


@documented
def var(x: Any, axis: Any = None, unbiased: bool = True, keepdim: bool = False) -> Any:
    """Compute the variance, by default with ``n - 1``, as Paddle does.

    ``np.var(x)`` and ``x.var()`` divide by n, as NumPy does.

    Parameters
    ----------
    x : Tensor or array
    axis : int or sequence of int, optional
        All axes by default.
    unbiased : bool
        Divide by ``n - 1`` (NumPy's ``ddof=1``) instead of n.
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).

    Raises
    ------
    TypeError
        If `x` has integers.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.var(ol.to_tensor([1.0, 2.0, 3.0])), ol.var(ol.to_tensor([1.0, 3.0]), unbiased=False)
    (Tensor(1., dtype=float32), Tensor(1., dtype=float32))
    """
    return _spread(_numpy.var, x, axis, unbiased, keepdim)


def _spread(function: Any, x: Any, axis: Any, unbiased: bool, keepdim: bool) -> Any:
    """Compute a variance or standard deviation."""
    name = function.__name__
    _refuse_integers(name, x)
    if not isinstance(unbiased, (bool, np.bool_)):
        raise TypeError(
            f"ol.{name}(x, axis, unbiased, keepdim): unbiased is True or False; got {unbiased!r}. "
            f"NumPy's arguments (dtype, out, ddof) are those of np.{name}, which takes Tensors."
        )
    options = {"axis": _axes(axis), "keepdims": checked_keepdim(keepdim)}
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN of one element, as in Paddle
        return function(x, ddof=int(unbiased), **options)


@documented
def median(x: Any, axis: Any = None, keepdim: bool = False, mode: str = "avg") -> Any:
    """Compute the median: of two in the middle, their mean.

    Parameters
    ----------
    x : Tensor or array
    axis : int, optional
        All axes by default.
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    mode : str
        Only "avg": the mean of the two in the middle.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.median(ol.to_tensor([1.0, 5.0, 2.0, 4.0]))
    Tensor(3., dtype=float32)
    """
    if mode != "avg":
        raise ValueError(
            f"ol.median(mode={mode!r}) is not there; mode='avg' is. For the lower of the two in "
            "the middle write np.sort(x, axis) and take element (n - 1) // 2."
        )
    return _numpy.median(floating(x), axis=_axes(axis), keepdims=checked_keepdim(keepdim))


@documented
def quantile(
    x: Any, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> Any:
    """Compute quantiles: `q` from 0 to 1, of several of them along a first axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.quantile(ol.to_tensor([1.0, 2.0, 3.0, 5.0]), 0.5)
    Tensor(2.5, dtype=float32)
    """
    q = np.asarray(raw(q), dtype_of(floating(x)))
    keepdims = checked_keepdim(keepdim)
    return _numpy.quantile(
        floating(x), q, axis=_axes(axis), method=interpolation, keepdims=keepdims
    )


@documented
def nansum(x: Any, axis: Any = None, dtype: Any = None, keepdim: bool = False) -> Any:
    """Sum the elements that are not NaN.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nansum(ol.to_tensor([1.0, float("nan")]))
    Tensor(1., dtype=float32)
    """
    wanted = None if dtype is None else dtype_named(dtype)
    return _numpy.nansum(x, axis=_axes(axis), dtype=wanted, keepdims=checked_keepdim(keepdim))


@documented
def nanmean(x: Any, axis: Any = None, keepdim: bool = False) -> Any:
    """Compute the mean of the elements that are not NaN.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nanmean(ol.to_tensor([1.0, 3.0, float("nan")]))
    Tensor(2., dtype=float32)
    """
    return _numpy.nanmean(floating(x), axis=_axes(axis), keepdims=checked_keepdim(keepdim))


@documented
def logsumexp(x: Any, axis: Any = None, keepdim: bool = False) -> Any:
    """Compute ``log(sum(exp(x)))`` without overflow.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.logsumexp(ol.to_tensor([1000.0, 0.0]))
    Tensor(1000., dtype=float32)
    """
    x, axis = floating(x), _axes(axis)
    return _numpy.logaddexp.reduce(x, axis=axis, keepdims=checked_keepdim(keepdim))


@documented
def argmax(x: Any, axis: Any = None, keepdim: bool = False, dtype: Any = "int64") -> Any:
    """Return the index of the maximum, of the first one of several; a Tensor of int64.

    ``np.argmax(x)`` and ``x.argmax()`` give a plain array.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.argmax(ol.to_tensor([[1.0, 3.0], [5.0, 2.0]]), axis=-1)
    Tensor([1, 0], dtype=int64)
    """
    return _index_of(np.argmax, x, axis, keepdim, dtype)


@documented
def argmin(x: Any, axis: Any = None, keepdim: bool = False, dtype: Any = "int64") -> Any:
    """Return the index of the minimum, of the first one of several; a Tensor of int64.

    ``np.argmin(x)`` and ``x.argmin()`` give a plain array.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.argmin(ol.to_tensor([[1.0, 3.0], [5.0, 2.0]]), axis=-1)
    Tensor([0, 1], dtype=int64)
    """
    return _index_of(np.argmin, x, axis, keepdim, dtype)


def _index_of(function: Any, x: Any, axis: Any, keepdim: bool, dtype: Any) -> Any:
    found = function(raw(x), axis=axes_of(axis), keepdims=checked_keepdim(keepdim))
    return found.astype(dtype_named(dtype))


@documented
def cumsum(x: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Compute cumulative sums along `axis`, or of all elements in a row.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.cumsum(ol.to_tensor([1.0, 2.0, 3.0]))
    Tensor([1., 3., 6.], dtype=float32)
    """
    return _cumulative(_numpy.cumsum, x, axis, dtype)


@documented
def cumprod(x: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Compute cumulative products along the axis `dim`, or of all elements in a row.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.cumprod(ol.to_tensor([1.0, 2.0, 3.0]), 0)
    Tensor([1., 2., 6.], dtype=float32)
    """
    if dtype is None and isinstance(x, Tensor) and x.dtype == np.int32:
        dtype = x.dtype
    return _cumulative(_numpy.cumprod, x, dim, dtype)


def _cumulative(function: Any, x: Any, axis: Any, dtype: Any) -> Any:
    if dtype is None and isinstance(x, Tensor):
        _refuse_small_integers(function.__name__, x)
    return function(x, axis=axes_of(axis), dtype=None if dtype is None else dtype_named(dtype))


@documented
def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Compute differences of neighbors along `axis`, n times.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.diff(ol.to_tensor([1.0, 4.0, 9.0]))
    Tensor([3., 5.], dtype=float32)
    """
    ends = {"prepend": prepend, "append": append}
    given = {name: end for name, end in ends.items() if end is not None}
    return _numpy.diff(x, n=n, axis=axes_of(axis), **given)


@documented
def norm(x: Any, p: Any = None, axis: Any = None, keepdim: bool = False) -> Any:
    """Compute the p-norm of vectors, of all elements by default.

    Parameters
    ----------
    x : Tensor or array
    p : float or str, optional
        2 by default; "fro" is the same, infinity the largest absolute value. Over two axes, a
        norm of matrices: 2 is the largest singular value, 1 and infinity the largest sum of a
        column or row, "nuc" the sum of the singular values, "fro" that of all elements.
    axis : int or sequence of int, optional
        All axes by default, as one long vector.
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.norm(ol.to_tensor([[3.0, 0.0], [0.0, 4.0]]))
    Tensor(5., dtype=float32)
    """
    keepdims, axes = checked_keepdim(keepdim), _axes(axis)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ValueError(f"ol.norm takes p='fro', p='nuc' or a number; got {p!r}.")
    order = 2 if p is None else p
    if p == "nuc" or (isinstance(axes, tuple) and len(axes) == 2):
        return _numpy.linalg.norm(x, order, axis=axes, keepdims=keepdims)
    order = 2 if p == "fro" else order
    return _numpy.linalg.vector_norm(x, ord=order, axis=axes, keepdims=keepdims)


@documented
def dist(x: Any, y: Any, p: Any = 2) -> Any:
    """Compute the p-norm of ``x - y``, over all elements.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.dist(ol.to_tensor([3.0, 0.0]), ol.to_tensor([0.0, 4.0]))
    Tensor(5., dtype=float32)
    """
    return _numpy.linalg.vector_norm(x - y, ord=p)


explain_names(globals())
