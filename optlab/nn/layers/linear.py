"""Linear layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import parameter_name, require_parameter
from optlab.nn.functional.affine import linear
from optlab.nn.initializer import Constant, Initializer, XavierUniform


class Linear(Layer):
    """Apply a linear transformation: x W + b, with W of shape [in, out].

    Parameters
    ----------
    in_features, out_features : int
        Lengths of the last axis of input and output.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings, name or initializer of the parameters, by default Xavier uniform and zero.
        ``bias_attr=False`` omits the bias.
    name : str, optional
        Prefix of the parameter names, as ``"fc"`` of ``"fc.weight"``; by default they have
        generated ones, such as ``"linear_0.w_0"``.
    weight_initializer, bias_initializer : Initializer, optional
        Initializers unless `weight_attr` and `bias_attr` have them.
    dtype : str or dtype
        Dtype of the parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> layer = ol.nn.Linear(4, 2)
    >>> layer.weight.shape, layer.bias.shape, layer(ol.ones([3, 4])).shape
    ((4, 2), (2,), (3, 2))
    """

    def __init__(
        self, in_features: int, out_features: int, weight_attr: Any = None, bias_attr: Any = None,
        name: str | None = None, *, weight_initializer: Initializer | None = None,
        bias_initializer: Initializer | None = None, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        for argument, length in (("in_features", in_features), ("out_features", out_features)):
            if not isinstance(length, (int, np.integer)) or length < 1:
                raise ValueError(
                    f"Linear: {argument} must be a whole number of at least 1; got {length!r}."
                )
        self.in_features, self.out_features = in_features, out_features
        start = weight_initializer or XavierUniform()
        weight = self._new_parameter(
            (in_features, out_features), weight_attr, "weight_attr", dtype, start,
            parameter_name(name, "weight"),
        )  # fmt: skip
        self.weight = require_parameter(weight, "Linear", "weight_attr")
        start = bias_initializer or Constant(0.0)
        self.bias = self._new_parameter(
            (out_features,), bias_attr, "bias_attr", dtype, start, parameter_name(name, "bias")
        )

    def forward(self, x: Any) -> Tensor:
        """Compute x W + b."""
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.in_features}, {self.out_features}" + (
            "" if self.bias is not None else ", bias_attr=False"
        )
