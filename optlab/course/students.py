"""The other process, seen from this side: start it, call, end it in time.

A check talks to it with arrays, numbers and names alone; what it sends is read as such, and a
process that hangs, ends or sends something else gives the mistake of the call it was in.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any

from optlab.course import student_process
from optlab.course.sessions import Failed, Reply
from optlab.course.student_process import NoNumbers, receive, send

#: Seconds for the process to start and to load the class; for one scenario; for all of a check.
START_SECONDS, SCENARIO_SECONDS, CHECK_SECONDS = 8.0, 4.0, 15.0
#: Seconds for a scenario after so many that took too long. A right one takes milliseconds: parts
#: that end keep their points, and a class that never does costs little more.
SLOW_SECONDS = (SCENARIO_SECONDS, SCENARIO_SECONDS, 3.0, 3.0)
#: Seconds for one cell, and for a check, where the class is made from the cells of a notebook.
CELL_SECONDS, CELLS_CHECK_SECONDS = 6.0, 45.0
#: The process starts again after it ended, so that what else a class can do is seen.
MOST_STARTS = 4

_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)

#: What of the environment is needed to start Python; tokens and paths of the teacher are not.
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class StudentTarget:
    """The objects of a student's class, in a process of their own.

    Parameters
    ----------
    pickled : bytes
        The class as cloudpickle's bytes; or
    cells, class_name : list of str and str
        The code of a notebook's cells, and what the class is called there. A cell that raises, or
        takes too long, is left out; one that ends the process, from the next start on.
    """

    def __init__(
        self, pickled: bytes = b"", cells: list[str] | None = None, class_name: str = ""
    ) -> None:
        self.pickled, self.cells, self.class_name = pickled, cells, class_name
        self.ending: set[int] = set()
        self.given: dict[str, Any] = {}
        self.starts = 0
        self.slow = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.end = time.monotonic() + (CHECK_SECONDS if cells is None else CELLS_CHECK_SECONDS)
        self.ended_by_time = False

    def __enter__(self) -> StudentTarget:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    # The process.

    def begin_scenario(self) -> None:
        """Have a process that answers, and start the clock of a scenario.

        Raises
        ------
        Failed
            If the class cannot be loaded, or time or patience have run out.
        """
        if self.slow >= len(SLOW_SECONDS) or time.monotonic() > self.end:
            raise Failed("too_slow", "no time is left: earlier calls took all of it")
        if self.process is None:
            if self.starts >= MOST_STARTS + len(self.ending):
                raise Failed("raises", "the process has ended too often to start it once more")
            self._start()
        self._clock(SLOW_SECONDS[self.slow])

    def end_scenario(self) -> list[Any]:
        """Return arguments and results of the scenario's calls as they are now; stop the clock."""
        try:
            seen: list[Any] = self._ask("seen", {})["result"] if self.process is not None else []
        except Failed:
            seen = []
        self._clock(None)
        return seen

    def _start(self) -> None:
        self.starts += 1
        cloudpickle = find_spec("cloudpickle")
        places = [student_process.np.__file__, cloudpickle.origin if cloudpickle else None]
        paths = dict.fromkeys(str(Path(place).parents[1]) for place in places if place)
        self.process = subprocess.Popen(
            [sys.executable, "-I", student_process.__file__, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _KEPT if name in os.environ} | _ONE_THREAD,
            start_new_session=os.name == "posix",
        )
        self._timer: Timer | None = None
        self._clock(START_SECONDS)
        if self.cells is None:
            self._ask("load", {"pickled": self.pickled})
        else:
            self._run_cells(self.cells)

    def _run_cells(self, cells: list[str]) -> None:
        """Run the cells of a notebook, and take the class; begin anew where one ends all."""
        raised = ""
        for number, code in enumerate(cells, 1):
            if number in self.ending:
                continue
            try:
                self._clock(CELL_SECONDS)
                self._ask("cell", {"code": code, "number": number})
            except Failed as failed:
                raised = raised or f" A cell before raised {failed.detail}."
                if self.process is None:
                    self.ending.add(number)
                    if time.monotonic() > self.end:
                        raise
                    self.slow = 0
                    return self._start()
        if not self._ask("take", {"name": self.class_name}).get("found"):
            raise Failed("raises", f"the cells define no {self.class_name}.{raised}")
        return None

    def _clock(self, seconds: float | None) -> None:
        if getattr(self, "_timer", None) is not None:
            self._timer.cancel()  # type: ignore[union-attr]
        self._timer = None
        if seconds is None or self.process is None:
            return
        self.ended_by_time = False
        left = min(seconds, max(self.end - time.monotonic(), 0.1))
        self._timer = Timer(left, self._time_is_up, [self.process])
        self._timer.daemon = True
        self._timer.start()

    def _time_is_up(self, process: subprocess.Popen[bytes]) -> None:
        self.ended_by_time = True
        _kill(process)

    def stop(self) -> None:
        """End the process, and all that it may have started."""
        self._clock(None)
        if self.process is not None:
            _kill(self.process)
            for stream in (self.process.stdin, self.process.stdout):
                with suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
            self.process.wait()
            self.process = None

    def _ask(self, what: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if self.process is None:
            raise Failed("raises", "the process has ended")
        requests, replies = self.process.stdin, self.process.stdout
        assert requests is not None
        assert replies is not None
        try:
            send(requests, {"do": what, "with": arguments})
            while True:
                reply = receive(replies)
                if not isinstance(reply, dict):
                    raise EOFError("this is no reply")
                if "ask" not in reply:
                    break
                send(requests, self._answer(reply))
        except (EOFError, OSError):
            raise self._ended() from None
        if "raised" in reply:
            raise Failed("raises", _in_words(reply["raised"]))
        if "no_numbers" in reply:
            raise Failed("wrong_shape", f"the result cannot be read: {reply['no_numbers']}")
        return reply

    def _answer(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Call what the check has given to the class."""
        try:
            thing = self.given[reply["ask"]]
            method = thing if reply["method"] == "__call__" else getattr(thing, "step")  # noqa: B009
            return {"answer": method(*reply["arguments"])}
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, NoNumbers) as error:
            return {"refused": f"it was called with other arguments than it takes ({error})"}

    def _ended(self) -> Failed:
        process = self.process
        assert process is not None
        timed_out = self.ended_by_time
        if not timed_out:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
        status = process.poll()
        self.stop()
        if timed_out:
            self.slow += 1
            return Failed("too_slow", "the call took longer than a check can wait")
        if status is None:
            return Failed("raises", "the process sent what is no result")
        if status < 0 and -status == getattr(signal, "SIGXCPU", 0):
            self.slow += 1
            return Failed("too_slow", "the call used more processor time than a check can give")
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return Failed("raises", f"the process ended in this call ({how})")

    # The calls.

    def make(self, key: str, arguments: list[Any], settings: dict[str, Any]) -> None:
        """Make an object of the class under a key."""
        self._ask("make", {"key": key, "arguments": arguments, "settings": settings})

    def call(self, key: str, method: str, arguments: list[Any], keep: str | None) -> Reply:
        """Call a method of an object; without a key, a function of the class itself."""
        reply = self._ask(
            "call", {"key": key, "method": method, "arguments": arguments, "keep": keep}
        )
        kind, divided = str(reply.get("kind", "")), reply.get("divided") is True
        return Reply(reply.get("result"), reply.get("after"), kind, divided)

    def overwrite(self, values: list[Any]) -> None:
        """Write other numbers into the arrays of the last call."""
        self._ask("overwrite", {"values": values})

    def get(self, key: str, attribute: str) -> Reply:
        """Read an attribute."""
        reply = self._ask("get", {"key": key, "attribute": attribute})
        return Reply(reply.get("result"), kind=str(reply.get("kind", "")))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _in_words(raised: Any) -> str:
    if not isinstance(raised, dict):
        return "an error that cannot be read"
    line = f" (line {raised['line']} of the code that raised it)" if raised.get("line") else ""
    return f"{raised.get('type')}: {raised.get('text')}{line}"
