"""Sampling of images and volumes at given places: grids of affine maps, and what stands there.

Coordinates become places, counted in elements, by functions with rules of their own. Reading at
places is one operation, linear in the image; its transpose adds to the elements that were read. A
weight is linear in the place along each axis, so its slope is 1 or -1: reading and adding with
slopes along some axes are their own derivatives, as often as needed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.autograd.rules.manipulation.indexing import getitem, scatter
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.arrays import Shape, constants_beside
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
    count, channels, *lengths = x.shape
    places = [
        _place(grid[..., dims - 1 - k].astype(dtype, copy=False), n, padding_mode, corners)
        for k, n in enumerate(lengths)
    ]
    static = {
        "nearest": mode == "nearest", "slopes": (False,) * dims,
    }  # fmt: skip
    at = np.stack(places, axis=-1).reshape((count, math.prod(grid.shape[1:-1]), dims))
    y = apply(READ_AT, (x.astype(dtype, copy=False), at), static)
    return y.reshape((count, channels, *grid.shape[1:-1])).astype(x.dtype, copy=False)


def _place(coordinate: Any, length: int, padding_mode: str, corners: bool) -> Any:
    """Return places along an axis, counted in elements."""
    if corners:
        place = (coordinate + 1) * ((length - 1) / 2)
    else:
        place = ((coordinate + 1) * length - 1) / 2
    if padding_mode == "zeros":
        return np.clip(place, -1, length)  # nothing is read farther away
    if padding_mode == "reflection":
        place = _reflected(place, length, corners)
    return np.clip(place, 0, length - 1)


def _reflected(place: Any, length: int, corners: bool) -> Any:
    """Return places mirrored at the centers of the first and last elements, or at their edges."""
    low, span = (0.0, length - 1.0) if corners else (-0.5, float(length))
    if not span:
        return place * 0  # one element is its own mirror image
    away = np.abs(place - low)
    times = np.floor(away / span)
    rest = away - times * span
    odd = times % 2
    return rest + odd * (span - 2 * rest) + low


def _elements(
    places: Any, lengths: Sequence[int], nearest: bool, slopes: tuple[bool, ...]
) -> Iterator[tuple[Any, Any]]:
    """Yield what is read: rows of a table of the elements of all images, and their weights.

    Both have the shape of `places` without its last axis, [N, P].
    """
    axes = []
    for k, length in enumerate(lengths):
        place = places[..., k]
        if nearest:
            choices = [(np.rint(place), place * 0 + 1)]
        else:
            low = np.floor(place)
            part = place - low
            weights = (part * 0 - 1, part * 0 + 1) if slopes[k] else (1 - part, part)
            choices = [(low, weights[0]), (low + 1, weights[1])]
        found = []
        for at, weight in choices:
            outside = (at < 0) | (at > length - 1)
            index = np.where(outside | (at != at), 0, at).astype(np.int64)
            # In the other modes places are within the image, and what is beyond has no weight.
            found.append((index, np.where(outside, 0, weight).astype(places.dtype)))
        axes.append(found)
    # The first element of each image, among those of all.
    first = constants_beside(places, np.arange(places.shape[0])[:, None] * math.prod(lengths))
    for corner in itertools.product(*axes):
        row: Any = 0
        weight = None
        for length, (index, factor) in zip(lengths, corner, strict=True):
            row, weight = row * length + index, factor if weight is None else weight * factor
        yield row + first, weight


def read_at(x: Any, places: Any, nearest: bool, slopes: tuple[bool, ...]) -> Any:
    """Read images at places, or the slopes of what is read along some axes.

    Parameters
    ----------
    x : array of shape [N, C, H, W] or [N, C, D, H, W]
    places : array of shape [N, P, 2] or [N, P, 3]
        In elements, in the order of the axes of x.

    Returns
    -------
    array of shape [N, C, P]

    Examples
    --------
    >>> import numpy as np
    >>> x, places = np.array([[[[1.0, 2.0, 4.0]]]]), np.array([[[0.0, 1.5]]])
    >>> read_at(x, places, False, (False, False))
    array([[[3.]]])
    >>> read_at(x, places, False, (False, True))
    array([[[2.]]])
    """
    table = np.moveaxis(x, 1, -1).reshape((-1, x.shape[1]))
    total: Any = None
    for rows, weights in _elements(places, x.shape[2:], nearest, slopes):
        read = getitem(table, rows) * weights[..., None]
        total = read if total is None else total + read
    return np.moveaxis(total, -1, 1)


def add_at(x: Any, places: Any, lengths: Shape, nearest: bool, slopes: tuple[bool, ...]) -> Any:
    """Add to what `read_at` has read: its transpose.

    Examples
    --------
    >>> import numpy as np
    >>> places = np.array([[[0.0, 1.5]]])
    >>> add_at(np.array([[[6.0]]]), places, (1, 3), False, (False, False))
    array([[[[0., 3., 3.]]]])
    """
    count, channels = x.shape[:2]
    values = np.moveaxis(x, 1, -1)
    found = list(_elements(places, lengths, nearest, slopes))
    rows = np.concatenate([rows for rows, _ in found], axis=1)
    added = np.concatenate([values * weights[..., None] for _, weights in found], axis=1)
    table = scatter(added, rows, (count * math.prod(lengths), channels))
    return np.moveaxis(table.reshape((count, *lengths, channels)), -1, 1)


def _by_places(g: Any, x: Any, places: Any, nearest: bool, slopes: tuple[bool, ...]) -> Any:
    """Return the gradient of the places at which x was read."""
    if nearest:
        return np.zeros_like(places)
    found = []
    for k, taken in enumerate(slopes):
        if taken:  # between two elements the slope does not change
            found.append(np.zeros_like(places[..., k]))
            continue
        more = (*slopes[:k], True, *slopes[k + 1 :])
        slope = as_single_operation(read_at, x, places, nearest, more)
        found.append(np.sum(g * slope, axis=1))
    return np.stack(found, axis=-1)


READ_AT = rule(
    read_at,
    lambda g, x_shape, places, nearest, slopes: as_single_operation(
        add_at, g, places, x_shape[2:], nearest, slopes
    ),
    lambda g, x, places, nearest, slopes: _by_places(g, x, places, nearest, slopes),
    inputs="x places",
    static="nearest slopes",
)
ADD_AT = rule(
    add_at,
    lambda g, places, nearest, slopes: as_single_operation(read_at, g, places, nearest, slopes),
    lambda g, x, places, nearest, slopes: _by_places(x, g, places, nearest, slopes),
    inputs="x places",
    static="lengths nearest slopes",
)
