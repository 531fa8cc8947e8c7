"""Normalisation over the batch, as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.creation import ones, zeros
from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layers.normalization import Normalization


def put_buffer(layer: Any, name: str, tensor: Tensor) -> None:
    """Put a Tensor into a layer that belongs to its state but is not trained."""
    layer.register_buffer(name, tensor)


class _BatchNorm(Normalization):
    """What the layers of batch normalisation have in common."""

    #: How many axes the input may have, and which formats say where the channels are.
    _ndims: tuple[int, ...] = (2, 3, 4, 5)
    _formats: tuple[str, ...] = ("NC", "NCL", "NLC", "NCHW", "NHWC", "NCDHW", "NDHWC")
    _format = "NCHW"

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        use_global_stats: bool | None = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        data_format = self._format if data_format is None else data_format
        if data_format not in self._formats:
            raise ValueError(
                f"{type(self).__name__} takes data_format="
                f"{', '.join(map(repr, self._formats))}; got {data_format!r}."
            )
        self.num_features, self.momentum, self.epsilon = num_features, momentum, epsilon
        self.data_format, self.use_global_stats = data_format, use_global_stats
        self._make((num_features,), weight_attr, bias_attr, name, dtype)
        put_buffer(self, "running_mean", zeros([num_features], dtype))
        put_buffer(self, "running_var", ones([num_features], dtype))

    running_mean: Tensor
    running_var: Tensor

    def forward(self, x: Any) -> Tensor:
        """Normalise `x`; in training, take its mean and variance into the running ones."""
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
        """Say the sizes."""
        shown = f"num_features={self.num_features}, momentum={self.momentum}"
        shown += f", epsilon={self.epsilon}"
        return shown if self.data_format == self._format else f"{shown}, {self.data_format!r}"


class BatchNorm1D(_BatchNorm):
    """Normalise the channels of x, of shape [N, C] or [N, C, L], over the batch.

    Parameters
    ----------
    num_features : int
        How many channels.
    momentum : float
        How much of the running mean and variance stays at every step of training.
    epsilon : float
        Added to the variance.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift of the channels; False leaves them out.
    data_format : str
        Where the channels are: on axis 1 ('NC...'), or on the last ('N...C').
    use_global_stats : bool, optional
        True: use the running mean and variance in training too; False: those of the batch always.
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    See Also
    --------
    optlab.nn.functional.batch_norm : the formula, and its source.

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


class BatchNorm2D(_BatchNorm):
    """Normalise the channels of pictures, of shape [N, C, H, W], over the batch.

    Parameters
    ----------
    num_features : int
        How many channels.
    momentum : float
        How much of the running mean and variance stays at every step of training.
    epsilon : float
        Added to the variance.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift of the channels; False leaves them out.
    data_format : str
        Where the channels are: on axis 1 ('NC...'), or on the last ('N...C').
    use_global_stats : bool, optional
        True: use the running mean and variance in training too; False: those of the batch always.
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    See Also
    --------
    optlab.nn.functional.batch_norm : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.BatchNorm2D(3)(ol.ones([2, 3, 4, 4])).shape
    (2, 3, 4, 4)
    """

    _ndims, _formats, _format = (4,), ("NCHW", "NHWC"), "NCHW"


class BatchNorm3D(_BatchNorm):
    """Normalise the channels of volumes, of shape [N, C, D, H, W], over the batch.

    Parameters
    ----------
    num_features : int
        How many channels.
    momentum : float
        How much of the running mean and variance stays at every step of training.
    epsilon : float
        Added to the variance.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift of the channels; False leaves them out.
    data_format : str
        Where the channels are: on axis 1 ('NC...'), or on the last ('N...C').
    use_global_stats : bool, optional
        True: use the running mean and variance in training too; False: those of the batch always.
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    See Also
    --------
    optlab.nn.functional.batch_norm : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.BatchNorm3D(3)(ol.ones([2, 3, 4, 4, 4])).shape
    (2, 3, 4, 4, 4)
    """

    _ndims, _formats, _format = (5,), ("NCDHW", "NDHWC"), "NCDHW"


class BatchNorm(_BatchNorm):
    """Normalise the channels of x over the batch, and apply an activation: Paddle's older layer.

    Parameters
    ----------
    num_channels : int
        How many channels.
    act : str, optional
        The name of a function of `optlab.nn.functional` that follows, such as 'relu'.
    is_test : bool
        Start in evaluation.
    momentum : float
        How much of the running mean and variance stays at every step of training.
    epsilon : float
        Added to the variance.
    param_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift of the channels; False leaves them out.
    dtype : str or dtype
        Of the parameters.
    data_layout : str
        Where the channels are: on axis 1 ('NC...'), or on the last ('N...C').
    use_global_stats : bool
        Use the running mean and variance in training too.
    trainable_statistics : bool
        Use the mean and variance of the batch in evaluation too.

    See Also
    --------
    optlab.nn.functional.batch_norm : the formula, and its source.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> layer = ol.nn.BatchNorm(1, act="relu")
    >>> np.round(layer(ol.to_tensor([[1.0], [3.0]])).detach(), 4).tolist()
    [[0.0], [1.0]]
    """

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        param_attr: Any = None,
        bias_attr: Any = None,
        dtype: Any = "float32",
        data_layout: str = "NCHW",
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
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
        """Normalise `x`, and apply the activation."""
        self.use_global_stats = self.always_running or (
            not self.training and not self.trainable_statistics
        )
        y = super().forward(x)
        return y if self.act is None else getattr(functional, self.act)(y)
