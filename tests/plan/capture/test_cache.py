"""Plans are kept by what the arguments are: shapes, dtypes, strides; and not without bound."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH
from tests.plan.capture.twins import F, given, leaves, program


def sums(x: Any) -> Any:
    """Return numbers whose bits depend on the order in which memory is read."""
    return np.sum(x * x), np.sum(np.exp(x), axis=0), x.T @ x, (x + 1).mean()


LAYOUTS = {
    "C order": lambda x: x,
    "Fortran order": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every second row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every second column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[0], x.shape),
    "unaligned": lambda x: unaligned(x),
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "read only": lambda x: read_only(x),
}


def unaligned(x: Any) -> Any:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    y = memory[1:].view(x.dtype).reshape(x.shape)
    y[...] = x
    return y


def read_only(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_layout_has_the_bits_of_eager_running(dtype: str) -> None:
    captured = ol.capture(sums)
    for seed in range(3):
        for name, layout in LAYOUTS.items():
            x = layout(given(37, 29, seed=seed, dtype=dtype))
            found, wanted = captured(x), sums(x)
            assert dict(leaves({"": found})) == dict(leaves({"": wanted})), name


def test_layouts_differ_at_all() -> None:
    x = given(37, 29)
    found = {
        name: np.asarray(sums(layout(x))[1]).tobytes() for name, layout in list(LAYOUTS.items())[:3]
    }
    assert len(set(found.values())) > 1


def test_shapes_dtypes_and_strides_have_plans_of_their_own() -> None:
    captured = ol.capture(lambda x: np.tanh(x) * 2)
    x = given(4, 6)
    seen = []
    for y in (x, x[:3], x.astype("float64"), np.asfortranarray(x), x.astype("float16")):
        captured(y)
        seen.append(captured.plan)
        captured(y + 1)
        assert captured.plan is seen[-1]
    assert len({id(plan) for plan in seen}) == len(captured.plans) == 5
    captured(x)
    assert captured.plan is seen[0]
    assert len(captured.plans) == 5


def test_kinds_of_arguments_have_plans_of_their_own() -> None:
    captured = ol.capture(lambda x: x * 2)
    x = given(3)
    assert type(captured(x)) is np.ndarray
    assert type(captured(ol.to_tensor(x))) is ol.Tensor
    assert captured(ol.to_tensor(x, stop_gradient=False)).requires_grad
    assert not captured(ol.to_tensor(x)).requires_grad
    assert type(captured(x)) is np.ndarray


def test_values_are_no_part_of_the_key() -> None:
    captured = ol.capture(lambda x, rate: x * rate)
    for i in range(50):
        x = given(3, seed=i)
        np.testing.assert_array_equal(captured(x, 0.01 * i), x * (0.01 * i))
    assert len(captured.plans) == 1


def test_there_is_no_plan_before_the_first_call() -> None:
    captured = ol.capture(lambda x: x * 2)
    assert captured.plan is None
    assert len(captured.plans) == 0


def test_the_smaller_last_batch_is_captured_once() -> None:
    p = program("mlp", EACH["Adam"])
    captured = ol.capture(p.step)
    plans = set()
    for _ in range(3):
        for batch in p.batches:
            captured(*batch)
            plans.add(id(captured.plan))
    assert len(plans) == len(captured.plans) == 2


def test_slots_that_appear_in_the_first_step_need_no_second_plan() -> None:
    """The first step of an optimizer makes its slots; the plan of it serves later steps."""
    p = program("mlp", EACH["Adam"])
    captured = ol.capture(p.step)
    for _ in range(3):
        captured(*p.batches[0])
    assert len(captured.plans) == 1


# The bound.


def grown(call: Any, shapes: range) -> int:
    """Return by how many bytes memory grows while shapes are captured."""
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for n in shapes:
        call(n)
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


@pytest.mark.parametrize(
    "shapes",
    [pytest.param(240), pytest.param(1000, marks=[pytest.mark.nightly, pytest.mark.slow])],
)
def test_many_shapes_leave_memory_bounded(shapes: int) -> None:
    captured = ol.capture(lambda x: np.tanh(x * 2).sum())
    vector = given(2000)

    def call(n: int) -> None:
        assert captured(vector[:n]) == np.tanh(vector[:n] * 2).sum()

    counts, half = [], shapes // 2
    tracemalloc.start()
    try:
        first = grown(call, range(1, half))
        counts.append(len(captured.plans))
        later = grown(call, range(half, shapes))
        counts.append(len(captured.plans))
    finally:
        tracemalloc.stop()
    assert counts[0] == counts[1] < half - 1
    assert later < first / 4
    call(1)  # dropped long ago


@pytest.mark.nightly
@pytest.mark.slow
def test_1000_shapes_of_a_training_step_leave_memory_bounded() -> None:
    model = ol.nn.Sequential(ol.nn.Linear(6, 16), ol.nn.ReLU(), ol.nn.Linear(16, 4))
    optimizer = ol.optimizer.Adam(0.001, parameters=model.parameters())

    def step(x: Any) -> Any:
        loss = F.mse_loss(model(x), ol.zeros([x.shape[0], 4]))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    captured = ol.capture(step)
    rows = given(1000, 6)
    tracemalloc.start()
    try:
        # The largest come first: later plans are not larger than those that they replace.
        first = grown(lambda n: captured(rows[:n]), range(1000, 600, -1))
        later = grown(lambda n: captured(rows[:n]), range(600, 0, -1))
    finally:
        tracemalloc.stop()
    assert later < first / 4
    assert len(captured.plans) < 399


def test_large_buffers_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans over a megabyte each must not keep a megabyte each, and more, for ever."""
    monkeypatch.setattr("optlab.plan.calls.captured.MOST_BYTES", 8 * 2**20)
    captured = ol.capture(lambda x: np.exp(np.tanh(x) * x + 1).sum())
    memory = given(2**18 + 100)
    tracemalloc.start()
    try:
        kept = grown(lambda n: captured(memory[: 2**18 + n]), range(24))
    finally:
        tracemalloc.stop()
    assert kept < 16 * 2**20


def test_shapes_in_turns_are_kept() -> None:
    """A few shapes that alternate, as batches of sentences do, are captured once each."""
    f = lambda x: np.tanh(x * 2).sum()  # noqa: E731
    captured = ol.capture(f)
    plans = set()
    for _ in range(4):
        for n in range(1, 13):
            captured(given(n))
            plans.add(id(captured.plan))
    assert len(plans) == len(captured.plans) == 12


def test_arguments_and_results_are_not_kept() -> None:
    captured = ol.capture(lambda x: (np.tanh(x) * 2).sum())
    x = ol.to_tensor(given(50))
    for _ in range(3):
        y = captured(x)
    gone = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert all(one() is None for one in gone)


def test_what_is_captured_dies_with_its_function() -> None:
    p = program("mlp", EACH["Adam"])
    captured = ol.capture(p.step)
    for batch in p.batches:
        captured(*batch)
    gone = weakref.ref(p.model), weakref.ref(p.optimizer)
    del p, captured, batch
    gc.collect()
    assert all(one() is None for one in gone)


def test_a_buffer_that_is_filled_again_is_no_reason_to_capture_anew() -> None:
    captured = ol.capture(lambda x: 2 * x)
    x = np.empty(5)
    for i in range(4):
        x[...] = i
        np.testing.assert_array_equal(captured(x), np.full(5, 2.0 * i))
    assert len(captured.plans) == 1


@pytest.mark.parametrize("batch", [{"x": None}, [None], ([None],), {"x": {"y": [None]}}], ids=repr)
def test_containers_that_are_filled_again_are_no_reason_to_capture_anew(batch: Any) -> None:
    holder, key, read = batch, "x", lambda b: b["x"]
    if isinstance(batch, tuple):
        holder, key, read = batch[0], 0, lambda b: b[0][0]
    elif isinstance(batch, list):
        key, read = 0, lambda b: b[0]
    elif batch["x"] is not None:
        holder, key, read = batch["x"]["y"], 0, lambda b: b["x"]["y"][0]
    captured = ol.capture(lambda b: 2 * read(b))
    for i in range(4):
        holder[key] = np.full(3, float(i))
        np.testing.assert_array_equal(captured(batch), np.full(3, 2.0 * i))
    assert len(captured.plans) == 1


def test_an_argument_that_is_read_from_outside_too_is_watched() -> None:
    c, table = np.ones(3), {"x": np.ones(3)}
    by_name = ol.capture(lambda x: x * c)
    by_table = ol.capture(lambda b: b["x"] * table["x"])
    x = np.full(3, 2.0)
    by_name(c), by_table(table)
    np.testing.assert_array_equal(by_name(x), x)
    np.testing.assert_array_equal(by_table({"x": x}), x)
    c[...], table["x"] = 5, np.full(3, 7.0)
    np.testing.assert_array_equal(by_name(x), 5 * x)
    np.testing.assert_array_equal(by_table({"x": x}), 7 * x)


def test_attributes_of_an_argument_are_watched() -> None:
    class Settings:
        def __init__(self) -> None:
            self.scale, self.array = 2.0, np.ones(3)

    given = Settings()
    captured = ol.capture(lambda s, x: x * s.array * s.scale)
    x = np.ones(3)
    captured(given, x)
    given.array[1] = 5.0
    np.testing.assert_array_equal(captured(given, x), [2.0, 10.0, 2.0])
    given.scale = 3.0
    np.testing.assert_array_equal(captured(given, x), [3.0, 15.0, 3.0])


def test_the_arguments_of_the_first_call_are_not_kept() -> None:
    captured = ol.capture(lambda x, b: x + b["y"])

    def call() -> list[Any]:
        x, y = np.ones(5), np.ones(5)
        captured(x, {"y": y})
        return [weakref.ref(x), weakref.ref(y)]

    references = call()
    gc.collect()
    assert [one() for one in references] == [None, None]
