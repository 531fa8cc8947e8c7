"""Dropout: the dropped share, the bytes saved for the backward pass, and the source of the mask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape.backward import toposort
from optlab.autograd.tape.nodes import Leaf
from optlab.nn.functional import dropout


def ones(*shape: int) -> ol.Tensor:
    return ol.to_tensor(np.ones(shape), requires_grad=True)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("mode", ["upscale_in_train", "downscale_in_infer"])
def test_the_share_and_the_size_of_what_stays(p: float, mode: str) -> None:
    ol.seed(3)
    n = 20_000
    x = ones(n)
    y = dropout(x, p, mode=mode).numpy()
    kept = 1 / (1 - p) if mode == "upscale_in_train" else 1.0
    np.testing.assert_allclose(np.unique(y), [0.0, kept], rtol=1e-15)
    assert abs(np.mean(y > 0) - (1 - p)) < 5 * math.sqrt(p * (1 - p) / n)
    tested = dropout(x, p, training=False, mode=mode)
    np.testing.assert_allclose(tested.numpy(), 1.0 if mode == "upscale_in_train" else 1 - p)


def test_nothing_and_everything() -> None:
    x = ones(3)
    assert dropout(x, 0.0) is x
    y = dropout(x, 1.0)
    assert y.tolist() == [0.0] * 3
    y.backward()
    assert x.grad.tolist() == [0.0] * 3
    assert dropout(x, 1.0, training=False, mode="downscale_in_infer").tolist() == [0.0] * 3


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes(dtype: str) -> None:
    x = ol.to_tensor(np.ones((4, 5), dtype), requires_grad=True)
    y = dropout(x, 0.3)
    assert y.dtype == dtype
    y.backward()
    assert x.grad.dtype == dtype
    assert dropout([1, 2, 3], 0.3).dtype == np.float32
    assert dropout(np.ones(3), 0.3).dtype == np.float64


@pytest.mark.parametrize(
    ("axis", "alike"), [(0, 1), (1, 0), (-1, 0), ([1], 0), ([0, 1], None), (None, None)]
)
def test_an_axis_drops_whole_slices(axis: Any, alike: int | None) -> None:
    ol.seed(3)
    y = dropout(ones(40, 30), 0.5, axis=axis).numpy()
    for along in (0, 1):
        assert bool(np.all(np.ptp(y, axis=along) == 0)) is (along == alike)


@pytest.mark.parametrize("p", [0.3, ol.to_tensor(0.3), np.float32(0.3)])
def test_backward_drops_the_same_elements(p: Any) -> None:
    x = ones(32, 64)
    y = dropout(x, p)
    y.backward(np.full((32, 64), 2.0))
    np.testing.assert_allclose(x.grad.numpy(), 2 * y.numpy())
    assert 0 < np.count_nonzero(y.numpy()) < y.size


def test_the_mask_is_not_stored() -> None:
    x = ones(100, 100)
    y = dropout(x, 0.5)
    assert y.node.saved == ()
    assert "key" in y.node.static
    assert not any(isinstance(value, np.ndarray) for value in y.node.static.values())


def test_the_same_mask_again_when_the_graph_is_walked_again() -> None:
    x = ones(50)
    y = dropout(x, 0.5)
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * y.numpy())


def test_derivatives_of_derivatives_drop_the_same_elements_and_store_no_mask() -> None:
    x = ones(50)
    y = dropout(x, 0.5)
    np.sum(y**3).backward(create_graph=True)
    first = x.grad
    nodes = [node for node in toposort(first.node) if not isinstance(node, Leaf)]
    dropouts = [node for node in nodes if node.operation.name == "dropout"]
    assert len(dropouts) == 2  # that of forward, and that of the first derivative
    assert all(node.saved == () for node in dropouts)
    x.grad = None
    first.sum().backward()
    np.testing.assert_allclose(first.numpy(), 3 * y.numpy() ** 2 * (y.numpy() > 0) * 2)
    np.testing.assert_allclose(x.grad.numpy(), 6 * y.numpy() * (y.numpy() > 0) * 4)


def test_a_seed_fixes_the_mask_whatever_the_dtype_and_a_scope_keeps_it_apart() -> None:
    ol.seed(3)
    one = dropout(ones(50), 0.5).numpy()
    ol.seed(3)
    np.testing.assert_array_equal(dropout(np.ones(50, "float32"), 0.5).numpy(), one)
    assert not np.array_equal(dropout(ones(50), 0.5).numpy(), one)
    masks = []
    for extra in (0, 3):
        for _ in range(extra):
            dropout(ones(2), 0.5)
        with ol.random_scope("layer 2", 7):
            masks.append(dropout(ones(50), 0.5).numpy())
    np.testing.assert_array_equal(*masks)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: dropout(ones(3), 1.5), "from 0 to 1"),
        (lambda: dropout(ones(3), -0.1), "from 0 to 1"),
        (lambda: dropout(ones(3), math.nan), "from 0 to 1"),
        (lambda: dropout(ones(3), 0.5, axis=1), "axis=1"),
        (lambda: dropout(ones(3), 0.5, mode="train"), "upscale_in_train"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        call()


def test_gradient_check() -> None:
    def f(x: Any) -> Any:
        with ol.random_scope("check", seed=3):
            return dropout(dropout(x, 0.3) * x, 0.5, axis=0)

    ol.check_grad(f, np.linspace(-1, 2, 12).reshape(4, 3))
