"""The executor of a block plan: NumPy's functions, or compiled loops if these pay off.

Both give the same bits and the same warnings, so only the time differs. No step waits for the
compiler: NumPy starts; when a plan has cost some milliseconds, loops that the cache on disk has are
loaded, which takes about two (without numba, whose import takes 200); when it has cost an eighth of
a second, a child process is asked for those that the cache lacks, and NumPy goes on until they are
there. A thread that compiles in this process would not do: steps beside it lost as much in waiting
for Python's lock as the compiler took. The work is counted in operations on elements, so that the
same script does the same every time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from optlab.backend.extras import missing
from optlab.plan.blocks import BlockPlan, RunsBlock
from optlab.plan.members.blocks import MemberBlocks

#: Operations on elements that NumPy does of a plan before its loops are looked up in the cache:
#: four milliseconds on one core. Adam over ten million elements reaches it in its first step.
LOOK_UP = 1 << 25
#: And before a child process compiles them: an eighth of a second, eight steps of that Adam.
COMPILE = 1 << 30
NAMES = ("auto", "numpy", "numba")

_chosen = "auto"


class Executor(Protocol):
    """An executor of a plan: the plan itself, by NumPy, or `MachineLoops`."""

    @property
    def prepare(self) -> Callable[..., Any]:
        """The function that computes what depends on the numbers of a call."""

    @property
    def afters(self) -> Sequence[Callable[..., Any]]:
        """The functions that process the sums over all blocks between two phases."""

    @property
    def block(self) -> int:
        """The number of elements of a block."""

    def phase(self, number: int, prepared: Sequence[Any]) -> RunsBlock:
        """Return the function that runs a phase on each block."""


class use_executor:
    """Choose the executor of optimizer updates, from now on or for a ``with`` block.

    Parameters
    ----------
    name : {"auto", "numpy", "numba"}
        ``"auto"`` (the default): NumPy, and numba if it is installed and pays off. ``"numpy"``:
        NumPy alone. ``"numba"``: numba wherever possible, from the first step on, which waits for
        the compiler where the cache on disk lacks a loop.

    Raises
    ------
    ValueError
        If there is no such executor.
    ModuleNotFoundError
        If numba is chosen and not installed.

    Examples
    --------
    >>> with use_executor("numpy"):
    ...     pass  # train; another executor would give the same bits
    """

    def __init__(self, name: str) -> None:
        global _chosen
        if name not in NAMES:
            raise ValueError(f"the executor must be one of {', '.join(NAMES)}; got {name!r}.")
        if name == "numba" and not has_numba():
            sentence = missing('use_executor("numba")', "numba")
            raise ModuleNotFoundError(f'{sentence} Or leave it at "auto".', name="numba")
        self._before, _chosen = _chosen, name

    def __enter__(self) -> None:
        """Do nothing; the executor is chosen already."""

    def __exit__(self, *error: object) -> None:
        global _chosen
        _chosen = self._before


def chosen_executor() -> str:
    """Return the name that `use_executor` has chosen."""
    return _chosen


@cache
def has_numba() -> bool:
    """Return whether numba is installed, without importing it."""
    return find_spec("numba") is not None


def executor_of(plan: BlockPlan | MemberBlocks, elements: int) -> Executor:
    """Return the executor of a plan, or of its rows of members, over this many elements."""
    if not may_use_loops():
        return plan
    if plan.loops is not None:
        return plan.loops or plan
    plan.worked += elements * len(plan.instructions)
    if _chosen == "auto" and (plan.worked < LOOK_UP or not has_numba()):
        return plan  # and nothing is imported
    if plan.loops_wanted is None:
        plan.loops_wanted = _loops_for(plan)
    loops = plan.loops_wanted
    there = is_compiled(loops, plan.worked) if loops else None
    plan.loops = loops if there else False if there is None else None
    return plan.loops or plan


def _loops_for(plan: BlockPlan | MemberBlocks) -> Any:
    if isinstance(plan, MemberBlocks):
        from optlab.plan.members.kernels import MemberLoops

        return MemberLoops(plan)
    from optlab.plan.numba_kernels import MachineLoops

    return MachineLoops(plan)


def may_use_loops() -> bool:
    """Return whether loops may run: NumPy is not chosen, and need not report underflow."""
    return _chosen != "numpy" and np.geterr()["under"] == "ignore"


class Compilable(Protocol):
    """Loops that a cache may have, a child process or this one may compile."""

    @property
    def problem(self) -> str:
        """Why they cannot be compiled, if so."""

    def look_up(self) -> bool:
        """Return whether they are compiled; load them if the cache has them."""

    def request(self) -> None:
        """Let a child process compile them."""

    def compile(self) -> None:
        """Compile them now."""


def is_compiled(loops: Compilable, worked: int) -> bool | None:
    """Return whether loops are compiled by now, and see to it; None if they will never be.

    Parameters
    ----------
    loops : Compilable
    worked : int
        The operations on elements that NumPy has done instead so far.
    """
    if _chosen == "numba":
        try:
            loops.compile()
        except Exception as error:  # noqa: BLE001 - any error of numba; NumPy goes on
            first_line = next(iter(str(error).strip().splitlines()), "")
            _warn_of(f"{type(error).__name__}: {first_line}")
            return None
        return True
    if worked < LOOK_UP or not has_numba():
        return False
    if loops.look_up():
        return True
    if loops.problem:
        _warn_of(loops.problem)
        return None
    if worked >= COMPILE:
        loops.request()
    return False


def _warn_of(problem: str) -> None:
    warnings.warn(
        f"numba could not compile an update ({problem}); NumPy goes on with it. "
        'optlab.plan.use_executor("numpy") asks numba no more.',
        RuntimeWarning,
        stacklevel=4,
    )
