"""Cross-entropy and negative log-likelihood of classes, each beside its derivative rule.

Logits (or log-probabilities) are reshaped to rows, one a label, whichever axis the classes are on;
a row's loss is a factor times a weighted sum of the row.
"""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import PRODUCT, product
from optlab.autograd.rules.manipulation.indexing import getitem
from optlab.autograd.tape.half_precision import cast_by_policy
from optlab.autograd.tensor.tensor import Tensor, apply, apply_several, raw
from optlab.backend.arrays import constants_beside, copied, readonly
from optlab.backend.call_recorder import elementary
from optlab.backend.dtypes import widened
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.activation.smooth import LOG_SOFTMAX, SOFTMAX
from optlab.nn.functional.arguments import (
    as_bool,
    check_reduction,
    check_same_shape,
    given_with,
    no_name,
    reduced,
    scores,
)
from optlab.nn.functional.loss.classification import BLOCK, CROSS_ENTROPY
from optlab.nn.functional.loss.labels import (
    NO_CLASS,
    all_classes,
    checked_labels,
    checked_weight,
)


def _picked(x: Any, labels: Any, scale: float) -> Any:
    """Return the sum of x[i, labels[i]], times `scale`."""
    return np.add.reduce(getitem(x, (np.arange(len(labels)), labels))) * scale


#: Up to this many classes, one-hot vectors are cached rather than made by comparison.
_FEW = 64


@lru_cache(maxsize=8)
def _unit_vectors(count: int, dtype: Any) -> Any:
    return readonly(np.eye(count, dtype=dtype))


def _one_hot(g: Any, labels: Any, scale: float, shape: Any) -> Any:
    """Return g * scale at (i, labels[i]) and 0 elsewhere."""
    if isinstance(g, np.floating) and type(labels) is np.ndarray and shape[1] <= _FEW:
        return _unit_vectors(shape[1], g.dtype).take(labels, 0) * (g * scale)
    mine = labels[:, None] == all_classes(labels, shape[1])
    return constants_beside(g, mine) * (g * scale)


PICKED_SUM = rule(
    _picked, lambda g, x_shape, labels, scale: _one_hot(g, labels, scale, x_shape),
    inputs="x", static="labels scale",
)  # fmt: skip


def _picked_steps(x: Any, labels: Any, scale: float) -> Any:
    if x.ndim == 2 and type(x) is type(labels) is np.ndarray:
        chosen = yield operator.getitem, x, (np.arange(len(labels)), labels)
        yield operator.mul, (yield np.add.reduce, chosen), scale


def _by_picked_steps(g: Any, x_shape: Any, labels: Any, scale: float) -> Any:
    if isinstance(g, np.floating) and type(labels) is np.ndarray and x_shape[1] <= _FEW:
        rows = yield np.take, _unit_vectors(x_shape[1], g.dtype), labels, 0
        yield np.multiply, rows, (yield operator.mul, g, scale)


elementary(_picked, _picked_steps)
elementary(PICKED_SUM.pullbacks[0], _by_picked_steps)


def _picked_rows(x: Any, labels: Any, factors: Any, smoothing: float) -> Any:
    """Return f[i] ((1 - s) x[i, labels[i]] + s mean(x[i])), and 0 where f[i] is 0."""
    picked = getitem(x, (np.arange(len(labels)), labels))
    if smoothing:
        picked = (1 - smoothing) * picked + smoothing * np.mean(x, axis=-1)
    return product(factors, picked)


def _spread_rows(g: Any, labels: Any, factors: Any, smoothing: float, shape: Any) -> Any:
    chosen = labels[:, None] == all_classes(labels, shape[1])
    if smoothing:
        chosen = np.where(chosen, 1 - smoothing + smoothing / shape[1], smoothing / shape[1])
    spread = chosen * (g * factors)[:, None]
    return spread.astype(g.dtype) if spread.dtype != g.dtype else spread


PICKED_ROWS = rule(
    _picked_rows,
    lambda g, x_shape, labels, factors, smoothing: _spread_rows(
        g, labels, factors, smoothing, x_shape
    ),
    inputs="x",
    static="labels factors smoothing",
)


def cross_entropy(
    input: Any, label: Any, weight: Any = None, ignore_index: int = NO_CLASS,
    reduction: str = "mean", soft_label: bool = False, axis: int = -1, use_softmax: bool = True,
    label_smoothing: float = 0.0, name: None = None,
) -> Tensor:  # fmt: skip
    r"""Compute the cross-entropy loss between logits and labels.

    .. math:: -w_{l_i} \log \frac{e^{x_{i, l_i}}}{\sum_j e^{x_{ij}}} \quad\text{or}\quad
        -\Big(\sum_j w_j q_{ij}\Big) \sum_j q_{ij} \log \frac{e^{x_{ij}}}{\sum_k e^{x_{ik}}}

    for class labels l, and for soft labels q, which are probabilities of all classes.

    Parameters
    ----------
    input : Tensor of shape [N, C] or [N, ..., C]
        Logits x.
    label : array or Tensor
        Class of each row, from 0 to C - 1: integers of the shape of `input` without the class axis,
        or with 1 in its place. With `soft_label`, probabilities of the shape of `input`.
    weight : array, shape [C], optional
        Weight of each class.
    ignore_index : int
        Label of rows that have no loss and no weight.
    reduction : {'mean', 'sum', 'none'}
        Reduction of the losses of the rows. The mean is their sum divided by the sum of their
        weights; if all rows are ignored, it is 0.
    soft_label : bool
        Whether `label` holds probabilities.
    axis : int
        Axis of the classes in `input`.
    use_softmax : bool
        If False, `input` holds probabilities.
    label_smoothing : float
        Replace each label q by (1 - s) q + s / C. Labels of the shape of `input` are then soft
        labels, without `soft_label` too.

    Returns
    -------
    Tensor
        A scalar; with 'none', of the shape of `label`, with 1 for the class axis of soft labels.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a label is outside 0 ... C - 1.
    TypeError
        If the labels are not integers.

    Notes
    -----
    Smoothed and soft labels are weighted as in Paddle, by row. (PyTorch weights each term of the
    sum over classes.) Label smoothing: Szegedy et al. 2016.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.functional.cross_entropy
    >>> round(loss(ol.zeros([2, 10]), ol.to_tensor([3, 7])).item(), 4)
    2.3026
    >>> round(loss(ol.to_tensor([[2.0, 0.0]]), [[0.5, 0.5]], soft_label=True).item(), 4)
    1.1269
    """
    input = scores(input)
    if reduction not in ("mean", "sum", "none"):
        check_reduction(reduction)
    ndim = input.data.ndim
    if not ndim:
        raise ValueError("cross_entropy takes scores with an axis of classes; got one number.")
    if name is not None:
        no_name(name)
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be from 0 to 1; got {label_smoothing!r}.")
    at = ndim - 1 if axis == -1 else _class_axis(axis, input, "cross_entropy")
    # As in Paddle, labels to smooth that hold a probability for every class are soft labels.
    if soft_label or (label_smoothing and np.shape(raw(label)) == input.shape):
        return _soft_label_loss(
            input, label, weight, ignore_index, reduction, at, use_softmax, label_smoothing
        )
    labels, shape, skips = checked_labels(
        label, input.data, at, ignore_index, "cross_entropy", reduction
    )
    if not use_softmax:
        return _probability_loss(
            input, labels, shape, weight, ignore_index, reduction, at, label_smoothing
        )
    rows = input if ndim == 2 and at == 1 else _as_rows(input, at)
    if rows.data.size <= BLOCK and weight is None and not skips and not label_smoothing:
        # As fast on small arrays, and its graph reads like the formula.
        return _unweighted(apply(LOG_SOFTMAX, (rows,), {"axis": -1}), labels, shape, reduction)
    factors: Any = 1.0 / len(labels) if reduction == "mean" and len(labels) else 1.0
    if weight is not None or skips:
        labels, factors = _row_weights(labels, weight, ignore_index, label_smoothing, rows)
        if reduction == "mean":
            factors = _normalized(factors)
    static = {
        "labels": labels, "factors": factors, "smoothing": float(label_smoothing),
        "summed": reduction != "none",
    }  # fmt: skip
    losses = apply_several(CROSS_ENTROPY, (rows,), static)[0]
    return losses if reduction != "none" or losses.shape == shape else losses.reshape(shape)


@documented_like(cross_entropy)
def softmax_with_cross_entropy(
    logits: Any, label: Any, soft_label: bool = False, ignore_index: int = NO_CLASS,
    numeric_stable_mode: bool = True, return_softmax: bool = False, axis: int = -1,
) -> Any:  # fmt: skip
    """Compute the cross-entropy loss of each row, and the softmax on request.

    The losses are those of ``cross_entropy(..., reduction="none")``, with 1 for the class axis.

    Parameters
    ----------
    logits : Tensor of shape [N, C] or [N, ..., C]
    label : array or Tensor
        Class of each row, from 0 to C - 1: integers of the shape of `logits` with 1 for the class
        axis, or without it. With `soft_label`, probabilities of the shape of `logits`.
    ignore_index : int
        Label of rows whose loss is 0; for class labels.
    numeric_stable_mode : bool
        Must be True: the softmax is always computed from differences to the largest logit.
    return_softmax : bool
        Whether to return the probabilities, too. They carry gradients.
    axis : int
        Axis of the classes in `logits`.

    Returns
    -------
    Tensor, or (Tensor, Tensor)
        The losses, of the shape of `logits` with 1 for the class axis; with `return_softmax` the
        softmax of `logits` beside them.

    Notes
    -----
    Signature: paddle.nn.functional.softmax_with_cross_entropy.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> logits = ol.to_tensor([[2.0, 0.0], [0.0, 0.0]])
    >>> loss, softmax = ol.nn.functional.softmax_with_cross_entropy(
    ...     logits, [[0], [1]], return_softmax=True
    ... )
    >>> np.round(loss, 4)
    Tensor([[0.1269],
            [0.6931]], dtype=float32)
    >>> np.round(softmax, 4)
    Tensor([[0.8808, 0.1192],
            [0.5   , 0.5   ]], dtype=float32)
    """
    if not as_bool(numeric_stable_mode, "numeric_stable_mode", "softmax_with_cross_entropy"):
        raise TypeError(
            "softmax_with_cross_entropy: numeric_stable_mode=False has no effect here, as the "
            "softmax is always computed from differences to the largest logit; leave it out."
        )
    probabilities = as_bool(soft_label, "soft_label", "softmax_with_cross_entropy")
    both = as_bool(return_softmax, "return_softmax", "softmax_with_cross_entropy")
    logits = scores(logits)
    at = _class_axis(axis, logits, "softmax_with_cross_entropy") if logits.ndim else 0
    loss: Any = cross_entropy(
        logits, label, ignore_index=ignore_index, reduction="none", soft_label=probabilities,
        axis=at,
    )  # fmt: skip
    if loss.ndim < logits.ndim:
        loss = np.expand_dims(loss, at)
    return (loss, apply(SOFTMAX, (logits,), {"axis": at})) if both else loss


@documented_like(cross_entropy)
def nll_loss(
    input: Any, label: Any, weight: Any = None, ignore_index: int = NO_CLASS,
    reduction: str = "mean", name: None = None,
) -> Tensor:  # fmt: skip
    """Compute the negative log-likelihood loss.

    Parameters
    ----------
    input : Tensor of shape [N, C] or [N, C, ...]
        Log-probabilities, as of `log_softmax`, with the classes on axis 1.
    label : array or Tensor of integers, shape [N] or [N, ...]
    reduction : {'mean', 'sum', 'none'}
        The mean is the sum divided by the sum of the weights.

    Returns
    -------
    Tensor
        A scalar; with 'none', of the shape of `label`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> log_probability = np.log(ol.to_tensor([[0.5, 0.5], [0.25, 0.75]]))
    >>> np.round(ol.nn.functional.nll_loss(log_probability, [0, 1], reduction="none"), 4)
    Tensor([0.6931, 0.2877], dtype=float32)
    """
    no_name(name)
    input = scores(input)
    check_reduction(reduction)
    if input.ndim < 2:
        raise ValueError(f"nll_loss takes input of shape [N, C, ...]; got shape {input.shape}.")
    labels, shape, skips = checked_labels(label, input.data, 1, ignore_index, "nll_loss", reduction)
    rows = _as_rows(input, 1)
    if weight is None and not skips:
        return _unweighted(rows, labels, shape, reduction)
    return _weighted(rows, labels, shape, weight, ignore_index, reduction, 0.0)


def _unweighted(log_probability: Any, labels: Any, shape: Any, reduction: str) -> Tensor:
    """Return the loss of rows of equal weight."""
    if reduction == "none":
        (log_probability,) = cast_by_policy(PICKED_SUM, (log_probability,))
        losses: Tensor = -log_probability[np.arange(len(labels)), labels]
        return losses if losses.shape == shape else losses.reshape(shape)
    scale = -1.0 / len(labels) if reduction == "mean" else -1.0
    return apply(PICKED_SUM, (log_probability,), {"labels": labels, "scale": scale})


def _weighted(
    log_probability: Any, labels: Any, shape: Any, weight: Any, ignore_index: int, reduction: str,
    smoothing: float,
) -> Tensor:  # fmt: skip
    """Return the loss of weighted rows or smoothed labels."""
    labels, weights = _row_weights(labels, weight, ignore_index, smoothing, log_probability)
    if reduction == "mean":
        weights = _normalized(weights)
    static = {"labels": labels, "factors": -weights, "smoothing": float(smoothing)}
    losses = apply(PICKED_ROWS, (log_probability,), static)
    return losses.reshape(shape) if reduction == "none" else np.sum(losses)


def _normalized(weights: Any) -> Any:
    """Return the weights of rows divided by their sum."""
    whole = np.add.reduce(weights)
    return weights / (whole + (whole == 0))


def _row_weights(labels: Any, weight: Any, ignore_index: int, smoothing: float, x: Any) -> Any:
    """Return the labels, with 0 for ignored ones, and the weight of each row."""
    present = labels != ignore_index
    labels = np.where(present, labels, 0)
    counts = present.astype(widened(x.dtype))  # a sum beyond 2048 needs more than 16 bits
    if weight is not None:
        weights = checked_weight(weight, x.shape[-1], x.data)
        of_rows = getitem(weights, labels)
        if smoothing:
            of_rows = (1 - smoothing) * of_rows + smoothing * np.mean(weights)
        counts = counts * of_rows
    return labels, counts


def _probability_loss(
    input: Any, labels: Any, shape: Any, weight: Any, ignore_index: int, reduction: str, at: int,
    smoothing: float,
) -> Tensor:  # fmt: skip
    """Return the loss of probabilities; without smoothing only those of the labels are read."""
    rows = _as_rows(input, at)
    if smoothing:
        return _weighted(np.log(rows), labels, shape, weight, ignore_index, reduction, smoothing)
    (rows,) = cast_by_policy(PICKED_SUM, (rows,))
    labels, weights = _row_weights(labels, weight, ignore_index, 0.0, rows)
    picked = rows[np.arange(len(labels)), labels].astype(weights.dtype, copy=False)
    losses: Tensor = -weights * np.log(np.where(weights == 0, 1.0, picked))
    losses = losses.reshape(shape) if reduction == "none" else np.sum(losses)
    if reduction == "mean":
        total = np.add.reduce(weights)
        losses = losses / (total + (total == 0))
    return losses.astype(rows.dtype, copy=False)


def _soft_label_loss(
    input: Any, label: Any, weight: Any, ignore_index: int, reduction: str, at: int,
    use_softmax: bool, smoothing: float,
) -> Tensor:  # fmt: skip
    """Return the loss against probabilities of all classes."""
    if ignore_index != NO_CLASS:
        raise ValueError(
            "cross_entropy: ignore_index names a class to ignore, but soft labels are "
            f"probabilities of all classes; got ignore_index={ignore_index!r}."
        )
    q = label
    if not isinstance(label, Tensor):
        q = Tensor(copied(given_with(input.data, label, "label")))
    check_same_shape("cross_entropy with soft_label=True", input=input, label=q)
    q = q if q.dtype == input.dtype else q.astype(input.dtype)
    if smoothing:
        q = (1 - smoothing) * q + smoothing / input.shape[at]
    log_probability = apply(LOG_SOFTMAX, (input,), {"axis": at}) if use_softmax else np.log(input)
    losses = -np.sum(apply(PRODUCT, (q, log_probability)), axis=at, keepdims=True)
    if weight is None:
        return reduced(losses, reduction)
    weights = checked_weight(weight, input.shape[at], input.data)
    weights = weights.reshape((-1,) + (1,) * (input.ndim - 1 - at))
    counts = np.sum(q * weights, axis=at, keepdims=True)
    losses = losses * counts
    if reduction != "mean":
        return reduced(losses, reduction)
    total = np.sum(counts)
    return np.sum(losses) / (total + (total == 0))  # type: ignore[no-any-return]


def _class_axis(axis: int, input: Any, function: str) -> int:
    ndim: int = input.data.ndim
    if not -ndim <= axis < ndim:
        raise ValueError(f"{function} got axis={axis!r} for scores of shape {input.shape}.")
    return axis % ndim


def _as_rows(x: Any, at: int) -> Any:
    """Return x with its classes on the last axis and all other axes merged."""
    ndim = x.data.ndim
    if at != ndim - 1:
        x = np.moveaxis(x, at, -1)
    return x if ndim == 2 else x.reshape((-1, x.shape[-1]))
