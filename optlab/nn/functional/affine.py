"""The linear layer x W + b, and the embedding lookup."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.elementwise import MULTIPLY
from optlab.autograd.rules.linalg.linear_algebra import MATMUL
from optlab.autograd.rules.manipulation.embedding import TAKE_ROWS
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import constants_beside, copied
from optlab.backend.call_recorder import elementary, pure
from optlab.backend.dtypes import is_floating
from optlab.backend.ensemble import members_of
from optlab.backend.user_frames import stack_level_outside
from optlab.nn.functional.arguments import given_with, no_name
from optlab.nn.functional.blocks import multiplied, multiplied_together


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    y = x @ weight
    if type(y) is not type(bias):  # an ensemble of biases of one shared product
        return y + bias
    y += bias
    return y


def _by_matrix(g: Any, x: Any) -> Any:
    return x.T @ g if x.ndim == 2 else _rows(x).T @ _rows(g)


def _by_bias(g: Any) -> Any:
    return np.add.reduce(g, axis=tuple(range(g.ndim - 1)))


# Stacks of rows are one matrix: NumPy computes one product for each matrix of a stack.


def _rows(x: Any) -> Any:
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _stacked_affine(x: Any, weight: Any, bias: Any) -> Any:
    if type(x) is np.ndarray and type(weight) is np.ndarray and type(bias) is np.ndarray:
        return multiplied(_rows(x), weight, bias).reshape(*x.shape[:-1], weight.shape[-1])
    return _linear(x, weight) + bias


def _linear(x: Any, matrix: Any) -> Any:
    return multiplied(_rows(x), matrix).reshape(*x.shape[:-1], matrix.shape[-1])


def _linear_by_matrix(g: Any, x: Any) -> Any:
    return multiplied(_rows(x).T, _rows(g))


def _linear_back(g: Any, x: Any, weight: Any) -> Any:
    if any(type(array) is not np.ndarray for array in (g, x, weight)):
        return _linear(g, weight.T), _linear_by_matrix(g, x)
    above = _rows(g)
    by_x, by_weight = multiplied_together((above, weight.T), (_rows(x).T, above))
    return by_x.reshape(x.shape), by_weight


def _stacked_affine_back(g: Any, x: Any, weight: Any) -> Any:
    if any(type(array) is not np.ndarray for array in (g, x, weight)):
        return _linear(g, weight.T), _linear_by_matrix(g, x), _by_bias(g)
    above = _rows(g)
    by_x, by_weight, by_bias = multiplied_together(
        (above, weight.T), (_rows(x).T, above), sums_of=above
    )
    return by_x.reshape(x.shape), by_weight, by_bias


def _affine_steps(x: Any, weight: Any, bias: Any) -> Any:
    if x.ndim == 2:
        product = yield np.matmul, x, weight
        yield np.add, product, bias


def _by_input_steps(g: Any, weight: Any) -> Any:
    if g.ndim == 2:
        transposed = yield np.transpose, weight
        yield np.matmul, g, transposed


def _by_matrix_steps(g: Any, x: Any) -> Any:
    if x.ndim == 2:
        transposed = yield np.transpose, x
        yield np.matmul, transposed, g


def _by_bias_steps(g: Any) -> Any:
    if g.ndim == 2:
        yield np.add.reduce, g, 0


AFFINE = rule(
    _affine,
    lambda g, weight: g @ weight.T,
    lambda g, x: _by_matrix(g, x),
    _by_bias,
    inputs="x weight bias",
    name="linear",
)

STACKED_AFFINE = rule(
    _stacked_affine,
    lambda g, weight: _linear(g, weight.T),
    lambda g, x: _linear_by_matrix(g, x),
    _by_bias,
    inputs="x weight bias",
    name="linear",
    joint=_stacked_affine_back,
)

LINEAR = rule(
    _linear,
    lambda g, weight: _linear(g, weight.T),
    lambda g, x: _linear_by_matrix(g, x),
    inputs="x weight",
    joint=_linear_back,
)

elementary(_affine, _affine_steps)
elementary(AFFINE.pullbacks[2], _by_bias_steps)
elementary(AFFINE.pullbacks[0], _by_input_steps)
elementary(AFFINE.pullbacks[1], _by_matrix_steps)

_cast_noted: set[tuple[Any, Any]] = set()


def cast_to_weight(x: Any, weight: Any) -> Any:
    """Return the input in the dtype of the weights, with a warning the first time it narrows."""
    if not isinstance(x, Tensor):
        x = Tensor(copied(x))  # the caller may write to the array later
    if x.dtype != weight.dtype:
        pair = (x.dtype, weight.dtype)
        narrows = is_floating(x.dtype) and x.dtype.itemsize > weight.dtype.itemsize
        if narrows and pair not in _cast_noted:
            _cast_noted.add(pair)
            warnings.warn(
                f"{x.dtype} data meets {weight.dtype} weights and is cast to {weight.dtype}. "
                f"Cast it once yourself with .astype('{weight.dtype}') (this note is given once).",
                stacklevel=stack_level_outside("optlab"),
            )
        x = x.astype(weight.dtype)
    return x


def linear(x: Any, weight: Any, bias: Any = None, name: None = None) -> Tensor:
    r"""Apply the affine function x W + b.

    Parameters
    ----------
    x : Tensor or array of shape [..., in]
        Cast to the dtype of `weight`, with a warning the first time this narrows it.
    weight : Tensor of shape [in, out]
    bias : Tensor of shape [out], optional

    Raises
    ------
    ValueError
        If the last axis of `x` and the first of `weight` differ in length, or `weight` is no matrix
        or `bias` no vector of length out.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.linear(ol.ones([1, 2]), ol.ones([2, 3]), ol.zeros([3]))
    Tensor([[2., 2., 2.]], dtype=float32)
    """
    if name is not None:
        no_name(name)
    if not isinstance(weight, Tensor):
        weight = Tensor(copied(weight))
    if not isinstance(x, Tensor) or x.data.dtype != weight.data.dtype:
        x = cast_to_weight(x, weight)
    shape = weight.data.shape
    if len(shape) != 2:
        raise ValueError(
            f"linear takes a weight of shape [in, out]; got one of shape {shape}. A vector becomes "
            "a matrix with weight[:, None] (one output)."
        )
    if x.data.shape[-1:] != shape[:1]:
        raise ValueError(
            f"linear got x of shape {x.shape} and weight of shape {weight.shape}: the last axis of "
            f"x must be {weight.shape[0]} long. Reshape x, or make the layer "
            f"Linear({x.shape[-1] if x.ndim else 1}, {weight.shape[-1]})."
        )
    if bias is None:
        return apply(MATMUL if x.data.ndim <= 2 else LINEAR, (x, weight))
    lengths = bias.data.shape if isinstance(bias, Tensor) else np.shape(bias)
    if lengths != shape[1:]:
        raise ValueError(
            f"linear got weight of shape {shape} and bias of shape {lengths}: the bias is one "
            f"number for each output, of shape {shape[1:]}."
        )
    return apply(AFFINE if x.data.ndim <= 2 else STACKED_AFFINE, (x, weight, bias))


@pure
def _checked_rows(weight: Any, x: Any, padding_idx: int | None) -> tuple[Any, Any]:
    """Return the rows to look up, checked, and where they are not those of the padding."""
    # A copy: the caller may write to the array later.
    rows = copied(given_with(raw(weight), x, "x"))
    count = np.shape(weight)[0]
    if rows.dtype.kind not in "iu":
        raise TypeError(f"embedding takes integers as row indices; got dtype {rows.dtype}.")
    if rows.size:
        lowest, highest = (int(limit(members_of(rows))) for limit in (np.min, np.max))
        if lowest < 0 or highest >= count:
            raise IndexError(f"embedding has rows 0 ... {count - 1}; got {lowest} ... {highest}.")
    if padding_idx is None:
        return rows, None
    return rows, (rows != padding_idx % count)[..., None]


def embedding(
    x: Any, weight: Any, padding_idx: int | None = None, sparse: bool = False, name: None = None
) -> Tensor:
    """Look up rows of an embedding table: ``weight[x]``.

    Parameters
    ----------
    x : array or Tensor of integers
        Row indices, of any shape.
    weight : Tensor, shape (rows, width)
    padding_idx : int, optional
        Index of the padding row: its output is zero and it receives no gradient.
    sparse : bool
        Whether the gradient of `weight` is row-sparse (`RowSparse`): only the rows read.

    Returns
    -------
    Tensor
        Of shape ``x.shape + (width,)``.

    Raises
    ------
    TypeError, IndexError
        If `x` holds no integers, or an index out of range.

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
    no_name(name)
    if padding_idx is not None and not -np.shape(weight)[0] <= padding_idx < np.shape(weight)[0]:
        raise IndexError(
            f"padding_idx must be one of the {np.shape(weight)[0]} rows; got {padding_idx}."
        )
    rows, present = _checked_rows(weight, x, padding_idx)
    found = apply(TAKE_ROWS, (weight,), {"rows": rows, "sparse": bool(sparse)})
    if present is None:
        return found
    return apply(MULTIPLY, (found, constants_beside(found, present.astype(found.dtype))))
