"""Recorded runs in the space of weights, and their paths on a plane through it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from optlab.lab.landscapes.directions import coordinates
from optlab.lab.landscapes.evaluation import Plane
from optlab.lab.landscapes.weights import Weights, checked_weights, difference
from optlab.nn import Layer
from optlab.trace import Trace


class RecordedRun(NamedTuple):
    """The weights of a run at some of its steps.

    Attributes
    ----------
    steps : array of int
    points : list of dict of str to array
    """

    steps: np.ndarray
    points: list[Weights]


class RunPath(NamedTuple):
    """The path of a run on a plane, and what the plane hides of it.

    Attributes
    ----------
    steps : array of int, shape (points,)
    a, b : array, shape (points,)
        Coordinates of the nearest point of the plane.
    residual : array, shape (points,)
        The distance from the plane.
    explained : float
        The share of the squared distances of the run's points from their mean that lies in the
        plane.
    loss, plane_loss : array, shape (points,)
        The loss at the run's own weights, and at the nearest point of the plane.
    """

    steps: np.ndarray
    a: np.ndarray
    b: np.ndarray
    residual: np.ndarray
    explained: float
    loss: np.ndarray
    plane_loss: np.ndarray


def read_runs(runs: Any, model: Layer) -> dict[str, RecordedRun]:
    """Return recorded runs by name.

    Parameters
    ----------
    runs : Trace, sequence of sets of weights, or a dict or comparison of them
    model : Layer

    Raises
    ------
    TypeError
        If it is none of these.
    ValueError
        If a trace has no weights, or not those of this model.
    """
    if runs is None:
        return {}
    if isinstance(getattr(runs, "trace", None), Trace):  # a Training of a recipe
        runs = runs.trace
    if isinstance(runs, Trace):
        return {runs.name or "run": _of_trace(runs, model)}
    traces = getattr(runs, "traces", runs)
    if isinstance(traces, Mapping):
        if traces and all(isinstance(value, np.ndarray) for value in traces.values()):
            raise TypeError(
                "runs= takes whole runs: a trace of ol.record, or a list of sets of weights; got "
                "one set."
            )
        found: dict[str, RecordedRun] = {}
        for name, run in traces.items():
            one = list(read_runs(run, model).values())
            if len(one) != 1:
                raise TypeError(
                    f"runs= has {len(one)} runs by the name {name!r}; give each a name of its own."
                )
            found[name] = one[0]
        return found
    if isinstance(traces, Iterable) and not isinstance(traces, (str, bytes)):
        several = list(traces)
        if several and all(isinstance(one, Trace) for one in several):
            return {
                f"{one.name or 'run'}{f' {i + 1}' if len(several) > 1 else ''}": _of_trace(
                    one, model
                )
                for i, one in enumerate(several)
            }
        points = [
            _whole(checked_weights(one, model, f"the set of weights {i}"), model)
            for i, one in enumerate(several)
        ]
        return {"run": RecordedRun(np.arange(len(points)), points)}
    raise TypeError(
        "runs= takes a trace of ol.record with probes=[ol.probes.Snapshots(every=...)] or "
        "[ol.probes.PCA()], a list of sets of weights, or a dict of them; got "
        f"{type(runs).__name__}."
    )


def _whole(given: Weights, model: Layer) -> Weights:
    """Return a set of weights, of which the missing ones are the model's."""
    return {name: np.asarray(given.get(name, p.data)) for name, p in model.named_parameters()}


def _of_trace(trace: Trace, model: Layer) -> RecordedRun:
    """Return the weights that a trace holds, by the names that the model has for them."""
    own = dict(model.named_parameters())
    if "pca directions" in trace.names and not {"snapshot", "parameter"} & set(trace.names):
        return _of_principal_components(trace, model)
    kind = "snapshot" if "snapshot" in trace.names else "parameter"
    recorded = trace[kind] if kind in trace.names else {}
    if not isinstance(recorded, Mapping):  # of one parameter alone
        recorded = dict.fromkeys(own, recorded) if len(own) == 1 else {}
    if set(recorded) != set(own):
        # A recorder without model= names parameters by their own names, or by position.
        shapes = [np.shape(values)[1:] for values in recorded.values()]
        fits = shapes == [p.data.shape for p in own.values()]
        if fits and not _in_order(trace, own) and len(set(shapes)) < len(shapes):
            fits, has = False, "which is which does not follow from its names and shapes"
        else:
            has = f"it has {', '.join(trace.names)}" if not recorded else "its shapes differ"
        if not fits:
            raise ValueError(
                f"the trace {trace.name!r} does not have the weights of this "
                f"{type(model).__name__} ({has}). Record the run with "
                "ol.record(optimizer, probes=[ol.probes.Snapshots(every=10)], model=model)."
            )
        recorded = dict(zip(own, recorded.values(), strict=True))
    arrays = {name: np.asarray(recorded[name]) for name in own}
    steps = np.asarray(trace.steps(kind))
    if kind == "parameter":  # which begins with the values before the first step
        steps = np.concatenate([[0], steps])
    return RecordedRun(steps, [{n: x[i] for n, x in arrays.items()} for i in range(len(steps))])


def _of_principal_components(trace: Trace, model: Layer) -> RecordedRun:
    """Return the points of the probe `PCA`, as far as its directions reach."""
    parameters = dict(model.named_parameters())
    own = {name: p.data.shape for name, p in parameters.items()}
    sizes = [math.prod(shape) for shape in own.values()]
    mean, directions = np.asarray(trace["pca mean"]), np.asarray(trace["pca directions"])
    fits = np.asarray(trace["pca sizes"]).tolist() == sizes
    if not fits or (len(set(sizes)) < len(sizes) and not _in_order(trace, parameters)):
        why = "which is which does not follow from their sizes" if fits else "the sizes differ"
        raise ValueError(
            f"the trace {trace.name!r} has principal components of other weights than those of "
            f"this {type(model).__name__}, or in another order ({why}). Record the run with "
            "ol.record(optimizer, probes=[ol.probes.Snapshots(every=10)], model=model)."
        )
    cuts = np.cumsum(sizes)[:-1]
    points = [
        {
            name: part.reshape(shape)
            for (name, shape), part in zip(own.items(), np.split(point, cuts), strict=True)
        }
        for point in mean + np.asarray(trace["pca"]) @ directions
    ]
    return RecordedRun(np.asarray(trace.steps("pca")), points)


def _in_order(trace: Trace, own: Mapping[str, Any]) -> bool:
    """Return whether the recorded optimizer has the parameters of a model in their order."""
    groups = getattr(trace.optimizer, "groups", ())
    recorded = [p for group in groups for p in group.parameters]
    return [id(p) for p in recorded] == [id(p) for p in own.values()]


def project(run: RecordedRun, plane: Plane) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Return coordinates [points, directions], distances [points], and the share explained.

    Notes
    -----
    With the points :math:`w_t`, their nearest points :math:`p_t` of the plane and
    :math:`r_t = w_t - p_t`, the share is :math:`1 - \sum_t \lVert r_t - \bar r \rVert^2 /
    \sum_t \lVert w_t - \bar w \rVert^2`: what a constant distance hides is no movement.
    """
    moved = [difference(point, plane.origin) for point in run.points]
    found = [coordinates(one, plane.directions) for one in moved]
    at = np.array([place for place, _ in found]).reshape(len(moved), len(plane.directions))
    away = np.array([distance for _, distance in found])
    hidden = [_less(one, place, plane) for one, place in zip(moved, at, strict=True)]
    total = _spread(moved)
    return at, away, 1.0 - _spread(hidden) / total if total else 1.0


def _less(moved: Weights, at: np.ndarray, plane: Plane) -> Weights:
    """Return a point less its part in the plane."""
    for c, direction in zip(at, plane.directions, strict=True):
        moved = {name: x - c * direction[name] if name in direction else x
                 for name, x in moved.items()}  # fmt: skip
    return moved


def _spread(points: list[Weights]) -> float:
    """Return the sum of the squared distances of points from their mean."""
    found = 0.0
    for name in points[0] if points else ():
        rows = np.stack([point[name] for point in points])
        found += float(np.sum(np.square(rows - rows.mean(axis=0))))
    return found
