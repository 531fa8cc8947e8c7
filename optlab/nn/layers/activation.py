"""Activations as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layer import Layer


class ReLU(Layer):
    """Give max(x, 0).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ReLU()(ol.to_tensor([-1.0, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Give max(x, 0)."""
        return functional.relu(x)


class Tanh(Layer):
    """Give the hyperbolic tangent.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Tanh()(ol.to_tensor([0.0]))
    Tensor([0.], dtype=float32)
    """

    def forward(self, x: Any) -> Tensor:
        """Give tanh(x)."""
        return functional.tanh(x)
