"""Layers that cut large work into blocks: the same bits on any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.graph.reader import graph_of
from optlab.backend import blas_threads
from optlab.plan import sizes, threads

F = ol.nn.functional


def numbers(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


PROGRAM = """
import hashlib, sys
import numpy as np
import optlab as ol
from optlab.lab.models import Block

r = np.random.default_rng(0)
found = hashlib.sha256()
for layer, shape in [
    (ol.nn.Conv2D(8, 16, 3, padding=1), (24, 8, 14, 14)),
    (ol.nn.Conv2D(1, 8, 5), (32, 1, 28, 28)),
    (ol.nn.Conv2D(8, 8, 3, stride=2, groups=2), (64, 8, 28, 28)),
    (Block(128, 4), (8, 64, 128)),
]:
    for p in layer.parameters():
        p.set_value(r.standard_normal(p.shape).astype("float32"))
    x = ol.to_tensor(r.standard_normal(shape).astype("float32"), requires_grad=True)
    y = layer(x)
    y.backward(r.standard_normal(y.shape).astype("float32"))
    for array in (y.detach(), x.grad, *(p.grad for p in layer.parameters())):
        found.update(np.ascontiguousarray(array.numpy()).tobytes())
print(found.hexdigest())
"""


def test_bits_are_the_same_on_one_thread_and_on_several():
    found = []
    for number in ("1", "2", "2", "3"):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": number}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        found.append(done.stdout)
    assert len(set(found)) == 1


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
def test_a_large_convolution_is_that_of_its_images_one_by_one(kernel, groups):
    x, weight, bias = numbers(40, 4, 20, 20), numbers(6, 4 // groups, kernel, kernel), numbers(6)
    leaves = [ol.to_tensor(a, requires_grad=True) for a in (x, weight, bias)]
    y = F.conv2d(*leaves, padding=1, groups=groups)
    g = numbers(*y.shape, seed=1)
    y.backward(g)
    total = [0.0, 0.0]
    for i in range(40):
        ones = [ol.to_tensor(a, requires_grad=True) for a in (x[i : i + 1], weight, bias)]
        one = F.conv2d(*ones, padding=1, groups=groups)
        one.backward(g[i : i + 1])
        np.testing.assert_allclose(
            y.detach().numpy()[i], one.detach().numpy()[0], rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(
            leaves[0].grad.numpy()[i], ones[0].grad.numpy()[0], rtol=1e-5, atol=1e-5
        )
        total = [a + b.grad.numpy().astype("float64") for a, b in zip(total, ones[1:], strict=True)]
    for leaf, expected in zip(leaves[1:], total, strict=True):
        np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(leaves[0].detach().numpy(), x)  # nothing wrote to the images


@pytest.mark.parametrize("needed", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)])
def test_a_convolution_gives_the_gradients_that_are_needed(needed):
    arrays = numbers(3, 2, 6, 6), numbers(4, 2, 3, 3), numbers(4)
    whole = [ol.to_tensor(a, requires_grad=True) for a in arrays]
    F.conv2d(*whole).sum().backward()
    some = [ol.to_tensor(a, requires_grad=bool(n)) for a, n in zip(arrays, needed, strict=True)]
    F.conv2d(*some).sum().backward()
    for one, other, n in zip(some, whole, needed, strict=True):
        if n:
            np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-5, atol=1e-5)
        else:
            assert one.grad is None


def test_a_frozen_convolution_does_not_keep_its_input():
    x = ol.to_tensor(numbers(2, 3, 8, 8), requires_grad=True) * 2
    weight = ol.to_tensor(numbers(4, 3, 3, 3))
    assert [kept.what for kept in graph_of(F.conv2d(x, weight)).nodes[-1].kept] == ["weight"]


@pytest.mark.parametrize("scale", [0.1, 30.0])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_a_large_batch_is_that_of_its_parts(causal, scale):
    q, k, v = (numbers(8, 64, 4, 32, seed=i) * (scale if i < 2 else 1) for i in range(3))
    leaves = [ol.to_tensor(a, requires_grad=True) for a in (q, k, v)]
    y = F.scaled_dot_product_attention(*leaves, is_causal=causal)
    g = numbers(*y.shape, seed=5)
    y.backward(g)
    for i in range(8):
        ones = [ol.to_tensor(a[i : i + 1].astype("float64"), requires_grad=True) for a in (q, k, v)]
        one = F.scaled_dot_product_attention(*ones, is_causal=causal)
        one.backward(g[i : i + 1].astype("float64"))
        close = {"rtol": 2e-3, "atol": 2e-3 * max(scale, 1.0)}
        np.testing.assert_allclose(y.detach().numpy()[i], one.detach().numpy()[0], **close)
        for leaf, other in zip(leaves, ones, strict=True):
            np.testing.assert_allclose(leaf.grad.numpy()[i], other.grad.numpy()[0], **close)


def test_the_product_of_stacks_is_that_of_matrices():
    x, weight = numbers(8, 64, 128), numbers(128, 512)
    y = F.linear(x, ol.to_tensor(weight))
    np.testing.assert_allclose(
        y.numpy(), x.astype("float64") @ weight.astype("float64"), rtol=1e-4, atol=1e-4
    )


def test_products_run_with_one_thread_each_and_the_number_comes_back(monkeypatch):
    library = blas_threads._own_library()
    if library is None:
        pytest.skip("NumPy's products are not those of an OpenBLAS with threads of its own")
    read, write = library
    first = read()
    write(2)
    monkeypatch.setattr(sizes, "cores", lambda: 2)
    try:
        seen, who = [], set()
        both = threading.Barrier(2)

        def job():
            both.wait(60)  # passes only if two threads of Python are here at a time
            seen.append(read())
            who.add(threading.get_ident())

        threads.products_on_all_cores([job, job])
        assert seen == [1, 1]
        assert len(who) == 2
        assert read() == 2

        def fails():
            raise ArithmeticError("of the job")

        with pytest.raises(ArithmeticError, match="of the job"):
            threads.products_on_all_cores([fails, fails])
        assert read() == 2
    finally:
        write(first)


def test_the_number_can_be_set_while_products_are_held(monkeypatch):
    monkeypatch.setattr(blas_threads, "_before", {})
    pytest.importorskip("threadpoolctl")
    library = blas_threads._own_library()
    if library is None:
        pytest.skip("NumPy's products are not those of an OpenBLAS with threads of its own")
    read, write = library
    first = read()
    write(2)
    try:
        with blas_threads.one_each() as outer:
            assert outer == 2
            with blas_threads.one_each() as inner:
                assert (inner, read()) == (2, 1)
            assert read() == 1
            assert blas_threads.blas_threads() == 2
            assert ol.set_blas_threads(1) == 2
        assert read() == 1
        ol.set_blas_threads(None)
        assert read() == 2
    finally:
        write(first)
