"""Adaptive pooling: the output size is given, whatever the size of the input."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.pooling.pooling import checked_input, max_pooled
from optlab.nn.functional.pooling.rules import AVERAGE_POOL
from optlab.nn.functional.windows import FORMATS, Windows, adaptive, channels_back, per_axis


def adaptive_avg_pool2d(
    x: Any, output_size: Any, data_format: str = "NCHW", name: None = None
) -> Tensor:
    """Apply 2-D adaptive average pooling: windows of nearly equal size that cover the image.

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W]
    output_size : int or list of (int or None)
        Output size n, m; None keeps the length of the axis. The i-th of n windows spans
        floor(i H / n) to ceil((i + 1) H / n), so that neighbors may overlap.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Returns
    -------
    Tensor
        Of shape [N, C, n, m].

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.arange(9.0).reshape([1, 1, 3, 3])
    >>> ol.nn.functional.adaptive_avg_pool2d(x, 2)
    Tensor([[[[2., 3.],
              [5., 6.]]]], dtype=float32)
    """
    return _adaptive_avg_pool(x, output_size, data_format, name, 2)


@documented_like(adaptive_avg_pool2d, dims=1)
def adaptive_avg_pool1d(x: Any, output_size: Any, name: None = None) -> Tensor:
    """Apply 1-D adaptive average pooling; see `adaptive_avg_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.adaptive_avg_pool1d(ol.to_tensor([[[1.0, 3.0, 2.0, 5.0]]]), 1)
    Tensor([[[2.75]]], dtype=float32)
    """
    return _adaptive_avg_pool(x, output_size, "NCL", name, 1)


@documented_like(adaptive_avg_pool2d, dims=3)
def adaptive_avg_pool3d(
    x: Any, output_size: Any, data_format: str = "NCDHW", name: None = None
) -> Tensor:
    """Apply 3-D adaptive average pooling; see `adaptive_avg_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.adaptive_avg_pool3d(ol.ones([1, 2, 5, 5, 5]), 1).shape
    (1, 2, 1, 1, 1)
    """
    return _adaptive_avg_pool(x, output_size, data_format, name, 3)


@documented_like(adaptive_avg_pool2d)
def adaptive_max_pool2d(
    x: Any, output_size: Any, return_mask: bool = False, name: None = None
) -> Any:
    """Apply 2-D adaptive max pooling.

    Parameters
    ----------
    return_mask : bool
        Also return the indices of the maxima, counted row by row within each image.

    Returns
    -------
    Tensor, or (Tensor, Tensor of int64) with `return_mask`
        Of shape [N, C, n, m].

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.arange(9.0).reshape([1, 1, 3, 3])
    >>> ol.nn.functional.adaptive_max_pool2d(x, 2)
    Tensor([[[[4., 5.],
              [7., 8.]]]], dtype=float32)
    """
    return _adaptive_max_pool(x, output_size, return_mask, name, 2)


@documented_like(adaptive_max_pool2d, dims=1)
def adaptive_max_pool1d(
    x: Any, output_size: Any, return_mask: bool = False, name: None = None
) -> Any:
    """Apply 1-D adaptive max pooling; see `adaptive_max_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.adaptive_max_pool1d(ol.to_tensor([[[1.0, 3.0, 2.0, 5.0]]]), 2)
    Tensor([[[3., 5.]]], dtype=float32)
    """
    return _adaptive_max_pool(x, output_size, return_mask, name, 1)


@documented_like(adaptive_max_pool2d, dims=3)
def adaptive_max_pool3d(
    x: Any, output_size: Any, return_mask: bool = False, name: None = None
) -> Any:
    """Apply 3-D adaptive max pooling; see `adaptive_max_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.adaptive_max_pool3d(ol.ones([1, 2, 5, 5, 5]), 1).shape
    (1, 2, 1, 1, 1)
    """
    return _adaptive_max_pool(x, output_size, return_mask, name, 3)


# Shared by all of them --------------------------------------------------------------------------


def _windows(x: Tensor, output_size: Any, dims: int, call: str) -> tuple[Windows, ...]:
    counts = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * dims
    if len(counts) == dims:
        counts = [n if c is None else c for c, n in zip(counts, x.shape[2:], strict=True)]
    counts = list(per_axis(counts, dims, "output_size", call))
    return tuple(adaptive(n, c) for n, c in zip(x.shape[2:], counts, strict=True))


def _adaptive_avg_pool(x: Any, output_size: Any, data_format: str, name: Any, dims: int) -> Tensor:
    call = f"adaptive_avg_pool{dims}d"
    x, last = checked_input(x, data_format, name, dims, call)
    windows = _windows(x, output_size, dims, call)
    y = apply(AVERAGE_POOL, (x,), {"windows": windows, "divisor": "inside"})
    return channels_back(y, last)  # type: ignore[no-any-return]


def _adaptive_max_pool(x: Any, output_size: Any, return_mask: Any, name: Any, dims: int) -> Any:
    call = f"adaptive_max_pool{dims}d"
    x, last = checked_input(x, FORMATS[dims][0], name, dims, call)
    return max_pooled(x, _windows(x, output_size, dims, call), return_mask, last, call)
