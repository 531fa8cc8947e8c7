"""Discrete distributions, with NumPy's names and signatures.

If a parameter is a Tensor, so is the sample, of integers. A parameter that needs a gradient raises
an error: a discrete sample is piecewise constant in its parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.random.parameters import SCORE_FUNCTION, Size, draw_without_gradient


def _draw_integers(law: str, size: Size, **parameters: Any) -> Any:
    return draw_without_gradient(law, SCORE_FUNCTION, size, parameters)


def randint(low: Any, high: Any = None, size: Size = None, dtype: Any = int) -> Any:
    """Draw integers uniformly from `low` (0 if only one bound is given) below `high`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> ol.numpy.random.randint(10, size=5)
    array([0, 1, 4, 2, 5])
    """
    return integers(low, high, size, dtype)


def integers(
    low: Any, high: Any = None, size: Size = None, dtype: Any = np.int64, endpoint: bool = False
) -> Any:
    """Draw integers uniformly from `low` below `high`, or up to it with ``endpoint=True``.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(1 <= ol.numpy.random.integers(1, 6, endpoint=True) <= 6)
    True
    """
    bounds = {"low": low} if high is None else {"low": low, "high": high}
    options = {"dtype": dtype, "endpoint": endpoint}
    return draw_without_gradient("integers", SCORE_FUNCTION, size, bounds, **options)


def binomial(n: Any, p: Any, size: Size = None) -> Any:
    """Draw from the binomial distribution: successes in `n` trials of probability `p`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.binomial(10, 1.0)
    10
    """
    return _draw_integers("binomial", size, n=n, p=p)


def negative_binomial(n: Any, p: Any, size: Size = None) -> Any:
    """Draw from the negative binomial distribution: failures before the n-th success.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.negative_binomial(3, 1.0)
    0
    """
    return _draw_integers("negative_binomial", size, n=n, p=p)


def geometric(p: Any, size: Size = None) -> Any:
    """Draw from the geometric distribution: trials up to the first success.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.geometric(1.0)
    1
    """
    return _draw_integers("geometric", size, p=p)


def hypergeometric(ngood: Any, nbad: Any, nsample: Any, size: Size = None) -> Any:
    """Draw from the hypergeometric distribution: good items among `nsample`, without replacement.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.hypergeometric(5, 0, 3)
    3
    """
    return _draw_integers("hypergeometric", size, ngood=ngood, nbad=nbad, nsample=nsample)


def poisson(lam: Any = 1.0, size: Size = None) -> Any:
    """Draw from the Poisson distribution with mean `lam`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.poisson(0.0)
    0
    """
    return _draw_integers("poisson", size, lam=lam)


def zipf(a: Any, size: Size = None) -> Any:
    """Draw from the Zipf distribution, where the probability of k is proportional to k**-a.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.zipf(2.0) >= 1)
    True
    """
    return _draw_integers("zipf", size, a=a)


def logseries(p: Any, size: Size = None) -> Any:
    """Draw from the logarithmic series distribution, where P(k) is proportional to p**k / k.

    Examples
    --------
    >>> import optlab as ol
    >>> bool(ol.numpy.random.logseries(0.5) >= 1)
    True
    """
    return _draw_integers("logseries", size, p=p)


def multinomial(n: Any, pvals: Any, size: Size = None) -> Any:
    """Draw from the multinomial distribution: occurrences of each outcome in `n` trials.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.multinomial(4, [0.0, 1.0])
    array([0, 4])
    """
    return _draw_integers("multinomial", size, n=n, pvals=pvals)


def multivariate_hypergeometric(
    colors: Any, nsample: Any, size: Size = None, method: str = "marginals"
) -> Any:
    """Draw numbers of items of each color among `nsample`, without replacement.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.numpy.random.multivariate_hypergeometric([2, 3], 5)
    array([2, 3])
    """
    parameters = {"colors": colors, "nsample": nsample}
    return draw_without_gradient(
        "multivariate_hypergeometric", SCORE_FUNCTION, size, parameters, method=method
    )
