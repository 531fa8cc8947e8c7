"""Figures of LookAhead and of averages show the recorded weights."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab import viz
from optlab.viz.style import theme

O = ol.optimizer  # noqa: E741
EMA = O.ExponentialMovingAverage


def race(optimizer, problem="rosenbrock", steps=23):
    return ol.compare(problem, {"run": optimizer}, steps=steps)["run"]


@pytest.fixture(scope="module")
def trace():
    return race(O.LookAhead(O.Momentum(0.0015), alpha=0.5, k=5))


def lines(figure, axis):
    return {
        t.legendgroup: t
        for t in figure.data
        if t.type == "scatter"
        and t.mode == "lines"
        and t.xaxis == axis
        and "rgba" not in t.line.color
        and len(t.x) > 1
    }


def written(figure):
    data = [str(text) for t in figure.data for text in (getattr(t, "text", None) or ())]
    return " ".join([note.text for note in figure.layout.annotations] + data)


def test_the_fast_path_has_its_jumps_and_the_slow_path_its_synchronisations(trace):
    figure = viz.lookahead(trace)
    paths = lines(figure, "x")
    slow = paths["slow path"]
    points = trace["slow"][trace.synchronisations - 1]
    drawn = np.stack([slow.x, slow.y], axis=1)
    for point in points:
        assert np.abs(drawn - point).sum(axis=1).min() < 0.01
    assert slow.line.width > paths["fast path"].line.width
    assert slow.line.color != paths["fast path"].line.color
    assert slow.line.dash != paths["fast path"].line.dash
    fast = np.stack([paths["fast path"].x, paths["fast path"].y], axis=1)
    for t in trace.synchronisations:
        for point in (trace["fast"][t - 1], trace["parameter"][t]):
            assert np.abs(fast - point).sum(axis=1).min() < 0.01


def test_the_losses_are_those_of_the_surface(trace):
    figure = viz.lookahead(trace)
    fast, slow = (lines(figure, "x2")[name] for name in ("fast path", "slow path"))
    surface = ol.problems.rosenbrock
    last = slow.y[-1]
    assert last == pytest.approx(float(surface.values(*trace["slow"][-1])), rel=1e-5)
    assert fast.y[-1] == pytest.approx(float(surface.values(*trace["parameter"][-1])), rel=1e-5)
    # Slow weights are constant between synchronizations.
    assert set(np.unique(np.rint(slow.x))) == {0, 5, 10, 15, 20, 23}
    assert slow.y[1] == slow.y[0]
    marked = [shape.x0 for shape in figure.layout.shapes]
    assert marked == [5, 10, 15, 20]


def test_hovering_counts_steps_not_jumps(trace):
    figure = viz.lookahead(race(O.LookAhead(O.SGD(1e-4), k=5), steps=20))
    counts = [
        t.customdata[:, 0]
        for t in figure.data
        if t.customdata is not None and t.legendgroup == "fast path"
    ]
    assert counts[0].max() == 20


def test_the_words_around_it(trace):
    figure = viz.lookahead(trace, note="The rate was tuned by hand.")
    assert "LookAhead around Momentum on Rosenbrock valley" in figure.layout.title.text
    said = written(figure)
    assert "Learning rate 0.0015, alpha 0.5, k 5, as given." in said
    assert "the 4 synchronisations. The rate was tuned by hand." in said
    assert "the slow ones at" in said
    together = written(viz.lookahead(race(O.LookAhead(O.SGD(1e-4)), steps=5)))
    assert "fast and slow weights are together" in together
    assert "the 1 synchronisation." in together


@pytest.mark.parametrize(
    "optimizer",
    [
        O.LookAhead(O.SGD(1e-4), k=100),
        O.LookAhead(O.SGD(1e-4), k=1),
        O.LookAhead(O.SGD(1e-4), alpha=0, k=2),
        O.LookAhead(O.LookAhead(O.SGD(1e-4), k=2), k=2),
        O.LookAhead(O.Momentum(0.01), k=3),
        EMA.around(O.LookAhead(O.SGD(1e-4), k=2)),
    ],
    ids=["never", "always", "alpha 0", "nested", "diverges", "inside an average"],
)
def test_all_kinds_of_runs_are_drawn_by_both(optimizer):
    trace = race(optimizer)
    assert viz.lookahead(trace).data
    assert viz.lookahead_png(trace).startswith(b"\x89PNG")


def test_close_synchronisations_are_no_wall_of_lines():
    figure = viz.lookahead(race(O.LookAhead(O.SGD(1e-4), k=1), steps=300))
    assert not figure.layout.shapes
    assert "300 synchronisations, too close together for a line each." in written(figure)
    assert "upright lines" not in written(figure)


def test_the_lines_of_synchronisations_are_quieter_than_the_grid(trace):
    figure = viz.lookahead(trace)
    assert "Pale upright lines: the 4 synchronisations." in written(figure)
    for shape in figure.layout.shapes:
        color, grid = shape.line.color, figure.layout.yaxis2.gridcolor
        assert theme.contrast(color, theme.PAPER) < theme.contrast(grid, theme.PAPER)


def test_the_slow_path_is_solid_and_both_ends_are_seen():
    figure = viz.lookahead(race(O.LookAhead(O.Momentum(0.0005)), steps=20))
    for axis in ("x", "x2"):
        assert lines(figure, axis)["slow path"].line.dash == "solid"
        ends = {
            t.legendgroup: (t.marker.size, at)
            for at, t in enumerate(figure.data)
            if t.xaxis == axis and t.legendgroup and "markers" in t.mode and len(t.x) == 1
        }
        (fast, below), (slow, above) = ends["fast path"], ends["slow path"]
        assert fast > slow + 4
        assert below < above


def test_headline_and_label_of_the_lead_agree():
    together = viz.lookahead(race(O.LookAhead(O.Adam(0.003), k=5), "digits_mlp", steps=10))
    [lead] = [t.text[0] for t in together.data if t.mode == "text" and t.xaxis == "x2"]
    ahead = lead.split()[0]
    assert lead.strip().endswith("ahead, then 0")
    assert f"were {ahead} ahead of the slow ones, then 0" in written(together)
    apart = viz.lookahead(race(O.LookAhead(O.Adam(0.003), k=5), "digits_mlp", steps=8))
    [lead] = [t.text[0] for t in apart.data if t.mode == "text" and t.xaxis == "x2"]
    assert f"{lead.strip()} of the slow ones." in written(apart)


def test_a_network_shows_how_far_the_fast_weights_are_ahead():
    trace = race(O.LookAhead(O.Adam(0.003), k=5), "digits_mlp", steps=12)
    figure = viz.lookahead(trace)
    lead = lines(figure, "x2")["fast path"]
    norms = np.sqrt(sum(np.square(n) for n in trace.norms["lead"].values()))
    assert lead.y[0] == 0
    assert np.max(lead.y) == pytest.approx(norms.max(), rel=1e-5)
    at = np.flatnonzero(lead.x == 5)
    assert lead.y[at].tolist() == [pytest.approx(norms[4], rel=1e-5), 0]
    assert "2 synchronisations; in the last step the fast weights were" in written(figure)
    assert viz.lookahead_png(trace).startswith(b"\x89PNG")


def test_a_recording_outside_of_a_race_and_one_dimension():
    w = ol.Parameter([3.0], name="w")
    optimizer = O.LookAhead(O.SGD(0.1, parameters=[w]), k=2)
    with ol.record(optimizer) as trace:
        for _ in range(5):
            optimizer.minimize((w * w).sum())
            optimizer.clear_grad()
    for one in (trace, race(O.LookAhead(O.SGD(0.1), k=2), "parabola")):
        assert viz.lookahead(one).layout.title.text.startswith("<b>LookAhead around SGD")
        assert viz.lookahead_png(one).startswith(b"\x89PNG")


def test_averages():
    trace = race(O.ModelAverage.around(O.Momentum(0.0005), 0.5, min_average_window=3))
    figure = viz.averages(trace)
    path = lines(figure, "x")["average"]
    assert (path.x[-1], path.y[-1]) == pytest.approx(tuple(trace["average"][-1]), rel=1e-5)
    assert "ModelAverage around Momentum" in figure.layout.title.text
    assert "their average at" in written(figure)
    assert "average_window_rate 0.5, min_average_window 3" in written(figure)
    assert viz.averages_png(trace).startswith(b"\x89PNG")
    network = race(EMA.around(O.Adam(0.003), 0.9), "digits_mlp", steps=6)
    assert "away from their average" in written(viz.averages(network))


@pytest.mark.parametrize(
    ("draw", "what", "kind", "said"),
    [
        (viz.lookahead, lambda: race(O.SGD(1e-4)), ValueError, "no slow weights.*LookAhead"),
        (viz.averages, lambda: race(O.SGD(1e-4)), ValueError, "no average weights.*around"),
        (viz.lookahead, lambda: {"a": 1}, TypeError, "lookahead takes a trace.*got int"),
    ],
)
def test_what_cannot_be_drawn_is_said(draw, what, kind, said):
    with pytest.raises(kind, match=said):
        draw(what())
