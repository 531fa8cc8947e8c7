"""Max unpooling: maxima are scattered to their indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.ensemble import members_of
from optlab.nn.docstrings import documented_like
from optlab.nn.functional import windows
from optlab.nn.functional.arguments import given_with
from optlab.nn.functional.pooling.pooling import checked_input


def unpool(x: Any, indices: Any, length: int) -> Any:
    """Scatter the last axis to indices of a longer axis of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> unpool(np.array([[3.0, 5.0]]), np.array([[1, 2]]), 4)
    array([[0., 3., 5., 0.]])
    """
    # Of the class of a sum of both: an ensemble if either is one.
    out = np.zeros_like(
        x[..., :1] + indices[..., :1].astype(x.dtype), shape=(*x.shape[:-1], length)
    )
    np.put_along_axis(out, indices, x, -1)
    return out


def unpool_input(x: Any, indices: Any) -> Any:
    """Gather the last axis at indices: the transpose of `unpool`.

    Examples
    --------
    >>> import numpy as np
    >>> unpool_input(np.array([[0.0, 3.0, 5.0, 0.0]]), np.array([[1, 2]]))
    array([[3., 5.]])
    """
    return np.take_along_axis(x, indices, -1)


UNPOOL = rule(
    unpool,
    lambda g, indices, length: as_single_operation(unpool_input, g, indices),
    inputs="x",
    static="indices length",
)
UNPOOL_INPUT = rule(
    unpool_input,
    lambda g, x_shape, indices: as_single_operation(unpool, g, indices, x_shape[-1]),
    inputs="x",
    static="indices",
)


def max_unpool2d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
    data_format: str = "NCHW", output_size: Any = None, name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 2-D max unpooling: scatter maxima to where `max_pool2d` found them, zeros elsewhere.

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W]
    indices : Tensor of integers, of the shape of x
        Indices of the maxima, as of ``max_pool2d(..., return_mask=True)``: counted
        row by row within each image of the result.
    kernel_size : int or list of int
        Window size of the pooling.
    stride : int or list of int, optional
        Stride of the pooling; by default `kernel_size`.
    padding : int or list of int
        Padding of the pooling.
    data_format : {'NCHW'}
        Position of the channel axis.
    output_size : list of int, optional
        Shape or spatial size of the result, for which the other arguments leave several choices.

    Returns
    -------
    Tensor
        Of shape [N, C, H', W'] with H' = (H - 1) stride - 2 padding + kernel, or `output_size`.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, or an index is outside the result.

    Notes
    -----
    Where windows overlap, two maxima may have the same index. One of them is written, and both get
    its gradient (they are equal if they come from one pooling). The indices are saved for the
    backward pass. Source: Zeiler and Fergus 2014. Signature: paddle.nn.functional.max_unpool2d.

    Examples
    --------
    >>> import optlab as ol
    >>> F = ol.nn.functional
    >>> x = ol.to_tensor([[[[1.0, 2.0], [4.0, 3.0]]]])
    >>> y, mask = F.max_pool2d(x, 2, return_mask=True)
    >>> F.max_unpool2d(y, mask, 2)
    Tensor([[[[0., 0.],
              [4., 0.]]]], dtype=float32)
    """
    return _max_unpool(x, indices, kernel_size, stride, padding, data_format, output_size, name, 2)


@documented_like(max_unpool2d, dims=1)
def max_unpool1d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
    data_format: str = "NCL", output_size: Any = None, name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 1-D max unpooling; see `max_unpool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> F = ol.nn.functional
    >>> y, mask = F.max_pool1d(ol.to_tensor([[[1.0, 3.0, 5.0, 2.0]]]), 2, return_mask=True)
    >>> F.max_unpool1d(y, mask, 2)
    Tensor([[[0., 3., 5., 0.]]], dtype=float32)
    """
    return _max_unpool(x, indices, kernel_size, stride, padding, data_format, output_size, name, 1)


@documented_like(max_unpool2d, dims=3)
def max_unpool3d(
    x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
    data_format: str = "NCDHW", output_size: Any = None, name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 3-D max unpooling; see `max_unpool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> F = ol.nn.functional
    >>> y, mask = F.max_pool3d(ol.ones([1, 1, 4, 4, 4]), 2, return_mask=True)
    >>> F.max_unpool3d(y, mask, 2).sum()
    Tensor(8., dtype=float32)
    """
    return _max_unpool(x, indices, kernel_size, stride, padding, data_format, output_size, name, 3)


def _max_unpool(
    x: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, data_format: str,
    output_size: Any, name: Any, dims: int,
) -> Tensor:  # fmt: skip
    call = f"max_unpool{dims}d"
    if data_format != windows.FORMATS[dims][0]:
        raise ValueError(
            f"{call} takes data_format={windows.FORMATS[dims][0]!r}; got {data_format!r}."
        )
    x, _ = checked_input(x, data_format, name, dims, call)
    kernel = windows.per_axis(kernel_size, dims, "kernel_size", call)
    steps = kernel if stride is None else windows.per_axis(stride, dims, "stride", call)
    pads = windows.per_axis(padding, dims, "padding", call, least=0)
    usual = tuple(
        (n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[2:], steps, pads, kernel, strict=True)
    )
    size = _size(output_size, usual, steps, dims, call)
    indices = given_with(raw(x), indices, "indices")
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{call}: indices are integers; got dtype {indices.dtype}.")
    if indices.shape != x.shape:
        raise ValueError(
            f"{call} takes an index for each element; got x of shape {x.shape} and indices of "
            f"shape {indices.shape}."
        )
    length = math.prod(size)
    indices = indices.reshape(*x.shape[:2], -1)
    if x.size:
        seen = members_of(indices)
        lowest, highest = int(np.min(seen)), int(np.max(seen))
        if lowest < 0 or highest >= length:
            raise ValueError(
                f"{call}: the indices of a result of {size} are 0 ... {length - 1}; got "
                f"{lowest} ... {highest}. Give its size as output_size."
            )
    flat = x.reshape(indices.shape)
    y: Tensor = apply(UNPOOL, (flat,), {"indices": indices, "length": length})
    return y.reshape((*x.shape[:2], *size))


def _size(
    output_size: Any, usual: Sequence[int], steps: Sequence[int], dims: int, call: str
) -> tuple[int, ...]:
    """Return the spatial size of the result; a given one must be near the default."""
    if output_size is None:
        if min(usual) < 1:
            raise ValueError(f"{call}: nothing is left of a result of {tuple(usual)}.")
        return tuple(usual)
    numbers = windows.as_integers(output_size)
    if numbers is None or len(numbers) not in (dims, dims + 2):
        raise ValueError(
            f"{call}: output_size is {dims} or {dims + 2} whole numbers; got {output_size!r}."
        )
    size = tuple(numbers[-dims:])
    for n, expected, step in zip(size, usual, steps, strict=True):
        if not max(expected - step, 0) < n < expected + step:
            raise ValueError(
                f"{call}: output_size {size} cannot have led to this pooling; each length must be "
                f"less than a stride of {tuple(steps)} away from {tuple(usual)}."
            )
    return size
