"""The first steps of a new user: `optlab lab`, one Shift+Enter, the explorer; the race in code."""

import pytest
from playwright.sync_api import expect

from optlab.cli import FIRST_NOTEBOOK

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PICTURE = "element => element.tagName != 'IMG' || (element.complete && element.naturalWidth > 100)"


def test_one_shift_enter_shows_the_explorer(notebook):
    canvas = notebook.run(0).locator("canvas").first
    canvas.wait_for(state="visible", timeout=60_000)
    assert canvas.bounding_box()["width"] > 300
    assert notebook.complaints == []


def test_the_next_cell_shows_the_race(notebook):
    notebook.run(0)
    output = notebook.run(1)
    picture = output.locator("img:visible, .main-svg:visible").first
    picture.wait_for(timeout=60_000)
    assert picture.evaluate(PICTURE)
    box = picture.bounding_box()
    assert box["width"] > 300
    assert box["height"] > 200
    page_of_cell = output.bounding_box()
    assert box["x"] + box["width"] <= page_of_cell["x"] + page_of_cell["width"] + 1, "cut off"
    expect(notebook.page.locator('[data-mime-type$="jupyter.stderr"]')).to_have_count(0)
    assert notebook.complaints == []


def test_the_figure_can_be_explored(notebook):
    """A plotly output with a PNG is shown as the PNG until the mouse enters it."""
    notebook.run(0)
    output = notebook.run(1)
    picture = output.locator("img:visible, .main-svg:visible").first
    picture.wait_for(timeout=60_000)
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    notebook.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    figure = notebook.cell(1).locator(".jp-RenderedPlotly .main-svg").first
    figure.wait_for(state="visible", timeout=60_000)
    expect(notebook.cell(1).locator(".modebar-btn[data-title*='loud']")).to_have_count(0)
    assert notebook.complaints == []


def test_the_notebook_lies_in_the_working_folder(notebook, lab):
    assert (lab.folder / FIRST_NOTEBOOK).is_file()


def test_nothing_stands_in_front_of_the_page(notebook):
    notebook.run(0)
    assert notebook.page.locator(".Toastify__toast").all_inner_texts() == []
