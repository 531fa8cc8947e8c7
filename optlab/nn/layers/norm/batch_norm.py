"""Batch normalization layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.creation import ones, zeros
from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.docstrings import documented_like, inherit_docstring
from optlab.nn.layers.norm.layer_norm import Normalization


@inherit_docstring
class _BatchNorm(Normalization):
    """Base class of batch normalization.

    Parameters
    ----------
    momentum : float
        Share of the running mean and variance that each training step keeps.
    use_global_stats : bool, optional
        True: use the running mean and variance in training too; False: always those of the batch.

    See Also
    --------
    optlab.nn.functional.batch_norm : the formula, and its source.
    """

    #: Numbers of axes that the input may have, and formats for the position of the channels.
    _ndims: tuple[int, ...] = (2, 3, 4, 5)
    _formats: tuple[str, ...] = ("NC", "NCL", "NLC", "NCHW", "NHWC", "NCDHW", "NDHWC")
    _format = "NCHW"

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5,
        weight_attr: Any = None, bias_attr: Any = None, data_format: str | None = None,
        use_global_stats: bool | None = None, name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        data_format = self._format if data_format is None else data_format
        if data_format not in self._formats:
            raise ValueError(
                f"{type(self).__name__} takes data_format="
                f"{', '.join(map(repr, self._formats))}; got {data_format!r}."
            )
        self.num_features, self.momentum, self.epsilon = num_features, momentum, epsilon
        self.data_format, self.use_global_stats = data_format, use_global_stats
        self._make_parameters((num_features,), weight_attr, bias_attr, name, dtype)
        self.register_buffer("running_mean", zeros([num_features], dtype))
        self.register_buffer("running_var", ones([num_features], dtype))

    running_mean: Tensor
    running_var: Tensor

    def forward(self, x: Any) -> Tensor:
        """Normalize `x`; in training, update the running mean and variance."""
        if len(x.shape) not in self._ndims:
            raise ValueError(
                f"{type(self).__name__} takes x of {' or '.join(map(str, self._ndims))} axes; got "
                f"shape {tuple(x.shape)}."
            )
        return functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training,
            self.momentum, self.epsilon, self.data_format, self.use_global_stats,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        shown = f"num_features={self.num_features}, momentum={self.momentum}"
        shown += f", epsilon={self.epsilon}"
        return shown if self.data_format == self._format else f"{shown}, {self.data_format!r}"


@documented_like(_BatchNorm, dims=1)
class BatchNorm1D(_BatchNorm):
    """Apply batch normalization to x of shape [N, C] or [N, C, L].

    Parameters
    ----------
    data_format : {'NCL', 'NLC', 'NC'}, optional
        Position of the channel axis: 1 (the default) or the last.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> layer = ol.nn.BatchNorm1D(1)
    >>> np.round(layer(ol.to_tensor([[1.0], [3.0]])).detach(), 4).tolist()
    [[-1.0], [1.0]]
    >>> _ = layer.eval()
    >>> np.round(layer.running_mean, 4)
    Tensor([0.2], dtype=float32)
    """

    _ndims, _formats, _format = (2, 3), ("NC", "NCL", "NLC"), "NCL"


@inherit_docstring
class BatchNorm2D(_BatchNorm):
    """Apply batch normalization to images of shape [N, C, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.BatchNorm2D(3)(ol.ones([2, 3, 4, 4])).shape
    (2, 3, 4, 4)
    """

    _ndims, _formats, _format = (4,), ("NCHW", "NHWC"), "NCHW"


@documented_like(_BatchNorm, dims=3)
class BatchNorm3D(_BatchNorm):
    """Apply batch normalization to volumes of shape [N, C, D, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.BatchNorm3D(3)(ol.ones([2, 3, 4, 4, 4])).shape
    (2, 3, 4, 4, 4)
    """

    _ndims, _formats, _format = (5,), ("NCDHW", "NDHWC"), "NCDHW"


@inherit_docstring
class BatchNorm(_BatchNorm):
    """Apply batch normalization, then an activation: Paddle's older layer.

    Parameters
    ----------
    num_channels : int
        Number of channels.
    act : str, optional
        Name of a function of `optlab.nn.functional` to apply to the result, such as 'relu'.
    is_test : bool
        Start in evaluation.
    param_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift of the channels; False omits them.
    data_layout : {'NC', 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Position of the channel axis: 1 or the last.
    use_global_stats : bool
        Use the running mean and variance in training too.
    trainable_statistics : bool
        Use the mean and variance of the batch in evaluation too.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> layer = ol.nn.BatchNorm(1, act="relu")
    >>> np.round(layer(ol.to_tensor([[1.0], [3.0]])).detach(), 4).tolist()
    [[0.0], [1.0]]
    """

    def __init__(
        self, num_channels: int, act: str | None = None, is_test: bool = False,
        momentum: float = 0.9, epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None,
        dtype: Any = "float32", data_layout: str = "NCHW", use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:  # fmt: skip
        if act is not None and act not in functional.__all__:
            raise ValueError(
                f"BatchNorm: act must name a function of optlab.nn.functional; got {act!r}."
            )
        super().__init__(
            num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, dtype=dtype
        )
        self.act = act
        self.always_running, self.trainable_statistics = use_global_stats, trainable_statistics
        self.training = not is_test

    def forward(self, x: Any) -> Tensor:
        """Normalize `x` and apply the activation."""
        self.use_global_stats = self.always_running or (
            not self.training and not self.trainable_statistics
        )
        y = super().forward(x)
        return y if self.act is None else getattr(functional, self.act)(y)
