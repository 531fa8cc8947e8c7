"""Marks of submitted notebooks, made outside of the student's kernel."""

import os
import re

import pytest

pytest.importorskip("nbgrader")

from nbformat.v4 import new_code_cell, new_notebook, new_output

import optlab as ol
from optlab import cli
from optlab.course.grading.cells import AskedCheck, asked_checks, cells_before, plain_python
from optlab.course.grading.preprocessors import GradeChecks
from optlab.course.layout import new_course
from tests.course.helpers import SGD, changed, class_of


def graded(source, points=4):
    marks = {"grade": True, "solution": False, "points": points, "grade_id": "g", "locked": True}
    return new_code_cell(source, metadata={"nbgrader": marks})


def points_of(*cells, student=""):
    """Return the points that nbgrader reads from the last cell, and the text of its outputs."""
    from nbgrader.utils import determine_grade

    notebook = new_notebook(cells=list(cells))
    GradeChecks(secret="s").preprocess(notebook, {"nbgrader": {"student": student}})
    cell = notebook.cells[-1]
    return determine_grade(cell)[0], str(cell.outputs)


CHECK = 'ol.course.check("sgd", SGD)'
OWN = 'ol.course.check("sgd", SGD, student=STUDENT)'


def test_a_right_class_gets_all_points():
    points, said = points_of(
        new_code_cell("import numpy as np\nimport optlab as ol"),
        new_code_cell(SGD),
        graded(CHECK),
    )
    assert points == 4
    assert "all right" in said


def test_what_the_kernel_said_is_no_mark():
    cell = graded(CHECK)
    cell.outputs = [new_output("execute_result", data={"text/plain": "4"}, execution_count=1)]
    points, said = points_of(new_code_cell(changed(SGD, ("p - self", "p + self"))), cell)
    assert points == 0
    assert "wrong_sign" in said


def test_a_cell_that_replaces_the_checker_gets_nothing():
    cheat = (
        "import optlab as ol\nol.course.check = lambda *a, **k: 4\nprint('passed')\nclass SGD: pass"
    )
    points, said = points_of(new_code_cell(cheat), graded(CHECK))
    assert points == 0
    assert "raises" in said


def test_a_cell_that_ends_the_process_leaves_the_others_their_points():
    points, _ = points_of(
        new_code_cell("%matplotlib inline\nimport optlab as ol\nfigure = ol.explore()"),
        new_code_cell(SGD),
        new_code_cell("import os\nos._exit(0)"),
        new_code_cell("raise SystemExit"),
        graded(CHECK),
    )
    assert points == 4


def test_a_class_that_is_not_there_is_said():
    points, said = points_of(new_code_cell("1 / 0"), graded(CHECK))
    assert points == 0
    assert "define no SGD" in said
    assert "ZeroDivisionError" in said


def test_hidden_checks_have_numbers_of_the_course_s_own():
    wrong = changed(SGD, ("p - self", "p + self"))
    points, said = points_of(new_code_cell(wrong), graded(CHECK[:-1] + ", seed=1, hidden=True)"))
    assert points == 0
    assert "which are not shown" in said
    assert "expected" not in said


def test_a_student_s_own_numbers_are_those_of_who_has_handed_in():
    wrong = new_code_cell("STUDENT = 'grace'\n" + changed(SGD, ("p - self", "p + self")))
    found = {who: points_of(wrong, graded(OWN), student=who)[1] for who in ("ada", "grace")}
    for who, said in found.items():
        report = ol.course.check("sgd", class_of(wrong.source), student=who)
        assert str(report.first_difference) in said
    assert found["ada"] != found["grace"]


def test_checks_are_read_from_cells():
    assert asked_checks("# Others\n" + CHECK) == [AskedCheck("sgd", "SGD")]
    assert asked_checks("r = optlab.course.check('adam', A, seed=4, hidden=True)\nr") == [
        AskedCheck("adam", "A", 4, True)
    ]
    assert asked_checks(OWN) == [AskedCheck("sgd", "SGD", own=True)]
    assert asked_checks("check('adam', A)") == asked_checks("this is no Python") == []


def test_magics_are_left_out():
    assert plain_python("%%time\nx = 1") == "x = 1"
    assert plain_python("%%bash\nls") == ""
    cells = [
        new_code_cell("!ls\nx = 1"),
        graded(CHECK),
        new_code_cell("y = 2"),
        graded(CHECK),
    ]
    assert cells_before(cells, 3) == ["pass\nx = 1", "y = 2"]


def test_a_course_is_laid_out_once(tmp_path, capsys):
    folder = tmp_path / "course"
    assert cli.main(["course", "new", str(folder)]) == 0
    assert "nbgrader generate_assignment" in capsys.readouterr().out
    assert (folder / "nbgrader_config.py").is_file()
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for said in ("submitted/STUDENT/01-reverse-mode", "solutions", "[lab,course]", "checksum"):
        assert said in readme, said
    assignments = {path.name for path in (folder / "source").iterdir()}
    assert {"03-momentum", "04-adam", "05-averaging"} <= assignments
    assert cli.main(["course", "new", str(folder)]) == 1
    assert "not empty" in capsys.readouterr().err


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Return the settings of a new course."""
    from traitlets.config.loader import PyFileConfigLoader

    new_course(tmp_path / "course", {})
    monkeypatch.setenv("PATH", os.environ["PATH"])  # both are as before afterwards
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    return PyFileConfigLoader("nbgrader_config.py", str(tmp_path / "course")).load_config()


@pytest.mark.parametrize(
    ("path", "student", "notebook"),
    [
        ("extracted/all/ada_03-momentum.ipynb", "ada", "03-momentum"),
        ("extracted/all/ada_12_345_03-momentum (1).ipynb", "ada", "03-momentum"),
        ("extracted/all/Ada Lovelace_12_file_/03-momentum.ipynb", "Ada Lovelace", "03-momentum"),
        (r"extracted\all\ada_03-momentum.ipynb", "ada", "03-momentum"),
    ],
)
def test_the_names_in_an_archive_say_whose_a_notebook_is(config, path, student, notebook):
    found = re.match(config.FileNameCollectorPlugin.named_regexp, f"/courses/a_b/{path}")
    assert found.groupdict() == {"student_id": student, "file_id": notebook}


def test_kernels_of_submissions_have_one_thread(config):
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"


def test_pages_of_feedback_leave_hidden_tests_out(config):
    [leave_out] = [p for p in config.GenerateFeedback.preprocessors if "Hidden" in p.__name__]
    hidden = "# Others\n### BEGIN HIDDEN TESTS\nsecret()\n### END HIDDEN TESTS"
    own = new_code_cell("# ### BEGIN HIDDEN TESTS, which has no end")
    notebook, _ = leave_out().preprocess(new_notebook(cells=[own, graded(hidden)]), {})
    assert [cell.source for cell in notebook.cells] == [own.source, "# Others"]


def test_the_command_lists_the_checks(capsys):
    assert cli.main(["course", "checks"]) == 0
    assert "Adam(learning_rate=0.001, beta1=0.9" in capsys.readouterr().out
