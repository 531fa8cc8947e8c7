"""What a hand does to an explorer in a page, and what is read of it."""

import re

from playwright.sync_api import expect

# The state of the widget, which only tests read.
STATE = "root => structuredClone(root.explorer.state)"
PATH = """(root, name) => {
  const one = root.explorer.shown.find(({ entry }) => !name || entry.name === name);
  return Array.from(one.run.path.slice(0, 80));
}"""

#: No preset has this function.
OWN = "def own(x, y):\n    return x**4 / 8 - x * y + 2 * y**2 + x\n"

#: What a page shows in place of an output that it cannot draw.
BROKEN = re.compile(r"error displaying widget|model not found|error creating widget|loading widget", re.I)  # fmt: skip  # noqa: E501


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


def inked(root, selector=".ol-map canvas"):
    """Count the colors on a canvas: an image has many."""
    return root.locator(selector).first.evaluate(
        """canvas => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const seen = new Set();
          for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]},${data[i+1]},${data[i+2]}`);
          return seen.size;
        }"""
    )


def opened(page, timeout=60_000):
    """Return the explorer of a page, once it is drawn."""
    root = page.locator(".optlab-explorer").first
    root.wait_for(timeout=timeout)
    ready(root)
    return root


def exercise(page, root):
    """Play, scrub, drag the start, move a rate, change tab and mode, choose a preset."""
    root.scroll_into_view_if_needed()
    assert inked(root) > 20
    expect(root.locator(".ol-plot-area canvas").first).to_be_visible()

    def box_of(locator):
        locator.scroll_into_view_if_needed()
        return locator.bounding_box()

    root.get_by_label("play", exact=True).click()
    until(root, "explorer.state.step > 3")
    if root.get_by_label("pause").count():  # else it has arrived
        root.get_by_label("pause").click()
    root.evaluate("root => root.explorer.pause()")
    box = box_of(root.get_by_label("step", exact=True))
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.2 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], middle, steps=5)
    page.mouse.up()
    ready(root)
    steps = root.evaluate(STATE)["steps"]
    assert 0.5 * steps < root.evaluate(STATE)["step"] < 0.7 * steps

    before = root.evaluate(PATH)
    box = box_of(root.locator(".ol-map canvas[tabindex]"))
    x, y = root.evaluate("root => root.explorer.map.startPlace()")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + x + 40, box["y"] + y + 20, steps=6)
    page.mouse.up()
    ready(root)
    dragged = root.evaluate(STATE)["start"]
    assert root.evaluate(PATH)[:2] == dragged != before[:2]

    name = root.evaluate("root => root.explorer.selected.entry.name")
    before = root.evaluate(PATH, name)
    slider = root.get_by_label(f"learning rate of {name}")
    slider.focus()
    slider.press("ArrowLeft")
    ready(root)
    assert root.evaluate(PATH, name) != before

    root.get_by_role("tab", name="step length").click()
    ready(root)
    assert root.evaluate(STATE)["tab"] == "length"
    root.get_by_role("button", name="Take apart").click()
    ready(root)
    expect(root.locator(".ol-apart")).to_be_visible()
    expect(root.locator(".ol-plot-area")).to_be_hidden()
    root.get_by_role("button", name="Look").click()
    ready(root)
    expect(root.locator(".ol-plot-area")).to_be_visible()

    names = root.locator(".ol-example").evaluate_all("all => all.map(one => one.dataset.name)")
    if root.locator(".ol-example").first.is_visible():
        root.locator(".ol-example").first.click()
    else:  # in one column they are a list
        root.get_by_label("example", exact=True).select_option(names[0])
    ready(root)
    claim = root.evaluate("(root, name) => root.explorer.options.presets[name].claim", names[0])
    assert root.locator(".ol-claim").inner_text() == claim
    assert inked(root) > 20
    assert not BROKEN.search(page.locator("body").inner_text())
