"""What the results of all sweeps have: settings, final losses, the best cell, table and figure."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from html import escape
from typing import Any

import numpy as np

from optlab.backend.display import Rendered
from optlab.backend.extras import needed_for
from optlab.optimizer import Optimizer
from optlab.optimizer.rule.hyperparameters import COMMON_RANGES

#: A notebook shows the beginning and the end of longer tables.
_MOST_ROWS = 20
#: The name of the axis of starts.
START = "start"


class SweepResults(Rendered):
    """The results of one optimizer over a grid of settings: arrays whose first axes are these.

    Attributes
    ----------
    problem : Surface or Network
    optimizer : type
        The class that was swept.
    settings : dict of str to array
        The values of each setting, in the order of the axes.
    steps, seed : int
        The same for all runs.
    stopped : array of int, shape ``(*swept)``
        The step at which the loss was no longer finite, or -1.
    """

    drawn_as = "sweep"

    problem: Any
    optimizer: type[Optimizer]
    settings: dict[str, np.ndarray]
    steps: int
    seed: int
    stopped: np.ndarray

    @property
    @abstractmethod
    def final_loss(self) -> np.ndarray:
        """The loss after the last step; infinite where a run diverged."""

    @property
    @abstractmethod
    def start_loss(self) -> float:
        """The loss before the first step, the highest of several starts."""

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The values along each axis of the arrays: settings, and starts if there are several.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.sweep("parabola", ol.optimizer.SGD, {"learning_rate": [0.1, 0.25]}).axes
        {'learning_rate': [0.1, 0.25]}
        """
        return {name: values.tolist() for name, values in self.settings.items()}

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
        losses = np.where(np.isnan(self.final_loss), np.inf, self.final_loss)
        place = np.unravel_index(int(np.argmin(losses)), losses.shape)
        return {name: values[i] for (name, values), i in zip(self.axes.items(), place, strict=True)}

    @property
    def ends(self) -> dict[str, str]:
        """The best settings at an end of their range: "lowest" or "highest" of the tried values.

        There may be better values beyond that end. Left out are settings with fewer than three
        values, and those at a bound beyond which no value is allowed (a momentum of 0).

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
                allowed = self.optimizer.ranges.get(name) or COMMON_RANGES.get(name)
                least = allowed[0] if allowed else -np.inf
                if best[name] == values.min() and best[name] > least:
                    found[name] = "lowest"
                elif best[name] == values.max():
                    found[name] = "highest"
        return found

    def table(self) -> Any:
        """Return the results as a pandas DataFrame, one row per run, the lowest final loss first.

        Its columns are the settings (and the start), the final loss, of a network the accuracy on
        held-out data, and the step at which a run diverged, NA if it did not.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).
        """
        table = self._frame("table")
        return table.sort_values("final loss", kind="stable").reset_index(drop=True)

    def to_dataframe(self) -> Any:
        """Return the results as a pandas DataFrame, one row per run, in the order of the grid.

        Its columns are those of `table`; settings (and the start) are the index.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed (it comes with the extra ``lab``).
        """
        return self._frame("to_dataframe").set_index([*self.axes])

    def _frame(self, asked: str) -> Any:
        """Return a row for each run, in the order of the grid."""
        with needed_for(f"{type(self).__name__}.{asked}()"):
            import pandas as pd

        axes = self.axes
        table = pd.DataFrame(itertools.product(*axes.values()), columns=[*axes])
        stopped = self.stopped.reshape(-1)
        table["final loss"] = self.final_loss.reshape(-1)
        for name, values in self._more_columns().items():
            table[name] = values.reshape(-1)
        table["diverged at"] = pd.array([step if step >= 0 else pd.NA for step in stopped], "Int64")
        return table

    def _more_columns(self) -> dict[str, np.ndarray]:
        """Return further columns of the table, arrays over all cells."""
        return {}

    def heatmap(self, **options: Any) -> Any:
        """Draw the final losses over the settings: a curve for one, a map for two or more.

        Of more than two settings two are drawn, at the best values of the others; the caption says
        which. The best cell is marked, and so is that it lies at the end of a range. Colors span
        the bulk of the losses; those far beyond have the last color. `figure` is the same, and
        `save` writes it to a file.

        Parameters
        ----------
        **options
            ``x`` and ``y``, the names of the settings along the axes; ``width`` and ``height`` in
            pixels.

        Examples
        --------
        >>> import optlab as ol
        >>> sweep = ol.sweep("parabola", ol.optimizer.SGD, {"learning_rate": [0.01, 0.1, 0.25]})
        >>> figure = sweep.heatmap()
        """
        return self.figure(**options)

    def __repr__(self) -> str:
        axes = [
            f"{len(values)} {name}s" if name == START else f"{len(values)} x {name}"
            for name, values in self.axes.items()
        ]
        lost = int(np.sum(self.stopped >= 0))
        every = f"{self.steps} steps, {lost} of {self.stopped.size} diverged{self._more_counts()}"
        best = ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.best().items()
        )
        said = "; ".join(f"{end} {name} that was tried" for name, end in self.ends.items())
        reached = np.isfinite(self.final_loss).any()
        ending = f"; best {best}{f' ({said})' * bool(said)}" if reached else ""
        head = f"Sweep of {self.optimizer.__name__} on {self.problem.title}"
        return f"<{head}: {', '.join(axes)}; {every}{ending}>"

    def _more_counts(self) -> str:
        """Return further counts of cells for `repr`."""
        return ""

    def _repr_html_(self) -> str:
        head = f"<p>{escape(repr(self))}</p>"
        try:
            return head + str(self.table().to_html(max_rows=_MOST_ROWS, index=False))
        except ModuleNotFoundError:
            return head
