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


def _is_inside(frame: FrameType, packages: tuple[str, ...]) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in packages
