"""Block plans compute their function bitwise, in place, block by block."""

from __future__ import annotations

import operator
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optlab.plan import CaptureError, capture_blocks, sizes
from optlab.plan import threads as on_threads
from tests.plan.programs import NAMES, programs, run


@given(programs(), st.integers(0, 2**32 - 1), st.sampled_from(["float32", "float64"]))
def test_a_plan_gives_the_bits_of_the_function(program, seed, dtype):
    draw = np.random.default_rng(seed)
    arrays = {name: draw.standard_normal(37).astype(dtype) for name in NAMES}
    numbers = {"rate": 0.01, "decay": 0.25}
    example = {name: np.ones(2, dtype) for name in NAMES}
    plan = capture_blocks(lambda a, n: run(program, a, n), example, {"rate": 3.0, "decay": 0.5})
    with np.errstate(all="ignore"):
        expected = {name: array.copy() for name, array in arrays.items()}
        new = run(program, arrays, numbers)
        expected |= {name: array.copy() for name, array in new.items()}
        prepared = plan.prepare(*numbers.values())
        for start, stop in ((0, 10), (10, 36), (36, 37)):
            blocks = [arrays[name][start:stop] for name in plan.arrays]
            scratch = [np.empty(stop - start, kind) for kind in plan.scratch]
            plan.runs[0](*blocks, *scratch, *prepared)
    for name in NAMES:
        np.testing.assert_array_equal(arrays[name], expected[name], strict=True)


def refused(f):
    example = {name: np.ones(2) for name in NAMES}
    with pytest.raises(CaptureError) as caught:
        capture_blocks(f, example, {"rate": 0.1})
    return str(caught.value)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda a, n: {"p": a["p"] - a["g"].sum()}, "sum"),
        (lambda a, n: {"p": a["p"] - np.sum(a["g"])}, "sum"),
        (lambda a, n: {"p": np.add.accumulate(a["p"])}, "not element by element"),
        (lambda a, n: {"p": a["p"] / a["p"].size}, "the size"),
        (lambda a, n: {"p": a["p"][::-1]}, "not element by element"),
        (lambda a, n: {"p": a["p"] + np.arange(2.0)}, "constant"),
        (lambda a, n: {"p": a["p"] if n["rate"] > 0.5 else a["g"]}, "a comparison of a number"),
        (lambda a, n: {"p": a["p"] * np.sqrt(n["rate"])}, "sqrt of a number"),
        (lambda a, n: {"p": a["p"] * float(n["rate"])}, "a function of a number"),
        (lambda a, n: {"p": a["p"] if (a["p"] > 0).all() else a["g"]}, "all"),
        (lambda a, n: {"p": a["p"] > 0}, "p is no array of dtype float64"),
        (lambda a, n: {"p": np.zeros_like(a["p"])}, "zeros_like"),
        (lambda a, n: {"p": operator.iadd(a["p"], 1.0)}, "writing into an array"),
        (lambda a, n: {"p": np.add(a["p"], 1.0, out=a["g"])}, "existing array"),
        (lambda a, n: {"p": np.cumsum(a["p"])}, "cumsum"),
    ],
)
def test_what_is_not_element_by_element_is_refused_by_name(f, words):
    assert words in refused(f)


def test_a_function_that_counts_its_calls_is_refused():
    calls = iter(range(10))
    assert "ran twice" in refused(lambda a, n: {"p": a["p"] + float(next(calls))})


def test_two_arrays_that_change_places_are_right():
    plan = capture_blocks(
        lambda a, n: {"p": a["g"] * 1.0, "a": a["b"], "b": a["a"]},
        {name: np.ones(2) for name in NAMES},
        {},
    )
    p, g, a, b = (np.full(3, float(i)) for i in range(4))
    plan.runs[0](p, g, a, b, *[np.empty(3, kind) for kind in plan.scratch], *plan.prepare())
    assert (p[0], g[0], a[0], b[0]) == (1.0, 1.0, 3.0, 2.0)


def test_many_blocks_go_over_all_cores_and_give_the_same_bits(monkeypatch):
    monkeypatch.setattr(sizes, "LARGE", 100)
    monkeypatch.setattr(sizes, "cores", lambda: 3)
    monkeypatch.setattr(on_threads, "_pool", None)
    plan = capture_blocks(
        lambda a, n: {"p": np.exp(a["p"]) * n["rate"] - 2 * a["g"]},
        {"p": np.ones(2), "g": np.ones(2)},
        {"rate": 0.1},
    )
    p, g = np.random.default_rng(0).standard_normal((2, 10_000))
    expected = np.exp(p) * 0.3 - 2 * g
    seen = set()

    def job(start):
        seen.add(threading.current_thread().name)
        block = slice(start, start + 100)
        on_threads.run_pieces(plan, [0.3], [[p[block], g[block]]])

    jobs = (partial(job, start) for start in range(0, 10_000, 100))
    on_threads.on_all_cores(jobs, 10_000)
    np.testing.assert_array_equal(p, expected)
    own = threading.current_thread().name
    assert all(name == own or name.startswith("optlab blocks") for name in seen)


def test_all_cores_take_a_share(monkeypatch):
    monkeypatch.setattr(sizes, "LARGE", 1)
    monkeypatch.setattr(sizes, "cores", lambda: 3)
    monkeypatch.setattr(on_threads, "_pool", None)
    together = threading.Barrier(3, timeout=60)  # passed only if three threads wait at once
    found = on_threads.over_all_cores(lambda i: together.wait() >= 0 and 2 * i, range(3))
    assert found == [0, 2, 4]


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(sizes, "LARGE", 1)
    plan = capture_blocks(lambda a, n: {"p": a["p"] + 1}, {"p": np.ones(2)}, {})
    jobs = [partial(on_threads.run_pieces, plan, [], [["not an array"]])]
    with pytest.raises(TypeError):
        on_threads.on_all_cores(jobs, 100)
