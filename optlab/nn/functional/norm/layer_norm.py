"""Layer and RMS normalization, and the operations of all normalizations, beside their rules.

A normalization is two operations. The first standardizes over the axes that share a mean, and its
rule reads only its outputs; the second scales and shifts, and its rule reads the same array. So one
array of the size of the input is saved for the backward pass, whatever follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.elementwise import ADD, MULTIPLY
from optlab.autograd.rules.guarded import zeros_of
from optlab.autograd.tape.half_precision import halves
from optlab.autograd.tensor.tensor import Tensor, apply, apply_several
from optlab.nn.functional.affine import cast_to_weight
from optlab.nn.functional.arguments import inner, no_name, scores, total, total_of_rows

Axes = tuple[int, ...]


def _mean(x: Any, axes: Axes) -> Any:
    """Return the mean over some axes, keeping dimensions."""
    return _mean_by(total, (x,), axes)


def _mean_product(a: Any, b: Any, axes: Axes) -> Any:
    """Return the mean of products over some axes, keeping dimensions."""
    return _mean_by(inner, (a, b), axes)


def _mean_by(add_up: Any, given: tuple[Any, ...], axes: Axes) -> Any:
    """Return the mean over some axes by a function that sums along one.

    Adjacent axes, the last ones (summed first) or the first ones, are merged: a fourth of the time
    of NumPy's sum over all of them at once.
    """
    shape = given[0].shape
    count = math.prod([shape[axis] for axis in axes])
    if len(axes) == 1:
        return add_up(*given, axes[0]) / count
    contiguous = all(type(x) is np.ndarray and x.flags.c_contiguous for x in given)
    if contiguous and axes[-1] == len(shape) - 1:
        last = sum(axis - i == len(shape) - len(axes) for i, axis in enumerate(axes))
        lines = (*shape[: len(shape) - last], math.prod(shape[len(shape) - last :]))
        sums = add_up(*[x.reshape(lines) for x in given], -1)
        sums = np.add.reduce(sums, axis=axes[: len(axes) - last])
    else:
        terms = given[0] if len(given) == 1 else given[0] * given[1]
        if not contiguous or axes[-1] != len(axes) - 1:
            return np.add.reduce(terms, axis=axes, keepdims=True) / count
        sums = total_of_rows(terms.reshape(count, -1))
    return sums.reshape([1 if i in axes else n for i, n in enumerate(shape)]) / count


def _standardize(x: Any, axes: Axes, epsilon: float) -> Any:
    """Return (x - mean) / sqrt(variance + epsilon), the mean and the variance."""
    mean = _mean(x, axes)
    deviation = x - mean
    if axes[0] == 0:  # over a batch
        # A mean far from 0 has a larger rounding error than the deviations.
        missed = _mean(deviation, axes)
        deviation -= missed
        mean = mean + missed
    variance = _mean_product(deviation, deviation, axes)
    deviation *= 1 / np.sqrt(variance + epsilon)
    return deviation, mean, variance


def _standardize_back(g: Any, y: Any, axes: Axes, epsilon: float) -> Any:
    normal, mean, variance = y
    width = np.sqrt(variance + epsilon)
    count = normal.size // mean.size
    by_x: Any = 0.0
    if 0 in g:
        slope = g[0]
        along = _mean_product(slope, normal, axes)
        by_x = (slope - _mean(slope, axes) - normal * along) / width
    if 1 in g:
        by_x = by_x + g[1] / count
    if 2 in g:
        by_x = by_x + normal * (g[2] * (2 / count) * width)
    return by_x if 0 in g or 2 in g else by_x + zeros_of(normal)


STANDARDIZE = rule(_standardize, _standardize_back, inputs="x", static="axes epsilon", several=True)


def _rescale(x: Any, axes: Axes, epsilon: float) -> Any:
    """Return x / sqrt(mean of squares + epsilon), and the mean of squares."""
    square = _mean_product(x, x, axes)
    return x * (1 / np.sqrt(square + epsilon)), square


def _rescale_back(g: Any, y: Any, axes: Axes, epsilon: float) -> Any:
    normal, square = y
    width = np.sqrt(square + epsilon)
    by_x: Any = 0.0
    if 0 in g:
        by_x = (g[0] - normal * _mean_product(g[0], normal, axes)) / width
    if 1 in g:
        by_x = by_x + normal * (g[1] * (2 * square.size / normal.size) * width)
    return by_x


RESCALE = rule(_rescale, _rescale_back, inputs="x", static="axes epsilon", several=True)


def _scale_shift(x: Any, weight: Any, bias: Any) -> Any:
    y = x * weight
    if type(y) is not type(bias):  # an ensemble of biases of one shared product
        return y + bias
    y += bias
    return y


SCALE_SHIFT = rule(
    _scale_shift,
    lambda g, weight: g * weight,
    lambda g, x: g * x,
    lambda g: g,
    inputs="x weight bias",
)


def standardized(x: Any, axes: Axes, epsilon: float) -> Tensor:
    """Return the normalized array alone; an empty batch unchanged."""
    if not x.size:
        return x  # type: ignore[no-any-return]
    return apply_several(STANDARDIZE, (x,), {"axes": axes, "epsilon": float(epsilon)})[0]


def scaled(x: Any, weight: Any, bias: Any, shape: tuple[int, ...]) -> Tensor:
    """Return x * weight + bias, with optional weight and bias reshaped to `shape`."""
    if weight is not None and weight.shape != shape:
        weight = weight.reshape(shape)
    if bias is not None and bias.shape != shape:
        bias = bias.reshape(shape)
    if weight is None:
        return x if bias is None else apply(ADD, (x, bias))
    if bias is None:
        return apply(MULTIPLY, (x, weight))
    return apply(SCALE_SHIFT, (x, weight, bias))


def prepared(
    x: Any, weight: Any, bias: Any, operation: str = "standardize"
) -> tuple[Any, Any, Any, Any]:
    """Return x in the dtype of the weights, the weights as Tensors, and the dtype of the result.

    16-bit arrays are normalized in float32, because their squares would overflow, and cast back
    unless `auto_cast` has the normalization on its black list.
    """
    x = scores(x)
    weight = None if weight is None else scores(weight)
    bias = None if bias is None else scores(bias)
    given = x.dtype
    for parameter in (weight, bias):
        if parameter is not None and x.dtype != parameter.dtype:
            if x.dtype.itemsize < parameter.dtype.itemsize:
                x = x.astype(parameter.dtype)
            else:
                x = cast_to_weight(x, parameter)
    if given.itemsize >= x.dtype.itemsize:
        given = x.dtype
    if x.dtype.itemsize < 4:
        x = x.astype(np.float32)
        if halves.policy is not None and halves.policy.goal(operation) == np.float32:
            given = x.dtype
    return x, weight, bias, given


def cast_back(y: Any, dtype: Any) -> Tensor:
    """Return the result in the given dtype."""
    return y if y.dtype == dtype else y.astype(dtype)  # type: ignore[no-any-return]


def check_channels(function: str, count: int, **parameters: Any) -> None:
    """Check that parameters have one number for each channel."""
    for name, parameter in parameters.items():
        if parameter is not None and parameter.shape != (count,):
            raise ValueError(
                f"{function}: x has {count} channels, so {name} must be of shape ({count},); got "
                f"{parameter.shape}."
            )


def layer_norm(
    x: Any, normalized_shape: int | Sequence[int], weight: Any = None, bias: Any = None,
    epsilon: float = 1e-5, name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply layer normalization over the last axes.

    .. math:: y = w \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b

    Parameters
    ----------
    x : Tensor, shape ``[..., *normalized_shape]``
    normalized_shape : int or list of int
        Lengths of the axes that share a mean and a variance.
    weight, bias : Tensor, shape normalized_shape, optional
    epsilon : float

    Raises
    ------
    ValueError
        If the last axes of `x` are of other lengths.

    Notes
    -----
    Source: Ba, Kiros and Hinton 2016.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.layer_norm(ol.to_tensor([[1.0, 3.0], [5.0, 5.0]]), 2), 4)
    Tensor([[-1.,  1.],
            [ 0.,  0.]], dtype=float32)
    """
    no_name(name)
    x, weight, bias, given = prepared(x, weight, bias)
    shape, axes = _last_axes("layer_norm", x, normalized_shape, weight=weight, bias=bias)
    return cast_back(scaled(standardized(x, axes, epsilon), weight, bias, shape), given)


def rms_norm(
    input: Any, normalized_shape: int | Sequence[int], weight: Any = None, eps: float = 1e-5,
    name: None = None, *, epsilon: float | None = None,
) -> Tensor:  # fmt: skip
    r"""Apply root mean square (RMS) normalization over the last axes.

    .. math:: y = w \frac{x}{\sqrt{\mathrm{mean}(x^2) + \varepsilon}}

    Parameters
    ----------
    input : Tensor, shape ``[..., *normalized_shape]``
    normalized_shape : int or list of int
        Lengths of the axes of the mean.
    weight : Tensor, shape normalized_shape, optional
    eps : float
        Added to the mean of squares.
    name : None
        Must be None: results have no names here.
    epsilon : float, optional
        The same, by the name that it has in the layer `RMSNorm`.

    Raises
    ------
    ValueError
        If the last axes of `input` are of other lengths.
    TypeError
        If both `eps` and `epsilon` are given.

    Notes
    -----
    Source: Zhang and Sennrich 2019.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.rms_norm(ol.to_tensor([[3.0, 3.0, -3.0]]), 3), 4)
    Tensor([[ 1.,  1., -1.]], dtype=float32)
    """
    no_name(name)
    if epsilon is not None:
        if eps != 1e-5:
            raise TypeError("rms_norm: eps and epsilon are the same; give one of them.")
        eps = epsilon
    x, weight, _, given = prepared(input, weight, None, "rescale")
    shape, axes = _last_axes("rms_norm", x, normalized_shape, weight=weight)
    if x.size:
        x = apply_several(RESCALE, (x,), {"axes": axes, "epsilon": float(eps)})[0]
    return cast_back(scaled(x, weight, None, shape), given)


def _last_axes(
    function: str, x: Any, normalized_shape: int | Sequence[int], **parameters: Any
) -> tuple[tuple[int, ...], Axes]:
    shape = as_shape(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(
            f"{function} normalises over the last axes, of lengths {list(shape)}; x is of shape "
            f"{x.shape}."
        )
    for name, parameter in parameters.items():
        if parameter is not None and parameter.size != math.prod(shape):
            raise ValueError(f"{function}: {name} must be of shape {shape}; got {parameter.shape}.")
    return shape, tuple(range(x.ndim - len(shape), x.ndim))


def as_shape(lengths: int | Sequence[int]) -> tuple[int, ...]:
    """Return the lengths of axes as a tuple."""
    if isinstance(lengths, (int, np.integer)):
        return (int(lengths),)
    return tuple(int(length) for length in lengths)
