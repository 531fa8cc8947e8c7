"""A worker: one process that builds one side of one row and times batches on request.

It reads one JSON object per line from standard input and answers each with one line:

=====================================  ==========================================
request                                answer
=====================================  ==========================================
``{"do": "build", "module": ...,       ``{}``; builds the unit of work
"row": ..., "contestant": ...}``
``{"do": "calibrate", "seconds": s}``  ``{"units": n}``; includes the warm-up
``{"do": "time", "units": n}``         ``{"seconds": s}`` for the whole batch
=====================================  ==========================================

For a table, units and seconds are objects with a number for every case.

Any error is answered as ``{"problem": traceback}``. The worker ends when its input ends. Output
of the libraries is redirected to standard error.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from time import perf_counter
from typing import Any

from benchmarks.row import Work, rows_of


def build(module: str, row_name: str, contestant: str) -> Work | dict[str, Work]:
    """Look up the row and call the factory of one contestant."""
    row = next(row for row in rows_of(module) if row.name == row_name)
    work = row.factory(contestant)()
    if isinstance(work, str) or not (callable(work) or work):
        raise TypeError(f"{row_name}: the factory of {contestant!r} returned no callable")
    return work


def time_batch(work: Work, units: int, collect: bool = True) -> float:
    """Return the seconds that `units` units of work take, one after the other.

    The garbage collector stays on, as it is for a user; the garbage of earlier batches is collected
    before the clock starts.
    """
    if collect:
        gc.collect()
    start = perf_counter()
    for _ in range(units):
        work()
    return perf_counter() - start


def warm_up(work: Work | dict[str, Work], seconds: float, most: float = 60.0) -> None:
    """Work until kernels that optlab asked a child process for are compiled, and loaded.

    A peer's compiler (`jax.jit`) works while it is called first, so its turns never contain it. The
    turns of a row with a cold cache would otherwise measure NumPy beside a busy compiler.
    """
    cases = list(work.values()) if isinstance(work, dict) else [work]
    start = perf_counter()
    until = start + seconds
    while perf_counter() < min(until, start + most):
        for case in cases:
            case()
        kernels = sys.modules.get("optlab.plan.numba_cache")
        if kernels is not None and kernels.is_compiling():
            until = perf_counter() + seconds


def calibrate_table(cases: dict[str, Work], seconds: float) -> dict[str, int]:
    """Return how many units of every case take about their share of `seconds`."""
    gc.collect()
    each = seconds / len(cases)
    return {name: calibrate(work, each, False) for name, work in cases.items()}


def time_table(cases: dict[str, Work], units: dict[str, int]) -> dict[str, float]:
    """Return the seconds of a batch of every case; garbage is collected once, before the first."""
    gc.collect()
    return {name: time_batch(work, units[name], False) for name, work in cases.items()}


def calibrate(work: Work, seconds: float, collect: bool = True) -> int:
    """Return how many units take about `seconds`, at least one; the search is the warm-up."""
    units = 1
    time_batch(work, units, collect)
    while (elapsed := time_batch(work, units, collect)) < seconds / 2:
        units = max(units + 1, min(10 * units, round(units * seconds / max(elapsed, 1e-9))))
    units = max(1, round(units * seconds / elapsed))
    return max(1, round(units * seconds / time_batch(work, units, collect)))


class Worker:
    """The state between two requests: the unit of work, once it is built."""

    def __init__(self) -> None:
        self.work: Work | dict[str, Work] | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Handle one request."""
        if request["do"] == "build":
            self.work = build(request["module"], request["row"], request["contestant"])
            return {}
        work = self.work
        assert work is not None, "build comes first"
        if request["do"] == "calibrate":
            warm_up(work, 5 * request["seconds"])
        if isinstance(work, dict):
            if request["do"] == "calibrate":
                return {"units": calibrate_table(work, request["seconds"])}
            return {"seconds": time_table(work, request["units"])}
        if request["do"] == "calibrate":
            return {"units": calibrate(work, request["seconds"])}
        return {"seconds": time_batch(work, request["units"])}


def main() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    worker = Worker()
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception:  # noqa: BLE001 (any error is reported to the other process)
            answer = {"problem": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
