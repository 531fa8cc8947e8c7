"""Padding, patches and the shuffling of pixels as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.functional.windows import per_axis
from optlab.nn.layers.shown import Shown


def sides(padding: Any, dims: int, call: str) -> list[int]:
    """Read one number for all sides, or one a side."""
    return list(per_axis(padding, 2 * dims, "padding", call, least=0))


class Pad1D(Shown):
    """Put elements around sequences.

    Parameters
    ----------
    padding : int or list of int
        One number for all sides, or ``[left, right]``.
    mode, value, data_format
        As in `functional.pad`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.pad : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad1D(1)(ol.ones([1, 2, 8])).shape
    (1, 2, 10)
    """

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__(name, padding=padding, mode=mode, value=value, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Put elements around sequences."""
        return functional.pad(
            x, sides(self.padding, 1, "Pad1D"), self.mode, self.value, self.data_format
        )


class Pad2D(Shown):
    """Put elements around images.

    Parameters
    ----------
    padding : int or list of int
        One number for all sides, or ``[left, right, top, bottom]``.
    mode, value, data_format
        As in `functional.pad`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.pad : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad2D(1)(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 10, 10)
    """

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(name, padding=padding, mode=mode, value=value, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Put elements around images."""
        return functional.pad(
            x, sides(self.padding, 2, "Pad2D"), self.mode, self.value, self.data_format
        )


class Pad3D(Shown):
    """Put elements around volumes.

    Parameters
    ----------
    padding : int or list of int
        One number for all sides, or ``[left, right, top, bottom, front, back]``.
    mode, value, data_format
        As in `functional.pad`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.pad : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Pad3D(1)(ol.ones([1, 2, 4, 4, 4])).shape
    (1, 2, 6, 6, 6)
    """

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__(name, padding=padding, mode=mode, value=value, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Put elements around volumes."""
        return functional.pad(
            x, sides(self.padding, 3, "Pad3D"), self.mode, self.value, self.data_format
        )


class ZeroPad2D(Shown):
    """Put zeros around images.

    Parameters
    ----------
    padding, data_format
        As in `functional.zeropad2d`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.zeropad2d : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ZeroPad2D([1, 0, 2, 1])(ol.ones([1, 2, 8, 8])).shape
    (1, 2, 11, 9)
    """

    def __init__(
        self,
        padding: Any,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(name, padding=padding, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Put zeros around images."""
        return functional.zeropad2d(x, self.padding, self.data_format)


class Unfold(Shown):
    """Cut images into patches, one a column.

    Parameters
    ----------
    kernel_sizes, dilations, paddings, strides
        As in `functional.unfold`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.unfold : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Unfold(2)(ol.ones([1, 2, 3, 4])).shape
    (1, 8, 6)
    """

    def __init__(
        self,
        kernel_sizes: Any,
        dilations: Any = 1,
        paddings: Any = 0,
        strides: Any = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name, kernel_sizes=kernel_sizes, dilations=dilations, paddings=paddings, strides=strides
        )

    def forward(self, x: Any) -> Tensor:
        """Cut images into patches, one a column."""
        return functional.unfold(x, self.kernel_sizes, self.strides, self.paddings, self.dilations)


class Fold(Shown):
    """Put patches back where `Unfold` took them from; where they overlap, they add up.

    Parameters
    ----------
    output_sizes, kernel_sizes, dilations, paddings, strides
        As in `functional.fold`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.fold : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Fold([3, 4], 2)(ol.ones([1, 8, 6])).shape
    (1, 2, 3, 4)
    """

    def __init__(
        self,
        output_sizes: Any,
        kernel_sizes: Any,
        dilations: Any = 1,
        paddings: Any = 0,
        strides: Any = 1,
        name: str | None = None,
    ) -> None:
        super().__init__(
            name,
            output_sizes=output_sizes,
            kernel_sizes=kernel_sizes,
            dilations=dilations,
            paddings=paddings,
            strides=strides,
        )

    def forward(self, x: Any) -> Tensor:
        """Put patches back where `Unfold` took them from; where they overlap, they add up."""
        return functional.fold(
            x, self.output_sizes, self.kernel_sizes, self.strides, self.paddings, self.dilations
        )


class PixelShuffle(Shown):
    """Turn channels into places: every r x r channels make one.

    Parameters
    ----------
    upscale_factor, data_format
        As in `functional.pixel_shuffle`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.pixel_shuffle : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.PixelShuffle(2)(ol.ones([1, 8, 3, 4])).shape
    (1, 2, 6, 8)
    """

    def __init__(
        self,
        upscale_factor: int,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(name, upscale_factor=upscale_factor, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Turn channels into places: every r x r channels make one."""
        return functional.pixel_shuffle(x, self.upscale_factor, self.data_format)


class PixelUnshuffle(Shown):
    """Turn places into channels: the inverse of `PixelShuffle`.

    Parameters
    ----------
    downscale_factor, data_format
        As in `functional.pixel_unshuffle`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.pixel_unshuffle : the arguments, the formula, and what is saved.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.PixelUnshuffle(2)(ol.ones([1, 2, 6, 8])).shape
    (1, 8, 3, 4)
    """

    def __init__(
        self,
        downscale_factor: int,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(name, downscale_factor=downscale_factor, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Turn places into channels: the inverse of `PixelShuffle`."""
        return functional.pixel_unshuffle(x, self.downscale_factor, self.data_format)
