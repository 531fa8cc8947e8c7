"""Several threads that go back into one parameter."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import optlab as ol

THREADS, PASSES = 8, 60


@pytest.fixture
def often():
    """Switch between threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("size", [1, 3000, 20_000])
@pytest.mark.parametrize("cleared", [True, False], ids=["zero", "none"])
def test_threads_lose_no_gradient_of_a_shared_parameter(size, cleared, often):
    w = ol.Parameter(np.zeros(size))
    if cleared:
        w.clear_gradient()
    together = threading.Barrier(THREADS)

    def work():
        together.wait()
        for _ in range(PASSES):
            w.sum().backward()

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(w.grad, np.full(size, float(THREADS * PASSES)))
