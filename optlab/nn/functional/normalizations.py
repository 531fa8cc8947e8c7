"""Normalisations: what brings numbers to mean 0 and variance 1, each beside its derivative rule.

A normalisation is two operations. The first, over the axes that share a mean, gives the normalised
numbers, and its rule reads nothing but what it gave; the second scales and shifts these, and its
rule reads the same numbers. So one array of the size of the input is kept for backward, whatever
comes after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.halves import halves
from optlab.autograd.mode import no_grad
from optlab.autograd.operation import rule
from optlab.autograd.rules.elementwise import ADD, MULTIPLY
from optlab.autograd.rules.guarded import nothing
from optlab.autograd.tensor import Tensor, apply, apply_several, raw
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from optlab.nn.functional.affine import _meeting
from optlab.nn.functional.shared import channel_axis, inner, no_name, scores, total

Axes = tuple[int, ...]


def _mean(x: Any, axes: Axes) -> Any:
    """Give the mean over some axes, which stay as axes of length 1."""
    count = math.prod([x.shape[axis] for axis in axes])
    if len(axes) == 1:
        return total(x, axes[0]) / count
    return np.add.reduce(x, axis=axes, keepdims=True) / count


def _mean_product(a: Any, b: Any, axes: Axes) -> Any:
    """Give the mean of products over some axes, which stay as axes of length 1."""
    if len(axes) == 1:
        return inner(a, b, axes[0]) / a.shape[axes[0]]
    return _mean(a * b, axes)


def _standardize(x: Any, axes: Axes, epsilon: float) -> Any:
    """Give (x - mean) / sqrt(variance + epsilon), the mean and the variance."""
    mean = _mean(x, axes)
    deviation = x - mean
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
    return by_x if 0 in g or 2 in g else by_x + nothing(normal)


STANDARDIZE = rule(_standardize, _standardize_back, inputs="x", static="axes epsilon", several=True)


def _rescale(x: Any, axes: Axes, epsilon: float) -> Any:
    """Give x / sqrt(mean of squares + epsilon), and the mean of squares."""
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
    if type(y) is not type(bias):  # a bias of each member, while all share the product
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
    """Give the normalised numbers alone; an empty batch stays as it is."""
    if not x.size:
        return x  # type: ignore[no-any-return]
    return apply_several(STANDARDIZE, (x,), {"axes": axes, "epsilon": float(epsilon)})[0]


def scaled(x: Any, weight: Any, bias: Any, shape: tuple[int, ...]) -> Tensor:
    """Give x * weight + bias, where weight and bias are of `shape` or missing."""
    if weight is not None and weight.shape != shape:
        weight = weight.reshape(shape)
    if bias is not None and bias.shape != shape:
        bias = bias.reshape(shape)
    if weight is None:
        return x if bias is None else apply(ADD, (x, bias))
    if bias is None:
        return apply(MULTIPLY, (x, weight))
    return apply(SCALE_SHIFT, (x, weight, bias))


def ready(
    x: Any, weight: Any, bias: Any, operation: str = "standardize"
) -> tuple[Any, Any, Any, Any]:
    """Give what is normalised in the dtype of the weights, and in which dtype to give it back.

    Numbers of 16 bits are normalised with 32: their squares would overflow. They are given back
    with 16, unless `auto_cast` has the normalisation on its black list.
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
                x = _meeting(x, parameter)
    if given.itemsize >= x.dtype.itemsize:
        given = x.dtype
    if x.dtype.itemsize < 4:
        x = x.astype(np.float32)
        if halves.policy is not None and halves.policy.goal(operation) == np.float32:
            given = x.dtype
    return x, weight, bias, given


def cast_back(y: Any, dtype: Any) -> Tensor:
    """Give the result in the dtype in which it is wanted."""
    return y if y.dtype == dtype else y.astype(dtype)  # type: ignore[no-any-return]


def check_channels(function: str, count: int, **parameters: Any) -> None:
    """Refuse parameters that are not one number a channel."""
    for name, parameter in parameters.items():
        if parameter is not None and parameter.shape != (count,):
            raise ValueError(
                f"{function}: x has {count} channels, so {name} must be of shape ({count},); got "
                f"{parameter.shape}."
            )


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
    name: None = None,
) -> Tensor:
    r"""Normalise each channel over the batch and all places.

    .. math:: y = w \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b

    Parameters
    ----------
    x : Tensor, shape [N, C] or [N, C, ...]
    running_mean, running_var : Tensor, shape [C]
        The mean and the variance of past batches. Where those of this batch are used, they are
        brought up to date in place.
    weight, bias : Tensor, shape [C], optional
    training : bool
        Use the mean and the variance of this batch; otherwise the running ones.
    momentum : float
        How much of the running ones stays: r = momentum * r + (1 - momentum) * batch.
    epsilon : float
    data_format : {'NC', 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Where the channels are: on axis 1, or on the last.
    use_global_stats : bool, optional
        True: use the running ones in training too; False: use those of the batch always.

    Raises
    ------
    ValueError
        If shapes do not fit.
    EnsembleError
        If x is an ensemble (inside `optlab.vmap`) and its members would share the running ones.

    Notes
    -----
    As in Paddle, the variance is the mean of squared deviations, also in `running_var` (PyTorch
    divides by one less there), and `momentum` is 1 minus PyTorch's. Source: Ioffe and Szegedy 2015.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> mean, var = ol.zeros([1]), ol.ones([1])
    >>> x = ol.to_tensor([[1.0], [3.0]])
    >>> np.round(ol.nn.functional.batch_norm(x, mean, var, training=True), 4).tolist()
    [[-1.0], [1.0]]
    >>> np.round(mean, 4)
    Tensor([0.2], dtype=float32)
    """
    no_name(name)
    x, weight, bias, given = ready(x, weight, bias)
    axis = channel_axis(data_format, x.ndim, "batch_norm")
    if x.ndim < 2:
        raise ValueError(f"batch_norm takes x of shape [N, C] or [N, C, ...]; got {x.shape}.")
    count = x.shape[axis]
    check_channels(
        "batch_norm", count, weight=weight, bias=bias, running_mean=running_mean,
        running_var=running_var,
    )  # fmt: skip
    shape = tuple(count if i == axis else 1 for i in range(x.ndim))
    if not training if use_global_stats is None else use_global_stats:
        return cast_back(
            _by_running(x, running_mean, running_var, weight, bias, epsilon, shape), given
        )
    if not x.size:  # nothing to learn of the running ones from
        return cast_back(scaled(x, weight, bias, shape), given)
    if x.size == count:
        raise ValueError(
            f"batch_norm in training got x of shape {x.shape}: one number for each channel has no "
            "variance, and what comes out would be the bias, whatever x is. Give a larger batch "
            "(drop_last=True leaves out a last batch of one), or call layer.eval(), which "
            "normalises by the running statistics."
        )
    axes = tuple(i for i in range(x.ndim) if i != axis)
    if type(x.data) is EnsembleArray:
        _refuse_examples_of_their_own(x.data, running_mean, running_var)
    normal, mean, variance = apply_several(
        STANDARDIZE, (x,), {"axes": axes, "epsilon": float(epsilon)}
    )
    for running, batch in ((running_mean, mean), (running_var, variance)):
        if running is not None:
            _bring_up_to_date(running, batch.data.reshape(count), float(momentum))
    return cast_back(scaled(normal, weight, bias, shape), given)


def _by_running(
    x: Any, mean: Any, variance: Any, weight: Any, bias: Any, epsilon: float, shape: Any
) -> Tensor:
    if mean is None or variance is None:
        raise ValueError("batch_norm outside training needs running_mean and running_var.")
    # Copies: a later step in training writes to the running ones.
    center = raw(mean).astype(x.dtype)
    scale: Any = 1 / np.sqrt(raw(variance).astype(x.dtype) + float(epsilon))
    shift: Any
    if weight is None:
        shift = -center * scale
    else:
        scale = weight * scale
        shift = -center * scale
    shift = shift if bias is None else bias + shift
    return scaled(x, scale, shift, shape)


def _refuse_examples_of_their_own(x: Any, *running: Any) -> None:
    """Refuse running statistics that are shared by the members of an ensemble.

    Each member would leave its own, and a layer can keep one only.
    """
    for kept in running:
        if kept is not None and _levels(raw(kept)) < _levels(x):
            raise EnsembleError(
                "batch_norm in training brings the running mean and variance up to date, but "
                "inside ol.vmap (or of an ensemble) each member has its own and the layer keeps "
                "one. Call layer.eval(), which normalises by the running ones; or take "
                "InstanceNorm, GroupNorm or LayerNorm, which look at one example at a time; or "
                "batch_norm(x, None, None, training=True), which keeps none."
            )


def _levels(array: Any) -> int:
    """Count the ensembles that stand around an array."""
    count = 0
    while type(array) is EnsembleArray:
        array, count = array.members, count + 1
    return count


def _bring_up_to_date(running: Any, batch: Any, momentum: float) -> None:
    old = raw(running)
    new = (momentum * old + (1 - momentum) * batch).astype(old.dtype)
    with no_grad():
        running[...] = Tensor(new) if isinstance(running, Tensor) else new


def layer_norm(
    x: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    bias: Any = None,
    epsilon: float = 1e-5,
    name: None = None,
) -> Tensor:
    r"""Normalise over the last axes.

    .. math:: y = w \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b

    Parameters
    ----------
    x : Tensor, shape [..., *normalized_shape]
    normalized_shape : int or list of int
        The lengths of the axes that share a mean and a variance.
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
    x, weight, bias, given = ready(x, weight, bias)
    shape, axes = _last_axes("layer_norm", x, normalized_shape, weight=weight, bias=bias)
    return cast_back(scaled(standardized(x, axes, epsilon), weight, bias, shape), given)


def rms_norm(
    input: Any,
    normalized_shape: int | Sequence[int],
    weight: Any = None,
    eps: float = 1e-5,
    name: None = None,
) -> Tensor:
    r"""Divide by the root of the mean of squares over the last axes.

    .. math:: y = w \frac{x}{\sqrt{\mathrm{mean}(x^2) + \varepsilon}}

    Parameters
    ----------
    input : Tensor, shape [..., *normalized_shape]
    normalized_shape : int or list of int
        The lengths of the axes that are averaged.
    weight : Tensor, shape normalized_shape, optional
    eps : float

    Raises
    ------
    ValueError
        If the last axes of `input` are of other lengths.

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
    x, weight, _, given = ready(input, weight, None, "rescale")
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
    """Give the lengths of axes as a tuple."""
    if isinstance(lengths, (int, np.integer)):
        return (int(lengths),)
    return tuple(int(length) for length in lengths)
