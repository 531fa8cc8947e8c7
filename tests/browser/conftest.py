"""A real JupyterLab and a real browser, started for each test module and stopped after it.

The user's own folders are neither read nor written: those for settings, data and workspaces are
fresh. (Module scope, because Playwright's synchronous interface keeps an event loop while it is
open, and the tests that execute notebooks in other modules need their own.)
"""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.jupyter import FLAGS, OWN_FOLDERS
from optlab._doctor import find_browser

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items):
    """Run a test of this folder once more if it fails; the summary lists it as RERUN.

    It needs a browser, a server and a kernel, three programs that wait for each other: on a busy
    computer one of them is late now and then, with nothing wrong in what is tested.
    """
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="module")
def chromium():
    """Yield a browser driven by Playwright; without one, skip (or fail where CI=true)."""
    found = find_browser()
    if found is None:
        reason = "no Chromium or Chrome on this computer; `optlab doctor` says how to get one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)  # a busy computer takes its time

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(found), args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Lab:
    """A running JupyterLab: its printed address, its working folder, and that of its settings."""

    address: str
    folder: Path
    settings: Path


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Start `optlab lab` in an empty folder, as a user would, and wait for its address."""
    folder = tmp_path_factory.mktemp("work")
    home = tmp_path_factory.mktemp("jupyter")
    environment = {name: value for name, value in os.environ.items() if name != "JUPYTER_TOKEN"}
    environment |= {name: str(home / name.lower()) for name in OWN_FOLDERS}
    environment["PYTHONPATH"] = str(ROOT)  # import this clone, whatever the kernel's folder is
    environment["PYTHONUNBUFFERED"] = "1"
    log = home / "log.txt"
    with log.open("w") as output:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "optlab",
                "lab",
                "--no-browser",
                "--directory",
                str(folder),
            ],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Lab(_address(server, log), folder, home / "jupyter_config_dir")
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _address(server, log):
    end = time.monotonic() + 90
    while time.monotonic() < end and server.poll() is None:
        if found := re.search(r"http://localhost:\d+/lab/\S+token=\w+", log.read_text()):
            return found[0]
        time.sleep(0.1)
    raise RuntimeError(f"`optlab lab` did not start:\n{log.read_text()}")


@dataclass
class Notebook:
    """An open notebook: its page, and the errors that the browser reported."""

    page: object
    complaints: list = field(default_factory=list)

    def cell(self, number):
        """Return a code cell by its number among the code cells, from 0."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def put(self, code, number=0):
        """Replace the content of a cell by code."""
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(code)

    def run(self, number, timeout=60_000):
        """Run a code cell by Shift+Enter and return its first output."""
        self.cell(number).locator(".cm-content").click()
        self.cell(number).locator(".cm-focused").wait_for()
        self.page.keyboard.press("Shift+Enter")
        output = self.cell(number).locator(".jp-OutputArea-output").first
        output.wait_for(state="visible", timeout=timeout)
        return output

    def rest(self):
        """Wait until the kernel has run what it was asked to, pictures of open pages included.

        What a hand changes while the kernel is busy is sent when it is not, by ipywidgets, and may
        come behind a cell that was run later. (The status bar says idle while a cell runs, once
        the debugger has answered.)
        """
        at_rest = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
        self.page.locator(at_rest).wait_for(timeout=60_000)


@pytest.fixture
def notebook(chromium, lab, tmp_path):
    """Open the address that `optlab lab` printed; save a screenshot of the page in `tmp_path`."""
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    opened = Notebook(page)
    page.on(
        "console",
        lambda message: opened.complaints.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    page.goto(lab.address)
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
    # The toolbar shows idle before there is a kernel; the status bar does not.
    page.locator("#jp-main-statusbar", has_text="| Idle").wait_for(timeout=60_000)
    yield opened
    page.screenshot(path=tmp_path / "page.png")
    page.close()
