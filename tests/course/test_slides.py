"""Slides of a lecture: one file, alive, without a request."""

from __future__ import annotations

import re
from importlib.util import find_spec

import nbformat
import pytest

from optlab import _doctor
from optlab.cli import main
from optlab.course import slides

nbf = nbformat.v4
INSTALLS = """\
try:
    import optlab as ol
except ModuleNotFoundError:
    %pip install -q "optlab[lab]"
    import optlab as ol

import numpy as np"""


def test_cells_become_slides():
    text, code = nbf.new_markdown_cell, nbf.new_code_cell
    long = code("x = 1\n" * 30, outputs=[nbf.new_output("stream", text="1")])
    cells = [text("# Title"), code(INSTALLS), text("words"), long, code("y = 2")]
    cells.append(text("**1.** Why?\n\n<details>because</details>"))
    made = slides.marked(nbf.new_notebook(cells=cells)).cells
    where = [cell.metadata.slideshow.slide_type for cell in made]
    assert where == ["slide", "skip", "-", "subslide", "subslide", "-", "-"]
    assert [len(cell.outputs) for cell in made[3:5]] == [0, 1]
    assert made[-1].source == "**1.** Why?"
    assert len({cell.id for cell in made}) == len(made)


def test_a_figure_that_is_alive_has_a_slide_for_itself():
    data = {"text/html": "<div data-ol='x'></div>"}
    shown = nbf.new_output("display_data", data=data)
    cells = [nbf.new_markdown_cell("# Title"), nbf.new_code_cell("ol.explore()", outputs=[shown])]
    made = slides.marked(nbf.new_notebook(cells=cells)).cells
    where = [cell.metadata.slideshow.slide_type for cell in made]
    assert where == ["slide", "-", "subslide"]
    assert [len(cell.get("outputs", [])) for cell in made] == [0, 0, 1]


def test_a_missing_package_is_said_before_anything_runs(tmp_path, monkeypatch, capsys):
    known = find_spec
    monkeypatch.setattr(
        slides, "find_spec", lambda name: None if name == "sphinx_revealjs" else known(name)
    )
    monkeypatch.setattr(_doctor, "install_command", lambda extra: f"install the extra {extra}")
    assert main(["course", "slides", str(tmp_path / "new"), "03-momentum"]) == 1
    said = capsys.readouterr().err
    assert "sphinx_revealjs" in said
    assert "install the extra slides" in said
    assert not (tmp_path / "new").exists()


def test_an_unknown_lecture_is_said(tmp_path, capsys):
    assert main(["course", "slides", str(tmp_path), "99-nothing"]) == 1
    assert "03-momentum" in capsys.readouterr().err


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(find_spec("sphinx_revealjs") is None, reason="the extra `slides`")
def test_slides_of_a_lecture_ask_no_host_and_keep_the_claim(tmp_path, monkeypatch):
    from tests.notebooks import ROOT

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert main(["course", "slides", str(tmp_path), "03-momentum"]) == 0
    page = (tmp_path / "03-momentum.html").read_text(encoding="utf-8")
    assert 'data-ol="claim-' in page
    assert "Reveal.initialize" in page
    tags = re.sub(r"(?s)(<script\b[^>]*>).*?</script>", r"\1", page)  # what scripts write is data
    loading = re.findall(r"<(?:link|script|img|iframe)\b[^>]*(?:src|href)=\"(?!data:)[^>]*>", tags)
    assert loading == []
    assert "@import" not in tags
    assert "<details>" not in tags
