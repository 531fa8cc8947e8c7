"""`optlab.numpy`: lists with Tensors in them, ``r_`` and ``c_``, ``linalg``, memory layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
import optlab.numpy as onp


def taped(data: Any) -> ol.Tensor:
    return ol.to_tensor(data, dtype="float64", requires_grad=True)


JOINED: dict[str, Any] = {
    "r_": lambda np, x: np.r_[x, 2.0, x[1], [3.0, 4.0], 0:2],
    "r_ of matrices": lambda np, x: np.r_[np.stack([x, x]), np.ones((1, 2))],
    "c_": lambda np, x: np.c_[x, [1.0, 2.0], np.stack([x, x])],
    "linalg.norm": lambda np, x: np.linalg.norm([x[0], x[1], 2.0]),
    "linalg.norm, axis": lambda np, x: np.linalg.norm([[x[0], 1.0], [x[1], 2.0]], axis=1),
    "concatenate": lambda np, x: np.concatenate([[x[0], 1.0], x]),
    "hstack": lambda np, x: np.hstack([[x[0], 1.0], [x[1]]]),
    "broadcast_arrays": lambda np, x: np.broadcast_arrays([x[0], 1.0], x[1])[0],
    "meshgrid": lambda np, x: np.meshgrid([x[0], 1.0], x)[0],
    "fromiter": lambda np, x: np.fromiter((e * e for e in x), float),
    "fromiter, count": lambda np, x: np.fromiter(iter(x), float, 1),
    "asanyarray": lambda np, x: np.asanyarray([x[0], x[1]]),
    "ascontiguousarray": lambda np, x: np.ascontiguousarray(x[0]),
    "asfortranarray": lambda np, x: np.asfortranarray([x, x]),
    "asarray_chkfinite": lambda np, x: np.asarray_chkfinite([x, x]),
    "array, copied": lambda np, x: np.array(x, copy=True, ndmin=3),
    "full_like": lambda np, x: np.full_like(np.ones((3, 2)), x),
    "full_like, shape": lambda np, x: np.full_like(np.ones(3), x, shape=(4, 2)),
    "select": lambda np, x: np.select([np.array([True, False])], [x], [1.0, 2.0]),
    "block": lambda np, x: np.block([[x, 1.0], [x * x, 2.0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINED)
def test_optlab_numpy_joins_tensors_where_numpy_would_ask_nobody(name: str) -> None:
    x = np.array([0.5, -1.5])
    found, wanted = JOINED[name](onp, taped(x)), JOINED[name](np, x)
    assert found.requires_grad
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_array_equal(JOINED[name](onp, x), wanted)
    ol.check_grad(lambda x: JOINED[name](onp, x), x)


def test_numbers_in_r_take_the_dtype_of_the_tensor_beside_them() -> None:
    t = ol.to_tensor([1.0], requires_grad=True)
    assert onp.r_[t, 0.5].dtype == np.r_[t.numpy(), 0.5].dtype == np.float32
    assert onp.c_[t, np.ones(1)].dtype == np.float64


def test_linalg_of_optlab_numpy_is_numpys_own_otherwise() -> None:
    assert onp.linalg.LinAlgError is np.linalg.LinAlgError
    assert set(dir(np.linalg)) <= set(dir(onp.linalg))
    with pytest.raises(np.linalg.LinAlgError):
        onp.linalg.inv(np.zeros((2, 2)))
    a, b = np.eye(2), np.full((2, 2), 3.0)
    np.testing.assert_array_equal(onp.linalg.multi_dot([a, b]), b)


def test_asfortranarray_and_ascontiguousarray_lay_memory_out() -> None:
    t = taped(np.ones((2, 3)))
    assert onp.asfortranarray(t).data.flags.f_contiguous
    assert onp.ascontiguousarray(t.T).data.flags.c_contiguous
    assert onp.ascontiguousarray(t) is t
