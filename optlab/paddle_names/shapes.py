"""Functions of shapes with Paddle's names: ``ol.reshape``, ``ol.transpose``, ``ol.concat``."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.autograd.tensor.tensor import Tensor
from optlab.paddle_names.arguments import axes_of, documented, explain_names, lengths_of, plain

_numpy: Any = np  # its type stubs do not know Tensors


@documented
def reshape(x: Any, shape: Any) -> Any:
    """Reshape: -1 is what is left, 0 the length of that axis of `x`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.reshape(ol.ones([2, 3, 4]), [0, -1]).shape
    (2, 12)
    """
    lengths = lengths_of(shape)
    if isinstance(lengths, tuple) and 0 in lengths and np.size(raw(x)):
        old = np.shape(raw(x))
        if any(length == 0 and i >= len(old) for i, length in enumerate(lengths)):
            raise ValueError(
                f"ol.reshape: a 0 in shape={list(lengths)} is the length of that axis of x, which "
                f"has only {len(old)}: {list(old)}."
            )
        lengths = tuple(length or old[i] for i, length in enumerate(lengths))
    return _numpy.reshape(x, lengths)


@documented
def flatten(x: Any, start_axis: int = 0, stop_axis: int = -1) -> Any:
    """Merge the axes from `start_axis` to `stop_axis`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.flatten(ol.ones([2, 3, 4]), start_axis=1).shape
    (2, 12)
    """
    if isinstance(x, Tensor):
        return x.flatten(start_axis, stop_axis)
    old = np.shape(x)
    first, last = (axis % max(len(old), 1) for axis in (start_axis, stop_axis))
    return np.reshape(x, (*old[:first], -1, *old[last + 1 :]))


@documented
def squeeze(x: Any, axis: Any = None) -> Any:
    """Remove axes of length 1; an axis that is longer stays, as in Paddle.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.squeeze(ol.ones([1, 3, 1])).shape, ol.squeeze(ol.ones([1, 3, 1]), [0, 1]).shape
    ((3,), (3, 1))
    """
    axes = axes_of(axis)
    if axes is not None:
        old = np.shape(raw(x))
        axes = axes if isinstance(axes, tuple) else (axes,)
        _check_axes("squeeze", axes, old)
        axes = tuple({one % len(old) for one in axes if old[one] == 1})
    return (
        +x if axes == () and isinstance(x, Tensor) and x.dtype != bool else _numpy.squeeze(x, axes)
    )


def _check_axes(name: str, axes: Any, shape: Any) -> None:
    """Raise if an axis is not one of a shape."""
    for one in axes:
        if not -len(shape) <= one < len(shape):
            raise ValueError(
                f"ol.{name}: axis {one} is none of the {len(shape)} axes of x, of shape {shape}."
            )


@documented
def unsqueeze(x: Any, axis: Any) -> Any:
    """Insert axes of length 1 (``np.expand_dims``).

    Parameters
    ----------
    x : Tensor or array
    axis : int or sequence of int
        Where the new axes stand; several are inserted one after the other.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.unsqueeze(ol.ones([3]), [0, -1]).shape
    (1, 3, 1)
    """
    axes = axes_of(axis)
    for one in axes if isinstance(axes, tuple) else (axes,):
        x = _numpy.expand_dims(x, one)
    return x


@documented
def transpose(x: Any, perm: Any = None, axes: Any = None) -> Any:
    """Reorder the axes: axis i of the result is axis ``perm[i]`` of `x`.

    Parameters
    ----------
    x : Tensor or array
    perm : sequence of int, optional
        Without it, all axes are reversed.
    axes : sequence of int, optional
        NumPy's name for `perm`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.transpose(ol.ones([2, 3, 4]), perm=[0, 2, 1]).shape
    (2, 4, 3)
    """
    if perm is not None and axes is not None:
        raise TypeError("ol.transpose: perm and axes are two names of one argument; give one.")
    order = axes_of(axes if perm is None else perm)
    shape = np.shape(raw(x))
    if order is not None and sorted(a % max(len(shape), 1) for a in order) != [*range(len(shape))]:
        raise ValueError(
            f"ol.transpose: perm={list(order)} does not name each of the {len(shape)} axes of x, "
            f"of shape {shape}, once. To exchange two axes write ol.swapaxes(x, 0, 1)."
        )
    return _numpy.transpose(x, order)


@documented
def t(input: Any) -> Any:
    """Return the transpose of a matrix; a vector or a number as it is.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.t(ol.ones([2, 3])).shape
    (3, 2)
    """
    if np.ndim(raw(input)) > 2:
        raise ValueError(
            f"ol.t takes a matrix; this has shape {np.shape(raw(input))}. Write "
            "ol.transpose(x, perm), or x.mT for the transpose of each matrix."
        )
    return _numpy.transpose(input)


@documented
def swapaxes(x: Any, axis0: int, axis1: int) -> Any:
    """Exchange two axes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.swapaxes(ol.ones([2, 3, 4]), 0, 2).shape
    (4, 3, 2)
    """
    return _numpy.swapaxes(x, axis0, axis1)


@documented
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """Move axes to other places.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.moveaxis(ol.ones([2, 3, 4]), 0, -1).shape
    (3, 4, 2)
    """
    return _numpy.moveaxis(x, axes_of(source), axes_of(destination))


@documented
def flip(x: Any, axis: Any) -> Any:
    """Reverse the order along axes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.flip(ol.to_tensor([1.0, 2.0]), 0)
    Tensor([2., 1.], dtype=float32)
    """
    return _numpy.flip(x, axes_of(axis))


@documented
def rot90(x: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Turn by 90 degrees, k times, in the plane of two axes.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.rot90(ol.to_tensor([[1.0, 2.0]]))
    Tensor([[2.], [1.]], dtype=float32)
    """
    return _numpy.rot90(x, k, axes_of(axes))


@documented
def roll(x: Any, shifts: Any, axis: Any = None) -> Any:
    """Roll elements along axes; without an axis, all of them in a row.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.roll(ol.to_tensor([1.0, 2.0, 3.0]), 1)
    Tensor([3., 1., 2.], dtype=float32)
    """
    return _numpy.roll(x, axes_of(shifts), axes_of(axis))


@documented
def concat(x: Any, axis: Any = 0) -> Any:
    """Join the Tensors of a list along an axis (``np.concatenate``).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.concat([ol.ones([2, 3]), ol.zeros([2, 1])], axis=1).shape
    (2, 4)
    """
    return _numpy.concatenate(x, axes_of(axis))


@documented
def stack(x: Any, axis: Any = 0) -> Any:
    """Stack the Tensors of a list along a new axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.stack([ol.ones([3]), ol.zeros([3])], axis=1).shape
    (3, 2)
    """
    return _numpy.stack(x, axes_of(axis))


@documented
def hstack(x: Any) -> Any:
    """Join the Tensors of a list beside each other.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.hstack([ol.ones([2]), ol.zeros([1])])
    Tensor([1., 1., 0.], dtype=float32)
    """
    return _numpy.hstack(x)


@documented
def vstack(x: Any) -> Any:
    """Join the Tensors of a list, one above the other.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.vstack([ol.ones([2]), ol.zeros([2])]).shape
    (2, 2)
    """
    return _numpy.vstack(x)


@documented
def split(x: Any, num_or_sections: Any, axis: Any = 0) -> Any:
    """Split into parts along an axis.

    Parameters
    ----------
    x : Tensor or array
    num_or_sections : int or sequence of int
        The number of equal parts, or the length of each; one may be -1, for what is left.
        (``np.split`` takes the places where to cut.)
    axis : int

    Returns
    -------
    list of Tensor

    Examples
    --------
    >>> import optlab as ol
    >>> [part.shape for part in ol.split(ol.ones([2, 6]), [1, 2, -1], axis=1)]
    [(2, 1), (2, 2), (2, 3)]
    """
    axis = axes_of(axis)
    shape = np.shape(raw(x))
    _check_axes("split", (axis,), shape)
    parts = lengths_of(num_or_sections)
    if not isinstance(parts, tuple):
        if parts < 1 or shape[axis] % parts:
            raise ValueError(
                f"ol.split: axis {axis} of shape {shape} does not split into {parts} equal parts. "
                "Give the length of each: num_or_sections=[...]."
            )
        return list(_numpy.split(x, parts, axis))
    left = shape[axis] - sum(length for length in parts if length != -1)
    parts = tuple(left if length == -1 else length for length in parts)
    if sum(parts) != shape[axis] or min(parts, default=0) < 0:
        raise ValueError(
            f"ol.split: sections {list(lengths_of(num_or_sections))} do not add up to the length "
            f"{shape[axis]} of axis {axis} of x, of shape {shape}."
        )
    return list(_numpy.split(x, np.cumsum(parts)[:-1].tolist(), axis))


@documented
def chunk(x: Any, chunks: int, axis: Any = 0) -> Any:
    """Split into a number of equal parts along an axis.

    Examples
    --------
    >>> import optlab as ol
    >>> [part.shape for part in ol.chunk(ol.ones([4, 2]), 2)]
    [(2, 2), (2, 2)]
    """
    return split(x, int(raw(chunks)), axis)


@documented
def unbind(input: Any, axis: int = 0) -> Any:
    """Return what stands along an axis, as a list.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.unbind(ol.to_tensor([[1.0, 2.0], [3.0, 4.0]]), 1)
    [Tensor([1., 3.], dtype=float32), Tensor([2., 4.], dtype=float32)]
    """
    return list(_numpy.moveaxis(input, axes_of(axis), 0))


@documented
def unstack(x: Any, axis: int = 0, num: Any = None) -> Any:
    """Return what stands along an axis, as a list.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.unstack(ol.to_tensor([[1.0, 2.0], [3.0, 4.0]]))
    [Tensor([1., 2.], dtype=float32), Tensor([3., 4.], dtype=float32)]
    """
    found = list(_numpy.moveaxis(x, axes_of(axis), 0))
    if num is not None and num != len(found):
        raise ValueError(f"ol.unstack: num={num}, but axis {axis} has the length {len(found)}.")
    return found


@documented
def tile(x: Any, repeat_times: Any) -> Any:
    """Repeat the whole array along each axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.tile(ol.to_tensor([1.0, 2.0]), [2, 1])
    Tensor([[1., 2.], [1., 2.]], dtype=float32)
    """
    return _numpy.tile(x, lengths_of(repeat_times))


@documented
def repeat_interleave(x: Any, repeats: Any, axis: Any = None) -> Any:
    """Repeat each element, or each slice along `axis`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.repeat_interleave(ol.to_tensor([1.0, 2.0]), 2)
    Tensor([1., 1., 2., 2.], dtype=float32)
    """
    return _numpy.repeat(x, plain(repeats), axes_of(axis))


@documented
def broadcast_to(x: Any, shape: Any) -> Any:
    """Repeat along axes of length 1 until the shape is reached; -1 leaves an axis as it is.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.broadcast_to(ol.to_tensor([1.0, 2.0]), [2, 2])
    Tensor([[1., 2.], [1., 2.]], dtype=float32)
    """
    lengths = lengths_of(shape)
    if isinstance(lengths, tuple) and -1 in lengths:
        old = np.shape(raw(x))
        old = (1,) * (len(lengths) - len(old)) + old
        lengths = tuple(o if new == -1 else new for o, new in zip(old, lengths, strict=True))
    return _numpy.broadcast_to(x, lengths)


@documented
def expand(x: Any, shape: Any) -> Any:
    """Repeat along axes of length 1 until the shape is reached; -1 leaves an axis as it is.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.expand(ol.to_tensor([[1.0], [2.0]]), [-1, 3]).shape
    (2, 3)
    """
    return broadcast_to(x, shape)


@documented
def expand_as(x: Any, y: Any) -> Any:
    """Repeat along axes of length 1 until the shape of `y` is reached.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.expand_as(ol.to_tensor([1.0, 2.0]), ol.ones([3, 2])).shape
    (3, 2)
    """
    return _numpy.broadcast_to(x, np.shape(raw(y)))


@documented
def broadcast_tensors(input: Any) -> Any:
    """Repeat the Tensors of a list until they have one shape.

    Examples
    --------
    >>> import optlab as ol
    >>> [x.shape for x in ol.broadcast_tensors([ol.ones([2, 1]), ol.ones([3])])]
    [(2, 3), (2, 3)]
    """
    shape = np.broadcast_shapes(*[np.shape(raw(x)) for x in input])
    return [_numpy.broadcast_to(x, shape) for x in input]


def broadcast_shape(x_shape: Any, y_shape: Any) -> list[int]:
    """Return the shape of a result of two shapes.

    Parameters
    ----------
    x_shape, y_shape : sequence of int

    Examples
    --------
    >>> import optlab as ol
    >>> ol.broadcast_shape([2, 1], [3])
    [2, 3]
    """
    return list(np.broadcast_shapes(tuple(x_shape), tuple(y_shape)))


@documented
def meshgrid(*args: Any) -> Any:
    """Return the coordinates of a grid, the first one along the first axis (``indexing="ij"``).

    Parameters
    ----------
    *args : Tensors or arrays
        Vectors, or one list of them.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.meshgrid(ol.to_tensor([1.0, 2.0]), ol.to_tensor([5.0]))[0]
    Tensor([[1.], [2.]], dtype=float32)
    """
    vectors = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return list(_numpy.meshgrid(*vectors, indexing="ij"))


explain_names(globals())
