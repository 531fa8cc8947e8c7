"""Recorded runs of a real model in a page without a kernel: the paths move with the cursor."""

import numpy as np
import pytest
from playwright.sync_api import expect

import optlab as ol
from tests.browser.test_explorer import opened  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ENDS = """root => {
  const { pathMap, shown, state } = root.explorer;
  return Object.fromEntries(shown.map(({ entry }) => {
    const points = pathMap.until(pathMap.plane.paths[entry.name], state.step);
    return [entry.name, points[points.length - 1]];
  }));
}"""
#: How many colors the ground of the map has.
INK = """root => {
  const canvas = root.explorer.pathMap.base, pen = canvas.getContext("2d");
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4000) seen.add(data.slice(i, i + 3).join());
  return seen.size;
}"""


def test_paths_are_drawn_over_the_losses_and_follow_the_cursor(opened):  # noqa: F811
    explorer = ol.explore("digits_mlp", ["SGD", "Adam"], steps=40)
    plane = explorer.model.problem.landscape
    page = opened(explorer)
    assert page.root.locator(".ol-map-note").inner_text().startswith("the plane holds")
    assert page.root.evaluate(INK) > 20  # shades and lines, not one color
    page.root.focus()
    page.page.keyboard.press("End")
    page.page.wait_for_timeout(500)
    ends = page.root.evaluate(ENDS)
    for name, path in plane.paths.items():
        np.testing.assert_allclose(ends[name], [path.a[-1], path.b[-1]], rtol=1e-5)
    label = page.root.locator(".ol-map canvas[role=img]").get_attribute("aria-label")
    assert "at step 40: " in label


def test_layers_are_the_coordinates(opened):  # noqa: F811
    page = opened(ol.explore("digits_mlp", ["Adam"], steps=20))
    assert page.root.evaluate("root => root.explorer.axes") == ["0", "2"]
    page.root.get_by_role("tab", name="memory").click()
    button = page.root.get_by_role("button", name="along 0")
    button.click()
    expect(page.root.get_by_role("button", name="along 2")).to_be_visible()
