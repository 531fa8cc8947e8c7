"""In-place writes: values, gradients, and errors about overwritten saved values."""

from __future__ import annotations

import gc
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.autograd.tape import versions
from optlab.autograd.tape.slow_path import slow_path
from tests.autograd.rows import numbers


def leaf(*values: float) -> ol.Tensor:
    return ol.to_tensor(values, dtype="float64", requires_grad=True)


def gradient(x: ol.Tensor) -> list[float]:
    assert x.grad is not None
    return x.grad.tolist()


# Values and gradients ---------------------------------------------------------------------------

ARITHMETIC = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv,
    "%": operator.imod, "**": operator.ipow,
}  # fmt: skip


@pytest.mark.parametrize("symbol", ARITHMETIC)
@pytest.mark.parametrize("other", ["array", "number", "broadcast"])
def test_arithmetic_in_place_has_values_and_gradients_of_second_order(
    symbol: str, other: str
) -> None:
    u = {"array": numbers((2, 3), 1.1, 1.9, seed=1), "number": np.float64(1.7)}.get(
        other, numbers((3,), 1.1, 1.9, seed=2)
    )

    def f(x: Any, u: Any) -> Any:
        y = x * 1.0
        y = ARITHMETIC[symbol](y, u)
        return y * y

    ol.check_grad(f, numbers((2, 3), 2.1, 2.9), u)


def test_matmul_in_place() -> None:
    ol.check_grad(lambda x, m: operator.imatmul(x * 1.0, m), numbers((2, 3)), numbers((3, 3)))


INDICES: dict[str, Any] = {
    "one": 1, "slice": slice(0, 2), "backwards": slice(None, None, -1), "dots": (..., 0),
    "list": [2, 0], "points": ([0, 1], [2, 2]), "mask": numbers((3, 4)) > 0, "all": ...,
    "twice": [1, 1], "mixed": (slice(1, None), [0, 3, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_item_assignment_has_values_and_gradients_of_second_order(name: str) -> None:
    index = INDICES[name]
    shape = np.zeros((3, 4))[index].shape

    def f(x: Any, v: Any) -> Any:
        y = x * x
        y[index] = v * v
        return y * y

    ol.check_grad(f, numbers((3, 4)), numbers(shape, seed=3))
    ol.check_grad(lambda x: f(x, 2.0), numbers((3, 4)))
    if shape:
        ol.check_grad(f, numbers((3, 4)), numbers(shape[-1:], seed=4))  # broadcast into place


def test_a_tensor_without_gradient_takes_in_values_that_have_one() -> None:
    x = leaf(2.0, 3.0)
    out = ol.zeros([3], dtype="float64")
    for i in range(2):
        out[i + 1] = x[i] ** 2
    assert out.tolist() == [0.0, 4.0, 9.0]
    np.sum(out * np.array([1.0, 10.0, 100.0])).backward()
    assert gradient(x) == [40.0, 600.0]
    assert (out.detach() * 2).tolist() == [0.0, 8.0, 18.0]


def test_the_memory_itself_is_written() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1.0
    alias = y.detach()
    y[0] = 7.0
    y += 1.0
    assert alias.tolist() == [8.0, 3.0, 4.0]


def test_a_part_is_changed_in_place_as_numpy_does() -> None:
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1.0
    y[0:2] += 10.0
    y[1] *= 2.0
    y[[0, 2]] -= 1.0
    assert y.tolist() == [10.0, 24.0, 2.0]
    np.sum(y * y).backward()
    assert gradient(x) == [20.0, 96.0, 4.0]


def test_views_of_a_single_row_can_be_filled_through_the_whole() -> None:
    w = leaf(3.0)
    table = ol.zeros([2, 2], dtype="float64")
    table[1, :] = w * np.array([1.0, 2.0])
    table[1] *= 2.0
    np.sum(table).backward()
    assert table.tolist() == [[0.0, 0.0], [6.0, 12.0]]
    assert gradient(w) == [6.0]


def test_integers_and_shapes_stay_what_they_are() -> None:
    x = leaf(1.0, 2.0)
    counts = ol.to_tensor([1, 2])
    with pytest.raises(TypeError, match="keeps the dtype of t, int64"):
        counts += x
    with pytest.raises(TypeError, match="int64 cannot take in values that need a gradient"):
        counts[0] = x[0]
    with pytest.raises(ValueError, match=r"keeps the shape of t, \(\)"):
        operator.iadd(x[0] * 1.0, x)
    half = ol.to_tensor([1.0, 2.0], dtype="float32")
    half += x
    assert half.dtype == np.float32
    half.backward()
    assert gradient(x) == [1.0, 1.0]
    with pytest.raises(ValueError, match="broadcast"):
        (x * 1.0)[0:2] = np.ones(3)
    with pytest.raises(IndexError):
        (x * 1.0)[5] = 1.0


# Leaves -----------------------------------------------------------------------------------------


def _item(t: Any) -> None:
    t[0] = 1.0


def _plus(t: Any) -> None:
    t += 1.0


@pytest.mark.parametrize("write", [_item, _plus])
@pytest.mark.parametrize("view", [False, True])
def test_a_leaf_is_not_written_to_while_recording(write: Any, view: bool) -> None:
    for w in (leaf(1.0, 2.0), ol.Parameter([1.0, 2.0], name="weight")):
        with pytest.raises(TypeError, match=r"collects a gradient.*with optlab\.no_grad\(\)"):
            write(w[0:2] if view else w)
        assert w.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("write", [_item, _plus])
def test_a_leaf_written_under_no_grad_stays_a_leaf_and_its_readers_hear_of_it(write: Any) -> None:
    w = leaf(1.0, 2.0)
    loss = np.sum(w * w)
    with ol.no_grad():
        write(w)
    assert w.is_leaf
    assert w.requires_grad
    with pytest.raises(RuntimeError, match=r"'multiply' saved.*(item assignment|\+=) \(.*line \d+"):
        loss.backward()


def test_gradient_descent_by_hand() -> None:
    w = leaf(3.0)
    for _ in range(50):
        np.sum((w - 1.0) ** 2).backward()
        assert w.grad is not None
        with ol.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
    assert abs(w.item() - 1.0) < 1e-4


def test_a_gradient_can_be_scaled_in_place_without_touching_another() -> None:
    x, y = leaf(1.0), leaf(2.0)
    (x + y).backward()
    x.grad *= 3.0
    x.grad[0] += 1.0
    assert gradient(x) == [4.0]
    assert gradient(y) == [1.0]
    (x * 2.0).backward()
    assert gradient(x) == [6.0]


# Overwritten saved values -----------------------------------------------------------------------


def test_an_overwritten_result_names_who_saved_it_and_who_wrote() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2.0
    z = np.sum(y * y)
    y[0] = 5.0
    with pytest.raises(RuntimeError, match=r"'multiply' saved.*item assignment \(.*test_in_place"):
        z.backward()
    assert x.grad is None


def test_an_overwritten_output_is_noticed_too() -> None:
    x = leaf(1.0, 2.0)
    y = np.exp(x)
    y += 1.0
    with pytest.raises(RuntimeError, match=r"'exp' saved.*\+= \("):
        y.backward()


def test_writing_through_a_view_is_noticed() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2.0
    z = np.sum(y * y)
    v = y[0:1]
    v += 1.0
    with pytest.raises(RuntimeError, match="'multiply' saved"):
        z.backward()


def test_a_constant_tensor_that_is_overwritten_is_noticed() -> None:
    x, c = leaf(1.0, 2.0), ol.to_tensor([3.0, 4.0], dtype="float64")
    z = np.sum(x * c)
    c[0] = 9.0
    with pytest.raises(RuntimeError, match="'multiply' saved"):
        z.backward()
    again = np.sum(x * c)
    again.backward()
    assert gradient(x) == [9.0, 4.0]


def test_what_backward_does_not_need_may_be_overwritten() -> None:
    x = leaf(1.0, 2.0)
    y = x + 2.0
    z = np.sum(y + y)
    y[0] = 5.0
    z.backward()
    assert gradient(x) == [2.0, 2.0]


def test_in_place_operations_keep_the_old_values_they_need_themselves() -> None:
    x, u = leaf(3.0), leaf(5.0)
    y = x * 1.0
    y *= u
    y **= 2
    y /= u
    y.backward()
    assert y.tolist() == [45.0]
    assert gradient(x) == [30.0]  # y = x^2 u
    assert gradient(u) == [9.0]


# Tensors whose node is out of date --------------------------------------------------------------


def test_a_view_taken_before_a_write_has_the_gradient_of_the_new_values() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1.0
    v = y[0:1]
    y *= 3.0
    np.sum(v * 2.0).backward()
    assert v.tolist() == [3.0]
    assert gradient(x) == [6.0, 0.0]


def test_the_whole_has_the_gradient_of_a_write_through_a_view() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1.0
    v = y[0:1]
    v *= 3.0
    np.sum(y * y).backward()
    assert gradient(x) == [18.0, 4.0]
    plain = ol.zeros([2], dtype="float64")
    part = plain[0:1]
    part += x[0]
    assert plain.requires_grad
    np.sum(plain * 2.0).backward()
    assert gradient(x) == [20.0, 4.0]


def test_what_is_cut_off_from_a_written_tensor_is_refused() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1.0
    cut = y.detach()
    with ol.no_grad():
        part = y[0:1]
    y += 1.0
    for alias in (cut, part):
        with pytest.raises(RuntimeError, match=r"written to through another Tensor \(\+= "):
            alias * 2.0


# Inside transforms ------------------------------------------------------------------------------


def test_a_function_may_write_to_its_argument_and_the_callers_array_stays() -> None:
    def f(x: Any) -> Any:
        x[0] = x[1] * 2.0
        x *= 3.0
        return np.sum(x**2)

    start = np.array([1.0, 2.0])
    np.testing.assert_allclose(ol.grad(f)(start), [0.0, 90.0 * 2.0])
    assert start.tolist() == [1.0, 2.0]
    np.testing.assert_allclose(ol.hessian(f)(start), [[0.0, 0.0], [0.0, 90.0]])


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["item", "+", "*", "-"]), st.integers(0, 3), st.integers(0, 3)),
        max_size=6,
    )
)
def test_any_sequence_of_writes_has_the_gradient_of_finite_differences(steps: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 1.5
        for kind, i, j in steps:
            if kind == "item":
                y[i] = y[j] * y[i]
            elif kind == "+":
                y[i:] += x[j]
            elif kind == "*":
                y[i] *= y[j]
            else:
                y -= 0.1 * x
        return y

    ol.check_grad(f, np.array([0.3, -0.7, 1.1, 0.5]), absolute_tolerance=2e-5)


# Cost -------------------------------------------------------------------------------------------


def test_nothing_is_kept_when_the_last_reference_goes() -> None:
    gc.collect()
    before, known = slow_path.any, len(versions._RECORDS)
    x = leaf(1.0, 2.0)
    y = x * 2.0
    y += 1.0
    assert len(versions._RECORDS) == known + 1
    y.backward()
    del y
    assert len(versions._RECORDS) == known
    assert slow_path.any == before


# Ensembles --------------------------------------------------------------------------------------


def test_writes_inside_vmap_equal_those_of_separate_runs() -> None:
    def filled(x: Any) -> Any:
        out = ol.zeros([3], dtype="float64")
        out[0] = x
        out[1] = x * x
        out[1:] += 1.0
        return out

    def slope(x: Any) -> Any:
        y = x * 1.0
        y[0] = 2.0 * y[1]
        y *= x
        return y.sum()

    xs = np.arange(8.0)
    together = ol.vmap(filled)(xs)
    one_by_one = [filled(ol.to_tensor(x, dtype="float64")).numpy() for x in xs]
    np.testing.assert_array_equal(np.asarray(together), one_by_one)
    pairs = xs.reshape(4, 2) + 1.0
    np.testing.assert_array_equal(
        ol.vmap(ol.grad(slope))(pairs), [ol.grad(slope)(pair) for pair in pairs]
    )
    np.testing.assert_allclose(
        ol.grad(lambda x: np.sum(ol.vmap(slope)(x)))(pairs), ol.vmap(ol.grad(slope))(pairs)
    )


# Aliases of buffers that need no gradient ---------------------------------------------------------


def _write_view_then_base(x: Any, w: Any) -> Any:
    v = x[0:2]
    v[...] = w[0:2]
    x[3] = 5.0
    return x


def _write_view_twice(x: Any, w: Any) -> Any:
    v = x[0:2]
    v += w[0:2]
    v += 1.0
    return x


def _write_base_read_view(x: Any, w: Any) -> Any:
    v = x.reshape(2, 2)
    x += w
    return v


@pytest.mark.parametrize("write", [_write_view_then_base, _write_view_twice, _write_base_read_view])
def test_an_alias_of_a_buffer_never_loses_a_gradient_silently(write: Any) -> None:
    weights, factors = [1.0, 2.0, 3.0, 4.0], np.array([1.0, 10.0, 100.0, 1000.0])
    w, x = leaf(*weights), ol.zeros([4], dtype="float64")
    expected = np.asarray(write(np.zeros(4), np.array(weights)))
    result = write(x, w)
    assert result.tolist() == expected.tolist()
    np.sum(result * factors.reshape(result.shape)).backward()
    written = 4 if write is _write_base_read_view else 2
    assert gradient(w) == [*factors[:written], *([0.0] * (4 - written))]


@pytest.mark.parametrize("tensor", [False, True])
def test_an_index_may_be_written_to_after_it_was_used(tensor: bool) -> None:
    w = leaf(1.0, 2.0, 3.0, 4.0)
    index: Any = np.array([0, 1])
    index = ol.to_tensor(index) if tensor else index
    y = np.sum(w[index] * np.array([1.0, 10.0]))
    z = w * 1.0
    z[index] = 0.0
    index += 2
    (y + np.sum(z)).backward()
    assert gradient(w) == [1.0, 10.0, 1.0, 1.0]
    rows = [0, 1]
    y = np.sum(w[rows])
    rows[0] = 3
    w.grad = None
    y.backward()
    assert gradient(w) == [1.0, 1.0, 0.0, 0.0]


def test_what_broadcasting_stretched_gets_memory_of_its_own() -> None:
    w = leaf(1.0, 2.0)
    kept = np.sum(w * w)
    stretched = np.broadcast_to(w, (3, 2))
    with ol.no_grad():
        stretched += 1.0
    assert stretched.tolist() == [[2.0, 3.0]] * 3
    assert w.tolist() == [1.0, 2.0]
    kept.backward()
    assert gradient(w) == [2.0, 4.0]
