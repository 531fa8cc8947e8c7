"""Adaptive pooling as layers."""

from __future__ import annotations

from typing import Any

from optlab.nn import functional
from optlab.nn.layers.configured import Unary


class _AdaptiveAvgPool(Unary, settings=True):
    """What averages have in common."""

    output_size: Any
    data_format: str = "NCHW"
    name: str | None = None


class _AdaptiveMaxPool(Unary, settings=True):
    """What all maxima have in common."""

    output_size: Any
    return_mask: bool = False
    name: str | None = None


class AdaptiveAvgPool1D(Unary, function=functional.adaptive_avg_pool1d):
    """Give averages of sequences over so many windows, whatever their size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool1D(3)(ol.ones([1, 2, 8])).shape
    (1, 2, 3)
    """

    output_size: Any
    name: str | None = None


class AdaptiveMaxPool1D(_AdaptiveMaxPool, function=functional.adaptive_max_pool1d):
    """Give maxima of sequences over so many windows, whatever their size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool1D(3)(ol.ones([1, 2, 8])).shape
    (1, 2, 3)
    """


class AdaptiveAvgPool2D(_AdaptiveAvgPool, function=functional.adaptive_avg_pool2d):
    """Give averages of images over so many windows, whatever their size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool2D(3)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 3, 3)
    """


class AdaptiveMaxPool2D(_AdaptiveMaxPool, function=functional.adaptive_max_pool2d):
    """Give maxima of images over so many windows, whatever their size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool2D(3)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 3, 3)
    """


class AdaptiveAvgPool3D(_AdaptiveAvgPool, function=functional.adaptive_avg_pool3d):
    """Give averages of volumes over so many windows, whatever their size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool3D(3)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 3, 3, 3)
    """

    data_format: str = "NCDHW"


class AdaptiveMaxPool3D(_AdaptiveMaxPool, function=functional.adaptive_max_pool3d):
    """Give maxima of volumes over so many windows, whatever their size.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool3D(3)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 3, 3, 3)
    """
