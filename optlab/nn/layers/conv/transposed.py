"""Transposed convolution layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.docstrings import documented_like, inherit_docstring
from optlab.nn.functional import windows
from optlab.nn.initializer import Initializer, XavierUniform
from optlab.nn.layers.conv.conv import Filters


@inherit_docstring
class _Transposed(Filters):
    r"""Base class of transposed convolutions.

    Parameters
    ----------
    padding : int, list of int, list of pairs, 'SAME' or 'VALID'
        Cropping of the output, in the forms of `functional.conv2d`.
    output_padding : int or list of int
        Number of elements added at the end of the output.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings, name or initializer of the parameters. By default the weight is uniform on
        :math:`\pm\sqrt{6 / ((in + out / groups)\, K)}` (Glorot and Bengio 2010), for kernels of K
        elements, and the bias zero. ``bias_attr=False`` omits the bias.

    Attributes
    ----------
    weight : Parameter of shape ``[in_channels, out_channels / groups, *kernel_size]``
    bias : Parameter of shape [out_channels], or None

    See Also
    --------
    optlab.nn.functional.conv2d_transpose : the formula.

    Notes
    -----
    ``layer(x, output_size=[h, w])`` sets the size of the result, in place of `output_padding`.
    Signature: paddle.nn.Conv2DTranspose.
    """

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

    def _initial_weight(self) -> tuple[tuple[int, ...], Initializer]:
        shape = (self.in_channels, self.out_channels // self.groups, *self.kernel_size)
        return shape, XavierUniform()

    def _defaults(self, ones: tuple[int, ...]) -> dict[str, Any]:
        return super()._defaults(ones) | {"output_padding": (0,) * self.dims}

    def forward(self, x: Any, output_size: Any = None) -> Tensor:
        """Convolve x with the transposed filters, to `output_size` if given."""
        transposed = getattr(functional, f"conv{self.dims}d_transpose")
        more: Any = {"output_padding": self.output_padding}
        if output_size is not None:
            more = {"output_size": output_size}
        return transposed(  # type: ignore[no-any-return]
            x, self.weight, self.bias, self.stride, self.padding, dilation=self.dilation,
            groups=self.groups, data_format=self.data_format, **more,
        )  # fmt: skip


@documented_like(_Transposed, dims=1)
class Conv1DTranspose(_Transposed):
    """Apply 1-D transposed convolution with learned filters to sequences of shape [N, C, L].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Conv1DTranspose(3, 8, 4, stride=2, padding=1)(ol.ones([2, 3, 10])).shape
    (2, 8, 20)
    """

    dims = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
        weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCL", *,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation,
            groups, weight_attr, bias_attr, data_format, dtype,
        )  # fmt: skip


@inherit_docstring
class Conv2DTranspose(_Transposed):
    """Apply 2-D transposed convolution with learned filters to images of shape [N, C, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Conv2DTranspose(4, 2, 3, stride=2, padding=1)
    >>> layer(ol.ones([1, 4, 7, 7])).shape, layer(ol.ones([1, 4, 7, 7]), [14, 14]).shape
    ((1, 2, 13, 13), (1, 2, 14, 14))
    """

    dims = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
        weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCHW", *,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation,
            groups, weight_attr, bias_attr, data_format, dtype,
        )  # fmt: skip


@documented_like(_Transposed, dims=3)
class Conv3DTranspose(_Transposed):
    """Apply 3-D transposed convolution with learned filters to volumes of shape [N, C, D, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Conv3DTranspose(1, 2, 2, stride=2)(ol.ones([1, 1, 2, 3, 4])).shape
    (1, 2, 4, 6, 8)
    """

    dims = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
        weight_attr: Any = None, bias_attr: Any = None, data_format: str = "NCDHW", *,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, output_padding, dilation,
            groups, weight_attr, bias_attr, data_format, dtype,
        )  # fmt: skip
