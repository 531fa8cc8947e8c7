"""Loss layers of probabilities, pairs and triplets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optlab.nn import functional
from optlab.nn.layers.configured import LabelLoss, Loss


class CosineEmbeddingLoss(Loss, function=functional.cosine_embedding_loss):
    """Compute the cosine embedding loss of similar and dissimilar pairs.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([[1.0, 0.0]])
    >>> ol.nn.CosineEmbeddingLoss()(x, x, [-1])
    Tensor(1., dtype=float32)
    """

    margin: float = 0.0
    reduction: str = "mean"
    name: str | None = None

    def forward(self, input1: Any, input2: Any, label: Any) -> Any:
        """Compute the loss."""
        return self._call_function(input1, input2, label)


class TripletMarginLoss(Loss, function=functional.triplet_margin_loss):
    """Compute the triplet margin loss with distances in a p-norm.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.zeros([1, 2])
    >>> round(ol.nn.TripletMarginLoss()(x, x, x + 4.0).item(), 4)
    0.0
    """

    margin: float = 1.0
    p: float = 2.0
    epsilon: float = 1e-6
    swap: bool = False
    reduction: str = "mean"
    name: str | None = None

    def forward(self, input: Any, positive: Any, negative: Any) -> Any:
        """Compute the loss."""
        return self._call_function(input, positive, negative)


class TripletMarginWithDistanceLoss(Loss, function=functional.triplet_margin_with_distance_loss):
    """Compute the triplet margin loss with a given distance.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.zeros([1, 2])
    >>> loss = ol.nn.TripletMarginWithDistanceLoss(lambda a, b: ((a - b) ** 2).sum(-1))
    >>> loss(x, x + 1.0, x)
    Tensor(3., dtype=float32)
    """

    distance_function: Callable[..., Any] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"
    name: str | None = None

    def forward(self, input: Any, positive: Any, negative: Any) -> Any:
        """Compute the loss."""
        return self._call_function(input, positive, negative)


class MultiMarginLoss(LabelLoss, function=functional.multi_margin_loss):
    """Compute the multi-class hinge loss.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.MultiMarginLoss()(ol.to_tensor([[1.0, 0.5, -1.0, 0.0]]), [0])
    Tensor(0.125, dtype=float32)
    """

    p: int = 1
    margin: float = 1.0
    weight: Any = None
    reduction: str = "mean"
    name: str | None = None


class MultiLabelSoftMarginLoss(LabelLoss, function=functional.multi_label_soft_margin_loss):
    """Compute the multi-label binary cross-entropy, averaged over the classes.

    Examples
    --------
    >>> import optlab as ol
    >>> round(ol.nn.MultiLabelSoftMarginLoss()(ol.zeros([1, 2]), [[1.0, 0.0]]).item(), 4)
    0.6931
    """

    weight: Any = None
    reduction: str = "mean"
    name: str | None = None


class PoissonNLLLoss(LabelLoss, function=functional.poisson_nll_loss):
    """Compute the negative log-likelihood of Poisson counts.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.PoissonNLLLoss()(ol.zeros([2]), ol.ones([2]))
    Tensor(1., dtype=float32)
    """

    log_input: bool = True
    full: bool = False
    epsilon: float = 1e-8
    reduction: str = "mean"
    name: str | None = None


class GaussianNLLLoss(Loss, function=functional.gaussian_nll_loss):
    """Compute the negative log-likelihood of Gaussian errors.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.GaussianNLLLoss()(ol.zeros([2]), ol.ones([2]), ol.ones([2]))
    Tensor(0.5, dtype=float32)
    """

    full: bool = False
    epsilon: float = 1e-6
    reduction: str = "mean"
    name: str | None = None

    def forward(self, input: Any, label: Any, variance: Any) -> Any:
        """Compute the loss."""
        return self._call_function(input, label, variance)
