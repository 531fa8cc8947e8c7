"""Properties of every derivative: linear pullbacks, adjoint tangents, accumulated gradients."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from tests.autograd.rows import ROWS, Case

CASES = [case for row in ROWS.values() for case in row]
#: A few cases of every function: each property runs the whole function several times.
SOME = [case for row in ROWS.values() for case in row[:: max(1, len(row) // 4)]]

some_cases = pytest.mark.parametrize("case", SOME, ids=lambda case: case.label)


def _draw(generator: Any, like: Any) -> Any:
    return generator.standard_normal(np.shape(like))


@some_cases
def test_pullbacks_are_linear(case: Case) -> None:
    generator = np.random.default_rng(0)
    y, pullback = ol.vjp(case.f, *case.args)
    u, w = _draw(generator, y), _draw(generator, y)
    together = pullback(2.0 * u - 3.0 * w)
    for joined, one, two in zip(together, pullback(u), pullback(w), strict=True):
        np.testing.assert_allclose(joined, 2.0 * one - 3.0 * two, rtol=1e-9, atol=1e-9)


@some_cases
def test_tangents_are_adjoint_to_pullbacks(case: Case) -> None:
    """<u, Jv> = <u'J, v>."""
    generator = np.random.default_rng(1)
    y, pullback = ol.vjp(case.f, *case.args)
    u = _draw(generator, y)
    directions = [_draw(generator, x) for x in case.args]
    value, tangent = ol.jvp(case.f, case.args, directions)
    np.testing.assert_array_equal(value, y)
    back = sum(np.sum(g * v) for g, v in zip(pullback(u), directions, strict=True))
    np.testing.assert_allclose(np.sum(u * tangent), back, rtol=1e-9, atol=1e-9)


@some_cases
def test_backward_twice_leaves_twice_the_gradient(case: Case) -> None:
    leaves = [ol.to_tensor(x, requires_grad=True) for x in case.args]
    value = case.f(*leaves)
    value.backward(retain_graph=True)
    once = [None if t.grad is None else t.grad.numpy() for t in leaves]
    value.backward()
    for t, first in zip(leaves, once, strict=True):
        if first is not None:
            np.testing.assert_allclose(t.grad.numpy(), 2.0 * first, rtol=1e-12)


def _network(x: Any, w: Any, v: Any) -> Any:
    return np.sum(np.tanh(np.tanh(x @ w) @ v) ** 2)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 4), inner=st.integers(1, 4), width=st.integers(1, 4), seed=st.integers(0, 9)
)
def test_hessian_vector_products_agree_with_the_hessian(
    rows: int, inner: int, width: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, inner))
    w, v = generator.standard_normal((inner, width)), generator.standard_normal((width, 2))
    direction = generator.standard_normal(w.shape)

    def f(w: Any) -> Any:
        return _network(x, w, v)

    product = ol.hvp(f, w, direction)
    whole = ol.hessian(f)(w)
    np.testing.assert_allclose(product, np.tensordot(whole, direction, 2), rtol=1e-8, atol=1e-10)
    _, along = ol.jvp(ol.grad(f), (w,), (direction,))
    np.testing.assert_allclose(along, product, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(whole, np.moveaxis(whole, (0, 1), (2, 3)), rtol=1e-8, atol=1e-10)


@pytest.mark.nightly
@pytest.mark.slow
def test_ten_thousand_steps_keep_nothing() -> None:
    w = ol.Parameter(np.linspace(-1.0, 1.0, 12).reshape(3, 4))
    x = np.linspace(0.0, 1.0, 15).reshape(5, 3)
    optimizer = ol.optimizer.Adam(1e-3, parameters=[w])

    def step() -> None:
        y = x @ w
        y[0] *= 2.0
        loss = np.sum(y * y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        ol.grad(lambda w: np.sum(x @ w) ** 2)(w.numpy())

    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        # Python keeps some freed memory for later, so that a first window may grow; memory that
        # is leaked at every step shows in all windows, at 16 bytes a step or more.
        windows = []
        for _ in range(5):
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(2_000):
                step()
            windows.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
        gc.enable()
    assert min(windows) < 2_000, f"2,000 steps each kept {windows} bytes"
