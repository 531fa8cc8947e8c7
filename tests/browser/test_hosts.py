"""Outputs in every host: alive where scripts may run, a picture elsewhere, never blank.

The explorer has a function that no preset has, and all hosts get the same hands. Requests to other
hosts are refused and counted, so that nothing here depends on a network.
"""

import json
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tests.browser.hands import BROKEN, OWN, PATH, STATE, exercise, inked, opened, ready, until

pytestmark = [pytest.mark.browser, pytest.mark.nightly, pytest.mark.slow]

EXPLORER = f"import optlab as ol\n{OWN}explorer = ol.explore(own, ['Momentum', 'Adam'], steps=80)\n"
OTHERS = """
import numpy as np
x = ol.to_tensor(0.5, requires_grad=True)
display(ol.viz.graph(np.tanh(x * x)))
w = ol.to_tensor(np.ones(1000), requires_grad=True)
study = ol.lab.memory_study(lambda: np.sum(np.exp(np.sin(w))).backward(), [], ["1 MiB"], repeats=1)
display(ol.viz.recompute_explorer(study))
display(ol.viz.claim(
    "The more uneven the bowl, the more is left.", positions=[2, 5, 10], measure=lambda r, n: r.final_loss[n],
    race=lambda c: ol.compare(ol.problems.quadratic(c), {"plain": ol.optimizer.SGD(1 / c)}, steps=9),
    holds=lambda values: True, measured="loss", question="How uneven?"))
"""  # noqa: E501
KINDS = (".optlab-explorer", ".optlab-graph", ".optlab-recompute", ".optlab-claim")


@pytest.fixture(scope="module")
def hosts(lab):
    """Return the server of `lab`, whose pages are those of all hosts that are installed."""
    for name in ("notebook", "voila", "nbgrader"):
        __import__(name)  # they come with the extra `test`: without one these tests fail
    return lab


class Desk:
    """A page with what it asked of other hosts and complained."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(viewport={"width": 1366, "height": 900}, **options)
        self.page = self.context.new_page()
        self.outside, self.complaints = [], []
        self.context.route(re.compile(r"^https?://(?!localhost|127\.0\.0\.1)"), self.refuse)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def refuse(self, route):
        self.outside.append(route.request.url)
        route.abort()

    def cell(self, number=0):
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def run(self, number=0, keys="Shift+Enter"):
        self.cell(number).locator(".cm-content").click()
        self.cell(number).locator(".cm-focused").wait_for()
        self.page.keyboard.press(keys)

    def run_when_connected(self, number=0):
        """Run a cell; again while its notebook, which looks idle before, has no kernel yet."""
        prompt = self.cell(number).locator(".jp-InputPrompt")
        for _ in range(60):
            self.run(number)
            self.page.wait_for_timeout(1000)
            if prompt.inner_text() != "[ ]:":
                return
        raise AssertionError("the cell was never run")

    def put(self, code, number):
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(code)

    def said(self, code, number):
        """Run code in another cell and return what it printed."""
        self.put(f"{code}\nprint('-- done', __import__('os').urandom(4).hex())", number)
        before = self.cell(number).locator(".jp-OutputArea-output").all_inner_texts()
        self.run(number)
        output = self.cell(number).locator(".jp-OutputArea-output", has_text="-- done")
        for _ in range(600):
            found = output.all_inner_texts()
            if found and found != before:
                return found[0].split("-- done")[0].strip()
            self.page.wait_for_timeout(50)
        raise AssertionError(self.cell(number).inner_text())


@pytest.fixture
def desk(chromium, tmp_path):
    """Return a function that opens pages; in the end there was no error in them."""
    desks = []

    def make(**options):
        desks.append(Desk(chromium, **options))
        return desks[-1]

    yield make
    for number, one in enumerate(desks):
        one.page.screenshot(path=tmp_path / f"page{number}.png")
        one.context.close()
        assert one.complaints == []


def notebook_of(*cells):
    """Return a notebook as JSON."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made = [
        {"cell_type": "code", "id": f"cell-{i}", "execution_count": None, "metadata": {},
         "outputs": [], "source": source}
        for i, source in enumerate(cells)
    ]  # fmt: skip
    return json.dumps(
        {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    )


def address(lab, path):
    """Return an address of the server of `lab`."""
    server, token = re.match(r"(http://localhost:\d+)/.*token=(\w+)", lab.address).groups()
    return f"{server}/{path}?token={token}"


def show_in_lab(desk, lab, name, *cells, run=True, **options):
    """Open a notebook of these cells in JupyterLab, and run its first."""
    one = desk(**options)
    if cells:
        (lab.folder / f"{name}.ipynb").write_text(notebook_of(*cells))
    one.page.goto(address(lab, f"lab/workspaces/{name}/tree/{name}.ipynb"))
    one.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
    one.page.locator("#jp-main-statusbar", has_text="| Idle").wait_for(timeout=60_000)
    if run:
        one.run()
    return one


def executed(folder, *cells, name="executed"):
    """Execute a notebook by nbconvert, as a build does, and return its path."""
    path = folder / f"{name}.ipynb"
    path.write_text(notebook_of(*cells))
    converted("notebook", path, "--execute", "--inplace")
    return path


def converted(kind, path, *options):
    command = [sys.executable, "-m", "nbconvert", "--to", kind, *options, str(path)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a notebook with all four live outputs, executed without a page."""
    folder = tmp_path_factory.mktemp("executed")
    return executed(folder, EXPLORER + "display(explorer)\n" + OTHERS)


def outputs_of(path):
    cells = json.loads(path.read_text())["cells"]
    return [output["data"] for cell in cells for output in cell["outputs"]]


def nothing_broken(page):
    assert not BROKEN.search(page.locator("body").inner_text())


# With a kernel ------------------------------------------------------------------------------


BOOTSTRAP_RULE = """() => [...document.styleSheets].some((sheet) => {
  try {
    return [...sheet.cssRules].some((rule) => rule.selectorText?.includes(".row::"));
  } catch {
    return false;
  }
})"""


@pytest.mark.parametrize("nbgrader", [True, False], ids=["with nbgrader", "without nbgrader"])
def test_jupyterlab(desk, hosts, nbgrader):
    folder = hosts.settings / "labconfig"
    folder.mkdir(exist_ok=True)
    disabled = {"@jupyter/nbgrader": not nbgrader}
    (folder / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))
    one = show_in_lab(desk, hosts, f"lab{int(nbgrader)}", EXPLORER + "explorer")
    root = opened(one.page)
    assert one.page.evaluate(BOOTSTRAP_RULE) == nbgrader, "is the extension's style sheet there?"
    until(root, "explorer.model.alive")
    exercise(one.page, root)
    widths = "root => [...root.querySelectorAll('.ol-row')].map((row) => row.offsetWidth)"
    assert min(root.evaluate(widths)) > 600, "no other style sheet reaches its rows"
    nothing_broken(one.page)


def test_notebook_7(desk, hosts):
    (hosts.folder / "seven.ipynb").write_text(notebook_of(EXPLORER + "explorer"))
    one = desk()
    one.page.goto(address(hosts, "notebooks/seven.ipynb"))
    one.cell().wait_for(timeout=60_000)
    one.page.locator(".jp-NotebookKernelStatus, .jp-Toolbar-kernelStatus").first.wait_for()
    one.page.locator('[data-status="idle"]').first.wait_for(timeout=60_000)
    one.complaints.clear()  # other extensions' own, while the page was loading
    one.run_when_connected()
    root = opened(one.page)
    until(root, "explorer.model.alive")
    exercise(one.page, root)
    nothing_broken(one.page)


def test_voila(desk, hosts):
    (hosts.folder / "dashboard.ipynb").write_text(
        notebook_of(EXPLORER + "display(explorer)\n" + OTHERS)
    )
    one = desk()
    one.page.goto(address(hosts, "voila/render/dashboard.ipynb"), timeout=60_000)
    root = opened(one.page)
    until(root, "explorer.model.alive")
    exercise(one.page, root)
    for kind in KINDS:
        one.page.locator(kind).wait_for()
    nothing_broken(one.page)


# Without a kernel ---------------------------------------------------------------------------


def test_a_notebook_that_a_program_executes_holds_no_widget(saved):
    notebook = json.loads(saved.read_text())
    assert "widgets" not in notebook["metadata"]
    outputs = outputs_of(saved)
    assert len(outputs) == 4
    for data in outputs:
        assert set(data) == {"text/html", "text/plain"}
        assert len("".join(data["text/html"])) < 300_000


def test_nbconvert_s_page_without_a_network(desk, saved):
    converted("html", saved)
    one = desk()
    one.page.goto(saved.with_suffix(".html").as_uri())
    root = opened(one.page)
    exercise(one.page, root)
    for kind in KINDS:
        one.page.locator(kind).wait_for()
    expect(one.page.locator("[data-ol] > img")).to_have_count(0)
    # What nbconvert's own template asks; none of it is for widgets.
    assert [url for url in one.outside if "cdnjs.cloudflare.com" not in url] == []
    nothing_broken(one.page)


def test_an_exported_page_without_a_network(desk, tmp_path):
    names = {}
    exec(EXPLORER, names)
    path = tmp_path / "page.html"
    names["explorer"].to_html(path)
    one = desk(offline=True)
    one.page.goto(path.as_uri())
    exercise(one.page, opened(one.page))
    assert one.outside == []
    assert path.stat().st_size < 400_000


def test_where_scripts_and_styles_are_stripped_a_picture_stays(desk, saved, tmp_path):
    """As on GitHub and in VS Code: script, style, classes and data attributes are gone."""
    for number, data in enumerate(outputs_of(saved)):
        html = "".join(data["text/html"])
        html = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
        html = re.sub(r' (?:class|style|data-\w+)="[^"]*"', "", html)
        path = tmp_path / f"stripped{number}.html"
        path.write_text(f"<!doctype html><meta charset='utf-8'>{html}", encoding="utf-8")
        one = desk(java_script_enabled=False)
        one.page.goto(path.as_uri())
        picture = one.page.locator("img")
        assert len(picture.get_attribute("alt")) > 20
        box = picture.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
        expect(one.page.locator("script, style")).to_have_count(0)


def test_a_saved_notebook_reopened_without_its_kernel(desk, hosts):
    one = show_in_lab(desk, hosts, "trusted", EXPLORER + "display(explorer)\n" + OTHERS)
    for kind in KINDS:
        one.page.locator(kind).wait_for(timeout=60_000)
    ready(one.page.locator(".optlab-explorer"))
    one.page.keyboard.press("Control+s")
    path = hosts.folder / "trusted.ipynb"
    for _ in range(200):
        if "optlab" in path.read_text() and len(outputs_of(path)) == 4:
            break
        one.page.wait_for_timeout(50)
    end_sessions(one, hosts)
    one.page.goto("about:blank")
    again = show_in_lab(desk, hosts, "trusted", run=False)
    root = opened(again.page)
    exercise(again.page, root)
    assert not root.evaluate("root => root.explorer.model.alive")
    for kind in KINDS:
        again.page.locator(kind).wait_for()
    expect(again.page.locator(".jp-OutputArea-output img:visible")).to_have_count(0)
    nothing_broken(again.page)
    assert path.stat().st_size < 600_000


def test_a_notebook_that_is_not_trusted_shows_pictures(desk, hosts, saved):
    (hosts.folder / "unknown.ipynb").write_text(saved.read_text())
    one = show_in_lab(desk, hosts, "unknown", run=False)
    pictures = one.page.locator(".jp-OutputArea-output img")
    pictures.nth(3).wait_for()
    for picture in pictures.all():
        picture.scroll_into_view_if_needed()
        assert picture.bounding_box()["width"] > 300
        assert len(picture.get_attribute("alt")) > 20
    expect(one.page.locator(", ".join(KINDS))).to_have_count(0)
    nothing_broken(one.page)


def end_sessions(one, lab):
    server, token = re.match(r"(http://localhost:\d+)/.*token=(\w+)", lab.address).groups()
    headers = {"Authorization": f"token {token}"}
    for session in one.context.request.get(f"{server}/api/sessions", headers=headers).json():
        one.context.request.delete(f"{server}/api/sessions/{session['id']}", headers=headers)


def test_a_kernel_that_restarts_is_missed(desk, hosts):
    one = show_in_lab(desk, hosts, "restart", EXPLORER + "explorer")
    root = opened(one.page)
    until(root, "explorer.model.alive")
    one.cell(0).locator(".jp-InputPrompt").click()
    one.page.keyboard.press("0")
    one.page.keyboard.press("0")
    one.page.locator(".jp-Dialog").locator(".jp-mod-accept").click()
    until(root, "explorer.model.orphaned")
    assert "kernel of this page is gone" in root.locator(".ol-message").inner_text()
    exercise(one.page, root)
    one.page.locator("#jp-main-statusbar", has_text="| Idle").wait_for(timeout=60_000)
    root.evaluate("root => { root.dataset.old = 1; }")
    one.run()
    one.page.locator(".optlab-explorer:not([data-old])").wait_for(timeout=60_000)
    until(one.page.locator(".optlab-explorer"), "explorer.model.alive")


def test_the_picture_comes_into_the_page_that_a_hand_has_changed(desk, hosts):
    """The page is there first: it stays the same one, with focus and state, and a drag ends."""
    code = (
        f"{EXPLORER}import pathlib, time\nmade = explorer.picture\n"
        "def picture():\n"
        "    while not pathlib.Path('go').exists():\n        time.sleep(0.05)\n"
        "    return made()\n"
        "explorer.picture = picture\nexplorer"
    )
    one = show_in_lab(desk, hosts, "first", code, "")
    page, root = one.page, opened(one.page)
    assert page.evaluate("document.querySelectorAll('[data-ol] img').length") == 0
    outer = page.evaluate_handle("document.querySelector('[data-ol]')")
    slider = root.get_by_label("learning rate of Adam")
    slider.focus()
    slider.press("ArrowLeft")
    box = root.locator(".ol-map canvas[tabindex]").bounding_box()
    x, y = root.evaluate("root => root.explorer.map.startPlace()")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + x + 30, box["y"] + y + 10, steps=3)
    ready(root)
    before = root.evaluate(STATE)
    root.evaluate(
        """root => {
          root.dataset.old = 1;
          const look = () => {
            if (!root.clientWidth) root.dataset.gone = 1;
            requestAnimationFrame(look);
          };
          look();
        }"""
    )
    (hosts.folder / "go").touch()
    page.wait_for_function("outer => !outer.isConnected", arg=outer)
    page.locator("#jp-main-statusbar", has_text="| Idle").wait_for()
    until(root, "explorer.model.alive && explorer.greeted")
    expect(page.locator("[data-ol]")).to_have_count(1)
    assert root.get_attribute("data-old") == "1", "the page is still the same"
    assert root.get_attribute("data-gone") is None, "it was there in every frame"
    assert page.evaluate("document.querySelectorAll('[data-ol] img').length") == 0
    focused = "root => root.getRootNode().activeElement.getAttribute('aria-label')"
    assert root.evaluate(focused).startswith("Map of")
    page.mouse.move(box["x"] + x + 90, box["y"] + y + 40, steps=3)
    page.mouse.up()
    ready(root)
    assert root.evaluate(STATE) == before, "the drag ended with the move"
    page.wait_for_timeout(300)  # the kernel is told after 100 ms
    said = one.said("print(explorer.now.start, explorer.now.optimizers[1].rate)", 1)
    assert said == f"{before['start']} {before['optimizers'][1]['rate']}"
    one.cell(1).locator(".cm-content").click()
    page.keyboard.press("Control+s")
    path = hosts.folder / "first.ipynb"
    for _ in range(200):
        if "data:image/png" in path.read_text():
            break
        page.wait_for_timeout(50)
    [output] = json.loads(path.read_text())["cells"][0]["outputs"]
    assert set(output["data"]) == {"text/html", "text/plain"}
    assert "".join(output["data"]["text/html"]).count("data:image/png") == 1


# Layouts, copies, moves ---------------------------------------------------------------------


def test_boxes_tabs_and_interact(desk, hosts):
    code = EXPLORER + (
        "import ipywidgets as w\n"
        "slider = w.IntSlider(description='left alone')\n"
        "tab = w.Tab([ol.explore('beale').widget, w.Label('second')])\n"
        "display(w.HBox([explorer.widget, slider], layout=w.Layout(flex_flow='row wrap')), tab)\n"
        "@w.interact(steps=w.IntSlider(20, 10, 60, 10, description='how many'))\n"
        "def show(steps):\n    display(ol.explore(own, ['SGD'], steps=steps))\n"
    )
    one = show_in_lab(desk, hosts, "boxes", code, "")
    roots = one.page.locator(".optlab-explorer")
    roots.nth(2).wait_for(timeout=60_000)
    for root in roots.all():
        root.scroll_into_view_if_needed()
        ready(root)
        until(root, "explorer.model.alive")
        assert inked(root) > 20
    exercise(one.page, roots.nth(0))
    last = roots.nth(2)
    last.evaluate("root => { root.dataset.old = 1; }")
    handle = one.page.locator(".jp-OutputArea-output", has_text="how many").locator(
        "[role='slider'], .noUi-handle"
    )
    handle.first.focus()
    for _ in range(3):
        one.page.keyboard.press("ArrowRight")
    fresh = one.page.locator(".optlab-explorer:not([data-old])").nth(2)
    fresh.wait_for(timeout=30_000)
    for _ in range(200):
        if fresh.evaluate("root => root.explorer?.state.steps") == 50:
            break
        one.page.wait_for_timeout(50)
    until(fresh, "explorer.state.steps === 50")
    count = "print(sum(type(v).__name__ == 'Explorer' for v in __import__('ipywidgets').widgets.widget._instances.values()))"  # noqa: E501
    assert one.said(count, 1) == "3", "those of earlier positions are gone"
    nothing_broken(one.page)


def test_the_same_explorer_shown_twice_is_one(desk, hosts):
    one = show_in_lab(desk, hosts, "twice", EXPLORER + "display(explorer, explorer)", "")
    roots = one.page.locator(".optlab-explorer")
    roots.nth(1).wait_for(timeout=60_000)
    first, second = roots.nth(0), roots.nth(1)
    for root in (first, second):
        ready(root)
        until(root, "explorer.model.alive")
    first.get_by_label("learning rate of Adam").focus()
    first.get_by_label("learning rate of Adam").press("ArrowLeft")
    ready(first)
    rate = first.evaluate("root => root.explorer.selected.rate")
    until(second, f"explorer.selected.rate === {rate}")
    second.evaluate("root => root.explorer.go(7)")
    until(first, "explorer.state.step === 7")
    one.page.wait_for_timeout(500)
    assert one.said("print(explorer.now.step, explorer.now.optimizers[1].rate)", 1) == f"7 {rate}"


def test_several_explorers_do_not_hear_each_other(desk, hosts):
    code = (
        EXPLORER
        + "other = ol.explore(own, ['Momentum', 'Adam'], steps=80)\ndisplay(explorer, other)"
    )
    one = show_in_lab(desk, hosts, "several", code, "")
    roots = one.page.locator(".optlab-explorer")
    roots.nth(1).wait_for(timeout=60_000)
    for root in roots.all():
        ready(root)
        until(root, "explorer.model.alive")
    roots.nth(0).evaluate("root => root.explorer.go(9)")
    one.page.wait_for_timeout(600)
    assert roots.nth(1).evaluate(STATE)["step"] == 0
    assert one.said("print(explorer.now.step, other.now.step)", 1) == "9 0"


def test_a_cell_that_is_moved_deleted_and_brought_back_keeps_its_state(desk, hosts):
    one = show_in_lab(desk, hosts, "moves", EXPLORER + "explorer", "1 + 1")
    root = opened(one.page)
    until(root, "explorer.model.alive")
    root.evaluate("root => root.explorer.go(13)")
    one.page.wait_for_timeout(400)  # it is kept after 100 ms
    one.cell(0).locator(".jp-InputPrompt").click()
    one.page.keyboard.press("Control+Shift+ArrowDown")
    one.cell(1).locator(".optlab-explorer").wait_for()
    root = opened(one.page)
    assert root.evaluate(STATE)["step"] == 13
    one.cell(1).locator(".jp-InputPrompt").click()
    one.page.keyboard.press("d")
    one.page.keyboard.press("d")
    one.page.locator(".optlab-explorer").wait_for(state="detached")
    one.page.keyboard.press("z")
    root = opened(one.page)
    assert root.evaluate(STATE)["step"] == 13
    until(root, "explorer.model.alive")
    exercise(one.page, root)
    nothing_broken(one.page)


def test_undo_keys_do_not_reach_the_notebook(desk, hosts):
    one = show_in_lab(desk, hosts, "keys", EXPLORER + "explorer", "1 + 1")
    root = opened(one.page)
    source = one.cell(0).locator(".cm-content").inner_text()
    cells = one.page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    before = root.evaluate(STATE)
    slider = root.get_by_label("learning rate of Adam")
    slider.focus()
    slider.press("ArrowLeft")
    ready(root)
    assert root.evaluate(STATE) != before
    for key in ("Control+z", "Control+Shift+z", "Control+y", "Control+a", "Delete"):
        one.page.keyboard.press(key)
    assert one.cell(0).locator(".cm-content").inner_text() == source
    assert cells.count() == count
    expect(one.page.locator(".optlab-explorer")).to_have_count(1)


# Touch --------------------------------------------------------------------------------------


def test_two_fingers_zoom_the_map(desk, tmp_path):
    names = {}
    exec(EXPLORER, names)
    path = tmp_path / "page.html"
    names["explorer"].to_html(path)
    one = desk(has_touch=True)
    one.page.goto(path.as_uri())
    root = opened(one.page)
    box = root.locator(".ol-map canvas[tabindex]").bounding_box()
    before = root.evaluate("root => root.explorer.map.box")
    x, y = box["x"] + 0.7 * box["width"], box["y"] + 0.7 * box["height"]
    client = one.context.new_cdp_session(one.page)

    def touch(kind, *apart):
        points = [{"x": x + d, "y": y, "id": i} for i, d in enumerate(apart)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", -20)
    touch("touchStart", -20, 20)
    for reach in range(25, 65, 5):
        touch("touchMove", -reach, reach)
    touch("touchEnd")
    ready(root)
    after = root.evaluate("root => root.explorer.map.box")
    assert (after[1] - after[0]) / (before[1] - before[0]) == pytest.approx(20 / 60, rel=0.1)
    start = root.evaluate(STATE)["start"]
    place = root.evaluate("root => root.explorer.map.startPlace()")
    root.evaluate("root => root.explorer.map.fit()")
    ready(root)
    place = root.evaluate("root => root.explorer.map.startPlace()")
    x, y = box["x"] + place[0], box["y"] + place[1]
    touch("touchStart", 0)
    for along in range(5, 45, 5):
        touch("touchMove", along)
    touch("touchEnd")
    ready(root)
    assert root.evaluate(STATE)["start"][0] > start[0], "one finger drags the start"
    assert root.evaluate(PATH)[:2] == root.evaluate(STATE)["start"]


# Many runs ----------------------------------------------------------------------------------


def test_fifty_runs_of_a_cell_leave_one_explorer(desk, hosts):
    """Objects are counted, in the page and in the kernel: times and bytes depend on the machine."""
    one = show_in_lab(desk, hosts, "fifty", EXPLORER + "explorer", "", "")
    page = one.page
    opened(page)
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable")

    def counted():
        for _ in range(4):
            client.send("HeapProfiler.collectGarbage")
            page.wait_for_timeout(250)
        return client.send("Memory.getDOMCounters")

    kernel = (
        "import gc, ipywidgets; gc.collect()\n"
        "from ipywidgets.widgets.widget import _instances\n"
        "held = [f'{type(o).__module__}.{type(o).__name__}' for o in gc.get_objects()]\n"
        "ours = [h for h in held if h.startswith(('optlab', 'ipywidgets'))]\n"
        "print(sum(h.endswith(('.Model', '.Runs')) for h in ours), "
        "sum(h.endswith(('.Explorer', '.Layout')) for h in ours), len(_instances))"
    )
    nodes = page.locator(".optlab-explorer").evaluate("e => e.querySelectorAll('*').length")
    page.evaluate("window.seen = []")
    for number in range(51):
        root = page.locator(".optlab-explorer:not([data-old])")
        root.wait_for(timeout=60_000)
        ready(root)
        if number == 10:
            in_kernel = one.said(kernel, 2)
            one.cell(0).locator(".cm-content").click()
            early, kernel_early = counted(), in_kernel
        if number == 50:
            late, kernel_late = counted(), one.said(kernel, 2)
            break
        root.evaluate(
            """root => {
              const { explorer } = root, { model } = explorer;
              window.seen.push([root, explorer, model].map((held) => new WeakRef(held)));
              root.dataset.old = 1;
            }"""
        )
        one.run(keys="Control+Enter")  # JupyterLab leaks the toolbar of a cell that it leaves
    alive = page.evaluate("window.seen.flat().filter((reference) => reference.deref()).length")
    assert alive == 0, "element, explorer and model of an earlier run are gone"
    assert late["nodes"] < early["nodes"] + nodes, "less than one explorer"
    assert late["jsEventListeners"] <= early["jsEventListeners"] + 5 * 40, "JupyterLab adds 3 a run"
    computed, shells, known = map(int, kernel_late.split())
    computed_early, shells_early, _ = map(int, kernel_early.split())
    assert known <= 2, "an explorer and its layout"
    assert computed <= computed_early, "what earlier runs have computed is gone"
    # Out[...] still refers to the closed ones: an explorer and its layout a run.
    assert shells - shells_early <= 2 * 40
    one.put("1 + 1", 0)
    one.run()
    page.locator(".optlab-explorer").wait_for(state="detached")
    assert one.said(kernel, 2).split()[2] == "0", "a cell that runs again leaves nothing"
