"""``dtype=`` of NumPy's functions on Tensors: every spelling of a dtype means the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.autograd.test_half_precision import both, needs_ml_dtypes

SPELLINGS: dict[str, list[Any]] = {
    "float32": ["float32", "f4", "<f4", "single", "f", np.float32, np.dtype("f4")],
    "float64": ["float64", "f8", "d", "double", float, np.float64, np.dtype("f8")],
    "float16": ["float16", "f2", "e", "half", np.float16, np.dtype("f2")],
}
#: float16 does not hold what bfloat16 does, so a ufunc refuses that cast.
WIDE = ["float32", "float64"]

#: Exact in float16 and in bfloat16; float16 reaches no sum of two of them, nor a product.
NUMBERS = np.array([40960.0, 20480.0, 24576.0, 32768.0], "float32")

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda t, d: np.sum(t, dtype=d),
    "sum, by position": lambda t, d: np.sum(t, None, d),
    "t.sum": lambda t, d: t.sum(dtype=d),
    "add.reduce": lambda t, d: np.add.reduce(t, dtype=d),
    "add.reduceat": lambda t, d: np.add.reduceat(t, [0, 2], dtype=d),
    "add.accumulate": lambda t, d: np.add.accumulate(t, dtype=d),
    "multiply.reduce": lambda t, d: np.multiply.reduce(t, dtype=d),
    "mean": lambda t, d: np.mean(t, dtype=d),
    "mean, by position": lambda t, d: np.mean(t, None, d),
    "prod": lambda t, d: np.prod(t, dtype=d),
    "t.prod": lambda t, d: t.prod(dtype=d),
    "cumsum": lambda t, d: np.cumsum(t, dtype=d),
    "cumprod": lambda t, d: np.cumprod(t, dtype=d),
    "var": lambda t, d: np.var(t, dtype=d),
    "var, by position": lambda t, d: np.var(t, None, d),
    "std": lambda t, d: np.std(t, dtype=d),
    "t.std": lambda t, d: t.std(dtype=d),
    "nansum": lambda t, d: np.nansum(t, dtype=d),
    "nanmean": lambda t, d: np.nanmean(t, dtype=d),
    "nanprod": lambda t, d: np.nanprod(t, dtype=d),
    "nanvar": lambda t, d: np.nanvar(t, dtype=d),
    "nanstd": lambda t, d: np.nanstd(t, dtype=d),
    "nancumsum": lambda t, d: np.nancumsum(t, dtype=d),
    "nancumprod": lambda t, d: np.nancumprod(t, dtype=d),
    "cov": lambda t, d: np.cov(t, dtype=d),
    "trace": lambda t, d: np.trace(np.reshape(t, (2, 2)), dtype=d),
    "trace, by position": lambda t, d: np.trace(np.reshape(t, (2, 2)), 0, 0, 1, d),
    "t.trace": lambda t, d: np.reshape(t, (2, 2)).trace(dtype=d),
    "linalg.trace": lambda t, d: np.linalg.trace(np.reshape(t, (2, 2)), dtype=d),
    # The subscripts "d" are no dtype, although np.dtype("d") is one.
    "einsum of one": lambda t, d: np.einsum("d->", t, dtype=d),
    "einsum of two": lambda t, d: np.einsum("i,j->", t, t, dtype=d),
    "einsum of three": lambda t, d: np.einsum("i,j,k->i", t, t, t, dtype=d),
    "add": lambda t, d: np.add(t, t, dtype=d),
    "multiply": lambda t, d: np.multiply(t, 3.0, dtype=d),
    "matmul": lambda t, d: np.matmul(t, np.ones(4, "e"), dtype=d),
    "vecdot": lambda t, d: np.vecdot(t, np.ones(4, "e"), dtype=d),
    "linspace": lambda t, d: np.linspace(t[0], t[1], 7, dtype=d),
    "linspace, by position": lambda t, d: np.linspace(t[0], t[1], 7, True, False, d),
    "geomspace": lambda t, d: np.geomspace(t[0], t[1], 7, dtype=d),
    "concatenate": lambda t, d: np.concatenate([t, t], dtype=d),
    "stack": lambda t, d: np.stack([t, t], dtype=d),
}


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        *(("float16", wanted) for wanted in SPELLINGS),
        *(pytest.param("bfloat16", wanted, marks=needs_ml_dtypes) for wanted in WIDE),
    ],
)
@pytest.mark.parametrize("name", CALLS)
def test_16_bits_give_the_dtype_that_is_asked_for_however_it_is_spelled(
    name: str, dtype: str, wanted: str
) -> None:
    call = CALLS[name]
    with np.errstate(over="ignore"):  # beyond float16 lies infinity
        numpys = call(NUMBERS, max(wanted, "float32")).astype(wanted)
    for spelled in SPELLINGS[wanted]:
        t = ol.to_tensor(NUMBERS, dtype=dtype, requires_grad=True)
        y = call(t, spelled)
        assert y.dtype == wanted, spelled
        rounding = 4 * np.finfo(wanted).eps if wanted != "float64" else 1e-6
        np.testing.assert_allclose(y.numpy(), numpys, rtol=rounding)
        np.sum(y).backward()
        assert t.grad is not None
        assert t.grad.dtype == dtype


@both
@pytest.mark.parametrize("name", ["sum", "trace", "cumsum"])
def test_whole_numbers_are_given_where_no_gradient_is_needed(name: str, dtype: str) -> None:
    for spelled in ("int64", "i8", int, np.int64):
        y = CALLS[name](ol.to_tensor(NUMBERS, dtype=dtype), spelled)
        assert y.dtype == "int64"
        assert y.tolist() == CALLS[name](NUMBERS.astype(int), int).tolist()
        with pytest.raises(TypeError, match="gradients are for real floating numbers"):
            CALLS[name](ol.to_tensor(NUMBERS, dtype=dtype, requires_grad=True), spelled)


@pytest.mark.parametrize("casting", ["safe", "same_kind", "unsafe"])
def test_einsum_casts_as_far_as_numpy_allows(casting: Any) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])

    def call(a: Any) -> Any:
        return np.einsum("ij->i", a, dtype="f4", casting=casting)

    try:
        numpys = call(x)
    except TypeError:
        with pytest.raises(TypeError, match="casting='safe'; casting='same_kind' or 'unsafe'"):
            call(ol.to_tensor(x, requires_grad=True))
        return
    t = ol.to_tensor(x, requires_grad=True)
    y = call(t)
    assert y.dtype == "float32"
    assert y.tolist() == numpys.tolist()
    np.sum(y).backward()
    assert t.grad is not None
    assert t.grad.dtype == "float64"


def test_the_covariance_of_float32_has_the_dtype_that_numpy_s_has() -> None:
    x = np.arange(6, dtype="float32").reshape(2, 3)
    for dtype in ("f4", "f8", None):
        t = ol.to_tensor(x, requires_grad=True)
        assert np.cov(t, dtype=dtype).dtype == np.cov(x, dtype=dtype).dtype
        assert np.corrcoef(t, dtype=dtype).dtype == np.corrcoef(x, dtype=dtype).dtype
