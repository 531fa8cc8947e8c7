"""Layers of padding, patches and shuffled pixels."""

from __future__ import annotations

from typing import Any, ClassVar

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.functional.windows import per_axis
from optlab.nn.layers.configured import Unary


def padding_per_side(padding: Any, dims: int, call: str) -> list[int]:
    """Return one number for each side, from one for all or a list."""
    return list(per_axis(padding, 2 * dims, "padding", call, least=0))


def pad_spatial_axes(layer: Any, x: Any, **options: Any) -> Tensor:
    """Pad the spatial axes of `x` for a layer."""
    padding = padding_per_side(layer.padding, layer._dims, type(layer).__name__)
    return functional.pad(x, padding, data_format=layer.data_format, **options)


class _Pad(Unary, settings=True):
    """Base class of padding layers."""

    #: Number of spatial axes.
    _dims: ClassVar[int]

    padding: Any
    mode: str = "constant"
    value: float = 0.0
    data_format: str = "NCHW"
    name: str | None = None

    def forward(self, x: Any) -> Tensor:
        """Pad the spatial axes of `x`, as `mode` says."""
        return pad_spatial_axes(self, x, mode=self.mode, value=self.value)


class _ZeroPad(Unary, settings=True):
    """Base class of zero padding layers."""

    _dims: ClassVar[int]

    padding: Any
    data_format: str = "NCHW"
    name: str | None = None

    def forward(self, x: Any) -> Tensor:
        """Pad the spatial axes of `x` with zeros."""
        return pad_spatial_axes(self, x)


class Pad1D(_Pad, function=functional.pad):
    """Pad sequences.

    Parameters
    ----------
    padding : int or list of int
        Padding of all sides, or ``[left, right]``.
    data_format : {'NCL', 'NLC'}
        Position of the channel axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad1D(1)(ol.ones([1, 2, 8])).shape
    (1, 2, 10)
    """

    _dims = 1
    data_format: str = "NCL"


class Pad2D(_Pad, function=functional.pad):
    """Pad images.

    Parameters
    ----------
    padding : int or list of int
        Padding of all sides, or ``[left, right, top, bottom]``.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad2D(1)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 10, 10)
    """

    _dims = 2


class Pad3D(_Pad, function=functional.pad):
    """Pad volumes.

    Parameters
    ----------
    padding : int or list of int
        Padding of all sides, or ``[left, right, top, bottom, front, back]``.
    data_format : {'NCDHW', 'NDHWC'}
        Position of the channel axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad3D(1)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 6, 6, 6)
    """

    _dims = 3
    data_format: str = "NCDHW"


class ZeroPad2D(Unary, function=functional.zeropad2d):
    """Pad images with zeros.

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
    """Extract patches of images, one per column (im2col).

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
    """Sum patches at the positions where `Unfold` extracts them (col2im).

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
    """Rearrange r x r channels into one with r times the height and width.

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
    """Rearrange blocks of r x r pixels into channels: the inverse of `PixelShuffle`.

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
    """Pad sequences with zeros.

    Parameters
    ----------
    padding : int or list of int
        Padding of all sides, or ``[left, right]``.
    data_format : {'NCL', 'NLC'}
        Position of the channel axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ZeroPad1D(1)(ol.ones([1, 2, 8])).shape
    (1, 2, 10)
    """

    _dims = 1
    data_format: str = "NCL"


class ZeroPad3D(_ZeroPad, function=functional.pad):
    """Pad volumes with zeros.

    Parameters
    ----------
    padding : int or list of int
        Padding of all sides, or ``[left, right, top, bottom, front, back]``.
    data_format : {'NCDHW', 'NDHWC'}
        Position of the channel axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ZeroPad3D(1)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 6, 6, 6)
    """

    _dims = 3
    data_format: str = "NCDHW"


class ChannelShuffle(Unary, function=functional.channel_shuffle):
    """Interleave groups of channels: the first of every group, then the second, and so on.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ChannelShuffle(3)(ol.arange(6.0).reshape([1, 6, 1, 1])).ravel().tolist()
    [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]
    """

    groups: int
    data_format: str = "NCHW"
    name: str | None = None
