"""Finding the user's own line, for warnings and refusals that should point there."""

from __future__ import annotations

import sys
from types import FrameType


def frame_outside(*packages: str) -> FrameType:
    """Give the innermost frame of the caller that is not in one of `packages`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame, packages):
        frame = frame.f_back
    return frame


def location_of(frame: FrameType) -> str:
    """Say where a frame is running: file and line, or the cell of a notebook and its line.

    Examples
    --------
    >>> location_of(sys._getframe()).rpartition(" ")[0]
    '..., line'
    """
    return location(frame.f_code.co_filename, frame.f_lineno)


def location(file: str, line: int) -> str:
    """Say where a line of a file is, or of the cell of a notebook.

    Examples
    --------
    >>> location("model.py", 3)
    'model.py, line 3'
    """
    # IPython keeps cells under made-up file names; who has not imported it runs no cell.
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = find() if find is not None else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = named(file) if named is not None else None
    return f"cell {found[1]}, line {line}" if found else f"{file}, line {line}"


def stack_level_outside(*packages: str) -> int:
    """Give the ``stacklevel`` with which a warning points at the user's own line.

    Examples
    --------
    >>> stack_level_outside("no_such_package")
    1
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame, packages):
        level, frame = level + 1, frame.f_back
    return level


def lines_outside(error: BaseException, *packages: str) -> list[tuple[str, int]]:
    """Return file and line of each call in the traceback of an error that is not in `packages`."""
    lines, trace = [], error.__traceback__
    while trace is not None:
        if not _is_inside(trace.tb_frame, packages):
            lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return lines


def _is_inside(frame: FrameType, packages: tuple[str, ...]) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in packages
