"""GELU by compiled loops around tanh and exp: NumPy's bits and warnings, on any number of cores."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import optlab as ol
from optlab.nn.functional import arguments
from optlab.nn.functional.activation import erf
from optlab.plan import sizes, use_executor
from optlab.plan.executors import has_numba
from optlab.plan.fused_function import FusedFunction

F = ol.nn.functional
needs_numba = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")


def gelu(executor, x, g, retain=False):
    """Return GELU, its gradient, and what NumPy warns of."""
    with use_executor(executor), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        t = ol.to_tensor(x, requires_grad=True)
        y = F.gelu(t)
        # What is added up is written over; a gradient that somebody else holds is not.
        (y.backward(g) if retain else np.sum(y * ol.to_tensor(g)).backward())
        told = {str(one.message) for one in caught}
    return y.detach().numpy(), t.grad.numpy(), told


@needs_numba
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("shape", [(3,), (0, 4), (1 << 17,), (300, 1000), (2, 3, 50_001)])
def test_loops_have_numpys_bits(monkeypatch, shape, retain):
    monkeypatch.setattr(erf, "_BLOCK_OF_LOOPS", 1 << 16)
    monkeypatch.setattr(arguments, "SHARED", 1 << 17)
    used = []
    loop = FusedFunction.loop
    monkeypatch.setattr(
        FusedFunction, "loop", lambda self, *x: used.append(loop(self, *x)) or used[-1]
    )
    draw = np.random.default_rng(0)
    x = (draw.standard_normal(shape) * 10.0 ** draw.integers(-3, 2, shape)).astype("float32")
    g = draw.standard_normal(shape).astype("float32")
    expected = gelu("numpy", x, g, retain)
    assert not any(used)
    found = gelu("numba", x, g, retain)
    assert x.size == 0 or any(used)
    for a, b in zip(found[:2], expected[:2], strict=True):
        assert a.tobytes() == b.tobytes()


@needs_numba
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -0.0])
def test_special_values_and_their_warnings_are_numpys(value):
    x = np.linspace(-9, 9, 50_000).astype("float32")
    x[[7, 40_000]] = value
    g = np.ones_like(x)
    expected, found = gelu("numpy", x, g), gelu("numba", x, g)
    assert found[2] == expected[2]
    for a, b in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def test_a_matrix_that_is_not_contiguous():
    x = np.random.default_rng(0).standard_normal((700, 300)).astype("float32")
    whole, turned = (gelu("auto", a, np.ones_like(a)) for a in (x, x.T))
    for a, b in zip(whole[:2], turned[:2], strict=True):
        np.testing.assert_array_equal(a, b.T)


def test_numpy_stays_on_one_core_and_loops_take_all(monkeypatch):
    monkeypatch.setattr(arguments, "SHARED", 100)
    monkeypatch.setattr(arguments, "cores", lambda: 3)
    parts = []
    monkeypatch.setattr(
        arguments, "for_each", lambda f, blocks: parts.append(len(blocks)) or [*map(f, blocks)]
    )
    x = np.ones(arguments.BLOCK * 4, np.float32)
    gelu("numpy", x, x)
    assert set(parts) == {1}
    if has_numba():
        parts.clear()
        gelu("numba", x, x)
        assert set(parts) == {3}
    assert sizes.cores() >= 1
