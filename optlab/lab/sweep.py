"""Sweeps: one optimizer over a grid of settings and starts, with the results of separate runs."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from html import escape
from typing import Any

import numpy as np

from optlab.lab.compare import compare
from optlab.lab.problems.lookup import find
from optlab.lab.problems.surface import Surface
from optlab.lab.vectorized import EnsembleRun, NotOnePassError, run_ensemble
from optlab.optimizer import Optimizer
from optlab.optimizer.wrappers import Wrapper

#: Rates from 1e-4 to 1 in steps of 1, 2 and 5.
LADDER = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
#: A notebook shows the beginning and the end of longer tables.
_MOST_ROWS = 20


class Sweep:
    """The results of a sweep: arrays whose first axes are the swept settings.

    Attributes
    ----------
    problem : Surface
    optimizer : type
        The class that was swept.
    settings : dict of str to array
        The values of each setting, in the order of the axes.
    starts : array, shape (starts, dimension)
        Several starts are the last swept axis.
    loss : array, shape (*swept, steps + 1)
        Before each step, and after the last.
    point : array, shape (*swept, steps + 1, dimension)
    gradient : array, shape (*swept, steps, dimension)
    slots, terms : dict of str to array, shape (*swept, steps, dimension)
    stopped : array of int, shape (*swept)
        The step at which the loss was no longer finite, or -1. Later values are NaN.
    """

    def __init__(
        self,
        problem: Surface,
        optimizer: type[Optimizer],
        settings: dict[str, np.ndarray],
        starts: np.ndarray,
        seed: int,
        run: EnsembleRun,
    ) -> None:
        self.problem = problem
        self.optimizer = optimizer
        self.settings = settings
        self.starts = starts
        self.seed = seed
        many = (len(starts),) if len(starts) > 1 else ()
        swept = (*(len(values) for values in settings.values()), *many)

        def shaped(array: np.ndarray) -> np.ndarray:
            return array.reshape(swept + array.shape[1:])

        self.loss, self.point = shaped(run.loss), shaped(run.point)
        self.gradient, self.stopped = shaped(run.gradient), shaped(run.stopped)
        self.slots = {name: shaped(array) for name, array in run.slots.items()}
        self.terms = {name: shaped(array) for name, array in run.terms.items()}

    @property
    def final_loss(self) -> np.ndarray:
        """The loss after the last step; infinite where a run diverged."""
        return np.where(self.stopped >= 0, np.inf, self.loss[..., -1])

    def best(self) -> dict[str, Any]:
        """Return the settings (and the start) with the lowest final loss.

        Examples
        --------
        >>> import optlab as ol
        >>> sweep = ol.sweep(
        ...     "parabola", ol.optimizer.SGD, {"learning_rate": [0.1, 0.25, 0.6]}, steps=20
        ... )
        >>> sweep.best()
        {'learning_rate': 0.25}
        """
        place = np.unravel_index(int(np.argmin(self.final_loss)), self.final_loss.shape)
        found: dict[str, Any] = {
            name: values.tolist()[i]  # also for an array of objects
            for (name, values), i in zip(self.settings.items(), place, strict=False)
        }
        if len(self.starts) > 1:
            found["start"] = tuple(self.starts[place[-1]].tolist())
        return found

    @property
    def ends(self) -> dict[str, str]:
        """The best settings at an end of their range: "lowest" or "highest" of the tried values.

        There may be better values beyond that end. Settings with fewer than three values are left
        out.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.sweep("parabola", ol.optimizer.SGD, {"learning_rate": [0.01, 0.1, 0.25]}).ends
        {'learning_rate': 'highest'}
        """
        best = self.best()
        found: dict[str, str] = {}
        if not np.isfinite(self.final_loss).any():
            return found
        for name, values in self.settings.items():
            if len(values) > 2 and values.dtype.kind in "iuf":
                if best[name] == values.min():
                    found[name] = "lowest"
                elif best[name] == values.max():
                    found[name] = "highest"
        return found

    def table(self) -> Any:
        """Return the final losses as a pandas DataFrame, one row per run, the best first.

        Its columns are the settings (and the start), the final loss, and the step at which a run
        diverged, NA if it did not.
        """
        import pandas as pd

        axes = list(self.settings.values())
        starts = [tuple(start) for start in self.starts.tolist()]
        rows = itertools.product(*(axis.tolist() for axis in axes), starts)
        table = pd.DataFrame(rows, columns=[*self.settings, "start"])
        if len(starts) == 1:
            table = table.drop(columns="start")
        stopped = self.stopped.reshape(-1)
        table["final loss"] = self.final_loss.reshape(-1)
        table["diverged at"] = pd.array([step if step >= 0 else pd.NA for step in stopped], "Int64")
        return table.sort_values("final loss", kind="stable").reset_index(drop=True)

    def to_xarray(self) -> Any:
        """Return the sweep as an `xarray.Dataset` with the swept settings as coordinates.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed (it comes with the extra ``lab``).
        """
        import xarray

        axes = tuple(self.settings) + (("start",) if len(self.starts) > 1 else ())
        letters = list("xy"[: self.problem.dimension])
        steps = self.gradient.shape[-2]
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
                f"start {letter}": ("start", self.starts[:, i]) for i, letter in enumerate(letters)
            }
        attributes = {"optimizer": self.optimizer.__name__, "problem": self.problem.title}
        return xarray.Dataset(variables, coordinates, attributes)

    def __repr__(self) -> str:
        axes = [f"{len(values)} x {name}" for name, values in self.settings.items()]
        if len(self.starts) > 1:
            axes.append(f"{len(self.starts)} starts")
        lost = int(np.sum(self.stopped >= 0))
        every = f"{self.gradient.shape[-2]} steps, {lost} of {self.stopped.size} diverged"
        best = ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.best().items()
        )
        said = "; ".join(f"{end} {name} that was tried" for name, end in self.ends.items())
        ending = f"; best {best}{f' ({said})' * bool(said)}" if lost < self.stopped.size else ""
        head = f"Sweep of {self.optimizer.__name__} on {self.problem.title}"
        return f"<{head}: {', '.join(axes)}; {every}{ending}>"

    def _repr_html_(self) -> str:
        head = f"<p>{escape(repr(self))}</p>"
        try:
            return head + str(self.table().to_html(max_rows=_MOST_ROWS, index=False))
        except ModuleNotFoundError:
            return head


def sweep(
    problem: Any,
    optimizer_class: type[Optimizer],
    settings: Mapping[str, Sequence[Any]],
    start: Any = None,
    steps: int = 500,
    seed: int = 0,
    executor: Executor | None = None,
) -> Sweep:
    """Run one optimizer with every combination of settings, and from every start.

    On a surface all runs are vectorized, as rows of arrays; the numbers equal those of separate
    runs to the bit. What cannot be vectorized (a rule that is not elementwise, a function with a
    branch) runs separately.

    Parameters
    ----------
    problem : Surface, str or callable
        What `optlab.compare` accepts, except networks.
    optimizer_class : type
        For example ``ol.optimizer.Adam``.
    settings : dict of str to sequence
        The values to try; settings that are not named keep their defaults.
    start : one point, or an array of points, optional
        By default that of the problem.
    steps : int
        Updates per run.
    seed : int
        Fixes every random draw, to the bit.
    executor : concurrent.futures.Executor, optional
        Executes runs that cannot be vectorized, for example a ``ThreadPoolExecutor``.

    Returns
    -------
    Sweep
        Arrays whose first axes are the settings, in the order given, then the starts; with
        ``.best()``, ``.ends`` (which of the best settings are at an end of their range) and
        ``.table()``, which a notebook displays.

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
    if not isinstance(surface, Surface):
        raise TypeError(f"sweep runs on surfaces; {surface.title} is a network. Use compare.")
    if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
        raise TypeError(
            f"sweep takes an optimizer class, such as ol.optimizer.Adam; got {optimizer_class!r}."
        )
    if not isinstance(settings, Mapping) or not settings:
        raise TypeError(
            "settings is a dict of the values to try, such as {'learning_rate': [0.01, 0.1]}; got "
            f"{settings!r}."
        )
    if issubclass(optimizer_class, Wrapper) and "inner_optimizer" not in settings:
        raise TypeError(
            f"sweep does not take the wrapper {optimizer_class.__name__} by itself: give what it "
            "wraps, too, {'inner_optimizer': [ol.optimizer.SGD(0.1)], ...}; or use compare, one "
            "entry a rate: {f'rate {rate}': ol.optimizer.LookAhead(ol.optimizer.SGD(rate)) for "
            "rate in rates}."
        )
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1; got {steps!r}.")
    seed = operator.index(seed)
    axes = {name: _axis(name, values) for name, values in settings.items()}
    starts = _starts(surface, start)
    templates = [
        optimizer_class(**dict(zip(axes, values, strict=True)))
        for values in itertools.product(*(axis.tolist() for axis in axes.values()))
    ]
    members = [(template, point) for template in templates for point in starts]
    surface.value_and_gradient(starts[0])  # a faulty problem fails at once, by its name
    try:
        run = run_ensemble(
            surface,
            [template for template, _ in members],
            np.array([point for _, point in members]),
            int(steps),
            seed,
        )
    except NotOnePassError:
        run = _run_separately(surface, members, int(steps), seed, executor)
    return Sweep(surface, optimizer_class, axes, starts, seed, run)


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


def _run_separately(
    surface: Surface,
    members: list[tuple[Optimizer, Any]],
    steps: int,
    seed: int,
    executor: Executor | None,
) -> EnsembleRun:
    """Run the members separately, and stack their traces."""
    tasks = [(surface, template, tuple(point), steps, seed) for template, point in members]
    results: Iterator[Any] = (executor.map if executor is not None else map)(_run_member, tasks)
    run = EnsembleRun(len(members), steps, surface.dimension)
    for i, (trace, final, stopped) in enumerate(results):
        n = len(trace)
        run.loss[i, :n] = trace.loss
        run.loss[i, n] = final
        run.point[i, : n + 1] = trace.parameters["point"]
        run.gradient[i, :n] = trace.gradients["point"]
        run.stopped[i] = stopped
        for where, recorded in ((run.slots, trace.slots), (run.terms, trace.terms)):
            for name, arrays in recorded.items():
                rows = where.setdefault(name, np.full(run.gradient.shape, np.nan))
                rows[i, :n] = arrays["point"]
    return run


def _run_member(task: Any) -> tuple[Any, float, int]:
    """Run one member; a module-level function, so that another process can call it."""
    surface, template, point, steps, seed = task
    race = compare(surface, {"run": template}, start=point, steps=steps, seed=seed)
    trace = race["run"]
    return trace, race.final_loss["run"], len(trace) if trace.stopped else -1
