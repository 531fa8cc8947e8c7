"""Activation layers that reduce along an axis."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layers.configured import Configured, Unary


class Softmax(Unary, function=functional.softmax):
    """Apply softmax along an axis: exp(x) / sum(exp(x)).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softmax()(ol.to_tensor([0.0, 0.0]))
    Tensor([0.5, 0.5], dtype=float32)
    """

    axis: int = -1
    name: str | None = None


class LogSoftmax(Unary, function=functional.log_softmax):
    """Apply the logarithm of softmax along an axis.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LogSoftmax()(ol.to_tensor([0.0, 1000.0]))
    Tensor([-1000.,     0.], dtype=float32)
    """

    axis: int = -1
    name: str | None = None


class Softmax2D(Configured, function=functional.softmax):
    """Apply softmax over the channels of images of shape [N, C, H, W] or [C, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softmax2D()(ol.zeros([1, 2, 1, 1])).tolist()
    [[[[0.5]], [[0.5]]]]
    """

    name: str | None = None

    def forward(self, x: Any) -> Tensor:
        """Apply softmax over the channels."""
        if len(x.shape) not in (3, 4):
            raise ValueError(
                f"Softmax2D takes x of shape [N, C, H, W] or [C, H, W]; got {x.shape}."
            )
        return functional.softmax(x, -3)


class Maxout(Unary, function=functional.maxout):
    """Apply maxout: the maximum of every group of neighboring channels.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Maxout(2)(ol.to_tensor([[1.0, 5.0, 2.0, 0.0]]))
    Tensor([[5., 2.]], dtype=float32)
    """

    groups: int
    axis: int = 1
    name: str | None = None


class GLU(Unary, function=functional.glu):
    """Apply the gated linear unit: the first half of x times the sigmoid of the second half.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.GLU()(ol.to_tensor([2.0, 4.0, 0.0, 1000.0]))
    Tensor([1., 4.], dtype=float32)
    """

    axis: int = -1
    name: str | None = None
