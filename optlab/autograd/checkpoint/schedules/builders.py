"""Checkpointing schedules: plain, in segments, and Revolve.

They trade memory for recomputation.

- `plain` records every layer: most memory, no recomputation.
- `in_segments` stores one input a segment and recomputes each segment once.
- `revolve` stores a limited number of inputs and recomputes the fewest layers possible.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import Any

from optlab.autograd.checkpoint.schedules.actions import (
    Action,
    Advance,
    Back,
    Free,
    Record,
    Restore,
    Snapshot,
)
from optlab.autograd.checkpoint.schedules.schedule import Schedule
from optlab.autograd.checkpoint.schedules.theory import (
    chain_length,
    first_part,
    snapshot_count,
    square_root,
    whole_number,
)

_NAMES = ("sqrt", "revolve")


def plain(n: int) -> Schedule:
    """Build the schedule without recomputation: each layer is recorded as it runs.

    Parameters
    ----------
    n : int
        Length of the chain.

    Examples
    --------
    >>> plain(3).actions
    (Record(start=0, stop=3), Back(start=0, stop=3))
    """
    n = chain_length(n)
    return Schedule("plain", n, (Record(0, n), Back(0, n)))


def in_segments(n: int, k: int | str) -> Schedule:
    """Build the schedule of `k` segments: their inputs are stored, each segment runs twice.

    Forward records nothing. Backward takes segment after segment, the last first: each runs once
    more, recorded, before its backward pass. So every layer runs twice, also those of the last
    segment. Segments are as even as possible; where their lengths differ (by one), the longer ones
    come first, since fewer inputs are still stored when they are recorded.

    If every layer saves as much as its input takes, at most k - 1 + floor(n / k) of these units
    are kept. Chen et al. show that a sum of this kind, n / k for the segment and k for the inputs,
    is smallest at k = sqrt(n). ``"sqrt"`` rounds that up: then no other k keeps less.

    Parameters
    ----------
    n : int
        Length of the chain.
    k : int or "sqrt"
        Number of segments, 1 to `n`. With 1, backward begins with the whole chain recorded.
        Layers that save c times the size of their input need least at k = sqrt(c n).

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError
        If `k` is not in 1 ... `n`.

    References
    ----------
    T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016,
    section 4, https://arxiv.org/abs/1604.06174

    Examples
    --------
    >>> in_segments(5, 2).forward
    (Snapshot(layer=0), Advance(start=0, stop=3), Snapshot(layer=3), Advance(start=3, stop=5))
    >>> in_segments(200, "sqrt")
    <Schedule sqrt (15 segments): 200 layers, 200 layer runs recomputed, at most 15 inputs stored>
    """
    n = chain_length(n)
    if isinstance(k, str):
        if k != "sqrt":
            raise ValueError(f'segments of {n} layers: k is a whole number or "sqrt", got {k!r}.')
        return _segments(n, square_root(n), "sqrt ({})")
    k = whole_number(k, "segments")
    if not 1 <= k <= n:
        what = "at most one segment a layer" if k > n else "at least one segment"
        raise ValueError(
            f"segments={k} of a chain of {n} layers: expected {what}, so 1 to {n}. Try {n} to "
            f'run each layer again by itself, or "sqrt" ({square_root(n)} segments here).'
        )
    return _segments(n, k, "{}")


@lru_cache(maxsize=128)
def _segments(n: int, k: int, name: str) -> Schedule:
    size, longer = divmod(n, k)
    bounds = [0]
    for segment in range(k):
        bounds.append(bounds[-1] + size + (segment < longer))
    pairs = list(pairwise(bounds))
    forward: list[Action] = []
    backward: list[Action] = []
    for start, stop in pairs:
        forward += [Snapshot(start), Advance(start, stop)]
    for start, stop in reversed(pairs):
        backward += [Restore(start), Free(start), Record(start, stop), Back(start, stop)]
    return Schedule(name.format(_counted(k, "segment")), n, (*forward, *backward))


def revolve(n: int, snapshots: int) -> Schedule:
    """Build the schedule of binomial checkpointing: the fewest layers run again.

    At most `snapshots` inputs are stored at a time, that of the chain included, and layers are
    recorded one by one, each just before its backward pass. Forward stores the inputs where they
    pay most and records the last layer. Backward then treats each stretch between stored inputs
    as a chain of its own: it advances to an intermediate layer, stores the input there with a
    snapshot that has become free, and so on. With r the smallest number for which
    C(snapshots + r, snapshots) >= n, no layer runs more than r times unrecorded, and

        r n - C(snapshots + r, r - 1)

    layers run unrecorded altogether, which no schedule of this kind can beat. Each layer's recorded
    run comes on top, and its first run is forward's own: so it is also the number of recomputed
    layers. Of the optimal schedules, this one takes the fewest snapshots.

    Parameters
    ----------
    n : int
        Length of the chain.
    snapshots : int
        Largest number of inputs stored at a time. More than n - 1 are never needed.

    Returns
    -------
    Schedule

    Raises
    ------
    ValueError
        If `snapshots` is less than 1.

    References
    ----------
    A. Griewank, A. Walther, "Algorithm 799: Revolve", ACM Transactions on Mathematical Software
    26(1), 2000, https://doi.org/10.1145/347837.347846

    Examples
    --------
    >>> revolve(10, 3)
    <Schedule revolve (3 snapshots): 10 layers, 15 layer runs recomputed, at most 3 inputs stored>
    >>> revolve(3, 1).layer_runs
    (3, 2, 1)
    """
    return _revolve(chain_length(n), snapshot_count(snapshots))


@lru_cache(maxsize=128)
def _revolve(n: int, snapshots: int) -> Schedule:
    name = f"revolve ({_counted(snapshots, 'snapshot')})"
    actions: list[Action] = []
    stored: set[int] = set()

    def store(layer: int) -> None:
        actions.append(Snapshot(layer))
        stored.add(layer)

    if n > 1:
        store(0)
    at: int | None = 0
    waiting = [(0, n, min(snapshots, n))]  # stretches left to backpropagate, the last one on top
    while waiting:
        start, stop, left = waiting.pop()
        if at != start:
            actions.append(Restore(start))
        if stop - start == 1:
            if start in stored:
                actions.append(Free(start))
            actions += [Record(start, stop), Back(start, stop)]
            at = None
            continue
        at = start + first_part(stop - start, left)
        actions.append(Advance(start, at))
        if stop - at > 1:  # a single layer is recorded at once
            store(at)
        waiting += [(start, at, left), (at, stop, left - 1)]
    return Schedule(name, n, tuple(actions))


def chosen(n: int, segments: Any = 4, snapshots: int | None = None) -> Schedule:
    """Build the schedule that ``segments=`` names, for a chain of `n` layers.

    Parameters
    ----------
    n : int
        Length of the chain.
    segments : int, "sqrt", "revolve" or Schedule
        A number of segments; ``"sqrt"`` for about sqrt(n) of them; ``"revolve"`` for binomial
        checkpointing; or a schedule of your own.
    snapshots : int, optional
        With ``"revolve"``, the largest number of inputs stored at a time, that of the chain
        included. By default as many as ``"sqrt"`` stores, so that the two compare.

    Raises
    ------
    TypeError, ValueError
        If `segments` is none of these, or does not fit the chain.

    Examples
    --------
    >>> chosen(16, 4)
    <Schedule 4 segments: 16 layers, 16 layer runs recomputed, at most 4 inputs stored>
    >>> chosen(16, "revolve")
    <Schedule revolve (4 snapshots): 16 layers, 27 layer runs recomputed, at most 4 inputs stored>
    """
    n = chain_length(n)
    if isinstance(segments, str) and segments == "revolve":
        return revolve(n, square_root(n) if snapshots is None else snapshots)
    if snapshots is not None:
        raise ValueError(
            f'snapshots={snapshots!r} belongs to segments="revolve"; got segments={segments!r}.'
        )
    if isinstance(segments, Schedule):
        if segments.layers != n:
            raise ValueError(
                f"the schedule {segments.name!r} is for {segments.layers} layers, and the chain "
                f"has {n}."
            )
        return segments
    if isinstance(segments, str) and segments != "sqrt":
        close = get_close_matches(segments.lower(), _NAMES, 1)
        meant = (
            f"Did you mean {close[0]!r}?" if close else f'Expected 1 to {n}, "sqrt" or "revolve".'
        )
        raise ValueError(f"segments={segments!r} is no schedule. {meant}")
    return in_segments(n, segments)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
