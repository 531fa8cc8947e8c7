"""Measurement of a row: contestants take turns of one batch each, and never run concurrently."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import sleep

from benchmarks.processes import (
    ROOT,
    ContestantError,
    FreshInterpreter,
    WarmWorker,
    installed_version,
)
from benchmarks.row import Peer, Row, Target


@dataclass(frozen=True)
class Settings:
    """Settings of a measurement.

    Attributes
    ----------
    repeats : int
        Turns of each contestant.
    turn_seconds : float
        Target duration of one turn.
    rest_seconds : float
        Pause between turns, in which the thread pool of the last contestant goes to sleep.
    threads : int or None
        Number of threads for both sides; None lets the row choose.
    our_python, peer_python : str
        The two interpreters.
    search_path : tuple of str
        Additional module search paths of the workers.
    """

    repeats: int = 20
    turn_seconds: float = 0.2
    rest_seconds: float = 0.02
    threads: int | None = None
    our_python: str = sys.executable
    peer_python: str = sys.executable
    search_path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the median and quartiles of at least one value."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, lower, upper)


@dataclass
class Contestant:
    """One side of a row with a fixed number of threads, and its measurements.

    Attributes
    ----------
    peer : Peer or None
        None for our own side.
    threads : int or None
        None: the default of the library.
    version : str or None
        Version of the distribution that the peer needs.
    turns : list of float
        Seconds of one unit, one number per turn; for a table the geometric mean over the cases.
    units_per_turn : int
        Size of a batch; for a table, of all batches of a turn together.
    cases : dict
        For a table: the same by the name of the case. Empty for other kinds.
    problem : str or None
        Why the measurement is incomplete.
    missing : bool
        Whether the peer is not installed.
    """

    peer: Peer | None
    threads: int | None
    version: str | None = None
    turns: list[float] = field(default_factory=list)
    units_per_turn: int = 0
    problem: str | None = None
    missing: bool = False
    cases: dict[str, list[float]] = field(default_factory=dict)

    def take(self, seconds: float | dict[str, float]) -> None:
        """Record the result of one turn."""
        if isinstance(seconds, dict):
            for case, taken in seconds.items():
                self.cases.setdefault(case, []).append(taken)
            seconds = statistics.geometric_mean(seconds.values())
        self.turns.append(seconds)

    @property
    def measured(self) -> bool:
        """Whether all turns were taken."""
        return self.problem is None and bool(self.turns)

    @property
    def seconds(self) -> Spread:
        """Seconds of one unit."""
        return Spread.of(self.turns)


@dataclass(frozen=True)
class Comparison:
    """Our side compared with the fastest form of one peer.

    Attributes
    ----------
    peer : Peer
        The peer.
    candidates : list of Contestant
        Its forms, one for each number of threads.
    best : Contestant or None
        The fastest; None if none was measured.
    ratio : Spread or None
        The target's ratio over paired turns; None if a side is missing. For a table it is the
        geometric mean of the ratios of the cases.
    cases : dict
        For a table: the ratio of each case by its name. Empty for other kinds.
    """

    peer: Peer
    candidates: list[Contestant]
    best: Contestant | None
    ratio: Spread | None
    cases: dict[str, Spread] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        """The target of the comparison."""
        return self.peer.target

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None without a target or a measurement."""
        return None if self.ratio is None else self.target.is_met_by(self.ratio.median)

    @property
    def clear(self) -> bool | None:
        """Whether both quartiles agree with the median about the target."""
        if self.ratio is None or self.target.bound is None:
            return None
        quartiles = (self.ratio.lower, self.ratio.upper)
        return all(self.target.is_met_by(quartile) == self.met for quartile in quartiles)


@dataclass(frozen=True)
class Result:
    """A measured row."""

    row: Row
    ours: Contestant
    comparisons: list[Comparison]


def contestants_of(row: Row, settings: Settings) -> list[Contestant]:
    """List our side and every peer with every number of threads to try."""
    listed = [Contestant(None, settings.threads)]
    for peer in row.peers:
        tried = (settings.threads,) if settings.threads is not None else peer.threads or (None,)
        listed += [Contestant(peer, threads) for threads in tried]
    return listed


def process_of(
    row: Row, contestant: Contestant, settings: Settings
) -> WarmWorker | FreshInterpreter:
    """Return the process that runs a contestant, not yet started.

    Raises
    ------
    ContestantError
        If the contestant's library is not installed.
    """
    peer = contestant.peer
    at_home = peer is None or peer.in_our_environment
    python = settings.our_python if at_home else settings.peer_python
    if peer is not None:
        contestant.version = installed_version(python, peer.needs)
        contestant.missing = contestant.version is None
        if contestant.missing:
            raise ContestantError(f"{peer.needs} is not installed")
    root = ROOT if peer is None or peer.checkout is None else peer.checkout
    name = "ours" if peer is None or peer.checkout is not None else peer.name
    if row.kind == "process":
        return FreshInterpreter(python, str(row.factory(name)()), contestant.threads, root)
    return WarmWorker(
        python,
        row.module,
        row.name,
        name,
        contestant.threads,
        settings.turn_seconds,
        settings.search_path,
        root,
    )


def take_turns(row: Row, contestants: Sequence[Contestant], settings: Settings) -> None:
    """Measure all contestants of a row, turn by turn; each records its own times or problem."""
    running: list[tuple[Contestant, WarmWorker | FreshInterpreter]] = []
    try:
        for contestant in contestants:
            try:
                process = process_of(row, contestant, settings)
                running.append((contestant, process))
                process.prepare()
                units = process.units
                contestant.units_per_turn = (
                    sum(units.values()) if isinstance(units, dict) else units
                )
            except ContestantError as error:
                contestant.problem = str(error)
        for _ in range(settings.repeats):
            for contestant, process in running:
                if contestant.problem is not None:
                    continue
                sleep(settings.rest_seconds)
                try:
                    contestant.take(process.turn())
                except ContestantError as error:
                    contestant.problem = str(error)
    finally:
        for _, process in running:
            process.close()


def compare(ours: Contestant, peer: Peer, candidates: list[Contestant]) -> Comparison:
    """Pair our turns with those of the peer's fastest form."""
    measured = [candidate for candidate in candidates if candidate.measured]
    best = min(measured, key=lambda candidate: candidate.seconds.median, default=None)
    if best is None or not ours.measured:
        return Comparison(peer, candidates, best, None)

    def paired(our_turns: list[float], peer_turns: list[float]) -> Spread:
        pairs = zip(our_turns, peer_turns, strict=True)
        return Spread.of([peer.target.ratio(mine, theirs) for mine, theirs in pairs])

    cases = {case: paired(ours.cases[case], best.cases[case]) for case in ours.cases}
    return Comparison(peer, candidates, best, paired(ours.turns, best.turns), cases)


def measure(row: Row, settings: Settings) -> Result:
    """Measure one row.

    Parameters
    ----------
    row : Row
        The comparison.
    settings : Settings
        The settings of the measurement.

    Returns
    -------
    Result
        Also if a side is missing or fails: the result records its problem, and the other side is
        measured all the same.
    """
    contestants = contestants_of(row, settings)
    take_turns(row, contestants, settings)
    ours = contestants[0]
    comparisons = [
        compare(ours, peer, [each for each in contestants if each.peer is peer])
        for peer in row.peers
    ]
    return Result(row, ours, comparisons)
