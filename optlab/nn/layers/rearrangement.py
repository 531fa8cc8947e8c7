"""Padding, patches and the shuffling of pixels as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.functional.windows import per_axis
from optlab.nn.layers.configured import Unary


def padding_per_side(padding: Any, dims: int, call: str) -> list[int]:
    """Read one number for all sides, or one a side."""
    return list(per_axis(padding, 2 * dims, "padding", call, least=0))


def pad_spatial_axes(layer: Any, x: Any, **options: Any) -> Tensor:
    """Put elements around `x`, along as many axes of space as the layer is for."""
    padding = padding_per_side(layer.padding, layer._dims, type(layer).__name__)
    return functional.pad(x, padding, data_format=layer.data_format, **options)


class _Pad(Unary, settings=True):
    """What the layers have in common that pad axes of space."""

    #: How many axes of space there are.
    _dims: ClassVar[int]

    padding: Any
    mode: str = "constant"
    value: float = 0.0
    data_format: str = "NCHW"
    name: str | None = None

    def forward(self, x: Any) -> Tensor:
        """Put elements around `x`."""
        return pad_spatial_axes(self, x, mode=self.mode, value=self.value)


class _ZeroPad(Unary, settings=True):
    """What the layers have in common that pad with zeros."""

    _dims: ClassVar[int]

    padding: Any
    data_format: str = "NCHW"
    name: str | None = None

    def forward(self, x: Any) -> Tensor:
        """Put zeros around `x`."""
        return pad_spatial_axes(self, x)


class Pad1D(_Pad, function=functional.pad):
    """Put elements around sequences.

    Parameters
    ----------
    padding : int or list of int
        One number for all sides, or ``[left, right]``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad1D(1)(ol.ones([1, 2, 8])).shape
    (1, 2, 10)
    """

    _dims = 1
    data_format: str = "NCL"


class Pad2D(_Pad, function=functional.pad):
    """Put elements around images.

    Parameters
    ----------
    padding : int or list of int
        One number for all sides, or ``[left, right, top, bottom]``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad2D(1)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 10, 10)
    """

    _dims = 2


class Pad3D(_Pad, function=functional.pad):
    """Put elements around volumes.

    Parameters
    ----------
    padding : int or list of int
        One number for all sides, or ``[left, right, top, bottom, front, back]``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad3D(1)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 6, 6, 6)
    """

    _dims = 3
    data_format: str = "NCDHW"


class ZeroPad2D(Unary, function=functional.zeropad2d):
    """Put zeros around images.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ZeroPad2D([1, 0, 2, 1])(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 11, 9)
    """

    padding: Any
    data_format: str = "NCHW"
    name: str | None = None


class Unfold(Unary, function=functional.unfold):
    """Cut images into patches, one a column.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Unfold(2)(ol.ones([1, 2, 3, 4])).shape
    (1, 8, 6)
    """

    kernel_sizes: Any
    dilations: Any = 1
    paddings: Any = 0
    strides: Any = 1
    name: str | None = None


class Fold(Unary, function=functional.fold):
    """Put patches back where `Unfold` took them from; where they overlap, they add up.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Fold([3, 4], 2)(ol.ones([1, 8, 6])).shape
    (1, 2, 3, 4)
    """

    output_sizes: Any
    kernel_sizes: Any
    dilations: Any = 1
    paddings: Any = 0
    strides: Any = 1
    name: str | None = None


class PixelShuffle(Unary, function=functional.pixel_shuffle):
    """Turn channels into places: every r x r channels make one.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.PixelShuffle(2)(ol.ones([1, 8, 3, 4])).shape
    (1, 2, 6, 8)
    """

    upscale_factor: int
    data_format: str = "NCHW"
    name: str | None = None


class PixelUnshuffle(Unary, function=functional.pixel_unshuffle):
    """Turn places into channels: the inverse of `PixelShuffle`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.PixelUnshuffle(2)(ol.ones([1, 2, 6, 8])).shape
    (1, 8, 3, 4)
    """

    downscale_factor: int
    data_format: str = "NCHW"
    name: str | None = None


class ZeroPad1D(_ZeroPad, function=functional.pad):
    """Put zeros around sequences.

    Parameters
    ----------
    padding : int or list of int
        One number for all sides, or ``[left, right]``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ZeroPad1D(1)(ol.ones([1, 2, 8])).shape
    (1, 2, 10)
    """

    _dims = 1
    data_format: str = "NCL"


class ZeroPad3D(_ZeroPad, function=functional.pad):
    """Put zeros around volumes.

    Parameters
    ----------
    padding : int or list of int
        One number for all sides, or ``[left, right, top, bottom, front, back]``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ZeroPad3D(1)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 6, 6, 6)
    """

    _dims = 3
    data_format: str = "NCDHW"


class ChannelShuffle(Unary, function=functional.channel_shuffle):
    """Put channels in turns: the first of every group, then the second of every group, and so on.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ChannelShuffle(3)(ol.arange(6.0).reshape([1, 6, 1, 1])).ravel().tolist()
    [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]
    """

    groups: int
    data_format: str = "NCHW"
    name: str | None = None
