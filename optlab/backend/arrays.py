"""Which array module an array belongs to, and the few calls that NumPy cannot dispatch."""

from __future__ import annotations

import reprlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

Shape = tuple[int, ...]


def array_module(array: Any) -> ModuleType:
    """Give the module (NumPy or CuPy) whose functions create arrays beside `array`.

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


def zeros_beside(array: Any, shape: Shape) -> Any:
    """Give zeros of `shape`, with the dtype and on the device of `array`.

    Examples
    --------
    >>> import numpy as np
    >>> zeros_beside(np.float32(1), (2,)).dtype
    dtype('float32')
    """
    return array_module(array).zeros(shape, array.dtype)


def constants_beside(array: Any, values: Any) -> Any:
    """Give an array that was computed from shapes alone on the device of `array`.

    Examples
    --------
    >>> import numpy as np
    >>> constants_beside(np.float32(1), [2, 0])
    array([2, 0])
    """
    return array_module(array).asarray(values)


def as_float(value: Any, name: str) -> float:
    """Read one number (float, int, NumPy scalar, one-element array or Tensor) as a Python float.

    Rates, betas and corrections are kept in float64 so that they are rounded once only, where they
    meet an array.

    Raises
    ------
    TypeError
        If `value` is not one number.

    Examples
    --------
    >>> as_float(np.float32(0.5), "learning_rate")
    0.5
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    size = getattr(value, "size", None)
    if size == 1 and hasattr(value, "item"):
        return float(value.item())
    raise TypeError(
        f"{name} must be one number (a float, an int, a NumPy scalar or a one-element Tensor), "
        f"but got {reprlib.repr(value)} of type {type(value).__name__}."
    )


def beside(array: Any, values: Any) -> Any:
    """Give the NumPy array `values` on the device of `array`.

    Examples
    --------
    >>> import numpy as np
    >>> beside(np.ones(3), np.zeros(2))
    array([0., 0.])
    """
    module = array_module(array)
    return values if module is np else module.asarray(values)


def on_host(array: Any) -> Any:
    """Give `array` as a NumPy array where it lies on a device; anything else as it is.

    Examples
    --------
    >>> on_host(2.5)
    2.5
    """
    module = array_module(array)
    return array if module is np else module.asnumpy(array)
