"""``scipy.special``, with the functions that SciPy itself does not dispatch to Tensors.

``scipy.special.erf(t)`` works with SciPy alone, because it is a ufunc, which NumPy dispatches to
the Tensor; so do erfc, erfinv, expit, logit, gammaln, gamma, digamma, beta, betaln, xlogy, xlog1py,
entr, rel_entr, kl_div, ndtr, log_ndtr, i0, i1 and others. But ``logsumexp``, ``softmax``,
``log_softmax`` and ``polygamma`` make plain arrays of what they are given. Here they keep the
gradient; everything else is SciPy's own.

Examples
--------
>>> import optlab as ol
>>> from optlab import special
>>> t = ol.to_tensor([0.0, 0.0], requires_grad=True)
>>> special.softmax(t)
Tensor([0.5, 0.5], dtype=float32, requires_grad=True)
"""

from __future__ import annotations

from typing import Any as _Any

import numpy as _np

from optlab.autograd.rules import scipy_special as _rules
from optlab.autograd.tape.half_precision import compute_together as _compute_together
from optlab.autograd.tensor.tensor import Tensor as _Tensor
from optlab.autograd.tensor.tensor import raw as _raw
from optlab.backend.ensemble import EnsembleArray as _EnsembleArray

__all__ = ["log_softmax", "logsumexp", "polygamma", "softmax"]  # and those of SciPy

_logaddexp: _Any = _np.logaddexp  # its type stubs do not know Tensors
_KINDS = (_Tensor, _EnsembleArray)


def logsumexp(
    a: _Any, axis: _Any = None, b: _Any = None, keepdims: bool = False, return_sign: bool = False
) -> _Any:
    """Compute the logarithm of the sum of exponentials, of `b` times exponentials if given.

    Parameters
    ----------
    a : array_like or Tensor
    axis : int or tuple of int, optional
        All axes by default.
    b : array_like or Tensor, optional
        Factors of the exponentials; they may be negative.
    keepdims : bool
    return_sign : bool
        Return the sign of the sum as well, an array.

    Examples
    --------
    >>> import optlab as ol
    >>> t = ol.to_tensor([1000.0, 1000.0], requires_grad=True)
    >>> logsumexp(t)
    Tensor(1000.6932, dtype=float32, requires_grad=True)
    """
    if not isinstance(a, _KINDS) and not isinstance(b, _KINDS):
        return _rules.scipy_special().logsumexp(
            a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign
        )
    options = {"axis": axis, "b": b, "keepdims": keepdims, "return_sign": return_sign}
    return _compute_together(_logsumexp, (a,), options)


def _logsumexp(a: _Any, axis: _Any, b: _Any, keepdims: bool, return_sign: bool) -> _Any:
    if b is None and not return_sign:
        return _logaddexp.reduce(a, axis, keepdims=keepdims)
    a = a if hasattr(a, "dtype") else _np.asarray(a)
    largest = _np.max(_raw(a), axis=axis, keepdims=True)
    largest = _np.where(_np.isfinite(largest), largest, _np.zeros_like(largest))
    powers = _np.exp(a - largest)
    total = _np.sum(powers if b is None else powers * b, axis=axis, keepdims=True)
    sign = _np.sign(_raw(total))
    if return_sign:
        total = _np.abs(total)
    y = _np.log(total) + largest
    if not keepdims:
        y, sign = _np.squeeze(y, axis), _np.squeeze(sign, axis)
    return (y, sign) if return_sign else y


def softmax(x: _Any, axis: _Any = None) -> _Any:
    """Compute exponentials divided by their sum over `axis` (over all axes by default).

    Parameters
    ----------
    x : array_like or Tensor
    axis : int or tuple of int, optional

    Examples
    --------
    >>> import optlab as ol
    >>> softmax(ol.to_tensor([[0.0, 0.0], [5.0, 5.0]]), axis=1)
    Tensor([[0.5, 0.5],
            [0.5, 0.5]], dtype=float32)
    """
    if not isinstance(x, _KINDS):
        return _rules.scipy_special().softmax(x, axis=axis)
    return _compute_together(lambda x: _np.exp(_log_softmax(x, axis)), (x,), {})


def log_softmax(x: _Any, axis: _Any = None) -> _Any:
    """Compute the logarithm of `softmax`.

    Parameters
    ----------
    x : array_like or Tensor
    axis : int or tuple of int, optional

    Examples
    --------
    >>> import optlab as ol
    >>> log_softmax(ol.to_tensor([1000.0, 0.0]))
    Tensor([    0., -1000.], dtype=float32)
    """
    if not isinstance(x, _KINDS):
        return _rules.scipy_special().log_softmax(x, axis=axis)
    return _compute_together(lambda x: _log_softmax(x, axis), (x,), {})


def _log_softmax(x: _Any, axis: _Any) -> _Any:
    return x - _logaddexp.reduce(x, axis, keepdims=True)


def polygamma(n: _Any, x: _Any) -> _Any:
    """Compute the n-th derivative of the digamma function.

    Parameters
    ----------
    n : int
        For a Tensor x one whole number.
    x : array_like or Tensor

    Examples
    --------
    >>> import optlab as ol
    >>> round(polygamma(1, ol.to_tensor(1.0)).item(), 4)
    1.6449
    """
    if not isinstance(x, _KINDS):
        return _rules.scipy_special().polygamma(n, x)
    if not isinstance(n, (int, _np.integer)) or n < 0:
        raise TypeError(f"polygamma of a Tensor takes one whole number n from 0 on; got {n!r}.")
    return _rules.polygamma(int(n), x)


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_rules.scipy_special(), name)
