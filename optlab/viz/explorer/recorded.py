"""Recorded runs of real models in the explorer: norms of layers, and the path in its plane.

A real model has too many weights for a map of its own. Its runs are drawn in the plane in which
they move most, over the loss there where model and data are at hand, and the coordinates are the
norms of its layers.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from optlab import optimizer as library
from optlab.backend import random
from optlab.backend.text import unique_lines
from optlab.lab.evaluation_budget import run_updates
from optlab.lab.landscapes.landscape import landscape
from optlab.lab.problems.networks import Network
from optlab.lab.recipes.recipe import Training
from optlab.nn.functional import cross_entropy
from optlab.optimizer import Optimizer
from optlab.trace import Trace, record
from optlab.trace.probes import Norms, Snapshots
from optlab.viz.explorer.runs import Runs, initial_slots
from optlab.viz.explorer.state import optimizer_classes, usual_template
from optlab.viz.landscapes.principal import principal_paths, weights_of_run
from optlab.viz.style.geometry import Floats
from optlab.viz.style.results import traces_of

#: Rates at which these learn a small network; others begin at 0.01.
NETWORK_RATES = {"SGD": 0.5, "Momentum": 0.05, "RMSProp": 0.005}
#: Points of the plane of losses (rows, columns), examples behind each, and points of a path.
_GRID, _EXAMPLES, _POINTS = (29, 47), 400, 40
#: How far the losses reach beyond the paths: a page's map is up to 2.2 times as wide as high.
_REACH = (1.9, 1.2)
_ROOM = 0.15


class RecordedRuns:
    """Runs as the explorer shows those of networks.

    Attributes
    ----------
    problem : object
        With ``.kind``, ``.name`` and ``.title``.
    traces : dict of str to Trace
    optimizers : dict of str to Optimizer
        Templates of the same classes.
    steps, seed : int
    axes : list of str
        The layers.
    plane : dict or None
        Paths, and losses of a grid, for the page.
    landscape : Landscape or None
        Where the plane's losses are from.
    """

    start = None

    def __init__(self, traces: Mapping[str, Any], title: str, name: str, seed: int = 0) -> None:
        lines = unique_lines(traces)
        self.traces: dict[str, Any] = {lines[key]: trace for key, trace in traces.items()}
        empty = [key for key, trace in self.traces.items() if not len(trace)]
        if empty:
            raise ValueError(f"the trace {empty[0]!r} has no steps to explore.")
        self.problem = SimpleNamespace(kind="network", name=name, title=title, minimum_value=None)
        self.optimizers = {key: _template(trace) for key, trace in self.traces.items()}
        self.steps = max(int(trace.step[-1]) for trace in self.traces.values())
        self.seed = seed
        self.accuracy: dict[str, float] = {}
        self.final_loss = {
            key: float(np.asarray(trace.loss, np.float64)[-1]) for key, trace in self.traces.items()
        }
        named = [_norms(trace).get("gradient", {}) for trace in self.traces.values()]
        self.axes = list(dict.fromkeys(_layer(one) for row in named for one in row)) or ["norm"]
        self.landscape: Any = None
        self.plane = self._paths()

    def runs(self) -> dict[str, Runs]:
        """Return the runs as the explorer's model has them."""
        return {name: self._run(name, trace) for name, trace in self.traces.items()}

    def _run(self, name: str, trace: Any) -> Runs:
        template = self.optimizers[name]
        loss = np.full((1, self.steps + 1), np.nan)
        loss[0, np.asarray(trace.step, int) - 1] = np.asarray(trace.loss, np.float64)
        known = {kind: self._rows(trace, arrays) for kind, arrays in _norms(trace).items()}
        blank = np.full((1, self.steps, len(self.axes)), np.nan)
        update = known.pop("update", blank)
        gradient = known.pop("gradient", blank)
        known.pop("parameter", None)
        initial = initial_slots(template)
        return Runs(
            template=template, rates=(float(template.get_lr()),), point=None, loss=loss,
            gradient=gradient, update=update,
            slots={kind: rows for kind, rows in known.items() if kind in initial},
            terms={kind: rows for kind, rows in known.items() if kind not in initial},
            initial=initial,
            stopped=np.array([len(trace) if trace.stopped or len(trace) < self.steps else -1]),
            why=[str(trace.stopped or "")],
        )  # fmt: skip

    def _rows(self, trace: Any, arrays: Mapping[str, Any]) -> Floats:
        """Return the norms of each layer at each step; between recorded steps the last ones."""
        steps = np.asarray(trace.steps("norms"), int)
        found = np.full((1, self.steps, len(self.axes)), np.nan)
        for k, axis in enumerate(self.axes):
            parts = [np.asarray(a, np.float64) for one, a in arrays.items() if _layer(one) == axis]
            if parts and len(steps):
                total = np.sqrt(np.sum(np.square(parts), axis=0))
                at = np.searchsorted(steps, np.arange(1, self.steps + 1), side="right") - 1
                last = int(np.asarray(trace.step)[-1])
                inside = (at >= 0) & (np.arange(1, self.steps + 1) <= last)
                found[0, inside, k] = total[at[inside]]
        return found

    def _paths(self) -> dict[str, Any] | None:
        """Return the runs' paths in their common plane; None where no weights were recorded."""
        if any(weights_of_run(trace) is None for trace in self.traces.values()):
            return None
        try:
            paths, shares = principal_paths(self.traces)
        except ValueError:  # runs of different models
            return None
        return {
            "box": _around(np.concatenate([at for _, at, _ in paths.values()])),
            "said": f"the plane holds {shares.sum():.0%} of the movement",
            "paths": {
                name: {"steps": steps.tolist(), "points": at.astype(float).tolist()}
                for name, (steps, at, _) in paths.items()
            },
        }

    def over(self, found: Any) -> RecordedRuns:
        """Put the losses of a landscape with these runs under the paths; return this."""
        self.landscape = found
        values = np.where(np.isfinite(found.loss), found.loss, np.nan).astype("<f4")
        every = [np.stack([path.a, path.b], axis=1) for path in found.paths.values()]
        ground = [found.a[0], found.a[-1], found.b[0], found.b[-1]]
        self.plane = {
            "box": _around(np.concatenate(every)),
            "ground": [float(end) for end in ground],
            "said": f"the plane holds {sum(found.explained):.0%} of the movement",
            "rows": len(found.b), "columns": len(found.a),
            "values": base64.b64encode(values.tobytes()).decode("ascii"),
            "paths": {
                name: {"steps": path.steps.tolist(), "points": points.tolist()}
                for (name, path), points in zip(found.paths.items(), every, strict=True)
            },
        }  # fmt: skip
        return self


def _around(points: Floats) -> list[float]:
    """Return the box of points with room: x from and to, y from and to."""
    low, high = points.min(axis=0), points.max(axis=0)
    room = _ROOM * np.maximum(high - low, 1e-12)
    low, high = low - room, high + room
    return [float(low[0]), float(high[0]), float(low[1]), float(high[1])]


def are_recorded(given: Any) -> bool:
    """Return whether something is a recorded run, or several."""
    several = given.values() if isinstance(given, Mapping) else given
    if isinstance(several, (list, tuple)) or isinstance(given, Mapping):
        return bool(given) and all(isinstance(one, (Trace, Training)) for one in several)
    return isinstance(given, (Trace, Training))


def recorded_runs(given: Any) -> RecordedRuns:
    """Return recorded runs: a trace or `Training`, a list or dict of them.

    Raises
    ------
    ValueError
        If nothing was recorded of a training.
    """
    if isinstance(given, Mapping):
        trainings = [one for one in given.values() if isinstance(one, Training)]
        named = {str(name): _trace_of(one) for name, one in given.items()}
    else:
        several = list(given) if isinstance(given, (list, tuple)) else [given]
        trainings = [one for one in several if isinstance(one, Training)]
        named = traces_of([_trace_of(one) for one in several], "explore")
    recipes = {one.recipe.name: one for one in trainings}
    if len(recipes) != 1 or len(trainings) < len(named):
        title = next(iter(named)) if len(named) == 1 else f"{len(named)} recorded runs"
        return RecordedRuns(named, title, "run")
    [training] = recipes.values()
    found = RecordedRuns(named, training.recipe.title, training.recipe.name, training.seed)
    if found.plane is None:
        return found
    batch = training.recipe.batch(training.data, 0, training.seed)
    if hasattr(training.data, "train_x"):
        batch = training.data.train_x[:_EXAMPLES], training.data.train_y[:_EXAMPLES]
    model = training.model
    training_mode = model.training
    model.eval()
    try:
        plane = landscape(
            model, lambda: training.recipe.loss(model, batch), "pca", size=_GRID, extent=_REACH,
            runs=found.traces, progress=False,
        )  # fmt: skip
    finally:
        if training_mode:
            model.train()
    return found.over(plane)


def _trace_of(one: Any) -> Trace:
    trace = one.trace if isinstance(one, Training) else one
    if trace is None:
        raise ValueError(
            f"nothing was recorded of this training of {one.recipe.name!r}: give it "
            "probes=[ol.probes.Norms(), ol.probes.Snapshots(every=20)]."
        )
    found: Trace = trace
    return found


def trained(
    network: Network, optimizers: Any, steps: int, seed: int
) -> RecordedRuns:  # fmt: skip
    """Train a network by each optimizer, recorded, and evaluate the plane of their paths."""
    traces: dict[str, Trace] = {}
    run: Any = None
    for name, template in _templates(optimizers).items():
        run = network.run(seed=seed)
        with random.scope("optimizer", seed=seed):
            bound = template.bind(run.parameters)
        probes = [Norms(), Snapshots(every=max(1, steps // _POINTS), state=False)]
        with (
            record(bound, probes=probes, model=run.model) as trace,
            random.scope("race", seed=seed),
            np.errstate(all="ignore"),
        ):
            trace.name = name
            for _, last in run_updates(bound, run, steps, []):
                if not np.isfinite(last):
                    trace.stopped = "diverged: the loss is not finite"
                    break
        traces[name] = trace
    found = RecordedRuns(traces, network.title, network.name, seed)
    x, y = run.data.train_x[:_EXAMPLES], run.data.train_y[:_EXAMPLES]
    model = run.model
    if found.plane is None:
        return found
    return found.over(
        landscape(model, lambda: cross_entropy(model(x), y), "pca", size=_GRID, extent=_REACH,
                  runs=traces, progress=False)
    )  # fmt: skip


def _templates(optimizers: Any) -> dict[str, Optimizer]:
    """Return templates: those given, or of names at rates that suit small networks."""
    if isinstance(optimizers, Mapping):
        return dict(optimizers)
    classes = optimizer_classes()
    found = {}
    for name in optimizers:
        found[name] = usual_template(classes[name])
        found[name].set_lr(NETWORK_RATES.get(name, float(found[name].settings["learning_rate"])))
    return found


def _template(trace: Any) -> Optimizer:
    """Return an optimizer of the class and rate of a trace, as far as they are known."""
    cls = getattr(library, str(trace.settings.get("class", "")), library.SGD)
    if cls.__name__ not in optimizer_classes():
        cls = library.SGD
    rates = np.asarray(trace.learning_rate, np.float64)
    rate = trace.settings.get("learning_rate", rates[0] if len(rates) else 0.01)
    found = usual_template(cls)
    found.set_lr(float(rate) if np.isfinite(float(rate)) else 0.01)
    return found


def _norms(trace: Any) -> Mapping[str, Mapping[str, Any]]:
    try:
        found: Mapping[str, Mapping[str, Any]] = trace.norms
    except (KeyError, ValueError, AttributeError):
        return {}
    return found


def _layer(parameter: str) -> str:
    """Return the layer of a parameter: its name without the last part.

    Examples
    --------
    >>> _layer("blocks.0.weight"), _layer("w")
    ('blocks.0', 'w')
    """
    return parameter.rpartition(".")[0] or parameter
