"""Claim figures: a sentence that its data prove, as a page without a kernel and as a picture."""

from __future__ import annotations

import base64
import re
import runpy
from io import BytesIO
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import optlab as ol
from optlab.viz.backends.matplotlib.image import width_of
from optlab.viz.backends.scene import mark_as_json
from optlab.viz.claims.image import claim_scene
from optlab.viz.claims.labels import CHART_EDGE, CHART_HEIGHT
from optlab.viz.claims.marks import CHART_WIDTHS, label_marks, palettes
from optlab.viz.claims.page import APP
from optlab.viz.style import theme
from tests.pages import stored_in

GALLERY = Path(__file__).parents[2] / "gallery" / "claim_figure.py"


def race(condition):
    methods = {
        "plain": ol.optimizer.SGD(1 / condition),
        "heavy": ol.optimizer.Momentum(0.5 / condition, 0.8),
    }
    return ol.compare(ol.problems.quadratic(condition), methods, steps=40)


ARGUMENTS = {
    "positions": [2.0, 5.0, 10.0, 50.0],
    "race": race,
    "measure": lambda comparison, name: comparison.final_loss[name],
    "holds": lambda values: bool((values["heavy"][2:] < values["plain"][2:]).all()),
    "measured": "loss after 40 steps",
}


def made(sentence="With *heavy*, less is left.", **changed):
    return ol.viz.claim(sentence, **{**ARGUMENTS, **changed})


@pytest.fixture(scope="module")
def figure():
    return made()


def stored(figure):
    return stored_in(figure._repr_mimebundle_()["text/html"])["claim"]


def lines(marks, color):
    """Return the lines of a color as arrays of points."""
    found = [m for m in marks if m["kind"] == "Line" and m["pen"]["color"] == color]
    return [np.array([m["x"], m["y"]], dtype=float).T for m in found]


def points(marks, name, size):
    """Return the places of markers of a kind."""
    looks = [(m, m["marker"]) for m in marks if m["kind"] == "Points"]
    found = [m for m, look in looks if (look["name"], look["size"]) == (name, size)]
    return np.array([[m["x"][0], m["y"][0]] for m in found], dtype=float)


def test_what_travels_is_what_was_measured(figure):
    data = stored(figure)
    assert data["names"] == ["plain", "heavy"]
    assert data["labels"] == ["2", "5", "10", "50"]
    for i, name in enumerate(data["names"]):
        expected = [race(position).final_loss[name] for position in ARGUMENTS["positions"]]
        assert figure.values[name].tolist() == expected
        [line] = lines(data["chart"], f"run{i}")
        np.testing.assert_allclose(line[:, 0], data["places"])
        np.testing.assert_allclose(line[:, 1], expected, rtol=1e-5)
        for at, place in enumerate(data["places"]):
            shown = [m for m in data["here"][at] if m["kind"] == "Points"][i]
            assert (shown["x"], shown["y"]) == ([place], [line[at, 1]])


def test_the_paths_are_the_races(figure):
    data = stored(figure)
    for marks, position in zip(data["maps"], ARGUMENTS["positions"], strict=True):
        [start], [minimum] = points(marks, "circle", 12), points(marks, "star", 15)
        for i, name in enumerate(data["names"]):
            [drawn] = lines(marks, f"run{i}")
            run = race(position)[name].parameters["point"]
            # The frame is the same at all positions: two known points give scale and corner.
            scale = (start - minimum) / np.array(race(position).start)
            wanted = run * scale + minimum
            assert np.abs(drawn[0] - wanted[0]).max() <= 2
            assert np.abs(drawn[-1] - wanted[-1]).max() <= 3


def colored(part, colors):
    """Replace names of colors, as the page does."""
    if isinstance(part, dict):
        return {
            name: colors.get(value, value) if isinstance(value, str) and name != "text"
            else colored(value, colors)
            for name, value in part.items()
        }  # fmt: skip
    return [colored(one, colors) for one in part] if isinstance(part, list) else part


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_and_picture_draw_the_same_marks(figure, scheme):
    data, view = stored(figure), figure.view
    colors = palettes(view)[scheme]
    assert data["palettes"][scheme] == colors
    with ol.viz.use_style(scheme):
        panels = claim_scene(view).panels
    ground, chart = ([mark_as_json(mark) for mark in panel.marks] for panel in panels[:2])
    assert ground == colored(data["maps"][view.at], colors)
    fixed = colored(data["chart"] + data["here"][view.at], colors)
    assert chart[: len(fixed)] == fixed
    labels = [label for label in chart if label.get("bold")]
    assert chart[len(fixed) :] == labels
    for width in data["values"]:
        there = colored(width["marks"][view.at], colors)
        said = [(m["text"].split(), m["ink"], m["x"], m["y"]) for m in there]
        assert said == [(m["text"].split(), m["ink"], m["x"], m["y"]) for m in labels]


def boxes_of(labels, view, width):
    """Return the boxes of labels of a chart, in pixels from its upper left corner."""
    found = []
    for label in labels:
        rows = label.text.split("\n")
        wide = max(width_of(row, label.size, bold=True) for row in rows)
        low, high, y = (
            np.log10(x) if view.logarithmic else x for x in (view.low, view.high, label.y)
        )
        left = width * label.x + label.shift[0] - (wide if label.across == "right" else 0)
        top = CHART_HEIGHT * (high - y) / (high - low) - label.shift[1]
        found.append((left, top, left + wide, top + 1.25 * label.size * len(rows)))
    return found


@pytest.mark.parametrize("width", CHART_WIDTHS)
def test_labels_of_three_curves_do_not_collide_and_stand_in_their_order(width):
    rates = {"plain descent": 0.3, "half as fast": 0.15, "slow": 0.05}
    view = made(
        "Slow is slow.",
        race=lambda c: ol.compare(
            ol.problems.quadratic(c),
            {name: ol.optimizer.SGD(rate / c) for name, rate in rates.items()}, steps=20,
        ),
        holds=lambda values: True,
    ).view  # fmt: skip
    for at in range(len(view.places)):
        labels = label_marks(view, at, palettes(view)["light"], width)
        boxes = boxes_of(labels, view, width)
        assert len(boxes) == 3
        for left, top, right, bottom in boxes:
            assert left >= -8.1  # the numbers of the axis end at -10
            assert right <= width + 14
            assert top >= -CHART_EDGE - 0.1  # shifts are rounded
            assert bottom <= CHART_HEIGHT + CHART_EDGE + 0.1
        for one, two in combinations(range(3), 2):
            (a, b), (upper, lower) = (boxes[one], boxes[two]), (labels[one].y, labels[two].y)
            assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])
            assert (upper > lower) == (a[1] < b[1])


def test_the_output_is_a_live_page_with_a_picture_inside_and_no_requests(figure):
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    html = bundle["text/html"]
    assert html.startswith('<div data-ol="claim-')
    [image] = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    assert Image.open(BytesIO(base64.b64decode(image))).size[0] == 1140
    assert not re.findall(r'(?:src|href)="(?!data:)', html)
    assert "://" not in html
    assert not re.search(r"^\s*import\b|\bfetch\(", APP.module, re.MULTILINE)
    assert bundle["text/plain"] == "<Claim: With heavy, less is left.>"


def test_the_gallery_s_figure_is_below_300_kb():
    claim = runpy.run_path(str(GALLERY))["claim"]()
    assert len(claim._repr_mimebundle_()["text/html"].encode()) < 300_000
    low, high = claim.positions.index(10), claim.positions.index(1000)
    assert claim.values["gradient descent"][[low, high]].tolist() == [35, 3454]
    assert claim.values["momentum"][[low, high]].tolist() == [14, 180]


def test_a_value_that_is_next_to_nothing_does_not_flatten_the_others():
    left = iter(np.repeat([1.0, 0.01, 1e-160, 0.5], 2).tolist())  # of two optimizers
    figure = made(
        "Nearly nothing.", holds=lambda values: True, measure=lambda comparison, name: next(left)
    )
    assert figure.values["plain"][2] == 1e-160
    data = stored(figure)
    assert data["texts"][2][0] == "1e-160"
    axis, [line] = data["axes"]["chart"]["y"], lines(data["chart"], "run0")
    assert axis["high"] - axis["low"] < 40
    assert line[:, 1].tolist() == [1.0, 0.01, pytest.approx(10 ** axis["low"]), 0.5]


def test_no_path_and_no_point_hides_another(figure):
    """A short path is drawn over a longer one, and of points that meet the lower is larger."""
    for marks in stored(figure)["maps"]:
        [plain], [heavy] = lines(marks, "run0"), lines(marks, "run1")
        order = [m["pen"]["color"] for m in marks if m["kind"] == "Line"]
        long = [np.hypot(*np.diff(path, axis=0).T).sum() for path in (plain, heavy)]
        assert order.index("run0") != order.index("run1")
        assert (order.index("run0") < order.index("run1")) == (long[0] >= long[1])
    values = iter([1.0, 1.01, 1.0, 10.0, 100.0, 1.0, 100.0, 99.0])
    met = made("They meet.", holds=lambda v: True, measure=lambda comparison, name: next(values))
    sizes = [
        [m["marker"]["size"] for m in marks if m["kind"] == "Points"]
        for marks in stored(met)["here"]
    ]
    assert sizes == [[theme.UNDER_SIZE, theme.OVER_SIZE], [14, 14], [14, 14],
                     [theme.UNDER_SIZE, theme.OVER_SIZE]]  # fmt: skip


def test_a_line_is_solid_whatever_the_methods(figure):
    assert [bool(style.dash) for style in figure.view.styles] == [False, True]
    methods = {"plain": ol.optimizer.SGD(0.01), "Adam": ol.optimizer.Adam(0.01)}
    with_adam = made(
        "Adam is as ever.", holds=lambda values: True,
        race=lambda c: ol.compare(ol.problems.quadratic(c), methods, steps=5),
    )  # fmt: skip
    assert [bool(style.dash) for style in with_adam.view.styles] == [True, False]


def test_no_line_of_a_sentence_is_much_shorter_than_the_others():
    sentence = "Here the one with *heavy* steps goes several times as far as the one that is plain."
    texts = [m for m in claim_scene(made(sentence).view).panels[-1].marks if m.size == 21]
    ends = {}
    for mark in texts:
        wide = mark.x + width_of(mark.text, 21, bold=True)
        ends[mark.y] = max(wide, ends.get(mark.y, 0.0))
    assert len(ends) == 2
    assert min(ends.values()) > 0.7 * max(ends.values())


def test_a_claim_that_does_not_hold_is_not_drawn():
    with pytest.raises(ValueError, match="the claim does not hold of its data") as e:
        made(holds=lambda values: bool((values["heavy"] > values["plain"]).all()))
    assert "loss after 40 steps: plain: [" in str(e.value)


def test_the_same_content_has_the_same_name_and_another_has_another(figure):
    def place(claim):
        return re.match(r'<div data-ol="(claim-\w+)"', claim._repr_mimebundle_()["text/html"])[1]

    assert place(made()) == place(figure) != place(made("Less is left."))


def test_text_cannot_leave_its_place():
    text = "</script><script>alert(1)</script> & *heavy*"
    figure = made(text, note="<b>", question='"', label="<{:g}>")
    html = figure._repr_mimebundle_()["text/html"]
    assert html.count("<script") == html.count("</script>") == 2
    assert "alert(1)</script>" not in html
    assert stored(figure)["sentence"][0][0] == "</script><script>alert(1)</script> & "


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_has_the_page_s_colors(figure, scheme):
    with ol.viz.use_style(scheme):
        image = np.asarray(Image.open(BytesIO(figure.to_png(width=380))).convert("RGB"))
    paper = (theme.DARK if scheme == "dark" else theme.LIGHT)["paper"]
    assert "#{:02x}{:02x}{:02x}".format(*image[0, 0]) == paper
    assert image.shape[1] == 760


def test_a_run_that_diverges_is_a_gap():
    figure = made(
        race=lambda c: ol.compare(
            ol.problems.quadratic(c), {"plain": ol.optimizer.SGD(0.1)}, steps=400
        ),
        holds=lambda values: not np.isfinite(values["plain"][-1]),
        sentence="A rate of 0.1 is too large for a curvature of 50.",
    )
    data = stored(figure)
    [line] = [mark for mark in data["chart"] if mark["kind"] == "Line"]
    assert line["y"][-1] is None
    assert data["texts"][-1] == ["diverges"]
    assert [mark["kind"] for mark in data["here"][-1]] == ["Rule"]
    for one in data["values"]:
        [label] = one["marks"][-1]
        assert label["text"] == "plain\ndiverges"
        assert label["y"] == figure.view.high
    assert figure.to_png()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"positions": [1.0, 2.0]}, "positions must be 3 to 60 numbers"),
        ({"positions": [1.0, 3.0, 2.0]}, "positions must be in ascending order"),
        ({"at": 3.0}, "at must be one of the positions"),
        ({"race": lambda c: 1.0}, "race must return what ol.compare returns"),
        ({"race": lambda c: ol.compare("parabola", {"plain": ol.optimizer.SGD(0.1)}, steps=3)},
         "a surface of two numbers; Parabola is another"),
        ({"race": lambda c: ol.compare("booth", {f"{c}": ol.optimizer.SGD(0.01)}, steps=3)},
         "the races must be of the same optimizers"),
        ({"label": "{:zz}"}, "label must be a format of one number, such as"),
        ({"sentence": "With *Adam*, less."}, r"\*Adam\* in the sentence is no optimizer"),
        ({"measure": lambda comparison, name: float("nan"), "holds": lambda values: True},
         "nothing that was measured is a finite number"),
    ],
)  # fmt: skip
def test_wrong_arguments(changed, said):
    with pytest.raises(ValueError, match=said):
        made(**changed)


def test_files(figure, tmp_path):
    figure.to_html(tmp_path / "claim.html")
    figure.to_png(tmp_path / "claim.png")
    page = (tmp_path / "claim.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<title>With heavy, less is left.</title>" in page
    assert (tmp_path / "claim.png").read_bytes()[:4] == b"\x89PNG"


def test_an_error_in_a_function_tells_claim_and_position():
    def breaks(condition):
        if condition == 5:
            raise ZeroDivisionError("nothing to divide")
        return race(condition)

    before = "in the claim 'With heavy, less is left.', "
    with pytest.raises(
        ValueError, match=re.escape(before + "race(5.0) raised ZeroDivisionError")
    ) as e:
        made(race=breaks)
    assert "nothing to divide" in str(e.value)
    assert isinstance(e.value.__cause__, ZeroDivisionError)
    call = "at 2.0, measure(comparison, 'plain') raised KeyError: 'nobody'"
    with pytest.raises(ValueError, match=re.escape(before + call)):
        made(measure=lambda comparison, name: comparison.final_loss["nobody"])
    with pytest.raises(ValueError, match=re.escape(before + "holds(values) raised KeyError")):
        made(holds=lambda values: values["nobody"])


def test_save_writes_both_kinds_and_savefig_names_it(tmp_path):
    figure = made()
    assert figure.save(tmp_path / "claim.png").read_bytes().startswith(b"\x89PNG")
    assert "data-ol" in figure.save(tmp_path / "claim.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"\.png or \.html"):
        figure.save(tmp_path / "claim.pdf")
    x = ol.to_tensor(0.5, requires_grad=True)
    for picture in (figure, race(2.0), ol.viz.graph(x * x)):
        with pytest.raises(AttributeError, match=r"no savefig.*\.save\(\"picture\.png\"\)"):
            picture.savefig("picture.png")
        assert not hasattr(picture, "other")
