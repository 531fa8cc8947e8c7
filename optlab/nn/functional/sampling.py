"""Sampling of images and volumes at given places: grids of affine maps, and what stands there.

All of it is composed of functions with rules of their own: places are rounded to elements, whose
rows are read, and weights are products of distances. So it is differentiable in the image and in
the places, as often as needed.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from optlab.autograd.rules.manipulation.embedding import TAKE_ROWS
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import constants_beside
from optlab.backend.dtypes import widened
from optlab.backend.text import or_list
from optlab.nn.functional.arguments import as_bool, no_name, scores
from optlab.nn.functional.windows import as_integers

MODES = ("bilinear", "nearest")
PADDINGS = ("zeros", "border", "reflection")


def affine_grid(
    theta: Any, out_shape: Any, align_corners: bool = True, name: None = None
) -> Tensor:
    r"""Compute where an affine map takes the elements of an image, for `grid_sample`.

    .. math:: (x', y')_{nij} = \theta_n (x_j, y_i, 1)^T

    with coordinates from -1 to 1 along each axis.

    Parameters
    ----------
    theta : Tensor of shape [N, 2, 3] or [N, 3, 4]
        The map of each image or volume.
    out_shape : list of int, or Tensor of integers
        [N, C, H, W] or [N, C, D, H, W] of the result of sampling.
    align_corners : bool
        Whether -1 and 1 are the centers of the first and the last element (the default, as in
        Paddle; PyTorch's is False), or the edges of the image. One element is in the middle.

    Returns
    -------
    Tensor
        Of shape [N, H, W, 2] or [N, D, H, W, 3]: the coordinates x, y (and z) in this order.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Jaderberg et al. 2015, Spatial Transformer Networks. Signature:
    paddle.nn.functional.affine_grid.

    Examples
    --------
    >>> import optlab as ol
    >>> flipped = ol.to_tensor([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> grid = ol.nn.functional.affine_grid(flipped, [1, 1, 1, 3])
    >>> ol.nn.functional.grid_sample(ol.to_tensor([[[[1.0, 2.0, 3.0]]]]), grid)
    Tensor([[[[3., 2., 1.]]]], dtype=float32)
    """
    no_name(name)
    corners = as_bool(align_corners, "align_corners", "affine_grid")
    theta = scores(theta)
    shape = as_integers(out_shape)
    dims = 0 if shape is None else len(shape) - 2
    if shape is None or dims not in (2, 3) or min(shape) < 1:
        raise ValueError(
            f"affine_grid takes out_shape=[N, C, H, W] or [N, C, D, H, W]; got {out_shape!r}."
        )
    if theta.shape != (shape[0], dims, dims + 1):
        raise ValueError(
            f"affine_grid for out_shape={list(shape)} takes theta of shape "
            f"[{shape[0]}, {dims}, {dims + 1}]; got {list(theta.shape)}."
        )
    axes = [_centers(n, corners) for n in shape[2:]]
    # The last axis of an image is the first coordinate.
    places = [*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(shape[2:])]
    base = np.stack([place.reshape(-1) for place in places], axis=1)
    dtype = widened(theta.dtype)
    wide = theta if theta.dtype == dtype else theta.astype(dtype)
    found = constants_beside(theta, base.astype(dtype)) @ np.swapaxes(wide, 1, 2)
    grid: Tensor = found.reshape((shape[0], *shape[2:], dims))
    return grid if grid.dtype == theta.dtype else grid.astype(theta.dtype)


def _centers(count: int, corners: bool) -> Any:
    """Return the coordinates of the elements of an axis."""
    if not corners or count == 1:
        return (2.0 * np.arange(count) + 1) / count - 1
    return np.linspace(-1.0, 1.0, count)


def grid_sample(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool = True, name: None = None,
) -> Tensor:  # fmt: skip
    """Read images or volumes at given places.

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W] or [N, C, D, H, W]
    grid : Tensor of shape [N, OH, OW, 2] or [N, OD, OH, OW, 3]
        The coordinates x, y (and z) of each element of the result, from -1 to 1 within the image;
        x is along the last axis. `affine_grid` makes such a grid.
    mode : {'bilinear', 'nearest'}
        'bilinear': linear interpolation of the two neighbors along each axis (of volumes, too).
        'nearest': the nearest element, of two the even one.
    padding_mode : {'zeros', 'border', 'reflection'}
        What stands outside the image: zeros, its nearest element, or its mirror image.
    align_corners : bool
        Whether -1 and 1 are the centers of the first and the last element (the default, as in
        Paddle; PyTorch's is False), or the edges of the image.

    Returns
    -------
    Tensor
        Of shape [N, C, OH, OW] or [N, C, OD, OH, OW], in the dtype of x.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Notes
    -----
    Places are computed in at least float32. A place that is NaN gives NaN. Gradients reach `x` and,
    except for 'nearest', where they are 0, `grid`. Jaderberg et al. 2015, Spatial Transformer
    Networks. Signature: paddle.nn.functional.grid_sample.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> grid = ol.to_tensor([[[[-1.0, -1.0], [0.0, 0.0], [0.0, 1.0], [3.0, 0.0]]]])
    >>> ol.nn.functional.grid_sample(x, grid)
    Tensor([[[[1. , 2.5, 3.5, 0. ]]]], dtype=float32)
    >>> ol.nn.functional.grid_sample(x, grid, padding_mode="border")
    Tensor([[[[1. , 2.5, 3.5, 3. ]]]], dtype=float32)
    """
    no_name(name)
    if mode not in MODES:
        raise ValueError(f"grid_sample takes mode={or_list(MODES)}; got {mode!r}.")
    if padding_mode not in PADDINGS:
        raise ValueError(
            f"grid_sample takes padding_mode={or_list(PADDINGS)}; got {padding_mode!r}."
        )
    corners = as_bool(align_corners, "align_corners", "grid_sample")
    x, grid = scores(x), scores(grid)
    dims = x.ndim - 2
    if dims not in (2, 3):
        raise ValueError(
            f"grid_sample takes x of shape [N, C, H, W] or [N, C, D, H, W]; got {list(x.shape)}. "
            "A single image gets its batch axis with x[None]."
        )
    if grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != dims:
        names = "OH, OW" if dims == 2 else "OD, OH, OW"
        raise ValueError(
            f"grid_sample of x of shape {list(x.shape)} takes a grid of shape "
            f"[{x.shape[0]}, {names}, {dims}]; got {list(grid.shape)}."
        )
    if 0 in x.shape[2:]:
        raise ValueError(f"grid_sample needs something to read; got x of shape {list(x.shape)}.")
    dtype = widened(x.dtype)
    grid = grid if grid.dtype == dtype else grid.astype(dtype)
    count, channels, *lengths = x.shape
    of_axes = [
        _read(grid[..., dims - 1 - k].reshape((count, -1)), n, mode, padding_mode, corners)
        for k, n in enumerate(lengths)
    ]
    # The first element of each image, among the rows of all.
    first = constants_beside(grid, np.arange(count)[:, None] * math.prod(lengths))
    rows: list[Any] = []
    weights: list[Any] = []
    for corner in itertools.product(*of_axes):
        row: Any = 0
        weight: Any = None
        for n, (index, factor) in zip(lengths, corner, strict=True):
            row, weight = row * n + index, factor if weight is None else weight * factor
        rows.append(row + first)
        weights.append(weight)
    table = np.moveaxis(x, 1, -1).reshape((-1, channels))
    read = apply(TAKE_ROWS, (table,), {"rows": np.stack(rows, axis=1), "sparse": False})
    y = np.sum(read * np.stack(weights, axis=1)[..., None], axis=1)
    y = np.moveaxis(y, -1, 1).reshape((count, channels, *grid.shape[1:-1]))
    return y if y.dtype == x.dtype else y.astype(x.dtype)  # type: ignore[no-any-return]


def _read(
    place: Any, length: int, mode: str, padding_mode: str, corners: bool
) -> list[tuple[Any, Any]]:
    """Return what is read along one axis: the indices of elements, and their weights."""
    place = (place + 1) * ((length - 1) / 2) if corners else ((place + 1) * length - 1) / 2
    if padding_mode == "zeros":
        place = np.clip(place, -1, length)  # nothing is read farther away
    else:
        if padding_mode == "reflection":
            place = _reflected(place, length, corners)
        place = np.clip(place, 0, length - 1)
    if mode == "nearest":
        near = np.rint(place)
        return [_inside(near, near * 0 + 1, length)]
    low = np.floor(place)
    part = place - low
    return [_inside(low, 1 - part, length), _inside(low + 1, part, length)]


def _inside(at: Any, weight: Any, length: int) -> tuple[Any, Any]:
    """Return indices within an axis, and weights, which are 0 for what was outside."""
    place = raw(at)
    outside = (place < 0) | (place > length - 1)
    index = np.where(outside | (place != place), 0, place).astype(np.int64)
    return index, np.where(outside, 0.0, weight)


def _reflected(place: Any, length: int, corners: bool) -> Any:
    """Return places mirrored at the centers of the first and last elements, or at their edges."""
    low, span = (0.0, length - 1.0) if corners else (-0.5, float(length))
    if not span:
        return place * 0  # one element is its own mirror image
    away = np.abs(place - low)
    times = np.floor(away / span)
    rest = away - times * span
    odd = raw(times) % 2 == 1
    return np.where(odd, span - rest, rest) + low
