"""What a memory study found: one row a way to run the step, as table, picture and words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from optlab.autograd.chain_costs import Prediction
from optlab.autograd.schedules import in_segments, plain, revolve
from optlab.backend import display
from optlab.backend.sizes import in_words
from optlab.lab.memory_runs import Way
from optlab.nn.pages import FONT, QUIET
from optlab.nn.summary import bytes_in_words
from optlab.trace.memory import MemoryTrace
from optlab.trace.memory_tables import html_table, lines_of

#: Of a bound, so many points are computed at most.
_POINTS = 40


@dataclass
class MemoryRun:
    """One way to run the step, and what it cost.

    Attributes
    ----------
    name : str
    way : Way
    peak : int or None
        Traced bytes at the highest point, above the start of the step.
    times : list of float
        Seconds, one for each repetition; `seconds` is their median.
    recomputed_operations : int
        How many operations ran again, as counted.
    operations : int
        How many ran altogether.
    recomputed_layers : int or None
        How many runs of layers there were beyond the first of each. (Schedules.)
    predicted_operations : int or None
        How many operations the schedule said would run again.
    prediction : Prediction or None
        What the schedule said before, where the step ran one chain.
    smallest : int or None
        Of a budget that cannot be met: the smallest that can. Nothing else was measured then.
    difference : str
        What differs first from the plain run; empty where all is equal to the bit.
    timeline : MemoryTrace or None
        The account of every array, where it was asked for.
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
    difference: str = ""
    timeline: MemoryTrace | None = None

    @property
    def seconds(self) -> float | None:
        """The median time of a step, measured without any tracing."""
        return median(self.times) if self.times else None

    @property
    def equal(self) -> bool | None:
        """Whether all that the step gives is equal to the plain run, to the bit."""
        return None if self.smallest is not None else not self.difference

    @property
    def predicted_peak(self) -> int | None:
        """The most bytes that the schedule said it would keep at the same time."""
        return None if self.prediction is None else self.prediction.peak

    @property
    def share(self) -> float:
        """Recomputed operations, as a share of those of the plain step."""
        once = self.operations - self.recomputed_operations
        return self.recomputed_operations / once if once else 0.0

    def __repr__(self) -> str:
        if self.smallest is not None:
            return (
                f"<MemoryRun {self.name}: cannot be met, the smallest is {self.smallest:,} bytes>"
            )
        said = "equal to plain" if self.equal else self.difference
        peak = "" if self.peak is None else f"peak {bytes_in_words(self.peak)}, "
        return f"<MemoryRun {self.name}: {peak}{said}>"


class Bound(NamedTuple):
    """A point of what theory says: a schedule with so many segments or snapshots.

    Attributes
    ----------
    schedule : str
        "plain", "segments" or "revolve".
    parameter : int
        How many segments or snapshots.
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


HEADS = ("", "peak", "kept, predicted", "time", "x plain", "run again", "share", "gradients")


class MemoryStudy:
    """What a step costs under several schedules and budgets; `optlab.lab.memory_study` makes one.

    Attributes
    ----------
    rows : list of MemoryRun
        The plain run first.
    chains : list of Prediction
        The chains of layers that one step runs, with what each layer keeps.
    layer_seconds : float
        How long a layer takes forward, in the mean of the chain, in the way where that is least.
    leaves : int
        How many gradients were compared.
    """

    def __init__(
        self,
        rows: list[MemoryRun],
        chains: list[Prediction],
        layer_seconds: float,
        leaves: int,
        optimizers: list[str],
    ) -> None:
        self.rows = rows
        self.chains = chains
        self.layer_seconds = layer_seconds
        self.leaves = leaves
        self.optimizers = optimizers

    def __getitem__(self, name: str | int) -> MemoryRun:
        """Give a row by its name, or by its number."""
        if isinstance(name, int):
            return self.rows[name]
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(
            f"there is no run named {name!r}; there are {', '.join(row.name for row in self.rows)}."
        )

    def __iter__(self) -> Iterator[MemoryRun]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def plain(self) -> MemoryRun:
        """The run without recomputation."""
        return self.rows[0]

    @property
    def equal(self) -> bool:
        """Whether every run that could be made gave what the plain one gave, to the bit."""
        return all(row.equal is not False for row in self.rows)

    @property
    def besides(self) -> int | None:
        """What the plain run needs beyond what its chain keeps: temporaries, other operations."""
        if len(self.chains) != 1 or self.plain.peak is None:
            return None
        [chain] = self.chains
        kept = plain(len(chain.saved)).peak(chain.saved, chain.inputs, shared=chain.shared)
        return max(0, self.plain.peak - kept)

    def bounds(self) -> list[Bound]:
        """Give what theory says of the chain: its segments from one to one a layer, and Revolve.

        Bytes: what the schedule keeps at most, from the bytes that each layer keeps (as
        `optlab.memory.predict` finds them), and `besides`. Time: that of the plain run, and
        `layer_seconds` for each run of a layer beyond the first. Nothing where a step runs no
        chain or several.
        """
        besides, seconds = self.besides, self.plain.seconds
        if besides is None or seconds is None:
            return []
        [chain] = self.chains
        n = len(chain.saved)
        found = []
        for name, make in (("segments", in_segments), ("revolve", revolve)):
            for number in _some(n):
                schedule = make(n, number)
                kept = schedule.peak(chain.saved, chain.inputs, shared=chain.shared)
                again = schedule.recomputed_layers
                time = seconds + again * self.layer_seconds
                found.append(Bound(name, number, kept + besides, time, again))
        return found

    def front(self) -> list[MemoryRun]:
        """Give the runs that no other beats in both, peak and time; smallest peak first."""
        rows = [row for row in self.rows if row.peak is not None and row.seconds is not None]
        best: list[MemoryRun] = []
        for row in sorted(rows, key=lambda one: (one.peak, one.seconds)):
            if not best or row.seconds < best[-1].seconds:  # type: ignore[operator]
                best.append(row)
        return best

    # Its faces ----------------------------------------------------------------------------------

    def table(self) -> Any:
        """Give the results as a pandas DataFrame, one row a run.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).
        """
        import pandas as pd

        rows = {
            row.name: {
                "peak": row.peak,
                "predicted peak": row.predicted_peak,
                "seconds": row.seconds,
                "slowdown": self.slowdown(row),
                "recomputed operations": row.recomputed_operations,
                "predicted operations": row.predicted_operations,
                "recomputed share": row.share,
                "recomputed layers": row.recomputed_layers,
                "gradients equal": row.equal,
                "first difference": row.difference,
                "smallest budget": row.smallest,
            }
            for row in self.rows
        }
        table = pd.DataFrame.from_dict(rows, orient="index")
        for name in ("peak", "predicted peak", "recomputed operations", "predicted operations",
                     "recomputed layers", "smallest budget"):  # fmt: skip
            table[name] = table[name].astype("Int64")
        table.index.name = "run"
        return table

    def slowdown(self, row: MemoryRun) -> float | None:
        """Give the time of a run as a multiple of the plain one."""
        if row.seconds is None or not self.plain.seconds:
            return None
        return row.seconds / self.plain.seconds

    def texts(self) -> list[tuple[str, ...]]:
        """Give the rows of the table as text, under `HEADS`."""
        found: list[tuple[str, ...]] = []
        for row in self.rows:
            if row.smallest is not None:
                least = f"smallest: {in_words(row.smallest)}"
                found.append((row.name, "cannot be met", least, "", "", "", "", ""))
                continue
            slower = self.slowdown(row)
            found.append(
                (
                    row.name,
                    "" if row.peak is None else bytes_in_words(row.peak),
                    "" if row.predicted_peak is None else bytes_in_words(row.predicted_peak),
                    "" if row.seconds is None else time_in_words(row.seconds),
                    "" if slower is None else f"{slower:.2f}",
                    f"{row.recomputed_operations:,}" if row.recomputed_operations else "",
                    f"{row.share:.0%}" if row.recomputed_operations else "",
                    ("the reference" if row is self.plain else "equal" if row.equal else "DIFFER"),
                )
            )
        return found

    def headline(self) -> str:
        """Say in a sentence what came out."""
        measured = [row for row in self.rows if row.peak is not None]
        if len(measured) < 2:
            return f"Only the plain run: peak {bytes_in_words(self.plain.peak or 0)}."
        least = min(measured, key=lambda row: row.peak or 0)
        if least is self.plain:
            return "No way needs less memory than the plain run."
        said = (
            f"{_upper(least.name)} needs least memory: {bytes_in_words(least.peak or 0)} in place "
            f"of {bytes_in_words(self.plain.peak or 0)}"
        )
        slower = self.slowdown(least)
        return said + (f", at {slower:.2f} x the time." if slower is not None else ".")

    def proof(self) -> str:
        """Say whether all runs gave the same."""
        others = [row for row in self.rows[1:] if row.equal is not None]
        gradients = f"{self.leaves} gradient{'s' * (self.leaves != 1)}"
        if self.equal:
            return (
                f"{gradients}, what the step returns and the random stream afterwards are equal to "
                f"the bit in {'all ' * (len(others) > 1)}{len(others) + 1} runs."
            )
        return " ".join(
            f"{_upper(row.name)}: {row.difference}." for row in others if row.difference
        )

    def figure(self, **options: Any) -> Any:
        """Draw the study: timelines, peaks, times, and memory against time, as a plotly figure.

        Raises
        ------
        ModuleNotFoundError
            If nothing that draws is installed (it comes with the extra ``lab``).
        """
        return display.renderer("memory_study").figure(self, **options)

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file: ``.png``, or ``.html`` with the live figure."""
        target = Path(path)
        display.renderer("memory_study").save(self, target)
        return target

    def __repr__(self) -> str:
        said = "all equal to the bit" if self.equal else "NOT ALL EQUAL"
        return f"<MemoryStudy of {len(self)} runs, {said}: {', '.join(r.name for r in self.rows)}>"

    def __str__(self) -> str:
        lines = lines_of([HEADS, *self.texts()], "lrrrrrrl")
        return "\n".join([self.headline(), "", *lines, "", self.proof()])

    def _repr_html_(self) -> str:
        return (
            f'<div class="optlab-memory-study" style="{FONT} max-width: 900px;">'
            f"<div><b>{escape(self.headline())}</b></div>"
            + html_table([HEADS, *self.texts()], "lrrrrrrl")
            + f'<div style="{QUIET}">{escape(self.proof())}</div></div>'
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        try:
            return dict(display.renderer("memory_study").mimebundle(self))
        except ModuleNotFoundError:
            return {"text/plain": str(self), "text/html": self._repr_html_()}


def time_in_words(seconds: float) -> str:
    """Write a time.

    Examples
    --------
    >>> time_in_words(0.01234), time_in_words(2.5), time_in_words(2.5e-5)
    ('12.3 ms', '2.50 s', '25 µs')
    """
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1e3 * seconds:.1f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.0f} µs"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _some(n: int) -> list[int]:
    """Give numbers from 1 to n: all, or some that are dense where they are small."""
    if n <= _POINTS:
        return list(range(1, n + 1))
    ratio = n ** (1 / (_POINTS - 1))
    return sorted({*range(1, 9), *(round(ratio**i) for i in range(_POINTS)), n})
