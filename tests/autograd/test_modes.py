"""Switching recording off and on; threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import optlab as ol


def leaf(data: Any) -> ol.Tensor:
    return ol.to_tensor(data, dtype="float64", requires_grad=True)


def test_no_grad_and_enable_grad_as_contexts() -> None:
    x = leaf(1.0)
    with ol.no_grad():
        assert not ol.is_grad_enabled()
        assert not (x * 2).requires_grad
        with ol.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


@pytest.mark.parametrize("brackets", [True, False])
def test_no_grad_and_enable_grad_as_decorators(brackets: bool) -> None:
    def twice(x: Any, factor: float = 2.0) -> Any:
        """Double."""
        return x * factor

    off = ol.no_grad()(twice) if brackets else ol.no_grad(twice)
    on = ol.enable_grad()(twice) if brackets else ol.enable_grad(twice)
    x = leaf(1.0)
    assert off.__name__ == "twice"
    assert off.__doc__ == "Double."
    for _ in range(2):
        assert not off(x, factor=3.0).requires_grad
        assert off(x, factor=3.0).item() == 3.0
        with ol.no_grad():
            assert on(x).requires_grad
            assert not ol.is_grad_enabled()
    assert ol.is_grad_enabled()


@pytest.mark.parametrize("mode", [ol.no_grad, ol.enable_grad])
def test_the_mode_comes_back_after_an_error(mode: Any) -> None:
    @mode
    def fails() -> None:
        raise KeyError("on purpose")

    for outside in (True, False):
        with ol.enable_grad() if outside else ol.no_grad():
            with pytest.raises(KeyError):
                fails()
            with pytest.raises(KeyError), mode():
                raise KeyError("on purpose")
            assert ol.is_grad_enabled() is outside


def test_one_context_object_may_be_entered_inside_itself() -> None:
    quiet = ol.no_grad()
    with quiet:
        with quiet:
            assert not ol.is_grad_enabled()
        assert not ol.is_grad_enabled()
    on_again = ol.is_grad_enabled()
    ol.enable_grad().__enter__()  # so that a failure here spoils no other test
    assert on_again


def test_a_decorated_function_may_call_itself() -> None:
    @ol.no_grad()
    def countdown(x: Any, n: int) -> Any:
        return countdown(x * 2, n - 1) if n else x * 2

    assert not countdown(leaf(1.0), 3).requires_grad
    assert ol.is_grad_enabled()


def test_threads_have_their_own_mode() -> None:
    inside, checked, found = threading.Event(), threading.Event(), []

    def other() -> None:
        found.append(ol.is_grad_enabled())
        with ol.no_grad():
            inside.set()
            checked.wait(60)
            found.append(ol.is_grad_enabled())

    with ol.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(60)
    found.append(ol.is_grad_enabled())
    checked.set()
    thread.join()
    assert found == [True, True, False]


def test_threads_can_run_backward_at_the_same_time() -> None:
    leaves = [leaf(np.full(50, float(i))) for i in range(8)]

    def work(x: ol.Tensor) -> None:
        for _ in range(50):
            np.sum(np.tanh(x) * x).backward()

    threads = [threading.Thread(target=work, args=(x,)) for x in leaves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, x in enumerate(leaves):
        assert x.grad is not None
        wanted = np.tanh(i) + i * (1 - np.tanh(i) ** 2)
        np.testing.assert_allclose(x.grad.numpy(), np.full(50, 50 * wanted), rtol=1e-12)
