"""Derivative rules of ufuncs of ``scipy.special``, registered when one of them meets a Tensor.

SciPy is not required: nothing here imports it. The rules are written with SciPy's own functions, so
that they are differentiable again. A gradient of 0 stays 0 through an infinite slope (see
`elementwise`): ``xlogy(0, 0)`` has slope 0 for its second argument.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from optlab.autograd.operation import TABLE, rule
from optlab.autograd.rules.guarded import product, quotient, run_or_record
from optlab.autograd.rules.special import modified_bessel

_ERF = 2 / math.sqrt(math.pi)
_NORMAL = 1 / math.sqrt(2 * math.pi)
LOG_10 = math.log(10.0)


def scipy_special() -> Any:
    """Return ``scipy.special``.

    Raises
    ------
    ModuleNotFoundError
        If SciPy is not installed; the message says how to install it.
    """
    try:
        import scipy.special as found  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "optlab.special hands on functions of SciPy, which is not installed: "
            "pip install scipy.",
            name="scipy",
        ) from error
    return found


def polygamma(n: int, x: Any) -> Any:
    """Return the n-th derivative of the digamma function, for a whole number n.

    Examples
    --------
    >>> float(polygamma(1, np.float64(1.0)).round(6))
    1.644934
    """
    return run_or_record(POLYGAMMA, x, n=int(n))


def _polygamma(x: Any, n: int) -> Any:
    special = scipy_special()
    if not n:
        return special.psi(x)
    sign = -1.0 if n % 2 == 0 else 1.0  # with zeta, a ufunc: so ensembles and float32 work
    return sign * math.factorial(n) * special.zeta(n + 1.0, x)


POLYGAMMA = rule(
    polygamma,
    lambda g, x, n: product(g, polygamma(n + 1, x)),
    static="n",
    forward=_polygamma,
)


def _rules(sp: Any) -> dict[str, Any]:
    """Return the vector-Jacobian products by name; a pair for two arguments."""
    return {
        "erf": lambda g, x: _ERF * product(g, np.exp(-x * x)),
        "erfc": lambda g, x: -_ERF * product(g, np.exp(-x * x)),
        "erfcx": lambda g, x, y: product(g, 2 * x * y - _ERF),
        "erfinv": lambda g, y: product(g, np.exp(y * y) / _ERF),
        "erfcinv": lambda g, y: -product(g, np.exp(y * y) / _ERF),
        "ndtr": lambda g, x: _NORMAL * product(g, np.exp(-0.5 * x * x)),
        "log_ndtr": lambda g, x, y: _NORMAL * product(g, np.exp(-0.5 * x * x - y)),
        "ndtri": lambda g, y: product(g, np.exp(0.5 * y * y) / _NORMAL),
        "expit": lambda g, x, y: g * y * sp.expit(-x),
        "log_expit": lambda g, x: g * sp.expit(-x),
        "logit": lambda g, x: quotient(g, x * (1 - x)),
        "gammaln": lambda g, x: product(g, sp.psi(x)),
        "loggamma": lambda g, x: product(g, sp.psi(x)),
        "gamma": lambda g, x, y: product(g, y * sp.psi(x)),
        "rgamma": lambda g, x, y: -product(g, y * sp.psi(x)),
        "psi": lambda g, x: product(g, polygamma(1, x)),
        "entr": lambda g, x: -product(g, np.log(x) + 1),
        "i0": lambda g, x: product(g, sp.i1(x)),
        "i1": lambda g, x: product(g, 0.5 * (sp.i0(x) + modified_bessel(x, 2))),
        "exp2": lambda g, y: math.log(2.0) * product(g, y),
        "exp10": lambda g, y: LOG_10 * product(g, y),
        "expm1": lambda g, y: product(g, y + 1),
        "log1p": lambda g, x: quotient(g, 1 + x),
        "cbrt": lambda g, y: quotient(g, 3 * y * y),
        "xlogy": (
            lambda g, b: product(g, np.log(b)),
            lambda g, a, b: quotient(product(g, a), b),
        ),
        "xlog1py": (
            lambda g, b: product(g, np.log1p(b)),
            lambda g, a, b: quotient(product(g, a), 1 + b),
        ),
        "rel_entr": (
            lambda g, a, b: product(g, np.log(a / b) + 1),
            lambda g, a, b: -quotient(product(g, a), b),
        ),
        "kl_div": (
            lambda g, a, b: product(g, np.log(a / b)),
            lambda g, a, b: g - quotient(product(g, a), b),
        ),
        "betaln": (
            lambda g, a, b: product(g, sp.psi(a) - sp.psi(a + b)),
            lambda g, a, b: product(g, sp.psi(b) - sp.psi(a + b)),
        ),
        "beta": (
            lambda g, a, b, y: product(g, y * (sp.psi(a) - sp.psi(a + b))),
            lambda g, a, b, y: product(g, y * (sp.psi(b) - sp.psi(a + b))),
        ),
    }


def register_scipy(ufunc: Any) -> bool:
    """Register the rules if `ufunc` is of ``scipy.special``; return whether it has one now."""
    special = sys.modules.get("scipy.special")
    name = ufunc.__name__
    if special is None or getattr(special, name, None) is not ufunc:
        return False
    for known, pullbacks in _rules(special).items():
        function = getattr(special, known, None)
        if isinstance(function, np.ufunc) and function not in TABLE:
            several = pullbacks if isinstance(pullbacks, tuple) else (pullbacks,)
            rule(function, *several, name=f"scipy.special.{known}")
    return ufunc in TABLE
