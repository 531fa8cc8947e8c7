"""rematerialize: any program gives the bits of plain running, within its budget."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import optlab as ol
from tests.autograd.recomputed import Block

MemoryBudgetError = ol.autograd.MemoryBudgetError
pytestmark = pytest.mark.filterwarnings("ignore:a budget of .* cannot be kept to:UserWarning")

# Programs ---------------------------------------------------------------------------------------

SIZE = 24  # 24 x 24 float32 are 2304 bytes: above the size that is always kept

UNARY: dict[str, Any] = {
    "sin": np.sin, "tanh": np.tanh, "square": lambda a: a * a * 0.1, "transpose": lambda a: a.T,
    "reverse": lambda a: a[::-1], "rows": lambda a: a[:, 3:9].sum(axis=1, keepdims=True) + a,
    "softmax": lambda a: np.exp(a - a.max()) / np.exp(a - a.max()).sum(),
    "scale": lambda a: 0.3 * a,
    "dropout": lambda a: ol.nn.functional.dropout(a, 0.25), "sqrt": lambda a: np.sqrt(a * a + 1.0),
    "split": lambda a: np.concatenate(np.split(a, 3, axis=0)[::-1], axis=0),
    "mean": lambda a: a - a.mean(axis=0), "roll": lambda a: np.roll(a, 5, axis=1),
    "reshape": lambda a: a.reshape(-1, 8).sum(axis=1).reshape(-1, SIZE).T[:, :1] * a,
    "cumsum": lambda a: np.cumsum(a, axis=0) * 0.1,
}  # fmt: skip
BINARY: dict[str, Any] = {
    "add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "matmul": lambda a, b: a @ b * 0.1,
    "subtract": lambda a, b: a - b, "maximum": np.maximum,
    "where": lambda a, b: np.where(a.detach() > 0, a, b),
}  # fmt: skip
WRITES = ["+=", "*=", "rows", "row"]

steps = st.lists(
    st.tuples(st.sampled_from([*UNARY, *BINARY, *WRITES]), st.integers(0, 50), st.integers(0, 50)),
    min_size=5,
    max_size=30,
)


def write_in_place(kind: str, a: Any, b: Any) -> Any:
    """Write in place to a new value."""
    y = a + 0.5
    if kind == "+=":
        y += b
    elif kind == "*=":
        y = y * 1.0
        y += np.sin(b) * 0.5
        y += b
    elif kind == "rows":
        y[2:5] = np.tanh(b[2:5])
    else:
        y[1] = b[0] * 0.5
        y[0] = np.exp(y[1] * 0.1)
    return np.tanh(y)


def program(plan: Any, x: Any, w: Any) -> Any:
    values = [x * 1.0, w * 1.0]
    for name, i, j in plan:
        a, b = values[i % len(values)], values[j % len(values)]
        if name in UNARY:
            values.append(UNARY[name](a))
        elif name in BINARY:
            values.append(BINARY[name](a, b))
        else:
            values.append(write_in_place(name, a, b))
    return sum(np.sum(np.sin(v)) for v in values[-3:])


def gradients(plan: Any, block: Any = None, inside: bool = False) -> list[bytes]:
    rng = np.random.default_rng(7)
    x, w = (
        ol.to_tensor(rng.standard_normal((SIZE, SIZE)).astype("float32"), requires_grad=True)
        for _ in range(2)
    )
    ol.seed(1)
    if block is None:
        loss = program(plan, x, w)
        loss.backward()
    else:
        with block:
            loss = program(plan, x, w)
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
    found = [np.zeros(0) if t.grad is None else t.grad.numpy() for t in (x, w)]
    return [loss.numpy().tobytes(), *(g.tobytes() for g in found)]


@pytest.mark.filterwarnings("ignore:rematerialize.keep=:UserWarning")  # not in every program
@settings(max_examples=40)
@given(steps, st.floats(0.0, 1.0), st.booleans())
def test_random_programs_have_the_gradients_of_plain_running(
    plan: Any, share: float, inside: bool
) -> None:
    plain = gradients(plan)
    assert gradients(plan, ol.rematerialize(), inside) == plain
    assert gradients(plan, ol.rematerialize(keep=["sin", "add"]), inside) == plain
    try:
        gradients(plan, ol.rematerialize(budget=1), inside=True)
        smallest = 2000
    except MemoryBudgetError as error:
        smallest = error.smallest
    most = smallest + (len(plan) * 4 * SIZE * SIZE * 4)
    budget = int(smallest + share * (most - smallest))
    assert gradients(plan, ol.rematerialize(budget=budget), inside) == plain


@settings(max_examples=15)
@given(steps, st.integers(1, 4))
def test_random_programs_in_recompute_and_in_chains(plan: Any, segments: int) -> None:
    def found(call: Any) -> list[Any]:
        x, w = (
            ol.to_tensor(rng.standard_normal((SIZE, SIZE)).astype("float32"), requires_grad=True)
            for rng in (np.random.default_rng(3), np.random.default_rng(4))
        )
        ol.seed(1)
        with np.errstate(all="ignore"):  # a program may overflow: bits are compared
            call(x, w).backward()
        return [np.zeros(0) if t.grad is None else t.grad.numpy() for t in (x, w)]

    def layer(x: Any, w: Any) -> Any:
        return UNARY["tanh"](x) + program(plan, x, w) * 0.01, w

    def plainly(x: Any, w: Any) -> Any:
        for _ in range(4):
            x, w = layer(x, w)
        return x.sum()

    plain = found(plainly)
    for reentrant in (True, False):
        again = found(lambda x, w, r=reentrant: ol.recompute(plainly, x, w, use_reentrant=r))
        assert [g.tobytes() for g in again] == [g.tobytes() for g in plain]
    for how in ({"segments": segments}, {"segments": "revolve", "snapshots": segments}):
        again = found(
            lambda x, w, how=how: ol.recompute_sequential([layer] * 4, x, w, **how)[0].sum()
        )
        assert [g.tobytes() for g in again] == [g.tobytes() for g in plain]  # all layers share w


# Budgets ----------------------------------------------------------------------------------------


def chain(depth: int, rows: int, width: int) -> tuple[Any, Any]:
    ol.seed(0)
    layers = [Block(width, 2 * width) for _ in range(depth)]
    x = ol.to_tensor(np.random.default_rng(0).standard_normal((rows, width)).astype("float32"))
    return ol.nn.Sequential(*layers), x


@settings(max_examples=20)
@given(st.integers(1, 8), st.integers(1, 64), st.integers(4, 48), st.booleans())
def test_the_smallest_budget_of_the_error_works(
    depth: int, rows: int, width: int, inside: bool
) -> None:
    # Arrays below 1 KiB are always kept; a backward pass outside comes too late for the budget.
    assume(inside or rows * width * 4 >= 1024)
    model, x = chain(depth, rows, width)

    def step(budget: Any) -> Any:
        with ol.rematerialize(budget=budget) as memory:
            loss = model(x).sum()
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        return memory

    with pytest.raises(MemoryBudgetError, match=r"the smallest that can, .* bytes") as error:
        step(1)
    smallest = error.value.smallest
    assert f"{smallest:,} bytes" in str(error.value)
    memory = step(smallest)
    assert memory.policy.smallest <= smallest
    with pytest.raises(MemoryBudgetError):
        step(max(1, smallest * 3 // 4))


@pytest.mark.usefixtures("traced_memory")
@pytest.mark.parametrize("share", [1.0, 1.5, 2.5])
def test_live_bytes_stay_within_the_budget_in_forward_and_backward(share: float) -> None:
    model, x = chain(8, 384, 64)
    (model(x).sum()).backward()  # gradients are allocated from now on
    with pytest.raises(MemoryBudgetError) as error, ol.rematerialize(budget=1):
        model(x).sum().backward()
    budget = int(error.value.smallest * share)
    tracemalloc.start()
    try:
        start = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        with ol.rematerialize(budget=budget) as memory:
            loss = model(x).sum()
            forward = tracemalloc.get_traced_memory()[1] - start
            tracemalloc.reset_peak()
            loss.backward()
            backward = tracemalloc.get_traced_memory()[1] - start
    finally:
        tracemalloc.stop()
    assert memory.recomputed > 0
    margin = 300_000  # Python's own objects, and the gradients of one block of parameters
    assert forward <= budget + margin
    assert backward <= budget + margin


@pytest.mark.parametrize(
    ("budget", "error"),
    [
        ("64 MB MB", ValueError), ("", ValueError), ("MB", ValueError), ("1.2.3 MB", ValueError),
        ("-1 MB", ValueError), (0, ValueError), (-1, ValueError), ("0 B", ValueError),
        (True, TypeError), (float("nan"), TypeError), (float("inf"), TypeError), (1.5, TypeError),
        ([64], TypeError), ("1e400 GiB", ValueError), ("nan", ValueError),
    ],
)  # fmt: skip
def test_wrong_budgets_are_said(budget: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"a number of bytes, or text such as '64 MiB'"):
        ol.rematerialize(budget=budget)


@pytest.mark.parametrize(
    ("budget", "size"),
    [("64 MiB", 1 << 26), ("1.5kB", 1500), (" 2 gib ", 1 << 31), (np.int64(7), 7), (4096.0, 4096)],
)
def test_budgets_in_words(budget: Any, size: int) -> None:
    assert ol.rematerialize(budget=budget).budget == size


def test_keep_takes_names_layers_and_functions_and_nothing_else() -> None:
    with pytest.raises(TypeError, match="keep takes names of operations, Layers, functions"):
        ol.rematerialize(keep=[3])
    model, x = chain(2, 64, 32)
    kept: list[str] = []
    with ol.rematerialize(keep=lambda name, y: kept.append(name)):
        model(x).sum().backward()
    assert {"linear", "add"} <= set(kept)


def test_what_is_kept_does_not_run_again() -> None:
    model, x = chain(3, 64, 32)
    runs = {}
    for name, keep in {"nothing": None, "a layer": model[1], "all": lambda name, y: True}.items():
        with ol.rematerialize(keep=keep) as memory:
            loss = model(x).sum()
        loss.backward()
        runs[name] = memory.recomputed
    assert runs["nothing"] > runs["a layer"] > runs["all"] == 0


def test_what_keep_names_and_was_not_there_is_said() -> None:
    model, x = chain(1, 16, 8)
    away = ol.nn.Linear(2, 2)
    with (
        pytest.warns(UserWarning, match=r"keep='lineer'.*mean 'linear'\? These did: .*linear"),
        pytest.warns(UserWarning, match="of Linear: it was not called"),
        ol.rematerialize(keep=["lineer", "linear", model[0], away]),
    ):
        model(x).sum().backward()


def test_one_block_is_entered_once_at_a_time() -> None:
    block = ol.rematerialize()
    with block, pytest.raises(RuntimeError, match="entered already"), block:
        pass


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("budget", [None, "1 MiB", "200 MiB"])
@pytest.mark.parametrize("backward", [True, False])
def test_nothing_is_left_alive(budget: Any, backward: bool) -> None:
    def step() -> list[Any]:
        model, x = chain(6, 64, 32)
        with ol.rematerialize(budget=budget) as memory:
            y = model(x)
            loss = y.sum()
        if backward:
            loss.backward()
        return [weakref.ref(one) for one in (y.data, y.node, loss.node, memory.policy)]

    step()
    gc.collect()
    assert [one() for one in step()] == [None] * 4
    assert gc.collect() == 0


@pytest.mark.usefixtures("no_collector")
def test_a_long_chain_that_is_let_go_does_not_exhaust_the_stack() -> None:
    x = ol.to_tensor(np.ones(300), requires_grad=True)
    for budget in (None, "100 kB"):
        with ol.rematerialize(budget=budget):
            y = x
            for _ in range(3000 if budget else 30000):
                y = np.sin(y)
        del y


def test_an_array_that_was_written_to_from_outside_is_found() -> None:
    large = np.ones((600, 600))
    x = ol.to_tensor(np.linspace(0, 1, 360000).reshape(600, 600), requires_grad=True)
    with ol.rematerialize():
        loss = np.sum(np.sin(np.sin(x + large)))
    large[:] = 2.0
    with pytest.raises(ol.autograd.RecomputationError, match="'add' gave other numbers"):
        loss.backward()
    assert x.grad is None


def each_row(x: Any) -> Any:
    return ol.vmap(lambda row: np.exp(np.sin(row)) * row)(x)


def within(x: Any) -> Any:
    with ol.rematerialize():
        return np.sin(np.exp(np.sin(x)))


INSIDE: dict[str, Any] = {
    "vmap": each_row, "nested": within,
    "grad": lambda x: ol.grad(lambda z: np.sum(np.sin(z) * np.exp(x)))(x) * x,
    "hvp": lambda x: ol.hvp(lambda z: np.sum(z**3), x, x),
    "eigh": lambda x: np.linalg.eigh(x.T @ x)[1] ** 4,
    "recompute": lambda x: ol.recompute(within, np.tanh(x)),
    "its operations": lambda x: ol.recompute(within, np.tanh(x), use_reentrant=False),
    "chain": lambda x: ol.recompute_sequential([np.sin, np.exp], np.tanh(x), segments="revolve"),
}  # fmt: skip


@pytest.mark.parametrize("budget", [None, "120 kB", "100 MB"])
@pytest.mark.parametrize("name", INSIDE)
def test_transforms_and_other_ways_to_recompute_inside(name: str, budget: Any) -> None:
    def gradient(block: Any) -> bytes:
        x = ol.to_tensor(np.random.default_rng(0).standard_normal((40, 30)), requires_grad=True)
        with block:
            y = INSIDE[name](x).sum()
        y.backward()
        return x.grad.numpy().tobytes()

    assert gradient(ol.rematerialize(budget=budget)) == gradient(nullcontext())


@pytest.mark.parametrize("budget", [None, "60 kB", "100 MB"])
def test_ensembles(budget: Any) -> None:
    def gradient(block: Any) -> Any:
        values = np.random.default_rng(0).standard_normal((3, 400))
        w = ol.to_tensor(ol.ensemble(values), requires_grad=True)
        with block:
            y = np.sin(np.tanh(w * 2.0) * w).sum()
        y.backward()
        return ol.members(w.grad)

    again = gradient(ol.rematerialize(budget=budget))
    np.testing.assert_array_equal(again, gradient(nullcontext()))


def test_an_exception_inside_the_block_comes_through() -> None:
    x = ol.to_tensor(np.ones(1000), requires_grad=True)
    with pytest.raises(KeyError, match="mine"), ol.rematerialize(budget=1):
        raise KeyError("mine", np.sin(x))


def repeatedly(call: Any, y: Any) -> Any:
    for _ in range(20):
        y = call(y)
    return y


def test_what_cannot_be_dropped_is_counted_too() -> None:
    class Square(ol.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    for square in (Square.apply, lambda y: ol.recompute(np.square, y)):
        x = ol.to_tensor(np.full(32768, 0.5), requires_grad=True)  # 256 KiB
        with pytest.raises(ol.autograd.MemoryBudgetError), ol.rematerialize(budget="2 MiB"):
            repeatedly(square, x)


def test_a_budget_given_as_what_to_keep_is_refused() -> None:
    with pytest.raises(TypeError, match=r"rematerialize\(budget='4 MiB'\)"):
        ol.rematerialize("4 MiB")


def test_a_parameter_that_was_written_to_before_the_backward_pass_is_noticed():
    w = ol.Parameter(np.ones(3))
    with ol.rematerialize(budget="1 MiB"):
        y = (np.exp(w * np.array([1.0, 2.0, 3.0])) * w).sum()
    w.set_value(np.full(3, 5.0))
    with pytest.raises(RuntimeError, match=r"set_value\(\) has written over it since"):
        y.backward()
