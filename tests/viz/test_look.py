"""What the explorer's mode "look" decides in Python: rates, what is sensitive, styles, sizes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from optlab.viz.explorer.export import FAMILIES, TITLES, browser_options
from optlab.viz.explorer.live import given_to_page, given_whole_and_small
from optlab.viz.explorer.model import has_no_minimum
from optlab.viz.explorer.presets import PRESETS
from optlab.viz.explorer.runs import LADDER, NEARBY, Nearby, ends_alike, rung
from optlab.viz.explorer.state import REFERENCES, optimizer_classes
from optlab.viz.style import theme


def branching(x, y):
    """A function that no plan can hold: it branches."""
    return x**2 + 3 * y**2 if x > 0 else 2 * x**2 + 3 * y**2


class TestBestRates:
    def test_the_best_rate_is_never_an_end_of_the_ladder(self):
        # A slope so flat that every rate of the usual ladder is too small.
        explorer = ol.explore(lambda x, y: (x**2 + y**2) / 1000, ["SGD", "Momentum"], steps=50)
        model = explorer.model
        for name, runs in model.runs.items():
            best = runs.rates[model.best[name]]
            assert best > LADDER[-1]
            assert best < runs.rates[-1]
            assert model.criteria[name][model.best[name]] < model.criteria[name][-1]

    def test_so_at_the_lower_end(self):
        model = ol.explore("1e5*(x**2 + y**2)", ["SGD"], steps=50).model
        best = model.runs["SGD"].rates[model.best["SGD"]]
        assert best == pytest.approx(1 / 2e5)
        assert 0 < model.best["SGD"] < len(model.runs["SGD"].rates) - 1

    def test_where_no_rate_is_inside_it_is_one_between_the_ends(self):
        # Adam with a short memory of squares goes uphill with every rate: not to move is best.
        template = ol.optimizer.Adam(0.1, beta1=0.0, beta2=0.1)
        explorer = ol.explore("reddi", {"Adam": template}).change(mode="best")
        model = explorer.model
        assert LADDER[0] < model.runs["Adam"].rates[model.best["Adam"]] < LADDER[-1]

    def test_a_chaotic_path_is_no_best_rate(self):
        # At rate 1 gradient descent leaps from hollow to hollow; one leap happens to end well.
        def wavy(x):
            return np.sin(3 * x) + x**2 / 4

        model = ol.explore(wavy, ["SGD", "Adam"]).model
        for name, runs in model.runs.items():
            i = model.best[name]
            assert model.sensitive(name) == -1, name
            [entry] = [entry for entry in model.state.optimizers if entry.name == name]
            near = model._ladder(entry, {}, [0.99 * runs.rates[i], 1.01 * runs.rates[i]])
            assert np.isfinite(near.loss).all(), name
            assert near.loss[:, -1] == pytest.approx(runs.loss[i, -1], abs=0.1), name
        sgd, at = model.runs["SGD"], model.runs["SGD"].rates.index(1.0)
        assert model.criteria["SGD"][at] < model.criteria["SGD"][model.best["SGD"]]
        near = model._ladder(model.state.optimizers[0], {}, [1 / NEARBY, NEARBY])
        assert not ends_alike(sgd, at, near)

    def test_of_the_runs_beside_a_run_only_what_they_tell_is_kept(self):
        model = ol.explore("booth", ["SGD", "Adam"]).model
        assert {type(each) for each in model._nearby.values()} == {Nearby}
        for runs in model.runs.values():
            kept = [runs.point, runs.loss, runs.gradient, runs.update, runs.stopped]
            kept += [*runs.slots.values(), *runs.terms.values()]
            assert all(array.base is None for array in kept), "part of all that ran"

    def test_pages_know_a_path_of_chance_as_python_does(self):
        assert browser_options()["steadiness"] == {
            "lastBit": 2**-52, "stable": 1e-10, "nearby": NEARBY, "alike": 0.1,
        }  # fmt: skip

    def test_rungs_go_on_for_ever(self):
        rates = [rung(1.0, by) for by in range(-4, 5)]
        assert rates == [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]

    def test_another_function_gets_rates_of_its_own(self):
        explorer = ol.explore()
        assert explorer.now.mode == "custom"
        explorer.change(problem="booth")
        model, fresh = explorer.model, ol.explore("booth", ["Momentum", "Adam"]).model
        for name in ("Momentum", "Adam"):
            assert model.shown_rate(name) == fresh.shown_rate(name)
        explorer.change(problem="beale", rate={"Adam": 0.05})
        assert explorer.model.shown_rate("Adam") == 0.05


class TestNoMinimum:
    def test_a_function_that_falls_without_end_has_no_best_rate(self):
        explorer = ol.explore("sqrt(x) + y")
        assert explorer.model.open
        assert "no lowest point in view" in explorer.summary()
        given = explorer.stored()["given"]
        assert given["problems"][explorer.now.problem]["open"]

    def test_a_path_that_leaves_the_view_is_not_chosen(self):
        model = ol.explore("x + y", ["SGD", "Adam"]).model
        for name, runs in model.runs.items():
            assert np.abs(runs.point[model.best[name]]).max() <= 6

    @pytest.mark.parametrize("name", ["rosenbrock", "monkey_saddle", "ripples", "reddi"])
    def test_functions_with_a_minimum_are_not_open(self, name):
        assert not has_no_minimum(ol.problems.find(name))

    def test_a_function_that_is_defined_nowhere_in_view_is_not_called_open(self):
        assert not has_no_minimum(ol.problems.Surface("log(-1 - x**2) + y"))


class TestSensitivity:
    def test_a_path_on_a_ridge_is_sensitive_and_one_in_a_bowl_is_not(self):
        # Gradient descent with this rate is the logistic map at r = 4, the text-book case of chaos:
        # an error doubles at every step, from 2**-53 to 1e-10 in about 20.
        explorer = ol.explore(
            lambda x: x**3 * 4 / 3 - x**2 * 3 / 2, {"SGD": ol.optimizer.SGD(1.0)}, start=0.3
        )
        assert 10 < explorer.model.sensitive("SGD") < 40
        bowl = ol.explore("x**2 + y**2", {"SGD": ol.optimizer.SGD(0.1)})
        assert bowl.model.sensitive("SGD") == -1

    def test_a_method_that_searches_is_not_sensitive_after_its_last_step(self):
        model = ol.explore("ackley", {"CG": ol.lab.ConjugateGradient()}, steps=100).model
        steps, gradients = model.runs["CG"].paid()[model.rate_index("CG")]
        assert 0 < steps < gradients < 100
        assert model.sensitive("CG") == gradients

    def test_nothing_is_claimed_of_a_sensitive_path(self, monkeypatch):
        explorer = ol.explore()
        assert explorer.model.claim[1]
        monkeypatch.setattr(explorer.model, "sensitive", lambda name: 3)
        assert not explorer.model.claim[1]

    @pytest.mark.parametrize("name", PRESETS)
    def test_every_example_is_stable(self, name):
        model = ol.explore().change(preset=name).model
        assert [model.sensitive(one) for one in model.runs] == [-1] * len(model.runs)

    def test_what_the_kernel_runs_brings_its_mark(self):
        explorer = ol.explore(branching, {"SGD": ol.optimizer.SGD(0.1)}, steps=20)
        [recorded] = given_to_page(explorer.model, {})["recorded"]["optimizers"]
        assert recorded["sensitive"] == {"0.1": -1}


class TestReddi:
    def test_the_slopes_are_three_minus_one_minus_one(self):
        race = ol.compare("reddi", {"SGD": ol.optimizer.SGD(1e-9)}, start=1e6, steps=6)
        slopes = race["SGD"].gradients["point"].ravel()
        np.testing.assert_allclose(slopes, [3, -1, -1, 3, -1, -1], atol=1e-5)

    def test_the_pattern_does_not_depend_on_the_seed(self):
        paths = [
            ol.compare("reddi", {"Adam": ol.optimizer.Adam(0.1)}, steps=9, seed=seed)["Adam"].loss
            for seed in (0, 5)
        ]
        assert np.array_equal(*paths)


class TestStyles:
    KINDS = (*optimizer_classes(), *theme._VARIANTS)

    def test_every_optimizer_and_wrapper_has_a_style_of_its_own(self):
        styles = theme.assign_styles({kind: kind for kind in dict.fromkeys(self.KINDS)})
        assert len(set(styles.values())) == len(styles)
        pairs = {(style.color, style.marker) for style in styles.values()}
        assert len(pairs) == len(styles)

    @pytest.mark.parametrize("kind", dict.fromkeys(KINDS))
    def test_it_is_the_same_in_every_company(self, kind):
        alone = theme.assign_styles({"mine": kind})["mine"]
        others = {"one": "Momentum", "two": "Lion", "again": "Momentum", "stranger": "Unheard"}
        others = {name: other for name, other in others.items() if other != kind}
        assert theme.assign_styles({**others, "mine": kind})["mine"] == alone

    def test_variants_and_wrappers_are_told_apart_from_what_they_vary(self):
        explorer = ol.explore("valley", {
            "Adam": ol.optimizer.Adam(0.1),
            "AMSGrad": ol.optimizer.Adam(0.1, amsgrad=True),
            "Momentum": ol.optimizer.Momentum(0.01),
            "Nesterov": ol.optimizer.Momentum(0.01, use_nesterov=True),
            "LookAhead": ol.optimizer.LookAhead(ol.optimizer.Momentum(0.01)),
            "SGD": ol.optimizer.SGD(0.01),
        })  # fmt: skip
        styles = explorer.model.styles
        assert len({style.marker for style in styles.values()}) == len(styles)
        for variant, usual in (("AMSGrad", "Adam"), ("Nesterov", "Momentum"),
                               ("LookAhead", "Momentum")):  # fmt: skip
            assert styles[variant].color != styles[usual].color
            assert styles[variant].color != styles["SGD"].color

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_colors_stand_out_on_the_map_of_the_explorer(self, scheme):
        options = browser_options()
        palette = options["palette"][scheme]
        for style in options["styles"]:
            for ground in ("mapLow", "mapHigh", "paper"):
                assert theme.contrast(style[scheme], palette[ground]) >= 3

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_parts_of_a_step_have_hues_that_no_optimizer_has(self, scheme):
        options = browser_options()
        palette = options["palette"][scheme]
        parts = {palette[name] for name in ("memory", "scale", "decay", "wrapper")}
        assert len(parts) == 4
        others = [palette["ink"], palette["quiet"], *(one[scheme] for one in options["styles"])]
        for part in parts:
            for ground in ("mapLow", "mapHigh", "paper"):
                assert theme.contrast(part, palette[ground]) >= 3
            assert theme.contrast(part, palette["paper"]) >= 4.5  # numbers are written in it
            for other in {*others, *parts} - {part}:
                rgb = [[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in (part, other)]
                assert math.dist(*rgb) > 60, (part, other)

    def test_adam_without_correction_looks_the_same_in_the_example_and_in_the_lecture(self):
        [kind] = {kind for kind, _ in PRESETS["bias correction"].optimizers.values()} - {"Adam"}
        lectures = Path(__file__).parents[2] / "notebooks" / "lectures"
        [lecture] = lectures.glob("08-*.ipynb")
        assert f"class {kind}(ol.optimizer.Adam)" in lecture.read_text(encoding="utf-8")
        style = theme.assign_styles({"uncorrected": kind})["uncorrected"]
        assert style == ol.explore().change(preset="bias correction").model.styles["uncorrected"]
        assert style.color not in {
            theme._style(theme._PLACES[k]).color for k in ("Adam", "Momentum")
        }

    def test_examples_are_told_apart_by_the_color_blind(self):
        """Viewed as a deuteranope sees them, two paths differ in color, or in marker and dash."""
        for name in PRESETS:
            styles = list(ol.explore().change(preset=name).model.styles.values())
            for i, one in enumerate(styles):
                for other in styles[:i]:
                    far = math.dist(as_deuteranope(one.color), as_deuteranope(other.color))
                    assert one.marker != other.marker
                    assert far > 20 or one.dash != other.dash

    def test_python_and_page_have_one_table(self):
        options = browser_options()
        styles = theme.assign_styles({kind: kind for kind in dict.fromkeys(self.KINDS)})
        for kind, style in styles.items():
            sent = options["styles"][options["order"].index(kind)]
            assert sent["light"] == style.color
            assert (tuple(sent["dash"]), sent["marker"]) == (style.dash, style.marker)


def as_deuteranope(color):
    """Simulate deuteranopia (Machado, Oliveira and Fernandes 2009, severity 1), in sRGB 0-255."""
    linear = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in linear]
    matrix = [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
    seen = np.clip(np.array(matrix) @ linear, 0, 1)
    return np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055) * 255


class TestDivergence:
    def test_a_comparison_says_which_finite_run_explodes(self):
        race = ol.compare(
            "booth",
            {"SGD": ol.optimizer.SGD(0.12), "Adam": ol.optimizer.Adam(0.1)},
            steps=50,
        )
        stopped = race.table()["stopped"]
        growth = race.final_loss["SGD"] / race["SGD"].loss[0]
        assert growth > 1000
        assert stopped["SGD"] == (
            f"diverges: the loss is {growth:.2g} times as high as at the start"
        )
        assert stopped["Adam"] == ""
        assert "diverges" in repr(race)

    def test_a_run_that_rises_a_little_is_not_called_diverging(self):
        race = ol.compare("parabola", {"SGD": ol.optimizer.SGD(0.52)}, steps=20)
        assert race.final_loss["SGD"] > race["SGD"].loss[0]
        assert "stopped" not in race.table()


class TestPages:
    def test_the_page_of_a_function_that_cannot_be_captured_is_small(self):
        html = ol.explore(branching, steps=300)._repr_mimebundle_()["text/html"]
        assert len(html) < 300_000

    def test_it_holds_the_runs_that_are_shown_and_the_last_losses_of_the_others(self):
        explorer = ol.explore(branching, ["SGD", "Adam"], start=(1.0, 1.0), steps=25)
        model, given = explorer.model, explorer.stored()["given"]
        for one in given["recorded"]["optimizers"]:
            runs, i = model.runs[one["name"]], model.rate_index(one["name"])
            assert one["held"] == [runs.rates[i]]
            assert one["finals"][i] == runs.loss[i, -1]
            assert len(one["finals"]) == len(one["rates"]) == len(runs.rates)
        whole = given_to_page(model, {})["recorded"]["optimizers"]
        assert all(one["held"] == one["rates"] for one in whole)
        json.dumps(given, allow_nan=False)

    @pytest.mark.parametrize(
        ("problem", "names", "same"),
        [
            ("beale", ["SGD"], True),
            ("beale", ["SGD", "LBFGS"], False),  # a page does not compute LBFGS
            (branching, ["SGD"], False),
        ],
    )
    def test_what_is_saved_is_made_again_only_where_it_is_less(self, problem, names, same):
        explorer = ol.explore(problem, names, start=(1.0, 1.0), steps=25)
        whole, small = given_whole_and_small(explorer.model, {})
        assert whole == given_to_page(explorer.model, {})
        assert small == given_to_page(explorer.model, {}, whole=False)
        assert (whole is small) == same

    def test_every_optimizer_that_can_be_added_has_a_group(self):
        offered = set(browser_options()["classes"])
        grouped = [kind for members in FAMILIES.values() for kind in members]
        assert len(set(grouped)) == len(grouped)
        assert offered - {one.__name__ for one in REFERENCES} <= {*grouped}
        assert set(TITLES) <= offered

    def test_every_example_has_a_short_name_of_its_own(self):
        names = [preset.short for preset in PRESETS.values()]
        assert len(set(names)) == len(names)
        assert max(map(len, names)) <= 14

    def test_the_parts_over_the_losses_are_those_of_the_run(self):
        preset = PRESETS["narrow valley"]
        runs = ol.explore().change(preset="narrow valley").model.shown_runs()
        [(_, start, fallen), (_, again, end)] = preset.parts
        assert (start, again, end) == (0, fallen, preset.steps)
        assert all(run.settled(4.0) <= fallen for run in runs.values())


def test_the_ground_of_a_slow_function_is_computed_once():
    explorer = ol.explore(branching, ["SGD"], steps=5)
    given_to_page(explorer.model, {})
    heights, before = explorer.model.heights, explorer.model
    assert heights is not None
    explorer.change(steps=6)
    assert explorer.model is not before
    assert explorer.model.heights is heights
    explorer.change(problem="booth")
    assert explorer.model.heights is None
