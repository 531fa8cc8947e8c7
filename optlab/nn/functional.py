"""Functions of networks, each beside its derivative rule."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from optlab.autograd.creation import DEFAULT_DTYPE
from optlab.autograd.operation import rule
from optlab.autograd.rules import reductions
from optlab.autograd.rules.elementwise import MULTIPLY, TANH
from optlab.autograd.rules.indexing import getitem
from optlab.autograd.rules.linear_algebra import MATMUL
from optlab.autograd.sparse import TAKE_ROWS
from optlab.autograd.tensor import Tensor, apply, raw
from optlab.backend.arrays import as_array, constants_beside, copied
from optlab.backend.callers import stack_level_outside
from optlab.backend.ensemble import members_of
from optlab.nn.random import dropout as dropout


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


RELU = rule(_relu, lambda g, y: g * (y > 0))


def relu(x: Any) -> Tensor:
    r"""Give max(x, 0), element by element; its derivative at 0 is 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.relu(ol.to_tensor([-1.0, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """
    return apply(RELU, (x,))


def tanh(x: Any) -> Tensor:
    """Give the hyperbolic tangent, element by element."""
    return apply(TANH, (x,))


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    y = x @ weight
    if type(y) is not type(bias):  # a bias of each member, while all share the product
        return y + bias
    y += bias
    return y


def _rows(x: Any) -> Any:
    return x if x.ndim == 2 else x.reshape(-1, x.shape[-1])


AFFINE = rule(
    _affine,
    lambda g, weight: g @ weight.T,
    lambda g, x: _rows(x).T @ _rows(g),
    lambda g: np.add.reduce(g, axis=tuple(range(g.ndim - 1))),
    inputs="x weight bias",
)

_cast_noted: set[tuple[Any, Any]] = set()


def _meeting(x: Any, weight: Any) -> Any:
    """Give the input in the dtype of the weights, with a note the first time this narrows it."""
    if not isinstance(x, Tensor):
        x = Tensor(as_array(x))
    if x.dtype != weight.dtype:
        pair = (x.dtype, weight.dtype)
        narrows = x.dtype.kind == "f" and x.dtype.itemsize > weight.dtype.itemsize
        if narrows and pair not in _cast_noted:
            _cast_noted.add(pair)
            warnings.warn(
                f"{x.dtype} data meets {weight.dtype} weights and is cast to {weight.dtype}. "
                f"Cast it once yourself with .astype('{weight.dtype}') (this note is given once).",
                stacklevel=stack_level_outside("optlab"),
            )
        x = x.astype(weight.dtype)
    return x


def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    r"""Give x W + b.

    Parameters
    ----------
    x : Tensor or array of shape [..., in]
        Data of another dtype is cast to that of the weights, with a note the first time.
    weight : Tensor of shape [in, out]
    bias : Tensor of shape [out], optional

    Raises
    ------
    ValueError
        If the last axis of `x` is not as long as the first of `weight`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.linear(ol.ones([1, 2]), ol.ones([2, 3]), ol.zeros([3]))
    Tensor([[2., 2., 2.]], dtype=float32)
    """
    if not isinstance(weight, Tensor):
        weight = Tensor(as_array(weight))
    if not isinstance(x, Tensor) or x.data.dtype != weight.data.dtype:
        x = _meeting(x, weight)
    if x.data.shape[-1:] != weight.data.shape[:1]:
        raise ValueError(
            f"linear got x of shape {x.shape} and weight of shape {weight.shape}: the last axis of "
            f"x must be {weight.shape[0]} long. Reshape x, or make the layer "
            f"Linear({x.shape[-1] if x.ndim else 1}, {weight.shape[-1]})."
        )
    if bias is None:
        return apply(MATMUL, (x, weight))
    return apply(AFFINE, (x, weight, bias))


def _log_softmax(x: Any, axis: int = -1) -> Any:
    shifted = x - reductions.MAX.forward(x, axis=axis, keepdims=True)
    shifted -= np.log(np.add.reduce(np.exp(shifted), axis=axis, keepdims=True))
    return shifted


LOG_SOFTMAX = rule(
    _log_softmax,
    lambda g, y, axis=-1: g - np.exp(y) * np.add.reduce(g, axis=axis, keepdims=True),
    static="axis",
)


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """Give the logarithms of `softmax`, without overflow for large x.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.exp(ol.nn.functional.log_softmax(ol.to_tensor([1000.0, 1000.0])))
    Tensor([0.5, 0.5], dtype=float32)
    """
    return apply(LOG_SOFTMAX, (_scores(x),), {"axis": axis})


def _scores(x: Any) -> Tensor:
    """Give scores as a Tensor of floating numbers."""
    scores: Tensor = x if isinstance(x, Tensor) else Tensor(as_array(x))
    return scores if scores.dtype.kind == "f" else scores.astype(DEFAULT_DTYPE)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """Give exp(x) / sum(exp(x)) along `axis`, without overflow for large x.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.softmax(ol.to_tensor([0.0, 0.0]))
    Tensor([0.5, 0.5], dtype=float32)
    """
    return log_softmax(x, axis).exp()


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
    input = _scores(input)
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


def embedding(x: Any, weight: Any, padding_idx: int | None = None, sparse: bool = False) -> Tensor:
    """Look up rows of a table: ``weight[x]``.

    Parameters
    ----------
    x : array or Tensor of integers
        Which rows, of any shape.
    weight : Tensor, shape (rows, width)
    padding_idx : int, optional
        A row that stands for nothing: its places are zero and give it no gradient.
    sparse : bool
        Whether the gradient of `weight` is kept as the rows that were read (`RowSparse`).

    Returns
    -------
    Tensor
        Of shape ``x.shape + (width,)``.

    Raises
    ------
    TypeError, IndexError
        If `x` holds no integers, or one that is no row.

    Examples
    --------
    >>> import optlab as ol
    >>> table = ol.to_tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> ol.nn.functional.embedding(ol.to_tensor([1, 0, 1]), table, sparse=True).sum().backward()
    >>> table.grad
    <RowSparse gradient: 3 rows of (2, 2), float32>
    >>> table.grad.numpy()
    array([[1., 1.],
           [2., 2.]], dtype=float32)
    """
    rows = copied(raw(x))  # a copy: the caller may go on writing to his array
    count = np.shape(weight)[0]
    if rows.dtype.kind not in "iu":
        raise TypeError(f"embedding takes integers that say which rows; got dtype {rows.dtype}.")
    if rows.size:
        lowest, highest = (int(limit(members_of(rows))) for limit in (np.min, np.max))
        if lowest < 0 or highest >= count:
            raise IndexError(f"embedding has rows 0 ... {count - 1}; got {lowest} ... {highest}.")
    found = apply(TAKE_ROWS, (weight,), {"rows": rows, "sparse": bool(sparse)})
    if padding_idx is None:
        return found
    if not -count <= padding_idx < count:
        raise IndexError(f"padding_idx must be one of the {count} rows; got {padding_idx}.")
    present = (rows != padding_idx % count)[..., None]
    return apply(MULTIPLY, (found, constants_beside(found, present.astype(found.dtype))))
