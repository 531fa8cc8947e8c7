"""Normalisations as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optlab.autograd.creation import ones, zeros
from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.attributes import made, named
from optlab.nn.functional.normalizations import as_shape
from optlab.nn.initializer import Constant
from optlab.nn.layer import Layer
from optlab.nn.parameter import Parameter


class _Normalization(Layer):
    """What layers have in common that normalise, scale and shift."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(
        self,
        shape: tuple[int, ...],
        weight_attr: Any,
        bias_attr: Any,
        name: str | None,
        dtype: Any,
    ) -> None:
        """Make the parameters; no layer needs them."""
        for length in shape:
            if length < 1:
                raise ValueError(f"{type(self).__name__} takes lengths of at least 1; got {shape}.")
        self.weight = made(
            shape, weight_attr, "weight_attr", dtype, Constant(1.0), named(name, "weight")
        )
        self.bias = made(shape, bias_attr, "bias_attr", dtype, Constant(0.0), named(name, "bias"))


class _BatchNorm(_Normalization):
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


def put_buffer(layer: Any, name: str, tensor: Tensor) -> None:
    """Put a Tensor into a layer that belongs to its state but is not trained."""
    if hasattr(layer, "register_buffer"):
        layer.register_buffer(name, tensor)
    else:
        setattr(layer, name, tensor)


_ARGUMENTS = """
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
"""


class BatchNorm1D(_BatchNorm):
    __doc__ = f"""Normalise the channels of x, of shape [N, C] or [N, C, L], over the batch.
{_ARGUMENTS}
    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> layer = ol.nn.BatchNorm1D(1)
    >>> np.round(layer(ol.to_tensor([[1.0], [3.0]])).detach(), 4).tolist()
    [[-1.0], [1.0]]
    >>> layer.eval()
    >>> np.round(layer.running_mean, 4)
    Tensor([0.2], dtype=float32)
    """

    _ndims, _formats, _format = (2, 3), ("NC", "NCL", "NLC"), "NCL"


class BatchNorm2D(_BatchNorm):
    __doc__ = f"""Normalise the channels of pictures, of shape [N, C, H, W], over the batch.
{_ARGUMENTS}
    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.BatchNorm2D(3)(ol.ones([2, 3, 4, 4])).shape
    (2, 3, 4, 4)
    """

    _ndims, _formats, _format = (4,), ("NCHW", "NHWC"), "NCHW"


class BatchNorm3D(_BatchNorm):
    __doc__ = f"""Normalise the channels of volumes, of shape [N, C, D, H, W], over the batch.
{_ARGUMENTS}
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


class LayerNorm(_Normalization):
    """Normalise over the last axes.

    Parameters
    ----------
    normalized_shape : int or list of int
        The lengths of the axes that share a mean and a variance.
    epsilon : float
        Added to the variance.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift, of shape `normalized_shape`; False leaves them out.
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

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
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.normalized_shape, self.epsilon = as_shape(normalized_shape), epsilon
        self._make(self.normalized_shape, weight_attr, bias_attr, name, dtype)

    def forward(self, x: Any) -> Tensor:
        """Normalise over the last axes."""
        return functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.epsilon)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"normalized_shape={list(self.normalized_shape)}, epsilon={self.epsilon}"


class RMSNorm(_Normalization):
    """Divide by the root of the mean of squares over the last axes.

    Parameters
    ----------
    normalized_shape : int or list of int
        The lengths of the axes that are averaged.
    epsilon : float
        Added to the mean of squares.
    weight_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale, of shape `normalized_shape`; False leaves it out.
    name : str, optional
        What the name of the parameter starts with.
    dtype : str or dtype
        Of the parameter.

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
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.normalized_shape, self.epsilon = as_shape(normalized_shape), epsilon
        self._make(self.normalized_shape, weight_attr, False, name, dtype)

    def forward(self, x: Any) -> Tensor:
        """Divide by the root of the mean of squares."""
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.epsilon)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"normalized_shape={list(self.normalized_shape)}, epsilon={self.epsilon}"


class GroupNorm(_Normalization):
    """Normalise each example over groups of channels and all places.

    Parameters
    ----------
    num_groups, num_channels : int
        How many groups, and how many channels are put into them.
    epsilon : float
        Added to the variance.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift of the channels; False leaves them out.
    data_format : str
        Where the channels are: on axis 1 ('NC...'), or on the last ('N...C').
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

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
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: {num_channels} channels cannot be put into {num_groups} groups."
            )
        self.num_groups, self.num_channels, self.epsilon = num_groups, num_channels, epsilon
        self.data_format = data_format
        self._make((num_channels,), weight_attr, bias_attr, name, dtype)

    def forward(self, x: Any) -> Tensor:
        """Normalise over groups of channels."""
        return functional.group_norm(
            x, self.num_groups, self.epsilon, self.weight, self.bias, self.data_format
        )

    def extra_repr(self) -> str:
        """Say the sizes."""
        return (
            f"num_groups={self.num_groups}, num_channels={self.num_channels}, "
            f"epsilon={self.epsilon}"
        )


class _InstanceNorm(_Normalization):
    """What the layers of instance normalisation have in common."""

    _ndim = 4
    _formats: tuple[str, ...] = ("NCHW", "NHWC")

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        momentum: float = 0.9,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        data_format = self._formats[0] if data_format is None else data_format
        if data_format not in self._formats:
            raise ValueError(
                f"{type(self).__name__} takes data_format="
                f"{' or '.join(map(repr, self._formats))}; got {data_format!r}."
            )
        self.num_features, self.epsilon, self.momentum = num_features, epsilon, momentum
        self.data_format = data_format
        self._make((num_features,), weight_attr, bias_attr, name, dtype)

    def forward(self, x: Any) -> Tensor:
        """Normalise each channel of each example."""
        if len(x.shape) != self._ndim:
            raise ValueError(
                f"{type(self).__name__} takes x of {self._ndim} axes; got shape {tuple(x.shape)}."
            )
        return functional.instance_norm(
            x, weight=self.weight, bias=self.bias, momentum=self.momentum, eps=self.epsilon,
            data_format=self.data_format,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"num_features={self.num_features}, epsilon={self.epsilon}"


_OF_INSTANCES = """
    Parameters
    ----------
    num_features : int
        How many channels.
    epsilon : float
        Added to the variance.
    momentum : float
        0.9: nothing is averaged over batches, and anything else is refused.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the scale and the shift of the channels; False leaves them out.
    data_format : str
        Where the channels are: on axis 1 ('NC...'), or on the last ('N...C').
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    See Also
    --------
    optlab.nn.functional.instance_norm : the formula, and its source.
"""


class InstanceNorm1D(_InstanceNorm):
    __doc__ = f"""Normalise each channel of each example, of shape [N, C, L].
{_OF_INSTANCES}
    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.InstanceNorm1D(1)(ol.to_tensor([[[1.0, 3.0]]])).detach(), 4).tolist()
    [[[-1.0, 1.0]]]
    """

    _ndim, _formats = 3, ("NCL", "NLC")


class InstanceNorm2D(_InstanceNorm):
    __doc__ = f"""Normalise each channel of each picture, of shape [N, C, H, W].
{_OF_INSTANCES}
    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.InstanceNorm2D(3)(ol.ones([2, 3, 4, 4])).shape
    (2, 3, 4, 4)
    """

    _ndim, _formats = 4, ("NCHW", "NHWC")


class InstanceNorm3D(_InstanceNorm):
    __doc__ = f"""Normalise each channel of each volume, of shape [N, C, D, H, W].
{_OF_INSTANCES}
    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.InstanceNorm3D(3)(ol.ones([2, 3, 4, 4, 4])).shape
    (2, 3, 4, 4, 4)
    """

    _ndim, _formats = 5, ("NCDHW", "NDHWC")


class LocalResponseNorm(Layer):
    """Divide by a mean over neighbouring channels.

    Parameters
    ----------
    size : int
        How many channels around each are averaged.
    alpha, beta, k : float
    data_format : str
        Where the channels are: on axis 1 ('NC...'), or on the last ('N...C').

    See Also
    --------
    optlab.nn.functional.local_response_norm : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LocalResponseNorm(1, alpha=3.0, beta=1.0)(ol.ones([1, 2, 1])).tolist()
    [[[0.25], [0.25]]]
    """

    def __init__(
        self,
        size: int,
        alpha: float = 1e-4,
        beta: float = 0.75,
        k: float = 1.0,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k
        self.data_format = data_format

    def forward(self, x: Any) -> Tensor:
        """Divide by a mean over neighbouring channels."""
        return functional.local_response_norm(
            x, self.size, self.alpha, self.beta, self.k, self.data_format
        )

    def extra_repr(self) -> str:
        """Say the settings."""
        return f"size={self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
