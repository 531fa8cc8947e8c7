"""Cross-entropy of many classes as one fused operation, beside its derivative rule.

One pass of exponentials, which are saved with their sums; logarithms are taken of the sums alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import product
from optlab.autograd.rules.manipulation.indexing import getitem
from optlab.autograd.rules.reductions import aggregates
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import constants_beside
from optlab.nn.functional.arguments import total
from optlab.nn.functional.loss.labels import all_classes

#: Elements of a block of rows: they stay in the processor's cache.
BLOCK = 1 << 16


def _exponentials(x: Any) -> tuple[Any, Any, Any]:
    """Return the maximum m of each row, exp(x - m) and its sum."""
    count, classes = x.shape
    if type(x) is not np.ndarray or x.dtype.itemsize < 4 or x.size <= BLOCK:
        top = aggregates.MAX.forward(x, axis=-1, keepdims=True)
        powers = np.exp(x - top)
        return top, powers, total(powers, -1)
    top, powers = np.empty((count, 1), x.dtype), np.empty(x.shape, x.dtype)
    sums, step = np.empty((count, 1), x.dtype), max(1, BLOCK // classes)
    for start in range(0, count, step):
        rows = slice(start, start + step)
        block = powers[rows]
        np.maximum.reduce(x[rows], axis=-1, keepdims=True, out=top[rows])
        np.exp(np.subtract(x[rows], top[rows], out=block), out=block)
        sums[rows] = total(block, -1)
    return top, powers, sums


def _cross_entropy(x: Any, labels: Any, factors: Any, smoothing: float, summed: bool) -> Any:
    """Return the losses of rows or their sum, and the exponentials and sums for the backward pass.

    A row's loss is its factor times ``(1 - s) (l - x[label]) + s (l - mean(x))``, where l is
    logsumexp(x).
    """
    top, powers, sums = _exponentials(x)
    picked = getitem(x, (np.arange(len(labels)), labels))
    if smoothing:
        picked = (1 - smoothing) * picked + smoothing * np.mean(x, axis=-1)
    losses = (top[:, 0] - picked) + np.log(sums[:, 0])
    losses = losses * factors if type(factors) is float else product(factors, losses)
    return np.add.reduce(losses) if summed else losses, powers, sums


def _cross_entropy_back(
    g: Any, y: Any, labels: Any, factors: Any, smoothing: float, summed: bool
) -> Any:
    _, powers, sums = y
    by_x: Any = 0.0
    if 0 in g:
        classes, of_rows = powers.shape[1], g[0] * factors
        column = of_rows[:, None] if of_rows.ndim else of_rows
        by_x = powers * (column / sums)
        if type(by_x) is np.ndarray and type(of_rows) is not Tensor:
            by_x = _subtract_at(by_x, labels, (1 - smoothing) * of_rows)
        else:
            mine = labels[:, None] == all_classes(labels, classes)
            by_x = by_x - constants_beside(by_x, mine) * ((1 - smoothing) * column)
        if smoothing:
            by_x = by_x - column * (smoothing / classes)
    # The maximum of a row counts as a constant: it cancels in the quotient of these two.
    if 1 in g:
        by_x = by_x + g[1] * powers
    if 2 in g:
        by_x = by_x + g[2] * powers
    return by_x


def _subtract_at(x: Any, labels: Any, numbers: Any) -> Any:
    """Subtract numbers at the labels, in place: `x` is not shared."""
    x[np.arange(len(labels)), labels] -= numbers
    return x


CROSS_ENTROPY = rule(
    _cross_entropy,
    _cross_entropy_back,
    inputs="x",
    static="labels factors smoothing summed",
    several=True,
)
