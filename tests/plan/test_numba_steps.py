"""Kernels of several steps: NumPy's bits, the order of sums, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optlab.plan.kernel_steps import (
    Bounded,
    Elementwise,
    Finite,
    LargestOfRows,
    Picked,
    SumOfAll,
    SumOfRows,
    TakenRows,
)
from optlab.plan.numba_codegen import NoLoopError
from optlab.plan.numba_steps import StepKernel
from optlab.plan.plan import Instruction, Place

pytest.importorskip("numba")

FLOAT32 = np.dtype(np.float32)


def place(number: int) -> Place:
    return Place(number)


def ufunc(function: Any, *arguments: Any, result: Place, like: Any) -> Elementwise:
    return Elementwise(
        Instruction(function.__name__, function, arguments, (), result, like.shape, like.dtype)
    )


def compiled(steps: list[Any], memory: dict[Place, Any], stored: set[Place]) -> StepKernel:
    kernel = StepKernel(steps, memory, stored)
    kernel.compile()
    return kernel


def run(kernel: StepKernel) -> bool:
    """Run a kernel; return whether it found a value that it leaves to NumPy."""
    fault = bytearray(8)
    kernel.bind(fault)()
    return any(fault)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 31, 128, 129, 257, 1024])
def test_a_sum_is_added_as_numpy_adds_it(count: int, dtype: str) -> None:
    x = np.random.default_rng(count).standard_normal(count).astype(dtype) * 1e3
    memory = {place(0): x, place(1): np.empty((), dtype)}
    kernel = compiled([SumOfAll(place(0), place(1))], memory, {place(1)})
    assert kernel.agrees()
    assert not run(kernel)
    assert memory[place(1)].tobytes() == np.add.reduce(x).tobytes()


@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (32, 10), (7, 33), (100, 256)])
def test_rows_are_added_one_after_another(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype("float32") * 1e3
    memory = {place(0): x, place(1): np.empty(shape[1], "float32")}
    kernel = compiled([SumOfRows(place(0), place(1))], memory, {place(1)})
    assert kernel.agrees()
    assert not run(kernel)
    assert memory[place(1)].tobytes() == np.add.reduce(x, axis=0).tobytes()


def test_a_sum_in_another_order_is_found_out() -> None:
    x = np.ones((32, 10), "float32")
    memory = {place(0): x, place(1): np.empty(10, "float32")}
    kernel = compiled([SumOfRows(place(0), place(1))], memory, {place(1)})
    backwards = StepKernel([SumOfRows(place(0), place(1))], memory, {place(1)})
    source = kernel.source.replace("a1[k] += a0[i, k]", "a1[k] += a0[32 - i, k]")
    assert source != kernel.source
    from optlab.plan.numba_cache import kernel_of

    backwards.kernel = kernel_of(source, ["void**"])
    backwards.compile()
    assert kernel.agrees()
    assert not backwards.agrees()


def test_a_column_is_left_to_numpy() -> None:
    memory = {place(0): np.ones((8, 1), "float32"), place(1): np.empty(1, "float32")}
    with pytest.raises(NoLoopError):
        StepKernel([SumOfRows(place(0), place(1))], memory, {place(1)})


def losses() -> tuple[list[Any], dict[Place, Any], set[Place]]:
    """Return the steps of a loss of rows: scores, labels, the largest score, a picked one."""
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((32, 10)).astype("float32")
    memory = {
        place(0): scores,
        place(1): rng.standard_normal(10).astype("float32"),
        place(2): scores,  # in place
        place(3): np.arange(32) % 10,
        place(4): np.empty(32, np.int64),
        place(5): np.empty((32, 1), "float32"),
        place(6): np.empty((32, 10), "float32"),
        place(7): np.empty(32, "float32"),
        place(8): np.empty((), "float32"),
        place(9): np.eye(10, dtype="float32"),
        place(10): np.empty((32, 10), "float32"),
    }
    steps = [
        ufunc(np.add, place(0), place(1), result=place(2), like=scores),
        Bounded(place(3), 10, place(4)),
        LargestOfRows(place(2), place(5)),
        ufunc(np.subtract, place(2), place(5), result=place(6), like=scores),
        Picked(place(6), place(4), place(7)),
        SumOfAll(place(7), place(8)),
        TakenRows(place(9), place(4), place(10)),
    ]
    return steps, memory, {place(6), place(8), place(10)}


def test_steps_of_a_loss_are_those_of_numpy() -> None:
    steps, memory, stored = losses()
    scores, bias, labels = memory[place(0)].copy(), memory[place(1)], memory[place(3)]
    kernel = compiled(steps, memory, stored)
    assert kernel.agrees()
    assert not run(kernel)
    shifted = scores + bias
    shifted -= shifted.max(1, keepdims=True)
    assert memory[place(6)].tobytes() == shifted.tobytes()
    picked = np.add.reduce(shifted[np.arange(32), labels])
    assert memory[place(8)].tobytes() == picked.tobytes()
    assert np.array_equal(memory[place(10)], np.eye(10)[labels])


@pytest.mark.parametrize("label", [-1, 10])
def test_a_label_out_of_bounds_is_found_and_reads_nothing(label: int) -> None:
    steps, memory, stored = losses()
    memory[place(3)][5] = label
    kernel = compiled(steps, memory, stored)
    assert run(kernel)
    assert memory[place(4)][5] == 0


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_are_not_finite_are_found(value: float) -> None:
    x = np.ones((3, 4), "float32")
    memory = {place(0): x, place(1): np.empty((3, 4), "float32")}
    half = ufunc(np.multiply, place(0), 0.5, result=place(1), like=x)
    for steps in ([half], [Finite(place(0))]):
        kernel = compiled(steps, memory, {place(1)})
        x[...] = 1
        assert not run(kernel)
        x[2, 1] = value
        assert run(kernel)


def test_what_overflows_on_the_way_is_found() -> None:
    x = np.full(5, 3e38, "float32")
    memory = {place(i): np.empty(5, "float32") for i in range(3)} | {place(0): x}
    steps = [
        ufunc(np.multiply, place(0), 2.0, result=place(1), like=x),
        ufunc(np.minimum, place(1), 1.0, result=place(2), like=x),
    ]
    assert run(compiled(steps, memory, {place(2)}))


def test_memory_that_is_shifted_is_not_read_after_it_is_written() -> None:
    whole = np.arange(9, dtype="float32")
    memory = {place(0): whole[1:], place(1): whole[:-1]}
    step = ufunc(np.add, place(0), 1.0, result=place(1), like=whole[1:])
    with pytest.raises(NoLoopError):
        StepKernel([step], memory, {place(1)})


def test_only_contiguous_memory() -> None:
    memory = {place(0): np.ones((4, 3), "float32").T, place(1): np.empty((3, 4), "float32")}
    step = ufunc(np.add, place(0), 1.0, result=place(1), like=memory[place(1)])
    with pytest.raises(NoLoopError):
        StepKernel([step], memory, {place(1)})
