"""The array module that an array belongs to, and the few calls that NumPy cannot dispatch."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from optlab.backend.call_recorder import here
from optlab.backend.device import device_of
from optlab.backend.errors import EnsembleError

Shape = tuple[int, ...]


class MixedArraysError(TypeError):
    """NumPy arrays and device arrays were used together."""


def array_module(array: Any) -> ModuleType:
    """Return the module (NumPy or CuPy) whose functions create arrays like `array`.

    Parameters
    ----------
    array
        An array or scalar of NumPy or CuPy.

    Examples
    --------
    >>> import numpy as np
    >>> array_module(np.ones(3)).__name__
    'numpy'
    """
    root = type(array).__module__.partition(".")[0]
    if root == "cupy":
        return sys.modules["cupy"]
    return np


def owner_of(array: Any) -> Any:
    """Return the array that owns the memory of `array`: itself, or the base of a view."""
    while (name := getattr(type(array), "holds", None)) is not None:  # an ensemble
        array = getattr(array, name)
    base = getattr(array, "base", None)
    while base is not None:
        if hasattr(base, "dtype"):  # as_strided puts an object of its own between view and array
            array = base
        base = getattr(base, "base", None)
    return array


def zeros_beside(array: Any, shape: Shape) -> Any:
    """Return zeros of `shape` with the dtype and on the device of `array`.

    Examples
    --------
    >>> import numpy as np
    >>> zeros_beside(np.float32(1), (2,)).dtype
    dtype('float32')
    """
    if isinstance(array, (np.ndarray, np.generic)):
        return np.zeros(shape, array.dtype)
    return np.zeros_like(array, shape=shape, order="C")


def as_array(x: Any, dtype: Any = None) -> Any:
    """Return `x` as an array; an array that is not NumPy's keeps its type.

    Examples
    --------
    >>> as_array([1, 2], "float32")
    array([1., 2.], dtype=float32)
    """
    if isinstance(x, np.ndarray) or not hasattr(x, "__array_function__"):
        return np.asarray(x, dtype)
    return x if dtype is None or x.dtype == dtype else x.astype(dtype)


def copied(x: Any, dtype: Any = None) -> Any:
    """Return a copy of `x` as an array; an array that is not NumPy's keeps its type.

    Examples
    --------
    >>> copied([1, 2], "float32")
    array([1., 2.], dtype=float32)
    """
    if here.recorder is not None and hasattr(x, "shape"):
        return here.recorder.copied(x, dtype)
    if isinstance(x, np.ndarray) or not hasattr(x, "__array_function__"):
        return np.array(x, dtype)
    return x.astype(x.dtype if dtype is None else dtype)


def spread_beside(x: Any, array: Any) -> Any:
    """Return `x`, which has the shape of `array`, as an array of the type of `array`.

    Examples
    --------
    >>> spread_beside(np.ones(2), np.zeros(2))
    array([1., 1.])
    """
    x = placed_beside(array, x, "it")
    if isinstance(array, (np.ndarray, np.generic)) or type(x) is type(array):
        return x
    out = np.empty_like(array, dtype=x.dtype)
    out[...] = x
    return out


def constants_beside(array: Any, values: Any) -> Any:
    """Return an array that was computed from shapes, or drawn, on the device of `array`.

    Examples
    --------
    >>> import numpy as np
    >>> constants_beside(np.float32(1), [2, 0])
    array([2, 0])
    """
    if type(values) is np.ndarray and isinstance(array, (np.ndarray, np.generic)):
        return values
    if hasattr(values, "__array_function__") and not isinstance(values, (np.ndarray, np.generic)):
        return values  # computed on the device
    array = unwrapped(array)
    if isinstance(array, (np.ndarray, np.generic)) or not hasattr(array, "__array_function__"):
        return np.asarray(values)
    return np.asarray(values, like=array)


def given_beside(array: Any, x: Any, dtype: Any = None) -> Any:
    """Return a number as an array on the device of `array`; return an array where it is.

    Examples
    --------
    >>> given_beside(np.zeros(2), 5, "float32")
    array(5., dtype=float32)
    """
    x = as_array(x, dtype)
    return constants_beside(array, x) if x.ndim == 0 else x


def as_float(value: Any, name: str) -> float:
    """Convert one number (float, int, NumPy scalar, one-element array or Tensor) to a Python float.

    Learning rates, betas and corrections stay in float64, so that they are rounded only once, where
    they are combined with an array.

    Raises
    ------
    TypeError
        If `value` is not one number.
    ValueError
        If it is an integer that no float can hold.

    Examples
    --------
    >>> as_float(np.float32(0.5), "learning_rate")
    0.5
    """
    if getattr(value, "is_traced", False):
        return value  # type: ignore[no-any-return]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError(
                f"{name} must be a number that a float can hold, less than 1.8e308; got a whole "
                f"number of {int(value).bit_length()} bits."
            ) from None
    size = getattr(value, "size", None)
    members = getattr(getattr(value, "data", value), "members", None)
    if members is not None:
        raise EnsembleError(
            f"{name} must be one number for all members of an ensemble (or examples of a vmap); "
            f"got {len(members)}, one for each. Run those that differ apart."
        )
    if size == 1 and hasattr(value, "item"):
        return float(value.item())
    raise TypeError(
        f"{name} must be one number (a float, an int, a NumPy scalar or a one-element Tensor), "
        f"but got {reprlib.repr(value)} of type {type(value).__name__}."
    )


def exact_sum(numbers: Iterable[float]) -> float:
    """Add floats as if with infinite precision, and round once: the order does not matter.

    Examples
    --------
    >>> exact_sum([1e16, 1.0, -1e16]), 1e16 + 1.0 - 1e16
    (1.0, 0.0)
    >>> exact_sum([math.inf, 1.0])
    inf
    """
    numbers = [float(number) for number in numbers]
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):  # beyond float64, or infinities of both signs
        return sum(sorted(numbers))


def on_host(array: Any) -> Any:
    """Return a device array as a NumPy array; return anything else unchanged.

    Examples
    --------
    >>> on_host(2.5)
    2.5
    """
    return array.get() if is_on_device(array) else array


def is_on_device(array: Any) -> bool:
    """Return whether `array` is an array of CuPy or the like, which NumPy cannot read.

    Examples
    --------
    >>> is_on_device(np.ones(2))
    False
    """
    return hasattr(type(array), "get") and hasattr(type(array), "__array_function__")


def readonly(array: Any) -> Any:
    """Make an array read-only if its type supports that (CuPy's does not), and return it.

    Examples
    --------
    >>> readonly(np.ones(2)).flags.writeable
    False
    """
    protect = getattr(array, "setflags", None)
    if protect is not None:
        protect(False)  # write=False, by position in half the time
    return array


def placed_beside(array: Any, x: Any, what: str) -> Any:
    """Return `x` for use with `array`: an array unchanged, a number on the device of `array`.

    Raises
    ------
    MixedArraysError
        If one of the two is a NumPy array and the other is on a device.

    Examples
    --------
    >>> placed_beside(np.ones(2), np.zeros(2), "the gradient")
    array([0., 0.])
    """
    away, here = is_on_device(x), is_on_device(array)
    if here and isinstance(x, (np.ndarray, np.generic)):
        if x.ndim == 0:
            return constants_beside(array, x)
        raise MixedArraysError(
            f"{what} is {_kind(x)}, but goes with {_kind(array)}. {_remedy(x, array)}"
        )
    if away and isinstance(array, (np.ndarray, np.generic)):
        raise MixedArraysError(
            f"{what} is {_kind(x)}, but goes with {_kind(array)}. {_remedy(x, array)}"
        )
    return x


def check_same_device(name: str, values: Iterable[Any]) -> None:
    """Raise an error if both NumPy arrays and device arrays are among `values`.

    Examples
    --------
    >>> check_same_device("add", [np.ones(2), 3.0])
    """
    arrays = [unwrapped(x) for x in values]
    away = [x for x in arrays if is_on_device(x)]
    here = [x for x in arrays if isinstance(x, np.ndarray)]
    if away and here:
        raise MixedArraysError(
            f"{name} was given {_kind(here[0])} and {_kind(away[0])}. {_remedy(here[0], away[0])}"
        )


def check_matmul_shapes(name: str, values: Iterable[Any]) -> None:
    """Raise an error that names both shapes if two matrices cannot be multiplied.

    Examples
    --------
    >>> check_matmul_shapes("matmul", [np.ones((2, 3)), np.ones((2, 3))])
    Traceback (most recent call last):
        ...
    ValueError: a @ b needs as many columns in a as b has rows; got a of shape (2, 3) and b of ...
    >>> check_matmul_shapes("add", [np.ones(2), np.ones(3)])
    """
    shapes = [np.shape(x) for x in values]
    if name != "matmul" or len(shapes) != 2:
        return
    a, b = shapes
    said = f"a @ b needs as many columns in a as b has rows; got a of shape {a} and b of shape {b}."
    if not a or not b:
        said += " A single number is multiplied with *."
    for text, x, y in (("a @ b.mT", a, _turned(b)), ("a.mT @ b", _turned(a), b), ("b @ a", b, a)):
        if len(x) > 1 and y and x[-1] == y[-min(len(y), 2)] and x[:-2] == y[:-2]:
            result = (*x[:-1], *y[-1:]) if len(y) > 1 else x[:-1]
            said += f" {text} would have the shape {result};"
    raise ValueError(said.removesuffix(";") + "." * said.endswith(";"))


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 else ()


def unwrapped(array: Any) -> Any:
    """Return the array inside Tensors and ensembles.

    Examples
    --------
    >>> unwrapped(2.5)
    2.5
    """
    while (name := getattr(type(array), "holds", None)) is not None:
        array = getattr(array, name)
    return array


def _remedy(one: Any, other: Any) -> str:
    """Return how to bring two arrays to one device, for an error message."""
    return (
        f"Nothing moves between devices by itself: move one of them, with t.to({device_of(one)!r}) "
        f"or t.to({device_of(other)!r}) (a layer: layer.to(...); arrays of CuPy: cupy.asarray(x), "
        "x.get())."
    )


def _kind(x: Any) -> str:
    """Return the type, shape and device of an array for an error message."""
    root = type(x).__module__.partition(".")[0]
    return f"a {root}.{type(x).__name__} of shape {x.shape} on {device_of(x)}"
