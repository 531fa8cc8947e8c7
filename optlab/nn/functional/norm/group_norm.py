"""Normalizations over the channels of single examples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn.functional.arguments import channel_axis, no_name, scores, setting_beside
from optlab.nn.functional.norm.layer_norm import (
    cast_back,
    check_channels,
    prepared,
    scaled,
    standardized,
)


def group_norm(
    x: Any, num_groups: int, epsilon: float = 1e-5, weight: Any = None, bias: Any = None,
    data_format: str = "NCHW", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply group normalization: normalize each example over groups of channels.

    Parameters
    ----------
    x : Tensor, shape [N, C, ...]
    num_groups : int
        Number of groups of the C channels.
    epsilon : float
    weight, bias : Tensor, shape [C], optional
    data_format : {'NC', 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Position of the channel axis: 1 or the last.

    Raises
    ------
    ValueError
        If `num_groups` does not divide C, or shapes do not fit.

    Notes
    -----
    Source: Wu and He 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor([[1.0, 3.0, 10.0, 30.0]])
    >>> np.round(ol.nn.functional.group_norm(x, 2), 4)
    Tensor([[-1.,  1., -1.,  1.]], dtype=float32)
    """
    no_name(name)
    x, weight, bias, given = prepared(x, weight, bias)
    y = _normalize_groups("group_norm", x, num_groups, epsilon, weight, bias, data_format)
    return cast_back(y, given)


def _normalize_groups(
    function: str, x: Any, groups: int, epsilon: float, weight: Any, bias: Any, data_format: str
) -> Tensor:
    axis = channel_axis(data_format, x.ndim, function)
    if x.ndim < 2:
        raise ValueError(f"{function} takes x of shape [N, C] or [N, C, ...]; got {x.shape}.")
    count = x.shape[axis]
    check_channels(function, count, weight=weight, bias=bias)
    if groups < 1 or count % groups:
        raise ValueError(f"{function}: {count} channels cannot be put into {groups} groups.")
    if axis != 1:
        x = np.moveaxis(x, -1, 1)
    parts = x.reshape((x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    normal = standardized(parts, (2,), epsilon).reshape(x.shape)
    y = scaled(normal, weight, bias, (count,) + (1,) * (x.ndim - 2))
    return y if axis == 1 else np.moveaxis(y, 1, -1)  # type: ignore[type-var]


def instance_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.9, eps: float = 1e-5,
    data_format: str = "NCHW", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply instance normalization: normalize each channel of each example over its positions.

    Parameters
    ----------
    x : Tensor, shape [N, C, ...]
    running_mean, running_var : None
        Running statistics are not covered.
    weight, bias : Tensor, shape [C], optional
    use_input_stats : bool
        Must be True.
    momentum : float
        Must be 0.9, the default: there are no running statistics.
    eps : float
    data_format : {'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Position of the channel axis: 1 or the last.

    Raises
    ------
    TypeError
        If running statistics are requested.
    ValueError
        If shapes do not fit.

    Notes
    -----
    Source: Ulyanov, Vedaldi and Lempitsky 2016.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x = ol.to_tensor([[[1.0, 3.0], [10.0, 30.0]]])
    >>> np.round(ol.nn.functional.instance_norm(x), 4).tolist()
    [[[-1.0, 1.0], [-1.0, 1.0]]]
    """
    no_name(name)
    if running_mean is not None or running_var is not None or not use_input_stats:
        raise TypeError(
            "instance_norm with running_mean, running_var or use_input_stats=False is not covered; "
            "batch_norm has running statistics."
        )
    if momentum != 0.9:
        raise TypeError(
            f"instance_norm(momentum={momentum!r}) would change nothing: there are no running "
            "statistics. Leave it out."
        )
    x, weight, bias, given = prepared(x, weight, bias)
    axis = channel_axis(data_format, x.ndim, "instance_norm")
    if x.ndim < 3:
        raise ValueError(f"instance_norm takes x of shape [N, C, ...]; got {x.shape}.")
    y = _normalize_groups("instance_norm", x, x.shape[axis], eps, weight, bias, data_format)
    return cast_back(y, given)


def local_response_norm(
    x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0,
    data_format: str = "NCHW", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply local response normalization, :math:`x / (k + \alpha \overline{x^2})^\beta`.

    Parameters
    ----------
    x : Tensor, shape [N, C, ...]
    size : int
        Number of adjacent channels in the mean; missing ones count as 0.
    alpha, beta, k : float
    data_format : {'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Position of the channel axis: 1 or the last.

    Raises
    ------
    ValueError
        If `x` has fewer than 3 axes, or `size` is less than 1.

    Notes
    -----
    Source: Krizhevsky, Sutskever and Hinton 2012.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.local_response_norm(ol.ones([1, 2, 1]), 1, alpha=3.0, beta=1.0).tolist()
    [[[0.25], [0.25]]]
    """
    no_name(name)
    x = scores(x)
    axis = channel_axis(data_format, x.ndim, "local_response_norm")
    if x.ndim < 3 or size < 1:
        raise ValueError(
            "local_response_norm takes x of shape [N, C, ...] and size of at least 1; got shape "
            f"{x.shape} and size={size!r}."
        )
    before = [(0, 0)] * x.ndim
    before[axis] = (size // 2, (size - 1) // 2)
    padded = np.pad(np.square(x), before)
    count = x.shape[axis]
    index = (slice(None),) * axis
    total = padded[(*index, slice(0, count))]
    for i in range(1, size):
        total = total + padded[(*index, slice(i, i + count))]
    k, alpha, beta = (
        setting_beside(x, value, name)
        for name, value in (("k", k), ("alpha", alpha), ("beta", beta))
    )
    return x / (k + alpha / size * total) ** beta  # type: ignore[no-any-return]
