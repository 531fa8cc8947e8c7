"""The layers: Linear, activations and losses."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.initializer import Constant, Initializer, XavierUniform
from optlab.nn.layer import Layer
from optlab.nn.parameter import Parameter


class Linear(Layer):
    """Give x W + b, with W of shape [in, out].

    Parameters
    ----------
    in_features, out_features : int
        Lengths of the last axis of input and output.
    bias_attr : bool
        False leaves the bias out.
    weight_initializer, bias_initializer : Initializer
        By default Xavier uniform and zero.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> layer = ol.nn.Linear(4, 2)
    >>> layer.weight.shape, layer.bias.shape, layer(ol.ones([3, 4])).shape
    ((4, 2), (2,), (3, 2))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_attr: bool | None = None,
        *,
        weight_initializer: Initializer | None = None,
        bias_initializer: Initializer | None = None,
        dtype: Any = "float32",
    ) -> None:
        for name, length in (("in_features", in_features), ("out_features", out_features)):
            if length < 1:
                raise ValueError(f"Linear: {name} must be at least 1; got {length}.")
        self.in_features, self.out_features = in_features, out_features
        draw = weight_initializer or XavierUniform()
        self.weight = Parameter(draw((in_features, out_features), dtype))
        self.bias: Parameter | None = None
        if bias_attr is not False:
            start = bias_initializer or Constant(0.0)
            self.bias = Parameter(start((out_features,), dtype))

    def forward(self, x: Any) -> Tensor:
        """Give x W + b."""
        return functional.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"{self.in_features}, {self.out_features}" + (
            "" if self.bias is not None else ", bias_attr=False"
        )


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


class CrossEntropyLoss(Layer):
    """Give the cross entropy of softmax(input) against integer labels.

    Parameters
    ----------
    reduction : {'mean', 'sum', 'none'}
        What to do with the values of the rows.

    Examples
    --------
    >>> import optlab as ol
    >>> loss = ol.nn.CrossEntropyLoss()
    >>> round(loss(ol.zeros([2, 10]), ol.to_tensor([3, 7])).item(), 4)
    2.3026
    """

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none'; got {reduction!r}.")
        self.reduction = reduction

    def forward(self, input: Any, label: Any) -> Tensor:
        """Give the loss of `input` (scores, [N, C]) against `label` (integers, [N])."""
        return functional.cross_entropy(input, label, self.reduction)
