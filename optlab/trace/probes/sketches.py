"""Probes that make a path of a few coordinates of all weights: random projections, PCA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optlab.trace.probes.base import (
    Arrays,
    Probe,
    Run,
    Step,
    checked_count,
    chosen_names,
    documented,
)


class _OfWeights(Probe):
    """A probe of all chosen weights as one vector."""

    needs_update = False
    fits_plans = True

    def __init__(self, parameters: Sequence[str] | str | None, schedule: dict[str, Any]) -> None:
        super().__init__(**schedule)
        self.parameters = parameters
        self._names: list[str] = []

    def start(self, run: Run) -> None:
        """Look up the parameters."""
        self._names = chosen_names(self.parameters, run, type(self).__name__)


@documented
class Projection(_OfWeights):
    r"""Random projections of the weights: k numbers that keep distances (Johnson-Lindenstrauss).

    "projection" is :math:`R w / \sqrt{k}`, with the entries of R drawn from the standard
    normal distribution by `seed` alone: distances between points of the path are kept up to a
    relative error of about :math:`\sqrt{2/k}`, and two runs of one network can be compared. R is
    kept in float32: k numbers for each weight.

    Parameters
    ----------
    k : int
        The number of coordinates.
    seed : int
        The seed of the directions.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter(ol.ones([1000]), name="w")
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> with ol.record(optimizer, probes=[ol.probes.Projection(k=8)]) as trace:
    ...     for _ in range(3):
    ...         optimizer.clear_grad()
    ...         (w * w).sum().backward()
    ...         optimizer.step()
    >>> trace["projection"].shape
    (3, 8)
    """

    shown = ("k", "seed", "parameters")

    def __init__(
        self,
        k: int = 2,
        seed: int = 0,
        parameters: Sequence[str] | str | None = None,
        **schedule: Any,
    ) -> None:
        super().__init__(parameters, schedule)
        self.k, self.seed = checked_count("k", k), checked_count("seed", seed, 0)
        self._directions: list[np.ndarray] = []

    def start(self, run: Run) -> None:
        """Draw the directions."""
        super().start(run)
        generator = np.random.Generator(np.random.Philox(self.seed))
        current = run.parameters
        self._directions = [
            generator.standard_normal((self.k, current[name].size), dtype=np.float32)
            for name in self._names
        ]

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Return the coordinates."""
        found = np.zeros(self.k)
        now = step.parameters
        for directions, name in zip(self._directions, self._names, strict=True):
            found += directions @ np.asarray(now[name], np.float32).ravel()
        return {"projection": found / np.sqrt(self.k)}


@documented
class PCA(_OfWeights):
    r"""The path of the weights in the plane in which it spreads most, without storing the weights.

    The observed points :math:`w_t - w_0` are kept as their truncated singular value decomposition,
    brought up to date by each block of new points (Brand 2002): `rank` numbers for each weight and
    for each observed step. "pca" has the first k principal coordinates of all observed points, with
    the mean subtracted; "pca explained" the share of the variance along each, of that which the
    decomposition has kept. Where the path has no more than `rank` dimensions, they are those of the
    full matrix of points. "pca directions" and "pca mean" have the principal directions and the
    mean point, each parameter after the other, "pca sizes" the number of elements of each:
    `optlab.lab.landscape` takes such a trace as a run.

    Parameters
    ----------
    k : int
        The number of coordinates.
    rank : int, optional
        How many directions are kept; k + 8 by default.

    References
    ----------
    Matthew Brand, Incremental singular value decomposition of uncertain data with missing values,
    2002.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter(ol.ones([100]), name="w")
    >>> optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    >>> with ol.record(optimizer, probes=[ol.probes.PCA(k=2)]) as trace:
    ...     for _ in range(4):
    ...         optimizer.clear_grad()
    ...         (w * w).sum().backward()
    ...         optimizer.step()
    >>> trace["pca"].shape, trace["pca explained"].round(6)
    ((4, 2), array([1., 0.]))
    """

    shown = ("k", "rank", "parameters")
    resumes = False

    #: New points that wait for the next update of the decomposition.
    BLOCK = 4

    def __init__(
        self,
        k: int = 2,
        rank: int | None = None,
        parameters: Sequence[str] | str | None = None,
        **schedule: Any,
    ) -> None:
        super().__init__(parameters, schedule)
        self.k = checked_count("k", k)
        self.rank = self.k + 8 if rank is None else checked_count("rank", rank, self.k)
        self._start: Arrays = {}
        self._basis = np.zeros((0, 0))
        self._coordinates = np.zeros((0, 0))
        self._waiting: list[np.ndarray] = []

    def start(self, run: Run) -> None:
        """Begin an empty decomposition."""
        super().start(run)
        current = run.parameters
        self._start = {name: current[name].copy() for name in self._names}
        size = sum(start.size for start in self._start.values())
        self._basis, self._coordinates = np.zeros((0, size)), np.zeros((0, 0))
        self._waiting = []

    def observe(self, step: Step) -> Mapping[str, Any]:
        """Take in a point; the coordinates are a result, as later points turn the plane."""
        now = step.parameters
        moved = [
            np.subtract(now[name], start, dtype=np.float64).ravel()
            for name, start in self._start.items()
        ]
        self._waiting.append(np.concatenate(moved))
        if len(self._waiting) >= self.BLOCK:
            self._update()
        return {}

    def _update(self) -> None:
        """Bring the decomposition up to date with the waiting points."""
        if not self._waiting:
            return
        new, self._waiting = np.stack(self._waiting), []
        inside = new @ self._basis.T
        rest = new - inside @ self._basis
        again = rest @ self._basis.T  # once more: what rounding has left
        inside, rest = inside + again, rest - again @ self._basis
        q, r = np.linalg.qr(rest.T)
        old, more = self._coordinates.shape, r.shape[0]
        rows = np.zeros((old[0] + len(new), old[1] + more))
        rows[: old[0], : old[1]] = self._coordinates
        rows[old[0] :, : old[1]] = inside
        rows[old[0] :, old[1] :] = r.T
        basis = np.concatenate([self._basis, q.T])
        _, turn = _right_vectors(rows)
        turn = turn[: self.rank]
        self._basis, self._coordinates = turn @ basis, rows @ turn.T

    def result(self) -> Mapping[str, np.ndarray]:
        """Return the principal coordinates of all points so far, with directions and mean."""
        self._update()
        points = self._coordinates
        mean = np.concatenate([np.ravel(x) for x in self._start.values()] or [np.zeros(0)])
        mean = mean.astype(np.float64)
        sizes_of_parameters = np.array([x.size for x in self._start.values()], np.int64)
        if not len(points):
            return {
                "pca": np.zeros((0, self.k)), "pca explained": np.full(self.k, np.nan),
                "pca directions": np.zeros((self.k, len(mean))), "pca mean": mean,
                "pca sizes": sizes_of_parameters,
            }  # fmt: skip
        middle = points.mean(axis=0)
        centered = points - middle
        sizes, axes = _right_vectors(centered)
        # The sign of an axis is free: its largest entry among the points is positive.
        found = centered @ axes[: self.k].T
        signs = np.sign(found[np.argmax(np.abs(found), axis=0), np.arange(found.shape[1])])
        signs = np.where(signs == 0, 1.0, signs)
        found = found * signs
        directions = (signs[:, None] * axes[: self.k]) @ self._basis
        pad = max(0, self.k - found.shape[1])
        total = float(np.sum(sizes**2))
        share = sizes[: self.k] ** 2 / total if total else np.zeros(len(sizes[: self.k]))
        return {
            "pca": np.pad(found, ((0, 0), (0, pad))),
            "pca explained": np.pad(share, (0, max(0, self.k - len(share)))),
            "pca directions": np.pad(directions, ((0, pad), (0, 0))),
            "pca mean": mean + middle @ self._basis,
            "pca sizes": sizes_of_parameters,
        }


def _right_vectors(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return singular values and right singular vectors; NaN of a run that has diverged."""
    if np.isfinite(rows).all():
        _, sizes, vectors = np.linalg.svd(rows, full_matrices=False)
        return sizes, vectors
    count = min(rows.shape)  # some releases of LAPACK raise here
    return np.full(count, np.nan), np.full((count, rows.shape[1]), np.nan)
