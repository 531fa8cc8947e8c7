"""Text of the terminal and content of the JSON."""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT, installed_version
from benchmarks.runner import Comparison, Contestant, Result, Settings, Spread

FORMAT = 1
NAME_WIDTH = 50


def duration(seconds: float) -> str:
    """Format a time with three digits in the unit that suits it."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def measured_times(contestant: Contestant) -> str:
    """Format the median of a contestant and its quartiles, or the reason why there is none."""
    if not contestant.measured:
        return "not measured: " + (contestant.problem or "no turn was taken").splitlines()[-1]
    times = contestant.seconds
    return f"{duration(times.median):>8}  ({duration(times.lower)} to {duration(times.upper)})"


def thread_words(threads: int | None) -> str:
    """Format the number of threads as a suffix of a name."""
    if threads is None:
        return ""
    return f", {threads} thread" + ("s" if threads > 1 else "")


def verdict(comparison: Comparison) -> str:
    """Format the ratio of a comparison with its spread, and whether the target is met."""
    ratio, target = comparison.ratio, comparison.target
    aim = "no target" if target.bound is None else f"target {target.sense} {target.bound:g}"
    if ratio is None:
        return f"no ratio ({aim})"
    outcome = {True: ": met", False: ": missed", None: ""}[comparison.met]
    narrowly = ", though a quartile says otherwise" if comparison.clear is False else ""
    text = f"{ratio.median:.2f} {target.phrase} ({ratio.lower:.2f} to {ratio.upper:.2f})"
    return f"{text}; {aim}{outcome}{narrowly}"


def table_of_cases(result: Result) -> list[str]:
    """Format a line for every case of a table: microseconds of each side, and each ratio."""
    if not result.ours.measured:
        return []
    beside = [each for each in result.comparisons if each.best is not None and each.cases]
    names = ["optlab", *(each.peer.name for each in beside)]
    width = max(12, *(len(name) + 2 for name in names))
    head = "".join(f"{name:>{width}}" for name in names)
    ratios = "".join(f"{'beside ' + each.peer.name:>{width + 20}}" for each in beside)
    lines = [f"  {'us':<14}{head}{ratios}"]
    for case, our_turns in result.ours.cases.items():
        sides = [our_turns, *(each.best.cases[case] for each in beside if each.best)]
        times = "".join(f"{statistics.median(turns) * 1e6:>{width}.4g}" for turns in sides)
        spreads = [each.cases[case] for each in beside]
        cells = [f"{one.median:.2f} ({one.lower:.2f} to {one.upper:.2f})" for one in spreads]
        lines.append(f"  {case:<14}{times}" + "".join(f"{one:>{width + 20}}" for one in cells))
    return lines


def as_text(result: Result) -> str:
    """Format one row for the terminal."""
    row = result.row
    name = f"optlab{thread_words(result.ours.threads)}"
    averaged = f", geometric mean of {len(result.ours.cases)}" if result.ours.cases else ""
    lines = [f"{row.name}: {row.title} (times of one {row.unit}{averaged})"]
    lines += table_of_cases(result)
    lines.append(f"  {name:<{NAME_WIDTH}}{measured_times(result.ours)}")
    for comparison in result.comparisons:
        for candidate in comparison.candidates:
            name = f"{comparison.peer.name}{thread_words(candidate.threads)}"
            lines.append(f"  {name:<{NAME_WIDTH}}{measured_times(candidate)}")
        best = comparison.best
        against = f" (against{thread_words(best.threads)[1:]})" if best and best.threads else ""
        lines.append(f"  -> {verdict(comparison)}{against}")
    return "\n".join(lines)


def cpu_model() -> str:
    """Return the name of the processor as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def revision() -> str | None:
    """Return the revision of the working tree, with a mark if files differ from it."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    except OSError:
        return None
    return done.stdout.strip() or None


def machine_facts(results: list[Result], settings: Settings) -> dict[str, Any]:
    """Return the facts on which the numbers depend: processor, cores, versions, date."""
    versions = {
        candidate.peer.needs: candidate.version
        for result in results
        for comparison in result.comparisons
        for candidate in comparison.candidates
        if candidate.peer is not None
    }
    return {
        "cpu": cpu_model(),
        "cores": cores(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": installed_version(settings.our_python, "numpy"),
        "optlab": installed_version(settings.our_python, "optlab"),
        "revision": revision(),
        "peers": versions,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def spread_as_json(spread: Spread | None) -> dict[str, float] | None:
    """Return a median with its quartiles as a JSON object."""
    if spread is None:
        return None
    return {"median": spread.median, "lower": spread.lower, "upper": spread.upper}


def contestant_as_json(contestant: Contestant) -> dict[str, Any]:
    """Return all measurements of one contestant."""
    return {
        "threads": contestant.threads,
        "seconds": spread_as_json(contestant.seconds if contestant.measured else None),
        "turns": contestant.turns,
        "units_per_turn": contestant.units_per_turn,
        "problem": contestant.problem,
        "cases": {
            name: {"seconds": spread_as_json(Spread.of(turns)), "turns": turns}
            for name, turns in contestant.cases.items()
        },
    }


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """Return one peer of a row, with the ratio and the target."""
    best = comparison.best
    return {
        "name": comparison.peer.name,
        "version": comparison.candidates[0].version,
        "missing": comparison.candidates[0].missing,
        "candidates": [contestant_as_json(candidate) for candidate in comparison.candidates],
        "best_threads": best.threads if best is not None else None,
        "ratio": spread_as_json(comparison.ratio),
        "cases": {name: spread_as_json(ratio) for name, ratio in comparison.cases.items()},
        "target": {"sense": comparison.target.sense, "bound": comparison.target.bound},
        "met": comparison.met,
        "clear": comparison.clear,
    }


def as_json(results: list[Result], settings: Settings) -> dict[str, Any]:
    """Return the whole run; ``benchmarks/README.md`` explains the keys."""
    return {
        "format": FORMAT,
        "machine": machine_facts(results, settings),
        "settings": {
            "repeats": settings.repeats,
            "turn_seconds": settings.turn_seconds,
            "threads": settings.threads,
        },
        "rows": [
            {
                "name": result.row.name,
                "title": result.row.title,
                "unit": result.row.unit,
                "kind": result.row.kind,
                "ours": contestant_as_json(result.ours),
                "peers": [comparison_as_json(each) for each in result.comparisons],
            }
            for result in results
        ],
    }
