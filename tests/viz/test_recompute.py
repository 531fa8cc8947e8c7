"""Figures of memory studies and of schedules, and the content that a notebook stores of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import optlab as ol
from optlab import viz
from optlab.autograd.schedules import in_segments, plain, revolve
from optlab.backend import display
from optlab.viz import renderers
from optlab.viz.backends.scene import mark_as_json
from optlab.viz.memory_study import view as recompute_views
from optlab.viz.memory_study.figure import recompute_scene
from optlab.viz.style import layout, theme


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """Use our renderer for studies, whatever is installed."""
    monkeypatch.setattr(display, "_renderers", {"memory_study": renderers.memory_study})


@pytest.fixture(scope="module")
def study():
    ol.seed(0)
    blocks = [
        ol.nn.Sequential(ol.nn.Linear(32, 32), ol.nn.GELU(), ol.nn.Dropout(0.1)) for _ in range(9)
    ]
    x = ol.randn([256, 32])

    def step(run):
        run(blocks, x).mean().backward()

    return ol.lab.memory_study(step, [3, "revolve"], ["600 KiB", 2000], repeats=1)


def written(figure):
    return " ".join(note.text for note in figure.layout.annotations)


def stacks_of(figure):
    return {getattr(trace, "stackgroup", None) for trace in figure.data} - {None}


def test_every_run_has_its_timeline_bars_and_point(study):
    figure = viz.recompute(study)
    said = written(figure)
    for row in study:
        assert row.name in said
    assert "cannot be met" in said
    assert "equal to the bit in all 4 runs" in said
    stacks = stacks_of(figure)
    assert len(stacks) == 4
    assert "gradients are there already" in said
    assert "Revolve, the optimum" in said


def test_timelines_reach_the_peak_above_the_start_and_share_their_axes(study):
    view = recompute_views.recompute_view(study, 1000, None)
    for line, row in zip(view.timelines, study.rows, strict=False):
        trace = row.timeline
        above = (trace.peak - trace.total[0]) / 2**20
        assert line.peak[1] == pytest.approx(above, rel=0.1)
        assert line.edges[-1] <= view.events
        assert line.peak[1] < view.top
    figure = viz.recompute(study)
    ranges = {tuple(figure.layout[f"yaxis{at}"].range) for at in range(2, 6)}
    assert len(ranges) == 1
    assert next(iter(ranges))[0] == 0


def test_the_points_are_those_of_the_study(study):
    view = recompute_views.recompute_view(study, 1000, None)
    points = {point.name: point for point in view.points}
    assert set(points) == {"plain", "3 segments", "revolve", "budget 600 KiB"}
    for name, point in points.items():
        assert point.y == pytest.approx(study[name].peak / 2**20)
        assert point.x == pytest.approx(100 * (study[name].seconds / study.plain.seconds - 1))
        assert view.box.contains(point.x, point.y)
    assert points["plain"].x == 0
    assert len({point.style for point in points.values()}) == 4
    assert len(view.front[0]) == len(study.front())


def test_a_run_that_differs_is_marked(study):
    row = study["revolve"]
    row.difference = "the gradient of 0.0.weight differs"
    try:
        said = written(viz.recompute(study))
    finally:
        row.difference = ""
    assert "<b>DIFFERS</b>" in said
    assert "Revolve: the gradient of 0.0.weight differs." in said


@pytest.fixture(scope="module")
def unequal():
    """A study of layers of different sizes, each timed twice; one of its methods raises."""
    ol.seed(0)
    sizes = [256, 128, 128, 64, 64, 32, 16, 8]
    layers = [
        ol.nn.Sequential(ol.nn.Linear(a, b), ol.nn.Tanh())
        for a, b in itertools.pairwise(sizes)
    ]  # fmt: skip
    x = ol.randn([128, 256])

    def wrong():
        layers[1](x)

    return ol.lab.memory_study(
        lambda run: run(layers, x).mean().backward(), [2, "revolve"], own={"wrong": wrong},
        repeats=2,
    )  # fmt: skip


def test_a_way_that_raised_is_drawn_as_such(unequal, tmp_path):
    said = written(viz.recompute(unequal))
    assert "raised ValueError" in said
    assert "Wrong raised ValueError: linear got" in said
    assert viz.recompute_png(unequal)[:4] == b"\x89PNG"
    explorer = viz.recompute_explorer(unequal).select("wrong")
    assert explorer.summary().startswith("wrong: raised ValueError: linear got")
    run = explorer.view["runs"][3]
    assert run["line"] is run["point"] is None
    assert run["instead"] == "raised ValueError"
    assert "raised ValueError" in explorer.to_html(tmp_path / "study.html").read_text()


def test_revolve_is_called_the_optimum_of_equal_layers_alone(study, unequal):
    assert study.equal_layers
    assert not unequal.equal_layers
    said = written(viz.recompute(unequal))
    assert "the optimum" not in said
    assert "Revolve by number of layers" in said
    assert "its line is no bound" in said
    assert "no bound" not in written(viz.recompute(study))
    for one in (study, unequal):
        for curve in recompute_views.recompute_view(one, 850, None).curves:
            if curve.name.startswith("Revolve"):
                assert (np.diff(curve.x) < 0).all()
                assert (np.diff(curve.y) > 0).all()


def test_times_are_drawn_with_their_range_and_one_time_is_no_factor(study, unequal):
    once, several = (recompute_views.recompute_view(one, 850, None).bars[1]
                     for one in (study, unequal))  # fmt: skip
    assert "x plain" not in " ".join(once.texts)
    assert once.note == "once"
    assert once.spans == (None,) * 5
    assert [text.endswith("x plain") for text in several.texts] == [True, True, True, False]
    for span, value in zip(several.spans[:3], several.values, strict=False):
        assert span[0] <= value <= span[1] <= several.most
    assert several.spans[3] is None
    figure = viz.recompute(unequal)
    drawn = [tuple(trace.x) for trace in figure.data if trace.x is not None]
    assert set(several.spans[:3]) <= set(drawn)
    assert "each way once" in written(viz.recompute(study))
    assert "x the plain time" not in viz.recompute_explorer(study, 1).summary()


def test_timelines_and_bars_name_one_peak_or_say_that_they_mean_arrays(study, unequal, many):
    for one in (study, unequal, many):
        view = recompute_views.recompute_view(one, 850, None)
        texts = dict(zip([row.name for row in one], view.bars[0].texts, strict=True))
        for line in view.timelines:
            assert line.said == texts[line.name] or line.said.startswith("arrays ")
        assert one.texts()[0][1] == texts["plain"]
    assert study.headline().count("KiB") == 2


def test_without_timelines_and_without_a_chain():
    w = ol.to_tensor(np.ones(100_000), requires_grad=True)

    def step():
        np.sum(np.exp(np.sin(np.tanh(w)))).backward()

    study = ol.lab.memory_study(step, [], ["4 MiB"], repeats=1, timelines=False)
    figure = viz.recompute(study)
    assert not stacks_of(figure)
    assert "Theory" not in written(figure)
    assert viz.recompute_png(study)[:4] == b"\x89PNG"


def test_what_a_notebook_stores(study):
    bundle = study._repr_mimebundle_()
    assert sorted(bundle) == [
        "application/vnd.plotly.v1+json", "image/png", "text/html", "text/plain",
    ]  # fmt: skip
    assert bundle["text/plain"] == str(study)
    assert "<table" in bundle["text/html"]
    assert study.figure().layout.width == 850


def test_files(study, tmp_path):
    assert study.save(tmp_path / "study.png").read_bytes()[:4] == b"\x89PNG"
    assert "plotly" in study.save(tmp_path / "study.html").read_text()
    with pytest.raises(ValueError, match=r"\.png or \.html"):
        study.save(tmp_path / "study.svg")


def test_what_is_no_study():
    with pytest.raises(TypeError, match=r"ol\.lab\.memory_study"):
        viz.recompute(3)
    with pytest.raises(TypeError, match="Schedule"):
        viz.recompute_schedule("revolve")
    for draw in (viz.recompute, viz.recompute_png, viz.recompute_explorer):
        with pytest.raises(TypeError, match=rf"viz\.{draw.__name__} takes .*memory_study\(step\)"):
            draw(lambda: None)


@pytest.mark.parametrize("schedule", [plain(1), in_segments(9, 3), revolve(16, 3), revolve(200, 9)])
def test_a_schedule_is_drawn_run_by_run(schedule):
    figure = viz.recompute_schedule(schedule)
    runs = [trace for trace in figure.data if (trace.name or "").startswith("runs")]
    bars = sum(int(np.isfinite(np.array(trace.x, float)).sum()) // 2 for trace in runs)
    assert bars == sum(schedule.layer_runs)
    assert viz.recompute_schedule_png(schedule)[:4] == b"\x89PNG"
    assert max(figure.layout.yaxis.range) > schedule.layers - 1


def test_the_explorer_shows_one_run_after_the_other(study, tmp_path):
    explorer = viz.recompute_explorer(study, selected=1)
    assert explorer.row is study["3 segments"]
    assert explorer.summary().startswith("3 segments: peak")
    explorer.selected = 3
    assert explorer.row.name == "budget 600 KiB"
    assert explorer.select("revolve").selected == 2
    with pytest.raises(Exception, match="the runs are 0 to 4; got 5"):
        explorer.selected = 5
    assert explorer.selected == 2
    runs = explorer.view["runs"]
    assert [run["name"] for run in runs] == [row.name for row in study]
    assert runs[4]["line"] is None
    assert "cannot be met" in runs[4]["said"]
    for run, row in zip(runs[:4], study, strict=False):
        assert sum(part for _, _, part, _ in run["line"]["shares"]) == pytest.approx(1)
        areas = [mark for mark in run["panel"]["marks"] if mark["kind"] == "Area"]
        assert max(areas[-1]["high"]) < run["panel"]["y"]["high"]
        assert run["point"]["y"] == pytest.approx([row.peak / 2**20])
    assert [run["name"] for run in runs if run["front"]] == [
        row.name for row in study if row in study.front()
    ]
    assert explorer.view["headline"] == study.headline()
    assert explorer.view["about"] == "A step of 9 layers, run in 5 ways"
    data = explorer._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"}
    page = explorer.to_html(tmp_path / "study.html").read_text()
    assert explorer.stored()["selected"] == 2
    assert "function render(" in explorer.app.module
    assert ".optlab-recompute" in explorer.app.module
    assert "http" not in page
    assert explorer.to_png(tmp_path / "study.png")[:4] == b"\x89PNG"


def test_the_page_draws_the_marks_of_the_figure(study):
    view = recompute_views.recompute_view(study, layout.WIDTH, None)
    panels = recompute_scene(view).panels
    page = viz.recompute_explorer(study).view

    def kept(mark):
        return {
            name: value for name, value in mark.items() if name not in ("x", "y", "text", "side")
        }

    def made(marks):
        return [mark_as_json(mark, 5) for mark in marks]

    for at, run in enumerate(page["runs"][:4], 1):
        assert run["panel"]["marks"] == made(panels[at].marks)
        assert (run["panel"]["x"]["high"], run["panel"]["y"]["high"]) == pytest.approx(
            (view.events, view.top), rel=1e-4
        )
    drawn = [mark for mark in made(panels[-1].marks) if mark["kind"] != "Text"]
    points = [run["point"] for run in page["runs"] if run["point"]]
    assert drawn[: len(page["theory"]["marks"])] == page["theory"]["marks"]
    assert [kept(mark) for mark in drawn[-len(points) :]] == [kept(mark) for mark in points]
    assert len(drawn) == len(page["theory"]["marks"]) + len(points)
    samples = [role["marks"][0]["fills"][0]["color"] for role in page["roles"]]
    assert samples == [theme.MEMORY[role].color for role in view.roles]


def test_a_study_without_timelines_is_not_explored():
    w = ol.to_tensor(np.ones(1000), requires_grad=True)
    study = ol.lab.memory_study(
        lambda: np.sum(np.exp(np.sin(w))).backward(), [], repeats=1, timelines=False
    )
    with pytest.raises(ValueError, match="timelines=True"):
        viz.recompute_explorer(study)


WAYS = {
    2: (["plain", 3], []),
    5: (["plain", 2, 3, 9, ("revolve", 2)], []),
    8: (["plain", 2, 3, 9, ("revolve", 2), ("revolve", 3)], ["600 KiB", "500 KiB"]),
}


@pytest.fixture(scope="module", params=WAYS, ids="{} ways".format)
def many(request):
    ol.seed(0)
    blocks = [
        ol.nn.Sequential(ol.nn.Linear(32, 32), ol.nn.GELU(), ol.nn.Dropout(0.1)) for _ in range(9)
    ]
    x = ol.randn([256, 32])
    schedules, budgets = WAYS[request.param]
    return ol.lab.memory_study(
        lambda run: run(blocks, x).mean().backward(), schedules, budgets, repeats=1
    )


@pytest.mark.parametrize("width", [700, 850, 1000])
def test_headings_and_numbers_have_room(many, width):
    view = recompute_views.recompute_view(many, width, None)
    panels, letter = view.page.panels, 0.5 * theme.FONT_TEXT
    for at, line in enumerate(view.timelines, 1):
        assert 0.56 * theme.FONT_HEADING * len(line.name) <= panels[at].width
        between = panels[at].width * (view.ticks[1] - view.ticks[0]) / view.events
        assert between > letter * len("event 0") / 2 + letter * len(str(view.ticks[-1])) / 2
    for at, bars in enumerate(view.bars, view.first_of_bars):
        heading = 0.56 * theme.FONT_HEADING * len(bars.title)
        heading += 8 + 0.5 * theme.FONT_SMALL * len(bars.note) if bars.note else 0
        assert heading <= panels[at].width
        assert max(letter * len(text) for text in bars.texts) <= panels[at].width
    heading = 0.56 * theme.FONT_HEADING * len(recompute_views.PLOT)
    heading += 8 + 0.5 * theme.FONT_SMALL * len(view.plot_note)
    assert heading <= panels[view.plot].width
    for one, other in itertools.combinations(panels[1:], 2):
        apart = (
            one.left + one.width <= other.left
            or other.left + other.width <= one.left
            or one.top + one.height + layout.HEADING_ROOM <= other.top
            or other.top + other.height + layout.HEADING_ROOM <= one.top
        )
        assert apart
    for panel in panels:
        assert panel.left + panel.width <= width
    for curve in view.curves:
        if curve.label is not None and curve.label.anchor == "right":
            plot = panels[view.plot]
            before = (curve.label.x - view.box.x_low) * plot.width / view.box.width
            assert before >= 0.5 * theme.FONT_SMALL * len(curve.label.text)
