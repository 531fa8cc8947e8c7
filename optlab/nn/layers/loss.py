"""Losses as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layer import Layer


class CrossEntropyLoss(Layer):
    """Give the cross entropy of softmax(input) against integer labels.

    Parameters
    ----------
    reduction : {'mean', 'sum', 'none'}
        What to do with the values of the rows.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.CrossEntropyLoss()
    >>> round(loss(ol.zeros([2, 10]), ol.to_tensor([3, 7])).item(), 4)
    2.3026
    """

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none'; got {reduction!r}.")
        self.reduction = reduction

    def forward(self, input: Any, label: Any) -> Tensor:
        """Give the loss of `input` (scores, [N, C]) against `label` (integers, [N])."""
        return functional.cross_entropy(input, label, self.reduction)
