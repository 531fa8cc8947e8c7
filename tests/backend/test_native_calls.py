"""Functions of C behind NumPy: what kernels call is what NumPy calls."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from optlab.backend.blas_threads import one_each
from optlab.backend.native_calls import gemm, loop_address
from optlab.plan.executors import has_numba
from optlab.plan.numba_cache import kernel_of

DTYPES = [np.dtype("float32"), np.dtype("float64")]
needs_numba = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", [np.tanh, np.exp, np.log, np.sqrt])
def test_the_loop_of_a_ufunc_has_its_bits(ufunc, dtype):
    address = loop_address(ufunc, dtype)
    assert address is not None
    x = np.abs(np.random.default_rng(0).standard_normal(1001)).astype(dtype)
    y = np.empty_like(x)
    pointers = np.array([x.ctypes.data, y.ctypes.data], np.intp)
    length, steps = np.array([x.size], np.intp), np.array([x.itemsize] * 2, np.intp)
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(address)
    loop(pointers.ctypes.data, length.ctypes.data, steps.ctypes.data, None)
    assert y.tobytes() == ufunc(x).tobytes()


@pytest.mark.parametrize("ufunc", [np.add, np.frexp, np.frompyfunc(abs, 1, 1)])
def test_other_ufuncs_have_no_address(ufunc):
    assert loop_address(ufunc, np.dtype("float32")) is None


def test_integers_have_no_product():
    assert gemm(np.dtype("int64")) is None


@needs_numba
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(16, 32, 128), (3, 5, 7), (2, 200, 33)])
def test_a_kernel_multiplies_as_numpy_does(dtype, shape):
    product = gemm(dtype)
    if product is None:
        pytest.skip("NumPy uses another library than OpenBLAS here")
    address, integers = product
    source = (
        "def kernel(gemm, m, n, k, a, b, c):\n"
        f"    gemm_{dtype.name}_{integers}(gemm, m, n, k, a, k, b, n, c, n)\n"
        "    return 0\n"
    )
    kernel = kernel_of(source, ["int64"] * 7)
    kernel.compile()
    m, k, n = shape
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((m, k)).astype(dtype), draw.standard_normal((k, n)).astype(dtype)
    c = np.full((m, n), np.nan, dtype)
    result = ctypes.c_int64()
    with one_each():
        kernel.function(
            ctypes.byref(result), None, address, m, n, k, a.ctypes.data, b.ctypes.data,
            c.ctypes.data,
        )  # fmt: skip
        assert c.tobytes() == (a @ b).tobytes()
