"""Transposed convolutions over one, two or three spatial axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.arrays import Shape
from optlab.nn.docstrings import documented_like
from optlab.nn.functional import windows
from optlab.nn.functional.conv.conv import arguments, check_bias, conv2d
from optlab.nn.functional.conv.rules import CONVOLUTION_INPUT


@documented_like(conv2d)
def conv2d_transpose(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, dilation: Any = 1, groups: int = 1, output_size: Any = None,
    data_format: str = "NCHW", name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 2-D transposed convolution, the gradient of `conv2d` with respect to its input.

    Every element of x adds the filter, times its value, to the result, `stride` apart. It enlarges
    images where a convolution with the same arguments shrinks them.

    Parameters
    ----------
    weight : Tensor of shape [C, O / groups, KH, KW]
    padding : int, list of int, list of pairs, 'SAME' or 'VALID'
        Cropping of the result, in the forms of `conv2d`. 'SAME' crops so that H' is H times the
        stride (for filters whose extent is at least the stride).
    output_padding : int or list of int
        Added to H' and W' at the end; less than the stride or less than the dilation.
    output_size : int or list of int, optional
        Output size [H', W'], in place of `output_padding`.

    Returns
    -------
    Tensor
        Of shape [N, O, H', W'] with H' = (H - 1) stride - padding + dilation (KH - 1) + 1 +
        output_padding.

    Notes
    -----
    Source: Zeiler et al. 2010 (there called deconvolution). Signature:
    paddle.nn.functional.conv2d_transpose, whose padding='SAME' gives other sizes where H is no
    multiple of the stride.

    Examples
    --------
    >>> import optlab as ol
    >>> F = ol.nn.functional
    >>> F.conv2d_transpose(ol.ones([1, 1, 2, 2]), ol.ones([1, 1, 2, 2]))
    Tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]], dtype=float32)
    >>> F.conv2d_transpose(ol.ones([1, 3, 7, 7]), ol.ones([3, 4, 4, 4]), stride=2, padding=1).shape
    (1, 4, 14, 14)
    """
    return _transposed(
        x, weight, bias, stride, padding, output_padding, dilation, groups, output_size,
        data_format, name, 2,
    )  # fmt: skip


@documented_like(conv2d_transpose, dims=1)
def conv1d_transpose(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1, output_size: Any = None,
    data_format: str = "NCL", name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 1-D transposed convolution; see `conv2d_transpose`.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([[[1.0, 10.0]]])
    >>> ol.nn.functional.conv1d_transpose(x, ol.ones([1, 1, 3]), stride=2)
    Tensor([[[ 1.,  1., 11., 10., 10.]]], dtype=float32)
    """
    return _transposed(
        x, weight, bias, stride, padding, output_padding, dilation, groups, output_size,
        data_format, name, 1,
    )  # fmt: skip


@documented_like(conv2d_transpose, dims=3)
def conv3d_transpose(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1, output_size: Any = None,
    data_format: str = "NCDHW", name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 3-D transposed convolution; see `conv2d_transpose`.

    Examples
    --------
    >>> import optlab as ol
    >>> x, weight = ol.ones([1, 1, 2, 2, 2]), ol.ones([1, 3, 2, 2, 2])
    >>> ol.nn.functional.conv3d_transpose(x, weight, stride=2).shape
    (1, 3, 4, 4, 4)
    """
    return _transposed(
        x, weight, bias, stride, padding, output_padding, dilation, groups, output_size,
        data_format, name, 3,
    )  # fmt: skip


# Shared by all of them --------------------------------------------------------------------------


def _transposed(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, dilation: Any,
    groups: Any, output_size: Any, data_format: str, name: Any, dims: int,
) -> Tensor:  # fmt: skip
    call = f"conv{dims}d_transpose"
    x, weight, bias, last = arguments(x, weight, bias, groups, data_format, name, dims, call)
    if weight.shape[0] != x.shape[1] or x.shape[1] % groups:
        raise ValueError(
            f"{call} got x with {x.shape[1]} channels ({data_format}), groups={groups} and weight "
            f"of shape {weight.shape}: weight is of shape [C, O / groups, ...], and C must be a "
            "multiple of groups."
        )
    check_bias(bias, weight.shape[1] * groups, call)
    stride = windows.per_axis(stride, dims, "stride", call)
    dilation = windows.per_axis(dilation, dims, "dilation", call)
    extent = windows.extents(weight.shape[2:], dilation)
    pads = windows.paddings(padding, dims, last, call)
    if isinstance(pads, str):
        cuts = [max(e - s, 0) for e, s in zip(extent, stride, strict=True)]
        pads = tuple((cut // 2, cut - cut // 2) for cut in cuts)
    least = tuple(
        (n - 1) * s - before - after + e
        for n, s, e, (before, after) in zip(x.shape[2:], stride, extent, pads, strict=True)
    )
    size = _output_size(least, stride, dilation, output_padding, output_size, dims, call)
    size, pads, unreached = _split_unreached(size, least, stride, pads)
    static = {
        "size": size, "stride": stride, "padding": pads, "dilation": dilation,
        "groups": int(groups),
    }  # fmt: skip
    y: Any = apply(CONVOLUTION_INPUT, (x, weight), static)
    if any(unreached):
        y = np.pad(y, ((0, 0), (0, 0), *((0, zeros) for zeros in unreached)))
    if bias is not None:
        y = y + bias.reshape((-1,) + (1,) * dims)
    return windows.channels_back(y, last)  # type: ignore[no-any-return]


def _output_size(
    least: Shape, stride: Shape, dilation: Shape, output_padding: Any, output_size: Any,
    dims: int, call: str,
) -> Shape:  # fmt: skip
    """Return the output size of a transposed convolution."""
    more = windows.per_axis(output_padding, dims, "output_padding", call, least=0)
    room, rule = stride, "less than the stride"
    if output_size is not None:
        if max(more):
            raise ValueError(f"{call} takes output_padding or output_size, not both.")
        size = windows.per_axis(output_size, dims, "output_size", call)
    else:
        size = tuple(n + m for n, m in zip(least, more, strict=True))
        room = tuple(max(pair) for pair in zip(stride, dilation, strict=True))
        rule += " or less than the dilation"
    for n, m, r in zip(size, least, room, strict=True):
        if n < 1 or not 0 <= n - m < r:
            raise ValueError(
                f"{call}: with these arguments the result may have from {least} to "
                f"{tuple(m + r - 1 for m, r in zip(least, room, strict=True))} elements along its "
                f"axes (output_padding is {rule}); asked for were {size}."
            )
    return size


def _split_unreached(
    size: Shape, least: Shape, stride: Shape, pads: windows.Pairs
) -> tuple[Shape, windows.Pairs, Shape]:
    """Split off the output positions that no filter reaches.

    They exist where a stride or more is added at the end, beyond the cropped positions, which are
    restored first. Returns the size without them, the padding and their number along each axis.
    """
    parts = []
    for n, m, s, (before, after) in zip(size, least, stride, pads, strict=True):
        more = n - m
        restored = min(more, after) if more >= s else 0
        zeros = more - restored if more - restored >= s else 0
        parts.append((n - zeros, (before, after - restored), zeros))
    sizes, padding, unreached = zip(*parts, strict=True)
    return sizes, padding, unreached
