"""Sweeps: one optimizer over a grid of settings and starts, with the results of separate runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, overload

import numpy as np

from optlab.backend.extras import needed_for
from optlab.backend.memory.sizes import bytes_from, in_words
from optlab.lab.members import groups_of_grid
from optlab.lab.network_sweep import NetworkSweep, sweep_network
from optlab.lab.problems.lookup import find
from optlab.lab.problems.networks import Network
from optlab.lab.problems.surface import Surface
from optlab.lab.progress import ProgressBar
from optlab.lab.sweeps.outcome import Outcome
from optlab.lab.sweeps.results import START, SweepResults
from optlab.lab.sweeps.run import Sweeper
from optlab.lab.templates import maker_of
from optlab.lab.vectorized import EnsembleRun
from optlab.optimizer import Optimizer
from optlab.optimizer.wrappers import Wrapper

#: What runs cells elsewhere: an executor, or a function that makes one.
Executors = Executor | Callable[[], Executor] | None

#: What makes the optimizers of a sweep.
Swept = type[Optimizer] | Optimizer | Callable[..., Optimizer]

#: Rates from 1e-4 to 1 in steps of 1, 2 and 5.
LADDER = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Sweep(SweepResults):
    """The results of a sweep: arrays whose first axes are the swept settings.

    The final values are there at once. What was done at every step is replayed, to the bit, when it
    is first read.

    Attributes
    ----------
    problem : Surface
    optimizer : type
        The class that was swept.
    settings : dict of str to array
        The values of each setting, in the order of the axes.
    starts : array, shape (starts, dimension)
        Several starts are the last swept axis.
    final_point : array, shape ``(*swept, dimension)``
        After the last step; NaN where a run diverged before.
    stopped : array of int, shape ``(*swept)``
        The step at which the loss was no longer finite, or -1. Later values are NaN.
    status : array of str, shape ``(*swept)``
        How each cell ended: "done", "diverged", "raised" (see `errors`) or "missing", if the sweep
        was interrupted.
    errors : dict of tuple to str
        What cells raised, by their place in the arrays.
    interrupted : bool
        Whether Ctrl-C ended the sweep; what was done by then is kept.
    """

    def __init__(
        self,
        optimizer: type[Optimizer],
        settings: dict[str, np.ndarray],
        sweeper: Sweeper,
        outcome: Outcome,
    ) -> None:
        self.problem = sweeper.surface
        self.optimizer = optimizer
        self.settings = settings
        self.starts = starts = sweeper.starts
        self.seed = sweeper.seed
        self.steps = sweeper.steps
        many = (len(starts),) if len(starts) > 1 else ()
        self._swept = (*(len(values) for values in settings.values()), *many)
        self._sweeper = sweeper
        self._histories: EnsembleRun | None = None
        self._last_loss = self._shaped(outcome.loss)
        self.final_point = self._shaped(outcome.point)
        self.stopped = self._shaped(outcome.stopped)
        self.status = self._shaped(outcome.status)
        self.errors = {
            tuple(map(int, np.unravel_index(i, self._swept))): text
            for i, text in sorted(outcome.errors.items())
        }
        self.interrupted = outcome.interrupted
        self._execution = outcome.execution

    def _shaped(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(self._swept + array.shape[1:])

    @property
    def execution(self) -> str:
        """How the cells ran, and why: as one loop, by whom, or one after another.

        Examples
        --------
        >>> import optlab as ol
        >>> print(ol.sweep("booth", ol.optimizer.Lamb, {"learning_rate": [0.1]}, steps=5).execution)
        1 cell one after another: Lamb needs each parameter by itself
        """
        return self._execution

    def _replayed(self) -> EnsembleRun:
        """Return the histories, replayed when they are first read."""
        if self._histories is None:
            cells, steps, dimension = (
                len(self.stopped.reshape(-1)),
                self.steps,
                self.starts.shape[1],
            )
            needed = 8 * cells * steps * (1 + 8 * dimension)
            if needed > self._sweeper.limit:
                raise MemoryError(
                    f"the histories of {cells} cells over {steps} steps take about "
                    f"{in_words(needed)}, more than the limit of "
                    f"{in_words(self._sweeper.limit)}. final_loss and final_point are there "
                    "without them; sweep fewer cells, or allow more: ol.sweep(..., limit="
                    f"'{in_words(2 * needed)}')."
                )
            self._histories = self._sweeper.histories()
        return self._histories

    @property
    def loss(self) -> np.ndarray:
        """The loss before each step, and after the last: an array ``(*swept, steps + 1)``."""
        return self._shaped(self._replayed().loss)

    @property
    def point(self) -> np.ndarray:
        """The points, an array ``(*swept, steps + 1, dimension)``."""
        return self._shaped(self._replayed().point)

    @property
    def gradient(self) -> np.ndarray:
        """The gradients, an array ``(*swept, steps, dimension)``."""
        return self._shaped(self._replayed().gradient)

    @property
    def slots(self) -> dict[str, np.ndarray]:
        """The slots of the rule after each step, arrays ``(*swept, steps, dimension)``."""
        return {name: self._shaped(array) for name, array in self._replayed().slots.items()}

    @property
    def terms(self) -> dict[str, np.ndarray]:
        """The terms of the rule at each step, arrays ``(*swept, steps, dimension)``."""
        return {name: self._shaped(array) for name, array in self._replayed().terms.items()}

    @property
    def final_loss(self) -> np.ndarray:
        """The loss after the last step; infinite where a run diverged, NaN where it is missing."""
        return np.where(self.stopped >= 0, np.inf, self._last_loss)

    @property
    def start_loss(self) -> float:
        """The loss before the first step, the highest of several starts.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.sweep("parabola", ol.optimizer.SGD, {"learning_rate": [0.1]}, start=3.0).start_loss
        18.0
        """
        values = [self.problem.value_and_gradient(point)[0] for point in self.starts.tolist()]
        return float(np.max(values))

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The values along each axis of the arrays: settings, and starts if there are several."""
        starts = [tuple(start) for start in self.starts.tolist()]
        return super().axes | ({START: starts} if len(starts) > 1 else {})

    def to_xarray(self) -> Any:
        """Return the sweep as an `xarray.Dataset` with the swept settings as coordinates.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed (it comes with the extra ``lab``).
        """
        with needed_for("Sweep.to_xarray()"):
            import xarray

        axes = tuple(self.axes)
        letters = list("xy"[: self.problem.dimension])
        steps = self.steps
        after = (*axes, "step", "coordinate")
        variables: dict[str, Any] = {
            "loss": ((*axes, "time"), self.loss),
            "point": ((*axes, "time", "coordinate"), self.point),
            "gradient": (after, self.gradient),
            "stopped": (axes, self.stopped),
        }
        variables |= {name: (after, array) for name, array in {**self.slots, **self.terms}.items()}
        coordinates: dict[str, Any] = {**self.settings, "coordinate": letters}
        coordinates |= {"time": np.arange(steps + 1), "step": np.arange(1, steps + 1)}
        if len(self.starts) > 1:
            coordinates |= {
                f"start {letter}": (START, self.starts[:, i]) for i, letter in enumerate(letters)
            }
        attributes = {"optimizer": self.optimizer.__name__, "problem": self.problem.title}
        return xarray.Dataset(variables, coordinates, attributes)

    def _more_counts(self) -> str:
        counts = [(int(np.sum(self.status == word)), word) for word in ("raised", "missing")]
        return "".join(f", {number} {word}" for number, word in counts if number)


@overload
def sweep(
    problem: Network, optimizer_class: Swept, settings: Mapping[str, Sequence[Any]],
    start: None = None, steps: int = 500, seed: int = 0, executor: Executors = None,
    limit: int | str = "4 GiB", progress: bool | None = None, to: Any = None,
) -> NetworkSweep: ...  # fmt: skip
@overload
def sweep(
    problem: Any, optimizer_class: Swept, settings: Mapping[str, Sequence[Any]],
    start: Any = None, steps: int = 500, seed: int = 0, executor: Executors = None,
    limit: int | str = "4 GiB", progress: bool | None = None, to: Any = None,
) -> Sweep: ...  # fmt: skip
def sweep(
    problem: Any,
    optimizer_class: Swept,
    settings: Mapping[str, Sequence[Any]],
    start: Any = None,
    steps: int = 500,
    seed: int = 0,
    executor: Executors = None,
    limit: int | str = "4 GiB",
    progress: bool | None = None,
    to: Any = None,
) -> Sweep | NetworkSweep:
    """Run one optimizer with every combination of settings, and from every start.

    On a surface all runs are one loop over steps and runs, compiled by numba where it pays off; the
    numbers equal those of separate runs to the bit. What cannot be (a rule that is not elementwise,
    a function with a branch) runs separately; ``.execution`` says how it was, and why. Ctrl-C ends
    a sweep and keeps what is done. A network is trained by all members at once, as an ensemble of
    batched products.

    Parameters
    ----------
    problem : Surface, Network, str or callable
        What `optlab.compare` accepts.
    optimizer_class : type, Optimizer or callable
        A class, ``ol.optimizer.Adam``; an optimizer made without parameters, whose other settings
        stay, ``ol.optimizer.LookAhead(ol.optimizer.Adam(weight_decay=0.1))``; or a function that
        makes one of the settings.
    settings : dict of str to sequence
        The values to try, of the rule or of wrappers around it; settings that are not named keep
        their values.
    start : one point, or an array of points, optional
        By default that of the problem.
    steps : int
        Updates per run.
    seed : int
        Fixes every random draw, to the bit.
    executor : concurrent.futures.Executor or callable, optional
        Executes runs that run separately: a ``ProcessPoolExecutor``, ``client.get_executor()`` of
        Dask, an ``MPIPoolExecutor`` of mpi4py. A function that makes one is called again where a
        dead worker has broken the executor.
    limit : int or str
        How many bytes the arrays of a chunk of runs, and histories, may take.
    progress : bool, optional
        Whether to show a progress bar. By default in notebooks, if the sweep takes long.
    to : path, optional
        A Zarr store, a folder that all workers see. Every run is separate then: its worker writes
        its results there, and then its mark. The same call goes on with a sweep that was killed,
        and runs no finished cell again. A cell whose worker dies is begun three times, and then
        has ``status`` "raised".

    Returns
    -------
    Sweep
        Arrays whose first axes are the settings, in the order given, then the starts; with
        ``.best()``, ``.ends`` (which of the best settings are at an end of their range),
        ``.table()``, ``.heatmap()``, which a notebook displays, and ``.save()``. Of a network a
        `optlab.lab.NetworkSweep`, which has these, too.

    Raises
    ------
    TypeError, ValueError
        If an argument is wrong, or the problem cannot be evaluated at a start.

    Examples
    --------
    >>> import optlab as ol
    >>> sweep = ol.sweep(
    ...     "rosenbrock", ol.optimizer.Adam, {"learning_rate": [0.01, 0.1], "beta1": [0.5, 0.9]}
    ... )
    >>> sweep  # doctest: +ELLIPSIS
    <Sweep of Adam on Rosenbrock valley: 2 x learning_rate, 2 x beta1; 500 steps, ...>
    >>> sweep.loss.shape
    (2, 2, 501)
    """
    surface = find(problem)
    make, known = maker_of(optimizer_class)
    if not isinstance(settings, Mapping) or not settings:
        raise TypeError(
            "settings is a dict of the values to try, such as {'learning_rate': [0.01, 0.1]}; got "
            f"{settings!r}."
        )
    alone = make is known and "inner_optimizer" not in settings
    if known is not None and alone and issubclass(known, Wrapper):
        raise TypeError(
            f"sweep does not take the wrapper {known.__name__} by itself: give what it "
            "wraps, too, {'inner_optimizer': [ol.optimizer.SGD(0.1)], ...}; or a whole optimizer, "
            "ol.optimizer.LookAhead(ol.optimizer.SGD(0.1)), and the settings of both to sweep."
        )
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1; got {steps!r}.")
    seed = operator.index(seed)
    axes = {name: _axis(name, values) for name, values in settings.items()}
    first = {name: axis.tolist()[0] for name, axis in axes.items()}
    cls = known or type(make(**first))
    if isinstance(surface, Network):
        if (progress and to is None) or limit != "4 GiB":
            raise TypeError(
                "limit= and progress= are for sweeps on surfaces; a sweep of a network keeps the "
                "losses alone. Leave them out."
            )
        return sweep_network(
            surface, make, cls, axes, start, int(steps), seed, executor, to, bool(progress)
        )
    starts = _starts(surface, start)
    surface.value_and_gradient(starts[0])  # a faulty problem fails at once, by its name
    groups = groups_of_grid(make, known or Optimizer, axes, len(starts))
    sweeper = Sweeper(
        surface, groups, starts, int(steps), seed, bytes_from(limit, "limit"), executor, to
    )
    label = f"{cls.__name__} on {surface.title}"
    bar = ProgressBar(sweeper.members, label, progress)
    try:
        outcome = sweeper.run(bar.update)
    finally:
        bar.close()
    return Sweep(cls, axes, sweeper, outcome)


def _axis(name: str, values: Any) -> np.ndarray:
    axis = np.asarray(values)
    if axis.ndim != 1 or not len(axis):
        raise ValueError(f"the values of {name} must be a list of at least one; got {values!r}.")
    return axis


def _starts(surface: Surface, start: Any) -> np.ndarray:
    """Return the starts as rows."""
    if start is None:
        return np.array([surface.start])
    points = np.asarray(getattr(start, "data", start), dtype=float)
    rows = points.reshape(1, -1) if points.ndim < 2 else points
    if points.ndim == 1 and surface.dimension == 1:
        rows = points.reshape(-1, 1)
    return np.array([surface.checked_start(row) for row in rows])
