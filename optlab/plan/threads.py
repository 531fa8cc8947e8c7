"""Running block plans over long arrays, on all cores."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import repeat
from typing import Any

from optlab.plan import sizes
from optlab.plan.executors import Executor

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    # The threads of a pool do not exist in a forked child, which would wait for them forever.
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def run_pieces(
    executor: Executor,
    numbers: Sequence[float],
    pieces: Iterable[Sequence[Any]],
    through: Callable[[Any, Iterable[Any]], Iterable[list[Any]]] = map,
) -> None:
    """Run a plan over pieces, each a list of the plan's arrays of at most a block.

    `through` maps a function over the pieces, in order. The pieces of a phase are independent, so
    it may be `over_all_cores`; reductions are summed in the order of the pieces in any case.
    """
    prepared = executor.prepare(*numbers)
    if executor.afters:
        pieces = list(pieces)  # iterated once per phase
    for number, after in enumerate([*executor.afters, None]):
        totals: Any = None
        for parts in through(executor.phase(number, prepared), pieces):
            if parts:
                totals = (
                    parts if totals is None else [a + b for a, b in zip(totals, parts, strict=True)]
                )
        if after is not None:
            prepared = after(*totals, *prepared)


def on_all_cores(jobs: Iterable[Callable[[], None]], elements: int) -> None:
    """Run independent jobs, on all cores if they have many elements in total.

    The jobs are consumed while others run.
    """
    if elements < sizes.LARGE or sizes.cores() == 1:
        for job in jobs:
            job()
        return
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(sizes.cores() - 1, "optlab blocks")
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
    # This thread takes a share, as it need not be woken up.
    others = [_pool.submit(work, context) for context in contexts[1:]]
    try:
        work(contexts[0])
    finally:
        wait(others)  # also if one has failed: the others still write
    for done in others:
        done.result()


def over_all_cores(f: Callable[[Any], Any], given: Iterable[Any]) -> list[Any]:
    """Return `f` of each of many blocks, in order, computed on all cores."""
    given = list(given)
    found: list[Any] = [None] * len(given)

    def job(place: int) -> None:
        found[place] = f(given[place])

    on_all_cores((partial(job, i) for i in range(len(given))), len(given) * sizes.BLOCK)
    return found
