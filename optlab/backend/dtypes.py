"""Dtypes by name, those of the package ml_dtypes included.

NumPy itself has float16. bfloat16 comes with ml_dtypes and is a foreign type to NumPy: its kind is
not "f", ``np.finfo`` refuses it, and with a Python number it gives float32. This module holds what
the engine has to know about it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.backend.extras import needed_for

float16, float32 = np.dtype(np.float16), np.dtype(np.float32)


def __getattr__(name: str) -> Any:  # bfloat16 is imported on first use
    if name == "bfloat16":
        return dtype_named(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def dtype_named(dtype: Any) -> np.dtype:
    """Return the dtype of a name, a class or a dtype.

    Raises
    ------
    TypeError
        If there is no such dtype.
    ModuleNotFoundError
        If it is bfloat16 and ml_dtypes is not installed; the message says how to install it.

    Examples
    --------
    >>> dtype_named("float16")
    dtype('float16')
    """
    found: np.dtype
    if not isinstance(dtype, str) or dtype != "bfloat16":
        try:
            found = np.dtype(dtype)
        except TypeError:
            raise TypeError(
                f"dtype={dtype!r} is no dtype: write a name such as dtype='float32' or 'int64'."
            ) from None
        return found
    with needed_for("bfloat16, which NumPy itself does not have,"):
        import ml_dtypes
    found = np.dtype(ml_dtypes.bfloat16)
    return found


def is_half(dtype: Any) -> bool:
    """Return whether a dtype is float16 or bfloat16.

    Examples
    --------
    >>> is_half(np.dtype("float16")), is_half(np.dtype("int16"))
    (True, False)
    """
    return bool(dtype.itemsize == 2 and (dtype.kind == "f" or _is_bfloat16(dtype)))


def is_floating(dtype: Any) -> bool:
    """Return whether a dtype is real floating point, bfloat16 included: it can have gradients.

    Examples
    --------
    >>> is_floating(np.dtype("float32")), is_floating(np.dtype("int64"))
    (True, False)
    """
    return bool(dtype.kind == "f" or _is_bfloat16(dtype))


def is_real(dtype: Any) -> bool:
    """Return whether a dtype is real: floating point, integer or bool.

    Examples
    --------
    >>> is_real(np.dtype(bool)), is_real(np.dtype(complex))
    (True, False)
    """
    return bool(dtype.kind in "fiub" or _is_bfloat16(dtype))


def _is_bfloat16(dtype: Any) -> bool:
    return bool(dtype.kind == "V" and dtype.type.__name__ == "bfloat16")


def widened(dtype: Any) -> np.dtype:
    """Return the dtype in which numbers are computed: float32 for 16-bit floats.

    Examples
    --------
    >>> widened(np.dtype("float16")), widened(np.dtype("float64"))
    (dtype('float32'), dtype('float64'))
    """
    return float32 if is_half(dtype) else dtype


def common_dtype(*dtypes: Any) -> np.dtype:
    """Return the dtype of a result: ``np.result_type``, with bfloat16 handled like float16.

    float16 and bfloat16 together give float32, as neither contains the other.

    Examples
    --------
    >>> common_dtype(np.dtype("float16"), np.dtype("int8"))
    dtype('float16')
    >>> common_dtype(np.dtype("float16"), np.dtype("int16"))
    dtype('float32')
    """
    halves = {dtype for dtype in dtypes if is_half(dtype)}
    if not halves:
        return np.result_type(*dtypes)
    if len(halves) > 1:
        dtypes = (float32, *dtypes)
    found = np.result_type(*[float16 if dtype in halves else dtype for dtype in dtypes])
    return halves.pop() if found == float16 else found


def finfo(dtype: Any) -> Any:
    """Return ``np.finfo``, for bfloat16 too.

    Examples
    --------
    >>> float(finfo(np.dtype("float16")).eps)
    0.0009765625
    """
    if not _is_bfloat16(dtype):
        return np.finfo(dtype)
    import ml_dtypes

    of_extended: Any = ml_dtypes.finfo
    return of_extended(dtype)
