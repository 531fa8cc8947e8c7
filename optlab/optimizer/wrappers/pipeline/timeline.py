"""What the workers of a pipeline did in one step: spans of forward and backward passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from optlab.backend.display import Rendered

FORWARD, BACKWARD = "forward", "backward"


class Span(NamedTuple):
    """One pass of one micro-batch through one section.

    Attributes
    ----------
    section, worker, micro_batch : int
    phase : str
        "forward" or "backward".
    start, end : float
        Seconds since the step began.
    held : int
        The micro-batches whose saved values the section holds when the pass has ended.
    held_bytes : int
        The bytes of these values.
    """

    section: int
    worker: int
    phase: str
    micro_batch: int
    start: float
    end: float
    held: int = 0
    held_bytes: int = 0


class PipelineTrace(Rendered):
    """The timeline of one pipelined step, measured or simulated.

    Attributes
    ----------
    spans : list of Span
        In the order in which they ended.
    sections : list of str
        What each section holds.
    micro_batches : int
    schedule : str
        "1F1B" or "GPipe".
    workers : list of int
        The number of workers of each section.
    queue_size : int
    simulated : bool
        Whether no section ran.

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.nn.Sequential(ol.nn.Linear(4, 8), ol.nn.Tanh(), ol.nn.Linear(8, 1))
    >>> pipeline = ol.optimizer.PipelineOptimizer(
    ...     ol.optimizer.SGD(0.1, parameters=model.parameters()), [model[1]], num_microbatches=4
    ... )
    >>> loss = pipeline.step(model, ol.nn.MSELoss(), ol.ones([8, 4]), ol.zeros([8, 1]))
    >>> pipeline.trace
    <PipelineTrace of 2 sections, 4 micro-batches, 1F1B: 16 passes>
    >>> pipeline.trace.predicted_bubble
    0.2
    >>> pipeline.trace.most_held
    [2, 1]
    """

    drawn_as = "pipeline"

    def __init__(
        self,
        spans: Sequence[Span],
        sections: Sequence[str],
        micro_batches: int,
        schedule: str,
        workers: Sequence[int],
        queue_size: int,
        simulated: bool = False,
    ) -> None:
        self.spans = sorted(spans, key=lambda one: (one.end, one.section))
        self.sections = list(sections)
        self.micro_batches = micro_batches
        self.schedule = schedule
        self.workers = list(workers)
        self.queue_size = queue_size
        self.simulated = simulated

    @property
    def duration(self) -> float:
        """The seconds from the first pass to the end of the last."""
        if not self.spans:
            return 0.0
        return max(one.end for one in self.spans) - min(one.start for one in self.spans)

    @property
    def busy(self) -> list[float]:
        """The seconds that each worker computed, section after section."""
        busy = dict.fromkeys(self.places, 0.0)
        for one in self.spans:
            busy[one.section, one.worker] += one.end - one.start
        return list(busy.values())

    @property
    def places(self) -> list[tuple[int, int]]:
        """The section and number of each worker."""
        return [(s, w) for s, count in enumerate(self.workers) for w in range(count)]

    @property
    def bubble(self) -> float:
        """The idle part of the workers' time, from 0 to 1."""
        whole = self.duration * len(self.places)
        return 1.0 - sum(self.busy) / whole if whole else 0.0

    @property
    def predicted_bubble(self) -> float:
        """The bubble of equal sections with a worker each, (p - 1)/(m + p - 1)."""
        p = len(self.sections)
        return (p - 1) / (self.micro_batches + p - 1)

    @property
    def most_held(self) -> list[int]:
        """The most micro-batches whose saved values each section held at a time."""
        return self._most("held")

    @property
    def most_bytes(self) -> list[int]:
        """The most bytes of saved values that each section held at a time."""
        return self._most("held_bytes")

    def _most(self, what: str) -> list[int]:
        most = [0] * len(self.sections)
        for one in self.spans:
            most[one.section] = max(most[one.section], int(getattr(one, what)))
        return most

    def summary(self) -> str:
        """Return the figures of the step in words."""
        p, m = len(self.sections), self.micro_batches
        held = ", ".join(map(str, self.most_held))
        return (
            f"{self.schedule}, {p} section{'s' * (p != 1)}, {m} micro-batch{'es' * (m != 1)}: "
            f"{self.bubble:.0%} of the workers' time is idle, where equal sections would have "
            f"{self.predicted_bubble:.0%}. Micro-batches held by section: {held}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as plain numbers and lists."""
        return {
            "spans": [tuple(one) for one in self.spans],
            "sections": self.sections,
            "micro_batches": self.micro_batches,
            "schedule": self.schedule,
            "workers": self.workers,
            "queue_size": self.queue_size,
            "simulated": self.simulated,
        }

    def __repr__(self) -> str:
        p, m = len(self.sections), self.micro_batches
        return (
            f"<PipelineTrace of {p} section{'s' * (p != 1)}, {m} micro-batch{'es' * (m != 1)}, "
            f"{self.schedule}: {len(self.spans)} passes{', simulated' * self.simulated}>"
        )
