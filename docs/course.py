"""The assignments as students get them: no solutions, no hidden tests."""

from __future__ import annotations

import re
from typing import Any

#: What stands in the place of a solution; as `optlab course new` configures nbgrader.
STUB = ("# Write your code here.", "raise NotImplementedError")
_SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION[ \t]*\n.*?^[ \t]*### END SOLUTION[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_HIDDEN = re.compile(
    r"^[ \t]*### BEGIN HIDDEN TESTS[ \t]*\n.*?^[ \t]*### END HIDDEN TESTS[ \t]*$\n?",
    re.DOTALL | re.MULTILINE,
)


def released(notebook: dict[str, Any]) -> dict[str, Any]:
    r"""Return a source notebook of the course, as plain data, without what students must not see.

    Raises
    ------
    ValueError
        If a mark of a solution or of a hidden test would be left.

    Examples
    --------
    >>> source = "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION"
    >>> cell = {"cell_type": "code", "metadata": {"nbgrader": {"solution": True}}, "source": source}
    >>> print(released({"cells": [cell]})["cells"][0]["source"])
    def f():
        # Write your code here.
        raise NotImplementedError
    """
    cells = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        marks = cell["metadata"].get("nbgrader") or {}
        text, found = _SOLUTION.subn(lambda m: "\n".join(m[1] + line for line in STUB), source)
        if marks.get("solution") and not found:  # all of it is the student's
            text = "\n".join(STUB)
        text = _HIDDEN.sub("", text).rstrip("\n")
        if re.search(r"(BEGIN|END) (SOLUTION|HIDDEN)", text):
            raise ValueError(f"a mark of the course is left in the cell {cell.get('id')}:\n{text}")
        kept = {name: value for name, value in cell["metadata"].items() if name != "nbgrader"}
        cells.append({**cell, "metadata": kept, "source": text})
    return {**notebook, "cells": cells}
