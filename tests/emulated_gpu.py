"""A GPU for tests of generated kernels: guarded arrays, and a `RawKernel` that runs on the CPU.

A C++ compiler translates the very source that NVRTC would: a short prelude defines what CUDA adds
to the language, and the threads run one after another. Quotients, products and roots are rounded
one by one, as `optlab.plan.cuda.codegen.OPTIONS` asks of NVRTC.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from optlab.backend.device import Device, register
from tests import guarded
from tests.guarded import GuardedArray

COMPILER = shutil.which("g++") or shutil.which("clang++")

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler here")

PRELUDE = """
#define __global__
struct Place { long long x; };
static Place gridDim, blockDim, blockIdx, threadIdx;
"""
#: CUDA knows these without an include; to include <cmath> takes longer than all the rest.
PRELUDE += "extern \"C\" {" + "".join(
    f"double {name}(double); float {name}f(float);\n"
    for name in (
        "sqrt fabs floor ceil trunc rint exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh "
        "tanh asin acos atan asinh acosh atanh cbrt"
    ).split()
)  # fmt: skip
PRELUDE += (
    "".join(
        f"double {name}(double, double); float {name}f(float, float);\n"
        for name in "copysign pow atan2 hypot fmod".split()
    )
    + "}\n"
)
#: Calls the kernel once for each thread.
DRIVER = """
extern "C" void drive(long long blocks, long long threads, {parameters}) {{
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
            {name}({names});
}}
"""


@cache
def compiled(source: str, name: str, options: tuple[str, ...]) -> Any:
    """Return the kernel as a function of addresses and a size."""
    assert "--fmad=false" in options
    parameters = source[source.index(name) + len(name) + 1 : source.index(")")]
    names = [one.split()[-1] for one in parameters.split(",")]
    driver = DRIVER.format(parameters=parameters, name=name, names=", ".join(names))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cpp"
        path.write_text(PRELUDE + source + driver)
        flags = ["-O1", "-ffp-contract=off", "-fPIC", "-shared", "-Werror"]
        command = [str(COMPILER), *flags, str(path), "-o", f"{folder}/kernel.so"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + source
        return ctypes.CDLL(f"{folder}/kernel.so").drive


class RawKernel:
    """Compiles and launches as ``cupy.RawKernel`` does."""

    launched = 0

    def __init__(self, code: str, name: str, options: tuple[str, ...] = ()) -> None:
        self.function = compiled(code, name, options)

    def __call__(self, grid: tuple[int], block: tuple[int], args: tuple[Any, ...]) -> None:
        *arrays, size = args
        assert isinstance(size, np.int64)
        assert all(type(one) is GuardedArray and one.flags.c_contiguous for one in arrays)
        assert all(0 < grid[0] < 1 << 31 and one.size for one in arrays)
        given = [ctypes.c_void_p(one.hidden.ctypes.data) for one in arrays]
        counts = [ctypes.c_longlong(grid[0]), ctypes.c_longlong(block[0])]
        self.function(*counts, *given, ctypes.c_longlong(int(size)))
        RawKernel.launched += 1


def _set(array: GuardedArray, values: np.ndarray) -> None:
    assert type(values) is np.ndarray
    array.hidden[...] = values


MODULE = SimpleNamespace(
    asarray=guarded.asarray, full=guarded.full, arange=guarded.arange, RawKernel=RawKernel
)


@pytest.fixture
def emulated_gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let guarded arrays lie on a device whose module compiles kernels."""
    monkeypatch.setattr(GuardedArray, "set", _set, raising=False)
    register(Device("guarded", MODULE, GuardedArray))
    RawKernel.launched = 0
    yield RawKernel
    register(Device("guarded", guarded.MODULE, GuardedArray))
