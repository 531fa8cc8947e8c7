"""Loops over the members of an ensemble give the bits and warnings of NumPy's blocks."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.plan import capture_blocks, executors, use_executor
from optlab.plan.executors import executor_of, has_numba
from optlab.plan.members.blocks import MemberBlocks
from optlab.plan.members.kernels import MemberLoops
from optlab.plan.numba_kernels import peculiar, same_bits

pytestmark = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")
MEMBERS = 5
LENGTHS = (700, 3, 1030)


def adam(a, n):
    m = n["beta"] * a["m"] + (1 - n["beta"]) * a["g"]
    v = 0.99 * a["v"] + 0.01 * a["g"] * a["g"]
    return {"p": a["p"] - n["rate"] * m / (np.sqrt(v) + 1e-8), "m": m, "v": v}


def blocks_of(f, names, dtype, numbers):
    example = {name: np.ones(2, dtype) for name in names}
    return MemberBlocks(capture_blocks(f, example, numbers), np.dtype(dtype))


def loops_of(members):
    loops = MemberLoops(members)
    assert loops
    loops.compile()
    return loops


def done(executor, arrays, gradients, numbers):
    """Run a plan over copies of flat arrays; return these, and the kinds of warnings."""
    arrays = [array.copy() for array in arrays]
    said = set()
    with np.errstate(
        over="call", divide="call", invalid="call", call=lambda kind, _: said.add(kind)
    ):
        run = executor.phase(0, executor.prepare(*numbers))
        for tile in executor.tiles(arrays, gradients, 0):
            run(tile)
    return arrays, said


def assert_both_do_the_same(members, arrays, gradients, numbers):
    one, said = done(loops_of(members), arrays, gradients, numbers)
    other, expected = done(members, arrays, gradients, numbers)
    assert all(map(same_bits, one, other))
    assert not all(map(same_bits, one, arrays))
    assert said == expected
    return said


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("spread", ["both", "one", "none"])
def test_rows_with_numbers_of_their_own(dtype, wild, spread):
    draw = np.random.default_rng(1)
    numbers = {"rate": 0.1, "beta": 0.9}
    members = blocks_of(adam, ("p", "g", "m", "v"), dtype, numbers)
    whole = (MEMBERS, sum(LENGTHS))

    def values(shape):
        if wild:
            return peculiar(draw, dtype, int(np.prod(shape))).reshape(shape)
        return draw.standard_normal(shape).astype(dtype)

    p, m, v = values(whole), values(whole), np.abs(values(whole))
    gradients = [values((MEMBERS, length)) for length in LENGTHS]
    rates = [0.1 * (k + 1) / 3 for k in range(MEMBERS)]
    betas = [0.9 - 0.1 * k for k in range(MEMBERS)]
    given = [rates if spread != "none" else 0.1, betas if spread == "both" else 0.9]
    said = assert_both_do_the_same(members, [p, m, v], gradients, given)
    assert bool(said) == wild


def test_an_overflow_in_one_member_is_reported_as_numpy_reports_it():
    members = blocks_of(
        lambda a, n: {"p": a["p"] - n["rate"] * a["g"]}, ("p", "g"), "float32", {"rate": 0.1}
    )
    p, g = np.ones((3, 1500), np.float32), np.ones((3, 1500), np.float32)
    g[1, 600:1200] = 1e38
    said = assert_both_do_the_same(members, [p], [g], [[0.1, 1e5, 0.2]])
    assert said == {"overflow"}


def test_a_number_that_is_not_finite_in_the_dtype_is_left_to_numpy():
    members = blocks_of(
        lambda a, n: {"p": a["p"] * n["rate"]}, ("p", "g"), "float32", {"rate": 0.1}
    )
    p = np.ones((2, 40), np.float32)
    arrays, _ = done(loops_of(members), [p], [p], [[1e300, 0.5]])
    assert np.isinf(arrays[0][0]).all()
    np.testing.assert_array_equal(arrays[0][1], 0.5)


def test_transposed_and_read_only_gradients_are_rows_as_well():
    members = blocks_of(
        lambda a, n: {"p": a["p"] - n["rate"] * a["g"]}, ("p", "g"), "float64", {"rate": 0.1}
    )
    draw = np.random.default_rng(2)
    p = draw.standard_normal((4, 2300))
    turned = draw.standard_normal((2300, 4)).T
    fixed = draw.standard_normal((4, 2300))
    fixed.flags.writeable = False
    for g in (turned, fixed):
        assert_both_do_the_same(members, [p], [g], [[0.1, 0.2, 0.3, 0.4]])


def test_what_has_no_loop_and_what_is_not_compiled_stays_with_numpy(monkeypatch):
    members = blocks_of(
        lambda a, n: {"p": np.exp(a["p"]) * n["rate"]}, ("p", "g"), "float64", {"rate": 0.1}
    )
    assert not MemberLoops(members)
    with use_executor("numba"):
        assert executor_of(members, 10) is members
    members = blocks_of(
        lambda a, n: {"p": a["p"] - n["rate"]}, ("p", "g"), "float64", {"rate": 0.1}
    )
    loops_of(members)  # as an earlier process did
    monkeypatch.setattr(executors, "LOOK_UP", 1000)
    with use_executor("auto"):
        assert executor_of(members, 10) is members
        assert isinstance(executor_of(members, 1000), MemberLoops)
    with use_executor("numpy"):
        assert executor_of(members, 10**9) is members


def test_a_loop_that_gives_other_bits_is_not_used():
    members = blocks_of(
        lambda a, n: {"p": a["p"] - n["rate"] * a["g"]}, ("p", "g"), "float64", {"rate": 0.1}
    )
    loops = loops_of(members)
    wrong = loops.kernels[0].function

    def broken(result, none, size, rows, *rest):
        return wrong(result, none, size, rows - 1, *rest)

    loops.kernels = {0: type("Kernel", (), {"function": staticmethod(broken)})}
    p, g = np.ones((3, 50)), np.ones((3, 50))
    arrays, _ = done(loops, [p], [g], [[0.1, 0.2, 0.3]])
    np.testing.assert_array_equal(arrays[0][2], 1 - 0.3)
    assert loops.loops == [None]


@pytest.mark.parametrize("rule", [ol.optimizer.Adam, ol.optimizer.Momentum, ol.optimizer.RMSProp])
def test_an_ensemble_has_the_same_bits_by_loops_and_by_numpy(rule):
    found = []
    for executor in ("numba", "numpy"):
        draw = np.random.default_rng(3)
        parameters = [
            ol.Parameter(ol.ensemble(draw.standard_normal((6, *shape)).astype("float32")))
            for shape in ((40, 50), (50,), (30, 2))
        ]
        optimizer = rule(ol.ensemble(np.geomspace(1e-3, 1, 6)), parameters=parameters)
        with use_executor(executor):
            for _ in range(4):
                for p in parameters:
                    p.grad = ol.ensemble(draw.standard_normal(p.data.members.shape).astype("f4"))
                optimizer.step()
            plan = next(iter(optimizer.plans.values()))
            assert isinstance(plan.rows.loops, MemberLoops) == (executor == "numba")
        found.append([p.data.members for p in parameters])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
