"""`optlab course solutions`: notebooks with the solutions folded, for after the deadline."""

import nbformat
import numpy as np
import pytest

from optlab import cli
from optlab.course.grading.cells import asked_checks
from tests.course.helpers import quick_check

ASSIGNMENTS = cli.packaged_assignments()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("course") / "solutions"
    assert cli.main(["course", "solutions", str(place)]) == 0
    return place


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_solutions_are_folded_and_nothing_else(folder, name):
    notebook = nbformat.read(folder / f"{name}-solutions.ipynb", 4)
    nbformat.validate(notebook)
    source = nbformat.read(ASSIGNMENTS[name], 4)
    told = [c for c in source.cells if c.metadata.get("nbgrader", {}).get("solution")]
    folded = [c for c in notebook.cells if c.metadata.get("jupyter", {}).get("source_hidden")]
    assert len(folded) == len(told) > 0
    assert all(c.metadata.tags == ["hide-input"] for c in folded)
    for cell in notebook.cells:
        assert "nbgrader" not in cell.metadata
        assert "###" not in cell.source or cell.cell_type == "markdown"
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", ["04-adam", "08-landscapes"])
def test_the_folded_notebook_passes_its_checks(folder, name):
    shared, asked = {"np": np}, []
    for cell in nbformat.read(folder / f"{name}-solutions.ipynb", 4).cells:
        if cell.metadata.get("jupyter"):
            exec(cell.source, shared)
        elif cell.cell_type == "code":
            asked += asked_checks(cell.source)
    assert {one.hidden for one in asked} == {False, True}
    for one in asked:
        assert quick_check(one.name, shared[one.class_name], seed=one.seed).passed


def test_some_can_be_asked_for_and_nothing_is_overwritten(tmp_path, capsys):
    place = tmp_path / "after"
    assert cli.main(["course", "solutions", str(place), "04-adam"]) == 0
    assert [path.name for path in place.iterdir()] == ["04-adam-solutions.ipynb"]
    assert cli.main(["course", "solutions", str(place)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert len(list(place.iterdir())) == 1
    assert cli.main(["course", "solutions", str(place), "4-adam"]) == 1
    assert "no assignment 4-adam" in capsys.readouterr().err
