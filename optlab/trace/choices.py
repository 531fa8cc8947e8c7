"""Which steps and which parameters are chosen: the arguments of every ``sel``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np


def chosen_steps(step: Any, known: Collection[int]) -> set[int] | None:
    """Return the chosen ones of the recorded steps; None for all.

    Parameters
    ----------
    step : int, slice or list of int, optional
        Step numbers; a slice has both ends, as xarray's has.
    known : collection of int
        The steps that were recorded.

    Raises
    ------
    KeyError
        If a step was not recorded; the message has the nearest one.

    Examples
    --------
    >>> chosen_steps(slice(2, None), [1, 2, 3])
    {2, 3}
    """
    if step is None:
        return None
    if isinstance(step, slice):
        low = -np.inf if step.start is None else step.start
        high = np.inf if step.stop is None else step.stop
        inside = sorted(n for n in known if low <= n <= high)
        return set(inside[:: step.step or 1])
    wanted = {int(n) for n in np.atleast_1d(step)}
    missing = sorted(wanted.difference(known))
    if missing:
        nearest = min(known, key=lambda n: abs(n - missing[0]), default=None)
        beside = "" if nearest is None else f"; the nearest is {nearest}"
        raise KeyError(f"step {missing[0]} was not recorded{beside}")
    return wanted


def rows_of(steps: np.ndarray, wanted: set[int] | None) -> Any:
    """Return the index of the rows, of these steps, that are chosen."""
    return slice(None) if wanted is None else np.isin(steps, list(wanted))


def chosen_rows(array: np.ndarray, rows: Any) -> np.ndarray:
    """Return the chosen rows of an array; of one that begins with a start, what was before them.

    Parameters
    ----------
    array : array
        A row for each step, or one more: the values at the start, then after each step.
    rows : slice or array of bool
        What `rows_of` has returned.

    Examples
    --------
    >>> chosen_rows(np.array([5, 6, 7, 8]), rows_of(np.array([1, 2, 3]), {2, 3}))
    array([6, 7, 8])
    """
    if isinstance(rows, slice) or len(array) == len(rows):
        return array[rows]
    first = int(np.argmax(rows)) if len(rows) else 0
    return np.concatenate([array[first : first + 1], array[1:][rows]])


def chosen_names(parameter: Any, names: Collection[str]) -> list[str]:
    """Return the names of the chosen parameters, all without a choice.

    Raises
    ------
    KeyError
        If there is no parameter of a name; the message lists the names.
    """
    if parameter is None:
        return list(names)
    wanted = [parameter] if isinstance(parameter, str) else list(parameter)
    for name in wanted:
        if name not in names:
            raise KeyError(f"there is no parameter {name!r}; there is {', '.join(names) or 'none'}")
    return wanted
