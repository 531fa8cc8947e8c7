"""What the explorer's page decides, run by node without a browser."""

from __future__ import annotations

import json
import subprocess

import pytest

from optlab.viz.browser.joining import joined
from optlab.viz.explorer import formula_operations
from tests.plan.javascript import NODE, needs_node

pytestmark = needs_node
STATIC = formula_operations.FILE.parent


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a line behind a module of the page, and returns its value."""

    def value(module, expression):
        file = tmp_path / f"{module}.mjs"
        said = f"console.log(JSON.stringify({expression}));\n"
        file.write_text(f"{joined(STATIC / f'{module}.js')}\n{said}", encoding="utf-8")
        done = subprocess.run([str(NODE), str(file)], capture_output=True, text=True, check=False)
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    return value


@pytest.mark.parametrize(
    ("network", "tab", "shown"),
    [
        ("false", "beside", "beside"),
        ("true", "beside", "loss"),
        ("true", "plane", "loss"),
        ("true", "memory", "memory"),
        ("false", "unknown", "loss"),
    ],
)
def test_recorded_runs_have_no_tabs_of_a_surface(run, network, tab, shown):
    plot = "Object.create(Plot.prototype, { explorer: { value: "
    plot += f"{{ network: {network}, state: {{ tab: '{tab}' }} }} }} }})"
    assert run("plot", f"{plot}.what") == shown


def test_keys_choose_only_tabs_that_are_shown(run):
    press = """[true, false].map((network) => {
      const chosen = [];
      const explorer = Object.create(Explorer.prototype);
      Object.assign(explorer, { network, state: { step: 0, tab: "loss" } });
      explorer.set = ({ tab }) => chosen.push(tab);
      explorer.plot = Object.create(Plot.prototype, { explorer: { value: explorer } });
      const composedPath = () => [{ tagName: "DIV" }];
      for (const key of "01234567") explorer.onKey({ key, composedPath });
      return chosen;
    })"""
    assert run("explorer", press) == [
        ["loss", "memory", "length"],
        ["loss", "memory", "length", "angle", "plane", "beside"],
    ]


def test_the_next_change_takes_a_message_back(run):
    said = """[{}, { inFlight: 3 }, { asks: true }, { orphaned: true }].map((now) => {
      const explorer = Object.create(Explorer.prototype);
      const message = { textContent: "no", hidden: false, querySelector: () => now.asks };
      Object.assign(explorer, { message, inFlight: now.inFlight, model: now });
      explorer.unsay();
      return explorer.message.textContent.slice(0, 30);
    })"""
    assert run("explorer", said) == ["", "no", "no", "The kernel of this page is gon"]
