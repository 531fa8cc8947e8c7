"""All members of a sweep run: as one loop where they can, else one after another."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import Any

import numpy as np

from optlab.lab.cell_store import OPEN, Quantity, Sent, SweepStore, mapped
from optlab.lab.compare import RaceWarning, run_race
from optlab.lab.members import Group
from optlab.lab.problems.surface import Surface
from optlab.lab.progress import Patience
from optlab.lab.sweeps.outcome import Outcome, cells
from optlab.lab.vectorized import EnsembleRun, replay
from optlab.optimizer.rule.declaration import is_built_in
from optlab.optimizer.step.member_program import MemberProgram
from optlab.optimizer.wrappers import layers_of
from optlab.plan import CaptureError, Plan, capture_value_and_grad
from optlab.plan.member_loops import Execution, run_members

#: Operations on numbers of a chunk: about half a second of NumPy, after which Ctrl-C is heard.
_CHUNK = 1 << 30
#: Copies of the state of a member that exist at once, beside its results.
_COPIES = 4


class Sweeper:
    """The members of a sweep, which it runs, and whose histories it replays.

    Parameters
    ----------
    surface : Surface
    groups : list of Group
    starts : array, shape (starts, dimension)
        Member number i starts at ``starts[i % len(starts)]``.
    steps, seed : int
    limit : int
        Bytes of the arrays that a chunk may have.
    executor : Executor or callable, optional
        Runs members that run separately.
    to : path, optional
        A Zarr store. All members run separately, and are written there.
    """

    def __init__(
        self,
        surface: Surface,
        groups: list[Group],
        starts: np.ndarray,
        steps: int,
        seed: int,
        limit: int,
        executor: Executor | Callable[[], Executor] | None = None,
        to: Any = None,
    ) -> None:
        self.surface = surface
        self.groups = groups
        self.starts = starts
        self.steps = steps
        self.seed = seed
        self.limit = limit
        self.executor = executor
        self.to = to
        self.members = sum(len(group.numbers) for group in groups)
        self.plan: Plan | None = None
        self.outcome = Outcome(self.members, surface.dimension)
        #: The programs of the groups that were one loop.
        self._programs: list[tuple[Group, MemberProgram]] = []
        #: The histories of the members that ran separately.
        self._separate: list[tuple[np.ndarray, EnsembleRun]] = []

    def run(self, report: Callable[[int], None]) -> Outcome:
        """Run all members; an interrupt ends it, and keeps what is done."""
        try:
            if self.to is not None:
                self._run_stored(report)
            else:
                for group in self.groups:
                    self._run_group(group, report, split=True)
        except KeyboardInterrupt:
            self.outcome.interrupted = True
            self.outcome.said.append("interrupted: the cells that had not run are missing")
        return self.outcome

    def _run_group(self, group: Group, report: Callable[[int], None], split: bool) -> None:
        try:
            program = self._program(group)
        except CaptureError as error:
            parts = group.split() if split else [group]
            if len(parts) > 1:
                for part in parts:
                    self._run_group(part, report, split=False)
                return
            self._run_separately(group, str(error), report)
            return
        if not self._run_loop(group, program, report):
            self._run_separately(group, "one loop gave other numbers than single runs", report)

    # Into a store -------------------------------------------------------------------------------

    def _run_stored(self, report: Callable[[int], None]) -> None:
        """Run members one by one, each written to the store by who runs it."""
        tasks: list[Any] = [None] * self.members
        for group in self.groups:
            for k, i in enumerate(group.numbers):
                tasks[i] = self._task(group, k)
        dimension = self.surface.dimension
        store = SweepStore(
            self.to,
            self.members,
            {
                "losses": Quantity((self.steps + 1,), "float64", ("step",)),
                "loss": Quantity((), "float64", ()),
                "point": Quantity((dimension,), "float64", ("coordinate",)),
                "stopped": Quantity((), "int64", ()),
            },
            self._described(),
        )
        found = self.outcome
        done = int((store.marks != OPEN).sum())
        try:
            store.run(_run_cell, list(map(Sent, tasks)), self.executor, report)
        finally:
            found.known[:] = store.marks != OPEN
            found.loss[:], found.point[:] = store.read("loss"), store.read("point")
            found.stopped[:] = np.where(found.known, store.read("stopped"), -1)
            found.errors.update(store.errors())
        again = f", {cells(done)} of them by an earlier call" if done else ""
        found.said.append(
            f"{cells(self.members)} one after another into {store.path}{again}; histories are "
            "replayed when they are read"
        )
        if len(found.errors) == self.members:
            raise RuntimeError(f"every cell raised; the first: {found.errors[0]}")

    def _described(self) -> dict[str, Any]:
        """Return what is swept, as JSON has it."""
        members = [
            (repr(group.member(k)), int(i))
            for group in self.groups
            for k, i in enumerate(group.numbers)
        ]
        return {
            "problem": self.surface.title,
            "optimizers": [text for text, _ in sorted(members, key=lambda one: one[1])],
            "starts": self.starts.tolist(),
            "steps": self.steps,
            "seed": self.seed,
        }

    # One loop -----------------------------------------------------------------------------------

    def _program(
        self, group: Group, arrival: tuple[list[np.ndarray], float] | None = None
    ) -> MemberProgram:
        return group.program(self.surface, self._surface_plan(), self.steps, self.seed, arrival)

    def _surface_plan(self) -> Plan:
        """Return value and gradient as a plan; also of a function that has promised nothing.

        A sweep calls the function of a user, and nothing between its calls: what it does twice
        alike it does so in all of them. Some members are run by themselves, too, and compared.
        """
        if self.plan is None:
            self.plan = self.surface.plan
        if self.plan is None:
            start = [np.float64(c) for c in self.surface.start]
            try:
                self.plan = capture_value_and_grad(self.surface.function, *start)
            except CaptureError:
                raise
            except Exception as error:
                raise CaptureError(f"{type(error).__name__}: {error}") from error
            if np.shape(self.plan.replay(*start)[0]) != ():
                raise CaptureError(f"{self.surface.title} gives no single number")
        return self.plan

    def _run_loop(self, group: Group, made: MemberProgram, report: Callable[[int], None]) -> bool:
        """Run a group as one loop; return whether it gives the numbers of single runs."""
        program, found, count = made.program, self.outcome, len(group.numbers)
        execution = Execution(program, count)
        executors: dict[str, None] = {}
        needs = 8 * program.height * _COPIES
        chunk = max(1, min(self.limit // needs, _CHUNK // max(program.work, 1)))
        chunks = max(1, math.ceil(count / chunk))
        checks = self._must_verify(group, made)
        for i in range(chunks):
            first, last = i * count // chunks, (i + 1) * count // chunks
            own = group.numbers[first:last]
            states = made.start(self.starts[own % len(self.starts)])
            loop, how = execution.choose()
            executors[how] = None
            stopped = run_members(loop, states, first)
            points, evaluated = states[program.rows[0]].T, made.evaluated(states)
            with np.errstate(all="ignore"):
                loss = self._values(evaluated)
            stopped[(stopped < 0) & ~np.isfinite(loss)] = self.steps
            early = (stopped >= 0) & (stopped < self.steps)
            loss[early] = np.nan
            if checks and not all(
                self._same_alone(group, first + k, loss[k], points[k], stopped[k])
                for k in sorted({0, (last - first) // 2, last - first - 1})
            ):
                found.known[group.numbers[:first]] = False
                return False
            found.loss[own], found.stopped[own] = loss, stopped
            found.point[own] = np.where(early[:, None], np.nan, points)
            found.known[own] = True
            report(int(found.known.sum()))
        self._programs.append((group, made))
        how = ", then ".join(executors)
        found.ran(count, f"{how}; histories are replayed when they are read", loop=self.steps)
        return True

    def _values(self, points: np.ndarray) -> np.ndarray:
        assert self.plan is not None
        value = self.plan.replay(*(np.ascontiguousarray(column) for column in points.T))[0]
        return np.broadcast_to(np.asarray(value, dtype=float), (len(points),)).copy()

    def _must_verify(self, group: Group, made: MemberProgram) -> bool:
        rule, layers = layers_of(group.template)
        own = all(is_built_in(type(one)) for one in (rule, *layers))
        return not (own and self.surface.repeatable and not made.program.inexact)

    def _same_alone(
        self, group: Group, k: int, loss: float, point: np.ndarray, stopped: int
    ) -> bool:
        """Return whether a member has the same results when it runs by itself."""
        if stopped == 0:
            return True  # `compare` refuses such a start
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RaceWarning)
            trace, final, ended, error = _run_member(self._task(group, k))
        if error is not None or ended != stopped:
            return False
        if 0 <= stopped < self.steps:
            return True
        return bool(
            np.array_equal(final, loss, equal_nan=True)
            and np.array_equal(trace.parameters["point"][-1], point, equal_nan=True)
        )

    # One by one ---------------------------------------------------------------------------------

    def _task(self, group: Group, k: int) -> Any:
        i = group.numbers[k]
        start = tuple(self.starts[i % len(self.starts)].tolist())
        return self.surface, group.member(k), start, self.steps, self.seed

    def _run_separately(self, group: Group, why: str, report: Callable[[int], None]) -> None:
        tasks = [Sent(self._task(group, k)) for k in range(len(group.numbers))]
        results: Iterator[Sent] = mapped(self.executor, _run_sent, tasks)
        found, steps = self.outcome, self.steps
        run = EnsembleRun(len(tasks), steps, self.surface.dimension)
        self._separate.append((group.numbers, run))
        found.ran(len(tasks), why)
        failed: list[BaseException] = []
        patience = Patience(len(tasks), self.surface.title, why)
        for k, result in enumerate(results):
            trace, final, stopped, error = result.value
            patience.ended(k + 1)
            i = group.numbers[k]
            if error is not None:
                failed.append(error)
                found.errors[int(i)] = f"{type(error).__name__}: {error}"
            n = 0 if trace is None else len(trace)
            if trace is not None:
                run.loss[k, :n] = trace.loss
                run.loss[k, n] = final
                run.point[k, : n + 1] = trace.parameters["point"]
                run.gradient[k, :n] = trace.gradients["point"]
                for where, recorded in ((run.slots, trace.slots), (run.terms, trace.terms)):
                    for name, arrays in recorded.items():
                        rows = where.setdefault(name, np.full(run.gradient.shape, np.nan))
                        rows[k, :n] = arrays["point"]
            run.stopped[k] = stopped
            found.stopped[i] = stopped
            # Several gradients for one update (SAM, LBFGS) make the row shorter.
            last = n if stopped < 0 else steps
            found.loss[i] = run.loss[k, last]
            found.point[i] = run.point[k, last]
            found.known[i] = True
            report(int(found.known.sum()))
        if failed and len(failed) == self.members:
            raise failed[0]  # nothing works: the error itself says more than a table of it

    # Arrivals -----------------------------------------------------------------------------------

    def arrivals(self, targets: np.ndarray, distance: float) -> np.ndarray:
        """Return after how many steps each member stays within a distance of its target.

        The members run again. Those that end outside get one more than the number of all steps.

        Parameters
        ----------
        targets : array, shape (members, dimension)
        distance : float
        """
        found = np.full(self.members, np.nan)
        for group, _ in self._programs:
            made = self._program(group, (list(targets[group.numbers].T), distance))
            loop, _ = Execution(made.program, len(group.numbers)).choose()
            points = self.starts[group.numbers % len(self.starts)]
            states = made.start(points)
            states[-1] = _outside(points, targets[group.numbers], distance)
            run_members(loop, states)
            found[group.numbers] = states[-1]
        for index, run in self._separate:
            outside = _outside(run.point, targets[index][:, None], distance)
            last = self.steps + 1 - np.argmax(outside[:, ::-1], axis=1)
            found[index] = np.where(outside.any(axis=1), last, 0)
        return found

    # Histories ----------------------------------------------------------------------------------

    def histories(self) -> EnsembleRun:
        """Replay all members, and return what they did at every step."""
        if self.to is not None:
            again = Sweeper(
                self.surface, self.groups, self.starts, self.steps, self.seed, self.limit
            )
            again.run(lambda count: None)
            return again.histories()
        runs = [
            (
                group.numbers,
                replay(
                    self.surface, self._surface_plan(), made,
                    self.starts[group.numbers % len(self.starts)], self.steps, self.seed,
                ),
            )
            for group, made in self._programs
        ]  # fmt: skip
        runs += self._separate
        if len(runs) == 1 and np.array_equal(runs[0][0], np.arange(self.members)):
            return self._without_missing(runs[0][1])
        whole = EnsembleRun(self.members, self.steps, self.surface.dimension)
        for index, run in runs:
            whole.loss[index], whole.point[index] = run.loss, run.point
            whole.gradient[index], whole.stopped[index] = run.gradient, run.stopped
            for where, arrays in ((whole.slots, run.slots), (whole.terms, run.terms)):
                for name, rows in arrays.items():
                    where.setdefault(name, np.full(whole.gradient.shape, np.nan))[index] = rows
        return self._without_missing(whole)

    def _without_missing(self, run: EnsembleRun) -> EnsembleRun:
        missing = ~self.outcome.known
        if missing.any():
            for array in (run.loss, run.point, run.gradient, *run.slots.values()):
                array[missing] = np.nan
            for array in run.terms.values():
                array[missing] = np.nan
        return run


def _outside(points: np.ndarray, targets: np.ndarray, distance: float) -> np.ndarray:
    """Return whether points are farther from their targets, as the loop computes it."""
    apart = points - targets
    square = apart[..., 0] * apart[..., 0]
    for d in range(1, apart.shape[-1]):
        square = square + apart[..., d] * apart[..., d]
    return ~(square <= distance * distance)


def _run_member(task: Any) -> tuple[Any, float, int, BaseException | None]:
    """Run one member; a module-level function, so that another process can call it."""
    surface, template, point, steps, seed = task
    try:
        race = run_race(surface, {"run": template}, start=point, steps=steps, seed=seed)
    except Exception as error:  # noqa: BLE001 - a failed cell is marked
        return None, math.nan, 0, error
    trace = race["run"]
    if trace.stopped is not None and trace.stopped.startswith("interrupted"):
        raise KeyboardInterrupt
    ended = len(trace) if trace.stopped else -1
    return trace, race.final_loss["run"], ended, trace.error


def _run_sent(task: Sent) -> Sent:
    """Run one member for another thread or process."""
    trace, *others = _run_member(task.value)
    if trace is not None:
        trace.problem = None  # who asked has it
    return Sent((trace, *others), "the run")


def _run_cell(task: Sent) -> dict[str, Any]:
    """Run one member for a store."""
    surface, _, _, steps, _ = task.value
    trace, final, stopped, error = _run_member(task.value)
    losses = np.full(steps + 1, np.nan)
    point = np.full(surface.dimension, np.nan)
    if trace is not None:
        losses[: len(trace)] = trace.loss
        losses[len(trace)] = final
        if stopped < 0 or len(trace) == steps:
            point = trace.parameters["point"][-1]
    last = final if stopped < 0 else losses[-1]
    found = {"losses": losses, "loss": last, "point": point, "stopped": stopped}
    if error is not None:
        found["error"] = f"{type(error).__name__}: {error}"
    return found
