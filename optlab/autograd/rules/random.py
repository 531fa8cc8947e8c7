"""Derivative rules of random sampling.

A sample is a function of a key and of the parameters, ``y = f(parameters, noise(key))``, and its
derivative is taken at fixed noise (reparameterization: Kingma and Welling 2014). The node saves the
key, never the noise: rules, and the rules of rules, draw the noise again from the key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.operation import Operation, rule
from optlab.autograd.rules.gamma import slope_of_gamma
from optlab.autograd.rules.guarded import run_or_record
from optlab.backend.arrays import Shape, constants_beside, on_host
from optlab.backend.random import Key

#: A method of NumPy's generators, or a key of `LOGARITHMS`, and its parameters.
Law = tuple[Any, ...]

#: Logarithms of standard draws, for powers of a draw: z**(1/a) is exp(log(z) / a).
LOGARITHMS: dict[str, Callable[[Any, Shape], Any]] = {
    "log of exponential": lambda draws, shape: np.log(draws.standard_exponential(shape)),
    "log of uniform": lambda draws, shape: -draws.standard_exponential(shape),
    "log of power": lambda draws, shape: np.log(-np.expm1(-draws.standard_exponential(shape))),
}


def noise(law: Law, key: Key, shape: Shape, dtype: Any = np.float64, like: Any = None) -> Any:
    """Draw from `law` by `key` (the same key, the same numbers), on the device of `like`."""
    name, *parameters = law
    draws = key.generator()
    if name in LOGARITHMS:
        z = LOGARITHMS[name](draws, shape)
    else:
        z = getattr(draws, name)(*map(on_host, parameters), size=shape)
    z = np.asarray(z).astype(dtype, copy=False)
    if name == "random" and z.dtype != np.float64:
        z = np.minimum(z, np.nextafter(z.dtype.type(1), z.dtype.type(0)))  # [0, 1): 1 is excluded
    return constants_beside(like, z)


# Scaled noise: normal, uniform, exponential, Laplace, logistic, Gumbel and many more.


def scaled_noise(x: Any, law: Law, key: Key, shape: Shape, dtype: Any) -> Any:
    """Return x * z for z drawn from `law` in `shape`, to which x is broadcast."""
    return run_or_record(SCALED_NOISE, x, law=law, key=key, shape=shape, dtype=dtype)


SCALED_NOISE = rule(
    scaled_noise,
    lambda g, law, key: scaled_noise(g, law, key, g.shape, g.dtype),
    static="law key shape dtype",
    forward=lambda x, law, key, shape, dtype: x * noise(law, key, shape, dtype, like=x),
)


# Dropout: the mask is noise too.


def dropout(x: Any, rate: float, key: Key, shape: Shape | None = None, upscale: bool = True) -> Any:
    """Apply dropout: set elements to 0 with probability `rate`, divide the others by 1 - rate.

    Parameters
    ----------
    x : Tensor or array
    rate : float
        From 0 to 1.
    key : Key
        The random key of the mask.
    shape : tuple of int, optional
        The shape of the mask, with 1 for axes along which it is shared.
    upscale : bool
        Whether to divide the remaining elements by 1 - rate, which preserves the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from optlab.backend.random import Key
    >>> dropout(np.ones(8), 0.5, Key(1))
    array([2., 2., 2., 2., 2., 2., 0., 0.])
    """
    return run_or_record(DROPOUT, x, rate=rate, key=key, shape=shape, upscale=upscale)


def _dropped(x: Any, rate: float, key: Key, shape: Shape | None, upscale: bool) -> Any:
    kept = key.generator().random(x.shape if shape is None else shape, np.float32) >= rate
    factor = 1 / (1 - rate) if upscale and rate < 1 else 1.0
    return x * constants_beside(x, np.multiply(kept, factor, dtype=x.dtype))


DROPOUT = rule(
    dropout,
    lambda g, rate, key, shape, upscale: dropout(g, rate, key, shape, upscale),
    static="rate key shape upscale",
    forward=_dropped,
)


# The multivariate normal distribution: y = z L', with independent z and a factor L of the
# covariance. Each of the two operations is the derivative of the other.


def correlated_noise(factor: Any, key: Key, shape: Shape) -> Any:
    """Return z @ factor.T for standard normal z of shape [*shape, d]."""
    return run_or_record(CORRELATED_NOISE, factor, key=key, shape=shape)


def products_with_noise(y: Any, key: Key) -> Any:
    """Return the sum over all draws of the outer products of y and z, a matrix [d, d]."""
    return run_or_record(PRODUCTS_WITH_NOISE, y, key=key)


def _correlated(factor: Any, key: Key, shape: Shape) -> Any:
    z = noise(("standard_normal",), key, (*shape, factor.shape[-1]), factor.dtype, like=factor)
    return z @ np.swapaxes(factor, -1, -2)


def _products(y: Any, key: Key) -> Any:
    d = y.shape[-1]
    z = noise(("standard_normal",), key, y.shape, y.dtype, like=y)
    return np.reshape(y, (-1, d)).T @ np.reshape(z, (-1, d))


CORRELATED_NOISE = rule(
    correlated_noise,
    lambda g, key: products_with_noise(g, key),
    inputs="factor",
    static="key shape",
    forward=_correlated,
)
PRODUCTS_WITH_NOISE = rule(
    products_with_noise,
    lambda g, x_shape, key: correlated_noise(g, key, x_shape[:-1]),
    static="key",
    forward=_products,
)


# The triangular distribution: its quantile function has a kink at the mode.


def triangular(left: Any, mode: Any, right: Any, key: Key, shape: Shape, dtype: Any) -> Any:
    """Return the quantile of the triangular distribution at uniform levels u drawn from `key`."""
    return run_or_record(TRIANGULAR, left, mode, right, key=key, shape=shape, dtype=dtype)


def _triangular(left: Any, mode: Any, right: Any, key: Key, shape: Shape, dtype: Any) -> Any:
    base = right - left
    u = noise(("random",), key, shape, dtype, like=base + mode)
    rising = left + np.sqrt(u * ((mode - left) * base))
    falling = right - np.sqrt((1 - u) * ((right - mode) * base))
    return np.where(u <= (mode - left) / base, rising, falling)


def _corner(y: Any, left: Any, mode: Any, right: Any) -> tuple[Any, Any, Any]:
    """Return the mask of y left of the mode, and half of (y - left) and of (right - y).

    Each half is divided by the width of its side of the triangle, and 0 on the other side.
    """
    rises = (y <= mode) & (mode > left)
    falls = (y > mode) | (mode <= left)
    return (
        rises,
        np.where(rises, y - left, 0.0) / np.where(rises, 2 * (mode - left), 1.0),
        np.where(falls, right - y, 0.0) / np.where(falls, 2 * (right - mode), 1.0),
    )


def _triangular_by_left(g: Any, left: Any, mode: Any, right: Any, y: Any) -> Any:
    rises, rising, _ = _corner(y, left, mode, right)
    half = np.where(rises, y - left, right - y) / (2 * (right - left))
    return g * np.where(rises, 1 - half - rising, half)


def _triangular_by_mode(g: Any, left: Any, mode: Any, right: Any, y: Any) -> Any:
    _, rising, falling = _corner(y, left, mode, right)
    return g * (rising + falling)


def _triangular_by_right(g: Any, left: Any, mode: Any, right: Any, y: Any) -> Any:
    rises, _, falling = _corner(y, left, mode, right)
    half = np.where(rises, y - left, right - y) / (2 * (right - left))
    return g * np.where(rises, half, 1 - half - falling)


TRIANGULAR = rule(
    triangular,
    _triangular_by_left,
    _triangular_by_mode,
    _triangular_by_right,
    inputs="left mode right",
    static="key shape dtype",
    forward=_triangular,
)


# The gamma distribution is drawn by rejection sampling, which is not smooth in the shape. Its
# derivative is that of the quantile function at the drawn point (Figurnov et al. 2018, "Implicit
# reparameterization gradients"); finite differences at a fixed key do not show it.

STANDARD_GAMMA = Operation(
    "standard_gamma",
    lambda a, key, shape, dtype: noise(("standard_gamma", a), key, shape, dtype, like=a),
    [lambda g, a, y: g * slope_of_gamma(y, a)],
    ["a"],
    ["key", "shape", "dtype"],
)
