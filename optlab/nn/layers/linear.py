"""Linear layers."""

from __future__ import annotations

from typing import Any

import numpy as np

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
            if not isinstance(length, (int, np.integer)) or length < 1:
                raise ValueError(
                    f"Linear: {name} must be a whole number of at least 1; got {length!r}."
                )
        if bias_attr not in (None, True, False):
            raise TypeError(f"Linear: bias_attr must be True, False or None; got {bias_attr!r}.")
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
