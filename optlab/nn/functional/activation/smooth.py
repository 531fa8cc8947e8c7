"""Smooth activation functions, each beside its derivative rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.elementwise import TANH
from optlab.autograd.rules.guarded import run_or_record
from optlab.autograd.tensor.conversions import as_setting, is_tracked
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.call_recorder import elementary
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.arguments import (
    bounded,
    inner,
    largest,
    no_name,
    scores,
    setting_beside,
    total,
    total_steps,
)


def tanh(x: Any, name: None = None) -> Tensor:
    """Apply the hyperbolic tangent, element by element.

    Parameters
    ----------
    x : Tensor or array

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.tanh(ol.to_tensor([0.0, 1.0])), 4)
    Tensor([0.    , 0.7616], dtype=float32)
    """
    if name is not None:
        no_name(name)
    return apply(TANH, (x,))


# The logistic function and functions composed of it.


def _sigmoid(x: Any) -> Any:
    with np.errstate(over="ignore"):  # exp(-x) = inf yields the exact limit 0
        return 1 / (1 + np.exp(-x))


SIGMOID = rule(_sigmoid, lambda g, y: g * (y * (1 - y)))


@documented_like(tanh)
def sigmoid(x: Any, name: None = None) -> Tensor:
    r"""Apply the logistic sigmoid :math:`1 / (1 + e^{-x})`, without overflow for large -x.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.sigmoid(ol.to_tensor([-1000.0, 0.0, 1000.0]))
    Tensor([0. , 0.5, 1. ], dtype=float32)
    """
    no_name(name)
    return apply(SIGMOID, (scores(x),))


def _log1p(x: Any) -> Any:
    """Return log(1 + x) in a third of the time of `numpy.log1p`."""
    rounded = 1 + x
    return np.log(rounded) + (x - (rounded - 1)) / rounded


def _log_sigmoid(x: Any) -> Any:
    return bounded(x, -np.inf, 0.0) - _log1p(np.exp(-np.abs(x)))


LOG_SIGMOID = rule(_log_sigmoid, lambda g, y: -g * np.expm1(y))


@documented_like(tanh)
def log_sigmoid(x: Any, name: None = None) -> Tensor:
    r"""Apply the log-sigmoid :math:`-\log(1 + e^{-x})`, without overflow.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.log_sigmoid(ol.to_tensor([-100.0, 0.0])), 4)
    Tensor([-100.    ,   -0.6931], dtype=float32)
    """
    no_name(name)
    return apply(LOG_SIGMOID, (scores(x),))


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    steep = beta * x
    bent = (bounded(steep, 0.0, np.inf) + _log1p(np.exp(-np.abs(steep)))) / beta
    return np.where(steep > threshold, x, bent)


SOFTPLUS = rule(
    _softplus,
    lambda g, y, beta=1.0, threshold=20.0: np.where(
        beta * y > threshold, g, -g * np.expm1(-beta * y)
    ),
    static="beta threshold",
)


def _softplus_cut_short(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return _softplus(x, beta, threshold)


# Below a threshold of about 16 the output does not tell on which side of it the input was.
SOFTPLUS_CUT_SHORT = rule(
    _softplus_cut_short,
    lambda g, x, beta=1.0, threshold=20.0: np.where(
        beta * x > threshold, g, g * run_or_record(SIGMOID, beta * x)
    ),
    static="beta threshold",
)


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0, name: None = None) -> Tensor:
    r"""Apply softplus, :math:`\log(1 + e^{\beta x}) / \beta`: a smooth max(x, 0).

    Parameters
    ----------
    x : Tensor or array
    beta : float
        Sharpness of the bend at 0; greater than 0.
    threshold : float
        Above it, for beta * x, the function is x itself.

    Raises
    ------
    ValueError
        If `beta` is 0 or negative.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.softplus(ol.to_tensor([-100.0, 0.0, 100.0])), 4)
    Tensor([  0.    ,   0.6931, 100.    ], dtype=float32)
    """
    no_name(name)
    if not beta > 0:
        raise ValueError(f"softplus takes beta greater than 0; got {beta!r}.")
    x = scores(x)
    if is_tracked(beta):
        sharpness = setting_beside(x, beta, "beta")
        bent = np.logaddexp(sharpness * x, 0.0) / sharpness
        return np.where(sharpness * x > threshold, x, bent)  # type: ignore[no-any-return]
    static = {"beta": float(beta), "threshold": as_setting(threshold, "threshold")}
    operation = SOFTPLUS if threshold >= 20 else SOFTPLUS_CUT_SHORT
    return apply(operation, (x,), static)


def _silu(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


def _silu_derivative(x: Any) -> Any:
    share = run_or_record(SIGMOID, x)
    return share * (1 + x * (1 - share))


SILU = rule(_silu, lambda g, x: g * _silu_derivative(x))


def silu(x: Any, inplace: bool = False, name: None = None) -> Tensor:
    r"""Apply the sigmoid linear unit (SiLU, also swish), :math:`x / (1 + e^{-x})`.

    Sources: Elfwing, Uchibe and Doya 2017; Ramachandran, Zoph and Le 2017.

    Parameters
    ----------
    x : Tensor or array
    inplace : bool
        Must be False: the backward pass reads the input.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.silu(ol.to_tensor([-1.0, 0.0, 1.0])), 4)
    Tensor([-0.2689,  0.    ,  0.7311], dtype=float32)
    """
    no_name(name)
    if inplace:
        raise TypeError(
            "silu(inplace=True) is not covered: its rule reads the input, which would be "
            "overwritten. Write x = silu(x)."
        )
    return apply(SILU, (scores(x),))


@documented_like(tanh)
def swish(x: Any, name: None = None) -> Tensor:
    r"""Apply swish, :math:`x / (1 + e^{-x})`: another name of `silu`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.swish(ol.to_tensor([1.0])), 4)
    Tensor([0.7311], dtype=float32)
    """
    return silu(x, name=name)


def _tanh_softplus(x: Any) -> Any:
    """Return tanh(log(1 + e^x)) as a quotient of powers of e^x, 1 long before they overflow."""
    e = np.exp(np.minimum(x, 20.0 if x.dtype.itemsize > 2 else 5.0))
    top = e * (e + 2)
    return top / (top + 2)


def _mish(x: Any) -> Any:
    return x * _tanh_softplus(x)


def _mish_derivative(x: Any) -> Any:
    y = _tanh_softplus(x)
    return y + x * (run_or_record(SIGMOID, x) * (1 - y * y))


MISH = rule(_mish, lambda g, x: g * _mish_derivative(x))


@documented_like(tanh)
def mish(x: Any, name: None = None) -> Tensor:
    r"""Apply Mish, :math:`x \tanh(\log(1 + e^x))`.

    Source: Misra 2020, "Mish: a self regularized non-monotonic activation function".

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.mish(ol.to_tensor([-1.0, 0.0, 1.0])), 4)
    Tensor([-0.3034,  0.    ,  0.8651], dtype=float32)
    """
    no_name(name)
    return apply(MISH, (scores(x),))


def _softsign(x: Any) -> Any:
    return x / (1 + np.abs(x))


SOFTSIGN = rule(_softsign, lambda g, y: g * np.square(1 - np.abs(y)))


@documented_like(tanh)
def softsign(x: Any, name: None = None) -> Tensor:
    """Apply softsign, ``x / (1 + |x|)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.softsign(ol.to_tensor([-1.0, 3.0]))
    Tensor([-0.5 ,  0.75], dtype=float32)
    """
    no_name(name)
    return apply(SOFTSIGN, (scores(x),))


# Gates: the sigmoid of one half of the channels weights the other half.


def _halves(x: Any, axis: int) -> tuple[Any, Any]:
    before = (slice(None),) * (axis % x.ndim)
    middle = x.shape[axis] // 2
    return x[(*before, slice(middle))], x[(*before, slice(middle, None))]


def _glu(x: Any, axis: int = -1) -> Any:
    passing, gate = _halves(x, axis)
    return passing * _sigmoid(gate)


def _glu_back(g: Any, x: Any, axis: int = -1) -> Any:
    passing, gate = _halves(x, axis)
    share = run_or_record(SIGMOID, gate)
    through = g * share
    return np.concatenate([through, through * passing * (1 - share)], axis=axis)


GLU = rule(_glu, _glu_back, static="axis")


def glu(x: Any, axis: int = -1, name: None = None) -> Tensor:
    """Apply the gated linear unit (GLU): the first half of x times the sigmoid of the second.

    Source: Dauphin et al. 2017, "Language modeling with gated convolutional networks".

    Parameters
    ----------
    x : Tensor or array
    axis : int
        Axis to halve; of even length.

    Raises
    ------
    ValueError
        If the axis is not of even length.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.glu(ol.to_tensor([2.0, 4.0, 0.0, 1000.0]))
    Tensor([1., 4.], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    _check_axis("glu", x, axis)
    if x.shape[axis] % 2:
        raise ValueError(
            f"glu takes an axis of even length; axis {axis} of x of shape {x.shape} is "
            f"{x.shape[axis]} long."
        )
    return apply(GLU, (x,), {"axis": axis})


def maxout(x: Any, groups: int, axis: int = 1, name: None = None) -> Tensor:
    """Apply maxout: the maximum of every `groups` adjacent channels; ties share the gradient.

    Source: Goodfellow et al. 2013, "Maxout networks".

    Parameters
    ----------
    x : Tensor or array
    groups : int
        Number of channels per maximum; must divide the number of channels.
    axis : int
        Axis of the channels.

    Raises
    ------
    ValueError
        If `groups` does not divide the number of channels.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.maxout(ol.to_tensor([[1.0, 5.0, 2.0, 0.0]]), groups=2)
    Tensor([[5., 2.]], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    _check_axis("maxout", x, axis)
    at = axis % x.ndim
    if groups < 1 or x.shape[at] % groups:
        raise ValueError(
            f"maxout: the {x.shape[at]} channels on axis {axis} cannot be put into groups of "
            f"{groups}."
        )
    grouped = x.reshape((*x.shape[:at], x.shape[at] // groups, groups, *x.shape[at + 1 :]))
    return np.max(grouped, axis=at + 1)  # type: ignore[no-any-return]


def _check_axis(function: str, x: Any, axis: int) -> None:
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"{function} got axis={axis!r} for x of shape {x.shape}.")


# Probabilities.


def _log_softmax(x: Any, axis: int = -1) -> Any:
    shifted = x - largest(x, axis)
    shifted -= np.log(total(np.exp(shifted), axis))
    return shifted


LOG_SOFTMAX = rule(
    _log_softmax,
    lambda g, y, axis=-1: g - np.exp(y) * total(g, axis),
    static="axis",
)


def _log_softmax_steps(x: Any, axis: int = -1) -> Any:
    if x.ndim == 2 and axis in (-1, 1):
        shifted = yield np.subtract, x, (yield np.maximum.reduce, x, 1, None, None, True)
        sums = yield from total_steps((yield np.exp, shifted))
        yield np.subtract, shifted, (yield np.log, sums)


def _by_log_softmax_steps(g: Any, y: Any, axis: int = -1) -> Any:
    if g.ndim == 2 and axis in (-1, 1):
        exponential = yield np.exp, y
        sums = yield from total_steps(g)
        yield np.subtract, g, (yield np.multiply, exponential, sums)


elementary(_log_softmax, _log_softmax_steps)
elementary(LOG_SOFTMAX.pullbacks[0], _by_log_softmax_steps)


def log_softmax(x: Any, axis: int = -1, dtype: Any = None, name: None = None) -> Tensor:
    """Apply the logarithm of `softmax`, without overflow for large x.

    Parameters
    ----------
    x : Tensor or array
    axis : int
        Axis of the classes.
    dtype : str, optional
        Dtype to which x is cast first.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.exp(ol.nn.functional.log_softmax(ol.to_tensor([1000.0, 1000.0])))
    Tensor([0.5, 0.5], dtype=float32)
    """
    no_name(name)
    x = scores(x if dtype is None else scores(x).astype(dtype))
    return apply(LOG_SOFTMAX, (x,), {"axis": axis})


def _softmax(x: Any, axis: int = -1) -> Any:
    y = np.exp(x - largest(x, axis))
    y /= total(y, axis)
    return y


SOFTMAX = rule(_softmax, lambda g, y, axis=-1: y * (g - inner(g, y, axis)), static="axis")


@documented_like(log_softmax)
def softmax(x: Any, axis: int = -1, dtype: Any = None, name: None = None) -> Tensor:
    """Apply softmax, exp(x) / sum(exp(x)) along `axis`, without overflow for large x.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.softmax(ol.to_tensor([0.0, 0.0]))
    Tensor([0.5, 0.5], dtype=float32)
    """
    no_name(name)
    x = scores(x if dtype is None else scores(x).astype(dtype))
    return apply(SOFTMAX, (x,), {"axis": axis})
