"""A network on the digits reaches the accuracy of float32 with each form of 16-bit training."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import optlab as ol

try:
    import ml_dtypes
except ModuleNotFoundError:
    ml_dtypes = None

bfloat16 = pytest.param(
    "bfloat16", marks=pytest.mark.skipif(ml_dtypes is None, reason="needs the package ml_dtypes")
)

datasets = pytest.importorskip("sklearn.datasets")


def accuracy(
    dtype: str = "float32", cast: Any = nullcontext, scaler: Any = None, **options: Any
) -> float:
    """Train eight epochs; return the accuracy on held-out digits."""
    x, y = datasets.load_digits(return_X_y=True)
    x = ol.to_tensor(x / 16, dtype=dtype)
    with ol.random_scope(0):
        model = ol.nn.Sequential(ol.nn.Linear(64, 64), ol.nn.ReLU(), ol.nn.Linear(64, 10))
    model.to(dtype=dtype)
    optimizer = ol.optimizer.Momentum(0.1, 0.9, parameters=model.parameters(), **options)
    scaler = scaler or ol.amp.GradScaler(enable=False)
    order = np.random.default_rng(0)
    for _ in range(8):
        for batch in order.permutation(1400).reshape(-1, 50):
            with cast():
                loss = ol.nn.functional.cross_entropy(model(x[batch]), y[batch])
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
    assert all(p.dtype == dtype for p in model.parameters())
    return float(np.mean(np.argmax(model(x[1400:]).numpy(), axis=1) == y[1400:]))


@pytest.fixture(scope="module")
def in_float32() -> float:
    found = accuracy()
    assert found > 0.9
    return found


def test_parameters_of_float16_with_loss_scaling(in_float32: float) -> None:
    scaler = ol.amp.GradScaler()
    assert accuracy("float16", scaler=scaler) > in_float32 - 0.01
    assert scaler.get_loss_scaling() < 65536.0  # at which a loss in float16 overflows


@pytest.mark.parametrize("dtype", ["float16", bfloat16])
def test_parameters_of_16_bits_with_copies_of_32(in_float32: float, dtype: str) -> None:
    scaler = ol.amp.GradScaler(init_loss_scaling=1024.0)
    assert accuracy(dtype, scaler=scaler, multi_precision=True) > in_float32 - 0.015


@pytest.mark.parametrize("dtype", ["float16", bfloat16])
def test_auto_cast(in_float32: float, dtype: str) -> None:
    scaler = ol.amp.GradScaler()
    found = accuracy(cast=lambda: ol.amp.auto_cast(dtype=dtype), scaler=scaler)
    assert found > in_float32 - 0.01
    assert scaler.get_loss_scaling() == 65536.0
