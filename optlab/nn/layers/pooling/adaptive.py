"""Adaptive pooling layers."""

from __future__ import annotations

from typing import Any

from optlab.nn import functional
from optlab.nn.layers.configured import Unary


class _AdaptiveAvgPool(Unary, settings=True):
    """Base class of adaptive average pooling."""

    output_size: Any
    data_format: str = "NCHW"
    name: str | None = None


class _AdaptiveMaxPool(Unary, settings=True):
    """Base class of adaptive max pooling."""

    output_size: Any
    return_mask: bool = False
    name: str | None = None


class AdaptiveAvgPool1D(Unary, function=functional.adaptive_avg_pool1d):
    """Apply 1-D adaptive average pooling, to a given output size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool1D(3)(ol.ones([1, 2, 8])).shape
    (1, 2, 3)
    """

    output_size: Any
    name: str | None = None


class AdaptiveMaxPool1D(_AdaptiveMaxPool, function=functional.adaptive_max_pool1d):
    """Apply 1-D adaptive max pooling, to a given output size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool1D(3)(ol.ones([1, 2, 8])).shape
    (1, 2, 3)
    """


class AdaptiveAvgPool2D(_AdaptiveAvgPool, function=functional.adaptive_avg_pool2d):
    """Apply 2-D adaptive average pooling, to a given output size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool2D(3)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 3, 3)
    """


class AdaptiveMaxPool2D(_AdaptiveMaxPool, function=functional.adaptive_max_pool2d):
    """Apply 2-D adaptive max pooling, to a given output size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool2D(3)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 3, 3)
    """


class AdaptiveAvgPool3D(_AdaptiveAvgPool, function=functional.adaptive_avg_pool3d):
    """Apply 3-D adaptive average pooling, to a given output size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool3D(3)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 3, 3, 3)
    """

    data_format: str = "NCDHW"


class AdaptiveMaxPool3D(_AdaptiveMaxPool, function=functional.adaptive_max_pool3d):
    """Apply 3-D adaptive max pooling, to a given output size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool3D(3)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 3, 3, 3)
    """
