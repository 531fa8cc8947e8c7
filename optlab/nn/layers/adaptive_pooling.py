"""Adaptive pooling as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layers.shown import Shown


class AdaptiveAvgPool1D(Shown):
    """Give averages of sequences over so many windows, whatever their size.

    Parameters
    ----------
    output_size
        As in `functional.adaptive_avg_pool2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.adaptive_avg_pool1d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool1D(3)(ol.ones([1, 2, 8])).shape
    (1, 2, 3)
    """

    def __init__(
        self,
        output_size: Any,
        name: str | None = None,
    ) -> None:
        super().__init__(name, output_size=output_size)

    def forward(self, x: Any) -> Tensor:
        """Give averages of sequences over so many windows, whatever their size."""
        return functional.adaptive_avg_pool1d(x, self.output_size)


class AdaptiveMaxPool1D(Shown):
    """Give maxima of sequences over so many windows, whatever their size.

    Parameters
    ----------
    output_size, return_mask
        As in `functional.adaptive_max_pool2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.adaptive_max_pool1d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool1D(3)(ol.ones([1, 2, 8])).shape
    (1, 2, 3)
    """

    def __init__(
        self,
        output_size: Any,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, output_size=output_size, return_mask=return_mask)

    def forward(self, x: Any) -> Any:
        """Give maxima of sequences over so many windows, whatever their size."""
        return functional.adaptive_max_pool1d(x, self.output_size, self.return_mask)


class AdaptiveAvgPool2D(Shown):
    """Give averages of images over so many windows, whatever their size.

    Parameters
    ----------
    output_size, data_format
        As in `functional.adaptive_avg_pool2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.adaptive_avg_pool2d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool2D(3)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 3, 3)
    """

    def __init__(
        self,
        output_size: Any,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(name, output_size=output_size, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Give averages of images over so many windows, whatever their size."""
        return functional.adaptive_avg_pool2d(x, self.output_size, self.data_format)


class AdaptiveMaxPool2D(Shown):
    """Give maxima of images over so many windows, whatever their size.

    Parameters
    ----------
    output_size, return_mask
        As in `functional.adaptive_max_pool2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.adaptive_max_pool2d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool2D(3)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 3, 3)
    """

    def __init__(
        self,
        output_size: Any,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, output_size=output_size, return_mask=return_mask)

    def forward(self, x: Any) -> Any:
        """Give maxima of images over so many windows, whatever their size."""
        return functional.adaptive_max_pool2d(x, self.output_size, self.return_mask)


class AdaptiveAvgPool3D(Shown):
    """Give averages of volumes over so many windows, whatever their size.

    Parameters
    ----------
    output_size, data_format
        As in `functional.adaptive_avg_pool2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.adaptive_avg_pool3d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveAvgPool3D(3)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 3, 3, 3)
    """

    def __init__(
        self,
        output_size: Any,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(name, output_size=output_size, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Give averages of volumes over so many windows, whatever their size."""
        return functional.adaptive_avg_pool3d(x, self.output_size, self.data_format)


class AdaptiveMaxPool3D(Shown):
    """Give maxima of volumes over so many windows, whatever their size.

    Parameters
    ----------
    output_size, return_mask
        As in `functional.adaptive_max_pool2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.adaptive_max_pool3d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AdaptiveMaxPool3D(3)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 3, 3, 3)
    """

    def __init__(
        self,
        output_size: Any,
        return_mask: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, output_size=output_size, return_mask=return_mask)

    def forward(self, x: Any) -> Any:
        """Give maxima of volumes over so many windows, whatever their size."""
        return functional.adaptive_max_pool3d(x, self.output_size, self.return_mask)
