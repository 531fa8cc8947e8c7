"""The checks of the doctor, one function each, which yields rows."""

from __future__ import annotations

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
    """Import numba if it is installed."""
    if installed("numba"):
        yield from _imports("numba", "fast")


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
