"""`optlab course solutions`: each assignment with its solutions folded, for after the deadline."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_MARKERS = re.compile(r"^[ \t]*### (BEGIN|END) (SOLUTION|HIDDEN TESTS)[ \t]*\n?", re.MULTILINE)
_TOLD = "**Solution.** Unfold the cell below to read it; the notebook runs either way."


def write_solutions(directory: str | Path, assignments: dict[str, Path]) -> list[Path]:
    """Write a notebook with folded solutions for each assignment, and return the files.

    JupyterLab folds the cells that hold solutions, and pages of myst-nb put them into a
    ``<details>`` element. They run as any others do, so that checks and races below them work, the
    hidden checks among them. nbgrader takes such a notebook for none of its own.

    Parameters
    ----------
    directory : str or Path
        A folder; it is made if it is not there.
    assignments : dict of str to Path
        The source notebooks, by the names of the assignments.

    Raises
    ------
    FileExistsError
        If one of the files is there already: nothing is overwritten, and nothing written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_solutions(folder, {})
    []
    """
    folder = Path(directory).expanduser().absolute()
    files = {folder / f"{name}-solutions.ipynb": path for name, path in assignments.items()}
    for file in files:
        if file.exists():
            raise FileExistsError(f"{file} is there already")
    folder.mkdir(parents=True, exist_ok=True)
    for file, source in files.items():
        notebook = folded(json.loads(source.read_text(encoding="utf-8")))
        text = json.dumps(notebook, ensure_ascii=False, indent=1)
        file.write_text(text + "\n", encoding="utf-8")
    return list(files)


def folded(notebook: dict[str, Any]) -> dict[str, Any]:
    r"""Return a source notebook, as plain data, with its solutions folded.

    Examples
    --------
    >>> marks = {"nbgrader": {"solution": True, "grade": False}}
    >>> source = "### BEGIN SOLUTION\nx = 1\n### END SOLUTION"
    >>> cell = {"cell_type": "code", "id": "a", "metadata": marks, "source": source}
    >>> told, code = folded({"cells": [cell]})["cells"]
    >>> code["source"], code["metadata"]["jupyter"]
    ('x = 1', {'source_hidden': True})
    """
    cells = []
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader")
        kept = {name: value for name, value in cell["metadata"].items() if name != "nbgrader"}
        source = cell["source"]
        text = _MARKERS.sub("", source if isinstance(source, str) else "".join(source)).rstrip()
        if marks and marks.get("solution"):
            cells.append(
                {
                    "cell_type": "markdown",
                    "id": f"{cell['id'][:55]}-folded",
                    "metadata": {},
                    "source": _TOLD,
                }
            )
            kept |= {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
        cells.append({**cell, "metadata": kept, "source": text})
    return {**notebook, "cells": cells}
