"""The recorder: it listens to an optimizer and writes a trace, without changing the run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from operator import attrgetter
from types import TracebackType
from typing import Any

import numpy as np

from optlab.backend import events
from optlab.backend.arrays import on_host
from optlab.backend.ensemble import EnsembleArray
from optlab.optimizer import Optimizer, Update
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.params.groups import parameter_names
from optlab.optimizer.step.records import whole_updates
from optlab.trace.memory.reporting import ledger
from optlab.trace.trace import Column, Trace

#: Up to this many elements everything is recorded by default; above, norms.
SMALL = 1000

PROBES = {"toy": ("values",), "light": ("norms",)}
#: Instance attributes of traces.
_OF_TRACES = ("name", "settings", "stopped", "error", "problem")

_is_whole = attrgetter("whole")


class _PendingSteps:
    """Steps that wait to be written into the columns of a trace, and how they are written.

    It refers to the columns and not to their trace, which refers to it. So no cycle keeps an
    unreferenced trace alive: its memory is freed at once and serves the next run.

    Attributes
    ----------
    steps : list of tuple
        Number, loss, rate, time and updates of each.
    """

    def __init__(
        self,
        columns: dict[tuple[str, int], Column],
        flats: dict[FlatParameters, int],
        values: bool,
        norms: bool,
        changes_gradients: bool,
    ) -> None:
        self.columns = columns
        self.flats = flats
        self.values, self.norms = values, norms
        self.changes_gradients = changes_gradients
        self.steps: list[Any] = []

    def write(self) -> None:
        """Write the waiting steps into the columns of the trace."""
        steps, self.steps = self.steps, []
        column = self.columns
        for taken, loss, rate, now, rows in steps:
            column["step", 0].append(taken)
            column["loss", 0].append(float("nan") if loss is None else loss)
            column["learning_rate", 0].append(rate)
            column["seconds", 0].append(now)
            before = len(column["step", 0]) - 1
            for row in rows:
                i = self.flats[row.arena]
                for kind, there in self._kinds(row):
                    array = on_host(there)  # traces are read, drawn and saved on the host
                    if self.values:
                        values = column[kind, i]
                        values.fill(before, array)
                        values.append(array)
                    if self.norms:
                        norms = column[f"norm {kind}", i]
                        row_of_norms = _norms(array, row.arena.bounds)
                        norms.fill(before, row_of_norms)
                        norms.append(row_of_norms)

    def _kinds(self, row: Update) -> Iterator[tuple[str, Any]]:
        """Yield the arrays of one update that are recorded, with the kind of their column."""
        yield "parameter", row.parameter
        yield "gradient", row.raw_gradient
        for name, array in row.slots.items():
            yield f"slot {name}", array
        if self.changes_gradients:
            yield "term used_gradient", row.gradient
        for name, array in row.terms.items():
            whole = np.shape(array) == row.parameter.shape
            yield f"term {name}", array if whole else np.broadcast_to(array, row.parameter.shape)


class record:
    """Record every step that an optimizer takes inside a ``with`` block.

    The run does not change by one bit: the recorder keeps what the update rule returned.

    Parameters
    ----------
    optimizer : Optimizer
        The optimizer to record.
    probes : str or list of str, optional
        ``"toy"`` or ``["values"]`` keeps every element of every parameter, gradient, slot and
        term; ``"light"`` or ``["norms"]`` keeps their norms, one number per parameter. By default
        everything up to 1000 elements, norms above. ``"memory"``, in a list with these, keeps the
        bytes by role at the memory peak of each step; it takes time (see `optlab.memory.ledger`),
        and what is recorded takes memory.
    every : int
        Record steps 1, 1 + every, 1 + 2 every, ...

    Raises
    ------
    TypeError
        If `optimizer` is not an optimizer with parameters.
    ValueError
        For an unknown probe, or `every` below 1.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0, 2.0], name="w")
    >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    >>> with ol.record(optimizer) as trace:
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> trace.gradients["w"]
    array([[2., 4.]], dtype=float32)
    """

    def __init__(
        self, optimizer: Optimizer, probes: str | Iterable[str] | None = None, every: int = 1
    ) -> None:
        if not isinstance(optimizer, Optimizer) or optimizer.is_template:
            raise TypeError(
                "record takes an optimizer that has parameters; got "
                f"{optimizer!r}. Give it parameters=..., or let optlab.compare bind it."
            )
        if any(isinstance(p.data, EnsembleArray) for p in optimizer.parameters):
            raise TypeError(
                "record keeps one run; these parameters are ensembles, many runs at once. Read "
                "their members with optlab.members(p.detach()), or use optlab.sweep."
            )
        if not isinstance(every, (int, np.integer)) or isinstance(every, bool) or every < 1:
            raise ValueError(f"every must be a whole number of at least 1; got {every!r}.")
        self.optimizer = optimizer
        self.every = every
        size = sum(p.size for p in optimizer.parameters)
        chosen = _read_probes(
            probes if probes is not None else ("toy" if size <= SMALL else "light")
        )
        self.values, self.norms = "values" in chosen, "norms" in chosen
        self._memory = ledger() if "memory" in chosen else None
        self.bytes: Any = None
        name = type(optimizer).__name__
        settings = {"class": name, **optimizer.settings}
        if optimizer.schedule is not None:
            settings["schedule"] = repr(optimizer.schedule)
        self.trace = Trace(optimizer.name or name, settings)
        flats = [flat for group in optimizer.groups for flat in group.arenas]
        self.flats = {flat: i for i, flat in enumerate(flats)}
        #: Whether clipping or decay change the gradient before the rule.
        changes_gradients = any(
            group.grad_clip is not None or group.regularizer is not None
            for group in optimizer.groups
        ) or any(getattr(p, "regularizer", None) is not None for p in optimizer.parameters)
        self._parameters = optimizer.parameters
        self.asks_for_the_loss = hasattr(optimizer, "loss_of_step") or hasattr(
            optimizer, "inner_optimizer"
        )
        self.taken = 0
        self.waiting = _PendingSteps(
            self.trace.columns, self.flats, self.values, self.norms, changes_gradients
        )
        #: How many steps may wait to be written: few if they keep large arrays alive.
        self.patience = max(1, min(512, 20 * SMALL // max(size, 1))) if self.values else 1
        self._loss: float | None = None
        self.started = 0.0

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if hasattr(Trace, name) or name in _OF_TRACES:
            hint = (
                " A trace has it, and what is recorded are the steps of a with block: "
                f"with ol.record(optimizer) as trace: ..., then trace.{name}."
            )
        raise AttributeError(f"record has no {name!r}.{hint}", name=name, obj=None)

    def __enter__(self) -> Trace:
        if self.trace.layouts:
            raise RuntimeError("a recording cannot be entered twice; make a new ol.record(...).")
        names = parameter_names(self.optimizer.groups)
        trace = self.trace
        for params, i in self.flats.items():
            trace.layouts.append(
                [
                    (names[id(p)], params.bounds[k], params.bounds[k + 1], p.shape)
                    for k, p in enumerate(params.parameters)
                ]
            )
            if self.values:
                trace.columns["parameter", i].append(on_host(params.flat.copy()))
        trace.complete = self.waiting.write
        if self._memory is not None:
            self.bytes = self._memory.__enter__()
        self.started = time.perf_counter()
        events.backward_finished.subscribe(self._on_backward)
        events.step_taken.subscribe(self._on_step)
        return trace

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        events.backward_finished.unsubscribe(self._on_backward)
        events.step_taken.unsubscribe(self._on_step)
        if self._memory is not None:
            self._memory.__exit__(None, None, None)
            self.bytes = None
        if error is not None and self.trace.stopped is None:
            self.trace.error = error
            self.trace.stopped = f"{type(error).__name__} in step {self.taken + 1}: {error}"

    def _on_backward(self, value: Any, leaves: list[Any]) -> None:
        for p in self._parameters:
            if p.node in leaves:
                break
        else:
            return
        if value is not None:
            total = float(value if value.ndim == 0 else value.sum())
            self._loss = total if self._loss is None else self._loss + total

    def _on_step(self, optimizer: Optimizer, updates: list[Update]) -> None:
        if optimizer is not self.optimizer:
            return
        self.taken += 1
        # LBFGS runs several backward passes per step, and provides the loss before it itself.
        loss, self._loss = self._loss, None
        if self.asks_for_the_loss:
            loss = getattr(optimizer, "loss_of_step", loss)
        memory = None if self.bytes is None else self.bytes.cut(type(optimizer).__name__)
        if (self.taken - 1) % self.every:
            return
        now = time.perf_counter() - self.started
        # The arrays of the updates do not change, so writing them can wait; what a step left out
        # must be read from the flat arrays now.
        rows = updates
        if len(updates) != len(self.flats) or not all(map(_is_whole, updates)):
            rows = whole_updates(list(self.flats), updates, optimizer.get_lr())
        rate = optimizer.get_lr() * optimizer.groups[0].multiplier
        waiting = self.waiting
        waiting.steps.append((self.taken, loss, rate, now, rows))
        if memory is not None:
            self.trace.columns["memory", 0].append(memory)
        if len(waiting.steps) >= self.patience:
            waiting.write()


def _read_probes(probes: str | Iterable[str]) -> tuple[str, ...]:
    chosen: tuple[str, ...] | None
    if isinstance(probes, str):
        chosen = PROBES.get(probes)
    else:
        chosen = tuple(probes) if isinstance(probes, Iterable) else None
    if not chosen or not set(chosen) <= {"values", "norms", "memory"}:
        raise ValueError(
            "probes must be 'toy', 'light' or a list of 'values', 'norms' and 'memory'; got "
            f"{probes!r}."
        )
    return chosen


def _norms(row: Any, bounds: list[int]) -> np.ndarray:
    """Return the Euclidean norm of each parameter's part of a flat row, summed in float64."""
    squares = np.square(row, dtype=np.float64)
    return np.sqrt([squares[a:b].sum() for a, b in itertools.pairwise(bounds)])
