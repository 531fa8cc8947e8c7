"""Transposed convolutions as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.functional import windows
from optlab.nn.initializer import Initializer, XavierUniform
from optlab.nn.layers.convolution import Filters


class _Transposed(Filters):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        output_padding: Any, dilation: Any, groups: int, weight_attr: Any, bias_attr: Any,
        data_format: str, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
            bias_attr, data_format, dtype,
        )  # fmt: skip
        self.output_padding = windows.per_axis(
            output_padding, self.dims, "output_padding", type(self).__name__, least=0
        )

    def _start(self) -> tuple[tuple[int, ...], Initializer]:
        shape = (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        return shape, XavierUniform()

    def _usual(self, ones: tuple[int, ...]) -> dict[str, Any]:
        return super()._usual(ones) | {"output_padding": (0,) * self.dims}

    def forward(self, x: Any, output_size: Any = None) -> Tensor:
        """Give the transposed convolution of x, of `output_size` if that is given."""
        transposed = getattr(functional, f"conv{self.dims}d_transpose")
        more: Any = {"output_padding": self.output_padding}
        if output_size is not None:
            more = {"output_size": output_size}
        return transposed(  # type: ignore[no-any-return]
            x, self.weight, self.bias, self.stride, self.padding, dilation=self.dilation,
            groups=self.groups, data_format=self.data_format, **more,
        )  # fmt: skip


class Conv1DTranspose(_Transposed):
    """Give the transposed convolution of sequences with filters that are learned.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, dilation, \
weight_attr, bias_attr, dtype
        As in `Conv2DTranspose`.
    data_format : {'NCL', 'NLC'}
        Where the channels are.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Conv1DTranspose(3, 8, 4, stride=2, padding=1)(ol.ones([2, 3, 10])).shape
    (2, 8, 20)
    """

    dims = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation,
            groups, weight_attr, bias_attr, data_format, dtype,
        )  # fmt: skip


class Conv2DTranspose(_Transposed):
    r"""Give the transposed convolution of images with filters that are learned.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of the input, and of the result.
    kernel_size : int or list of int
        Of a filter.
    stride, padding, output_padding, dilation, groups
        As in `functional.conv2d_transpose`.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the parameters: all of them, or a name, or how they start. By default the
        weight is uniform on :math:`\pm\sqrt{6 / ((in + out / groups)\, KH\, KW)}` (Glorot and
        Bengio 2010) and the bias zero. ``bias_attr=False`` leaves the bias out.
    data_format : {'NCHW', 'NHWC'}
        Where the channels are.
    dtype : str or dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter of shape [in_channels, out_channels / groups, KH, KW]
    bias : Parameter of shape [out_channels], or None

    Raises
    ------
    ValueError
        If an argument is none of these, or the channels cannot be cut into the groups.

    Notes
    -----
    ``layer(x, output_size=[h, w])`` says the size of the result in place of `output_padding`.
    Signature: paddle.nn.Conv2DTranspose.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Conv2DTranspose(4, 2, 3, stride=2, padding=1)
    >>> layer(ol.ones([1, 4, 7, 7])).shape, layer(ol.ones([1, 4, 7, 7]), [14, 14]).shape
    ((1, 2, 13, 13), (1, 2, 14, 14))
    """

    dims = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation,
            groups, weight_attr, bias_attr, data_format, dtype,
        )  # fmt: skip


class Conv3DTranspose(_Transposed):
    """Give the transposed convolution of volumes with filters that are learned.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation, groups, \
weight_attr, bias_attr, dtype
        As in `Conv2DTranspose`.
    data_format : {'NCDHW', 'NDHWC'}
        Where the channels are.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Conv3DTranspose(1, 2, 2, stride=2)(ol.ones([1, 1, 2, 3, 4])).shape
    (1, 2, 4, 6, 8)
    """

    dims = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCDHW",
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation,
            groups, weight_attr, bias_attr, data_format, dtype,
        )  # fmt: skip
