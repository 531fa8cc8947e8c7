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
        How the groups ran, and why.
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

    @property
    def status(self) -> np.ndarray:
        """How each member ended: "done", "diverged", "raised" or "missing"."""
        found = np.where(self.stopped >= 0, DIVERGED, DONE)
        found[list(self.errors)] = RAISED
        return np.where(self.known, found, MISSING)
