"""Classification loss layers."""

from __future__ import annotations

from typing import Any

from optlab.nn import functional
from optlab.nn.functional.loss.labels import NO_CLASS
from optlab.nn.layers.configured import LabelLoss


class CrossEntropyLoss(LabelLoss, function=functional.cross_entropy):
    """Compute the cross-entropy of logits and labels.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.CrossEntropyLoss()
    >>> round(loss(ol.zeros([2, 10]), ol.to_tensor([3, 7])).item(), 4)
    2.3026
    """

    weight: Any = None
    ignore_index: int = NO_CLASS
    reduction: str = "mean"
    soft_label: bool = False
    axis: int = -1
    use_softmax: bool = True
    label_smoothing: float = 0.0
    name: str | None = None

    def forward(self, input: Any, label: Any) -> Any:
        """Compute the loss."""
        # The same as in the base class; written out it takes half the time.
        return type(self)._function(
            input, label, self.weight, self.ignore_index, self.reduction, self.soft_label,
            self.axis, self.use_softmax, self.label_smoothing,
        )  # fmt: skip


class NLLLoss(LabelLoss, function=functional.nll_loss):
    """Compute the negative log-likelihood of labels under log-probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> log_probability = np.log(ol.to_tensor([[0.5, 0.5]]))
    >>> round(ol.nn.NLLLoss()(log_probability, [0]).item(), 4)
    0.6931
    """

    weight: Any = None
    ignore_index: int = NO_CLASS
    reduction: str = "mean"
    name: str | None = None
