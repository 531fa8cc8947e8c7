"""The graph as data: its nodes, saved bytes, and a backward pass without side effects."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.graph.graph import Graph
from optlab.autograd.graph.reader import graph_of
from optlab.autograd.operation import TABLE, rule
from optlab.autograd.rules.source import rule_text, rules_of
from optlab.autograd.tape import backward
from optlab.autograd.tensor.tensor import apply_several


def leaf(data: Any, dtype: str = "float64") -> ol.Tensor:
    return ol.to_tensor(data, dtype=dtype, requires_grad=True)


def network() -> tuple[Any, ol.Tensor, np.ndarray]:
    random = np.random.default_rng(3)
    net = ol.nn.Sequential(ol.nn.Linear(4, 3), ol.nn.Tanh(), ol.nn.Linear(3, 2))
    net.parameters()
    data = random.normal(size=(5, 4)).astype("float32")
    return net, ol.nn.functional.cross_entropy(net(data), np.array([0, 1, 1, 0, 1])), data


def names(graph: Graph) -> list[str]:
    return [node.name.lstrip("_") for node in graph.nodes if node.kind == "operation"]


def node(graph: Graph, name: str) -> Any:
    return next(one for one in graph.nodes if one.name.lstrip("_") == name)


# The graph.


def test_what_an_operation_reads_stands_before_it() -> None:
    _, loss, _ = network()
    graph = graph_of(loss)
    assert names(graph) == ["linear", "tanh", "linear", "log_softmax", "picked"]
    assert all(source < one.index for one in graph.nodes for source in one.sources)
    assert graph.root == len(graph.nodes) - 1


def test_leaves_carry_the_names_of_their_parameters_and_data_is_drawn_once() -> None:
    net, _, data = network()
    data = ol.to_tensor(data)
    graph = graph_of(np.sum(net(data) + net(data)))
    leaves = sorted(one.name for one in graph.nodes if one.kind == "leaf")
    assert leaves == ["0.bias", "0.weight", "2.bias", "2.weight"]
    assert [one.shape for one in graph.nodes if one.kind == "data"] == [(5, 4)]


def test_static_arguments_and_constants_are_told() -> None:
    x = leaf(np.ones((2, 3)))
    graph = graph_of(np.sum((x * 2.5)[:, 1:], axis=1))
    assert node(graph, "sum").static == {"axis": 1}
    assert node(graph, "getitem").static["index"] == (slice(None), slice(1, None))
    assert node(graph, "multiply").inputs[1].value == 2.5
    assert node(graph, "getitem").view


def test_values_are_those_of_the_run_where_they_are_known() -> None:
    a, b = leaf(2.0), leaf(-3.0)
    loss = np.tanh(a * b + a)
    graph = graph_of(loss, {"a": a, "b": b})
    values = {one.name or one.variable: float(one.value) for one in graph.nodes}
    expected = {"a": 2.0, "b": -3.0, "multiply": -6.0, "add": -4.0, "tanh": np.tanh(-4.0)}
    assert values == expected


def test_a_value_that_nobody_keeps_is_not_invented() -> None:
    x = leaf(2.0)
    graph = graph_of(np.tanh(x + 1.0), {"x": x})
    assert node(graph, "add").value is None


def test_values_are_not_computed_again_from_what_was_overwritten() -> None:
    w = ol.Parameter(2.0, name="w")
    y = np.tanh(np.square(w) * 1.0)
    w.set_value(5.0)
    assert node(graph_of(y, {"w": w}), "square").value is None


def test_several_outputs_have_nodes_of_their_own() -> None:
    def both(x: Any) -> Any:
        return np.sin(x), np.cos(x)

    operation = rule(both, lambda g, y: g[0] * y[1] - g[1] * y[0], inputs="x", several=True)
    try:
        x = leaf([0.5, 1.0])
        s, c = apply_several(operation, (x,))
        graph = graph_of(np.sum(s * c))
    finally:
        del TABLE[both]
    assert names(graph) == ["both", "output", "output", "multiply", "sum"]
    assert node(graph, "both").shapes == ((2,), (2,))
    assert node(graph, "both").bytes == 32
    assert [one.static for one in graph.nodes if one.name == "output"] == [
        {"index": 0},
        {"index": 1},
    ]
    last = list(graph.back())[-1]
    assert sorted(last.arrived.arrived) == [0, 1]
    np.testing.assert_allclose(last.sent[0][2], np.cos(2 * x.numpy()))


def test_what_is_no_tensor_or_has_no_graph_is_refused() -> None:
    with pytest.raises(TypeError, match="got float"):
        graph_of(3.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="requires_grad=True"):
        graph_of(ol.to_tensor([1.0]))


# Bytes.


def test_kept_bytes_are_counted_once_a_piece_of_memory_and_not_for_leaves() -> None:
    x = leaf(np.ones(1000))
    y = np.exp(x)  # saves y
    graph = graph_of(np.sum(y * y + np.sin(y) + np.sin(x)))
    assert graph.kept_bytes == y.nbytes
    kept = [one for part in graph.nodes for one in part.kept or ()]
    assert [one.bytes for one in kept] == [8000] * len(kept)
    assert len(kept) > 3


def test_views_of_the_same_memory_count_once_and_different_parts_add_up() -> None:
    x = leaf(np.ones(100))
    y = np.exp(x)
    halves = np.sin(y[:50]) + np.sin(y[50:])
    assert graph_of(np.sum(halves)).kept_bytes == 800


def test_labels_that_a_rule_reads_are_counted() -> None:
    _, loss, _ = network()
    picked = node(graph_of(loss), "picked")
    assert [(one.what, one.bytes) for one in picked.kept] == [("labels", 40)]


# The backward pass.


def received_gradients(graph: Graph, **options: Any) -> dict[int, Any]:
    """Sum the gradients that each node receives."""
    total: dict[int, Any] = {}
    for stage in graph.back(**options):
        for _, target, part in stage.sent:
            total[target] = total[target] + part if target in total else part
    return total


def test_every_gradient_is_the_one_that_backward_brings() -> None:
    net, loss, _ = network()
    graph = graph_of(loss)
    total = received_gradients(graph)
    loss.backward()
    for parameter in net.parameters():
        here = next(one.index for one in graph.nodes if one.name == parameter.structural_name)
        np.testing.assert_array_equal(total[here], parameter.grad.numpy())


def test_each_stage_holds_the_complete_gradient() -> None:
    x = leaf([1.0, -2.0])
    h = np.sin(x)
    loss = np.sum(h * h + np.exp(h) * h)
    graph = graph_of(loss)
    expected = backward.backpropagate(
        loss.node, np.ones(()), targets=[h.node], retain_graph=True
    )  # fmt: skip
    [stage] = [one for one in graph.back() if graph.nodes[one.node].name == "sin"]
    np.testing.assert_array_equal(stage.arrived, expected[0])
    order = [stage.node for stage in graph.back()]
    assert order == sorted(order, reverse=True)


def test_the_start_may_be_given() -> None:
    x = leaf([1.0, 2.0])
    graph = graph_of(x * 3.0)
    assert received_gradients(graph, grad=[1.0, 10.0])[0].tolist() == [3.0, 30.0]
    with pytest.raises(ValueError, match="shape"):
        received_gradients(graph, grad=[1.0])


def test_walking_leaves_the_tape_as_it_was() -> None:
    x = leaf([1.0, 2.0])
    heard: list[Any] = []
    h = np.sin(x)
    h.register_hook(lambda g: heard.append(g) or g * 10)
    x.register_hook(heard.append)
    loss = np.sum(h)
    with ol.no_grad():
        graph = graph_of(loss)
        for _ in range(2):
            assert received_gradients(graph)[0].tolist() == np.cos([1.0, 2.0]).tolist()
    assert heard == []
    assert [one.hooks for one in graph.nodes] == [1, 1, 0]
    assert x.grad is None
    loss.backward()
    assert len(heard) == 2
    assert x.grad.numpy().tolist() == (10 * np.cos([1.0, 2.0])).tolist()


def test_a_graph_that_backward_used_keeps_its_shape_but_not_its_values() -> None:
    x = leaf([1.0, 2.0])
    loss = np.sum(np.sin(x))
    loss.backward()
    graph = graph_of(loss)
    assert graph.freed
    assert names(graph) == ["sin", "sum"]
    assert graph.nodes[0].collected is not None
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        list(graph.back())


def test_overwritten_values_are_named() -> None:
    w = ol.Parameter([1.0, 2.0], name="w")
    loss = np.sum(w * w)
    w.set_value([3.0, 4.0])
    with pytest.raises(RuntimeError, match=r"set_value\(\) has written over it"):
        list(graph_of(loss).back())


def test_gradients_that_are_on_the_tape_have_a_graph_too() -> None:
    x = leaf([1.0, 2.0])
    np.sum(np.sin(x)).backward(create_graph=True)
    total = received_gradients(graph_of(x.grad))
    np.testing.assert_allclose(total[0], -np.sin([1.0, 2.0]))


def test_a_leaf_alone_has_no_stages() -> None:
    graph = graph_of(leaf([1.0]))
    assert [one.kind for one in graph.nodes] == ["leaf"]
    assert list(graph.back()) == []
    assert graph.operations == 0


def test_a_graph_that_was_looked_at_lets_go_of_everything() -> None:
    x = leaf(np.ones(10))
    loss = np.sum(np.sin(x))
    seen = weakref.ref(loss.node)
    list(graph_of(loss).back())
    gc.disable()
    try:
        del loss
        assert seen() is None
    finally:
        gc.enable()


# The source text of rules.


def test_every_rule_of_the_table_has_its_text() -> None:
    for operation in set(TABLE.values()):
        rules = operation.pullbacks if operation.joint is None else [operation.joint]
        for one in rules:
            if "<doctest" in str(getattr(one, "__code__", "")):
                continue  # of an example, which has no file
            assert one is None or rule_text(one).startswith(("lambda g", "def ")), operation


def test_two_lambdas_on_one_line_are_told_apart() -> None:
    assert rules_of(TABLE[np.subtract]) == ("lambda g: g", "lambda g: -g")


def test_a_function_is_shown_without_its_docstring() -> None:
    text = rule_text(TABLE[np.matmul].pullbacks[0])
    assert text.startswith("def _matmul_by_a(")
    assert '"""' not in text
    assert "swapaxes" not in text
    assert text.splitlines()[1] == "    if b.ndim == 1:"


def test_a_rule_typed_at_a_prompt_has_no_text() -> None:
    assert rule_text(eval("lambda g: g")) == ""
    assert rule_text(len) == ""
