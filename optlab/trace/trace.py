"""Trace: labelled arrays over the steps of a run."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from optlab.backend.namespaces import name_methods
from optlab.backend.wrong_arguments import explain_methods
from optlab.trace import store
from optlab.trace.columns import Column
from optlab.trace.methods.additions import Additions
from optlab.trace.methods.forms import Forms
from optlab.trace.methods.what_if import WhatIf
from optlab.trace.recordings.foreign import ArraysRecording
from optlab.trace.records import Record


@name_methods
class Trace(Additions, WhatIf, Forms):
    """The quantities of a run, step by step.

    Step 1 is the first update. ``loss[0]`` is the loss before it, at ``parameters[...][0]``.

    Parameters
    ----------
    name : str
    settings : dict, optional
        ``ol.record`` makes traces of optimizers; an empty one is for `append`.

    Attributes
    ----------
    name : str
        The label of the run in tables and figures.
    settings : dict
        The class of the optimizer and its hyper-parameters.
    step : array of int, shape (n,)
        The numbers of the recorded steps: 1, 2, ... unless only every k-th was recorded.
    loss : array of float64, shape (n,)
        The value that the backward pass started from before each step (their sum if there were
        several; NaN if there was none).
    learning_rate : array of float64, shape (n,)
        The rate of the first group, without the multipliers of its parameters.
    seconds : array of float64, shape (n,)
        The time of the step since the start of the recording.
    parameters : mapping of str to array, shape (n + 1, ...)
        The value of each parameter: at the start, then after each recorded step.
    gradients : mapping of str to array, shape (n, ...)
        The raw gradients, before clipping and decay. NaN in a step that skipped the parameter.
    slots : mapping of str to mapping of str to array, shape (n, ...)
        The optimizer's slots of each parameter after each step.
    terms : mapping of str to mapping of str to array, shape (n, ...)
        The named terms of the update rule, "update" included, for each parameter; also
        "used_gradient" if clipping or decay changed the gradient.
    norms : mapping of str to mapping of str to array, shape (n,)
        Euclidean norms of "parameter" (after the step), "gradient", every slot and every term.
        Where they have a schedule of their own, ``steps("norms")`` are their steps.
    memory : mapping of str to array of int, shape (n,)
        With the probe "memory": the bytes of each role (parameter, gradient, slot, data, saved,
        recomputed, temporary) at the memory peak of the step. Otherwise empty.
    marks : list of (int, str)
        The steps and texts of `mark`.
    left_out : list of str
        What was not recorded, and why, in sentences.
    costs : dict of str to dict
        Of each probe: how many steps it observed, the seconds that it took and the bytes that it
        keeps.
    stopped : str or None
        Why the run ended early, if it did.
    error : exception or None
        The exception that ended the run, if any.
    problem : Surface, Network or None
        The problem of a comparison; None for a run outside of one.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0], name="w")
    >>> optimizer = ol.optimizer.Adam(0.1, parameters=[w])
    >>> with ol.record(optimizer) as trace:
    ...     for _ in range(2):
    ...         (w * w).sum().backward()
    ...         optimizer.step()
    ...         optimizer.clear_grad()
    >>> trace
    <Trace Adam: 2 steps, loss 9 -> 8.41; parameters w; slots moment1, moment2; terms root, update>
    >>> trace["moment1"]["w"].shape
    (2, 1)
    """

    def __init__(self, name: str, settings: dict[str, Any] | None = None) -> None:
        self.name = name
        self.settings = {} if settings is None else settings
        self.stopped: str | None = None
        self.error: BaseException | None = None
        self.problem: Any = None
        #: The start and the seed of the run of a comparison.
        self.origin: tuple[Any, int] | None = None
        #: The loss that `record` was given, a function of a dict of parameters, for `fork`.
        self.loss_function: Any = None
        #: The name of a loss that did not come along when the trace was pickled.
        self.lost_loss = ""
        self.optimizer: Any = None
        self.marks: list[tuple[int, str]] = []
        self.columns: defaultdict[tuple[str, int], Column] = defaultdict(Column)
        #: What lies where in the rows of "values" and of "norms", for each part of the run.
        self.layouts: dict[str, list[list[tuple[str, int, int, tuple[int, ...]]]]] = {}
        #: What other probes, and `log`, have recorded, by their labels.
        self.records: dict[str, Record] = {}
        #: What was left out, but for what the probes themselves say.
        self.sentences: list[str] = []
        #: The number of steps taken, recorded or not, and whether they go on in a later process.
        self.steps_taken = 0
        self.is_resumed = False
        self.seconds_before = 0.0
        #: The updates that the optimizer had had before the recording.
        self.steps_before = 0
        #: What `append` records with.
        self._appends: ArraysRecording | None = None
        #: Writes the steps that the recorder still holds; called before anything is read.
        self.complete: Callable[[], None] = _nothing

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: a loss stays behind, as most functions cannot be pickled."""
        self.complete()  # another process knows nothing of the recording
        loss = self.loss_function
        lost = self.lost_loss if loss is None else getattr(loss, "__name__", type(loss).__name__)
        return {**vars(self), "complete": _nothing, "loss_function": None, "lost_loss": lost}

    def __copy__(self) -> Self:
        return self._filled(type(self).__new__(type(self)), self.__getstate__())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        found = memo[id(self)] = type(self).__new__(type(self))
        return self._filled(found, copy.deepcopy(self.__getstate__(), memo))

    def _filled(self, found: Self, state: dict[str, Any]) -> Self:
        """Give a copy its state, and the loss: in this process it is there."""
        vars(found).update(state, loss_function=self.loss_function, lost_loss=self.lost_loss)
        return found

    if not TYPE_CHECKING:  # a type checker finds missing names by itself

        def __getattr__(self, name: str) -> Any:
            if name == "table":
                raise AttributeError(
                    "a trace has no table(): trace.to_dataframe() has a row for each step, and "
                    "trace.to_xarray() everything. ol.compare(...).table() compares runs."
                )
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{_hint_of(self, name)}",
                name=name, obj=None,
            )  # fmt: skip

    def __repr__(self) -> str:
        n = len(self)
        parts = [f"{n} step{'s' * (n != 1)}"]
        if n:
            parts[0] += f", loss {self.loss[0]:.3g} -> {self.loss[-1]:.3g}"
        for label, names in (
            ("parameters", list(self.parameters) or list(self.norms.get("parameter", ()))),
            ("slots", self.slots),
            ("terms", self.terms),
            ("probes", list(self._observed())),
        ):
            if names:
                parts.append(f"{label} {', '.join(names)}")
        if self.stopped:
            parts.append(self.stopped)
        if self.left_out:
            parts.append(f"left out: {len(self.left_out)}, see .left_out")
        return f"<Trace {self.name}: {'; '.join(parts)}>"


explain_methods(
    Trace,
    ("append", "fork", "influence", "log", "mark", "save", "sel", "steps"),
)


def load_trace(path: str | Path) -> Trace:
    """Open the trace in a Zarr store (``ol.load_trace``).

    Arrays are read when they are asked for.

    Parameters
    ----------
    path : str or Path
        What `Trace.save` or ``ol.record(..., to=path)`` has written, complete or not: a run that
        was killed has every step up to its last flush.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    ValueError
        If what is there is no trace, or one of a later version of the format.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.load_trace("nowhere.zarr")
    Traceback (most recent call last):
    ...
    FileNotFoundError: there is no trace at nowhere.zarr.
    """
    found: Trace = store.load(Trace, Path(path))
    return found


def _hint_of(trace: Trace, name: str) -> str:
    """Return what to write in place of an attribute that a trace lacks."""
    if name.startswith("_") or "columns" not in vars(trace):  # asked for by Python, or too early
        return ""
    if name in ("plot", "show", "draw"):
        return "; trace.figure() draws it, and so do the functions of ol.viz"
    # Not `trace.names`, which may read a file: `hasattr` asks here, too.
    kinds = {kind.rpartition(" ")[2] for kind, _ in trace.columns}
    kinds |= {kind for record in trace.records.values() for kind, _ in record.columns}
    if name in kinds:
        return f"; trace[{name!r}] has it"
    public = [one for one in {*dir(type(trace)), *vars(trace)} if not one.startswith("_")]
    near = get_close_matches(name, sorted(public), n=1)
    return f"; did you mean trace.{near[0]}?" if near else ""


def _nothing() -> None:
    """Do nothing: no recorder holds back steps."""
