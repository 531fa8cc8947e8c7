"""The loss of a model over a plane through its space of weights."""

from __future__ import annotations

import hashlib
import json
import operator
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from optlab.backend.display import Rendered
from optlab.backend.extras import needed_for
from optlab.io.atomic import replacing
from optlab.lab.landscapes.directions import (
    NORMALIZATIONS,
    coordinates,
    principal_directions,
    random_direction,
)
from optlab.lab.landscapes.evaluation import Evaluator, Plane
from optlab.lab.landscapes.grid import bilinear, box, every, strides
from optlab.lab.landscapes.runs import RecordedRun, RunPath, project, read_runs
from optlab.lab.landscapes.weights import (
    Weights,
    check_model,
    checked_weights,
    difference,
    inner,
    weights_of,
)
from optlab.lab.progress import ProgressBar
from optlab.nn import Layer


class Landscape(Rendered):
    """The loss over a grid on a plane through the weights of a model.

    Attributes
    ----------
    loss : array, shape (rows, columns)
        Row i belongs to ``b[i]``, column j to ``a[j]``. NaN where a cancelled run has not come to.
    a, b : array
        The coordinates along the two directions.
    directions : tuple of dict of str to array
        By parameter name: the point (a, b) is ``origin + a * directions[0] + b * directions[1]``.
    origin : dict of str to array
        The weights at a = b = 0.
    plane : str
        "random", "pca", "directions" or "weights".
    model_name : str
        The class of the model.
    points : array, shape (sets, 2)
        Of three sets of weights: their coordinates.
    explained : array, shape (2,) or None
        Of "pca": the share of the variance of the runs' points along each direction.
    paths : dict of str to RunPath
        Of the runs that were given.
    evaluated : array of bool, shape (rows, columns)
        Where the model was evaluated; with ``refine=``, the loss elsewhere is interpolated.
    evaluations : int
        How often the model was evaluated, for the grid and for the paths.
    execution : str
        How, and why.
    interrupted : bool
        Whether Ctrl-C ended it early; :meth:`resume` goes on.

    See Also
    --------
    landscape : makes one.
    """

    drawn_as = "landscape"

    def __init__(
        self, model: Layer, loss: Callable[[], Any], plane: Plane, kind: str,
        a: np.ndarray, b: np.ndarray, seed: int, refine: float | None, to: Path | None,
    ) -> None:  # fmt: skip
        self._model, self._function, self._on = model, loss, plane
        self._refine, self._to, self._seed = refine, to, seed
        self._runs: dict[str, RecordedRun] = {}
        self.plane = kind
        self.model_name = type(model).__name__
        self.a, self.b = a, b
        self.loss = np.full((len(b), len(a)), np.nan)
        self.evaluated = np.zeros(self.loss.shape, bool)
        self.points = np.zeros((0, 2))
        self.explained: np.ndarray | None = None
        self.paths: dict[str, RunPath] = {}
        self.evaluations = 0
        self.execution = ""
        self.interrupted = False

    @property
    def directions(self) -> tuple[Weights, ...]:
        """The two directions, dicts of arrays by parameter name."""
        return tuple(self._on.directions)

    @property
    def origin(self) -> Weights:
        """The weights at a = b = 0."""
        return self._on.origin

    def weights(self, a: float, b: float) -> Weights:
        """Return the weights of a point of the plane, by parameter name."""
        return self._on.point((a, b))

    def project(self, weights: Any) -> tuple[float, float, float]:
        """Return the coordinates of the nearest point of the plane, and the distance from it.

        Parameters
        ----------
        weights : dict of str to array, or Layer
        """
        if isinstance(weights, Layer):
            weights = weights_of(weights)
        given = checked_weights(weights, self._model, "the set of weights")
        whole = {name: given.get(name, start) for name, start in self.origin.items()}
        at, away = coordinates(difference(whole, self.origin), self.directions)
        return float(at[0]), float(at[1]), away

    def resume(self, progress: bool | None = None, executor: Executor | None = None) -> Landscape:
        """Evaluate what is missing, after Ctrl-C; return this landscape."""
        self._evaluate(executor, progress)
        return self

    def table(self) -> Any:
        """Return the grid as a pandas DataFrame, a row a point: a, b, loss, evaluated."""
        with needed_for("Landscape.table()"):
            import pandas as pd

        a, b = np.meshgrid(self.a, self.b)
        columns = {"a": a, "b": b, "loss": self.loss, "evaluated": self.evaluated}
        return pd.DataFrame({name: x.ravel() for name, x in columns.items()})

    def to_xarray(self) -> Any:
        """Return the losses as an xarray DataArray with the coordinates b and a."""
        with needed_for("Landscape.to_xarray()"):
            import xarray as xr

        return xr.DataArray(self.loss, {"b": self.b, "a": self.a}, ("b", "a"), "loss")

    def __repr__(self) -> str:
        known = self.loss[np.isfinite(self.loss)]
        low, high = (f"{f(known):.4g}" if known.size else "?" for f in (np.min, np.max))
        more = ", interrupted: .resume() goes on" if self.interrupted else ""
        rows, columns = self.loss.shape
        return (
            f"<Landscape {rows} x {columns}, plane {self.plane!r}, loss {low} to {high}, "
            f"{self.evaluations} evaluations{more}>"
        )

    # Evaluation ---------------------------------------------------------------------------------

    def _evaluate(self, executor: Executor | None, progress: bool | None) -> None:
        evaluator = Evaluator(self._model, self._function, self._on, self._seed, executor)
        self._load()
        waiting = sum(len(run.points) for run in self._runs.values())
        bar = ProgressBar(self.loss.size + 2 * waiting, "Landscape", progress)
        self.interrupted = False
        try:
            for stride in strides(self.loss.shape):
                self._level(evaluator, stride, bar)
            for name, run in self._runs.items():
                if name not in self.paths:
                    self.paths[name] = self._path(evaluator, run)
                    bar.update(self.loss.size + 2 * waiting)
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            bar.close()
            self._save()
        self.execution = evaluator.execution or self.execution

    def _level(self, evaluator: Evaluator, stride: int, bar: ProgressBar) -> None:
        """Evaluate the points of a grid of this stride, or where it bends those alone."""
        rows, columns = (every(n, stride) for n in self.loss.shape)
        wanted = np.zeros(self.loss.shape, bool)
        wanted[np.ix_(rows, columns)] = True
        wanted &= ~np.isfinite(self.loss) & ~self.evaluated
        if self._refine is not None and stride < strides(self.loss.shape)[0]:
            guess = self._interpolated(2 * stride)
            flat = wanted & ~self._bends(2 * stride)
            self.loss[flat] = guess[flat]
            wanted &= ~flat
        places = np.argwhere(wanted)
        points = np.stack([self.a[places[:, 1]], self.b[places[:, 0]]], axis=1)
        if not len(points):
            return
        for some, values in evaluator.values(points):
            at = tuple(places[some].T)
            self.loss[at] = values
            self.evaluated[at] = True
            self.evaluations += len(some)
            bar.update(int(np.sum(np.isfinite(self.loss) | self.evaluated)))
        self._save()

    def _interpolated(self, stride: int) -> np.ndarray:
        """Return the whole grid, interpolated from the points of a grid of this stride."""
        rows, columns = (every(n, stride) for n in self.loss.shape)
        return bilinear(self.loss, rows, columns)

    def _bends(self, stride: int) -> np.ndarray:
        """Return where a grid of this stride is not told by one of twice the stride.

        A point is, if it or a neighbor on the grid differs from what its own neighbors foretell by
        more than `refine` times the spread of the losses.
        """
        assert self._refine is not None
        rows, columns = (every(n, stride) for n in self.loss.shape)
        known = self.loss[np.ix_(rows, columns)]
        if stride >= strides(self.loss.shape)[0]:
            return np.ones(self.loss.shape, bool)
        foretold = self._interpolated(2 * stride)[np.ix_(rows, columns)]
        finite = known[np.isfinite(known)]
        spread = float(np.ptp(finite)) if finite.size else 0.0
        with np.errstate(invalid="ignore"):
            far = ~(np.abs(known - foretold) <= self._refine * spread)
        found = np.zeros(self.loss.shape, bool)
        for i, j in np.argwhere(far):
            near = (slice(max(0, at - stride), at + stride + 1) for at in (rows[i], columns[j]))
            found[tuple(near)] = True
        return found

    def _path(self, evaluator: Evaluator, run: RecordedRun) -> RunPath:
        """Return the path of a run, with the losses at its own weights and on the plane."""
        at, away, share = project(run, self._on)
        on_plane = np.full(len(at), np.nan)
        for some, values in evaluator.values(at):
            on_plane[some] = values
        true = np.full(len(at), np.nan)
        for i, point in enumerate(run.points):
            single = Evaluator(self._model, self._function, Plane(point, ()), self._seed)
            for _, values in single.values(np.zeros((1, 0))):
                true[i] = values[0]
        self.evaluations += 2 * len(at)
        return RunPath(run.steps, at[:, 0], at[:, 1], away, share, true, on_plane)

    def _warn_if_flat(self) -> None:
        known = self.loss[np.isfinite(self.loss)]
        if not self.interrupted and known.size > 1 and np.ptp(known) == 0:
            warnings.warn(
                f"the loss is {known[0]:.4g} at all points of the plane: does loss() evaluate this "
                "model, and not a copy of it or a number computed before?",
                stacklevel=3,
            )

    # The file of a landscape that goes on later ---------------------------------------------------

    def _key(self) -> str:
        """Return a digest of all that fixes the losses but the data behind the loss."""
        digest = hashlib.sha256()
        for part in (self.origin, *self.directions):
            for name, x in part.items():
                digest.update(f"{name} {x.shape} {x.dtype}".encode())
                digest.update(np.ascontiguousarray(x).tobytes())
        digest.update(json.dumps([self._seed, self._refine]).encode())
        digest.update(self.a.tobytes() + self.b.tobytes())
        return digest.hexdigest()

    def _load(self) -> None:
        if self._to is None or not self._to.exists():
            return
        with np.load(self._to, allow_pickle=False) as file:
            if "key" not in file or str(file["key"]) != self._key():
                raise ValueError(
                    f"to={str(self._to)!r} holds another landscape (other weights, directions or "
                    "grid). Give another file, or remove it."
                )
            self.loss[...], self.evaluated[...] = file["loss"], file["evaluated"]

    def _save(self) -> None:
        if self._to is None:
            return
        with replacing(self._to) as file:
            np.savez_compressed(
                file, key=np.array(self._key()), a=self.a, b=self.b,
                loss=self.loss, evaluated=self.evaluated,
            )  # fmt: skip


def landscape(
    model: Layer,
    loss: Callable[[], Any],
    plane: Any = "random",
    size: int | tuple[int, int] = 21,
    extent: float | tuple[float, float] = 1.0,
    normalise: str | None = "filter",
    seed: int = 0,
    *,
    runs: Any = None,
    refine: float | None = None,
    executor: Executor | None = None,
    progress: bool | None = None,
    to: str | Path | None = None,
) -> Landscape:
    r"""Evaluate the loss of a model over a plane through its space of weights.

    .. math:: f(a, b) = L(\theta + a \delta + b \eta)

    Parameters
    ----------
    model : Layer
        Its weights are :math:`\theta`. They are afterwards what they were, whatever happens.
    loss : callable
        Without arguments; evaluates the model on fixed data and returns one number.
    plane : str, pair of directions, or three sets of weights
        "random": two random directions. "pca": the two principal directions of the points of
        `runs`, through the weights of the model. A pair of dicts by parameter name: these
        directions; names that are missing do not move. Three dicts by parameter name: the plane
        through three sets of weights: the first is the origin, the first direction leads to the
        second, the other one is orthogonal to it and of the same length.
    size : int or (int, int)
        The number of points along each direction, or of rows (along b) and of columns (along a).
    extent : float or (float, float)
        a and b run from -extent to extent; a pair is that of a and that of b. With "pca" and three
        sets of weights it is in units of what fits: 1 shows all points with a margin of a quarter
        of their spread.
    normalise : {"filter", "layer", None}
        How random directions are scaled to the weights: each filter to the norm of that filter,
        each weight as a whole, not at all. Parameters of one dimension stay where they are.
    seed : int
        Of the random directions, and of random numbers that the loss draws: the same ones at every
        point.
    runs : Trace, list of sets of weights, or a dict or comparison of them, optional
        Runs whose paths are projected: traces of `ol.record` with the probe `Snapshots`, or with
        `PCA`, which keeps the path in its principal directions alone.
    refine : float, optional
        Evaluate a coarse grid first, and halve it only where its points differ from what their
        neighbors foretell by more than this share of the spread of the losses; the others are
        interpolated. By default all points are evaluated, the coarse ones first.
    executor : concurrent.futures.Executor, optional
        Evaluates parts of the grid on copies of the model.
    progress : bool, optional
        Whether to show a progress bar. By default in notebooks, if it takes long.
    to : path, optional
        A file (.npz) that is kept up to date; a later call with the same weights and grid goes on
        from it.

    Returns
    -------
    Landscape

    Raises
    ------
    TypeError
        If the model is no Layer, or the loss is not one number.
    ValueError
        If the plane, the size or another option is none of these, or a direction is zero.

    Warns
    -----
    UserWarning
        If the loss is the same at all points: it does not evaluate this model.

    Notes
    -----
    Points are evaluated together, as an ensemble, where one evaluation is small; large ones one by
    one. Layers whose random numbers or statistics depend on the mode (dropout, batch
    normalization) run in the mode that the model has; call ``model.eval()`` first, as for any
    evaluation.

    References
    ----------
    Li, Xu, Taylor, Studer and Goldstein, Visualizing the loss landscape of neural nets, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> model = ol.nn.Sequential(ol.nn.Linear(2, 8), ol.nn.Tanh(), ol.nn.Linear(8, 1))
    >>> x, y = ol.randn([32, 2]), ol.randn([32, 1])
    >>> around = ol.lab.landscape(model, lambda: np.mean((model(x) - y) ** 2), size=5)
    >>> around.loss.shape, around.a.tolist()
    ((5, 5), [-1.0, -0.5, 0.0, 0.5, 1.0])
    """
    check_model(model, "landscape")
    if not callable(loss):
        raise TypeError(
            "landscape takes the loss as a function without arguments: "
            f"lambda: cross_entropy(model(x), y); got {type(loss).__name__}."
        )
    rows, columns = _checked_size(size)
    reach = tuple(extent) if isinstance(extent, (tuple, list)) else (extent, extent)
    if len(reach) != 2 or not all(
        isinstance(one, (int, float, np.floating)) and 0 < one < np.inf for one in reach
    ):
        raise ValueError(
            f"extent is how far the plane reaches, above 0, or a pair of these; got {extent!r}."
        )
    if normalise not in NORMALIZATIONS:
        raise ValueError(f'normalise is "filter", "layer" or None; got {normalise!r}.')
    if refine is not None and not refine > 0:
        raise ValueError(f"refine is a share of the spread of the losses, above 0; got {refine!r}.")
    seed = operator.index(seed)
    weights = weights_of(model)
    recorded = read_runs(runs, model)
    points = np.zeros((0, 2))
    explained = None
    if isinstance(plane, str):
        kind = plane
        if plane == "random":
            found = tuple(random_direction(model, weights, normalise, seed, k) for k in range(2))
        elif plane == "pca":
            if not recorded:
                raise ValueError(
                    'plane="pca" needs the points of a run: give runs=trace, recorded by '
                    "ol.record(optimizer, probes=[ol.probes.Snapshots(every=10)], model=model) or "
                    "with [ol.probes.PCA()]."
                )
            visited = [point for run in recorded.values() for point in run.points]
            found, explained = principal_directions(visited, weights)
            points = np.concatenate(
                [project(run, Plane(weights, found))[0] for run in recorded.values()]
            )
        else:
            raise ValueError(
                'plane is "random", "pca", a pair of directions or three sets of weights; got '
                f"{plane!r}."
            )
    else:
        kind, weights, found, points = _given_plane(plane, model, weights)
    for k, direction in enumerate(found):
        if not inner(direction, direction) > 0:
            raise ValueError(
                f"direction {k} of the plane is zero: nothing moves along it. "
                + ("All parameters have one dimension, and stay." if kind == "random" else "")
            )
    if len(points):
        a, b = box(points, (rows, columns), reach)
    else:
        a = np.linspace(-reach[0], reach[0], columns)
        b = np.linspace(-reach[1], reach[1], rows)
    on = Plane(weights, found)
    made = Landscape(model, loss, on, kind, a, b, seed, refine, None if to is None else Path(to))
    made._runs = recorded
    made.explained = explained
    if kind == "weights":
        made.points = points
    made._evaluate(executor, progress)
    made._warn_if_flat()
    return made


def _checked_size(size: Any) -> tuple[int, int]:
    """Return the numbers of rows and of columns."""
    pair = size if isinstance(size, Sequence) else (size, size)
    try:
        rows, columns = (operator.index(n) for n in pair)
    except (TypeError, ValueError):
        rows = columns = 0
    if min(rows, columns) < 2:
        raise ValueError(
            "size is the number of points along each direction, at least 2, or a pair of them "
            f"(rows, columns); got {size!r}."
        )
    return rows, columns


def _given_plane(
    plane: Any, model: Layer, weights: Weights
) -> tuple[str, Weights, tuple[Weights, ...], np.ndarray]:
    """Return kind, origin, directions and points of a plane of given directions or weights."""
    given = list(plane) if isinstance(plane, Sequence) else []
    if len(given) == 2:
        directions = tuple(
            checked_weights(one, model, f"direction {k}") for k, one in enumerate(given)
        )
        return "directions", weights, directions, np.zeros((0, 2))
    if len(given) != 3:
        raise ValueError(
            'plane is "random", "pca", a pair of directions or three sets of weights, as dicts by '
            f"parameter name; got {type(plane).__name__}" + (f" of {len(given)}." if given else ".")
        )
    sets: list[Weights] = []
    for k, one in enumerate(given):
        known = checked_weights(one, model, f"set of weights {k}")
        sets.append({name: np.asarray(known.get(name, w)) for name, w in weights.items()})
    origin = sets[0]
    first, second = (difference(one, origin) for one in sets[1:])
    length = inner(first, first)
    if length == 0:
        raise ValueError("the first two of three sets of weights are the same: no plane follows.")
    along = inner(second, first) / length
    second = {name: x - along * first[name] for name, x in second.items()}
    height = inner(second, second)
    if height <= 1e-20 * length:
        raise ValueError("the three sets of weights lie on a line: no plane follows.")
    scale = (length / height) ** 0.5
    second = {name: scale * x for name, x in second.items()}
    points = np.array([[0.0, 0.0], [1.0, 0.0], [along, 1.0 / scale]])
    return "weights", origin, (first, second), points
