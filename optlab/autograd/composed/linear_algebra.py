"""Products of matrices and vectors, composed of other functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.rules.linalg.linear_algebra import DOT, VECDOT
from optlab.autograd.tensor.tensor import apply

# Products -----------------------------------------------------------------------------------------


@composed(np.dot)
def _dot(a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    if np.ndim(b) <= 2:
        return apply(DOT, (a, b))
    return np.tensordot(a, b, (-1, -2))


@composed(np.vdot)
def _vdot(a: Any, b: Any) -> Any:
    return np.dot(np.ravel(a), np.ravel(b))


@composed(np.inner)
def _inner(a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    return np.tensordot(a, b, (-1, -1))


@composed(np.outer)
def _outer(a: Any, b: Any) -> Any:
    return np.reshape(a, (-1, 1)) * np.reshape(b, (1, -1))


@composed(np.linalg.outer)
def _outer_of_vectors(x1: Any, x2: Any, /) -> Any:
    if np.ndim(x1) != 1 or np.ndim(x2) != 1:
        raise ValueError(
            f"np.linalg.outer takes two vectors, but got shapes {np.shape(x1)} and {np.shape(x2)}; "
            "np.outer takes arrays of any shape."
        )
    return np.outer(x1, x2)


@composed(np.linalg.matmul)
def _matmul(x1: Any, x2: Any, /) -> Any:
    return np.matmul(x1, x2)


@composed(np.vecdot)
def _vecdot(x1: Any, x2: Any, /, *, axis: int = -1, keepdims: bool = False, **options: Any) -> Any:
    if options:
        raise not_covered(f"vecdot with {min(options)}=...")
    if axis != -1:
        x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    y = apply(VECDOT, (x1, x2))
    return np.expand_dims(y, axis) if keepdims else y


@composed(np.linalg.vecdot)
def _vecdot_by_keyword(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return _vecdot(x1, x2, axis=axis)


@composed(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Contract pairs of axes as one matrix product, with the contracted axes inside."""
    a_shape, b_shape = np.shape(a), np.shape(b)
    a_axes, b_axes = _contracted_axes(axes, len(a_shape), len(b_shape))
    if [a_shape[i] for i in a_axes] != [b_shape[i] for i in b_axes]:
        raise ValueError(
            f"tensordot of shapes {a_shape} and {b_shape} with axes={axes!r}: the contracted axes "
            "must be as many and as long in both."
        )
    a_rest = [i for i in range(len(a_shape)) if i not in a_axes]
    b_rest = [i for i in range(len(b_shape)) if i not in b_axes]
    folded = math.prod(a_shape[i] for i in a_axes)
    a_kept, b_kept = [a_shape[i] for i in a_rest], [b_shape[i] for i in b_rest]
    left = np.reshape(np.transpose(a, a_rest + a_axes), (math.prod(a_kept), folded))
    right = np.reshape(np.transpose(b, b_axes + b_rest), (folded, math.prod(b_kept)))
    return np.reshape(np.dot(left, right), (*a_kept, *b_kept))


def _contracted_axes(axes: Any, a_ndim: int, b_ndim: int) -> tuple[list[int], list[int]]:
    """Return the axes of each operand that tensordot contracts, as nonnegative numbers."""
    if isinstance(axes, (int, np.integer)):
        a_axes, b_axes = range(a_ndim - axes, a_ndim), range(axes)
        if axes > min(a_ndim, b_ndim):
            raise ValueError(
                f"tensordot cannot sum over {axes} axes of operands with {a_ndim} and {b_ndim}."
            )
        return list(a_axes), list(b_axes)
    a_axes, b_axes = axes
    a_listed: list[Any] = [a_axes] if isinstance(a_axes, (int, np.integer)) else list(a_axes)
    b_listed: list[Any] = [b_axes] if isinstance(b_axes, (int, np.integer)) else list(b_axes)
    return _normalized_axes(a_listed, a_ndim), _normalized_axes(b_listed, b_ndim)


def _normalized_axes(axes: Sequence[int], ndim: int) -> list[int]:
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise np.exceptions.AxisError(axis, ndim)
    return [int(axis) % ndim for axis in axes]


@composed(np.linalg.tensordot)
def _tensordot_by_keyword(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    return np.tensordot(x1, x2, axes)


@composed(np.kron)
def _kron(a: Any, b: Any) -> Any:
    """Multiply every element of a by all of b: interleave the axes, then merge each pair."""
    ndim = max(np.ndim(a), np.ndim(b))
    a_shape = (1,) * (ndim - np.ndim(a)) + np.shape(a)
    b_shape = (1,) * (ndim - np.ndim(b)) + np.shape(b)
    left = np.reshape(a, tuple(n for length in a_shape for n in (length, 1)))
    right = np.reshape(b, tuple(n for length in b_shape for n in (1, length)))
    return np.reshape(left * right, tuple(m * n for m, n in zip(a_shape, b_shape, strict=True)))


@composed(np.linalg.multi_dot)
def _multi_dot(arrays: Sequence[Any]) -> Any:
    """Multiply in the order with the fewest scalar multiplications."""
    arrays = list(arrays)
    if len(arrays) < 2:
        raise ValueError(f"multi_dot needs at least two arrays, but got {len(arrays)}.")
    for x in arrays[1:-1]:
        if np.ndim(x) != 2:
            raise np.linalg.LinAlgError(
                f"the arrays between the first and the last are matrices, but one of multi_dot "
                f"has shape {np.shape(x)}."
            )
    first, last = arrays[0], arrays[-1]
    if not {np.ndim(first), np.ndim(last)} <= {1, 2}:
        raise np.linalg.LinAlgError("the first and the last array of multi_dot have 1 or 2 axes.")
    lengths = [1 if np.ndim(first) == 1 else np.shape(first)[0]]
    lengths += [np.shape(x)[0] for x in arrays[1:]]
    lengths.append(1 if np.ndim(last) == 1 else np.shape(last)[1])
    split = _best_splits(lengths)

    def product(i: int, j: int) -> Any:
        if i == j:
            return arrays[i]
        return np.dot(product(i, split[i, j]), product(split[i, j] + 1, j))

    return product(0, len(arrays) - 1)


def _best_splits(lengths: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the cheapest last split of each run; matrix i is lengths[i] by lengths[i + 1]."""
    n = len(lengths) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            costs = [
                cost[i, k] + cost[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1]
                for k in range(i, j)
            ]
            cost[i, j] = min(costs)
            split[i, j] = i + costs.index(min(costs))
    return split


@composed(np.cross)
def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a_lengths, b_lengths = np.shape(a), np.shape(b)
    if not a_lengths or not b_lengths:
        raise ValueError("np.cross takes vectors: arrays of at least one axis.")
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    a_length, b_length = np.shape(a)[-1], np.shape(b)[-1]
    if not {a_length, b_length} <= {2, 3}:
        raise ValueError(
            f"np.cross takes vectors of 2 or 3 numbers; here they have {a_length} and {b_length} "
            f"(shapes {a_lengths} and {b_lengths})."
        )
    a0, a1 = a[..., 0], a[..., 1]
    b0, b1 = b[..., 0], b[..., 1]
    third = a0 * b1 - a1 * b0
    if a_length == b_length == 2:
        return third
    if a_length == 2:  # its third component is 0
        first, second = a1 * b[..., 2], -(a0 * b[..., 2])
    elif b_length == 2:
        first, second = -(a[..., 2] * b1), a[..., 2] * b0
    else:
        a2, b2 = a[..., 2], b[..., 2]
        first, second = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2
    return np.stack([first, second, third], axisc)


@composed(np.linalg.cross)
def _cross_of_three(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    if np.shape(x1)[axis] != 3 or np.shape(x2)[axis] != 3:
        raise ValueError(
            f"np.linalg.cross takes vectors of 3 numbers along axis {axis}, but got shapes "
            f"{np.shape(x1)} and {np.shape(x2)}."
        )
    return np.cross(x1, x2, axis=axis)


# Diagonals and transposes -------------------------------------------------------------------------


def _diagonal(x: Any, offset: int, axis1: int, axis2: int) -> Any:
    """Return diagonals along a new last axis."""
    x = np.moveaxis(x, (axis1, axis2), (-2, -1))
    x = x[..., max(0, -offset) :, max(0, offset) :]
    length = min(np.shape(x)[-2:])
    return np.einsum("...ii->...i", x[..., :length, :length])


@composed(np.trace)
def _trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    return np.sum(_diagonal(a, offset, axis1, axis2), -1, dtype, out)


@composed(np.linalg.trace)
def _trace_of_matrices(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return np.trace(x, offset, -2, -1, dtype)


@composed(np.linalg.diagonal)
def _diagonal_of_matrices(x: Any, /, *, offset: int = 0) -> Any:
    return _diagonal(x, offset, -2, -1)


@composed(np.matrix_transpose, np.linalg.matrix_transpose)
def _matrix_transpose(x: Any, /) -> Any:
    if np.ndim(x) < 2:
        raise ValueError(f"a matrix has at least 2 axes; matrix_transpose got shape {np.shape(x)}.")
    return np.swapaxes(x, -1, -2)
