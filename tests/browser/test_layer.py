"""Layers and summaries in a real JupyterLab, and a loader with workers in its kernel."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CODE = (
    "import numpy as np\nimport optlab as ol\n"
    "body = ol.nn.Sequential(ol.nn.Linear(64, 32), ol.nn.Tanh())\n"
    "model = ol.nn.Sequential(('body', body), ('head', ol.nn.Linear(32, 10)))\n"
    "from IPython.display import display\n"
    "display(model, model.summary((100, 64)))"
)
LOADER = (
    "import os\nimport optlab as ol\nmain = os.getpid()\n"
    "class Here(ol.io.Dataset):\n"
    "    def __len__(self):\n        return 6\n"
    "    def __getitem__(self, index):\n        return index, os.getpid() != main\n"
    "loader = ol.io.DataLoader(Here(), batch_size=3, num_workers=2)\n"
    "print([[part.tolist() for part in batch] for batch in loader])"
)


def test_a_layer_and_its_summary(notebook):
    notebook.put(CODE)
    notebook.run(0)
    layer = notebook.cell(0).locator(".optlab-layer")
    layer.wait_for(timeout=60_000)
    assert "body: Sequential" in layer.inner_text().replace("\xa0", " ")
    expect(layer.get_by_text("weight [64, 32]")).to_be_visible()
    layer.get_by_text("body:").click()  # collapses
    layer.get_by_text("weight [64, 32]").wait_for(state="hidden")
    table = notebook.cell(0).locator(".optlab-summary table")
    expect(table.locator("tbody tr")).to_have_count(5)
    assert "25 KiB" in table.inner_text()
    left = table.locator("tbody tr").nth(2).locator("td").first
    assert left.evaluate("cell => getComputedStyle(cell).textAlign") == "left"
    assert notebook.complaints == []


def test_a_data_set_of_the_notebook_is_read_by_workers(notebook):
    notebook.put(LOADER)
    notebook.run(0)
    output = notebook.cell(0).locator(".jp-OutputArea-output").first
    output.wait_for(timeout=60_000)
    assert output.inner_text().strip() == (
        "[[[0, 1, 2], [True, True, True]], [[3, 4, 5], [True, True, True]]]"
    )
    assert notebook.complaints == []
