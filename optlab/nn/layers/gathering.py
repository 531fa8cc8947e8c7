"""Activations that look along an axis, as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layers.applied import Applied
from optlab.nn.layers.shown import Shown


class Softmax(Applied, function=functional.softmax):
    """Give exp(x) / sum(exp(x)).

    Parameters
    ----------
    axis : int
        Along which the probabilities add up to 1.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.softmax : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softmax()(ol.to_tensor([0.0, 0.0]))
    Tensor([0.5, 0.5], dtype=float32)
    """

    axis: int = -1
    name: str | None = None


class LogSoftmax(Applied, function=functional.log_softmax):
    """Give the logarithms of softmax.

    Parameters
    ----------
    axis : int
        Along which the probabilities add up to 1.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.log_softmax : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LogSoftmax()(ol.to_tensor([0.0, 1000.0]))
    Tensor([-1000.,     0.], dtype=float32)
    """

    axis: int = -1
    name: str | None = None


class Softmax2D(Shown):
    """Give softmax over the channels of pictures, of shape [N, C, H, W] or [C, H, W].

    Parameters
    ----------
    name : str, optional
        Shown by ``repr``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Softmax2D()(ol.zeros([1, 2, 1, 1])).tolist()
    [[[[0.5]], [[0.5]]]]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)

    def forward(self, x: Any) -> Tensor:
        """Give softmax over the channels."""
        if len(x.shape) not in (3, 4):
            raise ValueError(
                f"Softmax2D takes x of shape [N, C, H, W] or [C, H, W]; got {x.shape}."
            )
        return functional.softmax(x, -3)


class Maxout(Applied, function=functional.maxout):
    """Give the largest of every group of neighbouring channels.

    Parameters
    ----------
    groups : int
        How many neighbouring channels make a group.
    axis : int
        Which axis holds the channels.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.maxout : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Maxout(2)(ol.to_tensor([[1.0, 5.0, 2.0, 0.0]]))
    Tensor([[5., 2.]], dtype=float32)
    """

    groups: int
    axis: int = 1
    name: str | None = None


class GLU(Applied, function=functional.glu):
    """Give the first half of x, times the sigmoid of the second half.

    Parameters
    ----------
    axis : int
        Which axis is halved.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.glu : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.GLU()(ol.to_tensor([2.0, 4.0, 0.0, 1000.0]))
    Tensor([1., 4.], dtype=float32)
    """

    axis: int = -1
    name: str | None = None
