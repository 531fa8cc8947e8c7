"""Averages, covariances and correlations, composed of other functions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from optlab.autograd.composed.reductions import NOT_GIVEN, constant
from optlab.autograd.composed.table import composed
from optlab.autograd.rules.reductions.folding import normalized_axes
from optlab.autograd.tensor.tensor import raw
from optlab.backend.arrays import constants_beside


def _as_array(x: Any) -> Any:
    return x if hasattr(x, "shape") else np.asarray(x)


def _cast(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else x.astype(dtype)


def _has_values(x: Any) -> bool:
    """Return whether values can be inspected: those of captured arrays cannot."""
    return isinstance(raw(x), (np.ndarray, np.generic))


@composed(np.average)
def _average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: Any = NOT_GIVEN,
) -> Any:
    a = _as_array(a)
    kept = {} if keepdims is NOT_GIVEN else {"keepdims": keepdims}
    if weights is None:
        average = np.mean(a, axis, **kept)
        total: Any = constants_beside(average, np.asarray(a.size / average.size, average.dtype))
    else:
        weights = _align_weights(a, axis, _as_array(weights))
        whole = a.dtype.kind in "iub"
        dtype = np.result_type(a.dtype, weights.dtype, *(["f8"] if whole else []))
        total = np.sum(weights, axis=axis, dtype=dtype, **kept)
        if _has_values(total) and np.any(total == 0.0):
            raise ZeroDivisionError("the weights add up to 0, so they cannot be normalised.")
        average = np.sum(_cast(a, dtype) * _cast(weights, dtype), axis=axis, **kept) / total
    if not returned:
        return average
    return average, +np.broadcast_to(total, average.shape)


def _align_weights(a: Any, axis: Any, weights: Any) -> Any:
    """Reshape weights that belong to some axes so that they broadcast to `a`."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise TypeError(
            f"weights of shape {weights.shape} for an array of shape {a.shape}: set axis= to the "
            "axis that they belong to."
        )
    axes = normalized_axes(len(a.shape), axis)
    if weights.shape != tuple(a.shape[i] for i in axes):
        raise ValueError(
            f"weights of shape {weights.shape} do not fit axis {axis} of an array of shape "
            f"{a.shape}."
        )
    weights = np.transpose(weights, np.argsort(axes).tolist())
    return weights.reshape(tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))


@composed(np.cov)
def _cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    given = [_as_array(x) for x in (m, y) if x is not None]
    dtype = np.dtype(dtype or np.result_type(*(x.dtype for x in given), np.float64))
    variables = [_variables_as_rows(given[0], rowvar, dtype)]
    # A second set of one row is one variable, also with rowvar=False.
    variables += [_variables_as_rows(x, rowvar or x.shape[:1] == (1,), dtype) for x in given[1:]]
    rows = variables[0] if y is None else np.concatenate(variables, axis=0)
    samples = rows.shape[1]
    if ddof is None:
        ddof = 0 if bias else 1
    elif ddof != int(ddof):
        raise ValueError(f"ddof must be a whole number; got {ddof!r}.")
    weights = _frequency_weights(fweights, samples)
    if aweights is not None:
        aweights = _cast(_sample_weights("aweights", aweights, samples), np.dtype(float))
        weights = aweights if weights is None else weights * aweights
    mean, total = np.average(rows, axis=1, weights=weights, returned=True)
    if weights is None:
        freedom = samples - ddof
    elif ddof == 0:
        freedom = total[0]
    elif aweights is None:
        freedom = total[0] - ddof
    else:
        freedom = total[0] - ddof * np.sum(weights * aweights) / total[0]
    if (isinstance(freedom, int) or _has_values(freedom)) and raw(freedom) <= 0:
        warnings.warn("no degrees of freedom are left: 1 / 0", RuntimeWarning, stacklevel=2)
        freedom = 0.0
    deviations = rows - np.reshape(mean, (-1, 1))
    weighted = deviations if weights is None else deviations * weights
    products = np.dot(deviations, np.transpose(weighted))
    return np.squeeze(_cast(products * np.true_divide(1, freedom), products.dtype))


def _variables_as_rows(x: Any, rowvar: bool, dtype: Any) -> Any:
    """Return variables as rows, one sample a column."""
    if len(x.shape) > 2:
        raise ValueError(f"cov takes arrays of at most 2 axes; got shape {x.shape}.")
    x = _cast(x, dtype)
    if len(x.shape) < 2:
        return x.reshape((1, -1))
    return x if rowvar else np.transpose(x)


def _sample_weights(name: str, weights: Any, samples: int) -> Any:
    weights = _as_array(weights)
    if weights.shape != (samples,):
        raise RuntimeError(
            f"{name} must have one number a sample, shape ({samples},); got {weights.shape}."
        )
    if _has_values(weights) and np.any(weights < 0):
        raise ValueError(f"{name} cannot be negative.")
    return weights


def _frequency_weights(fweights: Any, samples: int) -> Any:
    if fweights is None:
        return None
    counts = _sample_weights("fweights", constant(fweights, "cov with fweights="), samples)
    if not np.all(counts == np.around(counts)):
        raise TypeError("fweights are numbers of repetitions: whole numbers.")
    return counts.astype(float)


@composed(np.corrcoef)
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c = np.cov(x, y, rowvar, dtype=dtype)
    if np.ndim(c) == 0:
        return c / c
    every = list(range(np.shape(c)[0]))
    deviation = np.sqrt(c[every, every])
    c = c / np.reshape(deviation, (-1, 1)) / np.reshape(deviation, (1, -1))
    return np.clip(c, -1.0, 1.0)
