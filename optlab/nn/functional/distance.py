"""Norms and angles: normalization, cosine similarity, distance, bilinear forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import where_mask
from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.nn.functional.arguments import no_name, scores, setting_beside


def _norm(x: Any, axis: int) -> Any:
    return np.sqrt(np.add.reduce(x * x, axis=axis, keepdims=True))


def _unit(x: Any, axis: int, epsilon: float) -> Any:
    return x / np.maximum(_norm(x, axis), epsilon)


def _unit_back(g: Any, x: Any, axis: int, epsilon: float) -> Any:
    # The square is bounded before its root is taken: at 0 the root has no derivative.
    square = np.add.reduce(x * x, axis=axis, keepdims=True)
    long = square > epsilon * epsilon
    inverse = 1 / np.sqrt(np.where(long, square, epsilon * epsilon))
    unit = x * inverse
    along = np.add.reduce(g * unit, axis=axis, keepdims=True)
    return (g - unit * where_mask(along, long)) * inverse


UNIT = rule(_unit, _unit_back, inputs="x", static="axis epsilon")


def normalize(
    x: Any, p: float = 2, axis: int = 1, epsilon: float = 1e-12, name: None = None
) -> Tensor:
    r"""Normalize vectors: :math:`x / \max(\lVert x \rVert_p, \varepsilon)`.

    Parameters
    ----------
    x : Tensor
    p : float
        Order of the norm.
    axis : int
        Axis of the vectors.
    epsilon : float
        Smallest divisor.

    Raises
    ------
    ValueError
        If there is no such axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.normalize(ol.to_tensor([[3.0, 4.0]]))
    Tensor([[0.6, 0.8]], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"normalize got axis={axis!r} for x of shape {x.shape}.")
    if p == 2:
        return apply(UNIT, (x,), {"axis": axis, "epsilon": float(epsilon)})
    norm = np.linalg.norm(x, ord=as_setting(p, "p"), axis=axis, keepdims=True)
    return x / np.maximum(norm, float(epsilon))  # type: ignore[no-any-return]


def cosine_similarity(x1: Any, x2: Any, axis: int = 1, eps: float = 1e-8) -> Tensor:
    r"""Compute the cosine similarity of vectors.

    .. math:: \frac{x_1 \cdot x_2}{\max(\lVert x_1 \rVert \lVert x_2 \rVert, \varepsilon)}

    Parameters
    ----------
    x1, x2 : Tensor
        Of shapes that broadcast.
    axis : int
        Axis of the vectors.
    eps : float
        Smallest divisor.

    Examples
    --------
    >>> import optlab as ol
    >>> a, b = ol.to_tensor([[3.0, 4.0]]), ol.to_tensor([[4.0, 3.0]])
    >>> round(ol.nn.functional.cosine_similarity(a, b).item(), 4)
    0.96
    """
    x1, x2 = scores(x1), scores(x2)
    across = np.sum(x1 * x2, axis=axis)
    squares = np.sum(x1 * x1, axis=axis) * np.sum(x2 * x2, axis=axis)
    least = float(eps) ** 2
    lengths = np.sqrt(np.where(squares > least, squares, least))
    return across / lengths  # type: ignore[no-any-return]


def pairwise_distance(
    x: Any, y: Any, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False, name: None = None
) -> Tensor:
    r"""Compute the distance :math:`\lVert x - y + \varepsilon \rVert_p` along the last axis.

    Parameters
    ----------
    x, y : Tensor
        Of shapes that broadcast.
    p : float
        Order of the norm.
    epsilon : float
        Added to the differences, so that the derivative exists for equal vectors.
    keepdim : bool
        Whether to keep the last axis, with length 1.

    Examples
    --------
    >>> import optlab as ol
    >>> a, b = ol.to_tensor([[3.0, 4.0]]), ol.zeros([1, 2])
    >>> round(ol.nn.functional.pairwise_distance(a, b).item(), 4)
    5.0
    """
    no_name(name)
    x = scores(x)
    difference = x - scores(y) + setting_beside(x, epsilon, "epsilon")
    return np.linalg.norm(difference, ord=as_setting(p, "p"), axis=-1, keepdims=keepdim)  # type: ignore[no-any-return]


def bilinear(x1: Any, x2: Any, weight: Any, bias: Any = None, name: None = None) -> Tensor:
    r"""Apply the bilinear form :math:`x_1^\top W_o\, x_2 + b_o` for each output o.

    Parameters
    ----------
    x1 : Tensor, shape [N, in1]
    x2 : Tensor, shape [N, in2]
    weight : Tensor, shape [out, in1, in2]
    bias : Tensor, shape [1, out], optional

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.bilinear(ol.ones([1, 2]), ol.ones([1, 3]), ol.ones([4, 2, 3]))
    Tensor([[6., 6., 6., 6.]], dtype=float32)
    """
    no_name(name)
    x1, x2, weight = scores(x1), scores(x2), scores(weight)
    if weight.ndim != 3 or (x1.shape[-1:], x2.shape[-1:]) != (weight.shape[1:2], weight.shape[2:]):
        raise ValueError(
            f"bilinear got x1 of shape {x1.shape}, x2 of shape {x2.shape} and weight of shape "
            f"{weight.shape}; they must be [N, in1], [N, in2] and [out, in1, in2]."
        )
    out, in1, in2 = weight.shape
    partial = x1 @ np.transpose(weight, (1, 0, 2)).reshape((in1, out * in2))
    y: Tensor = (partial.reshape((*x1.shape[:-1], out, in2)) @ x2[..., None])[..., 0]
    return y if bias is None else y + bias
