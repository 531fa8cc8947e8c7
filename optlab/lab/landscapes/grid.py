"""Grids of points: coarse ones first, interpolation between them, the box around given points."""

from __future__ import annotations

import numpy as np

#: The first pass over a grid takes every 8th row and column.
_COARSEST = 8
#: The share of the size of what a grid shows that is left free around it.
_MARGIN = 0.25
#: The least length of its shorter side, relative to the longer one.
_LEAST_SIDE = 0.8


def strides(shape: tuple[int, ...]) -> list[int]:
    """Return the strides of the passes over a grid, each half the one before, the last 1.

    Examples
    --------
    >>> strides((21, 21)), strides((3, 3))
    ([8, 4, 2, 1], [2, 1])
    """
    first = _COARSEST
    while first > 1 and first >= min(shape):
        first //= 2
    return [first >> k for k in range(first.bit_length())]


def every(count: int, stride: int) -> np.ndarray:
    """Return every `stride`-th index, and the last one.

    Examples
    --------
    >>> every(7, 4)
    array([0, 4, 6])
    """
    return np.unique([*range(0, count, stride), count - 1])


def bilinear(values: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return a grid of values, interpolated from some of its rows and columns.

    Examples
    --------
    >>> bilinear(np.array([[0.0, 9.0, 4.0], [9.0, 9.0, 9.0], [2.0, 9.0, 6.0]]), [0, 2], [0, 2])
    array([[0., 2., 4.],
           [1., 3., 5.],
           [2., 4., 6.]])
    """
    across = np.arange(values.shape[1])
    known = [np.interp(across, columns, values[row, columns]) for row in rows]
    down = np.arange(values.shape[0])
    return np.stack([np.interp(down, rows, column) for column in np.transpose(known)], axis=1)


def box(
    points: np.ndarray, shape: tuple[int, int], extent: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates a (columns) and b (rows) of a grid that shows some points.

    The shorter side gets at least a share of the longer one, so that a map is no strip.

    Examples
    --------
    >>> box(np.array([[0.0, 1.0], [4.0, 1.0]]), (3, 3), (1.0, 1.0))
    (array([-1.,  2.,  5.]), array([-1.4,  1. ,  3.4]))
    """
    low, high = points.min(axis=0), points.max(axis=0)
    half = (high - low) / 2 * (1 + 2 * _MARGIN)
    half = np.maximum(half, _LEAST_SIDE * half.max() or 1.0) * np.array(extent)
    middle = (low + high) / 2
    rows, columns = shape
    a = np.linspace(middle[0] - half[0], middle[0] + half[0], columns)
    return a, np.linspace(middle[1] - half[1], middle[1] + half[1], rows)
