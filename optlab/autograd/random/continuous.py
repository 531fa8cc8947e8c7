"""Continuous distributions, with NumPy's names and signatures.

If a parameter is a Tensor, so is the sample, differentiable in its parameters at fixed noise
(reparameterization). The same key gives the same numbers with and without gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.random.parameters import (
    NO_FORM,
    Draw,
    Size,
    any_tensor,
    as_parameters,
    check_sign,
    copied_values,
    draw,
    draw_without_gradient,
    read_size,
    refuse_gradient,
)
from optlab.autograd.rules import random as rules
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import constants_beside
from optlab.backend.dtypes import is_floating
from optlab.backend.random import next_key


def _location_scale(law: str, noise: tuple[Any, ...], loc: Any, scale: Any, size: Size) -> Any:
    """Draw loc + scale * z."""
    loc, scale = as_parameters(loc, scale)
    if not any_tensor(loc, scale):
        return draw(law, loc, scale, size=size)
    check_sign(law, "scale", scale)
    return loc + Draw(law, size, loc, scale).times(scale, *noise)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Size = None) -> Any:
    """Draw from the uniform distribution on [low, high); differentiable in both.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.numpy.random.uniform(2.0, 3.0, size=2).round(4)
    array([2.1279, 2.2853])
    """
    low, high = as_parameters(low, high)
    if not any_tensor(low, high):
        return draw("uniform", low, high, size=size)
    width = high - low
    check_sign("uniform", "high - low", width)
    return low + Draw("uniform", size, low, high).times(width, "random")


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
    """Draw from the normal distribution; differentiable in `loc` and `scale`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> loc = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> ol.numpy.random.normal(loc, 0.5, size=(3, 2)).backward()
    >>> loc.grad
    Tensor([3., 3.], dtype=float32)
    """
    return _location_scale("normal", ("standard_normal",), loc, scale, size)


def laplace(loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
    """Draw from the Laplace distribution; differentiable in `loc` and `scale`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.laplace(1.0, 0.0)
    1.0
    """
    return _location_scale("laplace", ("laplace", 0.0, 1.0), loc, scale, size)


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
    """Draw from the logistic distribution; differentiable in `loc` and `scale`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.logistic(1.0, 0.0)
    1.0
    """
    return _location_scale("logistic", ("logistic", 0.0, 1.0), loc, scale, size)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Size = None) -> Any:
    """Draw from the Gumbel distribution (of maxima); differentiable in `loc` and `scale`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.gumbel(1.0, 0.0)
    1.0
    """
    return _location_scale("gumbel", ("gumbel", 0.0, 1.0), loc, scale, size)


def lognormal(mean: Any = 0.0, sigma: Any = 1.0, size: Size = None) -> Any:
    """Draw from the log-normal distribution; differentiable in both parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.lognormal(0.0, 0.0)
    1.0
    """
    mean, sigma = as_parameters(mean, sigma)
    if not any_tensor(mean, sigma):
        return draw("lognormal", mean, sigma, size=size)
    return np.exp(_location_scale("lognormal", ("standard_normal",), mean, sigma, size))


def _scale_only(law: str, noise: tuple[Any, ...], scale: Any, size: Size) -> Any:
    """Draw scale * z."""
    (scale,) = as_parameters(scale)
    if not any_tensor(scale):
        return draw(law, scale, size=size)
    check_sign(law, "scale", scale)
    return Draw(law, size, scale).times(scale, *noise)


def exponential(scale: Any = 1.0, size: Size = None) -> Any:
    """Draw from the exponential distribution with mean `scale`; differentiable in it.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.exponential(0.0)
    0.0
    """
    return _scale_only("exponential", ("standard_exponential",), scale, size)


def rayleigh(scale: Any = 1.0, size: Size = None) -> Any:
    """Draw from the Rayleigh distribution; differentiable in `scale`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.rayleigh(0.0)
    0.0
    """
    return _scale_only("rayleigh", ("rayleigh", 1.0), scale, size)


def standard_normal(size: Size = None) -> Any:
    """Draw from the normal distribution with mean 0 and standard deviation 1.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.standard_normal((2, 3)).shape
    (2, 3)
    """
    return draw("standard_normal", size=size)


def standard_exponential(size: Size = None) -> Any:
    """Draw from the exponential distribution with mean 1.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.standard_exponential() >= 0)
    True
    """
    return draw("standard_exponential", size=size)


def standard_cauchy(size: Size = None) -> Any:
    """Draw from the standard Cauchy distribution; ``loc + scale * standard_cauchy(n)`` shifts it.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.standard_cauchy(3).shape
    (3,)
    """
    return draw("standard_cauchy", size=size)


def _power_of_draw(law: str, noise: str, a: Any, size: Size, then: Any) -> Any:
    """Draw then(log(z) / a)."""
    (a,) = as_parameters(a)
    if not any_tensor(a):
        return draw(law, a, size=size)
    check_sign(law, "a", a, positive=True)
    return then(Draw(law, size, a).times(1 / a, noise))


def weibull(a: Any, size: Size = None) -> Any:
    """Draw from the Weibull distribution with shape `a`; differentiable in it.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.weibull(2.0) >= 0)
    True
    """
    return _power_of_draw("weibull", "log of exponential", a, size, np.exp)


def pareto(a: Any, size: Size = None) -> Any:
    """Draw from the Pareto II (Lomax) distribution with shape `a`; differentiable in it.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.pareto(2.0) >= 0)
    True
    """
    return _power_of_draw("pareto", "standard_exponential", a, size, np.expm1)


def power(a: Any, size: Size = None) -> Any:
    """Draw from the power distribution, density a x**(a - 1) on [0, 1]; differentiable in `a`.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.power(2.0) <= 1)
    True
    """
    return _power_of_draw("power", "log of power", a, size, np.exp)


def triangular(left: Any, mode: Any, right: Any, size: Size = None) -> Any:
    """Draw from the triangular distribution on [left, right]; differentiable in all parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(-1 <= ol.numpy.random.triangular(-1.0, 0.0, 2.0) <= 2)
    True
    """
    left, mode, right = as_parameters(left, mode, right)
    if not any_tensor(left, mode, right):
        return draw("triangular", left, mode, right, size=size)
    check_sign("triangular", "mode - left", raw(mode) - raw(left))
    check_sign("triangular", "right - mode", raw(right) - raw(mode))
    check_sign("triangular", "right - left", raw(right) - raw(left), positive=True)
    drawn = Draw("triangular", size, left, mode, right)
    return rules.triangular(left, mode, right, drawn.key, drawn.shape, drawn.dtype)


def vonmises(mu: Any, kappa: Any, size: Size = None) -> Any:
    """Draw angles in [-pi, pi] from the von Mises distribution; differentiable in `mu` only.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(abs(ol.numpy.random.vonmises(0.0, 1.0)) <= 3.15)
    True
    """
    mu, kappa = as_parameters(mu, kappa)
    if not any_tensor(mu, kappa):
        return draw("vonmises", mu, kappa, size=size)
    refuse_gradient("vonmises", "kappa", kappa, NO_FORM)
    check_sign("vonmises", "kappa", kappa)
    around = Draw("vonmises", size, mu, kappa).times(1.0, "vonmises", 0.0, copied_values(kappa))
    around = np.remainder(mu + around + math.pi, 2 * math.pi) - math.pi
    return around if isinstance(around, Tensor) else Tensor(around)


def wald(mean: Any, scale: Any, size: Size = None) -> Any:
    """Draw from the inverse Gaussian distribution; not differentiable.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.wald(1.0, 2.0) > 0)
    True
    """
    return draw_without_gradient("wald", NO_FORM, size, {"mean": mean, "scale": scale})


def multivariate_normal(
    mean: Any, cov: Any, size: Size = None, check_valid: str = "warn", tol: float = 1e-8
) -> Any:
    """Draw from the multivariate normal distribution; differentiable in `mean` and `cov`.

    A Tensor `cov` is factored by Cholesky, so it must be positive definite, and the numbers differ
    from those for an array, which NumPy factors by singular values.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.multivariate_normal([1.0, 2.0], [[1.0, 0.5], [0.5, 1.0]], size=4).shape
    (4, 2)
    """
    mean, cov = as_parameters(mean, cov)
    options: dict[str, Any] = {"check_valid": check_valid, "tol": tol}
    if not any_tensor(mean, cov):
        return draw("multivariate_normal", mean, cov, size=size, **options)
    if np.ndim(mean) != 1 or np.shape(cov) != 2 * np.shape(mean):
        raise ValueError(
            "multivariate_normal takes a mean of shape [d] and a cov of shape [d, d]; got "
            f"{np.shape(mean)} and {np.shape(cov)}."
        )
    if not isinstance(cov, Tensor):
        drawn = draw("multivariate_normal", np.zeros(len(mean)), cov, size=size, **options)
        drawn = drawn.astype(mean.dtype if is_floating(mean.dtype) else drawn.dtype)
        return mean + constants_beside(mean, drawn)
    factor = np.linalg.cholesky(cov)
    drawn = mean + rules.correlated_noise(factor, next_key(), read_size(size) or ())
    return drawn if isinstance(drawn, Tensor) else Tensor(drawn)
