"""Derivative rule of constant padding; the other modes are composed of other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule


def pad_with_numbers(x: Any, pad_width: Any, constant_values: Any = 0) -> Any:
    """Pad `x` with constants; `pad_width` has a pair (before, after) for every axis.

    Examples
    --------
    >>> import numpy as np
    >>> pad_with_numbers(np.ones(2), ((1, 2),))
    array([0., 1., 1., 0., 0.])
    """
    return np.pad(x, pad_width, constant_values=constant_values)


def _crop(g: Any, pad_width: Any) -> Any:
    """Return `g` without the padding."""
    pairs = zip(pad_width, g.shape, strict=True)
    return g[tuple(slice(before, length - after) for (before, after), length in pairs)]


PAD = rule(pad_with_numbers, _crop, static="pad_width constant_values")
