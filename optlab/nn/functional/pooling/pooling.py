"""Max and average pooling."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tensor.conversions import is_tracked
from optlab.autograd.tensor.tensor import Tensor, apply, apply_several
from optlab.backend.arrays import as_float
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.arguments import as_bool, no_name, scores, setting_beside
from optlab.nn.functional.pooling.indices import MAX_POOL_WITH_INDICES, are_small
from optlab.nn.functional.pooling.rules import AVERAGE_POOL, MAX_POOL, max_indices
from optlab.nn.functional.windows import (
    Windows,
    channels_back,
    channels_second,
    check_axes,
    is_channels_last,
    outputs,
    paddings,
    per_axis,
    same_padding,
    sliding,
)


def max_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
    ceil_mode: bool = False, data_format: str = "NCHW", name: None = None,
) -> Any:  # fmt: skip
    """Apply 2-D max pooling.

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W]
    kernel_size : int or list of int
        Size of the window.
    stride : int or list of int, optional
        Step of the window; by default `kernel_size`, so that windows do not overlap.
    padding : int, list of int, list of pairs, 'SAME' or 'VALID'
        Implicit padding of -infinity, in the forms of `conv2d`; less than `kernel_size`.
    return_mask : bool
        Also return the indices of the maxima, counted row by row within each image.
    ceil_mode : bool
        Whether a last window that starts before the end may extend past it: the only one too, so
        that a window may be larger than x, by less than the stride.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Returns
    -------
    Tensor, or (Tensor, Tensor of int64) with `return_mask`
        Of shape [N, C, H', W'] with H' = floor((H + padding - kernel) / stride) + 1, rounded up
        with `ceil_mode`.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Notes
    -----
    Of equal maxima of a window the first one, row by row, gets the gradient. The backward pass
    searches the saved input and output again; of small windows only the indices are saved.

    Source: Riesenhuber and Poggio 1999. Signature: paddle.nn.functional.max_pool2d.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.arange(16.0).reshape([1, 1, 4, 4])
    >>> ol.nn.functional.max_pool2d(x, 2)
    Tensor([[[[ 5.,  7.],
              [13., 15.]]]], dtype=float32)
    """
    return _max_pool(x, kernel_size, stride, padding, return_mask, ceil_mode, data_format, name, 2)


@documented_like(max_pool2d, dims=1)
def max_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
    ceil_mode: bool = False, name: None = None,
) -> Any:  # fmt: skip
    """Apply 1-D max pooling; see `max_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.max_pool1d(ol.to_tensor([[[1.0, 3.0, 2.0, 5.0]]]), 2)
    Tensor([[[3., 5.]]], dtype=float32)
    """
    return _max_pool(x, kernel_size, stride, padding, return_mask, ceil_mode, "NCL", name, 1)


@documented_like(max_pool2d, dims=3)
def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
    ceil_mode: bool = False, data_format: str = "NCDHW", name: None = None,
) -> Any:  # fmt: skip
    """Apply 3-D max pooling; see `max_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.max_pool3d(ol.ones([1, 1, 4, 4, 4]), 2).shape
    (1, 1, 2, 2, 2)
    """
    return _max_pool(x, kernel_size, stride, padding, return_mask, ceil_mode, data_format, name, 3)


@documented_like(max_pool2d)
def avg_pool2d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    exclusive: bool = True, divisor_override: Any = None, data_format: str = "NCHW",
    name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 2-D average pooling.

    Parameters
    ----------
    padding : int, list of int, list of pairs, 'SAME' or 'VALID'
        Zero padding, in the forms of `conv2d`; less than `kernel_size`.
    exclusive : bool
        Whether padding is excluded from the number of elements that divides the sum.
    divisor_override : float, optional
        Divisor in place of the number of elements.

    Returns
    -------
    Tensor
        Of shape [N, C, H', W'], as for `max_pool2d`.

    Notes
    -----
    Nothing is saved for the backward pass. Source: LeCun et al. 1989 (there called subsampling).
    Signature: paddle.nn.functional.avg_pool2d.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.arange(16.0).reshape([1, 1, 4, 4])
    >>> ol.nn.functional.avg_pool2d(x, 2)
    Tensor([[[[ 2.5,  4.5],
              [10.5, 12.5]]]], dtype=float32)
    """
    return _avg_pool(
        x, kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format,
        name, 2,
    )  # fmt: skip


@documented_like(avg_pool2d, dims=1)
def avg_pool1d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, exclusive: bool = True,
    ceil_mode: bool = False, name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 1-D average pooling; see `avg_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.avg_pool1d(ol.to_tensor([[[1.0, 3.0, 2.0, 5.0]]]), 2)
    Tensor([[[2. , 3.5]]], dtype=float32)
    """
    return _avg_pool(x, kernel_size, stride, padding, ceil_mode, exclusive, None, "NCL", name, 1)


@documented_like(avg_pool2d, dims=3)
def avg_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    exclusive: bool = True, divisor_override: Any = None, data_format: str = "NCDHW",
    name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 3-D average pooling; see `avg_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.avg_pool3d(ol.ones([1, 1, 4, 4, 4]), 2).shape
    (1, 1, 2, 2, 2)
    """
    return _avg_pool(
        x, kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format,
        name, 3,
    )  # fmt: skip


# Shared by all of them --------------------------------------------------------------------------


def checked_input(x: Any, data_format: str, name: Any, dims: int, call: str) -> tuple[Tensor, bool]:
    """Check the input of a pooling; return it with its channels on axis 1, and where they were."""
    no_name(name)
    last = is_channels_last(data_format, dims, call)
    x = scores(x)
    check_axes(x, dims, data_format, call)
    if 0 in x.shape[1:]:
        raise ValueError(f"{call} needs something to pool; got shape {x.shape}.")
    return channels_second(x, last), last


def _sliding_windows(
    x: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any, last: bool, dims: int,
    call: str,
) -> tuple[Windows, ...]:  # fmt: skip
    kernel = per_axis(kernel_size, dims, "kernel_size", call)
    steps = kernel if stride is None else per_axis(stride, dims, "stride", call)
    pads = paddings(padding, dims, last, call)
    size = x.shape[2:]
    if isinstance(pads, str):
        pads = same_padding(size, kernel, steps)
    for k, pair in zip(kernel, pads, strict=True):
        if max(pair) >= k:
            raise ValueError(
                f"{call}: padding {pads} must be less than the window of {kernel}, or some windows "
                "would hold nothing but padding."
            )
    ceil = as_bool(ceil_mode, "ceil_mode", call)
    windows = tuple(
        sliding(n, k, s, pair, ceil)
        for n, k, s, pair in zip(size, kernel, steps, pads, strict=True)
    )
    if min(one.count for one in windows) < 1:
        outputs(size, kernel, steps, pads, call)  # raises
    return windows


def max_pooled(
    x: Tensor, windows: tuple[Windows, ...], return_mask: Any, last: bool, call: str
) -> Any:
    """Apply max pooling with the given windows; return the indices too if `return_mask`."""
    if x.node is not None and recording.on and are_small(windows):
        y = apply_several(MAX_POOL_WITH_INDICES, (x,), {"windows": windows})[0]
    else:
        y = apply(MAX_POOL, (x,), {"windows": windows})
    if not as_bool(return_mask, "return_mask", call):
        return channels_back(y, last)
    mask = Tensor(max_indices(x.data, y.data, windows))
    return channels_back(y, last), channels_back(mask, last)


def _max_pool(
    x: Any, kernel_size: Any, stride: Any, padding: Any, return_mask: Any, ceil_mode: Any,
    data_format: str, name: Any, dims: int,
) -> Any:  # fmt: skip
    call = f"max_pool{dims}d"
    x, last = checked_input(x, data_format, name, dims, call)
    windows = _sliding_windows(x, kernel_size, stride, padding, ceil_mode, last, dims, call)
    return max_pooled(x, windows, return_mask, last, call)


def _avg_pool(
    x: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any, exclusive: Any,
    divisor_override: Any, data_format: str, name: Any, dims: int,
) -> Tensor:  # fmt: skip
    call = f"avg_pool{dims}d"
    x, last = checked_input(x, data_format, name, dims, call)
    windows = _sliding_windows(x, kernel_size, stride, padding, ceil_mode, last, dims, call)
    divisor: str | float = "inside" if as_bool(exclusive, "exclusive", call) else "padded"
    if divisor_override is not None:
        divisor = as_float(divisor_override, "divisor_override")
        if divisor == 0:
            raise ValueError(f"{call}: divisor_override divides, so it cannot be 0.")
    tracked = is_tracked(divisor_override)
    y = apply(AVERAGE_POOL, (x,), {"windows": windows, "divisor": 1.0 if tracked else divisor})
    if tracked:
        y = y / setting_beside(x, divisor_override, "divisor_override")
    return channels_back(y, last)  # type: ignore[no-any-return]
