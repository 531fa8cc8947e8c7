"""Negative log-likelihoods and other losses of probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.nn.functional.activation.smooth import LOG_SIGMOID, SIGMOID
from optlab.nn.functional.arguments import (
    check_reduction,
    check_same_shape,
    no_name,
    reduced,
    scores,
    setting_beside,
)
from optlab.nn.functional.loss.labels import one_hot
from optlab.nn.functional.loss.regression import binary_cross_entropy_with_logits, cast, paired


def gaussian_nll_loss(
    input: Any, label: Any, variance: Any, full: bool = False, epsilon: float = 1e-6,
    reduction: str = "mean", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the Gaussian negative log-likelihood, :math:`\frac12 (\log v + (x - y)^2 / v)`.

    Parameters
    ----------
    input, label : Tensor
        Predicted mean x and target y, of the same shape.
    variance : Tensor
        Variance v, of the same shape, or with a last axis of length 1 or none.
    full : bool
        Whether to add the constant :math:`\frac12 \log 2 \pi`.
    epsilon : float
        Lower bound of the variance; below it the variance gets no gradient.
    reduction : {'mean', 'sum', 'none'}

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Source: Nix and Weigend 1994. Signature: paddle.nn.functional.gaussian_nll_loss.

    Examples
    --------
    >>> import optlab as ol
    >>> x, y, v = ol.to_tensor([1.0]), ol.to_tensor([3.0]), ol.to_tensor([1.0])
    >>> ol.nn.functional.gaussian_nll_loss(x, y, v)
    Tensor(2., dtype=float32)
    """
    no_name(name)
    check_reduction(reduction)
    x, y = paired("gaussian_nll_loss", input, label)
    v: Any = cast(variance, x.dtype)
    if v.shape == x.shape[:-1] and v.shape != x.shape:
        v = v.reshape((*v.shape, 1))
    if v.shape not in (x.shape, (*x.shape[:-1], 1)):
        raise ValueError(
            f"gaussian_nll_loss got input of shape {x.shape} and variance of shape {v.shape}: "
            "there is one for each element, or one for each row."
        )
    v = np.maximum(v, setting_beside(x, epsilon, "epsilon"))
    losses = 0.5 * (np.log(v) + (x - y) ** 2 / v)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def poisson_nll_loss(
    input: Any, label: Any, log_input: bool = True, full: bool = False, epsilon: float = 1e-8,
    reduction: str = "mean", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the Poisson negative log-likelihood, :math:`\lambda - y \log \lambda`.

    Parameters
    ----------
    input : Tensor
        Rate :math:`\lambda`, or its logarithm.
    label : Tensor or array
        Counts y, of the same shape.
    log_input : bool
        Whether `input` is the logarithm of the rate.
    full : bool
        Whether to add Stirling's approximation of log y!, for counts greater than 1.
    epsilon : float
        Added to the rate before its logarithm is taken.
    reduction : {'mean', 'sum', 'none'}

    Raises
    ------
    ValueError
        If the shapes differ, or `epsilon` is not greater than 0.

    Notes
    -----
    Signature: paddle.nn.functional.poisson_nll_loss.

    Examples
    --------
    >>> import optlab as ol
    >>> rate, count = ol.to_tensor([2.0]), ol.to_tensor([0.0])
    >>> ol.nn.functional.poisson_nll_loss(rate, count, log_input=False)
    Tensor(2., dtype=float32)
    """
    no_name(name)
    check_reduction(reduction)
    if not epsilon > 0:
        raise ValueError(f"poisson_nll_loss takes epsilon greater than 0; got {epsilon!r}.")
    x, y = paired("poisson_nll_loss", input, label)
    losses = (
        np.exp(x) - y * x
        if log_input
        else x - y * np.log(x + setting_beside(x, epsilon, "epsilon"))
    )
    if full:
        many = y > 1
        count = np.where(many, y, 2.0)
        stirling = count * np.log(count) - count + 0.5 * np.log(2 * math.pi * count)
        losses = losses + np.where(many, stirling, 0.0)
    return reduced(losses, reduction)


def log_loss(input: Any, label: Any, epsilon: float = 1e-4, name: None = None) -> Tensor:
    r"""Compute the log loss of each element.

    .. math:: -y \log(p + \varepsilon) - (1 - y) \log(1 - p + \varepsilon)

    Parameters
    ----------
    input : Tensor
        Probabilities p.
    label : Tensor or array
        Labels y from 0 to 1, of the same shape.
    epsilon : float
        Added to the arguments of the logarithms.

    Notes
    -----
    Signature: paddle.nn.functional.log_loss.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.log_loss(ol.to_tensor([[0.5]]), [[1.0]]), 4)
    Tensor([[0.6929]], dtype=float32)
    """
    no_name(name)
    p, y = paired("log_loss", input, label)
    loss: Tensor = -y * np.log(p + epsilon) - (1 - y) * np.log(1 - p + epsilon)
    return loss


def multi_label_soft_margin_loss(
    input: Any, label: Any, weight: Any = None, reduction: str = "mean", name: None = None
) -> Tensor:
    r"""Compute the multi-label soft margin loss.

    The mean over classes of :math:`-y \log \sigma(x) - (1 - y) \log \sigma(-x)`.

    Parameters
    ----------
    input : Tensor of shape [..., C]
        Logits x.
    label : Tensor or array
        1 for each class present, else 0; of the same shape.
    weight : array, shape [C], optional
        Weight of each class.
    reduction : {'mean', 'sum', 'none'}

    Raises
    ------
    ValueError
        If the shapes differ.

    Notes
    -----
    Signature: paddle.nn.functional.multi_label_soft_margin_loss.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> loss = ol.nn.functional.multi_label_soft_margin_loss(ol.to_tensor([[0.0, 0.0]]), [[1, 0]])
    >>> np.round(loss, 4)
    Tensor(0.6931, dtype=float32)
    """
    no_name(name)
    check_reduction(reduction)
    x, y = paired("multi_label_soft_margin_loss", input, label)
    losses = -(y * apply(LOG_SIGMOID, (x,)) + (1 - y) * apply(LOG_SIGMOID, (-x,)))
    if weight is not None:
        losses = losses * cast(weight, x.dtype)
    return reduced(np.mean(losses, axis=-1), reduction)


def sigmoid_focal_loss(
    logit: Any, label: Any, normalizer: Any = None, alpha: float = 0.25, gamma: float = 2.0,
    reduction: str = "sum", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the focal loss of logits, :math:`-\alpha_t (1 - p_t)^\gamma \log p_t`.

    Parameters
    ----------
    logit : Tensor
        Logits; p is their sigmoid, and :math:`p_t` is p where the label is 1, else 1 - p.
    label : Tensor or array
        1 or 0, of the same shape.
    normalizer : Tensor of one element, optional
        Divisor of the losses, such as the number of objects.
    alpha : float
        Weight of label 1, from 0 to 1; label 0 has weight 1 - alpha.
    gamma : float
        Focusing exponent, at least 0; 0 yields the weighted cross-entropy.
    reduction : {'sum', 'mean', 'none'}

    Raises
    ------
    ValueError
        If shapes do not fit, or alpha or gamma are out of range.

    Notes
    -----
    Source: Lin et al. 2017. Signature: paddle.nn.functional.sigmoid_focal_loss.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.sigmoid_focal_loss(ol.to_tensor([0.0]), [1.0]), 4)
    Tensor(0.0433, dtype=float32)
    """
    no_name(name)
    check_reduction(reduction)
    if not 0 <= alpha <= 1 or not gamma >= 0:
        raise ValueError(
            "sigmoid_focal_loss takes alpha from 0 to 1 and gamma of at least 0; got "
            f"alpha={alpha!r}, gamma={gamma!r}."
        )
    x, y = paired("sigmoid_focal_loss", logit, label)
    entropy = binary_cross_entropy_with_logits(x, y, reduction="none")
    p = apply(SIGMOID, (x,))
    error = p * (1 - y) + (1 - p) * y
    losses = entropy * (alpha * y + (1 - alpha) * (1 - y)) * error**gamma
    if normalizer is not None:
        n = cast(normalizer, x.dtype)
        if n.size != 1:
            raise ValueError(f"sigmoid_focal_loss takes one normalizer; got shape {n.shape}.")
        losses = losses / n.reshape(())
    return reduced(losses, reduction)


def dice_loss(input: Any, label: Any, epsilon: float = 1e-5, name: None = None) -> Tensor:
    r"""Compute the mean Dice loss, ``1 - 2 |A and B| / (|A| + |B|)``.

    Parameters
    ----------
    input : Tensor of shape [N, ..., C]
        Probabilities of the classes at each position.
    label : array or Tensor of integers, shape [N, ..., 1]
    epsilon : float
        Added to the denominator.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Source: Milletari, Navab and Ahmadi 2016. Signature: paddle.nn.functional.dice_loss.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> p = ol.to_tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> np.round(ol.nn.functional.dice_loss(p, [[[0], [1]]]), 4)
    Tensor(0., dtype=float32)
    """
    no_name(name)
    x = scores(input)
    if x.ndim < 2 or np.shape(label) != (*x.shape[:-1], 1):
        raise ValueError(
            f"dice_loss takes input of shape [N, ..., C] and labels of shape [N, ..., 1]; got "
            f"{x.shape} and {np.shape(label)}."
        )
    target = cast(one_hot(label, x.shape[-1])[..., 0, :], x.dtype)
    check_same_shape("dice_loss", input=x, label=target)
    axes = tuple(range(1, x.ndim))
    overlap = np.sum(x * target, axis=axes)
    sizes = np.sum(x, axis=axes) + np.sum(target, axis=axes)
    return np.mean(1 - 2 * overlap / (sizes + epsilon))  # type: ignore[no-any-return]
