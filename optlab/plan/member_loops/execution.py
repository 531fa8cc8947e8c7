"""The choice of an executor for a member loop, and its run over chunks of members on all cores."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from optlab.plan import sizes
from optlab.plan.executors import LOOK_UP, chosen_executor, has_numba, is_compiled
from optlab.plan.member_loops.numba_loop import LANES, MachineCode, NumbaLoop, can_compile
from optlab.plan.member_loops.numbers import Floats
from optlab.plan.member_loops.numpy_loop import BLOCK, NumpyLoop
from optlab.plan.member_loops.program import Program
from optlab.plan.threads import on_all_cores


class Loop(Protocol):
    """A loop that an executor runs."""

    def run(self, states: Floats, first: int) -> Any:
        """Run all steps of the members from `first` on; return where they stopped."""


class Execution:
    """The executor of a program: NumPy, or machine code where it is ready and pays off.

    Nobody waits for the compiler: NumPy runs the members until a child process has compiled, which
    happens once there has been work for an eighth of a second; what the cache on disk has is loaded
    for work of some milliseconds (`optlab.plan.executors`).

    Parameters
    ----------
    program : Program
    members : int
        How many there will be, all calls together.
    """

    def __init__(self, program: Program, members: int) -> None:
        self.program = program
        self._why = self._refusal()
        self._numpy: NumpyLoop | None = None
        self._code: MachineCode | None = None
        self._work = program.work * members

    def _refusal(self) -> str:
        """Return why NumPy has to run the program whatever the work is, if so."""
        if chosen_executor() == "numpy":
            return "as use_executor says"
        if not can_compile(self.program):
            names = ", ".join(self.program.inexact)
            return f"as machine code would give other bits of {names}"
        if not has_numba():
            return "as numba is not installed"
        return ""

    def choose(self) -> tuple[Loop, str]:
        """Return the loop for the next members, and a sentence that says which it is and why."""
        why = self._why or self._not_ready()
        if not why:
            assert self._code is not None
            return self._code.loop, "machine code by numba"
        if self._numpy is None:
            self._numpy = NumpyLoop(self.program)
        return self._numpy, f"NumPy, {why}"

    def _not_ready(self) -> str:
        """Return why machine code cannot run now, if so; see to it that it can later."""
        code = self._code
        if code is None:
            code = self._code = MachineCode(self.program)
            code.shared.worked += self._work
        shared = code.shared
        ready = None if shared.agrees is False else is_compiled(shared.kernel, shared.worked)
        if ready and not code.agrees():
            ready = None
        if ready is None:
            shared.agrees = False
            self._why = (
                "as machine code gives other bits here"
                if shared.kernel.function is not None
                else "as numba could not compile it"
            )
            return self._why
        if ready:
            return ""
        if shared.worked < LOOK_UP:
            return "as this ends before machine code would be ready"
        return "until machine code is compiled"


def run_members(loop: Loop, states: Floats, first: int = 0) -> Any:
    """Run a loop for the members whose states are columns, in place, on all cores.

    Returns the step at which each has stopped, or -1.
    """
    count = states.shape[1]
    if not isinstance(loop, NumpyLoop | NumbaLoop):
        return loop.run(states, first)
    unit = BLOCK if isinstance(loop, NumpyLoop) else LANES
    parts = max(1, min(sizes.cores() * 2, count // unit))
    bounds = [i * count // parts for i in range(parts + 1)]
    stopped = np.full(count, -1, np.int64)

    def work(start: int, stop: int) -> None:
        block = np.ascontiguousarray(states[:, start:stop])
        stopped[start:stop] = loop.run(block, first + start)
        states[:, start:stop] = block

    jobs = [partial(work, a, b) for a, b in pairwise(bounds) if a < b]
    on_all_cores(jobs, count * loop.program.work)
    return stopped
