"""Class labels: validation, one-hot vectors, label smoothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.rules.reductions import aggregates
from optlab.autograd.tensor.conversions import refusal
from optlab.autograd.tensor.creation import DEFAULT_DTYPE
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array, constants_beside, copied
from optlab.backend.call_recorder import bounded_by, pure
from optlab.backend.ensemble import members_of
from optlab.nn.functional.arguments import given_with, no_name, scores

#: The `ignore_index` that ignores no label, as in Paddle and PyTorch.
NO_CLASS = -100

_UNSIGNED = {np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def all_classes(labels: Any, count: int) -> Any:
    """Return 0 ... count - 1, on the device of the labels."""
    numbers = np.arange(count)
    return numbers if type(labels) is np.ndarray else constants_beside(labels, numbers)


def checked_weight(weight: Any, classes: int, x: Any) -> Any:
    """Return the weights of the classes in the dtype of x, on its device."""
    if isinstance(weight, Tensor) and weight.node is not None:
        raise refusal(
            weight,
            "weight, the weights of the classes, which are constants here,",
            "weight.detach(), or multiply the losses of reduction='none' by t[labels]",
        )
    weights = given_with(x, weight, "weight")
    if weights.shape != (classes,):
        raise ValueError(
            f"weight must have one number for each of the {classes} classes; got shape "
            f"{weights.shape}."
        )
    return weights.astype(x.dtype)


@pure
def checked_labels(
    labels: Any, x: Any, at: int, ignore_index: int, function: str, reduction: str = "mean"
) -> tuple[Any, tuple[int, ...], bool]:
    """Validate labels; return them as a vector, their shape, and whether some are ignored."""
    # A copy: the caller may write to the array later.
    given = labels.data if isinstance(labels, Tensor) else labels
    numpy = type(given) is type(x) is np.ndarray
    labels = np.array(given) if numpy else copied(given_with(x, labels, "label"))
    shape = x.shape
    classes = shape[at]
    if not classes:
        raise ValueError(f"{function} got no classes: the scores are of shape {shape}.")
    if not x.size and reduction == "mean":
        raise ValueError(
            f"{function} got no rows: the batch is empty, and has no mean loss. "
            "reduction='sum' gives 0."
        )
    if labels.dtype.kind not in "iu":
        hint = (
            "For probabilities of all classes write soft_label=True."
            if labels.shape == shape and function == "cross_entropy"
            else "Convert them with .astype('int64')."
        )
        raise TypeError(f"{function} takes integer labels; got dtype {labels.dtype}. {hint}")
    own = labels.shape
    before, after = shape[:at], shape[at + 1 :]
    if own != before + after and own != (*before, 1, *after):
        raise ValueError(
            f"{function} got scores of shape {shape} and labels of shape {own}: "
            f"there must be one label for each of the {math.prod(before + after)} rows."
            + (_label_hint(own, shape) if function == "cross_entropy" else "")
        )
    if labels.ndim != 1:
        labels = labels.reshape(-1)
    if not x.size:
        return labels, own, False
    unsigned = _UNSIGNED.get(labels.dtype) if numpy else None
    if unsigned is not None and not 0 <= ignore_index < classes:
        # The usual case in one reduction: read as unsigned, negative numbers are the largest.
        largest = np.maximum.reduce(labels.view(unsigned))
        if largest < classes:
            return labels, own, False
    lowest, highest = _limits(members_of(labels))
    skips = lowest <= ignore_index <= highest
    if lowest < 0 or highest >= classes:
        if skips:
            lowest, highest = _limits(members_of(np.where(labels == ignore_index, 0, labels)))
        if lowest < 0 or highest >= classes:
            ignored = f", or be ignore_index={ignore_index}" if skips else ""
            raise ValueError(
                f"labels must lie in 0 ... {classes - 1} for {classes} classes{ignored}; "
                f"got {lowest} ... {highest}."
            )
    return labels, own, skips


def _bounds_of_labels(
    labels: Any, x: Any, at: int, ignore_index: int, function: str, reduction: str = "mean", *,
    facts: Any,
) -> int | None:  # fmt: skip
    """Return the number of classes, for shapes of labels and scores of which none is ignored."""
    classes = int(x[at])
    skips = facts[-1] or 0 <= ignore_index < classes
    return None if skips or not math.prod(x) else classes


bounded_by(checked_labels.__wrapped__, _bounds_of_labels)  # type: ignore[attr-defined]


def _label_hint(own: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """Return a hint at what labels of this shape may have been meant as."""
    if own == shape:
        return (
            " Labels of the shape of the scores are probabilities of all classes: write "
            "soft_label=True and give floating numbers, or give label.argmax(axis)."
        )
    for axis in range(len(shape)):
        if own == (*shape[:axis], *shape[axis + 1 :]):
            return f" If the classes are on axis {axis} of the scores, write axis={axis}."
    return ""


def _limits(labels: Any) -> tuple[int, int]:
    """Return the lowest and the highest label."""
    return int(aggregates.MIN.forward(labels)), int(aggregates.MAX.forward(labels))


def one_hot(x: Any, num_classes: int = -1, name: None = None) -> Tensor:
    """Return one-hot float32 vectors of class labels.

    Parameters
    ----------
    x : array or Tensor of integers
    num_classes : int
        Length of the vectors; -1 for one more than the largest class.

    Raises
    ------
    TypeError, ValueError
        If `x` holds no integers, or one outside 0 ... num_classes - 1.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.one_hot([1, 0], 3)
    Tensor([[0., 1., 0.],
            [1., 0., 0.]], dtype=float32)
    """
    no_name(name)
    return Tensor(_one_hot(x, num_classes))


@pure
def _one_hot(x: Any, num_classes: int) -> Any:
    labels = as_array(raw(x))
    if labels.dtype.kind not in "iu":
        raise TypeError(f"one_hot takes integers; got dtype {labels.dtype}.")
    values = members_of(labels)
    if num_classes == -1:
        num_classes = int(np.max(values)) + 1 if values.size else 1
    if values.size and not 0 <= int(np.min(values)) <= int(np.max(values)) < num_classes:
        raise ValueError(f"one_hot: classes must lie in 0 ... {num_classes - 1}.")
    hot = labels[..., None] == all_classes(labels, num_classes)
    return hot.astype(DEFAULT_DTYPE)


def label_smooth(
    label: Any, prior_dist: Any = None, epsilon: float = 0.1, name: None = None
) -> Tensor:
    r"""Apply label smoothing, :math:`(1 - \varepsilon)\, q + \varepsilon\, u`.

    Parameters
    ----------
    label : Tensor or array, shape [..., C]
        Probabilities q of the classes.
    prior_dist : array, shape [1, C], optional
        Prior distribution u; by default 1 / C for each class.
    epsilon : float
        Smoothing, from 0 to 1.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.label_smooth(ol.to_tensor([1.0, 0.0]))
    Tensor([0.95, 0.05], dtype=float32)
    """
    no_name(name)
    if not 0 <= epsilon <= 1:
        raise ValueError(f"label_smooth takes epsilon from 0 to 1; got {epsilon!r}.")
    label = scores(label)
    if prior_dist is None:
        return (1 - epsilon) * label + epsilon / label.shape[-1]  # type: ignore[no-any-return]
    prior = scores(prior_dist).astype(label.dtype)
    return (1 - epsilon) * label + epsilon * prior  # type: ignore[no-any-return]
