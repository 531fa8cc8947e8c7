"""`optlab course new`: a folder in which nbgrader's commands work at once."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

CONFIG = r'''"""nbgrader's settings for this course; `nbgrader --help-all` explains each."""

import os
import sysconfig

from nbconvert.preprocessors import ClearMetadataPreprocessor, CSSHTMLHeaderPreprocessor
from nbgrader.preprocessors import (
    AssignLatePenalties, CheckCellMetadata, GetGrades, IgnorePattern, LimitOutput, SaveAutoGrades,
)

from optlab.course.grading.preprocessors import GradeChecks, LeaveOutHiddenTests, RunNotebook

c = get_config()  # noqa: F821

# Kernels of submissions have small arrays, which one thread of BLAS computes fastest.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# nbgrader starts commands of its environment by name, also where that is not activated.
os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])

c.CourseDirectory.course_id = {course_id!r}

# Marks are not made in the student's kernel: RunNotebook leaves the cells out that call
# ol.course.check, and GradeChecks rebuilds the class from the submitted cells in a clean process.
c.Autograde.autograde_preprocessors = [
    RunNotebook, GradeChecks, IgnorePattern, ClearMetadataPreprocessor, LimitOutput,
    SaveAutoGrades, AssignLatePenalties, CheckCellMetadata,
]

# Pages of feedback show the points of hidden tests, and not the tests.
c.GenerateFeedback.preprocessors = [GetGrades, LeaveOutHiddenTests, CSSHTMLHeaderPreprocessor]

# The numbers of hidden checks are drawn from this. Keep it to yourself.
c.GradeChecks.secret = {secret!r}

# A cell that a student has deleted comes back, and is graded.
c.OverwriteCells.add_missing_cells = True

# `nbgrader zip_collect` reads from a path in the archive whose notebook it is: the student up to
# the first _ of a file's or a folder's name, the notebook after the last _ or in the folder.
c.FileNameCollectorPlugin.named_regexp = (
    r".*[/\\](?P<student_id>[^_/\\]+)_(?:.*[_/\\])?(?P<file_id>[^_/\\]+?)(?: \(\d+\))?\.ipynb$"
)

# Seconds for one cell of a submission (a race in the explorer may take a while).
c.Execute.timeout = 60

c.ClearSolutions.code_stub = {{
    "python": "# Write your code here.\nraise NotImplementedError",
}}
'''

README = """\
# {course_id}

A course for nbgrader, made by `optlab course new`. Run all commands in this folder.

| here | what it is |
| --- | --- |
| `source/` | the assignments **with their solutions and hidden tests**: keep them to yourself |
| `release/` | what students get; `nbgrader generate_assignment` writes it |
| `submitted/STUDENT/ASSIGNMENT/` | where submissions go, a folder for each student |
| `autograded/`, `feedback/` | what nbgrader makes of them |
| `nbgrader_config.py` | the settings, and the secret of the hidden checks: keep it to yourself |

## What students need

Python 3.11 or newer and optlab with the extras lab and course, from a clone of its repository:

    pip install ".[lab,course]"

Each student writes the name of their folder in `submitted/` into the cell `STUDENT = ""` of an
assignment: the numbers of the notebook and of its checks are drawn from it.

## From hand-out to marks

    nbgrader generate_assignment {first}   # writes release/{first}/: hand out this folder
    nbgrader autograde {first}             # grades submitted/STUDENT/{first}/{first}.ipynb
    nbgrader generate_feedback {first}     # writes feedback/STUDENT/{first}/: give it back
    nbgrader export                        # writes grades.csv

Points are in the test cells of `source/`: open a notebook in JupyterLab to change them. A check
gives a part of its points where a part of it is right. Generate the assignment again afterwards.

An archive of many submissions goes to `downloaded/{first}/archive/`; `nbgrader zip_collect {first}`
takes the student's name from the beginning of each file's name (`ada_{first}.ipynb`) or folder.

Warnings such as `Attribute 'checksum' for cell ... has changed!` are harmless: a cell of the source
is another than when its points were last written down, as it is after an edit.

After the deadline, `optlab course solutions DIR` writes the assignments with solutions to read.
"""


def new_course(
    directory: str | Path, assignments: dict[str, Path], course_id: str = ""
) -> list[Path]:
    """Lay out a course and return the files that were written.

    Parameters
    ----------
    directory : str or Path
        A folder that does not exist yet, or is empty.
    assignments : dict of str to Path
        The notebooks of the assignments, by their names.
    course_id : str
        nbgrader's name of the course; by default that of the folder.

    Raises
    ------
    FileExistsError
        If there is something in the folder: nobody's course is overwritten.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     [path.name for path in new_course(folder, {})]
    ['nbgrader_config.py', 'README.md']
    """
    folder = Path(directory).expanduser().absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is there already, and not empty")
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "nbgrader_config.py"
    config.write_text(
        CONFIG.format(course_id=course_id or folder.name, secret=secrets.token_hex(16)),
        encoding="utf-8",
    )
    readme = folder / "README.md"
    readme.write_text(
        README.format(
            course_id=course_id or folder.name, first=next(iter(assignments), "ASSIGNMENT")
        ),
        encoding="utf-8",
    )
    written = [config, readme]
    for name, notebook in assignments.items():
        place = folder / "source" / name / f"{name}.ipynb"
        place.parent.mkdir(parents=True)
        shutil.copyfile(notebook, place)
        written.append(place)
    return written
