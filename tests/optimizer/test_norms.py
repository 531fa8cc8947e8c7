"""The norm by which rules scale their steps."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer.rule import norms
from optlab.plan import sizes
from tests import guarded
from tests.optimizer.helpers import random


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (0,), (200, 500), (70_000,)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_it_is_the_euclidean_norm_in_the_dtype(shape, dtype):
    x = random(*shape, dtype=dtype)
    found = norms.norm(x)
    assert np.shape(found) == ()
    assert found.dtype == dtype
    expected = np.linalg.norm(x.astype("float64").ravel())
    np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps)


def test_squares_that_do_not_fit_the_dtype_are_no_matter():
    for size in (1e30, 1e-30):
        np.testing.assert_allclose(norms.norm(np.full(4, size, "float32")), 2 * size, rtol=1e-6)


def test_who_adds_up_block_after_block_gets_the_same_bits():
    x = random(3 * sizes.BLOCK + 17, dtype="float32")
    total = np.float64(0)
    for start in range(0, x.size, sizes.BLOCK):
        total = total + norms.sum_of_squares(x[start : start + sizes.BLOCK])
    assert np.sqrt(total).astype("float32") == norms.norm(x)


def test_members_of_an_ensemble_have_norms_of_their_own():
    rows = random(4, sizes.BLOCK + 3, dtype="float32")
    found = ol.vmap(lambda x: x * norms.norm(x.data))(ol.to_tensor(rows)).numpy()
    for row, product in zip(rows, found, strict=True):
        np.testing.assert_array_equal(product, row * norms.norm(row))


def test_on_a_device_it_stays_there():
    found = norms.norm(guarded.guarded([3.0, 4.0]))
    assert guarded.values(found) == 5.0


@pytest.mark.parametrize(("a", "b", "expected"), [(3, 2, 1.5), (0, 2, 1), (3, 0, 1), (0, 0, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_quotient_is_one_where_a_norm_is_zero(a, b, expected, dtype):
    found = norms.quotient_or_one(np.dtype(dtype).type(a), np.dtype(dtype).type(b))
    assert found.dtype == dtype
    assert found == expected
