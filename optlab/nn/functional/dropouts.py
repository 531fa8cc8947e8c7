"""Dropout of elements and of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.rules import random as rules
from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.creation import DEFAULT_DTYPE
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import as_array
from optlab.backend.dtypes import is_floating
from optlab.backend.random import next_key
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.arguments import channel_axis, no_name, scores


def dropout(
    x: Any, p: float = 0.5, axis: int | Sequence[int] | None = None, training: bool = True,
    mode: str = "upscale_in_train", name: None = None,
) -> Tensor:  # fmt: skip
    """Apply dropout: set elements to 0 at random in training.

    Only the random key is saved: the backward pass draws the same mask again.

    Parameters
    ----------
    x : Tensor or array
    p : float
        Probability of an element to be zeroed.
    axis : int or list of int, optional
        Axes along which the mask varies; along the others it is broadcast. By default all axes.
    training : bool
        Whether elements are dropped.
    mode : {'upscale_in_train', 'downscale_in_infer'}
        Divide by 1 - p in training, or multiply by 1 - p in inference, so that the means agree.

    Raises
    ------
    ValueError
        If `p`, `axis` or `mode` is invalid.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.nn.functional.dropout(ol.ones([6]), 0.5)
    Tensor([0., 0., 0., 0., 2., 2.], dtype=float32)
    >>> ol.nn.functional.dropout(ol.ones([6]), 0.5, training=False)
    Tensor([1., 1., 1., 1., 1., 1.], dtype=float32)
    """
    no_name(name)
    rate = as_setting(p, "p")
    if not 0 <= rate <= 1:
        raise ValueError(f"dropout takes a probability p from 0 to 1; got {p!r}.")
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ValueError(
            f"dropout takes mode='upscale_in_train' or 'downscale_in_infer'; got {mode!r}."
        )
    t: Tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    if not is_floating(t.dtype):
        t = t.astype(DEFAULT_DTYPE)
    shape = None if axis is None else _mask_shape(t.shape, axis)
    upscale = mode == "upscale_in_train"
    if not training:
        return t if upscale else t * (1 - rate)
    if rate == 0:
        return t
    dropped: Tensor = rules.dropout(t, rate, next_key(), shape, upscale)
    return dropped


def _mask_shape(shape: tuple[int, ...], axis: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a mask that varies along some axes only."""
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    if not all(-len(shape) <= one < len(shape) for one in axes):
        raise ValueError(f"dropout got axis={axis!r} for x of {len(shape)} axes.")
    varying = {one % len(shape) for one in axes}
    return tuple(length if i in varying else 1 for i, length in enumerate(shape))


def dropout2d(
    x: Any, p: float = 0.5, training: bool = True, data_format: str = "NCHW", name: None = None
) -> Tensor:
    """Apply 2-D channel dropout: set whole channels of images to 0 at random in training.

    Parameters
    ----------
    x : Tensor, shape [N, C, H, W] or [N, H, W, C]
    p : float
        Probability of a channel to be zeroed; the others are divided by 1 - p.
    training : bool
        Whether channels are dropped; if False, x is returned unchanged.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Raises
    ------
    ValueError
        If `x` does not have 4 axes, or `p` is no probability.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.nn.functional.dropout2d(ol.ones([1, 4, 1, 1])).ravel()
    Tensor([0., 0., 0., 0.], dtype=float32)
    """
    return _channel_dropout("dropout2d", x, p, training, data_format, 4, name)


@documented_like(dropout2d, dims=3)
def dropout3d(
    x: Any, p: float = 0.5, training: bool = True, data_format: str = "NCDHW", name: None = None
) -> Tensor:
    """Apply 3-D channel dropout: set whole channels of volumes to 0 at random in training.

    Raises
    ------
    ValueError
        If `x` does not have 5 axes, or `p` is no probability.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.dropout3d(ol.ones([1, 1, 1, 1, 2]), training=False).ravel()
    Tensor([1., 1.], dtype=float32)
    """
    return _channel_dropout("dropout3d", x, p, training, data_format, 5, name)


def _channel_dropout(
    function: str, x: Any, p: float, training: bool, data_format: str, ndim: int, name: Any
) -> Tensor:
    x = scores(x)
    if x.ndim != ndim:
        raise ValueError(f"{function} takes x of {ndim} axes, {data_format}; got shape {x.shape}.")
    axis = channel_axis(data_format, ndim, function)
    return dropout(x, p, [0, axis], training, name=name)


#: SELU of -infinity.
_LOWEST = -1.0507009873554805 * 1.6732632423543772


def alpha_dropout(x: Any, p: float = 0.5, training: bool = True, name: None = None) -> Tensor:
    """Apply alpha dropout: set elements to SELU(-infinity) at random, keeping mean and variance.

    Parameters
    ----------
    x : Tensor or array
    p : float
        Probability of an element to be dropped; less than 1.
    training : bool
        Whether elements are dropped; if False, x is returned unchanged.

    Raises
    ------
    ValueError
        If `p` is not in [0, 1).

    Notes
    -----
    Source: Klambauer et al. 2017, "Self-normalizing neural networks".

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.alpha_dropout(ol.ones([2]), training=False)
    Tensor([1., 1.], dtype=float32)
    """
    no_name(name)
    rate = as_setting(p, "p")
    if not 0 <= rate < 1:
        raise ValueError(f"alpha_dropout takes p from 0 to below 1; got {p!r}.")
    t = scores(x)
    if not training or rate == 0:
        return t
    mask = dropout(np.ones_like(t.data), rate, mode="downscale_in_infer").data
    a = ((1 - rate) * (1 + rate * _LOWEST**2)) ** -0.5
    # A product of a 16-bit array and a Python number may be of 32 bits.
    factor, shift = (
        part if part.dtype == t.dtype else part.astype(t.dtype)
        for part in (a * mask, a * _LOWEST * ((1 - mask) - rate))
    )
    dropped: Tensor = t * factor + shift
    return dropped
