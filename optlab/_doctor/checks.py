"""The checks of the doctor, one function each, which yields rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from optlab import __version__
from optlab._doctor.browser import find_browser
from optlab._doctor.report import NEEDED, Row
from optlab._doctor.requirements import (
    install_command,
    installed,
    look_at,
    pip_install,
    python,
    requirements,
)

# JupyterLab displays optlab's output through these, from packages of the extra `lab`.
LAB_EXTENSIONS = {
    "@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets",
    "anywidget": "anywidget",
    "jupyterlab-plotly": "plotly",
}


def check_python() -> Iterable[Row]:
    """Report the version of the Python that runs (older ones cannot import this)."""
    yield Row(NEEDED, "Python", "ok", ".".join(map(str, sys.version_info[:3])))


def check_packages() -> Iterable[Row]:
    """Compare the installed packages with the requirements of each part."""
    for part, wanted in requirements().items():
        for requirement in wanted:
            row = look_at(requirement, part)
            if row.state != "ok":
                state = "broken" if part == NEEDED else row.state
                row = replace(row, state=state, mend=install_command(part))
            yield row
    yield from _imports("numpy", NEEDED)


def check_optlab() -> Iterable[Row]:
    """Check whether optlab itself is installed, or only imported from its folder."""
    if installed("optlab"):
        yield Row(NEEDED, "optlab", "ok", __version__)
        return
    # renderers are found in the metadata of installed packages
    detail = f"{__version__}, not installed: results are shown without pictures"
    clone = str(Path(__file__).resolve().parents[2])
    yield Row(NEEDED, "optlab", "missing", detail, pip_install([clone], "-e"))


def check_lab_extensions() -> Iterable[Row]:
    """Check whether JupyterLab has the extensions that display optlab's output."""
    if not installed("jupyterlab"):
        return
    from jupyter_core.paths import jupyter_path
    from jupyterlab_server.config import get_page_config

    page = get_page_config(jupyter_path("labextensions"))
    present = {extension["name"] for extension in page.get("federated_extensions", ())}
    listed = page.get("disabledExtensions", ())
    disabled = {name for name in listed if not isinstance(listed, dict) or listed[name]}
    for name, package in LAB_EXTENSIONS.items():
        if any(entry == name or entry.startswith(name + ":") for entry in disabled):
            enable = f"jupyter labextension enable {name}"
            yield Row("lab", name, "broken", "disabled in JupyterLab", enable)
        elif name in present:
            yield Row("lab", name, "ok", "JupyterLab extension, enabled")
        elif installed(package):
            again = pip_install([package], "--force-reinstall", "--no-deps")
            yield Row("lab", name, "broken", "JupyterLab does not find this extension", again)


def check_numba() -> Iterable[Row]:
    """Import numba if it is installed, and look for the folder where compiled loops are kept."""
    if not installed("numba"):
        return
    trouble = list(_imports("numba", "fast"))
    if trouble:
        yield from trouble
        return
    from optlab.plan.numba_cache import folder

    place = folder()
    if place is not None:
        count = len(list(Path(place).glob("*.o")))
        yield Row("fast", "compiled loops", "ok", f"{count} kept in {place}")
    else:
        detail = "no folder to keep them in, so NumPy runs unless numba is asked for"
        mend = "NUMBA_CACHE_DIR in the environment names a folder that only you may write"
        yield Row("fast", "compiled loops", "missing", detail, mend)


def check_blas_threads() -> Iterable[Row]:
    """Report how many threads products of matrices use, why, and what that costs here."""
    from optlab.backend.blas_threads import (
        blas_threads,
        set_blas_threads,
        time_of_a_small_product,
        why,
    )

    threads = blas_threads()
    if threads is None:
        detail = f"unknown without the package threadpoolctl ({why()})"
        mend = "OPENBLAS_NUM_THREADS=1 in the environment is best for small networks"
        yield Row(NEEDED, "BLAS threads", "ok", detail, mend)
        return
    detail = f"{threads} ({why()})"
    if threads == 1:
        yield Row(NEEDED, "BLAS threads", "ok", detail)
        return
    with_all = time_of_a_small_product()
    set_blas_threads(1)
    try:
        alone = time_of_a_small_product()
    finally:
        set_blas_threads(threads)
    detail += (
        f"; a product of [256, 128] and [128, 128] now takes {1e6 * with_all:.0f} us, with one "
        f"{1e6 * alone:.0f} us"
    )
    mend = "ol.set_blas_threads(1), or OPENBLAS_NUM_THREADS=1 before Python starts"
    slow = with_all > 1.5 * alone
    yield Row(NEEDED, "BLAS threads", "slow" if slow else "ok", detail, mend if slow else "")


def check_blas_kernels() -> Iterable[Row]:
    """Report which processor's kernels products of matrices take, and faster ones if there are."""
    from optlab.backend.blas_kernels import VARIABLE, compare_kernels, why

    choice = compare_kernels()
    if choice is None:  # MKL, Accelerate and others, which have no such choice
        return
    detail, mend = f"OpenBLAS, those for {choice.now.kernels} ({why()})", ""
    if choice.better is not None:
        detail += (
            f"; a product of [256, 256] and [256, 256] takes {1e6 * choice.now.seconds:.0f} us, "
            f"with those for {choice.better.kernels} {1e6 * choice.better.seconds:.0f} us"
        )
        mend = (
            f"{VARIABLE}={choice.value} in the environment before Python starts"
            if choice.value
            else f"take {VARIABLE} out of the environment before Python starts"
        )
    yield Row(NEEDED, "BLAS kernels", "slow" if mend else "ok", detail, mend)


def check_gpu() -> Iterable[Row]:
    """Import CuPy if it is installed, and query its devices."""
    part = next((p for p in ("cuda12", "cuda13") if installed(f"cupy-{p}x")), None)
    if part is None:
        return
    trouble = list(_imports("cupy", part))
    if trouble:
        yield from trouble
        return
    import cupy

    if cupy.cuda.is_available():
        count = cupy.cuda.runtime.getDeviceCount()
        yield Row(part, "CUDA device", "ok", f"{count} found")
    else:
        mend = "an NVIDIA GPU and its driver are needed (`nvidia-smi` shows both)"
        yield Row(part, "CUDA device", "missing", "CuPy finds none; all runs on the CPU", mend)


def check_mpi() -> Iterable[Row]:
    """Let two ranks of MPI add a number, if mpi4py is installed."""
    if not installed("mpi4py"):
        return
    from optlab.parallel.launcher import mpiexec

    try:
        program = mpiexec()
    except FileNotFoundError:
        detail = "mpi4py is installed, and there is no mpiexec"
        yield Row("parallel", "MPI", "broken", detail, pip_install(["mpich"]))
        return
    fault = fault_of_two_ranks(program)
    if fault:
        yield Row("parallel", "MPI", "broken", fault, _of_one_mpi())
    else:
        yield Row("parallel", "MPI", "ok", f"two ranks added a number ({program})")


def fault_of_two_ranks(program: str) -> str:
    """Let two ranks add a number; return what went wrong, or an empty text."""
    code = "from mpi4py import MPI; assert MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank) == 1"
    command = [program, "-n", "2", sys.executable, "-m", "mpi4py", "-c", code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except subprocess.TimeoutExpired:
        return "two ranks did not meet in 30 seconds"
    if done.returncode == 0:
        return ""
    said = next(iter((done.stderr or done.stdout).strip().splitlines()[-1:]), "")
    return f"two ranks failed: {said}"


def _of_one_mpi() -> str:
    """Return the repair of mpi4py and mpiexec that are of two installations of MPI."""
    return pip_install(["mpi4py", "mpich"], "--force-reinstall")


def check_browser() -> Iterable[Row]:
    """Check for a browser that the tests can drive."""
    browser = find_browser()
    if browser:
        yield Row("test", "Chromium or Chrome", "ok", str(browser))
    else:
        mend = f"{python()} -m playwright install chromium"
        yield Row(
            "test", "Chromium or Chrome", "missing", "none found, for the browser tests", mend
        )


def _imports(module: str, part: str) -> Iterable[Row]:
    """Import a package whose metadata is present; yield a row only if that fails."""
    from importlib import import_module

    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001 - any error of a broken installation is reported
        mend = pip_install([module], "--force-reinstall") if module != "cupy" else ""
        yield Row(part, f"import {module}", "broken", in_words(error), mend)


def in_words(error: Exception) -> str:
    """Return the class and the first line of an error."""
    first_line = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {first_line}"
