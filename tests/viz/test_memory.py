"""The figure of a step's memory, and the content that a notebook stores of it."""

from __future__ import annotations

import base64
import itertools
import json
import tomllib
from importlib import import_module
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

import optlab as ol
from optlab import viz
from optlab.backend import display
from optlab.viz import renderers
from optlab.viz.memory_timeline import view as memory_views
from optlab.viz.style import layout, theme
from optlab.viz.style.text import format_bytes


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """Use our renderer for memory, whatever is installed."""
    monkeypatch.setattr(display, "_renderers", {"memory": renderers.memory})


@pytest.fixture(scope="module")
def trace():
    ol.seed(0)
    model = ol.nn.Sequential(ol.nn.Linear(256, 1024), ol.nn.GELU(), ol.nn.Linear(1024, 256))
    optimizer = ol.optimizer.Adam(0.01, parameters=model.parameters())
    x = np.ones((512, 256), np.float32)

    def step():
        model(x).mean().backward()
        optimizer.step()
        optimizer.clear_grad()

    step()
    return ol.memory.report(step)


def bands(figure):
    return {one.legendgroup: one for one in figure.data if getattr(one, "stackgroup", None)}


def written(figure):
    return " ".join(note.text for note in figure.layout.annotations)


def test_the_areas_add_up_to_the_peak(trace):
    areas = bands(viz.memory(trace))
    top = sum(np.asarray(area.y, dtype=float) for area in areas.values())
    assert top.max() * 2**20 == pytest.approx(trace.peak)
    for role, area in areas.items():
        highest = trace.during[1:, trace.roles.index(role)].max()
        assert max(area.y) * 2**20 == pytest.approx(highest)


def test_the_axis_starts_at_zero_and_holds_the_peak(trace):
    figure = viz.memory(trace)
    low, high = figure.layout.yaxis.range
    assert low == 0
    assert high * 2**20 > trace.peak
    assert figure.layout.yaxis.type in (None, "linear")
    assert figure.layout.yaxis.tickprefix == "MiB "


@pytest.mark.parametrize(("size", "unit"), [(30, "B"), (1 << 10, "KiB"), (1 << 18, "MiB")])
def test_the_unit_of_the_axis_fits_the_bytes(size, unit):
    w = ol.to_tensor(np.ones(size, np.float32), requires_grad=True)
    trace = ol.memory.report(lambda: (w * w).sum().backward())
    figure = viz.memory(trace)
    assert figure.layout.yaxis.tickprefix == f"{unit} "
    assert 1 <= figure.layout.yaxis.range[1] <= 1100
    view = memory_views.memory_view(trace, 850, 480)
    sizes = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    assert view.peak[1] * sizes[unit] == pytest.approx(trace.peak)


def test_title_headline_and_mark_say_where_the_peak_is(trace):
    figure = viz.memory(trace, width=1000)  # at smaller widths the mark shows the bytes alone
    said = format_bytes(trace.peak)
    assert figure.layout.title.text == f"<b>Memory of a step: at most {said}</b>"
    i = trace.peak_event
    assert f"peak {said}, in {trace.phase[i]} of {trace.operation[i]}" in written(figure)
    assert f"Highest in {trace.phase[i]} of {trace.operation[i]} ({trace.layer[i]})" in written(
        figure
    )


def test_what_makes_up_the_peak_is_listed_largest_first(trace):
    figure = viz.memory(trace)
    bars = [one for one in figure.data if one.type == "bar"]
    lengths = [bar.x[0] for bar in bars]
    assert 0.5 < lengths[0] < 1  # its bytes are written beside it
    assert lengths[: memory_views.ROWS] == sorted(lengths[: memory_views.ROWS], reverse=True)
    first = trace.by_operation()[0]
    assert f"{format_bytes(first.nbytes)}, {first.share:.0%}" in written(figure)


def test_phases_are_told_apart(trace):
    figure = viz.memory(trace)
    for phase in ("forward", "backward", "step"):
        assert phase in [note.text for note in figure.layout.annotations]
    assert [line.x0 for line in figure.layout.shapes] == [
        float(trace.phase.index("backward") - 1),
        float(trace.phase.index("step") - 1),
    ]


def test_every_event_can_be_read(trace):
    [tips] = [one.text for one in viz.memory(trace).data if one.hovertemplate]
    assert len(tips) == len(trace) - 1
    assert "<b>2: gelu (forward)</b>, 1: GELU" in tips[1]
    assert "saved for backward" in tips[3]


def test_neighbours_differ_without_hue():
    areas = list(theme.MEMORY.values())
    assert len({area.color for area in areas}) == len(areas)
    for one, other in itertools.pairwise(areas):
        light = [theme.contrast(area.color, theme.INK) for area in (one, other)]
        assert one.pattern != other.pattern or max(light) / min(light) > 1.3


def test_a_long_run_is_drawn_together_with_its_peak(trace, monkeypatch):
    monkeypatch.setattr(memory_views, "MOST_EVENTS", 5)
    figure = viz.memory(trace)
    areas = bands(figure)
    assert {len(area.x) for area in areas.values()} == {10}
    top = sum(np.asarray(area.y, dtype=float) for area in areas.values())
    assert top.max() * 2**20 == pytest.approx(trace.peak)
    assert "Drawn together to 5" in written(figure)


def test_a_trace_without_a_step_and_an_empty_one():
    assert viz.memory(ol.memory.report(lambda: None)).layout.width == memory_views.WIDTH
    with ol.memory.ledger() as open_one, pytest.raises(ValueError, match="nothing to draw"):
        viz.memory(open_one)


def test_the_static_twin_is_a_picture_of_the_size_asked_for(trace):
    picture = viz.memory_png(trace, width=800, height=400, scale=2)
    assert picture[:4] == b"\x89PNG"
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (1600, 800)


def test_a_trace_draws_and_saves_itself(trace, tmp_path):
    assert trace.figure(width=700).layout.width == 700
    assert trace.save(tmp_path / "memory.png").read_bytes()[:4] == b"\x89PNG"
    assert "plotly" in trace.save(tmp_path / "memory.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"\.png or \.html"):
        trace.save(tmp_path / "memory.svg")


def test_a_notebook_stores_figure_picture_table_and_words(trace):
    stored = renderers.memory.mimebundle(trace)
    assert base64.b64decode(stored["image/png"])[:4] == b"\x89PNG"
    assert "sendChartToCloud" in json.dumps(stored["application/vnd.plotly.v1+json"]["config"])
    assert "saved for backward" in stored["text/plain"]
    assert "saved for backward" in stored["text/html"]


def test_the_package_declares_the_renderer():
    project = Path(__file__).parents[2] / "pyproject.toml"
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"]
    place, _, name = declared["optlab.renderers"]["memory"].partition(":")
    assert getattr(import_module(place), name) is renderers.memory


def test_a_trace_on_a_line_of_its_own_is_figure_picture_and_table(trace):
    shown = trace._repr_mimebundle_()
    drawn = shown["application/vnd.plotly.v1+json"]
    assert drawn["layout"]["width"] <= 900  # fits beside the file browser of a small screen
    picture = base64.b64decode(shown["image/png"])
    sizes = [int.from_bytes(picture[at : at + 4], "big") for at in (16, 20)]
    assert sizes == [drawn["layout"]["width"], drawn["layout"]["height"]]
    assert shown["text/plain"] == str(trace)
    assert shown["text/html"] == trace._repr_html_()


def test_a_trace_that_is_not_complete_shows_words():
    with ol.memory.ledger() as open_one:
        shown = open_one._repr_mimebundle_()
    assert sorted(shown) == ["text/html", "text/plain"]


def test_without_pictures_a_trace_shows_words(trace, monkeypatch):
    def nothing_draws(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(display, "renderer", nothing_draws)
    assert trace._repr_mimebundle_() == {
        "text/plain": str(trace), "text/html": trace._repr_html_()
    }  # fmt: skip


@pytest.mark.parametrize("width", [700, 850, 1200])
def test_no_text_runs_into_another_or_out_of_its_panel(trace, width):
    view = memory_views.memory_view(trace, width, 480)
    panel = view.page.panels[1]
    letter = 0.5 * theme.FONT_TEXT
    for share in view.shares:  # the label has its own line, the bar shares one with its bytes
        assert letter * len(share.text) <= panel.width
        assert letter * len(share.said) <= (1 - view.bar_length) * panel.width
    assert letter * len(view.headline) <= width - layout.LEFT - layout.RIGHT
    peak = view.peak[0] / view.edges[-1] * view.page.panels[0].width
    room = peak if view.peak_side == "left" else view.page.panels[0].width - peak
    assert letter * len(view.peak_text) < room
    above = (view.top - view.peak[1]) * view.page.panels[0].height / view.top
    assert above > 2 * theme.FONT_TEXT + 9  # the label of the peak, and the phases above it
    assert panel.height >= memory_views.ROW * len(view.shares)


def test_small_patches_of_a_picture_keep_their_colors(trace):
    picture = Image.open(BytesIO(viz.memory_png(trace, width=1000))).convert("RGB")
    seen = dict(map(reversed, picture.getcolors(1 << 24)))
    assert len(seen) <= 128
    for role in memory_views.memory_view(trace, 1000, 480).bands:
        color = ImageColor.getrgb(role.area.color)
        assert seen.get(color, 0) > 40, f"the square of {role.name}"


@pytest.mark.parametrize(("width", "rows"), [(480, 3), (600, 2), (850, 1)])
def test_the_legend_is_one_row_where_it_fits_else_columns(width, rows):
    names = ["parameters", "data, buffers", "gradients", "saved for backward", "temporary"]
    page = layout.page(
        width, 480, names=names, note="", shares=[1], rooms=[0], sample=layout.SQUARE_SAMPLE
    )
    entries = list(zip(page.legend, names, strict=True))
    assert len({y for (_, y), _ in entries}) == rows
    assert (page.entry_width == 0) == (rows == 1)
    for ((x, y), name), ((next_x, next_y), _) in itertools.pairwise(entries):
        end = x + page.sample + layout.text_width(name, theme.FONT_TEXT)
        assert end < (next_x if next_y == y else width)
    assert page.top > page.legend[-1][1] + layout.LEGEND_ROW


def test_what_is_no_trace_is_told_what_to_give():
    for draw in (viz.memory, viz.memory_png):
        with pytest.raises(
            TypeError, match=rf"got function\. Write ol\.viz\.{draw.__name__}\(ol\.mem"
        ):
            draw(lambda: None)
        with pytest.raises(TypeError, match=rf"viz\.{draw.__name__} takes .* got list"):
            draw([1, 2])


def test_large_numbers_are_written_as_tables_write_them():
    assert format_bytes(104.44 * 2**20) == "104.44 MiB"
    assert format_bytes(1000.04 * 2**10) == "1000.05 KiB"
