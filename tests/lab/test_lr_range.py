"""The learning-rate range test: one run whose rate grows, and what it suggests."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from optlab.backend import display
from optlab.viz import renderers
from optlab.viz.sweeps.rate_range import rate_range, rate_range_png

SGD = ol.optimizer.SGD


def test_the_rates_grow_geometrically_and_are_used():
    found = ol.lab.lr_range_test("parabola", SGD(0.3), low=1e-3, high=0.1, steps=20)
    np.testing.assert_allclose(found.rates, np.geomspace(1e-3, 0.1, 20))
    x = -2.5
    for rate, loss in zip(found.rates, found.loss, strict=True):
        assert loss == pytest.approx(2 * x * x, rel=1e-12)
        x -= rate * 4 * x
    np.testing.assert_array_equal(found.loss, found.smoothed)  # a surface without noise


def test_the_lowest_loss_is_at_the_stability_limit():
    found = ol.lab.lr_range_test("parabola", SGD(1.0), steps=400)
    assert found.highest == pytest.approx(0.5, rel=0.05)  # 2 / curvature
    assert found.highest < found.diverged_at < 2.0
    assert found.suggestion < found.highest


@pytest.mark.parametrize("optimizer", [SGD(0.1), ol.optimizer.Adam(0.1)], ids=["SGD", "Adam"])
def test_on_a_network_the_suggestion_trains_and_the_end_does_not(optimizer):
    found = ol.lab.lr_range_test("digits_mlp", optimizer, steps=120)
    assert 1e-3 < found.suggestion < found.highest < 5
    assert found.smoothing == 0.9
    cls = type(optimizer)
    race = ol.compare("digits_mlp", {"good": cls(found.suggestion), "low": cls(1e-5)}, steps=60)
    assert race.accuracy["good"] > 0.8 > race.accuracy["low"]


def test_the_mean_is_the_exponential_one_without_its_bias():
    found = ol.lab.lr_range_test("noisy_bowl", SGD(0.1), steps=50, smoothing=0.8)
    weights = 0.8 ** np.arange(10)[::-1]
    assert found.smoothed[9] == pytest.approx((weights * found.loss[:10]).sum() / weights.sum())


def test_the_same_twice_and_another_with_another_seed():
    one, two, other = (
        ol.lab.lr_range_test("noisy_bowl", SGD(0.1), steps=30, seed=seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.loss, two.loss)
    assert one.loss[1:20].tolist() != other.loss[1:20].tolist()


def test_the_template_is_left_alone():
    template = SGD(0.3)
    ol.lab.lr_range_test("parabola", template, steps=20)
    assert template.is_template
    assert template.get_lr() == 0.3


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"optimizer": SGD}, TypeError, "takes an optimizer made without parameters"),
        ({"optimizer": ol.optimizer.LookAhead(SGD(0.1))}, TypeError, "without a wrapper"),
        ({"optimizer": SGD(ol.optimizer.lr.StepDecay(0.1, 3))}, TypeError, "a constant rate"),
        ({"optimizer": ol.optimizer.LBFGS()}, TypeError, "has no rate to test"),
        ({"low": 0.0}, ValueError, "low and high must be 0 < low < high"),
        ({"low": 2.0, "high": 1.0}, ValueError, "low and high must be"),
        ({"steps": 3}, ValueError, "steps must be a whole number of at least 10; got 3"),
        ({"smoothing": 1.0}, ValueError, "smoothing must be"),
        ({"problem": "log(x)"}, ValueError, "the loss at the start"),
    ],
)
def test_wrong_arguments(arguments, error, said):
    given = {"problem": "parabola", "optimizer": SGD(0.1), **arguments}
    with pytest.raises(error, match=said):
        ol.lab.lr_range_test(**given)


@pytest.mark.parametrize(
    ("problem", "optimizer"),
    [("digits_mlp", SGD(0.1)), ("rosenbrock", SGD(0.1)), ("monkey_saddle", ol.optimizer.Adam(0.1))],
)
def test_figure_and_image_show_the_suggestion(problem, optimizer):
    found = ol.lab.lr_range_test(problem, optimizer, steps=60)
    figure = rate_range(found)
    texts = [text for trace in figure.data if trace.mode == "markers+text" for text in trace.text]
    assert any(text.startswith("suggestion ") for text in texts)
    low, high = figure.layout.yaxis.range
    for trace in figure.data:
        if trace.mode == "markers+text":
            assert low < trace.y[0] < high
    assert rate_range_png(found)[:4] == b"\x89PNG"
    assert found.rows()[0].keys() == {"learning rate", "loss", "smoothed loss"}
    assert "suggestion" in repr(found)


def test_a_notebook_displays_it_through_the_registry(monkeypatch, tmp_path):
    monkeypatch.setattr(display, "_renderers", {"rate_range": renderers.rate_range})
    found = ol.lab.lr_range_test("rosenbrock", SGD(0.1), steps=40)
    bundle = found._repr_mimebundle_()
    assert {"image/png", "application/vnd.plotly.v1+json", "text/plain"} <= set(bundle)
    assert found.figure().layout.title.text == "<b>Rate range of SGD on Rosenbrock valley</b>"
    assert found.save(tmp_path / "range.png").read_bytes()[:4] == b"\x89PNG"


def test_every_renderer_is_declared():
    project = tomllib.loads((Path(ol.__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    declared = project["project"]["entry-points"]["optlab.renderers"]
    kinds = {name for name, value in vars(renderers).items() if type(value) is renderers.Renderer}
    assert set(declared) == kinds
    for name, place in declared.items():
        assert place == f"optlab.viz.renderers:{name}"


@pytest.mark.parametrize("condition", [4, 36, 100, 1000])
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_on_a_quadratic_the_highest_rate_is_the_limit_of_its_closed_form(condition, momentum):
    bowl = ol.problems.quadratic(float(condition))
    optimizer = ol.optimizer.Momentum(0.1, momentum) if momentum else SGD(0.1)
    found = ol.lab.lr_range_test(bowl, optimizer)
    limit = ol.lab.closed_form(bowl, optimizer, steps=1).stability_limit
    one_step = found.all_rates[1] / found.all_rates[0]
    assert limit / one_step**2 < found.highest <= limit * one_step
    assert limit / 10 < found.suggestion <= found.highest
    if not momentum:
        assert limit / 3 < found.suggestion


def test_the_suggestion_on_a_bowl_descends_as_fast_as_any_rate():
    found = ol.lab.lr_range_test("x**2 + 50*y**2", SGD(0.1))
    cls = {f"{rate:g}": SGD(rate) for rate in (found.suggestion, 0.00037, 0.005, 0.0205)}
    race = ol.compare("x**2 + 50*y**2", cls, steps=50)
    first = f"{found.suggestion:g}"
    others = [loss for name, loss in race.final_loss.items() if name != first]
    assert race.final_loss[first] < 0.9 * min(others)


def test_where_losses_are_noisy_there_is_one_run():
    assert ol.lab.lr_range_test("noisy_bowl", SGD(0.1), steps=40).ends is None


def test_a_rule_that_runs_by_itself_has_its_own_runs():
    rule = ol.optimizer.Lamb(0.1)
    found = ol.lab.lr_range_test("valley", rule, low=1e-2, high=1.0, steps=12)
    alone = ol.compare("valley", {"a": ol.optimizer.Lamb(0.1)}, steps=50)
    i = int(np.argmin(np.abs(found.all_rates - 0.1)))
    near = ol.compare("valley", {"a": ol.optimizer.Lamb(float(found.all_rates[i]))}, steps=50)
    assert found.ends[i] == pytest.approx(near.final_loss["a"], rel=1e-12)
    assert np.isfinite(alone.final_loss["a"])
