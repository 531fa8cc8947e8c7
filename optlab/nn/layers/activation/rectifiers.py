"""ReLU and its relatives as layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import make_parameter, parameter_name, require_parameter
from optlab.nn.initializer import Constant
from optlab.nn.layers.configured import Unary


class CELU(Unary, function=functional.celu):
    """Give x where it is positive and alpha (e^(x / alpha) - 1) elsewhere: smooth at 0.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.CELU()(ol.to_tensor([-100.0, 2.0]))
    Tensor([-1.,  2.], dtype=float32)
    """

    alpha: float = 1.0
    name: str | None = None


class ELU(Unary, function=functional.elu):
    """Give x where it is positive and alpha (e^x - 1) elsewhere.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ELU()(ol.to_tensor([-100.0, 2.0]))
    Tensor([-1.,  2.], dtype=float32)
    """

    alpha: float = 1.0
    name: str | None = None


class LeakyReLU(Unary, function=functional.leaky_relu):
    """Give x where it is positive and negative_slope * x elsewhere.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LeakyReLU(0.5)(ol.to_tensor([-1.0, 2.0]))
    Tensor([-0.5,  2. ], dtype=float32)
    """

    negative_slope: float = 0.01
    name: str | None = None


class ReLU(Unary, function=functional.relu):
    """Give max(x, 0).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ReLU()(ol.to_tensor([-1.0, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """

    name: str | None = None


class ReLU6(Unary, function=functional.relu6):
    """Give min(max(x, 0), 6).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ReLU6()(ol.to_tensor([-1.0, 7.0]))
    Tensor([0., 6.], dtype=float32)
    """

    name: str | None = None


class SELU(Unary, function=functional.selu):
    """Give scale * x where x is positive and scale * alpha (e^x - 1) elsewhere.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.SELU(2.0, 1.0)(ol.to_tensor([-100.0, 2.0]))
    Tensor([-2.,  4.], dtype=float32)
    """

    scale: float = 1.0507009873554805
    alpha: float = 1.6732632423543772
    name: str | None = None


class PReLU(Layer):
    """Give x where it is positive and weight * x elsewhere, with a weight that is learned.

    Parameters
    ----------
    num_parameters : int
        1 for one weight, or the number of channels.
    init : float
        How the weights start.
    weight_attr : ParamAttr, str or Initializer, optional
        Settings of the weights.
    data_format : str
        'NCHW' and its like for channels on axis 1, 'NHWC' and its like for the last.
    name : str, optional
        What the name of the parameter starts with.

    See Also
    --------
    optlab.nn.functional.prelu : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.PReLU()(ol.to_tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        start = Constant(float(init))
        weight = make_parameter(
            (num_parameters,),
            weight_attr,
            "weight_attr",
            "float32",
            start,
            parameter_name(name, "weight"),
        )
        self.weight = require_parameter(weight, "PReLU", "weight_attr")
        self.data_format = data_format

    def forward(self, x: Any) -> Tensor:
        """Give x, or weight * x."""
        return functional.prelu(x, self.weight, self.data_format)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"num_parameters={self.weight.size}, data_format={self.data_format!r}"
