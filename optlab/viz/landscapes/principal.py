"""Principal components of recorded weights, and the paths of runs in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.viz.style.geometry import Floats


def weights_of_run(trace: Any) -> tuple[Floats, Floats] | None:
    """Return the steps and the weights [steps, size] of a run; None if it has none."""
    kind = "snapshot" if "snapshot" in trace.names else "parameter"
    if kind not in trace.names:
        return None
    recorded = trace[kind]
    arrays = recorded.values() if hasattr(recorded, "values") else [recorded]
    flat = np.concatenate([np.asarray(x, np.float64).reshape(len(x), -1) for x in arrays], axis=1)
    steps = np.asarray(trace.steps(kind), np.float64)
    return (np.concatenate([[0.0], steps]) if len(flat) > len(steps) else steps), flat


def principal_paths(
    named: Any, count: int = 2
) -> tuple[dict[str, tuple[Floats, Floats, Floats]], Floats]:
    """Return steps, coordinates [steps, count], hidden distances of each run, and the shares."""
    found = {name: weights_of_run(trace) for name, trace in named.items()}
    if all(points is not None for points in found.values()):
        known = {name: points for name, points in found.items() if points is not None}
        sizes = {flat.shape[1] for _, flat in known.values()}
        if len(sizes) > 1:
            raise ValueError(
                "trajectory draws runs of one model in one plane; these have "
                f"{', '.join(map(str, sorted(sizes)))} weights."
            )
        every = np.concatenate([flat for _, flat in known.values()])
        middle = every.mean(axis=0)
        products = (every - middle) @ (every - middle).T
        values, vectors = np.linalg.eigh(products)
        values = np.maximum(values[::-1], 0.0)
        axes = ((every - middle).T @ vectors[:, ::-1][:, :count]).T
        lengths = np.linalg.norm(axes, axis=1, keepdims=True)
        axes = np.divide(axes, lengths, out=np.zeros_like(axes), where=lengths > 0)
        total = values.sum() or 1.0
        paths = {}
        for name, (steps, flat) in known.items():
            at = (flat - middle) @ axes.T
            rest = flat - middle - at @ axes
            paths[name] = steps, _columns(at, count), np.linalg.norm(rest, axis=1)
        return paths, values[:count] / total
    name, trace = next(iter(named.items()))
    if len(named) == 1 and "pca" in trace.names:
        at = _columns(np.asarray(trace["pca"], np.float64)[:, :2], 2)
        steps = np.asarray(trace.steps("pca"), np.float64)
        return {name: (steps, at, np.zeros(0))}, np.asarray(trace["pca explained"])[:2]
    lacking = next(name for name, points in found.items() if points is None)
    raise ValueError(
        f"the trace {lacking!r} has no weights. Record them with ol.record(optimizer, "
        "probes=[ol.probes.Snapshots(every=10)]), or one run with ol.probes.PCA(2)."
    )


def _columns(at: Floats, count: int) -> Floats:
    return np.pad(at, ((0, 0), (0, count - at.shape[1])))
