"""The derivative of gamma draws with respect to the shape parameter.

With the distribution function P(a, y) and the density p(a, y), a draw at fixed P(a, y) = u has the
derivative dy/da = -(dP/da) / p. The functions are plain NumPy, so they differentiate to any order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Nodes and weights for integrals over (0, infinity) of functions that decay like exp(-w) or
# exp(-w²): the trapezoidal rule after w = exp(t - exp(-t)) (Takahasi and Mori 1974).
_T = np.arange(-3.0, 4.05, 0.11)
_POINTS = np.exp(_T - np.exp(-_T))
_WEIGHTS = 0.11 * _POINTS * (1 + np.exp(-_T))
_QUADRATURE = list(zip(_POINTS.tolist(), _WEIGHTS.tolist(), strict=True))


def digamma(a: Any) -> Any:
    """Return the derivative of log(Gamma(a)), for positive a.

    Examples
    --------
    >>> float(round(digamma(np.float64(1.0)), 12))  # minus Euler's constant
    -0.577215664902
    """
    shift: Any = 0.0
    for k in range(10):
        shift = shift - 1 / (a + k)
    b = a + 10
    r = 1 / (b * b)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132)))))
    return shift + np.log(b) - 0.5 / b - series


def slope_of_gamma(y: Any, a: Any) -> Any:
    r"""Return dy/da of the standard gamma distribution of shape `a`, at a fixed quantile level.

    .. math:: \frac{dy}{da} = \pm \int_0^\infty y\, (\log y \pm v - \psi(a))\,
        e^{\pm a v - y (e^{\pm v} - 1)}\, dv

    with the sign for which the bracket does not change sign, which avoids cancellation: minus (the
    lower tail) where log y is below psi(a), plus (the upper tail) elsewhere. Shapes below 1 are
    raised by P(a, y) = P(a + 1, y) + y p(a, y) / a.

    Examples
    --------
    >>> y = np.array([0.5, 3.0])  # of shape 1, the exponential distribution
    >>> slope_of_gamma(y, np.ones(2)).round(6)
    array([0.806979, 1.937912])
    """
    y = np.maximum(y.astype(np.float64), float(np.finfo(np.float64).tiny))
    a = a.astype(np.float64)
    small = a < 1
    raised = np.where(small, a + 1, a)
    log_y, psi = np.log(y), digamma(raised)
    sign = np.where(log_y < psi, -1.0, 1.0)
    width = sign / (np.sqrt(raised) + np.abs(raised - y))
    total: Any = 0.0
    for point, weight in _QUADRATURE:
        v = width * point
        total = total + weight * (log_y - psi + v) * np.exp(raised * v - y * np.expm1(v))
    slope = width * y * total
    return np.where(small, (slope - log_y + psi) * y / np.where(small, a, 1.0), slope)
