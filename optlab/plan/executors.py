"""The executor of a block plan: NumPy's functions, or compiled loops if these pay off.

Both give the same bits and the same warnings, so only the time differs. Measured with Adam on two
cores, importing numba takes 0.2 s and compiling a rule 0.2 to 0.5 s; steps that ran beside a thread
that compiles lost as much in waiting for Python's lock, so compilation is synchronous. NumPy
starts, and when it has spent about as long on a plan as compilation takes, the loops are compiled.
So a short run never waits for the compiler, and a long one waits once, about as long as it has run
so far; from then on a step takes about half the time. The work is counted in operations on
elements, so that the same script does the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from optlab.plan.blocks import BlockPlan

#: Operations on elements that NumPy does of a plan before its loops are compiled: half a second on
#: one core. Adam over a million elements reaches it in 330 steps, over ten million in 33.
WORTH = 1 << 32
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

    def phase(self, number: int, prepared: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        """Return the function that runs a phase on each block."""


class use_executor:
    """Choose the executor of optimizer updates, from now on or for a ``with`` block.

    Parameters
    ----------
    name : {"auto", "numpy", "numba"}
        ``"auto"`` (the default): NumPy, and numba if it is installed and pays off. ``"numpy"``:
        NumPy alone. ``"numba"``: numba wherever possible, from the first step on.

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
            raise ModuleNotFoundError(
                'numba is not installed. Install it with `pip install "optlab[fast]"`, or leave '
                'the executor at "auto".'
            )
        self._before, _chosen = _chosen, name

    def __enter__(self) -> None:
        """Do nothing; the executor is chosen already."""

    def __exit__(self, *error: object) -> None:
        global _chosen
        _chosen = self._before


@cache
def has_numba() -> bool:
    """Return whether numba is installed, without importing it."""
    return find_spec("numba") is not None


def executor_of(plan: BlockPlan, elements: int) -> Executor:
    """Return the executor of a plan over this many elements."""
    if _chosen == "numpy" or np.geterr()["under"] != "ignore":
        return plan  # machine loops do not detect underflow
    if not plan.loops_tried:
        plan.worked += elements * len(plan.instructions)
        if _chosen == "auto" and (plan.worked < WORTH or not has_numba()):
            return plan
        from optlab.plan.machine_loops import machine_loops_of

        plan.loops_tried = True
        plan.loops = machine_loops_of(plan)
    return plan.loops or plan
