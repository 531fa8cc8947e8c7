"""The recorder: it listens to an optimizer and writes a trace, without changing the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from optlab.backend.ensemble import EnsembleArray
from optlab.backend.memory.sizes import bytes_from
from optlab.optimizer import Optimizer
from optlab.trace.loss_functions import check_takes_parameters
from optlab.trace.memory.reporting import ledger
from optlab.trace.probes import Compression, Memory, Time
from optlab.trace.probes.base import Probe, Run, checked_count
from optlab.trace.probes.presets import read_probes
from optlab.trace.probes.rows import RowProbe
from optlab.trace.recordings.foreign import TorchRecording, is_torch_optimizer, settings_of_torch
from optlab.trace.recordings.of_optimizer import OptimizerRecording
from optlab.trace.recordings.parts import changes_gradients, parts_of, scalar_terms_of
from optlab.trace.store import Writer, attributes_of, load
from optlab.trace.trace import Trace

#: Instance attributes of traces.
_OF_TRACES = ("name", "settings", "stopped", "error", "problem", "left_out", "marks")


class record:
    """Record every step that an optimizer takes inside a ``with`` block.

    The run does not change by one bit: the recorder keeps what the update rule returned.

    Parameters
    ----------
    optimizer : Optimizer or torch.optim.Optimizer
        The optimizer to record. The trace of one of PyTorch has the names of ``model`` and of its
        state, and the loss of each tensor whose ``backward`` is called.
    probes : str or list, optional
        What to keep beside loss, learning rate and time:

        - ``"toy"``: every element of every parameter, gradient, slot and term at every step;
        - ``"light"``: norms of parameters, gradients, slots and changes at every tenth step
          (`Norms` with ``terms=False``), and the loss at every one. Steps run at full speed;
        - ``"full"``: the values of parameters of up to 1000 elements, and of all parameters norms,
          angles, ratios and effective rates of updates, noise and histograms of gradients, a
          projection of the path, and the time of each phase;
        - a list of probes (`optlab.probes`), or of the names ``"values"``, ``"norms"`` and
          ``"memory"``, which are those of `Values`, `Norms` and `Memory`.

        By default everything of parameters of up to 1000 elements, and norms where one has more
        (or all together do). What is left out stands in ``trace.left_out``.
    every : int
        Record loss, rate and time of steps 1, 1 + every, 1 + 2 every, ...; probes without a
        schedule of their own observe the same steps.
    to : str or Path, optional
        A Zarr store (it needs the extra ``store``) that is written as the run goes, such as
        "run.zarr": `load_trace` opens it at any time, and a run that is killed loses at most the
        steps since the last flush. Where a trace lies there and the optimizer comes from a
        checkpoint of that run, the trace goes on behind the steps that the optimizer has had. If
        the store cannot be written (a full disk), a `TraceWarning` says so once, and the run goes
        on.
    limit : int or str
        The most bytes of rows in memory, such as "200 MB". Without `to`, a probe that needs more
        ends there, and ``trace.left_out`` says so; with it, they are written earlier.
    flush : int
        The number of steps after which the store is written.
    model : Layer or torch.nn.Module, optional
        The model, for probes that look into it (`Activations`), and for the names of parameters of
        PyTorch.
    loss : callable, optional
        The loss of the run, for ``trace.fork``: takes a dict of parameters by names, and the number
        of the step from 0 if it takes two arguments. It is not called while the run is recorded.

    Raises
    ------
    TypeError
        If `optimizer` is not an optimizer with parameters.
    ValueError
        For an unknown probe, or `every` or `flush` below 1.
    FileExistsError
        If something else than a trace of this run lies at `to`.

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
        self,
        optimizer: Any,
        probes: str | Iterable[str | Probe] | None = None,
        every: int = 1,
        to: str | Path | None = None,
        limit: int | str = "200 MB",
        flush: int = 100,
        model: Any = None,
        loss: Callable[..., Any] | None = None,
    ) -> None:
        self.is_foreign = is_torch_optimizer(optimizer)
        if self.is_foreign:
            sizes = [p.numel() for group in optimizer.param_groups for p in group["params"]]
        elif not isinstance(optimizer, Optimizer) or optimizer.is_template:
            raise TypeError(
                "record takes an optimizer that has parameters; got "
                f"{optimizer!r}. Give it parameters=..., or let optlab.compare bind it."
            )
        elif any(isinstance(p.data, EnsembleArray) for p in optimizer.parameters):
            raise TypeError(
                "record keeps one run; these parameters are ensembles, many runs at once. Read "
                "their members with optlab.members(p.detach()), or use optlab.sweep."
            )
        if not isinstance(every, (int, np.integer)) or isinstance(every, bool) or every < 1:
            raise ValueError(f"every must be a whole number of at least 1; got {every!r}.")
        if not self.is_foreign:
            sizes = [p.size for p in optimizer.parameters]
        self.optimizer: Any = optimizer
        self.every = int(every)
        self.limit = bytes_from(limit, "limit")
        self.flush = checked_count("flush", flush)
        self.to = None if to is None else Path(to)
        self.model = model
        if loss is not None:
            check_takes_parameters(loss, "record")
        self._loss = loss
        self.probes = read_probes(probes, sizes, self.every)
        if any(isinstance(p, RowProbe) and p.needs_update for p in self.probes):
            known = any(isinstance(p, Compression) for p in self.probes)
            if scalar_terms_of(optimizer) and not known:
                self.probes.append(Compression())
        self.recording: Any = None

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if hasattr(Trace, name) or name in _OF_TRACES:
            hint = (
                " A trace has it, and what is recorded are the steps of a with block: "
                f"with ol.record(optimizer) as trace: ..., then trace.{name}."
            )
        raise AttributeError(f"record has no {name!r}.{hint}", name=name, obj=None)

    @property
    def bytes(self) -> Any:
        """The ledger of the probe "memory" while it records; None without."""
        return None if self.recording is None else self.recording.bytes

    def __enter__(self) -> Trace:
        if self.recording is not None:
            raise RuntimeError("a recording cannot be entered twice; make a new ol.record(...).")
        optimizer = self.optimizer
        if self.is_foreign:
            return self._enter_foreign()
        name = type(optimizer).__name__
        settings = {"class": name, **optimizer.settings}
        if optimizer.schedule is not None:
            settings["schedule"] = repr(optimizer.schedule)
        trace = self._trace(optimizer.name or name, settings)
        trace.optimizer, trace.loss_function = optimizer, self._loss
        run = Run(optimizer, parts_of(optimizer), self.model)
        with_memory = any(isinstance(p, Memory) for p in self.probes)
        self.recording = OptimizerRecording(
            optimizer,
            ledger() if with_memory else None,
            trace,
            run,
            self.probes,
            self.every,
            self.limit,
            changes_gradients(optimizer),
        )
        if self.to is not None:
            self.recording.write_to(Writer(self.to, self.flush), self.flush)
        self.recording.start()
        return trace

    def _enter_foreign(self) -> Trace:
        """Begin to record an optimizer of PyTorch."""
        settings = settings_of_torch(self.optimizer)
        trace = self._trace(settings["class"], settings)
        if any(isinstance(p, (Memory, Time)) for p in self.probes):
            raise TypeError(
                "Memory and Time look into optlab's engine; a run of PyTorch is recorded without "
                "them."
            )
        self.recording = TorchRecording(
            self.optimizer, self.model, trace, self.probes, self.every, self.limit, False
        )
        if self.to is not None:
            self.recording.write_to(Writer(self.to, self.flush), self.flush)
        self.recording.start()
        return trace

    def _steps_before(self) -> int:
        """Return the number of steps that the optimizer has taken."""
        if self.is_foreign:
            steps = [int(x["step"]) for x in self.optimizer.state.values() if "step" in x]
        else:
            groups = self.optimizer.groups
            steps = [t for group in groups for flat in group.arenas for t in flat.t]
        return max(steps, default=0)

    def _trace(self, name: str, settings: dict[str, Any]) -> Trace:
        """Return a new trace, or the one that goes on in the store."""
        had = self._steps_before()
        before = None if self.to is None else attributes_of(self.to)
        if before is None or self.to is None:
            if self.to is not None and self.to.is_dir() and any(self.to.iterdir()):
                raise FileExistsError(f"{self.to} exists and is no trace; choose another name.")
            trace = Trace(name, settings)
            trace.steps_before = had
            return trace
        taken = had - before["steps_before"]
        if taken <= 0 < before["taken"]:
            raise FileExistsError(
                f"{self.to} holds a trace of {before['taken']} steps, and this optimizer has not "
                "taken them. Choose another name or remove it; to go on with that run, load the "
                "state of its optimizer first: optimizer.set_state_dict(...)."
            )
        trace = load(Trace, self.to, until=taken)
        trace.name, trace.settings, trace.stopped = name, settings, None
        trace.is_resumed = True
        for record in trace.records.values():
            record.rows_before = len(record.steps)
        if taken > before["taken"]:
            trace.sentences.append(
                f"steps {before['taken'] + 1} to {taken}, which were not written before the run "
                "was interrupted."
            )
        trace.steps_taken = taken
        trace.seconds_before = float(trace.seconds[-1]) if len(trace) else 0.0
        for probe in self.probes:
            if not probe.resumes and probe.label in trace.records:
                del trace.records[probe.label]
                trace.sentences.append(f"{probe.label}: steps up to {taken}; the run was resumed.")
        return trace

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        trace = self.recording.trace
        trace.complete()
        if error is not None and trace.stopped is None:
            trace.error = error
            trace.stopped = f"{type(error).__name__} in step {trace.steps_taken + 1}: {error}"
        self.recording.stop()
