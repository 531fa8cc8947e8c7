"""The field in which a formula is typed, in a page with no kernel and no network."""

import numpy as np
import pytest
from playwright.sync_api import expect

import optlab as ol
from tests.browser.test_explorer import PATH, STATE, opened, ready, until  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.slow]

FORMULA = "x**4/8 - x*y + 2*y**2 + x"
OPEN = "a formula of your own …"


@pytest.fixture
def page(opened):  # noqa: F811
    return opened(ol.explore("beale", ["SGD", "Adam"], steps=60))


def typed(page, text):
    """Type a formula as a reader does, and press Enter."""
    page.root.get_by_label("what is shown").select_option(label=OPEN)
    field = page.root.get_by_label("formula of x and y")
    field.fill(text)
    field.press("Enter")
    return field


def test_a_typed_formula_is_alive_and_has_the_engine_s_paths(page):
    typed(page, FORMULA)
    until(page.root, f"explorer.state.problem === '{FORMULA}'")
    ready(page.root)
    expect(page.root.locator(".ol-formula-field")).to_be_hidden()
    state = page.root.evaluate(STATE)
    assert state["start"] == [-2, 2]
    rates = page.root.evaluate(
        "root => Object.fromEntries("
        "root.explorer.shown.map(({ entry, rate }) => [entry.name, rate]))"
    )
    made = ol.explore(FORMULA, ["SGD", "Adam"], steps=60).change(rate=rates)
    for name, runs in made.model.runs.items():
        path = runs.point[made.model.rate_index(name)].ravel()[:80]
        assert page.root.evaluate(PATH, name) == path.tolist()
    # Every slider moves it, the start can be dragged, and the address keeps it.
    before = page.root.evaluate(PATH)
    page.root.get_by_label("learning rate of SGD").focus()
    page.root.get_by_label("learning rate of SGD").press("ArrowLeft")
    page.root.evaluate("root => root.explorer.moveStart([0.5, 1.25])")
    ready(page.root)
    assert page.root.evaluate(PATH)[:2] == [0.5, 1.25]
    assert page.root.evaluate(PATH) != before
    page.page.wait_for_timeout(250)
    assert "x**4" in page.page.evaluate("decodeURIComponent(location.hash)")
    page.page.reload()
    page.root.wait_for()
    ready(page.root)
    assert page.root.evaluate(STATE)["problem"] == FORMULA
    assert page.root.evaluate(PATH)[:2] == [0.5, 1.25]


def test_of_a_vector_of_one_number_and_where_the_usual_start_is_not_defined(page):
    typed(page, "np.sum((p - 1)**2) + p[0]**4")
    ready(page.root)
    assert page.root.evaluate("root => root.explorer.selected.run.loss[0]") == 26.0
    typed(page, "(x - 1)**2")
    ready(page.root)
    assert page.root.evaluate(STATE)["start"] == [-2]
    typed(page, "x - log(x) + y**2")
    ready(page.root)
    assert page.root.evaluate(STATE)["start"] == [0.15, 2]
    assert "not defined" in page.root.locator(".ol-map-note").inner_text() or page.root.evaluate(
        "root => root.explorer.map.box[0] > 0"
    )


def test_a_mistake_is_shown_where_it_is_and_nothing_changes(page):
    field = typed(page, "x**2 + sinn(y)")
    said = page.root.locator(".ol-formula-said")
    assert "there is no function sinn; did you mean sin?" in said.inner_text()
    text, caret = said.locator("pre").inner_text().split("\n")
    assert text[caret.index("^") : caret.rindex("^") + 1] == "sinn"
    assert field.evaluate("e => e.value.slice(e.selectionStart, e.selectionEnd)") == "sinn"
    assert page.root.evaluate(STATE)["problem"] == "beale"
    field.fill("")
    field.press("Enter")
    assert "write one such as" in said.inner_text()
    hint = page.root.locator(".ol-formula-hint").inner_text()
    assert all(name in hint for name in ("arctan2", "hypot", "log1p", "where", "sum"))
    field.press("Escape")
    expect(page.root.locator(".ol-formula-field")).to_be_hidden()


def test_a_hat_is_mended_by_one_click(page):
    typed(page, "(1-x)^2 + (y-x)^2")
    page.root.get_by_role("button", name="write (1-x)**2").click()
    ready(page.root)
    assert page.root.evaluate(STATE)["problem"] == "(1-x)**2 + (y-x)**2"


def test_undo_goes_back_to_what_was_shown_before(page):
    typed(page, FORMULA)
    ready(page.root)
    page.root.evaluate("root => root.explorer.undo()")
    ready(page.root)
    assert page.root.evaluate(STATE)["problem"] == "beale"


def test_a_broken_address_opens_the_page_as_it_was_made(page):
    address = page.page.url.partition("#")[0]
    page.page.goto("about:blank")
    page.page.goto(address + '#{"problem":"x**"}')
    page.root.wait_for()
    ready(page.root)
    assert page.root.evaluate(STATE)["problem"] == "beale"


def test_copied_python_shows_the_formula_again(page):
    typed(page, FORMULA)
    ready(page.root)
    page.root.get_by_label("menu", exact=True).first.click()
    page.root.get_by_role("button", name="Copy as Python").click()
    code = page.root.get_by_label("the state as Python").input_value()
    names = {}
    exec(code.replace("ol.explore", "made = ol.explore"), names)
    runs = names["made"].model.runs["SGD"]
    path = runs.point[names["made"].model.rate_index("SGD")].ravel()[:80]
    assert np.array_equal(page.root.evaluate(PATH, "SGD"), path)
