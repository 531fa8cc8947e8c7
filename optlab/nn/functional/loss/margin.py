"""Margin losses, composed of other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.activation.rectifiers import RELU
from optlab.nn.functional.activation.smooth import LOG_SIGMOID
from optlab.nn.functional.arguments import (
    check_same_shape,
    no_name,
    reduced,
    scores,
    setting_beside,
)
from optlab.nn.functional.loss.regression import cast, mse_loss, paired


@documented_like(mse_loss)
def hinge_embedding_loss(
    input: Any, label: Any, margin: float = 1.0, reduction: str = "mean", name: None = None
) -> Tensor:
    """Compute the hinge embedding loss: input for label 1, max(margin - input, 0) for label -1.

    Parameters
    ----------
    input : Tensor
        Distances of pairs.
    label : Tensor or array
        1 for similar, -1 for dissimilar pairs; of the same shape. Elsewhere the loss is 0.
    margin : float
        Smallest distance of dissimilar pairs without loss.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.functional.hinge_embedding_loss
    >>> loss(ol.to_tensor([0.5, 0.25]), ol.to_tensor([1, -1]), reduction="none")
    Tensor([0.5 , 0.75], dtype=float32)
    """
    no_name(name)
    input, label = paired("hinge_embedding_loss", input, label)
    apart = apply(RELU, (setting_beside(input, margin, "margin") - input,))
    losses = np.where(label == 1, input, np.where(label == -1, apart, 0.0))
    return reduced(losses, reduction)


@documented_like(mse_loss)
def margin_ranking_loss(
    input: Any, other: Any, label: Any, margin: float = 0.0, reduction: str = "mean",
    name: None = None,
) -> Tensor:  # fmt: skip
    """Compute the margin ranking loss, max(-label * (input - other) + margin, 0).

    Parameters
    ----------
    input, other : Tensor
        Of the same shape.
    label : Tensor or array
        1 where `input` should rank higher, -1 where `other` should; broadcast.
    margin : float
        Difference beyond which there is no loss.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.functional.margin_ranking_loss
    >>> loss(ol.to_tensor([1.0, 1.0]), ol.to_tensor([0.0, 3.0]), 1.0, reduction="none")
    Tensor([0., 2.], dtype=float32)
    """
    no_name(name)
    input, other = scores(input), scores(other)
    check_same_shape("margin_ranking_loss", input=input, other=other)
    behind = cast(label, input.dtype) * (other - input)
    least = setting_beside(input, margin, "margin")
    if isinstance(least, Tensor) or least:
        behind = behind + least
    return reduced(apply(RELU, (behind,)), reduction)


@documented_like(mse_loss)
def soft_margin_loss(input: Any, label: Any, reduction: str = "mean", name: None = None) -> Tensor:
    r"""Compute the soft margin loss, :math:`\log(1 + e^{-l x})` for labels l of 1 and -1.

    Parameters
    ----------
    input : Tensor
        Scores, x.
    label : Tensor or array
        1 or -1, of the same shape.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.functional.soft_margin_loss
    >>> loss(ol.to_tensor([1000.0, -1000.0]), ol.to_tensor([1, 1]), reduction="sum").item()
    1000.0
    """
    no_name(name)
    input, label = paired("soft_margin_loss", input, label)
    return reduced(-apply(LOG_SIGMOID, (label * input,)), reduction)
