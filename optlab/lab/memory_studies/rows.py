"""The rows of a memory study: one way to run the step, and a theoretical bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from optlab.autograd.checkpoint.prediction import Prediction
from optlab.backend.memory.sizes import in_words
from optlab.lab.memory_studies.runs import Way
from optlab.trace.memory.reporting import MemoryTrace


@dataclass
class MemoryRun:
    """One way to run the step, and its cost.

    Attributes
    ----------
    name : str
    way : Way
    peak : int or None
        The peak of the traced bytes, above the start of the step.
    times : list of float
        Seconds, one for each repetition; `seconds` is their median.
    recomputed_operations : int
        How many operations were recomputed, as counted.
    operations : int
        How many operations ran in total.
    recomputed_layers : int or None
        How many runs of layers there were beyond the first of each (schedules).
    predicted_operations : int or None
        How many recomputed operations the schedule predicts.
    prediction : Prediction or None
        The prediction of the schedule, if the step ran one chain.
    smallest : int or None
        Of a budget that cannot be met: the smallest that can. Nothing else is measured then.
    raised : str
        If the step raised an error: its class and its first line. Nothing else is measured then.
    difference : str
        The first difference from the plain run; empty if all is equal to the bit.
    timeline : MemoryTrace or None
        The memory trace of every array, if requested.
    """

    name: str
    way: Way
    peak: int | None = None
    times: list[float] = field(default_factory=list)
    recomputed_operations: int = 0
    operations: int = 0
    recomputed_layers: int | None = None
    predicted_operations: int | None = None
    prediction: Prediction | None = None
    smallest: int | None = None
    raised: str = ""
    difference: str = ""
    timeline: MemoryTrace | None = None

    @property
    def ran(self) -> bool:
        """Whether it was run and measured: no error, no budget that cannot be met."""
        return self.smallest is None and not self.raised

    def fails(self, smallest: int | None = None, raised: str = "") -> None:
        """Record that it cannot be run, and drop what was measured."""
        self.smallest, self.raised = smallest, raised
        self.peak, self.timeline, self.times, self.difference = None, None, [], ""

    @property
    def seconds(self) -> float | None:
        """The median time of a step, measured without any tracing."""
        return median(self.times) if self.times else None

    @property
    def span(self) -> tuple[float, float] | None:
        """The shortest and the longest time, if there are several."""
        return (min(self.times), max(self.times)) if len(self.times) > 1 else None

    @property
    def equal(self) -> bool | None:
        """Whether all results of the step equal those of the plain run, to the bit."""
        return not self.difference if self.ran else None

    @property
    def predicted_peak(self) -> int | None:
        """The peak of the stored bytes that the schedule predicts."""
        return None if self.prediction is None else self.prediction.peak

    @property
    def share(self) -> float:
        """Recomputed operations as a share of those of the plain step."""
        once = self.operations - self.recomputed_operations
        return self.recomputed_operations / once if once else 0.0

    def __repr__(self) -> str:
        if self.smallest is not None:
            return (
                f"<MemoryRun {self.name}: cannot be met, the smallest is {self.smallest:,} bytes>"
            )
        if self.raised:
            return f"<MemoryRun {self.name}: raised {self.raised}>"
        said = "equal to plain" if self.equal else self.difference
        peak = "" if self.peak is None else f"peak {in_words(self.peak)}, "
        return f"<MemoryRun {self.name}: {peak}{said}>"


class Bound(NamedTuple):
    """A theoretical bound: a schedule with a number of segments or snapshots.

    Attributes
    ----------
    schedule : str
        "plain", "segments" or "revolve".
    parameter : int
        The number of segments or snapshots.
    nbytes : int
        The peak.
    seconds : float
    recomputed_layers : int
    """

    schedule: str
    parameter: int
    nbytes: int
    seconds: float
    recomputed_layers: int


def time_in_words(seconds: float) -> str:
    """Return a time as text.

    Examples
    --------
    >>> time_in_words(0.01234), time_in_words(2.5), time_in_words(2.5e-5)
    ('12.3 ms', '2.50 s', '25 µs')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.1f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.0f} µs"


def span_in_words(low: float, high: float) -> str:
    """Return a range of times as text, both in the unit of the longer one.

    Examples
    --------
    >>> span_in_words(0.01234, 0.0151), span_in_words(0.9, 2.5), span_in_words(2e-5, 3.5e-5)
    ('12.3–15.1 ms', '0.90–2.50 s', '20–35 µs')
    """
    if high >= 1:
        return f"{low:.2f}–{high:.2f} s"
    if high >= 1e-3:
        return f"{1e3 * low:.1f}–{1e3 * high:.1f} ms"
    return f"{1e6 * low:.0f}–{1e6 * high:.0f} µs"


def first_line(error: BaseException) -> str:
    r"""Return the class of an error and the first line of its message.

    Examples
    --------
    >>> first_line(ValueError("shapes (3,) and (4,)\nTry another.")), first_line(MemoryError())
    ('ValueError: shapes (3,) and (4,)', 'MemoryError')
    """
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def shortened(text: str, letters: int = 90) -> str:
    """Truncate a text that is longer than `letters`.

    Examples
    --------
    >>> shortened("not the same", 8)
    'not the…'
    """
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"
