"""Gated units, differentiable random choices and masks of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.rules.random import noise
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import constants_beside
from optlab.backend.random import next_key
from optlab.nn.functional.activation.smooth import SILU, SOFTMAX
from optlab.nn.functional.arguments import check_same_shape, no_name, scores, setting_beside
from optlab.nn.functional.loss.labels import all_classes
from optlab.nn.functional.loss.regression import cast


def swiglu(x: Any, y: Any = None, name: None = None) -> Tensor:
    """Apply SwiGLU: silu(x) * y; without y, silu of the first half of x times the second.

    Parameters
    ----------
    x : Tensor
        Split along the last axis if y is not given.
    y : Tensor, optional
        Of the same shape.

    Raises
    ------
    ValueError
        If the shapes differ, or the last axis is not of even length.

    Notes
    -----
    Source: Shazeer 2020. Signature: paddle.nn.functional.swiglu.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.swiglu(ol.to_tensor([0.0, 1000.0, 5.0, 2.0]))
    Tensor([   0., 2000.], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    if y is None:
        if not x.ndim or x.shape[-1] % 2:
            raise ValueError(f"swiglu halves the last axis of x; got shape {x.shape}.")
        half = x.shape[-1] // 2
        x, y = x[..., :half], x[..., half:]
    y = cast(y, x.dtype)
    check_same_shape("swiglu", x=x, y=y)
    return apply(SILU, (x,)) * y  # type: ignore[no-any-return]


def gumbel_softmax(
    x: Any, temperature: float = 1.0, hard: bool = False, axis: int = -1, name: None = None
) -> Tensor:
    r"""Sample from the Gumbel-softmax distribution, :math:`\mathrm{softmax}((x + g) / T)`.

    g are independent samples of the standard Gumbel distribution. The largest element is that of
    class i with probability softmax(x)[i].

    Parameters
    ----------
    x : Tensor
        Logits of the classes.
    temperature : float
        Temperature T: the smaller, the closer the sample is to one-hot.
    hard : bool
        Return a one-hot sample, with the derivatives of the soft one (straight-through).
    axis : int
        Axis of the classes.

    Raises
    ------
    ValueError
        If there is no such axis, or the temperature is not greater than 0.

    Notes
    -----
    Source: Jang, Gu and Poole 2017; Maddison, Mnih and Teh 2017. Signature:
    paddle.nn.functional.gumbel_softmax.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> drawn = ol.nn.functional.gumbel_softmax(ol.zeros([2, 4]), hard=True)
    >>> drawn.shape, drawn.sum(-1).tolist()
    ((2, 4), [1.0, 1.0])
    """
    no_name(name)
    x = scores(x)
    if not temperature > 0:
        raise ValueError(f"gumbel_softmax: the temperature is greater than 0; got {temperature!r}.")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"gumbel_softmax got axis={axis!r} for x of shape {x.shape}.")
    drawn = noise(("gumbel", 0.0, 1.0), next_key(), x.shape, x.dtype, like=x.data)
    soft = apply(
        SOFTMAX, ((x + drawn) / setting_beside(x, temperature, "temperature"),), {"axis": axis}
    )
    if not hard:
        return soft
    best = np.argmax(soft.data, axis=axis, keepdims=True)
    along = all_classes(best, x.shape[axis]).reshape((-1,) + (1,) * (x.ndim - 1 - axis % x.ndim))
    chosen = (best == along).astype(x.dtype)
    # Its value is `chosen`: the rest is exactly 0.
    return Tensor(chosen) + (soft - soft.detach())


def sequence_mask(
    x: Any, maxlen: int | None = None, dtype: Any = "int64", name: None = None
) -> Tensor:
    """Return a mask that is 1 within each sequence and 0 in its padding.

    Parameters
    ----------
    x : array or Tensor of integers
        Lengths of the sequences, of any shape.
    maxlen : int, optional
        Length of the mask; by default the greatest length.
    dtype : str or dtype
        Dtype of the mask.

    Returns
    -------
    Tensor
        Of shape ``x.shape + (maxlen,)``.

    Raises
    ------
    TypeError, ValueError
        If the lengths are no integers, or `maxlen` is less than 1.

    Notes
    -----
    Signature: paddle.nn.functional.sequence_mask.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.sequence_mask([1, 3]).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    no_name(name)
    lengths = raw(x) if hasattr(x, "__array_function__") else np.asarray(x)
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"sequence_mask takes integers; got dtype {lengths.dtype}.")
    if maxlen is None:
        maxlen = int(np.max(lengths)) if lengths.size else 1
    if not isinstance(maxlen, int) or maxlen < 1:
        raise ValueError(f"sequence_mask: maxlen is at least 1; got {maxlen!r}.")
    positions = constants_beside(lengths, np.arange(maxlen))
    return Tensor((positions < lengths[..., None]).astype(dtype))
