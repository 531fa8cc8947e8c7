"""Convolution layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import require_parameter
from optlab.nn.docstrings import documented_like, inherit_docstring
from optlab.nn.functional import windows
from optlab.nn.functional.padding import MODES
from optlab.nn.initializer import Constant, Initializer, Normal


class Filters(Layer):
    """Base class of convolutions and transposed convolutions with learned filters.

    Parameters
    ----------
    in_channels, out_channels : int
        Numbers of channels of the input and the output.
    kernel_size : int or list of int
        Size of a filter.
    stride : int or list of int
        Step of the window.
    dilation : int or list of int
        Spacing between the elements of a filter.
    groups : int
        Number of groups of channels; each is convolved with its own filters.
    data_format : {'NCHW', 'NHWC'}, optional
        Position of the channel axis: 1 (the default) or the last.
    dtype : str or dtype
        Dtype of the parameters.

    Raises
    ------
    ValueError
        If an argument is none of these, or `groups` does not divide the channels.
    """

    dims = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, groups: int, weight_attr: Any, bias_attr: Any, data_format: str, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        call = type(self).__name__
        for argument, count in {
            "in_channels": in_channels, "out_channels": out_channels, "groups": groups,
        }.items():  # fmt: skip
            if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 1:
                raise ValueError(
                    f"{call}: {argument} must be a whole number of at least 1; got {count!r}."
                )
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{call}: in_channels={in_channels} and out_channels={out_channels} must be "
                f"multiples of groups={groups}."
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = windows.per_axis(kernel_size, self.dims, "kernel_size", call)
        self.stride = windows.per_axis(stride, self.dims, "stride", call)
        self.dilation = windows.per_axis(dilation, self.dims, "dilation", call)
        last = windows.is_channels_last(data_format, self.dims, call)
        windows.paddings(padding, self.dims, last, call)
        self.padding, self.data_format = padding, data_format
        shape, start = self._initial_weight()
        weight = self._new_parameter(shape, weight_attr, "weight_attr", dtype, start)
        self.weight = require_parameter(weight, call, "weight_attr")
        self.bias = self._new_parameter(
            (out_channels,), bias_attr, "bias_attr", dtype, Constant(0.0)
        )

    def _initial_weight(self) -> tuple[tuple[int, ...], Initializer]:
        """Return the shape of the weight and its initializer. Subclasses define it."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Return the sizes, and the settings that differ from their defaults."""
        words = [str(self.in_channels), str(self.out_channels), f"kernel_size={self.kernel_size}"]
        ones = (1,) * self.dims
        for name, usual in self._defaults(ones).items():
            value = getattr(self, name)
            if value != usual:
                words.append(f"{name}={value!r}")
        if self.bias is None:
            words.append("bias_attr=False")
        return ", ".join(words)

    def _defaults(self, ones: tuple[int, ...]) -> dict[str, Any]:
        return {
            "stride": ones, "padding": 0, "dilation": ones, "groups": 1,
            "data_format": windows.FORMATS[self.dims][0],
        }  # fmt: skip


@inherit_docstring
class _Convolution(Filters):
    r"""Base class of convolutions.

    Parameters
    ----------
    padding : int, list of int, list of pairs, 'SAME' or 'VALID'
        Padding of the spatial axes, in the forms of `functional.conv2d`.
    padding_mode : {'zeros', 'reflect', 'replicate', 'circular'}
        Values of the padding: zeros, the reflection, the edge, the opposite end.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings, name or initializer of the parameters. By default the weight is normal with
        standard deviation :math:`\sqrt{2 / (in\, K)}` (He et al. 2015), for kernels of K elements,
        and the bias zero. ``bias_attr=False`` omits the bias.

    Attributes
    ----------
    weight : Parameter of shape ``[out_channels, in_channels / groups, *kernel_size]``
    bias : Parameter of shape [out_channels], or None

    See Also
    --------
    optlab.nn.functional.conv2d : the formula.

    Notes
    -----
    Signature: paddle.nn.Conv2D.
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros",
        weight_attr: Any = None, bias_attr: Any = None, data_format: str | None = None, *,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        modes = ("zeros", *[mode for mode in MODES if mode != "constant"])
        if padding_mode not in modes:
            raise ValueError(
                f"{type(self).__name__} takes a padding_mode among {', '.join(map(repr, modes))}; "
                f"got {padding_mode!r}."
            )
        data_format = data_format or windows.FORMATS[self.dims][0]
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
            bias_attr, data_format, dtype,
        )  # fmt: skip
        self.padding_mode = padding_mode

    def _initial_weight(self) -> tuple[tuple[int, ...], Initializer]:
        shape = (self.out_channels, self.in_channels // self.groups, *self.kernel_size)
        return shape, Normal(0.0, math.sqrt(2 / (self.in_channels * math.prod(self.kernel_size))))

    def _defaults(self, ones: tuple[int, ...]) -> dict[str, Any]:
        return super()._defaults(ones) | {"padding_mode": "zeros"}

    def forward(self, x: Any) -> Tensor:
        """Convolve x with the filters."""
        padding = self.padding
        if self.padding_mode != "zeros":
            x, padding = self._padded(x), 0
        convolution = getattr(functional, f"conv{self.dims}d")
        return convolution(  # type: ignore[no-any-return]
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups,
            self.data_format,
        )  # fmt: skip

    def _padded(self, x: Any) -> Any:
        """Pad x as `padding_mode` says."""
        call = type(self).__name__
        last = self.data_format == windows.FORMATS[self.dims][1]
        pairs = windows.paddings(self.padding, self.dims, last, call)
        if isinstance(pairs, str):
            size = np.shape(x)[1:-1] if last else np.shape(x)[2:]
            extent = windows.extents(self.kernel_size, self.dilation)
            pairs = windows.same_padding(size, extent, self.stride)
        sides = [n for pair in reversed(pairs) for n in pair]
        return functional.pad(x, sides, self.padding_mode, data_format=self.data_format)


@documented_like(_Convolution, dims=1)
class Conv1D(_Convolution):
    """Apply 1-D convolution with learned filters to sequences of shape [N, C, L].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Conv1D(3, 8, 5, padding="SAME")(ol.ones([2, 3, 20])).shape
    (2, 8, 20)
    """

    dims = 1


@inherit_docstring
class Conv2D(_Convolution):
    """Apply 2-D convolution with learned filters to images of shape [N, C, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Conv2D(1, 6, 5, padding=2)
    >>> layer
    Conv2D(1, 6, kernel_size=(5, 5), padding=2)
    >>> layer.weight.shape, layer(ol.ones([2, 1, 28, 28])).shape
    ((6, 1, 5, 5), (2, 6, 28, 28))
    """

    dims = 2


@documented_like(_Convolution, dims=3)
class Conv3D(_Convolution):
    """Apply 3-D convolution with learned filters to volumes of shape [N, C, D, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Conv3D(1, 2, 3)(ol.ones([1, 1, 4, 5, 6])).shape
    (1, 2, 2, 3, 4)
    """

    dims = 3
