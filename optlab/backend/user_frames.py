"""The frames of user code, for warnings and errors that point at the user's line."""

from __future__ import annotations

import sys
from types import FrameType


def frame_outside(*packages: str) -> FrameType:
    """Return the innermost frame of the caller that is not in one of `packages`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame, packages):
        frame = frame.f_back
    return frame


def called_by_user() -> bool:
    """Return whether the caller of the calling function is neither of optlab nor of NumPy."""
    return not _is_inside(sys._getframe(2), ("optlab", "numpy"))


def location_of(frame: FrameType) -> str:
    """Return the location of a frame: file and line, or notebook cell and line.

    Examples
    --------
    >>> location_of(sys._getframe()).rpartition(" ")[0]
    '..., line'
    """
    return location(frame.f_code.co_filename, frame.f_lineno)


def location(file: str, line: int) -> str:
    """Return the location of a line: file and line, or notebook cell and line.

    Examples
    --------
    >>> location("model.py", 3)
    'model.py, line 3'
    """
    # IPython compiles cells under invented file names; without IPython imported there is no cell.
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = find() if find is not None else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = named(file) if named is not None else None
    return f"cell {found[1]}, line {line}" if found else f"{file}, line {line}"


def stack_level_outside(*packages: str) -> int:
    """Return the ``stacklevel`` with which a warning points at the user's line.

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
