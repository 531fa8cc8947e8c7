"""One list of marks, drawn by plotly, by matplotlib and on a canvas: all three draw the same."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, Rectangle

from optlab.viz import browser
from optlab.viz.backends.matplotlib.draw import draw as draw_static
from optlab.viz.backends.plotly.draw import draw as draw_live
from optlab.viz.backends.scene import (
    Area,
    Arrow,
    Axis,
    Band,
    Bars,
    Boxes,
    Contour,
    Fill,
    HeatMap,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Region,
    Rule,
    Scene,
    Text,
    mark_as_json,
    panel_as_json,
)
from optlab.viz.browser.joining import joined
from optlab.viz.style import layout, theme

NODE = shutil.which("node")
STATIC = Path(browser.__file__).parent / "static"
RECORDED = Path(__file__).with_name("recorded_canvas.js").read_text(encoding="utf-8")
SIZE = (400, 200)
needs_node = pytest.mark.skipif(NODE is None, reason="node, which runs JavaScript, is missing")

GRID = np.arange(5.0)
X, Y = np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0])
NAN = np.array([1.0, 3.0, 3.0, np.nan, 5.0, 7.0, 7.0])
HEIGHT = np.add.outer(GRID, GRID)
COLORS = ["#100000", "#200000", "#300000"]
MARKS: dict[str, Mark] = {
    "#000001": Line(X, Y, Pen("#000001", 3, (4, 2), 0.5)),
    "#000002": Points(X, Y, Marker("square", 8, "#000002", "#110000", 1)),
    "#000003": Text(5.0, 4.0, "a text", "#000003"),
    "#000004": Rule("x", 6.0, Pen("#000004")),
    "#000005": Rule("y", 2.0, Pen("#000005"), below=True),
    "#000006": Area(X, 0 * Y, Y, Fill("#000006", "")),
    "#000007": Band(X, Y, Y + 2, "#000007", 0.25),
    "#000008": Bars([3.0, 6.0], [2.0, 4.0], 1.0, [Fill("#000008", "")] * 2),
    "#000009": Boxes([1.0, 4.0], [2.0, 2.0], [2.0, 6.0], [3.0, 5.0], [Fill("#000009", "")]),
    "#00000a": Region(NAN, NAN[::-1], Fill("#00000a", ""), Pen("#120000", 2)),
    "#00000b": Arrow(1.0, 1.0, 8.0, 4.0, Pen("#00000b", 4)),
    "#00000c": Contour(GRID, GRID, HEIGHT, np.array([1.5, 3.5]), [], Pen("#00000c", 2)),
}


def scene(*marks, x=None, y=None):
    """Return a scene of one panel."""
    x = Axis(0.0, 10.0) if x is None else x
    y = Axis(0.0, 10.0) if y is None else y
    page = layout.page(600, 400, names=[], note="", shares=[1], rooms=[0])
    return Scene(page, "A title", "", [Panel(x, y, marks)])


def on_canvas(*marks, x=None, y=None):
    """Return what a canvas draws of marks, places in data coordinates."""
    axes = {"x": x or Axis(0.0, 10.0), "y": y or Axis(0.0, 10.0)}
    width, height = SIZE
    frame = {"left": 0, "top": 0, "width": width, "height": height, "paper": "#fefefe"}
    frame |= {name: {"low": a.low, "high": a.high, "scale": a.scale} for name, a in axes.items()}
    sent = f"const drawn = []; drawMarks(new RecordedPen(drawn), {json.dumps(frame)}, "
    made = json.dumps([mark_as_json(mark) for mark in marks])
    sent += f"{made});\nconsole.log(JSON.stringify(drawn));"
    done = subprocess.run(
        [NODE, "-"], input="\n".join([RECORDED, joined(STATIC / "canvas.js"), sent]),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr

    def data(place):
        found = []
        for axis, share in zip(
            axes.values(), (place[0] / width, 1 - place[1] / height), strict=True
        ):
            value = axis.low + share * (axis.high - axis.low)
            found.append(10.0**value if axis.scale == "log" else value)
        return found

    drawn = json.loads(done.stdout)
    for one in drawn:
        if "path" in one:
            one["path"] = [np.array([data(place) for place in piece]) for piece in one["path"]]
        if one["kind"] in ("text", "image"):
            one["to"] = data(one["at"])
    return drawn


def outline(*pieces):
    """Return the corners of outlines, in an order that does not depend on where one begins."""
    points = np.concatenate([np.asarray(piece, float).reshape(-1, 2) for piece in pieces])
    points = points[~np.isnan(points).any(axis=1)]
    return np.unique(points.round(4), axis=0)


def hexed(color):
    """Return a color without its opacity."""
    numbers = re.fullmatch(r"rgba\((\d+), (\d+), (\d+), .*\)", str(color))
    return "#{:02x}{:02x}{:02x}".format(*map(int, numbers.groups())) if numbers else color


def live(figure):
    """Return for each color the places that plotly has of it."""
    found: dict[str, list] = {}

    def add(color, places):
        found.setdefault(hexed(color), []).append(places)

    for trace in figure.data:
        if trace.type == "bar":
            y, half = float(trace.y[0]), trace.width / 2
            add(trace.marker.color, [(x, y + s) for x in (0, trace.x[0]) for s in (-half, half)])
        elif trace.type == "scatter":
            x, y = np.asarray(trace.x, float), np.asarray(trace.y, float)
            if trace.stackgroup:
                x, y = np.concatenate([x, x]), np.concatenate([0 * y, y])
            places = np.stack([x, y], axis=1)
            if trace.mode == "markers":
                add(trace.marker.color, places)
            elif trace.fillcolor:
                add(trace.fillcolor, places)
            if trace.mode == "lines" and trace.line.width:
                add(trace.line.color, places)
    for note in figure.layout.annotations:
        if note.showarrow:
            add(note.arrowcolor, [(note.ax, note.ay), (note.x, note.y)])
        else:
            add(note.font.color, [(note.x, note.y)])
    for shape in figure.layout.shapes:
        upright = shape.x0 == shape.x1
        add(shape.line.color, [(shape.x0, shape.y0), (shape.x1, shape.y1)])
        assert ("domain" in shape.yref, "domain" in shape.xref) == (upright, not upright)
    return found


def static(figure):
    """Return for each color the places that matplotlib has of it."""
    [axes] = figure.axes
    found: dict[str, list] = {}

    def add(color, places):
        found.setdefault(to_hex(color), []).append(places)

    for line in axes.lines:
        dots = line.get_linestyle() == "None"
        add(line.get_markerfacecolor() if dots else line.get_color(), line.get_xydata())
    for patch in axes.patches:
        color = patch.get_facecolor() if patch.get_fill() else patch.get_edgecolor()
        if isinstance(patch, Rectangle):
            add(color, patch.get_bbox().corners())
        else:
            arrow = isinstance(patch, FancyArrowPatch)
            add(color, patch._posA_posB if arrow else patch.get_path().vertices)
    for text in axes.texts:
        add(text.get_color(), [text.xy])
    for drawn in axes.collections:
        filled = len(drawn.get_facecolor())
        color = drawn.get_facecolor()[0] if filled else drawn.get_edgecolor()[0]
        for path in drawn.get_paths():
            add(color, path.vertices)
    return found


def canvas(drawn):
    """Return for each color the places that the canvas has of it."""
    found: dict[str, list] = {}
    for one in drawn:
        if one["kind"] == "text":
            found.setdefault(one["color"], []).append([one["to"]])
        elif "path" in one:
            found.setdefault(one["color"], []).extend(one["path"])
    return found


@needs_node
def test_three_programs_draw_the_same_marks_at_the_same_places():
    one = scene(*MARKS.values())
    drawn = on_canvas(*MARKS.values())
    figures = {
        "plotly": live(draw_live(one)), "matplotlib": static(draw_static(one)),
        "canvas": canvas(drawn),
    }  # fmt: skip
    # A marker on a canvas is a square around its point; a whole rule ends at the borders.
    figures["canvas"]["#000002"] = [p.mean(axis=0) for p in figures["canvas"]["#000002"]]
    region = np.stack([NAN, NAN[::-1]], axis=1)
    xy = np.stack([X, Y], axis=1)
    bars = [(x, y + s) for x, y in ((3, 2), (6, 4)) for s in (-0.5, 0.5)]
    expected = {
        "#000001": xy,
        "#000002": xy,
        "#000003": [(5, 4)],
        "#000006": [*xy, *np.stack([X, 0 * Y], axis=1)],
        "#000007": [*xy, *np.stack([X, Y + 2], axis=1)],
        "#000008": [*bars, *((0, y) for _, y in bars)],
        "#000009": [(1, 2), (2, 2), (1, 3), (2, 3), (4, 2), (6, 2), (4, 5), (6, 5)],
        "#00000a": region,
        "#120000": region,
        "#00000b": [(1, 1), (8, 4)],
    }
    # The shaft of an arrow ends in its head: what is known of it are start and tip.
    [shaft, head] = figures["canvas"]["#00000b"]
    figures["canvas"]["#00000b"] = [shaft[0], head[0]]
    for name, found in figures.items():
        for color, places in expected.items():
            np.testing.assert_allclose(
                outline(*found[color]), outline(places), atol=2e-4, err_msg=f"{name} {color}"
            )
        for color, along, at in (("#000004", 0, 6.0), ("#000005", 1, 2.0)):
            [rule] = found[color]  # a canvas draws it in the middle of a pixel
            assert np.asarray(rule)[:, along] == pytest.approx(at, abs=0.06), name
    assert {name: len(found["#000008"]) for name, found in figures.items()} == dict.fromkeys(
        figures, 2
    )


@needs_node
def test_contour_lines_are_where_the_surface_has_their_level():
    mark = MARKS["#00000c"]
    lines = on_canvas(mark)
    assert len(lines) == len(mark.levels)
    for line, level in zip(lines, mark.levels, strict=True):
        assert np.concatenate(line["path"]).sum(axis=1) == pytest.approx(level, abs=1e-9)
    [drawn] = draw_static(scene(mark)).axes[0].collections
    assert list(drawn.levels) == list(mark.levels)
    for path, level in zip(drawn.get_paths(), mark.levels, strict=True):
        assert path.vertices.sum(axis=1) == pytest.approx(level)
    traces = draw_live(scene(mark)).data
    assert [trace.contours.value for trace in traces] == list(mark.levels)
    assert np.asarray(traces[0].z) == pytest.approx(HEIGHT)


@needs_node
def test_bands_of_a_surface_begin_at_their_levels():
    colors, levels = ["#200001", "#200002", "#200003"], np.array([2.0, 5.0])
    bands = on_canvas(Contour(GRID, GRID, HEIGHT, levels, colors, Pen("#000001", 1)))
    fills = [one for one in bands if one["kind"] == "fill"]
    assert [one["color"] for one in fills] == colors
    for one, least in zip(fills, (0.0, *levels), strict=True):
        heights = np.concatenate(one["path"]).sum(axis=1)
        assert heights.min() == pytest.approx(least)
        assert heights.max() == pytest.approx(HEIGHT.max())


@needs_node
def test_pens_and_markers_are_the_same_on_a_canvas():
    face = Marker("circle", 8, "none", "#110000", 2.5, opacity=0.5)
    line, ring, *text = on_canvas(
        Line(X, Y, Pen("#100000", 3, (4, 2), 0.5)), Points([5.0], [5.0], face),
        Text(5.0, 5.0, "one", "#130000", opacity=0.25),
    )  # fmt: skip
    assert (line["width"], line["dash"], line["alpha"]) == (3, [4, 2], 0.5)
    assert (ring["kind"], ring["color"], ring["width"]) == ("stroke", "#110000", 2.5)
    assert [one["kind"] for one in text] == ["halo", "text"]
    assert [one["color"] for one in text] == ["#fefefe", "#130000"]
    assert text[1]["alpha"] == 0.25
    [axes] = draw_static(scene(Points([5.0], [5.0], face))).axes
    assert axes.lines[0].get_alpha() == 0.5
    [trace] = draw_live(scene(Points([5.0], [5.0], face))).data
    assert trace.marker.opacity == 0.5


@needs_node
def test_cells_have_the_same_colors():
    values = np.array([[0.0, 1.0, np.nan], [2.0, 1.0, 0.0]])
    mark = HeatMap([1.0, 2.0, 3.0], [4.0, 5.0], values, -0.5, 2.5, COLORS)
    [image] = on_canvas(mark)
    rgba = np.reshape(image["pixels"], (2, 3, 4))
    reds = [[0x10, 0x20, 0], [0x30, 0x20, 0x10]]
    assert rgba[..., 0].tolist() == reds
    assert (rgba[..., 3] == 255).tolist() == np.isfinite(values).tolist()
    assert image["to"] == pytest.approx([0.5, 3.5])  # the first row of values is the lowest
    assert image["scaled"] == pytest.approx([SIZE[0] / 10, -SIZE[1] / 10])
    [drawn] = draw_static(scene(mark)).axes[0].images
    assert drawn.get_extent() == pytest.approx((0.5, 3.5, 3.5, 5.5))
    shown = drawn.to_rgba(drawn.get_array(), bytes=True)
    assert np.where(shown[..., 3] > 0, shown[..., 0], 0).tolist() == reds
    [trace] = draw_live(scene(mark)).data
    assert np.asarray(trace.z) == pytest.approx(values, nan_ok=True)
    assert (trace.zmin, trace.zmax) == (-0.5, 2.5)


@needs_node
def test_a_log_axis_has_the_values_of_the_data():
    y = Axis(-2.0, 1.0, "log")
    [line] = on_canvas(Line([1.0, 2.0, 3.0], [0.1, 1.0, 10.0], Pen("#000001", 1)), y=y)
    assert line["path"][0][:, 1] == pytest.approx([0.1, 1.0, 10.0])
    [line] = on_canvas(Line([1.0, 2.0], [0.0, 1.0], Pen("#000001", 1)), y=y)
    assert line["path"][0][0, 1] < 1e-10  # without a logarithm: below all


@needs_node
def test_a_point_far_away_keeps_its_direction_and_a_gap_stays_one():
    far = on_canvas(Line([5.0, 5e12], [5.0, 5e12], Pen("#000001", 1)))[0]["path"][0][1]
    assert far[0] == pytest.approx(far[1])
    assert abs(far[0]) < 1e5
    pieces = on_canvas(Line(NAN, NAN, Pen("#000001", 1)))[0]["path"]
    assert [len(piece) for piece in pieces] == [3, 3]


@needs_node
def test_a_canvas_knows_every_mark():
    script = f"{RECORDED}\n{joined(STATIC / 'canvas.js')}\nconsole.log(MARK_KINDS.join())"
    done = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, check=True)
    assert set(done.stdout.strip().split(",")) == {kind.__name__ for kind in get_args(Mark)}
    with pytest.raises(AssertionError, match="Circle is no mark"):
        on_canvas(type("Circle", (Line,), {})([1.0], [1.0], Pen("#000001", 1)))


PANEL = Panel(
    Axis(0.0, 100.0, ticks=[(0.0, "event 0"), (50.0, "50")]),
    Axis(0.0, 1.0, name="MiB", suffix="%", grid=True, zero=True), [MARKS["#000002"]],
)  # fmt: skip
PALETTES = {
    page: dict(zip(("paper", "rule", "frame", "quiet", "own"), colors, strict=True))
    for page, colors in {
        "light": ("#fefefe", "#a00001", "#a00002", "#a00003", "#000002"),
        "dark": ("#010101", "#b00001", "#b00002", "#b00003", "#c00000"),
    }.items()
}


@needs_node
def test_a_page_draws_a_panel_with_its_numbers_and_its_grid():
    sent = f"""
const {{ light, dark }} = {json.dumps(PALETTES)}, drawn = [];
const given = {json.dumps(panel_as_json(PANEL))};
const panel = recolored(given, light, dark);
const frame = frameOf(panel, 400, 200, dark);
const boxes = drawPanel(new RecordedPen(drawn), panel, frame, dark);
const at = pixelIn(frame, 50, 0.5), first = given.marks[0].marker.face;
console.log(JSON.stringify({{ drawn, frame, boxes, at, first }}));
"""
    done = subprocess.run(
        [NODE, "-"], input="\n".join([RECORDED, joined(STATIC / "pictures.js"), sent]),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    frame, texts = found["frame"], {}
    for one in found["drawn"]:
        if one["kind"] == "text":
            texts[one["text"]] = one["at"]
    assert set(texts) == {"event 0", "50", "MiB 0%", "0.5%", "1%"}
    assert found["at"] == [texts["50"][0], texts["0.5%"][1]]
    assert texts["event 0"][0] == frame["left"]
    assert texts["MiB 0%"][1] == frame["top"] + frame["height"]
    assert len(found["boxes"]) == 3
    lines = [one["color"] for one in found["drawn"] if one["kind"] == "stroke"]
    assert lines[:4] == ["#b00001"] * 3 + ["#b00002"]
    # A marker in the colors of the dark page; what was given is as it was.
    assert [one["color"] for one in found["drawn"] if one["kind"] == "fill"] == ["#c00000"]
    assert found["first"] == "#000002"


def test_hatchings_have_their_own_ink():
    fill = Fill("#ffffff", "/", "#330000")
    [trace] = draw_live(scene(Boxes([1.0], [1.0], [2.0], [2.0], [fill]))).data
    assert trace.fillpattern.fgcolor == "#330000"
    [axes] = draw_static(scene(Boxes([1.0], [1.0], [2.0], [2.0], [fill]))).axes
    assert to_hex(axes.patches[0].get_edgecolor()) == "#330000"
    assert theme.MEMORY["saved"].ink == ""
