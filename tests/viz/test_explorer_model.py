"""The explorer without a browser: its numbers are those of the trace, its state a short JSON."""

import base64
import re

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer import Optimizer
from optlab.viz.browser import live
from optlab.viz.explorer.live import given_to_page
from optlab.viz.explorer.presets import PRESETS
from optlab.viz.explorer.runs import LADDER, best_of
from optlab.viz.explorer.state import State, optimizer_classes, usual_template
from optlab.viz.explorer.step_rules import rule_of

SVG = "http://www.w3.org/2000/svg"  # a name, not an address to fetch
VARIANTS = {
    "Nesterov": ol.optimizer.Momentum(0.001, use_nesterov=True, rescale_grad=0.5),
    "centered": ol.optimizer.RMSProp(0.01, centered=True, momentum=0.5),
    "amsgrad": ol.optimizer.Adam(0.05, amsgrad=True),
    "clipped": ol.optimizer.Adam(0.05, weight_decay=0.1, grad_clip=ol.nn.ClipGradByGlobalNorm(1.0)),
}


class SignDescent(Optimizer):
    hyperparameters = {"learning_rate": 0.1}
    slots = {"sign": 0.0}

    def update(self, p, g, s, h, c):
        sign = np.sign(g)
        return p - h.learning_rate * sign, {"sign": sign}, {"size": abs(g)}


def templates():
    """Return every optimizer of the library, its variants, and a user's own."""
    found = {
        name: usual_template(cls, {"learning_rate": 0.002})
        for name, cls in optimizer_classes().items()
    }
    return {**found, **VARIANTS, "own": SignDescent(0.05)}


@pytest.mark.parametrize("name", templates())
@pytest.mark.parametrize("step", [1, 2, 25])
def test_every_number_of_the_step_panel_is_the_trace_s(name, step):
    template = templates()[name]
    explorer = ol.explore("beale", {name: template}, steps=25)
    model, at = explorer.model, step - 1
    race = ol.compare("beale", {name: template}, steps=25)
    trace = race[name]
    if getattr(template, "needs_closure", False):  # the columns count gradients, not updates
        at = min(step, len(trace)) - 1
        step = int(race.evaluations[name][at])
    rate = model.runs[name].rates.index(template.settings["learning_rate"])
    for coordinate in (0, 1):

        def one(arrays, when, coordinate=coordinate):
            return float(arrays["point"][when, coordinate])

        expected = {
            "t": step,
            "raw": one(trace.gradients, at),
            "p": one(trace.parameters, at),
            "p.new": one(trace.parameters, at + 1),
        }
        used = trace.terms.get("used_gradient", trace.gradients)
        expected["g"] = one(used, at)
        if "update" in trace.terms:
            expected["update"] = one(trace.terms["update"], at)
        for slot, arrays in trace.slots.items():
            expected[f"new.{slot}"] = one(arrays, at)
            expected[f"old.{slot}"] = one(arrays, at - 1) if at else 0.0
        for term, arrays in trace.terms.items():
            expected[f"term.{term}"] = one(arrays, at)
        for setting, value in template.settings.items():
            if isinstance(value, (int, float)):
                expected[f"h.{setting}"] = float(value)
        rows = model.what_happened(name, step, coordinate, rate)
        shown = {key: value for _, _, numbers in rows for key, value in numbers.items()}
        assert {"d.raw", "p", "p.new", "update"} <= set(shown)
        assert shown["d.raw"] == -expected["raw"], "lines have the direction of the step"
        for key, value in shown.items():
            if key in expected:
                assert value == expected[key], key
            else:
                assert key.startswith("d.") or key == "update"
                assert np.isfinite(value)
        assert not any("not a number" in text for _, text, _ in rows)


def test_the_written_update_follows_from_the_written_numbers():
    model = ol.explore("beale", ["Adam"], steps=25).model
    numbers = {k: v for _, _, n in model.what_happened("Adam", 7) for k, v in n.items()}
    size = numbers["h.learning_rate"] * numbers["d.memory"]
    assert size / numbers["d.scale"] == pytest.approx(numbers["update"])
    assert numbers["p"] + numbers["update"] == pytest.approx(numbers["p.new"])


def branching(x, y):
    return x**2 + y**2 if x > 0 else x**2 + 2 * y**2


def test_what_cannot_be_captured_travels_as_the_trace_in_float32():
    explorer = ol.explore(branching, ["Adam", "SGD"], start=(1.0, 1.0), steps=30)
    given = given_to_page(explorer.model, {})
    recorded = given["recorded"]
    assert not given["rules"].keys() & {"own"}
    trace = ol.compare(branching, {"Adam": ol.optimizer.Adam(0.2)}, start=(1.0, 1.0), steps=30)
    trace = trace["Adam"]
    [entry] = [o for o in recorded["optimizers"] if o["name"] == "Adam"]
    numbers = np.frombuffer(base64.b64decode(recorded["numbers"]), "<f4")
    for name, expected in (
        ("point", trace.parameters["point"]),
        ("gradient", trace.gradients["point"]),
        ("new.moment2", trace.slots["moment2"]["point"]),
        ("term.root", trace.terms["root"]["point"]),
    ):
        offset, count, width = entry["arrays"][name]
        start = offset + entry["rates"].index(0.2) * count * width
        sent = numbers[start : start + count * width].reshape(count, width)
        assert np.array_equal(sent, expected.astype(np.float32))
    heights = given["heights"]
    grid = np.frombuffer(base64.b64decode(heights["values"]), "<f4")
    assert grid[0] == np.float32(branching(-3.0, -3.0))
    assert len(grid) == heights["rows"] * heights["columns"]


def test_what_can_be_captured_travels_as_a_program():
    given = ol.explore().stored()["given"]
    assert {"Momentum", "Adam"} <= set(given["rules"])
    assert "recorded" not in given
    assert {"rosenbrock", "beale", "parabola", "valley"} <= set(given["problems"])
    assert given["rules"]["Adam"]["second"] == "beta1"
    mixed = ol.explore("beale", ["SGD", "Dpsgd"], steps=20).stored()["given"]
    assert [one["name"] for one in mixed["recorded"]["optimizers"]] == ["Dpsgd"]
    assert "SGD" in mixed["rules"]


@pytest.mark.parametrize("function", [branching, "abs(x) + y**2", lambda x, y: x**2 - y])
def test_every_problem_has_a_page(function):
    given = ol.explore(function, ["SGD", "Adam"], start=(1.0, 0.5), steps=20).stored()["given"]
    live = function is not branching
    assert ("recorded" in given) == (not live)
    assert ("heights" in given) == (not live)


def test_a_template_of_ones_own_with_clip_and_decay_is_captured():
    template = ol.optimizer.Adam(0.05, weight_decay=0.1, grad_clip=ol.nn.ClipGradByGlobalNorm(1.0))
    given = ol.explore("beale", {"mine": template, "sign": SignDescent()}, steps=20)
    given = given.stored()["given"]
    assert set(given["own"]) == {"mine", "sign"}
    assert {"own|mine|", "own|sign|"} <= set(given["rules"])


def test_outputs_and_pages_are_small():
    explorer = ol.explore()
    html = explorer._repr_mimebundle_()["text/html"]
    assert len(html) < 240_000
    many = ["SGD", "Momentum", "Adam", "AdamW", "Adamax", "NAdam", "RAdam"]
    assert len(ol.explore("beale", many, steps=40)._repr_mimebundle_()["text/html"]) < 300_000
    assert len(ol.explore("beale", {"Adam": ol.optimizer.Adam(0.1)}).to_html()) < 400_000


@pytest.mark.parametrize("preset", PRESETS)
def test_the_state_is_a_short_json_that_regenerates_the_picture(preset):
    explorer = ol.explore().change(preset=preset, step=3)
    text = explorer.to_json()
    assert len(text) < 1500
    assert State.from_json(text).to_json() == text
    again = ol.explore().change(state=text)
    assert again.to_json() == text
    for name, runs in explorer.model.runs.items():
        np.testing.assert_array_equal(again.model.runs[name].point, runs.point)


def test_the_best_rate_has_the_lowest_mean_log_loss_and_diverged_runs_are_worst():
    model = ol.explore(steps=100).model
    for name, runs in model.runs.items():
        with np.errstate(all="ignore"):
            mean = np.log10(runs.loss + 1e-12).mean(axis=1)
        mean[runs.stopped >= 0] = np.inf
        assert model.best[name] == np.argmin(mean)
    assert (model.runs["SGD"].stopped >= 0).any()
    assert best_of(np.full(3, np.inf), np.array([3, 9, 4])) == 1


def test_without_a_known_minimum_the_lowest_loss_seen_is_the_floor():
    model = ol.explore(lambda x, y: x**2 + y**2 - 5, ["SGD", "Adam"], steps=50).model
    assert model.floor == min(np.nanmin(runs.loss) for runs in model.runs.values())
    assert not model.floor_known


def test_given_templates_keep_their_rates_and_names_get_the_best():
    given = ol.explore("booth", {"slow": ol.optimizer.SGD(0.0123)}, steps=30)
    assert given.now.mode == "custom"
    model = given.model
    assert model.runs["slow"].rates[model.rate_index("slow")] == 0.0123
    assert set(LADDER) < set(model.runs["slow"].rates)
    assert ol.explore("booth", ["SGD"], steps=30).now.mode == "best"


def test_a_comparison_is_explored_as_it_ran():
    race = ol.compare("beale", {"mine": SignDescent(0.03)}, start=(2.0, 1.0), steps=40, seed=3)
    explorer = ol.explore(race)
    state = explorer.now
    assert (state.problem, state.start, state.steps, state.seed) == ("beale", [2.0, 1.0], 40, 3)
    path = explorer.model.runs["mine"].point[explorer.model.rate_index("mine")]
    assert np.array_equal(path, race["mine"].parameters["point"])


def test_a_network_comparison_has_norms_and_loss_and_no_map():
    race = ol.compare("digits_mlp", {"Adam": ol.optimizer.Adam(0.003)}, steps=12)
    explorer = ol.explore(race)
    given = explorer.stored()["given"]
    assert given["network"]
    [entry] = given["recorded"]["optimizers"]
    offset, count, _ = entry["arrays"]["new.moment1"]
    numbers = np.frombuffer(base64.b64decode(given["recorded"]["numbers"]), "<f4")
    sent = numbers[offset : offset + count]
    total = np.sqrt(sum(a.astype(float) ** 2 for a in race["Adam"].norms["moment1"].values()))
    assert sent == pytest.approx(total, rel=1e-6)
    assert "as they were recorded" in explorer.summary()
    assert explorer.to_png()[:4] == b"\x89PNG"


def test_a_curve():
    explorer = ol.explore("double_well", ["SGD", "Momentum"], steps=60)
    assert len(explorer.stored()["given"]["problems"]["double_well"]["start"]) == 1
    assert explorer.to_png()[:4] == b"\x89PNG"


def test_a_function_of_one_s_own_that_takes_one_point_at_a_time():
    def mine(x, y):
        return x**2 + y**2 if x > 0 else x**2 + 2 * y**2

    explorer = ol.explore(mine, ["SGD"], start=(1.0, 1.0), steps=20)
    race = ol.compare(mine, {"SGD": ol.optimizer.SGD(0.1)}, start=(1.0, 1.0), steps=20)
    runs = explorer.model.runs["SGD"]
    assert np.array_equal(runs.point[runs.rates.index(0.1)], race["SGD"].parameters["point"])
    assert explorer.now.problem == "own"


def own_bowl(x, y):
    return x**2 + 2 * y**2


@pytest.mark.parametrize("function", [own_bowl, branching])
def test_a_function_of_one_s_own_stays_in_the_page_for_the_way_back(function):
    explorer = ol.explore(function, ["SGD"], start=(1.0, 1.0), steps=30)
    explorer.change(problem="rosenbrock")
    given = given_to_page(explorer.model, {})
    assert given["problems"]["own"]["title"] == explorer.model.own_surface.title
    assert ("export function own(x, y)" in given["program"]) == (function is own_bowl)
    assert explorer.change(problem="own").model.surface.function is function


def test_errors_are_raised_at_the_first_call_and_change_nothing_later():
    def broken(x, y):
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError):
        ol.explore(broken)
    explorer = ol.explore(steps=20)
    before = explorer.to_json()
    for wanted in (
        {"start": (np.inf, 0)},
        {"steps": 0},
        {"problem": "nowhere"},
        {"rate": {"X": 1}},
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - every case has its own message
            explorer.change(**wanted)
    with pytest.raises(TypeError, match="nothing named"):
        explorer.change(colour="red")
    assert explorer.to_json() == before


def test_what_the_browser_asks_is_answered_and_an_error_leaves_the_picture():
    explorer = ol.explore(steps=20)
    before = explorer.model

    def ask(action, value):
        message = {"generation": 7, "action": action, "value": value, "state": explorer.state}
        explorer._on_message(explorer, message, [])
        return explorer.answer

    assert ask("start", [1e400, 0])["error"]
    assert explorer.model is before
    answer = ask("start", [0.5, 0.5])
    assert (answer["generation"], answer["error"]) == (7, "")
    assert explorer.state["start"] == [0.5, 0.5]
    ask("setting", ["Momentum", "momentum", 0.5])
    assert explorer.model.runs["Momentum"].template.settings["momentum"] == 0.5
    ask("add", "Adam")
    assert [o["name"] for o in explorer.state["optimizers"]][-1] == "Adam 2"
    ask("remove", "SGD")
    assert "SGD" not in explorer.model.runs
    ask("problem", "parabola")
    assert explorer.model.surface.dimension == 1
    wanted = {**explorer.state, "problem": "booth", "start": [1.0, 2.0]}
    message = {"generation": 8, "action": "compute", "value": None, "state": wanted}
    explorer._on_message(explorer, message, [])
    assert explorer.model.start == (1.0, 2.0)


def test_the_page_holds_its_data_and_asks_nobody(tmp_path):
    explorer = ol.explore(steps=50)
    page = explorer.to_html()
    assert explorer.to_html(tmp_path / "page.html") == tmp_path / "page.html"
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert re.findall(r"https?://|//cdn|fetch\(", page) == []
    code = explorer.app.module.replace(SVG, "")
    assert re.findall(r"https?://|//cdn|fetch\(|import\s*\((?!URL\.)", page + code) == []
    assert explorer.summary()[:40] in page


def test_the_output_is_a_page_with_a_picture_and_never_a_widget_view(tmp_path):
    explorer = ol.explore(steps=50)
    data = explorer._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"}
    assert "Rosenbrock valley from (−0.35, 1.75), after 50 steps" in data["text/plain"]
    [image] = re.findall(r'src="data:image/png;base64,([^"]+)"', data["text/html"])
    assert base64.b64decode(image).startswith(b"\x89PNG")
    assert len(image) < 150_000
    assert f'data-ol="{explorer.place}"' in data["text/html"]
    assert explorer.to_png(tmp_path / "p.png") == (tmp_path / "p.png").read_bytes()


def test_a_reader_sees_the_page_before_its_picture_is_made(monkeypatch):
    explorer = ol.explore("beale", ["SGD", "Adam"], steps=20)
    with pytest.raises(NotImplementedError):  # no page follows here: IPython asks for all at once
        explorer._ipython_display_()
    shown, made = [], explorer.picture
    monkeypatch.setattr(live, "page_follows", lambda: True)
    monkeypatch.setattr(live, "display", lambda data, **how: shown.append((data, how)))
    monkeypatch.setattr(live, "update_display", lambda data, **how: shown.append((data, how)))
    monkeypatch.setattr(explorer, "picture", lambda: (shown.append("picture"), made())[1])
    explorer._ipython_display_()
    (first, how), between, (second, how_again) = shown
    assert between == "picture"
    assert how == how_again
    assert how["raw"]
    assert first["text/plain"] == second["text/plain"] == explorer.summary()
    assert "<img" not in first["text/html"]
    assert re.sub("<img[^>]*>", "", second["text/html"]) == first["text/html"]
    assert second["text/html"].count("data:image/png;base64,iVBOR") == 1


def test_a_state_of_the_page_is_what_python_reads():
    explorer = ol.explore("beale", ["SGD", "Adam"], steps=20)
    state = {**explorer.state, "start": [0.5, 0.5], "noise": 0.1, "tab": "plane", "view": "apart"}
    explorer.set_state({"state": state})
    assert "from (0.5, 0.5)" in explorer.summary()
    noisy = ol.problems.noisy("beale", 0.1)
    rate = explorer.model.runs["SGD"].rates[3]
    race = ol.compare(noisy, {"SGD": ol.optimizer.SGD(rate)}, start=(0.5, 0.5), steps=20)
    assert np.array_equal(explorer.model.runs["SGD"].point[3], race["SGD"].parameters["point"])


def test_divergence_is_said_with_its_step():
    explorer = ol.explore("rosenbrock").change(rate={"SGD": 1.0}, selected="SGD")
    assert "SGD at rate 1: diverged at step 4" in explorer.summary()


def test_a_subclass_with_a_rule_of_its_own_gets_the_generic_rows():
    class Mine(ol.optimizer.Adam):
        def update(self, p, g, s, h, c):
            return super().update(p, 2 * g, s, h, c)

    rows = rule_of(Mine(), ["moment1"], ["root"]).rows
    assert [row.label for row in rows] == ["−gradient", "moment1", "root", "update", "new {axis}"]


class TestBadStates:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"step": 2.5}, "step must be"),
            ({"coordinate": 7}, "coordinate must be"),
            ({"text_size": "x"}, "text_size"),
            ({"equal_rate": 0.03}, "equal_rate"),
            ({"rate": {"Adam": -1}}, "above 0"),
            ({"rate": {"Adam": float("nan")}}, "above 0"),
            ({"steps": 5000}, "from 1 to 2000"),
            ({"optimizers": []}, "one optimizer"),
            ({"tab": "x"}, "tab must be"),
            ({"view": "x"}, "view must be"),
            ({"noise": -1}, "noise must be"),
        ],
    )
    def test_are_refused_and_change_nothing(self, changes, message):
        explorer = ol.explore(steps=40)
        before = explorer.to_json()
        with pytest.raises(ValueError, match=message):
            explorer.change(**changes)
        assert explorer.to_json() == before

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"optimizers": ["SGD", "SGD"]}, "name of its own"),
            ({"optimizers": []}, "one optimizer"),
            ({"steps": 0}, "steps must be a whole number from 1 to 2000; got 0"),
            ({"steps": 1e6}, "steps must be a whole number from 1 to 2000"),
            ({"optimizers": ["Adma"]}, "Did you mean 'Adam'"),
            ({"start": np.zeros(5)}, r"one or two numbers.*start has 5.*ol\.compare takes any"),
            ({"steps": 5000}, "from 1 to 2000"),
            ({"seed": "a"}, "seed must be"),
        ],
    )
    def test_are_refused_at_once(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            ol.explore("booth", **arguments)

    def test_a_failed_change_of_the_problem_leaves_the_old_one(self):
        explorer = ol.explore(lambda x, y: x**2 + y**2, steps=20)
        before = explorer.what_happened(step=3)
        with pytest.raises(ValueError, match="start"):
            explorer.change(problem=lambda x, y: x**2 + y**2 + np.nan)
        assert explorer.change(step=3).what_happened() == before

    def test_a_step_after_the_end_says_when_it_ended(self):
        explorer = ol.explore("rosenbrock", {"SGD": ol.optimizer.SGD(1.0)}, steps=20)
        with pytest.raises(ValueError, match="diverged at step"):
            explorer.what_happened("SGD", 15)


def test_the_best_rate_is_one_of_the_ladder_and_an_unknown_minimum_is_named_so():
    explorer = ol.explore(
        lambda x, y: x**2 + y**2 - 7, {"Adam": ol.optimizer.Adam(0.3)}, steps=60
    ).change(mode="best")
    model = explorer.model
    assert model.runs["Adam"].rates[model.best["Adam"]] != 0.3
    assert "lowest loss seen" in explorer.summary()


def test_the_text_on_the_rates_is_true_of_each_mode():
    explorer = ol.explore("beale", ["SGD", "Adam"], steps=20)
    assert "Rates: for each optimizer the best of the rates 1, 2 and 5" in explorer.summary()
    explorer.change(rate={"Adam": 0.1})
    assert "Rates: set by hand; where none was set, the best of" in explorer.summary()
    explorer.change(rate={"SGD": 0.01})
    assert explorer.summary().endswith("Rates: set by hand.")
    explorer.change(mode="equal")
    assert "Rates: the same for all, of the rates 1, 2 and 5" in explorer.summary()


def test_one_step_is_one_step():
    said = ol.explore("beale", ["SGD"], steps=1).summary()
    assert "after 1 step." in said
    assert "same 1 step, seed" in said


def test_a_setting_that_is_a_function_stays_with_its_template():
    template = ol.optimizer.AdamW(0.1, weight_decay=0.5, lr_ratio=lambda p: 0.25)
    explorer = ol.explore("beale", {"run": template}, steps=5)
    assert "lr_ratio" not in explorer.to_json()
    race = ol.compare("beale", {"run": template}, steps=5)["run"]
    model = explorer.model
    rate = model.runs["run"].rates.index(0.1)
    np.testing.assert_array_equal(model.runs["run"].point[rate], race.parameters["point"])
