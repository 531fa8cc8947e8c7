"""Moving, joining, indexing, sorting and padding: conventions, refusals, methods, large arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
import optlab.numpy as onp
from optlab.autograd.rules.manipulation.indexing import scatter
from tests.autograd.rows import numbers
from tests.autograd.rows.table import NUMPY


def taped(data: Any) -> ol.Tensor:
    return ol.to_tensor(data, dtype="float64", requires_grad=True)


def gradient(f: Any, x: Any) -> Any:
    """Return the gradient of f for the upstream gradient 1, 2, 3, ..."""
    t = taped(x)
    y = f(t)
    y.backward(np.arange(1.0, y.size + 1).reshape(y.shape))
    assert t.grad is not None
    return t.grad.tolist()


# Conventions --------------------------------------------------------------------------------------


def test_sorted_ties_give_the_gradient_to_the_elements_in_their_order() -> None:
    assert gradient(np.sort, [2.0, 1.0, 2.0, 1.0]) == [3.0, 1.0, 4.0, 2.0]
    assert gradient(lambda x: np.sort(x, axis=0), [[2.0, 0.0], [2.0, 0.0]]) == [[1, 2], [3, 4]]


def test_partitioned_ties_give_every_element_one_gradient() -> None:
    x = np.random.default_rng(0).integers(0, 5, 200).astype(float)
    assert sorted(gradient(lambda t: np.partition(t, 100), x)) == list(range(1, 201))


def test_sorting_not_a_number_keeps_the_gradients_of_the_numbers() -> None:
    assert gradient(np.sort, [np.nan, 2.0, np.nan, 1.0]) == [3.0, 2.0, 4.0, 1.0]


def test_the_first_of_equal_elements_is_the_one_that_unique_picks() -> None:
    assert gradient(np.unique, [3.0, 1.0, 3.0, 1.0]) == [2.0, 1.0, 0.0, 0.0]
    t = taped([3.0, 1.0, 3.0])
    values, first, inverse, counts = np.unique(t, True, True, True)
    assert isinstance(values, ol.Tensor)
    assert [x.tolist() for x in (first, inverse, counts)] == [[1, 0], [1, 0, 1], [1, 2]]
    assert np.unique_counts(t).counts.tolist() == [1, 2]


@pytest.mark.parametrize("padded", ["maximum", "minimum"])
def test_ties_share_the_gradient_of_padding_with_the_largest(padded: Any) -> None:
    assert gradient(lambda x: np.pad(x, (1, 0), padded), [5.0, 5.0]) == [2.5, 3.5]


def test_what_indices_pick_more_than_once_adds_up() -> None:
    assert gradient(lambda x: x[[0, 2, 0, 0]], [1.0, 2.0, 3.0]) == [8.0, 0.0, 2.0]
    assert gradient(lambda x: np.take(x, [1, 1, -1]), [1.0, 2.0, 3.0]) == [0.0, 3.0, 3.0]
    assert gradient(lambda x: np.repeat(x, [2, 0, 1]), [1.0, 2.0, 3.0]) == [3.0, 0.0, 3.0]


def test_numbers_outside_of_the_bins_of_a_histogram_weigh_nothing() -> None:
    values = np.array([-1.0, 0.0, 1.0, 2.0, 2.5])
    found = gradient(lambda w: np.histogram(values, [0.0, 1.0, 2.0], weights=w)[0], np.ones(5))
    assert found == [0.0, 1.0, 2.0, 2.0, 0.0]


# Large arrays -------------------------------------------------------------------------------------

DRAWN = np.random.default_rng(1)
MANY = {
    "vector": ((5000,), DRAWN.integers(-5000, 5000, 9000)),
    "table of a vector": ((500,), DRAWN.integers(0, 500, (90, 70))),
    "rows": ((100, 40), DRAWN.integers(-100, 100, 300)),
    "rows and dots": ((100, 40), (DRAWN.integers(0, 100, 300), Ellipsis)),
    "columns": ((40, 100), (slice(None), DRAWN.integers(0, 100, 300))),
    "points": ((40, 50), (DRAWN.integers(0, 40, 5000), DRAWN.integers(-50, 50, 5000))),
    "apart": ((20, 30, 40), (DRAWN.integers(0, 20, 190), slice(None, None, 2), [3] * 190)),
    "a number and an array": ((4, 30, 40), (1, slice(None), DRAWN.integers(0, 40, 90))),
    "new axis": ((30, 40), (None, DRAWN.integers(0, 30, 90))),
    "a number and dots": ((4, 30, 40), (DRAWN.integers(0, 4, 99), Ellipsis, 2)),
    "mask and array": ((40, 50, 80), (np.arange(40) < 30, DRAWN.integers(0, 50, 30))),
    "list of a mask": ((40, 100), [True, False] * 20),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", MANY)
def test_scattering_many_elements_equals_adding_one_by_one(name: str, dtype: str) -> None:
    shape, index = MANY[name]
    x = DRAWN.standard_normal(np.empty(shape)[index].shape).astype(dtype)
    assert x.size >= 2000
    wanted = np.zeros(shape, dtype)
    np.add.at(wanted, index, x)
    found = scatter(x, index, shape)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)


def test_taking_an_array_apart_is_one_operation() -> None:
    t = taped(np.arange(6.0))
    nodes = {part.node.edges[0] for part in np.split(t, 3)}
    assert len(nodes) == 1
    assert len({part.node.edges[0] for part in t}) == 1


def test_parts_are_views_as_in_numpy_and_a_write_through_one_is_noticed() -> None:
    t = taped([1.0, 2.0])
    y = t * 1.0
    first, second = np.split(y, 2)
    squared = np.sum(second * second)
    second += 7.0
    assert first.tolist() == [1.0]
    assert second.tolist() == [9.0]
    assert y.tolist() == [1.0, 9.0]
    with pytest.raises(RuntimeError, match="has written over it"):
        squared.backward()
    second *= second
    np.sum(y).backward()
    assert t.grad is not None
    assert t.grad.tolist() == [1.0, 18.0]


# Refusals -----------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Any, str]] = {
    "sort by fields": (lambda t: np.sort(t, order="x"), "order"),
    "sort_complex": (np.sort_complex, "sort_complex"),
    "partition by fields": (lambda t: np.partition(t, 1, order="x"), "order"),
    "t.sort": (lambda t: t.sort(), r"np\.sort"),
    "t.partition": (lambda t: t.partition(1), r"np\.partition"),
    "t.resize": (lambda t: t.resize(2), r"np\.resize"),
    "t.view": (lambda t: t.view("int64"), "astype"),
    "pad, empty": (lambda t: np.pad(t, 1, "empty"), "empty"),
    "pad, a function": (lambda t: np.pad(t, 1, lambda *given: None), "function"),
    "broadcast_arrays": (lambda t: np.broadcast_arrays(t, subok=True), "subok"),
    "multiply.at": (lambda t: np.multiply.at(t, [0], 2.0), r"np\.multiply\.at"),
    "histogram": (np.histogram, "histogram"),
    "density": (lambda t: np.histogram(np.ones(3), weights=t, density=True), "density"),
    "take out": (lambda t: np.take(t, [0], out=np.zeros(1)), "out="),
    "take out by position": (lambda t: np.take(t, [0], 0, np.zeros(1)), "out="),
    "concatenate out": (lambda t: np.concatenate([t], 0, np.zeros(3)), "out="),
    "r_ of text": (lambda t: onp.r_["0,2", t, t], "0,2"),
    "array order": (lambda t: onp.array([t, t], order="F"), "order"),
    "array object": (lambda t: onp.full(3, t[0], order="F"), "order"),
    "concatenate into integers": (lambda t: np.concatenate([t, t], dtype="int64"), "int64"),
    "block of tuples": (lambda t: np.block([(t, t)]), "tuple"),
    "vectorize": (lambda t: np.vectorize(lambda x: x * x)(t), "detach"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_covered_is_refused_by_name(name: str) -> None:
    call, named = REFUSED[name]
    with pytest.raises(TypeError, match=named):
        call(taped([1.0, 2.0, 3.0]))


WRONG: dict[str, Any] = {
    "take out of range": lambda x: np.take(x, 6),
    "take mode": lambda x: np.take(x, 1, mode="no"),
    "take halves": lambda x: np.take(x, np.array([0.5])),
    "take axis": lambda x: np.take(x, 1, axis=2),
    "index": lambda x: x[5],
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([0]), 1),
    "take_along_axis mask": lambda x: np.take_along_axis(x, x > 0, 1),
    "concatenate numbers": lambda x: np.concatenate([x[0, 0], x[0, 1]]),
    "concatenate axis": lambda x: np.concatenate([x, x], 2),
    "concatenate unlike": lambda x: np.concatenate([x, x[0]]),
    "concatenate casting": lambda x: np.concatenate([x, x], dtype="float32", casting="no"),
    "stack unlike": lambda x: np.stack([x, x[0]]),
    "split": lambda x: np.split(x, 2, axis=1),
    "array_split": lambda x: np.array_split(x, 0),
    "array_split at halves": lambda x: np.array_split(x, [0.5]),
    "array_split axis": lambda x: np.array_split(x, 2, axis=2),
    "hsplit": lambda x: np.hsplit(x[0, 0], 1),
    "vsplit": lambda x: np.vsplit(x[0], 1),
    "dsplit": lambda x: np.dsplit(x, 1),
    "reshape": lambda x: np.reshape(x, 5),
    "reshape order": lambda x: np.reshape(x, 6, order="X"),
    "reshape without a copy": lambda x: np.reshape(x.T, 6, copy=False),
    "ravel order": lambda x: np.ravel(x, "X"),
    "rot90 axes": lambda x: np.rot90(x, axes=(0, 0)),
    "rot90 one axis": lambda x: np.rot90(x, axes=(0,)),
    "rot90 third axis": lambda x: np.rot90(x, axes=(0, 2)),
    "rollaxis": lambda x: np.rollaxis(x, 2),
    "fliplr": lambda x: np.fliplr(x[0]),
    "repeat": lambda x: np.repeat(x, [1, 2, 3], axis=0),
    "repeat a negative number": lambda x: np.repeat(x, -1),
    "meshgrid": lambda x: np.meshgrid(x, indexing="no"),
    "matrix_transpose": lambda x: np.matrix_transpose(x[0]),
    "pad mode": lambda x: np.pad(x, 1, "no"),
    "pad width": lambda x: np.pad(x, 1.5),
    "pad negative": lambda x: np.pad(x, -1),
    "pad widths": lambda x: np.pad(x, ((1, 1), (1, 1), (1, 1))),
    "pad argument": lambda x: np.pad(x, 1, "edge", constant_values=1),
    "pad stat_length": lambda x: np.pad(x, 1, "maximum", stat_length=0),
    "choose": lambda x: np.choose([0, 2, 0], x),
    "select": lambda x: np.select([x > 0], [x, x]),
    "select of nothing": lambda x: np.select([], []),
    "compress": lambda x: np.compress([[True]], x),
    "diag": lambda x: np.diag(np.reshape(x, (1, 2, 3))),
    "diagonal": lambda x: np.diagonal(x, 0, 1, 1),
    "delete": lambda x: np.delete(x, 9),
    "insert": lambda x: np.insert(x, 9, 1.0),
    "block": lambda x: np.block([[x, x], x]),
    "block of nothing": lambda x: np.block([x, []]),
    "trim_zeros": lambda x: np.trim_zeros(x[0], "x"),
    "piecewise": lambda x: np.piecewise(x, [x > 0], [1.0, 2.0, 3.0]),
    "geomspace from 0": lambda x: np.geomspace(x[0, 0] * 0, x[0, 1]),
    "bincount": lambda x: np.bincount([0, 1], weights=x[0]),
    "unstack": lambda x: np.unstack(x[0, 0]),
}
if NUMPY < (2, 1):
    del WRONG["unstack"], WRONG["reshape without a copy"]
if NUMPY < (2, 2):
    del WRONG["trim_zeros"]  # any trim is taken


@pytest.mark.parametrize("name", WRONG)
def test_what_is_an_error_for_arrays_is_one_for_tensors(name: str) -> None:
    x = np.arange(1.0, 7.0).reshape(2, 3)
    with pytest.raises((ValueError, IndexError, TypeError)):
        WRONG[name](x)
    with pytest.raises((ValueError, IndexError, TypeError)):
        WRONG[name](taped(x))


# Other calling conventions ------------------------------------------------------------------------

WAYS: dict[str, Any] = {
    "a": lambda x: np.repeat(a=x, repeats=2, axis=0),
    "m": lambda x: np.flip(m=x) * np.rot90(m=np.rot90(m=x, k=1, axes=(0, 1)), k=-1),
    "A": lambda x: np.tile(A=x, reps=2),
    "ary": lambda x: np.split(ary=x, indices_or_sections=3, axis=1)[1],
    "array": lambda x: np.broadcast_to(array=np.pad(array=x, pad_width=1), shape=(2, 4, 5)),
    "arr": lambda x: np.insert(arr=np.delete(arr=x, obj=0, axis=1), obj=1, values=2.0, axis=0),
    "arr and values": lambda x: np.append(arr=x, values=x, axis=0),
    "v": lambda x: np.diag(v=np.diagflat(v=x, k=1), k=1),
    "take": lambda x: np.take(a=x, indices=[1], axis=1, mode="clip", out=None),
    "take_along_axis": lambda x: np.take_along_axis(arr=x, indices=np.array([[1]]), axis=1),
    "compress": lambda x: np.compress(condition=[True], a=x, axis=0),
    "extract": lambda x: np.extract(condition=x > 0, arr=x),
    "select": lambda x: np.select(condlist=[x > 0], choicelist=[x], default=x * x),
    "choose": lambda x: np.choose(a=[0, 1, 0], choices=[x, 2 * x], mode="wrap"),
    "shape": lambda x: np.reshape(x, shape=(3, 2), order="F"),
    "partition": lambda x: np.partition(a=x, kth=1, axis=0, kind="introselect"),
    "rollaxis": lambda x: np.rollaxis(a=x, axis=1, start=0),
    "new_shape": lambda x: np.resize(a=x, new_shape=(4,)),
    "linspace": lambda x: np.linspace(start=x, stop=2.0, num=3, axis=-1),
    "casting": lambda x: np.stack(arrays=[x, x], axis=1, casting="safe"),
    "Tensors of whole numbers": lambda x: np.take(x, ol.to_tensor([1, 0]), axis=1),
    "a Tensor of repeats": lambda x: np.repeat(x, ol.to_tensor([1, 0, 2]), axis=1),
    "a Tensor of widths": lambda x: np.pad(x, ol.to_tensor([1, 2])),
    "a Tensor of places": lambda x: np.split(x, ol.to_tensor([1, 2]), axis=1)[1],
    "t.ravel": lambda x: x.ravel("F") * x.flatten("A"),
    "t.flat": lambda x: x.flat[4] * sum(x.flat),
    "t.mT": lambda x: x.mT @ x,
    "t.diagonal": lambda x: x.diagonal(1) * x.trace(),
    "t.choose": lambda x: np.array([0, 1, 1]).astype(int).choose([2.0, 3.0]) * x,
    "t.copy": lambda x: x.copy() * x.copy("F"),
    "t.repeat": lambda x: x.repeat([1, 2, 0], axis=1),
    "t.compress": lambda x: x.compress([True, False, True], 1),
    "t.take": lambda x: x.take(4) * x.take([7, -9], mode="wrap"),
    "lists": lambda x: np.append([1.0, 2.0], x),
    "a list of weights": lambda x: np.bincount([0, 1, 0], x[0], 4),
}
if NUMPY < (2, 1):
    del WAYS["shape"]


@pytest.mark.parametrize("name", WAYS)
def test_other_ways_to_call(name: str) -> None:
    f, x = WAYS[name], numbers((2, 3), seed=4)
    np.testing.assert_array_equal(f(taped(x)).numpy(), f(x))
    ol.check_grad(f, x)


def test_what_gives_positions_gives_plain_arrays() -> None:
    x = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    t = taped(x)
    calls: list[Any] = [
        np.argsort, np.argmax, lambda x: np.argpartition(x, 1), np.nonzero, np.argwhere,
        lambda x: x.argsort(axis=0, stable=True), lambda x: x.argpartition(1, axis=1),
        lambda x: x.nonzero(), lambda x: x[0].searchsorted([2.5], side="right"),
        lambda x: np.searchsorted([1.0, 2.0], x), lambda x: np.digitize(x, [1.0, 3.0]),
        lambda x: np.lexsort((x[0], x[1])), lambda x: np.isin(x, [3.0]), np.tril_indices_from,
        lambda x: x.all(axis=0), lambda x: x.any(axis=1, keepdims=True), lambda x: x.tolist(),
        np.flatnonzero,
    ]  # fmt: skip
    for call in calls:
        found, wanted = call(t), call(x)
        parts = found if isinstance(found, tuple) else (found,)
        assert not any(isinstance(part, ol.Tensor) for part in parts)
        np.testing.assert_array_equal(found, wanted)


def test_an_array_made_like_a_tensor_is_a_tensor_that_can_be_written_into() -> None:
    x = taped([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    for made, value in [
        (np.zeros_like(x), 0.0), (np.ones_like(x), 1.0), (np.full_like(x, 3.0), 3.0),
    ]:  # fmt: skip
        assert isinstance(made, ol.Tensor)
        assert not made.requires_grad
        assert made.dtype == x.dtype
        assert made.tolist() == np.full((2, 3), value).tolist()
    assert isinstance(np.empty_like(x, dtype="float32", shape=(4,)), ol.Tensor)
    assert np.empty_like(x, dtype="float32", shape=(4,)).dtype == np.float32
    assert isinstance(np.zeros_like(x.numpy()), np.ndarray)
    y = np.zeros_like(x)
    y[0] = x[1] * x[1]
    assert y.requires_grad
    np.sum(y).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0.0, 0.0, 0.0], [0.0, 10.0, 8.0]]


def test_tensors_of_whole_numbers_are_moved_and_picked_too() -> None:
    t = ol.to_tensor([[3, 1], [2, 0]])
    for f in (
        np.sort, np.ravel, lambda t: np.pad(t, 1, "mean"), lambda t: np.tile(t, 2), np.unique,
        lambda t: np.pad(t, 1, "linear_ramp"), lambda t: np.take(t, [0]), np.diag, np.tril,
        lambda t: np.choose(t, [9, 8, 7, 6]), lambda t: np.insert(t, 0, 5), np.vstack,
        lambda t: np.piecewise(t, [t > 1], [7, 8]), lambda t: np.bincount(t.ravel()),
    ):  # fmt: skip
        found, wanted = f(t), f(t.numpy())
        np.testing.assert_array_equal(getattr(found, "data", found), wanted)
        assert found.dtype == wanted.dtype


def test_several_arrays_come_in_the_sequence_that_numpy_gives() -> None:
    t = taped(np.ones((2, 4)))
    assert type(np.split(t, 2)) is type(np.hsplit(t, 2)) is list
    assert type(np.atleast_1d(t, 1.0)) is type(np.broadcast_arrays(t, 1.0)) is tuple
    assert type(np.meshgrid(t[0], t[1])) is tuple
    if NUMPY >= (2, 1):
        assert type(np.unstack(t)) is tuple


def test_a_copy_has_memory_of_its_own() -> None:
    t = taped(np.ones((2, 3)))
    for copied in (t.copy(), t.flatten(), onp.array(t), t.reshape(6, copy=True)):
        assert not np.shares_memory(copied.data, t.data)
    assert np.shares_memory(t.reshape(6, copy=False).data, t.data)
    with pytest.raises(ValueError, match="copy=False"):
        t.T.reshape(6, copy=False)


# Independent oracles ------------------------------------------------------------------------------


@pytest.mark.peers
@pytest.mark.parametrize(
    "name", ["sort", "sort ties", "take", "points", "reflect", "symmetric", "wrap", "linear_ramp"]
)
def test_gradients_equal_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    rows, columns = DRAWN.integers(0, 4, 50), DRAWN.integers(0, 5, 50)
    weights = np.linspace(-1.0, 2.0, 50)
    pads = {"reflect", "symmetric", "wrap", "linear_ramp"}

    def f(x: Any, np: Any) -> Any:
        if name in pads:
            odd = {"reflect_type": "odd"} if name in ("reflect", "symmetric") else {}
            y = np.pad(x, ((2, 3), (3, 1)), name, **odd)
        elif name.startswith("sort"):
            y = np.sort(x, axis=0)
        elif name == "take":
            y = np.take(x, rows, axis=0)
        else:
            y = x[rows, columns] * weights
        return np.sum(np.sin(y) * y)

    x = numbers((4, 5), seed=7)
    if name == "sort ties":
        x[1] = x[0]
    wanted = jax.grad(lambda x: f(x, jax.numpy))(x)
    np.testing.assert_allclose(ol.grad(lambda x: f(x, np))(x), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: np.diff(t, axis=2),
        lambda t: np.diff(t, axis=-3, prepend=0.0),
        lambda t: np.gradient(t, axis=2),
        lambda t: np.trapezoid(t, axis=2),
        lambda t: np.linalg.tensorsolve(t, np.ones(2), axes=(2,)),
        lambda t: np.rollaxis(t, 0, 3),
    ],
    ids="diff prepended gradient trapezoid tensorsolve rollaxis".split(),
)
def test_an_axis_that_is_not_there_is_refused(f: Any) -> None:
    with pytest.raises(np.exceptions.AxisError, match="out of bounds for array of dimension 2"):
        f(ol.to_tensor(np.eye(2), requires_grad=True))
