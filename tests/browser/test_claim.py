"""A claim figure in a page with no network, and twice in a notebook: slider, keys, theme, width."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

import optlab as ol

pytestmark = pytest.mark.browser
SHOWN = "root => root.querySelector('input').getAttribute('aria-valuetext')"


def figure():
    return ol.viz.claim(
        "The more uneven the bowl, the more is left to *plain*.",
        positions=[2, 5, 10, 20, 50, 100],
        race=lambda c: ol.compare(
            ol.problems.quadratic(c),
            {"plain": ol.optimizer.SGD(1 / c), "heavy": ol.optimizer.Momentum(0.5 / c, 0.8)},
            steps=30,
        ),
        measure=lambda comparison, name: comparison.final_loss[name],
        holds=lambda values: bool((values["plain"][1:] > values["plain"][:-1]).all()),
        measured="loss after 30 steps", question="How uneven?", label="{:g} : 1",
    )  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("claim") / "claim.html"
    figure().to_html(path)
    return path.as_uri()


@pytest.fixture
def opened(chromium, address):
    """Return a function that opens the page offline; at the end it has not complained."""
    pages, complaints = [], []

    def open_page(**options):
        page = chromium.new_page(**options)
        page.context.set_offline(True)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.locator(".optlab-claim input").wait_for()
        pages.append(page)
        return page, page.locator(".optlab-claim")

    yield open_page
    for page in pages:
        page.close()
    assert complaints == []


#: What is on a canvas, where it may be read as often as a test likes.
READ = """const read = (canvas) => {
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  return pen;
};"""  # noqa: E501
#: The labels of the chart: where they are, what they say, and how many of their pixels are seen.
LABELS = """root => {
  READ
  const { frame, marks } = root.claim.shown.chart, canvas = root.querySelector(".optlab-claim-chart");
  const pen = read(canvas), ratio = canvas.width / canvas.clientWidth;
  const log = frame.y.scale === "log" ? Math.log10 : (value) => value;
  return marks.filter((mark) => mark.bold).map(({ x, y, text, size, shift, across, ink }) => {
    const lines = text.split("\\n");
    pen.font = `bold ${size}px ${getComputedStyle(root).fontFamily}`;
    const wide = Math.max(...lines.map((line) => pen.measureText(line).width)), tall = 1.25 * size * lines.length;
    const left = frame.left + frame.width * x + shift[0] - (across === "right" ? wide : 0);
    const top = frame.top + (frame.height * (frame.y.high - log(y))) / (frame.y.high - frame.y.low) - shift[1];
    const color = [1, 3, 5].map((i) => parseInt(ink.slice(i, i + 2), 16));
    const seen = lines.map((line, i) => {
      const { data } = pen.getImageData(left * ratio, (top + 1.25 * size * i) * ratio, wide * ratio, 1.25 * size * ratio);
      let count = 0;
      for (let k = 0; k < data.length; k += 4) count += color.every((one, c) => Math.abs(one - data[k + c]) < 30) ? 1 : 0;
      return count;
    });
    return { box: [left, top, left + wide, top + tall], value: parseFloat(lines[lines.length - 1]), seen, room: [canvas.clientWidth, canvas.clientHeight] };
  });
}""".replace("READ", READ)  # noqa: E501
#: The color of a corner of the map, and the mean of what is written on the left of the chart.
SHADES = """root => {
  READ
  const [map, chart] = root.querySelectorAll("canvas");
  const { data } = read(chart).getImageData(0, 0, 50, chart.height);
  const inked = data.filter((value, i) => i % 4 === 0 && data[i + 3] === 255);
  return [[...read(map).getImageData(3, 3, 1, 1).data].slice(0, 3), inked.reduce((a, b) => a + b, 0) / inked.length];
}""".replace("READ", READ)  # noqa: E501


def pixels(root, name):
    """Return what a canvas shows, as an image."""
    return root.locator(f".optlab-claim-{name}").evaluate("canvas => canvas.toDataURL()")


def test_the_slider_changes_map_chart_and_what_is_said(opened):
    page, root = opened(viewport={"width": 900, "height": 600})
    first, before = root.evaluate(SHOWN), (pixels(root, "map"), pixels(root, "chart"))
    assert first.startswith("20 : 1: plain ")
    slider = root.get_by_label("How uneven?")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert root.evaluate(SHOWN).startswith("50 : 1: ")
    assert pixels(root, "map") != before[0]
    assert pixels(root, "chart") != before[1]
    page.keyboard.press("Home")
    assert root.evaluate(SHOWN).startswith("2 : 1: ")
    page.keyboard.press("End")
    assert root.evaluate(SHOWN).startswith("100 : 1: ")
    page.keyboard.press("PageDown")
    assert root.evaluate(SHOWN).startswith("10 : 1: ")
    page.keyboard.press("ArrowUp")
    assert root.evaluate(SHOWN) == first
    assert (pixels(root, "map"), pixels(root, "chart")) == before
    expect(page.locator("img")).to_have_count(0)
    expect(page.locator(".ol-caption")).to_have_count(0)


def test_its_pictures_have_names_that_say_what_is_seen(opened):
    _, root = opened()
    root.get_by_label("How uneven?").press("End")
    said = root.evaluate(SHOWN)
    assert root.get_by_role("img").count() == 2
    root.get_by_role("img", name="100 : 1: plain, heavy", exact=True).wait_for()
    root.get_by_role("img", name=f"loss after 30 steps, {said}", exact=True).wait_for()


def test_dragging_along_the_chart_and_the_slider(opened):
    page, root = opened(viewport={"width": 900, "height": 600})
    box = root.locator(".optlab-claim-chart").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 25, box["y"] + 60)
    page.mouse.down()
    assert root.evaluate(SHOWN).startswith("100 : 1: ")
    page.mouse.move(box["x"] + 40, box["y"] + 60, steps=8)
    page.mouse.up()
    assert root.evaluate(SHOWN).startswith("2 : 1: ")
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    assert root.evaluate(SHOWN).startswith("2 : 1: "), "a mouse that only passes drags nothing"
    knob = root.get_by_label("How uneven?").bounding_box()
    page.mouse.click(knob["x"] + knob["width"] - 12, knob["y"] + knob["height"] / 2)
    assert root.evaluate(SHOWN).startswith("100 : 1: ")


@pytest.mark.parametrize("width", [1200, 690, 640, 390, 320])
def test_it_fits_and_nothing_collides(opened, width):
    page, root = opened(viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    slider = root.get_by_label("How uneven?")
    for _ in range(6):
        labels = root.evaluate(LABELS)
        assert len(labels) == 2
        for label in labels:
            (left, top, right, bottom), (wide, tall) = label["box"], label["room"]
            assert left >= 0
            assert top >= -1
            assert right <= wide
            assert bottom <= tall + 1
            assert min(label["seen"]) > 15, "each line of a label is seen"
        a, b = (label["box"] for label in labels)
        assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] - 1 and b[1] < a[3] - 1)
        values = [label["value"] for label in labels]
        assert values[0] == values[1] or (values[0] > values[1]) == (a[1] < b[1]), values
        stops = root.evaluate(
            "root => [...root.querySelectorAll('.optlab-claim-stops span')]"
            ".map((stop) => stop.getBoundingClientRect()).map((box) => [box.left, box.right])"
        )
        assert all(one[1] <= two[0] for one, two in pairwise(stops))
        slider.press("ArrowRight")


def test_pictures_are_sharp_at_any_width_and_finer_on_paper(opened):
    page, root = opened(viewport={"width": 900, "height": 600}, device_scale_factor=2)
    size = """canvas => {
      const box = canvas.getBoundingClientRect();
      return [canvas.width / box.width, canvas.height / box.height, box.width]; }"""
    for width in (900, 640, 390):
        page.set_viewport_size({"width": width, "height": 600})
        page.wait_for_function(
            "width => document.querySelector('[data-ol] > div > div').shadowRoot"
            ".querySelector('.optlab-claim').claim.seenWidth === Math.min(760, width - 16)",
            arg=width,
        )
        for name in ("map", "chart"):
            across, down, wide = root.locator(f".optlab-claim-{name}").evaluate(size)
            assert (across, down) == pytest.approx((2, 2), abs=0.01), (name, width)
            assert wide <= width
    root.evaluate(
        "root => window.addEventListener('beforeprint', () => {"
        " const canvas = root.querySelector('.optlab-claim-chart');"
        " window.onPaper = [canvas.width / canvas.clientWidth, root.style.colorScheme]; })"
    )
    page.pdf()
    ratio, theme = page.evaluate("window.onPaper")
    assert ratio >= 3 - 0.01
    assert theme == "light"
    across, _, _ = root.locator(".optlab-claim-chart").evaluate(size)
    assert across == pytest.approx(2, abs=0.01), "after printing it is as before"


def test_the_theme_of_the_page_is_followed_while_it_changes(opened):
    page, root = opened(color_scheme="dark")

    def looks_dark():
        """Return whether paper and both canvases are dark, all of them."""
        paper = root.evaluate("root => getComputedStyle(root).backgroundColor")
        shades = [int(part) for part in re.findall(r"\d+", paper)[:3]]
        corner, ticks = root.evaluate(SHADES)
        shades += corner
        dark, light = max(shades) < 60 and ticks > 140, min(shades) > 200 and ticks < 140
        assert dark or light, (shades, ticks)
        return dark

    assert looks_dark()
    page.evaluate("document.documentElement.setAttribute('data-theme', 'light')")
    page.wait_for_function("() => true")
    assert not looks_dark()
    page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    page.wait_for_function("() => true")
    assert looks_dark()


def test_the_place_is_kept_over_a_reload(opened):
    page, root = opened()
    root.get_by_label("How uneven?").press("Home")
    page.context.set_offline(False)
    page.reload()
    root.locator("input").wait_for()
    assert root.evaluate(SHOWN).startswith("2 : 1: ")


def test_in_a_notebook_twice_and_its_keys_stay_inside(notebook):
    code = (
        "import optlab as ol\n"
        "def race(c):\n"
        "    return ol.compare(ol.problems.quadratic(c), {'plain': ol.optimizer.SGD(1 / c)}, steps=9)\n"  # noqa: E501
        "one = ol.viz.claim('More is left.', positions=[2, 5, 10], race=race, question='How?',\n"
        "    measure=lambda r, n: r.final_loss[n], holds=lambda v: True, measured='loss')\n"
        "from IPython.display import display\n"
        "display(one)\n"
        "one"
    )
    notebook.put(code)
    notebook.run(0)
    roots = notebook.page.locator(".optlab-claim")
    roots.nth(1).wait_for()
    assert roots.count() == 2, "two outputs of one claim do not collide"
    cells = notebook.page.locator(".jp-Notebook .jp-Cell").count()
    roots.nth(0).get_by_label("How?").focus()
    for key in ("ArrowRight", "a", "b", "d", "d"):
        notebook.page.keyboard.press(key)
    assert roots.nth(0).evaluate(SHOWN).startswith("10: ")
    assert roots.nth(1).evaluate(SHOWN).startswith("5: ")
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(cells)
    assert notebook.complaints == []
