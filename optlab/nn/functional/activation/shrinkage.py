"""Shrinkage and threshold activations, each beside its derivative rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import where_mask
from optlab.autograd.tensor.conversions import as_setting, is_tracked
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.arguments import bounded, no_name, scores, setting_beside


def _hard_shrink(x: Any, threshold: float) -> Any:
    return where_mask(x, np.logical_not(np.abs(x) <= threshold))  # NaN stays


def _soft_shrink(x: Any, threshold: float) -> Any:
    return x - bounded(x, -threshold, threshold)


HARD_SHRINK = rule(_hard_shrink, lambda g, y: where_mask(g, y != 0), inputs="x", static="threshold")
SOFT_SHRINK = rule(_soft_shrink, lambda g, y: where_mask(g, y != 0), inputs="x", static="threshold")


def _threshold(threshold: float, function: str) -> dict[str, Any]:
    if not threshold >= 0:
        raise ValueError(f"{function} takes a threshold of at least 0; got {threshold!r}.")
    return {"threshold": as_setting(threshold, "threshold")}


def hardshrink(x: Any, threshold: float = 0.5, name: None = None) -> Tensor:
    """Apply hard shrinkage: x if ``|x|`` > threshold, else 0.

    Parameters
    ----------
    x : Tensor or array
    threshold : float
        At least 0.

    Raises
    ------
    ValueError
        If `threshold` is negative.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.hardshrink(ol.to_tensor([-1.0, 0.3, 2.0]))
    Tensor([-1.,  0.,  2.], dtype=float32)
    """
    no_name(name)
    return apply(HARD_SHRINK, (scores(x),), _threshold(threshold, "hardshrink"))


@documented_like(hardshrink)
def softshrink(x: Any, threshold: float = 0.5, name: None = None) -> Tensor:
    """Apply soft shrinkage: ``sign(x) max(|x| - threshold, 0)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.softshrink(ol.to_tensor([-1.0, 0.3, 2.0]))
    Tensor([-0.5,  0. ,  1.5], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    if is_tracked(threshold):
        width = setting_beside(x, threshold, "threshold")
        return np.sign(x) * np.maximum(np.abs(x) - width, 0.0)  # type: ignore[no-any-return]
    return apply(SOFT_SHRINK, (x,), _threshold(threshold, "softshrink"))


def tanhshrink(x: Any, name: None = None) -> Tensor:
    """Apply tanh shrinkage, x - tanh(x).

    Parameters
    ----------
    x : Tensor or array

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.functional.tanhshrink(ol.to_tensor([0.0, 2.0])), 4)
    Tensor([0.   , 1.036], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    return x - np.tanh(x)  # type: ignore[no-any-return]


def thresholded_relu(
    x: Any, threshold: float = 1.0, value: float = 0.0, name: None = None
) -> Tensor:
    """Apply the thresholded ReLU: x if x > threshold, else `value`.

    Parameters
    ----------
    x : Tensor or array
    threshold : float
    value : float
        Result for x <= threshold.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.thresholded_relu(ol.to_tensor([0.5, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """
    no_name(name)
    x = scores(x)
    return np.where(x > threshold, x, setting_beside(x, value, "value"))  # type: ignore[no-any-return]
