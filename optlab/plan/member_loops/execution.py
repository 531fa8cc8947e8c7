"""The choice of an executor for a member loop, and its run over chunks of members on all cores."""

from __future__ import annotations

import sys
import warnings
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from optlab.plan import sizes
from optlab.plan.executors import chosen_executor, has_numba
from optlab.plan.member_loops import numba_loop
from optlab.plan.member_loops.numbers import Floats
from optlab.plan.member_loops.numpy_loop import BLOCK, NumpyLoop
from optlab.plan.member_loops.program import Program
from optlab.plan.threads import on_all_cores

#: Operations on numbers that NumPy does in the time that something else takes: importing numba
#: (0.4 s), compiling a loop (1.5 s), loading a compiled one (10 ms). Counted, not measured, so that
#: a script does the same every time.
_IMPORT, _COMPILE, _LOAD = 1 << 30, 3 << 30, 1 << 24
#: What NumPy has done of each program so far, by its source.
_worked: dict[str, int] = {}


class Loop(Protocol):
    """A loop that an executor runs."""

    def run(self, states: Floats, first: int) -> Any:
        """Run all steps of the members from `first` on; return where they stopped."""


def choose_executor(program: Program, members: int) -> tuple[Loop, str]:
    """Return the loop that ends sooner, and a sentence that says which it is and why.

    Machine code has to be imported, and compiled or loaded: NumPy starts with it once it has spent
    about as long on a program as that takes, or at once where the run is longer.
    """
    chosen = chosen_executor()
    if chosen == "numpy":
        return NumpyLoop(program), "NumPy, as use_executor says"
    if not numba_loop.can_compile(program):
        names = ", ".join(program.inexact)
        return NumpyLoop(program), f"NumPy, as machine code would give other bits of {names}"
    if not has_numba():
        return NumpyLoop(program), "NumPy, as numba is not installed"
    if chosen != "numba":
        source = numba_loop.source_of(program)
        work = program.work * members
        done = _worked.get(source, 0)
        price = 0 if "numba" in sys.modules else _IMPORT
        price += _LOAD if numba_loop.is_cached(program) else _COMPILE
        if done + work < price:
            _worked[source] = done + work
            return NumpyLoop(program), "NumPy, as this ends before machine code would be ready"
    try:
        return numba_loop.NumbaLoop(program), "machine code by numba"
    except Exception as error:  # noqa: BLE001 - any error of numba; NumPy gives the same numbers
        said = next(iter(str(error).strip().splitlines()), "")
        why = f"numba could not compile it ({type(error).__name__}: {said})"
        warnings.warn(f"{why}; NumPy runs the members.", RuntimeWarning, stacklevel=2)
        return NumpyLoop(program), f"NumPy, as {why}"


def run_members(loop: Loop, states: Floats, first: int = 0) -> Any:
    """Run a loop for the members whose states are columns, in place, on all cores.

    Returns the step at which each has stopped, or -1.
    """
    count = states.shape[1]
    if not isinstance(loop, NumpyLoop | numba_loop.NumbaLoop):
        return loop.run(states, first)
    unit = BLOCK if isinstance(loop, NumpyLoop) else numba_loop.LANES
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
