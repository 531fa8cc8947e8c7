"""Linear recurrences, shared by the rules of cumulative products, maxima and log-sum-exp."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule


def to_last(x: Any, axis: int) -> Any:
    """Move an axis to the end, along which recurrences run."""
    return x if axis in (-1, len(x.shape) - 1) else np.moveaxis(x, axis, -1)


def from_last(x: Any, axis: int) -> Any:
    """Move the last axis back to `axis`."""
    return x if axis in (-1, len(x.shape) - 1) else np.moveaxis(x, -1, axis)


def linear_recurrence(a: Any, b: Any) -> Any:
    """Return s with s[0] = b[0] and s[i] = b[i] + a[i - 1] * s[i - 1], along the last axis.

    Elements 1, 3, 5, ... follow a recurrence of half the length (cyclic reduction): log n array
    operations, O(n) in all, without division, so zeros are exact.

    Examples
    --------
    >>> linear_recurrence(np.array([2.0, 0.0, 10.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    array([ 1.,  3.,  1., 11.])
    """
    n = b.shape[-1]
    if n < 2:
        return b
    odd = linear_recurrence(
        a[..., 2::2] * a[..., 1 : n - 2 : 2], b[..., 1::2] + a[..., ::2] * b[..., : n - 1 : 2]
    )
    later = b[..., 2::2]
    even = np.concatenate([b[..., :1], later + a[..., 1::2] * odd[..., : later.shape[-1]]], axis=-1)
    paired = np.stack([even[..., : n // 2], odd], axis=-1).reshape((*b.shape[:-1], n - n % 2))
    return np.concatenate([paired, even[..., n // 2 :]], axis=-1) if n % 2 else paired


def recurrence(a: Any, b: Any) -> Any:
    """Return `linear_recurrence` of arrays or Tensors, as one operation."""
    return as_single_operation(linear_recurrence, a, b)


def reversed_recurrence(a: Any, b: Any) -> Any:
    """Return s with s[-1] = b[-1] and s[i] = b[i] + a[i] * s[i + 1]."""
    return np.flip(recurrence(np.flip(a, -1), np.flip(b, -1)), -1)


def _recurrence_gradients(g: Any, a: Any, y: Any) -> tuple[Any, Any]:
    passed_on = reversed_recurrence(a, g)
    return passed_on[..., 1:] * y[..., :-1], passed_on


RECURRENCE = rule(linear_recurrence, inputs="a b", joint=_recurrence_gradients)
