"""What a sweep has found of every cell, filled in chunk by chunk."""

from __future__ import annotations

import numpy as np

#: How a cell ended.
DONE, DIVERGED, RAISED, MISSING = "done", "diverged", "raised", "missing"


class Outcome:
    """The results of all members so far.

    Attributes
    ----------
    loss : array, shape (members,)
        After the last step.
    point : array, shape (members, dimension)
    stopped : array of int, shape (members,)
        The step at which the loss was no longer finite, or -1.
    known : array of bool, shape (members,)
        Whether the member has run.
    errors : dict of int to str
        What members raised.
    said : list of str
        What else there is to say of how the cells ran.
    interrupted : bool
    """

    def __init__(self, members: int, dimension: int) -> None:
        self.loss = np.full(members, np.nan)
        self.point = np.full((members, dimension), np.nan)
        self.stopped = np.full(members, -1)
        self.known = np.zeros(members, dtype=bool)
        self.errors: dict[int, str] = {}
        self.said: list[str] = []
        self.interrupted = False
        #: How many cells of each group ran in a way: as loops over so many steps, or by themselves.
        self._ways: dict[tuple[int | None, str], list[int]] = {}

    def ran(self, count: int, why: str, loop: int | None = None) -> None:
        """Remember how the cells of a group ran.

        Parameters
        ----------
        count : int
        why : str
        loop : int, optional
            As one loop over so many steps; else one after another.
        """
        self._ways.setdefault((loop, why), []).append(count)

    @property
    def execution(self) -> str:
        """How the cells ran, and why; a line for each way.

        Examples
        --------
        >>> outcome = Outcome(30, 2)
        >>> for count in (10, 10):
        ...     outcome.ran(count, "by NumPy", loop=500)
        >>> outcome.ran(10, "a branch on a value")
        >>> print(outcome.execution)
        20 cells in 2 loops over 500 steps: by NumPy
        10 cells one after another: a branch on a value
        """
        lines = []
        for (loop, why), counts in self._ways.items():
            loops = "one loop" if len(counts) == 1 else f"{len(counts)} loops"
            how = "one after another" if loop is None else f"in {loops} over {loop} steps"
            lines.append(f"{cells(sum(counts))} {how}: {why}")
        return "\n".join([*lines, *dict.fromkeys(self.said)])

    @property
    def status(self) -> np.ndarray:
        """How each member ended: "done", "diverged", "raised" or "missing"."""
        found = np.where(self.stopped >= 0, DIVERGED, DONE)
        found[list(self.errors)] = RAISED
        return np.where(self.known, found, MISSING)


def cells(count: int) -> str:
    """Return a number of cells in words.

    Examples
    --------
    >>> cells(1), cells(20)
    ('1 cell', '20 cells')
    """
    return f"{count} cell{'s' * (count != 1)}"
