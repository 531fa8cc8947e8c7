"""Numbers of 16 bits: what the page of `optlab.autograd.halves` states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend import dtypes
from tests.autograd.rows import ROWS, Case

try:
    import ml_dtypes
except ModuleNotFoundError:
    ml_dtypes = None

needs_ml_dtypes = pytest.mark.skipif(ml_dtypes is None, reason="needs the package ml_dtypes")
HALVES = ["float16", pytest.param("bfloat16", marks=needs_ml_dtypes)]
both = pytest.mark.parametrize("dtype", HALVES)

#: Those with a number that is float32 by itself give float32.
CASES = [case for row in ROWS.values() for case in row if "np.float32" not in case.label]


def eps(dtype: str) -> float:
    return float(dtypes.finfo(dtypes.dtype_named(dtype)).eps)


def half(x: Any, dtype: str, requires_grad: bool = True) -> ol.Tensor:
    return ol.to_tensor(np.asarray(x), dtype=dtype, requires_grad=requires_grad)


def exact(t: Any) -> np.ndarray:
    """Give values of 16 bits as float64."""
    array = t.numpy() if isinstance(t, ol.Tensor) else np.asarray(t)
    return np.asarray(array.astype(np.float64))


def near(got: Any, wanted: Any, dtype: str, ulps: float) -> None:
    """Compare up to some roundings of the largest number there is."""
    wanted = exact(wanted)
    with np.errstate(over="ignore"):
        wanted = wanted.astype("float32").astype(dtypes.dtype_named(dtype)).astype("float64")
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = max(1.0, float(finite.max()) if finite.size else 0.0)
    np.testing.assert_allclose(exact(got), wanted, rtol=0, atol=ulps * eps(dtype) * scale)


# Every function that has a rule.


@both
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_values_and_gradients_are_those_of_float32_rounded(case: Case, dtype: str) -> None:
    narrow = [half(x, dtype) for x in case.args]
    wide = [ol.to_tensor(t.numpy().astype("float32"), requires_grad=True) for t in narrow]
    y, wanted = case.f(*narrow), case.f(*wide)
    assert y.dtype == (dtype if wanted.dtype == "float32" else wanted.dtype)
    near(y, wanted, dtype, 4)
    y.backward()
    wanted.backward()
    for t, other in zip(narrow, wide, strict=True):
        assert t.grad is not None
        assert other.grad is not None
        assert t.grad.dtype == dtype
        near(t.grad, other.grad, dtype, 16)
