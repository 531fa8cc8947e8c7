"""No text of the explorer covers another or is cut, on whichever canvas or element it stands."""

from pathlib import Path

import pytest

import optlab as ol
from tests.browser.test_look import READY

pytestmark = [pytest.mark.browser, pytest.mark.nightly, pytest.mark.slow]

TEXTS = Path(__file__).with_name("texts.js").read_text(encoding="utf-8")
LOOKS = [{"step": 0}, {"step": 20}, {"tab": "beside", "beside": "modes"}]
APART = [{"view": "apart", "step": 5}]
TABS = [{"tab": tab} for tab in ("memory", "length", "angle", "plane")]
MORE = [{"tab": "beside", "beside": panel} for panel in ("curvature", "rates")]
SEEN = """async (root, [change, before]) => {
  const { explorer } = root;
  if (change.preset) explorer.examples.choose(change.preset);
  if (change.problem) explorer.chooseScene(`p:${change.problem}`);
  for (const [name, value] of Object.entries({ ...before, ...change })) {
    if (name === "step") explorer.go(value);
    else if (name !== "preset" && name !== "problem") explorer.set({ [name]: value });
  }
}"""


@pytest.fixture
def looked(chromium, tmp_path):
    """Return a function that opens an explorer's page and says which of its texts collide."""
    pages, complaints = [], []

    def look(made, width, size=1.0):
        path = tmp_path / f"{len(pages)}.html"
        made.to_html(path)
        page = chromium.new_page(viewport={"width": width + 26, "height": 900})
        pages.append(page)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.add_init_script(TEXTS)
        page.goto(path.as_uri())
        root = page.locator(".optlab-explorer")
        root.wait_for()
        root.evaluate(READY)

        def collisions(**change):
            before = {"view": "look", "tab": "loss", "text_size": size}
            root.evaluate(SEEN, [change, before])
            root.evaluate(READY)
            return root.evaluate("root => collisionsOf(root)")

        return root, collisions

    yield look
    for page in pages:
        page.close()
    assert complaints == []


# The widths of an output of JupyterLab on a small screen, of an article, and of a phone.
@pytest.mark.parametrize(("width", "size"), [(1166, 1.0), (900, 1.25), (689, 1.0), (390, 1.0)])
def test_of_no_example_a_text_covers_another(looked, width, size):
    root, collisions = looked(ol.explore(), width, size)
    found = {}
    for name in root.evaluate("root => root.explorer.examples.names"):
        every = name in ("momentum", "stability limit")
        kinds = [*LOOKS, *(TABS + MORE if every else []), *APART]
        for i, change in enumerate(kinds):
            said = collisions(**change, **({"preset": name} if not i else {}))
            if said:
                found[f"{name} {change}"] = said
    assert found == {}


@pytest.mark.parametrize(("width", "size"), [(914, 1.25), (390, 1.0)])
def test_of_no_problem_a_text_covers_another(looked, width, size):
    root, collisions = looked(ol.explore("rosenbrock"), width, size)
    names = root.evaluate(
        """({ explorer }) => explorer.options.problems.map(([name]) => name)
          .filter((name) => name in explorer.engine.given.problems)"""
    )
    assert len(names) > 8
    found = {}
    for name in names:
        for change in ({"problem": name, "step": 0}, {"step": 20}):
            if said := collisions(**change):
                found[f"{name} {change}"] = said
    assert found == {}


def test_the_hint_goes_away_at_the_first_action(looked):
    root, _ = looked(ol.explore(), 914)
    page = root.page
    area = root.locator(".ol-map").bounding_box()
    x, y = area["x"] + 0.85 * area["width"], area["y"] + 0.8 * area["height"]

    def hinted():
        root.evaluate(READY)
        texts = root.evaluate("root => textsOf(root).map(({ text }) => text)")
        return "start: press play, or drag me" in texts

    def pan():
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 20, y - 10, steps=2)
        page.mouse.up()

    def move_start():
        root.locator(".ol-map canvas[tabindex]").focus()
        page.keyboard.press("ArrowRight")

    def wheel():
        page.mouse.move(x, y)
        page.mouse.wheel(0, -120)

    actions = {
        "pan": pan,
        "wheel": wheel,
        "move the start": move_start,
        "fit": lambda: root.locator(".ol-map canvas[tabindex]").dblclick(
            position={"x": 30, "y": 200}
        ),
        "a notch": lambda: root.locator(".ol-notches").first.click(),
        "a tab": lambda: root.get_by_role("tab", name="angle").click(),
        "an optimizer": lambda: root.locator(".ol-row-name").first.click(),
        "mode": lambda: root.get_by_role("button", name="Take apart").click(),
        "step": lambda: page.keyboard.press("ArrowRight"),
        "play": lambda: root.locator(".ol-play").click(),
    }
    for name, act in actions.items():
        root.evaluate(
            """({ explorer }) => {
              explorer.pause();
              explorer.set({ view: "look", step: 0 });
              explorer.hint = true;
              explorer.later("all");
            }"""
        )
        assert hinted(), name
        act()
        assert not hinted(), name


def test_a_text_over_another_is_found(looked):
    root, collisions = looked(ol.explore(), 914)
    assert collisions() == []
    root.evaluate(
        """({ explorer: { problem, map } }) => {
          const [x, y] = map.startPlace();
          problem.style.left = `${x + 20}px`;
          problem.style.top = `${y - 10}px`;
        }"""
    )
    assert any("start" in said for said in collisions())
