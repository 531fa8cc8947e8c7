"""Derivative rules of indexing (gather), and of its transpose: adding into zeros (scatter)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.backend import ensemble
from optlab.backend.arrays import Shape, array_module, zeros_beside

#: From this many elements on it pays to compute flat indices, at which NumPy adds much faster
#: (measured: 1,000,000 elements in rows of 100 take 3 ms instead of 10).
_FLAT_FROM = 2000

_array = np.ndarray


def has_unique_elements(index: Any) -> bool:
    """Return whether `index` selects no element twice: only integer arrays can."""
    if isinstance(index, (int, slice)):
        return True
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, (int, slice, np.integer, np.bool_))
        or (hasattr(part, "dtype") and part.dtype.kind == "b")
        for part in parts
    )


def getitem(x: Any, index: Any) -> Any:
    """Return ``x[index]``."""
    if x.__class__ is _array:
        try:
            return x[index]
        except ensemble.EnsembleError:  # a per-member index into an array shared by all members
            return ensemble.getitem(x, index)
    y = x[index]
    parts = index if isinstance(index, tuple) else (index,)
    whole = y.ndim or any(part is Ellipsis or part is None for part in parts)
    return y if whole else element_of(y)


def element_of(y: Any) -> Any:
    """Return one element as NumPy does, off the memory it was read from.

    On devices and in ensembles it is an array: ``y[0], y[1] = y[1], y[0]`` would write over it.
    """
    if isinstance(y, np.generic) or not hasattr(type(y), "copy"):  # a captured array
        return y
    return y.copy()


def scatter(x: Any, index: Any, shape: Shape) -> Any:
    """Add `x` into zeros of `shape` at `index`: the transpose of indexing.

    Examples
    --------
    >>> import numpy as np
    >>> scatter(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 0]), (3,))
    array([5., 0., 2.])
    """
    if has_unique_elements(index):
        out = zeros_beside(x, shape)
        out[index] = x
    elif type(x) is np.ndarray and x.size >= _FLAT_FROM:
        out = np.zeros(math.prod(shape), x.dtype)
        np.add.at(out, flat_indices(index, shape), np.ravel(x))
        out = out.reshape(shape)
    else:
        out = zeros_beside(x, shape)
        array_module(x).add.at(out, index, x)
    return out


def flat_indices(index: Any, shape: Shape) -> Any:
    """Return the position of each element of ``x[index]`` in ``np.ravel(x)``, as one vector.

    Examples
    --------
    >>> flat_indices((slice(None), [0, 2, 0]), (2, 3))
    array([0, 2, 0, 3, 5, 3])
    """
    parts = index if isinstance(index, tuple) else (index,)
    if parts[-1] is Ellipsis:
        parts = parts[:-1]
    # Only the indexed axes are numbered; the axes after them form one contiguous row.
    named = len(shape) if any(part is Ellipsis for part in parts) else sum(map(_axes_used, parts))
    row = math.prod(shape[named:])
    leading = np.arange(math.prod(shape[:named])).reshape(shape[:named])
    places = np.ravel(leading[parts])
    return places if row == 1 else np.ravel(places[:, None] * row + np.arange(row))


def _axes_used(part: Any) -> int:
    """Return the number of axes that one part of an index consumes."""
    if part is None:
        return 0
    if isinstance(part, (slice, int, np.integer)) and not isinstance(part, bool):
        return 1
    part = np.asarray(part)
    return part.ndim if part.dtype == bool else 1


GETITEM = rule(
    getitem,
    lambda g, x_shape, index: scatter_recorded(g, index, x_shape),
    static="index",
    view=True,
)
SCATTER = rule(scatter, lambda g, index: getitem(g, index), static="index shape")


def scatter_recorded(g: Any, index: Any, shape: Shape) -> Any:
    """Scatter an array, or a Tensor as one recorded operation."""
    if type(g) is np.ndarray:
        return scatter(g, index, shape)
    return as_single_operation(scatter, g, index, shape)


def diagonal_index(shape: Shape, offset: int) -> tuple[Any, Any]:
    """Return the row and column indices of a diagonal of a matrix of `shape`.

    Examples
    --------
    >>> diagonal_index((2, 3), 1)
    (array([0, 1]), array([1, 2]))
    """
    rows, columns = max(-offset, 0), max(offset, 0)
    steps = np.arange(max(min(shape[0] - rows, shape[1] - columns), 0))
    return rows + steps, columns + steps


def _onto_diagonal(g: Any, a_shape: Shape, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Scatter the last axis of `g` onto a diagonal of zeros."""
    first, second = axis1 % len(a_shape), axis2 % len(a_shape)
    rest = tuple(n for i, n in enumerate(a_shape) if i not in (first, second))
    matrix = (a_shape[first], a_shape[second])
    rows, columns = diagonal_index(matrix, offset)
    index = (*(slice(None) for _ in rest), rows, columns)
    return np.moveaxis(scatter_recorded(g, index, (*rest, *matrix)), (-2, -1), (first, second))


DIAGONAL = rule(np.diagonal, _onto_diagonal, inputs="a", static="offset axis1 axis2", view=True)


def _window_index(shape: Shape, window_shape: Any, axis: Any) -> tuple[Any, ...]:
    """Return the index that gathers all windows of an array of `shape`: positions, then windows."""
    windows = np.atleast_1d(window_shape).tolist()
    axes = range(len(shape)) if axis is None else [i % len(shape) for i in np.atleast_1d(axis)]
    lengths = list(shape)
    for i, window in zip(axes, windows, strict=True):
        lengths[i] -= window - 1
    ndim = len(shape) + len(windows)

    def counted(length: int, place: int) -> Any:
        return np.arange(length).reshape([-1 if i == place else 1 for i in range(ndim)])

    index = [counted(length, i) for i, length in enumerate(lengths)]
    for k, (i, window) in enumerate(zip(axes, windows, strict=True)):
        index[i] = index[i] + counted(window, len(shape) + k)
    return tuple(index)


SLIDING_WINDOW_VIEW = rule(
    np.lib.stride_tricks.sliding_window_view,
    lambda g, x_shape, window_shape, axis=None: scatter_recorded(
        g, _window_index(x_shape, window_shape, axis), x_shape
    ),
    static="window_shape axis",
    view=True,
)
