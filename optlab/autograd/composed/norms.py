"""Norms and condition numbers, composed of other functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.rules.linalg.norms import NORM, NUCLEAR_NORM, NUMBER_OF_NONZEROS, POWER_NORM
from optlab.autograd.rules.reductions.folding import reduced_size
from optlab.autograd.tensor.tensor import apply
from optlab.backend.dtypes import is_floating

Axes = tuple[int, ...]


@composed(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x, ndim = _as_floating(x), np.ndim(x)
    if ord is None and axis is None:
        return apply(NORM, (x,), {"axis": None, "keepdims": keepdims})
    axes = _axis_tuple(range(ndim) if axis is None else axis, ndim)
    if len(axes) == 1:
        return _vector_norms(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norms(x, ord, axes, keepdims)
    raise ValueError(
        f"a norm is taken over one axis (of vectors) or two (of matrices), not over {len(axes)}: "
        f"np.linalg.norm of shape {np.shape(x)} with axis={axis!r}, ord={ord!r}."
    )


@composed(np.linalg.vector_norm)
def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    x, ndim = _as_floating(x), np.ndim(x)
    return _vector_norms(x, ord, _axis_tuple(range(ndim) if axis is None else axis, ndim), keepdims)


@composed(np.linalg.matrix_norm)
def _matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    return _matrix_norms(_as_floating(x), ord, _axis_tuple((-2, -1), np.ndim(x)), keepdims)


def _as_floating(x: Any) -> Any:
    """Convert integers to floating point."""
    return x if is_floating(x.dtype) else x.astype(float)


def _axis_tuple(axis: Any, ndim: int) -> Axes:
    """Return axes as a tuple of nonnegative numbers; raise if one is repeated."""
    axes = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    for a in axes:
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(a, ndim)
    axes = tuple(int(a) % ndim for a in axes)
    if len(set(axes)) < len(axes):
        raise ValueError(f"the axes of a norm must differ; axis={axis!r} names one twice.")
    return axes


def _vector_norms(x: Any, ord: Any, axes: Axes, keepdims: bool) -> Any:
    """Return the norms of the vectors along `axes`; several axes are flattened to one vector."""
    if isinstance(ord, str):
        raise ValueError(f"ord={ord!r} is a norm of matrices, not of vectors.")
    if getattr(ord, "requires_grad", False):
        raise not_covered("linalg.norm with ord= given as a Tensor that needs a gradient")
    options: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if ord is None or ord == 2:
        return apply(NORM, (x,), options)
    if ord == 0:
        return apply(NUMBER_OF_NONZEROS, (x,), options)
    if ord == 1 or (ord == math.inf and not reduced_size(np.shape(x), axes)):
        return np.sum(np.abs(x), **options)
    if ord == math.inf:
        return np.max(np.abs(x), **options)
    if ord == -math.inf:
        return np.min(np.abs(x), **options)
    return apply(POWER_NORM, (x,), {"power": ord, **options})


def _matrix_norms(x: Any, ord: Any, axes: Axes, keepdims: bool) -> Any:
    """Return the norms of the matrices whose rows and columns are indexed by `axes`."""
    if ord in (1, 2, math.inf) and not reduced_size(np.shape(x), axes):
        ord = None  # the norm of an empty matrix is 0
    if ord is None or ord in ("fro", "f"):
        return apply(NORM, (x,), {"axis": axes, "keepdims": keepdims})
    if ord == "nuc":
        y: Any = apply(NUCLEAR_NORM, (np.moveaxis(x, axes, (-2, -1)),))
    elif ord in (2, -2):
        values = np.linalg.svdvals(np.moveaxis(x, axes, (-2, -1)))
        y = np.max(values, -1) if ord == 2 else np.min(values, -1)
        y = np.where(y == 0, 0.0, y)  # subgradient 0 at 0, as for abs
    elif ord in (1, -1, math.inf, -math.inf):
        rows, columns = axes if abs(ord) == 1 else axes[::-1]
        sums = np.sum(np.abs(x), axis=rows, keepdims=True)
        y = np.max(sums, axis=columns) if ord > 0 else np.min(sums, axis=columns)
        y = np.squeeze(y, rows - (columns < rows))
    else:
        raise ValueError(
            f"ord={ord!r} is no norm of matrices; they are None, 'fro', 'nuc', 1, -1, 2, -2, "
            "np.inf and -np.inf. For vectors give one axis, or use np.linalg.vector_norm."
        )
    return np.expand_dims(y, axes) if keepdims else y


@composed(np.linalg.cond)
def _cond(x: Any, p: Any = None) -> Any:
    if p is None or p in (2, -2):
        values = np.linalg.svdvals(x)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    inverse = np.linalg.inv(x)
    return np.linalg.norm(x, p, (-2, -1)) * np.linalg.norm(inverse, p, (-2, -1))
