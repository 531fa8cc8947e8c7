"""Pooling layers."""

from __future__ import annotations

from typing import Any

from optlab.nn import functional
from optlab.nn.layers.configured import Configured, Unary


class _MaxPool(Unary, settings=True):
    """Base class of max pooling."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    return_mask: bool = False
    ceil_mode: bool = False
    data_format: str = "NCHW"
    name: str | None = None


class _AvgPool(Unary, settings=True):
    """Base class of average pooling."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    exclusive: bool = True
    divisor_override: float | None = None
    data_format: str = "NCHW"
    name: str | None = None


class _MaxUnPool(Configured, settings=True):
    """Base class of max unpooling."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    data_format: str = "NCHW"
    output_size: Any = None
    name: str | None = None

    def forward(self, x: Any, indices: Any) -> Any:
        """Place maxima at the indices that pooling returned."""
        return self._call_function(x, indices)


class _LPPool(Unary, settings=True):
    """Base class of power-average pooling."""

    norm_type: float
    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    data_format: str = "NCHW"
    name: str | None = None


class MaxPool1D(Unary, function=functional.max_pool1d):
    """Apply 1-D max pooling.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.MaxPool1D(2)(ol.ones([1, 2, 8])).shape
    (1, 2, 4)
    """

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    return_mask: bool = False
    ceil_mode: bool = False
    name: str | None = None


class AvgPool1D(Unary, function=functional.avg_pool1d):
    """Apply 1-D average pooling.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AvgPool1D(2)(ol.ones([1, 2, 8])).shape
    (1, 2, 4)
    """

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    exclusive: bool = True
    ceil_mode: bool = False
    name: str | None = None


class MaxPool2D(_MaxPool, function=functional.max_pool2d):
    """Apply 2-D max pooling.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.MaxPool2D(2)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 4, 4)
    """


class AvgPool2D(_AvgPool, function=functional.avg_pool2d):
    """Apply 2-D average pooling.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AvgPool2D(2)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 4, 4)
    """


class MaxPool3D(_MaxPool, function=functional.max_pool3d):
    """Apply 3-D max pooling.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.MaxPool3D(2)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 2, 2, 2)
    """

    data_format: str = "NCDHW"


class AvgPool3D(_AvgPool, function=functional.avg_pool3d):
    """Apply 3-D average pooling.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AvgPool3D(2)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 2, 2, 2)
    """

    data_format: str = "NCDHW"


class MaxUnPool1D(_MaxUnPool, function=functional.max_unpool1d):
    """Apply 1-D max unpooling: place maxima at their indices, zeros elsewhere.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.randn([1, 2, 8])
    >>> y, indices = ol.nn.MaxPool1D(2, return_mask=True)(x)
    >>> ol.nn.MaxUnPool1D(2)(y, indices).shape == x.shape
    True
    """

    data_format: str = "NCL"


class MaxUnPool2D(_MaxUnPool, function=functional.max_unpool2d):
    """Apply 2-D max unpooling: place maxima at their indices, zeros elsewhere.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.randn([1, 2, 8, 8])
    >>> y, indices = ol.nn.MaxPool2D(2, return_mask=True)(x)
    >>> ol.nn.MaxUnPool2D(2)(y, indices).shape == x.shape
    True
    """


class MaxUnPool3D(_MaxUnPool, function=functional.max_unpool3d):
    """Apply 3-D max unpooling: place maxima at their indices, zeros elsewhere.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.randn([1, 2, 4, 4, 4])
    >>> y, indices = ol.nn.MaxPool3D(2, return_mask=True)(x)
    >>> ol.nn.MaxUnPool3D(2)(y, indices).shape == x.shape
    True
    """

    data_format: str = "NCDHW"


class LPPool1D(_LPPool, function=functional.lp_pool1d):
    """Apply 1-D power-average pooling: the p-norm of each window.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LPPool1D(2, 2)(ol.ones([1, 2, 8])).shape
    (1, 2, 4)
    """

    data_format: str = "NCL"


class LPPool2D(_LPPool, function=functional.lp_pool2d):
    """Apply 2-D power-average pooling: the p-norm of each window.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LPPool2D(2, 2)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 4, 4)
    """
