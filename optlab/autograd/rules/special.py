"""Derivative rules of special functions: sinc, and the modified Bessel function i0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import product, run_or_record

# sinc(x) = sin(z) / z with z = pi x. Near 0 its slope (cos(z) - sinc(x)) / x cancels; there the
# series is used, the sum of 2k (-1)^k z^(2k-1) / (2k+1)!. Both are plain NumPy, so derivatives of
# every order follow, at 0 too.
SINC_SERIES = [(-1) ** k * 2 * k * math.pi / math.factorial(2 * k + 1) for k in range(1, 19)]


def _slope_of_sinc(x: Any) -> Any:
    near = np.abs(x) < 0.8
    z = math.pi * np.where(near, x, 0.0)
    square = z * z
    series = SINC_SERIES[-1]
    for coefficient in SINC_SERIES[-2::-1]:
        series = series * square + coefficient
    far = np.where(near, 1.0, x)
    return np.where(near, series * z, (np.cos(math.pi * far) - np.sinc(far)) / far)


rule(np.sinc, lambda g, x: g * _slope_of_sinc(x))


def modified_bessel(x: Any, order: int) -> Any:
    """Return the modified Bessel function of the first kind I_n(x), for a small integer order n.

    For abs(x) < 30 by the power series, whose terms have one sign; beyond by the asymptotic series.

    Examples
    --------
    >>> import numpy as np
    >>> np.round(modified_bessel(np.array([-1.0, 0.0, 2.0]), 1), 6)
    array([-0.565159,  0.      ,  1.590637])
    """
    return run_or_record(MODIFIED_BESSEL, x, order=order)


def _modified_bessel(x: Any, order: int) -> Any:
    size = np.abs(x)
    near = size < 30
    half = np.where(near, size, 1.0) / 2
    square = half * half
    series: Any = 1.0
    for k in range(70, 0, -1):
        series = 1 + series * square / (k * (k + order))
    far = np.where(near, 30.0, size)
    tail: Any = 1.0
    for k in range(30, 0, -1):
        tail = 1 - tail * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * far)
    growth = np.exp(np.where(near, 0.0, size) / 2)  # two factors, as exp overflows before I_n
    value = np.where(
        near,
        series * half**order / math.factorial(order),
        growth * (tail / np.sqrt(2 * math.pi * far)) * growth,
    )
    return np.where(x < 0, -value, value) if order % 2 else value


def _slope_of_bessel(x: Any, order: int) -> Any:
    """Return I_n' = (I_(n-1) + I_(n+1)) / 2, where I_(-1) is I_1."""
    return 0.5 * (modified_bessel(x, abs(order - 1)) + modified_bessel(x, order + 1))


MODIFIED_BESSEL = rule(
    modified_bessel,
    lambda g, x, order: product(g, _slope_of_bessel(x, order)),
    static="order",
    forward=_modified_bessel,
)
rule(np.i0, lambda g, x: product(g, modified_bessel(x, 1)))
