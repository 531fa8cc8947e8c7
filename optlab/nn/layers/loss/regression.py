"""Elementwise loss layers."""

from __future__ import annotations

from typing import Any

from optlab.nn import functional
from optlab.nn.layers.configured import LabelLoss, Loss

KL_REDUCTIONS = ("mean", "batchmean", "sum", "none")


class MSELoss(LabelLoss, function=functional.mse_loss):
    """Compute the mean squared error.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.MSELoss()(ol.to_tensor([1.0, 2.0]), ol.to_tensor([1.0, 4.0])).item()
    2.0
    """

    reduction: str = "mean"


class L1Loss(LabelLoss, function=functional.l1_loss):
    """Compute the mean absolute error.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.L1Loss()(ol.to_tensor([1.0, 2.0]), ol.to_tensor([1.0, 4.0])).item()
    1.0
    """

    reduction: str = "mean"
    name: str | None = None


class SmoothL1Loss(LabelLoss, function=functional.smooth_l1_loss):
    """Compute the smooth L1 loss: quadratic for small differences, linear for large ones.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.SmoothL1Loss()(ol.to_tensor([3.0]), ol.to_tensor([0.0])).item()
    2.5
    """

    reduction: str = "mean"
    delta: float = 1.0
    is_huber: bool = True
    name: str | None = None


class HuberLoss(LabelLoss, function=functional.huber_loss):
    """Compute the Huber loss: `SmoothL1Loss` under the name of PyTorch.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.HuberLoss()(ol.to_tensor([3.0]), ol.to_tensor([0.0])).item()
    2.5
    """

    reduction: str = "mean"
    delta: float = 1.0


class BCELoss(LabelLoss, function=functional.binary_cross_entropy):
    """Compute the binary cross-entropy of probabilities.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.BCELoss()(ol.to_tensor([1.0]), ol.to_tensor([1.0])).item()
    0.0
    """

    weight: Any = None
    reduction: str = "mean"
    name: str | None = None


class BCEWithLogitsLoss(Loss, function=functional.binary_cross_entropy_with_logits):
    """Compute the binary cross-entropy of logits.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.BCEWithLogitsLoss()(ol.to_tensor([-1000.0]), ol.to_tensor([1.0])).item()
    1000.0
    """

    weight: Any = None
    reduction: str = "mean"
    pos_weight: Any = None
    name: str | None = None

    def forward(self, logit: Any, label: Any) -> Any:
        """Compute the loss."""
        return self._call_function(logit, label)


class KLDivLoss(LabelLoss, function=functional.kl_div):
    """Compute the Kullback-Leibler divergence of log-probabilities from a target distribution.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.KLDivLoss()(ol.to_tensor([-2.0]), ol.to_tensor([1.0])).item()
    2.0
    """

    reduction: str = "mean"
    log_target: bool = False

    _reductions = KL_REDUCTIONS


class HingeEmbeddingLoss(LabelLoss, function=functional.hinge_embedding_loss):
    """Compute the hinge embedding loss of distances of similar and dissimilar pairs.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.HingeEmbeddingLoss()(ol.to_tensor([0.5, 0.25]), ol.to_tensor([1, -1])).item()
    0.625
    """

    margin: float = 1.0
    reduction: str = "mean"
    name: str | None = None


class MarginRankingLoss(Loss, function=functional.margin_ranking_loss):
    """Compute the margin ranking loss of pairs of scores.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.MarginRankingLoss()
    >>> loss(ol.to_tensor([1.0]), ol.to_tensor([3.0]), ol.to_tensor([1.0])).item()
    2.0
    """

    margin: float = 0.0
    reduction: str = "mean"
    name: str | None = None

    def forward(self, input: Any, other: Any, label: Any) -> Any:
        """Compute the loss."""
        return self._call_function(input, other, label)


class SoftMarginLoss(LabelLoss, function=functional.soft_margin_loss):
    """Compute the logistic loss log(1 + e^(-label * input)) for labels of 1 and -1.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.SoftMarginLoss()(ol.to_tensor([-1000.0]), ol.to_tensor([1.0])).item()
    1000.0
    """

    reduction: str = "mean"
    name: str | None = None
