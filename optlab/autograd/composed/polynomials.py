"""Polynomials as vectors of coefficients, highest power first, composed of other functions.

Polynomials are short, so loops over their coefficients are fast enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.tensor.tensor import raw
from optlab.backend.arrays import constants_beside, zeros_beside
from optlab.backend.dtypes import finfo
from optlab.backend.ensemble import EnsembleArray, EnsembleError


def _coefs(name: str, *given: Any) -> list[Any]:
    """Return coefficients as arrays with at least one axis, on the device of the first array."""
    if any(isinstance(x, np.poly1d) for x in given):
        raise not_covered(f"{name} with a poly1d")
    beside = next(raw(x) for x in given if hasattr(x, "shape"))
    arrays = [x if hasattr(x, "shape") else constants_beside(beside, np.asarray(x)) for x in given]
    return [x if len(x.shape) else np.reshape(x, (1,)) for x in arrays]


def _exponents(n: int, p: Any) -> Any:
    """Return n, n - 1, ..., 1 on the device of `p`."""
    return constants_beside(raw(p), np.arange(n, 0, -1))


def _member_integers(ask: Callable[[Any], int], values: Any) -> set[int]:
    """Return the set of integers that `ask` finds in an array, or in each member of an ensemble."""
    if isinstance(values, EnsembleArray):
        return {answer for member in values.members for answer in _member_integers(ask, member)}
    return {int(ask(values))}


def _leading(name: str, ask: Callable[[Any], int], p: Any) -> int:
    """Return how many leading coefficients to drop, equal for all members of an ensemble."""
    count, *others = _member_integers(ask, raw(p))
    if others:
        raise EnsembleError(
            f"{name} drops leading coefficients that are 0, and the members of this ensemble "
            "have different numbers of them."
        )
    return count


def _pad_to_same_length(first: Any, second: Any) -> tuple[Any, Any]:
    """Pad the shorter polynomial with leading zeros."""
    missing = second.shape[0] - first.shape[0]
    if missing > 0:
        first = np.concatenate([zeros_beside(raw(first), (missing,)), first])
    elif missing < 0:
        second = np.concatenate([zeros_beside(raw(second), (-missing,)), second])
    return first, second


@composed(np.polyadd)
def _polyadd(a1: Any, a2: Any) -> Any:
    first, second = _coefs("polyadd", a1, a2)
    first, second = _pad_to_same_length(first, second)
    return first + second


@composed(np.polysub)
def _polysub(a1: Any, a2: Any) -> Any:
    first, second = _coefs("polysub", a1, a2)
    first, second = _pad_to_same_length(first, second)
    return first - second


def _leading_zeros(p: Any) -> int:
    """Count the leading zeros, except the last coefficient."""
    last = p.shape[0] - 1
    return int((p[:last] != 0).argmax()) if bool((p[:last] != 0).any()) else last


@composed(np.polymul)
def _polymul(a1: Any, a2: Any) -> Any:
    first, second = (p[_leading("polymul", _leading_zeros, p) :] for p in _coefs("polymul", a1, a2))
    return np.convolve(first, second)


def _leading_rounding(p: Any) -> int:
    """Count the leading coefficients that are only rounding, except the last."""
    leading = 0
    while leading + 1 < p.shape[0] and abs(float(p[leading])) <= 1e-8:
        leading += 1
    return leading


@composed(np.polydiv)
def _polydiv(u: Any, v: Any) -> Any:
    """Apply long division: each step subtracts a multiple of `v` from the remainder of `u`."""
    rest, v = _coefs("polydiv", u, v)
    dtype = np.result_type(rest.dtype, v.dtype, 0.0)
    rest, v = (x if x.dtype == dtype else x.astype(dtype) for x in (rest, v))
    steps, n = rest.shape[0] - v.shape[0] + 1, v.shape[0]
    scale = 1.0 / v[0]
    quotient = []
    for k in range(steps):
        factor = scale * rest[k]
        quotient.append(factor)
        rest = np.concatenate([rest[:k], rest[k : k + n] - factor * v, rest[k + n :]])
    leading = _leading("polydiv", _leading_rounding, rest)
    if leading:
        rest = rest[leading:]
    # A divisor of higher degree leaves all of `u`: the quotient is the constant 0.
    return (np.stack(quotient) if quotient else zeros_beside(raw(rest), (1,))), rest


@composed(np.polyder)
def _polyder(p: Any, m: int = 1) -> Any:
    (p,), m = _coefs("polyder", p), int(m)
    if m < 0:
        raise ValueError(f"polyder takes a derivative of order 0 or more; got {m}.")
    for _ in range(m):
        p = p[:-1] * _exponents(p.shape[0] - 1, p)
    return p


@composed(np.polyint)
def _polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    m = int(m)
    if m < 0:
        raise ValueError(f"polyint takes an integral of order 0 or more; got {m}.")
    if k is None:
        p, k = *_coefs("polyint", p), [0.0] * m
    else:
        p, k = _coefs("polyint", p, k)
        k = [k[0]] * m if k.shape[0] == 1 and m > 1 else k
    if len(k) < m:
        raise ValueError(f"polyint needs one constant k, or one for each of {m} integrals.")
    for i in range(m):
        rising = p / _exponents(p.shape[0], p)
        constant = k[i] if hasattr(k[i], "shape") else constants_beside(raw(p), np.asarray(k[i]))
        p = np.concatenate([rising, np.reshape(constant, (1,))])
    return p


@composed(np.poly)
def _poly(seq_of_zeros: Any) -> Any:
    (zeros,) = _coefs("poly", seq_of_zeros)
    shape = zeros.shape
    if len(shape) == 2 and shape[0] == shape[1] and shape[0]:
        zeros = np.linalg.eigvals(zeros)
    elif len(shape) != 1:
        raise ValueError(f"poly takes a vector of roots, or a square matrix; got shape {shape}.")
    if not shape[0]:
        return 1.0
    dtype = np.dtype(np.mintypecode(zeros.dtype.char))
    zeros = zeros if zeros.dtype == dtype else zeros.astype(dtype)
    one = zeros_beside(raw(zeros), (1,)) + dtype.type(1)
    product: Any = one
    for i in range(zeros.shape[0]):
        product = np.convolve(product, np.concatenate([one, -zeros[i : i + 1]]))
    return product


@composed(np.polyfit)
def _polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    x, y, *weights = _coefs("polyfit", x, y, *([] if w is None else [w]))
    order = int(deg) + 1
    if order < 1:
        raise ValueError(f"polyfit takes a degree of 0 or more; got deg={deg!r}.")
    for name, row in (("x", x), ("w", weights[0] if weights else x)):
        if len(row.shape) != 1 or row.shape[0] != y.shape[0]:
            raise TypeError(f"polyfit takes {name} as a vector as long as y; got {row.shape}.")
    if len(y.shape) > 2 or not x.shape[0]:
        raise TypeError(f"polyfit takes y as a nonempty vector or columns; got shape {y.shape}.")
    x, y = x + 0.0, y + 0.0
    rcond = x.shape[0] * float(finfo(x.dtype).eps) if rcond is None else rcond
    powers = np.vander(x, order)
    if weights:
        column = np.reshape(weights[0] + 0.0, (-1, 1))
        powers = powers * column
        y = y * (column if len(y.shape) == 2 else weights[0])
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    powers = powers / scale
    fitted, residuals, rank, singular = np.linalg.lstsq(powers, y, rcond)
    fitted = np.transpose(np.transpose(fitted) / scale)
    if full:
        return fitted, residuals, rank, singular, rcond
    if _member_integers(int, raw(rank)) != {order}:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if not cov:
        return fitted
    inverse = np.linalg.inv(np.transpose(powers) @ powers) / np.outer(scale, scale)
    if cov == "unscaled":
        return fitted, inverse if len(y.shape) == 1 else np.expand_dims(inverse, -1)
    if x.shape[0] <= order:
        raise ValueError(f"cov needs more than {order} points; got {x.shape[0]}.")
    factor = residuals / (x.shape[0] - order)
    return fitted, (inverse if len(y.shape) == 1 else np.expand_dims(inverse, -1)) * factor
