"""Trace: labelled arrays over the steps of a run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optlab.backend.display import renderer
from optlab.backend.memory.ledger import ROLES
from optlab.trace import forks, influences, store, tables
from optlab.trace.columns import Column
from optlab.trace.named_array import NamedArray
from optlab.trace.probes.presets import read_probes
from optlab.trace.recordings.foreign import ArraysRecording
from optlab.trace.records import Record

Arrays = Mapping[str, np.ndarray]

#: Quantities of every step on the clock of the trace.
_SCALARS = ("step", "loss", "learning_rate", "seconds")


class Trace:
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

    # Scalars ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        self.complete()  # a copy in another process knows no recording
        return {**vars(self), "complete": _nothing}

    def _scalars(self, kind: str) -> np.ndarray:
        self.complete()
        return self.columns[kind, 0].array(np.float64)

    @property
    def step(self) -> np.ndarray:
        """Numbers of the recorded steps."""
        self.complete()
        return self.columns["step", 0].array(np.int64)

    @property
    def loss(self) -> np.ndarray:
        """The loss before each recorded step."""
        return self._scalars("loss")

    @property
    def learning_rate(self) -> np.ndarray:
        """The learning rate of each recorded step."""
        return self._scalars("learning_rate")

    @property
    def seconds(self) -> np.ndarray:
        """Times of the recorded steps."""
        return self._scalars("seconds")

    @property
    def synchronisations(self) -> np.ndarray:
        """Numbers of the recorded steps after which LookAhead synchronized fast and slow weights.

        Empty if the run had no LookAhead.
        """
        found, clock = self.terms.get("synchronised"), "values"
        if not found:
            found, clock = self._groups("norm ").get("term synchronised", {}), "norms"
        steps = self.steps(clock)
        met = np.zeros(len(steps), dtype=bool)
        for array in found.values():
            met |= (array.reshape(len(array), -1) > 0).any(axis=1)
        return steps[met]

    # Rows of parameters -------------------------------------------------------------------------

    def _clock(self, clock: str) -> Column:
        """Return the column with the steps of "values" or "norms"."""
        own = self.columns.get((f"steps of {clock}", 0))
        return self.columns["step", 0] if own is None else own

    def _group(self, kind: str) -> dict[str, np.ndarray]:
        """Split the flat rows of one kind into parameters of their shapes."""
        self.complete()
        found = {}
        clock = "norms" if kind.startswith("norm ") else "values"
        for number, layout in enumerate(self.layouts.get(clock, ())):
            column = self.columns.get((kind, number))
            if column is None:
                continue
            steps = len(self._clock(clock)) + (kind == "parameter")
            column.fill_as_before(steps)  # not every step has this value
            rows = column.array()
            for i, (name, start, stop, shape) in enumerate(layout):
                if clock == "norms":
                    found[name] = rows[:, i]
                else:
                    found[name] = rows[:, start:stop].reshape(len(rows), *shape)
        return found

    def _groups(self, prefix: str) -> dict[str, Arrays]:
        self.complete()
        kinds = dict.fromkeys(kind for kind, _ in self.columns if kind.startswith(prefix))
        if not prefix:
            plain = {*_SCALARS, "memory"}
            apart = ("norm ", "steps of ")
            kinds = {k: None for k in kinds if k not in plain and not k.startswith(apart)}
        return {kind.removeprefix(prefix): self._group(kind) for kind in kinds}

    @property
    def parameters(self) -> Arrays:
        """Values of the parameters, start included."""
        return self._group("parameter")

    @property
    def gradients(self) -> Arrays:
        """Raw gradients."""
        return self._group("gradient")

    @property
    def slots(self) -> Mapping[str, Arrays]:
        """Slots of the optimizer after each step."""
        return self._groups("slot ")

    @property
    def terms(self) -> Mapping[str, Arrays]:
        """Named terms of the update rule in each step."""
        return self._groups("term ")

    @property
    def norms(self) -> Mapping[str, Arrays]:
        """Norms, recorded as such or computed from recorded values."""
        recorded = self._recorded_norms()
        if recorded:
            return recorded
        return {
            kind: {
                name: np.sqrt(np.sum(_rows(a[1:] if kind == "parameter" else a) ** 2, axis=1))
                for name, a in arrays.items()
            }
            for kind, arrays in self._recorded().items()
        }

    def _recorded_norms(self) -> dict[str, Arrays]:
        """Return the norms that were recorded as such, by their labels."""
        return _by_label(self._groups("norm "))

    @property
    def memory(self) -> Arrays:
        """Bytes by role at the memory peak of each step."""
        self.complete()
        column = self.columns.get(("memory", 0))
        if column is None or not len(column):
            return {}
        return dict(zip(ROLES, column.array().T, strict=True))

    def _recorded(self) -> dict[str, Arrays]:
        """Return everything that was recorded element by element, by its label."""
        return _by_label(self._groups(""))

    # What probes and users add ------------------------------------------------------------------

    def _observed(self) -> dict[str, tuple[Record, str]]:
        """Return the quantities of other probes by their names, with their records.

        A name that two probes use has the label of the second one beside it.
        """
        self.complete()
        found: dict[str, tuple[Record, str]] = {}
        for record in self.records.values():
            for quantity in [*dict.fromkeys(q for q, _ in record.columns), *record.results()]:
                name = f"{quantity} ({record.label})" if quantity in found else quantity
                found[name] = record, quantity
        return found

    @property
    def left_out(self) -> list[str]:
        """What was not recorded, and why."""
        self.complete()
        faults = [line for record in self.records.values() for line in record.faults()]
        return [*self.sentences, *(line for line in faults if line not in self.sentences)]

    @property
    def costs(self) -> dict[str, dict[str, Any]]:
        """The cost of each probe: its steps, its seconds, its bytes."""
        self.complete()
        clocks = {"Values": "values", "Norms": "norms"}
        return {
            label: {
                "steps": len(self._clock(clocks[label]) if label in clocks else record.steps),
                "seconds": record.seconds,
                "bytes": record.bytes,
            }
            for label, record in self.records.items()
        }

    def mark(self, text: str) -> None:
        """Note something at the current step, such as ``"rate lowered"``; figures show it.

        Raises
        ------
        TypeError
            If `text` is no text.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        ...     trace.mark("rate lowered")
        >>> trace.marks
        [(1, 'rate lowered')]
        """
        if not isinstance(text, str):
            raise TypeError(f"mark takes a text; got {text!r}. Numbers go to trace.log(name, x).")
        self.complete()
        mark = self._now(), text
        if not (self.is_resumed and mark in self.marks):
            self.marks.append(mark)

    def log(self, name: str, value: Any) -> None:
        """Record a number of your own, or an array of one shape, at the current step.

        Raises
        ------
        TypeError, ValueError
            If `name` is no text or is taken, or `value` has another shape than before.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     trace.log("accuracy", 0.1)
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        ...     trace.log("accuracy", 0.9)
        >>> trace["accuracy"], trace.steps("accuracy")
        (array([0.1, 0.9]), array([0, 1]))
        """
        if not isinstance(name, str):
            raise TypeError(f"log takes a name and a number; got {name!r} as the name.")
        array = np.array(value)
        if array.dtype.kind not in "biufcV":  # V: the 16-bit floats of ml_dtypes
            raise TypeError(
                f"log records numbers; got {value!r} for {name!r}. trace.mark(text) keeps a text."
            )
        label = f"log {name}"
        if label not in self.records:
            if name in self.names:
                raise ValueError(f"{name!r} is recorded already; log it by another name.")
            self.records[label] = Record(label, label)
        record, now = self.records[label], self._now()
        if len(record.steps) == record.rows_before > 0 and int(record.steps.last()) == now:
            record.drop_last()  # a resumed run logs its first step again
        record.bytes += record.append(now, {name: array})

    def _now(self) -> int:
        """Return the number of steps that were taken."""
        self.complete()
        recorded = self.columns["step", 0]
        return max(self.steps_taken, int(recorded.last()) if len(recorded) else 0)

    def append(
        self,
        *,
        loss: float = math.nan,
        learning_rate: float = math.nan,
        parameters: Mapping[str, Any],
        gradients: Mapping[str, Any] | None = None,
        slots: Mapping[str, Mapping[str, Any]] | None = None,
        terms: Mapping[str, Mapping[str, Any]] | None = None,
        before: Mapping[str, Any] | None = None,
        probes: Any = None,
    ) -> None:
        """Record one step of a run that another library makes, such as Optax or Keras.

        Parameters
        ----------
        loss, learning_rate : float
        parameters : dict of str to array
            After the step. All arrays are copied; whatever ``numpy.array`` takes will do.
        gradients : dict of str to array, optional
        slots, terms : dict of str to dict of str to array, optional
            The state of the optimizer, and named terms of its update, by parameter. The term
            "update" is the change of the parameters where it is not given.
        before : dict of str to array, optional
            The parameters before the first step; needed in the first call.
        probes : str or list, optional
            As for ``ol.record``; only in the first call.

        Raises
        ------
        TypeError
            If the first call lacks `before`, a later one has `before` or `probes`, or the trace is
            that of ``ol.record``.
        ValueError
            If a name or a shape is not that of a parameter.

        Examples
        --------
        >>> import numpy as np
        >>> import optlab as ol
        >>> trace = ol.trace.Trace("gradient descent")
        >>> w = np.array([2.0])
        >>> for _ in range(3):
        ...     start = {"w": w} if not len(trace) else None
        ...     loss, g = w @ w, 2 * w
        ...     w = w - 0.25 * g
        ...     trace.append(loss=loss, learning_rate=0.25, parameters={"w": w},
        ...                  gradients={"w": g}, before=start)
        >>> trace.loss, trace.parameters["w"].ravel()
        (array([4.  , 1.  , 0.25]), array([2.  , 1.  , 0.5 , 0.25]))
        """
        if self._appends is None:
            if before is None or self.steps_taken or self.optimizer is not None:
                raise TypeError(
                    "append begins with before=..., the parameters before the first step, and on a "
                    "trace of its own: trace = ol.trace.Trace('name'). Beside ol.record use "
                    "trace.log(name, x)."
                )
            sizes = [int(np.size(x)) for x in before.values()]
            chosen = read_probes(probes, sizes)
            self._appends = ArraysRecording(self, before, chosen, 1, 200_000_000)
            self._appends.start()
        elif self.steps_taken and (before is not None or probes is not None):
            raise TypeError("before and probes are for the first call of append alone.")
        self._appends.append(
            loss, learning_rate, parameters, gradients or {}, slots or {}, terms or {}
        )

    # Reading ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        self.complete()
        return len(self.columns["step", 0])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @property
    def names(self) -> list[str]:
        """Names that ``trace[name]`` accepts."""
        norms = [f"norm of {kind}" for kind in self._recorded_norms()]
        return [*_SCALARS[1:], *self._recorded(), *norms, *self._observed()]

    def steps(self, name: str) -> np.ndarray:
        """Return the numbers of the steps at which a quantity was recorded.

        Parameters
        ----------
        name : str
            As for ``trace[name]``; also "values" and "norms" for all of these. Those of "parameter"
            are the steps after which the values were recorded, without the start.

        Raises
        ------
        KeyError
            If nothing of that name was recorded; the message lists the names.
        """
        self.complete()
        if name in _SCALARS:
            return self.step
        if name == "norms" or name.removeprefix("norm of ") in self._recorded_norms():
            return self._clock("norms").array(np.int64)
        if name == "values" or name in self._recorded():
            return self._clock("values").array(np.int64)
        observed = self._observed()
        if name not in observed:
            raise self._no_such(name)
        return observed[name][0].steps.array(np.int64)

    def __getitem__(self, name: str) -> Any:
        """Return one recorded quantity by its name: ``trace["moment1"]["w"]``, ``trace["loss"]``.

        A quantity of parameters is a mapping from their names. Of one parameter alone it is an
        array, which takes the name of the parameter, too.

        Raises
        ------
        KeyError
            If nothing of that name was recorded; the message lists the names.
        """
        if not isinstance(name, str):
            raise TypeError(
                "a trace is read by names, trace['loss']; its steps are selected by "
                f"trace.sel(step={name!r})."
            )
        if name in _SCALARS:
            return getattr(self, name)
        arrays = self._recorded().get(name)
        if not arrays and name.startswith("norm of "):
            arrays = self._recorded_norms().get(name.removeprefix("norm of "))
        if arrays:
            return _one_or_all(arrays)
        observed = self._observed()
        if name not in observed:
            raise self._no_such(name)
        record, quantity = observed[name]
        found = record.arrays().get(quantity)
        if found is None:
            return record.results()[quantity]
        return found[""] if set(found) == {""} else _one_or_all(found)

    def _no_such(self, name: Any) -> KeyError:
        """Return the error for a name that was not recorded; what is nearest to it comes first."""
        near = get_close_matches(str(name), self.names, n=3)
        names = [*near, *(other for other in self.names if other not in near)]
        hint = ""
        if name in self.norms.get("parameter", ()):
            kind = "gradient" if "gradient" in names else "norm of gradient"
            hint = f"; {name!r} is a parameter: trace[{kind!r}][{name!r}], for example"
        return KeyError(f"nothing named {name!r} was recorded; there is {', '.join(names)}{hint}")

    # What if ------------------------------------------------------------------------------------

    def fork(
        self,
        step: int,
        *,
        steps: int | None = None,
        loss: Callable[..., Any] | None = None,
        optimizer: Any = None,
        **settings: Any,
    ) -> Trace:
        """Return the trace of the run as it would have gone on from a step with other settings.

        The recorded steps up to `step`, and then new ones. With nothing changed it is the recorded
        run to the bit.

        Parameters
        ----------
        step : int
            The last step that stays; 0 forks at the start.
        steps : int, optional
            The length of the whole run; by default that of the recorded one.
        loss : callable, optional
            Takes a dict of parameters by names, and returns the loss; if it takes two arguments,
            the second is the number of the step from 0 (for batches). Traces of ``ol.compare`` know
            their loss. The optimizer is brought to `step` by the recorded gradients, or, without
            values, from the last snapshot before it (`ol.probes.Snapshots`).
        optimizer : Optimizer, optional
            The optimizer of the run, for a trace from a file.
        **settings
            ``learning_rate`` (fixed from then on; otherwise the steps have the recorded rates),
            hyper-parameters of the rule, ``weight_decay``, ``grad_clip``.

        Raises
        ------
        TypeError, ValueError
            If a setting is unknown, the loss is, or the trace lacks what is needed; the message
            says what to record.
        RuntimeError
            If the recorded gradients do not lead to the recorded values.

        Examples
        --------
        >>> import optlab as ol
        >>> race = ol.compare("rosenbrock", {"SGD": ol.optimizer.SGD(0.001)}, steps=50)
        >>> what_if = race["SGD"].fork(step=34, learning_rate=0.0005)
        >>> len(what_if), bool((what_if.loss[:35] == race["SGD"].loss[:35]).all())
        (50, True)
        >>> what_if.learning_rate[[33, 34]]
        array([0.001 , 0.0005])
        """
        self.complete()
        found: Trace = forks.fork(self, step, steps, loss, optimizer, settings)
        return found

    def influence(self, step: int, direction: Any = None, optimizer: Any = None) -> Any:
        r"""Return how much each past gradient is in the update of a step.

        `optlab.viz.influence` draws it: ``ol.viz.influence(trace, step)``.

        Element (j, ...) is :math:`\partial u_i / \partial g_{j+1,i}`: the derivative of each
        element i of the update of `step` by the same element of the gradient of step j + 1, with
        all other gradients held fixed. For gradient descent the last row is minus the rate and all
        others are 0; for momentum they are its kernel.

        Parameters
        ----------
        step : int
        direction : array, or dict of str to array, optional
            Of rules that couple elements (norms, matrices, clipping by norm), whose derivative is
            no such array: the derivative of the component of the update along this direction by
            every element of every gradient is returned.
        optimizer : Optimizer, optional
            The optimizer of the run, for a trace from a file.

        Returns
        -------
        array, shape (step, ...), or dict of str to array
            Newest last; by the names of parameters if there are several.

        Raises
        ------
        TypeError, ValueError
            If the rule needs a direction, or the trace lacks values of every step.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.Momentum(0.1, momentum=0.5, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     for _ in range(4):
        ...         (w * w).sum().backward()
        ...         optimizer.step()
        ...         optimizer.clear_grad()
        >>> trace.influence(step=4)["w"].ravel()
        array([-0.0125, -0.025 , -0.05  , -0.1   ])
        """
        self.complete()
        return influences.influence(self, step, direction, optimizer)

    # Other forms --------------------------------------------------------------------------------

    def to_xarray(self) -> Any:
        """Return the trace as xarray's Dataset or DataTree, for labelled selection and plotting.

        Variables are named ``loss``, ``learning_rate``, ``parameter/w``, ``gradient/w``,
        ``moment1/w`` and so on. They share the coordinate ``step``; parameters have their values
        after each step, and their start is ``start/w``. What was recorded at other steps, or by
        other probes, is a node of a DataTree, with its own ``step``. `from_xarray` leads back.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed (it comes with the extra ``lab``).
        """
        return tables.to_xarray(self)

    @classmethod
    def from_xarray(cls, data: Any) -> Trace:
        """Return the trace of what `to_xarray` gave.

        Raises
        ------
        TypeError, ValueError
            If `data` is no Dataset or DataTree of a trace.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> ol.trace.Trace.from_xarray(trace.to_xarray()).parameters["w"].tolist()
        [[3.0], [1.5]]
        """
        return tables.from_xarray(cls, data)  # type: ignore[no-any-return]

    def to_dataframe(self) -> Any:
        """Return what has one number a step as a pandas DataFrame, by step.

        Columns are loss, rate, time, every norm (``norm of gradient/w``), parameters of one
        element, and what probes and `log` have recorded of single numbers; NaN at steps at which
        something was not recorded.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> trace.to_dataframe()[["loss", "norm of gradient/w"]]
              loss  norm of gradient/w
        step
        1      9.0                 6.0
        """
        return tables.to_dataframe(self)

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

    def sel(self, step: Any = None, parameter: Any = None) -> Trace:
        """Return the trace of some steps and some parameters.

        Parameters
        ----------
        step : int, slice or list of int, optional
            Step numbers; a slice has both ends, as xarray's has.
        parameter : str or list of str, optional
            Names of parameters.

        Raises
        ------
        KeyError
            If a step was not recorded, or there is no parameter of a name.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.Adam(0.1, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     for _ in range(5):
        ...         (w * w).sum().backward()
        ...         optimizer.step()
        ...         optimizer.clear_grad()
        >>> trace.sel(step=slice(2, 4)).step, trace.sel(step=5)["moment1"]["w"].shape
        (array([2, 3, 4]), (1, 1))
        """
        return tables.select(self, step, parameter)  # type: ignore[no-any-return]

    def save(self, path: str | Path) -> Path:
        """Write the trace to a Zarr store, which `load_trace` opens.

        A trace that is there already is replaced when the new one is complete.

        Parameters
        ----------
        path : str or Path
            The folder of the store, such as ``"run.zarr"``.

        Returns
        -------
        Path

        Raises
        ------
        ModuleNotFoundError
            If zarr is not installed (it comes with the extra ``store``).
        FileExistsError
            If something that is no trace is there.
        OSError
            If the file system refuses; what was there is unchanged then.

        Examples
        --------
        >>> import tempfile
        >>> import optlab as ol
        >>> w = ol.Parameter([3.0], name="w")
        >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
        >>> with ol.record(optimizer) as trace:
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ol.load_trace(trace.save(f"{folder}/run.zarr")).loss
        array([9.])
        """
        target = Path(path)
        self.complete()
        store.save(self, target)
        return target

    def figure(self, **options: Any) -> Any:
        """Draw the trace as a plotly figure: the loss, norms, marks.

        Raises
        ------
        ModuleNotFoundError
            If no renderer is installed (it comes with the extra ``lab``).
        """
        return renderer("trace").figure(self, **options)

    def _repr_html_(self) -> str:
        return tables.to_html(self)

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


def _one_or_all(arrays: Arrays) -> Any:
    """Return a mapping of several arrays, or the one that there is."""
    if len(arrays) > 1:
        return arrays
    [(name, array)] = arrays.items()
    return NamedArray.of(array, name)


def _by_label(kinds: Mapping[str, Arrays]) -> dict[str, Arrays]:
    """Drop the prefix slot or term, unless a slot and a term have the same name."""
    found: dict[str, Arrays] = {}
    for kind, arrays in kinds.items():
        what, _, name = kind.rpartition(" ")
        found[f"{name} ({what})" if name in found else name] = arrays
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


def _rows(array: np.ndarray) -> np.ndarray:
    """Return one row of float64 per step."""
    return array.reshape(len(array), math.prod(array.shape[1:])).astype(np.float64)
