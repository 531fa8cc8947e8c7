"""Derivative rules of interpolation, convolution and unwrapping."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.manipulation.indexing import scatter_recorded
from optlab.autograd.rules.reductions.folding import Shape

# Convolution --------------------------------------------------------------------------------------


def _pad_to_full(g: Any, n: int, m: int, mode: Any) -> Any:
    """Pad the gradient of a convolution of lengths n and m with zeros to that of mode 'full'."""
    shorter = min(n, m)
    if mode in ("full", 2):
        return g
    before = shorter - 1 if mode in ("valid", 0) else (shorter - 1) // 2
    return scatter_recorded(g, slice(before, before + g.shape[0]), (n + m - 1,))


def _convolve_gradient(g: Any, shape: Shape, other: Any, mode: Any) -> Any:
    """Return the gradient of a factor of `shape`: the full `g` correlated with the other factor."""
    other = np.reshape(other, (-1,))
    n = shape[0] if shape else 1
    full = _pad_to_full(g, n, other.shape[0], mode)
    return np.correlate(full, other, "valid").reshape(shape)


CONVOLVE = rule(
    np.convolve,
    lambda g, a_shape, v, mode="full": _convolve_gradient(g, a_shape, v, mode),
    lambda g, a, v_shape, mode="full": _convolve_gradient(g, v_shape, a, mode),
    inputs="a v",
    static="mode",
)


# Interpolation ------------------------------------------------------------------------------------


def _gather(x: Any, index: Any) -> Any:
    """Return ``x[index]`` of a vector; for NumPy arrays by a call that dispatches on `index`."""
    if not isinstance(x, np.ndarray):
        return x[index]
    return np.take_along_axis(x, index.reshape((-1,)), axis=0).reshape(index.shape)


def _interp(
    g: Any, x: Any, xp: Any, fp: Any, needs: tuple[bool, ...], left: Any = None, right: Any = None
) -> tuple[Any, Any, Any]:
    """Return the gradients of piecewise linear interpolation.

    At a node the slope is that of the piece on its right (at the last node, on its left). Outside
    the nodes the slope is 0; the value is the first or last of `fp` unless `left`, `right` set it.
    """
    n = xp.shape[0]
    low = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, max(n - 2, 0))
    high = np.minimum(low + 1, n - 1)
    before, after = x < xp[0], x > xp[-1]
    width = _gather(xp, high) - _gather(xp, low) if n > 1 else 1.0
    share = np.where(before, 0.0, np.where(after, 1.0, (x - _gather(xp, low)) / width))
    at_x = np.where(before | after, 0.0, g * ((_gather(fp, high) - _gather(fp, low)) / width))
    at_xp = at_fp = None
    if needs[1]:
        at_low, at_high = at_x * (share - 1.0), at_x * -share
        at_xp = scatter_recorded(at_low, low, xp.shape) + scatter_recorded(at_high, high, xp.shape)
    if needs[2]:
        if left is not None:
            g = np.where(before, 0.0, g)
        if right is not None:
            g = np.where(after, 0.0, g)
        at_low, at_high = g * (1.0 - share), g * share
        at_fp = scatter_recorded(at_low, low, fp.shape) + scatter_recorded(at_high, high, fp.shape)
    return at_x, at_xp, at_fp


INTERP = rule(np.interp, inputs="x xp fp", static="left right", joint=_interp)


# Unwrapping adds multiples of the period, which are constant in the angles. -----------------------

UNWRAP = rule(np.unwrap, lambda g: g, inputs="p", static="discont axis period")
