"""Functions of networks that draw random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.creation import DEFAULT_DTYPE
from optlab.autograd.rules import random as rules
from optlab.autograd.tensor import Tensor
from optlab.backend.arrays import as_array, as_float
from optlab.backend.random import next_key


def dropout(
    x: Any,
    p: float = 0.5,
    axis: int | Sequence[int] | None = None,
    training: bool = True,
    mode: str = "upscale_in_train",
) -> Tensor:
    """Set elements to 0 at random while training.

    The mask is drawn from the next random key, and the tape keeps the key alone: backward draws
    the same mask again.

    Parameters
    ----------
    x : Tensor or array
    p : float
        The probability of each element to be set to 0.
    axis : int or list of int, optional
        The axes along which elements are dropped one by one; along the others they stay or go
        together. By default all axes.
    training : bool
        Outside training nothing is dropped.
    mode : {'upscale_in_train', 'downscale_in_infer'}
        Divide by 1 - p while training, or multiply by 1 - p outside training: either way the mean
        is the same in both.

    Raises
    ------
    ValueError
        If `p`, `axis` or `mode` is none of these.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.nn.functional.dropout(ol.ones([6]), 0.5)
    Tensor([0., 0., 0., 0., 2., 2.], dtype=float32)
    >>> ol.nn.functional.dropout(ol.ones([6]), 0.5, training=False)
    Tensor([1., 1., 1., 1., 1., 1.], dtype=float32)
    """
    rate = as_float(p, "p")
    if not 0 <= rate <= 1:
        raise ValueError(f"dropout takes a probability p from 0 to 1; got {p!r}.")
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ValueError(
            f"dropout takes mode='upscale_in_train' or 'downscale_in_infer'; got {mode!r}."
        )
    t: Tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    if t.dtype.kind != "f":
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
    """Give the shape of a mask that varies along some axes only."""
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    if not all(-len(shape) <= one < len(shape) for one in axes):
        raise ValueError(f"dropout got axis={axis!r} for x of {len(shape)} axes.")
    varying = {one % len(shape) for one in axes}
    return tuple(length if i in varying else 1 for i, length in enumerate(shape))
