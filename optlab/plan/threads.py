"""Running a block plan over long arrays, on all cores."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import numpy as np

from optlab.plan.blocks import BlockPlan

#: Elements of a block. For Adam in float32, calls cost less than memory does from 64 K on.
BLOCK = 1 << 16
#: From here on a second thread pays.
LARGE = 8 * BLOCK

_local = threading.local()
_pool: ThreadPoolExecutor | None = None


def cores() -> int:
    """Give the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def run_pieces(
    plan: BlockPlan, numbers: Sequence[float], pieces: Iterable[Sequence[Any]], elements: int
) -> None:
    """Run a plan over pieces, each a list of arrays of at most `BLOCK` elements.

    Parameters
    ----------
    plan : BlockPlan
    numbers : sequence of float
    pieces : iterable of sequence of array
        In the order of ``plan.arrays``. They are made while others run.
    elements : int
        Of all pieces together: with many of them every core takes its share.
    """
    prepared = plan.prepare(*numbers)
    if elements < LARGE or cores() == 1:
        for arrays in pieces:
            plan.run(*arrays, *scratch(plan.scratch, len(arrays[0])), *prepared)
        return
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(cores(), "optlab blocks")
    waiting = iter(pieces)
    lock = threading.Lock()

    def work(context: contextvars.Context) -> None:
        while True:
            with lock:
                arrays = next(waiting, None)
            if arrays is None:
                return
            here = scratch(plan.scratch, len(arrays[0]))
            context.run(plan.run, *arrays, *here, *prepared)

    contexts = [contextvars.copy_context() for _ in repeat(None, cores())]
    for done in [_pool.submit(work, context) for context in contexts]:
        done.result()
