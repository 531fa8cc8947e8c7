"""NumPy, with the functions that NumPy cannot hand to Tensors by itself.

``np.exp(t)`` works with NumPy alone, because NumPy asks the Tensor. But ``np.array([t, t])``,
``np.full(3, t)`` or ``np.sum([t, t])`` ask nobody. Here they keep the gradient; everything else is
NumPy's own.

Examples
--------
>>> import optlab as ol
>>> import optlab.numpy as np
>>> t = ol.to_tensor([1.0, 2.0], requires_grad=True)
>>> np.array([t[0], 3.0 * t[1]])
Tensor([1., 6.], dtype=float32, requires_grad=True)
>>> np.pi
3.141592653589793
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as _numpy

from optlab.autograd.tensor import Tensor
from optlab.autograd.tensor import raw as _raw
from optlab.backend.ensemble import EnsembleArray as _EnsembleArray

#: Functions that take a sequence of arrays as such, so that a list must stay a list.
_TAKE_SEQUENCES = frozenset(
    "concatenate stack vstack hstack dstack column_stack block broadcast_arrays".split()
)


#: Arrays that NumPy must not make plain arrays of.
_KINDS = (Tensor, _EnsembleArray)


def _holds_tensor(x: Any) -> bool:
    """Say whether a nested list or tuple holds a Tensor (or an ensemble)."""
    if isinstance(x, (list, tuple)):
        return any(isinstance(part, _KINDS) or _holds_tensor(part) for part in x)
    return False


def _joined(x: Any) -> Any:
    """Make one Tensor out of nested lists that hold Tensors; anything else as it is."""
    if _holds_tensor(x):
        return _numpy.stack([_joined(part) for part in x])
    return x


def array(object: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Make an array, or a Tensor where Tensors are among the elements."""
    if isinstance(object, _KINDS) or _holds_tensor(object):
        refused = kwargs.keys() - {"ndmin", "copy"}
        if refused:
            raise TypeError(f"array(..., {min(refused)}=) is not covered on Tensors.")
        joined = +object if isinstance(object, _KINDS) else _joined(object)
        missing = kwargs.get("ndmin", 0) - joined.ndim
        if missing > 0:
            joined = joined.reshape((1,) * missing + joined.shape)
        return joined if dtype is None else joined.astype(dtype)
    return _numpy.array(object, dtype=dtype, **kwargs)


def asarray(a: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Give `a` itself if it is a Tensor; make an array or Tensor of anything else."""
    if isinstance(a, _KINDS) and (dtype is None or a.dtype == dtype):
        return a
    if isinstance(a, _KINDS) or _holds_tensor(a):
        return array(a, dtype)
    return _numpy.asarray(a, dtype=dtype, **kwargs)


asanyarray = ascontiguousarray = asarray


def take(a: Any, indices: Any, axis: Any = None, **options: Any) -> Any:
    """Read `a` at `indices`, which the members of an ensemble may each have of their own."""
    indices = _raw(indices)
    if isinstance(indices, _EnsembleArray) and not isinstance(a, Tensor):
        return indices.__array_function__(
            _numpy.take, (_EnsembleArray,), (a, indices, axis), options
        )
    return _numpy.take(a, indices, axis, **options)


def full(shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Fill a shape with one value, which may be a Tensor."""
    if isinstance(fill_value, _KINDS) or _holds_tensor(fill_value):
        shape = (shape,) if isinstance(shape, (int, _numpy.integer)) else tuple(shape)
        return _numpy.broadcast_to(array(fill_value, dtype), shape)
    return _numpy.full(shape, fill_value, dtype, **kwargs)


def full_like(a: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Fill the shape of `a` with one value, which may be a Tensor."""
    if isinstance(fill_value, _KINDS) or _holds_tensor(fill_value):
        return full(_numpy.shape(a), fill_value, dtype or asarray(a).dtype)
    return _numpy.full_like(_raw(a), fill_value, dtype, **kwargs)


def _taking_lists(function: Any) -> Any:
    """Let a function of NumPy take lists that hold Tensors."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(
            *[_joined(x) for x in args], **{name: _joined(x) for name, x in kwargs.items()}
        )

    return called


class _UniversalFunction:
    """A ufunc that takes lists holding Tensors; everything else about it is NumPy's."""

    def __init__(self, ufunc: Any) -> None:
        self._ufunc = ufunc
        self.__name__ = ufunc.__name__
        self.__doc__ = ufunc.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _taking_lists(self._ufunc)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._ufunc, name)
        return _taking_lists(value) if callable(value) else value

    def __repr__(self) -> str:
        return repr(self._ufunc)


#: Wrapped functions. Not among the module's globals: there ``any`` or ``max`` would take the place
#: of Python's own in the code above.
_wrapped: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name in _wrapped:
        return _wrapped[name]
    value = getattr(_numpy, name)
    if isinstance(value, _numpy.ufunc):
        value = _wrapped[name] = _UniversalFunction(value)
    elif callable(value) and not isinstance(value, type) and name not in _TAKE_SEQUENCES:
        value = _wrapped[name] = _taking_lists(value)
    return value


def __dir__() -> list[str]:
    return sorted(set(dir(_numpy)) | set(globals()))
