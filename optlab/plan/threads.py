"""Running block plans over long arrays, on all cores."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from optlab.backend import blas_threads
from optlab.plan import sizes
from optlab.plan.executors import Executor
from optlab.plan.progress import once
from optlab.plan.scratch import give_up


class _Worker:
    """A thread that runs a job when it is given one, and sleeps in between.

    A lock wakes it. A future of `concurrent.futures` takes 20 us longer, a fifth of a product that
    two cores share.
    """

    __slots__ = ("_idle", "_job", "_wake")

    def __init__(self, idle: list[_Worker]) -> None:
        self._idle, self._wake = idle, threading.Lock()
        self._job: Callable[[], None] | None = None
        self._wake.acquire()
        threading.Thread(target=self._run, name="optlab blocks", daemon=True).start()

    def give(self, job: Callable[[], None]) -> None:
        """Let the thread run a job, which catches its exceptions."""
        self._job = job
        self._wake.release()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            job, self._job = self._job, None
            assert job is not None
            job()
            del job  # and the arrays in it


class _Pool:
    """At most one thread for each core but that of the caller."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.idle: list[_Worker] = []
        self._count = 0

    def take(self, most: int) -> list[_Worker]:
        """Return up to so many threads that are idle; new ones if there may be more."""
        found: list[_Worker] = []
        with self._lock:
            while len(found) < most:
                if self.idle:
                    found.append(self.idle.pop())
                elif self._count < sizes.cores() - 1:
                    try:
                        found.append(_Worker(self.idle))
                    except RuntimeError:  # no more threads, or the interpreter exits
                        break
                    self._count += 1
                else:
                    break
        return found


_pool: _Pool | None = None


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
    done: dict[Any, Any] | None = None,
) -> None:
    """Run a plan over pieces, each a list of the plan's arrays of at most a block.

    `through` maps a function over the pieces, in order. The pieces of a phase are independent, so
    it may be `over_all_cores`; reductions are summed in the order of the pieces in any case.
    `done` records what was done, by phase and number of the piece: after an exception the same call
    goes on from there.
    """
    record: dict[Any, Any] = {} if done is None else done
    prepared = executor.prepare(*numbers)
    if executor.afters:
        pieces = list(pieces)  # iterated once per phase
    for number, after in enumerate([*executor.afters, None]):
        totals: Any = None
        run = executor.phase(number, prepared)

        def step(piece: tuple[int, Sequence[Any]], number: int = number, run: Any = run) -> Any:
            return once(record, (number, piece[0]), run, piece[1])

        for parts in through(step, enumerate(pieces)):
            if parts:
                totals = (
                    parts if totals is None else [a + b for a, b in zip(totals, parts, strict=True)]
                )
        if after is not None:
            prepared = after(*totals, *prepared)


def on_all_cores(jobs: Iterable[Callable[[], Any]], elements: int) -> None:
    """Run independent jobs, on all cores if they have many elements in total.

    The jobs are consumed while others run.
    """
    _on_threads(jobs, 1 if elements < sizes.LARGE else sizes.cores())


def products_on_all_cores(jobs: Sequence[Callable[[], Any]]) -> None:
    """Run independent jobs that multiply matrices, on as many cores as products may use.

    Each product uses one thread, however many there are, so its bits are the same. Where the number
    of threads of a product cannot be held to one, the jobs run one after another.
    """
    with blas_threads.one_each() as threads:
        if threads == 1 and blas_threads.chosen_by_lab():
            # These threads sleep when they wait: the lab's reason for one does not hold for them.
            threads = sizes.cores()
        _on_threads(jobs, min(threads, sizes.cores(), len(jobs)))


def _on_threads(jobs: Iterable[Callable[[], Any]], threads: int) -> None:
    if threads <= 1:
        for job in jobs:
            job()
        return
    global _pool
    if _pool is None:
        _pool = _Pool()
    pool = _pool
    waiting = iter(jobs)
    lock = threading.Lock()
    errors: list[BaseException] = []

    def work(context: contextvars.Context) -> None:
        while True:
            with lock:
                job = next(waiting, None)
            if job is None:
                return
            try:
                context.run(job)
            except BaseException:
                give_up()
                raise

    def share(worker: _Worker, context: contextvars.Context, ended: Any) -> None:
        try:
            work(context)
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            errors.append(error)
        finally:
            pool.idle.append(worker)
            ended.release()

    ends = []
    for worker in pool.take(threads - 1):
        ended = threading.Lock()
        ended.acquire()
        ends.append(ended)
        worker.give(partial(share, worker, contextvars.copy_context(), ended))
    try:
        work(contextvars.copy_context())  # this thread takes a share: it need not be woken up
    finally:
        for ended in ends:
            ended.acquire()  # also if one has failed: the others still write
    if errors:
        raise errors[0]


def over_all_cores(f: Callable[[Any], Any], given: Iterable[Any]) -> list[Any]:
    """Return `f` of each of many blocks, in order, computed on all cores."""
    given = list(given)
    found: list[Any] = [None] * len(given)

    def job(place: int) -> None:
        found[place] = f(given[place])

    on_all_cores((partial(job, i) for i in range(len(given))), len(given) * sizes.BLOCK)
    return found
