"""The assignments: right as they stand, graded by checks that exist, and with wrong solutions."""

import re

import nbformat
import numpy as np
import pytest

from optlab import cli
from optlab.course import names
from optlab.course.grading.cells import asked_checks, is_test
from tests.course.helpers import changes, entries, quick_check, solutions

ASSIGNMENTS = cli.packaged_assignments()


def cells_of(name):
    return nbformat.read(ASSIGNMENTS[name], 4).cells


def classes_of(name, *pieces, races=False):
    """Run the cells of an assignment with its solutions, some of them changed."""
    shared = {"np": np}
    answers = solutions(cells_of(name), *pieces)
    for cell in cells_of(name):
        if cell.cell_type != "code" or is_test(cell):
            continue
        marks = cell.metadata.get("nbgrader", {})
        if races or marks:
            exec(answers.get(marks.get("grade_id"), cell.source), shared)
    return shared


def graded_checks(name):
    return [one for cell in cells_of(name) if is_test(cell) for one in asked_checks(cell.source)]


def test_there_are_eight_and_each_check_is_in_one():
    assert [int(name[:2]) for name in ASSIGNMENTS] == list(range(1, 9))
    asked = [one.name for name in ASSIGNMENTS for one in graded_checks(name)]
    assert sorted(asked) == sorted([*names(), *names()])  # once to be seen, once hidden


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_solutions_of_an_assignment_pass_its_checks(name):
    classes = classes_of(name)
    for one in graded_checks(name):
        report = quick_check(one.name, classes[one.class_name], seed=one.seed)
        assert report.passed, str(report)


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_an_assignment_is_in_nbgrader_s_format(name):
    cells = cells_of(name)
    ids = [c.metadata.nbgrader.grade_id for c in cells if "nbgrader" in c.metadata]
    assert len(ids) == len(set(ids))
    for cell in cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("solution"):
            regions = re.findall(r"### (BEGIN|END) SOLUTION", cell.source)
            assert regions == ["BEGIN", "END"] * (len(regions) // 2) != []
        for one in asked_checks(cell.source):
            assert marks["points"] > 0
            assert one.hidden == ("### BEGIN HIDDEN TESTS" in cell.source)
            assert one.name in names()


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_what_students_get_can_be_run_and_has_no_points(name):
    region = re.compile(r"### BEGIN SOLUTION.*?### END SOLUTION", re.DOTALL)
    shared = {"np": np}
    for cell in cells_of(name):
        if cell.metadata.get("nbgrader", {}).get("solution"):
            exec(region.sub("raise NotImplementedError", cell.source), shared)
    for one in graded_checks(name):
        report = quick_check(one.name, shared[one.class_name], seed=one.seed)
        assert (report.mistake, report.score) == ("raises", 0)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_the_races_of_an_assignment_run(name):
    classes_of(name, races=True)


WRONG = [
    (name, *title.split()[:2], changes(body))
    for name, title, body in entries("wrong_solutions.txt")
]


@pytest.mark.parametrize(
    ("name", "check", "mistake", "pieces"),
    WRONG,
    ids=[f"{check}-{mistake}" for _, check, mistake, _ in WRONG],
)
def test_a_wrong_solution_is_named(name, check, mistake, pieces):
    classes = classes_of(name, *pieces)
    class_name = next(one.class_name for one in graded_checks(name) if one.name == check)
    report = quick_check(check, classes[class_name])
    assert report.mistake == mistake, str(report)
    assert 0 <= report.score < 1
