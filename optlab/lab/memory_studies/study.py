"""Memory against time: one step, run under several schedules and byte budgets."""

from __future__ import annotations

import gc
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from optlab.autograd.checkpoint.prediction import Prediction
from optlab.autograd.remat.errors import MemoryBudgetError
from optlab.lab.memory_studies.result import MemoryStudy
from optlab.lab.memory_studies.rows import MemoryRun, first_line
from optlab.lab.memory_studies.runs import (
    PLAIN,
    Outcome,
    StepRunner,
    Way,
    first_difference,
    read_budget,
    read_schedule,
    schedule_of,
    takes_run,
)
from optlab.lab.memory_studies.snapshot import Snapshot
from optlab.optimizer import Optimizer
from optlab.trace.memory.reporting import ledger, predict

#: The default schedules.
SCHEDULES = ("plain", 4, "sqrt", "revolve")


def memory_study(
    step: Any,
    schedules: Sequence[Any] = SCHEDULES,
    budgets: Sequence[Any] = (),
    *,
    own: Mapping[str, Any] | None = None,
    optimizer: Any = None,
    repeats: int = 5,
    timelines: bool = True,
) -> MemoryStudy:
    """Run a step under recomputation schedules and byte budgets: its memory and its time.

    Every way must give the results of the plain one, to the bit: the gradient of each leaf, the
    value of the step, buffers (and, with an optimizer, parameters) afterwards, and the position of
    the random stream. If one does not, its row has the first difference; if one raises an error,
    its row has the error, and the others are measured all the same.

    Nothing of the study remains: parameters, gradients, slots, buffers and random numbers are
    restored.

    Parameters
    ----------
    step : callable
        Runs one step, forward and backward, each time it is called. If it takes an argument, that
        is ``run(layers, x)``, by which it has to run its chain of layers. If it takes none, every
        outermost `nn.Sequential` that is called inside is run by the schedule.
    schedules : sequence
        ``"plain"``, a number of segments (of a shorter chain, as many as it has layers),
        ``"sqrt"``, ``"revolve"``, ``("revolve", snapshots)``, or a Schedule. Plain always runs,
        and is first.
    budgets : sequence of int or str
        Bytes, or text such as ``"40 MiB"``, for `optlab.rematerialize`.
    own : dict of str to callable, optional
        Other steps that should give the same, by name, such as one that calls `optlab.recompute`
        itself. They are run as they are.
    optimizer : Optimizer or list of them, optional
        Needed if the step makes updates: it is restored before each run.
    repeats : int
        How often the step is timed in each way, the ways taking turns; the median counts. A single
        time has no spread and shows no difference.
    timelines : bool
        Also trace the memory of every array over one run of each way (`optlab.memory.ledger`).

    Returns
    -------
    MemoryStudy
        One row per run: ``study.figure()`` draws them, ``study.table()`` is a pandas DataFrame.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, the step makes no gradients, it is not the same each time, or there
        is no chain for the schedules to run.
    RuntimeError
        If the step makes updates with an optimizer that was not given, or writes to a Tensor that
        no layer holds.
    Exception
        Any error of the plain run.

    Notes
    -----
    The peak is what `tracemalloc` measures above the start of the step, with gradients allocated,
    as in every step but the first. Time is measured without it, after another step of the same way.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> blocks = [ol.nn.Sequential(ol.nn.Linear(32, 32), ol.nn.Tanh()) for _ in range(9)]
    >>> x = ol.randn([4096, 32])
    >>> def step(run):
    ...     loss = run(blocks, x).mean()
    ...     loss.backward()
    ...     return loss
    >>> study = ol.lab.memory_study(step, ["plain", "sqrt"], repeats=1)
    >>> study.equal
    True
    >>> study["sqrt"].recomputed_layers, study["sqrt"].peak < study["plain"].peak
    (9, True)
    """
    given_run = takes_run(step)
    ways = _ways(schedules, budgets, own)
    optimizers = _optimizers(optimizer)
    if isinstance(repeats, bool) or not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise ValueError(f"repeats must be a whole number of at least 1; got {repeats!r}.")
    study = _Study(StepRunner(step, Snapshot(optimizers)), optimizers)
    try:
        study.look(ways, given_run)
        rows = [MemoryRun(way.name, way) for way in ways]
        for measure in (study.prove, study.measure_peak, *[study.keep_account] * timelines):
            for row in rows:
                study.attempt(row, measure)
        for _ in range(int(repeats)):
            for row in rows:
                study.attempt(row, study.take_time)
    finally:
        study.runner.snapshot.end()
    return study.result(rows)


def _ways(schedules: Any, budgets: Any, own: Any) -> list[Way]:
    """Read the ways to compare; the plain run comes first."""
    for name, given in (("schedules", schedules), ("budgets", budgets)):
        if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
            raise TypeError(f"{name} takes a list, such as [{given!r}]; got {given!r}.")
    found = [PLAIN, *map(read_schedule, schedules), *map(read_budget, budgets)]
    if own is not None and not isinstance(own, Mapping):
        raise TypeError(f"own takes a dict of names and steps; got {type(own).__name__}.")
    for name, step in (own or {}).items():
        if takes_run(step, f"own[{name!r}]"):
            raise TypeError(
                f"own[{name!r}] is run as it is: it takes no run. Call its layers itself."
            )
        found.append(Way(str(name), "own", step=step))
    by_name: dict[str, Way] = {}
    for way in found:
        if by_name.setdefault(way.name, way) != way:
            raise ValueError(f"two ways are named {way.name!r}; give one of them another name.")
    return list(by_name.values())


def _optimizers(given: Any) -> list[Any]:
    wanted = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
    for one in wanted:
        if not isinstance(one, Optimizer) or one.is_template:
            raise TypeError(
                "optimizer takes the optimizer whose step() the step calls, made with parameters, "
                f"or a list of them; got {one!r}."
            )
    return wanted


class _Study:
    """The measurements, one after the other, each from the same start."""

    def __init__(self, runner: StepRunner, optimizers: list[Any]) -> None:
        self.runner, self.snapshot, self.optimizers = runner, runner.snapshot, optimizers
        self.plain = Outcome()
        self.predictions: list[Prediction] = []
        #: Forward times of the chains, by the name of the way.
        self.forward: dict[str, list[float]] = defaultdict(list)

    # Before anything is compared ----------------------------------------------------------------

    def look(self, ways: list[Way], given_run: bool) -> None:
        """Run the step once: what it touches, and the cost of its chains."""
        wanted = [way for way in ways if way.kind == "schedule"]

        def look(chain: list[Any], layers: Any, args: tuple[Any, ...]) -> None:
            self.snapshot.meet(layers)
            for i, layer in enumerate(chain):
                self.snapshot.meet(layer, f"{i}.")
            self.predictions.append(predict(chain, *args, segments=1))

        self.runner.look = look
        with self.snapshot.recording():
            self.runner.run(PLAIN)
        self.runner.look = None
        self.snapshot.check_writes()
        self._check_chains(wanted, given_run)
        self.snapshot.restore()
        self.runner.observe(PLAIN, self.plain)
        returns_arrays = any(hasattr(v, "dtype") for v in self.plain.value)
        if not self.plain.gradients and (self.plain.unused or not returns_arrays):
            raise ValueError(
                "the step makes no gradients: it has to run forward and backward, loss.backward(), "
                "each time that it is called."
            )
        self.snapshot.restore()
        again = Outcome()
        self.runner.observe(PLAIN, again)
        said = first_difference(self.plain, again, self.snapshot.names)
        if said:
            raise ValueError(
                f"the step is not the same each time that it is called: {said}. Take the batch and "
                "what else changes out of it, so that runs can be compared."
            )

    def _check_chains(self, wanted: list[Way], given_run: bool) -> None:
        if not wanted:
            return
        if not self.predictions:
            raise ValueError(
                "step(run) did not run its layers by run(layers, x), so there is no chain for the "
                "schedules. Write y = run(model, x) in place of y = model(x)."
                if given_run
                else "no nn.Sequential was called inside the step, so there is no chain for the "
                "schedules. Let it take an argument, def step(run), and run the layers by "
                "run(layers, x); or give budgets=[...] and schedules=['plain']."
            )
        longest = max(len(one.operations) for one in self.predictions)
        for way in wanted:
            if isinstance(way.segments, int) and way.segments > longest and way.segments != 4:
                raise ValueError(
                    f"{way.segments} segments are more than the chain has layers ({longest})."
                )

    # One way ------------------------------------------------------------------------------------

    def attempt(self, row: MemoryRun, measure: Callable[[MemoryRun], None]) -> None:
        """Measure one aspect of a run; if it fails, record only that. The plain run must not fail.

        One way that cannot run does not invalidate the study of the others.
        """
        if not row.ran:
            return
        try:
            measure(row)
        except Exception as error:
            if row.way == PLAIN:
                error.add_note("(in the plain run of memory_study)")
                raise
            if isinstance(error, MemoryBudgetError) and row.way.budget is not None:
                row.fails(smallest=error.smallest)
            else:
                row.fails(raised=first_line(error))

    def prove(self, row: MemoryRun) -> None:
        """Run the step in one way, and compare."""
        self.snapshot.restore()
        seen = Outcome()
        self.runner.observe(row.way, seen)
        row.difference = first_difference(self.plain, seen, self.snapshot.names)
        row.operations, row.recomputed_operations = seen.operations, seen.recomputed
        if row.way.kind not in ("plain", "schedule"):
            return
        of_chains = [
            replace(one, schedule=schedule_of(row.way, len(one.operations)))
            for one in self.predictions
        ]
        row.predicted_operations = sum(one.recomputed_operations for one in of_chains)
        row.recomputed_layers = sum(one.recomputed_layers for one in of_chains)
        if len(of_chains) == 1:
            [row.prediction] = of_chains

    def ready(self) -> None:
        """Restore the start, with a zero gradient where a step leaves one."""
        self.snapshot.restore()
        for leaf in self.snapshot.leaves:
            g = self.plain.gradients.get(leaf)
            if type(g) is np.ndarray:
                leaf.grad = np.zeros_like(g)

    def measure_peak(self, row: MemoryRun) -> None:
        """Measure the peak of the traced bytes of a run, above its start."""
        with _tracing():
            self.ready()
            gc.collect()
            start = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            self.runner.run(row.way)
            row.peak = tracemalloc.get_traced_memory()[1] - start

    def keep_account(self, row: MemoryRun) -> None:
        """Trace the memory of every array over a run."""
        self.ready()
        with ledger() as row.timeline:
            self.runner.run(row.way)

    def take_time(self, row: MemoryRun) -> None:
        """Time a run once, after an untimed step of the same way.

        In training the previous step has freed memory, which is warm.
        """
        self.ready()
        self.runner.run(row.way)
        self.ready()
        gc.collect()
        was_on = gc.isenabled()
        gc.disable()
        try:
            start = perf_counter()
            self.runner.run(row.way)
            row.times.append(perf_counter() - start)
            self.forward[row.name].append(self.runner.seconds)
        finally:
            if was_on:
                gc.enable()

    def result(self, rows: list[MemoryRun]) -> MemoryStudy:
        """Return the study."""
        layers = sum(len(one.operations) for one in self.predictions)
        # Forward is fastest if nothing is stored, as in a recomputation.
        forward = min((median(self.forward[r.name]) for r in rows
                       if r.ran and r.way.kind in ("plain", "schedule")), default=0.0)  # fmt: skip
        return MemoryStudy(
            rows,
            chains=self.predictions,
            layer_seconds=forward / layers if layers else 0.0,
            leaves=len(self.plain.gradients),
            optimizers=[type(one).__name__ for one in self.optimizers],
        )


@contextmanager
def _tracing() -> Iterator[None]:
    """Trace allocations, unless they are being traced already."""
    if tracemalloc.is_tracing():
        yield
        return
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
