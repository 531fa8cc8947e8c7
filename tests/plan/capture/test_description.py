"""A plan shows itself: as text, as a table, as a figure; and its bytes are those measured."""

from __future__ import annotations

import gc
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH
from tests.plan.capture.twins import F, given, nn, program


def plan_of(f: Any, *args: Any) -> Any:
    captured = ol.capture(f)
    captured(*args)
    return captured.plan


def step_plan() -> Any:
    p = program("mlp", EACH["Adam"])
    return plan_of(p.step, *p.batches[0])


def test_a_plan_prints_its_operations_shapes_and_bytes() -> None:
    text = str(plan_of(lambda x: np.tanh(x @ x.T).sum(axis=0), given(4, 3)))
    assert re.search(r"matmul|@", text)
    for part in ("tanh", "sum", "(4, 4)", "(4,)", "float32"):
        assert part in text
    assert re.search(r"peak.*\d+ (bytes|B|KiB)", text)
    assert "\x1b" not in text


def test_the_plan_of_a_step_prints_the_whole_step() -> None:
    text = str(step_plan())
    for part in ("(8, 12)", "(6, 12)", "sqrt", "peak"):
        assert part in text
    assert max(len(line) for line in text.splitlines()) <= 200


def test_the_text_does_not_change() -> None:
    def text() -> str:
        ol.seed(0)
        return str(step_plan())

    assert text() == text()


def test_repr_is_short() -> None:
    plan = step_plan()
    assert "\n" not in repr(plan)
    assert re.search(r"\d+ operations", repr(plan))


def test_the_captured_function_says_what_it_is() -> None:
    def twice(x: Any) -> Any:
        return 2 * x

    captured = ol.capture(twice)
    assert "twice" in repr(captured)
    captured(given(3))
    assert "1 plan" in repr(captured)


def test_a_table_has_a_row_for_each_operation() -> None:
    pytest.importorskip("pandas")
    x = given(4, 3)
    table = plan_of(lambda x: np.tanh(x @ x.T).sum(axis=0), x).table()
    assert {"operation", "shape", "dtype", "bytes", "buffer", "group"} <= set(table.columns)
    assert list(table["shape"])[-1] == (4,)
    assert table["bytes"].max() == 4 * 4 * 4
    assert set(table["dtype"].astype(str)) == {"float32"}
    row = table[table["operation"] == "tanh"].iloc[0]
    assert (row["shape"], row["bytes"]) == ((4, 4), 64)


def test_operations_of_one_group_are_fused_and_neighbors() -> None:
    pytest.importorskip("pandas")
    table = plan_of(lambda x: (np.sqrt(x * x + 1) * 2 - x).sum(), given(64, 64)).table()
    elementwise = table[table["shape"] == (64, 64)]
    groups = elementwise["group"].dropna()
    assert len(groups) >= 2
    assert groups.nunique() == 1
    positions = list(groups.index)
    assert positions == list(range(positions[0], positions[-1] + 1))


def test_results_that_are_not_alive_together_share_a_buffer() -> None:
    pytest.importorskip("pandas")

    def chain(x: Any) -> Any:
        for _ in range(20):
            x = np.tanh(x @ x)
        return x

    table = plan_of(chain, given(16, 16)).table()
    large = table[(table["shape"] == (16, 16)) & (table["operation"] != "input x")]
    assert len(large) == 40
    assert large["buffer"].dropna().nunique() <= 3


def test_inputs_and_parameters_have_their_names() -> None:
    network = ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.Tanh(), ol.nn.Linear(4, 2))
    optimizer = ol.optimizer.SGD(0.1, parameters=network.parameters())

    def step(x: Any, pair: Any, *, scale: Any) -> Any:
        loss = (network(x) * pair["weights"][0] * scale).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    captured = ol.capture(step)
    captured(ol.ones([5, 3]), {"weights": [ol.ones([2])]}, scale=0.5)
    assert repr(captured).endswith(", 1 plan>")
    said = str(captured.plan)
    assert "= input x " in said
    assert "= input pair['weights'][0] " in said
    assert "= input scale " in said
    for name in ("0.weight", "0.bias", "2.weight", "2.bias"):
        assert f"read({name})" in said
        assert f"collect({name}, v" in said
    rows = [row["operation"] for row in captured.plan.rows()]
    assert rows[:3] == ["input x", "input pair['weights'][0]", "input scale"]
    assert {"read 0.weight", "collect 2.bias"} <= set(rows)


def test_a_captured_layer_is_one_line() -> None:
    assert repr(ol.capture(ol.nn.Linear(2, 3))) == "<captured Linear(2, 3), 0 plans>"
    network = ol.capture(ol.nn.Sequential(ol.nn.Linear(2, 3), ol.nn.ReLU()))
    network(ol.ones([1, 2]))
    assert repr(network) == "<captured Sequential(...), 1 plan>"


def test_a_figure_is_drawn() -> None:
    go = pytest.importorskip("plotly.graph_objects")
    figure = step_plan().figure()
    assert isinstance(figure, go.Figure)
    texts = figure.to_json()
    assert "bytes" in texts or "KiB" in texts
    assert len(figure.data) > 0


# The peak.

ROWS, WIDTH = 2048, 128
ARRAY = ROWS * WIDTH * 4  # a megabyte


def by_hand(x: Any, w: Any) -> Any:
    return np.tanh(x @ w).sum()


def long_chain(x: Any, w: Any) -> Any:
    for _ in range(12):
        x = np.tanh(x) @ w
    return x.sum()


def fan(x: Any, w: Any) -> Any:
    """Many values that are alive at once."""
    parts = [np.tanh(x + i) @ w for i in range(6)]
    return sum(parts).sum()


def large_results(x: Any, w: Any) -> Any:
    y = np.exp(x) @ w
    return y, y @ w


def writes(x: Any, w: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[1]
    y += x @ w
    return y.sum()


FUNCTIONS: dict[str, Callable[[], tuple[Any, tuple[Any, ...]]]] = {
    "two operations": lambda: (by_hand, inputs()),
    "a chain": lambda: (long_chain, inputs()),
    "a fan": lambda: (fan, inputs()),
    "large results": lambda: (large_results, inputs()),
    "writes": lambda: (writes, inputs()),
    "a gradient": lambda: (ol.value_and_grad(long_chain, (0, 1)), inputs()),
    "a training step of many rows": lambda: training("Adam", ROWS, WIDTH),
    "a training step of many parameters": lambda: training("Adam", 4, 512),
    "a step of momentum": lambda: training("Momentum", 4, 512),
    "a step of a rule by matrices": lambda: training("Lamb", 4, 256),
}


def inputs() -> tuple[Any, Any]:
    return given(ROWS, WIDTH), 0.1 * given(WIDTH, WIDTH)


def training(name: str, rows: int, width: int) -> tuple[Any, tuple[Any, ...]]:
    model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
    optimizer = EACH[name](parameters=model.parameters())
    x, y = ol.to_tensor(given(rows, width)), ol.to_tensor(given(rows, width, seed=1))

    def step(x: Any, y: Any) -> Any:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        return loss

    step(x, y)  # slots are there before anything is measured
    return step, (x, y)


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_predicted_peak_is_the_measured_one(name: str) -> None:
    """The highest point of `tracemalloc` over a replay, above what stood before the capture.

    Arguments, parameters and slots are made before; the buffers of the plan and what a replay
    allocates (results, temporaries inside NumPy) count. Arrays have a megabyte, and the Python
    objects of a plan must stay below a quarter of that.
    """
    f, args = FUNCTIONS[name]()
    ol.capture(f)(*args)  # modules are loaded before anything is measured
    captured = ol.capture(f)
    gc.collect()
    tracemalloc.start()
    try:
        result = captured(*args)
        del result
        gc.collect()
        tracemalloc.reset_peak()
        result = captured(*args)
        measured = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del result
    predicted = captured.plan.peak_bytes
    assert abs(measured - predicted) < ARRAY / 4, (measured / ARRAY, predicted / ARRAY)


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_first_call_lets_go_of_its_copies_at_once(name: str) -> None:
    """What it recorded and put back is freed by counts of references, not by a later collection."""
    f, args = FUNCTIONS[name]()
    ol.capture(f)(*args)  # modules are loaded before anything is measured
    captured = ol.capture(f)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        result = captured(*args)
        del result
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    held = sum(b.nbytes for b in captured.plan.buffers)
    assert left - held < ARRAY / 4, (left / ARRAY, held / ARRAY)


def test_liveness_saves_memory() -> None:
    captured = ol.capture(long_chain)
    captured(*inputs())
    assert captured.plan.peak_bytes <= 4 * ARRAY  # of 24 results


@pytest.mark.usefixtures("traced_memory")
def test_a_captured_step_needs_no_more_than_an_eager_one() -> None:
    def peak(how: Any) -> int:
        f, args = training("Adam", ROWS, WIDTH)
        call = how(f)
        tracemalloc.start()
        try:
            for _ in range(3):
                call(*args)
            gc.collect()
            tracemalloc.reset_peak()
            call(*args)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(ol.capture)  # what is made once in a process
    peak(lambda f: f)
    assert peak(ol.capture) <= peak(lambda f: f) + ARRAY / 4


def test_the_peak_is_in_the_text() -> None:
    plan = plan_of(by_hand, *inputs())
    from optlab.backend.memory.sizes import in_words

    assert in_words(plan.peak_bytes) in str(plan)
