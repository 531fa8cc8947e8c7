"""Derivative rules of products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule


def _transposed(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def _matmul_by_a(g: Any, b: Any, a_shape: Any) -> Any:
    """Give G B' for matrices; vectors stand as a row on the left and as a column on the right."""
    if b.ndim == 1:
        return g * b if len(a_shape) == 1 else np.expand_dims(g, -1) * b
    if len(a_shape) == 1:
        return np.matmul(b, np.expand_dims(g, -1))[..., 0]
    return g @ (b.T if b.ndim == 2 else _transposed(b))


def _matmul_by_b(g: Any, a: Any, b_shape: Any) -> Any:
    """Give A' G for matrices."""
    if a.ndim == 1:
        return g * a if len(b_shape) == 1 else np.expand_dims(a, -1) * np.expand_dims(g, -2)
    if len(b_shape) == 1:
        return np.matmul(_transposed(a), np.expand_dims(g, -1))[..., 0]
    return (a.T if a.ndim == 2 else _transposed(a)) @ g


MATMUL = rule(np.matmul, _matmul_by_a, _matmul_by_b)
