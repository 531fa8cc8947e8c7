"""Layers that resize sequences, images and volumes."""

from __future__ import annotations

from typing import Any

from optlab.nn import functional
from optlab.nn.layers.configured import Unary


class Upsample(Unary, function=functional.interpolate):
    """Resize sequences, images or volumes by interpolation.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Upsample(scale_factor=2, mode="bilinear")(ol.ones([1, 3, 4, 4])).shape
    (1, 3, 8, 8)
    """

    size: Any = None
    scale_factor: Any = None
    mode: str = "nearest"
    align_corners: bool = False
    align_mode: int = 0
    data_format: str | None = None
    recompute_scale_factor: bool | None = None
    name: str | None = None


class _Upsampling2D(Unary, settings=True):
    """Base class of upsampling layers for images."""

    size: Any = None
    scale_factor: Any = None
    data_format: str = "NCHW"
    name: str | None = None


class UpsamplingNearest2D(_Upsampling2D, function=functional.interpolate):
    """Resize images by nearest-neighbor interpolation.

    Parameters
    ----------
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.UpsamplingNearest2D(scale_factor=2)(ol.to_tensor([[[[1.0, 2.0]]]]))
    Tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]], dtype=float32)
    """


class UpsamplingBilinear2D(_Upsampling2D, function=functional.interpolate):
    """Resize images by bilinear interpolation with aligned corners.

    Parameters
    ----------
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.UpsamplingBilinear2D(size=[1, 3])(ol.to_tensor([[[[0.0, 2.0]]]]))
    Tensor([[[[0., 1., 2.]]]], dtype=float32)
    """

    def forward(self, x: Any) -> Any:
        """Resize images by bilinear interpolation."""
        return self._call_function(x, mode="bilinear", align_corners=True)
