"""Directions in the space of weights: random ones scaled by filters, and principal ones of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optlab.backend.random import Key
from optlab.lab.landscapes.weights import Weights, inner
from optlab.nn import Layer

#: Layers whose weight does not hold a filter a column, or (of more than two dimensions) a first
#: index: the axes that a filter spans are all but this one.
_FILTER_AXES = {"Embedding": 0, "Conv1DTranspose": 1, "Conv2DTranspose": 1, "Conv3DTranspose": 1}

NORMALIZATIONS = ("filter", "layer", None)


def filter_axis(layer: Layer | None, name: str, shape: tuple[int, ...]) -> int:
    """Return the axis of a weight that counts its filters.

    A filter is what computes one output: a column of a Linear weight [in, out], a first index of a
    convolution [out, in, ...] or of a recurrent weight [out, in], a second one of a transposed
    convolution [in, out, ...], a row of an embedding.

    Parameters
    ----------
    layer : Layer or None
        The layer that owns the parameter.
    name : str
        Of the parameter.
    shape : tuple of int
    """
    for kind in type(layer).__mro__:
        if kind.__name__ in _FILTER_AXES:
            return _FILTER_AXES[kind.__name__]
    recurrent = name.rpartition(".")[2].startswith(("weight_ih", "weight_hh"))
    return 1 if len(shape) == 2 and not recurrent else 0


def random_direction(
    model: Layer, weights: Weights, normalise: str | None, seed: int, number: int
) -> Weights:
    r"""Return a random direction, scaled to the weights.

    .. math:: d_{i,j} \leftarrow \frac{d_{i,j}}{\lVert d_{i,j} \rVert} \lVert \theta_{i,j} \rVert

    for the filter j of the layer i with "filter"; for the whole weight of a layer with "layer"; not
    at all with None. Parameters of one dimension (biases, scales of a normalization) get zeros.

    Parameters
    ----------
    model : Layer
    weights : dict of str to array
        Of the model, by name.
    normalise : {"filter", "layer", None}
    seed, number : int
        Which random direction.

    References
    ----------
    Li, Xu, Taylor, Studer and Goldstein, Visualizing the loss landscape of neural nets, 2018,
    section 4.
    """
    owners = {id(p): layer for layer in model.sublayers(include_self=True)
              for p in layer.parameters(include_sublayers=False)}  # fmt: skip
    parameters = dict(model.named_parameters())
    found: Weights = {}
    for name, w in weights.items():
        if w.ndim < 2:
            found[name] = np.zeros(w.shape)
            continue
        draw = Key(seed).fold("landscape", number, name).generator().standard_normal(w.shape)
        if normalise is not None:
            axes: tuple[int, ...] = tuple(range(w.ndim))
            if normalise == "filter":
                kept = filter_axis(owners.get(id(parameters[name])), name, w.shape)
                axes = tuple(axis for axis in axes if axis != kept)
            draw *= _norm(w, axes) / _norm(draw, axes)
        found[name] = draw
    return found


def _norm(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return Euclidean norms over some axes, which stay with the length 1."""
    return np.sqrt(np.sum(np.square(x, dtype=np.float64), axis=axes, keepdims=True))


def principal_directions(
    points: Sequence[Weights], origin: Weights, count: int = 2
) -> tuple[tuple[Weights, ...], np.ndarray]:
    """Return the principal directions of points, and the share of the variance along each.

    The points are centered by their mean, as in any principal component analysis. Only the matrix
    of their inner products is made, of one row and column a point.

    Parameters
    ----------
    points : sequence of dict of str to array
    origin : dict of str to array
        Subtracted first, for exactness.
    count : int

    Returns
    -------
    tuple of dict, and array of shape (count,)
        Orthonormal directions; the entry of largest magnitude of each is positive. Where the points
        span fewer dimensions, the others are orthogonal to them, and their share is 0.

    Raises
    ------
    ValueError
        If there are fewer than two different points.
    """
    n = len(points)
    products = np.zeros((n, n))
    if n < 2:
        raise ValueError(
            'plane="pca" needs a run that moves: at least two different recorded sets of weights; '
            f"got {n}."
        )
    for name, start in origin.items():
        products += _rows(points, name, start) @ _rows(points, name, start).T
    sizes, vectors = np.linalg.eigh(products)
    sizes, vectors = np.maximum(sizes[::-1], 0.0), vectors[:, ::-1]
    total = float(sizes.sum())
    if n < 2 or total == 0:
        raise ValueError(
            'plane="pca" needs a run that moves: at least two different recorded sets of weights; '
            f"got {n}, {'all the same' if n > 1 else 'from which no direction follows'}."
        )
    shares = np.zeros(count)
    shares[: min(count, n)] = sizes[:count] / total
    directions: list[Weights] = []
    for k in range(count):
        if k < n and sizes[k] > 1e-14 * sizes[0]:
            direction = {
                name: np.tensordot(vectors[:, k], _rows(points, name, start), 1).reshape(
                    start.shape
                )
                for name, start in origin.items()
            }
        else:
            shares[k] = 0.0
            direction = _some_direction(origin, k)
        directions.append(_orthonormal(direction, directions))
    return tuple(directions), shares


def _rows(points: Sequence[Weights], name: str, start: np.ndarray) -> np.ndarray:
    """Return one parameter of all points, a row each, less the mean."""
    rows = np.stack([np.subtract(point[name], start, dtype=np.float64).ravel() for point in points])
    rows -= rows.mean(axis=0)
    return rows


def _some_direction(origin: Weights, k: int) -> Weights:
    """Return a fixed direction, for points that lie on a line."""
    return {
        name: Key(0).fold("any direction", k, name).generator().standard_normal(w.shape)
        for name, w in origin.items()
    }


def _orthonormal(direction: Weights, others: Sequence[Weights]) -> Weights:
    """Return a direction of length 1, orthogonal to others; its largest entry is positive."""
    for _ in range(2):  # once more: what rounding has left
        for other in others:
            along = inner(direction, other)
            direction = {name: d - along * other[name] for name, d in direction.items()}
        length = math.sqrt(inner(direction, direction))
        direction = {name: d / length for name, d in direction.items()}
    ends = [float(d.flat[np.argmax(np.abs(d))]) for d in direction.values() if d.size]
    sign = math.copysign(1.0, max(ends, key=abs))
    return {name: sign * d for name, d in direction.items()}


def coordinates(moved: Weights, directions: Sequence[Weights]) -> tuple[np.ndarray, float]:
    """Return the coordinates of the nearest point of a plane, and the distance from it.

    Parameters
    ----------
    moved : dict of str to array
        A point less the origin of the plane.
    directions : sequence of dict
        They need not be orthogonal.
    """
    gram = np.array([[inner(a, b) for b in directions] for a in directions])
    right = np.array([inner(d, moved) for d in directions])
    at = np.linalg.lstsq(gram, right, rcond=None)[0]
    rest = {
        name: x - sum(c * d[name] for c, d in zip(at, directions, strict=True) if name in d)
        for name, x in moved.items()
    }
    return at, math.sqrt(inner(rest, rest))
