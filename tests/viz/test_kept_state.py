"""The state in the address of a page: what is not valid in it is not taken up."""

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

import optlab as ol
from optlab.viz import explorer
from optlab.viz.browser.joining import joined
from optlab.viz.explorer import state
from optlab.viz.explorer.export import browser_options
from optlab.viz.explorer.presets import PRESETS
from tests.plan.javascript import NODE, needs_node

pytestmark = needs_node

FILE = Path(explorer.__file__).parent / "static" / "kept.js"
CHOICES = {
    "mode": state.MODES, "tab": state.TABS, "beside": state.BESIDE, "view": state.VIEWS,
    "preset": ("", *PRESETS), "theme": ("auto", "light", "dark"),
    "equal_rate": (None, *browser_options()["ladder"]),
}  # fmt: skip
ADAM = {"name": "Adam", "kind": "Adam", "settings": {"beta1": 0.9}, "rate": 0.1, "around": {}}


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """Return a function that gives what a page takes up of each of many kept states."""
    file = tmp_path_factory.mktemp("kept") / "kept.mjs"
    tail = "const given = JSON.parse(process.argv[2]);\nconsole.log(JSON.stringify(given.kept.map("
    tail += "(one) => validOf(one, given.options, given.recorded))));\n"
    file.write_text(f"{joined(FILE)}\n{tail}", encoding="utf-8")
    options = {name: browser_options()[name] for name in ("presets", "ladder", "mostSteps")}

    def each(kept, recorded=False):
        given = json.dumps({"kept": kept, "options": options, "recorded": recorded})
        done = subprocess.run(
            [str(NODE), str(file), given], capture_output=True, text=True, check=False
        )
        assert not done.returncode, done.stderr
        return json.loads(done.stdout)

    return each


def test_every_field_that_python_writes_is_taken_up(valid):
    states = [ol.explore().change(preset=name).now.to_dict() for name in PRESETS]
    states += [ol.explore(lambda x: x**2, start=1.0).now.to_dict()]
    for kept, found in zip(states, valid(states), strict=True):
        assert found == kept
    chosen = [{name: one} for name, ones in CHOICES.items() for one in ones]
    assert valid(chosen) == chosen


def test_what_is_not_valid_is_left_out(valid):
    wrong = {
        **dict.fromkeys(CHOICES, "oops"),
        "problem": 3, "start": [1, "x"], "steps": 20000, "seed": 0.5, "selected": None,
        "step": "oops", "slot": [], "coordinate": 2, "text_size": 0, "noise": -1,
        "optimizers": [ADAM, ADAM],
    }  # fmt: skip
    assert wrong.keys() == {field.name for field in dataclasses.fields(state.State)}
    assert valid([wrong, {"step": -1, "constructor": 1, "preset": "toString"}]) == [{}, {}]
    assert valid([{**wrong, "step": 7}]) == [{"step": 7}]
    faults = [("rate", 0), ("kind", 1), ("settings", None), ("settings", {"beta1": {}})]
    entries = [{**ADAM, name: value} for name, value in faults]
    found = valid([*({"optimizers": [one]} for one in entries), {"optimizers": []}, [], None, 5])
    assert found == [{}] * 8


def test_of_recorded_runs_an_address_changes_the_view_alone(valid):
    kept = {"step": 3, "tab": "angle", "optimizers": [ADAM], "steps": 7, "problem": "beale"}
    assert valid([kept], recorded=True) == [{"step": 3, "tab": "angle"}]
