"""Pooling as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layers.shown import Shown


class MaxPool1D(Shown):
    """Give the maximum of windows of sequences.

    Parameters
    ----------
    kernel_size, stride, padding, return_mask, ceil_mode
        As in `functional.max_pool1d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.max_pool1d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.MaxPool1D(2)(ol.ones([1, 2, 8])).shape
    (1, 2, 4)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
        )

    def forward(self, x: Any) -> Any:
        """Give the maximum of windows of sequences."""
        return functional.max_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.return_mask, self.ceil_mode
        )


class AvgPool1D(Shown):
    """Give the average of windows of sequences.

    Parameters
    ----------
    kernel_size, stride, padding, exclusive, ceil_mode
        As in `functional.avg_pool1d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.avg_pool1d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AvgPool1D(2)(ol.ones([1, 2, 8])).shape
    (1, 2, 4)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        exclusive: bool = True,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            exclusive=exclusive,
            ceil_mode=ceil_mode,
        )

    def forward(self, x: Any) -> Tensor:
        """Give the average of windows of sequences."""
        return functional.avg_pool1d(
            x, self.kernel_size, self.stride, self.padding, self.exclusive, self.ceil_mode
        )


class MaxPool2D(Shown):
    """Give the maximum of windows of images.

    Parameters
    ----------
    kernel_size, stride, padding, return_mask, ceil_mode, data_format
        As in `functional.max_pool2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.max_pool2d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.MaxPool2D(2)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 4, 4)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )

    def forward(self, x: Any) -> Any:
        """Give the maximum of windows of images."""
        return functional.max_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.return_mask,
            self.ceil_mode,
            self.data_format,
        )


class AvgPool2D(Shown):
    """Give the average of windows of images.

    Parameters
    ----------
    kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format
        As in `functional.avg_pool2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.avg_pool2d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AvgPool2D(2)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 4, 4)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: float | None = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            exclusive=exclusive,
            divisor_override=divisor_override,
            data_format=data_format,
        )

    def forward(self, x: Any) -> Tensor:
        """Give the average of windows of images."""
        return functional.avg_pool2d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.exclusive,
            self.divisor_override,
            self.data_format,
        )


class MaxPool3D(Shown):
    """Give the maximum of windows of volumes.

    Parameters
    ----------
    kernel_size, stride, padding, return_mask, ceil_mode, data_format
        As in `functional.max_pool3d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.max_pool3d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.MaxPool3D(2)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 2, 2, 2)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        return_mask: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            return_mask=return_mask,
            ceil_mode=ceil_mode,
            data_format=data_format,
        )

    def forward(self, x: Any) -> Any:
        """Give the maximum of windows of volumes."""
        return functional.max_pool3d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.return_mask,
            self.ceil_mode,
            self.data_format,
        )


class AvgPool3D(Shown):
    """Give the average of windows of volumes.

    Parameters
    ----------
    kernel_size, stride, padding, ceil_mode, exclusive, divisor_override, data_format
        As in `functional.avg_pool3d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.avg_pool3d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AvgPool3D(2)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 2, 2, 2)
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        exclusive: bool = True,
        divisor_override: float | None = None,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            exclusive=exclusive,
            divisor_override=divisor_override,
            data_format=data_format,
        )

    def forward(self, x: Any) -> Tensor:
        """Give the average of windows of volumes."""
        return functional.avg_pool3d(
            x,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.exclusive,
            self.divisor_override,
            self.data_format,
        )
