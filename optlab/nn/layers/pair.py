"""Layers with two inputs."""

from __future__ import annotations

import math
from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import parameter_name, require_parameter
from optlab.nn.initializer import Constant, Uniform
from optlab.nn.layers.configured import Configured


class Bilinear(Layer):
    r"""Apply a bilinear form for each output o: :math:`x_1^\top W_o\, x_2 + b_o`.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Lengths of the last axis of the inputs and the output.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the parameters, of shapes [out, in1, in2] and [1, out]. By default the weight
        is uniform within 1 / sqrt(in1) and the bias 0. ``bias_attr=False`` omits the bias.
    name : str, optional
        Prefix of the parameter names.
    dtype : str or dtype
        Dtype of the parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Bilinear(2, 3, 4)(ol.ones([5, 2]), ol.ones([5, 3])).shape
    (5, 4)
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, weight_attr: Any = None,
        bias_attr: Any = None, name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        weight = self._new_parameter(
            (out_features, in1_features, in2_features), weight_attr, "weight_attr", dtype,
            Uniform(-bound, bound), parameter_name(name, "weight"),
        )  # fmt: skip
        self.weight = require_parameter(weight, "Bilinear", "weight_attr")
        self.bias = self._new_parameter(
            (1, out_features), bias_attr, "bias_attr", dtype, Constant(0.0),
            parameter_name(name, "bias"),
        )  # fmt: skip

    def forward(self, x1: Any, x2: Any) -> Tensor:
        """Apply the bilinear form."""
        return functional.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}"


class CosineSimilarity(Configured, function=functional.cosine_similarity):
    """Compute the cosine similarity of vectors.

    Examples
    --------
    >>> import optlab as ol
    >>> similarity = ol.nn.CosineSimilarity()
    >>> round(similarity(ol.to_tensor([[3.0, 4.0]]), ol.to_tensor([[4.0, 3.0]])).item(), 4)
    0.96
    """

    axis: int = 1
    eps: float = 1e-8

    def forward(self, x1: Any, x2: Any) -> Any:
        """Compute the cosine similarity."""
        return self._call_function(x1, x2)


class PairwiseDistance(Configured, function=functional.pairwise_distance):
    """Compute the distance of vectors along the last axis.

    Examples
    --------
    >>> import optlab as ol
    >>> round(ol.nn.PairwiseDistance()(ol.to_tensor([[3.0, 4.0]]), ol.zeros([1, 2])).item(), 4)
    5.0
    """

    p: float = 2.0
    epsilon: float = 1e-6
    keepdim: bool = False
    name: str | None = None

    def forward(self, x: Any, y: Any) -> Any:
        """Compute the distance."""
        return self._call_function(x, y)
