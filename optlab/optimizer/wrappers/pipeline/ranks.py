"""Sections on ranks: each rank runs the passes of one worker, and all take the same update.

Sends are synchronous and do not wait: at most `queue_size` of them are on their way, so a queue is
bounded on MPI, too, and two neighbours that send to each other cannot block each other, whatever
the size of the messages. Every receive is polled with a deadline (`optlab.backend.exchange`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd import pytrees
from optlab.backend.device import moved
from optlab.backend.exchange import Exchange, check_apart
from optlab.backend.rank_errors import RankError, StalledError
from optlab.backend.text import comma_list
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.wrappers.pipeline.errors import SectionError, StalledSectionError
from optlab.optimizer.wrappers.pipeline.passes import GradientSums, Plan, SectionPasses
from optlab.optimizer.wrappers.pipeline.schedule import passes
from optlab.optimizer.wrappers.pipeline.sections import Closure, Parcel
from optlab.optimizer.wrappers.pipeline.timeline import BACKWARD, FORWARD, PipelineTrace, Span

#: Tags of messages: two for each step, of which leftovers after an error are never received.
_TAGS = 16000


class Ranks:
    """The ranks that run the sections of a `PipelineOptimizer`, for all its steps.

    Parameters
    ----------
    world
        A communicator.
    timeout, longest : float
        Seconds, as for `Exchange`.
    """

    def __init__(self, world: Any, timeout: float, longest: float) -> None:
        self.exchange = Exchange(world, "PipelineOptimizer", timeout, longest)
        self.rank, self.size = self.exchange.rank, self.exchange.size
        self.comm: Any = None
        self.attempts = 0

    def agree(self, plan: Plan, workers: list[int], own: list[Any], described: Any) -> None:
        """Check that all ranks take the same step, and let all use the keys of rank 0.

        Raises
        ------
        ValueError, TypeError
            If they do not; every rank raises it.
        """
        if self.size != sum(workers):
            raise ValueError(
                f"the world has {self.size} ranks, but the sections have {sum(workers)} workers "
                f"({comma_list([f'{n} in section {s}' for s, n in enumerate(workers)])}): one rank "
                "for each."
            )
        if isinstance(plan.program, Closure) and plan.program.count > 1:
            raise TypeError(
                "a generator function runs on threads, where its frame goes from one section to "
                "the next; on ranks the network is an ol.nn.Sequential."
            )
        first = self.comm is None
        if first:
            check_apart(self.exchange, own, label_of)
            self.comm = self.exchange.duplicate()
        digest = hashlib.blake2b(digest_size=16)
        if first:
            for p in own:
                digest.update(np.asarray(moved(p.data, "cpu")).tobytes())
        mine = {
            "the same step": described,
            "the same cuts": plan.program.titles,
            "batches of one size": plan.batches.examples,
            "equal parameters (build the model after the same ol.seed)": digest.hexdigest(),
        }
        found = self.exchange.gather_objects((mine, plan.key))
        for rank, (theirs, _) in enumerate(found):
            for what, value in found[0][0].items():
                if theirs[what] != value:
                    raise ValueError(
                        f"all ranks take {what}: rank 0 has {value}, rank {rank} {theirs[what]}."
                    )
        plan.key = found[0][1]
        self.attempts += 1

    def run(
        self,
        plan: Plan,
        sections: list[SectionPasses],
        workers: list[int],
        own: list[Any],
        schedule: str,
        queue_size: int,
    ) -> tuple[dict[int, Any], list[dict[Any, Any]], PipelineTrace]:
        """Run the passes of this rank, and exchange what all have computed.

        Returns
        -------
        losses : dict
            The scaled loss of each micro-batch.
        totals : list of dict
            The gradients by leaf, of each section.
        trace : PipelineTrace

        Raises
        ------
        SectionError
            If the section of any rank fails; it names the section. Every rank raises it.
        """
        places = [(s, w) for s, count in enumerate(workers) for w in range(count)]
        one = _RankRun(self, plan, sections, workers, places, schedule, queue_size)
        cause: BaseException | None = None
        report: dict[str, Any] = {}
        try:
            one.run()
            report = one.report(own)
        except RankError:
            one.warn_neighbours()
            raise
        except _Poisoned as poison:
            one.warn_neighbours(poison.args[0])
            if poison.args[0].fatal:
                raise poison.args[0].error() from None
            report = {"failed": poison.args[0]}
        except Exception as error:  # noqa: BLE001 - every rank raises it
            cause = error
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            s, _ = places[self.rank]
            failure = Failure(
                f"section {s} ({plan.program.titles[s]}) on {self.exchange.name(self.rank)} raised "
                f"{said} in {one.doing}.",
                s, self.exchange.world_ranks[self.rank], fatal=False,
            )  # fmt: skip
            one.warn_neighbours(failure)
            report = {"failed": failure}
        reports = self.exchange.gather_objects(report)
        failures = [found["failed"] for found in reports if "failed" in found]
        if failures:
            raise failures[0].error() from cause
        return self._joined(plan, workers, own, schedule, queue_size, reports)

    def _joined(
        self,
        plan: Plan,
        workers: list[int],
        own: list[Any],
        schedule: str,
        queue_size: int,
        reports: list[dict[str, Any]],
    ) -> tuple[dict[int, Any], list[dict[Any, Any]], PipelineTrace]:
        losses: dict[int, Any] = {}
        spans: list[Span] = []
        totals: list[dict[Any, Any]] = []
        start = 0
        for s, count in enumerate(workers):
            of_section = reports[start : start + count]
            start += count
            sums = GradientSums()
            parts = {i: g for found in of_section for i, g in found["gradients"].items()}
            for number, i in enumerate(sorted(parts)):
                sums.add(number, {own[k].node: g for k, g in parts[i].items()})
            totals.append(sums.totals)
            for found in of_section:
                losses |= found["losses"]
                spans += [Span(*span) for span in found["spans"]]
            if start - count != self.rank:
                for buffer, value in zip(
                    plan.program.buffers(s), of_section[0]["buffers"], strict=True
                ):
                    buffer.set_value(value)
        trace = PipelineTrace(
            spans, plan.program.titles, plan.batches.count, schedule, workers, queue_size
        )
        return losses, totals, trace


class Failure:
    """Why a step ended, as ranks tell each other."""

    def __init__(self, message: str, section: int | None, rank: int | None, fatal: bool) -> None:
        self.message, self.section, self.rank, self.fatal = message, section, rank, fatal

    def error(self) -> SectionError:
        """Return it as an error."""
        kind = StalledSectionError if self.fatal else SectionError
        return kind(self.message, self.section, self.rank)


class _Poisoned(Exception):
    """A neighbour has told of a failure."""


class _Arrival:
    """A message that may come, as a request."""

    def __init__(self, run: _RankRun, source: int, tag: int) -> None:
        self.run, self.source, self.tag = run, source, tag

    def Test(self) -> bool:
        """Return whether it is there; let sends go on meanwhile."""
        self.run.progress()
        return bool(self.run.comm.iprobe(source=self.source, tag=self.tag))


class _RankRun:
    """The passes of one rank in one step."""

    def __init__(
        self,
        ranks: Ranks,
        plan: Plan,
        sections: list[SectionPasses],
        workers: list[int],
        places: Sequence[tuple[int, int]],
        schedule: str,
        queue_size: int,
    ) -> None:
        self.ranks, self.plan, self.sections = ranks, plan, sections
        self.workers, self.places = workers, list(places)
        self.schedule, self.queue_size = schedule, queue_size
        self.comm = ranks.comm
        self.section, self.worker = self.places[ranks.rank]
        self.passes = sections[self.section]
        self.doing = "its first pass"
        self.spans: list[Span] = []
        self.began = time.perf_counter()
        base = 2 * (ranks.attempts % _TAGS)
        self.tags = {FORWARD: base, BACKWARD: base + 1}
        #: Sends on their way, by phase, the oldest first: the rank that they go to, and a request.
        self.sends: dict[str, list[tuple[int, Any]]] = {FORWARD: [], BACKWARD: []}
        if workers[self.section] > 1:
            self.passes.sums = SeparateGradients()

    def run(self) -> None:
        """Take the passes of this rank, in the order of the schedule."""
        s, m = self.section, self.plan.batches.count
        self.passes.prepare()
        order = passes(self.schedule, len(self.sections), s, m, self.workers[s], self.worker)
        for phase, i in order:
            self.doing = f"the {phase} pass of micro-batch {i}"
            if phase == FORWARD:
                self._forward(s, i)
            else:
                self._backward(s, i)
        for phase in self.sends:
            self._wait_for_sends(phase, 1)

    def _forward(self, s: int, i: int) -> None:
        if s == 0:
            arriving = self.plan.batches.inputs(i)
        else:
            container, waits = self._receive(FORWARD, s - 1, i)
            parts, build = pytrees.flatten(container)
            arriving = Parcel(build, parts, waits)
        start = time.perf_counter()
        parcel, _ = self.passes.forward(i, arriving, None)
        self._note(FORWARD, i, start)
        if parcel is not None:
            values = [moved(v, "cpu") if hasattr(v, "dtype") else v for v in parcel.values]
            self._send(FORWARD, s + 1, i, (parcel.build(values), parcel.waits))

    def _backward(self, s: int, i: int) -> None:
        last = s == len(self.sections) - 1
        arriving = None if last else self._receive(BACKWARD, s + 1, i)
        start = time.perf_counter()
        back = self.passes.backward(i, arriving)
        self._note(BACKWARD, i, start)
        if s > 0:
            self._send(BACKWARD, s - 1, i, [g if g is None else moved(g, "cpu") for g in back])

    def _rank_of(self, section: int, micro_batch: int) -> int:
        """Return the rank that runs a micro-batch in a section."""
        return self.places.index((section, micro_batch % self.workers[section]))

    def _receive(self, phase: str, section: int, i: int) -> Any:
        source, tag = self._rank_of(section, i), self.tags[phase]
        try:
            if not self.ranks.exchange.is_local:
                self.ranks.exchange.wait({source: _Arrival(self, source, tag)})
            number, content = self.comm.recv(source=source, tag=tag)
        except RankError as error:
            raise self._named(error) from error
        if isinstance(content, Failure):
            raise _Poisoned(content)
        if number != i:
            raise RuntimeError(f"micro-batch {number} came in place of {i}.")
        return content

    def _send(self, phase: str, section: int, i: int, content: Any) -> None:
        self._wait_for_sends(phase, self.queue_size)
        dest = self._rank_of(section, i)
        request = self.comm.issend((i, content), dest=dest, tag=self.tags[phase])
        self.sends[phase].append((dest, request))

    def _wait_for_sends(self, phase: str, most: int) -> None:
        """Wait until fewer than so many sends of a phase are on their way."""
        self.progress()
        while len(self.sends[phase]) >= most:
            dest, request = self.sends[phase][0]
            try:
                if self.ranks.exchange.is_local:
                    request.wait()
                else:
                    self.ranks.exchange.wait({dest: _Sent(self, request)})
            except RankError as error:
                raise self._named(error) from error
            self.sends[phase].pop(0)

    def progress(self) -> None:
        """Forget sends that have arrived, which lets MPI go on with the others."""
        for phase, requests in self.sends.items():
            self.sends[phase] = [one for one in requests if not one[1].Test()]

    def _named(self, error: RankError) -> SectionError:
        """Return the error of a rank with the name of its section."""
        ranks = self.ranks.exchange.world_ranks
        if error.rank not in ranks:
            return StalledSectionError(str(error), None, error.rank)
        s, _ = self.places[ranks.index(error.rank)]
        kind = StalledSectionError if isinstance(error, StalledError) else SectionError
        title = self.plan.program.titles[s]
        return kind(f"section {s} ({title}) is missing: {error}", s, error.rank)

    def warn_neighbours(self, failure: Failure | None = None) -> None:
        """Tell the ranks that wait for this one that it has failed."""
        import sys

        if failure is None:
            error = sys.exc_info()[1]
            failure = Failure(
                str(error), getattr(error, "section", None), getattr(error, "rank", None), True
            )
        if self.ranks.exchange.is_local and failure.fatal:
            return  # the world tells all ranks itself
        for phase, section in ((FORWARD, self.section + 1), (BACKWARD, self.section - 1)):
            if 0 <= section < len(self.sections):
                for w in range(self.workers[section]):
                    dest = self.places.index((section, w))
                    self.comm.isend((-1, failure), dest=dest, tag=self.tags[phase])

    def report(self, own: list[Any]) -> dict[str, Any]:
        """Return what this rank has computed, for all."""
        numbers = {p.node: k for k, p in enumerate(own) if p.node is not None}
        sums = self.passes.sums
        by_part = sums.parts if isinstance(sums, SeparateGradients) else {0: sums.totals}
        return {
            "gradients": {
                i: {
                    numbers[leaf]: moved(g, "cpu") if isinstance(g, np.ndarray) else g
                    for leaf, g in found.items()
                    if leaf in numbers
                }
                for i, found in by_part.items()
            },
            "losses": self.passes.losses,
            "spans": [tuple(one) for one in self.spans],
            "buffers": [buffer.data for buffer in self.plan.program.buffers(self.section)],
        }

    def _note(self, phase: str, i: int, start: float) -> None:
        end = time.perf_counter()
        self.spans.append(
            Span(
                self.section, self.worker, phase, i, start - self.began, end - self.began,
                self.passes.held, self.passes.held_bytes,
            )
        )  # fmt: skip


class _Sent:
    """A send on its way, as a request that lets the others go on."""

    def __init__(self, run: _RankRun, request: Any) -> None:
        self.run, self.request = run, request

    def Test(self) -> bool:
        """Return whether it has arrived."""
        return bool(self.request.Test())


class SeparateGradients(GradientSums):
    """Gradients of the micro-batches of one worker of several, not added up yet."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[int, dict[Any, Any]] = {}

    def add(self, i: int, gradients: dict[Any, Any]) -> None:
        """Keep the gradients of a micro-batch."""
        self.parts[i] = gradients
