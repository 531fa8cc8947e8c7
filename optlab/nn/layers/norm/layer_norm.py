"""Normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import parameter_name
from optlab.nn.base.parameter import Parameter
from optlab.nn.docstrings import inherit_docstring
from optlab.nn.functional.norm.layer_norm import as_shape
from optlab.nn.initializer import Constant
from optlab.nn.layers.configured import Unary


class Normalization(Layer):
    """Base class of layers that normalize, scale and shift.

    Parameters
    ----------
    num_features : int
        Number of channels.
    epsilon : float
        Added to the variance.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift of the channels; False omits them.
    data_format : {'NCHW', 'NHWC'}, optional
        Position of the channel axis: 1 (the default) or the last.
    name : str, optional
        Prefix of the parameter names.
    dtype : str or dtype
        Dtype of the parameters.
    """

    weight: Parameter | None
    bias: Parameter | None

    def _make_parameters(
        self, shape: tuple[int, ...], weight_attr: Any, bias_attr: Any, name: str | None,
        dtype: Any,
    ) -> None:  # fmt: skip
        """Create scale and shift; both may be omitted."""
        for length in shape:
            if length < 1:
                raise ValueError(f"{type(self).__name__} takes lengths of at least 1; got {shape}.")
        self.weight = self._new_parameter(
            shape, weight_attr, "weight_attr", dtype, Constant(1.0), parameter_name(name, "weight")
        )
        self.bias = self._new_parameter(
            shape, bias_attr, "bias_attr", dtype, Constant(0.0), parameter_name(name, "bias")
        )


@inherit_docstring
class LayerNorm(Normalization):
    """Apply layer normalization over the last axes.

    Parameters
    ----------
    normalized_shape : int or list of int
        Lengths of the axes that share a mean and a variance.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift, of shape `normalized_shape`; False omits them.

    See Also
    --------
    optlab.nn.functional.layer_norm : the formula, and its source.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.LayerNorm(2)(ol.to_tensor([[1.0, 3.0]])).detach(), 4)
    Tensor([[-1.,  1.]], dtype=float32)
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], epsilon: float = 1e-5, weight_attr: Any = None,
        bias_attr: Any = None, name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape, self.epsilon = as_shape(normalized_shape), epsilon
        self._make_parameters(self.normalized_shape, weight_attr, bias_attr, name, dtype)

    def forward(self, x: Any) -> Tensor:
        """Normalize over the last axes."""
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.epsilon)

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        return f"normalized_shape={list(self.normalized_shape)}, epsilon={self.epsilon}"


@inherit_docstring
class RMSNorm(Normalization):
    """Apply root-mean-square normalization over the last axes.

    Parameters
    ----------
    normalized_shape : int or list of int
        Lengths of the axes that are averaged.
    epsilon : float
        Added to the mean square.
    weight_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale, of shape `normalized_shape`; False omits it.

    See Also
    --------
    optlab.nn.functional.rms_norm : the formula, and its source.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.RMSNorm(2)(ol.to_tensor([[3.0, -3.0]])).detach(), 4)
    Tensor([[ 1., -1.]], dtype=float32)
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], epsilon: float = 1e-5, weight_attr: Any = None,
        name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape, self.epsilon = as_shape(normalized_shape), epsilon
        self._make_parameters(self.normalized_shape, weight_attr, False, name, dtype)

    def forward(self, x: Any) -> Tensor:
        """Divide by the root of the mean square."""
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.epsilon)

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        return f"normalized_shape={list(self.normalized_shape)}, epsilon={self.epsilon}"


@inherit_docstring
class GroupNorm(Normalization):
    """Apply group normalization: over groups of channels and all positions of each example.

    Parameters
    ----------
    num_groups, num_channels : int
        Numbers of groups and of channels.
    data_format : {'NC', 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Position of the channel axis: 1 or the last.

    See Also
    --------
    optlab.nn.functional.group_norm : the formula, and its source.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> layer = ol.nn.GroupNorm(num_groups=2, num_channels=4)
    >>> np.round(layer(ol.to_tensor([[1.0, 3.0, 10.0, 30.0]])).detach(), 4)
    Tensor([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    def __init__(
        self, num_groups: int, num_channels: int, epsilon: float = 1e-5, weight_attr: Any = None,
        bias_attr: Any = None, data_format: str = "NCHW", name: str | None = None, *,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: {num_channels} channels cannot be put into {num_groups} groups."
            )
        self.num_groups, self.num_channels, self.epsilon = num_groups, num_channels, epsilon
        self.data_format = data_format
        self._make_parameters((num_channels,), weight_attr, bias_attr, name, dtype)

    def forward(self, x: Any) -> Tensor:
        """Normalize over groups of channels."""
        return functional.group_norm(
            x, self.num_groups, self.epsilon, self.weight, self.bias, self.data_format
        )

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        return (
            f"num_groups={self.num_groups}, num_channels={self.num_channels}, "
            f"epsilon={self.epsilon}"
        )


class LocalResponseNorm(Unary, function=functional.local_response_norm):
    """Apply local response normalization: divide by a mean over neighboring channels.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LocalResponseNorm(1, alpha=3.0, beta=1.0)(ol.ones([1, 2, 1])).tolist()
    [[[0.25], [0.25]]]
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    data_format: str = "NCHW"

    def forward(self, x: Any) -> Any:
        """Divide by a mean over neighboring channels."""
        return self._call_function(x)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"size={self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
