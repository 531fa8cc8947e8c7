"""JupyterLab on loopback and notebooks in a browser, with fresh folders and profiles."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT

CELL = "import optlab as ol\nol.explore()"
WINDOW = {"width": 1400, "height": 1000}
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)
OWN_FOLDERS = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "IPYTHONDIR",
)


@contextmanager
def jupyterlab(home: Path, work: Path) -> Iterator[tuple[str, str]]:
    """Run JupyterLab on loopback with its own folders; yield its address and its token."""
    variables = {name: value for name, value in os.environ.items() if name != "JUPYTER_TOKEN"}
    variables |= {name: str(home / name.lower()) for name in OWN_FOLDERS}
    variables |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    # pip compiles what it installs. Kernels here find bytecode, too: the first one writes it.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "optlab", "lab", "--no-browser", "--directory", str(work)]
    log = home / "log.txt"
    with log.open("w") as output:
        server = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        end = time.monotonic() + 90
        while time.monotonic() < end and server.poll() is None:
            if found := re.search(r"(http://localhost:\d+)/lab/\S+token=(\w+)", log.read_text()):
                yield found[1], found[2]
                return
            time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def tiny_notebook(source: str = CELL) -> str:
    """Return a notebook of one cell, which opens an explorer."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "explore",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps(
        {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    )


@contextmanager
def open_notebook(
    browser: Any, lab: tuple[str, str], work: Path, name: str, script: str, cell: str = CELL
) -> Iterator[Any]:
    """Open a notebook in a fresh profile with a fresh idle kernel; end both afterwards."""
    address, token = lab
    (work / f"{name}.ipynb").write_text(tiny_notebook(cell))
    context = browser.new_context(viewport=WINDOW)
    page = context.new_page()
    page.goto(f"{address}/lab/workspaces/{name}/tree/{name}.ipynb?token={token}")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
    page.locator("#jp-main-statusbar", has_text="| Idle").wait_for(timeout=60_000)
    page.locator(".jp-Notebook .cm-content").first.click()
    page.wait_for_timeout(1500)  # the page is still loading resources while the kernel is idle
    page.evaluate(script)
    try:
        yield page
    finally:
        own = {"Authorization": f"token {token}"}
        for one in context.request.get(f"{address}/api/sessions", headers=own).json():
            context.request.delete(f"{address}/api/sessions/{one['id']}", headers=own)
        context.close()
