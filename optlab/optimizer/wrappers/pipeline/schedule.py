"""Schedules of a pipeline: in which order a worker takes its passes, and how long that takes.

GPipe (Huang et al. 2019, arXiv 1811.06965) runs all micro-batches forward, then all backward. 1F1B
(Narayanan et al. 2019, doi 10.1145/3341301.3359646; without weight stashing, as in Narayanan et al.
2021, arXiv 2104.04473) begins with p - s - 1 forward passes in section s of p, counted from 0, and
then takes one forward, one backward pass in turn: a section holds the saved values of p - s
micro-batches at most, in place of all. Both have the same bubble, and both run the micro-batches
in their order, backward too: the order in which gradients are added is that of the micro-batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from optlab.optimizer.wrappers.pipeline.timeline import (
    BACKWARD,
    FORWARD,
    PipelineTrace,
    Span,
)

SCHEDULES = ("1F1B", "GPipe")


class Pass(NamedTuple):
    """One pass that a worker takes: its phase and its micro-batch."""

    phase: str
    micro_batch: int


def checked_schedule(schedule: str) -> str:
    """Return the name of a schedule as it is spelled here.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    known = {name.lower(): name for name in SCHEDULES}
    if not isinstance(schedule, str) or schedule.lower() not in known:
        raise ValueError(f"schedule is '1F1B' or 'GPipe'; got {schedule!r}.")
    return known[schedule.lower()]


def passes(
    schedule: str,
    sections: int,
    section: int,
    micro_batches: int,
    workers: int = 1,
    worker: int = 0,
) -> list[Pass]:
    """Return the passes of one worker, in order.

    The workers of a section take the micro-batches in turn.

    Examples
    --------
    >>> [f"{p.phase[0]}{p.micro_batch}" for p in passes("1F1B", 2, 0, 3)]
    ['f0', 'f1', 'b0', 'f2', 'b1', 'b2']
    >>> [f"{p.phase[0]}{p.micro_batch}" for p in passes("GPipe", 2, 0, 3)]
    ['f0', 'f1', 'f2', 'b0', 'b1', 'b2']
    """
    own = range(worker, micro_batches, workers)
    if schedule == "GPipe":
        ahead = len(own)
    else:
        ahead = min(len(own), math.ceil((sections - section) / workers) - 1)
    order = [Pass(FORWARD, i) for i in own[:ahead]]
    for done, i in enumerate(own[ahead:]):
        order += [Pass(FORWARD, i), Pass(BACKWARD, own[done])]
    return order + [Pass(BACKWARD, i) for i in own[len(own) - ahead :]]


def bubble(sections: int, micro_batches: int) -> float:
    """Return the idle part of the time of equal sections, (p - 1)/(m + p - 1).

    Examples
    --------
    >>> bubble(4, 12)
    0.2
    """
    return (sections - 1) / (micro_batches + sections - 1)


def simulate(
    sections: int,
    micro_batches: int,
    schedule: str = "1F1B",
    *,
    forward: float | Sequence[float] = 1.0,
    backward: float | Sequence[float] = 2.0,
    workers: Sequence[int] | None = None,
    queue_size: int = 30,
    nbytes: int | Sequence[int] = 0,
) -> PipelineTrace:
    """Return the timeline of a step whose passes take these seconds.

    Parameters
    ----------
    sections, micro_batches : int
    schedule : str
        "1F1B" or "GPipe".
    forward, backward : float or sequence of float
        The seconds of a pass, of all sections or of each.
    workers : sequence of int, optional
        How many each section has; one by default.
    queue_size : int
        The places of a queue between sections. A worker that finds it full waits.
    nbytes : int or sequence of int
        The bytes that a section saves for the backward pass of a micro-batch.

    Returns
    -------
    PipelineTrace

    Raises
    ------
    ValueError
        If a number is out of range, or the workers would wait for each other forever.

    Examples
    --------
    >>> trace = simulate(4, 12)
    >>> round(trace.bubble, 3), trace.most_held
    (0.2, [4, 3, 2, 1])
    >>> simulate(4, 12, "GPipe").most_held
    [12, 12, 12, 12]
    """
    schedule = checked_schedule(schedule)
    for name, value in (
        ("sections", sections),
        ("micro_batches", micro_batches),
        ("queue_size", queue_size),
    ):
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    seconds = {FORWARD: _each(forward, sections), BACKWARD: _each(backward, sections)}
    saved = [int(n) for n in _each(nbytes, sections)]
    counts = [1] * sections if workers is None else list(workers)
    if len(counts) != sections or min(counts) < 1:
        raise ValueError(
            f"workers has a number of at least 1 for each of the {sections} sections; got "
            f"{workers!r}."
        )
    run = _Simulation(sections, micro_batches, seconds, counts, queue_size)
    spans = run.spans(schedule)
    return PipelineTrace(
        _with_held(spans, saved),
        [f"section {s}" for s in range(sections)],
        micro_batches, schedule, counts, queue_size, simulated=True,
    )  # fmt: skip


def _each(value: float | Sequence[float], sections: int) -> list[float]:
    values = [value] * sections if isinstance(value, (int, float)) else list(value)
    if len(values) != sections or not all(math.isfinite(x) and x >= 0 for x in values):
        raise ValueError(
            f"seconds and bytes are a number of at least 0, or one for each of the {sections} "
            f"sections; got {value!r}."
        )
    return values


class _Simulation:
    """The clock of each worker, and when each micro-batch was put into and taken from a queue."""

    def __init__(
        self,
        sections: int,
        micro_batches: int,
        seconds: dict[str, list[float]],
        counts: list[int],
        queue_size: int,
    ) -> None:
        self.sections, self.micro_batches = sections, micro_batches
        self.seconds, self.counts, self.queue_size = seconds, counts, queue_size
        #: When section s got or left a micro-batch, by phase.
        self.put: dict[tuple[str, int, int], float] = {}
        self.taken: dict[tuple[str, int, int], float] = {}

    def spans(self, schedule: str) -> list[Span]:
        """Run all workers to their end."""
        places = [(s, w) for s, count in enumerate(self.counts) for w in range(count)]
        left = {
            (s, w): passes(schedule, self.sections, s, self.micro_batches, self.counts[s], w)
            for s, w in places
        }
        clock = dict.fromkeys(places, 0.0)
        at = dict.fromkeys(places, 0)
        computed: dict[tuple[int, int], float] = {}
        spans: list[Span] = []
        moved = True
        while moved:
            moved = False
            for s, w in places:
                while at[s, w] < len(left[s, w]):
                    phase, i = left[s, w][at[s, w]]
                    if (s, w) not in computed:
                        ready = self._ready(phase, s, i)
                        if ready is None:
                            break
                        start = max(clock[s, w], ready)
                        self.taken[phase, s, i] = start
                        computed[s, w] = end = start + self.seconds[phase][s]
                        spans.append(Span(s, w, phase, i, start, end))
                        moved = True
                    put = self._room(phase, s, i, computed[s, w])
                    if put is None:
                        break
                    self.put[phase, s, i] = clock[s, w] = put
                    del computed[s, w]
                    at[s, w] += 1
                    moved = True
        if any(at[place] < len(left[place]) for place in places):
            raise ValueError(
                f"with queues of {self.queue_size} the workers {self.counts} of the sections wait "
                "for each other forever; give a larger queue_size."
            )
        return spans

    def _before(self, phase: str, s: int) -> int:
        """Return the section from which a section gets micro-batches in a phase."""
        return s - 1 if phase == FORWARD else s + 1

    def _ready(self, phase: str, s: int, i: int) -> float | None:
        """Return when a section can take a micro-batch; None if that is not known yet."""
        before = self._before(phase, s)
        if before < 0:
            return 0.0
        if before == self.sections:
            return self.put.get((FORWARD, s, i))
        return self.put.get((phase, before, i))

    def _room(self, phase: str, s: int, i: int, end: float) -> float | None:
        """Return when a result finds room in the queue; None if that is not known yet."""
        after = s + 1 if phase == FORWARD else s - 1
        if not 0 <= after < self.sections:
            return end
        if i > 0:
            previous = self.put.get((phase, s, i - 1))  # the queue keeps the order
            if previous is None:
                return None
            end = max(end, previous)
        if i >= self.queue_size:
            gone = self.taken.get((phase, after, i - self.queue_size))
            if gone is None:
                return None
            end = max(end, gone)
        return end


def _with_held(spans: list[Span], saved: list[int]) -> list[Span]:
    """Add to simulated spans what each section holds at their end."""
    held = [0] * len(saved)
    found = []
    order = {FORWARD: 1, BACKWARD: 0}  # at one time, what is freed counts first
    for one in sorted(spans, key=lambda x: (x.end, order[x.phase], x.section)):
        held[one.section] += 1 if one.phase == FORWARD else -1
        count = held[one.section]
        found.append(one._replace(held=count, held_bytes=count * saved[one.section]))
    return found
