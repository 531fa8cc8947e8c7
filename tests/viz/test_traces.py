"""Figures of traces: what they take, what they show, and what they say where they cannot."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.viz.style.results import traces_of
from optlab.viz.traces.view import quantity_curves, trace_view


def run(steps=20, **options):
    w = ol.Parameter(np.array([-1.2, 1.0]), name="w")
    b = ol.Parameter(np.array([0.5]), name="b")
    optimizer = ol.optimizer.Adam(0.05, parameters=[w, b])
    with ol.record(optimizer, **options) as trace:
        for step in range(steps):
            optimizer.clear_grad()
            ((w**2).sum() + (b**4).sum()).backward()
            optimizer.step()
            if step == 9:
                trace.mark("half of it")
    return trace


def test_the_default_is_the_loss_and_the_norms_of_gradients():
    trace = run()
    figure = trace.figure()
    assert figure.layout.title.text == "<b>Loss and norm of gradient of Adam</b>"
    view = trace_view({"Adam": trace}, ["loss", "norm of gradient"], None, None, "", 850, 400)
    loss, norms = view.panels
    np.testing.assert_allclose(loss.series[0].y, trace.loss, rtol=1e-9)
    assert [one.name for one in norms.series] == ["w", "b"]
    assert loss.lines == (10.0,)
    assert "half of it (step 10)" in str(view.page.note)


def test_runs_beside_each_other():
    first, second = run(), run(10, probes="light")
    named = traces_of([first, second], "series")
    assert list(named) == ["Adam", "Adam (2)"]
    curves = quantity_curves(named, "norm of gradient", "w")
    assert {name: len(x) for name, (x, _) in curves.items()} == {"Adam": 20, "Adam (2)": 1}
    race = ol.compare("rosenbrock", {"a": ol.optimizer.SGD(1e-4)}, steps=3)
    for given in (race, race.traces, race["a"], [race["a"]]):
        assert list(traces_of(given, "series")) == ["a"]
        assert ol.viz.series_png(given, "loss").startswith(b"\x89PNG")


def test_quantities_of_probes():
    trace = run(probes=[ol.probes.Angle(every=2), ol.probes.Projection(k=3)])
    curves = quantity_curves({"Adam": trace}, "angle", None)
    assert list(curves) == ["w", "b"]
    assert curves["w"][0].tolist() == list(range(1, 20, 2))
    assert len(quantity_curves({"Adam": trace}, "projection", None)) == 3


def test_what_it_needs_is_said():
    trace = run(probes="light")
    with pytest.raises(TypeError, match=r"series takes a trace .*; got int"):
        ol.viz.series(3)
    with pytest.raises(ValueError, match="Adam has no 'sharpness'; recorded were loss"):
        ol.viz.series(trace, "sharpness")
    with pytest.raises(ValueError, match="has no parameter 'v'; it has w, b"):
        ol.viz.series(run(), "gradient", parameter="v")
    with pytest.raises(ValueError, match="axis must be 'linear', 'log' or None"):
        ol.viz.series(trace, "loss", axis="cubic")
    with pytest.raises(ValueError, match="choose parameter="):
        ol.viz.influence(run(), 5)
    with pytest.raises(ValueError, match="needs the gradients of every step"):
        ol.viz.influence(trace, 5, parameter="w")
    large = ol.trace.Trace("x")
    large.log("row", np.zeros(100))
    with pytest.raises(ValueError, match="has 100 numbers a step, and a figure at most 24"):
        ol.viz.series(large, "row")


def test_a_trace_without_steps_or_losses_says_so():
    with pytest.raises(ValueError, match="the trace 'empty' has no steps to draw"):
        ol.viz.series(ol.trace.Trace("empty"))
    w = ol.Parameter([1.0], name="w")
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    with ol.record(optimizer) as trace:
        w.grad = ol.to_tensor([1.0])
        optimizer.step()
    with pytest.raises(ValueError, match=r"'SGD' has no loss, which series draws.*backward\(\)"):
        trace.figure()
    assert ol.viz.series(trace, "norm of gradient").data


@pytest.mark.parametrize(
    ("name", "give"),
    [("basins", "ol.basins"), ("connection", "ol.lab.connect"), ("tuning", "ol.compare"),
     ("fair_comparison", "ol.compare"), ("heatmap", "ol.sweep"), ("landscape", "ol.lab.landscape"),
     ("surface_map", "ol.problems"), ("training", "ol.lab.recipe")],
)  # fmt: skip
@pytest.mark.parametrize("given", [None, 3, "run.zarr", np.zeros(3), ol.optimizer.SGD, []])
def test_what_is_no_result_is_refused_by_what_to_give(name, give, given):
    for function in (name, f"{name}_png"):
        draw = getattr(ol.viz, function, None)
        if draw is not None:
            with pytest.raises((TypeError, ValueError), match=rf"{name}.*({give}|needs at least)"):
                draw(given)


def test_influences():
    trace = run()
    assert ol.viz.influence_png(trace, 8, parameter="w").startswith(b"\x89PNG")
    figure = ol.viz.influence(trace, 8, parameter="b")
    assert "update of step 8" in figure.layout.title.text


def test_a_notebook_shows_a_small_picture_and_what_there_is():
    page = run()._repr_html_()
    for part in ("<svg", "polyline", "20 recorded, 1 to 20", "half of it", "Values"):
        assert part in page
    assert "<svg" not in ol.trace.Trace("nothing <yet>")._repr_html_()
    assert "nothing &lt;yet&gt;" in ol.trace.Trace("nothing <yet>")._repr_html_()
