"""Who runs a block plan: NumPy's functions, or machine loops where these pay.

Both give the same bits and the same warnings, so it shows in the time alone. Measured with Adam on
two cores, to import numba takes 0.2 s and to compile a rule 0.2 to 0.5 s; steps that went on beside
a thread that compiles lost as much in waiting for Python's lock, so it is done at once. NumPy
begins, and when it has spent about as long on a plan as compiling takes, the loops are compiled. So
a short run never waits for a compiler, and a long one waits once, about as long as it has worked so
far; from then on a step takes about half the time. The spending is counted in operations on
elements, for the same script to do the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from optlab.plan.blocks import BlockPlan

#: So many operations on elements NumPy does of a plan before its loops are compiled: half a second
#: on one core. Adam over a million elements gets there in 330 steps, over ten million in 33.
WORTH = 1 << 32
NAMES = ("auto", "numpy", "numba")

_chosen = "auto"


class Executor(Protocol):
    """What runs a plan: the plan itself does, by NumPy, and `MachineLoops` does.

    Attributes
    ----------
    prepare : callable
        Takes the numbers of a call, gives what is computed from them.
    afters : sequence of callable
        What is done with sums over all blocks between two phases.
    block : int
        Of how many elements its blocks are.
    """

    @property
    def prepare(self) -> Callable[..., Any]:
        """What is computed from the numbers of a call."""

    @property
    def afters(self) -> Sequence[Callable[..., Any]]:
        """What is done between two phases."""

    @property
    def block(self) -> int:
        """Of how many elements its blocks are."""

    def phase(self, number: int, prepared: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
        """Give what is done to each block in a phase."""


class use_executor:
    """Choose who runs the updates of optimizers, from now on or for the length of a ``with``.

    Parameters
    ----------
    name : {"auto", "numpy", "numba"}
        ``"auto"`` (the default): NumPy, and numba where it is installed and pays. ``"numpy"``:
        NumPy alone. ``"numba"``: numba wherever it can, from the first step on.

    Raises
    ------
    ValueError
        If there is no such executor.
    ModuleNotFoundError
        If numba is asked for and is not installed.

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
        """Nothing is to be done any more."""

    def __exit__(self, *error: object) -> None:
        global _chosen
        _chosen = self._before


@cache
def has_numba() -> bool:
    """Say whether numba is installed; it is not imported."""
    return find_spec("numba") is not None


def executor_of(plan: BlockPlan, elements: int) -> Executor:
    """Give who runs a plan over so many elements now."""
    if _chosen == "numpy" or np.geterr()["under"] != "ignore":
        return plan  # machine loops do not see a number become too small
    if not plan.loops_tried:
        plan.worked += elements * len(plan.instructions)
        if _chosen == "auto" and (plan.worked < WORTH or not has_numba()):
            return plan
        from optlab.plan.machine_loops import machine_loops_of

        plan.loops_tried = True
        plan.loops = machine_loops_of(plan)
    return plan.loops or plan
