"""The computation graph of a network's loss, halfway through the backward pass.

Every operation shows the shape and the bytes of its output. The panel shows the derivative rules of
the current operation (here the output layer), the gradient that arrives, and the gradient that it
passes to each input.

Run it with ``python gallery/computation_graph.py``: it saves the graph as one page, opens the page
in a Chromium or Chrome, and writes computation-graph.png beside this file. It needs the extra
``test``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import optlab as ol
from optlab._doctor import find_browser


def graph() -> Any:
    """Compute the loss of a small network on random data; return its graph."""
    ol.seed(0)
    network = ol.nn.Sequential(
        ("hidden", ol.nn.Linear(64, 32)), ("tanh", ol.nn.Tanh()), ("output", ol.nn.Linear(32, 10))
    )
    network.parameters()  # names the parameters by their place in the network
    images = np.random.default_rng(0).normal(size=(16, 64)).astype("float32")
    digits = np.arange(16) % 10
    loss = ol.nn.functional.cross_entropy(network(images), digits)
    return ol.viz.graph(loss)


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    from playwright.sync_api import sync_playwright

    picture = folder / "computation-graph.png"
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        page_file = graph().save(Path(place) / "graph.html", stage=3)
        browser = playwright.chromium.launch(
            executable_path=str(find_browser()), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1120, "height": 720})
        page.goto(page_file.as_uri())
        page.locator(".optlab-graph [aria-current=step]").wait_for()
        page.screenshot(path=picture)
        browser.close()
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
