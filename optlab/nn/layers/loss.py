"""Losses of classes as layers."""

from __future__ import annotations

from typing import Any

from optlab.nn import functional
from optlab.nn.functional.labels import NO_CLASS
from optlab.nn.layers.applied import Pairwise


class CrossEntropyLoss(Pairwise, function=functional.cross_entropy):
    """Give the cross entropy of softmax(input) against labels.

    Parameters
    ----------
    weight : array, shape [C], optional
        What a row of each class counts.
    ignore_index : int
        Rows with this label count nothing.
    reduction : {'mean', 'sum', 'none'}
        What to do with the values of the rows.
    soft_label : bool
        Whether labels are probabilities of all classes.
    axis : int
        Which axis of the input counts the classes.
    use_softmax : bool
        False: the input holds probabilities already.
    label_smoothing : float
        Replace each label q by (1 - s) q + s / C.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.cross_entropy : the formula, shapes and errors.

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
        """Give the loss."""
        # As the class above does for all losses; written out it takes half the time.
        return type(self)._function(
            input, label, self.weight, self.ignore_index, self.reduction, self.soft_label,
            self.axis, self.use_softmax, self.label_smoothing,
        )  # fmt: skip


class NLLLoss(Pairwise, function=functional.nll_loss):
    """Give minus the logarithm of the probability of each label.

    Parameters
    ----------
    weight : array, shape [C], optional
        What a row of each class counts.
    ignore_index : int
        Rows with this label count nothing.
    reduction : {'mean', 'sum', 'none'}
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.nll_loss : shapes and errors.

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
