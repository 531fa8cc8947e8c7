"""Losses of pairs and triplets of embeddings, and the multi-class margin loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.activation.rectifiers import RELU
from optlab.nn.functional.arguments import (
    check_reduction,
    check_same_shape,
    given_with,
    no_name,
    reduced,
    scores,
    setting_beside,
)
from optlab.nn.functional.distance import pairwise_distance
from optlab.nn.functional.loss.cross_entropy import cross_entropy
from optlab.nn.functional.loss.labels import all_classes, checked_labels, checked_weight
from optlab.nn.functional.loss.regression import cast


def cosine_embedding_loss(
    input1: Any, input2: Any, label: Any, margin: float = 0.0, reduction: str = "mean",
    name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the cosine embedding loss: 1 - cos for label 1, max(cos - margin, 0) for label -1.

    Parameters
    ----------
    input1, input2 : Tensor of shape [N, M] or [M]
    label : Tensor or array of shape [N] or []
        1 for similar, -1 for dissimilar pairs.
    margin : float
        Largest cosine of dissimilar pairs without loss, from -1 to 1.
    reduction : {'mean', 'sum', 'none'}

    Raises
    ------
    ValueError
        If shapes do not fit, or the margin is out of range.

    Notes
    -----
    1e-12 is added to squared lengths. Signature: paddle.nn.functional.cosine_embedding_loss.

    Examples
    --------
    >>> import optlab as ol
    >>> x, y = ol.to_tensor([[1.0, 0.0], [1.0, 0.0]]), ol.to_tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> ol.nn.functional.cosine_embedding_loss(x, y, [1, -1], reduction="none")
    Tensor([1., 1.], dtype=float32)
    """
    no_name(name)
    check_reduction(reduction)
    a = scores(input1)
    b = cast(input2, a.dtype)
    check_same_shape("cosine_embedding_loss", input1=a, input2=b)
    alike = given_with(raw(a), label, "label")
    if a.ndim not in (1, 2) or alike.shape != a.shape[:-1]:
        raise ValueError(
            "cosine_embedding_loss takes vectors of shape [N, M] or [M] and one label for each; "
            f"got {a.shape} and labels of shape {alike.shape}."
        )
    if not -1 <= margin <= 1:
        raise ValueError(f"cosine_embedding_loss takes a margin from -1 to 1; got {margin!r}.")
    squares = (np.sum(a * a, axis=-1) + 1e-12) * (np.sum(b * b, axis=-1) + 1e-12)
    cosine = np.sum(a * b, axis=-1) / np.sqrt(squares)
    apart = apply(RELU, (cosine - setting_beside(a, margin, "margin"),))
    return reduced(np.where(alike == 1, 1 - cosine, np.where(alike == -1, apart, 0.0)), reduction)


def triplet_margin_loss(
    input: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0,
    epsilon: float = 1e-6, swap: bool = False, reduction: str = "mean", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the triplet margin loss, :math:`\max(d(x, x^+) - d(x, x^-) + m, 0)`.

    Parameters
    ----------
    input, positive, negative : Tensor of shape [N, M] or [M]
        Anchors x, positives and negatives.
    margin : float
        Margin m, greater than 0.
    p : float
        Order of the norm of the distance d.
    epsilon : float
        Added to the differences, as in `pairwise_distance`.
    swap : bool
        Use the distance of `positive` and `negative` where it is less than that of `input` and
        `negative`.
    reduction : {'mean', 'sum', 'none'}

    Raises
    ------
    ValueError
        If the shapes differ, or the margin is not greater than 0.

    Notes
    -----
    Source: Schroff, Kalenichenko and Philbin 2015; `swap`: Balntas et al. 2016. Signature:
    paddle.nn.functional.triplet_margin_loss.

    Examples
    --------
    >>> import optlab as ol
    >>> x, near, far = ol.to_tensor([0.0, 0.0]), ol.to_tensor([1.0, 0.0]), ol.to_tensor([0.0, 1.5])
    >>> round(ol.nn.functional.triplet_margin_loss(x, near, far).item(), 4)
    0.5
    """
    no_name(name)
    return _triplet_loss(
        "triplet_margin_loss", input, positive, negative,
        lambda x, y: pairwise_distance(x, y, p, epsilon), margin, swap, reduction,
    )  # fmt: skip


@documented_like(triplet_margin_loss)
def triplet_margin_with_distance_loss(
    input: Any, positive: Any, negative: Any,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the triplet margin loss (see `triplet_margin_loss`) for a given distance d.

    Parameters
    ----------
    distance_function : callable, optional
        Distance d(x, y) of two of them; by default `pairwise_distance`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> x, near, far = ol.to_tensor([0.0, 0.0]), ol.to_tensor([1.0, 0.0]), ol.to_tensor([0.0, 1.5])
    >>> ol.nn.functional.triplet_margin_with_distance_loss(
    ...     x, near, far, lambda a, b: np.max(np.abs(a - b), axis=-1)
    ... )
    Tensor(0.5, dtype=float32)
    """
    no_name(name)
    return _triplet_loss(
        "triplet_margin_with_distance_loss", input, positive, negative,
        pairwise_distance if distance_function is None else distance_function, margin, swap,
        reduction,
    )  # fmt: skip


def _triplet_loss(
    call: str, input: Any, positive: Any, negative: Any, distance: Any, margin: float, swap: bool,
    reduction: str,
) -> Tensor:  # fmt: skip
    check_reduction(reduction)
    if not margin > 0:
        raise ValueError(f"{call} takes a margin greater than 0; got {margin!r}.")
    x = scores(input)
    near, far = cast(positive, x.dtype), cast(negative, x.dtype)
    check_same_shape(call, input=x, positive=near, negative=far)
    apart = distance(x, far)
    if swap:
        apart = np.minimum(apart, distance(near, far))
    least = setting_beside(x, margin, "margin")
    return reduced(apply(RELU, (distance(x, near) - apart + least,)), reduction)


def multi_margin_loss(
    input: Any, label: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    reduction: str = "mean", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the multi-class margin loss (hinge loss).

    .. math:: \frac1C \sum_{j \ne y} w_y \max(m - x_y + x_j, 0)^p

    Parameters
    ----------
    input : Tensor of shape [N, C]
        Scores x of the classes.
    label : array or Tensor of integers, shape [N]
    p : {1, 2}
        Exponent of the hinge.
    margin : float
        Margin m between the score of the label and the others.
    weight : array, shape [C], optional
        Weight of each class.
    reduction : {'mean', 'sum', 'none'}

    Raises
    ------
    TypeError, ValueError
        If the labels are invalid, or `p` is neither 1 nor 2.

    Notes
    -----
    Source: Crammer and Singer 2001. Signature: paddle.nn.functional.multi_margin_loss.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.multi_margin_loss(ol.to_tensor([[1.0, 0.5, -1.0, 0.0]]), [0])
    Tensor(0.125, dtype=float32)
    """
    no_name(name)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss takes p=1 or p=2; got {p!r}.")
    x = scores(input)
    if x.ndim != 2:
        raise ValueError(f"multi_margin_loss takes input of shape [N, C]; got shape {x.shape}.")
    labels, _, _ = checked_labels(label, x.data, 1, -1, "multi_margin_loss")
    mine = labels[:, None] == all_classes(labels, x.shape[1])
    own = np.sum(np.where(mine, x, 0.0), axis=1, keepdims=True)
    hinges = np.where(mine, 0.0, apply(RELU, (x - own + setting_beside(x, margin, "margin"),)))
    if p == 2:
        hinges = hinges * hinges
    losses = np.mean(hinges, axis=1)
    if weight is not None:
        losses = losses * np.take(checked_weight(weight, x.shape[1], x.data), labels)
    return reduced(losses, reduction)


def npair_loss(anchor: Any, positive: Any, labels: Any, l2_reg: float = 0.002) -> Tensor:
    """Compute the N-pair loss: cross-entropy of matching each anchor to one of N positives.

    Parameters
    ----------
    anchor, positive : Tensor of shape [N, M]
    labels : array or Tensor of shape [N]
        Classes: all positives of the class of an anchor match it.
    l2_reg : float
        L2 regularization: a quarter of it times the mean squared norms is added.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Source: Sohn 2016. Signature: paddle.nn.functional.npair_loss.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([[4.0, 0.0], [0.0, 4.0]])
    >>> round(ol.nn.functional.npair_loss(x, x, [0, 1], l2_reg=0.0).item(), 4)
    0.0
    """
    a = scores(anchor)
    b = cast(positive, a.dtype)
    check_same_shape("npair_loss", anchor=a, positive=b)
    classes = given_with(raw(a), labels, "labels")
    if a.ndim != 2 or classes.shape != a.shape[:1]:
        raise ValueError(
            f"npair_loss takes vectors of shape [N, M] and N labels; got {a.shape} and labels of "
            f"shape {classes.shape}."
        )
    alike = (classes[:, None] == classes).astype(a.dtype)
    target = alike / np.sum(alike, axis=1, keepdims=True)
    norms = np.mean(np.sum(a * a, axis=1)) + np.mean(np.sum(b * b, axis=1))
    loss: Tensor = cross_entropy(a @ b.T, target, soft_label=True) + norms * (0.25 * l2_reg)
    return loss
