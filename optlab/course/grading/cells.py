"""What is read of a notebook's cells: which checks a cell asks for, which code makes the class."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

#: Cell magics after which the cell is plain Python.
_AROUND_PYTHON = {"%%time", "%%timeit", "%%capture", "%%prun"}


@dataclass(frozen=True)
class AskedCheck:
    """One call of ``ol.course.check`` in a cell."""

    name: str
    class_name: str
    seed: int = 0
    hidden: bool = False
    own: bool = False  # with numbers of the student's own


def asked_checks(source: str) -> list[AskedCheck]:
    """Return the checks that a cell asks for.

    Examples
    --------
    >>> asked_checks('ol.course.check("adam", Adam, seed=3)')
    [AskedCheck(name='adam', class_name='Adam', seed=3, hidden=False, own=False)]
    >>> asked_checks("assert Adam is not None")
    []
    """
    try:
        tree = ast.parse(plain_python(source))
    except SyntaxError:
        return []
    return [
        found
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (found := _asked(node)) is not None
    ]


def _asked(call: ast.Call) -> AskedCheck | None:
    function = call.func
    if not (isinstance(function, ast.Attribute) and function.attr == "check"):
        return None
    owner = function.value
    if getattr(owner, "attr", getattr(owner, "id", "")) != "course" or len(call.args) != 2:
        return None
    name, made = call.args
    if not (isinstance(name, ast.Constant) and isinstance(made, ast.Name)):
        return None
    settings: dict[str | None, Any] = {
        keyword.arg: keyword.value.value
        for keyword in call.keywords
        if isinstance(keyword.value, ast.Constant)
    }
    return AskedCheck(
        str(name.value),
        made.id,
        int(settings.get("seed", 0)),
        bool(settings.get("hidden", False)),
        own=any(keyword.arg == "student" for keyword in call.keywords),
    )


def plain_python(source: str) -> str:
    r"""Return the Python of a cell: without magics and shell commands.

    Examples
    --------
    >>> plain_python("%matplotlib inline\nx = 1\nif x:\n    !ls")
    'pass\nx = 1\nif x:\n    pass'
    """
    lines = source.split("\n")
    if lines[0].startswith("%%"):
        if lines[0].split()[0] not in _AROUND_PYTHON:
            return ""
        lines = lines[1:]
    kept = []
    for line in lines:
        bare = line.lstrip()
        magic = bare.startswith(("%", "!", "?")) or bare.rstrip().endswith("?")
        kept.append(line[: len(line) - len(bare)] + "pass" if magic else line)
    return "\n".join(kept)


def cells_before(cells: list[Any], index: int) -> list[str]:
    """Return the code of the cells before one: all but those that are graded tests themselves."""
    return [
        plain_python(cell.source)
        for cell in cells[:index]
        if cell.cell_type == "code" and not is_test(cell)
    ]


def is_test(cell: Any) -> bool:
    """Return whether a cell is one of the teacher's tests: graded, and no solution."""
    marks = cell.metadata.get("nbgrader", {})
    return bool(marks.get("grade") and not marks.get("solution"))
