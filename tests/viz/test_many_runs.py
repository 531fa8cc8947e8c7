"""Figures of many runs, of wrappers, of a dip: nothing overflows, and omissions are stated."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import optlab as ol
from optlab import viz
from optlab.viz.comparison.image import race_png
from optlab.viz.style.text import race_conditions
from optlab.viz.views.curve_view import axis_note, loss_view

O = ol.optimizer  # noqa: E741


def many(problem, count=20, steps=12):
    runs = {f"Adam number {n}": O.Adam(0.001 * (n + 1)) for n in range(count)}
    return ol.compare(problem, runs, steps=steps)


def written(figure):
    return " ".join(note.text for note in figure.layout.annotations)


@pytest.mark.parametrize("problem", ["rosenbrock", "digits_mlp"])
def test_only_the_lowest_ends_are_labelled_and_stay_beside_the_panel(problem):
    race = many(problem)
    view = loss_view(race, 300, 250)
    labelled = [end for end in view.ends if end.text]
    assert len(view.ends) == 20
    assert len(labelled) == 12
    assert max(end.y for end in labelled) <= min(end.y for end in view.ends if not end.text)
    for end in labelled:
        height = np.log10(end.text_y) if view.scale == "log" else end.text_y
        assert view.box.y_low <= height <= view.box.y_high


def test_a_figure_grows_with_its_runs_and_so_does_its_twin():
    race = many("digits_mlp", 40, 3)
    figure = viz.race(race)
    low, high = figure.layout.margin.b, figure.layout.margin.t
    assert (figure.layout.height - low - high) / 40 >= 17.9
    size = Image.open(io.BytesIO(race_png(race))).size
    assert size == (figure.layout.width, figure.layout.height)
    assert viz.race(many("digits_mlp", 2, 3)).layout.height == 480


def test_the_conditions_tell_what_is_around_an_optimizer():
    EMA = O.ExponentialMovingAverage
    runs = {
        "slow": O.LookAhead(O.Adam(0.2), alpha=0.25, k=3),
        "smooth": EMA.around(O.SGD(1e-4), decay=0.9),
        "Adam": O.Adam(0.2),
    }
    said = race_conditions(ol.compare("rosenbrock", runs, steps=3))
    assert "slow (LookAhead around Adam, alpha 0.25, k 3) 0.2," in said
    assert "smooth (ExponentialMovingAverage around SGD, decay 0.9) 0.0001, Adam 0.2." in said


def test_a_dip_to_rounding_does_not_stretch_the_axis():
    dip = ol.compare("parabola", {"SGD": O.SGD(0.49), "slow": O.SGD(0.1)}, steps=40)
    view = loss_view(dip, 300, 250)
    assert view.box.height < 14
    assert "ends 12 decades below the start" in axis_note(dip)
    assert axis_note(dip) in written(viz.race(dip))
    whole = ol.compare("parabola", {"slow": O.SGD(0.1)}, steps=10)
    assert axis_note(whole) == ""
