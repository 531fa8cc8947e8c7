"""The error function, which NumPy lacks, and GELU, which uses it.

In float64, near 0, the power series of erf; elsewhere, for x > 0, 1 - exp(-x^2) q(t) / (x + k) with
t = (x - k) / (x + k), which maps [0, inf) to [-1, 1), and a polynomial q that interpolates
(x + k) exp(x^2) erfc(x) at Chebyshev points, with a relative error of 1e-16. In float32, where
seven digits suffice, erf is tanh(x p(x^2)) with a polynomial p that is fitted to the least maximum
error of erf: an error of 2e-7, in a third of the time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import product, run_or_record
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.nn.functional.arguments import bounded, in_blocks, no_name, scores
from optlab.plan.fused_function import FusedFunction

#: Largest |x| for the power series, whose 13 terms yield 16 digits.
_NEAR = 0.65
_SERIES = [
    (-1) ** k * 2 / math.sqrt(math.pi) / (math.factorial(k) * (2 * k + 1)) for k in range(13)
]

_MIDDLE = 3.75
_FAR = [
    1.09192290956278904, -0.95874157665290957, 0.736318925221753742, -0.490470291207679533,
    0.279062049033681231, -0.131955401178468939, 0.0491187786172678992, -0.0125358800422836873,
    0.000986338059654386045, 0.000794823110351231973, -0.000348646738438246412,
    1.05939393643704562e-5, 3.7471304066174454e-5, -8.90381617502450329e-6,
    -3.28855869022885514e-6, 1.6559088365725825e-6, 2.786425585878482e-7, -2.63736157211418468e-7,
    -2.59119567136082989e-8, 4.04607912925012553e-8, 2.77027531115783146e-9,
    -5.46978976535852452e-9, -2.29083040963101872e-10, 4.579984140831587e-10,
]  # fmt: skip

#: From here on erf is 1 in float32.
_ONE_IN_FLOAT32 = 4.2
_FLOAT32 = [
    1.1283792743128374, 0.10276905573785072, -0.00019183068923946437, -0.0006197847476919295,
    8.763735779769394e-05, -5.668480149599101e-06, 1.4185246153419382e-07,
]  # fmt: skip


def _polynomial(coefficients: list[float], x: Any) -> Any:
    """Return the sum of c_k x^k by Horner's scheme."""
    total = coefficients[-1] * x
    total += coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        total *= x
        total += coefficient
    return total


def _erf(x: Any) -> Any:
    if x.dtype.itemsize < 4:
        return _erf(x.astype(np.float32)).astype(x.dtype)
    if x.dtype.itemsize == 4:
        return _erf_float32(x, _FLOAT32, _ONE_IN_FLOAT32)
    size = np.abs(x)
    near = np.minimum(size, _NEAR)
    size = np.minimum(size, 30.0)  # from 6 on erf is 1; larger squares may overflow
    far = np.exp(-size * size) * _polynomial(_FAR, (size - _MIDDLE) / (size + _MIDDLE))
    far = np.copysign(1.0 - far / (size + _MIDDLE), x)
    small = np.copysign(near, x) * _polynomial(_SERIES, near * near)
    return np.where(size <= _NEAR, small, far)


def _erf_float32(x: Any, coefficients: list[float], bound: float) -> Any:
    """Return tanh(x p(x^2)) in float32, with magnitude 1 beyond the bound."""
    with np.errstate(over="ignore"):  # an infinite square is clipped to the bound
        inner = _inside_tanh(x, coefficients, bound)
    return np.tanh(inner)


def _inside_tanh(x: Any, coefficients: list[float], bound: float) -> Any:
    inner = _polynomial(coefficients, bounded(x * x, -np.inf, bound * bound))
    inner *= x
    return inner


def _erf_derivative(x: Any) -> Any:
    size = np.minimum(np.abs(x), 30.0)
    return (2 / math.sqrt(math.pi)) * np.exp(-size * size)


ERF = rule(_erf, lambda g, x: g * _erf_derivative(x), inputs="x")


def erf(x: Any, name: None = None) -> Tensor:
    r"""Compute the error function :math:`\frac{2}{\sqrt\pi} \int_0^x e^{-t^2} dt`.

    Parameters
    ----------
    x : Tensor or array

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.erf(ol.to_tensor([-1.0, 0.0, 0.5], dtype="float64"))
    Tensor([-0.84270079,  0.        ,  0.52049988], dtype=float64)
    """
    no_name(name)
    return apply(ERF, (scores(x),))


# GELU: x times the distribution function of the standard normal distribution.

_ROOT_HALF = math.sqrt(0.5)
_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
_STEEPNESS = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


#: The coefficients for erf(x / sqrt(2)).
_FLOAT32_OF_GELU = [c * _ROOT_HALF ** (2 * k + 1) for k, c in enumerate(_FLOAT32)]


def _normal_cdf(x: Any) -> Any:
    """Return the distribution function of the standard normal distribution."""
    if type(x) is np.ndarray and x.dtype == np.float32:
        y = _erf_float32(x, _FLOAT32_OF_GELU, _ONE_IN_FLOAT32 / _ROOT_HALF)
        y *= 0.5
        y += 0.5
        return y
    return 0.5 + 0.5 * run_or_record(ERF, x * _ROOT_HALF)


def _gelu_derivative(x: Any) -> Any:
    if type(x) is np.ndarray and x.dtype.itemsize >= 4:
        with np.errstate(over="ignore"):
            slope = np.exp((-0.5 * x) * x)
        slope *= _DENSITY_AT_0
        slope *= x
        slope += _normal_cdf(x)
        return slope
    size = np.minimum(np.abs(x), 40.0)
    return _normal_cdf(x) + x * (_DENSITY_AT_0 * np.exp(-0.5 * size * size))


def _gelu_tanh(x: Any) -> Any:
    """Return tanh(sqrt(2 / pi) (x + 0.044715 x^3))."""
    return np.tanh((_STEEPNESS * x) * (1 + _CUBIC * (x * x)))


def _approximate_gelu_derivative(x: Any) -> Any:
    y = _gelu_tanh(x)
    inner = _STEEPNESS * (1 + (3 * _CUBIC) * (x * x))
    return 0.5 * (1 + y) + (0.5 * x) * product(1 - y * y, inner)


# In float32 what stands before and behind tanh and exp is one compiled loop each, where that is
# ready, with the same bits: GELU takes a third of the time.


def _before_tanh(x: Any) -> Any:
    return _inside_tanh(x, _FLOAT32_OF_GELU, _ONE_IN_FLOAT32 / _ROOT_HALF)


_GELU_LOOPS = (FusedFunction(_before_tanh), FusedFunction(lambda x, t: x * (t * 0.5 + 0.5)))
_SLOPE_LOOPS = (
    FusedFunction(lambda x: (_before_tanh(x), (-0.5 * x) * x)),
    FusedFunction(lambda g, x, t, e: g * ((e * _DENSITY_AT_0) * x + (t * 0.5 + 0.5))),
)
#: Elements of a block of these loops, which need fewer arrays than NumPy.
_BLOCK_OF_LOOPS = 1 << 18


def _gelu(x: Any) -> Any:
    if not _in_float32(x):
        return x * _normal_cdf(x)
    return _by_loops_or_numpy(_GELU_LOOPS, _fill_gelu, np.empty_like(x), x)


def _in_float32(*arrays: Any) -> bool:
    return all(type(x) is np.ndarray and x.dtype == np.float32 for x in arrays)


def _by_loops_or_numpy(loops: Any, fill: Any, out: Any, *arrays: Any) -> Any:
    if all(loop.ready(out.reshape(-1)[:_BLOCK_OF_LOOPS]) for loop in loops):
        return in_blocks(fill, out, *arrays, block=_BLOCK_OF_LOOPS, shared=True)
    return in_blocks(fill, out, *arrays)


def _fill_gelu(y: Any, x: Any) -> None:
    before, after = _GELU_LOOPS[0].loop(x), _GELU_LOOPS[1].loop(x, x)
    if before is None or after is None:
        np.multiply(x, _normal_cdf(x), y)
        return
    with np.errstate(over="ignore"):
        before(x, out=[y])
    np.tanh(y, y)
    after(x, y, out=[y])


def _times_slope(g: Any, x: Any) -> Any:
    if not _in_float32(g, x) or g.shape != x.shape:
        return g * _gelu_derivative(x)
    return _by_loops_or_numpy(_SLOPE_LOOPS, _fill_slope, np.empty_like(x), g, x)


def _gelu_over(g: Any, x: Any) -> Any:
    if not _in_float32(g, x) or g.shape != x.shape:
        g *= _gelu_derivative(x)
        return g
    return _by_loops_or_numpy(_SLOPE_LOOPS, _fill_slope, g, g, x)


def _fill_slope(by_x: Any, g: Any, x: Any) -> None:
    before, after = _SLOPE_LOOPS[0].loop(x), _SLOPE_LOOPS[1].loop(g, x, x, x)
    if before is None or after is None:
        np.multiply(g, _gelu_derivative(x), by_x)
        return
    t, e = np.empty_like(x), np.empty_like(x)
    with np.errstate(over="ignore"):
        before(x, out=[t, e])
    np.tanh(t, t)
    np.exp(e, e)
    after(g, x, t, e, out=[by_x])


def _approximate_gelu(x: Any) -> Any:
    return (0.5 * x) * (1 + _gelu_tanh(x))


# With the output saved the derivative would take half the time; but where a dropout stands between
# this and the next layer, nothing else saves the output, and two arrays would stay alive, not one.
GELU = rule(_gelu, lambda g, x: _times_slope(g, x), over=_gelu_over)
APPROXIMATE_GELU = rule(_approximate_gelu, lambda g, x: g * _approximate_gelu_derivative(x))


def gelu(x: Any, approximate: bool = False, name: None = None) -> Tensor:
    r"""Apply the Gaussian error linear unit (GELU).

    .. math:: x\, \tfrac{1}{2} \left(1 + \mathrm{erf}(x / \sqrt{2})\right)

    Parameters
    ----------
    x : Tensor or array
    approximate : bool
        Use :math:`\tfrac{x}{2} (1 + \tanh(\sqrt{2 / \pi}\, (x + 0.044715\, x^3)))` instead, which
        differs by 0.0005 at most.

    Notes
    -----
    Source: Hendrycks and Gimpel 2016, "Gaussian error linear units".

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.gelu(ol.to_tensor([-1.0, 0.0, 1.0])), 4)
    Tensor([-0.1587,  0.    ,  0.8413], dtype=float32)
    """
    no_name(name)
    return apply(APPROXIMATE_GELU if approximate else GELU, (scores(x),))
