"""Preprocessors for nbgrader: run a submission, write the marks of its checks, hide tests."""

from __future__ import annotations

from typing import Any

from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_output
from nbgrader.preprocessors import ClearHiddenTests, Execute, NbGraderPreprocessor
from nbgrader.preprocessors.execute import UnresponsiveKernelError
from traitlets import Unicode

from optlab.course.checking import in_another_process
from optlab.course.grading.cells import AskedCheck, asked_checks, cells_before, is_test
from optlab.course.report import Report
from optlab.course.variants import seed_of


class RunNotebook(Execute):
    """Run a submission as nbgrader does, except for the cells whose marks are made elsewhere.

    Where a cell ends the kernel, or does not let itself be interrupted, it says so, and the cells
    after it are not run. They are graded all the same.
    """

    def preprocess(self, nb: Any, resources: Any, km: Any = None) -> tuple[Any, Any]:
        """Run the cells; return the notebook with their outputs."""
        self._last: Any = None
        try:
            return super().preprocess(nb, resources, km)
        except (
            CellExecutionError, CellTimeoutError, DeadKernelError, UnresponsiveKernelError,
            RuntimeError,
        ) as error:  # fmt: skip
            self.log.warning("The kernel of a submission has ended: %s", error)
            if self._last is not None:
                self._last.outputs = [
                    *self._last.get("outputs", []),
                    _failed("KernelEnded", "This cell has ended the kernel; no further cell ran."),
                ]
            return nb, resources

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> Any:
        """Run one cell, unless it is graded by its checks."""
        if cell.cell_type == "code" and is_test(cell) and asked_checks(cell.source):
            return cell, resources
        self._last = cell if cell.cell_type == "code" else self._last
        return super().preprocess_cell(cell, resources, index)


class GradeChecks(NbGraderPreprocessor):
    """Give the cells that ask for checks their points and reports.

    The points are a share of the cell's: the mean of its checks' scores. Cells with other tests
    are left as they are, with the points that their output in the kernel says.

    Checks with ``student=`` and hidden ones have numbers of the student's own. Whose they are says
    the folder of the submission, and not the notebook.
    """

    secret = Unicode(
        "", help="What the numbers of hidden checks are drawn from, beside their seed."
    ).tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Grade all cells that ask for checks."""
        student = resources.get("nbgrader", {}).get("student", "")
        for index, cell in enumerate(nb.cells):
            if cell.cell_type != "code" or not is_test(cell):
                continue
            asked = asked_checks(cell.source)
            if asked:
                cell.outputs = self._outputs(cell, asked, cells_before(nb.cells, index), student)
        return nb, resources

    def _outputs(
        self, cell: Any, asked: list[AskedCheck], cells: list[str], student: str
    ) -> list[Any]:
        reports = []
        for one in asked:
            try:
                reports.append(self._report(one, cells, student))
            except Exception as error:
                self.log.error("The check %s could not be made: %s", one.name, error)
                raise
        points = float(cell.metadata["nbgrader"]["points"])
        score = sum(report.score for report in reports) / len(reports)
        shown = [
            new_output(
                "display_data", data={"text/html": report._repr_html_(), "text/plain": str(report)}
            )
            for report in reports
        ]
        # nbgrader reads the points of a cell from the text of its result.
        mark = new_output(
            "execute_result",
            data={"text/plain": repr(round(score * points, 4))},
            execution_count=cell.get("execution_count") or 1,
        )
        return [*shown, mark]

    def _report(self, asked: AskedCheck, cells: list[str], student: str) -> Report:
        seed = asked.seed
        if asked.hidden:
            seed = seed_of(student, seed, self.secret)
        elif asked.own:
            seed = seed_of(student, seed)
        load = {"cells": cells, "class_name": asked.class_name}
        return in_another_process(asked.name, load, seed, asked.hidden)


class LeaveOutHiddenTests(ClearHiddenTests):
    """Leave hidden tests out of a page of feedback.

    Only the teacher's cells are read: what a student writes between such marks, or after one that
    has no end, is the student's own.
    """

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> Any:
        """Leave the hidden part out of one cell."""
        if not is_test(cell):
            return cell, resources
        return super().preprocess_cell(cell, resources, cell_index)


def _failed(name: str, text: str) -> Any:
    return new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"])
