"""The graph in a real JupyterLab, and its saved page without a kernel."""

import pytest
from playwright.sync_api import expect

from optlab.viz.graphs.palette import PALETTE

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


def node(root, name):
    """Return the place of a node over the picture."""
    return root.get_by_role("button", name=f"{name}, ")


def seen_at(root, name):
    """Return the color of the picture near the upper border of a node, inside."""
    return root.evaluate(
        """(root, name) => {
          const canvas = root.querySelector(".ol-sheet canvas"), target = root.querySelector(`.ol-target[aria-label^="${name}, "]`);
          const from = canvas.getBoundingClientRect(), box = target.getBoundingClientRect(), ratio = canvas.width / from.width;
          const at = [box.left + box.width / 2 - from.left, box.top + 0.08 * box.height - from.top].map((length) => Math.round(length * ratio));
          const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
          copy.drawImage(canvas, -at[0], -at[1]);
          const [red, green, blue] = copy.getImageData(0, 0, 1, 1).data;
          return "#" + [red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("");
        }""",  # noqa: E501
        name,
    )


def test_it_is_stepped_by_mouse_by_keys_and_by_python(notebook):
    notebook.put(CODE)
    notebook.run(0)
    root = notebook.cell(0).locator(".optlab-graph")
    root.wait_for(timeout=60_000)
    notebook.rest()
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")
    expect(root.locator(".ol-target")).to_have_count(4)
    assert seen_at(root, "tanh") == PALETTE["light"]["paper"]
    assert seen_at(root, "x") == PALETTE["light"]["leaf-tint"]
    root.get_by_label("one stage on").click()
    assert "Back through sum" in root.locator(".ol-stage").inner_text()
    picture = root.locator(".ol-scroller")
    picture.focus()
    picture.press("ArrowRight")
    picture.press("ArrowRight")
    assert stage(root) == 3
    assert "lambda g, y: g * (1 - y * y)" in root.locator(".ol-panel").inner_text()
    assert node(root, "tanh").get_attribute("aria-current") == "step"
    expect(root.locator("[aria-current]")).to_have_count(1)
    assert seen_at(root, "tanh") == PALETTE["light"]["gradient-tint"]
    picture.press("ArrowUp")
    assert node(root, "x").get_attribute("aria-pressed") == "true"
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
    notebook.rest()
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
    node(root, "tanh").click()
    assert "gradient that arrives" in root.locator(".ol-panel").inner_text()
    assert "gives: " in node(root, "tanh").get_attribute("title")
    page.emulate_media(color_scheme="dark")
    # The page hears of it with the next frame.
    page.wait_for_function("root => root.stepper.theme === 'dark'", arg=root.element_handle())
    assert seen_at(root, "tanh") == PALETTE["dark"]["paper"]
    overflowing = root.evaluate(
        """root => {
          const { things } = root.stepper, { nodes } = root.stepper.view;
          const pen = document.createElement("canvas").getContext("2d");
          const fonts = getComputedStyle(root).fontFamily;
          const marks = things.flat().flatMap((version) => version.marks);
          const texts = marks.filter(({ kind }) => kind === "Text");
          return texts.filter(({ x, y, text, size, bold }) => {
            pen.font = `${bold ? "bold " : ""}${size}px ${fonts}`;
            const node = nodes.find((one) => one.x === x && Math.abs(one.y - y) < 28);
            const ends = node.kind === "leaf" && Math.abs(node.y - y) > 10 ? 18 : 0;
            return pen.measureText(text).width > node.width - 6 - ends;
          }).length + (texts.length < 8 ? 100 : 0);
        }"""
    )
    assert overflowing == 0
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []
    page.close()


def test_on_a_phone_text_is_large_enough_and_the_hint_says_where_the_rest_is(chromium, tmp_path):
    import numpy as np

    import optlab as ol

    ol.seed(0)
    net = ol.nn.Sequential(ol.nn.Linear(8, 6), ol.nn.Tanh(), ol.nn.Linear(6, 3))
    loss = ol.nn.functional.cross_entropy(net(np.ones((10, 8), "float32")), np.arange(10) % 3)
    path = ol.viz.graph(loss).save(tmp_path / "graph.html")
    page = chromium.new_page(viewport={"width": 390, "height": 900})
    page.goto(path.as_uri())
    root = page.locator(".optlab-graph")
    root.wait_for()
    assert "Scroll it sideways" in root.locator(".ol-hint").inner_text()
    smallest = """root => Math.min(...root.stepper.things.flat().flatMap(({ marks }) => marks)
        .filter(({ kind }) => kind === "Text").map(({ size }) => size)) * root.stepper.scale"""
    assert root.evaluate(smallest) > 11
    page.set_viewport_size({"width": 828, "height": 900})
    expect(root.locator(".ol-hint")).to_be_hidden()
    assert root.evaluate(smallest) == 13
    page.close()


def test_a_large_graph_is_drawn_where_it_is_scrolled_to(chromium, tmp_path):
    import numpy as np

    import optlab as ol

    y = ol.to_tensor([1.0, 2.0], requires_grad=True)
    for _ in range(60):
        y = np.sin(y)
    path = ol.viz.graph(np.sum(y)).save(tmp_path / "graph.html")
    page = chromium.new_page(viewport={"width": 900, "height": 800})
    page.goto(path.as_uri())
    root = page.locator(".optlab-graph")
    root.wait_for()
    canvas, scroller = root.locator(".ol-sheet canvas"), root.locator(".ol-scroller")
    assert canvas.bounding_box()["height"] < 3 * scroller.bounding_box()["height"]
    assert "up and down arrow keys" in root.locator(".ol-hint").inner_text()
    scroller.evaluate("box => { box.scrollTop = 0; }")
    page.wait_for_function("root => root.stepper.covered.top === 0", arg=root.element_handle())
    assert seen_at(root, "leaf") == PALETTE["light"]["leaf-tint"]
    scroller.press("ArrowRight")
    assert seen_at(root, "sum") == PALETTE["light"]["gradient-tint"]
    page.close()
