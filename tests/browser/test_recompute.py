"""The explorer of memory studies in a real JupyterLab, and its saved page without a kernel."""

import re

import pytest
from playwright.sync_api import expect

from optlab.viz.style import theme

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
    notebook.rest()
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


def tall(root, role):
    """Return how many rows of the picture of a run have the color of a role."""
    return root.evaluate(
        """(root, color) => {
          const canvas = root.querySelector(".ol-plot canvas");
          const { width, height } = canvas;
          const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
          copy.drawImage(canvas, 0, 0);
          const { data } = copy.getImageData(0, 0, width, height);
          const wanted = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
          let rows = 0;
          for (let y = 0; y < height; y++) {
            for (let x = 0; x < width; x++) {
              const at = 4 * (y * width + x);
              if (wanted.every((part, i) => data[at + i] === part)) { rows++; break; }
            }
          }
          return rows;
        }""",  # noqa: E501
        theme.MEMORY[role].color,
    )


def run_at(root, name):
    """Return the place of a run in the plot of memory against time."""
    return root.get_by_label("memory against time:").get_by_role("button", name=f"{name}: ")


def test_it_is_driven_by_mouse_by_keys_and_by_python(notebook):
    root = shown(notebook)
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")
    assert "plain: peak" in root.locator(".ol-said").inner_text()
    plot = root.get_by_label("memory of the run over its events")
    heights = [tall(root, "saved")]
    assert tall(root, "recomputed") == 0
    root.get_by_label("the next run").click()
    assert "3 segments" in root.locator(".ol-stage").inner_text()
    assert tall(root, "recomputed") > 10
    heights.append(tall(root, "saved"))
    assert 10 < heights[1] < heights[0]
    plot.focus()
    plot.press("ArrowRight")
    assert "revolve" in root.locator(".ol-stage").inner_text()
    assert run_at(root, "revolve").get_attribute("aria-pressed") == "true"
    expect(root.locator("[aria-pressed=true]")).to_have_count(1)
    plot.press("End")
    assert "cannot be met" in plot.inner_text()
    assert tall(root, "saved") == 0
    slider = root.get_by_label("the run that is shown")
    slider.press("Home")
    wait_for(root, 0)
    canvas = plot.locator("canvas")
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] / 3, "y": box["height"] / 2})
    assert re.match(r"plain, event \d+: .*\n[\d.]+ KiB", canvas.get_attribute("title"))
    run_at(root, "budget 600 KiB").click()
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
    light = tall(root, "saved")
    page.emulate_media(color_scheme="dark")
    # The page hears of it with the next frame.
    page.wait_for_function("root => root.explorer.theme === 'dark'", arg=root.element_handle())
    assert tall(root, "saved") == light
    assert root.evaluate("root => root.explorer.palette.paper") == theme.DARK["paper"]
    page.screenshot(path=tmp_path / f"page-{width}.png", full_page=True)
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []
    page.close()
