"""Running block plans over long arrays, on all cores."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import repeat
from typing import Any

import numpy as np

from optlab.plan import sizes
from optlab.plan.blocks import BlockPlan

_local = threading.local()
_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    # The threads of a pool do not live on in a forked child, which would wait for them for ever.
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def scratch(dtypes: Sequence[Any], size: int) -> list[Any]:
    """Give scratch arrays of this thread, of at most a block; they are used again."""
    kept: dict[Any, Any] = _local.__dict__.setdefault("scratch", {})
    found = []
    for number, dtype in enumerate(dtypes):
        array = kept.get((number, dtype))
        if array is None or len(array) < size:
            array = kept[number, dtype] = np.empty(size, dtype)
        found.append(array if len(array) == size else array[:size])
    return found


def run_pieces(plan: BlockPlan, numbers: Sequence[float], pieces: Iterable[Sequence[Any]]) -> None:
    """Run a plan over pieces in order, each a list of arrays of at most a block.

    Parameters
    ----------
    plan : BlockPlan
    numbers : sequence of float
    pieces : iterable of sequence of array
        In the order of ``plan.arrays``.
    """
    prepared = plan.prepare(*numbers)
    if len(plan.runs) > 1:
        pieces = list(pieces)  # gone through once a phase
    for number, run in enumerate(plan.runs):
        totals: Any = None
        for arrays in pieces:
            parts = run(*arrays, *scratch(plan.scratch, len(arrays[0])), *prepared)
            if parts:
                totals = (
                    parts if totals is None else [a + b for a, b in zip(totals, parts, strict=True)]
                )
        if number < len(plan.afters):
            prepared = plan.afters[number](*totals, *prepared)


def on_all_cores(jobs: Iterable[Callable[[], None]], elements: int) -> None:
    """Do jobs that know nothing of each other; with many elements every core takes its share.

    Parameters
    ----------
    jobs : iterable of callable
        They are made while others run.
    elements : int
        Of all jobs together.
    """
    if elements < sizes.LARGE or sizes.cores() == 1:
        for job in jobs:
            job()
        return
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(sizes.cores(), "optlab blocks")
    waiting = iter(jobs)
    lock = threading.Lock()

    def work(context: contextvars.Context) -> None:
        while True:
            with lock:
                job = next(waiting, None)
            if job is None:
                return
            context.run(job)

    contexts = [contextvars.copy_context() for _ in repeat(None, sizes.cores())]
    every = [_pool.submit(work, context) for context in contexts]
    wait(every)  # also when one has failed: the others still write
    for done in every:
        done.result()
