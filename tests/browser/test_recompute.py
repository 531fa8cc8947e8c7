"""The explorer of memory studies in a real JupyterLab, and its saved page without a kernel."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CODE = """import optlab as ol
ol.seed(0)
blocks = [ol.nn.Sequential(ol.nn.Linear(32, 32), ol.nn.GELU()) for _ in range(9)]
x = ol.randn([256, 32])
step = lambda run: run(blocks, x).mean().backward()
study = ol.lab.memory_study(step, [3, "revolve"], ["600 KiB", 2000], repeats=1)
explorer = ol.viz.recompute_explorer(study)
explorer"""


def shown(notebook):
    notebook.put(CODE)
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-recompute")
    root.wait_for(timeout=120_000)
    return root


def wait_for(root, wanted):
    root.evaluate(
        """async (root, wanted) => {
          const end = performance.now() + 30000;
          while (root.explorer.selected !== wanted) {
            if (performance.now() > end) throw new Error(`never run ${wanted}`);
            await new Promise((done) => setTimeout(done, 15));
          }
        }""",
        wanted,
    )


def test_it_is_driven_by_mouse_by_keys_and_by_python(notebook):
    root = shown(notebook)
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")
    assert "plain: peak" in root.locator(".ol-said").inner_text()
    plot = root.get_by_label("memory of the run over its events")
    heights = [plot.locator("path[data-role=saved]").bounding_box()["height"]]
    root.get_by_label("the next run").click()
    assert "3 segments" in root.locator(".ol-stage").inner_text()
    expect(plot.locator("path[data-role=recomputed]")).to_have_count(1)
    heights.append(plot.locator("path[data-role=saved]").bounding_box()["height"])
    assert heights[1] < heights[0]
    plot.focus()
    plot.press("ArrowRight")
    assert "revolve" in root.locator(".ol-stage").inner_text()
    assert root.locator(".ol-run.ol-chosen").get_attribute("data-run") == "2"
    plot.press("End")
    assert "cannot be met" in plot.locator("svg").inner_html()
    slider = root.get_by_label("the run that is shown")
    slider.press("Home")
    wait_for(root, 0)
    root.locator(".ol-run[data-run='3']").click()
    assert "budget 600 KiB" in root.locator(".ol-said").inner_text()
    root.get_by_text("All runs as a table").click()
    expect(root.locator(".ol-rows tr")).to_have_count(6)
    notebook.put("explorer.selected = 2; print(explorer.row.name)", 1)
    notebook.run(1)
    wait_for(root, 2)
    assert notebook.complaints == []


def test_stray_keys_reach_no_command_of_the_notebook(notebook):
    root = shown(notebook)
    cells = notebook.page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    for target in root.locator("button, input, summary, [tabindex]").all():
        assert target.get_attribute("data-lm-suppress-shortcuts") == "true"
        target.focus()
        for key in "xabdd":
            notebook.page.keyboard.press(key)
    assert cells.count() == count
    assert notebook.complaints == []


@pytest.mark.parametrize("width", [1200, 420])
def test_the_saved_page_lives_without_a_kernel(chromium, tmp_path, width):
    names = {}
    exec(CODE, names)
    path = names["explorer"].to_html(tmp_path / "study.html")
    page = chromium.new_page(viewport={"width": width, "height": 900})
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    root = page.locator(".optlab-recompute")
    root.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    root.get_by_label("the next run").click()
    wait_for(root, 1)
    assert "3 segments: peak" in root.locator(".ol-said").inner_text()
    assert root.locator(".ol-shares tr").count() > 2
    page.screenshot(path=tmp_path / f"page-{width}.png", full_page=True)
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []
    page.close()
