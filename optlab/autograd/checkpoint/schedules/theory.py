"""Costs of checkpointing schedules in closed form (Chen et al.; Griewank and Walther)."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple


def square_root(n: int) -> int:
    """Return the number of segments of ``"sqrt"``: ceil(sqrt(n)).

    Examples
    --------
    >>> [square_root(n) for n in (1, 16, 17, 200)]
    [1, 4, 5, 15]
    """
    return math.isqrt(n - 1) + 1


def first_part(n: int, snapshots: int) -> int:
    """Return the number of layers to advance before the next snapshot.

    With s snapshots and r repetitions, every m from reach(s, r - 2) to reach(s, r - 1) that leaves
    n - m layers from reach(s - 1, r - 1) to reach(s - 1, r) is optimal. Of these, the one below
    (the three cases of Griewank and Walther as one) takes the fewest snapshots.
    """
    r, s = repetitions(n, snapshots), snapshots
    best = n - reach(s - 1, r - 1) - reach(s - 2, r - 1)
    return min(max(best, reach(s, r - 2), 1), reach(s, r - 1))


def reach(snapshots: int, repetitions: int) -> int:
    """Return the longest chain that Revolve reverses with so many snapshots and repetitions.

    C(snapshots + repetitions, snapshots): the length grows like a power of either, which is why
    few snapshots and few repetitions suffice for long chains.

    Parameters
    ----------
    snapshots : int
        Inputs stored at a time.
    repetitions : int
        Largest number of unrecorded runs of a layer.

    Examples
    --------
    >>> [[reach(snapshots, repetitions) for repetitions in range(5)] for snapshots in (1, 3, 10)]
    [[1, 2, 3, 4, 5], [1, 4, 10, 20, 35], [1, 11, 66, 286, 1001]]
    """
    if snapshots < 0 or repetitions < 0:  # `first_part` asks beyond the edge of the formula
        return 0
    return math.comb(snapshots + repetitions, snapshots)


def repetitions(n: int, snapshots: int) -> int:
    """Return the smallest r with ``reach(snapshots, r) >= n``: the most unrecorded runs of a layer.

    Examples
    --------
    >>> repetitions(286, 10), repetitions(287, 10)
    (3, 4)
    """
    n, snapshots = chain_length(n), snapshot_count(snapshots)
    if snapshots == 1:
        return n - 1
    r, longest = 0, 1
    while longest < n:
        r += 1
        longest = longest * (snapshots + r) // r
    return r


def recomputations(n: int, snapshots: int) -> int:
    """Return the number of layers that `revolve` recomputes: r n - C(snapshots + r, r - 1).

    Examples
    --------
    >>> from optlab.autograd.schedules import revolve
    >>> recomputations(10, 3), revolve(10, 3).recomputed_layers
    (15, 15)
    """
    r = repetitions(n, snapshots)
    return r * n - reach(snapshots + 1, r - 1)


class Bound(NamedTuple):
    """Cost of a schedule on a chain of equal layers, each saving as much as its input takes.

    Attributes
    ----------
    schedule : str
        ``"plain"``, ``"segments"`` or ``"revolve"``.
    parameter : int
        Number of segments or snapshots; 0 for plain.
    memory : int
        Peak of what is kept, in units of one layer's input.
    recomputed : int
        Runs of layers beyond the first of each.
    """

    schedule: str
    parameter: int
    memory: int
    recomputed: int


def bounds(n: int) -> list[Bound]:
    """Return the cost of every schedule of a chain, to plot memory against recomputation.

    The unit is one layer: each saves, recorded, as much as its input takes. Plain keeps n and
    recomputes nothing. k segments keep k - 1 + floor(n / k) and recompute n. Revolve with s
    snapshots keeps min(s, n - 1) + 1 and recomputes r n - C(s + r, r - 1), the fewest for any
    schedule that stores at most s inputs and records layers one by one.

    Returns
    -------
    list of Bound
        Plain, then 1 to n segments, then Revolve with 1 to n snapshots.

    Examples
    --------
    >>> for bound in bounds(4):
    ...     print(*bound)
    plain 0 4 0
    segments 1 4 4
    segments 2 3 4
    segments 3 3 4
    segments 4 4 4
    revolve 1 2 6
    revolve 2 3 4
    revolve 3 4 3
    revolve 4 4 3
    """
    n = chain_length(n)
    every = range(1, n + 1)
    return [
        Bound("plain", 0, n, 0),
        *(Bound("segments", k, k - 1 + n // k, n) for k in every),
        *(Bound("revolve", s, min(s, n - 1) + 1, recomputations(n, s)) for s in every),
    ]


def chain_length(given: Any) -> int:
    """Validate the length of a chain and return it as an int."""
    n = whole_number(given, "n")
    if n < 1:
        raise ValueError(f"a chain of {n} layers has nothing to reverse; give at least one layer.")
    return n


def snapshot_count(given: Any) -> int:
    """Validate a number of snapshots and return it as an int."""
    snapshots = whole_number(given, "snapshots")
    if snapshots < 1:
        raise ValueError(
            f"snapshots={snapshots}: the input of the chain has to be stored, so at least 1."
        )
    return snapshots


def whole_number(given: Any, name: str) -> int:
    """Return a whole number as an int; raise TypeError for anything else."""
    if not isinstance(given, bool):
        try:
            return int(operator.index(given))
        except TypeError:
            pass
    also = ', "sqrt" or "revolve"' if name == "segments" else ""
    raise TypeError(f"{name}={given!r} is no whole number; expected an int such as 4{also}.")
