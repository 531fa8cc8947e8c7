"""Functions of two arrays and a number that have a form in CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Of NumPy's bits on every device.
EXACT: list[Any] = [
    lambda p, g, n: p + g,
    lambda p, g, n: p - g,
    lambda p, g, n: p * g,
    lambda p, g, n: p / g,
    lambda p, g, n: n * p + g * (1 - n),
    lambda p, g, n: 1 / p,
    lambda p, g, n: np.reciprocal(p),
    lambda p, g, n: np.square(p) - g * g * g,
    lambda p, g, n: -p,
    lambda p, g, n: +p * 1e-3,
    lambda p, g, n: np.sqrt(p) / (np.sqrt(g) + 1e-8),
    lambda p, g, n: abs(p) - np.fabs(g),
    lambda p, g, n: np.copysign(p, g),
    lambda p, g, n: np.floor(p) + np.ceil(g),
    lambda p, g, n: np.trunc(p) * np.rint(g),
    lambda p, g, n: np.maximum(p, g),
    lambda p, g, n: np.minimum(p, g),
    lambda p, g, n: np.maximum(p, 0.0),
    lambda p, g, n: np.minimum(-0.0, g),
    lambda p, g, n: np.minimum(p, np.inf) + np.maximum(p, -np.inf),
    lambda p, g, n: np.sign(p),
    lambda p, g, n: p % g,
    lambda p, g, n: np.clip(p, -1.5, 1.5),
    lambda p, g, n: np.clip(p, 0.0, n),
    lambda p, g, n: np.clip(p, -0.0, n),
    lambda p, g, n: np.where(p > g, p, g),
    lambda p, g, n: np.where((p >= g) & (p != 0), 0.5, g),
    lambda p, g, n: np.where((p < g) | (g <= n) | (p == g), p, n),
    lambda p, g, n: np.where(
        np.logical_xor(np.isfinite(p), np.isnan(g)), p, np.where(~np.isinf(g), g, 1.0)
    ),
    lambda p, g, n: np.where(np.logical_not(np.logical_and(p > 0, g > 0)), p, g),
    lambda p, g, n: np.where(np.logical_or(np.signbit(p), g > 0), np.nan, p),
]
#: Whose last bit is the device's.
CLOSE: list[Any] = [
    *(
        lambda p, g, n, f=f: f(p)
        for f in (
            np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sin, np.cos, np.tan,
            np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arctanh,
            np.cbrt,
        )
    ),
    lambda p, g, n: np.arccosh(g),
    lambda p, g, n: np.power(p, g),
    lambda p, g, n: np.power(p, 1.5),
    lambda p, g, n: np.arctan2(p, g),
    lambda p, g, n: np.hypot(p, g),
]  # fmt: skip
FUNCTIONS_OF_KERNELS = EXACT + CLOSE
