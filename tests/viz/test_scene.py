"""A figure and its static image are drawn from one scene: what one shows, the other shows."""

from __future__ import annotations

import html
import re
from importlib import import_module

import numpy as np
import pytest
from matplotlib.colors import same_color, to_rgba
from matplotlib.text import Text as Artist

import optlab as ol
from optlab import viz
from optlab.autograd.schedules import revolve
from optlab.viz.backends.matplotlib.draw import draw as draw_static
from optlab.viz.backends.plotly.draw import draw as draw_live
from optlab.viz.backends.scene import (
    HIDDEN,
    Area,
    Arrow,
    Axis,
    Bars,
    Contour,
    HeatMap,
    Line,
    Marker,
    Panel,
    Pen,
    Points,
    Rule,
    Scene,
    Text,
)
from optlab.viz.style import layout, theme

RED, BLUE = "#d62728", "#1f77b4"


def scene(*marks, x=None, y=None, **options):
    """Return a scene of one panel."""
    x = Axis(0.0, 10.0) if x is None else x
    y = Axis(0.0, 10.0) if y is None else y
    page = layout.page(600, 400, names=[], note="A note.", shares=[1], rooms=[0], headed=True)
    return Scene(page, "A title", "A headline", [Panel(x, y, marks, "Heading", **options)])


def plain(text):
    """Return a text of plotly without its markup."""
    text = re.sub(r"<[^>]*>", "", str(text).replace("<br>", "\n"))
    return one_line(html.unescape(text))


def one_line(text):
    """Return a text with one space between words."""
    return re.sub(r"\s+", " ", text).strip()


def texts_live(figure):
    """Return the texts that a plotly figure shows, without numbers that it chooses itself."""
    notes = [part for note in figure.layout.annotations for part in note.text.split("<span")]
    found = [figure.layout.title.text, *(re.sub(r"^ style=[^>]*>", "", part) for part in notes)]
    for trace in figure.data:
        if "text" in (getattr(trace, "mode", None) or ""):
            found += trace.text
        if trace.name is not None and trace.showlegend is not False:
            found.append(trace.name)
    for name in figure.layout:
        if re.fullmatch(r"[xy]axis\d*", name) and figure.layout[name].showticklabels is not False:
            low, high = sorted(figure.layout[name].range)
            places = figure.layout[name].tickvals or ()
            texts = figure.layout[name].ticktext or ()
            if figure.layout[name].type == "log":
                places = np.log10(places)
            shown = zip(places, texts, strict=True)
            found += [text for place, text in shown if low - 1e-9 <= place <= high + 1e-9]
    return {plain(text) for text in found} - {""}


def texts_static(figure):
    """Return the texts that a matplotlib figure shows."""
    figure.canvas.draw()
    found = [text for text in figure.findobj(Artist) if text.get_visible()]
    ticks = {id(t) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)
             for t in axis.get_ticklabels(which="both")}  # fmt: skip
    shown = [text.get_text() for text in found if id(text) not in ticks]
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if type(axis.get_major_locator()).__name__ == "FixedLocator" and axis.get_visible():
                shown += [t.get_text() for t in axis.get_ticklabels() if t.get_visible()]
    return {one_line(text) for text in shown} - {""}


def test_each_mark_is_drawn_by_both():
    grid = np.arange(11.0)
    height = np.add.outer(grid, grid)
    cells = HeatMap(grid, grid, height.astype(int) % 3, -0.5, 2.5, [RED, BLUE, "#2ca02c"])
    marks = {
        "line": Line(grid, grid, Pen(RED, 3, (4, 2))),
        "points": Points(grid, grid, Marker("square", 8, BLUE, RED, 1)),
        "text": Text(5, 5, "a text", RED),
        "rule": Rule("x", 4.0, Pen(BLUE)),
        "area": Area(grid, grid / 2, grid, theme.Area(RED, "/")),
        "bars": Bars([3.0, 6.0], [2.0, 4.0], 1.0, [theme.Area(RED, ""), theme.Area(BLUE, "x")]),
        "contour": Contour(grid, grid, height, np.arange(0.0, 20.0, 5), [RED] * 5, Pen(BLUE)),
        "heat map": cells,
    }
    empty = scene()
    for name, mark in marks.items():
        one = scene(mark)
        live, static = draw_live(one), draw_static(one)
        before = draw_live(empty)
        parts = len(live.data) + len(live.layout.annotations) + len(live.layout.shapes)
        assert parts > len(before.data) + len(before.layout.annotations), name
        pixels, blank = (np.asarray(_drawn(f)) for f in (static, draw_static(empty)))
        assert (pixels != blank).any(), name


def _drawn(figure):
    figure.canvas.draw()
    return figure.canvas.buffer_rgba()


def test_what_is_no_mark_is_refused():
    for draw in (draw_live, draw_static):
        with pytest.raises(TypeError, match="str is no mark"):
            draw(scene("line"))


def test_pens_and_markers_are_those_of_the_marks():
    pen, marker = Pen(RED, 3, (4, 2), 0.5), Marker("diamond", 9, BLUE, RED, 2)
    one = scene(Line([1, 2, 3], [1, 2, 3], pen), Points([5, 6, 7], [5, 6, 7], marker))
    line, points = draw_live(one).data
    assert (line.line.width, line.line.dash) == (3, "4px,2px")
    assert line.line.color == theme.with_opacity(RED, 0.5)
    assert (points.marker.symbol, points.marker.size, points.marker.color) == ("diamond", 9, BLUE)
    [axes] = draw_static(one).axes
    drawn, dots = axes.lines
    pixel = 100 / 72
    assert drawn.get_linewidth() * pixel == pytest.approx(3)
    assert np.array(drawn._dash_pattern[1]) * pixel == pytest.approx([4, 2])
    assert to_rgba(drawn.get_color(), drawn.get_alpha()) == to_rgba(RED, 0.5)
    assert same_color(dots.get_markerfacecolor(), BLUE)
    assert same_color(dots.get_markeredgecolor(), RED)


@pytest.mark.parametrize("page", ["light", "dark"])
def test_dashes_are_in_pixels_also_where_a_style_is_in_use(page):
    with viz.use_style(page):
        [axes] = draw_static(scene(Line([0, 9], [1, 1], Pen(RED, 2, (13, 4))))).axes
        [line] = axes.lines
        assert np.array(line._dash_pattern[1]) * 100 / 72 == pytest.approx([13, 4])


def test_axes_have_the_same_ends_names_and_numbers():
    down = Axis(8.0, -1.0, name="layer", whole=True)
    log = Axis(-2.0, 3.0, "log", grid=True)
    one = scene(Line([1, 2], [1, 2], Pen(RED)), x=log, y=down)
    live, [static] = draw_live(one).layout, draw_static(one).axes
    assert live.xaxis.type == static.get_xscale() == "log"
    np.testing.assert_allclose(10.0 ** np.array(live.xaxis.range), static.get_xlim())
    assert tuple(live.yaxis.range) == static.get_ylim() == (8.0, -1.0)
    assert (live.yaxis.tickprefix, live.yaxis.showtickprefix) == ("layer ", "last")
    static.figure.canvas.draw()
    assert "layer 0" in [t.get_text() for t in static.get_yticklabels()]
    assert not HIDDEN.shown
    few = Axis(-0.3, 0.4, "log")  # no whole decade: both write the same numbers
    one = scene(y=few)
    live, [static] = draw_live(one).layout.yaxis, draw_static(one).axes
    assert [t.get_text() for t in static.get_yticklabels()] == list(live.ticktext)
    assert len(live.ticktext) >= 4


def test_texts_are_plain():
    name = "<b>x</b> & $y^2$ %{x}"
    one = scene(
        Text(5, 5, name, RED), Text(2, 2, name, RED, group="a"),
        Points([3], [3], Marker("circle", 5, RED), text=name, side="top left", ink=RED),
    )  # fmt: skip
    live, static = draw_live(one), draw_static(one)
    assert plain(live.layout.annotations[-1].text) == name.replace("%{", "% {")
    assert "<b>x" not in live.layout.annotations[-1].text
    assert name in texts_static(static)


@pytest.fixture(scope="module")
def figures():
    """Return results with their functions: all that have a static image."""
    return list(_figures())


def _figures():
    O = ol.optimizer  # noqa: E741
    four = {"SGD": O.SGD(0.02), "Momentum": O.Momentum(0.0005), "Adam": O.Adam(0.2)}
    race = ol.compare("rosenbrock", four, steps=60)
    digits = {"SGD": O.SGD(0.1), "Adam": O.Adam(0.01)}
    yield "race", race
    yield "race", ol.compare("digits_mlp", digits, steps=20)
    yield "race", ol.compare("double_well", {"SGD": O.SGD(0.05)}, steps=20)
    yield "series", race["Adam"]
    yield "schedule", {"a": O.lr.StepDecay(0.5, 20), "b": O.lr.CosineAnnealingDecay(0.5, 100)}
    yield "basins", ol.basins("himmelblau", O.SGD(0.01), grid=8, steps=30)
    yield "basins", ol.basins("double_well", O.SGD(0.01), grid=8, steps=30)
    yield "rate_range", ol.lab.lr_range_test("rosenbrock", O.SGD(0.1))
    grid = {"learning_rate": [0.01, 0.1, 3.0], "momentum": [0.0, 0.9]}
    yield "heatmap", ol.sweep("booth", O.Momentum, grid, steps=50)
    yield "heatmap", ol.sweep("parabola", O.SGD, {"learning_rate": [0.01, 0.05, 0.25]}, steps=9)
    yield "modes", ol.lab.closed_form("valley", O.Momentum(0.02, 0.9))
    slow = ol.compare("rosenbrock", {"run": O.LookAhead(O.Momentum(0.0015), k=5)}, steps=23)
    yield "lookahead", slow["run"]
    w = ol.to_tensor(np.ones(1000), requires_grad=True)
    yield "memory", ol.memory.report(lambda: np.sum(np.tanh(w)).backward())
    step = lambda: np.sum(np.tanh(np.sin(w))).backward()  # noqa: E731
    yield "recompute", ol.lab.memory_study(step, [], ["1 MiB"], repeats=1)
    yield "recompute_schedule", revolve(9, 3)


@pytest.mark.parametrize("page", ["light", "dark"])
def test_every_figure_and_its_static_image_say_the_same(page, monkeypatch, figures):
    scenes = []
    homes = {viz._HOMES[f"{name}_png"] for name, _ in figures}
    for home in homes:
        module = import_module(home)
        monkeypatch.setattr(module, "draw_png", lambda one, scale=1.0: scenes.append(one) or b"")
    with viz.use_style(page):
        for name, result in figures:
            live = getattr(viz, name)(result)
            getattr(viz, f"{name}_png")(result)
            static = draw_static(scenes.pop())
            assert texts_live(live) == texts_static(static), name
            paper = theme.DARK["paper"] if page == "dark" else theme.LIGHT["paper"]
            assert live.layout.paper_bgcolor == paper
            assert same_color(static.get_facecolor(), paper)
            other = theme.LIGHT if page == "dark" else theme.DARK
            shown = {t.get_color() for t in static.findobj(Artist) if t.get_text()}
            assert not shown & {other["ink"], other["quiet"]}
            assert other["quiet"] not in live.to_json()


def test_arrows_and_texts_of_plotly_stand_where_the_data_are_on_log_axes():
    axis = Axis(0.0, 4.0, scale="log")
    arrow = Arrow(1.0, 10.0, 100.0, 1000.0, Pen(RED, 2.0), halo=False)
    figure = draw_live(scene(arrow, Text(100.0, 1000.0, "here", RED), x=axis, y=axis))
    shown = {one.text: one for one in figure.layout.annotations if one.xref == "x"}
    ends = shown[""]
    assert (ends.ax, ends.ay, ends.x, ends.y) == (0.0, 1.0, 2.0, 3.0)
    assert (shown["here"].x, shown["here"].y) == (2.0, 3.0)
