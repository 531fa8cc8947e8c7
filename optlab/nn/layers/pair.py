"""Layers of two inputs."""

from __future__ import annotations

import math
from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import make_parameter, parameter_name, require_parameter
from optlab.nn.initializer import Constant, Uniform
from optlab.nn.layers.configured import Configured


class Bilinear(Layer):
    r"""Give :math:`x_1^\top W_o\, x_2 + b_o` for each output o.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Lengths of the inputs and of the output.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the parameters, of shapes [out, in1, in2] and [1, out], which start uniformly
        within 1 / sqrt(in1). ``bias_attr=False`` leaves the bias out.
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Bilinear(2, 3, 4)(ol.ones([5, 2]), ol.ones([5, 3])).shape
    (5, 4)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        weight = make_parameter(
            (out_features, in1_features, in2_features), weight_attr, "weight_attr", dtype,
            Uniform(-bound, bound), parameter_name(name, "weight"),
        )  # fmt: skip
        self.weight = require_parameter(weight, "Bilinear", "weight_attr")
        self.bias = make_parameter(
            (1, out_features),
            bias_attr,
            "bias_attr",
            dtype,
            Constant(0.0),
            parameter_name(name, "bias"),
        )

    def forward(self, x1: Any, x2: Any) -> Tensor:
        """Give what is linear in both inputs."""
        return functional.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}"


class CosineSimilarity(Configured, function=functional.cosine_similarity):
    """Give the cosine of the angle between vectors.

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
        """Give the cosine of the angle."""
        return self._call_function(x1, x2)


class PairwiseDistance(Configured, function=functional.pairwise_distance):
    """Give the distance of vectors along the last axis.

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
        """Give the distance."""
        return self._call_function(x, y)
