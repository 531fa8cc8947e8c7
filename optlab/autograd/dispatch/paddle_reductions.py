"""NumPy's reductions with the arguments that Paddle documents: ``ol.sum(x, axis, keepdim=True)``.

They take NumPy's keywords as well. For arrays the result is NumPy's, for Tensors a Tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from optlab.backend.dtypes import dtype_named

Reduction = TypeVar("Reduction", bound=Callable[..., Any])

#: The docstring entries of the parameters that these functions share.
_PARAMETERS = {
    "x": "x : Tensor or array",
    "axis": "axis : int or tuple of int, optional",
    "dtype": "dtype : str or dtype, optional\n        Of the result.",
    "keepdim": "keepdim : bool\n        Keep the axes, with length 1 (NumPy's ``keepdims``).",
}


def _with_parameters(function: Reduction) -> Reduction:
    """Insert the Parameters section into a docstring, above its examples."""
    name, code = function.__name__, function.__code__
    described = [_PARAMETERS[one] for one in code.co_varnames[: code.co_argcount]]
    described.append(f"**options\n        Further keyword arguments of ``np.{name}``.")
    section = "\n    ".join(["Parameters", "----------", *described])
    function.__doc__ = (function.__doc__ or "").replace("Examples", f"{section}\n\n    Examples")
    return function


@_with_parameters
def sum(x: Any, axis: Any = None, dtype: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Sum elements over `axis`, all of them by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.sum(ol.ones([2, 3]), axis=1, keepdim=True)
    Tensor([[3.], [3.]], dtype=float32)
    """
    return _reduce(np.sum, x, axis, keepdim, options, dtype)


@_with_parameters
def mean(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Compute the mean over `axis`, all elements by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.mean(ol.to_tensor([[1.0, 3.0]]), axis=-1)
    Tensor([2.], dtype=float32)
    """
    return _reduce(np.mean, x, axis, keepdim, options)


@_with_parameters
def max(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Return the maximum over `axis`; elements that tie share its gradient.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.max(ol.to_tensor([[1.0, 3.0]]), axis=-1, keepdim=True)
    Tensor([[3.]], dtype=float32)
    """
    return _reduce(np.max, x, axis, keepdim, options)


@_with_parameters
def min(x: Any, axis: Any = None, keepdim: bool = False, **options: Any) -> Any:
    """Return the minimum over `axis`; elements that tie share its gradient.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.min(ol.to_tensor([[1.0, 3.0]]), axis=-1)
    Tensor([1.], dtype=float32)
    """
    return _reduce(np.min, x, axis, keepdim, options)


@_with_parameters
def prod(x: Any, axis: Any = None, keepdim: bool = False, dtype: Any = None, **options: Any) -> Any:
    """Multiply elements over `axis`, all of them by default.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.prod(ol.to_tensor([2.0, 3.0]))
    Tensor(6., dtype=float32)
    """
    return _reduce(np.prod, x, axis, keepdim, options, dtype)


def _reduce(
    function: Any, x: Any, axis: Any, keepdim: bool, options: dict[str, Any], dtype: Any = None
) -> Any:
    """Call a reduction of NumPy; Paddle also takes several axes as a list."""
    if dtype is not None:
        options["dtype"] = dtype_named(dtype)
    if not isinstance(keepdim, (bool, np.bool_)):
        raise TypeError(
            f"keepdim is True or False; got {keepdim!r}. (NumPy's dtype and out go by name here.)"
        )
    if keepdim:
        options["keepdims"] = True
    return function(x, axis=tuple(axis) if isinstance(axis, list) else axis, **options)
