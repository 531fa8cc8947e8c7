"""The gamma distribution and those derived from it: chi-square, F, Student's t, beta, Dirichlet.

They are differentiable in their shapes although they are drawn by rejection sampling: the
derivative of a gamma draw is taken at a fixed quantile level (implicit reparameterization,
`optlab.autograd.rules.gamma`; accurate to eight digits). It estimates the gradient of an expected
loss, but differs from finite differences at a fixed seed. For F, t, beta and Dirichlet a seed gives
other numbers for Tensors than for arrays, which NumPy draws directly.
"""

from __future__ import annotations

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
)
from optlab.autograd.tensor.tensor import Tensor, raw


def standard_gamma(shape: Any, size: Size = None) -> Any:
    """Draw from the gamma distribution with scale 1; differentiable in `shape`.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.standard_gamma(2.0) > 0)
    True
    """
    (shape,) = as_parameters(shape)
    if not any_tensor(shape):
        return draw("standard_gamma", shape, size=size)
    check_sign("standard_gamma", "shape", shape, positive=True)
    return Draw("standard_gamma", size, shape).gamma(shape)


def gamma(shape: Any, scale: Any = 1.0, size: Size = None) -> Any:
    """Draw from the gamma distribution; differentiable in `shape` and `scale`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> shape = ol.to_tensor(2.0, requires_grad=True)
    >>> ol.numpy.random.gamma(shape, 3.0, size=1000).mean().backward()
    >>> bool(abs(shape.grad.item() - 3) < 0.5)  # the mean is shape * scale
    True
    """
    shape, scale = as_parameters(shape, scale)
    if not any_tensor(shape, scale):
        return draw("gamma", shape, scale, size=size)
    check_sign("gamma", "shape", shape, positive=isinstance(shape, Tensor))
    check_sign("gamma", "scale", scale)
    drawn = Draw("gamma", size, shape, scale)
    if isinstance(shape, Tensor):
        return drawn.gamma(shape) * scale
    return drawn.times(scale, "standard_gamma", copied_values(shape))


def chisquare(df: Any, size: Size = None) -> Any:
    """Draw from the chi-square distribution; differentiable in `df`.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.chisquare(3) > 0)
    True
    """
    (df,) = as_parameters(df)
    if not any_tensor(df):
        return draw("chisquare", df, size=size)
    check_sign("chisquare", "df", df, positive=True)
    return 2.0 * Draw("chisquare", size, df).gamma(df / 2.0)


def f(dfnum: Any, dfden: Any, size: Size = None) -> Any:
    """Draw from Fisher's F distribution; differentiable in both parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.f(3, 5) > 0)
    True
    """
    dfnum, dfden = as_parameters(dfnum, dfden)
    if not any_tensor(dfnum, dfden):
        return draw("f", dfnum, dfden, size=size)
    check_sign("f", "dfnum", dfnum, positive=True)
    check_sign("f", "dfden", dfden, positive=True)
    drawn = Draw("f", size, dfnum, dfden)
    above, below = drawn.gamma(dfnum / 2.0, "above"), drawn.gamma(dfden / 2.0, "below")
    return (above * dfden) / (below * dfnum)


def standard_t(df: Any, size: Size = None) -> Any:
    """Draw from Student's t distribution; differentiable in `df`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.standard_t(3, size=2).shape
    (2,)
    """
    (df,) = as_parameters(df)
    if not any_tensor(df):
        return draw("standard_t", df, size=size)
    check_sign("standard_t", "df", df, positive=True)
    drawn = Draw("standard_t", size, df)
    return drawn.times(np.sqrt(df / 2.0), "standard_normal") / np.sqrt(
        drawn.gamma(df / 2.0, "below")
    )


def beta(a: Any, b: Any, size: Size = None) -> Any:
    """Draw from the beta distribution; differentiable in both parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(0 <= ol.numpy.random.beta(2.0, 3.0) <= 1)
    True
    """
    a, b = as_parameters(a, b)
    if not any_tensor(a, b):
        return draw("beta", a, b, size=size)
    check_sign("beta", "a", a, positive=True)
    check_sign("beta", "b", b, positive=True)
    drawn = Draw("beta", size, a, b)
    of_a, of_b = drawn.log_gamma(a, "a"), drawn.log_gamma(b, "b")
    return np.exp(of_a - np.logaddexp(of_a, of_b))


def dirichlet(alpha: Any, size: Size = None) -> Any:
    """Draw vectors that sum to 1 from the Dirichlet distribution; differentiable in `alpha`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.dirichlet([1.0, 2.0, 3.0], size=4).shape
    (4, 3)
    """
    (alpha,) = as_parameters(alpha)
    if not any_tensor(alpha):
        return draw("dirichlet", alpha, size=size)
    if np.ndim(alpha) != 1:
        raise ValueError(f"dirichlet takes an alpha of one axis; got shape {np.shape(alpha)}.")
    check_sign("dirichlet", "alpha", alpha, positive=True)
    drawn = Draw("dirichlet", (*(read_size(size) or ()), len(alpha)), alpha)
    logs = drawn.log_gamma(alpha, "alpha")
    shares = np.exp(logs - np.max(raw(logs), axis=-1, keepdims=True))
    return shares / np.sum(shares, axis=-1, keepdims=True)


def noncentral_chisquare(df: Any, nonc: Any, size: Size = None) -> Any:
    """Draw from the noncentral chi-square distribution; not differentiable.

    For a gradient with `df` above 1, use ``chisquare(df - 1) + normal(np.sqrt(nonc)) ** 2``.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.noncentral_chisquare(3, 1.0) > 0)
    True
    """
    hint = "Write chisquare(df - 1) + normal(np.sqrt(nonc))**2, or use {parameter}.detach()."
    parameters = {"df": df, "nonc": nonc}
    return draw_without_gradient("noncentral_chisquare", hint, size, parameters)


def noncentral_f(dfnum: Any, dfden: Any, nonc: Any, size: Size = None) -> Any:
    """Draw from the noncentral F distribution; not differentiable.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.noncentral_f(3, 5, 1.0) > 0)
    True
    """
    parameters = {"dfnum": dfnum, "dfden": dfden, "nonc": nonc}
    return draw_without_gradient("noncentral_f", NO_FORM, size, parameters)
