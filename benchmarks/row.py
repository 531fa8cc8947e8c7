"""Declarations of rows, and their lookup.

A row is read by workers in two environments, ours and the peer's, so this module and every file
in ``rows/`` import only the standard library at the top; other libraries are imported inside the
factories.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

ROWS_PACKAGE = "benchmarks.rows"

Work = Callable[[], Any]
Built = Work | dict[str, Work] | str


@dataclass(frozen=True)
class Target:
    """The target ratio of a row; made by `at_least`, `at_most` and `unbounded`.

    Attributes
    ----------
    sense : {"at least", "at most"}
        "at least" compares how many times as fast as the peer we are (peer time over ours);
        "at most" compares how many times the peer's time we take (our time over the peer's).
    bound : float or None
        The bound of the ratio; None if the ratio is reported without a target.
    """

    sense: Literal["at least", "at most"]
    bound: float | None

    def ratio(self, our_seconds: float, peer_seconds: float) -> float:
        """Return the ratio of two times, in the direction of `sense`."""
        if self.sense == "at least":
            return peer_seconds / our_seconds
        return our_seconds / peer_seconds

    def is_met_by(self, ratio: float) -> bool | None:
        """Return whether a ratio meets the bound; None without a bound."""
        if self.bound is None:
            return None
        return ratio >= self.bound if self.sense == "at least" else ratio <= self.bound

    @property
    def phrase(self) -> str:
        """The phrase that follows the ratio in a sentence."""
        return "times as fast" if self.sense == "at least" else "times the time"


def at_least(bound: float) -> Target:
    """Return the target that we are at least `bound` times as fast as the peer."""
    return Target("at least", bound)


def at_most(bound: float) -> Target:
    """Return the target that we take at most `bound` times the peer's time."""
    return Target("at most", bound)


def unbounded() -> Target:
    """Return no target: the ratio of speeds is reported only."""
    return Target("at least", None)


@dataclass(frozen=True)
class Peer:
    """One peer that our row is compared with.

    Attributes
    ----------
    name : str
        As printed, for example ``"PyTorch eager, fused Adam"``.
    build : callable
        Factory like `Row.ours`.
    needs : str
        The distribution that has to be installed; if it is not, it is reported as missing.
    target : Target
        The target of the comparison with this peer.
    threads : tuple of int
        Numbers of threads to try, each in its own worker; the fastest counts. Empty: the default
        of the library.
    in_our_environment : bool
        Whether to run with our interpreter even if ``--peer-python`` names another.
    checkout : Path or None
        Another checkout of optlab, whose own side is the peer.
    """

    name: str
    build: Callable[[], Built]
    needs: str
    target: Target
    threads: tuple[int, ...] = ()
    in_our_environment: bool = False
    checkout: Path | None = None


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes
    ----------
    name : str
        The name that selects the row on the command line.
    title : str
        What is compared, in one line.
    unit : str
        What one unit of work is, for example ``"training step"``.
    ours : callable
        Factory: called once in its worker, it prepares everything and returns a callable that
        does one unit of work and returns once the result is there. For the kind "table" it
        returns a dict of such callables, by the name of the case; for the kind "process"
        statements (text) that a fresh interpreter times.
    peers : sequence of Peer
        At least one.
    kind : {"work", "table", "process"}
        "work": a warm worker repeats the unit. "table": the same with many small units of one
        kind, a batch of each in every turn, compared by their geometric mean. "process": each
        turn starts a new interpreter.
    default : bool
        Whether ``python -m benchmarks`` measures the row when no name is given.
    module : str
        The module that declares the row; filled in when it is found.
    """

    name: str
    title: str
    unit: str
    ours: Callable[[], Built]
    peers: Sequence[Peer]
    kind: Literal["work", "table", "process"] = "work"
    default: bool = True
    module: str = ""

    def factory(self, contestant: str) -> Callable[[], Built]:
        """Return the factory of ``"ours"`` or of the peer with that name."""
        if contestant == "ours":
            return self.ours
        return next(peer.build for peer in self.peers if peer.name == contestant)


def beside_checkout(row: Row, checkout: Path) -> Row:
    """Return the row with one peer: optlab itself, as it is in another checkout."""
    peer = Peer("before", row.ours, "numpy", at_most(1.02), (), True, checkout)
    return replace(row, peers=[peer])


def rows_of(module_name: str) -> list[Row]:
    """Return the rows that one module declares in its ``ROWS``."""
    module = importlib.import_module(module_name)
    return [replace(row, module=module_name) for row in module.ROWS]


def all_rows() -> list[Row]:
    """Return the rows of every file in ``rows/``, by file name."""
    package = importlib.import_module(ROWS_PACKAGE)
    files = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [row for file in files for row in rows_of(f"{ROWS_PACKAGE}.{file}")]


def select(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Select rows by their name or by the name of their file; without names, the default set.

    Raises
    ------
    LookupError
        If a name matches no row; the message lists the known names.
    """
    if not names:
        return [row for row in rows if row.default]
    known = {row.name for row in rows} | {row.module.rpartition(".")[2] for row in rows}
    for name in names:
        if name not in known:
            there_is = ", ".join(row.name for row in rows)
            raise LookupError(f"no row is called {name!r}; there are: {there_is}")
    return [row for row in rows if {row.name, row.module.rpartition(".")[2]} & set(names)]
