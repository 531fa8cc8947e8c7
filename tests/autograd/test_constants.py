"""NumPy arrays beside Tensors may be overwritten by their owner without spoiling a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape.constants import COPIED

LARGE = COPIED // 8 + 17


def test_one_buffer_for_every_batch() -> None:
    for layer in (False, True):
        weight = ol.Parameter(np.ones((2, 1)))
        buffer, data = np.empty((4, 2)), np.arange(16.0).reshape(8, 2)
        loss: Any = 0.0
        for k in range(2):
            buffer[:] = data[4 * k : 4 * k + 4]
            y = ol.nn.functional.linear(buffer, weight) if layer else buffer @ weight
            loss = loss + np.sum(y)
        loss.backward()
        assert weight.grad.ravel().tolist() == [56.0, 64.0]


OPERATIONS = {
    "multiply": lambda t, x: np.sum(t * x),
    "matmul": lambda t, x: np.sum(np.reshape(x, (1, -1)) @ np.reshape(t, (-1, 1))),
    "divide": lambda t, x: np.sum(t / x),
    "maximum": lambda t, x: np.sum(np.maximum(t, x)),
    "interp": lambda t, x: np.sum(np.interp(t, x, np.sqrt(x))),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_small_array_may_be_written_to(name: str) -> None:
    x = np.linspace(1.0, 2.0, 5)
    t = ol.to_tensor(np.linspace(1.1, 1.9, 5), requires_grad=True)
    expected = ol.grad(lambda t: OPERATIONS[name](t, x))(t.numpy())
    y = OPERATIONS[name](t, x)
    x[:] = 100.0
    y.backward()
    np.testing.assert_array_equal(t.grad.numpy(), expected)


WRITES = {
    "all": lambda x: x.__iadd__(1.0), "the first": lambda x: x.__setitem__(0, -3.0),
    "the last": lambda x: x.__setitem__(-1, -3.0), "half": lambda x: x[::2].fill(9.0),
    "one element": lambda x: x.__setitem__(x.size // 3 + 5, np.nextafter(1.0, 2.0)),
    "two that cancel": lambda x: (x.__setitem__(101, 0.5), x.__setitem__(90_000, 1.5)),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", [False, True])
def test_a_write_to_a_large_array_is_noticed(write: str, view: bool) -> None:
    base = np.ones(LARGE * 2)
    x = base[::2] if view else base
    t = ol.to_tensor(np.full(x.shape, 2.0), requires_grad=True)
    y = np.sum(t * x)
    WRITES[write](x)
    with pytest.raises(RuntimeError, match=r"NumPy array of shape \(\d+,\) that 'multiply' was"):
        y.backward()
    assert t.grad is None


LAYOUTS = {
    "rows": lambda x: x, "columns": np.asfortranarray, "every second": lambda x: x[:, ::2],
    "transposed": lambda x: x.T, "float32": lambda x: x.astype("float32"),
    "bytes": lambda x: x.astype("int8"), "backwards": lambda x: x[::-1, ::-1],
    "three axes": lambda x: x.reshape(1500, 20, 61)[:, 1:].swapaxes(0, 1),
    "odd": lambda x: x[1:, 3:],
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_of_one_element_is_noticed_wherever_it_is(layout: str) -> None:
    generator = np.random.default_rng(0)
    x = LAYOUTS[layout](generator.integers(-99, 99, (1500, 1220)).astype(float))
    t = ol.to_tensor(np.ones(x.shape), requires_grad=True)
    for _ in range(8):
        y = np.sum(t * x)
        place = tuple(generator.integers(n) for n in x.shape)
        before = x[place]
        x[place] = 100
        with pytest.raises(RuntimeError, match="has been written to since"):
            y.backward(retain_graph=True)
        x[place] = before  # as it was
        y.backward()
    np.testing.assert_array_equal(t.grad.numpy(), 8.0 * x)


@pytest.mark.parametrize("columns", [64, 1024, 4096])
def test_rows_that_change_places_are_noticed(columns: int) -> None:
    x = np.random.default_rng(0).normal(size=(2**20 // columns, columns))
    t = ol.to_tensor(np.ones(columns), requires_grad=True)
    for one, other in [(0, 1), (3, 40), (2, -1)]:
        y = np.sum((x @ t) ** 2)
        x[[one, other]] = x[[other, one]]
        with pytest.raises(RuntimeError, match="has been written to since"):
            y.backward()


def test_a_read_only_array_is_neither_copied_nor_read_twice() -> None:
    for size in (10, LARGE):
        x = np.ones(size)
        x.flags.writeable = False
        t = ol.to_tensor(np.full(size, 2.0), requires_grad=True)
        y = np.sum(t * x)
        (node,) = [edge for edge in y.node.edges if edge is not None]
        assert type(node.saved) is tuple
        assert any(value is x for value in node.saved)
        y.backward()
        np.testing.assert_array_equal(t.grad.numpy(), x)
    x = np.ones(LARGE)
    view = x[:]
    view.flags.writeable = False  # its owner may still write
    y = np.sum(t * view)
    x[7] = 2.0
    with pytest.raises(RuntimeError, match="has been written to since"):
        y.backward()


def test_a_large_array_left_alone_is_not_copied() -> None:
    x = np.ones((300, 700))
    t = ol.to_tensor(np.full(x.shape, 2.0), requires_grad=True)
    y = np.sum(t * x)
    (node,) = [edge for edge in y.node.edges if edge is not None]
    assert any(value is x for value in node.saved.values)
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_array_equal(t.grad.numpy(), 2.0 * x)


def test_double_backward_and_functions_keep_working_beside_large_arrays() -> None:
    x = np.linspace(1.0, 2.0, LARGE)
    gradient = ol.grad(lambda t: np.sum(ol.grad(lambda t: np.sum(x * t**3))(t)))(np.ones(LARGE))
    np.testing.assert_allclose(gradient, 6.0 * x)
