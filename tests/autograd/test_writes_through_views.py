"""Writes through views, and by functions that write, against NumPy and finite differences."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.autograd.rows import numbers

WRITES: dict[str, Callable[[Any, Any], Any]] = {}


def case(write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    WRITES[write.__name__] = write
    return write


@case
def a_row(y: Any, x: Any) -> None:
    v = y[1]
    v *= 3.0 * x[0]


@case
def a_transpose(y: Any, x: Any) -> None:
    v = y.T
    v[0] = x[1] * x[2]
    v *= x


@case
def a_reshaped_part(y: Any, x: Any) -> None:
    v = y.reshape(9)
    v[2:5] *= x[0]
    flat = np.ravel(y)
    flat += np.ravel(x) ** 2


@case
def views_of_views(y: Any, x: Any) -> None:
    v = y[0:2]
    u = v[:, 1:].T
    u[0] *= x[0, 0]
    v += x[1:]


@case
def views_that_overlap(y: Any, x: Any) -> None:
    a, b = y[0:2], y[1:3]
    a *= x[0:2]
    b *= a
    y[0] = b[1]


@case
def moved_axes(y: Any, x: Any) -> None:
    np.swapaxes(y, 0, 1)[1] *= x[0]
    np.moveaxis(y, 0, 1)[2] += x[1]
    s = np.squeeze(y[:1])
    s *= x[1]
    np.expand_dims(y, 0)[0, 1] *= x[2]


@case
def pieces(y: Any, x: Any) -> None:
    _, b, c = np.split(y, 3)
    b *= x[0]
    c += b


@case
def rows_of_a_loop(y: Any, x: Any) -> None:
    for i, row in enumerate(y):
        row *= x[i - 1]


@case
def flipped(y: Any, x: Any) -> None:
    y[::-1][0] *= x[1]
    np.flip(y, 1)[1] *= x[0]


@case
def a_diagonal_that_is_read(y: Any, x: Any) -> None:
    d = np.diagonal(y)
    y *= x
    y[0] += d


@case
def a_diagonal_of_einsum(y: Any, x: Any) -> None:
    d = np.einsum("ii->i", y)
    d *= x[0]


@case
def elements_of_a_row_that_swap(y: Any, x: Any) -> None:
    v = y[0]
    v[0], v[1] = v[1], v[0]


@case
def a_row_and_itself(y: Any, x: Any) -> None:
    v = y[0]
    y[1] *= v
    v *= y[1]
    y[0] *= y[1]


@case
def a_copy_by_lists(y: Any, x: Any) -> None:
    v = y[[0, 1]]
    v *= 5.0
    y[0] += v[1]


@case
def rows_that_are_added_twice(y: Any, x: Any) -> None:
    v = y[1:]
    np.add.at(v, [0, 1, 0], x)
    np.subtract.at(y, (slice(None), [0, 0]), x[:, :2] * x[0, 0])
    np.add.at(y, 2, 1.5)


@case
def a_filled_diagonal_of_a_transpose(y: Any, x: Any) -> None:
    np.fill_diagonal(y.T[1:], x[0])
    np.put(y[0], [2, 0], x[1])


def loss(write: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        y = x * x
        write(y, x)
        return np.sum(y**3 * np.arange(1.0, 10.0).reshape(3, 3))

    return f


@pytest.mark.parametrize("name", WRITES)
def test_values_and_derivatives_are_those_of_numpy(name: str) -> None:
    f, x = loss(WRITES[name]), numbers((3, 3), 0.4, 1.2)
    t = ol.to_tensor(x, dtype="float64", requires_grad=True)
    np.testing.assert_allclose(f(t).item(), f(x), rtol=1e-13)
    ol.check_grad(f, x)  # of first and second order
    together = np.asarray(ol.vmap(ol.grad(f))(np.stack([x, 0.5 * x])))
    np.testing.assert_allclose(together[1], ol.grad(f)(0.5 * x), rtol=1e-10)
    again = ol.to_tensor(x, dtype="float64", requires_grad=True)
    ol.recompute(f, again).backward()
    assert again.grad is not None
    np.testing.assert_allclose(again.grad.numpy(), ol.grad(f)(x), rtol=1e-12)


def test_what_a_write_through_a_view_makes_differentiable_is_known_at_once() -> None:
    x = ol.to_tensor([2.0, 3.0], requires_grad=True)
    plain = np.zeros_like(x)
    part, other = plain[:1], plain[:1]
    part += x[1]
    assert plain.requires_grad
    assert other.requires_grad
    with pytest.raises(TypeError, match="float"):
        float(other)


def test_leaves_are_not_written_to_through_views() -> None:
    x = ol.to_tensor(np.ones((2, 2)), requires_grad=True)
    row = x[0]
    for write in (
        lambda: operator.imul(row, 2.0),
        lambda: np.add.at(row, 0, 1.0),
        lambda: np.fill_diagonal(x, 2.0),
    ):
        with pytest.raises(TypeError, match="collects a gradient"):
            write()
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_refused_writes_say_what_to_write() -> None:
    x = ol.to_tensor([2.0, 3.0], dtype="float64", requires_grad=True)
    y = x * 1.0
    with pytest.raises(TypeError, match=r"np\.multiply\.at has no derivative rule.*np\.multiply\("):
        np.multiply.at(y, [0], 2.0)
    array = np.zeros(2)
    for name, write in {
        "add.at": lambda: np.add.at(array, [0], x[0]),
        "copyto": lambda: np.copyto(array, x),
        "put": lambda: np.put(array, [0], x[0]),
    }.items():
        with pytest.raises(TypeError, match=rf"np\.{name} would write .* Write into a Tensor"):
            write()
    with pytest.raises(TypeError, match="keeps the dtype of t, int64"):
        np.add.at(ol.to_tensor([1, 2]), [0], 0.5)
    with pytest.raises(TypeError, match="view that NumPy makes read-only"):
        np.diagonal(np.outer(x, x))[0] = 1.0
    assert array.tolist() == [0.0, 0.0]
    assert y.tolist() == [2.0, 3.0]


def test_sliding_windows_hear_of_writes_to_their_array() -> None:
    x = ol.to_tensor(np.arange(6.0), requires_grad=True)
    y = x * 1
    windows = np.lib.stride_tricks.sliding_window_view(y, 3)
    y[0] = 100.0
    np.testing.assert_array_equal(windows.numpy()[0], [100, 1, 2])
    windows.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 2, 3, 3, 2, 1])
