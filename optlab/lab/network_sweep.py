"""Sweeps of a network's training: one optimizer over a grid of settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

import numpy as np

from optlab.backend.extras import needed_for
from optlab.lab.network_ensembles import NetworkRuns, run_network, store_network
from optlab.lab.problems.networks import Network
from optlab.lab.progress import ProgressBar
from optlab.lab.sweeps.results import SweepResults
from optlab.optimizer import Optimizer


class NetworkSweep(SweepResults):
    """The results of a sweep over a network's training: arrays whose axes are the settings.

    Attributes
    ----------
    problem : Network
    optimizer : type
        The class that was swept.
    settings : dict of str to array
        The values of each setting, in the order of the axes.
    steps : int
        Updates of each run.
    seed : int
        Fixes initial weights and the order of batches, the same for all runs.
    loss : array, shape ``(*swept, steps)``
        On the batch of each step, before it; NaN after a run diverged.
    accuracy : array, shape ``(*swept)``
        On held-out data, after the last step.
    stopped : array of int, shape ``(*swept)``
        The step at which the loss was no longer finite, or -1.
    parameters : dict of str to array, shape ``(*swept, ...)``
        After the last step, or where the run diverged.
    execution : str
        Whether the runs went together, as an ensemble, or one after another, and why.
    """

    def __init__(
        self,
        problem: Network,
        optimizer: type[Optimizer],
        settings: dict[str, np.ndarray],
        seed: int,
        runs: NetworkRuns,
    ) -> None:
        self.problem = problem
        self.optimizer = optimizer
        self.settings = settings
        self.seed = seed
        self.steps = runs.loss.shape[-1]
        swept = tuple(len(values) for values in settings.values())

        def shaped(array: np.ndarray) -> np.ndarray:
            return array.reshape(swept + array.shape[1:])

        self.loss, self.accuracy = shaped(runs.loss), shaped(runs.accuracy)
        self.stopped = shaped(runs.stopped)
        self.parameters = {name: shaped(array) for name, array in runs.parameters.items()}
        self._final_loss = shaped(runs.final_loss)
        self.execution = "\n".join(dict.fromkeys(runs.said))

    @property
    def final_loss(self) -> np.ndarray:
        """The loss on all training data after the last step; infinite where a run diverged."""
        return np.where(self.stopped >= 0, np.inf, self._final_loss)

    @property
    def start_loss(self) -> float:
        """The loss on the first batch, before the first step."""
        return float(np.max(self.loss[..., 0], initial=-np.inf))

    def _more_columns(self) -> dict[str, np.ndarray]:
        return {"held-out accuracy": self.accuracy}

    def to_xarray(self) -> Any:
        """Return the sweep as an `xarray.Dataset` with the swept settings as coordinates.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed (it comes with the extra ``lab``).
        """
        with needed_for("NetworkSweep.to_xarray()"):
            import xarray

        axes = tuple(self.settings)
        variables: dict[str, Any] = {
            "loss": ((*axes, "step"), self.loss),
            "final_loss": (axes, self.final_loss),
            "accuracy": (axes, self.accuracy),
            "stopped": (axes, self.stopped),
        }
        for name, array in self.parameters.items():
            own = tuple(f"{name}, axis {i}" for i in range(array.ndim - len(axes)))
            variables[name] = ((*axes, *own), array)
        coordinates = {**self.settings, "step": np.arange(1, self.steps + 1)}
        attributes = {"optimizer": self.optimizer.__name__, "problem": self.problem.title}
        return xarray.Dataset(variables, coordinates, attributes)


def sweep_network(
    network: Network,
    make: Callable[..., Optimizer],
    optimizer_class: type[Optimizer],
    axes: Mapping[str, np.ndarray],
    start: Any,
    steps: int,
    seed: int,
    executor: Executor | Callable[[], Executor] | None,
    to: Any = None,
    progress: bool = False,
) -> NetworkSweep:
    """Run a network with every combination of settings; the arguments of `optlab.sweep`, checked.

    Raises
    ------
    TypeError
        If a start is given.
    """
    network.run(start, seed)
    members = [
        dict(zip(axes, values, strict=True))
        for values in itertools.product(*(axis.tolist() for axis in axes.values()))
    ]
    if to is None:
        runs = run_network(network, make, members, steps, seed, executor)
    else:
        bar = ProgressBar(len(members), f"{optimizer_class.__name__} on {network.title}", progress)
        try:
            runs = store_network(network, make, members, steps, seed, executor, to, bar.update)
        finally:
            bar.close()
    return NetworkSweep(network, optimizer_class, dict(axes), seed, runs)
