"""Output of a captured call: what prints or writes a file cannot be repeated by a plan."""

from __future__ import annotations

import builtins
import io
import sys
from types import FrameType
from typing import Any

from optlab.backend.call_recorder import here

_WRITES = frozenset(["write", "writelines", "truncate"])


class watch_output:
    """A ``with`` block in which a recorder refuses printing, logging and writing to files.

    Python tells a profiler of every call of a function in C. Where another profiler runs, nothing
    is watched.
    """

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._watches = False

    def __enter__(self) -> None:
        if sys.getprofile() is None:
            self._watches = True
            sys.setprofile(self._called)

    def __exit__(self, *error: object) -> None:
        if self._watches:
            sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call" or here.recorder is not self._recorder:
            return
        if frame.f_globals.get("__name__") == "warnings":
            return  # they come once
        if function is builtins.print:
            what = "printing, which a replay would leave out"
        elif getattr(function, "__name__", "") in _WRITES and isinstance(
            getattr(function, "__self__", None), io.IOBase
        ):
            what = "a write to a file or stream, which a replay would leave out"
        else:
            return
        self._recorder.end(what)
