"""Formulas as compiled loops: NumPy's bits, when they are ready, and bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from optlab.plan import fused_function, use_executor
from optlab.plan.executors import has_numba
from optlab.plan.fused_function import FusedFunction

needs_numba = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")


def formula(x, y):
    return x * (y * 0.5 + 0.25), x - y


@needs_numba
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loop_has_the_bits_of_its_function(dtype):
    function = FusedFunction(formula)
    x, y = np.random.default_rng(0).standard_normal((2, 3000)).astype(dtype)
    out = [np.empty_like(x), np.empty_like(x)]
    with use_executor("numba"):
        loop = function.loop(x, y)
        assert loop is not None
        assert function.ready(x)
        loop(x, y, out=out)
    for a, b in zip(out, formula(x, y), strict=True):
        assert a.tobytes() == b.tobytes()


@needs_numba
def test_a_function_that_no_loop_can_do_is_left_to_numpy():
    function = FusedFunction(lambda x: np.tanh(x) + 1)
    with use_executor("numba"):
        assert function.loop(np.ones(5, np.float32)) is None


@needs_numba
def test_loops_are_looked_up_once_they_pay_off(monkeypatch):
    function = FusedFunction(formula)
    x = np.ones(1000, np.float32)
    with use_executor("numba"):
        assert function.ready(x)  # compiled now, into the cache
    function = FusedFunction(formula)
    monkeypatch.setattr(fused_function, "LOOK_UP", 10 * 8 * x.size)
    monkeypatch.setattr("optlab.plan.executors.LOOK_UP", 10 * 8 * x.size)
    ready = [function.ready(x) for _ in range(12)]
    assert not any(ready[:10])
    assert ready[-1]


def test_numpy_alone_compiles_nothing():
    function = FusedFunction(formula)
    with use_executor("numpy"):
        assert not function.ready(np.ones(1 << 20, np.float32))
    assert not function._loops


@needs_numba
def test_loops_of_many_shapes_are_bounded(monkeypatch):
    monkeypatch.setattr(fused_function, "_MOST_SHAPES", 3)
    function = FusedFunction(formula)
    with use_executor("numba"):
        for size in range(1, 12):
            assert function.ready(np.ones(size, np.float32))
            assert len(function._loops) <= 3
