"""Functions that rearrange and repeat elements, composed of other functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.manipulation.shapes import REPEAT, RESHAPE, TILE
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import on_host


def _as_shape(shape: Any) -> tuple[Any, ...]:
    """Return a shape, given as one number, a sequence, an array or a Tensor, as a tuple."""
    shape = on_host(raw(shape))
    return (shape,) if np.ndim(shape) == 0 else tuple(shape)


def _is_fortran(x: Any) -> bool:
    """Return whether `x` is in Fortran order (first axis fastest) and not in C order."""
    flags = raw(np.asarray(x) if isinstance(x, (list, tuple)) else x).flags
    return bool(flags.f_contiguous and not flags.c_contiguous)


def _axes_as_in_memory(x: Any) -> list[int]:
    """Return the axes of an array by decreasing stride.

    An axis of stride 0 (broadcast) stays next to the axis that it follows.
    """
    strides = [abs(stride) for stride in x.strides]
    order: list[int] = []  # from the narrowest
    for axis in reversed(range(x.ndim)):
        place = len(order)
        for i in reversed(range(len(order))):
            if strides[axis] and strides[order[i]]:
                if strides[order[i]] <= strides[axis]:
                    break
                place = i
        order.insert(place, axis)
    return order[::-1]


@composed(np.reshape, moves=True)
def _reshape(
    a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None
) -> Any:
    if type(shape) is tuple and order == "C" and copy is None:  # nearly every call
        return apply(RESHAPE, (a,), {"shape": shape})
    shape = _as_shape(newshape if shape is None else shape)
    if copy is False:
        np.reshape(raw(a), shape, order=order, copy=False)  # type: ignore[call-overload]  # refuses
    if order == "F" or (order == "A" and _is_fortran(a)):
        reversed_axes = apply(TABLE[np.reshape], (np.transpose(a),), {"shape": shape[::-1]})
        y: Any = np.transpose(reversed_axes)
    elif order in ("C", "A"):
        y = apply(TABLE[np.reshape], (a,), {"shape": shape})
    else:
        raise ValueError(f"np.reshape takes order 'C', 'F' or 'A'; got {order!r}.")
    return np.copy(y) if copy else y


@composed(np.ravel, moves=True)
def _ravel(a: Any, order: str = "C") -> Any:
    if order == "F" or (order == "A" and _is_fortran(a)):
        a = np.transpose(a)
    elif order == "K":
        a = np.transpose(a, _axes_as_in_memory(raw(a)))
    elif order not in ("C", "A"):
        raise ValueError(f"np.ravel takes order 'C', 'F', 'A' or 'K'; got {order!r}.")
    return apply(TABLE[np.ravel], (a,))


@composed(np.rollaxis, moves=True)
def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    n = np.ndim(a)
    axis = normalize_axis_index(axis, n)
    # As in NumPy, -1 is before the last axis; only n itself is after it.
    start = n if start == n else normalize_axis_index(start, n)
    order = [i for i in range(n) if i != axis]
    order.insert(start - (start > axis), axis)
    return np.transpose(a, order)


def _roll_by_half(x: Any, axes: Any, backwards: bool) -> Any:
    """Roll `x` by half its length along `axes`."""
    axes = range(np.ndim(x)) if axes is None else _as_shape(axes)
    shape = np.shape(x)
    steps = [-(shape[axis] // 2) if backwards else shape[axis] // 2 for axis in axes]
    return np.roll(x, steps, tuple(axes))


@composed(np.fft.fftshift, moves=True)
def _fftshift(x: Any, axes: Any = None) -> Any:
    return _roll_by_half(x, axes, backwards=False)


@composed(np.fft.ifftshift, moves=True)
def _ifftshift(x: Any, axes: Any = None) -> Any:
    return _roll_by_half(x, axes, backwards=True)


@composed(np.rot90, moves=True)
def _rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    if len(axes) != 2:
        raise ValueError(f"rot90 turns in the plane of two axes; got axes={tuple(axes)!r}.")
    first, second = (normalize_axis_index(axis, np.ndim(m)) for axis in axes)
    if first == second:
        raise ValueError(f"rot90 turns in the plane of two different axes; got {tuple(axes)!r}.")
    turns = int(k) % 4
    if turns == 0:
        return m[:]
    if turns == 2:
        return np.flip(m, (first, second))
    if turns == 1:
        return np.swapaxes(np.flip(m, second), first, second)
    return np.flip(np.swapaxes(m, first, second), second)


@composed(np.fliplr, moves=True)
def _fliplr(m: Any) -> Any:
    if np.ndim(m) < 2:
        raise ValueError("fliplr takes an array with at least two axes; try np.flip(t).")
    return np.flip(m, 1)


@composed(np.flipud, moves=True)
def _flipud(m: Any) -> Any:
    if np.ndim(m) < 1:
        raise ValueError("flipud takes an array with at least one axis.")
    return np.flip(m, 0)


@composed(np.tile, moves=True)
def _tile(A: Any, reps: Any) -> Any:
    return apply(TILE, (A,), {"reps": tuple(int(n) for n in _as_shape(reps))})


@composed(np.repeat, moves=True)
def _repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    if axis is None:
        a, axis = np.ravel(a), 0
    elif np.ndim(a) == 0:
        a = np.reshape(a, (1,))
    axis = normalize_axis_index(axis, np.ndim(a))
    repeats = np.asarray(on_host(raw(repeats)))
    if repeats.size == 1 and repeats.dtype.kind in "iub":
        return apply(REPEAT, (a,), {"repeats": int(repeats.item()), "axis": axis})
    return np.take(a, np.repeat(np.arange(np.shape(a)[axis]), repeats), axis)


def _at_least_nd(n: int, shape_of: Any) -> Any:
    """Return the function that reshapes arrays of fewer than `n` axes to ``shape_of(shape)``."""

    def widened(*arys: Any) -> Any:
        wide = tuple(x if np.ndim(x) >= n else np.reshape(x, shape_of(np.shape(x))) for x in arys)
        # Lists among the Tensors are converted to arrays too.
        wide = tuple(np.asarray(x) if isinstance(x, (list, tuple)) else x for x in wide)
        return wide[0] if len(wide) == 1 else wide

    return widened


composed(np.atleast_1d, moves=True)(_at_least_nd(1, lambda shape: (1,)))
composed(np.atleast_2d, moves=True)(
    _at_least_nd(2, lambda shape: (1,) * (2 - len(shape)) + tuple(shape))
)
composed(np.atleast_3d, moves=True)(
    _at_least_nd(3, lambda shape: {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)])
)


@composed(np.broadcast_arrays, moves=True)
def _broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    if subok:
        raise not_covered("broadcast_arrays with subok=True")
    shape = np.broadcast_shapes(*(np.shape(x) for x in args))
    return tuple(np.broadcast_to(x, shape) for x in args)


@composed(np.meshgrid, moves=True)
def _meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid takes indexing 'xy' or 'ij'; got {indexing!r}.")
    n = len(xi)
    axes = list(range(n))
    if indexing == "xy" and n > 1:
        axes[:2] = 1, 0
    grids = tuple(
        np.reshape(x, (1,) * axis + (-1,) + (1,) * (n - 1 - axis))
        for x, axis in zip(xi, axes, strict=True)
    )
    if not sparse:
        grids = _broadcast_arrays(*grids)
    return tuple(np.copy(grid) for grid in grids) if copy else grids


@composed(np.resize, moves=True)
def _resize(a: Any, new_shape: Any) -> Any:
    flat = np.ravel(a)
    places = np.resize(np.arange(flat.shape[0]), _as_shape(new_shape))
    # From an empty array NumPy makes zeros, which are constants.
    return np.take(flat, places) if flat.shape[0] else np.resize(raw(flat), places.shape)


@composed(np.full_like, moves=True)
def _full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    if not isinstance(fill_value, Tensor) or fill_value.node is None:
        return _like(np.full_like, a, dtype, order, subok, shape, device, raw(fill_value))
    if order != "K" or device not in (None, "cpu"):
        raise not_covered("full_like with order=... or device=...")
    filled = fill_value.astype(raw(a).dtype if dtype is None else dtype)
    return np.broadcast_to(filled, np.shape(a) if shape is None else _as_shape(shape))


def _like(
    function: Any,
    a: Any,
    dtype: Any,
    order: str,
    subok: bool,
    shape: Any,
    device: Any,
    *fill_value: Any,
) -> Any:
    """Make constants like `a`: a Tensor without gradient if `a` is one, else an array."""
    options = {} if subok else {"subok": False}
    options |= {} if device is None else {"device": device}
    made = function(raw(a), *fill_value, dtype=dtype, order=order, shape=shape, **options)
    return Tensor(made) if isinstance(a, Tensor) else made


@composed(np.zeros_like, moves=True)
def _zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
    *, device: Any = None,
) -> Any:  # fmt: skip
    return _like(np.zeros_like, a, dtype, order, subok, shape, device)


@composed(np.ones_like, moves=True)
def _ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
    *, device: Any = None,
) -> Any:  # fmt: skip
    return _like(np.ones_like, a, dtype, order, subok, shape, device)


@composed(np.empty_like, moves=True)
def _empty_like(
    prototype: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
    *, device: Any = None,
) -> Any:  # fmt: skip
    return _like(np.empty_like, prototype, dtype, order, subok, shape, device)
