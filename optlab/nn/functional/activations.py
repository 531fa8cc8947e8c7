"""Activations, each beside its derivative rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules import reductions
from optlab.autograd.rules.elementwise import TANH
from optlab.autograd.tensor import Tensor, apply
from optlab.nn.functional.shared import scores


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


RELU = rule(_relu, lambda g, y: g * (y > 0))


def relu(x: Any) -> Tensor:
    r"""Give max(x, 0), element by element; its derivative at 0 is 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.relu(ol.to_tensor([-1.0, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """
    return apply(RELU, (x,))


def tanh(x: Any) -> Tensor:
    """Give the hyperbolic tangent, element by element."""
    return apply(TANH, (x,))


def _log_softmax(x: Any, axis: int = -1) -> Any:
    shifted = x - reductions.MAX.forward(x, axis=axis, keepdims=True)
    shifted -= np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))
    return shifted


LOG_SOFTMAX = rule(
    _log_softmax,
    lambda g, y, axis=-1: g - np.exp(y) * np.add.reduce(g, axis=axis, keepdims=True),
    static="axis",
)


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """Give the logarithms of `softmax`, without overflow for large x.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.exp(ol.nn.functional.log_softmax(ol.to_tensor([1000.0, 1000.0])))
    Tensor([0.5, 0.5], dtype=float32)
    """
    return apply(LOG_SOFTMAX, (scores(x),), {"axis": axis})


def softmax(x: Any, axis: int = -1) -> Tensor:
    """Give exp(x) / sum(exp(x)) along `axis`, without overflow for large x.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.softmax(ol.to_tensor([0.0, 0.0]))
    Tensor([0.5, 0.5], dtype=float32)
    """
    return log_softmax(x, axis).exp()
