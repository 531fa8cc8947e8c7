"""The arguments of one batched call: its ensembles, and their axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from optlab.backend.ensemble.array import EnsembleArray

#: Types that hold no ensemble, which most arguments have.
_LEAVES = frozenset([np.ndarray, int, float, bool, str, type(None), type, np.dtype, np.ufunc])


def _collect(x: Any, found: list[Any]) -> None:
    """Append the ensembles in nested tuples, lists and dicts to `found`."""
    if isinstance(x, EnsembleArray):
        found.append(x)
    elif isinstance(x, (tuple, list, dict)):
        for part in x.values() if isinstance(x, dict) else x:
            if type(part) not in _LEAVES:
                _collect(part, found)


class Call:
    """One call of a function with ensembles among its arguments.

    The innermost ensembles (those of the highest level) are batched over; everything else is shared
    by their members, ensembles of an outer level included.
    """

    __slots__ = ("count", "level")

    count: int
    level: int

    def __init__(self, *arguments: Any) -> None:
        found: list[Any] = []
        _collect(arguments, found)
        if len(found) == 1:
            self.level, self.count = found[0].level, len(found[0].members)
            return
        self.level = max([x.level for x in found])
        counts = {x.member_count for x in found if x.level == self.level}
        if len(counts) > 1:
            raise ValueError(
                f"ensembles of {' and '.join(map(str, sorted(counts)))} members meet: they must "
                "have equally many. (To share an array among all members, give it as it is.)"
            )
        self.count = counts.pop()

    def has(self, x: Any) -> bool:
        """Return whether `x` is an ensemble of this call."""
        return isinstance(x, EnsembleArray) and x.level == self.level

    def wrap(self, y: Any) -> Any:
        """Wrap results whose first axis counts the members as ensembles."""
        if isinstance(y, tuple):
            return getattr(type(y), "_make", tuple)([self.wrap(part) for part in y])
        if isinstance(y, list):
            return [self.wrap(part) for part in y]
        return EnsembleArray(y, self.level)

    def stacked(self, x: Any) -> Any:
        """Return the members of `x` along a first axis; broadcast a shared array to it."""
        if self.has(x):
            return x.members
        x = as_array(x)
        return np.broadcast_to(x, (self.count, *np.shape(x)))

    def padded(self, x: Any, ndim: int) -> Any:
        """Return `x` with axes of length 1 such that one member broadcasts as `ndim` axes do."""
        if not self.has(x) or x.ndim == ndim:
            return x.members if self.has(x) else x
        missing = ndim - x.ndim
        return x.members.reshape((self.count,) + (1,) * missing + x.shape)

    def aligned(self, arrays: Any) -> list[Any]:
        """Return arrays that broadcast by the axes of one member."""
        ndim = max([x.ndim if hasattr(x, "ndim") else np.ndim(x) for x in arrays])
        return [self.padded(x, ndim) if self.has(x) else x for x in arrays]

    def member(self, x: Any, k: int) -> Any:
        """Return the k-th member's value of `x`."""
        if self.has(x):
            return x.members[k]
        if isinstance(x, (tuple, list)):
            return type(x)(self.member(part, k) for part in x)
        if isinstance(x, dict):
            return {key: self.member(part, k) for key, part in x.items()}
        return x


def as_array(x: Any) -> Any:
    """Return `x` as an array; return an array of any type unchanged."""
    return x if hasattr(x, "__array_function__") else np.asarray(x)


def shifted(axis: Any, ndim: int) -> Any:
    """Return the axis (or axes) of one member as axes of the stacked members.

    Examples
    --------
    >>> shifted(-1, 2), shifted((0, 1), 2)
    (2, (1, 2))
    """
    if isinstance(axis, (tuple, list)):
        return tuple(a + 1 for a in normalize_axis_tuple(axis, ndim))
    return normalize_axis_index(axis, ndim) + 1
