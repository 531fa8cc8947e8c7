"""The matrix products of a convolution, over the columns of some images.

Columns are (C * kernel, N, positions), images of the output and their gradients (O, N, positions).
The products take all images as one matrix, or, for NumPy arrays, image after image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.nn.functional.blocks import ones
from optlab.nn.functional.conv.plan import Plan

#: OpenBLAS computes products of at most so many multiplications without copying the matrices first:
#: with its kernels for AVX-512 image after image takes half the time then.
SMALL = 1_000_000

#: With fewer positions, images are too small for products of their own.
POSITIONS = 100


def image_by_image(plan: Plan, weights: int, groups: int) -> bool:
    """Return whether products of single images are small, but not too small."""
    return plan.length >= POSITIONS and weights // groups * plan.length <= SMALL


def strided_sums(plan: Plan) -> bool:
    """Return whether `ColumnSums` adds columns up: gaps ask for products of single images."""
    return plan.dense and not plan.is_identity and (plan.keeps_size or plan.length >= POSITIONS)


def in_groups(a: Any, groups: int) -> Any:
    """Split the first axis into groups, on a new first axis; one group stays as it is."""
    return a if groups == 1 else a.reshape((groups, a.shape[0] // groups, *a.shape[1:]))


def _images_first(a: Any) -> Any:
    """Return (..., rows, N, positions) as (N, ..., rows, positions)."""
    return a.transpose((a.ndim - 2, *range(a.ndim - 2), a.ndim - 1))


def one_matrix(a: Any) -> Any:
    """Return (..., rows, N, positions) as (..., rows, N * positions)."""
    return a.reshape((*a.shape[:-2], a.shape[-2] * a.shape[-1]))


def multiplied(matrix: Any, columns: Any, out: Any, groups: int, each: bool) -> None:
    """Write products of the matrices of each group (groups, M, K), or one (M, K), to `out`.

    `columns` is (groups * K, N, positions), `out` (groups * M, N, positions). NumPy arrays only;
    with `each` false, the rows of both are contiguous.
    """
    columns, out = in_groups(columns, groups), in_groups(out, groups)
    if each:
        np.matmul(matrix, _images_first(columns), out=_images_first(out))
    else:
        np.matmul(matrix, one_matrix(columns), out=one_matrix(out))


def weight_sums(columns: Any, g: Any, groups: int, each: bool) -> Any:
    """Return the products of columns and gradients (O, N, positions): (groups, K, O / groups)."""
    columns, g = in_groups(columns, groups), in_groups(g, groups)
    if each:
        parts = _images_first(columns) @ _images_first(g).swapaxes(-1, -2)
        return np.add.reduce(parts, axis=0)
    return one_matrix(columns) @ one_matrix(g).swapaxes(-1, -2)


def sums_of_rows(g: Any, each: bool) -> Any:
    """Return the sums of the rows of (O, N, positions), as products with ones."""
    if each:
        return np.add.reduce(_images_first(g) @ ones(g.shape[2], g.dtype), axis=0)
    return one_matrix(g) @ ones(g.shape[1] * g.shape[2], g.dtype)
