"""Every figure takes a trace, a loaded one, several, or a comparison, or says what it needs."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab import viz
from optlab.viz.style.results import comparison_of

O = ol.optimizer  # noqa: E741
EMA = O.ExponentialMovingAverage
PNG = b"\x89PNG"


def recorded(optimizer=None, steps=12, **options):
    """Return a run outside of a comparison."""
    w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
    optimizer = (O.Adam(0.05) if optimizer is None else optimizer).bind([w])
    with ol.record(optimizer, **options) as trace:
        for _ in range(steps):
            optimizer.clear_grad()
            (w**2).sum().backward()
            optimizer.step()
    return trace


@pytest.fixture(scope="module")
def race():
    return ol.compare("rosenbrock", {"SGD": O.SGD(1e-3), "Adam": O.Adam(0.1)}, steps=20)


@pytest.fixture(scope="module")
def trace():
    return recorded()


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    pytest.importorskip("zarr", reason="traces are saved as Zarr stores")
    return ol.load_trace(recorded().save(tmp_path_factory.mktemp("runs") / "run.zarr"))


def said(figure):
    return " ".join([figure.layout.title.text, *(note.text for note in figure.layout.annotations)])


def kinds(race, trace, loaded):
    """Return each kind of input for figures of several runs."""
    return {
        "comparison": race,
        "trace of a comparison": race["SGD"],
        "trace": trace,
        "loaded": loaded,
        "list": [race["SGD"], trace],
        "dict": {"one": trace, "other": race["Adam"]},
    }


KINDS = ("comparison", "trace of a comparison", "trace", "loaded", "list", "dict")


class TestSeveralRuns:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("draw", ["race", "loss_curves", "schedule", "series"])
    def test_figures(self, draw, kind, race, trace, loaded):
        given = kinds(race, trace, loaded)[kind]
        figure = getattr(viz, draw)(given)
        assert len(figure.data) > 0
        static = {"loss_curves": "race"}.get(draw, draw)
        assert getattr(viz, f"{static}_png")(given).startswith(PNG)

    @pytest.mark.parametrize("kind", KINDS)
    def test_words(self, kind, race, trace, loaded):
        assert "loss" in viz.summary(kinds(race, trace, loaded)[kind])

    def test_a_run_of_a_comparison_has_its_map(self, race):
        for given in (race["SGD"], [race["SGD"], race["Adam"]], race):
            assert viz.race(given).layout.yaxis.scaleanchor == "x"
            assert viz.surface_map(given).layout.yaxis.scaleanchor == "x"

    def test_runs_of_one_comparison_are_that_comparison(self, race):
        again = comparison_of(dict(race.traces), "race")
        assert (again.steps, again.seed, again.apart) == (race.steps, race.seed, False)
        assert again.final_loss == pytest.approx(race.final_loss)
        assert said(viz.race(dict(race.traces))) == said(viz.race(race))

    def test_runs_recorded_apart_are_not_said_to_have_one_start(self, race, trace):
        words = viz.summary([race["SGD"], trace])
        assert "Recorded apart: starts, steps and seeds may differ." in words
        assert "At the end of each run" in words
        assert "ame start" not in words
        other = ol.compare("rosenbrock", {"Adam": O.Adam(0.1)}, steps=20, start=(1.5, 0.5))
        assert "Recorded apart" in viz.summary([race["SGD"], other["Adam"]])

    def test_the_last_loss_of_a_run_is_that_before_its_last_step(self, trace):
        assert f"After 11 steps Adam is at loss {trace.loss[-1]:.3g}" in viz.summary(trace)

    def test_runs_recorded_every_few_steps_have_their_steps(self):
        race = ol.compare("rosenbrock", {"SGD": O.SGD(1e-3)}, steps=20)
        few = race["SGD"].sel(step=[1, 5, 20])
        few.problem, few.origin = race.problem, race["SGD"].origin
        run = comparison_of(few, "race").traces["SGD"]
        np.testing.assert_array_equal(run.taken, [0, 1, 5, 20])
        path = race["SGD"].parameters["point"]
        expected = [float(race.problem(*path[step])) for step in (0, 1, 5)]
        np.testing.assert_allclose(run.loss, expected)

    def test_rates_are_those_of_the_run(self, race):
        decay = O.SGD(O.lr.StepDecay(0.01, 5))
        run = ol.compare("rosenbrock", {"decay": decay}, steps=12)["decay"]
        for given in (run, {"decay": run}):
            [curve] = [t for t in viz.schedule(given).data if t.mode == "lines"]
            drawn = dict(zip(curve.x, curve.y, strict=True))
            np.testing.assert_allclose(list(drawn.values()), run.learning_rate, rtol=1e-6)
        mixed = viz.schedule({"run": run, "plan": O.lr.StepDecay(0.01, 5)}, steps=12)
        assert {t.legendgroup for t in mixed.data} == {"run", "plan"}

    def test_names_are_text_in_both_pictures(self, trace):
        given = {"<b>bold</b> & co": trace, "plain": trace}
        figure = viz.loss_curves(given)
        assert "<b>bold" not in figure.to_json().replace("\\u003c", "<")
        assert "&lt;b&gt;bold&lt;/b&gt; &amp; co" in [entry.name for entry in figure.data]


class TestWhatIsMissing:
    @pytest.mark.parametrize("draw", ["race", "loss_curves", "race_png", "summary"])
    def test_other_things(self, draw):
        with pytest.raises(TypeError, match=r"takes a trace \(what ol.record .*; got int"):
            getattr(viz, draw)(3)
        with pytest.raises(TypeError, match=r"takes a trace .*; got str"):
            getattr(viz, draw)(["run"])

    def test_losses(self):
        silent = ol.trace.Trace("mine")
        w = np.array([1.0])
        silent.append(parameters={"w": w}, before={"w": w})
        with pytest.raises(ValueError, match=r"'mine' has no loss, which race draws.*backward\(\)"):
            viz.race(silent)
        with pytest.raises(ValueError, match="'mine' has no learning rates"):
            viz.schedule(silent)
        with pytest.raises(ValueError, match="'empty' has no steps to draw"):
            viz.race(ol.trace.Trace("empty"))

    def test_a_map(self, race, trace):
        with pytest.raises(ValueError, match="'Adam' does not know its problem, whose map"):
            viz.surface_map(trace)
        light = recorded(probes="light")
        light.problem = race.problem
        with pytest.raises(ValueError, match=r"no values .* probes=\[ol.probes.Values\(\)\]"):
            viz.surface_map(light)
        assert viz.race(light).layout.yaxis.scaleanchor is None  # the losses alone
        other = ol.compare("booth", {"SGD": O.SGD(0.01)}, steps=3)
        with pytest.raises(ValueError, match="runs on one problem; got runs on"):
            viz.surface_map([race["SGD"], other["SGD"]])

    def test_a_problem_that_is_given_back_has_its_map(self, race, tmp_path):
        pytest.importorskip("zarr", reason="traces are saved as Zarr stores")
        again = ol.load_trace(race["SGD"].save(tmp_path / "run.zarr"))
        assert viz.race(again).layout.yaxis.scaleanchor is None
        again.problem = ol.problems.rosenbrock
        assert viz.surface_map(again).layout.yaxis.scaleanchor == "x"

    def test_bytes(self, race, trace, loaded):
        for given in (trace, loaded, race["SGD"]):
            with pytest.raises(ValueError, match=r"no bytes.*probes=\[ol.probes.Memory\(\)\]"):
                viz.memory(given)

    @pytest.mark.parametrize(
        ("draw", "needs"),
        [
            ("basins", "ol.basins"), ("basins_png", "ol.basins"), ("heatmap", "ol.sweep"),
            ("heatmap_png", "ol.sweep"), ("recompute", "ol.lab.memory_study"),
            ("recompute_png", "ol.lab.memory_study"),
            ("recompute_explorer", "ol.lab.memory_study"), ("recompute_schedule", "revolve"),
            ("recompute_schedule_png", "revolve"), ("graph", r"ol.viz.graph\(loss\)"),
            ("landscape", r"ol.lab.landscape\(model, loss, runs=trace\)"),
            ("landscape_png", "ol.lab.landscape"), ("connection", "ol.lab.connect"),
            ("connection_png", "ol.lab.connect"),
            ("decision_boundary", r"ol.viz.decision_boundary\(training.model, training.data\)"),
            ("decision_boundary_png", "Give a model and its data"),
            ("claim", r"race\(position\) that returns ol.compare"),
            ("fair_comparison", "seeds=5"), ("fair_comparison_png", "seeds=5"),
            ("tuning", "trials=8"), ("tuning_png", "trials=8"),
            ("training", "ol.lab.recipe"), ("training_png", "ol.lab.recipe"),
        ],
    )  # fmt: skip
    def test_what_no_run_has(self, draw, needs, race, trace, loaded):
        for given in (race, race["SGD"], trace, loaded, [trace, trace]):
            with pytest.raises(TypeError, match=f"cannot be drawn from .*{needs}"):
                getattr(viz, draw)(given)

    @pytest.mark.parametrize(
        ("draw", "needs"),
        [
            ("decision_boundary", "Give a model and its data"),
            ("decision_boundary_png", "Give a model and its data"),
            ("claim", r"Give a sentence, positions, a function race\(position\)"),
        ],
    )
    def test_nothing_at_all(self, draw, needs):
        with pytest.raises(TypeError, match=rf"^{draw}\(\) has nothing to draw\. {needs}"):
            getattr(viz, draw)()

    def test_a_part(self):
        with pytest.raises(TypeError, match=r"^decision_boundary\(model, .*\) needs data\.$"):
            viz.decision_boundary(lambda points: points)
        with pytest.raises(TypeError, match=r"^claim\(.*\) needs positions and race and measure"):
            viz.claim("Adam is faster.")

    @pytest.mark.parametrize(
        ("quantity", "probe"),
        [
            ("sharpness", r"Curvature\(loss\)"), ("angle", r"Angle\(\)"),
            ("hessian trace", r"Curvature\(loss, samples=10\)"), ("projection", "Projection"),
            ("activation mean", r"Activations\(\)"), ("moment1", r"Values\(\)"),
            ("accuracy", r"Metric\('accuracy', f\)"),
        ],
    )  # fmt: skip
    def test_a_quantity_names_its_probe(self, quantity, probe):
        light = recorded(probes=["norms"])
        with pytest.raises(ValueError, match=rf"no '{quantity}'; .*probes=\[ol.probes.{probe}"):
            viz.series(light, quantity)


class TestOneRun:
    @pytest.mark.parametrize("draw", ["influence", "lookahead", "averages", "modes", "rate_range"])
    def test_several_have_to_be_chosen_from(self, draw, race, trace):
        options = {"step": 3} if draw == "influence" else {}
        two = ol.compare("booth", {"a": O.SGD(0.01), "b": O.SGD(0.02)}, steps=3)
        for given, choice in (
            (two, r"race\['a'\]"), ([trace, trace], r"traces\[0\]"),
            ({"x": trace, "y": trace}, r"traces\['x'\]"),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=f"{draw} draws one run; got 2.*{choice}"):
                getattr(viz, draw)(given, **options)

    def test_the_one_that_fits_is_drawn(self, race):
        runs = {
            "SGD": O.SGD(1e-3),
            "slow": O.LookAhead(O.SGD(1e-3)),
            "mean": EMA.around(O.SGD(1e-3)),
        }
        all_three = ol.compare("rosenbrock", runs, steps=12)
        assert "LookAhead around SGD" in viz.lookahead(all_three).layout.title.text
        assert "Average around SGD" in viz.averages(all_three).layout.title.text
        assert viz.lookahead_png(all_three).startswith(PNG)
        assert viz.averages_png(all_three["mean"]).startswith(PNG)
        assert "of step 3" in viz.influence(race["SGD"], 3).layout.title.text

    def test_averaged_weights_of_a_loaded_run(self, tmp_path):
        pytest.importorskip("zarr", reason="traces are saved as Zarr stores")
        run = recorded(O.LookAhead(O.SGD(0.01), k=3))
        again = ol.load_trace(run.save(tmp_path / "slow.zarr"))
        assert said(viz.lookahead(again)) == said(viz.lookahead(run))

    def test_averaged_weights_without_their_distance(self):
        light = recorded(O.LookAhead(O.SGD(0.01), k=3), probes=[ol.probes.Norms(terms=False)])
        with pytest.raises(ValueError, match=r"has no 'lead'.*ol.probes.Values\(\)"):
            viz.lookahead(light)

    def test_memory_of_the_steps_of_a_run(self, tmp_path):
        trace = recorded(probes=["norms", "memory"])
        figure = viz.memory(trace)
        areas = [t for t in figure.data if getattr(t, "stackgroup", None)]
        top = sum(np.asarray(area.y, dtype=float) for area in areas)
        total = sum(trace.memory.values())
        np.testing.assert_allclose(np.unique(top), np.unique(total), rtol=1e-6)
        assert figure.layout.xaxis.tickprefix == "step "
        assert "Memory of a run: at most" in figure.layout.title.text
        assert viz.memory_png(trace).startswith(PNG)
        pytest.importorskip("zarr", reason="traces are saved as Zarr stores")
        again = ol.load_trace(trace.save(tmp_path / "run.zarr"))
        assert said(viz.memory(again)) == said(figure)

    def test_modes_of_a_run_are_those_of_its_closed_form(self):
        race = ol.compare(
            "valley", {"m": O.Momentum(0.02, 0.9, use_nesterov=True), "Adam": O.Adam(0.1)}, steps=30
        )
        predicted = ol.lab.closed_form("valley", O.Momentum(0.02, 0.9, use_nesterov=True), steps=30)
        for given in (race, race["m"]):
            assert viz.modes(given) == viz.modes(predicted)
        assert viz.modes_png(race["m"]).startswith(PNG)

    def test_modes_say_what_the_formula_needs(self, trace, tmp_path):
        with pytest.raises(ValueError, match="needs SGD or Momentum; the trace 'Adam' is of Adam"):
            viz.modes(trace)
        with pytest.raises(ValueError, match="problem, start and optimizer of the run, which"):
            viz.modes(recorded(O.SGD(0.1)))
        falling = {"SGD": O.SGD(O.lr.StepDecay(0.01, 5))}
        with pytest.raises(ValueError, match="needs one learning rate, and SGD without"):
            viz.modes(ol.compare("valley", falling, steps=12))
        decayed = {"SGD": O.SGD(0.01, weight_decay=0.1)}
        with pytest.raises(
            ValueError, match="SGD without weight_decay and grad_clip; the trace 'SGD' is of"
        ):
            viz.modes(ol.compare("valley", decayed, steps=12))
        with pytest.raises(TypeError, match=r"modes takes what ol.lab.closed_form.*; got int"):
            viz.modes(3)

    def test_a_run_whose_rate_grows_is_a_range_test(self):
        test = ol.lab.lr_range_test("rosenbrock", O.SGD(0.1), low=1e-5, high=1e-3, steps=50)
        grow = float(test.rates[1] / test.rates[0])
        growing = O.SGD(O.lr.LambdaDecay(1e-5, lambda n: grow**n))
        race = ol.compare("rosenbrock", {"SGD": growing, "Adam": O.Adam(0.1)}, steps=50)
        for given in (race, race["SGD"]):
            drawn = next(t for t in viz.rate_range(given).data if t.mode == "lines")
            expected = next(t for t in viz.rate_range(test).data if t.mode == "lines")
            np.testing.assert_allclose(drawn.x, expected.x, rtol=1e-5)
            np.testing.assert_allclose(drawn.y, expected.y, rtol=1e-5)
        assert viz.rate_range_png(race["SGD"]).startswith(PNG)

    def test_of_mini_batches_the_mean_is_that_of_the_range_test(self):
        test = ol.lab.lr_range_test("digits_mlp", O.SGD(0.1), low=1e-3, high=1e-1, steps=30)
        grow = float(test.rates[1] / test.rates[0])
        growing = {"SGD": O.SGD(O.lr.LambdaDecay(1e-3, lambda n: grow**n))}
        run = ol.compare("digits_mlp", growing, steps=30)["SGD"]
        drawn = [t.y for t in viz.rate_range(run).data if t.mode == "lines"]
        expected = [t.y for t in viz.rate_range(test).data if t.mode == "lines"]
        assert len(drawn) == 2
        np.testing.assert_allclose(drawn, expected, rtol=1e-3)

    def test_a_constant_rate_is_no_range_test(self, trace, loaded):
        for given in (trace, loaded):
            with pytest.raises(ValueError, match=r"rate grows at every step, .*lr_range_test"):
                viz.rate_range(given)
        with pytest.raises(TypeError, match=r"rate_range takes what .*; got int"):
            viz.rate_range(3)
