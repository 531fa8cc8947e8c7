"""Large gradients without other references are overwritten; those with references never are.

Every result is compared with that of a backward pass that overwrites nothing.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape import backward
from optlab.plan import use_executor

F = ol.nn.functional
SHAPE = (100, 200)
assert backward.LARGE <= 4 * 100 * 200


def leaf(seed: int = 0) -> ol.Tensor:
    numbers = np.random.default_rng(seed).standard_normal(SHAPE, np.float32)
    return ol.to_tensor(numbers, requires_grad=True)


def chain(x: Any) -> Any:
    return np.sum(F.gelu(F.relu(F.gelu(x * 2.0) - 0.3)) ** 2)


def both_sides_of_a_sum(x: Any) -> Any:
    return np.sum((F.relu(x * 1.0) + F.relu(x * -2.0)) ** 2)


def residuals(x: Any) -> Any:
    for _ in range(3):
        x = x + F.relu(x - 0.1) + F.gelu(x)
    return np.sum(x * x)


def one_input_many_readers(x: Any) -> Any:
    y = x * 1.0
    return np.sum(y * y + np.sin(y) + F.relu(y) * 3.0)


def a_view_of_the_gradient(x: Any) -> Any:
    return np.sum(F.relu(F.relu(x).reshape(200, 100).T) ** 2)


def a_spread_gradient(x: Any) -> Any:
    return np.sum(F.relu(x)) + np.mean(F.gelu(x), axis=0).sum()


def halves(x: Any) -> Any:
    y = F.relu(x)
    return np.sum(y[:50] ** 2) + np.sum(F.relu(y[50:]) ** 3) + np.sum(y)


FUNCTIONS = [
    chain, both_sides_of_a_sum, residuals, one_input_many_readers, a_view_of_the_gradient,
    a_spread_gradient, halves,
]  # fmt: skip


@pytest.fixture
def nothing_is_large(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(backward, "LARGE", 1 << 60)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_are_the_same_to_the_bit(f: Any, nothing_is_large: Any) -> None:
    x = leaf()
    f(x).backward()
    loss = f(x)
    again = []
    for retain in (True, True, False):
        x.grad, before = None, x.grad
        loss.backward(retain_graph=retain)
        again.append(before.numpy().copy())
    x.grad, last = None, x.grad
    nothing_is_large()
    f(x).backward()
    for found in (*again, last.numpy()):
        np.testing.assert_array_equal(found, x.grad.numpy())


@pytest.mark.parametrize("f", FUNCTIONS)
def test_transforms_give_the_same(f: Any, nothing_is_large: Any) -> None:
    x, v = leaf(), leaf(1)
    ways = [lambda: ol.grad(f)(x.numpy()), lambda: ol.hvp(f, x.numpy(), v.numpy())]
    found = [np.copy(way()) for way in ways]
    nothing_is_large()
    for way, one in zip(ways, found, strict=True):
        np.testing.assert_array_equal(one, way())


def test_what_a_hook_was_given_stays_as_it_was() -> None:
    x = leaf()
    y = F.relu(x * 1.0)
    z = F.gelu(y)
    seen: list[Any] = []
    for t in (y, z):
        t.register_hook(lambda g: seen.append(g))
    np.sum(z * 3.0).backward()
    np.testing.assert_array_equal(seen[0].numpy(), np.full(SHAPE, 3.0, np.float32))
    np.testing.assert_allclose(seen[1].numpy()[y.numpy() == 0], 1.5)  # half of it, not yet masked
    np.testing.assert_array_equal(x.grad.numpy(), seen[1].numpy() * (y.numpy() > 0))


def test_the_gradient_to_start_from_stays_as_it_was() -> None:
    x, seed = leaf(), np.full(SHAPE, 2.0, np.float32)
    tensor = ol.to_tensor(seed.copy())
    F.relu(x).backward(seed)
    F.relu(x).backward(tensor)
    ol.vjp(F.relu, x.numpy())[1](seed)
    np.testing.assert_array_equal(seed, 2.0)
    np.testing.assert_array_equal(tensor.numpy(), 2.0)


def test_gradients_that_two_leaves_have_in_common_stay_apart() -> None:
    a, b = leaf(0), leaf(1)
    np.sum((F.relu(a + b) * 1.0) ** 2).backward()
    a.grad.numpy()
    (F.relu(a) * 2.0).sum().backward()
    difference = a.grad.numpy() - b.grad.numpy()
    np.testing.assert_allclose(difference, 2.0 * (a.numpy() > 0), atol=1e-6)


def test_a_graph_of_gradients_is_never_written_over() -> None:
    x = leaf()
    residuals(x).backward(create_graph=True)
    slope, x.grad = x.grad, None
    before = slope.numpy().copy()
    np.sum(slope * slope).backward()
    np.testing.assert_array_equal(slope.numpy(), before)


def test_a_gradient_for_all_members_may_meet_values_of_each() -> None:
    stack = np.random.default_rng(0).standard_normal((3, *SHAPE)).astype(np.float32)
    found = ol.vmap(ol.grad(chain))(stack)
    for i in range(3):
        np.testing.assert_allclose(found[i], ol.grad(chain)(stack[i]), rtol=2e-4, atol=1e-5)


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("f", [F.relu, F.gelu])
def test_no_further_array_of_its_size_is_needed(f: Any) -> None:
    x = ol.to_tensor(np.ones((1000, 1000), np.float32), requires_grad=True)
    with use_executor("numpy"):  # loops that were compiled meanwhile are loaded in any step
        for _ in range(2):
            loss = np.sum(f(x + 1.0) * 2.0)
            tracemalloc.start()
            loss.backward()
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            x.grad = None
    assert peak < 1.5 * x.nbytes  # one gradient, and a mask or blocks


@pytest.mark.usefixtures("traced_memory")
def test_gradients_that_meet_are_added_in_place() -> None:
    x = ol.to_tensor(np.ones((1000, 1000), np.float32), requires_grad=True)
    y = x * 1.0
    loss = np.sum(sum([y * float(i) for i in range(1, 9)]))
    tracemalloc.start()
    loss.backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert x.grad.numpy()[0, 0] == 36
    assert peak < 3.5 * x.nbytes  # the arriving gradient, the summand, and their sum so far
