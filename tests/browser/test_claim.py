"""A claim figure in a page with no network, and twice in a notebook: slider, keys, theme, width."""

from __future__ import annotations

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


def map_of(root):
    return root.evaluate("root => root.querySelector('svg').innerHTML")


def test_the_slider_changes_map_chart_and_what_is_said(opened):
    page, root = opened(viewport={"width": 900, "height": 600})
    first, before = root.evaluate(SHOWN), map_of(root)
    assert first.startswith("20 : 1: plain ")
    slider = root.get_by_label("How uneven?")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert root.evaluate(SHOWN).startswith("50 : 1: ")
    assert map_of(root) != before
    page.keyboard.press("Home")
    assert root.evaluate(SHOWN).startswith("2 : 1: ")
    page.keyboard.press("End")
    assert root.evaluate(SHOWN).startswith("100 : 1: ")
    page.keyboard.press("PageDown")
    assert root.evaluate(SHOWN).startswith("10 : 1: ")
    page.keyboard.press("ArrowUp")
    assert root.evaluate(SHOWN) == first
    assert map_of(root) == before
    expect(page.locator("img")).to_have_count(0)
    expect(page.locator(".optlab-claim-still")).to_have_count(0)


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
        boxes = root.evaluate(
            "root => [...root.querySelectorAll('.optlab-claim-value')].map((text) => {"
            " const box = text.getBoundingClientRect(), chart = text.ownerSVGElement.getBoundingClientRect();"  # noqa: E501
            " return [box.left - chart.left, box.top - chart.top, box.right - chart.left,"
            " box.bottom - chart.top, chart.width, chart.height]; })"
        )
        assert len(boxes) == 2
        for left, top, right, bottom, wide, tall in boxes:
            assert left >= -2
            assert top >= -4
            assert right <= wide + 2
            assert bottom <= tall + 4
        (a, b) = boxes
        assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] - 1 and b[1] < a[3] - 1)
        values = root.evaluate(
            "root => [...root.querySelectorAll('.optlab-claim-value')].map((text) =>"
            " parseFloat(text.lastChild.textContent))"
        )
        assert values[0] == values[1] or (values[0] > values[1]) == (a[1] < b[1]), values
        stops = root.evaluate(
            "root => [...root.querySelectorAll('.optlab-claim-stops span')]"
            ".map((stop) => stop.getBoundingClientRect()).map((box) => [box.left, box.right])"
        )
        assert all(one[1] <= two[0] for one, two in pairwise(stops))
        slider.press("ArrowRight")


def test_the_theme_of_the_page_is_followed_while_it_changes(opened):
    page, root = opened(color_scheme="dark")
    page_of = "root => root.getAttribute('data-page')"
    assert root.evaluate(page_of) == "dark"
    page.evaluate("document.documentElement.setAttribute('data-theme', 'light')")
    page.wait_for_function("() => true")
    assert root.evaluate(page_of) == "light"
    page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    page.wait_for_function("() => true")
    assert root.evaluate(page_of) == "dark"


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
