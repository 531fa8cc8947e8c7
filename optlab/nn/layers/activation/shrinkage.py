"""Piecewise activation layers: clipped, shrunk or thresholded."""

from __future__ import annotations

from optlab.nn import functional
from optlab.nn.layers.configured import Unary


class Hardshrink(Unary, function=functional.hardshrink):
    """Apply hard shrinkage: x where abs(x) exceeds the threshold, else 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Hardshrink()(ol.to_tensor([-1.0, 0.3]))
    Tensor([-1.,  0.], dtype=float32)
    """

    threshold: float = 0.5
    name: str | None = None


class Hardsigmoid(Unary, function=functional.hardsigmoid):
    """Apply the hard sigmoid: x / 6 + 1 / 2, clipped to [0, 1].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Hardsigmoid()(ol.to_tensor([-4.0, 0.0]))
    Tensor([0. , 0.5], dtype=float32)
    """

    name: str | None = None


class Hardswish(Unary, function=functional.hardswish):
    """Apply hard swish: x min(max(x + 3, 0), 6) / 6.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Hardswish()(ol.to_tensor([3.0, 4.0]))
    Tensor([3., 4.], dtype=float32)
    """

    name: str | None = None


class Hardtanh(Unary, function=functional.hardtanh):
    """Clip x to an interval.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Hardtanh()(ol.to_tensor([-2.0, 0.5]))
    Tensor([-1. ,  0.5], dtype=float32)
    """

    min: float = -1.0
    max: float = 1.0
    name: str | None = None


class Softshrink(Unary, function=functional.softshrink):
    """Apply soft shrinkage: move x toward 0 by the threshold, at most to 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softshrink()(ol.to_tensor([-1.0, 0.3]))
    Tensor([-0.5,  0. ], dtype=float32)
    """

    threshold: float = 0.5
    name: str | None = None


class Tanhshrink(Unary, function=functional.tanhshrink):
    """Apply tanh shrinkage: x - tanh(x).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Tanhshrink()(ol.to_tensor([0.0, 1000.0]))
    Tensor([  0., 999.], dtype=float32)
    """

    name: str | None = None


class ThresholdedReLU(Unary, function=functional.thresholded_relu):
    """Apply a thresholded ReLU: x above the threshold, else a fixed value.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ThresholdedReLU()(ol.to_tensor([0.5, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """

    threshold: float = 1.0
    value: float = 0.0
    name: str | None = None
