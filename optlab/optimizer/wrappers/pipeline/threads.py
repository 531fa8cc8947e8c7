"""Sections on threads: each worker takes its passes in the order of the schedule."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from contextvars import copy_context
from typing import Any

from optlab.optimizer.wrappers.pipeline.board import Board, Ended, Queue, Worker
from optlab.optimizer.wrappers.pipeline.errors import SectionError
from optlab.optimizer.wrappers.pipeline.passes import Plan, SectionPasses
from optlab.optimizer.wrappers.pipeline.schedule import Pass, passes
from optlab.optimizer.wrappers.pipeline.timeline import FORWARD, PipelineTrace, Span

#: Seconds that workers get to end after one has failed.
_LAST_MOMENT = 1.0


class ThreadRun:
    """One step on threads.

    Parameters
    ----------
    plan : Plan
    schedule : str
    workers : list of int
        How many each section has.
    queue_size : int
    timeout, longest : float
    first_core : int
        From 1 on, worker threads are pinned to cores from this one on; 0 leaves that to the system.
    """

    def __init__(
        self,
        plan: Plan,
        sections: list[SectionPasses],
        schedule: str,
        workers: list[int],
        queue_size: int,
        timeout: float,
        longest: float,
        first_core: int,
    ) -> None:
        self.plan, self.sections, self.schedule = plan, sections, schedule
        self.counts, self.queue_size, self.first_core = workers, queue_size, first_core
        self.board = Board(timeout, longest)
        self.spans: list[Span] = []
        gaps = range(len(sections) - 1)
        self.forward = [Queue(self.board, queue_size, s, s + 1) for s in gaps]
        self.backward = [Queue(self.board, queue_size, s + 1, s) for s in gaps]

    def run(self) -> PipelineTrace:
        """Run all passes; return their timeline.

        Raises
        ------
        SectionError
            If a section raises, stalls, or waits in vain; it names the section.
        """
        m, p = self.plan.batches.count, len(self.sections)
        threads = []
        for s, count in enumerate(self.counts):
            for w in range(count):
                worker = Worker(s, w, self.plan.program.titles[s])
                order = passes(self.schedule, p, s, m, count, w)
                self.board.workers.append(worker)
                threads.append(
                    threading.Thread(
                        target=copy_context().run,
                        args=(self._work, worker, order),
                        name=f"optlab pipeline {s}.{w}",
                        daemon=True,
                    )
                )
        self.began = time.perf_counter()
        try:
            for thread in threads:
                thread.start()
            self.board.watch()
        except BaseException as error:  # KeyboardInterrupt: the workers end, too
            self.board.fail(SectionError(f"the step was ended by {type(error).__name__}."))
            raise
        finally:
            ends = time.monotonic() + _LAST_MOMENT
            for thread in threads:
                if thread.ident is not None:
                    thread.join(max(0.0, ends - time.monotonic()))
        if self.board.failure is not None:
            raise self.board.failure
        return PipelineTrace(
            self.spans, self.plan.program.titles, m, self.schedule, self.counts, self.queue_size
        )

    def _work(self, worker: Worker, order: list[Pass]) -> None:
        try:
            worker.begin()
            if self.first_core:
                _pin(self.first_core + self.board.workers.index(worker))
            self.sections[worker.section].prepare()
            for phase, i in order:
                doing = f"the {phase} pass of micro-batch {i}"
                (self._forward if phase == FORWARD else self._backward)(worker, i, doing)
        except Ended:
            pass
        except SectionError as error:
            self.board.fail(error)
        except BaseException as error:  # noqa: BLE001 - `run` raises it, SystemExit too
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            self.board.fail(
                SectionError(f"{worker.name} raised {said} in {worker.doing}.", worker.section),
                error,
            )
        finally:
            self.board.end(worker)

    def _forward(self, worker: Worker, i: int, doing: str) -> None:
        s = worker.section
        if s == 0:
            arriving, carried = self.plan.batches.inputs(i), None
        else:
            arriving, carried = self.forward[s - 1].take(worker, i)
        worker.begins(doing)
        start = time.perf_counter()
        parcel, carried = self.sections[s].forward(i, arriving, carried)
        self._note(worker, "forward", i, start)
        if parcel is not None:
            self.forward[s].put(worker, i, (parcel, carried))

    def _backward(self, worker: Worker, i: int, doing: str) -> None:
        s = worker.section
        arriving: list[Any] | None = None
        if s < len(self.sections) - 1:
            arriving = self.backward[s].take(worker, i)
        worker.begins(doing)
        start = time.perf_counter()
        back = self.sections[s].backward(i, arriving)
        self._note(worker, "backward", i, start)
        if s > 0:
            self.backward[s - 1].put(worker, i, back)

    def _note(self, worker: Worker, phase: str, i: int, start: float) -> None:
        passes_of = self.sections[worker.section]
        end = time.perf_counter()
        began = self.began
        self.spans.append(
            Span(
                worker.section, worker.number, phase, i, start - began, end - began,
                passes_of.held, passes_of.held_bytes,
            )
        )  # fmt: skip


def _pin(core: int) -> None:
    """Pin this thread to a core; systems without the call leave it where it is."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {allowed[core % len(allowed)]})
