"""Piecewise linear and exponential activations: ReLU and its variants, beside their rules.

At a kink the derivative is the one-sided one of PyTorch and Paddle: the left one for ReLU and its
variants, 0 at the bounds of a clipped interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import where_mask
from optlab.autograd.tape.half_precision import rounded
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.call_recorder import elementary
from optlab.backend.dtypes import is_half
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.arguments import (
    MANY,
    bounded,
    channel_axis,
    no_name,
    scores,
    setting_beside,
)


def _relu(x: Any) -> Any:
    return np.maximum(x, 0) if x.size < MANY else bounded(x, 0.0, np.inf)


def _relu_steps(x: Any) -> Any:
    if x.size < MANY:
        yield np.maximum, x, 0
    else:
        yield np.clip, x, 0.0, np.inf


def _by_rectified_steps(g: Any, y: Any) -> Any:
    positive = yield np.greater, y, 0
    yield np.multiply, g, positive


RELU = rule(_relu, lambda g, y: g * (y > 0), over=lambda g, y: np.multiply(g, y > 0, out=g))
elementary(_relu, _relu_steps)
elementary(RELU.pullbacks[0], _by_rectified_steps)


def relu(x: Any, name: None = None) -> Tensor:
    r"""Apply the rectified linear unit (ReLU), max(x, 0); its derivative at 0 is 0.

    Parameters
    ----------
    x : Tensor or array

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.relu(ol.to_tensor([-1.0, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """
    if name is not None:
        no_name(name)
    return apply(RELU, (x,))


# Clipping to an interval.


def _cut(x: Any, low: float, high: float) -> Any:
    return bounded(x, low, high)


CUT = rule(
    _cut,
    lambda g, y, low, high: where_mask(g, (y > low) & (y < high)),
    inputs="x",
    static="low high",
)


@documented_like(relu)
def relu6(x: Any, name: None = None) -> Tensor:
    """Apply ReLU6, min(max(x, 0), 6); its derivative at 0 and 6 is 0.

    Source: Krizhevsky 2010, "Convolutional deep belief networks on CIFAR-10".

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.relu6(ol.to_tensor([-1.0, 2.0, 7.0]))
    Tensor([0., 2., 6.], dtype=float32)
    """
    no_name(name)
    return apply(CUT, (scores(x),), {"low": 0.0, "high": 6.0})


def hardtanh(x: Any, min: float = -1.0, max: float = 1.0, name: None = None) -> Tensor:
    """Apply hard tanh: clip x to the interval from `min` to `max`; the derivative at both is 0.

    Parameters
    ----------
    x : Tensor or array
    min : float
        Lower bound.
    max : float
        Upper bound.

    Raises
    ------
    ValueError
        If `min` is greater than `max`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.hardtanh(ol.to_tensor([-2.0, 0.5, 2.0]))
    Tensor([-1. ,  0.5,  1. ], dtype=float32)
    """
    no_name(name)
    if min > max:
        raise ValueError(f"hardtanh: min must not exceed max; got min={min!r} and max={max!r}.")
    x = scores(x)
    low, high = setting_beside(x, min, "min"), setting_beside(x, max, "max")
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        return np.minimum(np.maximum(x, low), high)  # type: ignore[no-any-return]
    if is_half(x.dtype):  # the rule compares the output with the bounds, so they are rounded alike
        low, high = (float(rounded(np.float32(bound), x.dtype)) for bound in (low, high))
    return apply(CUT, (x,), {"low": low, "high": high})


def _hard_sigmoid(x: Any, slope: float, offset: float) -> Any:
    return bounded(slope * x + offset, 0.0, 1.0)


HARD_SIGMOID = rule(
    _hard_sigmoid,
    lambda g, y, slope: slope * where_mask(g, (y > 0) & (y < 1)),
    inputs="x",
    static="slope offset",
)


def hardsigmoid(x: Any, slope: float = 0.1666667, offset: float = 0.5, name: None = None) -> Tensor:
    """Apply the hard sigmoid: slope * x + offset, clipped to [0, 1].

    Parameters
    ----------
    x : Tensor or array
    slope : float
    offset : float

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.hardsigmoid(ol.to_tensor([-4.0, 0.0, 4.0]))
    Tensor([0. , 0.5, 1. ], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    slope, offset = setting_beside(x, slope, "slope"), setting_beside(x, offset, "offset")
    if isinstance(slope, Tensor) or isinstance(offset, Tensor):
        return np.clip(slope * x + offset, 0.0, 1.0)
    return apply(HARD_SIGMOID, (x,), {"slope": slope, "offset": offset})


def _hard_swish(x: Any) -> Any:
    return x * (bounded(x + 3.0, 0.0, 6.0) * (1 / 6))


HARD_SWISH = rule(
    _hard_swish,
    lambda g, x: where_mask(g, np.abs(x) < 3) * ((2 * x + 3) / 6) + where_mask(g, x >= 3),
    inputs="x",
)


@documented_like(relu)
def hardswish(x: Any, name: None = None) -> Tensor:
    """Apply hard swish, x * min(max(x + 3, 0), 6) / 6; its derivative is 0 at -3 and 1 at 3.

    Source: Howard et al. 2019, "Searching for MobileNetV3".

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.hardswish(ol.to_tensor([-4.0, 3.0, 4.0]))
    Tensor([-0.,  3.,  4.], dtype=float32)
    """
    no_name(name)
    return apply(HARD_SWISH, (scores(x),))


# A slope for x < 0. (`where` on an irregular mask takes ten times as long as a sum or a product.)


def _leaky_relu(x: Any, slope: float) -> Any:
    return np.maximum(x, slope * x) if slope <= 1 else np.minimum(x, slope * x)


# For a slope of at least 0, the output has the sign of the input.
LEAKY_RELU = rule(
    _leaky_relu,
    lambda g, y, slope: slope * g + (1 - slope) * where_mask(g, y > 0),
    inputs="x",
    static="slope",
)


def leaky_relu(x: Any, negative_slope: float = 0.01, name: None = None) -> Tensor:
    """Apply the leaky rectified linear unit (LeakyReLU): x if x > 0, else negative_slope * x.

    Source: Maas, Hannun and Ng 2013.

    Parameters
    ----------
    x : Tensor or array
    negative_slope : float
        Slope for x <= 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.leaky_relu(ol.to_tensor([-1.0, 2.0]), 0.5)
    Tensor([-0.5,  2. ], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    slope = setting_beside(x, negative_slope, "negative_slope")
    if isinstance(slope, Tensor):
        return apply(PRELU, (x, slope))
    if slope < 0:
        return np.where(x > 0, x, slope * x)  # type: ignore[no-any-return]
    return apply(LEAKY_RELU, (x,), {"slope": slope})


def _prelu(x: Any, weight: Any) -> Any:
    return np.where(x > 0, x, weight * x)


PRELU = rule(
    _prelu,
    lambda g, x, weight: np.where(x > 0, g, weight * g),
    lambda g, x: where_mask(g * x, x <= 0),
    inputs="x weight",
)


def prelu(x: Any, weight: Any, data_format: str = "NCHW", name: None = None) -> Tensor:
    """Apply the parametric ReLU (PReLU): x if x > 0, else weight * x.

    Parameters
    ----------
    x : Tensor or array
    weight : Tensor, shape [1] or [channels]
    data_format : {'NC', 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Position of the channel axis: 1 or the last.

    Raises
    ------
    ValueError
        If there is neither one weight nor one for each channel.

    Notes
    -----
    Source: He et al. 2015, "Delving deep into rectifiers".

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.prelu(ol.to_tensor([[-1.0, -1.0]]), ol.to_tensor([0.25, 0.5]))
    Tensor([[-0.25, -0.5 ]], dtype=float32)
    """
    no_name(name)
    x, weight = scores(x), scores(weight)
    if weight.size > 1:
        axis = channel_axis(data_format, x.ndim, "prelu")
        channels = x.shape[axis] if 0 <= axis < x.ndim and x.ndim > 1 else None
        if weight.shape != (channels,):
            raise ValueError(
                f"prelu got x of shape {x.shape} and weight of shape {weight.shape}: give one "
                f"weight, or one for each of the channels on axis {axis}."
            )
        if axis != x.ndim - 1:
            weight = weight.reshape((-1,) + (1,) * (x.ndim - 1 - axis))
    else:
        weight = weight.reshape(())
    return apply(PRELU, (x, weight))


# Exponentials for x < 0.


def _exponential(x: Any, scale: float, alpha: float, width: float) -> Any:
    left = np.expm1(bounded(x, -np.inf, 0.0) / width)
    right = bounded(x, 0.0, np.inf)
    return (scale * alpha) * left + (right if scale == 1.0 else scale * right)


def _exponential_back(g: Any, y: Any, scale: float, alpha: float, width: float) -> Any:
    at_0 = scale * alpha / width
    through = g * ((np.minimum(y, 0.0) + scale * alpha) / width)
    if at_0 == scale:  # smooth at 0
        return through
    return through + (scale - at_0) * where_mask(g, y > 0)


EXPONENTIAL = rule(
    _exponential,
    lambda g, y, scale, alpha, width: _exponential_back(g, y, scale, alpha, width),
    inputs="x",
    static="scale alpha width",
)


def _exponential_unit(x: Any, scale: Any, alpha: Any, width: Any) -> Tensor:
    """Apply the operation; settings that need a gradient are operands of a formula instead."""
    x = scores(x)
    settings = {"scale": scale, "alpha": alpha, "width": width}
    static = {name: setting_beside(x, value, name) for name, value in settings.items()}
    if not any(isinstance(value, Tensor) for value in static.values()):
        return apply(EXPONENTIAL, (x,), static)
    left = static["alpha"] * np.expm1(np.minimum(x, 0.0) / static["width"])
    return static["scale"] * np.where(x > 0, x, left)  # type: ignore[no-any-return]


def elu(x: Any, alpha: float = 1.0, name: None = None) -> Tensor:
    r"""Apply the exponential linear unit (ELU): x if x > 0, else :math:`\alpha (e^x - 1)`.

    Source: Clevert, Unterthiner and Hochreiter 2016.

    Parameters
    ----------
    x : Tensor or array
    alpha : float
        Minus the limit for x to -infinity; at least 0.

    Raises
    ------
    ValueError
        If `alpha` is negative.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.elu(ol.to_tensor([-1.0, 2.0])), 4)
    Tensor([-0.6321,  2.    ], dtype=float32)
    """
    no_name(name)
    if alpha < 0:
        raise ValueError(f"elu takes alpha of at least 0; got {alpha!r}.")
    return _exponential_unit(x, 1.0, alpha, 1.0)


def selu(
    x: Any, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772, name: None = None
) -> Tensor:
    r"""Apply the scaled ELU (SELU): scale * x if x > 0, else :math:`scale\,\alpha (e^x - 1)`.

    With the default numbers activations keep mean 0 and variance 1 from layer to layer.
    Source: Klambauer et al. 2017, "Self-normalizing neural networks".

    Parameters
    ----------
    x : Tensor or array
    scale : float
        Slope for x > 0; greater than 1.
    alpha : float
        The alpha of `elu`; at least 0.

    Raises
    ------
    ValueError
        If `scale` is not greater than 1, or `alpha` is negative.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.selu(ol.to_tensor([-1.0, 2.0])), 4)
    Tensor([-1.1113,  2.1014], dtype=float32)
    """
    no_name(name)
    if not scale > 1 or alpha < 0:
        raise ValueError(
            f"selu takes scale above 1 and alpha of at least 0; got {scale!r} and {alpha!r}."
        )
    return _exponential_unit(x, scale, alpha, 1.0)


def celu(x: Any, alpha: float = 1.0, name: None = None) -> Tensor:
    r"""Apply the continuously differentiable ELU (CELU): x if x > 0, else a saturating exponential.

    .. math:: \alpha (e^{x/\alpha} - 1) \;\text{for}\; x \le 0

    Source: Barron 2017, "Continuously differentiable exponential linear units".

    Parameters
    ----------
    x : Tensor or array
    alpha : float
        Scale of the exponential; greater than 0.

    Raises
    ------
    ValueError
        If `alpha` is 0 or negative.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.celu(ol.to_tensor([-1.0, 2.0]), 2.0), 4)
    Tensor([-0.7869,  2.    ], dtype=float32)
    """
    no_name(name)
    if not alpha > 0:
        raise ValueError(f"celu takes alpha greater than 0; got {alpha!r}.")
    return _exponential_unit(x, 1.0, alpha, alpha)
