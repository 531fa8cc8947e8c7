"""Probes of what is not in the update: activations, metrics, memory, time."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend import events
from optlab.backend.arrays import on_host
from optlab.trace.probes.base import Probe, Run, Step, documented, takes

#: Statistics of activations, by their names.
STATISTICS: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": lambda x: np.mean(x, dtype=np.float64),
    "std": lambda x: np.std(x, dtype=np.float64),
    "min": lambda x: np.min(x).astype(np.float64),
    "max": lambda x: np.max(x).astype(np.float64),
    "norm": lambda x: np.sqrt(np.sum(np.square(x, dtype=np.float64))),
    "zeros": lambda x: np.mean(x == 0),
}


@documented
class Activations(Probe):
    """Statistics of what layers return in the last forward pass before a step.

    "activation STATISTIC" has a number for each layer, by its name in the model (``"0"``,
    ``"encoder.linear"``). It needs ``ol.record(..., model=model)``.

    Parameters
    ----------
    layers : list of str, optional
        The names of layers; those without layers inside by default.
    statistics : list of str, or dict of str to callable
        Out of "mean", "std", "min", "max", "norm" and "zeros" (the share of zeros: units that are
        dead behind a ReLU); or functions of an array, by names.

    Raises
    ------
    TypeError
        If the recording has no model.
    ValueError
        If the model has no layer of a name, or a statistic is unknown.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> model = ol.nn.Sequential(ol.nn.Linear(2, 3), ol.nn.ReLU())
    >>> optimizer = ol.optimizer.SGD(0.1, parameters=model.parameters())
    >>> probe = ol.probes.Activations(layers=["1"], statistics=["zeros"])
    >>> with ol.record(optimizer, probes=[probe], model=model) as trace:
    ...     model(ol.zeros([4, 2])).sum().backward()
    ...     optimizer.step()
    >>> trace["activation zeros"]["1"]
    array([1.])
    """

    needs_update = False
    shown = ("layers", "statistics")

    def __init__(
        self,
        layers: Sequence[str] | None = None,
        statistics: Sequence[str] | Mapping[str, Callable[[np.ndarray], Any]] = (
            "mean", "std", "zeros",
        ),
        **schedule: Any,
    ) -> None:  # fmt: skip
        super().__init__(**schedule)
        self.layers = layers
        if isinstance(statistics, Mapping):
            self._functions = dict(statistics)
        else:
            unknown = [name for name in statistics if name not in STATISTICS]
            if unknown:
                raise ValueError(
                    f"there is no statistic {unknown[0]!r}; there are {', '.join(STATISTICS)}, "
                    "and any function of an array: statistics={'name': f}."
                )
            self._functions = {name: STATISTICS[name] for name in statistics}
        self.statistics = list(self._functions)
        self._handles: list[Any] = []
        self._found: dict[str, dict[str, Any]] = {}
        self._due = False

    def start(self, run: Run) -> None:
        """Register a hook at each layer."""
        if run.model is None:
            raise TypeError("Activations needs the model: ol.record(optimizer, ..., model=model).")
        named = dict(run.model.named_sublayers())
        names = self.layers
        if names is None:
            names = [n for n, x in named.items() if not any(True for _ in x.named_sublayers())]
        for name in names:
            if name not in named:
                raise ValueError(f"the model has no layer {name!r}; it has {', '.join(named)}.")
            self._handles.append(named[name].register_forward_post_hook(self._listener(name)))

    def _listener(self, name: str) -> Callable[[Any, Any, Any], None]:
        def listen(layer: Any, inputs: Any, output: Any) -> None:
            if self._due and isinstance(output, Tensor):
                array = on_host(raw(output))
                self._found[name] = {
                    which: np.asarray(f(array)) for which, f in self._functions.items()
                }

        return listen

    def before_step(self, number: int, due: bool) -> None:
        """Listen to the layers if the next step is observed."""
        self._due = due
        self._found = {}

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return the statistics."""
        return {
            f"activation {which}": {name: values[which] for name, values in self._found.items()}
            for which in self._functions
        }

    def stop(self) -> None:
        """Remove the hooks."""
        while self._handles:
            self._handles.pop().remove()


@documented
class Metric(Probe):
    """A number, or an array, that a function of yours returns after the step.

    Parameters
    ----------
    name : str
        Its name in the trace.
    f : callable
        Takes nothing; returns a number or an array of one shape.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([4.0], name="w")
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> distance = ol.probes.Metric("distance", lambda: abs(w.item()))
    >>> with ol.record(optimizer, probes=[distance]) as trace:
    ...     for _ in range(2):
    ...         optimizer.clear_grad()
    ...         (w * w).sum().backward()
    ...         optimizer.step()
    >>> trace["distance"]
    array([2., 1.])
    """

    needs_update = False
    fits_plans = True
    shown = ("name",)

    def __init__(self, name: str, f: Callable[[], Any], **schedule: Any) -> None:
        super().__init__(**schedule)
        if not isinstance(name, str) or not callable(f):
            raise TypeError(
                "Metric takes a name and a function: Metric('accuracy', lambda: ...); got "
                f"{name!r} and {f!r}."
            )
        if not takes(f, 0):
            raise TypeError(
                f"the function of Metric({name!r}, f) is called without arguments; this one takes "
                f"{inspect.signature(f)}. Write Metric({name!r}, lambda: ...)."
            )
        self.name, self.f = name, f

    @property
    def label(self) -> str:
        """Its name in the trace."""
        return f"Metric {self.name}"

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Call the function."""
        return {self.name: np.array(on_host(raw(self.f())))}


class Memory(Probe):
    """The bytes by role at the memory peak of each step; ``trace.memory`` has them.

    It takes time (see `optlab.memory.ledger`), and what is recorded takes memory. It observes the
    steps of the recording and has no schedule of its own.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([4.0], name="w")
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> with ol.record(optimizer, probes=[ol.probes.Memory()]) as trace:
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> int(trace.memory["parameter"][0])
    4
    """

    needs_update = False

    def __init__(self) -> None:
        super().__init__()

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return nothing: the recorder cuts the ledger at each step."""
        return {}


@documented
class Time(Probe):
    """The seconds of each phase of a step, by the clock of the wall.

    "time forward" goes from the end of the last step to the beginning of the backward pass (and so
    has what lies between steps, such as loading data), "time backward" from there to its end, "time
    update" from the call of the step to its end, "time between" is the rest: what a loop does
    between the two. With several backward passes a step, they are added up.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([4.0], name="w")
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> with ol.record(optimizer, probes=[ol.probes.Time()]) as trace:
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> bool(trace["time backward"][0] > 0)
    True
    """

    needs_update = False

    def __init__(self, **schedule: Any) -> None:
        super().__init__(**schedule)
        self._handles: list[Any] = []
        self._last = 0.0
        self._spent = dict.fromkeys(("forward", "backward", "between"), 0.0)
        self._began = 0.0

    def start(self, run: Run) -> None:
        """Listen to the phases."""
        self._last = time.perf_counter()
        self._began = self._last
        self._handles = [
            events.backward_starts.subscribe(lambda: self._phase("forward")),
            events.backward_finished.subscribe(lambda value, leaves: self._phase("backward")),
            run.optimizer.register_step_pre_hook(lambda *_: self._phase("between")),
        ]

    def _phase(self, name: str) -> None:
        now = time.perf_counter()
        self._spent[name] += now - self._last
        self._last = now

    def before_step(self, number: int, due: bool) -> None:
        """Begin a step."""
        self._last = time.perf_counter()
        self._spent = dict.fromkeys(self._spent, 0.0)

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return the seconds."""
        self._phase_of_update = time.perf_counter() - self._last
        spent = {**self._spent, "update": self._phase_of_update}
        return {f"time {name}": np.float64(x) for name, x in spent.items()}

    def stop(self) -> None:
        """Stop listening."""
        while self._handles:
            self._handles.pop().remove()
