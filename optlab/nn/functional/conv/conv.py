"""Convolutions over one, two or three spatial axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.arrays import as_array
from optlab.backend.dtypes import is_floating
from optlab.nn.docstrings import documented_like
from optlab.nn.functional import windows
from optlab.nn.functional.affine import cast_to_weight
from optlab.nn.functional.arguments import no_name
from optlab.nn.functional.conv.rules import BIASED_CONVOLUTION, CONVOLUTION


def conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCHW", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply 2-D convolution.

    .. math::
        y_{n,o,i,j} = b_o + \sum_{c,k,l} w_{o,c,k,l}\,
        x_{n,\,c,\,i s + k d - p,\,j s + l d - p}

    with stride s, dilation d and zero padding p. (As usual in deep learning the filter is not
    mirrored: mathematically this is cross-correlation.)

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W]
        Cast to the dtype of `weight`, with a warning the first time this narrows it.
    weight : Tensor of shape [O, C / groups, KH, KW]
    bias : Tensor of shape [O], optional
    stride : int or list of int
        Step of the filter.
    padding : int, list of int, list of pairs, 'SAME' or 'VALID'
        Zero padding: one number, one per axis, before and after each axis
        ``[top, bottom, left, right]``, or a pair for every axis of x with ``[0, 0]`` for
        batch and channels. 'VALID' is none; 'SAME' yields ceil(H / stride) outputs, with the odd
        zero at the end.
    dilation : int or list of int
        Spacing between the elements of the filter.
    groups : int
        Number of channel groups, each with its own filters; must divide C and O.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis, in x and in the result.

    Returns
    -------
    Tensor
        Of shape [N, O, H', W'] with H' = floor((H + padding - d (KH - 1) - 1) / s) + 1.

    Raises
    ------
    ValueError
        If the shapes do not fit, or an argument is invalid.

    Notes
    -----
    Computed as matrix products over patches (im2col; Chellapilla et al. 2006), for as many images
    at a time as fit in the cache, on as many cores as products use (`optlab.set_blas_threads`); the
    bits do not depend on their number. The columns are recomputed in the backward pass: only `x`
    and `weight` are saved. Sums of float16 are accumulated in float32. The result is laid out in
    memory as [O, N, H', W']; with NaN or infinity in x a gradient of the weight may hold NaN in
    more places than the formula does.

    Source: LeCun et al. 1989. Signature: paddle.nn.functional.conv2d, whose padding='SAME' however
    drops the dilation.

    Examples
    --------
    >>> import optlab as ol
    >>> F = ol.nn.functional
    >>> x = ol.arange(9.0).reshape([1, 1, 3, 3])
    >>> F.conv2d(x, ol.ones([1, 1, 2, 2]))
    Tensor([[[[ 8., 12.],
              [20., 24.]]]], dtype=float32)
    >>> F.conv2d(x, ol.ones([4, 1, 3, 3]), padding="SAME", stride=2).shape
    (1, 4, 2, 2)
    """
    return _convolution(x, weight, bias, stride, padding, dilation, groups, data_format, name, 2)


@documented_like(conv2d, dims=1)
def conv1d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCL", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply 1-D convolution; see `conv2d`.

    .. math:: y_{n,o,i} = b_o + \sum_{c,k} w_{o,c,k}\, x_{n,c,\,i s + k d - p}

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([[[1.0, 2.0, 4.0, 8.0]]])
    >>> ol.nn.functional.conv1d(x, ol.to_tensor([[[-1.0, 1.0]]]))
    Tensor([[[1., 2., 4.]]], dtype=float32)
    """
    return _convolution(x, weight, bias, stride, padding, dilation, groups, data_format, name, 1)


@documented_like(conv2d, dims=3)
def conv3d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, data_format: str = "NCDHW", name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 3-D convolution; see `conv2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.conv3d(ol.ones([1, 2, 4, 4, 4]), ol.ones([3, 2, 2, 2, 2])).shape
    (1, 3, 3, 3, 3)
    """
    return _convolution(x, weight, bias, stride, padding, dilation, groups, data_format, name, 3)


# Shared by all of them --------------------------------------------------------------------------


def arguments(
    x: Any, weight: Any, bias: Any, groups: Any, data_format: str, name: Any, dims: int, call: str
) -> tuple[Tensor, Tensor, Any, bool]:
    """Check the arguments; return x with its channels on axis 1 in the dtype of the weights."""
    no_name(name)
    last = windows.is_channels_last(data_format, dims, call)
    if not isinstance(weight, Tensor):
        weight = Tensor(as_array(weight))
    if not is_floating(weight.dtype):
        raise TypeError(f"{call} takes weights of floating numbers; got {weight.dtype}.")
    x = cast_to_weight(x, weight)
    windows.check_axes(x, dims, data_format, call)
    if weight.ndim != dims + 2:
        raise ValueError(f"{call} takes weight of {dims + 2} axes; got shape {weight.shape}.")
    if not isinstance(groups, (int, np.integer)) or isinstance(groups, bool) or groups < 1:
        raise ValueError(f"{call}: groups is a whole number of at least 1; got {groups!r}.")
    if bias is not None:
        bias = cast_to_weight(bias, weight)
    return windows.channels_second(x, last), weight, bias, last


def check_bias(bias: Any, filters: int, call: str) -> None:
    """Check that a bias has one number for each output channel."""
    if bias is not None and bias.shape != (filters,):
        raise ValueError(
            f"{call} takes a bias of shape ({filters},), one number for each channel of the "
            f"result; got shape {bias.shape}."
        )


def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any,
    data_format: str, name: Any, dims: int,
) -> Tensor:  # fmt: skip
    call = f"conv{dims}d"
    x, weight, bias, last = arguments(x, weight, bias, groups, data_format, name, dims, call)
    channels, filters = x.shape[1], weight.shape[0]
    if channels % groups or weight.shape[1] * groups != channels:
        raise ValueError(
            f"{call} got x with {channels} channels ({data_format}), groups={groups} and weight of "
            f"shape {weight.shape}: weight is of shape [O, C / groups, ...], so x must have "
            f"{weight.shape[1] * groups} channels."
        )
    if filters % groups:
        raise ValueError(f"{call}: {filters} filters cannot be cut into {groups} equal groups.")
    check_bias(bias, filters, call)
    stride = windows.per_axis(stride, dims, "stride", call)
    dilation = windows.per_axis(dilation, dims, "dilation", call)
    extent = windows.extents(weight.shape[2:], dilation)
    pads = windows.paddings(padding, dims, last, call)
    if isinstance(pads, str):
        pads = windows.same_padding(x.shape[2:], extent, stride)
    windows.outputs(x.shape[2:], extent, stride, pads, call)
    static = {"stride": stride, "padding": pads, "dilation": dilation, "groups": int(groups)}
    if bias is None:
        y = apply(CONVOLUTION, (x, weight), static)
    else:
        y = apply(BIASED_CONVOLUTION, (x, weight, bias), static)
    return windows.channels_back(y, last)  # type: ignore[no-any-return]
