"""Losses, each beside its derivative rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.indexing import getitem
from optlab.autograd.tensor import Tensor, apply, raw
from optlab.backend.arrays import constants_beside, copied
from optlab.backend.ensemble import members_of
from optlab.nn.functional.activations import LOG_SOFTMAX
from optlab.nn.functional.shared import scores


def _picked(x: Any, labels: Any, scale: float) -> Any:
    """Give the sum of x[i, labels[i]], times `scale`."""
    return np.add.reduce(getitem(x, (np.arange(len(labels)), labels))) * scale


def _one_hot(g: Any, labels: Any, scale: float, shape: Any) -> Any:
    """Give g * scale at (i, labels[i]) and 0 elsewhere."""
    mine = labels[:, None] == constants_beside(labels, np.arange(shape[1]))
    return constants_beside(g, mine) * (g * scale)


PICKED_SUM = rule(
    _picked, lambda g, x_shape, labels, scale: _one_hot(g, labels, scale, x_shape),
    inputs="x", static="labels scale",
)  # fmt: skip


def cross_entropy(input: Any, label: Any, reduction: str = "mean") -> Tensor:
    r"""Give the cross entropy of softmax(input) against integer labels.

    .. math:: -\log \frac{e^{x_{i, l_i}}}{\sum_j e^{x_{ij}}}

    Parameters
    ----------
    input : Tensor of shape [N, C]
        Scores before the softmax.
    label : array or Tensor of integers, of shape [N] or [N, 1]
        The right class of each row, from 0 to C - 1.
    reduction : {'mean', 'sum', 'none'}
        What to do with the N values.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a label is outside 0 ... C - 1.
    TypeError
        If the labels are not integers.

    Examples
    --------
    >>> import optlab as ol
    >>> round(ol.nn.functional.cross_entropy(ol.zeros([2, 10]), ol.to_tensor([3, 7])).item(), 4)
    2.3026
    """
    input = scores(input)
    labels = _checked_labels(raw(label), input.shape)
    log_probability = apply(LOG_SOFTMAX, (input,), {"axis": -1})
    if reduction == "none":
        return -log_probability[np.arange(len(labels)), labels]
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none'; got {reduction!r}.")
    scale = -1.0 / len(labels) if reduction == "mean" else -1.0
    return apply(PICKED_SUM, (log_probability,), {"labels": labels, "scale": scale})


def _checked_labels(labels: Any, shape: tuple[int, ...]) -> Any:
    """Give the labels with shape [N], after checks that speak of the user's own shapes."""
    labels = copied(labels)  # a copy: the caller may go on writing to his array
    if len(shape) != 2:
        raise ValueError(f"cross_entropy takes scores of shape [N, C]; got shape {shape}.")
    if not shape[0]:
        raise ValueError("cross_entropy got no rows: the batch is empty.")
    if labels.dtype.kind not in "iu":
        raise TypeError(
            f"cross_entropy takes integer labels; got dtype {labels.dtype}. "
            "Convert them with .astype('int64')."
        )
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != shape[:1]:
        raise ValueError(
            f"cross_entropy got scores of shape {shape} and labels of shape {labels.shape}: "
            f"there must be one label for each of the {shape[0]} rows."
        )
    lowest, highest = (int(limit(members_of(labels))) for limit in (np.min, np.max))
    if lowest < 0 or highest >= shape[1]:
        raise ValueError(
            f"labels must lie in 0 ... {shape[1] - 1} for {shape[1]} classes; "
            f"got {lowest} ... {highest}."
        )
    return labels
