"""Row-sparse gradients: stored, accumulated and applied by rows, dense on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optlab as ol
from optlab.autograd import RowSparse

embedding = ol.nn.functional.embedding


def table(rows: int = 5, width: int = 2) -> ol.Parameter:
    return ol.Parameter(
        np.arange(rows * width, dtype=np.float64).reshape(rows, width), name="table"
    )


def loss(weight: Any, ids: Any, sparse: bool) -> Any:
    return np.sum(embedding(ids, weight, sparse=sparse) ** 2)


IDS = np.array([[1, 3, 1], [0, 3, 3]])


def test_the_gradient_is_the_rows_and_equals_the_dense_one() -> None:
    sparse, dense = table(), table()
    loss(sparse, IDS, True).backward()
    loss(dense, IDS, False).backward()
    assert isinstance(sparse.grad, RowSparse)
    assert sparse.grad.nbytes < 200
    assert sparse.grad.shape == (5, 2)
    np.testing.assert_array_equal(sparse.grad.numpy(), dense.grad.numpy())
    merged = sparse.grad.merged()
    assert merged.rows.tolist() == [0, 1, 3]
    np.testing.assert_array_equal(merged.dense(), dense.grad.numpy())


def test_gradients_add_up_as_rows_and_with_dense_ones() -> None:
    w, d = table(), table()
    for parameter, sparse in ((w, True), (d, False)):
        loss(parameter, IDS, sparse).backward()
        loss(parameter, IDS[:1], sparse).backward()
    assert isinstance(w.grad, RowSparse)
    np.testing.assert_array_equal(w.grad.numpy(), d.grad.numpy())
    for parameter, sparse in ((w, True), (d, False)):
        np.sum(parameter * parameter).backward()
        loss(parameter, IDS, sparse).backward()
    np.testing.assert_array_equal(w.grad.numpy(), d.grad.numpy())


def test_in_one_graph_a_table_may_be_read_by_rows_and_whole() -> None:
    w, d = table(), table()
    for parameter, sparse in ((w, True), (d, False)):
        h = embedding(IDS[0], parameter, sparse=sparse)
        np.sum(h @ parameter.T).backward()
    np.testing.assert_array_equal(w.grad.numpy(), d.grad.numpy())


def test_it_passes_through_other_operations_on_the_table() -> None:
    w, d = table(), table()
    for parameter, sparse in ((w, True), (d, False)):
        scaled = np.tanh(parameter * 0.1).reshape(5, 2)[::-1].T.T
        loss(scaled, IDS, sparse).backward()
    np.testing.assert_allclose(np.asarray(w.grad.numpy()), d.grad.numpy(), rtol=1e-15)


def test_transforms_and_hooks_see_the_whole_gradient() -> None:
    x = np.arange(10.0).reshape(5, 2)
    expected = ol.grad(lambda w: loss(w, IDS, False))(x)
    np.testing.assert_array_equal(ol.grad(lambda w: loss(w, IDS, True))(x), expected)
    ol.check_grad(lambda w: embedding(IDS, w, sparse=True) ** 3, x)
    w = table()
    seen: list[Any] = []
    w.register_hook(lambda g: seen.append(g.numpy()))
    loss(w, IDS, True).backward()
    np.testing.assert_array_equal(seen[0], expected)


STEPS: dict[str, Any] = {
    "SGD": lambda ps: ol.optimizer.SGD(0.1, parameters=ps),
    "SGD with decay": lambda ps: ol.optimizer.SGD(0.1, parameters=ps, weight_decay=0.1),
    "SGD with a clip": lambda ps: ol.optimizer.SGD(
        0.1, parameters=ps, grad_clip=ol.nn.ClipGradByGlobalNorm(1.0)
    ),
    "Momentum": lambda ps: ol.optimizer.Momentum(0.1, parameters=ps),
    "Adam": lambda ps: ol.optimizer.Adam(0.1, parameters=ps),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_with_rows_equals_one_with_the_whole_gradient(name: str) -> None:
    results = []
    for sparse in (True, False):
        w, other = table(), ol.Parameter([1.0, 2.0])
        optimizer = STEPS[name]([w, other])
        for ids in (IDS, IDS[:1], IDS[1:]):
            (loss(w, ids, sparse) + np.sum(other**2)).backward()
            optimizer.step()
            optimizer.clear_grad()
        results.append((w.numpy(), other.numpy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-15)
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_a_recorded_run_equals_an_unrecorded_one() -> None:
    results = []
    for recorded in (True, False):
        w = table()
        optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        if recorded:
            with ol.record(optimizer):
                loss(w, IDS, True).backward()
                optimizer.step()
        else:
            loss(w, IDS, True).backward()
            optimizer.step()
        results.append(w.numpy())
    np.testing.assert_array_equal(*results)


def test_sgd_touches_only_the_rows_and_counts_as_a_writer() -> None:
    w = table(200_000, 4)
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    again = np.sum(w[0] * w[0])
    before = w.numpy()
    loss(w, np.array([7]), True).backward()
    optimizer.step()
    changed = np.flatnonzero((w.numpy() != before).any(axis=1))
    assert changed.tolist() == [7]
    with pytest.raises(RuntimeError, match=r"SGD\.step\(\) has written"):
        again.backward()


def test_padding_and_bad_input() -> None:
    w = table()
    y = embedding(np.array([1, 0]), w, padding_idx=0, sparse=True)
    assert y.tolist() == [[2.0, 3.0], [0.0, 0.0]]
    np.sum(y).backward()
    assert w.grad.numpy()[0].tolist() == [0.0, 0.0]
    with pytest.raises(IndexError, match=r"rows 0 \.\.\. 4; got 1 \.\.\. 5"):
        embedding(np.array([1, 5]), w)
    with pytest.raises(TypeError, match="integers"):
        embedding(np.array([1.0]), w)
    with pytest.raises(IndexError, match="padding_idx"):
        embedding(np.array([1]), w, padding_idx=9)


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 3), max_size=8))
def test_merging_and_adding_change_no_value(a: list[int], b: list[int]) -> None:
    def made(rows: list[int]) -> RowSparse:
        values = np.arange(len(rows) * 3, dtype=float).reshape(-1, 3) + 1
        return RowSparse(np.array(rows, int), values, (4, 3))

    g, h = made(a), made(b)
    np.testing.assert_array_equal(g.merged().dense(), g.dense())
    np.testing.assert_array_equal((g + h).dense(), g.dense() + h.dense())
    np.testing.assert_array_equal(np.asarray(g * 2.0), 2.0 * g.dense())
    np.testing.assert_array_equal(g - h, g.dense() - h.dense())
    np.testing.assert_array_equal(np.sum(g, axis=0), g.dense().sum(axis=0))
