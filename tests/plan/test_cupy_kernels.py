"""Kernels generated for CuPy: run on the CPU by a C++ compiler, they give NumPy's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import optlab as ol
from optlab.plan import capture_blocks
from optlab.plan.cuda.codegen import NoKernelError, kernel_of, write_kernel
from optlab.plan.cuda.kernels import has_kernels, kernels_of
from optlab.plan.numba_kernels import same_bits
from optlab.plan.threads import run_pieces
from tests.emulated_gpu import emulated_gpu, needs_compiler  # noqa: F401  (a fixture)
from tests.guarded import GuardedArray
from tests.optimizer.helpers import EACH, random
from tests.plan.cuda_functions import CLOSE, EXACT
from tests.plan.programs import NAMES, programs, run

DTYPES = ["float32", "float64"]


def peculiar(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of special values."""
    limits = np.finfo(dtype)
    some = [0.0, 1.0, 1.5, 2.5, 0.1, limits.eps, limits.tiny, limits.smallest_subnormal,
            limits.max, np.inf]  # fmt: skip
    x, y = np.meshgrid(*[np.array([*some, *(-v for v in some), np.nan], dtype)] * 2)
    return x.reshape(-1), y.reshape(-1)


def ordinary(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    return draw.uniform(0.01, 0.99, 2500).astype(dtype), draw.uniform(1, 2, 2500).astype(dtype)


def both_ways(functions: list[Any], x: np.ndarray, y: np.ndarray) -> Any:
    """Yield what NumPy and a kernel make of each function, all captured into one plan."""
    names = [f"r{i}" for i in range(len(functions))]
    arrays = {"p": x, "g": y, **{name: np.zeros_like(x) for name in names}}
    plan = capture_blocks(
        lambda a, n: {
            name: f(a["p"], a["g"], n["n"]) for name, f in zip(names, functions, strict=True)
        },
        {name: np.ones(2, x.dtype) for name in arrays},
        {"n": 0.3},
    )
    here = [array.copy() for array in arrays.values()]
    there = [GuardedArray(array.copy()) for array in arrays.values()]
    kernels = kernels_of(plan, there[0])
    assert kernels is not None
    with np.errstate(all="ignore"):
        run_pieces(plan, [0.3], [here])
        run_pieces(kernels, [0.3], [there])
    return zip(here[2:], [one.hidden for one in there[2:]], strict=True)


@needs_compiler
@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("numbers", [peculiar, ordinary])
def test_exact_functions_have_numpy_s_bits(dtype: str, numbers: Any) -> None:
    wrong = [
        i
        for i, (numpy, kernel) in enumerate(both_ways(EXACT, *numbers(dtype)))
        if not same_bits(numpy, kernel)
    ]
    assert wrong == []


@needs_compiler
@pytest.mark.usefixtures("emulated_gpu")
@pytest.mark.parametrize("dtype", DTYPES)
def test_other_functions_are_close_to_numpy_s(dtype: str) -> None:
    for numpy, kernel in both_ways(CLOSE, *ordinary(dtype)):
        np.testing.assert_allclose(kernel, numpy, rtol=8 * np.finfo(dtype).eps)


@needs_compiler
@pytest.mark.usefixtures("emulated_gpu")
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(programs())
def test_random_programs_have_numpy_s_bits(program: Any) -> None:
    steps, outputs = program
    # exp has CUDA's bits
    steps = [(kind, 0 if (kind, which) == ("unary", 4) else which, *rest)
             for kind, which, *rest in steps]  # fmt: skip
    numbers = {"rate": 0.25, "decay": 0.1}
    for dtype in DTYPES:
        plan = capture_blocks(
            lambda a, n: run((steps, outputs), a, n),
            {name: np.ones(2, dtype) for name in NAMES},
            numbers,
        )
        x, y = peculiar(dtype)
        here = [x, y, x[::-1].copy(), y[::-1].copy()]
        there = [GuardedArray(array.copy()) for array in here]
        kernels = kernels_of(plan, there[0])
        if not plan.phases[0].outputs:
            assert kernels is None
            continue
        assert kernels is not None
        with np.errstate(all="ignore"):
            run_pieces(plan, numbers.values(), [here])
            run_pieces(kernels, numbers.values(), [there])
        assert all(same_bits(a, b.hidden) for a, b in zip(here, there, strict=True))


@needs_compiler
@pytest.mark.usefixtures("emulated_gpu")
def test_swapped_arrays_and_two_dtypes_and_strides() -> None:
    x, y = random(1000), random(1000, seed=1)
    plan = capture_blocks(
        lambda a, n: {"p": a["g"], "g": a["p"] * n["n"], "s": a["s"] + a["p"].astype(np.float32)},
        {"p": np.ones(2), "g": np.ones(2), "s": np.ones(2, np.float32)},
        {"n": 0.5},
    )
    p, g, s = (GuardedArray(one) for one in (x.copy(), y.copy(), np.zeros(1000, np.float32)))
    kernels = kernels_of(plan, p)
    assert kernels is not None
    run_pieces(kernels, [0.1], [[p, g, s]])
    np.testing.assert_array_equal(p.hidden, y)
    np.testing.assert_array_equal(g.hidden, x * 0.1)
    np.testing.assert_array_equal(s.hidden, x.astype(np.float32))
    with pytest.raises(ValueError, match="side by side"):
        kernels.launch([GuardedArray(np.ones((2, 2000))[:, ::2]), g, s])
    step = capture_blocks(
        lambda a, n: {"p": a["p"] - a["g"]}, {"p": np.ones(2), "g": np.ones(2)}, {}
    )
    kernels = kernels_of(step, p)
    assert kernels is not None
    p, every_second = GuardedArray(np.ones(1000)), GuardedArray(np.arange(2000.0)[::2])
    kernels.launch([p, every_second])  # what is only read may have gaps
    np.testing.assert_array_equal(p.hidden, 1 - np.arange(0, 2000, 2.0))
    kernels.launch([GuardedArray(np.ones(0)), GuardedArray(np.ones(0))])


@needs_compiler
@pytest.mark.usefixtures("emulated_gpu")
def test_the_numbers_of_a_step_are_replaced_at_their_address() -> None:
    """A CUDA graph holds the address of the numbers, not their values."""
    plan = capture_blocks(
        lambda a, n: {"p": a["p"] - n["rate"] * a["p"]}, {"p": np.ones(2)}, {"rate": 0.1}
    )
    p = GuardedArray(np.ones(5))
    kernels = kernels_of(plan, p)
    assert kernels is not None
    address = kernels.numbers.hidden.ctypes.data
    for rate in (0.5, 0.25):
        kernels.load(kernels.prepare(rate))
        kernels.launch([p])
    assert kernels.numbers.hidden.ctypes.data == address
    np.testing.assert_array_equal(p.hidden, np.full(5, 0.375))


def test_what_has_no_form_is_left_to_operations() -> None:
    for f in (np.spacing, np.logaddexp2, np.float_power):
        plan = capture_blocks(lambda a, n, f=f: {"p": f(*[a["p"]] * f.nin)}, {"p": np.ones(2)}, {})
        assert kernel_of(plan, 0) is None
        with pytest.raises(NoKernelError, match="no form in CUDA"):
            write_kernel(plan.instructions, plan.phases[0].inputs, plan.phases[0].outputs,
                         plan.dtypes)  # fmt: skip


def test_the_cpu_has_no_kernels() -> None:
    plan = capture_blocks(lambda a, n: {"p": a["p"] + 1}, {"p": np.ones(2)}, {})
    assert kernels_of(plan, np.ones(2)) is None
    assert not has_kernels(np.ones(2))
    assert not has_kernels(GuardedArray(np.ones(2)))


# Steps of optimizers.


def steps_of(name: str, dtype: str, **common: Any) -> tuple[list[np.ndarray], Any]:
    """Return the parameters after three steps on the stand-in device, and the optimizer."""
    parameters = [
        ol.Parameter(GuardedArray(random(*shape, seed=i, dtype=dtype)), name=f"w{i}")
        for i, shape in enumerate([(7, 3), (40,), (30, 20)])
    ]
    optimizer = EACH[name](parameters=parameters, **common)
    for step in range(3):
        for i, p in enumerate(parameters):
            g = GuardedArray(random(*p.shape, seed=10 * step + i + 3, dtype=dtype))
            (p * ol.to_tensor(g)).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    return [p.data.hidden for p in parameters], optimizer


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EACH)
def test_a_step_is_one_kernel_with_the_bits_of_its_operations(
    name: str, dtype: str, request: pytest.FixtureRequest
) -> None:
    plain, _ = steps_of(name, dtype, weight_decay=0.01)
    gpu = request.getfixturevalue("emulated_gpu")
    fast, optimizer = steps_of(name, dtype, weight_decay=0.01)
    if name == "Ftrl of another power":  # CUDA's function has the last bit
        for one, other in zip(plain, fast, strict=True):
            np.testing.assert_allclose(one, other, rtol=100 * np.finfo(dtype).eps)
    else:
        assert all(map(same_bits, plain, fast))
    (said,) = optimizer.execution.values()
    if optimizer.kind == "elementwise" and not optimizer.draws:
        assert said == "captured, one kernel on the GPU"
        assert gpu.launched == 3
    else:
        assert said.startswith("as it is written")
        assert gpu.launched == 0


@needs_compiler
def test_clipping_and_a_float32_copy_are_part_of_it(request: pytest.FixtureRequest) -> None:
    clip = ol.nn.ClipGradByGlobalNorm(0.5)
    plain, _ = steps_of("Adam", "float64", grad_clip=clip)
    half, _ = steps_of("Adam", "float16", multi_precision=True)
    gpu = request.getfixturevalue("emulated_gpu")
    fast, _ = steps_of("Adam", "float64", grad_clip=clip)
    assert all(map(same_bits, plain, fast))
    fast, optimizer = steps_of("Adam", "float16", multi_precision=True)
    assert all(map(same_bits, half, fast))
    assert optimizer.execution == {"group 0, float16": "captured, one kernel on the GPU"}
    assert gpu.launched == 6


@needs_compiler
def test_a_policy_that_looks_at_results_runs_as_it_is_written(emulated_gpu: Any) -> None:  # noqa: F811
    _, optimizer = steps_of("Adam", "float64", not_finite="raise")
    (said,) = optimizer.execution.values()
    assert "not_finite='raise'" in said
    assert emulated_gpu.launched == 0


def test_equal_kernels_are_compiled_once() -> None:
    def kernel(factor: float) -> Any:
        plan = capture_blocks(
            lambda a, n: {"p": factor * a["p"] * n["n"]}, {"p": np.ones(2)}, {"n": 1.0}
        )
        return kernel_of(plan, 0)

    assert kernel(2.0) == kernel(2.0)
    assert kernel(2.0).name != kernel(3.0).name
