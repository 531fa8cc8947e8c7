"""The result of a memory study, one row per way to run the step: table, figure and text."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from optlab.autograd.checkpoint.prediction import Prediction
from optlab.autograd.checkpoint.schedules.builders import in_segments, plain, revolve
from optlab.backend.display import Rendered
from optlab.backend.extras import needed_for
from optlab.backend.memory.sizes import in_words
from optlab.lab.memory_studies.rows import Bound, MemoryRun, shortened, span_in_words, time_in_words
from optlab.nn.base.html import FONT, QUIET
from optlab.trace.memory.tables import html_table, lines_of

#: The maximal number of points of a bound.
_POINTS = 40
#: With this many times, two ways differ if their ranges do not overlap.
_FEWEST = 3

HEADS = (
    "", "peak", "kept, predicted", "time", "range", "x plain", "run again", "share", "gradients",
)  # fmt: skip
_ALIGN = "lrrrrrrrl"


class MemoryStudy(Rendered):
    """The cost of a step under schedules and budgets; `optlab.lab.memory_study` creates it.

    Attributes
    ----------
    rows : list of MemoryRun
        The plain run first.
    chains : list of Prediction
        The chains of layers that one step runs, with what each layer stores.
    layer_seconds : float
        The forward time of a layer: the mean over the chain, in the fastest way.
    leaves : int
        How many gradients were compared.
    """

    drawn_as = "memory_study"

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
        """Return a row by its name or its number."""
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
        """Whether every run that could be made equals the plain one, to the bit."""
        return all(row.equal is not False for row in self.rows)

    @property
    def besides(self) -> int | None:
        """What the plain run needs beyond its chain: temporaries, other operations."""
        if len(self.chains) != 1 or self.plain.peak is None:
            return None
        [chain] = self.chains
        kept = plain(len(chain.saved)).peak(chain.saved, chain.inputs, shared=chain.shared)
        return max(0, self.plain.peak - kept)

    @property
    def equal_layers(self) -> bool:
        """Whether all layers of the chain store and compute the same, so that Revolve is optimal.

        The first may store less: its input belongs to the caller.
        """
        if len(self.chains) != 1:
            return False
        [chain] = self.chains
        alike = (chain.saved[1:], chain.inputs[1:], chain.shared[2:], chain.operations)
        return all(len(set(one)) < 2 for one in alike) and chain.saved[0] <= chain.saved[-1]

    def bounds(self) -> list[Bound]:
        """Return the theoretical bounds of the chain: one segment to one per layer, and Revolve.

        Bytes: the stored peak of the schedule, from the bytes that each layer stores (as
        `optlab.memory.predict` finds them), and `besides`. Time: that of the plain run, and
        `layer_seconds` for each run of a layer beyond the first. Empty if a step runs no chain or
        several. Revolve is a bound only if `equal_layers` holds: it counts layers, not what they
        store.
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
        """Return the Pareto front of peak and time, the smallest peak first."""
        rows = [row for row in self.rows if row.peak is not None and row.seconds is not None]
        best: list[MemoryRun] = []
        for row in sorted(rows, key=lambda one: (one.peak, one.seconds)):
            if not best or row.seconds < best[-1].seconds:  # type: ignore[operator]
                best.append(row)
        return best

    # Representations ----------------------------------------------------------------------------

    def table(self) -> Any:
        """Return the results as a pandas DataFrame, one row per run.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).
        """
        with needed_for("MemoryStudy.table()"):
            import pandas as pd

        rows = {
            row.name: {
                "peak": row.peak,
                "predicted peak": row.predicted_peak,
                "seconds": row.seconds,
                "fastest": min(row.times, default=None),
                "slowest": max(row.times, default=None),
                "slowdown": self.slowdown(row),
                "recomputed operations": row.recomputed_operations,
                "predicted operations": row.predicted_operations,
                "recomputed share": row.share,
                "recomputed layers": row.recomputed_layers,
                "gradients equal": row.equal,
                "first difference": row.difference,
                "smallest budget": row.smallest,
                "raised": row.raised,
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
        """Return the time of a run as a multiple of the plain one."""
        if row.seconds is None or not self.plain.seconds:
            return None
        return row.seconds / self.plain.seconds

    def apart(self, row: MemoryRun) -> bool:
        """Return whether a run's time differs from the plain one, as far as that is certain.

        Each was timed three times at least, and the two ranges do not overlap. (Of two times each,
        every third pair of ranges would be disjoint by chance.)
        """
        one, other = row.times, self.plain.times
        if min(len(one), len(other)) < _FEWEST:
            return False
        return min(one) > max(other) or max(one) < min(other)

    def times_plain(self, row: MemoryRun) -> str:
        """Return the slowdown of a run as text; empty if timed only once."""
        slower = self.slowdown(row)
        if slower is None or row.span is None:
            return ""
        return f"{'' if row is self.plain or self.apart(row) else '≈ '}{slower:.2f}"

    def timing(self) -> str:
        """Return how times were taken, and how far they are conclusive."""
        count = len(self.plain.times)
        if count < 2:
            return (
                "Time: each way once, after a step that is not timed. That has no spread, so "
                "nothing is said of who is quicker; repeats=5 finds out."
            )
        said = (
            f"Time: median and range of {count}, the ways taking turns, each time after a step "
            "that is not timed."
        )
        if count < _FEWEST:
            return f"{said} So few cannot tell who is quicker; repeats=5 can."
        unclear = any(self.times_plain(row).startswith("≈") for row in self.rows)
        return said + " (≈: its range overlaps that of plain.)" * unclear

    def texts(self) -> list[tuple[str, ...]]:
        """Return the rows of the table as text, under `HEADS`."""
        found: list[tuple[str, ...]] = []
        for row in self.rows:
            if not row.ran:
                smallest = f"smallest: {in_words(row.smallest)}" if row.smallest else ""
                error = shortened(f"raised: {row.raised}") if row.raised else ""
                blank = [""] * 5
                found.append((row.name, "cannot be met" * bool(smallest), smallest, *blank, error))
                continue
            again = row.recomputed_operations
            found.append(
                (
                    row.name,
                    "" if row.peak is None else in_words(row.peak),
                    "" if row.predicted_peak is None else in_words(row.predicted_peak),
                    "" if row.seconds is None else time_in_words(row.seconds),
                    span_in_words(*row.span) if row.span else "once" if row.times else "",
                    self.times_plain(row),
                    f"{again:,}" if again else "",
                    f"{row.share:.0%}" if again else "",
                    ("the reference" if row is self.plain else "equal" if row.equal else "DIFFER"),
                )
            )
        return found

    def headline(self) -> str:
        """Return the main result in one sentence."""
        measured = [row for row in self.rows if row.peak is not None]
        if len(measured) < 2:
            return f"Only the plain run: peak {in_words(self.plain.peak or 0)}."
        least = min(measured, key=lambda row: row.peak or 0)
        if least is self.plain:
            return "No way needs less memory than the plain run."
        said = (
            f"{_upper(least.name)} needs least memory: {in_words(least.peak or 0)} in place "
            f"of {in_words(self.plain.peak or 0)}"
        )
        return said + (f", at {self.times_plain(least)} x the time." if self.apart(least) else ".")

    def proof(self) -> str:
        """Return whether all runs gave the same."""
        others = [row for row in self.rows[1:] if row.equal is not None]
        gradients = f"{self.leaves} gradient{'s' * (self.leaves != 1)}"
        said = [f"{_upper(row.name)}: {row.difference}." for row in others if row.difference]
        if self.equal:
            runs = f"{'all ' * (len(others) > 1)}{len(others) + 1} runs"
            what = "what the step returns and the random stream afterwards"
            said = [f"{gradients}, {what} are equal to the bit in {runs}."]
        for row in self:
            if row.raised:
                said.append(f"{_upper(row.name)} raised {row.raised.rstrip('.')}.")
        return " ".join(said)

    def __repr__(self) -> str:
        said = "all equal to the bit" if self.equal else "NOT ALL EQUAL"
        raised = sum(bool(row.raised) for row in self)
        said += f", {raised} raised an error" * bool(raised)
        return f"<MemoryStudy of {len(self)} runs, {said}: {', '.join(r.name for r in self.rows)}>"

    def __str__(self) -> str:
        lines = lines_of([HEADS, *self.texts()], _ALIGN)
        return "\n".join([self.headline(), "", *lines, "", self.proof(), self.timing()])

    def _repr_html_(self) -> str:
        return (
            f'<div class="optlab-memory-study" style="{FONT} max-width: 900px;">'
            f"<div><b>{escape(self.headline())}</b></div>"
            + html_table([HEADS, *self.texts()], _ALIGN)
            + f'<div style="{QUIET}">{escape(self.proof())} {escape(self.timing())}</div></div>'
        )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _some(n: int) -> list[int]:
    """Return numbers from 1 to n: all, or a selection that is dense at small numbers."""
    if n <= _POINTS:
        return list(range(1, n + 1))
    ratio = n ** (1 / (_POINTS - 1))
    return sorted({*range(1, 9), *(round(ratio**i) for i in range(_POINTS)), n})
