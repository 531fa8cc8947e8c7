"""Patches of images (im2col, col2im) and shuffles of pixels and channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.nn.docstrings import documented_like
from optlab.nn.functional import windows
from optlab.nn.functional.arguments import no_name, scores
from optlab.nn.functional.conv.rules import FOLDED, UNFOLDED


def unfold(
    x: Any, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0, dilations: Any = 1,
    name: None = None,
) -> Tensor:  # fmt: skip
    """Extract sliding patches of images as columns (im2col).

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W]
    kernel_sizes : int or list of int
        Size of a patch.
    strides : int or list of int
        Step from one patch to the next.
    paddings : int or list of int
        Zero padding: one number, ``[height, width]`` or ``[top, left, bottom, right]``.
    dilations : int or list of int
        Spacing between the elements of a patch.

    Returns
    -------
    Tensor
        Of shape [N, C KH KW, L] with L patches, row by row.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Notes
    -----
    Signature: paddle.nn.functional.unfold.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.unfold(ol.arange(9.0).reshape([1, 1, 3, 3]), [2, 2])
    Tensor([[[0., 1., 3., 4.],
             [1., 2., 4., 5.],
             [3., 4., 6., 7.],
             [4., 5., 7., 8.]]], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    windows.check_axes(x, 2, "NCHW", "unfold")
    static, _ = _patches(x.shape[2:], kernel_sizes, strides, paddings, dilations, "unfold")
    return apply(UNFOLDED, (x,), static)


@documented_like(unfold)
def fold(
    x: Any, output_sizes: Any, kernel_sizes: Any, strides: Any = 1, paddings: Any = 0,
    dilations: Any = 1, name: None = None,
) -> Tensor:  # fmt: skip
    """Add patches to where `unfold` read them (col2im); overlaps add up.

    Parameters
    ----------
    x : Tensor of shape [N, C KH KW, L]
    output_sizes : int or list of int
        Size [H, W] of the images.

    Returns
    -------
    Tensor
        Of shape [N, C, H, W].

    Raises
    ------
    ValueError
        If an argument is invalid, or the number of patches does not fit.

    Notes
    -----
    Signature: paddle.nn.functional.fold.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.fold(ol.ones([1, 4, 4]), [3, 3], [2, 2])
    Tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    size = windows.per_axis(output_sizes, 2, "output_sizes", "fold")
    static, count = _patches(size, kernel_sizes, strides, paddings, dilations, "fold")
    area = math.prod(static["kernel"])
    if x.ndim != 3 or x.shape[1] % area or x.shape[2] != count:
        raise ValueError(
            f"fold into {size} takes x of shape [N, C * {area}, {count}] (patches of {area} "
            f"elements, {count} of them); got {x.shape}."
        )
    return apply(FOLDED, (x,), {"size": size, **static})


def _patches(
    size: tuple[int, ...], kernel: Any, strides: Any, paddings: Any, dilations: Any, call: str
) -> tuple[dict[str, Any], int]:
    """Return the static arguments of the operation, and the number of patches."""
    kernel = windows.per_axis(kernel, 2, "kernel_sizes", call)
    stride = windows.per_axis(strides, 2, "strides", call)
    dilation = windows.per_axis(dilations, 2, "dilations", call)
    sides = windows.as_integers(paddings)
    if sides is not None and len(sides) == 4:
        pads: windows.Pairs = ((sides[0], sides[2]), (sides[1], sides[3]))
    else:
        pads = tuple((n, n) for n in windows.per_axis(paddings, 2, "paddings", call, least=0))
    if min(map(min, pads)) < 0:
        raise ValueError(f"{call}: paddings are never negative; got {paddings!r}.")
    found = windows.outputs(size, windows.extents(kernel, dilation), stride, pads, call)
    static = {"kernel": kernel, "stride": stride, "padding": pads, "dilation": dilation}
    return static, math.prod(found)


def pixel_shuffle(
    x: Any, upscale_factor: int, data_format: str = "NCHW", name: None = None
) -> Tensor:
    """Apply pixel shuffle: rearrange r x r channels into one, r times as high and wide.

    Parameters
    ----------
    x : Tensor of shape [N, C r r, H, W]
    upscale_factor : int
        Factor r of height and width.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Returns
    -------
    Tensor
        Of shape [N, C, H r, W r].

    Raises
    ------
    ValueError
        If the number of channels is no multiple of r r, or an argument is invalid.

    Notes
    -----
    Source: Shi et al. 2016. Signature: paddle.nn.functional.pixel_shuffle.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.pixel_shuffle(ol.arange(4.0).reshape([1, 4, 1, 1]), 2)
    Tensor([[[[0., 1.],
              [2., 3.]]]], dtype=float32)
    """
    x, last, (r, _) = _check_shuffle(x, upscale_factor, data_format, name, "pixel_shuffle")
    n, c, h, w = x.shape
    if c % (r * r):
        raise ValueError(f"pixel_shuffle needs a multiple of {r * r} channels; got {c}.")
    x = x.reshape((n, c // (r * r), r, r, h, w))
    y = np.transpose(x, (0, 1, 4, 2, 5, 3)).reshape((n, c // (r * r), h * r, w * r))
    return windows.channels_back(y, last)  # type: ignore[no-any-return]


def pixel_unshuffle(
    x: Any, downscale_factor: int, data_format: str = "NCHW", name: None = None
) -> Tensor:
    """Apply pixel unshuffle: the inverse of `pixel_shuffle`.

    Parameters
    ----------
    x : Tensor of shape [N, C, H r, W r]
    downscale_factor : int
        Divisor r of height and width.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Raises
    ------
    ValueError
        If height or width is no multiple of r, or an argument is invalid.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.pixel_unshuffle(ol.ones([1, 1, 4, 6]), 2).shape
    (1, 4, 2, 3)
    """
    x, last, (r, _) = _check_shuffle(x, downscale_factor, data_format, name, "pixel_unshuffle")
    n, c, h, w = x.shape
    if h % r or w % r:
        raise ValueError(
            f"pixel_unshuffle needs a height and width of multiples of {r}; got {h, w}."
        )
    x = x.reshape((n, c, h // r, r, w // r, r))
    y = np.transpose(x, (0, 1, 3, 5, 2, 4)).reshape((n, c * r * r, h // r, w // r))
    return windows.channels_back(y, last)  # type: ignore[no-any-return]


def _check_shuffle(x: Any, factor: Any, data_format: str, name: Any, call: str) -> Any:
    """Check the arguments; return x with its channels on axis 1, where they were, the factor."""
    no_name(name)
    last = windows.is_channels_last(data_format, 2, call)
    x = scores(x)
    windows.check_axes(x, 2, data_format, call)
    if isinstance(factor, (list, tuple)):
        raise ValueError(f"{call} takes one whole number as its factor; got {factor!r}.")
    factors = windows.per_axis(factor, 2, "the factor", call)
    return windows.channels_second(x, last), last, factors


def channel_shuffle(x: Any, groups: int, data_format: str = "NCHW", name: None = None) -> Tensor:
    """Apply channel shuffle: the first channel of every group, then the second of every group, ...

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W]
    groups : int
        Number of groups of the channels.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Raises
    ------
    ValueError
        If the number of channels is no multiple of `groups`, or an argument is invalid.

    Notes
    -----
    Source: Zhang et al. 2018. Signature: paddle.nn.functional.channel_shuffle.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.channel_shuffle(ol.arange(6.0).reshape([1, 6, 1, 1]), 3).ravel()
    Tensor([0., 2., 4., 1., 3., 5.], dtype=float32)
    """
    x, last, (count, _) = _check_shuffle(x, groups, data_format, name, "channel_shuffle")
    n, c, h, w = x.shape
    if c % count:
        raise ValueError(f"channel_shuffle needs a multiple of {count} channels; got {c}.")
    turned = np.swapaxes(x.reshape((n, count, c // count, h, w)), 1, 2)
    return windows.channels_back(turned.reshape((n, c, h, w)), last)  # type: ignore[no-any-return]
