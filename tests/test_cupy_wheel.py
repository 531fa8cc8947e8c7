"""The real CuPy and NVIDIA's compiler, which need no GPU for this.

Where they are installed (``pip install "optlab[cupy-check]"``), the tables of the stand-in arrays
(tests/guarded.py) must name what CuPy lacks, no more and no less, and NVRTC must compile the
kernels that are generated.
"""

from __future__ import annotations

import inspect
import re
from functools import reduce
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.plan import capture_blocks
from optlab.plan.cuda.codegen import OPTIONS, kernel_of
from tests import guarded
from tests.optimizer.helpers import EACH, random
from tests.parallel import stand_in_nccl
from tests.plan.cuda_functions import FUNCTIONS_OF_KERNELS

cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install optlab[cupy-check]")

SPACES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft,
          "np.lib.stride_tricks": np.lib.stride_tricks}  # fmt: skip

#: NumPy's functions that reach an array's protocols, by name.
FUNCTIONS = {
    f"{space}.{name}": function
    for space, module in SPACES.items()
    for name, function in vars(module).items()
    if not name.startswith("_")
    and (isinstance(function, np.ufunc) or hasattr(function, "_implementation"))
}


def of_cupy(function: Any) -> Any:
    """Return what a CuPy array calls for a function of NumPy; None if it answers NotImplemented."""
    if isinstance(function, np.ufunc):  # cupy.ndarray.__array_ufunc__
        return getattr(cupy, function.__name__, None)
    try:  # cupy.ndarray.__array_function__
        module: Any = reduce(getattr, function.__module__.split(".")[1:], cupy)
        found = getattr(module, function.__name__)
    except AttributeError:
        return None
    return None if found is function else found


def arguments(function: Any) -> dict[str, Any]:
    """Return the arguments of a function that can be given by name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a ufunc, or a function in C
        return {}
    return {name: one for name, one in parameters.items() if one.kind is not one.POSITIONAL_ONLY}


def test_there_are_functions_to_compare() -> None:
    assert len(FUNCTIONS) > 300
    assert of_cupy(np.linalg.svd) is cupy.linalg.svd


@pytest.mark.parametrize("space", SPACES)
def test_the_stand_in_lacks_the_functions_that_cupy_lacks(space: str) -> None:
    here = {name: f for name, f in FUNCTIONS.items() if name.rpartition(".")[0] == space}
    lacking = {name for name, f in here.items() if of_cupy(f) is None}
    assert {name for name, f in here.items() if f in guarded.MISSING} == lacking


def test_the_stand_in_lacks_the_arguments_that_cupy_lacks() -> None:
    wrong = {}
    for name, function in FUNCTIONS.items():
        there = of_cupy(function)
        has_names = there is not None and not isinstance(function, np.ufunc)
        taken = arguments(there) if has_names else {}
        if not taken or any(one.kind is one.VAR_KEYWORD for one in taken.values()):
            continue  # lacking, a ufunc, in C, or it takes all
        given = {
            argument
            for argument, one in arguments(function).items()
            if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        }
        # newer releases of NumPy have arguments that older ones lack
        noted = guarded.LACKING.get(function, set()) & given
        if given - set(taken) != noted:
            wrong[name] = f"lacks {sorted(given - set(taken))}, noted {sorted(noted)}"
    assert wrong == {}


@pytest.mark.parametrize("name", ["__init__", "all_gather", "broadcast"])
def test_the_stand_in_of_nccl_has_the_signatures_of_cupyx(name: str) -> None:
    distributed = pytest.importorskip("cupyx.distributed", exc_type=ImportError)
    there, here = (
        [(one.name, one.default) for one in inspect.signature(call).parameters.values()]
        for call in (
            getattr(distributed.NCCLBackend, name), getattr(stand_in_nccl.NCCLBackend, name)
        )
    )  # fmt: skip
    assert here == there


def test_cupy_has_what_is_used_of_nccl_and_of_events() -> None:
    distributed = pytest.importorskip("cupyx.distributed", exc_type=ImportError)
    taken = inspect.signature(distributed.init_process_group).parameters
    assert list(taken)[:2] == ["n_devices", "rank"]
    assert "use_mpi" in taken
    source = inspect.getsource(distributed._nccl_comm)
    dtypes = "".join(re.findall(r"'(.)': nccl.NCCL_[A-Z]+\d", source))
    assert dtypes == stand_in_nccl.DTYPES
    assert "self._comm = nccl.NcclCommunicator(" in source
    assert hasattr(cupy.cuda.Event, "record")
    assert hasattr(cupy.cuda.Event, "done")
    assert hasattr(cupy.cuda.Device, "pci_bus_id")
    if cupy.cuda.nccl.available:
        assert hasattr(cupy.cuda.nccl.NcclCommunicator, "abort")


def compiled(source: str, arch: str) -> str:
    """Return the machine-independent code (PTX) that NVRTC makes of a source."""
    nvrtc = cupy.cuda.nvrtc  # CuPy's own function would ask the driver
    program = nvrtc.createProgram(source, "kernel.cu", [], [])
    try:
        nvrtc.compileProgram(program, (*OPTIONS, f"--gpu-architecture=compute_{arch}"))
    except nvrtc.NVRTCError as error:
        raise AssertionError(f"{error}\n{nvrtc.getProgramLog(program)}\n{source}") from None
    made = nvrtc.getPTX(program).decode()
    nvrtc.destroyProgram(program)
    return str(made)


@pytest.fixture(scope="module")
def _nvrtc() -> None:
    try:
        cupy.cuda.nvrtc.getVersion()
    except Exception as error:  # noqa: BLE001  # its library cannot be loaded
        pytest.skip(f"NVRTC is not installed: pip install optlab[cupy-check] ({error})")


#: Whose steps are kernels.
ELEMENTWISE = [
    name
    for name, make in EACH.items()
    if make(parameters=[ol.Parameter(np.ones(2))]).kind == "elementwise"
]


@pytest.mark.usefixtures("_nvrtc")
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_nvrtc_compiles_the_kernel_of_each_rule(name: str) -> None:
    for dtype in ("float32", "float64"):
        w = ol.Parameter(random(90, 100, dtype=dtype), name="w")
        optimizer = EACH[name](parameters=[w], weight_decay=0.01)
        (w * w).sum().backward()
        optimizer.step()
        assert optimizer.plans
        for plan in optimizer.plans.values():
            assert plan is not None
            kernel = kernel_of(plan, 0)
            assert kernel is not None
            assert f".visible .entry {kernel.name}" in compiled(kernel.source, "80")


@pytest.mark.usefixtures("_nvrtc")
def test_nvrtc_compiles_each_function_and_contracts_nothing() -> None:
    for dtype in (np.float32, np.float64):
        sources = []
        example = np.ones(2, dtype)
        for f in FUNCTIONS_OF_KERNELS:
            plan = capture_blocks(
                lambda a, n, f=f: {"p": f(a["p"], a["g"], n["n"])},
                {"p": example, "g": example},
                {"n": 0.5},
            )
            kernel = kernel_of(plan, 0)
            assert kernel is not None
            sources.append(kernel.source)
        compiled("\n".join(dict.fromkeys(sources)), "90")
        example = np.ones(2, dtype)
        plan = capture_blocks(
            lambda a, n: {"p": a["p"] * a["g"] + n["n"] * a["g"]},
            {"p": example, "g": example},
            {"n": 0.5},
        )
        kernel = kernel_of(plan, 0)
        assert kernel is not None
        code = compiled(kernel.source, "80")
        assert "mul.rn" in code
        assert "fma" not in code
