"""Responsiveness of the explorer in JupyterLab and a browser: ``python -m benchmarks browser``.

There is no peer; every figure has its own target. Times are taken in the page, from the time
stamp of the input event to the first frame after the one that drew the answer.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.jupyter import FLAGS, jupyterlab, open_notebook
from benchmarks.processes import installed_version

NAME = "browser"
TITLE = "the explorer in JupyterLab: first paint, frames, a moved start and slider, sizes"
FIRST_PAINTS, MOVES, SECONDS = 5, 120, 5.0
SIX = """import optlab as ol
names = ["SGD", "Momentum", "RMSProp", "Adam", "Adagrad", "NAdam"]
ol.explore("rosenbrock", names, steps=500)"""
TWENTY = """import optlab as ol
ol.explore("beale", {f"Adam {n}": ol.optimizer.Adam(0.005 * (n + 1)) for n in range(20)})"""
EXPLORER = ".optlab-explorer"

# The script in the page. A loop over frames records how long each took, and resolves the promise
# of `watch.until` in the first frame with nothing left to draw: the frame after the drawing.
WATCH = """() => {
  const watch = { frames: [], keyed: null, wanted: null, before: null };
  window.watch = watch;
  const root = () => {
    for (const host of document.querySelectorAll("[data-ol] div")) {
      const found = host.shadowRoot?.querySelector(".optlab-explorer");
      if (found) return found;
    }
    return null;
  };
  watch.explorer = () => root()?.explorer;
  watch.version = (shown) => (shown ? `${shown.generation}|${shown.state.start}` : "none");
  addEventListener("keydown", (event) => {
    if (event.key === "Enter") watch.keyed = event.timeStamp;
  }, true);
  const look = (now) => {
    if (watch.before !== null) watch.frames.push(now - watch.before);
    watch.before = now;
    const shown = watch.explorer();
    const drawn = shown && shown.laidOut && !shown.due.size;
    if (watch.wanted && drawn && watch.version(shown) !== watch.old) {
      const { wanted, keyed } = watch;
      watch.wanted = null;
      wanted(performance.now() - keyed);
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  // From an input event to the end of the frame that draws the paths: a message comes after it.
  watch.follow = (kind) => {
    const shown = watch.explorer(), { draw } = shown, { port1, port2 } = new MessageChannel();
    watch.moves = [];
    let since = null;
    const note = (event) => (since ??= event.timeStamp);
    addEventListener(kind, note, true);
    port1.onmessage = ({ data }) => watch.moves.push(performance.now() - data);
    shown.draw = function () {
      const paths = this.due.has("paths") || this.due.has("all");
      draw.call(this);
      if (paths && since !== null) port2.postMessage(since);
      since = null;
    };
    watch.end = () => {
      removeEventListener(kind, note, true);
      delete shown.draw;
      return watch.moves;
    };
  };
  watch.until = () => {
    watch.old = watch.version(watch.explorer());
    watch.painted = new Promise((resolve) => (watch.wanted = resolve));
  };
}"""
COLOURS = """() => {
  const canvas = watch.explorer().map.ground;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""


@dataclass(frozen=True)
class Figure:
    """One measured number with its target.

    Attributes
    ----------
    name : str
        What was measured.
    value : float
        The number, in `unit`.
    unit : str
        "s", "ms", "frames/s" or "kB".
    target : float
        The bound.
    sense : {"at most", "at least"}
        The side of the bound on which the value meets the target.
    digits : int
        Number of decimals; value and target are compared as they are printed.
    """

    name: str
    value: float
    unit: str
    target: float
    sense: str = "at most"
    digits: int = 0

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        value = round(self.value, self.digits)
        return value >= self.target if self.sense == "at least" else value <= self.target


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that is at or above the given percentage of the values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]


def figures(numbers: dict[str, Any]) -> list[Figure]:
    """Return the measurements as figures with their targets."""
    first = statistics.median(numbers["first_paint"])
    found = [Figure("first paint, median", first, "s", 1.2, digits=2)]
    for doing, seen in numbers["frames"].items():
        rate = 1000 / statistics.median(seen["milliseconds"])
        slow = percentile(seen["milliseconds"], 99)
        found.append(Figure(f"{doing}, median frame", rate, "frames/s", 60, "at least"))
        found.append(Figure(f"{doing}, 99th percentile of a frame", slow, "ms", 33))
    for moved, times in numbers["moves"].items():
        name = f"moved {moved} to paths"
        found.append(Figure(f"{name}, median", statistics.median(times), "ms", 16))
        found.append(Figure(f"{name}, 95th percentile", percentile(times, 95), "ms", 33))
    sizes = numbers["bytes"]
    payload = (sizes["view"] + sizes["code"]) / 1e3
    found.append(Figure("payload of the default view, code included", payload, "kB", 1000))
    found.append(Figure("saved notebook", sizes["notebook"] / 1e3, "kB", 300))
    return found


def as_table(result: dict[str, Any]) -> str:
    """Format the result of `measure` for the terminal."""
    numbers = result["numbers"]
    lines = [f"{NAME}: {TITLE}"]
    for one in figures(numbers):
        value = f"{one.value:.{one.digits}f} {one.unit}"
        target = f"target {one.sense} {one.target:g} {one.unit}"
        outcome = "met" if one.met else "not met"
        lines.append(f"  {one.name:<44}{value:>12}   {target:<30}{outcome}")
    drawn = [
        f"{doing} {seen['drawn']} of {len(seen['milliseconds'])}"
        for doing, seen in numbers["frames"].items()
    ]
    lines.append(f"  frames with something new to draw: {', '.join(drawn)}")
    if result["load"] is not None:
        before, after = result["load"]
        lines.append(f"  load of the computer before and after: {before:.1f}, {after:.1f}")
    return "\n".join(lines)


def first_paint(page: Any) -> float:
    """Run the cell; return the seconds from Shift+Enter to the painted map."""
    page.evaluate("watch.until()")
    page.keyboard.press("Shift+Enter")
    page.locator(EXPLORER).wait_for(timeout=60_000)
    milliseconds: float = page.evaluate("watch.painted")
    if page.evaluate(COLOURS) < 20:
        raise RuntimeError("the map's canvas is blank although the explorer says it is drawn")
    return milliseconds / 1000


def sizes(page: Any, notebook: Path) -> dict[str, int]:
    """Return sizes in bytes: the view's arrays and state, the widget's code, the saved notebook."""
    view, code = page.evaluate(
        """() => {
          const outer = watch.explorer().host.closest("[data-ol]");
          const data = outer.querySelector('script[type="application/json"]').textContent;
          const { app, stored } = JSON.parse(data);
          return [stored.length, app.length];
        }"""
    )
    page.keyboard.press("Control+s")
    end = time.monotonic() + 20
    while "data:image/png" not in notebook.read_text() and time.monotonic() < end:
        time.sleep(0.1)
    return {"view": view, "code": code, "notebook": notebook.stat().st_size}


def frames_while(page: Any, act: Callable[[], None]) -> dict[str, Any]:
    """Call `act`; return the duration of every frame meanwhile, and how many of them were drawn."""
    drawn = "watch.frames = [], watch.explorer().drawn"
    before = page.evaluate(drawn)
    act()
    lengths = page.evaluate("watch.frames")
    return {"milliseconds": lengths, "drawn": page.evaluate(drawn) - before}


def frames(page: Any) -> dict[str, dict[str, Any]]:
    """Return the frames while playing, and while dragging the step."""
    root = page.locator(EXPLORER)
    scrub = root.get_by_label("step", exact=True)
    scrub.scroll_into_view_if_needed()

    def wait() -> None:
        page.wait_for_timeout(SECONDS * 1000)

    scrub.press("Home")
    root.get_by_label("play", exact=True).click()
    found = {"playing": frames_while(page, wait)}
    root.get_by_label("pause").click()
    box = scrub.bounding_box()
    left, right = box["x"] + 0.03 * box["width"], box["x"] + 0.97 * box["width"]
    middle = box["y"] + box["height"] / 2

    def drag() -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for to in (left, right):  # one mouse move per frame
                page.mouse.move(to, middle, steps=60)

    page.mouse.move(right, middle)
    page.mouse.down()
    found["scrubbing"] = frames_while(page, drag)
    page.mouse.up()
    return found


def moves(page: Any) -> dict[str, list[float]]:
    """Drag the start, and a rate's slider by its keys; return the milliseconds to the paths."""
    root = page.locator(EXPLORER)
    root.scroll_into_view_if_needed()
    box = root.locator(".ol-map canvas[tabindex]").bounding_box()
    x, y = page.evaluate("watch.explorer().map.startPlace()")
    x, y = box["x"] + x, box["y"] + y
    found = {}
    page.mouse.move(x, y)
    page.mouse.down()
    for name in ("warm", "start"):  # the first is the warm-up
        page.evaluate("watch.follow('pointermove')")
        for number in range(MOVES):
            far = number % 40 if number % 80 < 40 else 40 - number % 40
            page.mouse.move(x + 3 * far, y + far)
            page.wait_for_timeout(30)
        found[name] = page.evaluate("watch.end()")
    page.mouse.up()
    del found["warm"]
    page.wait_for_timeout(500)
    root.locator('[aria-label^="learning rate of"]').first.focus()
    page.evaluate("watch.follow('keydown')")
    for number in range(MOVES):
        page.keyboard.press("ArrowLeft" if number // 6 % 2 == 0 else "ArrowRight")
        page.wait_for_timeout(30)
    found["slider"] = page.evaluate("watch.end()")
    return found


def load_now() -> float | None:
    """Return the load average of the last minute; None where the system reports none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def measure_in(browser: Any, folder: Path) -> dict[str, Any]:
    """Run all measurements in a browser and an empty folder."""
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    with jupyterlab(home, work) as lab:
        with open_notebook(browser, lab, work, "warm", WATCH) as page:  # warms the file cache
            first_paint(page)
            numbers: dict[str, Any] = {"bytes": sizes(page, work / "warm.ipynb"), "first_paint": []}
        for number in range(FIRST_PAINTS):
            with open_notebook(browser, lab, work, f"fresh{number}", WATCH) as page:
                numbers["first_paint"].append(first_paint(page))
        for name, cell, act in (("moves", SIX, moves), ("frames", TWENTY, frames)):
            with open_notebook(browser, lab, work, name, WATCH, cell) as page:
                first_paint(page)
                page.wait_for_timeout(1500)
                numbers[name] = act(page)
    return numbers


def measure() -> dict[str, Any]:
    """Start JupyterLab and a browser, and run all measurements.

    Returns
    -------
    dict
        The JSON object under "browser".

    Raises
    ------
    RuntimeError
        If Playwright or a browser is missing, or if JupyterLab or the explorer does not start.
    """
    from optlab._doctor import find_browser

    executable = find_browser()
    if executable is None or installed_version(sys.executable, "playwright") is None:
        raise RuntimeError("this needs Playwright and a Chromium; `optlab doctor` says how")
    from playwright.sync_api import Error, sync_playwright

    load = load_now()
    try:
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(executable), args=list(FLAGS))
            version = browser.version
            numbers = measure_in(browser, Path(folder))
            browser.close()
    except Error as error:
        raise RuntimeError(f"the browser: {error}") from error
    return {
        "browser": version,
        "jupyterlab": installed_version(sys.executable, "jupyterlab"),
        "load": None if load is None else [load, load_now()],
        "numbers": numbers,
        "figures": [{**asdict(one), "met": one.met} for one in figures(numbers)],
    }
