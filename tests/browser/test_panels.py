"""The panels behind "more" and the reference methods, on functions that no preset has."""

import numpy as np
import pytest
from playwright.sync_api import expect

import optlab as ol
from tests.browser.test_explorer import STATE, Page, opened, own, ready, until  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.nightly, pytest.mark.slow]

FOUR = "(x**2 - 1)**2 + (y**2 - 1)**2 + 0.2*x + 0.1*y"
BOWL = "2*x**2 + 9*y**2 + x*y - 3*x"
DONE = "!explorer.beside.panels.basins.running && explorer.beside.panels.basins.painted"
LABELS = """root => {
  const { painted } = root.explorer.beside.panels.basins;
  return { ...painted, basin: Array.from(painted.basin), box: root.explorer.map.box };
}"""


def panel(page, name):
    """Open a panel as a reader does."""
    page.root.get_by_role("tab", name="more").click()
    page.root.get_by_role("button", name=name, exact=True).click()
    ready(page.root)


def test_the_first_view_is_calm(opened):  # noqa: F811
    page = opened(ol.explore(own, ["SGD", "Adam"], steps=60))
    expect(page.root.locator(".ol-beside")).to_be_hidden()
    expect(page.root.locator(".ol-formula-field")).to_be_hidden()
    cut = page.root.locator(".ol-tabs").evaluate("e => e.scrollWidth - e.clientWidth")
    assert cut <= 0


def test_basins_are_those_of_python(opened):  # noqa: F811
    momentum = ol.optimizer.Momentum(0.01, momentum=0.9)
    page = opened(ol.explore(FOUR, {"Momentum": momentum}, steps=200))
    panel(page, "basins")
    page.root.get_by_role("button", name="whole domain").click()
    ready(page.root)
    page.page.wait_for_timeout(300)
    until(page.root, DONE)
    found = page.root.evaluate(LABELS)
    columns, rows = found["columns"], found["rows"]
    x0, x1, y0, y1 = found["box"]
    surface = ol.problems.Surface(FOUR, domain=[(x0, x1), (y0, y1)])
    wanted = ol.basins(surface, momentum, grid=columns, steps=200)
    assert len(found["minima"]) == len(wanted.minima) == 4
    np.testing.assert_allclose(found["minima"], wanted.minima, atol=1e-4)
    # Each start of the page by a run of the engine: to the bit, so that all labels agree.
    for i in range(0, rows * columns, 97):
        start = (
            x0 + (i % columns + 0.5) / columns * (x1 - x0),
            y1 - (i // columns + 0.5) / rows * (y1 - y0),
        )
        race = ol.compare(surface, {"m": momentum}, start=start, steps=200)
        end = race["m"].parameters["point"][-1]
        apart = np.linalg.norm(wanted.minima - end, axis=1)
        label = found["basin"][i]
        assert label == (np.argmin(apart) if apart.min() < 0.01 * np.hypot(6, 6) else -1)
    legend = page.root.get_by_role("list", name="basins").inner_text()
    assert legend.count("loss") == 4
    assert "%" in legend
    first = found["minima"][0]
    assert f"({first[0]:.3g}".replace("-", "−")[:5] in legend


def test_basins_follow_the_rate_and_can_be_canceled(opened):  # noqa: F811
    page = opened(ol.explore(FOUR, {"SGD": ol.optimizer.SGD(0.05)}, steps=400))
    panel(page, "basins")
    until(page.root, DONE)
    before = page.root.evaluate(LABELS)
    page.root.evaluate("root => root.explorer.setRate('SGD', 0.5)")
    page.page.wait_for_timeout(300)
    until(page.root, DONE)
    assert page.root.evaluate(LABELS)["basin"] != before["basin"]
    assert "diverges" in page.root.get_by_role("list", name="basins").inner_text()
    # Canceled at its first piece, it stops, and the map keeps what it showed.
    page.root.evaluate("""root => {
      const { basins } = root.explorer.beside.panels;
      basins.begin();
      basins.button.click();
    }""")
    assert "Canceled" in page.root.locator(".ol-beside-note:visible").inner_text()
    assert not page.root.evaluate("root => root.explorer.beside.panels.basins.running")
    page.root.get_by_role("tab", name="loss").click()
    ready(page.root)
    assert page.root.evaluate("root => root.explorer.beside.groundKey") == ""


def test_the_page_stays_alive_while_starts_run(opened):  # noqa: F811
    page = opened(ol.explore(FOUR, {"SGD": ol.optimizer.SGD(0.01)}, steps=400))
    longest = page.root.evaluate("""async (root) => {
      const { explorer } = root, { basins } = explorer.beside.panels;
      explorer.set({ tab: "beside", beside: "basins" });
      explorer.draw();
      basins.begin();
      let pieces = 0;
      while (basins.running) {
        pieces += 1;
        await new Promise(requestAnimationFrame);
      }
      return pieces;
    }""")
    assert longest >= 3  # frames in between, in each of which the page can react


def test_curvature_is_that_of_python_and_negative_ones_have_no_ratio(opened):  # noqa: F811
    page = opened(ol.explore(own, ["SGD"], steps=60, start=(1.5, 1.0)).change(step=20))
    panel(page, "curvature")
    spots = page.root.locator(".ol-spot")
    point = page.root.evaluate("""root => {
      const { run } = root.explorer.selected;
      return Array.from(run.path.slice(40, 42));
    }""")
    at = ol.lab.curvature(own, point)
    said = spots.nth(0).inner_text()
    assert at.kind == "bowl"
    assert f"condition number {at.condition:.3g}" in said
    assert f"{at.curvatures[1]:.3g} and {at.curvatures[0]:.3g}" in said
    # Near x = 0 the function curves down along one direction.
    x, y = page.root.evaluate("({ explorer: { map } }) => [map.x(0), map.y(0.5)]")
    box = page.root.locator(".ol-map").bounding_box()
    page.page.mouse.move(box["x"] + x, box["y"] + y)
    ready(page.root)
    said = spots.nth(1).inner_text()
    assert ol.lab.curvature(own, (0.0, 0.5)).kind == "saddle"
    assert "down along the dashed axis" in said
    assert "condition" not in said
    assert "−" in said


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.95])
def test_modes_of_a_quadratic_are_those_of_the_closed_form(opened, momentum, nesterov):  # noqa: F811
    optimizer = ol.optimizer.Momentum(0.05, momentum=momentum, use_nesterov=nesterov)
    page = opened(ol.explore(BOWL, {"Momentum": optimizer}, steps=100))
    panel(page, "modes")
    wanted = ol.lab.closed_form(BOWL, optimizer, steps=100)
    directions = page.root.get_by_role("list", name="directions")
    rows = directions.get_by_role("listitem").all_inner_texts()
    for row, curve, factor, kind in zip(
        rows, wanted.curvatures[::-1], wanted.convergence[::-1], wanted.kinds[::-1], strict=True
    ):
        assert f"curvature {curve:.3g}" in row
        assert kind in row
        assert float(row.partition("×")[2]) == pytest.approx(factor, rel=1e-3)
    note = page.root.locator(".ol-beside-note:visible").inner_text()
    assert f"diverges above rate {wanted.stability_limit:.4g}" in note
    assert float(note.partition("differ by ")[2].split()[0]) < 1e-12
    expect(page.root.locator(".ol-beside-canvas:visible")).to_have_count(1)


def test_where_there_are_no_modes_it_says_so(opened):  # noqa: F811
    page = opened(ol.explore(own, ["Adam"], steps=60))
    panel(page, "modes")
    assert "no quadratic" in page.root.locator(".ol-beside").inner_text()
    page.root.evaluate(f"root => root.explorer.chooseFormula('{BOWL}')")
    ready(page.root)
    text = page.root.locator(".ol-beside").inner_text()
    assert "not of Adam" in text
    assert "diverges above rate" in text


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_the_rate_test_is_that_of_python(opened, name):  # noqa: F811
    template = getattr(ol.optimizer, name)(0.01)
    page = opened(ol.explore(BOWL, {name: template}, steps=60))
    panel(page, "rate test")
    wanted = ol.lab.lr_range_test(BOWL, template)
    found = page.root.evaluate("root => root.explorer.beside.panels.rates.found")
    np.testing.assert_allclose(found["rates"], wanted.all_rates, rtol=1e-12)
    np.testing.assert_allclose(found["loss"][:100], wanted.loss[:100], rtol=1e-9)
    assert found["suggestion"] == pytest.approx(wanted.suggestion, rel=1e-9)
    assert found["highest"] == pytest.approx(wanted.highest, rel=1e-9)
    page.root.get_by_role("button", name="use rate").click()
    ready(page.root)
    assert page.root.evaluate("root => root.explorer.selected.rate") == found["suggestion"]


def test_reference_methods_say_what_they_pay_and_that_they_need_a_kernel(opened):  # noqa: F811
    methods = {"Newton": ol.lab.Newton(), "Adam": ol.optimizer.Adam(0.1)}
    made = ol.explore(own, methods, steps=60)
    page = opened(made)
    runs = made.model.runs["Newton"]
    path = runs.point[made.model.rate_index("Newton")]
    moved = np.flatnonzero((np.diff(path, axis=0) != 0).any(axis=1)) + 1
    said = page.root.locator(".ol-caption").inner_text()
    steps, gradients = len(moved), moved[-1]
    assert f"Newton: {steps} steps paid by {gradients} gradients" in said
    assert gradients > 4 * steps  # four for the Hessian, and those of the search
    page.root.get_by_label("add an optimizer").select_option("ConjugateGradient")
    assert "ConjugateGradient needs a kernel" in page.root.locator(".ol-message").inner_text()
    assert len(page.root.evaluate(STATE)["optimizers"]) == 2
    page.root.get_by_role("button", name="copy as Python").click()
    text = page.root.get_by_label("the state as Python").input_value()
    again = eval(text.partition("\n\n")[2], {"ol": ol, "own": own})
    assert list(again.model.runs)[-1] == "ConjugateGradient"


def test_of_many_optimizers_one_stands_out(opened):  # noqa: F811
    made = {f"Adam {i}": ol.optimizer.Adam(0.01 * (i + 1)) for i in range(11)}
    made["LBFGS"] = ol.optimizer.LBFGS(line_search_fn="strong_wolfe")
    page = opened(ol.explore(own, made, steps=60).change(selected="Adam 3"))
    faint = "({ explorer }) => explorer.shown.filter((one) => explorer.map.faint(one)).length"
    assert page.root.evaluate(faint) == 11
    page.root.get_by_role("radio", name="LBFGS").click()
    ready(page.root)
    assert page.root.evaluate(faint) == 11
    assert not page.root.evaluate("({ explorer }) => explorer.map.faint(explorer.selected)")
    assert page.root.evaluate(STATE)["selected"] == "LBFGS"


@pytest.mark.parametrize("width", [1190, 938, 700, 390])
@pytest.mark.parametrize("name", ["basins", "curvature", "modes", "rate test"])
def test_the_panels_fit_every_width(opened, width, name):  # noqa: F811
    page = opened(ol.explore(BOWL, ["SGD", "Momentum"], steps=60), width=width)
    panel(page, name)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    over = page.root.evaluate("""root => {
      const bar = root.querySelector(".ol-controls").getBoundingClientRect();
      const beside = root.querySelector(".ol-beside").getBoundingClientRect();
      return beside.bottom - bar.top;
    }""")
    assert over <= 1
    if width == 938 and name != "curvature":  # nothing is below the edge of the panel
        hidden = "root => { const e = root.querySelector('.ol-beside'); return e.scrollHeight - e.clientHeight; }"  # noqa: E501
        assert page.root.evaluate(hidden) <= 1


def test_the_full_page_has_all_presets_optimizers_and_the_field(chromium, tmp_path, capsys):
    from optlab.cli import main
    from optlab.viz.explorer.presets import PRESETS

    path = tmp_path / "full.html"
    assert main(["page", str(path)]) == 0
    assert "Wrote" in capsys.readouterr().out
    page = Page(chromium, path)
    options = page.root.get_by_label("what is shown").locator("option")
    values = options.evaluate_all("options => options.map((option) => option.value)")
    assert all(value.startswith(("p:", "w:")) for value in values)
    examples = page.root.locator(".ol-example")
    named = examples.evaluate_all("all => all.map((one) => one.dataset.name)")
    assert set(named) == set(PRESETS)
    assert "a formula of your own …" in options.all_inner_texts()
    offered = page.root.evaluate("root => root.explorer.addable()")
    assert {"SGD", "Adam", "Lion", "RMSProp", "Adadelta", "Ftrl", "NAdam", "RAdam"} <= set(offered)
    for kind in offered:
        page.root.evaluate("(root, kind) => root.explorer.addOptimizer(kind)", kind)
    ready(page.root)
    assert page.root.locator(".ol-chip").count() == len(offered) + 2
    for name in PRESETS:
        page.root.evaluate("(root, name) => root.explorer.chooseScene(`s:${name}`)", name)
        ready(page.root)
        assert page.root.evaluate("root => root.explorer.shown.every((one) => one.run)"), name
    expect(page.root.locator(".ol-message")).to_be_hidden()
    page.close()


# In JupyterLab ------------------------------------------------------------------------------


def test_with_a_kernel_a_formula_and_a_reference_method_reach_python(notebook):
    notebook.put("import optlab as ol\ne = ol.explore('beale', ['SGD', 'Adam'], steps=60)\ne")
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-explorer")
    root.wait_for(timeout=60_000)
    notebook.rest()
    until(root, "explorer.laidOut && explorer.model.alive")
    root.get_by_label("what is shown").select_option(label="a formula of your own …")
    root.get_by_label("formula of x and y").fill(BOWL)
    root.get_by_label("formula of x and y").press("Enter")
    until(root, f"explorer.state.problem === '{BOWL}'")
    ready(root)
    root.get_by_label("add an optimizer").select_option("Newton")
    until(root, "explorer.shown.some((one) => one.entry.name === 'Newton' && one.run)")
    ready(root)
    assert "Newton: " in root.locator(".ol-caption").inner_text()
    notebook.page.wait_for_timeout(600)
    code = "m = e.model; print(e.now.problem, list(m.runs), m.runs['Newton'].paid()[-1])"
    notebook.put(code, 1)
    said = notebook.run(1).inner_text()
    assert said.startswith(f"{BOWL} ['SGD', 'Adam', 'Newton']")
    # One that is waited for can be canceled; what was shown stays.
    root.evaluate("""root => {
      const { explorer } = root;
      explorer.addOptimizer("SteepestDescent");
      explorer.waitingSaid("add", "SteepestDescent");
    }""")
    assert "Adding SteepestDescent" in root.locator(".ol-message").inner_text()
    expect(root.locator(".ol-message progress")).to_have_count(1)
    root.get_by_role("button", name="cancel", exact=True).first.click()
    expect(root.locator(".ol-message")).to_be_hidden()
    notebook.page.wait_for_timeout(1500)
    assert [one["name"] for one in root.evaluate(STATE)["optimizers"]] == ["SGD", "Adam", "Newton"]
    assert notebook.complaints == []


SLOW = """import time
import optlab as ol
wait = [0.0]
def slow(x, y):
    time.sleep(wait[0])
    return x**2 + 3 * y**2 if x > 0 else 2 * x**2 + 3 * y**2
e = ol.explore(slow, ["SGD", "Adam"], start=(2.0, 1.5), steps=10)
e"""
NAMES = "root => root.explorer.shown.map((one) => one.entry.name)"


def test_adding_to_a_slow_function_shows_progress_and_can_be_canceled(notebook):
    notebook.put(SLOW)
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-explorer")
    root.wait_for(timeout=60_000)
    notebook.rest()
    until(root, "explorer.laidOut && explorer.model.alive")
    ready(root)
    assert "computed by the kernel" in root.locator(".ol-caption").inner_text()
    notebook.put("wait[0] = 0.002; print(wait)", 1)
    notebook.run(1)
    add, said = root.get_by_label("add an optimizer"), root.locator(".ol-message")
    add.select_option("Momentum")
    until(root, "!explorer.message.hidden")
    assert said.inner_text().startswith("Adding Momentum …")
    assert said.get_by_role("progressbar").is_visible()
    assert root.get_attribute("aria-busy") == "true"
    # What is shown is alive while the kernel computes.
    root.get_by_label("step", exact=True).press("ArrowRight")
    assert root.evaluate(STATE)["step"] == 1
    until(root, "explorer.shown.some((one) => one.entry.name === 'Momentum' && one.run)")
    ready(root)
    assert said.is_hidden()
    assert root.get_attribute("aria-busy") is None
    assert root.evaluate(STATE)["step"] == 1
    add.select_option("RMSProp")
    until(root, "!explorer.message.hidden")
    said.get_by_role("button", name="cancel").click()
    assert said.is_hidden()
    assert root.evaluate(NAMES) == ["SGD", "Adam", "Momentum"]
    # A cell runs after the kernel is done: what nobody waits for changes nothing, here or there.
    notebook.put("print('done')", 2)
    assert "done" in notebook.run(2).inner_text()
    notebook.page.wait_for_timeout(600)
    assert root.evaluate(NAMES) == ["SGD", "Adam", "Momentum"]
    notebook.put("print([one.name for one in e.now.optimizers])", 3)
    assert notebook.run(3).inner_text().strip() == "['SGD', 'Adam', 'Momentum']"
    assert notebook.complaints == []
