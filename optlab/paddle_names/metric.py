"""``ol.metric``: the accuracy of predictions, as ``paddle.metric`` has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import raw
from optlab.autograd.tensor.creation import DEFAULT_DTYPE
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.namespaces import missing as _missing
from optlab.paddle_names.arguments import explain_names

__all__ = ["accuracy"]


def accuracy(input: Any, label: Any, k: int = 1) -> Tensor:
    """Return the share of examples whose label is among the k largest scores.

    Parameters
    ----------
    input : Tensor or array
        Scores or probabilities: a row for each example, a column for each class.
    label : Tensor or array of int
        The class of each example, of shape ``(n,)`` or ``(n, 1)``.
    k : int
        How many of the largest scores count.

    Raises
    ------
    ValueError
        If the shapes do not fit, or there are fewer than k classes.

    Examples
    --------
    >>> import optlab as ol
    >>> scores = ol.to_tensor([[0.1, 0.9], [0.8, 0.2]])
    >>> ol.metric.accuracy(scores, ol.to_tensor([[1], [1]]))
    Tensor(0.5, dtype=float32)
    """
    scores, labels = np.asarray(raw(input)), np.asarray(raw(label))
    if scores.ndim != 2 or labels.shape not in ((len(scores),), (len(scores), 1)):
        raise ValueError(
            "accuracy takes scores of shape (examples, classes) and labels of shape (examples,) or "
            f"(examples, 1); got {scores.shape} and {labels.shape}."
        )
    if not 1 <= k <= scores.shape[1]:
        raise ValueError(f"k={k} is not between 1 and the number of classes, {scores.shape[1]}.")
    best = np.argsort(-scores, axis=1, stable=True)[:, :k]
    hits = (best == labels.reshape(-1, 1)).any(axis=1)
    return Tensor(np.asarray(hits.mean(), DEFAULT_DTYPE))


explain_names(globals(), "ol.metric")


def __getattr__(name: str) -> object:
    if name == "Accuracy":
        raise AttributeError(
            "ol.metric has no 'Accuracy', which belongs to Model; in a loop of your own write "
            "ol.metric.accuracy(scores, labels) for each batch, and take the mean.",
            name=name,
            obj=None,
        )
    raise _missing("ol.metric", name, __all__)


def __dir__() -> list[str]:
    return __all__
