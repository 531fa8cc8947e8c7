"""Optimizers, formulas and schedules in a real JupyterLab."""

import os

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CODE = (
    "import optlab as ol\n"
    "from IPython.display import display\n"
    "model = ol.nn.Sequential(ol.nn.Linear(64, 32), ol.nn.Tanh(), ol.nn.Linear(32, 10))\n"
    "weights = [p for p in model.parameters() if p.ndim > 1]\n"
    "biases = [p for p in model.parameters() if p.ndim == 1]\n"
    "schedule = ol.optimizer.lr.CosineAnnealingDecay(0.01, T_max=100)\n"
    "optimizer = ol.optimizer.AdamW(schedule, parameters=[\n"
    "    {'params': weights}, {'params': biases, 'weight_decay': 0.0, 'learning_rate': 2.0}],\n"
    "    grad_clip=ol.nn.ClipGradByGlobalNorm(1.0), name='both')\n"
    "display(optimizer, ol.optimizer.Lamb.formula, ol.optimizer.SGD(0.1))"
)


def test_an_optimizer_and_a_formula(notebook):
    notebook.put(CODE)
    notebook.run(0)
    cell = notebook.cell(0)
    page = cell.locator(".optlab-optimizer").first
    page.wait_for(timeout=60_000)
    page.locator("mjx-container").first.wait_for(timeout=60_000)
    text = page.inner_text().replace("\xa0", " ")
    assert "AdamW" in text
    assert "weight_decay = 0.0" in text
    assert "ClipGradByGlobalNorm" in text
    expect(page.locator("tbody tr")).to_have_count(2)
    assert "The optimizer keeps" in text
    cell.locator(".jp-OutputArea-output mjx-container").nth(1).wait_for()  # the formula on its own
    assert "A template" in cell.locator(".optlab-optimizer").nth(1).inner_text()
    expect(cell.locator("mjx-merror")).to_have_count(0)
    assert notebook.complaints == []
    if folder := os.environ.get("OPTLAB_SHOTS"):
        cell.screenshot(path=f"{folder}/optimizer.png")
