"""Losses of probabilities, pairs and triplets, as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optlab.nn import functional
from optlab.nn.functional.shared import check_reduction
from optlab.nn.layers.applied import Configured, Pairwise


class CosineEmbeddingLoss(Configured, function=functional.cosine_embedding_loss):
    """Give 1 - cos of what is alike, and what the cosine of others exceeds a margin by.

    Parameters
    ----------
    margin, reduction
        As in `functional.cosine_embedding_loss`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.cosine_embedding_loss : the arguments, and the formula.

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

    def _check(self) -> None:
        check_reduction(self.reduction)

    def forward(self, input1: Any, input2: Any, label: Any) -> Any:
        """Give the loss."""
        return self._applied(input1, input2, label)


class TripletMarginLoss(Configured, function=functional.triplet_margin_loss):
    """Give how much too near the other kind is, by distances in a p-norm.

    Parameters
    ----------
    margin, p, epsilon, swap, reduction
        As in `functional.triplet_margin_loss`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.triplet_margin_loss : the arguments, and the formula.

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

    def _check(self) -> None:
        check_reduction(self.reduction)

    def forward(self, input: Any, positive: Any, negative: Any) -> Any:
        """Give the loss."""
        return self._applied(input, positive, negative)


class TripletMarginWithDistanceLoss(
    Configured, function=functional.triplet_margin_with_distance_loss
):
    """Give how much too near the other kind is, by a distance of your own.

    Parameters
    ----------
    distance_function, margin, swap, reduction
        As in `functional.triplet_margin_with_distance_loss`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.triplet_margin_with_distance_loss : the arguments, and the formula.

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

    def _check(self) -> None:
        check_reduction(self.reduction)

    def forward(self, input: Any, positive: Any, negative: Any) -> Any:
        """Give the loss."""
        return self._applied(input, positive, negative)


class MultiMarginLoss(Pairwise, function=functional.multi_margin_loss):
    """Give a hinge for classes: how much other scores come too near the right one.

    Parameters
    ----------
    p, margin, weight, reduction
        As in `functional.multi_margin_loss`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.multi_margin_loss : the arguments, and the formula.

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


class MultiLabelSoftMarginLoss(Pairwise, function=functional.multi_label_soft_margin_loss):
    """Give the cross entropy of several classes that may hold, as a mean over them.

    Parameters
    ----------
    weight, reduction
        As in `functional.multi_label_soft_margin_loss`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.multi_label_soft_margin_loss : the arguments, and the formula.

    Examples
    --------
    >>> import optlab as ol
    >>> round(ol.nn.MultiLabelSoftMarginLoss()(ol.zeros([1, 2]), [[1.0, 0.0]]).item(), 4)
    0.6931
    """

    weight: Any = None
    reduction: str = "mean"
    name: str | None = None


class PoissonNLLLoss(Pairwise, function=functional.poisson_nll_loss):
    """Give minus the logarithm of the probability of counts, for a Poisson law.

    Parameters
    ----------
    log_input, full, epsilon, reduction
        As in `functional.poisson_nll_loss`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.poisson_nll_loss : the arguments, and the formula.

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


class GaussianNLLLoss(Configured, function=functional.gaussian_nll_loss):
    """Give minus the logarithm of the density of normal errors.

    Parameters
    ----------
    full, epsilon, reduction
        As in `functional.gaussian_nll_loss`.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.gaussian_nll_loss : the arguments, and the formula.

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

    def _check(self) -> None:
        check_reduction(self.reduction)

    def forward(self, input: Any, label: Any, variance: Any) -> Any:
        """Give the loss."""
        return self._applied(input, label, variance)
