"""nbgrader's own commands on submissions of all assignments: right, wrong, false and endless."""

import csv
import re
import subprocess
import sys
from functools import partial

import pytest

pytest.importorskip("nbgrader")

import nbformat
from nbformat.v4 import new_code_cell

from optlab import cli
from optlab.course.grading.cells import asked_checks, is_test
from optlab.course.layout import new_course
from tests.course.cheats import EXIT, LIAR, LIBRARY, THIEVES, cheat, thief
from tests.course.helpers import changes, class_of, entries, quick_check, solutions

ASSIGNMENTS = cli.packaged_assignments()
CLASSES = {
    (name, asked.name): asked.class_name
    for name, path in ASSIGNMENTS.items()
    for cell in nbformat.read(path, 4).cells
    for asked in asked_checks(cell.source)
}


#: Assignments whose classes have counterparts in the library.
BORROWED = {"03-momentum", "04-adam"}
#: Whose solution uses another class of the notebook, and shares its mistakes.
BUILT_ON = {"adam": {"adamw"}, "unbroadcast": {"vjp"}}


def command(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


class Course:
    """A course of one assignment, and what students hand in."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        new_course(folder, {name: ASSIGNMENTS[name]})
        command(folder, "generate_assignment", name)
        self.source = nbformat.read(ASSIGNMENTS[name], 4).cells

    def submit(self, student, answers, more=(), races=False):
        """Hand in the released notebook with answers in its solution cells, and cells at its end.

        Without races, the student has deleted the cell that opens the explorer.
        """
        notebook = nbformat.read(self.folder / "release" / self.name / f"{self.name}.ipynb", 4)
        for cell in notebook.cells:
            marks = cell.metadata.get("nbgrader", {})
            if marks.get("solution"):
                assert "raise NotImplementedError" in cell.source
                cell.source = answers[marks["grade_id"]]
            assert "### BEGIN" not in cell.source
            assert "hidden=True" not in cell.source
        notebook.cells = [
            *(cell for cell in notebook.cells if races or "ol.explore(" not in cell.source),
            *map(new_code_cell, more),
        ]
        place = self.folder / "submitted" / student / self.name / f"{self.name}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(notebook, place)

    def change(self, student, *pieces, races=False):
        """Hand in the solutions with some text replaced."""
        self.submit(student, solutions(self.source, *pieces), races=races)

    def cheat(self, student, text_of, more=()):
        """Hand in a cheat in place of each class."""
        found = iter([pair for pair in CLASSES if pair[0] == self.name])
        answers = {}
        for grade_id in solutions(self.source):
            _, check = next(found)
            answers[grade_id] = text_of(check, CLASSES[self.name, check])
        assert next(found, None) is None
        self.submit(student, answers, more)

    def grade(self):
        """Run nbgrader's commands; return the exported points and the pages of feedback."""
        # A cell that never ends need not have its minute here.
        command(self.folder, "autograde", self.name, "--Execute.timeout=10")
        command(self.folder, "generate_feedback", self.name)
        command(self.folder, "export")
        with open(self.folder / "grades.csv", newline="") as file:
            points = {row["student_id"]: float(row["raw_score"]) for row in csv.DictReader(file)}
        pages = {
            who: (self.folder / "feedback" / who / self.name / f"{self.name}.html").read_text(
                encoding="utf-8"
            )
            for who in points
        }
        return points, pages

    def cell_points(self, student):
        """Return the points of a student's cells, by their names."""
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}") as book:
            [notebook] = book.find_submission(self.name, student).notebooks
            return {grade.name: grade.auto_score for grade in notebook.grades}


def changed_solutions(file, name):
    """Return what the headlines of a file say of an assignment, and the changes."""
    return [(*title.split(), changes(body)) for one, title, body in entries(file) if one == name]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_an_assignment_from_release_to_marks(name, tmp_path):
    course = Course(tmp_path / "course", name)
    course.change("right", races=True)
    wrong = {
        f"wrong{i}": row for i, row in enumerate(changed_solutions("wrong_solutions.txt", name))
    }
    for who, (*_, pieces) in wrong.items():
        course.change(who, *pieces)
    [(_, kept, pieces)] = changed_solutions("loops.txt", name)
    course.change("endless", *pieces, races=True)
    course.cheat("thief", thief)
    course.cheat("liar", partial(cheat, LIAR), [EXIT])
    if name in BORROWED:
        course.cheat("borrower", partial(cheat, LIBRARY))
    points, pages = course.grade()

    tests = {c.metadata.nbgrader.grade_id: c for c in filter(is_test, course.source)}
    most = {name: cell.metadata.nbgrader.points for name, cell in tests.items()}
    assert course.cell_points("right") == most
    assert points.pop("right") == sum(most.values())
    for who in {"thief", "liar", "borrower"} & points.keys():
        assert course.cell_points(who) == dict.fromkeys(most, 0), who
        assert points.pop(who) == 0
    assert "has ended the kernel" in pages["liar"]
    assert points.pop("endless") == pytest.approx(float(kept), abs=1e-3)
    assert "too_slow" in pages["endless"]
    assert len(wrong) >= 4
    for who, (check, mistake, kept, _) in wrong.items():
        assert points.pop(who) == pytest.approx(float(kept), abs=1e-3), (who, mistake)
        assert mistake in pages[who]
        lost = {name for name, given in course.cell_points(who).items() if given < most[name]}
        asked = {one.name for name in lost for one in asked_checks(tests[name].source)}
        assert asked - BUILT_ON.get(check, set()) == {check}
    assert points == {}
    for page in pages.values():
        assert "hidden=True" not in plain(page)


def plain(page):
    """Return the text of a page: code in it is a span for each token."""
    return re.sub("<[^>]+>", "", page)


@pytest.mark.parametrize("way", [*THIEVES, "library"])
def test_a_thief_succeeds_where_nothing_is_closed_off(way):
    """Cheats that fail everywhere would show nothing."""
    check, made = ("momentum", "Momentum") if way == "library" else ("adamw", "AdamW")
    report = quick_check(check, class_of(cheat(THIEVES.get(way, LIBRARY), check, made)))
    assert report.passed, str(report)
