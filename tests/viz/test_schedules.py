"""Figures of schedules, and the content that a notebook stores of one."""

from __future__ import annotations

import base64
import json
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from optlab import viz
from optlab.backend import display
from optlab.viz import renderers
from optlab.viz.style import theme

lr = ol.optimizer.lr


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """Use our renderer for schedules, whatever is installed."""
    monkeypatch.setattr(display, "_renderers", {"schedule": renderers.schedule})


def three():
    return {
        "stairs": lr.StepDecay(0.5, 20),
        "cosine": lr.CosineAnnealingDecay(0.5, 100),
        "one cycle": lr.OneCycleLR(0.9, 50),
    }


def curves(figure):
    """Return the lines of a figure by name."""
    return {t.legendgroup: t for t in figure.data if t.mode == "lines"}


def written(figure):
    data = [str(text) for trace in figure.data for text in (getattr(trace, "text", None) or ())]
    return " ".join([note.text for note in figure.layout.annotations] + data)


def test_a_curve_shows_the_rates_of_the_steps_to_come():
    schedule = lr.CosineAnnealingDecay(0.5, 100)
    for _ in range(10):
        schedule.step()
    before = schedule.state_dict()
    [curve] = curves(viz.schedule(schedule, steps=30)).values()
    np.testing.assert_array_equal(curve.x, np.arange(30))
    np.testing.assert_allclose(curve.y, schedule.preview(30), rtol=1e-6)
    assert schedule.state_dict() == before


def test_each_schedule_has_its_colour_its_dash_and_one_entry_in_the_legend():
    figure = viz.schedule(three(), steps=100)
    shown = [trace.name for trace in figure.data if trace.showlegend is not False and trace.name]
    assert shown == list(three())
    looks = {(curve.line.color, curve.line.dash) for curve in curves(figure).values()}
    assert len(looks) == 3
    assert all(theme.contrast(color, theme.PAPER) > 4.5 for color, _ in looks)


def test_a_schedule_that_ends_early_is_drawn_to_its_end_and_says_so():
    figure = viz.schedule(three(), steps=100)
    assert curves(figure)["one cycle"].x[-1] == 49
    assert curves(figure)["stairs"].x[-1] == 99
    assert "one cycle ends" in written(figure)
    assert "stairs 5e-5" in written(figure)


def test_the_headline_says_what_is_seen():
    said = written(viz.schedule(three(), steps=100))
    assert (
        "The highest rate is 0.9, of one cycle after 14 steps; the lowest 5e-5, of stairs." in said
    )
    said = written(viz.schedule(lr.OneCycleLR(0.7, 100)))
    assert "From 0.028 to 0.0001 (lowest) in 99 steps; highest, 0.7, after 29." in said
    assert "OneCycleLR(max_learning_rate=0.7, total_steps=100," in said
    assert "0.3 in all 2 steps." in written(viz.schedule({"flat": [0.3, 0.3, 0.3]}))
    said = written(viz.schedule({"dip": [0.3, 0.1, 0.2]}))
    assert "From 0.3 (highest) to 0.2 in 2 steps; lowest, 0.1, after 1." in said


def test_the_highest_rate_names_all_that_reach_it():
    same = {name: lr.StepDecay(0.5, 20) for name in "abc"}
    assert "The highest rate is 0.5, of a, b and c" in written(viz.schedule(same))
    many = {f"schedule number {n}": lr.StepDecay(0.5, 20) for n in range(12)}
    assert "schedule number 0, schedule number 1, schedule number 2 and 9 more" in written(
        viz.schedule(many)
    )


def test_a_warm_up_before_a_cosine_ends_at_its_bottom():
    cosine = lr.CosineAnnealingDecay(0.1, T_max=90)
    figure = viz.schedule(lr.LinearWarmup(cosine, 10, 0.0, 0.1))
    assert curves(figure)["LinearWarmup"].x[-1] == 100
    assert "(lowest)" in written(figure)
    assert "highest, 0.1, after 10." in written(figure)


def test_many_schedules_keep_their_settings_in_a_higher_figure():
    many = {f"s{n}": lr.CosineAnnealingDecay(0.5, 10 + n) for n in range(20)}
    figure = viz.schedule(many)
    assert "s19: CosineAnnealingDecay(0.5, T_max=29," in written(figure)
    assert figure.layout.height > viz.schedule(three()).layout.height >= 400


def test_one_schedule_has_no_legend():
    figure = viz.schedule(lr.StepDecay(0.5, 20))
    assert not [t for t in figure.data if t.showlegend is not False]


@pytest.mark.parametrize(
    ("schedule", "steps"),
    [
        (lr.OneCycleLR(0.7, 321), 321),
        (lr.LinearWarmup(lr.OneCycleLR(0.7, 50), 20, 0, 0.1), 70),
        (lr.StepDecay(0.5, 30), 120),
        (lr.CosineAnnealingDecay(0.5, 50), 51),
        (lr.CosineAnnealingDecay(0.5, 10**9), 20_000),
        (lr.NoamDecay(64, 10), 50),
    ],
)
def test_without_a_number_of_steps_it_shows_what_the_schedule_does(schedule, steps):
    [curve] = curves(viz.schedule(schedule)).values()
    assert curve.x[-1] == steps - 1


def test_every_schedule_can_be_drawn():
    from tests.optimizer.schedules import SETTINGS, make

    for case in SETTINGS:
        schedule = make(lr, case)
        assert curves(viz.schedule(schedule))
        assert curves(viz.schedule(schedule, axis="log"))


def test_on_a_log_axis_a_rate_of_zero_leaves_through_the_floor():
    figure = viz.schedule(lr.PolynomialDecay(0.5, 10, end_lr=0), axis="log")
    assert figure.layout.yaxis.type == "log"
    [curve] = curves(figure).values()
    assert min(curve.y) > 0
    assert "log scale, which has no place for a rate of 0" in written(figure)


def test_rates_of_a_plateau_are_drawn_from_its_preview():
    plateau = lr.ReduceOnPlateau(0.5, patience=1)
    with pytest.raises(TypeError, match=r"give plateau.preview\(metrics\)"):
        viz.schedule({"plateau": plateau})
    rates = plateau.preview([1.0] * 8)
    [curve] = curves(viz.schedule({"plateau": rates})).values()
    drawn = dict(zip(curve.x, curve.y, strict=True))  # at a drop: the rate after the drop
    np.testing.assert_allclose(list(drawn.values()), rates, rtol=1e-6)


def test_a_drop_is_drawn_as_a_drop():
    [curve] = curves(viz.schedule(lr.StepDecay(0.5, 2), steps=4)).values()
    assert curve.x.tolist() == [0, 1, 2, 2, 3]
    np.testing.assert_allclose(curve.y, [0.5, 0.5, 0.5, 0.05, 0.05], rtol=1e-6)


def test_a_single_rate_is_a_point():
    figure = viz.schedule({"now": [0.5]})
    assert "now 0.5" in written(figure)
    assert viz.schedule_png(lr.StepDecay(0.5, 3), steps=1)[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (0.1, TypeError, "takes a schedule, or a dict"),
        ({}, TypeError, "takes a schedule, or a dict"),
        ({1: lr.StepDecay(0.5, 3)}, TypeError, "names of schedules are text"),
        ({"s": lr.StepDecay}, TypeError, "'s' is the class StepDecay"),
        ({"s": "0.1"}, TypeError, "'s' must be a schedule or a list of rates; got str"),
        ({"s": [0.1, float("nan")]}, ValueError, "'s' must be a list of finite numbers"),
        ({"s": [[0.1]]}, ValueError, "'s' must be a list of finite numbers"),
    ],
)
def test_what_is_no_schedule_is_named(wrong, error, said):
    with pytest.raises(error, match=said):
        viz.schedule(wrong)


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="steps must be a whole number"):
        viz.schedule(lr.StepDecay(0.5, 3), steps=0)
    with pytest.raises(ValueError, match="axis must be 'linear' or 'log'"):
        viz.schedule(lr.StepDecay(0.5, 3), axis="loglog")


def test_a_picture_comes_out_the_same_twice():
    first, second = viz.schedule_png(three()), viz.schedule_png(three())
    assert first == second
    assert first[:4] == b"\x89PNG"


def test_a_notebook_stores_figure_picture_and_words():
    schedule = lr.OneCycleLR(0.7, 1000)
    bundle = schedule._repr_mimebundle_()
    assert sorted(bundle) == ["application/vnd.plotly.v1+json", "image/png", "text/plain"]
    assert bundle["text/plain"] == repr(schedule)
    assert base64.b64decode(bundle["image/png"])[:4] == b"\x89PNG"
    assert len(json.dumps(bundle)) < 60_000


def test_a_plateau_is_shown_in_words():
    plateau = lr.ReduceOnPlateau(0.5)
    assert plateau._repr_mimebundle_() == {"text/plain": repr(plateau)}


def test_a_schedule_gives_its_figure():
    schedule = lr.StepDecay(0.5, 3)
    assert schedule.figure(steps=7, width=600) == viz.schedule(schedule, steps=7, width=600)


@pytest.mark.parametrize("suffix", ["png", "html"])
def test_the_renderer_saves(tmp_path, suffix):
    target = tmp_path / f"schedule.{suffix}"
    renderers.schedule.save(lr.StepDecay(0.5, 3), target)
    assert target.stat().st_size > 1000
    with pytest.raises(ValueError, match=r"must end in \.png or \.html"):
        renderers.schedule.save(lr.StepDecay(0.5, 3), tmp_path / "schedule.gif")


def test_the_package_declares_who_draws_schedules():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    module, name = project["project"]["entry-points"]["optlab.renderers"]["schedule"].split(":")
    assert getattr(import_module(module), name) is renderers.schedule
