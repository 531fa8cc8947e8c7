"""Numba kernels give NumPy's bits and warnings; where they would not, NumPy runs."""

from __future__ import annotations

import subprocess
import sys
from weakref import WeakValueDictionary

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optlab.plan import capture_blocks, executors, numba_cache, use_executor
from optlab.plan.executors import executor_of, has_numba
from optlab.plan.numba_codegen import CHUNK, loop_of
from optlab.plan.numba_kernels import machine_loops_of, same_bits
from optlab.plan.reductions import Reduction, sum_of_squares
from optlab.plan.threads import run_pieces
from tests.plan.programs import NAMES, programs, run

needs_numba = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")
DTYPES = [np.dtype("float32"), np.dtype("float64")]
norm = Reduction(sum_of_squares, lambda total, dtype: np.sqrt(total).astype(dtype), "norm")


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    """Let this process begin without kernels, in memory and on disk."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba_cache, "_kernels", WeakValueDictionary())


def peculiar(dtype):
    limits = np.finfo(dtype)
    sizes = [
        *(0.0, 1.0, 1.5, 2.0, 0.1, limits.eps, limits.tiny, limits.smallest_subnormal),
        *(limits.tiny / 3, limits.max, limits.max / 2, np.inf),
    ]
    return np.array([*sizes, *(-x for x in sizes), np.nan], dtype)


def pairs(dtype):
    x, y = np.meshgrid(peculiar(dtype), peculiar(dtype))
    return x.reshape(-1), y.reshape(-1)


def plan_of(f, dtype, names=("p", "g", "a"), numbers=None):
    return capture_blocks(f, {name: np.ones(2, dtype) for name in names}, numbers or {"n": 0.5})


def done(executor, blocks, numbers=(0.25,)):
    """Run a plan over copies of blocks of arrays; return these, and the kinds of warnings."""
    blocks = [[array.copy() for array in block] for block in blocks]
    said = set()
    with np.errstate(
        over="call", divide="call", invalid="call", call=lambda kind, _: said.add(kind)
    ):
        run_pieces(executor, numbers, blocks)
    return blocks, said


def assert_both_do_the_same(plan, loops, arrays, numbers=(0.25,)):
    ([one], said), ([other], expected) = (done(way, [arrays], numbers) for way in (loops, plan))
    assert all(map(same_bits, one, other))
    assert said == expected


#: Functions of two arrays and a number; none of them branches on its result.
CHOICES = [
    lambda p, g, n: np.maximum(p, g),
    lambda p, g, n: np.minimum(p, g),
    lambda p, g, n: np.maximum(p, 0.0),
    lambda p, g, n: np.minimum(0.0, g),
    lambda p, g, n: np.clip(p, -1.5, 1.5),
    lambda p, g, n: np.clip(p, 0.0, n),
    lambda p, g, n: np.sign(p),
    lambda p, g, n: np.where(p > g, p, g),
    lambda p, g, n: np.where((p >= g) & (p != 0), 0.5, g),
    lambda p, g, n: np.where((p < g) | (g <= n) | (p == g), p, n),
    lambda p, g, n: np.where(
        np.logical_xor(np.isfinite(p), np.isnan(g)), p, np.where(~np.isinf(g), g, 1.0)
    ),
    lambda p, g, n: np.where(np.logical_not(np.logical_and(p > 0, g > 0)), p, g),
]
ARITHMETIC = [
    lambda p, g, n: p + g,
    lambda p, g, n: p - g,
    lambda p, g, n: p * g,
    lambda p, g, n: p / g,
    lambda p, g, n: n * p + g / 3,
    lambda p, g, n: np.sqrt(p) * g,
    lambda p, g, n: np.square(p) - g,
    lambda p, g, n: np.reciprocal(p) + (+g),
    lambda p, g, n: (p.astype(np.float64) * g).astype(p.dtype),
    lambda p, g, n: p.astype(np.float32).astype(p.dtype) + g,
]
#: Functions whose results hide a value on the way that is not finite.
HIDING = [
    lambda p, g, n: 1.0 / (p * g),
    lambda p, g, n: np.where(g > 0, p / g, 0.5),
    lambda p, g, n: np.maximum(-1.0, -(p * p)),
    lambda p, g, n: np.minimum(p * p, 1.0),
    lambda p, g, n: np.sign(p - g),
    lambda p, g, n: np.where(-p < abs(g), -p, abs(g)) / 3.0 + p,
    lambda p, g, n: np.maximum(p, 0.0) + np.minimum(0.0, g) * 0.0,
    lambda p, g, n: (p > g) * g,
    lambda p, g, n: np.clip(p / g, -1.0, 1.0),
    lambda p, g, n: np.where(np.sqrt(p) > g, 1.0, 2.0),
    lambda p, g, n: (p + g > 0) * 1.0 + g * 0.0,
]


def many(functions):
    """Return one function with the results o0, o1, ..., and the names of all its arrays."""
    names = [f"o{i}" for i in range(len(functions))]

    def f(a, n):
        results = [one(a["p"], a["g"], n["n"]) for one in functions]
        return {
            name: value if value.dtype == a["p"].dtype else value.astype(a["p"].dtype)
            for name, value in zip(names, results, strict=True)
        }

    return f, ["p", "g", *names]


@needs_numba
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("which", [CHOICES, ARITHMETIC, HIDING])
def test_every_operation_on_all_pairs_of_peculiar_numbers(which, dtype):
    f, names = many(which)
    plan = plan_of(f, dtype, names)
    loops = machine_loops_of(plan)
    # One chunk per pair, so that a fault of one does not move the others to NumPy.
    x, y = (np.repeat(one, CHUNK) for one in pairs(dtype))
    arrays = [x, y, *(np.zeros_like(x) for _ in which)]
    loops.phase(0, [0.25])  # the kernel is checked against NumPy before its use
    again = []
    original = plan.calls[0]
    plan.calls[0] = lambda *given: again.append(len(given[0])) or original(*given)
    with np.errstate(all="ignore"):
        run_pieces(loops, [0.25], [arrays])
    assert loops.loops[0] is not None
    assert sum(again) == 0 if which is CHOICES else 0 < sum(again) < len(x)
    for array, function in zip(arrays[2:], which, strict=True):
        with np.errstate(all="ignore"):
            expected = function(x, y, 0.25).astype(dtype)
        assert same_bits(array, expected)


@needs_numba
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", ARITHMETIC + HIDING)
def test_what_is_said_of_every_pair(f, dtype):
    plan = plan_of(lambda a, n: {"p": f(a["p"], a["g"], n["n"]).astype(dtype)}, dtype, ("p", "g"))
    loops = machine_loops_of(plan)
    heard = set()
    for x, y in zip(*pairs(dtype), strict=True):
        arrays = [np.array([1.25, x, 0.75], dtype), np.array([0.5, y, 1.75], dtype)]
        assert_both_do_the_same(plan, loops, arrays)
        heard |= done(plan, [arrays])[1]
    assert heard
    assert loops.loops[0] is not None


@needs_numba
@given(programs(), st.integers(0, 2**32 - 1), st.sampled_from(DTYPES))
@settings(max_examples=15)
def test_programs(program, seed, dtype):
    example = {name: np.ones(2, dtype) for name in NAMES}
    plan = capture_blocks(lambda a, n: run(program, a, n), example, {"rate": 3.0, "decay": 0.5})
    loops = machine_loops_of(plan)
    draw = np.random.default_rng(seed)
    arrays = [draw.standard_normal(3 * CHUNK + 37).astype(dtype) for _ in NAMES]
    for array in arrays:
        array[CHUNK : CHUNK + 100] = draw.choice(peculiar(dtype), 100)
    if loops is not None:
        assert_both_do_the_same(plan, loops, arrays, (0.01, 0.25))
    else:
        assert not plan.instructions or "exp(" in plan.source


@pytest.mark.parametrize(
    "f",
    [
        lambda a, n: np.exp(a["p"]),
        lambda a, n: np.tanh(a["p"]) + a["g"],
        lambda a, n: a["p"] ** 0.5,
        lambda a, n: a["p"] % 2.0,
        lambda a, n: np.clip(a["p"], a["g"], 1.0),
        lambda a, n: np.floor(a["p"]),
        lambda a, n: np.hypot(a["p"], a["g"]),
        lambda a, n: (a["p"] > 0).astype(np.int64) * 1.0,
    ],
)
def test_what_stays_with_numpy(f):
    plan = plan_of(lambda a, n: {"p": f(a, n)}, "float64")
    assert loop_of(plan, 0) is None


def test_half_floats_stay_with_numpy():
    plan = plan_of(lambda a, n: {"p": a["p"] * 2}, "float16")
    assert loop_of(plan, 0) is None


@needs_numba
def test_a_phase_with_no_loop_beside_one_that_has():
    def f(a, n):
        direction = a["g"] * 3
        return {"p": a["p"] - norm(np.exp(direction)) * direction}

    plan = plan_of(f, "float64")
    loops = machine_loops_of(plan)
    assert [loop is None for loop in loops.loops] == [True, False]
    p, g, a = np.random.default_rng(0).standard_normal((3, 1000))
    blocks = [[x[i : i + 300].copy() for x in (p, g, a)] for i in range(0, 1000, 300)]
    run_pieces(loops, [0.1], blocks)
    parts = [sum_of_squares(np.exp(g[i : i + 300] * 3)) for i in range(0, 1000, 300)]
    expected = p - np.sqrt(parts[0] + parts[1] + parts[2] + parts[3]) * (g * 3)
    assert same_bits(np.concatenate([block[0] for block in blocks]), expected)


@needs_numba
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_of_what_is_computed_and_of_what_is_written_over(dtype):
    def f(a, n):
        moment = 0.5 * a["a"] + a["g"]
        ratio = norm(a["p"]) / (norm(moment) + norm(a["g"] * a["a"]) + norm(a["a"]))
        return {"p": a["p"] - n["n"] * ratio * moment, "a": moment}

    plan = plan_of(f, dtype)
    loops = machine_loops_of(plan)
    draw = np.random.default_rng(0)
    for wild in (False, True):
        arrays = [draw.standard_normal(5000).astype(dtype) for _ in range(3)]
        if wild:
            arrays[1][[700, 3000]] = np.inf, np.finfo(dtype).max
        blocks = [[x[i : i + 2000] for x in arrays] for i in range(0, 5000, 2000)]
        results = []
        for way in (loops, plan):
            results.append(done(way, blocks, (0.1,)))
        (one, said), (other, expected) = results
        assert said == expected
        assert bool(said) == wild
        for a, b in zip(one, other, strict=True):
            assert all(map(same_bits, a, b))
    assert None not in loops.loops


@needs_numba
def test_loops_of_one_source_and_two_dtypes():
    for dtype in DTYPES:
        plan = plan_of(lambda a, n: {"a": np.maximum(a["p"], a["g"])}, dtype)
        arrays = [np.array(x, dtype) for x in ([1.0, 2.0], [3.0, 0.5], [0.0, 0.0])]
        run_pieces(machine_loops_of(plan), [0.1], [arrays])
        assert arrays[2].tolist() == [3.0, 2.0]


@needs_numba
def test_two_arrays_that_change_places_are_right():
    plan = plan_of(lambda a, n: {"p": a["g"] * 1.0, "g": a["a"], "a": a["g"]}, "float32")
    loops = machine_loops_of(plan)
    arrays = [np.full(3, float(i), np.float32) for i in range(3)]
    run_pieces(loops, [0.1], [arrays])
    assert [array[0] for array in arrays] == [1.0, 2.0, 1.0]


@needs_numba
def test_an_array_of_integers_that_one_phase_does_not_touch():
    def f(a, n):
        ratio = norm(a["g"] * 2)
        return {"p": a["p"] - ratio * a["g"], "count": a["count"] + 1}

    example = {"p": np.ones(2), "g": np.ones(2), "count": np.ones(2, np.int64)}
    plan = capture_blocks(f, example, {"n": 0.5})
    loops = machine_loops_of(plan)
    assert [loop is None for loop in loops.loops] == [True, False]
    blocks = [[np.ones(10), np.full(10, 0.5), np.arange(10)]]
    (one, _), (other, _) = (done(way, blocks) for way in (loops, plan))
    assert all(map(np.array_equal, one[0], other[0]))


@needs_numba
@pytest.mark.parametrize("kind", ["strided", "reversed", "read-only", "unaligned"])
def test_gradients_and_parameters_of_any_layout(kind):
    plan = plan_of(lambda a, n: {"p": a["p"] - n["n"] * a["g"]}, "float32", ("p", "g"))
    loops = machine_loops_of(plan)
    draw = np.random.default_rng(0)
    p, g = draw.standard_normal((2, 1000)).astype(np.float32)
    expected = p - np.float32(0.25) * g

    def laid(x):
        if kind == "strided":
            return np.repeat(x, 2)[::2]
        if kind == "reversed":
            return x[::-1].copy()[::-1]
        if kind == "unaligned":
            return np.frombuffer(bytearray(b"x" + x.tobytes()), np.float32, offset=1)
        x = x.copy()
        x.flags.writeable = False
        return x

    one = p.copy()
    run_pieces(loops, [0.25], [[one, laid(g)]])
    assert same_bits(one, expected)
    if kind != "read-only":
        other = laid(p)
        run_pieces(loops, [0.25], [[other, g]])
        assert same_bits(np.array(other), expected)


@needs_numba
@pytest.mark.parametrize("number", [1e300, np.inf, np.nan, 1e39])
def test_a_number_that_is_not_finite_where_it_meets_the_array(number):
    plan = plan_of(lambda a, n: {"p": a["p"] - n["n"] * a["g"]}, "float32", ("p", "g"))
    loops = machine_loops_of(plan)
    arrays = [np.linspace(-1, 1, 11, dtype=np.float32), np.ones(11, np.float32)]
    assert_both_do_the_same(plan, loops, arrays, (number,))


@needs_numba
def test_a_loop_that_gives_other_bits_is_not_used(monkeypatch):
    from optlab.plan import numba_codegen

    monkeypatch.setitem(numba_codegen._CHOICES, np.maximum, "({0} if {0} >= {1} else {1})")
    plan = plan_of(lambda a, n: {"p": np.maximum(a["p"], a["g"])}, "float32", ("p", "g"))
    loops = machine_loops_of(plan)
    x, y = pairs("float32")
    assert_both_do_the_same(plan, loops, [x, y])
    assert loops.loops == [None]


@needs_numba
def test_what_numba_cannot_compile_is_said_and_goes_on(monkeypatch, empty_cache):
    import numba

    def broken(*args, **kwargs):
        raise RuntimeError("no compiler here\nand more")

    monkeypatch.setattr(numba, "cfunc", broken)
    plan = plan_of(lambda a, n: {"p": a["p"] + a["g"]}, "float32", ("p", "g"))
    with use_executor("numba"):
        with pytest.warns(RuntimeWarning, match=r"no compiler here\).*use_executor"):
            assert executor_of(plan, 1) is plan
        assert executor_of(plan, 1) is plan  # warned once


@needs_numba
def test_loops_that_numba_would_leave_to_python_are_not_run(monkeypatch, empty_cache):
    import numba

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    plan = plan_of(lambda a, n: {"p": a["p"] + a["g"]}, "float32", ("p", "g"))
    with use_executor("numba"), pytest.warns(RuntimeWarning, match="NUMBA_DISABLE_JIT is set"):
        assert executor_of(plan, 1) is plan


@needs_numba
def test_loops_of_the_cache_are_used_when_they_pay(monkeypatch, empty_cache):
    monkeypatch.setattr(executors, "LOOK_UP", 1000)
    f = lambda a, n: {"p": a["p"] + a["g"] * 2}  # noqa: E731
    machine_loops_of(plan_of(f, "float32", ("p", "g")))  # as an earlier process did
    plan = plan_of(f, "float32", ("p", "g"))
    with use_executor("auto"):
        assert executor_of(plan, 400) is plan
        loops = executor_of(plan, 400)
        assert loops is not plan
        assert executor_of(plan, 1) is loops
        with np.errstate(under="warn"):
            assert executor_of(plan, 1) is plan
    with use_executor("numpy"):
        assert executor_of(plan, 10**9) is plan
    assert executor_of(plan, 1) is loops


def test_without_numba_numpy_runs_and_asking_for_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(executors, "has_numba", lambda: False)
    monkeypatch.setattr(executors, "LOOK_UP", 1)
    plan = plan_of(lambda a, n: {"p": a["p"] + a["g"]}, "float32", ("p", "g"))
    with use_executor("auto"):
        assert executor_of(plan, 1000) is plan
    with pytest.raises(ModuleNotFoundError, match=r"numba.*pip install 'optlab\[fast\]'"):
        use_executor("numba")


def test_an_unknown_executor_is_refused_and_the_old_one_stays():
    with pytest.raises(ValueError, match="must be one of auto, numpy, numba; got 'cuda'"):
        use_executor("cuda")
    with use_executor("numpy"):
        assert executors._chosen == "numpy"
    assert executors._chosen == "auto"


def test_numba_is_not_imported_before_it_pays():
    code = """
import sys
import numpy as np, optlab as ol
p = ol.Parameter(np.ones(20_000, np.float32))
optimizer = ol.optimizer.Adam(0.1, parameters=[p])
for _ in range(3):
    p.grad = np.ones(20_000, np.float32)
    optimizer.step()
assert optimizer.plans
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
