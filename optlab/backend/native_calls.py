"""Addresses of the functions of C behind NumPy, for kernels that call them.

A compiled loop has its own exp and tanh, whose last bits are not NumPy's, and no product of
matrices. So a kernel calls what NumPy calls: the inner loop of a ufunc, which is a field of the
ufunc in NumPy's C interface (``PyUFuncObject``), and ``gemm`` of NumPy's own OpenBLAS. It does a
whole time step of a recurrent network in the time of one call from Python.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

from optlab.backend.blas_threads import openblas_function

_GEMM = {np.dtype(np.float32): "cblas_sgemm", np.dtype(np.float64): "cblas_dgemm"}


class _Ufunc(ctypes.Structure):
    """The first fields of ``PyUFuncObject``."""

    _fields_ = (
        ("head", ctypes.c_char * object.__basicsize__),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved1", ctypes.c_int),
        ("name", ctypes.c_char_p),
    )


@cache
def loop_address(ufunc: Any, dtype: Any, inputs: int = 1) -> int | None:
    """Return the address of the inner loop of a ufunc of one dtype; None if it is not found.

    Examples
    --------
    >>> loop_address(np.tanh, np.dtype("int8")) is None  # NumPy casts to float16 first
    True
    """
    if sys.implementation.name != "cpython":
        return None
    types = f"{dtype.char * inputs}->{dtype.char}"
    fields = _Ufunc.from_address(id(ufunc))
    found = (fields.nin, fields.nout, fields.nargs, fields.ntypes)
    if found != (inputs, 1, inputs + 1, len(ufunc.types)) or fields.name != ufunc.__name__.encode():
        return None  # a NumPy whose ufuncs are laid out in another way
    if types not in ufunc.types:
        return None
    place = ufunc.types.index(types)
    return None if fields.data[place] else fields.functions[place]


@cache
def gemm(dtype: Any) -> tuple[int, str] | None:
    """Return the address of the product of matrices, and the dtype of its integers; or None."""
    found = openblas_function(_GEMM[dtype]) if dtype in _GEMM else None
    if found is None:
        return None
    address = ctypes.cast(found[0], ctypes.c_void_p).value
    return None if address is None else (address, "int64" if found[1] else "int32")
