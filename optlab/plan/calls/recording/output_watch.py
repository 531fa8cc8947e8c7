"""What a captured call does with files, streams and clocks, which a plan cannot repeat."""

from __future__ import annotations

import builtins
import io
import os
import sys
import time
from types import FrameType
from typing import Any

from optlab.backend.call_recorder import here
from optlab.plan.calls.packages import is_installed, of_library, package_of

_WRITES = frozenset(["write", "writelines", "truncate"])
_OPENS = (io.open, os.open)
_LOOKS = (os.stat, os.lstat, os.listdir, os.scandir, os.access)
_CLOCKS = (
    time.time, time.time_ns, time.perf_counter, time.perf_counter_ns, time.monotonic,
    time.monotonic_ns, time.process_time, time.process_time_ns, time.thread_time,
)  # fmt: skip
_READ = {
    **dict.fromkeys(map(id, _OPENS), "opening a file, which a replay would not read again"),
    **dict.fromkeys(map(id, _LOOKS), "a look at files, which a replay would not repeat"),
    **dict.fromkeys(map(id, _CLOCKS), "reading a clock, which a replay would not read again"),
}
#: Imports and warnings look for files, and come once; a log is refused where it is written.
_OF_THEIR_OWN = ("importlib", "logging", "warnings")


class watch_output:
    """A ``with`` block in which a recorder refuses what a call does with files and clocks.

    Printing, logging, writing and opening files, looks at folders, and the time.

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
        if package_of(frame.f_globals.get("__name__", "")) in ("importlib", "warnings"):
            return  # they come once; an import writes the bytecode of its module
        if function is builtins.print:
            what = "printing, which a replay would leave out"
        elif getattr(function, "__name__", "") in _WRITES and isinstance(
            getattr(function, "__self__", None), io.IOBase
        ):
            what = "a write to a file or stream, which a replay would leave out"
        elif id(function) in _READ:
            user = _user_of(frame, through_packages=function not in _CLOCKS)
            if user is not None:
                self._recorder.end(_READ[id(function)], user)
            return
        else:
            return
        self._recorder.end(what)


def _user_of(frame: FrameType | None, through_packages: bool) -> FrameType | None:
    """Return the frame of the user that asked for it; None if it is the engine or an import.

    Parameters
    ----------
    frame : frame
        That calls a function in C.
    through_packages : bool
        Whether installed packages ask for their callers; a profiler that is told of collected
        garbage reads clocks for itself.
    """
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        package = package_of(module)
        if package in _OF_THEIR_OWN or (package == "optlab" and not module.startswith("optlab.io")):
            return None
        if not of_library(module):
            if not is_installed(module):
                return frame
            if not through_packages:
                return None
        frame = frame.f_back
    return None
