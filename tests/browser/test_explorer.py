"""The explorer in a real JupyterLab, and its exported page without a kernel."""

import json
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import expect

import optlab as ol
from optlab.viz.explorer.curve import curve_view
from optlab.viz.style import theme
from tests.browser.hands import OWN, PATH, STATE, inked, ready, until

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def explorer(notebook, code="import optlab as ol\nol.explore()"):
    """Run a cell and return the explorer that it shows."""
    notebook.put(code)
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-explorer")
    root.wait_for(timeout=60_000)
    notebook.rest()
    ready(root)
    return root


class Page:
    """A page opened from a file, with what it asked and complained."""

    def __init__(self, chromium, path, width=924, height=700):
        self.page = chromium.new_page(viewport={"width": width, "height": height})
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())
        self.root = self.page.locator(".optlab-explorer")
        self.root.wait_for()
        ready(self.root)

    def close(self):
        outside = [u for u in self.requests if not u.startswith(("file:", "data:", "blob:"))]
        assert outside == []
        assert self.complaints == []
        self.page.close()


@pytest.fixture
def opened(chromium, tmp_path):
    """Return a function that opens the page of an explorer."""
    pages = []

    def show(made, **size):
        path = tmp_path / f"explorer{len(pages)}.html"
        made.to_html(path)
        pages.append(Page(chromium, path, **size))
        return pages[-1]

    yield show
    for page in pages:
        page.close()


def own(x, y):
    """No preset has this function."""
    return x**4 / 8 - x * y + 2 * y**2 + x


# In JupyterLab ------------------------------------------------------------------------------


def test_it_opens_on_a_picture_and_fits_its_cell(notebook):
    root = explorer(notebook)
    assert inked(root) > 20
    assert root.evaluate(STATE)["step"] == 0
    assert root.evaluate("root => root.explorer.shown.map((one) => one.entry.name)") == [
        "Momentum", "Adam",
    ]  # fmt: skip
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")
    assert "Falling into the valley" in root.locator(".ol-claim").inner_text()
    expect(notebook.page.locator('[data-mime-type$="jupyter.stderr"]')).to_have_count(0)
    expect(notebook.page.locator(".jp-OutputArea-output img:visible")).to_have_count(0)
    assert notebook.complaints == []


def test_page_and_python_hear_of_each_other(notebook):
    notebook.put(f"import optlab as ol\n{OWN}e = ol.explore(own, ['SGD', 'Adam'], steps=40)\ne")
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-explorer")
    root.wait_for(timeout=60_000)
    notebook.rest()
    until(root, "explorer.laidOut && explorer.model.alive")
    slider = root.get_by_label("learning rate of Adam")
    slider.focus()
    slider.press("ArrowLeft")
    ready(root)
    rate = root.evaluate("root => root.explorer.selected.rate")
    notebook.page.wait_for_timeout(600)
    notebook.put("print(e.now.mode, [o.rate for o in e.now.optimizers])", 1)
    said = notebook.run(1).inner_text()
    assert said.startswith("custom")
    assert repr(rate) in said
    notebook.put("_ = e.change(start=(1.5, -1.0), step=7); print('done')", 1)
    notebook.run(1)
    until(root, "explorer.state.step === 7 && explorer.shown[0].run.path[0] === 1.5")
    assert notebook.complaints == []


def test_a_function_that_branches_uses_the_kernel_and_says_so(notebook):
    code = (
        "import optlab as ol\nimport numpy as np\n"
        "def mine(x, y):\n    if y < -2.9:\n        raise ValueError('not below')\n"
        "    return x**2 + 3 * np.sin(y)**2\n"
        "ol.explore(mine, ['SGD', 'Adam'], steps=40)"
    )
    root = explorer(notebook, code)
    until(root, "explorer.model.alive")
    before = root.evaluate(PATH)
    said = root.evaluate("root => root.explorer.conditions()")
    assert "Computed by the kernel: this function has an `if`, prints, keeps count" in said
    root.evaluate("root => { root.explorer.moveStart([1, -2.95]); }")
    message = root.locator(".ol-message")
    message.get_by_text("not below").wait_for()
    ready(root)
    assert root.evaluate(PATH) == before, "the last good picture stays"
    root.evaluate("root => { root.explorer.moveStart([1, 1]); }")
    until(root, "explorer.shown[0].run && explorer.shown[0].run.path[1] === 1")
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
        for key in "xabdd":
            notebook.page.keyboard.press(key)
    assert cells.count() == count
    focusable = root.evaluate(
        """root => Array.from(root.querySelectorAll("button, select, input, [tabindex='0']"))
          .filter((e) => e.getAttribute("data-lm-suppress-shortcuts") !== "true").length"""
    )
    assert focusable == 0
    assert notebook.complaints == []


def test_a_box_of_ipywidgets_shows_it(notebook):
    code = "import ipywidgets, optlab as ol\nipywidgets.VBox([ol.explore().widget])"
    notebook.put(code)
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-explorer")
    root.wait_for(timeout=60_000)
    notebook.rest()
    ready(root)
    assert inked(root) > 20
    assert notebook.complaints == []


@pytest.mark.nightly
def test_twenty_runs_of_the_cell_leave_one_explorer(notebook):
    root = explorer(notebook)
    page = notebook.page
    page.evaluate("window.seen = []")
    for _ in range(20):
        root.evaluate(
            """root => {
              const { explorer } = root, { model } = explorer;
              window.seen.push([root, explorer, model].map((held) => new WeakRef(held)));
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
    assert alive == 0, "element, explorer and model of an earlier run are gone"
    notebook.put(
        "from ipywidgets.widgets.widget import _instances\n"
        "print([type(widget).__name__ for widget in _instances.values()].count('Explorer'))",
    )
    assert notebook.run(0).inner_text().strip() in ("0", "1"), "nor does the kernel keep them"
    assert notebook.complaints == []


# Without a kernel ---------------------------------------------------------------------------


def test_rates_settings_and_start_are_alive(opened):
    page = opened(ol.explore(own, ["Momentum", "Adam"], steps=80))
    root = page.root
    for label in ("learning rate of Adam", "beta1 of Adam", "momentum of Momentum"):
        name = label.split()[-1]
        before = root.evaluate(PATH, name)
        slider = root.get_by_label(label)
        slider.focus()
        slider.press("ArrowLeft")
        ready(root)
        assert root.evaluate(PATH, name) != before
    canvas = root.locator(".ol-map canvas[tabindex]")
    box = canvas.bounding_box()
    x, y = root.evaluate("root => root.explorer.map.startPlace()")
    mouse = page.page.mouse
    mouse.move(box["x"] + x, box["y"] + y)
    mouse.down()
    for i in range(12):
        mouse.move(box["x"] + x + 5 * i, box["y"] + y + 3 * i)
    mouse.up()
    ready(root)
    dragged = root.evaluate(STATE)["start"]
    assert dragged != [-2, 2]
    assert root.evaluate(PATH)[:2] == dragged
    canvas.focus()
    canvas.press("ArrowRight")
    ready(root)
    assert root.evaluate(PATH)[0] > dragged[0]
    root.get_by_label("menu", exact=True).first.click()
    root.get_by_label("steps", exact=True).fill("33")
    root.get_by_label("steps", exact=True).press("Enter")
    ready(root)
    assert root.evaluate("root => root.explorer.shown[0].run.steps") == 33
    quiet = root.evaluate(PATH)
    root.get_by_label("gradient noise").fill("0.5")
    root.get_by_label("gradient noise").press("Enter")
    ready(root)
    assert root.evaluate(PATH) != quiet
    for _ in range(3):
        root.get_by_role("button", name="Undo").click()
    ready(root)
    assert root.evaluate("root => root.explorer.shown[0].run.steps") == 80
    root.get_by_role("button", name="Reset").click()
    ready(root)
    assert root.evaluate(STATE)["start"] == [-2, 2]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("saddle escape", "monkey_saddle"), ("noise", "noisy_bowl"), ("stability limit", "parabola"),
     ("LookAhead", "valley")],
)  # fmt: skip
def test_a_preset_is_alive_and_has_python_s_runs(opened, name, problem):
    page = opened(ol.explore())
    page.root.locator(f'.ol-example[data-name="{name}"]').click()
    ready(page.root)
    assert page.root.evaluate(STATE)["problem"] == problem
    made = ol.explore().change(preset=name)
    assert page.root.locator(".ol-claim").inner_text() == made.model.claim[0]
    for label, runs in made.model.runs.items():
        rate = made.model.rate_index(label)
        found = page.root.evaluate(
            """(root, name) => {
              const { run, rate } = root.explorer.shown.find(({ entry }) => entry.name === name);
              return { rate, path: Array.from(run.path), loss: Array.from(run.loss) };
            }""",
            label,
        )
        assert found["rate"] == runs.rates[rate]
        path, loss = (np.array(found[key], float) for key in ("path", "loss"))
        assert np.array_equal(path, runs.point[rate].ravel(), equal_nan=True)
        assert np.array_equal(loss, runs.loss[rate], equal_nan=True)


def test_play_step_scrub_and_select(opened):
    page = opened(ol.explore(own, ["SGD", "RMSProp", "Adam"], steps=100))
    root = page.root
    root.get_by_label("play", exact=True).click()
    until(root, "explorer.state.step > 10")
    root.get_by_label("pause").click()
    assert not root.evaluate("root => root.explorer.playing")
    scrub = root.get_by_label("step", exact=True)
    scrub.focus()
    scrub.press("Home")
    scrub.press("ArrowRight")
    assert root.evaluate(STATE)["step"] == 1
    curve = root.locator(".ol-plot-area canvas[tabindex]")
    curve.focus()
    for key, step in (("End", 100), ("ArrowLeft", 99), ("Home", 0), ("Shift+ArrowRight", 10)):
        curve.press(key)
        assert root.evaluate(STATE)["step"] == step
    curve.press("ArrowUp")
    assert root.evaluate(STATE)["selected"] == "RMSProp"
    curve.press(" ")
    assert root.evaluate("root => root.explorer.playing")
    curve.press(" ")
    box = curve.bounding_box()
    page.page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 20)
    assert 60 < root.evaluate(STATE)["step"] < 85
    for number, tab in enumerate(["loss", "memory", "length", "angle", "plane"], 1):
        curve.press(str(number))
        assert root.evaluate(STATE)["tab"] == tab
    curve.press("t")
    assert root.evaluate(STATE)["view"] == "apart"
    root.get_by_role("button", name="Look").focus()
    root.get_by_role("button", name="Look").press("?")
    expect(root.get_by_role("dialog", name="keys")).to_be_visible()


def test_the_map_is_zoomed_panned_and_fitted(opened):
    page = opened(ol.explore(own, ["SGD"], steps=40))
    root, mouse = page.root, page.page.mouse
    canvas = root.locator(".ol-map canvas[tabindex]")
    box = canvas.bounding_box()
    first = root.evaluate("root => root.explorer.map.box")
    middle = (box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.85)
    mouse.move(*middle)
    mouse.wheel(0, -100)
    ready(root)
    near = root.evaluate("root => root.explorer.map.box")
    assert near[1] - near[0] < first[1] - first[0]
    assert "loss" in root.locator(".ol-hover").inner_text()
    assert "slope" in root.locator(".ol-hover").inner_text()
    mouse.down()
    mouse.move(middle[0] - 40, middle[1] - 30)
    mouse.up()
    ready(root)
    assert root.evaluate("root => root.explorer.map.box")[0] > near[0]
    mouse.dblclick(*middle)
    ready(root)
    assert root.evaluate("root => root.explorer.map.box") == pytest.approx(first)
    canvas.focus()
    canvas.press("+")
    ready(root)
    assert root.evaluate("root => root.explorer.map.box")[0] > first[0]


def test_the_address_keeps_the_state(chromium, opened):
    page = opened(ol.explore("beale", {"Adam": ol.optimizer.Adam(0.1)}, steps=60))
    slider = page.root.get_by_label("learning rate of Adam")
    slider.focus()
    slider.press("ArrowLeft")
    page.page.wait_for_function("location.hash.length > 1")
    again = chromium.new_page(viewport={"width": 924, "height": 700})
    again.goto(page.page.url)
    root = again.locator(".optlab-explorer")
    root.wait_for()
    ready(root)
    assert root.evaluate(STATE) == page.root.evaluate(STATE)
    for kept in ({"step": "oops"}, {"start": [1]}, {"optimizers": [{"name": "A"}]}):
        again.goto("about:blank")
        again.goto(f"{page.page.url.split('#')[0]}#{quote(json.dumps(kept))}")
        root.wait_for()
        ready(root)
        assert root.evaluate("root => root.explorer.state") == root.evaluate(
            "root => root.explorer.opened"
        )
    again.close()


def test_a_function_of_one_s_own_stays_in_the_list_of_problems(opened):
    root = opened(ol.explore(own, ["SGD", "Adam"], start=(1.0, 1.5), steps=40)).root
    root.press("n")
    until(root, "explorer.state.preset === 'narrow valley'")
    ready(root)
    root.get_by_label("what is shown").select_option("p:rosenbrock")
    ready(root)
    root.get_by_label("what is shown").select_option("p:own")
    until(root, "explorer.state.problem === 'own'")
    ready(root)
    assert root.evaluate(STATE)["start"] == [1, 1.5]
    assert root.evaluate("root => root.explorer.problem.options[0].value") == "p:own"


def test_the_focus_stays_where_a_hand_has_put_it(opened):
    page = opened(ol.explore("beale", ["SGD", "Momentum", "Adam"], steps=40))
    root, held = (
        page.root,
        "root => root.explorer.focused?.ariaLabel || root.explorer.focused?.textContent",
    )
    menu = root.get_by_role("dialog", name="menu")
    root.press("m")
    for text in ("equal rates", "each at its best rate"):
        button = root.get_by_role("button", name=text)
        button.focus()
        button.press("Enter")
        ready(root)
        assert root.evaluate(held) == text
    page.page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    root.press("m")
    expect(menu).to_be_visible()
    page.page.mouse.click(2, 695)
    expect(menu).to_be_hidden()
    cross = root.get_by_label("remove Momentum")
    cross.focus()
    cross.press("Enter")
    until(root, "explorer.focused?.ariaLabel === 'remove Adam'")
    page.page.keyboard.press("Enter")
    until(root, "explorer.focused?.classList.contains('ol-row-name')")
    expect(root.get_by_label("remove SGD")).to_be_hidden()


def test_copy_as_python_gives_the_same_runs(opened):
    page = opened(ol.explore("beale", {"Adam": ol.optimizer.Adam(0.1)}, steps=60))
    for label in ("learning rate of Adam", "beta1 of Adam"):
        page.root.get_by_label(label).focus()
        page.root.get_by_label(label).press("ArrowLeft")
    page.root.get_by_label("menu", exact=True).first.click()
    page.root.get_by_role("button", name="Copy as Python").click()
    code = page.root.get_by_label("the state as Python").input_value()
    names = {}
    exec(code.replace("ol.explore", "made = ol.explore"), names)
    [(_, runs)] = names["made"].model.runs.items()
    path = runs.point[names["made"].model.rate_index("Adam")].ravel()
    assert page.root.evaluate(PATH, "Adam") == path[:80].tolist()
    page = opened(ol.explore("beale", ["SGD", "Adam"], steps=60).change(step=7, tab="angle"))
    page.root.get_by_label("menu", exact=True).first.click()
    page.root.get_by_role("button", name="Copy as Python").click()
    code = page.root.get_by_label("the state as Python").input_value()
    assert 'ol.explore("beale", ["SGD", "Adam"], ' in code, "as a person writes it"
    exec(code.replace("ol.explore", "made = ol.explore"), names)
    assert names["made"].now.to_dict() == page.root.evaluate(STATE)


@pytest.mark.parametrize("shown", ["page", "output of a cell"])
def test_a_frozen_page_opens_on_what_was_shown(chromium, tmp_path, shown):
    explorer = ol.explore("beale", ["SGD", "Adam"], steps=60)
    if shown == "page":
        path = explorer.to_html(tmp_path / "page.html")
    else:
        path = tmp_path / "output.html"
        path.write_text(explorer._repr_mimebundle_()["text/html"])
    page = Page(chromium, path)
    page.root.evaluate("root => root.explorer.go(17)")
    page.root.get_by_label("menu", exact=True).first.click()
    with page.page.expect_download() as saved:
        page.root.get_by_role("button", name="Freeze as a page").click()
    path = tmp_path / "frozen.html"
    saved.value.save_as(path)
    again = Page(chromium, path)
    assert again.root.evaluate(STATE)["step"] == 17
    assert again.root.evaluate(PATH) == page.root.evaluate(PATH)
    assert again.root.evaluate("root => root.explorer.model.isStatic"), "it asks for no kernel"
    again.close()
    page.close()


def test_what_a_page_cannot_compute_is_taken_back_and_said(opened):
    page = opened(ol.explore("beale", {"Adam": ol.optimizer.Adam(0.1)}, steps=60))
    page.root.evaluate("root => root.explorer.setSetting('Adam', 'beta1', 0.123)")
    ready(page.root)
    said = page.root.locator(".ol-message").inner_text()
    assert "needs a kernel: this page has beta1 only at 0, 0.3, " in said
    page.root.get_by_role("button", name="copy as Python").click()
    assert "beta1=0.123" in page.root.get_by_label("the state as Python").input_value()
    page.root.get_by_role("button", name="close").click()
    page.root.evaluate("root => root.explorer.setSetting('Adam', 'beta1', 0.123)")
    ready(page.root)
    assert page.root.evaluate(STATE)["optimizers"][0]["settings"]["beta1"] == 0.9
    page.root.evaluate("root => root.explorer.setRate('Adam', 0.2)")
    expect(page.root.locator(".ol-message")).to_be_hidden()


def test_a_number_that_is_refused_is_said_where_it_is_seen_and_taken_back(opened):
    root = opened(ol.explore("beale", ["SGD", "Adam"], steps=60)).root
    top = "root => root.querySelector('.ol-map').getBoundingClientRect().top"
    before = root.evaluate(top)
    root.press("m")
    field, said = root.get_by_label("steps", exact=True), root.locator(".ol-menu-said")
    expect(said).to_be_hidden()
    for wrong in ("20000", "-5", "1.5"):
        field.fill(wrong)
        field.press("Enter")
        expect(said).to_have_text(f"steps is a whole number from 1 to 2000; {wrong} is none.")
        expect(field).to_have_value("60")
    field.fill("1900")  # more than the page has
    field.press("Enter")
    expect(said).to_contain_text("this page has at most 1000 steps")
    expect(field).to_have_value("60")
    expect(root.locator(".ol-message")).to_be_hidden()
    assert root.evaluate(top) == before
    field.fill("50")
    field.press("Enter")
    expect(said).to_be_hidden()
    assert root.evaluate(STATE)["steps"] == 50
    root.get_by_label("gradient noise").fill("-1")
    root.get_by_label("gradient noise").press("Enter")
    expect(said).to_contain_text("at least 0")
    root.get_by_role("button", name="Reset").click()
    expect(said).to_be_hidden()


def test_the_rate_of_an_optimizer_that_is_added_is_said_until_the_next_change(opened):
    root = opened(ol.explore()).root
    root.get_by_label("add an optimizer").select_option("Adam")
    message = root.locator(".ol-message")
    expect(message).to_have_text("Adam 2 starts at its best rate, 1.")
    assert root.evaluate("root => root.explorer.selected.rate") == 1
    kinds = {"Momentum": "Momentum", "Adam": "Adam", "Adam 2": "Adam"}
    markers = [style.marker for style in theme.assign_styles(kinds).values()]
    shown = root.evaluate("root => root.explorer.shown.map((one) => one.style.marker)")
    assert shown == markers
    slider = root.get_by_label("learning rate of Adam 2")
    slider.focus()
    slider.press("ArrowLeft")
    expect(message).to_be_hidden()


def test_the_menu_tells_the_best_rate_from_the_lowest_last_loss(opened):
    root = opened(ol.explore(lambda x: x**4 - 3 * x**2 + x, ["SGD", "Adam"])).root
    conditions = "root => root.explorer.conditions()"
    assert "○ marks the lowest loss after the last step" in root.evaluate(conditions)
    assert "○ lowest" in root.locator(".ol-caption").inner_text()
    slider = root.get_by_label("learning rate of Adam")
    slider.focus()
    slider.press("ArrowLeft")
    assert "Rates: set by hand." in root.evaluate(conditions)


def test_regions_that_are_not_defined_are_hatched_and_no_start(opened):
    page = opened(ol.explore(lambda x, y: np.log(x) ** 2 + y**2, ["SGD"], start=(2.0, 1.0)))
    page.root.evaluate("root => root.explorer.map.zoom(4, 200, 200)")
    ready(page.root)
    assert "not defined" in page.root.locator(".ol-map-note").inner_text()
    page.root.evaluate("root => root.explorer.moveStart([-1, 1])")
    ready(page.root)
    assert page.root.evaluate(STATE)["start"] == [2, 1]
    assert "not defined" in page.root.locator(".ol-message").inner_text()


def test_a_curve_has_the_window_of_its_static_picture(opened):
    made = ol.explore(lambda x: x**4 - 3 * x**2 + x, ["SGD", "Adam"], steps=60)
    root, box = opened(made).root, made.model.box
    found = root.evaluate("root => root.explorer.map.box")
    assert found == pytest.approx([box.x_low, box.x_high, box.y_low, box.y_high])
    stars = """root => root.explorer.map.minimaMarks(root.explorer.map.labels).map((mark) =>
      root.explorer.map.pointAt(mark.x[0], mark.y[0])).flat()"""
    view = curve_view(made.model.problem)
    assert root.evaluate(stars) == pytest.approx(np.ravel(view.marked).tolist())


@pytest.mark.parametrize("count", [3, 4, 12])
def test_many_optimizers(opened, count):
    made = {f"Adam {i}": ol.optimizer.Adam(0.01 * (i + 1)) for i in range(count)}
    page = opened(ol.explore("beale", made, steps=60))
    assert page.root.locator(".ol-row").count() == (3 if count == 3 else 1)
    assert page.root.locator(".ol-chip").count() == (0 if count == 3 else count)
    assert page.root.evaluate("root => root.scrollWidth <= root.clientWidth")


@pytest.mark.parametrize("width", [1190, 938, 700, 390])
@pytest.mark.parametrize("view", ["look", "apart"])
def test_it_fits_every_width(opened, width, view):
    page = opened(ol.explore().change(view=view, step=12), width=width)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.root.evaluate(
        """root => [...root.querySelectorAll("button, select, .ol-value, .ol-notches")]
         .filter((e) => {
          const box = e.getBoundingClientRect(), all = root.getBoundingClientRect();
          return box.width && (box.right > all.right + 1 || box.left < all.left - 1);
        }).length"""
    )
    assert cut == 0
    if width > 900:
        assert page.root.evaluate("root => root.offsetHeight") <= 600


EXACT = ("SGD", "Momentum", "RMSProp", "Adam", "AdamW", "NAdam", "Adagrad", "Lion")
RUN = """(root, [name, rate]) => {
  const { engine, state } = root.explorer;
  const run = engine.run(state, state.optimizers.find((one) => one.name === name), rate);
  return { path: Array.from(run.path), loss: Array.from(run.loss), live: run.live };
}"""


def test_paths_have_the_bits_of_the_engine(opened):
    made = ol.explore(own, list(EXACT), steps=60, start=(-1.5, 1.25))
    page = opened(made)
    for name in EXACT:
        runs = made.model.runs[name]
        for rate in (0.001, 0.02, 0.5):
            found = page.root.evaluate(RUN, [name, rate])
            assert found["live"]
            i = runs.rates.index(rate)
            path = np.array(found["path"], float)
            assert np.array_equal(path, runs.point[i].ravel(), equal_nan=True), name
            taken = np.isfinite(runs.loss[i])
            assert np.array_equal(np.array(found["loss"], float)[taken], runs.loss[i][taken]), name


# Saved notebooks ----------------------------------------------------------------------------


def test_a_saved_notebook_is_alive_without_kernel_and_network(chromium, tmp_path):
    output = ol.explore(own, ["SGD", "Adam"], steps=40)._repr_mimebundle_()["text/html"]
    path = tmp_path / "saved.html"
    path.write_text(
        f"<!doctype html><meta charset='utf-8'><body>{output}{output}", encoding="utf-8"
    )
    page = chromium.new_page(viewport={"width": 924, "height": 1300})
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    roots = page.locator(".optlab-explorer")
    roots.nth(1).wait_for()
    for root in (roots.nth(0), roots.nth(1)):
        ready(root)
        before = root.evaluate(PATH)
        root.get_by_label("learning rate of SGD").focus()
        root.get_by_label("learning rate of SGD").press("ArrowLeft")
        ready(root)
        assert root.evaluate(PATH) != before
    expect(page.locator("img")).to_have_count(0)
    assert complaints == []
    page.close()


def test_where_scripts_do_not_run_there_is_a_picture(chromium, tmp_path):
    output = ol.explore(own, ["SGD", "Adam"], steps=40)._repr_mimebundle_()["text/html"]
    path = tmp_path / "saved.html"
    path.write_text(output, encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("img").bounding_box()["width"] > 600
    context.close()
