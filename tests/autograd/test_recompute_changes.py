"""Replays that differ from the first run, runs that fail, and that nothing is left behind."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape import saved_tensors
from optlab.autograd.tape.grad_mode import recomputing

nn = ol.nn
RecomputationError = ol.autograd.RecomputationError
X = np.linspace(-1.0, 1.5, 12).reshape(3, 4)
WAYS: dict[str, Callable[..., Any]] = {
    "one operation": lambda f, x: ol.recompute(f, x),
    "its operations": lambda f, x: ol.recompute(f, x, use_reentrant=False),
    "sequential": lambda f, x: ol.recompute_sequential([f], x),
    "revolve": lambda f, x: ol.recompute_sequential([f, lambda y: y * 1.0], x, segments="revolve"),
}
ALL = pytest.mark.parametrize("way", WAYS)


def leaf(data: Any = X) -> ol.Tensor:
    return ol.to_tensor(np.array(data, dtype="float64"), requires_grad=True)


def state() -> tuple[Any, ...]:
    return (
        ol.get_rng_state(), saved_tensors.innermost(), recomputing.depth,
        ol.is_grad_enabled(),
    )  # fmt: skip


def refused(y: Any, match: str, *leaves: Any, error: type[Exception] = RecomputationError) -> None:
    """Check that backward raises twice and changes nothing."""
    before = state()
    for said in (match, None):
        with pytest.raises(error, match=said):
            y.sum().backward(retain_graph=True)
        assert state() == before
        assert [one.grad for one in leaves] == [None] * len(leaves)


@ALL
def test_a_mutated_buffer(way: str) -> None:
    buffer, x = np.ones((3, 4)), leaf()
    w = leaf()
    y = WAYS[way](lambda x: np.exp(np.sin(x) + buffer) * w, x)
    buffer += 1.0
    refused(y, r"operation 2 of 4: 'add' gave other numbers the second time \(shape \(3, 4\)\)", x)


@ALL
def test_random_numbers_of_others(way: str) -> None:
    generator, x = np.random.default_rng(0), leaf()
    y = WAYS[way](lambda x: np.sin(x) * generator.standard_normal(4), x)
    refused(y, "operation 2 of 2: 'multiply' gave other numbers", x)


@ALL
def test_a_branch_that_goes_the_other_way(way: str) -> None:
    runs, x = [0], leaf()

    def f(x: Any) -> Any:
        runs[0] += 1
        return np.sin(x) if runs[0] == 1 else np.cos(x)

    refused(WAYS[way](f, x), "'sin' ran the first time and 'cos' the second", x)


@ALL
def test_more_and_fewer_operations(way: str) -> None:
    x, grows = leaf(), [True]

    def f(x: Any) -> Any:
        return np.sin(np.exp(x)) if grows.pop(0) else np.exp(x)

    for first, match in (
        (True, "the second run ended after 1 operations, the first went on with 'sin'"),
        (False, "the first run ended after 1 operations, the second went on with 'sin'"),
    ):
        grows[:] = [first, *[not first] * 3]
        refused(WAYS[way](f, x), match, x)


@ALL
def test_another_shape_and_another_dtype(way: str) -> None:
    for first, second, match in (
        (slice(0, 2), slice(0, 3), r"shape \(2, 4\) the first time and \(3, 4\) the second"),
        ("float64", "float32", "dtype float64 the first time and float32 the second"),
    ):
        todo, x = [first], leaf()

        def f(x: Any, todo: Any = todo) -> Any:
            return np.sin(x[todo[0]]) if isinstance(todo[0], slice) else (x * 1.0).astype(todo[0])

        y = WAYS[way](f, x)
        todo[0] = second
        if first == "float64":  # a cast to its own dtype is none
            refused(y, "float32|went on with 'cast'", x)
        else:
            refused(y, match, x)


@ALL
def test_a_layer_that_is_switched_to_evaluation(way: str) -> None:
    block, x = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Tanh()), leaf(X)
    block.to(dtype="float64")
    y = WAYS[way](block, x)
    block.eval()
    refused(y, "dropout", x, *block.parameters())


@ALL
def test_a_parameter_that_an_optimizer_wrote_over(way: str) -> None:
    layer, x = nn.Linear(4, 4), leaf(X.astype("float32"))
    layer.to(dtype="float64")
    y = WAYS[way](layer, x)
    sgd = ol.optimizer.SGD(0.1, parameters=layer.parameters())
    (layer(x.detach()) ** 2).sum().backward()
    sgd.step()
    sgd.clear_grad()
    with pytest.raises(RuntimeError, match=r"SGD\.step\(\) has written over it since"):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("way", ["one operation", "its operations"])
def test_an_argument_that_was_written_over(way: str) -> None:
    for f, write in (
        (lambda x: np.exp(x + 1.0), True), (lambda x: np.exp(x.__iadd__(1.0)), False),
    ):  # fmt: skip
        x = leaf()
        h = x * 2.0
        y = WAYS[way](f, h)
        if write:
            h += 1.0
        refused(y, r"\+= .*has written over", x, error=RuntimeError)


@ALL
def test_a_generator_can_be_read_once(way: str) -> None:
    numbers, x = iter([1.0, 2.0, 3.0]), leaf()
    y = WAYS[way](lambda x: sum((x * n for n in numbers), 0.0 * x), x)
    refused(y, "the second run ended after 1 operations", x)


@ALL
def test_other_outputs_the_second_time(way: str) -> None:
    runs, x = [0], leaf()

    def f(x: Any) -> Any:
        runs[0] += 1
        y = np.sin(x)
        return y if runs[0] == 1 else y.detach()

    if way == "its operations":  # the return value is not needed
        WAYS[way](f, x).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.cos(X))
    elif way == "one operation":
        refused(WAYS[way](f, x), "it returned fewer Tensors", x)


@ALL
@pytest.mark.parametrize("when", [1, 2])
def test_an_exception_inside_leaves_no_trace(way: str, when: int) -> None:
    runs, x = [0], leaf()
    drop = nn.Dropout(0.5)

    def f(x: Any) -> Any:
        runs[0] += 1
        y = drop(np.exp(x))
        if runs[0] == when:
            raise KeyError("missing")
        return np.sin(y)

    ol.seed(0)
    before = state()
    if when == 1:
        with pytest.raises(KeyError, match="missing"):
            WAYS[way](f, x)
        assert state()[1:] == before[1:]
    else:
        y = WAYS[way](f, x).sum()
        before = state()
        with pytest.raises(KeyError, match="missing"):
            y.backward(retain_graph=True)
        assert state() == before
        assert x.grad is None
        y.backward()
        assert np.abs(x.grad.numpy()).sum() > 0
    assert saved_tensors.innermost() is None


def test_backward_inside_a_first_run_is_refused_in_both_modes() -> None:
    def f(x: Any) -> Any:
        y = np.exp(x)
        y.sum().backward()
        return y

    for reentrant in (True, False):
        with pytest.raises(RuntimeError, match="inside a function that recompute"):
            ol.recompute(f, leaf(), use_reentrant=reentrant)
    assert saved_tensors.innermost() is None


@pytest.mark.parametrize("reentrant", [True, False])
def test_large_gradients_that_were_complete_before_the_error_are_taken_back(
    reentrant: bool,
) -> None:
    x, w = leaf(np.full((200, 200), 0.01)), leaf(np.ones((200, 200)))
    buffer = np.ones((200, 200))
    y = ol.recompute(lambda x: np.sin(x) * buffer, x, use_reentrant=reentrant) @ w
    buffer += 1.0
    refused(y, "'multiply' gave other numbers", x, w)


# Nothing is left behind -------------------------------------------------------------------------

USES: dict[str, Callable[[Any], Any]] = {
    **{name: partial(way, lambda x: np.sin(np.exp(x) * x)) for name, way in WAYS.items()},
    "segments": lambda x: ol.recompute_sequential([np.sin] * 7, x, segments=3),
    "snapshots": lambda x: ol.recompute_sequential(
        [np.sin] * 7, x, segments="revolve", snapshots=2
    ),
    "nested": lambda x: ol.recompute(lambda x: ol.recompute(np.sin, np.exp(x)), x),
    "several": lambda x: ol.recompute(lambda x: (np.sin(x), np.exp(x)), x)[1],
}  # fmt: skip


def uses(x: Any) -> dict[str, Callable[[Any], Any]]:
    return {
        "forward": lambda f: f(x),
        "backward": lambda f: f(x).sum().backward(),
        "kept graph": lambda f: f(x).sum().backward(retain_graph=True),
        "second order": lambda f: ol.grad(lambda x: (ol.grad(lambda x: f(x).sum())(x) ** 2).sum())(
            x
        ),
    }


@pytest.mark.parametrize("use", list(uses(None)))
@pytest.mark.parametrize("name", USES)
def test_no_use_leaves_a_cycle_or_an_array_behind(name: str, use: str) -> None:
    x = leaf(np.ones((100, 4)))
    run = uses(x)[use]
    run(USES[name])  # a first call fills caches
    made: list[Any] = []

    def watched(x: Any) -> Any:
        y = USES[name](x)
        made.extend([weakref.ref(y.data), weakref.ref(y.node)])
        return y

    gc.collect()
    gc.disable()
    try:
        run(watched)
        x.grad = None
        assert [one() for one in made] == [None] * len(made)
        assert gc.collect() == 0
    finally:
        gc.enable()


@pytest.mark.parametrize("reentrant", [True, False])
def test_three_threads_go_back_through_one_graph_at_once(reentrant: bool) -> None:
    w, failed = leaf(np.full((60, 60), 0.01)), []

    def f(x: Any) -> Any:
        for _ in range(10):
            x = np.tanh(x @ w)
        return x

    def back(y: Any) -> None:
        try:
            y.backward(retain_graph=True)
        except RuntimeError as error:
            failed.append(error)

    for _ in range(10):
        y = ol.recompute(f, ol.ones([60, 60]), use_reentrant=reentrant).sum()
        threads = [threading.Thread(target=back, args=(y,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed


@ALL
def test_a_function_that_seeds(way: str) -> None:
    x = leaf()

    def f(x: Any) -> Any:
        ol.seed(7)
        with ol.random_scope("inside"):
            y = nn.functional.dropout(np.sin(x), 0.5)
            state = ol.seed(8)
        return nn.functional.dropout(y, 0.5) * state.initial_seed()

    ol.seed(0)
    f(x).sum().backward()
    plain, after = x.grad.numpy(), ol.get_rng_state()
    x.grad = None
    ol.seed(0)
    y = WAYS[way](f, x).sum()
    assert ol.get_rng_state() == after
    ol.rand([2])
    state = ol.get_rng_state()
    y.backward()
    np.testing.assert_array_equal(x.grad.numpy(), plain)
    assert ol.get_rng_state() == state


@ALL
def test_a_function_that_seeds_inside_a_scope(way: str) -> None:
    x = leaf()

    def f(x: Any) -> Any:
        ol.seed(7)
        return nn.functional.dropout(np.sin(x), 0.5)

    ol.seed(0)
    with ol.random_scope("around"):
        y = WAYS[way](f, x).sum()
    ol.rand([2])
    state = ol.get_rng_state()
    y.backward()
    assert ol.get_rng_state() == state
