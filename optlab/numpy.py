"""NumPy, with the functions that NumPy itself does not dispatch to Tensors.

``np.exp(t)`` works with NumPy alone, because NumPy dispatches to the Tensor. But
``np.array([t, t])``, ``np.full(3, t)`` and ``np.sum([t, t])`` are not dispatched. Here they keep
the gradient; everything else is NumPy's own.

Examples
--------
>>> import optlab as ol
>>> import optlab.numpy as np
>>> t = ol.to_tensor([1.0, 2.0], requires_grad=True)
>>> np.array([t[0], 3.0 * t[1]])
Tensor([1., 6.], dtype=float32, requires_grad=True)
>>> np.r_[t, 0.0]
Tensor([1., 2., 0.], dtype=float32, requires_grad=True)
>>> np.pi
3.141592653589793
"""

from __future__ import annotations

import sys
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as _numpy

from optlab.autograd import random
from optlab.autograd.tensor.tensor import Tensor
from optlab.autograd.tensor.tensor import raw as _raw
from optlab.backend.ensemble import EnsembleArray as _EnsembleArray

sys.modules[f"{__name__}.random"] = random  # so that `import optlab.numpy.random` finds it

#: Functions that take a sequence of arrays: the list stays a list, lists inside it are stacked.
_TAKE_SEQUENCES = frozenset(
    "concatenate concat stack vstack hstack dstack column_stack row_stack multi_dot lexsort".split()
)
#: Functions with sequences of arrays among their arguments; lists stay as they are.
_TAKE_LISTS = frozenset("block choose select piecewise ix_ histogramdd shape ndim size".split())

#: Arrays that NumPy must not convert to plain arrays.
_KINDS = (Tensor, _EnsembleArray)


def _holds_tensor(x: Any) -> bool:
    """Return whether a nested list or tuple contains a Tensor (or an ensemble)."""
    if isinstance(x, (list, tuple)):
        return any(isinstance(part, _KINDS) or _holds_tensor(part) for part in x)
    return False


def _stack_tensors(x: Any) -> Any:
    """Stack nested lists that contain Tensors to one Tensor; return anything else unchanged."""
    if _holds_tensor(x):
        return _numpy.stack([_stack_tensors(part) for part in x])
    return x


def _refuse(function: str, kwargs: dict[str, Any], *covered: str) -> None:
    """Raise for the first argument that Tensors do not support, unless it has no effect."""
    harmless = {"order": ("K", "C", None), "subok": (False, True), "device": (None, "cpu")}
    for name, value in kwargs.items():
        if name not in covered and value is not None and value not in harmless.get(name, ()):
            raise TypeError(f"{function}(..., {name}={value!r}) is not covered on Tensors.")


def array(object: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Create an array, or a Tensor if Tensors are among the elements.

    Examples
    --------
    >>> import optlab as ol
    >>> t = ol.to_tensor(2.0, requires_grad=True)
    >>> array([[t, 2 * t]])
    Tensor([[2., 4.]], dtype=float32, requires_grad=True)
    """
    if isinstance(object, _KINDS) or _holds_tensor(object):
        _refuse("array", kwargs, "ndmin", "copy")
        joined = _stack_tensors(object)
        if isinstance(object, _KINDS) and kwargs.get("copy", True):
            joined = object.copy("K")
        missing = kwargs.get("ndmin", 0) - joined.ndim
        if missing > 0:
            joined = joined.reshape((1,) * missing + joined.shape)
        return joined if dtype is None or joined.dtype == dtype else joined.astype(dtype)
    return _numpy.array(object, dtype=dtype, **kwargs)


def asarray(a: Any, dtype: Any = None, order: Any = None, **kwargs: Any) -> Any:
    """Return a Tensor unchanged; create an array or Tensor of anything else.

    Examples
    --------
    >>> import optlab as ol
    >>> t = ol.to_tensor([2.0], requires_grad=True)
    >>> asarray(t) is t
    True
    """
    if isinstance(a, _KINDS) or _holds_tensor(a):
        _refuse("asarray", {"order": order, **kwargs}, "copy")
        return array(a, dtype, copy=bool(kwargs.get("copy")))
    return _numpy.asarray(a, dtype, order, **kwargs)


def asanyarray(a: Any, dtype: Any = None, order: Any = None, **kwargs: Any) -> Any:
    """Return a Tensor or an array of any type unchanged; create an array of anything else."""
    if isinstance(a, Tensor) or _holds_tensor(a):
        return asarray(a, dtype, order, **kwargs)
    return _numpy.asanyarray(a, dtype, order, **kwargs)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Convert as `asarray`, but refuse NaN and infinity."""
    if isinstance(a, Tensor) or _holds_tensor(a):
        made = asarray(a, dtype, order)
        _numpy.asarray_chkfinite(made.data)
        return made
    return _numpy.asarray_chkfinite(a, dtype, order)


def ascontiguousarray(a: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Return `a` in C order, with at least one axis."""
    if isinstance(a, Tensor) or _holds_tensor(a):
        _refuse("ascontiguousarray", kwargs)
        made = array(a, dtype, copy=False, ndmin=1)
        return made if _raw(made).flags.c_contiguous else made.copy("C")
    return _numpy.ascontiguousarray(a, dtype, **kwargs)


def asfortranarray(a: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Return `a` in Fortran order, with at least one axis."""
    if isinstance(a, Tensor) or _holds_tensor(a):
        _refuse("asfortranarray", kwargs)
        made = array(a, dtype, copy=False, ndmin=1)
        return made if _raw(made).flags.f_contiguous else made.copy("F")
    return _numpy.asfortranarray(a, dtype, **kwargs)


def fromiter(iter: Any, dtype: Any, count: int = -1, **kwargs: Any) -> Any:
    """Create an array, or a Tensor, of the elements of an iterator."""
    # The first `count`, or all; NumPy refuses an iterator that ends early.
    elements = list(iter) if count < 0 else [x for _, x in zip(range(count), iter, strict=False)]
    if _holds_tensor(elements) and len(elements) >= count:
        _refuse("fromiter", kwargs)
        return array(elements, dtype)
    return _numpy.fromiter(elements, dtype, count, **kwargs)


def take(a: Any, indices: Any, axis: Any = None, **options: Any) -> Any:
    """Take elements of `a` at `indices`, which may differ by member of an ensemble."""
    indices = _raw(indices)
    if isinstance(indices, _EnsembleArray) and not isinstance(a, Tensor):
        return indices.__array_function__(
            _numpy.take, (_EnsembleArray,), (a, indices, axis), options
        )
    return _numpy.take(a, indices, axis, **options)


def full(shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Fill a shape with one value, which may be a Tensor.

    Examples
    --------
    >>> import optlab as ol
    >>> full(2, ol.to_tensor(3.0, requires_grad=True))
    Tensor([3., 3.], dtype=float32, requires_grad=True)
    """
    if isinstance(fill_value, _KINDS) or _holds_tensor(fill_value):
        _refuse("full", kwargs)
        shape = (shape,) if _numpy.ndim(shape) == 0 else tuple(shape)
        return _numpy.broadcast_to(array(fill_value, dtype), shape)
    return _numpy.full(shape, fill_value, dtype, **kwargs)


def full_like(a: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """Fill the shape of `a` with one value, which may be a Tensor."""
    if isinstance(fill_value, _KINDS) or _holds_tensor(fill_value):
        _refuse("full_like", kwargs, "shape")
        shape = kwargs.get("shape")
        shape = _numpy.shape(_raw(a)) if shape is None else shape
        return full(shape, fill_value, asarray(a).dtype if dtype is None else dtype)
    return _numpy.full_like(_raw(a), fill_value, dtype, **kwargs)


class _Joining:
    """``r_`` and ``c_``: concatenate what is in the brackets, Tensors included."""

    def __init__(self, own: Any, columns: bool) -> None:
        self._own = own
        self._columns = columns

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not _holds_tensor(parts):
            return self._own[key]
        name = "c_" if self._columns else "r_"
        if isinstance(parts[0], str):
            raise TypeError(
                f"{name}[{parts[0]!r}, ...] is not covered on Tensors; np.concatenate and np.stack "
                "take an axis."
            )
        arrays = [self._array(part) for part in parts]
        # Python's numbers take the dtype of the arrays.
        numbers = (part if isinstance(part, (int, float)) else None for part in parts)
        strong = [a.dtype if n is None else n for a, n in zip(arrays, numbers, strict=True)]
        dtype = _numpy.result_type(*strong)
        arrays = [a if a.dtype == dtype else a.astype(dtype) for a in arrays]
        return _numpy.concatenate(arrays, -1 if self._columns else 0)

    def _array(self, part: Any) -> Any:
        """Return one part as an array: a vector for r_, a column for c_."""
        made = self._own[part].reshape(-1) if isinstance(part, slice) else asarray(part)
        if self._columns and made.ndim < 2:
            return made.reshape((-1, 1))
        return made if made.ndim else made.reshape((1,))

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<{'c_' if self._columns else 'r_'} of optlab.numpy>"


r_ = _Joining(_numpy.r_, columns=False)
c_ = _Joining(_numpy.c_, columns=True)


def _taking_lists(function: Any) -> Any:
    """Wrap a NumPy function so that it takes lists of Tensors."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(
            *[_stack_tensors(x) for x in args],
            **{name: _stack_tensors(x) for name, x in kwargs.items()},
        )

    return called


def _taking_sequences(function: Any) -> Any:
    """Wrap a NumPy function so that it takes a list of arrays and of lists of Tensors."""

    @wraps(function)
    def called(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(arrays, (list, tuple)):
            arrays = [_stack_tensors(x) for x in arrays]
        return function(arrays, *args, **kwargs)

    return called


class _UniversalFunction:
    """A ufunc that takes lists of Tensors; everything else is NumPy's."""

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


class _Namespace:
    """A module of NumPy, such as ``linalg``, whose functions take lists of Tensors."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._wrapped: dict[str, Any] = {}
        self.__name__ = module.__name__
        self.__doc__ = module.__doc__

    def __getattr__(self, name: str) -> Any:
        if name not in self._wrapped:
            self._wrapped[name] = _keeping_gradients(name, getattr(self._module, name))
        return self._wrapped[name]

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return repr(self._module)


def _keeping_gradients(name: str, value: Any) -> Any:
    """Return an attribute of NumPy as this module has it."""
    if isinstance(value, _numpy.ufunc):
        return _UniversalFunction(value)
    if isinstance(value, ModuleType) and name == "linalg":
        return _Namespace(value)
    if name in _TAKE_SEQUENCES:
        return _taking_sequences(value)
    if callable(value) and not isinstance(value, type) and name not in _TAKE_LISTS:
        return _taking_lists(value)
    return value


#: Wrapped functions. Not in the module's globals, where ``any`` or ``max`` would replace Python's
#: own in the code above.
_wrapped: dict[str, Any] = {}


def __getattr__(name: str) -> Any:
    if name not in _wrapped:
        _wrapped[name] = _keeping_gradients(name, getattr(_numpy, name))
    return _wrapped[name]


def __dir__() -> list[str]:
    own = {name for name, it in globals().items() if getattr(it, "__module__", "") == __name__}
    return sorted(set(dir(_numpy)) | own)
