"""Claim figures: a sentence that its data prove, as a page without a kernel and as a picture."""

from __future__ import annotations

import base64
import json
import re
import runpy
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import optlab as ol

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


def stored(html):
    [text] = re.findall(r'class="optlab-claim-data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


def test_what_travels_is_what_was_measured(figure):
    data = stored(figure._repr_mimebundle_()["text/html"])
    assert data["names"] == ["plain", "heavy"]
    assert data["labels"] == ["2", "5", "10", "50"]
    for i, name in enumerate(data["names"]):
        expected = [race(position).final_loss[name] for position in ARGUMENTS["positions"]]
        assert figure.values[name].tolist() == expected
        np.testing.assert_allclose(data["values"][i], expected, rtol=1e-5)


def test_the_paths_are_the_races(figure):
    data = stored(figure._repr_mimebundle_()["text/html"])
    units = data["size"][2]
    for one, position in zip(data["maps"], ARGUMENTS["positions"], strict=True):
        for d, name in zip(one["paths"], data["names"], strict=True):
            first, moves = d[1:].split("l")
            numbers = [int(x) for x in re.findall(r"-?\d+", moves)]
            steps = np.array(numbers).reshape(-1, 2)
            drawn = np.cumsum([[int(x) for x in first.split()], *steps], axis=0) / units
            points = race(position)[name].parameters["point"]
            # The frame is the same at all positions: two known points give scale and corner.
            scale = (np.array(one["start"]) - np.array(one["minima"][0])) / units
            scale = scale / np.array(race(position).start)
            wanted = points * scale + np.array(one["minima"][0]) / units
            assert np.abs(drawn[0] - wanted[0]).max() <= 1
            assert np.abs(drawn[-1] - wanted[-1]).max() <= 1.5


def test_the_output_is_a_live_page_with_a_picture_inside_and_no_requests(figure):
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    html = bundle["text/html"]
    assert html.startswith('<div data-ol="claim-')
    [image] = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    assert Image.open(BytesIO(base64.b64decode(image))).size[0] == 1140
    assert not re.findall(r'(?:src|href)="(?!data:)', html)
    assert "import " not in html.split('<script type="module">')[1].replace("no imports", "")
    assert bundle["text/plain"] == "<Claim: With heavy, less is left.>"


def test_the_gallery_s_figure_is_below_300_kb():
    claim = runpy.run_path(str(GALLERY))["claim"]()
    assert len(claim._repr_mimebundle_()["text/html"].encode()) < 300_000
    low, high = claim.positions.index(10), claim.positions.index(1000)
    assert claim.values["gradient descent"][[low, high]].tolist() == [35, 3454]
    assert claim.values["momentum"][[low, high]].tolist() == [14, 180]


def test_a_claim_that_does_not_hold_is_not_drawn():
    with pytest.raises(ValueError, match="the claim does not hold of its data") as e:
        made(holds=lambda values: bool((values["heavy"] > values["plain"]).all()))
    assert "loss after 40 steps: plain: [" in str(e.value)


def test_the_same_content_has_the_same_name_and_another_has_another(figure):
    assert made().view.id == figure.view.id != made("Less is left.").view.id


def test_text_cannot_leave_its_place():
    text = "</script><script>alert(1)</script> & *heavy*"
    html = made(text, note="<b>", question='"', label="<{:g}>")._repr_mimebundle_()["text/html"]
    assert html.count("<script") == html.count("</script>") == 3
    assert "alert(1)</script>" not in html
    assert stored(html)["sentence"][0][0] == "</script><script>alert(1)</script> & "


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_has_the_page_s_colors(figure, scheme):
    from optlab.viz.style import theme

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
    data = stored(figure._repr_mimebundle_()["text/html"])
    assert data["values"][0][-1] is None
    assert data["texts"][0][-1] == "diverges"
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
