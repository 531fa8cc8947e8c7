"""Rows of functions of polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.autograd.rows.table import numbers, put

P, Q = numbers((4,), 0.5, 2.0), numbers((2,), 0.5, 2.0, seed=1)

for function in (np.polyadd, np.polysub, np.polymul):
    put(function, "longer first", function, P, Q)
    put(function, "longer second", function, Q, P)
    put(function, "a list", lambda p, f=function: f([1, 2, 3], p), P)
    put(function, "a number", lambda p, f=function: f(p, 2.0), P)
put(np.polyadd, "equally long", np.polyadd, P, P[::-1].copy())
put(np.polymul, "leading zeros", lambda p: np.polymul([0.0, 0.0, 2.0, 1.0], p), P)
put(np.polymul, "nothing", lambda p: np.polymul([0.0, 0.0], p), P)

put(np.polydiv, "quotient", lambda u, v: np.polydiv(u, v)[0], P, Q)
put(np.polydiv, "rest", lambda u, v: np.polydiv(u, v)[1], P, Q)
put(np.polydiv, "rest of a long divisor", lambda u: np.polydiv(u, [3.0, 1.0, 2.0])[1], Q)
put(np.polydiv, "by a list", lambda u: np.polydiv(u, [1, 2, 3])[1], P)
put(np.polydiv, "by one number", lambda u, v: np.polydiv(u, v)[0], P, Q[:1])

for m in (0, 1, 2, 5):
    put(np.polyder, f"{m}", lambda p, m=m: np.polyder(p, m), P)
for options in ({}, {"m": 0}, {"m": 3}, {"k": 2.0}, {"m": 2, "k": [1, 2]}, {"m": 2, "k": 3.0}):
    put(np.polyint, f"{options}", lambda p, o=options: np.polyint(p, **o), P)
put(np.polyint, "constants", lambda p, k: np.polyint(p, 2, k), P, Q)

put(np.poly, "zeros", np.poly, numbers((3,)))
put(np.poly, "one", np.poly, numbers((1,)))
put(np.poly, "matrix", lambda x: np.poly(x + x.T), numbers((3, 3)))

X, Y, W = np.linspace(-1.0, 2.0, 7), numbers((7,)), numbers((7,), 0.5, 2.0)
put(np.polyfit, "line", lambda x, y: np.polyfit(x, y, 1), X, Y)
put(np.polyfit, "integers", lambda y: np.polyfit([0, 1, 2, 3, 4, 5, 6], y, 2), Y)
put(np.polyfit, "columns", lambda x, y: np.polyfit(x, y, 2), X, numbers((7, 2)))
put(np.polyfit, "weights", lambda x, y, w: np.polyfit(x, y, 2, w=w), X, Y, W)
put(np.polyfit, "weights of columns", lambda y, w: np.polyfit(X, y, 2, w=w), numbers((7, 2)), W)
put(np.polyfit, "full", lambda x, y: np.polyfit(x, y, 2, full=True)[1], X, Y)
put(np.polyfit, "covariance", lambda x, y: np.polyfit(x, y, 1, cov=True)[1], X, Y)
put(np.polyfit, "unscaled", lambda x: np.polyfit(x, Y, 1, cov="unscaled")[1], X)


def _covariances(x: Any, y: Any) -> Any:
    return np.polyfit(x, y, 1, cov=True)[1]


put(np.polyfit, "covariance of columns", _covariances, X, numbers((7, 2)))
