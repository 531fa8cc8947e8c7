"""Random programs that write through views, against NumPy, finite differences, PyTorch and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.autograd.view_programs import SIZE, Jax, Torch, program, run


def start(seed: int) -> Any:
    return np.random.default_rng(seed + 10**6).uniform(0.2, 0.9, (SIZE, SIZE))


def value_and_gradient(seed: int) -> tuple[Any, Any] | None:
    """Run a program on a Tensor; None if it wrote over what backward needs, which is refused."""
    x = ol.to_tensor(start(seed), dtype="float64", requires_grad=True)
    value = run(program(seed), x)
    try:
        value.backward()
    except RuntimeError as refused:
        if "has written over it" in str(refused):
            return None
        raise
    assert x.grad is not None
    return value.item(), x.grad.numpy()


def check_finite_differences(seed: int, gradient: Any) -> None:
    """Compare a gradient with central differences of the program run by NumPy."""
    steps, x, h = program(seed), start(seed), 1e-6
    slopes = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[place] += h
        behind[place] -= h
        slopes[place] = (run(steps, ahead) - run(steps, behind)) / (2 * h)
    scale = 1.0 + abs(run(steps, x)) + np.abs(slopes).max()
    np.testing.assert_allclose(gradient, slopes, atol=2e-8 * scale, err_msg=f"seed {seed}")


@pytest.mark.parametrize("tens", range(15))
def test_values_are_numpys_and_gradients_those_of_finite_differences(tens: int) -> None:
    compared = 0
    for seed in range(10 * tens, 10 * tens + 10):
        steps, x = program(seed), start(seed)
        t = ol.to_tensor(x, dtype="float64", requires_grad=True)
        wanted = run(steps, x)
        np.testing.assert_allclose(run(steps, t).item(), wanted, rtol=1e-12)
        found = value_and_gradient(seed)
        if found is None:
            continue
        compared += 1
        check_finite_differences(seed, found[1])
    assert compared >= 4


@pytest.mark.peers
@pytest.mark.nightly
@pytest.mark.slow
def test_gradients_are_those_of_pytorch_and_jax() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    counts = dict.fromkeys(["torch", "jax", "differences", "refused", "refused by torch"], 0)
    for seed in range(4000):
        steps, x = program(seed), start(seed)
        found = value_and_gradient(seed)
        if found is None:
            counts["refused"] += 1
            continue
        peers: dict[str, Any] = {}
        if not any(step[0] == "flip" for step in steps):  # PyTorch has no negative strides
            t = torch.tensor(x, requires_grad=True)
            value = run(steps, t, Torch(torch))
            assert value.item() == pytest.approx(run(steps, x), rel=1e-9, abs=1e-9)
            try:
                value.backward()
                peers["torch"] = t.grad.numpy()
            except RuntimeError as refused:
                if "modified by an inplace operation" not in str(refused):
                    raise
                counts["refused by torch"] += 1
        if seed % 10 == 0:
            peers["jax"] = jax.grad(lambda x, steps=steps: run(steps, x, Jax(jax.numpy)))(x)
        if not peers:
            check_finite_differences(seed, found[1])
            counts["differences"] += 1
        scale = 1.0 + np.abs(found[1]).max()
        for name, gradient in peers.items():
            np.testing.assert_allclose(
                found[1], gradient, atol=1e-11 * scale, rtol=1e-9, err_msg=f"{name}, seed {seed}"
            )
            counts[name] += 1
    print(counts)
    assert counts["torch"] > 1500
    assert counts["jax"] > 300
    assert counts["refused"] < 500
