"""One sentence, one small picture, one slider: what an uneven bowl costs, and what momentum saves.

`ol.viz.claim` runs a race at every stop of the slider, asks whether the sentence is true of the
numbers, and makes a figure that is alive in a notebook without a kernel, in a page and on a site.
Here it is opened in a browser, as a reader would see it.

Run it with ``python gallery/claim_figure.py``: it writes claim-figure.png beside this file.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

import optlab as ol
from optlab._doctor import find_browser

#: Of the distance to the minimum, what may be left.
LEFT = 1e-3


def race(condition: float) -> ol.lab.Comparison:
    """Return both methods on a bowl, each at the settings that theory calls best for it."""
    root = math.sqrt(condition)
    momentum = ((root - 1) / (root + 1)) ** 2
    methods = {
        "gradient descent": ol.optimizer.SGD(2 / (1 + condition)),
        "momentum": ol.optimizer.Momentum((2 / (1 + root)) ** 2, momentum),
    }
    bowl = ol.problems.quadratic(condition)
    return ol.compare(bowl, methods, start=(-4.0, 1.0), steps=math.ceil(12 + 4.2 * condition))


def steps_needed(comparison: ol.lab.Comparison, name: str) -> float:
    """Return the step from which on less than a thousandth of the distance is left."""
    distance = np.linalg.norm(comparison[name].parameters["point"], axis=1)
    above = np.flatnonzero(distance > LEFT * distance[0])
    return float(above[-1] + 1) if above[-1] + 1 < len(distance) else math.nan


def claim() -> ol.viz.Claim:
    """Return the figure."""
    stops = [1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000]

    def holds(values: dict[str, np.ndarray]) -> bool:
        """Between 10 : 1 and 1000 : 1: 100 times the steps, and 13 times with momentum."""
        low, high = stops.index(10), stops.index(1000)
        plain, momentum = (values[name] for name in ("gradient descent", "momentum"))
        return 95 < plain[high] / plain[low] < 105 and 12.5 < momentum[high] / momentum[low] < 13.5

    return ol.viz.claim(
        "A bowl 100 times as uneven costs gradient descent 100 times the steps. With *momentum*, "
        "about 13 times.",
        positions=stops, race=race, measure=steps_needed, holds=holds,
        measured="steps needed", unit="steps", question="How uneven is the bowl?",
        setting="curvature across the valley : along it", label="{:g} : 1",
        title="this bowl, curvature {}", at=20,
        note="Each at the settings that theory calls best for the bowl; done when a thousandth of "
        "the distance is left. Between 10 : 1 and 1000 : 1, gradient descent goes from 35 to 3454 "
        "steps, momentum from 14 to 180.",
    )  # fmt: skip


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    from playwright.sync_api import sync_playwright

    target = folder / "claim-figure.png"
    page_file = folder / "claim-figure.html"
    claim().to_html(page_file)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(find_browser()))
            page = browser.new_page(viewport={"width": 800, "height": 470}, device_scale_factor=1.5)
            page.goto(page_file.as_uri())
            page.locator(".optlab-claim input").wait_for()
            page.screenshot(path=target)
            browser.close()
    finally:
        page_file.unlink()
    return target


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
