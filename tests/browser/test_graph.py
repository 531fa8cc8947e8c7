"""The graph in a real JupyterLab, and its saved page without a kernel."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CODE = (
    "import numpy as np\nimport optlab as ol\n"
    "x = ol.to_tensor([1.0, 2.0], requires_grad=True)\n"
    "loss = np.sum(np.tanh(x) * x)\n"
    "picture = ol.viz.graph(loss)\npicture"
)


def stage(root):
    return root.evaluate("root => root.stepper.stage")


def wait_for_stage(root, wanted):
    root.evaluate(
        """async (root, wanted) => {
          const end = performance.now() + 30000;
          while (root.stepper.stage !== wanted) {
            if (performance.now() > end) throw new Error(`never stage ${wanted}`);
            await new Promise((done) => setTimeout(done, 15));
          }
        }""",
        wanted,
    )


def test_it_is_stepped_by_mouse_by_keys_and_by_python(notebook):
    notebook.put(CODE)
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-graph")
    root.wait_for(timeout=60_000)
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")
    expect(root.locator(".ol-node")).to_have_count(4)
    root.get_by_label("one stage on").click()
    assert "Back through sum" in root.locator(".ol-stage").inner_text()
    picture = root.locator(".ol-scroller")
    picture.focus()
    picture.press("ArrowRight")
    picture.press("ArrowRight")
    assert stage(root) == 3
    assert "lambda g, y: g * (1 - y * y)" in root.locator(".ol-panel").inner_text()
    assert root.locator(".ol-node.ol-current text.ol-title").text_content() == "tanh"
    expect(root.locator(".ol-node.ol-part")).to_have_count(0)
    picture.press("ArrowUp")
    assert "gradients collect here" in root.locator(".ol-panel").inner_text()
    root.get_by_label("stage of the backward pass").press("Home")
    assert stage(root) == 0
    picture.press("End")
    assert stage(root) == 4
    assert "The leaves" in root.locator(".ol-panel").inner_text()
    notebook.put("picture.stage = 2; print(picture.stage)", 1)
    notebook.run(1)
    wait_for_stage(root, 2)
    assert notebook.complaints == []


def test_stray_keys_reach_no_command_of_the_notebook(notebook):
    notebook.put(CODE)
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-graph")
    root.wait_for(timeout=60_000)
    cells = notebook.page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    focusable = root.locator("button, input, [tabindex]")
    for target in focusable.all():
        assert target.get_attribute("data-lm-suppress-shortcuts") == "true"
        target.focus()
        for key in "xabdd":
            notebook.page.keyboard.press(key)
    assert cells.count() == count
    assert notebook.complaints == []


@pytest.mark.parametrize("width", [1200, 420])
def test_the_saved_page_lives_without_a_kernel(chromium, tmp_path, width):
    import numpy as np

    import optlab as ol

    x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    loss = np.sum(np.tanh(x) * x)
    path = ol.viz.graph(loss).save(tmp_path / "graph.html")
    page = chromium.new_page(viewport={"width": width, "height": 800})
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    root = page.locator(".optlab-graph")
    root.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    root.get_by_label("play", exact=True).click()
    wait_for_stage(root, 4)
    root.get_by_label("play", exact=True).wait_for()
    root.locator("text.ol-title", has_text="tanh").click()
    assert "gradient that arrives" in root.locator(".ol-panel").inner_text()
    overflowing = root.evaluate(
        """root => Array.from(root.querySelectorAll(".ol-node")).filter((node) => {
          const box = node.querySelector(".ol-box").getBBox();
          return Array.from(node.querySelectorAll("text"))
            .some((text) => text.getBBox().width > box.width - 6);
        }).length"""
    )
    assert overflowing == 0
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []
    page.close()
