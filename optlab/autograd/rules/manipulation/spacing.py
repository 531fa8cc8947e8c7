"""Derivative rules of evenly spaced numbers with respect to their endpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule


def _fraction(g: Any, num: int, endpoint: bool, axis: int) -> Any:
    """Return the fraction of the way from start to stop of each number, in the shape of `g`."""
    steps = np.cumsum(np.ones_like(g), axis=axis) - 1
    return steps / max(num - 1 if endpoint else num, 1)


def _linear_start(g: Any, num: int = 50, endpoint: bool = True, axis: int = 0) -> Any:
    return np.sum(g * (1 - _fraction(g, num, endpoint, axis)), axis=axis)


def _linear_stop(g: Any, num: int = 50, endpoint: bool = True, axis: int = 0) -> Any:
    return np.sum(g * _fraction(g, num, endpoint, axis), axis=axis)


LINSPACE = rule(
    np.linspace, _linear_start, _linear_stop, inputs="start stop", static="num endpoint dtype axis"
)
# y is start**(1 - w) * stop**w, where w is the fraction of the way.
GEOMSPACE = rule(
    np.geomspace,
    lambda g, y, start, num=50, endpoint=True, axis=0: (
        _linear_start(g * y, num, endpoint, axis) / start
    ),
    lambda g, y, stop, num=50, endpoint=True, axis=0: (
        _linear_stop(g * y, num, endpoint, axis) / stop
    ),
    inputs="start stop",
    static="num endpoint dtype axis",
)
