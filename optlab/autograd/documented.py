"""Functions of NumPy as Paddle's documents call them: ``ol.sum(x, axis, keepdim=True)``.

Each is NumPy's own, with the order of arguments that Paddle documents, and takes NumPy's keywords
as well; of Tensors it gives Tensors, of arrays what NumPy gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.backend.dtypes import dtype_named


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Add up elements over `axis`, all of them by default.

    Parameters
    ----------
    x : Tensor or array
    axis : int or tuple of int, optional
    dtype : str or dtype, optional
        Of the sum.
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    **options
        More that ``np.sum`` takes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.sum(ol.ones([2, 3]), axis=1, keepdim=True)
    Tensor([[3.], [3.]], dtype=float32)
    """
    if dtype is not None:
        options["dtype"] = dtype_named(dtype)
    return np.sum(x, axis=_axes(axis), **_with(keepdim, options))


def mean(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Average elements over `axis`, all of them by default.

    Parameters
    ----------
    x : Tensor or array
    axis : int or tuple of int, optional
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    **options
        More that ``np.mean`` takes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.mean(ol.to_tensor([[1.0, 3.0]]), axis=-1)
    Tensor([2.], dtype=float32)
    """
    return np.mean(x, axis=_axes(axis), **_with(keepdim, options))


def max(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Give the largest element over `axis`; where several tie they share its gradient.

    Parameters
    ----------
    x : Tensor or array
    axis : int or tuple of int, optional
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    **options
        More that ``np.max`` takes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.max(ol.to_tensor([[1.0, 3.0]]), axis=-1, keepdim=True)
    Tensor([[3.]], dtype=float32)
    """
    return np.max(x, axis=_axes(axis), **_with(keepdim, options))


def min(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Give the smallest element over `axis`; where several tie they share its gradient.

    Parameters
    ----------
    x : Tensor or array
    axis : int or tuple of int, optional
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    **options
        More that ``np.min`` takes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.min(ol.to_tensor([[1.0, 3.0]]), axis=-1)
    Tensor([1.], dtype=float32)
    """
    return np.min(x, axis=_axes(axis), **_with(keepdim, options))


def prod(x: Any, axis: Any = None, keepdim: bool = False, dtype: Any = None, **options: Any) -> Any:
    """Multiply elements over `axis`, all of them by default.

    Parameters
    ----------
    x : Tensor or array
    axis : int or tuple of int, optional
    keepdim : bool
        Keep the axes, with length 1 (NumPy's ``keepdims``).
    dtype : str or dtype, optional
        Of the product.
    **options
        More that ``np.prod`` takes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.prod(ol.to_tensor([2.0, 3.0]))
    Tensor(6., dtype=float32)
    """
    if dtype is not None:
        options["dtype"] = dtype_named(dtype)
    return np.prod(x, axis=_axes(axis), **_with(keepdim, options))


def _axes(axis: Any) -> Any:
    """Give several axes as the tuple that NumPy asks for; Paddle's documents have lists."""
    return tuple(axis) if isinstance(axis, list) else axis


def _with(keepdim: bool, options: dict[str, Any]) -> dict[str, Any]:
    """Give NumPy's keywords."""
    if not isinstance(keepdim, (bool, np.bool_)):
        raise TypeError(
            f"keepdim is True or False; got {keepdim!r}. (NumPy's dtype and out go by name here.)"
        )
    return {**options, "keepdims": True} if keepdim else options
