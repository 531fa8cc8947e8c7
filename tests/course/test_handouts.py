"""A handout is one page of A4 with everything of its optimizer on it; every optimizer has one."""

from __future__ import annotations

import inspect
import re

import pytest

import optlab as ol
from optlab.cli import main
from optlab.optimizer.rule.formula import Formula

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg

from optlab.course.handouts.formulas import formula
from optlab.course.handouts.page import MARGIN, WIDE, handout, race_of
from optlab.course.handouts.subjects import SUBJECTS

WITHOUT_A_RULE = {"Averaged", "Optimizer", "PipelineOptimizer", "RecomputeOptimizer", "Update"}


def test_every_optimizer_has_a_handout():
    classes = {
        name for name in ol.optimizer.__all__ if inspect.isclass(getattr(ol.optimizer, name))
    }
    assert set(SUBJECTS) == classes - WITHOUT_A_RULE


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_formula_is_set_and_fits(name):
    latex = SUBJECTS[name].cls.formula
    assert isinstance(latex, Formula)
    set_ = formula(latex, 14)
    assert len(set_.lines) == 1 + len(
        re.findall(r"\\\\", re.sub(r"(?s)\\begin.*?\\end", "", latex))
    )
    assert 0 < set_.width <= WIDE - 2 * MARGIN
    assert 0 < set_.height < 220


def test_what_mathtext_does_not_know_is_said():
    with pytest.raises(ValueError, match="cannot set"):
        formula(r"a &= \begin{pmatrix} b \end{pmatrix}", 14)


@pytest.mark.parametrize("name", sorted(set(SUBJECTS) - {"SGD"}))
def test_the_run_of_the_picture_ends_below_sgd_s_or_the_page_says_that_it_does_not(name):
    ends = race_of(SUBJECTS[name]).final_loss
    above = "ends above SGD" in SUBJECTS[name].note
    assert (ends[name] > ends["SGD"]) == above


def test_the_page_of_the_longest_formula_has_its_parts_and_clips_nothing():
    figure = handout(SUBJECTS["RAdam"])
    texts = [text.get_text() for text in figure.texts]
    for part in ("RAdam", "Formula", "Picture", "Code"):
        assert part in texts
    written = "\n".join(texts)
    for line in inspect.getsource(ol.optimizer.RAdam.update).splitlines():
        assert line.strip() in written
    renderer = FigureCanvasAgg(figure).get_renderer()
    for text in figure.texts:
        box = text.get_window_extent(renderer).transformed(figure.transFigure.inverted())
        assert 0 <= box.x0 <= box.x1 <= 1 - 0.9 * MARGIN / WIDE, text.get_text()
        assert 0 <= box.y0 <= box.y1 <= 1, text.get_text()


def test_the_command_writes_a_page_of_a4(tmp_path, capsys):
    assert main(["course", "handouts", str(tmp_path), "SGD"]) == 0
    assert capsys.readouterr().out == f"Wrote {tmp_path / 'SGD.pdf'}\n"
    pdf = (tmp_path / "SGD.pdf").read_bytes()
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 1
    [box] = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert [float(side) for side in box] == pytest.approx([595.28, 841.89], abs=0.01)


def test_an_unknown_name_writes_nothing(tmp_path, capsys):
    assert main(["course", "handouts", str(tmp_path / "new"), "SGD", "Sgd"]) == 1
    assert "no handout of Sgd; there is one of SGD, Momentum" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
