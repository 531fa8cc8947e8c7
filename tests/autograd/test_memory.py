"""Memory of the tape: what it saves, and that reference counts alone free it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import optlab as ol


def leaf(data: Any) -> ol.Tensor:
    return ol.to_tensor(np.array(data, dtype="float64"), requires_grad=True)


def saved_bytes(t: ol.Tensor) -> int:
    """Count the bytes of arrays that the node of `t` saves."""
    return sum(x.nbytes for x in t.node.saved if isinstance(x, np.ndarray))


X = np.linspace(0.1, 0.9, 12).reshape(3, 4)
NOTHING = {
    "add": lambda x: x + x, "add a number": lambda x: 2.0 + x, "subtract": lambda x: 1.0 - x,
    "negative": lambda x: -x, "sum": np.sum, "sum over an axis": lambda x: np.sum(x, axis=0),
    "mean": np.mean, "reshape": lambda x: x.reshape(4, 3), "transpose": lambda x: x.T,
    "read": lambda x: x[1], "concatenate": lambda x: np.concatenate([x, x]),
    "cumsum": lambda x: np.cumsum(x, axis=1), "cast": lambda x: x.astype("float32"),
    "broadcast": lambda x: np.broadcast_to(x, (5, 3, 4)), "floor": np.floor,
    "multiply by a number": lambda x: x * 3.0, "divide by a number": lambda x: x / 3.0,
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_these_keep_no_array(name: str) -> None:
    assert saved_bytes(NOTHING[name](leaf(X))) == 0


@pytest.mark.parametrize("f", [np.exp, np.sqrt, np.tanh, np.expm1, np.tan])
def test_these_keep_their_value_and_nothing_else(f: Any) -> None:
    y = f(leaf(X))
    assert len(y.node.saved) == 1
    assert y.node.saved[0] is y.data


@pytest.mark.parametrize("f", [np.log, np.sin, np.square, np.absolute, np.arctan])
def test_these_keep_their_argument_and_nothing_else(f: Any) -> None:
    x = leaf(X)
    (kept,) = f(x).node.saved
    assert kept is x.data


def test_multiply_by_a_constant_keeps_the_constant_and_not_the_tensor() -> None:
    x, constant = leaf(X), np.ones((3, 4))
    for y in (x * constant, constant * x):
        assert len(y.node.saved) == 1
        assert y.node.saved[0].tolist() == constant.tolist()
    assert len((x * x).node.saved) == 2


def test_matmul_with_a_constant_keeps_what_one_side_reads() -> None:
    x, constant = leaf(X), np.ones((4, 2))
    assert saved_bytes(x @ constant) == constant.nbytes
    w = leaf(np.ones((4, 2)))
    assert saved_bytes(X @ w) == X.nbytes


def test_nothing_is_kept_where_nothing_needs_a_gradient() -> None:
    assert np.exp(ol.to_tensor(X)).node is None
    with ol.no_grad():
        assert np.exp(leaf(X)).node is None
    assert leaf(X).detach().node is None


def test_backward_frees_what_was_kept() -> None:
    x = leaf(X)
    y = np.exp(x)
    kept = weakref.ref(y.node.saved[0])
    z = np.sum(y * 2.0)
    z.backward()
    y_data = y.data
    del y
    assert kept() is y_data
    del y_data
    assert kept() is None  # although z and its graph are still here


def _layers(x: ol.Tensor) -> ol.Tensor:
    y = np.tanh(x @ np.ones((4, 4)))
    z = np.concatenate([y, y[:1] * 2.0])
    return np.sum(np.exp(z) / np.sum(np.exp(z), axis=1, keepdims=True) * z)


@pytest.mark.usefixtures("no_collector")
def test_a_graph_goes_with_its_last_reference() -> None:
    x = leaf(X)
    y = _layers(x)
    nodes = [weakref.ref(node) for node in _all_nodes(y.node)]
    assert len(nodes) > 10
    del y
    assert [ref() for ref in nodes if ref() is not None] == []


def _all_nodes(node: Any) -> set[Any]:
    found, stack = {node}, [node]
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge.edges and edge not in found:
                found.add(edge)
                stack.append(edge)
    return found


@pytest.mark.usefixtures("no_collector")
def test_a_tensor_goes_with_its_last_reference_although_its_node_is_used() -> None:
    x = leaf(X)
    y = x + 1.0
    z = y * 2.0
    reference, data = weakref.ref(y), weakref.ref(y.data)
    del y
    assert reference() is None
    assert data() is None
    z.backward()
    assert x.grad is not None


def _second_order(x: ol.Tensor) -> None:
    _layers(x).backward(create_graph=True)
    slope, x.grad = x.grad, None
    assert slope is not None
    np.sum(slope * slope).backward()
    x.grad = None


USES = {
    "forward": lambda x: _layers(x),
    "backward": lambda x: _layers(x).backward(),
    "backward, graph kept": lambda x: _layers(x).backward(retain_graph=True),
    "second order": _second_order,
    "grad": lambda x: ol.grad(_layers)(x),
    "vjp": lambda x: ol.vjp(_layers, x)[1](1.0),
    "vjp never pulled": lambda x: ol.vjp(_layers, x),
    "jvp": lambda x: ol.jvp(_layers, (x,), (X,)),
    "hvp": lambda x: ol.hvp(_layers, x, X),
    "hessian": lambda x: ol.hessian(_layers)(x),
    "grad of arrays": lambda x: ol.grad(_layers)(X),
    "hvp of arrays": lambda x: ol.hvp(_layers, X, X),
    "hessian of arrays": lambda x: ol.hessian(_layers)(X),
    "nested": lambda x: ol.grad(lambda s: np.sum(ol.grad(lambda x: s * _layers(x))(X)))(2.0),
    "hook": lambda x: (x * 1.0).register_hook(lambda g: g * 2.0),
}


@pytest.mark.parametrize("name", USES)
def test_no_use_leaves_a_cycle_behind(name: str) -> None:
    USES[name](leaf(X))  # a first call fills caches
    gc.collect()
    gc.disable()
    try:
        USES[name](leaf(X))
        unreachable = gc.collect()
    finally:
        gc.enable()
    assert unreachable == 0


@pytest.mark.usefixtures("no_collector")
def test_a_training_loop_keeps_no_graph_of_earlier_steps() -> None:
    x = leaf(X)
    graphs = []
    for _ in range(5):
        loss = _layers(x)
        graphs.append(weakref.ref(loss.node))
        loss.backward()
    assert [graph() is None for graph in graphs] == [True] * 4 + [False]
