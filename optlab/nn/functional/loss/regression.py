"""Element-wise losses, each beside its derivative rule."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import run_or_record, where_mask
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.arrays import as_array
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.activation.smooth import LOG_SIGMOID, SIGMOID
from optlab.nn.functional.arguments import (
    bounded,
    check_reduction,
    check_same_shape,
    no_name,
    reduced,
    scores,
    setting_beside,
)


def paired(function: str, input: Any, label: Any) -> tuple[Any, Any]:
    """Return input and label as Tensors of one dtype and, unless one is a scalar, of one shape."""
    input = scores(input)
    label = cast(label, input.dtype)
    if input.ndim and label.ndim:
        check_same_shape(function, input=input, label=label)
    return input, label


def cast(x: Any, dtype: Any) -> Tensor:
    """Return a Tensor of this dtype."""
    t: Tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    return t if t.dtype == dtype else t.astype(dtype)


def _weighted(losses: Any, weight: Any, reduction: str) -> Tensor:
    if weight is not None:
        losses = losses * cast(weight, losses.dtype)
    return reduced(losses, reduction)


# Regression losses.


def mse_loss(input: Any, label: Any, reduction: str = "mean", name: None = None) -> Tensor:
    """Compute the mean squared error.

    Parameters
    ----------
    input, label : Tensor or array
        Of the same shape.
    reduction : {'mean', 'sum', 'none'}

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.mse_loss(ol.to_tensor([1.0, 2.0]), ol.to_tensor([1.0, 4.0])).item()
    2.0
    """
    no_name(name)
    input, label = paired("mse_loss", input, label)
    return reduced(np.square(input - label), reduction)


@documented_like(mse_loss)
def square_error_cost(input: Any, label: Any) -> Tensor:
    """Compute the squared error, element by element.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.square_error_cost(ol.to_tensor([1.0, 2.0]), ol.to_tensor([1.0, 4.0]))
    Tensor([0., 4.], dtype=float32)
    """
    return mse_loss(input, label, "none")


@documented_like(mse_loss)
def l1_loss(input: Any, label: Any, reduction: str = "mean", name: None = None) -> Tensor:
    """Compute the mean absolute error (L1 loss); its derivative at 0 is 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.l1_loss(ol.to_tensor([1.0, 2.0]), ol.to_tensor([1.0, 4.0])).item()
    1.0
    """
    no_name(name)
    input, label = paired("l1_loss", input, label)
    return reduced(np.abs(input - label), reduction)


def _huber(x: Any, delta: float) -> Any:
    inner = bounded(x, -delta, delta)
    return inner * (x - 0.5 * inner)


HUBER = rule(_huber, lambda g, x, delta: g * np.clip(x, -delta, delta), inputs="x", static="delta")


@documented_like(mse_loss)
def smooth_l1_loss(
    input: Any, label: Any, reduction: str = "mean", delta: float = 1.0, is_huber: bool = True,
    name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the smooth L1 loss (Huber loss) of differences d.

    .. math:: \tfrac{1}{2} d^2 \;\text{for}\; |d| \le \delta, \quad
        \delta\, (|d| - \tfrac{1}{2} \delta) \;\text{elsewhere}

    Parameters
    ----------
    delta : float
        Threshold from quadratic to linear loss; greater than 0.
    is_huber : bool
        If False, divide by `delta`, so that the slope of the linear part is 1.

    Raises
    ------
    ValueError
        If the shapes differ, or `delta` is not positive.

    Notes
    -----
    Sources: Huber 1964; Girshick 2015, "Fast R-CNN".

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.functional.smooth_l1_loss
    >>> loss(ol.to_tensor([0.0, 3.0]), ol.to_tensor([1.0, 0.0]), reduction="none")
    Tensor([0.5, 2.5], dtype=float32)
    """
    no_name(name)
    if not delta > 0:
        raise ValueError(f"delta must be greater than 0; got {delta!r}.")
    input, label = paired("smooth_l1_loss", input, label)
    delta = setting_beside(input, delta, "delta")
    if isinstance(delta, Tensor):
        size = np.abs(input - label)
        losses = np.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
    else:
        losses = apply(HUBER, (input - label,), {"delta": delta})
    return reduced(losses if is_huber else losses / delta, reduction)


@documented_like(smooth_l1_loss)
def huber_loss(input: Any, label: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Compute the Huber loss: `smooth_l1_loss` under PyTorch's name.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.huber_loss(ol.to_tensor([3.0]), ol.to_tensor([0.0]), delta=2.0).item()
    4.0
    """
    return smooth_l1_loss(input, label, reduction, delta)


# Binary classification.


def _log_above_zero(x: Any) -> Any:
    """Return log(x), and -100 (or the log of the smallest subnormal) where x is 0."""
    least = float(np.finfo(x.dtype).smallest_subnormal)
    return np.log(np.maximum(x, max(math.exp(-100), least)))


def _binary(x: Any, label: Any) -> Any:
    return (label - 1) * _log_above_zero(1 - x) - label * _log_above_zero(x)


BINARY = rule(
    _binary,
    lambda g, x, label: g * ((x - label) / np.maximum(x * (1 - x), 1e-12)),
    lambda g, x: g * (_log_above_zero(1 - x) - _log_above_zero(x)),
    inputs="x label",
)


def binary_cross_entropy(
    input: Any, label: Any, weight: Any = None, reduction: str = "mean", name: None = None
) -> Tensor:
    r"""Compute the binary cross-entropy :math:`-w\,(l \log x + (1 - l) \log(1 - x))`.

    Parameters
    ----------
    input : Tensor
        Probabilities x. Logarithms below -100 count as -100.
    label : Tensor or array
        From 0 to 1, of the same shape.
    weight : array, optional
        Weight w of each element, broadcast.
    reduction : {'mean', 'sum', 'none'}

    Raises
    ------
    ValueError
        If the shapes differ, or `input` is not from 0 to 1.

    See Also
    --------
    binary_cross_entropy_with_logits : takes logits, and is accurate for large ones.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.functional.binary_cross_entropy
    >>> round(loss(ol.to_tensor([0.5, 0.5]), ol.to_tensor([0.0, 1.0])).item(), 4)
    0.6931
    """
    no_name(name)
    input, label = paired("binary_cross_entropy", input, label)
    x = input.data
    if type(x) is np.ndarray and x.size and (np.min(x) < 0 or np.max(x) > 1):
        raise ValueError(
            "binary_cross_entropy takes probabilities from 0 to 1; got "
            f"{np.min(x)} ... {np.max(x)}. For scores use binary_cross_entropy_with_logits."
        )
    return _weighted(apply(BINARY, (input, label)), weight, reduction)


def _with_logits(x: Any, label: Any) -> Any:
    return (1 - label) * x - run_or_record(LOG_SIGMOID, x)


def _with_weighted_logits(x: Any, label: Any, pos_weight: Any) -> Any:
    return (1 - label) * x - (1 + (pos_weight - 1) * label) * run_or_record(LOG_SIGMOID, x)


WITH_LOGITS = rule(
    _with_logits,
    lambda g, x, label: g * (run_or_record(SIGMOID, x) - label),
    lambda g, x: -g * x,
    inputs="x label",
)
WITH_WEIGHTED_LOGITS = rule(
    _with_weighted_logits,
    lambda g, x, label, pos_weight: (
        g * ((1 - label) - (1 + (pos_weight - 1) * label) * run_or_record(SIGMOID, -x))
    ),
    lambda g, x, pos_weight: -g * (x + (pos_weight - 1) * run_or_record(LOG_SIGMOID, x)),
    lambda g, x, label: -g * label * run_or_record(LOG_SIGMOID, x),
    inputs="x label pos_weight",
)


@documented_like(binary_cross_entropy)
def binary_cross_entropy_with_logits(
    logit: Any, label: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None,
    name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the binary cross-entropy of logits.

    .. math:: -w\,(p\, l \log \sigma(x) + (1 - l) \log(1 - \sigma(x)))

    Parameters
    ----------
    logit : Tensor
        Logits x.
    pos_weight : array, optional
        Weight p of positive labels, broadcast.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.functional.binary_cross_entropy_with_logits
    >>> loss(ol.to_tensor([-1000.0, 1000.0]), ol.to_tensor([1.0, 1.0]), reduction="none")
    Tensor([1000.,    0.], dtype=float32)
    """
    no_name(name)
    logit, label = paired("binary_cross_entropy_with_logits", logit, label)
    if pos_weight is None:
        losses = apply(WITH_LOGITS, (logit, label))
    else:
        losses = apply(WITH_WEIGHTED_LOGITS, (logit, label, cast(pos_weight, logit.dtype)))
    return _weighted(losses, weight, reduction)


# Kullback-Leibler divergence.


def _divergence(x: Any, label: Any) -> Any:
    positive = label > 0
    return where_mask(label * (np.log(np.where(positive, label, 1.0)) - x), positive)


def _divergence_of_logarithms(x: Any, label: Any) -> Any:
    return np.exp(label) * (label - x)


DIVERGENCE = rule(
    _divergence,
    lambda g, label: -g * where_mask(label, label > 0),
    lambda g, x, label: where_mask(
        g * (np.log(np.where(label > 0, label, 1.0)) + 1 - x), label > 0
    ),
    inputs="x label",
)
DIVERGENCE_OF_LOGARITHMS = rule(
    _divergence_of_logarithms,
    lambda g, label: -g * np.exp(label),
    lambda g, x, label: g * (np.exp(label) * (label - x + 1)),
    inputs="x label",
)


def kl_div(
    input: Any, label: Any, reduction: str = "mean", log_target: bool = False, name: None = None
) -> Tensor:
    r"""Compute the Kullback-Leibler divergence, of terms :math:`l\,(\log l - x)`.

    Parameters
    ----------
    input : Tensor
        Log-probabilities x.
    label : Tensor or array
        Probabilities l, of the same shape; where they are 0, so is the term.
    reduction : {'mean', 'batchmean', 'sum', 'none'}
        'batchmean' divides the sum by the batch size, which is the divergence; 'mean' divides by
        the number of elements.
    log_target : bool
        Whether `label` holds log-probabilities.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> p, q = ol.to_tensor([[0.5, 0.5]]), ol.to_tensor([[0.25, 0.75]])
    >>> round(ol.nn.functional.kl_div(np.log(q), p, "batchmean").item(), 4)
    0.1438
    """
    no_name(name)
    check_reduction(reduction, ("mean", "batchmean", "sum", "none"))
    input, label = paired("kl_div", input, label)
    losses = apply(DIVERGENCE_OF_LOGARITHMS if log_target else DIVERGENCE, (input, label))
    if reduction == "batchmean":
        return np.sum(losses) / (input.shape[0] if input.ndim else 1)  # type: ignore[no-any-return]
    return reduced(losses, reduction)
