"""LookAhead, EMA and ModelAverage in the explorer, around any optimizer."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.viz.explorer.export import browser_options
from optlab.viz.explorer.image import as_comparison, with_averaged_paths
from optlab.viz.explorer.state import State, optimizer_classes
from optlab.viz.explorer.wrapping import WRAPPERS, as_wrapping, defaults_of
from optlab.viz.views.map_view import map_view
from tests.pages import stored_in

O = ol.optimizer  # noqa: E741
EMA = O.ExponentialMovingAverage

GIVEN = {
    "LookAhead": O.LookAhead(O.Momentum(0.001), alpha=0.3, k=4),
    "EMA": EMA.around(O.Adam(0.05), decay=0.8),
    "ModelAverage": O.ModelAverage.around(O.SGD(1e-4), 0.4, min_average_window=3),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_what_is_shown_is_the_run_of_compare(kind):
    template = GIVEN[kind]
    explorer = ol.explore("rosenbrock", {"one": template}, steps=30)
    trace = ol.compare("rosenbrock", {"one": template}, steps=30)["one"]
    runs = explorer.model.runs["one"]
    i = runs.rates.index(trace.settings["learning_rate"])
    np.testing.assert_array_equal(runs.point[i], trace["parameter"])
    label = "slow" if kind == "LookAhead" else "average"
    np.testing.assert_array_equal(runs.terms[label][i], trace[label])
    assert set(runs.slots) == set(runs.initial)


def test_the_step_panel_goes_on_after_the_rule():
    explorer = ol.explore("rosenbrock", {"one": GIVEN["LookAhead"]}, steps=12)
    trace = ol.compare("rosenbrock", {"one": GIVEN["LookAhead"]}, steps=12)["one"]
    for step in (3, 4):
        rows = explorer.model.what_happened("one", step)
        numbers = {label: found for label, _, found in rows}
        met = step == 4
        assert numbers["new x"]["p.new"] == trace["fast"][step - 1, 0]
        assert ("jump back" in numbers) == met
        assert ("slow weights" in numbers) != met
        if not met:
            assert numbers["slow weights"]["term.slow"] == trace["slow"][step - 1, 0]
            continue
        fast, slow = trace["fast"][step - 1, 0], trace["slow"][step - 2, 0]
        assert numbers["jump back"]["d.stay"] == 0.7
        assert numbers["jump back"]["d.jump"] == pytest.approx(0.7 * (slow - fast))
        assert numbers["LookAhead"]["d.synchronised"] == trace["parameter"][step, 0]
    labels = [
        label for label, *_ in ol.explore("booth", {"e": GIVEN["EMA"]}).model.what_happened("e", 3)
    ]
    assert labels[-1] == "average"


@pytest.mark.parametrize("kind", WRAPPERS)
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_anything_can_be_put_around_any_optimizer(kind, name):
    explorer = ol.explore("rosenbrock", ["SGD", "Adam"], steps=20).change(around={name: kind})
    [entry] = [e for e in explorer.now.optimizers if e.name == name]
    assert entry.around == defaults_of(kind)
    assert f"Around {name}: {kind} (" in explorer.summary()
    again = ol.explore().change(state=explorer.now.to_json())
    assert again.now == explorer.now
    np.testing.assert_array_equal(again.model.runs[name].point, explorer.model.runs[name].point)
    assert explorer.to_png()[:4] == b"\x89PNG"
    [sent] = [e for e in stored_in(explorer.to_html())["state"]["optimizers"] if e["around"]]
    assert sent["name"] == name
    plain = explorer.change(around={name: None})
    assert not plain.now.optimizers[0].around
    assert not plain.now.optimizers[1].around


def test_the_browser_s_slider_asks_for_another_k():
    explorer = ol.explore("rosenbrock", {"one": GIVEN["LookAhead"]}, steps=20)
    before = explorer.model.runs["one"].point.copy()
    wanted = {"kind": "LookAhead", "alpha": 0.3, "k": 7}
    message = {
        "generation": 3,
        "action": "around",
        "value": ["one", wanted],
        "state": explorer.now.to_dict(),
    }
    explorer._on_message(explorer, message, [])
    assert explorer.answer["error"] == ""
    assert explorer.now.optimizers[0].around == wanted
    assert not np.array_equal(explorer.model.runs["one"].point, before)
    message["value"] = ["one", {"kind": "LookAhead", "alpha": 2.0, "k": 7}]
    message["state"] = explorer.now.to_dict()
    explorer._on_message(explorer, message, [])
    assert "alpha must be in [0, 1]" in explorer.answer["error"]
    assert explorer.now.optimizers[0].around == wanted


def test_alpha_1_changes_nothing():
    explorer = ol.explore("rosenbrock", ["Adam"], steps=20)
    before = explorer.model.runs["Adam"].point
    changed = explorer.change(around={"Adam": {"kind": "LookAhead", "alpha": 1.0}})
    np.testing.assert_array_equal(changed.model.runs["Adam"].point, before)


def test_wrappers_are_no_optimizers_of_the_menu():
    assert not {"LookAhead", "Averaged"} & set(optimizer_classes())
    assert browser_options()["around"]["LookAhead"]["k"] == [1, 50, 1, 5]


@pytest.mark.parametrize(
    ("around", "said"),
    [
        ({"kind": "SWA"}, "LookAhead, EMA, ModelAverage"),
        ("SWA", "LookAhead, EMA, ModelAverage"),
        ({"kind": "EMA", "alpha": 1}, "EMA has the settings"),
        ({"kind": "EMA", "decay": "big"}, "decay must be a number"),
        ({"kind": "EMA", "decay": 1.0}, r"decay must be in \[0, 1\)"),
        ({"kind": "LookAhead", "k": 0}, "k must be a whole number"),
    ],
)
def test_what_cannot_be_put_around_is_said(around, said):
    with pytest.raises(ValueError, match=said):
        as_wrapping(around)


def test_a_list_of_templates_and_one_alone_are_named_by_their_classes():
    given = [O.Adam(0.1), O.Adam(0.2, beta1=0.5), O.Adam(0.3, beta1=0.5), O.LookAhead(O.SGD(0.1))]
    found = ol.explore("booth", given, steps=5)
    # The slider moves the rate, so it is no part of a name.
    names = ["Adam, beta1=0.9", "Adam, beta1=0.5 1", "Adam, beta1=0.5 2", "LookAhead SGD"]
    assert [entry["name"] for entry in found.state["optimizers"]] == names
    assert [entry["rate"] for entry in found.state["optimizers"]] == [0.1, 0.2, 0.3, 0.1]
    by_name = ol.explore("booth", dict(zip(names, given, strict=True)), steps=5)
    assert found.state == by_name.state
    alone = ol.explore("booth", O.Adam(0.1), steps=5)
    assert [entry["name"] for entry in alone.state["optimizers"]] == ["Adam"]


def test_templates_that_it_cannot_show_are_refused():
    for template in (
        O.LookAhead(O.LookAhead(O.SGD(0.1))),
        EMA.around(O.SGD(0.1), 0.9, thres_steps=3),
    ):
        with pytest.raises(TypeError, match="the explorer shows one LookAhead"):
            ol.explore("rosenbrock", {"one": template})
    with pytest.raises(ValueError, match="around is"):
        State.from_dict({"optimizers": [{"name": "a", "kind": "SGD", "around": {"kind": "?"}}]})


def test_networks_that_were_wrapped():
    race = ol.compare("digits_mlp", {"slow": O.LookAhead(O.Adam(0.003), k=3)}, steps=8)
    runs = ol.explore(race).model.runs["slow"]
    assert "slow" in runs.terms
    assert set(runs.slots) == {"moment1", "moment2"}


def test_the_picture_has_the_weights_that_follow():
    explorer = ol.explore("rosenbrock", ["SGD", "Adam", "Momentum"], steps=40)
    explorer.change(around={"Adam": "LookAhead", "Momentum": "EMA"})
    model = explorer.model
    race = as_comparison(model, jumps=True)
    plain = map_view(model.problem, race, 600, 450)
    view = with_averaged_paths(plain, model)
    assert view.note == f"{plain.note}; bold: averages, slow weights"
    added = [path for path in view.paths if not any(path is one for one in plain.paths)]
    assert [(path.name, path.style.dash) for path in added] == [("Adam", ()), ("Momentum", ())]
    trace = ol.compare(
        "rosenbrock",
        {"Adam": O.LookAhead(with_rate(model, "Adam"), alpha=0.5, k=5)},
        steps=40,
    )["Adam"]
    np.testing.assert_array_equal(added[0].step_x[1:], trace["slow"][4::5, 0])
    # Before a pull back to the slow weights, the path visits the fast weights.
    np.testing.assert_array_equal(race.traces["Adam"].parameters["point"][5], trace["fast"][4])
    assert len(race.traces["Adam"].parameters["point"]) == 40 + 1 + 8
    assert explorer.to_png().startswith(b"\x89PNG")


def with_rate(model, name):
    return O.Adam(model.runs[name].rates[model.rate_index(name)])
