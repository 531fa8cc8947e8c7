"""Linear algebra of NumPy written with other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed, not_covered
from optlab.autograd.rules.reductions import NORM
from optlab.autograd.tensor import apply


@composed(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    several = np.ndim(x) > 1 if axis is None else isinstance(axis, tuple)
    if ord is not None and ord != ("fro" if several else 2):
        raise not_covered(f"linalg.norm with ord={ord!r}")
    return apply(NORM, (x,), {"axis": axis, "keepdims": keepdims})


@composed(np.dot)
def _dot(a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return np.multiply(a, b)
    if np.ndim(b) <= 2:
        return np.matmul(a, b)
    raise not_covered("dot with a right side of more than two axes")


@composed(np.outer)
def _outer(a: Any, b: Any) -> Any:
    return np.reshape(a, (-1, 1)) * np.reshape(b, (1, -1))
