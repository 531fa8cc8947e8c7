"""The explorer in a real JupyterLab, and its exported page without a kernel."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# The state of the widget, which only tests read.
STATE = "root => structuredClone(root.explorer.state)"
PATH = """root => {
  const { runs } = root.explorer, entry = root.explorer.selected;
  return Array.from(runs.rows(entry, "point", root.explorer.rateIndex(entry)).data.slice(0, 80));
}"""


def explorer(notebook, code="import optlab as ol\nol.explore()"):
    """Run a cell and return the explorer that it shows."""
    notebook.put(code)
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-explorer")
    root.wait_for(timeout=60_000)
    ready(root)
    return root


def until(root, condition):
    """Wait until a condition on `explorer` holds (a handle would keep the element alive)."""
    root.evaluate(
        """async (root, condition) => {
          const holds = new Function("explorer", `return ${condition}`);
          const end = performance.now() + 30000;
          while (!root.explorer || !holds(root.explorer)) {
            if (performance.now() > end) throw new Error(`never: ${condition}`);
            await new Promise((done) => setTimeout(done, 15));
          }
        }""",
        condition,
    )


def ready(root):
    """Wait until all requested changes are drawn."""
    until(root, "explorer.laidOut && !explorer.inFlight && !explorer.due.size")


def inked(root, selector=".map canvas"):
    """Count the colors on a canvas: an image has many."""
    return root.locator(selector).first.evaluate(
        """canvas => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const seen = new Set();
          for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]},${data[i+1]},${data[i+2]}`);
          return seen.size;
        }"""
    )


def test_it_opens_on_a_picture_and_fits_its_cell(notebook):
    root = explorer(notebook)
    assert inked(root) > 20
    assert inked(root, ".series canvas") > 5
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")
    assert "What happened in step 34" in root.locator(".panel").inner_text()
    assert "Same start (−0.35, 1.75), same 300 steps" in root.locator(".footer").inner_text()
    assert notebook.page.locator('[data-mime-type$="jupyter.stderr"]').count() == 0
    assert notebook.complaints == []


def test_the_slider_moves_by_keyboard_and_the_path_changes_without_the_kernel(notebook):
    root = explorer(notebook)
    before, asked = root.evaluate(PATH), root.evaluate("root => root.explorer.generation")
    slider = root.get_by_label("learning rate of Adam")
    slider.focus()
    slider.press("ArrowLeft")
    ready(root)
    assert root.evaluate(PATH) != before
    assert root.evaluate("root => root.explorer.generation") == asked
    assert root.evaluate(STATE)["mode"] == "custom"
    assert "custom 0.5" in root.locator(".row.chosen").inner_text()
    root.get_by_label("race mode").select_option("best")
    ready(root)
    assert root.evaluate(PATH) == before


def test_play_step_scrub_and_select(notebook):
    root = explorer(notebook)
    root.get_by_label("first step").click()
    root.get_by_label("play", exact=True).click()
    until(root, "explorer.state.step > 10")
    root.get_by_label("pause").click()
    assert not root.evaluate("root => root.explorer.playing")
    scrub = root.get_by_label("step", exact=True)
    scrub.focus()
    scrub.press("Home")
    scrub.press("ArrowRight")
    assert root.evaluate(STATE)["step"] == 1
    curve = root.locator(".series canvas[tabindex]").first
    curve.focus()
    for key, step in (("End", 300), ("ArrowLeft", 299), ("Home", 0), ("ArrowRight", 1)):
        curve.press(key)
        assert root.evaluate(STATE)["step"] == step
    curve.press("ArrowUp")
    assert root.evaluate(STATE)["selected"] == "RMSProp"
    curve.press(" ")
    assert root.evaluate("root => root.explorer.playing")
    curve.press(" ")
    box = curve.bounding_box()
    notebook.page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 20)
    assert 180 < root.evaluate(STATE)["step"] < 260
    root.get_by_role("radio", name="SGD").click()
    assert root.evaluate(STATE)["selected"] == "SGD"
    assert notebook.complaints == []


def test_the_start_is_dragged_typed_and_moved_by_arrows(notebook):
    root = explorer(notebook)
    before = root.evaluate(PATH)
    canvas = root.locator(".map canvas[tabindex]")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    x, y = root.evaluate("root => root.explorer.map.startPlace()")
    mouse = notebook.page.mouse
    mouse.move(box["x"] + x, box["y"] + y)
    mouse.down()
    for i in range(12):
        mouse.move(box["x"] + x + 6 * i, box["y"] + y + 4 * i)
    mouse.up()
    ready(root)
    dragged = root.evaluate(STATE)["start"]
    assert dragged != [-0.35, 1.75]
    assert root.evaluate(PATH)[:2] == pytest.approx(dragged, rel=1e-6)
    assert root.evaluate(PATH) != before
    root.get_by_label("start x0").fill("-1.5")
    root.get_by_label("start x0").press("Enter")
    until(root, "explorer.runs.header.start[0] === -1.5")
    canvas.focus()
    canvas.press("ArrowRight")
    ready(root)
    assert root.evaluate(PATH)[0] > -1.5
    assert notebook.complaints == []


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("saddle escape", "monkey_saddle"),
        ("bias correction", "booth"),
        ("stability limit", "parabola"),
    ],
)
def test_a_preset_sets_everything_and_says_what_to_look_at(notebook, name, problem):
    root = explorer(notebook)
    root.get_by_role("button", name=name).click()
    until(root, f"explorer.state.problem === {problem!r}")
    ready(root)
    assert root.locator(".says").inner_text()
    assert root.get_by_role("button", name=name).get_attribute("aria-pressed") == "true"
    assert inked(root) > 5
    assert notebook.complaints == []


def test_a_function_of_one_s_own_and_one_that_raises(notebook):
    code = (
        "import optlab as ol\nimport numpy as np\n"
        "def mine(x, y):\n    if np.max(np.asarray(getattr(y, 'data', y))) < -2.9:\n"
        "        raise ValueError('not below')\n"
        "    return x**2 + 3 * np.sin(y)**2\n"
        "ol.explore(mine, ['SGD', 'Adam'], steps=40)"
    )
    root = explorer(notebook, code)
    before = root.evaluate(PATH)
    root.get_by_label("start y0").fill("-2.95")
    root.get_by_label("start y0").press("Enter")
    message = root.locator(".message")
    message.wait_for()
    assert "not below" in message.inner_text()
    ready(root)
    assert root.evaluate(PATH) == before, "the last good picture stays"
    root.get_by_label("start y0").fill("1")
    root.get_by_label("start y0").press("Enter")
    message.wait_for(state="hidden")
    assert notebook.complaints == []


def test_stray_keys_reach_no_command_of_the_notebook(notebook):
    root = explorer(notebook)
    cells = notebook.page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    for target in root.locator("[data-lm-suppress-shortcuts]:visible").all():
        if target.is_disabled():
            continue
        target.focus()
        if not target.evaluate("element => element === document.activeElement"):
            continue
        for key in "xabdd":
            notebook.page.keyboard.press(key)
    assert cells.count() == count
    focusable = root.evaluate(
        """root => Array.from(root.querySelectorAll("button, select, input, [tabindex]"))
          .filter((e) => e.getAttribute("data-lm-suppress-shortcuts") !== "true").length"""
    )
    assert focusable == 0
    assert notebook.complaints == []


def test_twenty_runs_of_the_cell_leave_one_explorer(notebook):
    root = explorer(notebook)
    page = notebook.page
    page.evaluate("window.seen = []")
    for _ in range(20):
        root.evaluate(
            """root => {
              const { explorer } = root, { model, runs } = explorer;
              window.seen.push([root, explorer, model, runs.numbers.buffer]
                .map((held) => new WeakRef(held)));
              root.dataset.old = 1;
            }"""
        )
        notebook.run(0)
        root = notebook.cell(0).locator(".optlab-explorer:not([data-old])")
        root.wait_for()
        ready(root)
    client = page.context.new_cdp_session(page)
    for _ in range(3):
        client.send("HeapProfiler.collectGarbage")
        page.wait_for_timeout(300)
    alive = page.evaluate("window.seen.flat().filter((reference) => reference.deref()).length")
    assert alive == 0, "element, explorer, model and numbers of an earlier run are gone"
    notebook.put(
        "from ipywidgets.widgets.widget import _instances\n"
        "print([type(widget).__name__ for widget in _instances.values()].count('Explorer'))",
    )
    assert notebook.run(0).inner_text().strip() in ("0", "1"), "nor does the kernel keep them"
    assert notebook.complaints == []


def test_the_exported_page_lives_without_a_kernel(chromium, tmp_path):
    import optlab as ol

    path = tmp_path / "explorer.html"
    ol.explore().to_html(path)
    page = chromium.new_page(viewport={"width": 900, "height": 900})
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    root = page.locator(".optlab-explorer")
    root.wait_for()
    ready(root)
    assert inked(root) > 20
    assert page.evaluate("document.documentElement.scrollWidth") <= 900
    before = root.evaluate(PATH)
    slider = root.get_by_label("learning rate of Adam")
    slider.focus()
    slider.press("ArrowLeft")
    ready(root)
    assert root.evaluate(PATH) != before
    root.get_by_label("play", exact=True).click()
    until(root, "explorer.state.step > 50")
    root.get_by_label("pause").click()
    root.get_by_label("step", exact=True).press("End")
    assert root.evaluate(STATE)["step"] == 300
    assert "needs a kernel" in root.inner_text()
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert complaints == []
    page.close()


def test_wrappers_are_drawn_and_asked_for(chromium, tmp_path):
    import optlab as ol

    path = tmp_path / "explorer.html"
    explorer = ol.explore(steps=60).change(selected="Adam", step=30)
    page = chromium.new_page(viewport={"width": 1300, "height": 900})
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def shown(explorer, live=False):
        text = str(explorer.to_html())
        if live:  # a kernel that never answers: the request stays in window.asked
            text = text.replace("isStatic: true", "isStatic: false")
            drawn = "render({ model, el: document"
            send = "model.send = (message) => { window.asked = message; };"
            text = text.replace(drawn, f"{send}\n{drawn}")
        path.write_text(text, encoding="utf-8")
        page.goto(path.as_uri())
        root = page.locator(".optlab-explorer")
        ready(root)
        return root

    root = shown(explorer, live=True)
    plain = root.locator(".map canvas").nth(2).evaluate("canvas => canvas.toDataURL()")
    root.get_by_label("around Adam").select_option("LookAhead")
    asked = page.evaluate("window.asked")
    assert (asked["action"], asked["value"]) == ("around", ["Adam", "LookAhead"])
    root = shown(explorer.change(around={"Adam": "LookAhead"}), live=True)
    assert root.locator(".map canvas").nth(2).evaluate("canvas => canvas.toDataURL()") != plain
    assert "Around Adam: LookAhead (alpha 0.5, k 5)." in root.locator(".conditions").inner_text()
    assert "slow weights" in root.locator(".happened").inner_text()
    slider = root.get_by_label("alpha of Adam")
    slider.focus()
    slider.press("ArrowRight")
    asked = page.evaluate("window.asked")
    assert asked["value"] == ["Adam", {"kind": "LookAhead", "alpha": 0.55, "k": 5}]
    root = shown(explorer.change(around={"Adam": "LookAhead"}))  # without a kernel
    assert root.get_by_label("k of Adam").is_disabled()
    assert complaints == []
    page.close()


def test_python_s_numbers_are_the_browser_s(chromium, tmp_path):
    """The rows of the panel are filled in both languages, from one table."""
    import optlab as ol
    from optlab.viz.explorer.state import optimizer_classes

    names = [name for name in optimizer_classes() if name in ol.optimizer.__all__]
    made = ol.explore("beale", names, steps=40)
    made = made.change(around={"SGD": "LookAhead", "Adam": "EMA", "Momentum": "ModelAverage"})
    path = tmp_path / "explorer.html"
    made.to_html(path)
    page = chromium.new_page()
    page.goto(path.as_uri())
    root = page.locator(".optlab-explorer")
    ready(root)
    for name in names:
        for step in (1, 2, 17, 40):
            shown = root.evaluate(
                """(root, [name, step]) => {
                  root.explorer.set({ selected: name, step });
                  root.explorer.draw();
                  return Array.from(root.querySelectorAll(".happened tr"),
                    (row) => [row.cells[0].innerText, row.cells[1].textContent]);
                }""",
                [name, step],
            )
            rows = made.what_happened(name, step)
            assert [label for label, _ in shown] == [label for label, _ in rows]
            for (_, seen), (_, written) in zip(shown, rows, strict=True):
                assert seen == written.replace("^", ""), (name, step)
    page.close()
